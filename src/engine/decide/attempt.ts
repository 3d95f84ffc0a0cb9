/** What a visit knows of its attempts, and how the project's code is asked about them. */
import type { AtVisit, Deed, Phase } from "../../flow/deed.ts";
import type { StepCommand, HookName } from "../../flow/event.ts";
import type { Step } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import type { Lane, StageLane, State, Try } from "./state.ts";
import { doNext, phaseDeed, phaseOf, type Here } from "./visit.ts";

/** The context as templates and hooks see it. */
export function contextOf(state: State, lane: Lane): JsonObject {
  const stage = stageOf(lane);
  return {
    ...stage.ctx,
    upstream: stage.upstream,
    attempts: stage.tries,
    workflowRunId: state.run,
    stageExecutionId: executionId(state, lane),
  };
}

export function executionId({ run }: Pick<State, "run">, { step, visit }: AtVisit): string {
  return `${run}/${step}/${visit}`;
}

export function at({ step, lane }: Here): {
  readonly stage: StageLane;
  readonly rules: NonNullable<Step["stage"]>;
} {
  if (step.stage === undefined) throw new Error(`Step "${step.id}" is not a stage`);
  return { stage: stageOf(lane), rules: step.stage };
}

function stageOf(lane: Lane): StageLane {
  if (lane.stage === null) throw new Error(`Step "${lane.step}" is not a stage`);
  return lane.stage;
}

/** In the given phase of its life, with what else changes of it. */
export function inPhase(here: Here, phase: Phase, change?: Partial<StageLane>): Here {
  const { lane, deeds } = here;
  const before = at(here).stage;
  if (change === undefined && before.phase === phase) return here;
  const stage: StageLane = { ...before, ...change, phase };
  const now: Lane = { ...lane, stage };
  if (deeds !== null && phaseOf(lane) !== phase) deeds.push(phaseDeed(now, phase, phaseOf(lane)));
  return { ...here, lane: now };
}

/** Asks the project's code; where there is none at all, `otherwise` holds at once. */
export function runHook(here: Here, hook: HookName, otherwise: (here: Here) => State): State {
  return here.flow.hooks === undefined ? otherwise(here) : doNext(here, hookCommand(here, hook));
}

/** The context, and what the hook is to judge. */
export function hookCommand(here: Here, hook: HookName): StepCommand {
  const { state, lane } = here;
  const { stage } = at(here);
  const { step, visit, answer } = lane;
  const ctx = contextOf(state, lane);
  const acted = answer === null ? {} : { ...(answer.label !== "cap" && { parsed: answer.payload }) };
  const act: JsonObject = { ...acted, capHit: answer?.label === "cap", attempts: own(ctx, "attempts") ?? [] };
  const input: JsonObject =
    hook === "assert" ? { ctx, act } : stage.result === null ? { ctx } : { ctx, result: stage.result };
  return { type: "hook", step, visit, attempt: 1, hook, input };
}

/** The outcome of the current attempt. */
export function judged(
  { deeds, lane: { step, visit, stage } }: Here,
  verdict: (Deed & { kind: "judged" })["verdict"],
  reason: string,
  capHit: boolean,
): void {
  const attempt = stage?.tries.length ?? 1;
  deeds?.push({ kind: "judged", step, visit, attempt, verdict, reason, capHit });
}

export function lastTry({ tries }: StageLane, more: Partial<Try>): readonly Try[] {
  return [...tries.slice(0, -1), { ...tries.at(-1)!, ...more }];
}

/** The next command, after the pause that comes before the attempt with this number. */
export function afterPause(here: Here, nth: number, next: StepCommand): State {
  const ms = pauseBefore(at(here).rules.backoff, nth);
  const { step, visit } = here.lane;
  return doNext(here, ms === 0 ? next : { type: "wait", step, visit, attempt: 1, ms, next });
}

/** Without chance in it, so that a run replays as it was. */
function pauseBefore(backoff: "none" | "linear" | "exponential", nth: number): number {
  if (backoff === "none") return 0;
  const ms = backoff === "linear" ? BASE_PAUSE_MS * nth : BASE_PAUSE_MS * 2 ** (nth - 1);
  return Math.min(ms, LONGEST_PAUSE_MS);
}

const BASE_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** `"ok"`, or `{ verdict: "retry", reason }`. */
export function readVerdict(value: Json): { readonly outcome: string; readonly reason: string } {
  const member = (name: string) => (isObject(value) ? own(value, name) : undefined);
  const outcome = typeof value === "string" ? value : (member("verdict") ?? member("outcome"));
  const reason = member("reason");
  return {
    outcome: typeof outcome === "string" ? outcome : "",
    reason: typeof reason === "string" ? reason : "",
  };
}
