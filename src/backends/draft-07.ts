/**
 * A schema as strict draft-07 validators take it: only keywords of that draft, every reference local, an object at the
 * root. Looser than the original where the draft has no word for something; the answer is judged by the original.
 */
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../flow/json.ts";
import { listIn, textIn } from "./untyped.ts";

export function toDraft07(schema: JsonSchema): JsonSchema {
  const names = new Map<string, string>();
  const definitions: { [name: string]: Json } = {};

  /** Each place that is pointed to becomes a definition once, which also ends recursion. */
  function refer(pointer: string): JsonSchema {
    if (pointer === "#") return { $ref: "#" };
    const known = names.get(pointer);
    if (known !== undefined) return { $ref: `#/definitions/${known}` };
    const target = follow(schema, pointer);
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
    const kind = own(KEYWORDS, keyword);
    if (kind === undefined || (keyword === "format" && !FORMATS.has(textIn(value)))) continue;
    const converted = convertValue(kind, value, refer);
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

type Kind = "plain" | "schema" | "schemas" | "map" | "items" | "dependencies" | "extra";

function convertValue(kind: Kind, value: Json, refer: Refer): Json | undefined {
  switch (kind) {
    case "plain":
      return value;
    case "extra": // here a bare boolean is common, and every validator reads it
      return typeof value === "boolean" ? value : convert(value, refer);
    case "schema":
      return convert(value, refer);
    case "schemas":
      return Array.isArray(value) ? value.map((one: Json) => convert(one, refer)) : undefined;
    case "items":
      return Array.isArray(value) ? value.map((one: Json) => convert(one, refer)) : convert(value, refer);
    case "map":
      return isObject(value) ? mapValues(value, (one) => convert(one, refer)) : undefined;
    case "dependencies":
      return isObject(value)
        ? mapValues(value, (one) => (Array.isArray(one) ? one : convert(one, refer)))
        : undefined;
  }
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

function follow(root: JsonSchema, pointer: string): Json | undefined {
  if (!pointer.startsWith("#/")) return undefined;
  let here: Json | undefined = root;
  for (const segment of pointer.slice(2).split("/")) {
    const key = unescapeSegment(segment);
    if (Array.isArray(here)) here = (here as readonly Json[])[Number(key)];
    else here = isObject(here) ? own(here, key) : undefined;
  }
  return here;
}

function unescapeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return segment;
  }
}

function nameFor(pointer: string, nth: number): string {
  const tail = pointer.slice(pointer.lastIndexOf("/") + 1).replaceAll(/\W+/g, "_");
  return `${tail}_${nth + 1}`;
}

function mapValues(value: JsonObject, change: (one: Json) => Json): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, change(one)]));
}

const KEYWORDS: { readonly [keyword: string]: Kind } = {
  ...named(
    "plain",
    "title description default examples readOnly writeOnly type enum const format multipleOf maximum exclusiveMaximum " +
      "minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxProperties " +
      "minProperties required",
  ),
  ...named("schema", "contains propertyNames not if then else"),
  ...named("extra", "additionalProperties additionalItems"),
  ...named("schemas", "allOf anyOf oneOf"),
  ...named("map", "properties patternProperties"),
  ...named("items", "items"),
  ...named("dependencies", "dependencies"),
};

function named(kind: Kind, keywords: string): { readonly [keyword: string]: Kind } {
  return Object.fromEntries(keywords.split(" ").map((keyword) => [keyword, kind]));
}

const FORMATS: ReadonlySet<string> = new Set(
  (
    "date time date-time duration uri uri-reference uri-template email hostname ipv4 ipv6 regex uuid json-pointer " +
    "relative-json-pointer"
  ).split(" "),
);
