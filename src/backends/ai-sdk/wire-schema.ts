/**
 * Schemas as providers take them. What is sent may be looser than what was written, never stricter: every answer is
 * validated against the schema as written.
 */
import { isObject, own, type Json, type JsonObject, type JsonSchema } from "../../flow/json.ts";
import { followRef, mapSchemas, SCHEMA_TYPES } from "../../flow/json-schema.ts";

/** The input schema of a tool: an object at its root, local references replaced, nothing but plain keywords. */
export function toolSchema(schema: JsonSchema | null): JsonObject {
  const plain = schema === null ? {} : plainSchema(schema);
  const root = "anyOf" in plain || "oneOf" in plain || "allOf" in plain ? merged(plain) : plain;
  return { ...root, type: "object", properties: own(root, "properties") ?? {} };
}

/**
 * The schema for a provider's own structured output, or null where it is not certain that every provider takes it:
 * all objects closed, all members required, and only keywords that all of them know.
 */
export function strictSchema(schema: JsonSchema | null): JsonObject | null {
  if (schema === null) return null;
  const plain = plainSchema(schema);
  return plain.type === "object" && isStrict(plain) ? plain : null;
}

/** The keywords with schemas in them that are sent. */
const HOLDERS = new Set(
  "items not contains propertyNames additionalProperties properties patternProperties anyOf oneOf allOf prefixItems".split(
    " ",
  ),
);

const isText = (value: Json) => typeof value === "string";
const isNumber = (value: Json) => typeof value === "number" && Number.isFinite(value);
const isCount = (value: Json) => Number.isSafeInteger(value) && (value as number) >= 0;
const isAnything = () => true;

/** Providers refuse a whole request for one keyword with a value that JSON Schema does not allow; it is left out. */
const PLAIN: { readonly [keyword: string]: (value: Json) => boolean } = {
  type: (value) => [value].flat().every((name) => SCHEMA_TYPES.has(name)) && [value].flat().length > 0,
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: isAnything,
  title: isText,
  description: isText,
  default: isAnything,
  format: isText,
  pattern: (value) => typeof value === "string" && isPattern(value),
  required: (value) => Array.isArray(value) && value.every(isText) && new Set(value).size === value.length,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  uniqueItems: (value) => typeof value === "boolean",
  minProperties: isCount,
  maxProperties: isCount,
};

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** Schemas come with every request, and are always the same ones. */
const plains = new WeakMap<JsonSchema, JsonObject>();

/** A reference that leads round in a circle becomes "anything", and so does what is beyond the cap. */
function plainSchema(root: JsonSchema): JsonObject {
  const known = plains.get(root);
  if (known !== undefined) return known;
  let left = MOST_NODES;

  function plain(schema: JsonSchema, within: readonly string[]): JsonObject {
    if (--left < 0) return {};
    const ref = own(schema, "$ref");
    if (typeof ref === "string") {
      const target = within.includes(ref) ? undefined : followRef(root, ref)?.value;
      const { $ref: _, ...beside } = schema;
      return isObject(target) ? plain({ ...target, ...beside }, [...within, ref]) : {};
    }
    // `true` says the same as an empty schema, and not every provider knows it.
    const inner = (value: Json): Json =>
      isObject(value) ? plain(value, within) : value === true ? {} : value;
    const kept: { [key: string]: Json } = {};
    for (const [key, value] of Object.entries(schema)) {
      const isSound = own(PLAIN, key);
      if (isSound !== undefined) {
        if (isSound(value)) kept[key] = value;
      } else if (HOLDERS.has(key)) {
        const isBare = key === "additionalProperties" && typeof value === "boolean";
        const sent = isBare ? value : mapSchemas(key, value, inner);
        // A list of schemas in `items` is from an older draft: each is for the item at its place.
        const name = key === "items" && Array.isArray(value) ? "prefixItems" : key;
        if (sent !== undefined && !(Array.isArray(sent) && sent.length === 0 && key !== "items"))
          kept[name] = sent;
      }
    }
    return kept;
  }

  const made = plain(root, []);
  plains.set(root, made);
  return made;
}

const MOST_NODES = 20_000;

/** Alternatives at the root are refused by some: all their members are offered, required is what all of them require. */
function merged(schema: JsonObject): JsonObject {
  const { anyOf, oneOf, allOf, ...rest } = schema;
  const listed = (value: Json | undefined) => (Array.isArray(value) ? value.filter(isObject) : []);
  const choices = [...listed(anyOf), ...listed(oneOf)];
  const all = listed(allOf);
  const propertiesOf = (one: JsonObject) => {
    const properties = own(one, "properties");
    return isObject(properties) ? properties : {};
  };
  const requiredOf = (one: JsonObject) => {
    const required = own(one, "required");
    return Array.isArray(required) ? required : [];
  };
  const [first, ...others] = choices.map(requiredOf);
  const shared = (first ?? []).filter((name) => others.every((list) => list.includes(name)));
  const required = [...new Set([...requiredOf(rest), ...all.flatMap(requiredOf), ...shared])];
  const properties = Object.assign({}, ...[...choices, ...all, rest].map(propertiesOf)) as JsonObject;
  const { additionalProperties: _, ...open } = rest;
  return { ...open, properties, ...(required.length === 0 ? {} : { required }) };
}

const STRICT = new Set(
  "type properties required additionalProperties items enum title description anyOf".split(" "),
);

function isStrict(schema: Json | undefined): boolean {
  if (!isObject(schema) || !Object.keys(schema).every((key) => STRICT.has(key))) return false;
  if (Array.isArray(schema.anyOf)) return schema.anyOf.every(isStrict);
  if (Array.isArray(schema.enum)) return schema.enum.every((value) => typeof value === "string");
  switch (schema.type) {
    case "string":
    case "number":
    case "integer":
    case "boolean":
    case "null":
      return true;
    case "array":
      return isStrict(schema.items);
    case "object": {
      const { properties, required } = schema;
      if (schema.additionalProperties !== false || !isObject(properties) || !Array.isArray(required))
        return false;
      const names = Object.keys(properties);
      return names.every((name) => required.includes(name)) && Object.values(properties).every(isStrict);
    }
    default:
      return false;
  }
}
