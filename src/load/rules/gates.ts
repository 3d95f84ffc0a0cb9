/** Rules about the contract of a step: its schema, its gate, and what it hands on. */
import type { StepId, StepKind } from "../../flow/flow.ts";
import {
  FORBIDDEN_NAMES,
  isObject,
  own,
  parseDotPath,
  readPath,
  type Json,
  type JsonSchema,
  type Path,
} from "../../flow/json.ts";
import { repeatedKeys } from "./keys.ts";
import type { Code } from "./codes.ts";
import { isWritten } from "../text/document.ts";
import type { Finding } from "./finding.ts";
import { gateForm } from "../registry/gate-forms.ts";
import { atName, atSchema, atStep, schemaPlace, witness, type Registered } from "./loaded.ts";
import { continuationOf } from "../registry/moves.ts";
import { pointerOf } from "../text/places.ts";
import { isNamed } from "../registry/promises.ts";
import { error, warning, type Codes, type Rules } from "./rule.ts";
import type { GateSource, Intent } from "../registry/registry-shape.ts";
import { parsePointer } from "../../flow/json-schema.ts";
import { fieldSchema, fieldWords } from "../registry/schemas.ts";
import { show } from "../text/shape.ts";
import { didYouMean } from "../text/suggest.ts";

export const rules: Rules = { gated: [checkGates] };

export const codes = {
  "SR-VALID-003": error(
    "enum and allowedIntents differ",
    "The model must be able to give exactly the intents that the runner accepts.",
  ),
  "SR-GATE-004": error(
    "graph without gates",
    "detect:graph ends at a terminal of the graph, and only gates lead there.",
  ),
  "SR-GATE-SCHEMA": warning(
    "gate without schema",
    "Without a schema, the model does not know the answer format, and nothing is validated.",
  ),
  "GATE-FALLBACK": warning(
    "fallbackIntent not allowed",
    "A fallback outside allowedIntents is ignored, and another one is used.",
  ),
  "HANDOFF-KEY": error("handoff keys collide", "Two fields under one key would overwrite each other."),
  "FLOW-JUMP-TARGET": error(
    "jump to an unknown step",
    "Every step that the schema lets the model name must exist in the flow.",
  ),
  "SCHEMA-STEP-ID": error(
    "stepId of another step",
    "Lockstep adds the step's id to the answer before validating it, so the schema must accept it.",
  ),
  "SCHEMA-STEP-ID-OPEN": warning(
    "stepId not fixed",
    "A const makes the model name the step it answers for; the other schemas of this flow have one.",
  ),
  "SCHEMA-UNIQUE": warning(
    "uniqueItems without maxItems",
    "uniqueItems compares every pair of objects, so a long list would take minutes to validate.",
  ),
} satisfies Codes;

function* checkGates(loaded: Registered): Generator<Finding> {
  yield* checkSchemas(loaded);
  yield* checkAnswers(loaded);
  // A strict flow has rules of its own for what must be there, and words of its own in its schemas.
  const { strict } = gateForm(loaded.sources.dialect);
  if (!strict) yield* checkPresence(loaded);
  for (const [id, kind] of loaded.graph.flow.kinds) {
    const source = loaded.sources.registry.steps.get(id)!;
    const gate = source.structuredGate;
    if (gate === undefined) continue;
    if (!strict) yield* checkKind(loaded, id, kind, gate);
    if (gate.fallbackIntent !== undefined) yield* checkFallback(loaded, id, gate);
    if (gate.handoffFields.length > 0) yield* checkHandoff(loaded, id, gate);
    const { answer } = loaded.graph.steps.get(id)!;
    if (answer.kind === "object" && answer.schema.kind === "schema") {
      if (!strict) yield* checkEnum(loaded, id, gate, answer.schema.schema);
      yield* checkFields(loaded, id, gate, answer.schema.schema);
    } else if (!strict && !isWritten(loaded.sources.registryDocument, ["steps", id, "outputSchemaRef"])) {
      yield {
        code: "SR-GATE-SCHEMA",
        ...atStep(loaded, id),
        message: `The step "${id}" has a structuredGate but no outputSchemaRef.`,
        fix: 'Add "outputSchemaRef" with the file and the name of its schema.',
      };
    }
  }
}

