/**
 * Changing the index of a working tree so that it is the old one or the new one, whatever is killed meanwhile.
 *
 * Git locks an index by the file `index.lock`, and one that a killed git leaves behind could be anybody's. So we make that
 * file ourselves, with a text that names us, let git work on a copy of the index, and put the copy in its place at the end.
 */
import {
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  linkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pointerIn } from "./git-place.ts";
import { quoted } from "./words.ts";

export type HeldIndex = {
  /** For git: it works on the copy, and what it was started by puts that in place, also when our process has ended. */
  readonly puts: IndexFiles;
  /** What the process that git was started by could not do any more. */
  readonly put: () => void;
  /** The index stays as it was. */
  readonly drop: () => void;
};

export type IndexFiles = { readonly copy: string; readonly index: string; readonly lock: string };

/** Locks the index of a working tree; `text` must be our own, and is ours again if we left it there before. */
export function holdIndex(gitDir: string, text: string): HeldIndex | { readonly why: string } {
  const puts = filesIn(gitDir);
  const { index, copy } = puts;
  // A command may have put a link there: what it leads to is not copied.
  if (lstatSync(index, { throwIfNoEntry: false })?.isFile() === false)
    return { why: `${index} is not a regular file` };
  if (!isLockedBy(gitDir, text) && !lockBy(gitDir, text)) return { why: lockedWhy(gitDir) };
  clear(copy);
  if (existsSync(index)) {
    copyFileSync(index, copy, constants.COPYFILE_EXCL);
    // Git takes a file that is as old as its index for one that may have changed since: the copy must not look younger.
    const seconds = Math.floor(statSync(index).mtimeMs / 1000);
    utimesSync(copy, seconds, seconds);
  }
  return { puts, put: () => putIndex(gitDir, text), drop: () => dropIndex(gitDir, text) };
}

/** The copy that a process of ours left is the index from now on. */
export function putIndex(gitDir: string, text: string): void {
  const { index, copy } = filesIn(gitDir);
  if (isLockedBy(gitDir, text) && existsSync(copy)) renameSync(copy, index);
  dropIndex(gitDir, text);
}

export function dropIndex(gitDir: string, text: string): void {
  const { lock, copy } = filesIn(gitDir);
  clear(copy);
  if (isLockedBy(gitDir, text)) rmSync(lock, { force: true });
}

export function copyIn(gitDir: string): string {
  return filesIn(gitDir).copy;
}

export function isLockedBy(gitDir: string, text: string): boolean {
  const { lock } = filesIn(gitDir);
  try {
    return existsSync(lock) && pointerIn(lock) === text;
  } catch {
    return false; // it is gone now, or is not ours to read
  }
}

export function isLocked(gitDir: string): boolean {
  return existsSync(filesIn(gitDir).lock);
}

export function lockedWhy(gitDir: string): string {
  const { lock } = filesIn(gitDir);
  return `${lock} exists: a git is at work there, or was killed; if none is at work, remove it with: rm ${quoted(lock)}`;
}

function filesIn(gitDir: string): IndexFiles {
  return {
    lock: join(gitDir, "index.lock"),
    index: join(gitDir, "index"),
    copy: join(gitDir, "lockstep-index"),
  };
}

/** With its text or not at all. */
function lockBy(gitDir: string, text: string): boolean {
  const { lock, copy } = filesIn(gitDir);
  clear(copy);
  writeFileSync(copy, text, { flag: "wx" });
  try {
    try {
      linkSync(copy, lock);
    } catch (error) {
      if (isThere(error)) return false;
      // Not every file system has hard links.
      writeFileSync(lock, text, { flag: "wx" });
    }
    return true;
  } catch (error) {
    if (isThere(error)) return false;
    throw error;
  } finally {
    clear(copy);
  }
}

function isThere(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

/** With what git makes beside it. */
function clear(copy: string): void {
  for (const file of [copy, `${copy}.lock`]) rmSync(file, { force: true });
}
