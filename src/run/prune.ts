/** Runs that nobody needs any more. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import { removeBelongings, sizeOfBelongings } from "./belongings.ts";
import { everyRow, summarise, type RunSummary } from "./runs.ts";

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
  const sized: Prunable[] = [];
  let newer = 0;
  for await (const row of everyRow(journal)) {
    newer += 1;
    const summary = summarise(row);
    const isOld = now - Date.parse(summary.updatedAt) >= olderThanMs;
    if (newer > keep && isOld && summary.state !== "running")
      sized.push({ ...summary, bytes: await sizeOfRun(journal, summary.run, stateDir) });
  }
  return sized;
}

/** Of its entries, and of the files that belong to it. */
export async function sizeOfRun(journal: Journal, run: string, stateDir?: string): Promise<number> {
  return (await journal.size(run)) + (stateDir === undefined ? 0 : sizeOfBelongings(stateDir, run));
}

/**
 * Gives those that are gone; one that is being driven by now, or that somebody else has removed, is not among them. The
 * journal decides how many go at once. `onGone` hears how many are gone so far.
 */
export async function prune(
  journal: Journal,
  runs: readonly Prunable[],
  stateDir?: string,
  onGone?: (count: number) => void,
): Promise<readonly Prunable[]> {
  const gone: Prunable[] = [];
  for (let from = 0; from < runs.length; from += AT_ONCE) {
    const some = runs.slice(from, from + AT_ONCE);
    const removed = await Promise.allSettled(some.map(({ run }) => journal.remove(run)));
    for (const [place, run] of some.entries()) {
      const one = removed[place]!;
      if (one.status === "rejected") {
        if (!(one.reason instanceof RunnerError) || !LEFT_ALONE.has(one.reason.code)) throw one.reason;
        continue;
      }
      if (stateDir !== undefined) removeBelongings(stateDir, run.run);
      gone.push(run);
    }
    onGone?.(gone.length);
  }
  await journal.tidy();
  return gone;
}

const AT_ONCE = 200;
const LEFT_ALONE: ReadonlySet<string> = new Set(["RUN_OWNED_ELSEWHERE", "RUN_UNKNOWN"]);
