/**
 * Git inside the sandbox: commands may stage and commit, and may not leave behind what git would run later, outside:
 * hooks, configuration, attributes, and the files that say where those are.
 *
 * A folder that only *contains* read-only places could be renamed and made anew, so every folder on the way to them is a
 * mount point too: those cannot be moved.
 */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { gitlinksIn } from "./git-index.ts";
import { isInside } from "./paths.ts";

export type GitPlaces = {
  readonly mounts: readonly { readonly path: string; readonly as: "rw" | "ro" }[];
  /** What is not there, or is a link, cannot be made read-only: afterwards it must be as it was. */
  readonly watched: readonly Watched[];
};

/** `link`: where it leads; null: there is nothing. */
export type Watched = { readonly path: string; readonly link: string | null };

/** For one folder that may be written. `above`: its repository may begin further up. */
export function gitPlaces(root: string, above: boolean): GitPlaces {
  const dot = join(root, ".git");
  const found = lstatSync(dot, { throwIfNoEntry: false });
  if (found === undefined) return above ? placesAbove(root) : NOTHING;
  if (found.isDirectory()) return controlFolder(dot);
  if (found.isSymbolicLink()) return behindLink(root, dot);
  const link = worktreeOf(dot);
  const pointer = { path: dot, as: "ro" } as const;
  if (link === null) return { mounts: [pointer], watched: [] };
  const common = controlFolder(link.common);
  const own = fixed(link.admin, ["commondir", "gitdir", "config.worktree"]);
  return {
    mounts: [pointer, ...common.mounts, { path: link.admin, as: "rw" }, ...own.mounts],
    watched: [...common.watched, ...own.watched],
  };
}

/**
 * The repositories inside of a folder that the index records, by their `.git`. Outside, git looks into these and obeys
 * their settings, whereas others that lie around are only listed.
 */
export function nestedIn(root: string): readonly string[] {
  for (let top = root; ; top = dirname(top)) {
    const dot = join(top, ".git");
    const found = lstatSync(dot, { throwIfNoEntry: false });
    if (found !== undefined) {
      const folder = found.isDirectory() ? dot : (worktreeOf(dot)?.admin ?? null);
      const links = folder === null ? [] : gitlinksIn(join(folder, "index"));
      return links.map((path) => join(top, path, ".git")).filter((path) => isInside(root, path));
    }
    if (top === dirname(top)) return [];
  }
}

/** Those that are there: commands may work in them, and may not change what git obeys there. */
export function nestedPlaces(root: string): GitPlaces {
  const places = nestedIn(root).flatMap((dot): readonly GitPlaces[] => {
    const found = lstatSync(dot, { throwIfNoEntry: false });
    // Behind a link it is somewhere else, and not ours to open.
    if (found === undefined || realpathSync.native(dot) !== dot) return [];
    return found.isDirectory() ? [controlFolder(dot)] : [{ mounts: [{ path: dot, as: "ro" }], watched: [] }];
  });
  return {
    mounts: places.flatMap(({ mounts }) => mounts),
    watched: places.flatMap(({ watched }) => watched),
  };
}

const NOTHING: GitPlaces = { mounts: [], watched: [] };

/** What git obeys when it is started outside: programs, settings, and where to look for them. */
const FIXED = ["config", "config.worktree", "hooks", "info", "commondir", "worktrees"];

function controlFolder(folder: string): GitPlaces {
  const folders = [folder, ...moduleFolders(join(folder, "modules"))];
  const places = folders.map((path) => fixed(path, path === folder || isRepository(path) ? FIXED : []));
  return {
    mounts: [
      ...folders.map((path) => ({ path, as: "rw" }) as const),
      ...places.flatMap(({ mounts }) => mounts),
    ],
    // Other runs may make worktrees at any moment, and a planted record of one is of no use to anybody.
    watched: places
      .flatMap(({ watched }) => watched)
      .filter(({ path, link }) => link !== null || basename(path) !== "worktrees"),
  };
}

/** Links are never followed: a command may have made them, and they would open what they lead to. */
function fixed(folder: string, names: readonly string[]): GitPlaces {
  const mounts: GitPlaces["mounts"][number][] = [];
  const watched: Watched[] = [];
  for (const path of names.map((name) => join(folder, name))) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) watched.push({ path, link: null });
    else if (found.isSymbolicLink()) watched.push({ path, link: readlinkSync(path) });
    else mounts.push({ path, as: "ro" });
  }
  return { mounts, watched };
}

/** The folder of modules and every folder below it down to the last repository: all of them have to stay in place. */
function moduleFolders(folder: string): readonly string[] {
  if (!(lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false)) return [];
  const names = isRepository(folder) ? ["modules"] : readdirSync(folder);
  return [folder, ...names.flatMap((name) => moduleFolders(join(folder, name)))];
}

/** By its configuration too, which a command cannot take away. */
function isRepository(folder: string): boolean {
  return existsSync(join(folder, "config")) || existsSync(join(folder, "HEAD"));
}

/** The project is part of a repository: git works, and a repository of its own would take its place. */
function placesAbove(root: string): GitPlaces {
  for (let folder = dirname(root); folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, ".git"))) continue;
    const { mounts, watched } = gitPlaces(folder, false);
    return { mounts, watched: [...watched, { path: join(root, ".git"), link: null }] };
  }
  return NOTHING;
}

/** Another repository's folder is not ours to open; one that lies in the project is writable already. */
function behindLink(root: string, dot: string): GitPlaces {
  const link = { path: dot, link: readlinkSync(dot) };
  const real = existsSync(dot) ? realpathSync.native(dot) : null;
  if (real === null || !isInside(root, real) || !statSync(real).isDirectory())
    return { mounts: [], watched: [link] };
  const { mounts, watched } = controlFolder(real);
  return { mounts, watched: [link, ...watched] };
}

/**
 * The pointer is a file of the project, and could name any folder. It counts only if what it names is the record of a
 * worktree that points back to it.
 */
function worktreeOf(dot: string): { readonly admin: string; readonly common: string } | null {
  try {
    const said = /^gitdir: (.+)$/m.exec(readFileSync(dot, "utf8"))?.[1];
    if (said === undefined) return null;
    const admin = realpathSync.native(resolve(dirname(dot), said));
    const back = readFileSync(join(admin, "gitdir"), "utf8").trim();
    if (realpathSync.native(resolve(admin, back)) !== realpathSync.native(dot)) return null;
    const common = realpathSync.native(resolve(admin, readFileSync(join(admin, "commondir"), "utf8").trim()));
    const isOurs = dirname(admin) === join(common, "worktrees") && isRepository(common);
    return isOurs ? { admin, common } : null;
  } catch {
    return null; // not a worktree
  }
}
