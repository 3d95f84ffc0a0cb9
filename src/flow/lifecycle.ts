/** A visit whose step declares a lifecycle, as the project's code and templates see it: context, host, result and plan. */
import type { AtVisit } from "./deed.ts";
import type { Lifecycle, Step, StepId } from "./flow.ts";
import { isObject, own, type Json, type JsonObject } from "./json.ts";

/** Absent: the step is asked at once, and its label is its only result. */
export function lifecycleOf({ stage }: Pick<Step, "stage">): Lifecycle | undefined {
  return stage;
}

export type Try = {
  readonly index: number;
  readonly turns: number;
  readonly capHit: boolean;
  readonly parseError?: string;
  readonly verdict?: string;
  readonly reason?: string;
};

/** All that such a visit leaves behind. */
export type VisitResult = {
  readonly stageId: StepId;
  readonly stageExecutionId: string;
  readonly verdict: "ok" | "skip" | "fail";
  readonly reason?: string;
  readonly parsed?: JsonObject;
  readonly capHit: boolean;
  readonly attemptCount: number;
  readonly output?: Json;
};

export function executionId(run: string, { step, visit }: AtVisit): string {
  return `${run}/${step}/${visit}`;
}

export function visitResult(
  run: string,
  at: AtVisit,
  result: Omit<VisitResult, "stageId" | "stageExecutionId">,
): VisitResult {
  return { stageId: at.step, stageExecutionId: executionId(run, at), ...result };
}

/** The context as templates and hooks see it. */
export function contextOf(
  run: string,
  { step, visit, life }: AtVisit & { readonly life: Lived },
): JsonObject {
  return {
    ...life.ctx,
    upstream: life.upstream,
    attempts: life.tries,
    workflowRunId: run,
    stageExecutionId: executionId(run, { step, visit }),
  };
}

type Lived = {
  readonly ctx: JsonObject;
  readonly upstream: readonly JsonObject[];
  readonly tries: readonly Try[];
};

/** What the project's code is given about the run around it. */
export function hookHost(run: string, at: AtVisit, cwd: string): JsonObject {
  return { cwd, workflowRunId: run, stageExecutionId: executionId(run, at), stage: at.step };
}

/** Where a `next` hook leads: a step id, "end", or `{ execution, nextStages, join, policy }`. */
export type NextPlan = {
  readonly steps: readonly StepId[];
  readonly join: StepId | null;
  readonly isParallel: boolean;
  readonly isIndependent: boolean;
};

/** null: it is none of these. */
export function readNextPlan(value: Json): NextPlan | null {
  const member = (name: string) => (isObject(value) ? own(value, name) : undefined);
  const ids = typeof value === "string" ? [value] : isObject(value) ? (member("nextStages") ?? []) : null;
  if (!Array.isArray(ids) || !ids.every((id): id is string => typeof id === "string")) return null;
  const join = member("join");
  return {
    steps: value === "end" ? [] : ids,
    join: typeof join === "string" ? join : null,
    isParallel: member("execution") === "parallel",
    isIndependent: member("policy") === "independent",
  };
}
