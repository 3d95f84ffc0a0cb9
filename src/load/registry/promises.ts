/** What a JSON Schema promises about a place in the values that fit it. */
import { isObject, own, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import { followRef } from "../../flow/json-schema.ts";

/**
 * `sure`: every value has it. `maybe`: the schema names it, but a value may do without. `unnamed`: the schema does not
 * name it, nor forbid it. `never`: no value can have it. `unknown`: the schema says it in a way that is not read here.
 */
export type Promised = "sure" | "maybe" | "unnamed" | "never" | "unknown";

export function promiseOf(schema: Json, path: Path): Promised {
  return lookInto(schema, path).promised;
}

/** Whether the schema speaks of the place, or cannot be read there. */
export function isNamed(schema: Json, path: Path): boolean {
  const promised = promiseOf(schema, path);
  return promised !== "never" && promised !== "unnamed";
}

/** The only values that a place can have, as they stand in a list of cases; null where they are not listed. */
export function valuesAt(schema: Json, path: Path): readonly string[] | null {
  const { part } = lookInto(schema, path);
  if (!isObject(part)) return null;
  if (own(part, "type") === "boolean") return ["true", "false"];
  const constant = own(part, "const");
  const listed = own(part, "enum") ?? (constant === undefined ? null : [constant]);
  if (!Array.isArray(listed)) return null;
  const words = (listed as readonly Json[]).filter((value) => typeof value !== "object");
  return words.length === listed.length ? words.map(String) : null;
}

type Look = { readonly promised: Promised; readonly part: Json | undefined };

function lookInto(root: Json, path: Path): Look {
  let part: Json | undefined = root;
  let promised: "sure" | "maybe" = "sure";
  for (const segment of path) {
    const here: Json | undefined = follow(root, part);
    if (here === false) return { promised: "never", part: undefined };
    if (!isObject(here)) return UNKNOWN;
    const step = stepInto(here, segment);
    if (step.promised !== "sure" && step.promised !== "maybe") return step;
    if (step.promised === "maybe") promised = "maybe";
    part = step.part;
  }
  return { promised, part: follow(root, part) };
}

const UNKNOWN: Look = { promised: "unknown", part: undefined };
const COMBINING = ["allOf", "anyOf", "oneOf", "not", "if", "$dynamicRef"];

function stepInto(schema: JsonObject, segment: string): Look {
  const properties = own(schema, "properties");
  const named = isObject(properties) ? own(properties, segment) : undefined;
  if (named !== undefined) {
    const required = own(schema, "required");
    if (Array.isArray(required) && required.includes(segment)) return { promised: "sure", part: named };
    return isCombined(schema) ? UNKNOWN : { promised: "maybe", part: named };
  }
  if (isCombined(schema)) return UNKNOWN;
  const type = own(schema, "type");
  if (type === "array") return elementOf(schema, segment);
  if (typeof type === "string" && type !== "object") return { promised: "never", part: undefined };
  if (Object.hasOwn(schema, "patternProperties")) return UNKNOWN;
  const others = own(schema, "additionalProperties");
  if (others === false) return { promised: "never", part: undefined };
  return others === undefined && isObject(properties) ? { promised: "unnamed", part: undefined } : UNKNOWN;
}

function isCombined(schema: JsonObject): boolean {
  return COMBINING.some((keyword) => Object.hasOwn(schema, keyword));
}

function elementOf(schema: JsonObject, segment: string): Look {
  if (!/^\d+$/.test(segment)) return { promised: "never", part: undefined };
  const [least, most] = [own(schema, "minItems"), own(schema, "maxItems")];
  if (typeof most === "number" && Number(segment) >= most) return { promised: "never", part: undefined };
  const first = own(schema, "prefixItems");
  const placed = Array.isArray(first) ? (first as readonly Json[])[Number(segment)] : undefined;
  const part = placed ?? own(schema, "items") ?? true;
  const isSure = typeof least === "number" && Number(segment) < least;
  return { promised: isSure ? "sure" : "maybe", part };
}

/** Where a reference within the schema leads; undefined where it leads elsewhere, or round in a circle. */
function follow(root: Json, part: Json | undefined): Json | undefined {
  let here = part;
  for (let hops = 0; hops < 20; hops++) {
    const ref = isObject(here) ? own(here, "$ref") : undefined;
    if (ref === undefined) return here;
    here = typeof ref === "string" ? followRef(root, ref)?.value : undefined;
  }
  return undefined;
}
