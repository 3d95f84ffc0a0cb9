/** A policy as mounts: every path of it that exists now, each with what becomes of it, parents before children. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { isInside, isInsideAny } from "../gate/paths.ts";
import {
  gitPlaces,
  isWholeRepository,
  keyOf,
  nestedIn,
  nestedPlaces,
  NO_PLACES,
  realOf,
  unfinishedIn,
  type GitPlaces,
  type Watched,
} from "./sandbox-git.ts";
import type { SandboxPolicy } from "./sandbox.ts";

export type Mount = {
  readonly path: string;
  readonly as: "rw" | "ro" | "hidden folder" | "hidden file" | "scratch";
};

export function mountsOf(policy: SandboxPolicy): readonly Mount[] {
  const roots = rootsOf(policy);
  const scratch = SCRATCH.filter((path) => isFolder(path));
  // Tools read their settings in the home folder, and git looks for the whole of a repository: below an empty folder
  // they would be missing.
  const homes = [...real(policy.home), ...repositoryAbove(policy.cwd)].filter(
    (path) => isInsideAny(scratch, path) && !scratch.includes(path),
  );
  /** Whether a path of the host can be seen inside at all. */
  const isSeen = (path: string, covered: readonly string[]) =>
    isInsideAny([...roots, ...homes], path) || !isInsideAny(covered, path);
  const hidden = [...SERVICES, ...policy.hidden]
    .flatMap((path) => real(path))
    .filter((path) => isSeen(path, scratch));
  // Elsewhere they are read-only anyway; below an empty folder they have to be put there.
  const shielded = policy.shielded
    .flatMap((path) => real(path))
    .flatMap((path) => [path].concat(roots.filter((root) => isInside(path, root))))
    .filter((path) => isInsideAny([...roots, ...scratch], path));
  // Names of hosts are looked up by what may lie where commands see nothing.
  const names =
    policy.hosts === "all" ? real("/etc/resolv.conf").filter((path) => isInsideAny(hidden, path)) : [];
  const sockets = boundSockets().filter((path) => isSeen(path, [...scratch, ...hidden]));
  // Where a path has more than one part to play, the last one counts.
  const byPath = new Map<string, Mount["as"]>([
    ...hidden.map((path) => [path, isFolder(path) ? "hidden folder" : "hidden file"] as const),
    ...scratch.map((path) => [path, "scratch"] as const),
    ...homes.map((path) => [path, "ro"] as const),
    ...roots.map((path) => [path, "rw"] as const),
    ...waysTo([...shielded, ...hidden], roots)
      .filter((path) => !isInsideAny([...shielded, ...hidden], path))
      .map((path) => [path, "rw"] as const),
    ...gitOf(policy).flatMap(({ mounts }) => mounts.map(({ path, as }) => [path, as] as const)),
    ...[...shielded, ...names].map((path) => [path, "ro"] as const),
    ...sockets.map((path) => [path, "hidden file"] as const),
  ]);
  return [...byPath]
    .map(([path, as]) => ({ path, as }))
    .toSorted((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
}

/** The working tree that a folder is part of; the folder itself does not count. */
function repositoryAbove(cwd: string): readonly string[] {
  for (let folder = dirname(cwd); folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, ".git"))) return [folder];
  return [];
}

/** The folders that may be written. One that turned into a link since is not followed: a command may have made it. */
export function rootsOf({ cwd, writable }: SandboxPolicy): readonly string[] {
  return [...new Set([cwd, ...writable])].filter((path) => real(path)[0] === path);
}

/** What a command could put in a place where it is found later by a program outside. */
export function watchedPaths(policy: SandboxPolicy): readonly Watched[] {
  return [...gitOf(policy).flatMap(({ watched }) => watched), ...(policy.watched ?? [])];
}

/**
 * The repositories inside of the run's folders that git would look into. SANDBOX_UNAVAILABLE where that cannot be known, or
 * where one of them cannot be kept as it is.
 */
export function nestedRepositories(policy: SandboxPolicy): ReadonlySet<string> {
  try {
    for (const root of rootsOf(policy)) nestedPlaces(root);
    return new Set(rootsOf(policy).flatMap((root) => nestedIn(root).map(keyOf)));
  } catch (cause) {
    const message = `Git settings and hooks of this project cannot be protected from commands: ${errorText(cause)}. Inspect .git before you use it.`;
    throw new RunnerError("SANDBOX_UNAVAILABLE", message, { cause });
  }
}

/** Those that were not among them before: their settings must not be found by git when it is started outside. */
export function newlyNested(policy: SandboxPolicy, before: ReadonlySet<string>): readonly Planted[] {
  return rootsOf(policy)
    .flatMap((root) => nestedIn(root, before))
    .filter((nested) => !before.has(keyOf(nested)))
    .map(({ dot }) => ({ path: dot, link: null }));
}

/** Rebases and the like that git would continue, by their folders. */
export function unfinished(policy: SandboxPolicy): readonly string[] {
  return rootsOf(policy).flatMap((root) => unfinishedIn(root));
}

type Planted = {
  readonly path: string | Buffer;
  readonly link: string | null;
  readonly isMade?: boolean;
  readonly isModule?: boolean;
};

