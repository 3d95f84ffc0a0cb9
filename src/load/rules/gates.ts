/** Rules about the contract of a step: its schema, its gate, and what it hands on. */
import { cached } from "../../flow/cached.ts";
import type { StepId, StepKind } from "../../flow/flow.ts";
import {
  FORBIDDEN_NAMES,
  isObject,
  own,
  readPath,
  type Json,
  type JsonSchema,
  type Path,
} from "../../flow/json.ts";
import { isWritten } from "../text/document.ts";
import { gateForm } from "../registry/gate-forms.ts";
import { checkFields } from "./handed.ts";
import { answerSchema, atStep, schemaPlace, type Registered } from "./loaded.ts";
import { continuationOf } from "../registry/moves.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";
import type { GateSource, Intent } from "../registry/registry-shape.ts";
import { parsePointer } from "../../flow/json-schema.ts";
import { listValues } from "../text/shape.ts";

export const rules: Rules = { gated: [checkGates] };

export const codes = {
  "SR-VALID-003": error(
    "enum and allowedIntents differ",
    "The model must be able to give exactly the intents that the runner accepts.",
  ),
  "SR-GATE-003": error(
    "step without gate",
    "In a flow with gates, a step without one decides nothing and leads nowhere.",
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
} satisfies Codes;

function checkGates(loaded: Registered, tell: Tell): void {
  // A strict flow has rules of its own for what must be there, and words of its own in its schemas.
  const { strict } = gateForm(loaded.sources.dialect);
  if (!strict) checkPresence(loaded, tell);
  const { kinds } = loaded.graph.flow;
  for (const id of kinds.keys()) {
    const source = loaded.sources.registry.steps.get(id)!;
    const gate = source.structuredGate;
    if (gate === undefined) continue;
    if (!strict) checkKind(loaded, id, kinds.get(id)!, gate, tell);
    if (gate.fallbackIntent !== undefined) checkFallback(loaded, id, gate, tell);
    if (gate.handoffFields.length > 0) checkHandoff(loaded, id, gate, tell);
    const schema = answerSchema(loaded.graph.steps.get(id)!);
    if (schema !== true) {
      if (!strict) checkEnum(loaded, id, gate, schema, tell);
      checkFields(loaded, id, gate, schema, tell);
    } else if (!strict && !isWritten(loaded.sources.registryDocument, ["steps", id, "outputSchemaRef"])) {
      tell({
        code: "SR-GATE-SCHEMA",
        ...atStep(loaded, id),
        message: `The step "${id}" has a structuredGate but no outputSchemaRef.`,
        fix: 'Add "outputSchemaRef" with the file and the name of its schema.',
      });
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

function checkPresence(loaded: Registered, tell: Tell): void {
  const { registry, registryDocument, verdict, agentDocument } = loaded.sources;
  const { kinds } = loaded.graph.flow;
  const gateless = [...kinds.keys()].filter((id) => registry.steps.get(id)!.structuredGate === undefined);
  if (gateless.length === kinds.size) {
    if (verdict.type !== "detect:graph" || kinds.size === 0) return;
    tell({
      code: "SR-GATE-004",
      document: agentDocument,
      pointer: "/runner/verdict/type",
      message: `The verdict type is detect:graph, but no step of ${registryDocument.file} has a structuredGate.`,
      fix: "Give the steps a structuredGate and transitions.",
    });
    return;
  }
  for (const id of gateless) {
    const isCommand = registry.steps.get(id)!.runner !== undefined;
    if (isCommand || isWritten(registryDocument, ["steps", id, "structuredGate"])) continue;
    tell({
      code: "SR-GATE-003",
      ...atStep(loaded, id),
      message: `[StepFlow] Flow validation failed. All Flow steps must define structuredGate and transitions.\nSteps missing structuredGate: ${id}`,
      fix: `Add a structuredGate and transitions to "${id}".`,
    });
  }
}

/** One finding for the whole file, whether or not the steps are live. */
export function checkStrictPresence({ sources, graph }: Registered, tell: Tell): void {
  const { registryDocument: document } = sources;
  const lacking = (key: string) => graph.flow.ids.filter((id) => !isWritten(document, ["steps", id, key]));
  const gates = lacking("structuredGate");
  const transitions = lacking("transitions");
  if (gates.length === 0 && transitions.length === 0) return;
  tell({
    code: "SR-GATE-003",
    document,
    pointer: "/steps",
    message: [
      "[StepFlow] Flow validation failed. All Flow steps must define structuredGate and transitions.",
      ...(gates.length > 0 ? [`Steps missing structuredGate: ${gates.join(", ")}`] : []),
      ...(transitions.length > 0 ? [`Steps missing transitions: ${transitions.join(", ")}`] : []),
      "See agents/docs/design/08_step_flow_design.md for requirements.",
    ].join("\n"),
    fix: "Add what is missing to each of these steps.",
  });
}

function checkKind(loaded: Registered, id: StepId, kind: StepKind, gate: GateSource, tell: Tell): void {
  for (const intent of gate.allowedIntents ?? []) {
    if (INTENTS_BY_KIND[kind].includes(intent)) continue;
    tell({
      code: "SR-VALID-001",
      ...atStep(loaded, id, "structuredGate", "allowedIntents"),
      message: `The step "${id}" allows "${intent}", but ${KIND_WORD[kind]} steps may only give: ${INTENTS_BY_KIND[kind].join(", ")}.`,
      fix: `Remove "${intent}" from allowedIntents, or change the step's kind.`,
    });
  }
}

function checkFallback(loaded: Registered, id: StepId, gate: GateSource, tell: Tell): void {
  const allowed = gate.allowedIntents ?? [];
  const wanted = gate.fallbackIntent;
  if (!gate.failFast && wanted !== undefined && wanted !== "abort" && !allowed.includes(wanted)) {
    tell({
      code: "GATE-FALLBACK",
      ...atStep(loaded, id, "structuredGate", "fallbackIntent"),
      message: `The fallbackIntent "${wanted}" of the step "${id}" is not among its allowedIntents.`,
      fix: `Use one of: ${allowed.join(", ")}.`,
    });
  }
}

function checkHandoff(loaded: Registered, id: StepId, gate: GateSource, tell: Tell): void {
  const fields = new Set(gate.handoffFields);
  const at = () => atStep(loaded, id, "structuredGate", "handoffFields");
  let forbidden = 0;
  for (const field of fields) {
    const key = field.split(".").at(-1)!;
    if (!FORBIDDEN_NAMES.has(key)) continue;
    forbidden += 1;
    tell({
      code: "FORBIDDEN-NAME",
      ...at(),
      message: `The step "${id}" would hand on "${field}" under the key "${key}", which is not a valid name.`,
      fix: "Rename the field in the schema and here.",
    });
  }
  if (loaded.graph.steps.get(id)!.carry.length < fields.size - forbidden) {
    tell({
      code: "HANDOFF-KEY",
      ...at(),
      message: `Two handoffFields of the step "${id}" have the same key.`,
      fix: "Rename one of the fields in the schema and here.",
    });
  }
}

/** What the model may say and what the gate lets through must be the same words; abort is always let through. */
function checkEnum(loaded: Registered, id: StepId, gate: GateSource, schema: JsonSchema, tell: Tell): void {
  const ref = gate.intentSchemaRef;
  if (ref === undefined || !ref.startsWith("#/")) return;
  const path = parsePointer(ref);
  const landed = Array.isArray(path) ? readPath(schema, path as Path) : undefined;
  const words = isObject(landed) ? own(landed, "enum") : undefined;
  if (!Array.isArray(words)) {
    tell({
      code: "SR-VALID-002",
      ...atStep(loaded, id, "structuredGate", "intentSchemaRef"),
      message: `intentSchemaRef "${ref}" of the step "${id}" leads to ${landed === undefined ? "nothing" : "no enum"} in its schema.`,
      fix: "Point it at the schema of the intent, where its enum is.",
    });
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
    unspeakable.length > 0 && `${listValues(unspeakable)} is allowed but missing from the enum`,
    refused.length > 0 && `${listValues(refused)} is in the enum but not allowed`,
  ].filter((part) => part !== false);
  tell({
    code: "SR-VALID-003",
    ...atStep(loaded, id, "structuredGate", "allowedIntents"),
    message: `The schema enum and allowedIntents of the step "${id}" differ: ${parts.join("; ")}.`,
    fix: "Make the enum in the schema and allowedIntents the same.",
    ...mendIntents(loaded, id, gate, words as readonly Json[]),
  });
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
    const place = ownEnums(loaded).get(id);
    if (place === undefined) return {};
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

/** Where the enum of each step's intents is written, unless steps that allow other intents share it. */
const ownEnums = cached(
  (loaded: Registered): ReadonlyMap<StepId, { readonly file: string; readonly pointer: string }> => {
    const places = [...loaded.sources.registry.steps].flatMap(([id, { structuredGate: gate }]) => {
      const path = parsePointer(gate?.intentSchemaRef ?? "");
      const place = Array.isArray(path) ? schemaPlace(loaded, id, [...(path as Path), "enum"]) : null;
      if (place === null) return [];
      const intents = [...new Set(gate?.allowedIntents ?? [])].toSorted().join(" ");
      return [{ id, intents, file: place.document.file, pointer: pointerOf(place.path) }];
    });
    const shared = Map.groupBy(places, ({ file, pointer }) => `${file} ${pointer}`);
    const own = [...shared.values()].filter((users) =>
      users.every(({ intents }) => intents === users[0]!.intents),
    );
    return new Map(own.flat().map((place) => [place.id, place]));
  },
);
