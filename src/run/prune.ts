/** Runs that nobody needs any more. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { listRuns, type RunSummary } from "./runs.ts";

export type PruneOptions = {
  /** Only runs whose newest entry is at least so old. */
  readonly olderThanMs?: number;
  /** The newest so many stay, whatever their age. */
  readonly keep?: number;
  readonly now: number;
};

export type Prunable = RunSummary & { readonly bytes: number };

/** Those that may go. One that is being driven never does. */
export async function prunable(
  journal: Journal,
  { olderThanMs = 0, keep = 0, now }: PruneOptions,
): Promise<readonly Prunable[]> {
  const old = (await listRuns(journal))
    .slice(keep)
    .filter(({ state, updatedAt }) => state !== "running" && now - Date.parse(updatedAt) >= olderThanMs);
  const sized: Prunable[] = [];
  for (const summary of old) sized.push({ ...summary, bytes: await journal.size(summary.run) });
  return sized;
}

/** One after the other; gives those that are gone. One that is being driven by now stays. */
export async function prune(journal: Journal, runs: readonly Prunable[]): Promise<readonly Prunable[]> {
  const gone: Prunable[] = [];
  for (const run of runs) {
    try {
      await journal.remove(run.run);
      gone.push(run);
    } catch (error) {
      if (!(error instanceof RunnerError) || error.code !== "RUN_OWNED_ELSEWHERE") throw error;
    }
  }
  return gone;
}
