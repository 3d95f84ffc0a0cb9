/** JSON values, and reading them without ever touching a prototype. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };
export type JsonSchema = JsonObject;

/** A place inside a JSON value, segment by segment. An array index is a segment too. */
export type Path = readonly string[];

/** Names that would reach a prototype if a careless `object[name]` met them; refused as names everywhere. */
export const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without the members that are undefined, as optional members are passed on. */
export function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** The record's own member, never an inherited one. */
export function own<T>(record: { readonly [key: string]: T }, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** The value of a JSON text; undefined: it is not JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** null: it is not JSON, or not an object. */
export function parseJsonObject(text: string): JsonObject | null {
  const value = parseJson(text);
  return isObject(value) ? value : null;
}

/** What is at the path, or at its first `length` segments. */
export function readPath(value: Json | undefined, path: Path, length = path.length): Json | undefined {
  let here: Json | undefined = value;
  for (let place = 0; place < length; place++) {
    const segment = path[place]!;
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, segment)) return undefined;
    here = (here as JsonObject)[segment];
  }
  return here;
}

/** A copy of `value` with `leaf` at `path`; siblings are shared. Unchanged where the path runs into a non-object. */
export function writePath(value: JsonObject, path: Path, leaf: Json): JsonObject {
  const [head, ...rest] = path;
  if (head === undefined) return value;
  if (rest.length === 0) return { ...value, [head]: leaf };
  const child = own(value, head) ?? {};
  return isObject(child) ? { ...value, [head]: writePath(child, rest, leaf) } : value;
}

/** `next_action.action` → `["next_action", "action"]`. */
export function parseDotPath(text: string): Path {
  return text.split(".");
}

export function sameJson(a: Json, b: Json): boolean {
  return a === b || canonicalJson(a) === canonicalJson(b);
}

/** JSON text with object keys in code-unit order at every depth: equal values give equal text. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members: string[] = [];
  for (const key of Object.keys(value).toSorted()) {
    const member = value[key];
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}
