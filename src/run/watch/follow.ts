/** A recorded run step by step, slice by slice; and, while another process drives it, as it goes on. */
import type { State } from "../../engine/decide/state.ts";
import type { Clock, Journal, RunRow } from "../../engine/ports.ts";
import type { Prepared } from "../../engine/schema/prepared.ts";
import { openStory, type Moment } from "../../story/story.ts";
import { findRun, flowOf, listRuns, restOf, slicesOf, type RunSummary } from "../records/runs.ts";

/** How long a change stays unseen at most. */
const LAG_MS = 50;
/** After so many looks it is checked whether the driving process is still alive: counted, because clocks are set and may stand. */
const LOOKS = 10;

/** How to wait for more. */
export type Following = { readonly clock: Clock; readonly signal: AbortSignal };

/**
 * Every entry of a run from its first one on, in slices. With `following` it goes on as entries come, until the run has
 * ended, no process drives it, or the signal aborts. Throws the EntryDamaged that it meets after what comes before it.
 */
export async function* momentsOf(
  journal: Journal,
  { id, digest }: Pick<RunRow, "id" | "digest">,
  following: Following | null = null,
): AsyncGenerator<readonly Moment[]> {
  const moments = createMoments({ id, digest });
  let seen = -1;
  let looks = 0;
  for (;;) {
    const version = following === null ? 0 : await journal.version();
    let newest: Moment | undefined;
    let slice: Moment[] = [];
    if (version !== seen)
      for await (const _ of moments.more(journal, (moment) => slice.push(moment))) {
        newest = slice.at(-1);
        yield slice;
        slice = [];
      }
    seen = version;
    if (following === null || newest?.entry.event.type === "run.ended") return;
    const { clock, signal } = following;
    if (signal.aborted) return;
    if (newest !== undefined) continue;
    const isAsked = looks % LOOKS === 0;
    if (isAsked && !(await isDriven(journal, id)) && (await journal.read(id, moments.seq(), 1)).length === 0)
      return;
    looks += 1;
    await clock.sleep(LAG_MS, signal);
  }
}

/** A run that is read as far as it goes, and later on from there. */
export type Moments = {
  /**
   * Calls `hear` with each entry that is new, and yields after every slice. Throws the EntryDamaged that it meets after
   * what comes before it.
   */
  readonly more: (journal: Journal, hear: (moment: Moment) => void) => AsyncGenerator<void>;
  /** The newest entry that was read; 0: none was. */
  readonly seq: () => number;
};

export function createMoments({ id, digest }: Pick<RunRow, "id" | "digest">): Moments {
  const next = openStory();
  let flow: Prepared | null = null;
  let seq = 0;
  return {
    seq: () => seq,
    async *more(journal, hear) {
      flow ??= await flowOf(journal, id, digest);
      for await (const slice of slicesOf(journal, id, seq)) {
        for (const entry of slice) {
          if (entry.event.type === "run.adopted") flow = await flowOf(journal, id, entry.event.flow);
          // At once: what is decided on the way to the next entry need not be held.
          hear(next(entry, flow));
          ({ seq } = entry);
        }
        yield;
      }
    },
  };
}

export type Followed = Moment & { readonly state: State };

/**
 * Every entry of a run, from its first one on and as they come, with the state it led to. Ends when the run has ended,
 * when no process drives it, or when the signal aborts.
 */
export async function* followRun(
  journal: Journal,
  ref: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  const row = await findRun(journal, ref);
  for await (const moments of momentsOf(journal, row, { clock, signal }))
    for (const moment of moments) yield { ...moment, state: moment.after };
}

async function isDriven(journal: Journal, id: string): Promise<boolean> {
  const [row] = await journal.rows([id]);
  // One that is queued will be.
  return row !== undefined && (row.owned || restOf(row.last) !== null);
}

/** The newest runs, at once and whenever they have changed, until the signal aborts. */
export async function* followRuns(
  journal: Journal,
  clock: Clock,
  signal: AbortSignal,
  limit?: number,
): AsyncGenerator<readonly RunSummary[]> {
  let version = -1;
  for (let looks = 0; !signal.aborted; looks += 1) {
    const now = await journal.version();
    // A driver that died writes nothing.
    if (now !== version || looks % LOOKS === 0) {
      version = now;
      yield await listRuns(journal, limit === undefined ? {} : { limit });
    }
    await clock.sleep(LAG_MS, signal);
  }
}
