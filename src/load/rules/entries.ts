/** Rules about the entries of a registry: names that can be used, kinds that fit, and a first step. */
import { FORBIDDEN_NAMES, readPath } from "../../flow/json.ts";
import { namesOf } from "../agent/verdict-types.ts";
import { isWritten } from "../text/document.ts";
import { pointerOf } from "../../flow/json-pointer.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";
import { atPart, atStep, type Registered } from "./loaded.ts";
import { correctTo, error, type Codes, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { registry: [checkIds, checkEntry], gated: [checkKinds] };

export const codes = {
  "SR-ENTRY-001": error("no entry step", "The first step is never guessed."),
  "SR-ENTRY-002": error("entryStep unknown", "A run must begin at a step that exists."),
  "SR-ENTRY-003": error("entryStepMapping unknown", "A run must begin at a step that exists."),
} satisfies Codes;

function checkIds(loaded: Registered, tell: Tell): void {
  const { registryDocument } = loaded.sources;
  const key = loaded.sources.dialect === "check" ? "id" : "stepId";
  for (const id of loaded.entries.keys()) {
    if (FORBIDDEN_NAMES.has(id)) {
      const { document, pointer } = atStep(loaded, id);
      const message = `"${id}" is not a valid step id.`;
      tell({ code: "FORBIDDEN-NAME", document, pointer, message, fix: "Rename the step." });
      continue;
    }
    const said = readPath(registryDocument.value, ["steps", id, key]);
    if (typeof said !== "string" || said === "" || said === id) continue;
    const place = atStep(loaded, id, key);
    tell({
      code: "SR-VALID-004",
      ...place,
      message: `The step "${id}" calls itself "${said}".`,
      fix: `Set "${key}" to "${id}".`,
      ...correctTo(id, place),
    });
  }
  if (loaded.entries.size > 0 || !isWritten(registryDocument, ["steps"])) return;
  tell({
    code: "SR-LOAD-001",
    document: registryDocument,
    pointer: "/steps",
    message: `${registryDocument.file} has no steps.`,
    fix: "Add a step.",
  });
}

function checkKinds(loaded: Registered, tell: Tell): void {
  const { steps } = loaded.sources.registry;
  for (const id of steps.keys()) {
    const source = steps.get(id)!;
    if (FORBIDDEN_NAMES.has(id)) continue;
    if (
      source.structuredGate !== undefined &&
      !loaded.graph.flow.kinds.has(id) &&
      !id.startsWith("section.")
    ) {
      tell({
        code: "SR-VALID-004",
        ...atStep(loaded, id),
        message: `The step "${id}" has a structuredGate but no kind: c2 is "${source.c2 ?? ""}" and stepKind is missing, so it is not part of the flow.`,
        fix: 'Set "stepKind" to work, verification or closure.',
      });
    }
    if (source.runner !== undefined && loaded.graph.flow.kinds.get(id) !== "close") {
      tell({
        code: "SR-VALID-004",
        severity: "warning",
        ...atStep(loaded, id, "runner"),
        message: `The step "${id}" runs a command but is not a closure, so the command's success does not end the run.`,
        fix: 'Set "stepKind" to closure, or remove "runner".',
      });
    }
  }
}

function checkEntry(loaded: Registered, tell: Tell): void {
  const { registry, registryDocument: document, verdict } = loaded.sources;
  const { entry, flow } = loaded.graph;
  const isMapped = entry.path?.[0] === "entryStepMapping";
  const unknown = (step: string) =>
    registry.steps.has(step)
      ? `"${step}" has no kind, so it is not a step of the flow.`
      : `There is no step "${step}".${didYouMean(step, flow.ids)}`;

  const written = readPath(loaded.sources.agentDocument.value, ["runner", "verdict", "type"]);
  const word = typeof written === "string" ? written : verdict.type;
  if (entry.step === "") {
    tell({
      code: "SR-ENTRY-001",
      document,
      pointer: "",
      message: `[StepFlow] No entry step configured for completionType "${word}".\nDefine either "entryStepMapping.${word}" or "entryStep" in steps_registry.json.`,
      fix: `Add "entryStep" with the id of the first step.`,
    });
  } else if (!flow.kinds.has(entry.step)) {
    tell({
      code: isMapped ? "SR-ENTRY-003" : "SR-ENTRY-002",
      ...atPart(loaded, "entry"),
      message: `Runs with the verdict type "${verdict.type}" start at "${entry.step}". ${unknown(entry.step)}`,
      fix: "Name a step of the flow.",
      ...correctTo(onlyNear(entry.step, flow.ids), { document, pointer: pointerOf(entry.path ?? []) }),
    });
  }
  const active = new Set(namesOf(verdict.type));
  for (const [type, step] of registry.entryStepMapping) {
    if (active.has(type) || flow.kinds.has(step)) continue;
    const place = { document, pointer: `/entryStepMapping/${type}` };
    tell({
      code: "SR-ENTRY-003",
      severity: "warning",
      ...place,
      message: `Runs with the verdict type "${type}" start at "${step}". ${unknown(step)}`,
      fix: "Name a step of the flow, or remove the entry.",
      ...correctTo(onlyNear(step, flow.ids), place),
    });
  }
  if (registry.entryStep !== undefined && isMapped && !flow.kinds.has(registry.entryStep)) {
    tell({
      code: "SR-ENTRY-002",
      severity: "warning",
      document,
      pointer: "/entryStep",
      message: `entryStep is not used with this verdict type, and is not valid. ${unknown(registry.entryStep)}`,
      fix: "Name a step of the flow, or remove entryStep.",
    });
  }
}
