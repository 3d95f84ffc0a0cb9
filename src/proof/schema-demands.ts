/** A JSON Schema as demands on one value: without references and combinators, on a place within it, and on its type. */
import { followRef } from "../flow/json-schema.ts";
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../flow/json.ts";
import { readPattern } from "../flow/text/pattern.ts";

/** false: whatever the rest of the value is, the demands on this place refuse what is given there. */
export function isAdmitted(root: JsonSchema, demands: readonly Json[], value: Json): boolean {
  for (const flat of alternatives(root, demands, 0)) if (flat.every((one) => admits(one, value))) return true;
  return false;
}

function admits(demand: Json, value: Json): boolean {
  if (!isObject(demand)) return demand !== false;
  const { const: only, enum: words, type, nullable } = demand;
  if (only !== undefined && !isSame(only, value)) return false;
  if (Array.isArray(words) && !words.some((word) => isSame(word as Json, value))) return false;
  if (type === undefined || (nullable === true && value === null)) return true;
  return [type].flat().some((one) => isOfType(one, value));
}

/** Members may come in another order: then it is for the validator to say. */
function isSame(a: Json, b: Json): boolean {
  return a === b || (typeof a === "object" && typeof b === "object");
}

function isOfType(type: Json, value: Json): boolean {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return type === "null" ? value === null : typeof value === type;
}

/**
 * The same demands without references and combinators: one list for each way to meet them. `not` and what an `if` rules
 * out are left to the validator.
 */
export function* alternatives(
  root: JsonSchema,
  demands: readonly Json[],
  depth: number,
): Generator<readonly Json[]> {
  const open = demands.findIndex(
    (demand) => isObject(demand) && COMBINED.some((key) => Object.hasOwn(demand, key)),
  );
  if (open === -1 || depth > MOST_COMBINED) {
    yield demands;
    return;
  }
  const rest = demands.toSpliced(open, 1);
  for (const instead of opened(root, demands[open] as JsonObject))
    yield* alternatives(root, [...rest, ...instead], depth + 1);
}

const COMBINED = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if"] as const;
const MOST_COMBINED = 24;

/** What may stand in the place of a demand: one of its combinators is resolved. */
function opened(root: JsonSchema, demand: JsonObject): readonly (readonly Json[])[] {
  const key = COMBINED.find((name) => Object.hasOwn(demand, name))!;
  const { [key]: value, ...rest } = demand;
  if (key === "$ref" || key === "$dynamicRef") {
    const target =
      typeof value === "string" ? (followRef(root, value)?.value ?? anchored(root, value)) : undefined;
    return [[rest, ...(target === undefined ? [] : [target])]];
  }
  if (key === "if") {
    const { then: met = true, else: unmet = true, ...plain } = rest;
    return [
      [plain, value!, met],
      [plain, unmet],
    ];
  }
  const list: readonly Json[] = Array.isArray(value) ? value : [];
  if (key === "allOf") return [[rest, ...list]];
  // `oneOf` is tried like `anyOf`: that only one of them fits is for the validator to say.
  const options = list.map((option) => [rest, option]);
  return key === "anyOf" ? [...options, [rest, ...list]] : options;
}

function anchored(part: Json, ref: string): Json | undefined {
  if (Array.isArray(part)) {
    for (const item of part) {
      const found = anchored(item as Json, ref);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (!isObject(part)) return undefined;
  const names = [part.$anchor, part.$dynamicAnchor];
  if ((ref.startsWith("#") && names.includes(ref.slice(1))) || part.$id === ref) return part;
  for (const member of Object.values(part)) {
    const found = anchored(member, ref);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the author wrote down as a value: those that all demands list come first. */
export function* suggested(demands: readonly JsonObject[]): Generator<Json> {
  for (const { const: only } of demands) if (only !== undefined) yield only;
  for (const { enum: words } of demands) if (Array.isArray(words)) yield* words as readonly Json[];
  for (const { examples } of demands) if (Array.isArray(examples)) yield* examples as readonly Json[];
  for (const { default: usual } of demands) if (usual !== undefined) yield usual;
}

/** In the order in which they are tried: what the demands are about, then anything. */
export function typesOf(demands: readonly JsonObject[]): readonly string[] {
  const named = demands.flatMap(({ type }) => (type === undefined ? [] : [[type].flat() as readonly Json[]]));
  const allowed = TYPES.filter((type) =>
    named.every((list) => list.includes(type) || (type === "integer" && list.includes("number"))),
  ).filter((type) => type !== "integer" || named.some((list) => list.includes("integer")));
  const isAbout = (type: string) =>
    demands.some((demand) => Object.keys(demand).some((key) => KEYS_OF[type]?.test(key)));
  if (named.length > 0) return allowed;
  return [...allowed.filter(isAbout), ...allowed.filter((type) => !isAbout(type))];
}

const TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"];
const KEYS_OF: { readonly [type: string]: RegExp } = {
  object: /ropert|required|depende/i,
  array: /tems$|ontains$/,
  string: /^(?:pattern|format|minLength|maxLength)$/,
  number: /imum$|^multipleOf$/,
};

export function demandedLimit(
  demands: readonly JsonObject[],
  key: string,
  pick: (...of: number[]) => number,
  none: number,
): number {
  const found = demands.flatMap((demand) => (typeof demand[key] === "number" ? [demand[key]] : []));
  return found.length === 0 ? none : pick(...found);
}

export function demandsOn(demands: readonly JsonObject[], name: string): readonly Json[] {
  return demands.flatMap(({ properties, patternProperties, additionalProperties, unevaluatedProperties }) => {
    const declared = isObject(properties) ? own(properties, name) : undefined;
    const patterned = isObject(patternProperties)
      ? Object.entries(patternProperties).flatMap(([pattern, schema]) =>
          matches(pattern, name) ? [schema] : [],
        )
      : [];
    const found = declared === undefined ? patterned : [declared, ...patterned];
    if (found.length > 0) return found;
    return additionalProperties ?? (demands.length === 1 ? unevaluatedProperties : undefined) ?? [];
  });
}

function matches(pattern: string, text: string): boolean {
  const read = readPattern(pattern);
  return read.kind === "matcher" && read.matcher.test(text);
}

export function demandsAt(demands: readonly JsonObject[], at: number): readonly Json[] {
  return demands.flatMap(({ items, prefixItems, additionalItems }) => {
    const prefix: readonly Json[] = Array.isArray(prefixItems)
      ? prefixItems
      : Array.isArray(items)
        ? items
        : [];
    const rest = Array.isArray(items) ? additionalItems : items;
    return prefix[at] ?? rest ?? [];
  });
}
