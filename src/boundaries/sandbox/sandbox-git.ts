/**
 * Git inside the sandbox: commands may stage and commit, and may not leave behind what git would run later, outside:
 * hooks, configuration, attributes, and the files that say where those are.
 *
 * A folder that only *contains* read-only places could be renamed and made anew, so every folder on the way to them is a
 * mount point too: those cannot be moved.
 */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { gitlinksIn } from "./git-index.ts";
import { isInside } from "../gate/paths.ts";
import { readRegular } from "../tools/small-file.ts";

export type GitPlaces = {
  readonly mounts: readonly { readonly path: string; readonly as: "rw" | "ro" }[];
  /** What is not there, or is a link, cannot be made read-only: afterwards it must be as it was. */
  readonly watched: readonly Watched[];
};

/**
 * `link`: where it leads; null: there is nothing. `isMade`: others may make a folder there meanwhile, without links in it.
 * `isModule`: the repository of a submodule is there, and has to be one afterwards.
 */
export type Watched = {
  readonly path: string;
  readonly link: string | null;
  readonly isMade?: boolean;
  readonly isModule?: boolean;
};

/** For one folder that may be written. `above`: its repository may begin further up. */
export function gitPlaces(root: string, above: boolean): GitPlaces {
  const dot = join(root, ".git");
  const found = lstatSync(dot, { throwIfNoEntry: false });
  if (found === undefined) return above ? placesAbove(root) : NO_PLACES;
  if (found.isDirectory()) return controlFolder(dot);
  if (found.isSymbolicLink()) return behindLink(root, dot);
  const link = worktreeOf(dot);
  const pointer = { path: dot, as: "ro" } as const;
  if (link === null) return { mounts: [pointer], watched: [] };
  const own = controlFolder(link.admin, ["commondir", "gitdir", "config.worktree"]);
  return together([{ mounts: [pointer], watched: [] }, controlFolder(link.common), own]);
}

function together(all: readonly GitPlaces[]): GitPlaces {
  return { mounts: all.flatMap(({ mounts }) => mounts), watched: all.flatMap(({ watched }) => watched) };
}

/** A repository inside of another one, by its `.git`: a path may be any bytes. */
export type Nested = { readonly dot: Buffer; readonly parent: string };

/**
 * The repositories inside of a folder that an index records, that of a repository among them too. Outside, git looks into
 * these and obeys their settings, whereas others that lie around are only listed. `known`: any other one is not looked
 * into. Throws where an index is not understood.
 */
export function nestedIn(root: string, known?: ReadonlySet<string>): readonly Nested[] {
  for (let top = root; ; top = dirname(top)) {
    const dot = join(top, ".git");
    if (lstatSync(dot, { throwIfNoEntry: false }) !== undefined) {
      const all: Nested[] = [];
      collectNested(top, { root, known, all, depth: 0 });
      return all;
    }
    if (top === dirname(top)) return [];
  }
}

/** One byte is one character, so that any path can be compared. */
export function keyOf({ dot }: Nested): string {
  return dot.toString("latin1");
}

type Collected = {
  readonly root: string;
  readonly known: ReadonlySet<string> | undefined;
  readonly all: Nested[];
  readonly depth: number;
};

const MOST_NESTED = 2000;
const DEEPEST = 8;

function collectNested(top: string, collected: Collected): void {
  const { root, known, all, depth } = collected;
  const folder = gitDirOf(join(top, ".git"));
  if (folder === null) return;
  for (const path of gitlinksIn(folder, commonOf(folder))) {
    const dot = Buffer.concat([Buffer.from(`${top}/`), path, Buffer.from("/.git")]);
    const text = dot.toString("utf8");
    if (!isInside(root, text) || lstatSync(dot, { throwIfNoEntry: false }) === undefined) continue;
    const nested = { dot, parent: folder };
    all.push(nested);
    if (all.length > MOST_NESTED) throw new Error(`${top} holds more than ${MOST_NESTED} repositories`);
    if (known?.has(keyOf(nested)) === false || realOf(dirname(text)) !== dirname(text)) continue;
    if (depth >= DEEPEST) throw new Error(`${text} is nested too deep`);
    collectNested(dirname(text), { ...collected, depth: depth + 1 });
  }
}

