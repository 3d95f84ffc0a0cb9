/** A run step by step: every entry with the flow that held, the states around it, and what was decided. */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { decide } from "../engine/decide/decide.ts";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";
import { flowFrom } from "../flow/adopted.ts";
import { laneIn, type Deed, type DeedKind } from "../flow/deed.ts";
import type { Entry } from "../flow/event.ts";

export type Moment = {
  readonly entry: Entry;
  readonly flow: Prepared;
  readonly before: State;
  readonly after: State;
  readonly deeds: readonly Deed[];
};

/** `adopted`: the flows that the run went on with, by their digests. */
export function* story(
  began: Prepared,
  entries: Iterable<Entry>,
  adopted?: PreparedFlows,
): Generator<Moment> {
  const next = openStory();
  let flow = began;
  for (const entry of entries) {
    flow = flowFrom(flow, entry.event, adopted);
    yield next(entry, flow);
  }
}

/** The same for entries that come one by one, each with the flow that holds from it on. `from`: where the run stood. */
export function openStory(from: State = EMPTY_STATE): (entry: Entry, flow: Prepared) => Moment {
  let before = from;
  return (entry, flow) => {
    const { state: after, deeds } = decide(flow, before, entry.event);
    const moment: Moment = { entry, flow, before, after, deeds };
    before = after;
    return moment;
  };
}

/** The deeds of one kind. */
export function deedsOf<K extends DeedKind>({ deeds }: Pick<Moment, "deeds">, kind: K): readonly DeedOf<K>[] {
  return deeds.filter((deed): deed is DeedOf<K> => deed.kind === kind);
}

type DeedOf<K extends DeedKind> = Extract<Deed, { readonly kind: K }>;

/** The visits that begin here; one that the run stopped before is left out, a resumed run begins with it. */
export function begunIn(moment: Moment): readonly DeedOf<"began">[] {
  return deedsOf(moment, "began").filter((deed) => laneIn(moment.after, deed) !== undefined);
}
