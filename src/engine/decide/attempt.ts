/** What a visit knows of its attempts, and how the project's code is asked about them. */
import type { Deed, Phase } from "../../flow/deed.ts";
import type { HookName } from "../../flow/event.ts";
import type { StepCommand } from "../../flow/command.ts";
import type { Lifecycle } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { contextOf, lifecycleOf, type Try } from "../../flow/lifecycle.ts";
import type { Lane, Life, State } from "./state.ts";
import { doNext, phaseDeed, phaseOf, type Here } from "./visit.ts";

export function lifeOf({ step, lane }: Pick<Here, "step" | "lane">): {
  readonly life: Life;
  readonly rules: Lifecycle;
} {
  const rules = lifecycleOf(step);
  if (rules === undefined || lane.life === null) throw new Error(`Step "${step.id}" has no attempts`);
  return { life: lane.life, rules };
}

/** The context as templates and hooks see it; absent: the step declares no lifecycle. */
export function laneContext(
  { run }: Pick<State, "run">,
  { step, visit, life }: Lane,
): JsonObject | undefined {
  return life === null ? undefined : contextOf(run, { step, visit, life });
}

/** In the given phase of its life, with what else changes of it. */
export function inPhase(here: Here, phase: Phase, change?: Partial<Life>): Here {
  const { lane, deeds } = here;
  const before = lifeOf(here).life;
  if (change === undefined && before.phase === phase) return here;
  const now: Lane = { ...lane, life: { ...before, ...change, phase } };
  if (deeds !== null && phaseOf(lane) !== phase) deeds.push(phaseDeed(now, phase, phaseOf(lane)));
  return { ...here, lane: now };
}

/** Asks the project's code; where there is none at all, `otherwise` holds at once. */
export function runHook(here: Here, hook: HookName, otherwise: (here: Here) => State): State {
  return here.flow.hooks === undefined ? otherwise(here) : doNext(here, hookCommand(here, hook));
}

/** The context, and what the hook is to judge. */
export function hookCommand(here: Here, hook: HookName): StepCommand {
  const { step, visit, answer } = here.lane;
  const { life } = lifeOf(here);
  const ctx = contextOf(here.state.run, { step, visit, life });
  const acted = answer === null || answer.label === "cap" ? {} : { parsed: answer.payload };
  const act: JsonObject = { ...acted, capHit: answer?.label === "cap", attempts: life.tries };
  const input: JsonObject =
    hook === "assert" ? { ctx, act } : life.result === null ? { ctx } : { ctx, result: life.result };
  return { type: "hook", step, visit, attempt: 1, hook, input };
}

/** The outcome of the current attempt. */
export function judged(
  { deeds, lane: { step, visit, life } }: Here,
  verdict: (Deed & { kind: "judged" })["verdict"],
  reason: string,
  capHit: boolean,
): void {
  const attempt = life?.tries.length ?? 1;
  deeds?.push({ kind: "judged", step, visit, attempt, verdict, reason, capHit });
}

export function lastTry({ tries }: Life, more: Partial<Try>): readonly Try[] {
  return [...tries.slice(0, -1), { ...tries.at(-1)!, ...more }];
}

/** The next command, after the pause that comes before the attempt with this number. */
export function afterPause(here: Here, nth: number, next: StepCommand): State {
  const ms = pauseBefore(lifeOf(here).rules.backoff, nth);
  const { step, visit } = here.lane;
  return doNext(here, ms === 0 ? next : { type: "wait", step, visit, attempt: 1, ms, next });
}

/** Without chance in it, so that a run replays as it was. */
function pauseBefore(backoff: Lifecycle["backoff"], nth: number): number {
  if (backoff === "none") return 0;
  const ms = backoff === "linear" ? BASE_PAUSE_MS * nth : BASE_PAUSE_MS * 2 ** (nth - 1);
  return Math.min(ms, LONGEST_PAUSE_MS);
}

const BASE_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** `"ok"`, or `{ verdict: "retry", reason }`. */
export function readVerdict(value: Json): { readonly outcome: string; readonly reason: string } {
  const member = (name: string) => (isObject(value) ? own(value, name) : undefined);
  const text = (said: Json | undefined) => (typeof said === "string" ? said : "");
  return {
    outcome: text(isObject(value) ? (member("verdict") ?? member("outcome")) : value),
    reason: text(member("reason")),
  };
}
