/**
 * The words of run-time endings and refusals, in the terms of the written form that they are about. Those that begin with
 * [StepFlow] are fixed by that form, and what a model is told is composed again for recorded runs: both stay as they are.
 */
import type { StepId } from "../flow.ts";
import { isObject, own, type Json } from "../json.ts";
import { ended } from "./harmless.ts";

/** Why a run, or one visit of it, cannot go on. */
export type Ending = { readonly code: string; readonly why: string };

function ending(code: string, why: string): Ending {
  return { code, why };
}

export const messages = {
  noLabel: (iteration: number, step: StepId, field: string) =>
    `[StepFlow] No intent produced for iteration ${iteration} on step "${step}".\n` +
    `Flow steps must produce structured output with a valid intent.\n` +
    `Check that the step's schema includes ${field} and the LLM returns valid JSON.`,

  noRoute: (iteration: number) =>
    `[StepFlow] No routed step ID for iteration ${iteration}.\n` +
    `All Flow steps must define structuredGate with transitions.\n` +
    `Check steps_registry.json for missing gate configuration.`,

  unknownStep: (step: StepId) => `The flow leads to "${step}", but has no such step.`,

  badLabel: (step: StepId, field: string, found: string, allowed: readonly string[]) =>
    `Step "${step}" answered ${found} at ${field}; it may say ${allowed.join(", ")}. ` +
    `Allow the intent in structuredGate.allowedIntents, or set failFast to false with a fallbackIntent.`,

  fallbackTaken: (found: string, fallback: string) =>
    `[StepFlow][SpecViolation] ${found} is not an allowed intent; fallbackIntent "${fallback}" taken`,

  noObject: "the answer holds no JSON object",

  oversized: (step: StepId, why: string) =>
    `The answer of step "${step}" is beyond what is accepted: ${why}. Nothing of it was used.`,

  badJump: (step: StepId, found: string) =>
    `Step "${step}" wants to jump to ${found}, which is not a step it may jump to. ` +
    `Name an existing step at the gate's targetField, or declare transitions.jump.target.`,

  noCase: (step: StepId, key: string, found: string) =>
    `Step "${step}" branches on "${key}", but there is no target for ${found} and no default. ` +
    `Add it to the transition's targets, or add "default".`,

  tooLong: (said: string, ms: number) =>
    `${ended(said)} It asks to wait ${Math.ceil(ms / 60_000)} minutes, which is longer than a run waits. Resume it then.`,

  schemaUnresolved: (step: StepId, name: string, why: string) =>
    `The schema ${name} of step "${step}" could not be resolved twice in a row: ${why}`,

  maxIterations: (limit: number, step: StepId) =>
    `Maximum iterations (${limit}) reached without completion; the next step would have been "${step}". ` +
    `Look at the path for a loop, or raise verdict.config.maxIterations where the form has it.`,

  turnLimit: (step: StepId, limit: number) =>
    `Step "${step}" used all ${limit} model responses of one visit without an answer.`,

  closed: (step: StepId, reason: string) =>
    `Step "${step}" ended the run${reason === "" ? "" : `: ${reason}`}`,

  aborted: (step: StepId, reason: string) =>
    `Step "${step}" aborted the run${reason === "" ? "" : `: ${reason}`}`,

  failed: (step: StepId, reason: string | undefined) =>
    `Stage "${step}" failed: ${reason ?? "it did not pass"}`,

  checkAborts: (step: StepId, check: string, summary: string) =>
    `Check "${check}" of step "${step}" failed and may not be retried: ${summary}`,

  checksExhausted: (step: StepId, check: string, failures: number, summary: string) =>
    `Check "${check}" of step "${step}" failed; that was failure ${failures} of ${failures} allowed: ${summary}`,

  siblingFailed: (
    failed: StepId,
    { steps, done }: { readonly steps: readonly StepId[]; readonly done: readonly StepId[] },
    reason: string,
  ) => {
    const others = steps.filter((id) => id !== failed);
    const told = others.map((id) => `${id} (${done.includes(id) ? "done" : "stopped"})`);
    return `Step "${failed}" failed beside ${told.join(", ")}: ${reason}`;
  },
} as const;

/** Of visits with a lifecycle. */
export const lifecycleMessages = {
  gateSays: (step: StepId, outcome: string, reason: string) =>
    `The gate of stage "${step}" says ${outcome}${reason === "" ? "" : `: ${reason}`}`,

  gateQuestion: (why: string) => `${why}\nGo on with the stage all the same, skip it, or let the run fail?`,

  notDone: "The stage is not done yet.",

  lookAgain: "The stage is not done yet. Look at it again, mend what is missing, and complete it once more.",

  capped: (turns: number, tool: string) =>
    `The ${turns} responses of a try are used up, and ${tool} was not called. Complete the stage now.`,
} as const;

export const lifecycleEndings = {
  gate: (why: string) => ending("StageGateUnresolved", why),
  gateUnresolved: (step: StepId, why: string) =>
    ending("StageGateUnresolved", `The gate of stage "${step}" is not resolved: ${why}.`),
  context: (step: StepId, field: string) =>
    ending(
      "ContextMutationForbidden",
      `setup of stage "${step}" writes ctx.${field}, which belongs to the run. Use another name.`,
    ),
  hookThrew: (step: StepId, hook: string, code: string, message: string) =>
    ending(
      code === "ContextMutationForbidden" ? code : "LifecycleFailure",
      `The ${hook} hook of stage "${step}" failed: ${message}`,
    ),
  badHook: (step: StepId, hook: string, what: string) =>
    ending("LifecycleFailure", `The ${hook} hook of stage "${step}" gave something else: ${what}.`),
  badPlan: (step: StepId) =>
    ending(
      "LifecycleFailure",
      `next of stage "${step}" must give a stage id, "end", or { execution, nextStages, join }.`,
    ),
  unknownTarget: (step: StepId, target: string) =>
    ending("StageTargetUnknown", `next of stage "${step}" names "${target}", and there is no such stage.`),
  nestedFork: (step: StepId) =>
    ending(
      "StageDefinitionInvalid",
      `next of stage "${step}" leads on, but a stage that runs beside others may only end.`,
    ),
  danglingJoin: (step: StepId, join: string) =>
    ending(
      "StageJoinDangling",
      `next of stage "${step}" joins at "${join}", which is not among its nextStages. ` +
        `List "${join}" in nextStages, or set joinRule: declared in machine.yaml.`,
    ),
  fewSiblings: (step: StepId) =>
    ending(
      "InvalidParallelPlan",
      `next of stage "${step}" needs at least two different stages to run side by side.`,
    ),
  inputs: (step: StepId, index: number, given: Json, errors: readonly string[]) =>
    ending(
      "StageInputsInvalid",
      `ctx.upstream[${index}] of stage "${step}", from ${JSON.stringify(isObject(given) ? own(given, "stageId") : undefined)}, does not fit its inputsSchema: ${errors.join("; ")}`,
    ),
  unknownTool: (step: StepId, tool: string, names: Iterable<string>) =>
    ending(
      "StageToolUnknown",
      `Stage "${step}" allows the tool "${tool}", and there is no such tool. There are: ${[...names].join(", ")}.`,
    ),
  reservedTool: (step: StepId, tool: string) =>
    ending(
      "CompletionToolReserved",
      `Stage "${step}" calls its completion tool "${tool}", which is the name of a tool. Choose another name.`,
    ),
} as const;