const INTENTS_BY_KIND: { readonly [kind in StepKind]: readonly Intent[] } = {
  work: ["next", "repeat", "jump", "handoff", "abort"],
  verify: ["next", "repeat", "jump", "escalate", "abort"],
  close: ["closing", "repeat", "abort"],
};
const KIND_WORD: { readonly [kind in StepKind]: string } = {
  work: "work",
  verify: "verification",
  close: "closure",
};

/** One finding for each cause, with all the steps it stops. */
function* checkSchemas(loaded: Registered): Generator<Finding> {
  const causes = new Map<string, { code: Code; why: string; steps: StepId[] }>();
  for (const [id, { answer }] of loaded.graph.steps) {
    if (answer.kind !== "object" || answer.schema.kind !== "unresolved") continue;
    const { code, why } = answer.schema;
    const cause = causes.get(why);
    if (cause === undefined) causes.set(why, { code: code as Code, why, steps: [id] });
    else cause.steps.push(id);
  }
  const broken = [...loaded.schemaFiles.values()].filter((read) => read.kind === "broken");
  for (const { code, why, steps } of causes.values()) {
    // The file that cannot be read is reported once, where it is broken.
    if (broken.some(({ document: { file } }) => why.startsWith(`${file} is not valid JSON at`))) continue;
    const live = steps.find((id) => loaded.reach?.steps.has(id)) ?? steps[0]!;
    const others = steps.length === 1 ? "" : ` (and of ${steps.length - 1} more)`;
    yield {
      code,
      ...atSchema(loaded, live),
      steps,
      message: `The schema of the step "${live}"${others} cannot be resolved: ${why}.`,
      fix: SCHEMA_FIX[code] ?? "Name a schema that exists.",
    };
  }
  for (const [file, read] of loaded.schemaFiles) {
    if (read.kind === "read") yield* repeatedKeys(read.document);
    if (read.kind !== "broken") continue;
    const steps = [...causes.values()]
      .filter(({ why }) => why.includes(file))
      .flatMap((cause) => cause.steps);
    yield {
      code: "AC-SERVICE-002",
      document: read.document,
      pointer: "",
      steps,
      message: `${file} is not valid JSON: ${read.what}.`,
      fix: "Fix the JSON at this position.",
    };
  }
}

/** What stands in the schemas themselves, each schema once. */
function* checkAnswers(loaded: Registered): Generator<Finding> {
  const answers = [...loaded.graph.steps.values()].flatMap(({ id, answer }) =>
    answer.kind === "object" && answer.schema.kind === "schema"
      ? [{ id, correct: answer.correct, schema: answer.schema.schema }]
      : [],
  );
  const names = new Map(
    answers.map(({ id, correct, schema }) => [id, correct && fieldWords(schema, [correct.field])]),
  );
  const example = [...names].find(([, words]) => words)?.[0];
  const seen = new Set<JsonSchema>();
  for (const { id, correct, schema } of answers) {
    const words = names.get(id);
    if (correct !== undefined && words && !words.includes(correct.value)) {
      yield {
        code: "SCHEMA-STEP-ID",
        ...atName(loaded, id, correct.field, words),
        message: `The schema of the step "${id}" accepts only ${list(words)} as ${correct.field}, so it rejects every answer of this step.`,
        fix: `Set the const of ${correct.field} to "${id}", or give the step a schema of its own.`,
      };
    } else if (correct !== undefined && words === null && example !== undefined) {
      const what = fieldSchema(schema, [correct.field]) === undefined ? "has no" : "does not fix its";
      yield {
        code: "SCHEMA-STEP-ID-OPEN",
        ...atSchema(loaded, id),
        message: `The schema of the step "${id}" ${what} ${correct.field}, as that of "${example}" does.`,
        fix: `Add "${correct.field}": { "const": "${id}" } to the properties of the schema.`,
      };
    }
    if (seen.has(schema)) continue;
    seen.add(schema);
    const path = quadratic(schema);
    if (path === null) continue;
    yield {
      code: "SCHEMA-UNIQUE",
      ...atSchema(loaded, id, ...path),
      message: `The schema of the step "${id}" has uniqueItems without maxItems at ${pointerOf(path) || "its top"}.`,
      fix: "Add maxItems beside it.",
    };
  }
}

