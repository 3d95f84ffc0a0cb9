/**
 * From `outputSchemaRef` to the one schema that is sent to the model and checked: every `$ref` replaced by what it
 * names, `allOf` flattened, objects closed. Each file is parsed once.
 */
import type { SchemaSource } from "../../flow/flow.ts";
import { isObject, own, readPath, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import { followPath, mapSchemas, parsePointer, schemaHolder } from "../../flow/json-schema.ts";
import { JSON_DEPTH } from "../../flow/text/places.ts";
import type { Code } from "../codes.ts";
import { DEFAULTS } from "../agent/defaults.ts";
import type { DocumentRead } from "../text/document.ts";
import { joinPath, parentFolder } from "../text/paths.ts";

export type SchemaReader = {
  /** Each file once. */
  readonly read: (file: string) => DocumentRead;
  /** Folders of schemas, in order of preference. */
  readonly folders: readonly string[];
};

export type ResolveSchema = (ref: { readonly file: string; readonly schema: string }) => ResolvedSchema;
export type ResolvedSchema = Exclude<SchemaSource, { kind: "any" }> & {
  readonly file: string;
  /** The `$ref` that leads nowhere, and the file it is written in. */
  readonly ref?: WrittenRef;
};

type WrittenRef = { readonly file: string; readonly to: string };

/** The same reference always gives the same object, so that steps which share a schema share its compiled form. */
export function createSchemas(reader: SchemaReader): ResolveSchema {
  const files = new Map<
    string,
    { readonly read: DocumentRead; readonly resolved: Map<string, ResolvedSchema> }
  >();
  return ({ file, schema }) => {
    let inFile = files.get(file);
    if (inFile === undefined)
      files.set(file, (inFile = { read: findFile(file, reader), resolved: new Map() }));
    let found = inFile.resolved.get(schema);
    if (found === undefined)
      inFile.resolved.set(schema, (found = resolve(file, schema, inFile.read, reader)));
    return found;
  };
}

/**
 * Where a part of a resolved schema was written: through `$ref` and `allOf` to the file and the pointer. null where it
 * is put together from several places.
 */
export function placeInSchema(
  files: ReadonlyMap<string, DocumentRead>,
  start: { readonly file: string; readonly schema: string },
  path: Path,
): { readonly file: string; readonly path: Path } | null {
  const rootOf = (file: string) => {
    const read = files.get(file);
    return read?.kind === "read" ? read.document.value : undefined;
  };
  const search = (file: string, at: Path, rest: Path, depth: number): ReturnType<typeof placeInSchema> => {
    const node = readPath(rootOf(file), at);
    const [head, ...further] = rest;
    if (node === undefined || depth > DEFAULTS.schemaDepth) return null;
    if (head === undefined) return { file, path: at };
    if (!isObject(node)) return null;
    const ref = own(node, "$ref");
    if (typeof ref === "string") {
      const [path = "", pointer = ""] = ref.split("#");
      const other = path === "" ? file : joinPath(parentFolder(file), path);
      const target = lookUp(rootOf(other) ?? null, `#${pointer}`, other);
      return target.kind === "fault" ? null : search(other, target.path, rest, depth + 1);
    }
    const direct = Object.hasOwn(node, head) ? search(file, [...at, head], further, depth + 1) : null;
    const members = own(node, "allOf");
    if (direct !== null || !Array.isArray(members)) return direct;
    for (let index = members.length - 1; index >= 0; index--) {
      const inside = search(file, [...at, "allOf", String(index)], rest, depth + 1);
      if (inside !== null) return inside;
    }
    return null;
  };
  const target = lookUp(rootOf(start.file) ?? null, start.schema, start.file);
  return target.kind === "fault" ? null : search(start.file, target.path, path, 0);
}

/** Where a `$ref` is written in a schema file; null: nowhere. */
export function placeOfRef(value: Json, to: string, path: Path = []): Path | null {
  if (typeof value !== "object" || value === null || path.length > JSON_DEPTH) return null;
  if (isObject(value) && own(value, "$ref") === to) return [...path, "$ref"];
  for (const [key, member] of Object.entries(value as JsonObject)) {
    const found = placeOfRef(member, to, [...path, key]);
    if (found !== null) return found;
  }
  return null;
}

type Fault = { readonly code: Code; readonly why: string; readonly ref?: WrittenRef };

/** One resolution: where it is, how deep, and the first thing that went wrong. */
type Walk = {
  readonly reader: SchemaReader;
  readonly start: { readonly file: string; readonly path: Path };
  nodes: number;
  fault: Fault | null;
};
type Spot = {
  readonly file: string;
  readonly root: Json;
  /** The places that references led through; empty: none was followed yet. */
  readonly trail: readonly string[];
  readonly depth: number;
};

function resolve(file: string, schema: string, found: DocumentRead, reader: SchemaReader): ResolvedSchema {
  const name = `${file}#${schema.startsWith("#") ? schema.slice(1) : schema}`;
  const unresolved = (fault: Fault): ResolvedSchema => ({
    kind: "unresolved",
    name,
    ...fault,
    file: found.document.file,
  });
  if (found.kind !== "read") return unresolved(unreadable(found, file, reader));

  const { document } = found;
  const target = lookUp(document.value, schema, document.file);
  if (target.kind === "fault") return unresolved(target.fault);

  const walk: Walk = { reader, start: { file: document.file, path: target.path }, nodes: 0, fault: null };
  const spot = { file: document.file, root: document.value, trail: [], depth: 0 };
  const closed = expand(target.value, spot, walk, "closed");
  if (walk.fault !== null) return unresolved(walk.fault);
  if (!isObject(closed)) {
    return unresolved({
      code: "SCHEMA_POINTER_ERROR",
      why: `"${schema}" in ${document.file} is not a schema object`,
    });
  }
  const draft = isObject(document.value) ? own(document.value, "$schema") : undefined;
  // A copy: another reference to the same place is a schema of its own.
  const full =
    typeof draft === "string" && !Object.hasOwn(closed, "$schema")
      ? { $schema: draft, ...closed }
      : { ...closed };
  return { kind: "schema", name, schema: full, file: document.file };
}

/** The file in the first folder that has it; otherwise what the last one said. */
function findFile(file: string, reader: SchemaReader): DocumentRead {
  let last: DocumentRead | null = null;
  for (const folder of reader.folders) {
    const read = reader.read(joinPath(folder, file));
    if (read.kind !== "missing") return read;
    last ??= read;
  }
  return last ?? reader.read(file);
}

function unreadable(
  read: Exclude<DocumentRead, { kind: "read" }>,
  file: string,
  reader: SchemaReader,
): Fault {
  const code = "FAILED_SCHEMA_RESOLUTION";
  const path = read.document.file;
  switch (read.kind) {
    case "missing": {
      const tried = reader.folders.map((folder) => joinPath(folder, file)).join(", ");
      return { code, why: `there is no schema file ${tried || path}` };
    }
    case "unreadable":
      return { code, why: `${path} cannot be read: ${read.why}` };
    case "broken":
      return {
        code,
        why: `${path} is not valid JSON at line ${read.place.line}, column ${read.place.column}: ${read.what}`,
      };
  }
}

type Target =
  | { readonly kind: "found"; readonly value: Json; readonly path: Path }
  | { readonly kind: "fault"; readonly fault: Fault };

/** A pointer, or a bare name in `definitions`, then `$defs`, then at the top. */
function lookUp(root: Json, name: string, file: string): Target {
  const pointer = parsePointer(name);
  if (pointer === "malformed") {
    return fault("MALFORMED_SCHEMA_IDENTIFIER", `"${name}" is neither a name nor a JSON pointer`);
  }
  const bare = name.startsWith("#") ? name.slice(1) : name;
  const found =
    pointer === null
      ? (followPath(root, ["definitions", bare]) ??
        followPath(root, ["$defs", bare]) ??
        followPath(root, [bare]))
      : followPath(root, pointer);
  if (found !== undefined) return { kind: "found", value: found.value, path: found.path };
  return fault("SCHEMA_POINTER_ERROR", `there is no "${name}" in ${file}`);
}

function fault(code: Code, why: string): Target & { kind: "fault" } {
  return { kind: "fault", fault: { code, why } };
}

/**
 * Whether objects that name their properties are closed: all of them, all but the schema itself, which is to be merged
 * into its owner, or none.
 */
type Closing = "closed" | "merged" | "open";

/**
 * The schema with every `$ref` replaced, every `allOf` flattened, and its objects closed. Stops at the first fault.
 * Conditions are left open: they test and add to what stands beside them, and closed, they would refuse everything else.
 */
function expand(schema: Json, spot: Spot, walk: Walk, closing: Closing): Json {
  if (walk.fault !== null || !isObject(schema)) return schema;
  walk.nodes += 1;
  if (spot.depth > DEFAULTS.schemaDepth || walk.nodes > DEFAULTS.schemaNodes) {
    const what =
      spot.depth > DEFAULTS.schemaDepth
        ? `is nested deeper than ${DEFAULTS.schemaDepth}`
        : `has more than ${DEFAULTS.schemaNodes} values`;
    walk.fault = {
      code: "FAILED_SCHEMA_RESOLUTION",
      why: `the schema ${what} once its references are resolved`,
    };
    return schema;
  }
  const ref = own(schema, "$ref");
  if (typeof ref === "string") return follow(ref, spot, walk, closing);

  const isCondition = closing === "merged" && Object.hasOwn(schema, "if");
  const isOpen = closing === "open" || isCondition;
  let inner: Spot | null = null;
  let result: { [keyword: string]: Json } | null = null;
  // All are its own: it is a part of a JSON text.
  for (const keyword in schema) {
    const value = schema[keyword]!;
    if (keyword === "$id" && typeof value === "string") delete (result ??= { ...schema }).$id;
    if (typeof value !== "object") continue;
    const holder = schemaHolder(keyword);
    if (holder === undefined) continue;
    inner ??= { ...spot, depth: spot.depth + 1 };
    const below = isOpen || LEFT_OPEN.has(keyword) ? "open" : keyword === "allOf" ? "merged" : "closed";
    const expanded = mapSchemas(keyword, value, (member) => expand(member, inner!, walk, below));
    if (expanded !== undefined && expanded !== value) (result ??= { ...schema })[keyword] = expanded;
  }
  const flat = flatten(result ?? schema);
  return closing === "closed" ? close(flat) : flat;
}

/** What `$ref` names takes its place; siblings of `$ref` are dropped. */
function follow(ref: string, spot: Spot, walk: Walk, closing: Closing): Json {
  const written = { file: spot.file, to: ref };
  const hash = ref.indexOf("#");
  const path = hash === -1 ? ref : ref.slice(0, hash);
  const pointer = hash === -1 ? "#" : ref.slice(hash);

  const file = path === "" ? spot.file : joinPath(parentFolder(spot.file), path);
  let { root } = spot;
  if (path !== "") {
    const read = walk.reader.read(file);
    if (read.kind !== "read") {
      walk.fault = { ...unreadable(read, file, { ...walk.reader, folders: [] }), ref: written };
      return null;
    }
    root = read.document.value;
  }
  const target = lookUp(root, pointer, file);
  if (target.kind === "fault") {
    const why = `${target.fault.why} ("$ref": "${ref}" in ${spot.file})`;
    walk.fault = { code: target.fault.code, why, ref: written };
    return null;
  }
  const nameOf = (place: Walk["start"]) => `${place.file}#${place.path.join("/")}`;
  const before = spot.trail.length === 0 ? [nameOf(walk.start)] : spot.trail;
  const here = nameOf({ file, path: target.path });
  const trail = [...before, here];
  if (before.includes(here)) {
    walk.fault = { code: "SCHEMA_CIRCULAR_REFERENCE", why: trail.join(" → "), ref: written };
    return null;
  }
  return expand(target.value, { file, root, trail, depth: spot.depth + 1 }, walk, closing);
}

/**
 * `allOf` merged in order, then the owner's own keywords: `properties` by name, the later one wins; `required` united;
 * of anything else the first one stays. Conditional members keep their meaning only as they are, and stay in `allOf`.
 */
function flatten(schema: JsonObject): JsonObject {
  const members = own(schema, "allOf");
  if (!Array.isArray(members)) return schema;
  const isKept = (member: Json) => !isObject(member) || Object.hasOwn(member, "if");
  const { allOf: _allOf, ...owner } = schema;
  const kept = (members as readonly Json[]).filter(isKept);
  const merged: { [keyword: string]: Json } = {};
  for (const part of [...(members as readonly Json[]).filter((member) => !isKept(member)), owner]) {
    for (const [keyword, value] of Object.entries(part as JsonObject)) merge(merged, keyword, value);
  }
  const inherited = own(merged, "allOf");
  const conditions = [...(Array.isArray(inherited) ? (inherited as readonly Json[]) : []), ...kept];
  return conditions.length === 0 ? merged : { ...merged, allOf: conditions };
}

function merge(into: { [keyword: string]: Json }, keyword: string, value: Json): void {
  const before = own(into, keyword);
  if (before === undefined) put(into, keyword, value);
  else if (keyword === "properties" && isObject(before) && isObject(value)) {
    into.properties = Object.fromEntries([...Object.entries(before), ...Object.entries(value)]);
  } else if (keyword === "required" && Array.isArray(before) && Array.isArray(value)) {
    into.required = [...new Set([...(before as readonly Json[]), ...(value as readonly Json[])])];
  } else if (keyword === "allOf" && Array.isArray(before) && Array.isArray(value)) {
    into.allOf = [...(before as readonly Json[]), ...(value as readonly Json[])];
  }
}

const LEFT_OPEN: ReadonlySet<string> = new Set(["if", "then", "else", "not"]);

/** An object that names its properties has no others, unless it says so. */
function close(schema: JsonObject): JsonObject {
  const isClosable = isObjectType(own(schema, "type")) && isObject(own(schema, "properties"));
  return isClosable && !Object.hasOwn(schema, "additionalProperties")
    ? { ...schema, additionalProperties: false }
    : schema;
}

function isObjectType(type: Json | undefined): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

/** Assigns an own member whatever its name is. */
function put(record: { [key: string]: Json }, key: string, value: Json): void {
  if (key === "__proto__")
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  else record[key] = value;
}
