/**
 * Judges values by schemas made of few simple keywords, without compiling them: tool calls, and the first answers of a
 * run. Compiling the schemas of a three-step run takes 15 to 20 ms, a tenth of it (docs/dependencies.md).
 */
import { FORBIDDEN_NAMES, isObject, type Json, type JsonObject } from "./json.ts";
import { SCHEMA_TYPES } from "./json-schema.ts";

/** Whether `misfit` alone can judge by it. Anything unusual is left to the compiler, which can say what is wrong. */
export function isPlain(schema: Json, isRoot = true): boolean {
  if (!isObject(schema)) return schema === true;
  for (const key in schema) {
    const isKnown = Object.hasOwn(KEYWORDS, key) && KEYWORDS[key]!(schema[key]!);
    if (!isKnown && !(isRoot && (key === "$schema" || key === "$id"))) return false;
  }
  return true;
}

/** Where a value does not fit, and what is wrong there: `must be a string`. */
export type Misfit = { readonly path: readonly (string | number)[]; readonly what: string };

/** The first misfit; null when all fits. Keywords that it does not know are passed over. Only own members count. */
export function misfit(schema: Json, value: Json): Misfit | null {
  if (!isObject(schema)) return schema === false ? { path: [], what: "is not allowed" } : null;
  const { type, enum: words, const: only } = schema;
  if (type !== undefined && !isOfType(type, value))
    return { path: [], what: `must be ${[type].flat().map(named).join(" or ")}` };
  if (Array.isArray(words) && !words.includes(value) && !words.some((word: Json) => areTrees(word, value)))
    return { path: [], what: `must be one of ${words.map((word) => JSON.stringify(word)).join(", ")}` };
  if (only !== undefined && only !== value && !areTrees(only, value))
    return { path: [], what: `must be ${JSON.stringify(only)}` };
  if (typeof value === "string") return wrongLength(schema, value);
  if (typeof value === "number") return outside(schema, "minimum", "maximum", value, "");
  if (Array.isArray(value))
    return outside(schema, "minItems", "maxItems", value.length, " items") ?? misfitOfItems(schema, value);
  return isObject(value) ? misfitOfMembers(schema, value) : null;
}

/** Two objects or lists are not compared: plain schemas list none. */
function areTrees(a: Json, b: Json): boolean {
  return typeof a === "object" && a !== null && typeof b === "object" && b !== null;
}

/** A character that takes two code units counts as one. */
function wrongLength(schema: JsonObject, value: string): Misfit | null {
  const { minLength, maxLength } = schema;
  if (minLength === undefined && maxLength === undefined) return null;
  if (minLength === 1 && value === "") return { path: [], what: "must not be empty" };
  return outside(schema, "minLength", "maxLength", Array.from(value).length, " characters");
}

function outside(schema: JsonObject, min: string, max: string, size: number, unit: string): Misfit | null {
  const [least, most] = [schema[min], schema[max]];
  if (typeof least === "number" && size < least)
    return { path: [], what: `must be at least ${least}${unit}` };
  if (typeof most === "number" && size > most) return { path: [], what: `must be at most ${most}${unit}` };
  return null;
}

function misfitOfItems({ items }: JsonObject, value: readonly Json[]): Misfit | null {
  if (items === undefined || Array.isArray(items)) return null;
  for (let index = 0; index < value.length; index++) {
    const found = misfit(items, value[index]!);
    if (found !== null) return below(index, found);
  }
  return null;
}

function misfitOfMembers(schema: JsonObject, value: JsonObject): Misfit | null {
  const { required, additionalProperties: others } = schema;
  const properties = isObject(schema.properties) ? schema.properties : NONE;
  if (Array.isArray(required))
    for (const name of required as readonly Json[])
      if (typeof name === "string" && !Object.hasOwn(value, name))
        return { path: [name], what: "is missing" };
  for (const name of Object.keys(value)) {
    const isNamed = Object.hasOwn(properties, name);
    if (!isNamed && others === undefined) continue;
    if (!isNamed && others === false) return { path: [name], what: "is not known" };
    const found = misfit(isNamed ? properties[name]! : others!, value[name]!);
    if (found !== null) return below(name, found);
  }
  return null;
}

function below(step: string | number, { path, what }: Misfit): Misfit {
  return { path: [step, ...path], what };
}

function isOfType(type: Json, value: Json): boolean {
  if (Array.isArray(type)) return type.some((one: Json) => isOfType(one, value));
  switch (type) {
    case "integer":
      return Number.isSafeInteger(value);
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

function named(type: Json): string {
  switch (type) {
    case "integer":
      return "a whole number";
    case "boolean":
      return "true or false";
    case "array":
      return "a list";
    case "object":
      return "an object";
    case "null":
      return "null";
    default:
      return typeof type === "string" ? `a ${type}` : JSON.stringify(type);
  }
}

const NONE: JsonObject = {};

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
    Array.isArray(value)
      ? value.length > 0 && value.every((one) => SCHEMA_TYPES.has(one))
      : SCHEMA_TYPES.has(value),
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
