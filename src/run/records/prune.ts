/** Removal of old runs. */
import { existsSync } from "node:fs";
import { RunnerError, type Journal } from "../../engine/ports.ts";
import { leaveOut } from "../batch-record.ts";
import { ownersIn, removeBelongings, sizeOfBelongings } from "./run-files.ts";
import { DAMAGED, everyRow, findRun, particularsOf, startOf, summarise, type RunSummary } from "./runs.ts";

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
  const old: RunSummary[] = [];
  let newer = 0;
  for await (const row of everyRow(journal)) {
    newer += 1;
    const summary = summarise(row);
    // The times of a damaged run may be wrong: its age is not known.
    const isOld =
      summary.state === "damaged" ? olderThanMs === 0 : now - Date.parse(summary.updatedAt) >= olderThanMs;
    if (newer > keep && isOld && !["running", "queued"].includes(summary.state)) old.push(summary);
  }
  return await sized(journal, old, stateDir);
}

/** Exactly these, by id, prefix, `@last` or `@failed`; also those that are damaged. RUN_OWNED_ELSEWHERE if one is being driven. */
export async function named(
  journal: Journal,
  refs: readonly string[],
  stateDir?: string,
): Promise<readonly Prunable[]> {
  const meant = new Map<string, RunSummary>();
  for (const ref of refs) {
    const row = await findRun(journal, ref);
    if (row.owned)
      throw new RunnerError(
        "RUN_OWNED_ELSEWHERE",
        `Run ${row.id} is active in another process, so nothing was removed. Stop it first with: lockstep stop ${row.id}`,
      );
    const { damaged } = await particularsOf(journal, row.id);
    meant.set(row.id, { ...summarise(row), ...(damaged && DAMAGED) });
  }
  return await sized(journal, [...meant.values()], stateDir);
}

/** The worktree of a run that is removed: nothing of Lockstep knows it any more then. */
export type LeftWorktree = { readonly run: string; readonly path: string; readonly home: string };

/** Those that are on the disk. */
export async function worktreesOf(
  journal: Journal,
  runs: readonly { readonly run: string }[],
): Promise<readonly LeftWorktree[]> {
  const left: LeftWorktree[] = [];
  for (const { run } of runs) {
    const { worktree } = (await startOf(journal, run)) ?? {};
    if (worktree === undefined || !existsSync(worktree.path)) continue;
    left.push({ run, path: worktree.path, home: worktree.home });
  }
  return left;
}

async function sized(
  journal: Journal,
  runs: readonly RunSummary[],
  stateDir?: string,
): Promise<readonly Prunable[]> {
  const all: Prunable[] = [];
  for (const summary of runs)
    all.push({ ...summary, bytes: await sizeOfRun(journal, summary.run, stateDir) });
  return all;
}

/** Of its entries, and of the files that belong to it. Entries on a damaged page do not count. */
export async function sizeOfRun(journal: Journal, run: string, stateDir?: string): Promise<number> {
  const entries = await journal.size(run).catch((error: unknown) => {
    if (error instanceof RunnerError && error.code === "JOURNAL_UNAVAILABLE") return 0;
    throw error;
  });
  return entries + (stateDir === undefined ? 0 : sizeOfBelongings(stateDir, run));
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
    if (stateDir !== undefined) leaveOut(stateDir, new Set(some.map(({ run }) => run)));
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

/** The removed runs of which files are left, because a prune was killed. */
export async function leftovers(journal: Journal, stateDir: string): Promise<readonly string[]> {
  // In this order: a run is recorded before anything belongs to it.
  const names = ownersIn(stateDir);
  const known = new Set((await journal.rows(names)).map(({ id }) => id));
  const left = names.filter((name) => !known.has(name));
  if (left.length === 0) return [];
  // They may be of a run whose row is damaged and gives another id: `salvage` could still rescue it.
  for await (const { damaged } of everyRow(journal)) if (damaged !== undefined) return [];
  return left;
}

/** Removes them, and gives their runs. What is left in the journal itself goes with `tidy`. */
export async function removeLeftovers(journal: Journal, stateDir: string): Promise<readonly string[]> {
  const names = await leftovers(journal, stateDir);
  for (const name of names) removeBelongings(stateDir, name);
  return names;
}
