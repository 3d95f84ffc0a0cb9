/** Schemas made of few simple keywords, judged as they are: compiling one takes longer than most runs ask it. */
import { FORBIDDEN_NAMES, isObject, type Json, type JsonObject } from "../../flow/json.ts";

/** Whether `fits` can judge by it. Whatever is odd about a schema is left to the one who compiles it and can say so. */
export function isPlain(schema: Json, isRoot = true): boolean {
  if (!isObject(schema)) return schema === true;
  for (const key in schema) {
    const isKnown = Object.hasOwn(KEYWORDS, key) && KEYWORDS[key]!(schema[key]!);
    if (!isKnown && !(isRoot && (key === "$schema" || key === "$id"))) return false;
  }
  return true;
}

/** Only for plain schemas. Like everywhere, only own members count. */
export function fits(schema: Json, value: Json): boolean {
  if (!isObject(schema)) return true;
  const { type, enum: words, const: only } = schema;
  if (typeof type === "string" && !isOf(type, value)) return false;
  if (Array.isArray(type) && !type.some((one) => isOf(one as string, value))) return false;
  if (Array.isArray(words) && !words.includes(value)) return false;
  if (only !== undefined && only !== value) return false;
  if (typeof value === "string") return isOfLength(schema, value);
  if (typeof value === "number") return within(schema, "minimum", "maximum", value);
  if (Array.isArray(value))
    return (
      within(schema, "minItems", "maxItems", value.length) &&
      (schema.items === undefined || value.every((item: Json) => fits(schema.items!, item)))
    );
  return !isObject(value) || fitsMembers(schema, value);
}

/** Counted as people do: a character that takes two places is one. */
function isOfLength(schema: JsonObject, value: string): boolean {
  if (schema.minLength === undefined && schema.maxLength === undefined) return true;
  return within(schema, "minLength", "maxLength", Array.from(value).length);
}

function fitsMembers(schema: JsonObject, value: JsonObject): boolean {
  const { required, additionalProperties } = schema;
  const properties = (schema.properties ?? NONE) as JsonObject;
  if (Array.isArray(required) && !required.every((name) => Object.hasOwn(value, name as string)))
    return false;
  return Object.keys(value).every((name) =>
    Object.hasOwn(properties, name)
      ? fits(properties[name]!, value[name]!)
      : additionalProperties === undefined || fitsExtra(additionalProperties, value[name]!),
  );
}

function fitsExtra(schema: Json, value: Json): boolean {
  return schema !== false && fits(schema, value);
}

function within(schema: JsonObject, min: string, max: string, size: number): boolean {
  const least = schema[min] as number | undefined;
  const most = schema[max] as number | undefined;
  return (least === undefined || size >= least) && (most === undefined || size <= most);
}

function isOf(type: string, value: Json): boolean {
  switch (type) {
    case "integer":
      return Number.isInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    default:
      return typeof value === type;
  }
}

const NONE: JsonObject = {};
const TYPES = new Set<Json>(["object", "array", "string", "number", "integer", "boolean", "null"]);

const anything = () => true;
const isNumber = (value: Json) => typeof value === "number";
const isWord = (value: Json) => typeof value !== "object" || value === null;
const isSub = (value: Json) => isPlain(value, false);

/** The keywords that are understood, and which of their values. */
const KEYWORDS: { readonly [key: string]: (value: Json) => boolean } = {
  title: anything,
  description: anything,
  default: anything,
  examples: anything,
  $comment: anything,
  type: (value) =>
    Array.isArray(value) ? value.length > 0 && value.every((one) => TYPES.has(one)) : TYPES.has(value),
  enum: (value) => Array.isArray(value) && value.length > 0 && value.every(isWord),
  const: isWord,
  minLength: isNumber,
  maxLength: isNumber,
  minimum: isNumber,
  maximum: isNumber,
  minItems: isNumber,
  maxItems: isNumber,
  items: isSub,
  properties: (value) =>
    isObject(value) && Object.entries(value).every(([name, one]) => !FORBIDDEN_NAMES.has(name) && isSub(one)),
  required: (value) => Array.isArray(value) && value.every((name) => typeof name === "string"),
  additionalProperties: (value) => value === false || isSub(value),
};
