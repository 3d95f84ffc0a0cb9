/**
 * A schema as strict draft-07 validators take it: only keywords of that draft, every reference local, an object at the
 * root. Looser than the original where the draft has no word for something; the answer is judged by the original.
 */
import { isObject, type Json, type JsonObject, type JsonSchema } from "../flow/json.ts";
import { followRef, mapSchemas } from "../flow/json-schema.ts";
import { listIn, textIn } from "./untyped.ts";

export function toDraft07(schema: JsonSchema): JsonSchema {
  const names = new Map<string, string>();
  const definitions: { [name: string]: Json } = {};

  /** Each place that is pointed to becomes a definition once, which also ends recursion. */
  function refer(pointer: string): JsonSchema {
    if (pointer === "#") return { $ref: "#" };
    const known = names.get(pointer);
    if (known !== undefined) return { $ref: `#/definitions/${known}` };
    const target = followRef(schema, pointer)?.value;
    if (target === undefined) return {};
    const name = nameFor(pointer, names.size);
    names.set(pointer, name);
    definitions[name] = convert(target, refer);
    return { $ref: `#/definitions/${name}` };
  }

  const root = convert(schema, refer);
  const whole = { ...(isObject(root) ? root : {}), type: "object" };
  return names.size === 0 ? whole : { ...whole, definitions };
}

type Refer = (pointer: string) => JsonSchema;

function convert(schema: Json, refer: Refer): Json {
  if (!isObject(schema)) return schema === false ? { not: {} } : {};
  const out: { [keyword: string]: Json } = {};
  for (const [keyword, value] of Object.entries(modernised(schema))) {
    const converted = convertValue(keyword, value, refer);
    if (converted !== undefined) out[keyword] = converted;
  }
  const { $ref } = schema;
  const whole = withoutIdle(out);
  if (typeof $ref !== "string") return whole;
  const reference = refer($ref);
  return Object.keys(whole).length === 0
    ? reference
    : { ...whole, allOf: [reference, ...listIn(whole.allOf)] };
}

function convertValue(keyword: string, value: Json, refer: Refer): Json | undefined {
  if (DATA.has(keyword)) return keyword === "format" && !FORMATS.has(textIn(value)) ? undefined : value;
  if (!HOLDERS.has(keyword)) return undefined;
  // Here a bare boolean is common, and every validator reads it.
  if (keyword.startsWith("additional") && typeof value === "boolean") return value;
  return mapSchemas(keyword, value, (one) =>
    keyword === "dependencies" && Array.isArray(one) ? one : convert(one, refer),
  );
}

/** The words of later drafts that draft-07 had under another name. */
function modernised(schema: JsonObject): JsonObject {
  const { prefixItems, dependentRequired, dependentSchemas, ...rest } = schema;
  const tuple = Array.isArray(prefixItems)
    ? { items: prefixItems, ...(rest.items === undefined ? {} : { additionalItems: rest.items }) }
    : {};
  const dependencies = {
    ...(isObject(dependentRequired) ? dependentRequired : {}),
    ...(isObject(dependentSchemas) ? dependentSchemas : {}),
  };
  return { ...rest, ...tuple, ...(Object.keys(dependencies).length === 0 ? {} : { dependencies }) };
}

/** Strict validators refuse a keyword that has no effect where it stands. */
function withoutIdle(schema: JsonObject): JsonObject {
  const { additionalItems, ...rest } = schema;
  const kept = additionalItems !== undefined && Array.isArray(rest.items) ? schema : rest;
  if (kept.if !== undefined && (kept.then !== undefined || kept.else !== undefined)) return kept;
  const { if: _if, then: _then, else: _else, ...unconditional } = kept;
  return unconditional;
}

function nameFor(pointer: string, nth: number): string {
  const tail = pointer.slice(pointer.lastIndexOf("/") + 1).replaceAll(/\W+/g, "_");
  return `${tail}_${nth + 1}`;
}

/** The keywords of the draft: those that hold data, and those that hold schemas. */
const DATA = new Set(
  (
    "title description default examples readOnly writeOnly type enum const format multipleOf maximum exclusiveMaximum " +
    "minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxProperties " +
    "minProperties required"
  ).split(" "),
);
const HOLDERS = new Set(
  (
    "contains propertyNames not if then else additionalProperties additionalItems allOf anyOf oneOf properties " +
    "patternProperties items dependencies"
  ).split(" "),
);

const FORMATS: ReadonlySet<string> = new Set(
  (
    "date time date-time duration uri uri-reference uri-template email hostname ipv4 ipv6 regex uuid json-pointer " +
    "relative-json-pointer"
  ).split(" "),
);
