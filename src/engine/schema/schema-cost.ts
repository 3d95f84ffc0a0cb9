/**
 * What judging a value by a schema takes at most, counted before it is judged: references that lead round, long lists of
 * alternatives and lists without duplicates can make a short schema and a permitted answer take hours.
 */
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../../flow/json.ts";
import { followRef, schemaHolder, schemasIn } from "../../flow/json-schema.ts";

/** About a quarter of a second. */
export const MOST_COST = 5_000_000;

/** Formats that take no longer than the text is long. Others may go back over it. */
const LINEAR_FORMATS = new Set<Json>(["byte", "binary", "password", "uuid", "date", "ipv4", "json-pointer"]);

const MOST_VALUES = 50_000;
/** Each becomes code. */
const MOST_SCHEMAS = 2_000;
const MOST_PATTERNS = 200;
const DEEPEST = 200;

/** Why the cost of a schema could not be counted, or null. */
export function uncountable(schema: JsonSchema): string | null {
  let [values, schemas, patterns] = [0, 0, 0];
  const look = (here: Json, depth: number): string | null => {
    if (!isObject(here)) return null;
    schemas += 1;
    if (schemas > MOST_SCHEMAS) return `it holds more than ${MOST_SCHEMAS} schemas`;
    if (depth > DEEPEST) return `it is nested deeper than ${DEEPEST} levels`;
    for (const [keyword, value] of Object.entries(here)) {
      values += 1 + (typeof value === "object" && value !== null ? Object.keys(value).length : 0);
      if (values > MOST_VALUES) return `it holds more than ${MOST_VALUES} values`;
      patterns +=
        keyword === "pattern" ? 1 : keyword === "patternProperties" ? Object.keys(value ?? {}).length : 0;
      if (patterns > MOST_PATTERNS) return `it holds more than ${MOST_PATTERNS} patterns`;
      const why = referenceFault(keyword, value, depth);
      if (why !== null) return why;
      for (const sub of schemasIn(keyword, value)) {
        const inner = look(sub, depth + 1);
        if (inner !== null) return inner;
      }
    }
    return null;
  };
  return look(schema, 0);
}

/** A reference must name a place in the schema itself: nothing else can be followed here. */
function referenceFault(keyword: string, value: Json, depth: number): string | null {
  if (typeof value !== "string") return null;
  if (keyword === "$dynamicRef" || keyword === "$recursiveRef")
    return `"${keyword}" is not supported; use "$ref"`;
  if (keyword === "$id" && depth > 0) return `"$id" below the top is not supported`;
  if (keyword === "$ref" && !/^#(?:\/|$)/.test(value))
    return `"$ref" must be a JSON pointer into the same schema, such as "#/$defs/name"`;
  return null;
}

class TooCostly extends Error {}

/** Whether judging the value by the schema stays within `most`, counted as if every alternative were tried. */
export function isAffordable(schema: JsonSchema, value: Json, most = MOST_COST): boolean {
  let left = most;
  const spend = (cost: number) => {
    left -= cost;
    if (left < 0) throw new TooCostly();
  };

  const targets = new Map<string, Json>();
  const targetOf = (ref: string): Json => {
    const known = targets.get(ref);
    if (known !== undefined) return known;
    const found = followRef(schema, ref)?.value ?? true;
    targets.set(ref, found);
    return found;
  };

  const weigh = (part: Json, here: Json): void => {
    spend(1);
    if (!isObject(part)) return;
    for (const keyword in part) {
      if (!Object.hasOwn(part, keyword)) continue;
      spend(1);
      weighKeyword(keyword, part[keyword]!, part, here);
    }
  };

  const weighKeyword = (keyword: string, said: Json, part: JsonObject, here: Json): void => {
    if (keyword === "$ref") weigh(typeof said === "string" ? targetOf(said) : true, here);
    else if (keyword === "enum" || keyword === "const") spend(sizeOf(said));
    else if (schemaHolder(keyword)?.about === "value")
      for (const sub of schemasIn(keyword, said)) weigh(sub, here);
    else if (typeof here === "string") spend(costOfText(keyword, said, here));
    else if (Array.isArray(here)) weighItems(keyword, said, part, here as readonly Json[]);
    else if (isObject(here)) weighMembers(keyword, said, here);
  };

  const weighItems = (keyword: string, said: Json, part: JsonObject, here: readonly Json[]): void => {
    if (keyword === "uniqueItems" && said === true)
      spend(hasScalarItems(part) ? sizeOf(here) : (sizeOf(here) * here.length) / 2);
    if (schemaHolder(keyword)?.about === "items" && !Array.isArray(said))
      for (const item of here) weigh(said, item);
    else if (Array.isArray(said) && (keyword === "items" || keyword === "prefixItems"))
      for (const [place, sub] of (said as readonly Json[]).slice(0, here.length).entries())
        weigh(sub, here[place]!);
  };

  const weighMembers = (keyword: string, said: Json, here: JsonObject): void => {
    if (keyword === "required" || keyword === "dependentRequired") spend(sizeOf(said));
    if (schemaHolder(keyword)?.about === "members") {
      for (const name in here) weigh(said, keyword === "propertyNames" ? name : here[name]!);
      return;
    }
    if (!isObject(said)) return;
    if (keyword === "properties") {
      spend(Object.keys(said).length);
      for (const name in here) if (Object.hasOwn(said, name)) weigh(said[name]!, here[name]!);
    }
    if (keyword === "patternProperties")
      for (const pattern in said) for (const name in here) weigh(said[pattern]!, here[name]!);
  };

  try {
    weigh(schema, value);
    return true;
  } catch (error) {
    // A reference to itself about the same value goes round until there is no room.
    if (error instanceof TooCostly || error instanceof RangeError) return false;
    throw error;
  }
}

/** Patterns count their own steps. */
function costOfText(keyword: string, said: Json, text: string): number {
  if (keyword === "minLength" || keyword === "maxLength") return text.length / 64;
  if (keyword !== "format") return 0;
  return LINEAR_FORMATS.has(said) ? text.length / 16 : text.length ** 2;
}

function hasScalarItems({ items }: JsonObject): boolean {
  const type = isObject(items) ? own(items, "type") : undefined;
  const types = Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type];
  return types.length > 0 && !types.includes("object") && !types.includes("array");
}

/** Values in it, and a share of their characters. */
export function sizeOf(value: Json): number {
  if (typeof value === "string") return 1 + value.length / 64;
  if (typeof value !== "object" || value === null) return 1;
  let size = 1;
  if (isObject(value)) for (const key in value) size += 1 + sizeOf(value[key]!);
  else for (const member of value) size += 1 + sizeOf(member);
  return size;
}