/** What was put back as it was, and where what was found there is now; null: nothing was. */
export type Refused = { readonly path: string; readonly to: string | null };

/**
 * Puts things back as they were. Nothing is deleted: should it be somebody else's after all, it is still there. Throws
 * where the repository of a submodule is none any more: only a person can say what it was.
 */
export function quarantine(watched: readonly Planted[]): readonly Refused[] {
  const moved = movedAway(watched.filter(({ isModule }) => isModule !== true));
  const broken = watched.find(({ path, isModule }) => isModule === true && !isWholeRepository(String(path)));
  if (broken === undefined) return moved;
  throw new Error(`${String(broken.path)} is not a repository any more (see its HEAD, objects and refs)`);
}

function movedAway(watched: readonly Planted[]): readonly Refused[] {
  return watched.flatMap(({ path: said, link, isMade }) => {
    // One byte is one character here: a command may use any bytes.
    const named = Buffer.from(said).toString("latin1");
    // What is missing could be found behind a link that stands for its folder.
    const path = link === null && isLink(bytes(dirname(named))) ? dirname(named) : named;
    const found = lstatSync(bytes(path), { throwIfNoEntry: false });
    if (isMade === true && path === named && found?.isDirectory())
      return linksWithin(path).map((one) => refused(one, setAside(one)));
    const now = found?.isSymbolicLink() ? readlinkSync(bytes(path)) : null;
    if (link === null ? found === undefined : now === link) return [];
    const to = found === undefined ? null : setAside(path);
    if (link !== null) symlinkSync(link, bytes(path));
    return [refused(path, to)];
  });
}

function refused(path: string, to: string | null): Refused {
  return { path: bytes(path).toString("utf8"), to: to === null ? null : bytes(to).toString("utf8") };
}

/** In a folder of folders: programs outside would write through them. */
function linksWithin(folder: string): readonly string[] {
  const within = (path: string) =>
    readdirSync(bytes(path), { encoding: "latin1" }).map((name) => join(path, name));
  const records = within(folder);
  return records.concat(records.filter(isRealFolder).flatMap(within)).filter((path) => isLink(bytes(path)));
}

function isRealFolder(path: string): boolean {
  return lstatSync(bytes(path), { throwIfNoEntry: false })?.isDirectory() === true;
}

/** In a folder of its own, beside where it was, all of which git ignores: so it is not committed by mistake. */
function setAside(path: string): string {
  const folder = unused(join(dirname(path), `lockstep-refused-${basename(path)}`));
  mkdirSync(bytes(folder));
  writeFileSync(bytes(join(folder, ".gitignore")), "*\n", { flag: "wx" });
  // Under no name that anybody obeys.
  const to = join(folder, "refused");
  renameSync(bytes(path), bytes(to));
  return to;
}

function bytes(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

/** Where services listen that take orders: those of the system, of containers, of the user's session. */
const SERVICES = ["/run", "/var/run"];
/** Own, empty and bounded for each command. */
const SCRATCH = ["/tmp", "/var/tmp", "/dev/shm"];

function gitOf(policy: SandboxPolicy): readonly GitPlaces[] {
  const [cwd, ...others] = rootsOf(policy);
  return [
    ...(cwd === undefined ? [] : [gitPlaces(cwd, true)]),
    ...others.map((root) => gitPlaces(root, false)),
    ...rootsOf(policy).map((root) => nestedIfKnown(root)),
  ];
}

/** Where they cannot be known, no command is started: that is checked for each. Looking at the policy goes on. */
function nestedIfKnown(root: string): GitPlaces {
  try {
    return nestedPlaces(root);
  } catch {
    return NO_PLACES;
  }
}

/**
 * The folders between a root and what is kept in it. A folder that only contains a mount could be renamed and made anew;
 * one that is a mount itself stays where it is.
 */
function waysTo(kept: readonly string[], roots: readonly string[]): readonly string[] {
  return kept.flatMap((path) => {
    const way: string[] = [];
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) way.push(folder);
    return way.filter((folder) => roots.some((root) => folder !== root && isInside(root, folder)));
  });
}

/** A socket can be spoken to on a read-only disk as well, of whatever kind it is: all that have a name are taken away. */
function boundSockets(): readonly string[] {
  try {
    const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
    const paths = lines.flatMap((line) => {
      const path = /^\S+: (?:\S+ +){5}\d+ (\/.*)$/.exec(line)?.[1];
      return path === undefined ? [] : [path];
    });
    return [...new Set(paths.flatMap((path) => real(path)))].filter(isSocket);
  } catch {
    return []; // no such list on this system
  }
}

/** Where it really is, if it is anywhere. */
export function real(path: string): readonly string[] {
  return [realOf(path)].filter((found) => found !== null);
}

function isLink(path: Buffer): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Any of them may be gone by now, which says nothing about the others. */
function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function depth(path: string): number {
  return path.split("/").length;
}

function unused(path: string): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? path : `${path}-${n}`;
    if (lstatSync(bytes(name), { throwIfNoEntry: false }) === undefined) return name;
  }
}
