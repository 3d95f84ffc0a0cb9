/** Runs that nobody needs any more. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { removeBelongings, sizeOfBelongings } from "./belongings.ts";
import { listRuns, type RunSummary } from "./runs.ts";

export type PruneOptions = {
  /** Only runs whose newest entry is at least so old. */
  readonly olderThanMs?: number;
  /** The newest so many stay, whatever their age. */
  readonly keep?: number;
  readonly now: number;
  /** Where files of the runs lie, if there are any. */
  readonly stateDir?: string;
};

export type Prunable = RunSummary & { readonly bytes: number };

/** Those that may go. One that is being driven never does. */
export async function prunable(
  journal: Journal,
  { olderThanMs = 0, keep = 0, now, stateDir }: PruneOptions,
): Promise<readonly Prunable[]> {
  const old = (await listRuns(journal))
    .slice(keep)
    .filter(({ state, updatedAt }) => state !== "running" && now - Date.parse(updatedAt) >= olderThanMs);
  const sized: Prunable[] = [];
  for (const summary of old)
    sized.push({ ...summary, bytes: await sizeOfRun(journal, summary.run, stateDir) });
  return sized;
}

/** Of its entries, and of the files that belong to it. */
export async function sizeOfRun(journal: Journal, run: string, stateDir?: string): Promise<number> {
  return (await journal.size(run)) + (stateDir === undefined ? 0 : sizeOfBelongings(stateDir, run));
}

/** One after the other; gives those that are gone. One that is being driven by now stays. */
export async function prune(
  journal: Journal,
  runs: readonly Prunable[],
  stateDir?: string,
): Promise<readonly Prunable[]> {
  const gone: Prunable[] = [];
  for (const run of runs) {
    try {
      await journal.remove(run.run);
      if (stateDir !== undefined) removeBelongings(stateDir, run.run);
      gone.push(run);
    } catch (error) {
      if (!(error instanceof RunnerError) || error.code !== "RUN_OWNED_ELSEWHERE") throw error;
    }
  }
  return gone;
}