const SCALARS: ReadonlySet<Json> = new Set(["string", "number", "integer", "boolean", "null"]);

/** Where a list of any length has to be compared each with each; scalars are not. */
function quadratic(schema: Json): Path | null {
  if (typeof schema !== "object" || schema === null) return null;
  if (isObject(schema) && own(schema, "uniqueItems") === true && !Object.hasOwn(schema, "maxItems")) {
    const items = own(schema, "items");
    const type = isObject(items) ? own(items, "type") : undefined;
    const types: readonly Json[] = Array.isArray(type) ? type : [type ?? "any"];
    if (!types.every((one) => SCALARS.has(one))) return [];
  }
  for (const key of Object.keys(schema)) {
    const member = (schema as JsonSchema)[key]!;
    const found = typeof member === "object" ? quadratic(member) : null;
    if (found !== null) return [key, ...found];
  }
  return null;
}

const SCHEMA_FIX: { readonly [code: string]: string } = {
  FAILED_SCHEMA_RESOLUTION: "Create the schema file, or correct outputSchemaRef.file.",
  SCHEMA_POINTER_ERROR: "Add the schema to the file, or correct the name or pointer.",
  SCHEMA_CIRCULAR_REFERENCE: "Remove the circular $ref.",
  MALFORMED_SCHEMA_IDENTIFIER: 'Write a bare name, or a pointer such as "#/definitions/name".',
};

function* checkPresence(loaded: Registered): Generator<Finding> {
  const { registry, registryDocument, verdict, agentDocument } = loaded.sources;
  const { kinds } = loaded.graph.flow;
  const gateless = [...kinds.keys()].filter((id) => registry.steps.get(id)!.structuredGate === undefined);
  if (gateless.length === kinds.size) {
    if (verdict.type !== "detect:graph" || kinds.size === 0) return;
    yield {
      code: "SR-GATE-004",
      document: agentDocument,
      pointer: "/runner/verdict/type",
      message: `The verdict type is detect:graph, but no step of ${registryDocument.file} has a structuredGate.`,
      fix: "Give the steps a structuredGate and transitions.",
    };
    return;
  }
  for (const id of gateless) {
    const isCommand = registry.steps.get(id)!.runner !== undefined;
    if (isCommand || isWritten(registryDocument, ["steps", id, "structuredGate"])) continue;
    yield {
      code: "SR-GATE-003",
      ...atStep(loaded, id),
      message: `[StepFlow] Flow validation failed. All Flow steps must define structuredGate and transitions.\nSteps missing structuredGate: ${id}`,
      fix: `Add a structuredGate and transitions to "${id}".`,
    };
  }
}

function* checkKind(loaded: Registered, id: StepId, kind: StepKind, gate: GateSource): Generator<Finding> {
  for (const intent of gate.allowedIntents ?? []) {
    if (INTENTS_BY_KIND[kind].includes(intent)) continue;
    yield {
      code: "SR-VALID-001",
      ...atStep(loaded, id, "structuredGate", "allowedIntents"),
      message: `The step "${id}" allows "${intent}", but ${KIND_WORD[kind]} steps may only give: ${INTENTS_BY_KIND[kind].join(", ")}.`,
      fix: `Remove "${intent}" from allowedIntents, or change the step's kind.`,
    };
  }
}

function* checkFallback(loaded: Registered, id: StepId, gate: GateSource): Generator<Finding> {
  const allowed = gate.allowedIntents ?? [];
  const wanted = gate.fallbackIntent;
  if (!gate.failFast && wanted !== undefined && wanted !== "abort" && !allowed.includes(wanted)) {
    yield {
      code: "GATE-FALLBACK",
      ...atStep(loaded, id, "structuredGate", "fallbackIntent"),
      message: `The fallbackIntent "${wanted}" of the step "${id}" is not among its allowedIntents.`,
      fix: `Use one of: ${allowed.join(", ")}.`,
    };
  }
}

