/** Rules about values that are handed on, and about switches that decide by them: the schema names what they read. */
import type { Move, Step, StepId } from "../../flow/flow.ts";
import { isObject, parseDotPath, type Json, type JsonSchema, type Path } from "../../flow/json.ts";
import { fieldWords } from "../../flow/json-schema.ts";
import { isNamed, promiseOf, valuesAt } from "../registry/promises.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { listValues } from "../text/shape.ts";
import type { GateSource } from "../registry/registry-shape.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";
import {
  answerSchema,
  atPart,
  atSchema,
  atStep,
  witness,
  written,
  type At,
  type LoadedFlow,
  type Registered,
} from "./loaded.ts";
import { neverTaken } from "./routes.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { all: [checkSwitches], gated: [checkHandoff], stage: [checkOutput] };

export const codes = {
  "HANDOFF-FIELD": warning(
    "handoff field not in the schema",
    "A field that the schema does not name has no value to hand on.",
  ),
  "GATE-FIELD": warning("field not in the schema", "The model only fills in fields that the schema names."),
  "FLOW-JUMP-TARGET": error(
    "jump to an unknown step",
    "Every step that the schema lets the model name must exist in the flow.",
  ),
  "TRANS-DEFAULT": warning("no default", "Without a default, an unexpected value ends the run."),
} satisfies Codes;

function checkSwitches(loaded: LoadedFlow, tell: Tell): void {
  for (const step of loaded.steps.values()) {
    for (const label of Object.keys(step.edges)) {
      const move = step.edges[label]!;
      // A stage that is skipped goes on where one that is done does.
      const isRepeated = label === "skip" && move === step.edges.ok;
      if (move.kind === "switch" && !isRepeated) checkSwitch(loaded, step, label, move, tell);
    }
  }
}

function checkSwitch(
  loaded: LoadedFlow,
  step: Step,
  label: string,
  move: Extract<Move, { kind: "switch" }>,
  tell: Tell,
): void {
  const { words } = loaded;
  const isStage = words.step === "stage";
  const name = isStage ? "next" : label;
  const place = (...part: Path) => atPart(loaded, "steps", step.id, "edges", label, ...part);
  const { path, schema } = readBy(step, move.on, isStage);
  const promised = path === null ? "unknown" : promiseOf(schema, path);
  if (isStage && (promised === "never" || promised === "unnamed")) {
    tell({
      code: "GATE-FIELD",
      ...place("on"),
      message: `The stage "${step.id}" switches on "${move.on.join(".")}", which its completionSchema does not name.`,
      fix: `Add "${path!.join(".")}" to completionSchema, or correct the path.`,
    });
  }
  const values = path === null ? null : valuesAt(schema, path);
  const said = written(loaded, "steps", step.id, "edges", label, "cases");
  const cases = isObject(said) ? said : {};
  const isCovered =
    promised === "sure" && values?.every((value) => Object.hasOwn(move.cases, value)) === true;
  if (!Object.hasOwn(cases, "default") && !(isStage && isCovered)) {
    tell({
      code: "TRANS-DEFAULT",
      ...place("cases"),
      message: `"${name}" of the ${words.step} "${step.id}" has no default: any other value, or a missing one, ends the run.`,
      fix: `Add "default" with the id of a ${words.step}${isStage ? ", or end" : ""}.`,
    });
  }
  for (const value of Object.keys(cases)) {
    if (value === "default" || values === null || values.includes(value)) continue;
    const here = place("cases", value);
    const near = onlyNear(value, values);
    const message = `The case "${value}" of "${name}" in the ${words.step} "${step.id}" is never taken: the schema allows ${values.join(", ")} in "${path!.join(".")}".${didYouMean(value, values)}`;
    tell({
      ...neverTaken(here, message, "Correct the value, or remove the case."),
      ...(near !== null &&
        !Object.hasOwn(cases, near) && {
          mend: [{ file: here.document.file, pointer: here.pointer, kind: "rename" as const, to: near }],
        }),
    });
  }
}

/** Where in the answer the value of a switch is; a step reads what it hands on, a stage its own result. */
function readBy(
  step: Step,
  on: Path,
  isStage: boolean,
): { readonly path: Path | null; readonly schema: Json } {
  const [root = "", ...field] = on;
  if (isStage) return { path: field, schema: root === "parsed" ? answerSchema(step) : true };
  return { path: step.carry.find(({ key }) => key === root)?.path ?? null, schema: answerSchema(step) };
}

function checkHandoff(loaded: Registered, tell: Tell): void {
  for (const step of loaded.steps.values()) {
    const { id } = step;
    const fields = loaded.sources.registry.steps.get(id)?.structuredGate?.handoffFields ?? [];
    const schema = answerSchema(step);
    for (let index = 0; index < fields.length; index += 1) {
      const field = fields[index]!;
      if (schema === true || isNamed(schema, parseDotPath(field))) continue;
      const owner = `handoffFields of the step "${id}"`;
      tell(notNamed(atPart(loaded, "steps", id, "carry", String(index)), field, owner, "its schema"));
    }
  }
}

function checkOutput(machine: Machine, tell: Tell): void {
  for (const [id, step] of machine.steps) {
    const schema = answerSchema(step);
    for (const { key, path } of step.stage?.output ?? []) {
      if (schema === true || isNamed(schema, path.slice(1))) continue;
      const owner = `output of the stage "${id}"`;
      tell(
        notNamed(atPart(machine, "steps", id, "carry", key), path.join("."), owner, "its completionSchema"),
      );
    }
  }
}

function notNamed(place: At, field: string, owner: string, schema: string): Finding {
  return {
    code: "HANDOFF-FIELD",
    ...place,
    message: `"${field}" in ${owner} is not in ${schema}.`,
    fix: `Add "${field.replace(/^parsed\./, "")}" to ${schema.replace("its ", "the ")}, or correct the path.`,
  };
}

/** What a gate reads. */
export function checkFields(
  loaded: Registered,
  id: StepId,
  gate: GateSource,
  schema: JsonSchema,
  tell: Tell,
): void {
  const checkNamed = (key: string, field: string | undefined) => {
    if (field === undefined || isNamed(schema, parseDotPath(field))) return;
    tell({
      code: "GATE-FIELD",
      ...atStep(loaded, id, "structuredGate", key),
      message: `${key} "${field}" of the step "${id}" is not in its schema.`,
      fix: `Add "${field}" to the schema, or correct ${key}.`,
    });
  };
  checkNamed("intentField", gate.intentField);
  const target = gate.allowedIntents?.includes("jump") ? gate.targetField : undefined;
  if (target === undefined) return;
  checkNamed("targetField", target);
  const { flow } = loaded.graph;
  const named = fieldWords(schema, parseDotPath(target));
  const strangers = (named ?? []).filter((word) => !flow.kinds.has(word));
  if (strangers.length > 0) {
    tell({
      code: "FLOW-JUMP-TARGET",
      ...atSchema(loaded, id, ...parseDotPath(gate.targetField!).flatMap((name) => ["properties", name])),
      message: `The schema of the step "${id}" lets the model jump to ${listValues(strangers)}, but there is no such step.${didYouMean(strangers[0]!, flow.ids)}`,
      fix: `Remove ${listValues(strangers)} from the enum of "${gate.targetField}", or add the step.`,
      witness: witness(loaded, id, strangers[0]!),
    });
  }
}
