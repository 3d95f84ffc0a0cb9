/**
 * The heart: a flow, a state and what happened give the next state, whose `pending` says what to do next, and the deeds
 * that led there. Pure. Starting, resuming, replaying and reporting are all folds of this one function.
 */
import type { Prepared } from "../schema/prepared.ts";
import type { Deed } from "../../flow/deed.ts";
import type { Event } from "../../flow/event.ts";
import { own } from "../../flow/json.ts";
import { follow, pendingAnswer } from "./advance.ts";
import { again, answered } from "./answering.ts";
import { checked } from "./checking.ts";
import { hooked } from "./hook.ts";
import { gateChecked } from "./opening.ts";
import { answeredBy, asked, cutOff, park, waiting } from "./people.ts";
import { attended, withDue } from "./due.ts";
import { EMPTY_STATE, withUsage, type State } from "./state.ts";
import { bounded, openBudget, reopened, tell } from "./spend.ts";
import { watched } from "./stuck.ts";
import {
  askAgain,
  attemptAgain,
  doNext,
  enter,
  find,
  haltAll,
  paused,
  phaseOf,
  suspend,
  withLanes,
  type Deciding,
} from "./visit.ts";

export type Decided = { readonly state: State; readonly deeds: readonly Deed[] };

export function decide(flow: Prepared, state: State, event: Event): Decided {
  const deeds: Deed[] = [];
  return { state: stateAfter(flow, state, event, deeds), deeds };
}

/** The state alone, for folds that nothing reads the deeds of: those cost nothing there. */
export function stateAfter(flow: Prepared, state: State, event: Event, deeds: Deed[] | null = null): State {
  if (state.acts === undefined && event.type !== "run.started" && event.type !== "run.adopted")
    return inside({ flow, deeds }, state, event);
  const before = attended(state);
  return withDue(flow, before, event, inside({ flow, deeds }, before, event));
}

/** Whatever is due outside. */
function inside(deciding: Deciding, state: State, event: Event): State {
  const { flow } = deciding;
  const after = next(deciding, state, event);
  if (after.lanes.length === 0 && after.verdict === null && after.halted.length > 0)
    return waiting(deciding, after);
  const most = flow.settings.watch?.repeats;
  return bounded(deciding, state, most === undefined ? after : watched(deciding, most, state, event, after));
}

function next(deciding: Deciding, state: State, event: Event): State {
  const { flow, deeds } = deciding;
  switch (event.type) {
    case "run.started": {
      const { run, args, input, spending = null } = event;
      const budget = openBudget(flow, spending, null);
      const begun: State = { ...EMPTY_STATE, run, args, input, ctx: args, budget };
      return enter(deciding, begun, { step: flow.entry, origin: null });
    }
    case "run.resumed": {
      // The end was decided but not recorded: it still holds.
      if (state.pending[0]?.type === "end" && state.verdict?.code !== "PAUSED")
        return { ...state, settled: null };
      const lanes = state.halted.length === 0 ? state.lanes : [...state.halted, ...state.lanes];
      const { spending } = event;
      const budget =
        spending === undefined ? reopened(state.budget) : openBudget(flow, spending, state.budget);
      const back = withLanes(
        { ...state, budget, verdict: null, halted: [] },
        lanes.map((lane) => attemptAgain(lane, event.waits)),
        null,
      );
      return state.verdict === null && event.fresh === undefined ? cutOff(deciding, back, state.lanes) : back;
    }
    case "step.answered":
      return answered(find(deciding, state, event), event.reply);
    case "step.called": {
      const here = find(deciding, state, event);
      const { step, visit, command } = here.lane;
      const { results } = event;
      const calls = command.type === "call" ? command.calls : [];
      deeds?.push({ kind: "called", step, visit, calls, results });
      return again(here, [{ kind: "results", results }]);
    }
    case "step.checked": {
      const here = find(deciding, state, event);
      return phaseOf(here.lane) === "gate" ? gateChecked(here, event.results) : checked(here, event.results);
    }
    case "step.waited": {
      const here = find(deciding, state, event);
      const { command } = here.lane;
      const next = command.type === "wait" ? command.next : undefined;
      return next === undefined ? askAgain(here.state, here.lane) : doNext(here, next);
    }
    case "step.looked": {
      const here = find(deciding, state, event);
      const { label, payload, notes } = pendingAnswer(here);
      return follow(here, label, payload, notes, event.sights);
    }
    case "step.hooked":
      return hooked(find(deciding, state, event), event.hook, event.result);
    case "step.told":
      return answeredBy(find(deciding, state, event), event.answer, event.by ?? "terminal");
    case "step.asked":
      return asked(find(deciding, state, event), event.question, event.ruled);
    case "step.suspended": {
      const here = find(deciding, state, event);
      return event.id === undefined ? suspend(here, event.code, event.why) : park(here);
    }
    case "run.paused":
      return paused(deciding, state);
    case "run.limited": {
      const { why, of, limit, spent } = event;
      const { budget } = state;
      const known = limit === undefined || budget === null ? budget : { ...budget, reached: limit };
      if (limit !== undefined) deeds?.push({ kind: "limited", reached: limit });
      const stopped = withUsage({ ...state, settled: null, budget: known }, spent);
      return haltAll(deciding, stopped, "BUDGET_EXHAUSTED", why, of);
    }
    case "step.cut":
      return { ...withUsage(state, event.usage), settled: null };
    case "step.warned": {
      const { step, visit, limit, text } = event;
      deeds?.push({ kind: "noted", step, visit, limit });
      return tell({ ...state, settled: null }, find(deciding, state, event).lane, limit, text);
    }
    case "run.adopted": {
      const budget = openBudget(flow, state.budget?.granted ?? null, state.budget);
      return { ...state, settled: null, budget };
    }
    case "run.left":
    case "run.yielded":
    case "run.stopped":
    case "effect.intended":
    case "effect.held":
    case "effect.applied":
    case "effect.failed":
      return state.settled === null ? state : { ...state, settled: null };
    case "run.edited":
      return { ...state, settled: null, handoff: merged(state.handoff, event.handoff) };
    case "run.ended":
      return { ...state, lanes: [], pending: [], settled: null, verdict: event.verdict };
    case "run.noted": {
      const { pending, verdict } = state;
      const isOver = pending.length === 0 && verdict !== null;
      return { ...state, settled: null, pending: isOver ? [{ type: "end", verdict }] : pending };
    }
  }
}

function merged(handoff: State["handoff"], edited: State["handoff"]): State["handoff"] {
  const changed = Object.entries(edited).map(([step, data]) => [step, { ...own(handoff, step), ...data }]);
  return { ...handoff, ...Object.fromEntries(changed) };
}
