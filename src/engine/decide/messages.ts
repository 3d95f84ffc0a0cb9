/** The words of run-time endings. Those that begin with [StepFlow] are fixed by the written form and stay as they are. */
import type { StepId } from "../../flow/flow.ts";
import { ended } from "../../flow/text/harmless.ts";

export const messages = {
  noIntent: (iteration: number, step: StepId, field: string) =>
    `[StepFlow] No intent produced for iteration ${iteration} on step "${step}".\n` +
    `Flow steps must produce structured output with a valid intent.\n` +
    `Check that the step's schema includes ${field} and the LLM returns valid JSON.`,

  noRoute: (iteration: number) =>
    `[StepFlow] No routed step ID for iteration ${iteration}.\n` +
    `All Flow steps must define structuredGate with transitions.\n` +
    `Check steps_registry.json for missing gate configuration.`,

  unknownStep: (step: StepId) => `The flow leads to "${step}", but has no such step.`,

  badIntent: (step: StepId, field: string, found: string, allowed: readonly string[]) =>
    `Step "${step}" answered ${found} at ${field}; it may say ${allowed.join(", ")}. ` +
    `Allow the intent in structuredGate.allowedIntents, or set failFast to false with a fallbackIntent.`,

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
    reason === "" ? `Step "${step}" ended the run` : `Step "${step}" ended the run: ${reason}`,

  aborted: (step: StepId, reason: string) =>
    reason === "" ? `Step "${step}" aborted the run` : `Step "${step}" aborted the run: ${reason}`,

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

  stageFailed: (stage: StepId, reason: string) => `Stage "${stage}" failed: ${reason}`,
} as const;