function* checkHandoff(loaded: Registered, id: StepId, gate: GateSource): Generator<Finding> {
  const fields = new Set(gate.handoffFields);
  const at = () => atStep(loaded, id, "structuredGate", "handoffFields");
  let forbidden = 0;
  for (const field of fields) {
    const key = field.split(".").at(-1)!;
    if (!FORBIDDEN_NAMES.has(key)) continue;
    forbidden += 1;
    yield {
      code: "FORBIDDEN-NAME",
      ...at(),
      message: `The step "${id}" would hand on "${field}" under the key "${key}", which is not a valid name.`,
      fix: "Rename the field in the schema and here.",
    };
  }
  if (loaded.graph.steps.get(id)!.carry.length < fields.size - forbidden) {
    yield {
      code: "HANDOFF-KEY",
      ...at(),
      message: `Two handoffFields of the step "${id}" have the same key.`,
      fix: "Rename one of the fields in the schema and here.",
    };
  }
}

/** What the model may say and what the gate lets through must be the same words; abort is always let through. */
function* checkEnum(
  loaded: Registered,
  id: StepId,
  gate: GateSource,
  schema: JsonSchema,
): Generator<Finding> {
  const ref = gate.intentSchemaRef;
  if (ref === undefined || !ref.startsWith("#/")) return;
  const path = parsePointer(ref);
  const landed = Array.isArray(path) ? readPath(schema, path as Path) : undefined;
  const words = isObject(landed) ? own(landed, "enum") : undefined;
  if (!Array.isArray(words)) {
    yield {
      code: "SR-VALID-002",
      ...atStep(loaded, id, "structuredGate", "intentSchemaRef"),
      message: `intentSchemaRef "${ref}" of the step "${id}" leads to ${landed === undefined ? "nothing" : "no enum"} in its schema.`,
      fix: "Point it at the schema of the intent, where its enum is.",
    };
    return;
  }
  const isSame = words.length === gate.allowedIntents?.length;
  if (isSame && gate.allowedIntents.every((intent, index) => intent === words[index])) return;
  const spoken = new Set((words as readonly Json[]).filter((word) => word !== "abort"));
  const allowed = new Set<Json>((gate.allowedIntents ?? []).filter((intent) => intent !== "abort"));
  const unspeakable = [...allowed].filter((word) => !spoken.has(word));
  const refused = [...spoken].filter((word) => !allowed.has(word));
  if (unspeakable.length === 0 && refused.length === 0) return;
  const parts = [
    unspeakable.length > 0 && `${list(unspeakable)} is allowed but missing from the enum`,
    refused.length > 0 && `${list(refused)} is in the enum but not allowed`,
  ].filter((part) => part !== false);
  yield {
    code: "SR-VALID-003",
    ...atStep(loaded, id, "structuredGate", "allowedIntents"),
    message: `The schema enum and allowedIntents of the step "${id}" differ: ${parts.join("; ")}.`,
    fix: "Make the enum in the schema and allowedIntents the same.",
    ...mendIntents(loaded, id, gate, words as readonly Json[]),
  };
}

/**
 * Of enum, allowedIntents and transitions two agree and the third follows. An enum that other steps share is left alone
 * unless they allow the same.
 */
function mendIntents(
  loaded: Registered,
  id: StepId,
  gate: GateSource,
  words: readonly Json[],
): Pick<Finding, "mend"> {
  const { registry, registryDocument } = loaded.sources;
  const allowed: readonly string[] = gate.allowedIntents ?? [];
  const written = readPath(registryDocument.value, ["steps", id, "structuredGate", "allowedIntents"]);
  // Words that could not be read are put right first.
  if (!Array.isArray(written) || written.length !== allowed.length) return {};
  const { transitions } = registry.steps.get(id)!;
  const ruled = [...transitions.keys()].filter((intent) => intent !== "abort");
  const mayLackRule = (word: Json) =>
    ["abort", "repeat", "closing", "jump"].includes(word as string) ||
    (word === "next" && continuationOf(id, loaded.graph.flow) !== null);
  const agrees = (other: readonly Json[]) =>
    ruled.every((intent) => other.includes(intent)) &&
    other.every((word) => transitions.has(word as string) || mayLackRule(word));

  if (agrees(allowed)) {
    const place = enumPlace(loaded, id);
    if (place === null || intentsAt(loaded).get(place.key)!.size > 1) return {};
    const value =
      words.includes("abort") && !allowed.includes("abort") ? [...allowed, "abort"] : [...allowed];
    return { mend: [{ file: place.file, pointer: place.pointer, kind: "set", value }] };
  }
  const kind = loaded.graph.flow.kinds.get(id)!;
  const isSpeakable = words.every((word) => (INTENTS_BY_KIND[kind] as readonly Json[]).includes(word));
  if (!agrees(words) || !isSpeakable) return {};
  const { document, pointer } = atStep(loaded, id, "structuredGate", "allowedIntents");
  const value = allowed.includes("abort") && !words.includes("abort") ? [...words, "abort"] : [...words];
  return { mend: [{ file: document.file, pointer, kind: "set", value }] };
}

