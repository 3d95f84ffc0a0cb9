/** The past of a run that goes on, folded entry by entry while it is read: no entry is held for longer than that. */
import { flowFrom } from "../../flow/adopted.ts";
import type { Entry } from "../../flow/event.ts";
import type { Granted } from "../../flow/flow.ts";
import { stateAfter } from "../decide/decide.ts";
import { EMPTY_STATE, type State } from "../decide/state.ts";
import type { Ports } from "../ports.ts";
import type { Prepared, PreparedFlows } from "../schema/prepared.ts";
import { createTalk, type Talk } from "./talk.ts";
import { createStopwatch, type Stopwatch } from "./time.ts";

export type FoldedPast = {
  /** The flow that holds now. */
  readonly flow: Prepared;
  readonly state: State;
  /** The newest entry; null: there is none. */
  readonly last: Entry | null;
  readonly talk: Talk;
  readonly watch: Stopwatch;
  /** What was granted to the run last. */
  readonly granted: Granted | undefined;
};

export type PastFold = FoldedPast & {
  /** The next entry. Gives the state it led to. */
  readonly add: (entry: Entry) => State;
};

/** `adopted` has to hold a flow before the entry that adopts it is added. */
export function createPastFold(
  began: Prepared,
  adopted: PreparedFlows | undefined,
  ports: Pick<Ports, "compose">,
): PastFold {
  const talk = createTalk(ports);
  const watch = createStopwatch();
  const fold: { -readonly [key in keyof PastFold]: PastFold[key] } = {
    flow: began,
    state: EMPTY_STATE,
    last: null,
    talk,
    watch,
    granted: undefined,
    add: (entry) => {
      const { event } = entry;
      fold.flow = flowFrom(fold.flow, event, adopted);
      talk.recall(fold.flow, fold.state, event);
      const state = stateAfter(fold.flow, fold.state, event);
      watch.note(entry, state);
      if ("spending" in event) fold.granted = event.spending;
      fold.state = state;
      fold.last = entry;
      return state;
    },
  };
  return fold;
}
