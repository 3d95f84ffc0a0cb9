/** Where the repository of a folder is, found as git finds it and without starting anything. */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";

export type GitPlace = {
  /** The folder that holds `.git`. */
  readonly top: string;
  /** What is this working tree's own, and what all working trees of the repository share. */
  readonly gitDir: string;
  readonly common: string;
};

/** null: the folder is in no working tree. A folder that is a repository by itself, without `.git`, counts as none. */
export function findGitPlace(folder: string): GitPlace | null {
  try {
    for (let top = realpathSync.native(folder); ; top = dirname(top)) {
      const gitDir = gitDirAt(join(top, ".git"));
      if (gitDir !== null) return { top, gitDir, common: commonOf(gitDir) };
      if (top === dirname(top)) return null;
    }
  } catch {
    return null; // it is gone, or is not ours to see
  }
}

function gitDirAt(dot: string): string | null {
  const found = lstatSync(dot, { throwIfNoEntry: false });
  if (found === undefined) return null;
  const named = statSync(dot, { throwIfNoEntry: false })?.isFile()
    ? /^gitdir: (.+?)\n*$/.exec(pointerIn(dot))
    : null;
  const folder = named === null ? dot : resolve(dirname(dot), named[1]!);
  if (!existsSync(join(folder, "HEAD"))) return null;
  return realpathSync.native(folder);
}

function commonOf(gitDir: string): string {
  const file = join(gitDir, "commondir");
  return existsSync(file) ? realpathSync.native(resolve(gitDir, pointerIn(file).trim())) : gitDir;
}

/** A pointer is a line; anything longer is something else, and a pipe would never end. */
export function pointerIn(file: string): string {
  const open = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const found = fstatSync(open);
    return found.isFile() && found.size <= 64 * 1024 ? readFileSync(open, "utf8") : "";
  } finally {
    closeSync(open);
  }
}
