/** The repository around a folder, read from its files alone: git is not started, because what is here decides where it may be. */
import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { readTextFile } from "./files.ts";

export type ProjectRepository = {
  /** The top of the working tree that the folder is in; the folder itself where there is no repository. */
  readonly top: string;
  /** The working tree that the others were made from. */
  readonly main: string;
  /** The real paths of all working trees, with `top` and `main`. */
  readonly trees: readonly string[];
};

export function repositoryAround(folder: string): ProjectRepository {
  const start = realPath(folder);
  for (let top = start; ; top = dirname(top)) {
    const found = lstatSync(join(top, ".git"), { throwIfNoEntry: false });
    const git = found?.isDirectory() ? join(top, ".git") : found?.isFile() ? gitDir(top) : null;
    if (git !== null) {
      const common = commonDir(git);
      const main = common === git ? top : basename(common) === ".git" ? dirname(common) : common;
      return { top, main, trees: [...new Set([top, main, ...linkedTrees(common)])] };
    }
    if (top === dirname(top)) return { top: start, main: start, trees: [start] };
  }
}

/** `.git` is a file in a linked working tree and in a submodule: it names the folder that git keeps about it. */
function gitDir(top: string): string | null {
  const named = /^gitdir: (.+)$/m.exec(textOf(join(top, ".git")))?.[1];
  return named === undefined ? null : realPath(resolve(top, named));
}

/** That of a linked working tree names the one that all share. */
function commonDir(git: string): string {
  const common = textOf(join(git, "commondir")).trim();
  return common === "" ? git : realPath(resolve(git, common));
}

function linkedTrees(common: string): readonly string[] {
  const folder = join(common, "worktrees");
  return namesIn(folder).flatMap((name) => {
    const file = textOf(join(folder, name, "gitdir")).trim();
    return isAbsolute(file) ? [realPath(dirname(file))] : [];
  });
}

/** With the links on the way resolved as far as it exists. */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPath(above), path.slice(above.length).replace(/^[/\\]+/, ""));
  }
}

/** The folder itself counts. Both are real paths. */
export function isWithinRepository(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

const MOST_BYTES = 64 * 1024;

function textOf(file: string): string {
  try {
    // Most of these do not exist, and an exception for each would cost more.
    const isThere = lstatSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
    return isThere ? readTextFile(file, MOST_BYTES) : "";
  } catch {
    return "";
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
