/**
 * Judges values by schemas made of few simple keywords, without compiling them: tool calls and most answers. Compiling
 * the schemas of a three-step run takes 15 to 20 ms, a tenth of it (docs/dependencies.md).
 */
import { cached } from "./cached.ts";
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
export function misfit(schema: JsonObject, value: Json): Misfit | null {
  return misfitBy(keywordsOf(schema), value);
}

/** The keywords of a schema, always all and in one order: reading what is absent from objects of many shapes takes long. */
export type Keywords = {
  readonly type: Json | undefined;
  readonly words: readonly Json[] | undefined;
  readonly only: Json | undefined;
  readonly length: Limits;
  readonly size: Limits;
  readonly count: Limits;
  readonly items: Sub;
  readonly properties: ReadonlyMap<string, Sub>;
  readonly required: readonly string[];
  readonly others: Sub;
};

/** false: no value fits; true: each does. */
type Sub = Keywords | boolean;
type Limits = { readonly least: number; readonly most: number };

export const keywordsOf = cached((schema: JsonObject): Keywords => {
  const { type, enum: words, const: only, items, properties, required, additionalProperties } = schema;
  return {
    type,
    words: Array.isArray(words) ? words : undefined,
    only,
    length: limitsOf(schema.minLength, schema.maxLength),
    size: limitsOf(schema.minimum, schema.maximum),
    count: limitsOf(schema.minItems, schema.maxItems),
    items: subOf(items),
    properties: new Map(
      Object.entries(isObject(properties) ? properties : NONE).map(([name, one]) => [name, subOf(one)]),
    ),
    required: Array.isArray(required) ? required.filter((name) => typeof name === "string") : [],
    others: subOf(additionalProperties),
  };
});

function subOf(schema: Json | undefined): Sub {
  return isObject(schema) ? keywordsOf(schema) : schema !== false;
}

function limitsOf(least: Json | undefined, most: Json | undefined): Limits {
  return {
    least: typeof least === "number" ? least : -Infinity,
    most: typeof most === "number" ? most : Infinity,
  };
}

export function misfitBy(schema: Sub, value: Json): Misfit | null {
  if (schema === true) return null;
  if (schema === false) return { path: [], what: "is not allowed" };
  const { type, words, only } = schema;
  if (type !== undefined && !isOfType(type, value))
    return { path: [], what: `must be ${[type].flat().map(named).join(" or ")}` };
  if (words !== undefined && !words.includes(value) && !words.some((word) => areTrees(word, value)))
    return { path: [], what: `must be one of ${words.map((word) => JSON.stringify(word)).join(", ")}` };
  if (only !== undefined && only !== value && !areTrees(only, value))
    return { path: [], what: `must be ${JSON.stringify(only)}` };
  if (typeof value === "string") return wrongLength(schema.length, value);
  if (typeof value === "number") return outside(schema.size, value, "");
  if (typeof value !== "object" || value === null) return null;
  if (Array.isArray(value))
    return outside(schema.count, value.length, " items") ?? misfitOfItems(schema.items, value);
  return misfitOfMembers(schema, value as JsonObject);
}

/** Two objects or lists are not compared: plain schemas list none. */
function areTrees(a: Json, b: Json): boolean {
  return typeof a === "object" && a !== null && typeof b === "object" && b !== null;
}

/** A character that takes two code units counts as one. */
function wrongLength(limits: Limits, value: string): Misfit | null {
  const { least, most } = limits;
  // Mostly the number of units says enough.
  if (value.length >= 2 * least && value.length <= most) return null;
  if (least === 1 && value === "") return { path: [], what: "must not be empty" };
  return outside(limits, Array.from(value).length, " characters");
}

function outside({ least, most }: Limits, size: number, unit: string): Misfit | null {
  if (size < least) return { path: [], what: `must be at least ${least}${unit}` };
  if (size > most) return { path: [], what: `must be at most ${most}${unit}` };
  return null;
}

function misfitOfItems(items: Sub, value: readonly Json[]): Misfit | null {
  if (items === true) return null;
  for (let index = 0; index < value.length; index++) {
    const found = misfitBy(items, value[index]!);
    if (found !== null) return below(index, found);
  }
  return null;
}

function misfitOfMembers({ required, properties, others }: Keywords, value: JsonObject): Misfit | null {
  for (const name of required) if (!Object.hasOwn(value, name)) return { path: [name], what: "is missing" };
  for (const name in value) {
    if (!Object.hasOwn(value, name)) continue;
    const known = properties.get(name);
    if (known === undefined && others === false) return { path: [name], what: "is not known" };
    const found = misfitBy(known ?? others, value[name]!);
    if (found !== null) return below(name, found);
  }
  return null;
}

function below(step: string | number, { path, what }: Misfit): Misfit {
  return { path: [step, ...path], what };
}

function isOfType(type: Json, value: Json): boolean {
  switch (type) {
    case "string":
    case "number":
    case "boolean":
      return typeof value === type;
    case "integer":
      return Number.isSafeInteger(value);
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    default:
      return Array.isArray(type) && type.some((one: Json) => isOfType(one, value));
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
