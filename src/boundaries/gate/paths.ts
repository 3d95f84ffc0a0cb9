/**
 * The ground a run stands on: one folder, the places in it that no tool may change, and those that no tool may read.
 *
 * A path is judged by where it really leads: links are followed as far as the path exists, and the rest is put behind.
 */
import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { foldedName } from "../../flow/machine/control.ts";
import type { GroundPlace, InGround, Pins } from "../../flow/machine/ground.ts";
import { openPins } from "../tools/pinned.ts";

export type Ground = {
  /** Where the path really is, if that is inside and may be read. */
  readonly reading: (path: string) => GroundPlace;
  /** The same, if it may also be changed. */
  readonly writing: (path: string) => GroundPlace;
  /** Whether the file or folder with these parts is passed over when the folder it lies in is listed. */
  readonly isRecord: (parts: readonly string[]) => boolean;
  /** The folder itself, held: what a place names is used through it. To be disposed of. */
  readonly pin: () => Pins;
};

/** Places that belong to Lockstep and not to the run. All paths are absolute and without links. */
export type Guarded = {
  /** Read-only with all that is in them; what is missing may not be made. */
  readonly fixed: readonly Fixed[];
  /** Where runs are recorded and settings are kept: neither read nor changed. */
  readonly records: readonly string[];
};

/** `what` it is, as in "… is WHAT". */
export type Fixed = { readonly path: string; readonly what: string };

const UNGUARDED: Guarded = { fixed: [], records: [] };

/**
 * `protect`: further paths, relative to `cwd` or absolute, that are read-only with all that is in them. `guarded` is
 * asked when a tool is first used: most runs use none.
 */
export function createGround(
  cwd: string,
  protect: readonly string[],
  guarded: () => Guarded = () => UNGUARDED,
): Ground {
  let known: GuardedBelow | null = null;
  const around = () => (known ??= guardedBelow(cwd, guarded()));
  const reading = (path: string) => {
    const place = locate(cwd, path);
    return place.kind === "refused" ? place : readable(cwd, path, place, around().records);
  };
  const writing = (path: string) => {
    const place = locate(cwd, path);
    if (place.kind === "refused") return place;
    const judged = shielded(cwd, path, place, protect, around().fixed);
    return judged.kind === "refused" ? judged : readable(cwd, path, place, around().records);
  };
  const isRecord = (parts: readonly string[]) =>
    foldedName(parts.at(-1) ?? "") === RECORDS ||
    around().records.some(
      (one) => one.parts.length === parts.length && startsWith(parts.map(foldedName), one.parts),
    );
  return { reading, writing, isRecord, pin: () => openPins(realpathSync.native(cwd)) };
}

/** Whether a glob asks for the records of runs by name. */
export function namesRecords(pattern: string): string | null {
  if (!pattern.split(/[\\/{},]/).some((part) => foldedName(part) === RECORDS)) return null;
  return refusal(pattern, NOT_FOR_READING);
}

/** By segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

export function isInsideAny(roots: readonly string[], path: string): boolean {
  return roots.some((root) => isInside(root, path));
}

/** The records of runs, at any depth. */
const RECORDS = ".lockstep";
const NOT_FOR_READING = ".lockstep holds the records of runs, which tools may not read";
/** Git's own files and ours, at any depth. */
const CONTROL: readonly string[] = [".git", RECORDS];
/** The definitions of agents, the running one among them. */
const AGENTS = ".agent";

function locate(cwd: string, path: string): GroundPlace {
  const fault = faultOf(path);
  if (fault !== null) return refuse(path, fault);
  try {
    const root = realpathSync.native(cwd);
    const real = realPlace(resolve(root, path));
    const walked = realPlace(isAbsolute(path) ? path : root + sep + path);
    if (real !== walked) return refuse(path, 'a ".." in it steps out of a link');
    if (real === null) return refuse(path, "it is a link to something that does not exist");
    if (!isInside(root, real)) return refuse(path, `it is outside the working directory ${cwd}`);
    const parts = real === root ? [] : relative(root, real).split(sep);
    return { kind: "inside", path: real, parts, shown: parts.join("/") || "." };
  } catch (error) {
    return refuse(path, (error as Error).message);
  }
}

