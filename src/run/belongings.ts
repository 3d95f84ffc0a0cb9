/** What belongs to a run beside its journal: conversations of a coding agent, answers and wishes that were left for it. */
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/** Bytes on disk. */
export function sizeOfBelongings(stateDir: string, run: string): number {
  return belongingsOf(stateDir, run).reduce((sum, path) => sum + sizeOf(path), 0);
}

/** Only for a run that the journal has let go: whoever drives it works with them. */
export function removeBelongings(stateDir: string, run: string): void {
  for (const path of belongingsOf(stateDir, run)) rmSync(path, { recursive: true, force: true });
}

function belongingsOf(stateDir: string, run: string): readonly string[] {
  // A journal may come from elsewhere: no name in it leads out of the folder, and neither does a link.
  const name = run.replaceAll(/[^\w-]/g, "_");
  return [join("runs", name), join("answers", name), join("control", `${name}.json`)]
    .map((path) => join(stateDir, path))
    .filter((path) => found(stateDir)?.isDirectory() === true && found(dirname(path))?.isDirectory() === true)
    .filter((path) => found(path) !== undefined);
}

function sizeOf(path: string): number {
  if (found(path)?.isDirectory() !== true) return found(path)?.size ?? 0;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

/** Links are not followed. */
function found(path: string) {
  return lstatSync(path, { throwIfNoEntry: false });
}