/** Commands may work in those that are there, and may not change what git obeys there. */
export function nestedPlaces(root: string): GitPlaces {
  const places = nestedIn(root).map(({ dot: bytes, parent }) => {
    const dot = bytes.toString("utf8");
    if (!Buffer.from(dot).equals(bytes)) throw new Error(`${dot} has a name that is not UTF-8`);
    // Behind a link it is somewhere else, and not ours to open.
    if (realOf(dirname(dot)) !== dirname(dot)) return NO_PLACES;
    const found = lstatSync(dot, { throwIfNoEntry: false });
    if (found === undefined) return NO_PLACES;
    if (found.isDirectory()) return controlFolder(dot);
    const own: GitPlaces = found.isSymbolicLink()
      ? { mounts: [], watched: [{ path: dot, link: readlinkSync(dot) }] }
      : { mounts: [{ path: dot, as: "ro" }], watched: [] };
    const target = gitDirOf(dot);
    // The parent's own folder is fixed already.
    if (target === null || !isInside(root, target) || isInside(commonOf(parent), target)) return own;
    return together([own, controlFolder(target)]);
  });
  return together(places);
}

/** What git left unfinished, and would continue with the programs that are named there. */
export function unfinishedIn(root: string): readonly string[] {
  const folder = gitDirOf(join(root, ".git"));
  if (folder === null) return [];
  return ["rebase-merge", "rebase-apply", "sequencer"]
    .map((name) => join(folder, name))
    .filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined);
}

/** The folder that git keeps about a working tree, wherever it is; null: there is none. */
function gitDirOf(dot: string): string | null {
  const real = realOf(dot);
  const found = real === null ? undefined : lstatSync(real, { throwIfNoEntry: false });
  if (real === null || found === undefined) return null;
  if (found.isDirectory()) return real;
  const said = found.isFile() ? /^gitdir: (.+)$/m.exec(textIn(real))?.[1] : undefined;
  return said === undefined ? null : realOf(resolve(dirname(real), said));
}

function commonOf(folder: string): string {
  const said = readRegular(join(folder, "commondir"))?.toString("utf8").trim() ?? "";
  return said === "" ? folder : (realOf(resolve(folder, said)) ?? folder);
}

/** null: it does not exist, or is not ours to see. */
export function realOf(path: string): string | null {
  try {
    // Most of what is asked for does not exist, and an exception for each would be a good part of what a command costs.
    return existsSync(path) ? realpathSync.native(path) : null;
  } catch {
    return null;
  }
}

function textIn(path: string): string {
  return readRegular(path)?.toString("utf8") ?? "";
}

export const NO_PLACES: GitPlaces = { mounts: [], watched: [] };

/** What git obeys when it is started outside: programs, settings, and where to look for them. */
const FIXED = ["config", "config.worktree", "hooks", "info", "commondir", "worktrees"];

/**
 * `names`: what is fixed in the folder itself; in the repositories of submodules below it, it is always the same. A folder
 * among them that is not a whole repository is read-only: git would take what is new in it for the repository of a submodule.
 */
function controlFolder(folder: string, names: readonly string[] = FIXED): GitPlaces {
  const modules = join(folder, "modules");
  const below = moduleFolders(modules);
  if (below === null) return together([opened(folder, names), { mounts: [keptAs(modules)], watched: [] }]);
  const whole = below.filter(isWholeRepository);
  const others = below.filter((path) => !whole.includes(path));
  return together([
    opened(folder, names),
    { mounts: others.map(keptAs), watched: [] },
    ...whole.map((path) => opened(path, FIXED)),
    { mounts: [], watched: whole.map((path) => ({ path, link: null, isModule: true })) },
  ]);
}

function keptAs(path: string): GitPlaces["mounts"][number] {
  return { path, as: "ro" };
}

/** A repository's own folder, but for what is fixed in it. Where there are no modules, none may be made. */
function opened(folder: string, names: readonly string[]): GitPlaces {
  const isFolder = lstatSync(join(folder, "modules"), { throwIfNoEntry: false })?.isDirectory() ?? false;
  const own: GitPlaces = { mounts: [{ path: folder, as: "rw" }], watched: [] };
  return together([own, fixed(folder, isFolder ? names : [...names, "modules"])]);
}