/** Something of Lockstep that lies below the ground, with its foldedName parts. */
type Below<T> = { readonly it: T; readonly parts: readonly string[] };

type GuardedBelow = {
  readonly fixed: readonly Below<Fixed>[];
  readonly records: readonly Below<string>[];
};

function guardedBelow(cwd: string, { fixed, records }: Guarded): GuardedBelow {
  return {
    fixed: below(cwd, fixed, ({ path }) => path),
    // A worktree may lie below a folder of records: what is in the worktree is not a record.
    records: below(cwd, records, (path) => path).filter(({ parts }) => parts.length > 0),
  };
}

function below<T>(cwd: string, all: readonly T[], pathOf: (one: T) => string): readonly Below<T>[] {
  if (all.length === 0) return [];
  const root = realPlace(resolve(cwd)) ?? resolve(cwd);
  return all.flatMap((it) => {
    const way = relative(root, pathOf(it));
    // Lockstep may be developed with Lockstep: a folder around the ground speaks of the whole ground.
    if (isInside(pathOf(it), root)) return [{ it, parts: [] }];
    return isInside(root, pathOf(it)) ? [{ it, parts: way.split(sep).map(foldedName) }] : [];
  });
}

function startsWith(parts: readonly string[], start: readonly string[]): boolean {
  return start.length <= parts.length && start.every((part, index) => parts[index] === part);
}

/** The parts of the place and those of the path as asked for: either may be the one that counts. */
function waysOf(cwd: string, path: string, place: InGround): readonly (readonly string[])[] {
  const root = realpathSync.native(cwd);
  const asked = relative(root, resolve(root, path));
  const isOther = asked === ".." || asked.startsWith(`..${sep}`) || isAbsolute(asked);
  // By another name of the ground: its real one counts.
  return [place.parts.map(foldedName), ...(isOther ? [] : [asked.split(/[\\/]/).map(foldedName)])];
}

function readable(
  cwd: string,
  path: string,
  place: InGround,
  records: readonly Below<string>[],
): GroundPlace {
  try {
    const ways = waysOf(cwd, path, place);
    if (ways.some((parts) => parts.includes(RECORDS))) return refuse(path, NOT_FOR_READING);
    const record = records.find(({ parts }) => ways.some((way) => startsWith(way, parts)));
    if (record === undefined) return place;
    return refuse(path, `${record.it} belongs to Lockstep, and tools may not read it`);
  } catch (error) {
    return refuse(path, (error as Error).message);
  }
}

function shielded(
  cwd: string,
  path: string,
  place: InGround,
  protect: readonly string[],
  fixed: readonly Below<Fixed>[],
): GroundPlace {
  try {
    const root = realpathSync.native(cwd);
    const ways = waysOf(cwd, path, place);
    const control = ways.map(controlPart).find((part) => part !== null);
    if (control !== undefined) return refuse(path, `${control} is not for tools to change`);
    const own = fixed.find(({ parts }) => ways.some((way) => startsWith(way, parts)));
    if (own !== undefined)
      return refuse(path, `${own.it.path} is ${own.it.what} and is read-only in this run`);
    const shield = [...CONTROL, AGENTS, ...protect].find((name) => {
      const real = realPlace(resolve(root, name));
      return real !== null && isInside(real, place.path);
    });
    return shield === undefined ? place : refuse(path, `${shield} is read-only in this run`);
  } catch (error) {
    return refuse(path, (error as Error).message);
  }
}

function faultOf(path: string): string | null {
  if (path === "") return "it is empty";
  if (/\p{Cc}/u.test(path)) return "it contains a control character";
  if (path === "~" || path.startsWith("~/"))
    return "~ is not expanded; give a path inside the working directory";
  return null;
}

/** Where the path leads, also if its last parts do not exist yet; null for a link into nothing. */
function realPlace(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return null;
  const parent = realPlace(dirname(path));
  return parent === null ? null : join(parent, basename(path));
}

function controlPart(parts: readonly string[]): string | null {
  if (parts[0] === AGENTS) return AGENTS;
  return parts.find((part) => CONTROL.includes(part)) ?? null;
}

function refuse(path: string, why: string): GroundPlace {
  return { kind: "refused", why: refusal(path, why) };
}

function refusal(path: string, why: string): string {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return `${JSON.stringify(shown)} is refused: ${why}.`;
}
