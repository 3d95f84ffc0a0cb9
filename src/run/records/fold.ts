/** A run folded entry by entry while it is read: however long it is, only a slice of it is held. */
import type { Prepared } from "../../engine/schema/prepared.ts";
import type { Journal, RunRow } from "../../engine/ports.ts";
import { EMPTY_STATE, type State } from "../../engine/decide/state.ts";
import type { Entry } from "../../flow/event.ts";
import type { Moment } from "../../story/story.ts";
import { createMoments } from "../watch/follow.ts";
import { RunnerError } from "../errors.ts";
import { damageOf, everyRow, flowOf, untilDamage, type Damage } from "./runs.ts";

/** Where a run stands, and by which flow. */
export type Folded = {
  readonly state: State;
  readonly flow: Prepared;
  readonly digest: string;
  /** The newest entry that was read. */
  readonly last: Entry | null;
};

export type PartlyFolded = Folded & { readonly damage: Damage | null };

type Hear = (moment: Moment) => void;

export async function foldRun(journal: Journal, row: RunRow, hear?: Hear): Promise<Folded> {
  const { met, ...folded } = await foldUntil(journal, row, hear);
  if (met !== null) throw met;
  return folded;
}

/** The same as far as it can be read, for looking at it. Throws where nothing can. */
export async function foldPartly(journal: Journal, row: RunRow, hear?: Hear): Promise<PartlyFolded> {
  const { met, ...folded } = await foldUntil(journal, row, hear);
  if (met !== null && met.seq <= 1) throw met;
  return { ...folded, damage: damageOf(row, met) };
}

/**
 * Every recorded run of an agent, newest first, each folded by what `open` gives for it. One that is damaged is folded
 * as far as it can be read. `since`: epoch milliseconds.
 */
export async function* foldEvery(
  journal: Journal,
  { agent, since }: { readonly agent: string; readonly since: number },
  open: (row: RunRow) => Hear,
): AsyncGenerator<{ readonly row: RunRow; readonly isWhole: boolean }> {
  const reading = withKnownFlows(journal);
  for await (const row of everyRow(reading, { agent })) {
    if (row.createdAt < since) continue;
    const isWhole = await foldPartly(reading, row, open(row)).then(
      ({ damage }) => damage === null,
      (error: unknown) => {
        if (error instanceof RunnerError && error.code === "JOURNAL_UNAVAILABLE") return false;
        throw error;
      },
    );
    yield { row, isWhole };
  }
}

/** Ends at the first entry that is damaged: `met`. */
async function foldUntil(journal: Journal, row: RunRow, hear?: Hear) {
  let { digest } = row;
  let newest: Moment | null = null;
  const add = (moment: Moment) => {
    const { event } = moment.entry;
    if (event.type === "run.adopted") digest = event.flow;
    newest = moment;
    hear?.(moment);
  };
  const met = await untilDamage(async () => {
    for await (const _ of createMoments(row).more(journal, add));
  });
  const {
    after: state,
    flow,
    entry: last,
  } = newest ?? {
    after: EMPTY_STATE,
    flow: await flowOf(journal, row.id, digest),
    entry: null,
  };
  return { state, flow, digest, last, met };
}

/** Most runs share a flow: it is read once, and what was compiled for it is kept with it. */
export function withKnownFlows(journal: Journal): Journal {
  const known = new Map<string, ReturnType<Journal["flow"]>>();
  return {
    ...journal,
    flow: (digest) => {
      const flow = known.get(digest) ?? journal.flow(digest);
      known.set(digest, flow);
      return flow;
    },
  };
}
