/** What git keeps about the worktree of a run, read and removed as files: a worktree that is half made or half removed is none to git. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Worktree } from "../../flow/event.ts";
import { findGitPlace, pointerIn } from "./git-place.ts";
import type { Git } from "./git.ts";
import { putFile } from "./put-file.ts";
import { isWithinFolder } from "../grounded.ts";

type Tree = Pick<Worktree, "home" | "path">;

/**
 * Whether the folder of a run is a working tree by itself, of the repository of `home`. Without its `.git` file git would
 * take the working tree around it instead, which may be the user's own.
 */
export function isOwnWorktree({ home, path }: Tree): boolean {
  const [own, users] = [findGitPlace(path), findGitPlace(home)];
  if (own === null || users === null || own.common !== users.common) return false;
  return own.top === realpathSync.native(path) && own.gitDir !== own.common;
}

/** The same git, which does nothing in the folder of the run when that is not a working tree by itself. */
export function onlyInWorktree(git: Git, worktree: Tree): Git {
  return async (cwd, args, how) =>
    isWithinFolder(worktree.path, cwd) && !isOwnWorktree(worktree)
      ? { ok: false, exit: null, out: "", why: `${worktree.path} is not a worktree of ${worktree.home}` }
      : await git(cwd, args, how);
}

/** The folder that git keeps about the worktree, also if that is gone or half made; null: there is none. */
export function worktreeRecords({ home, path }: Tree): string | null {
  const common = findGitPlace(home)?.common;
  if (common === undefined) return null;
  const folder = join(common, "worktrees");
  // A command may have put a link there: what lies behind it is not ours.
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return null;
  const name = entryNames(folder).find((one) => {
    const said = lineIn(join(folder, one, "gitdir"));
    // Git names it after the folder of the worktree, and locks it, before it writes where that is.
    if (said === "") return one === basename(path) && existsSync(join(folder, one, "locked"));
    return isSame(dirname(said), path);
  });
  return name === undefined ? null : join(folder, name);
}

/** What git is given as the reason for a lock that stays until all of the worktree is there. */
export function making(run: string): string {
  return `lockstep is making it for run ${run}`;
}

/** What the lock becomes when all of the worktree is there. */
const MADE = "lockstep-made";

/** Why a person wants the worktree to stay; null: it is not locked, or only because it is half made. */
export function lockOn(records: string): string | null {
  if (!existsSync(join(records, "locked"))) return null;
  const reason = lineIn(join(records, "locked"));
  return runIn(reason) === null ? reason : null;
}

/** The run that a worktree was made for; null: nothing says it. */
export function ownerOf(worktree: Tree): string | null {
  const records = worktreeRecords(worktree);
  if (records === null) return null;
  return runIn(lineIn(join(records, "locked"))) ?? runIn(lineIn(join(records, MADE)));
}

function runIn(text: string): string | null {
  const run = /(\S+)$/.exec(text)?.[1] ?? "";
  return text === making(run) ? run : null;
}

/**
 * Its making was begun and not finished: what is in its folder is not what the branch has, and was never worked in. The
 * note of that lies in `info`, where no command in a sandbox can write: what is half made is removed without a look.
 */
export function isHalfMade(worktree: Tree, run: string): boolean {
  return isThere(noteOf(worktree, run));
}

export function beginMaking(worktree: Tree, run: string): void {
  const note = noteOf(worktree, run);
  mkdirSync(dirname(note), { recursive: true });
  putFile(note, `${worktree.path}\n`);
}

export function endMaking(worktree: Tree, run: string): void {
  const records = worktreeRecords(worktree);
  const lock = records === null ? null : join(records, "locked");
  if (records !== null && lock !== null && isThere(lock)) renameSync(lock, join(records, MADE));
  rmSync(noteOf(worktree, run), { force: true });
}

function noteOf({ home }: Tree, run: string): string {
  return join(findGitPlace(home)?.common ?? home, "info", `lockstep-making-${run}`);
}

/**
 * Removes the folder and what git keeps about it, without looking what is in it. Each is moved away first, so that what is
 * there under its own name is always whole; what a killed process left of this is removed by the next.
 */
export async function discardWorktree(worktree: Tree, run: string): Promise<void> {
  const { path } = worktree;
  const records = worktreeRecords(worktree);
  const [folderAway, recordsAway] = awayOf(worktree);
  if (isThere(path)) {
    await rm(folderAway, { recursive: true, force: true });
    renameSync(path, folderAway);
  }
  if (records !== null) {
    rmSync(recordsAway, { recursive: true, force: true });
    renameSync(records, recordsAway);
    removeEmpty(dirname(records));
  }
  rmSync(recordsAway, { recursive: true, force: true });
  if (isThere(folderAway)) await rm(folderAway, { recursive: true, force: true });
  rmSync(noteOf(worktree, run), { force: true });
}

/** Whether anything of the worktree is on the disk, under its own name or moved away. */
export function isLeft(worktree: Tree): boolean {
  const paths = [worktree.path, ...awayOf(worktree)];
  return worktreeRecords(worktree) !== null || paths.some(isThere);
}

/** Whether a removal by Lockstep was begun and not finished. */
export function isHalfRemoved(worktree: Tree): boolean {
  return awayOf(worktree).some(isThere);
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // what it would lie in is a file
  }
}

/** Where they are moved to. */
export function awayOf({ home, path }: Tree): readonly [folder: string, records: string] {
  const name = `lockstep-removed-${basename(path)}`;
  const common = findGitPlace(home)?.common ?? dirname(path);
  return [join(dirname(path), `.${name}`), join(common, name)];
}

function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // others are there
  }
}

/** The first line of a small file; empty: there is none. */
export function lineIn(file: string): string {
  try {
    return pointerIn(file).split("\n")[0]!.trim();
  } catch {
    return "";
  }
}

export function entryNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

export function isSame(one: string, other: string): boolean {
  return one === other || real(one) === real(other);
}

/** With the links on the way resolved as far as it exists. */
function real(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return dirname(path) === path ? path : join(real(dirname(path)), basename(path));
  }
}
