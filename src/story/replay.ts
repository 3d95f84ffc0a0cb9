/** Working out every decision of a run again from its journal, and holding it against what is recorded. */
import { laneIn } from "../flow/deed.ts";
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { flowFrom } from "../flow/adopted.ts";
import { decisionIn, type Entry, type Event, type Led } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import { sameJson, type Json } from "../flow/json.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { decidedEnd } from "../engine/decide/due.ts";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import { errorText } from "../flow/text/harmless.ts";

export type Replayed = {
  /** Entries that were looked at: all, unless there is a difference. */
  readonly events: number;
  readonly difference: Divergence | null;
  /** Where the run stands after the last entry that could be followed. */
  readonly state: State;
};

/** The first entry that does not come out as it is recorded. */
export type Divergence = {
  readonly seq: number;
  readonly event: Event["type"];
  /** `entry`: it cannot be where it is. `decision`, `verdict`: it came out another way. */
  readonly about: "entry" | "decision" | "verdict";
  readonly recorded: Json;
  readonly derived: Json;
};

export function replay(began: Prepared, entries: readonly Entry[], adopted?: PreparedFlows): Replayed {
  let flow = began;
  const { add, replayed } = createReplay(({ event }) => (flow = flowFrom(flow, event, adopted)));
  entries.every(add);
  return replayed();
}

export type Replaying = {
  /** The next entry. Says whether it came out as it is recorded. */
  readonly add: (entry: Entry) => boolean;
  readonly replayed: () => Replayed;
};

/** For a run that is read in slices: `flowAt` gives the flow that holds from an entry on. After the first difference nothing more is looked at. */
export function createReplay(flowAt: (entry: Entry) => Prepared): Replaying {
  let state = EMPTY_STATE;
  let events = 0;
  let difference: Divergence | null = null;
  return {
    add(entry) {
      if (difference !== null) return false;
      const { event } = entry;
      let next: State;
      try {
        difference = misplaced(state, entry, events + 1);
        if (difference !== null) return false;
        next = stateAfter(flowAt(entry), state, event);
      } catch (error) {
        const why = errorText(error);
        difference = divergence(entry, "entry", place(event), why);
        return false;
      }
      if (!sameDecision(decisionIn(entry), next.settled)) {
        difference = divergence(entry, "decision", entry.led ?? null, next.settled);
        return false;
      }
      state = next;
      events += 1;
      return true;
    },
    replayed: () => ({ events, difference, state }),
  };
}

function divergence(
  { seq, event }: Entry,
  about: Divergence["about"],
  recorded: Json,
  derived: Json,
): Divergence {
  return { seq, event: event.type, about, recorded, derived };
}

/** Why an entry cannot be at its place, whatever it leads to. */
function misplaced(state: State, entry: Entry, expected: number): Divergence | null {
  const { seq, event } = entry;
  if (seq !== expected) return divergence(entry, "entry", seq, expected);
  const isFirst = seq === 1;
  if (isFirst !== (event.type === "run.started"))
    return divergence(entry, "entry", event.type, isFirst ? "run.started" : null);
  if (event.type === "run.ended") {
    const derived = decidedEnd(state);
    return sameJson(event.verdict, derived) ? null : divergence(entry, "verdict", event.verdict, derived);
  }
  if (!("step" in event)) return null;
  const lane = laneIn(state, event);
  if (lane !== undefined && answers(lane.command, event)) return null;
  return divergence(entry, "entry", place(event), lane === undefined ? null : place(lane.command));
}

function place(of: Event | StepCommand): string {
  return "step" in of ? `${of.type} ${of.step}@${of.visit}` : of.type;
}

/** Whether an event can be what came of a command. */
export function answers(command: StepCommand, event: Event): boolean {
  // Whatever a stage begins with, it may turn out that it cannot be asked.
  const unaskable = event.type === "step.answered" && event.reply.kind === "unaskable";
  switch (command.type) {
    case "ask":
      return (
        (event.type === "step.answered" && (event.turn === command.turn || unaskable)) ||
        event.type === "step.warned" ||
        event.type === "step.cut"
      );
    case "call":
      return event.type === "step.called" || event.type === "step.asked" || event.type === "step.suspended";
    case "check":
      return event.type === "step.checked" || unaskable;
    case "hook":
      return (event.type === "step.hooked" && event.hook === command.hook) || unaskable;
    case "look":
      return event.type === "step.looked";
    case "question":
      return event.type === "step.told" || event.type === "step.asked" || event.type === "step.suspended";
    case "wait":
      return event.type === "step.waited";
  }
}

/** Most have none, and of the others most have nothing but the plain members. */
function sameDecision(recorded: Led | undefined, derived: Led | null): boolean {
  if (recorded === undefined || derived === null) return recorded === undefined && derived === null;
  return (
    recorded.step === derived.step &&
    recorded.visit === derived.visit &&
    recorded.label === derived.label &&
    recorded.to === derived.to &&
    recorded.overturned === derived.overturned &&
    recorded.place === derived.place &&
    (recorded.fork === undefined || sameJson(recorded.fork, derived.fork ?? null)) &&
    sameJson(recorded.check ?? null, derived.check ?? null) &&
    sameJson(recorded.notes ?? null, derived.notes ?? null)
  );
}
