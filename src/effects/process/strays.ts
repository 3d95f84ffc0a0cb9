/** Processes of a run that outlived the process which owned it: found by the mark of the run, and ended. */
import { createHash } from "node:crypto";
import { endMarked, isMarked, MARKS } from "./tree.ts";

/** What every process of a run carries in its environment. A run id from elsewhere names no process of another project. */
export function markOfRun(stateDir: string, run: string): string {
  return createHash("sha256").update(`${stateDir}\0${run}`).digest("hex").slice(0, 32);
}

/**
 * Ends them, after they had so long to end by themselves, and gives their names. Only for the process that owns the run
 * now. Nothing is found where the system has no /proc, nor inside of such a process, which would end itself.
 */
export async function endStrays(mark: string, patienceMs: number): Promise<readonly string[]> {
  if (isMarked(process.env[MARKS], mark)) return [];
  return await endMarked(mark, patienceMs, GRACE_MS);
}

const GRACE_MS = 2000;
