/** Files of an older form rewritten in the current one: what they become, and what cannot be carried over. */
import type { Files } from "../flow/files.ts";
import {
  isObject,
  own,
  parseDotPath,
  readPath,
  writePath,
  type Json,
  type JsonObject,
} from "../flow/json.ts";
import { unescapeSegment } from "../flow/json-pointer.ts";
import { DEFAULTS } from "./agent/defaults.ts";
import { isFinal } from "./registry/gate-forms.ts";
import { recogniseDialect } from "./registry/dialect.ts";
import { readDocument, type Document } from "./text/document.ts";
import type { Finding } from "./rules/rule.ts";
import { modernAgent, modernRegistry } from "./agent/legacy.ts";
import { joinPath } from "./text/paths.ts";
import { rewriteJson } from "./text/rewrite.ts";
import { FORMER_TYPES } from "./agent/verdict-types.ts";

export type Migration = {
  readonly changes: readonly FileChange[];
  /** What a person should know, or do by hand. */
  readonly notes: readonly string[];
};

/** `before` is the text as it stands. */
export type FileChange = { readonly path: string; readonly before: string; readonly after: string };

/** The agent must load. Nothing is written here; a file that stays as it is, is not among the changes. */
export function migrateAgent(name: string, files: Files): Migration {
  const folder = joinPath(".agent", name);
  const findings: Finding[] = [];
  const agent = modernAgent(read(files, `${folder}/agent.json`), findings);
  const agentValue = withPresentTypes(objectOf(agent.value), ["runner", "verdict", "type"]);
  const named = readPath(agentValue, ["runner", "flow", "prompts", "registry"]);
  const registryFile = joinPath(folder, typeof named === "string" ? named : DEFAULTS.registry);
  const registry = modernRegistry(read(files, registryFile), findings);
  const schemaFolder = joinPath(folder, "schemas");
  const schemaOf = (file: string) => {
    const { value } = read(files, joinPath(schemaFolder, file));
    return isObject(value) ? value : null;
  };

  const rewritten = rewrite(registry, schemaOf);
  const outputs: readonly (readonly [path: string, value: Json])[] = [
    [`${folder}/agent.json`, agentValue],
    [registryFile, withPresentEntries(rewritten.registry)],
    ...Object.entries(rewritten.schemas).map(
      ([file, schema]) => [joinPath(schemaFolder, file), schema] as const,
    ),
  ];
  const gone = findings.filter((finding) => finding.code === "LEGACY-GONE");
  return {
    changes: outputs.flatMap(([path, value]) => changeOf(files, path, value)),
    notes: [...gone.map((finding) => finding.message), ...rewritten.notes],
  };
}

function rewrite(registry: Document, schemaOf: (file: string) => JsonObject | null): Rewritten {
  const value = objectOf(registry.value);
  switch (recogniseDialect(registry, [])) {
    case "complete":
      return completeToGates(value, schemaOf);
    case "check":
      return {
        registry: { ...value, dialect: "check" },
        schemas: {},
        notes: [
          "Gates have no equivalent of check prompts, so the flow keeps its check prompts and declares that dialect.",
        ],
      };
    case "gate":
    case null:
      return { registry: value, schemas: {}, notes: [] };
  }
}

/** A value that did not change leaves its file alone, whatever its formatting. */
function changeOf(files: Files, path: string, value: Json): readonly FileChange[] {
  const found = files.read(path);
  const before = found.kind === "text" ? found.text : "";
  const unchanged =
    found.kind === "text" && JSON.stringify(read(files, path).value) === JSON.stringify(value);
  return unchanged ? [] : [{ path, before, after: rewriteJson(before, value) }];
}

/** Names of verdict types of earlier versions, at this place and as keys of the entries. */
function withPresentTypes(value: JsonObject, path: readonly string[]): JsonObject {
  const type = readPath(value, path);
  const present = typeof type === "string" ? own(FORMER_TYPES, type) : undefined;
  return present === undefined ? value : writePath(value, path, present);
}

function withPresentEntries(registry: JsonObject): JsonObject {
  const entries = own(registry, "entryStepMapping");
  if (!isObject(entries)) return registry;
  const renamed = Object.entries(entries).map(
    ([type, step]) => [own(FORMER_TYPES, type) ?? type, step] as const,
  );
  return { ...registry, entryStepMapping: Object.fromEntries(renamed) };
}

function read(files: Files, path: string): Document {
  return readDocument(files, path).document;
}

function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

