/** Steps through a flow by choices: the states that follow from them, and the key that distinguishes states. */
import { decide } from "../engine/decide/decide.ts";
import { EMPTY_STATE, type Lane, type State } from "../engine/decide/state.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import { cached } from "../flow/cached.ts";
import type { Event } from "../flow/event.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { Moment } from "../story/story.ts";
import { inputFor } from "./arguments.ts";
import { handedKey, unaskableIn } from "./asking.ts";
import { eventOf, type Happening } from "./choices.ts";

/** A way through the flow: what happens, one after the other, from the start of the run. */
export type Course = readonly Happening[];

/** A way with every moment of it; the first is the start of the run. `until`: it is long enough when this step begins. */
export type Walked = {
  readonly course: Course;
  readonly moments: readonly Moment[];
  readonly until?: StepId;
};

/** What the choice leads to; null: it does not belong to what is pending. */
export function taken(flow: Prepared, state: State, choice: Happening): Moment | null {
  const event = eventOf(flow, state, choice);
  return event === null ? null : step(flow, state, event);
}

/** The moment in which a run begins. */
export function firstMoment(flow: Prepared, args: JsonObject): Moment {
  return step(flow, EMPTY_STATE, started(flow, args));
}

function started(flow: Prepared, args: JsonObject): Event {
  const backend = { id: "scripted", options: null };
  return {
    type: "run.started",
    run: "run",
    agent: flow.agent,
    flow: "digest",
    args,
    input: inputFor(flow),
    cwd: "/",
    backend,
  };
}

/** null: the way does not fit the flow. */
export function walk(flow: Prepared, args: JsonObject, course: Course): Walked | null {
  const moments = [firstMoment(flow, args)];
  for (const choice of course) {
    const moment = taken(flow, moments.at(-1)!.after, choice);
    if (moment === null) return null;
    moments.push(moment);
  }
  return { course, moments };
}

function step(flow: Prepared, before: State, event: Event): Moment {
  const { state: after, deeds } = decide(flow, before, event);
  return { entry: { seq: 1, at: 0, event }, flow, before, after: forgetful(flow, after), deeds };
}

/**
 * Counts of visits grow with the flow, are copied in each visit, and change nothing that can happen: of a large flow only
 * those of the steps at work are kept. What one attempt may spend is told apart by them.
 */
function forgetful(flow: Prepared, state: State): State {
  if (!isLarge(flow) || state.lanes.length === Object.keys(state.visits).length) return state;
  const visits = Object.fromEntries(state.lanes.map(({ step: id, visit }) => [id, visit]));
  return { ...state, visits };
}

const isLarge = cached((flow: Flow): boolean => {
  const steps = Object.values(flow.steps);
  return steps.length > MANY_STEPS && steps.every(({ limits }) => limits?.perAttempt === undefined);
});

const MANY_STEPS = 50;

/**
 * What tells two states apart for what can happen next. Counts that outlive a visit, and words, are left out: with them
 * there would be hundreds of thousands of states in a flow of thirty steps.
 */
export function stateKey(flow: Prepared, state: State): string {
  if (state.verdict !== null) return `${state.pending.length} ${state.verdict.outcome} ${state.verdict.code}`;
  const lanes = state.lanes.map((lane) => laneKey(flow, state, lane)).join(";");
  const fork =
    state.fork === null
      ? ""
      : `${state.fork.steps.join(",")}>${state.fork.join}:${state.fork.done.join(",")}:${state.fork.failed?.step}`;
  // In its first visit a run may be forgiven what it is not later.
  const first = state.iterations === 1 ? "first" : "";
  const asked = unaskableIn(flow, state) === null ? handedKey(flow, state) : "unaskable";
  // Joined, not put together: of a text that was, all its parts stay in memory.
  return [lanes, fork, state.queue.join(","), state.failing, state.halted.length, first, asked].join("|");
}

function laneKey(flow: Prepared, state: State, lane: Lane): string {
  const { step: id, command, repairs, origin, strikes, answer, life, faults } = lane;
  const says = lane.say
    .map((say) => (say.kind === "failed-check" ? `x${say.result.pattern}` : say.kind))
    .join("+");
  const doing = `${command.type} ${detailOf(command)}`;
  const counted = flow.steps[id]?.edges;
  const taken = counted === undefined ? "" : JSON.stringify(state.taken[id] ?? "");
  const tries =
    life === null ? "" : `${life.phase}${life.tries.length}${life.deferred}${life.result?.verdict}`;
  return `${id} ${doing} ${says} ${repairs} ${strikes} ${faults} ${origin} ${answer?.label}${answer?.over === undefined ? "" : "!"} ${tries} ${taken}`;
}

function detailOf(command: Lane["command"]): string {
  if (command.type === "hook") return command.hook;
  if (command.type === "check") return command.checks.join("+");
  // Calls of one tool may be allowed by different rules.
  return command.type === "call" ? JSON.stringify(command.calls.map(({ name, input }) => [name, input])) : "";
}
