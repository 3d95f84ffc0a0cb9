/** The figures of recorded runs: each run is read once, and again only when it has more entries. */
import { setImmediate as turn } from "node:timers/promises";
import { RunnerError, type Journal, type RunRow } from "../../engine/ports.ts";
import type { FiguredRun } from "../../proof/added-figures.ts";
import { createRunFigures, type RunFigures } from "../../proof/run-figures.ts";
import { foldPartly, withKnownFlows } from "./fold.ts";
import { everyRow, summarise } from "./runs.ts";

export type FiguresOf = {
  readonly agent?: string;
  /** Epoch milliseconds: runs that began before are left out. */
  readonly since?: number;
  /** The digest of the flow that a run ended with, or a beginning of it. */
  readonly flow?: string;
  /** At most so many runs, the newest ones. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
  /** Asked after each run that had to be read: whether to stop there. The next call goes on, with what is kept. */
  readonly isEnough?: () => boolean;
};

export type ReadFigures = {
  /** Newest first. */
  readonly runs: readonly FiguredRun[];
  /** Runs that can only partly be read, or not at all. */
  readonly damaged: readonly string[];
  /** Nothing was left out because it was enough. */
  readonly isAll: boolean;
};

type Kept = { readonly events: number; readonly figures: RunFigures | null; readonly isWhole: boolean };

/** Of so many runs the figures are kept; those that were read first are forgotten first. */
const MOST_KEPT = 10_000;
/** Others get their turn after so many entries. */
const TURN = 150;

/** Keeps the figures of runs for as long as it is kept itself. */
export function createFigures(): (journal: Journal, which?: FiguresOf) => Promise<ReadFigures> {
  const kept = new Map<string, Kept>();
  return async (
    journal,
    { agent, since = -Infinity, flow = "", limit = Infinity, signal, isEnough = () => false } = {},
  ) => {
    const reading = withKnownFlows(journal);
    const runs: FiguredRun[] = [];
    const damaged: string[] = [];
    let entries = 0;
    let isAll = true;
    let isStopping = false;
    for await (const row of everyRow(reading, agent === undefined ? {} : { agent })) {
      signal?.throwIfAborted();
      if (runs.length >= limit) break;
      if (isStopping) {
        isAll = false;
        break;
      }
      if (row.createdAt < since) continue;
      let known = kept.get(row.id);
      if (known?.events !== row.events) {
        known = await figuresOf(reading, row);
        kept.delete(row.id);
        kept.set(row.id, known);
        entries += row.events;
        isStopping = isEnough();
      }
      if (entries > TURN) {
        entries = 0;
        await turn();
      }
      const { run, state, code } = summarise(row);
      if (!known.isWhole) damaged.push(run);
      if (known.figures === null || !known.figures.flow.startsWith(flow)) continue;
      runs.push({ run, agent: row.agent, state, code, figures: known.figures });
    }
    for (const id of kept.keys()) {
      if (kept.size <= MOST_KEPT) break;
      kept.delete(id);
    }
    return { runs, damaged, isAll };
  };
}

async function figuresOf(journal: Journal, row: RunRow): Promise<Kept> {
  const { events } = row;
  const { add, figures } = createRunFigures(row.digest);
  try {
    const { damage } = await foldPartly(journal, row, add);
    return { events, figures: figures(), isWhole: damage === null };
  } catch (error) {
    // One that cannot be read does not hide the others.
    if (!(error instanceof RunnerError)) throw error;
    return { events, figures: null, isWhole: false };
  }
}
