/** What belongs to a run beside its journal: conversations of a coding agent, answers and wishes that were left for it. */
import { cpSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";

/** Bytes on disk. */
export function sizeOfBelongings(stateDir: string, run: string): number {
  return belongingsOf(stateDir, run).reduce((sum, path) => sum + sizeOf(path), 0);
}

/** All of them, of all runs, and what batches are to do, into another state folder. Links are left out. */
export function copyBelongings(stateDir: string, to: string): void {
  for (const folder of [...FOLDERS, BATCHES]) {
    const from = join(stateDir, folder);
    if (found(from)?.isDirectory() !== true) continue;
    cpSync(from, join(to, folder), {
      recursive: true,
      errorOnExist: true,
      filter: (path) => found(path)?.isDirectory() === true || found(path)?.isFile() === true,
    });
  }
}

/** The names of all runs that something belongs to. A prune that was killed leaves those of runs that are gone. */
export function ownersIn(stateDir: string): readonly string[] {
  const names = FOLDERS.map((folder) => join(stateDir, folder))
    .filter((path) => found(stateDir)?.isDirectory() === true && found(path)?.isDirectory() === true)
    .flatMap((path) => readdirSync(path))
    .map((name) => name.replace(/\.json$/, ""));
  return [...new Set(names)].filter((name) => OWN_NAME.test(name));
}

const FOLDERS = ["runs", "answers", "control"];
const BATCHES = "batches";
/** The names that we give: anything else there belongs to somebody else. */
const OWN_NAME = /^[\da-z]{10}$/;

/** Only for a run that the journal has released: the process that drives it uses them. */
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
