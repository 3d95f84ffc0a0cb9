/** The time that a run, its steps and their attempts take: an end to what takes longer than it may. */
import { laneIn } from "../../flow/deed.ts";
import type { Entry, Event, Usage } from "../../flow/event.ts";
import { cached } from "../../flow/cached.ts";
import type { Flow, StepId, StepLimits } from "../../flow/flow.ts";
import { perform } from "./perform.ts";
import { attemptOf, isTold, limitsOn, nearing, outOfTime, softly, type Scope } from "../decide/spend.ts";
import type { Lane, State } from "../decide/state.ts";

export type Stopwatch = {
  /** Hears of every entry, with the state it led to. */
  readonly note: (entry: Entry, after: State) => void;
  /** Like `perform`, but no longer than the limits allow; the model is told before that when they are near. */
  readonly perform: typeof perform;
};

/** What a step took; `since` is null while nothing is done for it. Between two stretches of a run nobody's time passes. */
type Spell = { ms: number; visit: number; index: number; inAttempt: number; since: number | null };

export function createStopwatch(): Stopwatch {
  const spells = new Map<StepId, Spell>();
  let whole = 0;
  let last: number | null = null;

  const note = ({ at, moved = 0, event }: Entry, { lanes }: State): void => {
    // Between two stretches nobody drove it, and setting a clock takes no time.
    const passed = last === null || event.type === "run.resumed" ? 0 : Math.max(0, at - last - moved);
    whole += passed;
    last = at;
    for (const spell of spells.values()) {
      if (spell.since !== null) {
        spell.ms += passed;
        spell.inAttempt += passed;
      }
      spell.since = null;
    }
    for (const lane of lanes) {
      const known = spells.get(lane.step);
      const { visit } = lane;
      const index = attemptOf(lane);
      const isSame = known?.visit === visit && known.index === index;
      const inAttempt = isSame ? known.inAttempt : 0;
      spells.set(lane.step, { ms: known?.ms ?? 0, visit, index, inAttempt, since: at });
    }
  };

  const used = ({ of, step }: Scope, now: number): number => {
    const spell = spells.get(step);
    const running = Math.max(0, now - (spell?.since ?? now));
    if (of === "run") return whole + Math.max(0, now - (last ?? now));
    return (of === "step" ? (spell?.ms ?? 0) : (spell?.inAttempt ?? 0)) + running;
  };

  /** The limit that will be reached first, of those that are not the run's: that one is watched over by the loop. */
  const deadline = (state: State, step: StepId, now: number) => {
    const scopes = state.budget === null ? [] : limitsOn(state.budget, step);
    const due = scopes.flatMap((scope) => {
      const most = scope.limits.wallMs;
      if (most === undefined || scope.of === "run") return [];
      return [{ left: most - used(scope, now), event: outOfTime(scope, most) }];
    });
    return due.toSorted((a, b) => a.left - b.left)[0];
  };

  const warning = (state: State, lane: Lane, now: number): (Event & { type: "step.warned" }) | null => {
    const { budget } = state;
    if (budget === null) return null;
    for (const scope of limitsOn(budget, lane.step)) {
      const most = scope.limits.wallMs;
      const limit = `${scope.of}.wallMs` as const;
      if (most === undefined || isTold(budget, lane, limit)) continue;
      const ms = used(scope, now);
      if (ms === 0 || ms < softly(scope.limits, "wallMs")) continue;
      const text = nearing(scope, "wallMs", ms, most);
      return { type: "step.warned", step: lane.step, visit: lane.visit, limit, text };
    }
    return null;
  };

  const timed: typeof perform = async (flow, state, command, ports, talk, signal) => {
    const now = ports.clock.now();
    const due = deadline(state, command.step, now);
    if (due !== undefined && due.left <= 0) return due.event;
    const lane = laneIn(state, command);
    const warned = command.type === "ask" && lane !== undefined ? warning(state, lane, now) : null;
    if (warned !== null) return warned;
    if (due === undefined) return await perform(flow, state, command, ports, talk, signal);
    const late = new AbortController();
    const over = new AbortController();
    const { sleep, alarm = sleep } = ports.clock;
    void alarm(due.left, over.signal).then(() => late.abort());
    try {
      const both = AbortSignal.any([signal, late.signal]);
      const event = await perform(flow, state, command, ports, talk, both);
      const isLate = late.signal.aborted && !signal.aborted && !isWhole(event);
      if (!isLate) return event;
      const spent = spentBy(event);
      return spent === undefined ? due.event : { ...due.event, spent };
    } finally {
      over.abort();
    }
  };

  return { note, perform: timed };
}

/** Whether the time of a step, or of an attempt in it, is limited by the flow. */
export const hasTimedSteps = cached((flow: Flow) =>
  Object.values(flow.steps).some(({ limits }) => isTimedStep(limits)),
);

export function isTimedStep(limits: StepLimits | undefined): boolean {
  return limits?.wallMs !== undefined || limits?.perAttempt?.wallMs !== undefined;
}

/** Whether an event that came in after the stop signal is a true result, and not the stopping itself: a command that was
 * stopped has failed for no reason of its own, so what it gave is not recorded. */
export function isWhole(event: Event): boolean {
  return event.type === "step.answered" && event.reply.kind === "said";
}

/** What a query had cost that came to nothing. */
export function spentBy(event: Event): Usage | undefined {
  return event.type === "step.answered" && event.reply.kind === "fault" ? event.reply.fault.usage : undefined;
}