/** The file and pointer at which the enum of a step's intents is written. */
function enumPlace(loaded: Registered, id: StepId) {
  const known = ENUM_PLACES.get(loaded) ?? new Map<StepId, EnumPlace | null>();
  ENUM_PLACES.set(loaded, known);
  const before = known.get(id);
  if (before !== undefined) return before;
  const { structuredGate: gate } = loaded.sources.registry.steps.get(id)!;
  const path = parsePointer(gate?.intentSchemaRef ?? "");
  const place = Array.isArray(path) ? schemaPlace(loaded, id, [...(path as Path), "enum"]) : null;
  let found: EnumPlace | null = null;
  if (place !== null) {
    const { file } = place.document;
    const pointer = pointerOf(place.path);
    found = { file, pointer, key: `${file} ${pointer}` };
  }
  known.set(id, found);
  return found;
}

type EnumPlace = { readonly file: string; readonly pointer: string; readonly key: string };
const ENUM_PLACES = new WeakMap<Registered, Map<StepId, EnumPlace | null>>();

/** For every place of an enum, the different lists of intents that its steps allow. */
function intentsAt(loaded: Registered): ReadonlyMap<string, ReadonlySet<string>> {
  const known = INTENTS.get(loaded);
  if (known !== undefined) return known;
  const found = new Map<string, Set<string>>();
  for (const [id, { structuredGate }] of loaded.sources.registry.steps) {
    const key = enumPlace(loaded, id)?.key;
    if (key === undefined) continue;
    const intents = [...new Set(structuredGate?.allowedIntents ?? [])].toSorted().join(" ");
    found.set(key, (found.get(key) ?? new Set()).add(intents));
  }
  INTENTS.set(loaded, found);
  return found;
}

const INTENTS = new WeakMap<Registered, ReadonlyMap<string, ReadonlySet<string>>>();

function* checkFields(
  loaded: Registered,
  id: StepId,
  gate: GateSource,
  schema: JsonSchema,
): Generator<Finding> {
  const fields = [
    ["intentField", gate.intentField],
    ["targetField", gate.allowedIntents?.includes("jump") ? gate.targetField : undefined],
  ] as const;
  for (const [key, field] of fields) {
    if (field === undefined || isNamed(schema, parseDotPath(field))) continue;
    yield {
      code: "GATE-FIELD",
      ...atStep(loaded, id, "structuredGate", key),
      message: `${key} "${field}" of the step "${id}" is not in its schema.`,
      fix: `Add "${field}" to the schema, or correct ${key}.`,
    };
  }
  const { flow } = loaded.graph;
  const named = fields[1][1] === undefined ? null : fieldWords(schema, parseDotPath(fields[1][1]));
  const strangers = (named ?? []).filter((word) => !flow.kinds.has(word));
  if (strangers.length > 0) {
    yield {
      code: "FLOW-JUMP-TARGET",
      ...atSchema(loaded, id, ...parseDotPath(gate.targetField!).flatMap((name) => ["properties", name])),
      message: `The schema of the step "${id}" lets the model jump to ${list(strangers)}, but there is no such step.${didYouMean(strangers[0]!, flow.ids)}`,
      fix: `Remove ${list(strangers)} from the enum of "${gate.targetField}", or add the step.`,
      witness: witness(loaded, id, strangers[0]!),
    };
  }
}

function list(words: readonly Json[]): string {
  return words.map((word) => show(word)).join(", ");
}
