/** What comes after a settled visit: its edge is taken, the run is over by its stop rule, or siblings set out and meet again. */
import type { PlainMove, StopFacts } from "../../flow/deed.ts";
import type { Sight } from "../../flow/event.ts";
import type { Guard, Label, Step, StepId } from "../../flow/flow.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { messages } from "../../flow/text/endings.ts";
import { route } from "./route.ts";
import { standing } from "./stop.ts";
import type { Lane, State } from "./state.ts";
import { doNext, end, enter, fail, leave, led, withLanes, type Here } from "./visit.ts";

export function runChecks(here: Here, guard: Guard): State {
  const { step, visit } = here.lane;
  const checks = guard.checks.map(({ check }) => check);
  here.deeds?.push({ kind: "checking", step, visit, checks });
  return doNext(here, { type: "check", step, visit, attempt: 1, checks });
}

/** The label stands: its edge is taken, unless that leads on and the stop rule says that the run is over. */
export function follow(
  here: Here,
  label: Label,
  payload: JsonObject,
  notes: readonly string[],
  sights: readonly Sight[] | null = null,
): State {
  const { state, step, deeds } = here;
  const counted = own(step.edges, label)?.kind === "times" ? takenSoFar(state, step, label) : null;
  const carried = own(state.handoff, step.id) ?? {};
  const routed = route(step, label, payload, carried, state.iterations, counted?.times ?? 0);
  const facts: StopFacts | null =
    routed.kind === "move" && routed.move.kind !== "end" && mayStop(here)
      ? { state, said: here.lane.said, payload, sights }
      : null;
  if (deeds !== null) {
    const [move, why] = routed.kind === "move" ? [routed.move, null] : [null, routed.why];
    const { choices } = routed;
    deeds.push({
      kind: "followed",
      step: step.id,
      visit: here.lane.visit,
      label,
      choices,
      move,
      why,
      stop: facts,
    });
  }
  if (routed.kind === "none") return fail(here, "FAILED_STEP_ROUTING", routed.why, { label, notes });
  if (facts !== null) {
    const stands = standing(here.flow, facts);
    if (stands.kind !== "going") {
      const waiting: Here = { ...here, lane: { ...here.lane, answer: { label, payload, notes } } };
      return stands.kind === "look" ? lookOutside(waiting) : stop(waiting, stands.why);
    }
  }
  if (counted === null || !routed.counted) return move(here, label, routed.move, notes);
  const { owner, edge, edges, times } = counted;
  const taken = { ...state.taken, [owner]: { ...edges, [edge]: times + 1 } };
  return move({ ...here, state: { ...state, taken } }, label, routed.move, notes);
}

/** An edge that is taken whatever the stop rule says. */
export function edgeTaken({ deeds, lane: { step, visit } }: Here, label: Label, move: PlainMove): void {
  deeds?.push({ kind: "followed", step, visit, label, choices: [], move, why: null, stop: null });
}

/** While something is being fixed, a stop rule without checks of its own cannot know that it is fixed. */
export function mayStop({ flow, state, step }: Pick<Here, "flow" | "state" | "step">): boolean {
  if (flow.stop.kind === "end" || step.aside !== undefined || state.fork !== null) return false;
  return !state.failing || flow.stopGuard !== undefined;
}

function lookOutside(here: Here): State {
  const { step, visit } = here.lane;
  return doNext(here, { type: "look", step, visit, attempt: 1 });
}

/** The run is over, once the checks that go with the stop rule have passed. */
function stop(here: Here, why: string): State {
  const { flow, state, lane, step } = here;
  const { label, notes, payload } = pendingAnswer(here);
  if (flow.stopGuard === undefined)
    return end(here, state, led(here, label, null, notes), null, why, step.id);
  return runChecks(
    { ...here, lane: { ...lane, answer: { label, payload, notes, over: why } } },
    flow.stopGuard,
  );
}

export function takenSoFar({ taken }: Pick<State, "taken">, step: Step, label: Label) {
  const owner = step.aside ?? step.id;
  const edge = `${step.id}:${label}`;
  const edges = own(taken, owner) ?? {};
  return { owner, edge, edges, times: own(edges, edge) ?? 0 };
}

