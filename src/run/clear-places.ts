/** Removes the folders of runs that a worker has no use for any more: they ended on another machine, or are gone. */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Journal } from "../engine/ports.ts";
import { isRunId } from "../flow/recorded.ts";

/**
 * Those whose end is recorded, or that nobody knows; before the worker takes its first run also those that nobody touched
 * for days. What is removed can be had again, so that nothing is lost. Gives the runs.
 */
export async function clearPlaces(
  work: string,
  journal: Pick<Journal, "rows">,
  { now, isBeginning }: { readonly now: number; readonly isBeginning: boolean },
): Promise<readonly string[]> {
  const folder = join(work, "runs");
  const runs = namesIn(folder).filter(isRunId);
  if (runs.length === 0) return [];
  const rows = new Map((await journal.rows(runs)).map((row) => [row.id, row]));
  const gone = runs.filter((run) => {
    const row = rows.get(run);
    if (row?.owned === true) return false;
    const last = row?.last?.event;
    const isOver = row === undefined || (last?.type === "run.ended" && last.verdict.outcome !== "waiting");
    const touched = statSync(join(folder, run), { throwIfNoEntry: false })?.mtimeMs ?? now;
    return isOver || (isBeginning && now - touched > UNTOUCHED_MS);
  });
  for (const run of gone) rmSync(join(folder, run), { recursive: true, force: true });
  return gone;
}

const UNTOUCHED_MS = 2 * 86_400_000;

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
