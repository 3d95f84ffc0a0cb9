/** The repository around a folder, read from its files alone: git is not started, because what is here decides where it may be. */
import { readdirSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { findGitPlace } from "../../effects/git/git-place.ts";
import { realPath, textIfAny } from "./files.ts";

export type ProjectRepository = {
  /** The top of the working tree that the folder is in; the folder itself where there is no repository. */
  readonly top: string;
  /** The working tree that the others were made from. */
  readonly main: string;
  /** The real paths of all working trees, with `top` and `main`. */
  readonly trees: readonly string[];
};

export function repositoryAround(folder: string): ProjectRepository {
  const place = findGitPlace(folder);
  if (place === null) {
    const start = realPath(folder);
    return { top: start, main: start, trees: [start] };
  }
  const { top, gitDir, common } = place;
  const main = common === gitDir ? top : basename(common) === ".git" ? dirname(common) : common;
  return { top, main, trees: [...new Set([top, main, ...linkedTrees(common)])] };
}

function linkedTrees(common: string): readonly string[] {
  const folder = join(common, "worktrees");
  return namesIn(folder).flatMap((name) => {
    const file = textIfAny(join(folder, name, "gitdir"), MOST_BYTES).trim();
    return isAbsolute(file) ? [realPath(dirname(file))] : [];
  });
}

const MOST_BYTES = 64 * 1024;

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
