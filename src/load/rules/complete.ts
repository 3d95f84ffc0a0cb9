/** Rules about flows with a `complete` intent: nothing is implied, and their messages are fixed word for word. */
import type { StepId } from "../../flow/flow.ts";
import { isWritten } from "../text/document.ts";
import { isFinal } from "../registry/gate-forms.ts";
import { checkStrictPresence } from "./gates.ts";
import { answerSchema, atName, atSchema, atStep, witness, type Registered } from "./loaded.ts";
import { error, type Codes, type Rules, type Tell } from "./rule.ts";
import { fieldWords } from "../../flow/json-schema.ts";
import type { StepSource } from "../registry/registry-shape.ts";

export const rules: Rules = { complete: [checkComplete] };

export const codes = {
  "COMPLETE-TARGET": error(
    "complete leads elsewhere",
    "complete must lead to a complete.* step, so that a finished flow never loops again.",
  ),
  "COMPLETE-SCHEMA": error(
    "schema of a strict flow",
    "A strict flow needs a schema by JSON pointer that fixes stepId, so that answers for other steps are rejected.",
  ),
} satisfies Codes;

function checkComplete(loaded: Registered, tell: Tell): void {
  checkStrictPresence(loaded, tell);
  for (const id of loaded.graph.flow.ids) {
    const source = loaded.sources.registry.steps.get(id)!;
    checkTarget(loaded, id, source, tell);
    checkSchema(loaded, id, source, tell);
  }
}

/** From a step that is not final, `complete` leads to one that is. A target that does not exist is found elsewhere. */
function checkTarget(loaded: Registered, id: StepId, source: StepSource, tell: Tell): void {
  const target = source.transitions.get("complete")?.target;
  if (isFinal(id) || typeof target !== "string" || isFinal(target)) return;
  tell({
    code: "COMPLETE-TARGET",
    ...atStep(loaded, id, "transitions", "complete", "target"),
    message: `"complete" of the step "${id}" leads to "${target}", which is not a complete.* step.`,
    fix: `Lead it to a step such as "complete.${id.split(".").at(-1)}".`,
    witness: witness(loaded, id, target),
  });
}

function checkSchema(loaded: Registered, id: StepId, source: StepSource, tell: Tell): void {
  const ref = source.outputSchemaRef;
  if (!isWritten(loaded.sources.registryDocument, ["steps", id, "outputSchemaRef"])) {
    tell({
      code: "COMPLETE-SCHEMA",
      ...atStep(loaded, id),
      message: `The step "${id}" has no outputSchemaRef.`,
      fix: `Add "outputSchemaRef" with the file and the pointer "#/definitions/${id}".`,
    });
    return;
  }
  if (ref?.schema !== undefined && !ref.schema.startsWith("#/")) {
    tell({
      code: "COMPLETE-SCHEMA",
      ...atStep(loaded, id, "outputSchemaRef", "schema"),
      message: `The schema "${ref.schema}" of the step "${id}" is not a JSON pointer.`,
      fix: `Write "#/definitions/${ref.schema}".`,
    });
  }
  const schema = answerSchema(loaded.graph.steps.get(id)!);
  if (schema === true) return;
  const names = fieldWords(schema, ["stepId"]);
  if (names !== null && names.includes(id)) return;
  const what =
    names === null
      ? "does not fix stepId, so it accepts answers for other steps"
      : `accepts only ${names.map((name) => `"${name}"`).join(", ")} as stepId, so it rejects every answer of this step`;
  tell({
    code: "COMPLETE-SCHEMA",
    ...(names === null && { severity: "warning" as const }),
    ...(names === null ? atSchema(loaded, id) : atName(loaded, id, "stepId", names)),
    message: `The schema of the step "${id}" ${what}.`,
    fix: `Add "stepId": { "const": "${id}" } to the properties of the schema.`,
  });
}