export function move(here: Here, label: Label | null, to: PlainMove, notes: readonly string[]): State {
  const { state, lane, step } = here;
  switch (to.kind) {
    case "goto":
      return goTo(here, label, to, notes);
    case "fork": {
      const { steps, join: at } = to;
      const opened: State = {
        ...leave(here, state, lane, { ...led(here, label, to.join, notes), fork: to.steps }),
        fork: { ...to, done: [], from: { step: step.id, visit: lane.visit } },
      };
      here.deeds?.push({ kind: "forked", step: step.id, visit: lane.visit, steps, join: at });
      return steps.reduce(
        (all, id) =>
          all.verdict === null ? enter(here, all, { step: id, origin: step.id, upstream: [] }) : all,
        opened,
      );
    }
    case "end": {
      const told = to.as ?? label;
      const said = state.last?.reason ?? "";
      if (to.outcome === "failed") {
        const why =
          to.reason ??
          (lane.life === null
            ? messages.aborted(step.id, said)
            : messages.failed(step.id, lane.life.result?.reason));
        return fail(here, to.code, why, { label: told, notes });
      }
      if (state.fork !== null) return join(here, told, notes);
      const [queued, ...queue] = state.queue;
      if (queued !== undefined)
        return goTo({ ...here, state: { ...state, queue } }, label, { kind: "goto", step: queued }, notes);
      const owner = step.aside ?? step.id;
      return end(here, state, led(here, told, null, notes), null, messages.closed(owner, said), owner);
    }
  }
}

/** To a question about this step the visit is not over; from one, it is, and what was found is told as its decision. */
function goTo(
  here: Here,
  label: Label | null,
  to: PlainMove & { kind: "goto" },
  notes: readonly string[],
): State {
  const { flow, state, lane, step } = here;
  const owner = step.aside ?? step.id;
  if (own(flow.steps, to.step)?.aside === owner) {
    return enter(here, state, { step: to.step, origin: lane.origin, leaving: lane, settled: null });
  }
  const settled = led(here, to.as ?? label, to.step, notes);
  if (to.step === owner) {
    const again = { step: to.step, origin: lane.origin, upstream: [owner], leaving: lane, settled };
    return enter(here, state, again);
  }
  // A step that is entered from another one counts its edges anew.
  const fresh = Object.hasOwn(state.taken, to.step)
    ? { ...state, taken: { ...state.taken, [to.step]: {} } }
    : state;
  return enter(here, fresh, { step: to.step, origin: owner, leaving: lane, settled });
}

/** A sibling is done; the join is entered when it was the last. */
export function join(here: Here, label: Label | null, notes: readonly string[]): State {
  const { state, lane, step } = here;
  const fork = state.fork!;
  if (fork.failed !== undefined) {
    return end(
      here,
      state,
      led(here, label, null, notes),
      "ParallelSiblingFailure",
      fork.failed.why,
      fork.failed.step,
    );
  }
  const left = leave(here, state, lane, led(here, label, fork.join, notes));
  const done = [...fork.done, step.id];
  const under = fork.steps.length - done.length;
  here.deeds?.push({ kind: "joined", step: step.id, visit: lane.visit, join: fork.join, left: under });
  if (done.length < fork.steps.length) {
    return withLanes({ ...left, fork: { ...fork, done } }, left.lanes, left.settled);
  }
  const [queued, ...queue] = state.queue;
  const met: State = { ...left, fork: null };
  if (fork.join !== null) return enter(here, met, { step: fork.join, origin: step.id, upstream: fork.steps });
  // Nobody comes after them who could look at a failure: so it is the run's.
  const failed = fork.policy === "independent" ? fork.steps.find((id) => !isContent(left, id)) : undefined;
  if (failed !== undefined) {
    const why = messages.siblingFailed(failed, { ...fork, done }, resultOf(left, failed));
    return end(here, left, left.settled, "ParallelSiblingFailure", why, failed);
  }
  if (queued === undefined) return end(here, left, left.settled, null, messages.closed(step.id, ""), step.id);
  return enter(here, { ...met, queue }, { step: queued, origin: step.id, upstream: fork.steps });
}

function isContent({ handoff }: State, id: StepId): boolean {
  return own(own(handoff, id) ?? {}, "verdict") === "ok";
}

function resultOf({ handoff }: State, id: StepId): string {
  const { verdict, reason } = own(handoff, id) ?? {};
  return typeof reason === "string" ? reason : `verdict ${JSON.stringify(verdict)}`;
}

export function pendingAnswer({ step, lane }: Here): NonNullable<Lane["answer"]> {
  if (lane.answer === null) throw new Error(`Step "${step.id}" has no answer that waits for anything`);
  return lane.answer;
}