export type Rewritten = {
  readonly registry: JsonObject;
  /** Schema files that had to change, by name. */
  readonly schemas: { readonly [file: string]: JsonObject };
  /** What a person should know, or do by hand. */
  readonly notes: readonly string[];
};

/**
 * A registry of the form with `complete` intents as one of the gate form. Step ids and prompt paths stay, so that
 * prompts need not move; the old words stay understood as aliases, so that a model that still says them is followed.
 */
export function completeToGates(
  registry: JsonObject,
  schemaOf: (file: string) => JsonObject | null,
): Rewritten {
  const notes: string[] = [
    "A wrong stepId in an answer is now corrected; before, it made the answer invalid.",
  ];
  const schemas = new Map<string, JsonObject>();
  const steps: { [id: string]: Json } = {};
  for (const [id, step] of Object.entries(objectOf(own(registry, "steps")))) {
    if (!isObject(step) || !isObject(step.structuredGate)) {
      steps[id] = step;
      continue;
    }
    const gate = gateOf(id, step.structuredGate);
    steps[id] = {
      ...step,
      stepKind: isFinal(id) ? "closure" : "work",
      structuredGate: gate.written,
      transitions: transitionsOf(id, objectOf(own(step, "transitions"))),
    };
    const trouble = rewriteEnum(step, gate, schemas, schemaOf);
    if (trouble !== null) notes.push(`${id}: ${trouble}`);
  }
  const { dialect: _dialect, ...rest } = registry;
  return {
    registry: { ...rest, c1: own(registry, "c1") ?? "steps", steps },
    schemas: Object.fromEntries(schemas),
    notes,
  };
}

type Gate = { readonly written: JsonObject; readonly intents: readonly string[]; readonly field: string };

/** `complete` hands over from a work step, and closes from a final one. */
function gateOf(id: string, gate: JsonObject): Gate {
  const ends = meaning(id, "complete");
  const words = Array.isArray(gate.allowedIntents) ? gate.allowedIntents.map(String) : [];
  const intents = [...new Set(words.map((word) => meaning(id, word)))].filter((word) => word !== "abort");
  const field = typeof gate.intentField === "string" ? gate.intentField : DEFAULTS.intentField;
  const fallback = typeof gate.fallbackIntent === "string" ? meaning(id, gate.fallbackIntent) : null;
  return {
    intents,
    field,
    written: {
      ...gate,
      allowedIntents: intents,
      intentSchemaRef: `#/properties/${parseDotPath(field).join("/properties/")}`,
      intentField: field,
      ...(fallback === null ? {} : { failFast: false, fallbackIntent: fallback }),
      aliases: { complete: ends, done: ends, finished: ends, escalate: "abort" },
    },
  };
}

function transitionsOf(id: string, transitions: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(transitions).map(([word, rule]) => {
      const intent = meaning(id, word);
      return [intent, intent === "closing" ? { target: null } : rule];
    }),
  );
}

/** The enum of intents in the step's schema; the schema itself must stand in the file for it to be edited. */
function rewriteEnum(
  step: JsonObject,
  { intents, field }: Gate,
  schemas: Map<string, JsonObject>,
  schemaOf: (file: string) => JsonObject | null,
): string | null {
  const ref = isObject(step.outputSchemaRef) ? step.outputSchemaRef : null;
  if (ref === null || typeof ref.file !== "string" || typeof ref.schema !== "string") {
    return "it has no schema; add one whose enum lists its intents";
  }
  const file = schemas.get(ref.file) ?? schemaOf(ref.file);
  const place = file === null ? null : schemaPlace(file, ref.schema);
  if (file === null || place === null)
    return `its schema ${ref.file} ${ref.schema} does not exist; create it`;
  const path = [...place, ...parseDotPath(field).flatMap((name) => ["properties", name])];
  const words = readPath(file, path);
  if (!isObject(words))
    return `${ref.file}: the intents at ${field} are not in the schema itself; make their enum ${intents.join(", ")}`;
  schemas.set(ref.file, writePath(file, path, { ...words, enum: intents }));
  return null;
}

/** Where a pointer or a bare name leads in a schema file. */
function schemaPlace(file: JsonObject, name: string): readonly string[] | null {
  const pointer = /^#?\/(.*)$/.exec(name)?.[1];
  const paths =
    pointer === undefined
      ? [["definitions", name], ["$defs", name], [name]]
      : [pointer.split("/").map(unescapeSegment)];
  return paths.find((path) => isObject(readPath(file, path))) ?? null;
}

function meaning(id: string, word: string): string {
  if (word === "complete") return isFinal(id) ? "closing" : "handoff";
  return word === "escalate" ? "abort" : word;
}
