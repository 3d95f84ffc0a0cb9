/** A run with some of its texts replaced: every decision is computed again. */
import { laneIn, type AtVisit } from "../flow/deed.ts";
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { flowFrom } from "../flow/adopted.ts";
import type { Entry, Event } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, own, sameJson, type JsonObject } from "../flow/json.ts";
import { RESERVED_FIELDS } from "../flow/text/placeholder.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { laneContext } from "../engine/decide/attempt.ts";
import { EMPTY_STATE, recordedWith, type State } from "../engine/decide/state.ts";

export type Retelling = {
  readonly flow: Prepared;
  readonly adopted?: PreparedFlows;
  readonly entries: readonly Entry[];
  /** Gives the event in its new words. `was` is how the run stood before it as recorded, `is` as told anew. */
  readonly change: (
    event: Event,
    at: { readonly flow: Flow; readonly was: State; readonly is: State },
  ) => Event;
};

export function retell({ flow: began, adopted, entries, change }: Retelling): readonly Entry[] {
  let flow = began;
  let was = EMPTY_STATE;
  let is = EMPTY_STATE;
  return entries.map((entry) => {
    const { event: recorded } = entry;
    flow = flowFrom(flow, recorded, adopted);
    const event = change(recorded, { flow, was, is });
    was = stateAfter(flow, was, recorded);
    is = stateAfter(flow, is, event);
    return toldAs(entry, event, is);
  });
}

/** At the same time, another event, and what that led to. */
export function toldAs({ seq, at, moved }: Entry, event: Event, state: State): Entry {
  return { seq, at, ...(moved !== undefined && { moved }), event, ...recordedWith(state) };
}

/**
 * What a setup hook left holds fields that belong to the run, and they must be those of the run: where they were as it
 * is recorded, they are made so again.
 */
export function inItsOwnRun(event: Event, recorded: Event, was: State, is: State): Event {
  const left = leftBySetup(recorded);
  const value = leftBySetup(event);
  if (left === null || value === null || event.type !== "step.hooked") return event;
  const [before, now] = [was, is].map((state) => contextAt(state, event));
  if (before === undefined || now === undefined) return event;
  const renewed = [...RESERVED_FIELDS].flatMap((name) => {
    const [said, meant] = [own(left, name), own(before, name)];
    const mine = own(now, name);
    return said !== undefined && meant !== undefined && mine !== undefined && sameJson(said, meant)
      ? [[name, mine] as const]
      : [];
  });
  return { ...event, result: { kind: "gave", value: { ...value, ...Object.fromEntries(renewed) } } };
}

function leftBySetup(event: Event): JsonObject | null {
  if (event.type !== "step.hooked" || event.hook !== "setup" || event.result.kind !== "gave") return null;
  return isObject(event.result.value) ? event.result.value : null;
}

function contextAt(state: State, at: AtVisit): JsonObject | undefined {
  const lane = laneIn(state, at);
  return lane && laneContext(state, lane);
}
