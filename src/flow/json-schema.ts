/** JSON Schema as data: which keywords hold schemas, the schemas in a schema, and where a reference within it leads. */
import { isObject, own, readPath, type Json, type Path } from "./json.ts";
import { escapeSegment, unescapeSegment } from "./json-pointer.ts";

export const SCHEMA_TYPES: ReadonlySet<Json> = new Set([
  "object",
  "array",
  "string",
  "number",
  "integer",
  "boolean",
  "null",
]);

/** `about`: what the schemas are held against: the value itself, each member or item of it, or what a reference says. */
type Holder = {
  readonly holds: "one" | "list" | "one or list" | "map";
  readonly about: "value" | "members" | "items" | "named";
};

/** The keywords that hold schemas. The value of any other keyword is data. */
const HOLDERS: { readonly [keyword: string]: Holder } = {
  ...each("not if then else", { holds: "one", about: "value" }),
  ...each("allOf anyOf oneOf", { holds: "list", about: "value" }),
  ...each("dependentSchemas dependencies", { holds: "map", about: "value" }),
  ...each("additionalProperties unevaluatedProperties propertyNames", { holds: "one", about: "members" }),
  ...each("additionalItems contains unevaluatedItems", { holds: "one", about: "items" }),
  ...each("items", { holds: "one or list", about: "items" }),
  ...each("prefixItems", { holds: "list", about: "named" }),
  ...each("properties patternProperties definitions $defs", { holds: "map", about: "named" }),
};

function each(keywords: string, holder: Holder): { readonly [keyword: string]: Holder } {
  return Object.fromEntries(keywords.split(" ").map((keyword) => [keyword, holder]));
}

export function schemaHolder(keyword: string): Holder | undefined {
  return Object.hasOwn(HOLDERS, keyword) ? HOLDERS[keyword] : undefined;
}

/**
 * The keyword's value with every schema in it changed, itself where none is another one then; undefined where the keyword
 * holds no schemas in this form.
 */
export function mapSchemas(keyword: string, value: Json, change: (schema: Json) => Json): Json | undefined {
  const holds = schemaHolder(keyword)?.holds;
  if (holds === undefined) return undefined;
  if (Array.isArray(value)) {
    if (holds !== "list" && holds !== "one or list") return undefined;
    const list = value as readonly Json[];
    const changed = list.map(change);
    return changed.every((schema, index) => schema === list[index]) ? value : changed;
  }
  if (holds === "one" || holds === "one or list")
    return isObject(value) || typeof value === "boolean" ? change(value) : undefined;
  if (holds !== "map" || !isObject(value)) return undefined;
  let changed: { [name: string]: Json } | null = null;
  for (const name of Object.keys(value)) {
    const schema = change(value[name]!);
    if (schema !== value[name]) (changed ??= { ...value })[name] = schema;
  }
  return changed ?? value;
}

/** The schemas in a keyword's value. */
export function schemasIn(keyword: string, value: Json): readonly Json[] {
  const found: Json[] = [];
  mapSchemas(keyword, value, (schema) => (found.push(schema), schema));
  return found;
}

/** `#/a~1b/c` or `/a~1b/c` → its segments; null when it is not a pointer, `malformed` when a separator is doubled. */
export function parsePointer(text: string): Path | "malformed" | null {
  if (text.startsWith("##") || text.includes("//")) return "malformed";
  const pointer = text.startsWith("#") ? text.slice(1) : text;
  if (pointer === "") return text === "" ? null : [];
  return pointer.startsWith("/") ? pointer.slice(1).split("/").map(unescapeSegment) : null;
}

/** The part of a resolved schema that is about one field; undefined where the schema does not name it. */
export function fieldSchema(schema: Json, field: Path): Json | undefined {
  let found: Json | undefined = schema;
  for (const segment of field) found = readPath(found, ["properties", segment]);
  return found;
}

/** The only words that an answer may have in a field, or null when the schema does not list them. */
export function fieldWords(schema: Json, field: Path): readonly string[] | null {
  const found = fieldSchema(schema, field);
  const words = isObject(found) ? (own(found, "enum") ?? [own(found, "const") ?? null]) : undefined;
  return Array.isArray(words) && words.every((word) => typeof word === "string") ? words : null;
}

export type Referred = { readonly path: Path; readonly value: Json };

/** Where `#` or `#/definitions/x` leads within the schema; undefined where it leads elsewhere or nowhere. */
export function followRef(root: Json, ref: string): Referred | undefined {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  return followPath(root, ref.split("/").slice(1).map(unescapeSegment));
}

/** A percent sign starts an escape, as in any URI; where no such name exists it is meant as written. */
export function followPath(root: Json, path: Path): Referred | undefined {
  if (path.some((segment) => segment.includes("%"))) {
    const meant = path.map((segment) => unescapeSegment(decoded(escapeSegment(segment))));
    const value = readPath(root, meant);
    if (value !== undefined) return { path: meant, value };
  }
  const value = readPath(root, path);
  return value === undefined ? undefined : { path, value };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
