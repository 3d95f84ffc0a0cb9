/** The time that a run, its steps and their attempts take: an end to what takes longer than it may. */
import { flowFrom } from "../../flow/adopted.ts";
import { cached } from "../../flow/cached.ts";
import { laneIn } from "../../flow/deed.ts";
import type { Entry, Event, Usage } from "../../flow/event.ts";
import type { Flow, Granted, StepId, StepLimits } from "../../flow/flow.ts";
import {
  attemptOf,
  isTold,
  limitsOn,
  nearing,
  outOfTime,
  softly,
  type Scope,
  type TimeUp,
} from "../decide/spend.ts";
import type { Lane, State } from "../decide/state.ts";
import type { Drive } from "./drive.ts";
import { perform } from "./perform.ts";
import { drivenMs } from "./stamp.ts";

export type Stopwatch = {
  /** Hears of every entry, with the state it led to. */
  readonly note: (entry: Entry, after: State) => void;
  /** How long the run was driven up to the newest entry. */
  readonly drivenMs: () => number;
  /** Like `perform`, but no longer than the limits allow; the model is told before that when they are near. */
  readonly perform: typeof perform;
};

/** What a step took; `since` is null while nothing is done for it. Between two stretches of a run nobody's time passes. */
type Spell = { ms: number; visit: number; index: number; inAttempt: number; since: number | null };

export function createStopwatch(): Stopwatch {
  const spells = new Map<StepId, Spell>();
  /** Those that something is done for. */
  let running: Spell[] = [];
  let whole = 0;
  let last: number | null = null;

  /** This is done for every entry of a run that goes on. */
  const note = ({ at, moved = 0, event }: Entry, { lanes }: State): void => {
    // Between two stretches nobody drove it, and setting a clock takes no time.
    const passed = last === null || event.type === "run.resumed" ? 0 : Math.max(0, at - last - moved);
    whole += passed;
    last = at;
    for (const spell of running) {
      spell.ms += passed;
      spell.inAttempt += passed;
      spell.since = null;
    }
    running = [];
    for (const lane of lanes) {
      const { step, visit } = lane;
      const index = attemptOf(lane);
      let spell = spells.get(step);
      if (spell === undefined) {
        spell = { ms: 0, visit, index, inAttempt: 0, since: null };
        spells.set(step, spell);
      }
      if (spell.visit !== visit || spell.index !== index) {
        spell.visit = visit;
        spell.index = index;
        spell.inAttempt = 0;
      }
      if (spell.since === null) running.push(spell);
      spell.since = at;
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

  return { note, drivenMs: () => whole, perform: timed };
}

type Timed = Pick<Drive, "flow" | "adopted" | "past" | "folded" | "begin">;

/** null: nothing limits the time of the run, nor that of its steps. */
export function stopwatchOf(options: Timed): Stopwatch | null {
  const { flow, adopted = {} } = options;
  const { wallMs, steps } = grantedIn(options) ?? currentLimits(options);
  const isTimed =
    wallMs !== undefined ||
    (steps !== undefined && Object.values(steps).some(isTimedStep)) ||
    hasTimedSteps(flow) ||
    Object.values(adopted).some(hasTimedSteps);
  return isTimed ? (options.folded?.watch ?? createStopwatch()) : null;
}

const hasTimedSteps = cached((flow: Flow) =>
  Object.values(flow.steps).some(({ limits }) => isTimedStep(limits)),
);

function isTimedStep(limits: StepLimits | undefined): boolean {
  return limits?.wallMs !== undefined || limits?.perAttempt?.wallMs !== undefined;
}

/** What was granted to the run, if that was said when it was started or resumed. */
function grantedIn({ past, folded, begin }: Timed): Granted | undefined {
  const first = "type" in begin ? begin : begin.event;
  if ("spending" in first) return first.spending;
  const given = past.findLast(({ event }) => "spending" in event)?.event;
  return given !== undefined && "spending" in given ? given.spending : folded?.granted;
}

/** Of the flow that the run has adopted last. */
function currentLimits({ flow, past, folded, adopted = {} }: Timed): Granted {
  if (Object.keys(adopted).length === 0) return flow.limits;
  return past.reduce((held, { event }) => flowFrom(held, event, adopted), folded?.flow ?? flow).limits;
}

/** The time that is left of what the run may be driven, and the event that ends it then; null: there is no limit. */
export function wallOf(options: Timed): { readonly left: number; readonly event: TimeUp } | null {
  const { past, folded } = options;
  const { wallMs } = grantedIn(options) ?? currentLimits(options);
  if (wallMs === undefined) return null;
  const spent = (folded?.watch.drivenMs() ?? 0) + drivenMs(past, folded?.last);
  return { left: wallMs - spent, event: outOfTime({ of: "run", step: "" }, wallMs) };
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