/** Links are never followed: a command may have made them, and they would open what they lead to. */
function fixed(folder: string, names: readonly string[]): GitPlaces {
  const mounts: GitPlaces["mounts"][number][] = [];
  const watched: Watched[] = [];
  for (const path of names.map((name) => join(folder, name))) {
    const found = lstatSync(path, { throwIfNoEntry: false });
    // Other runs may make worktrees at any moment.
    if (found === undefined)
      watched.push({ path, link: null, ...(basename(path) === "worktrees" && { isMade: true }) });
    else if (found.isSymbolicLink()) watched.push({ path, link: readlinkSync(path) });
    else mounts.push({ path, as: "ro" });
  }
  return { mounts, watched };
}

/**
 * The folder of modules and every folder below it down to the last repository: all of them have to stay in place. null:
 * too many, too deep, or not to be read, so that it can only be kept as a whole.
 */
function moduleFolders(folder: string): readonly string[] | null {
  const all: string[] = [];
  const collect = (path: string, depth: number): boolean => {
    if (!(lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false)) return true;
    all.push(path);
    if (depth > DEEPEST_MODULES || all.length > MOST_MODULES) return false;
    const names = isWholeRepository(path) ? ["modules"] : isRepository(path) ? [] : readdirSync(path);
    return names.every((name) => collect(join(path, name), depth + 1));
  };
  try {
    return collect(folder, 0) ? all : null;
  } catch {
    return null;
  }
}

const MOST_MODULES = 100;
const DEEPEST_MODULES = 8;

/**
 * Whether git takes a folder for a repository. It refuses to use one inside of another, but not inside of one whose HEAD a
 * command took away.
 */
export function isWholeRepository(folder: string): boolean {
  try {
    for (const name of ["objects", "refs"]) accessSync(join(folder, name), constants.X_OK);
    return /^(?:ref:\s*refs\/|[0-9a-f]{40})/i.test(textIn(join(folder, "HEAD")));
  } catch {
    return false; // it is not there, or not to be read
  }
}

/** By its configuration too, which a command cannot take away. */
function isRepository(folder: string): boolean {
  return existsSync(join(folder, "config")) || existsSync(join(folder, "HEAD"));
}

/** The project is part of a repository: git works, and a repository of its own would take its place. */
function placesAbove(root: string): GitPlaces {
  for (let folder = dirname(root); folder !== dirname(folder); folder = dirname(folder)) {
    if (!existsSync(join(folder, ".git"))) continue;
    const none = { path: join(root, ".git"), link: null };
    return together([gitPlaces(folder, false), { mounts: [], watched: [none] }]);
  }
  return NO_PLACES;
}

/** Another repository's folder is not ours to open; one that lies in the project is writable already. */
function behindLink(root: string, dot: string): GitPlaces {
  const link = { path: dot, link: readlinkSync(dot) };
  const real = existsSync(dot) ? realpathSync.native(dot) : null;
  const own = { mounts: [], watched: [link] };
  if (real === null || !isInside(root, real) || !statSync(real).isDirectory()) return own;
  return together([own, controlFolder(real)]);
}

/**
 * The pointer is a file of the project, and could name any folder. It counts only if what it names is the record of a
 * worktree that points back to it.
 */
function worktreeOf(dot: string): { readonly admin: string; readonly common: string } | null {
  try {
    const said = /^gitdir: (.+)$/m.exec(textIn(dot))?.[1];
    if (said === undefined) return null;
    const admin = realpathSync.native(resolve(dirname(dot), said));
    const back = textIn(join(admin, "gitdir")).trim();
    if (realpathSync.native(resolve(admin, back)) !== realpathSync.native(dot)) return null;
    const common = realpathSync.native(resolve(admin, textIn(join(admin, "commondir")).trim()));
    const isOurs = dirname(admin) === join(common, "worktrees") && isRepository(common);
    return isOurs ? { admin, common } : null;
  } catch {
    return null; // not a worktree
  }
}
