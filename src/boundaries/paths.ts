/**
 * The ground a run stands on: one folder, and the places in it that no tool may change.
 *
 * A path is judged by where it really leads: links are followed as far as the path exists, and the rest is put behind.
 */
import { lstatSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

export type Ground = {
  /** Where the path really is, if that is inside. */
  readonly reading: (path: string) => Place;
  /** The same, if it may also be changed. */
  readonly writing: (path: string) => Place;
};

export type Place =
  /** `path` is absolute and without links; `shown` is relative to the ground, with forward slashes. */
  | { readonly kind: "inside"; readonly path: string; readonly shown: string }
  | { readonly kind: "refused"; readonly why: string };

/** `protect`: further paths, relative to `cwd` or absolute, that are read-only with all that is in them. */
export function createGround(cwd: string, protect: readonly string[]): Ground {
  const reading = (path: string) => locate(cwd, path);
  const writing = (path: string) => {
    const place = locate(cwd, path);
    return place.kind === "refused" ? place : shielded(cwd, path, place, protect);
  };
  return { reading, writing };
}

/** By segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** Git's own files and ours, at any depth. */
const CONTROL: readonly string[] = [".git", ".lockstep"];
/** The definitions of agents, the running one among them. */
const AGENTS = ".agent";

type Inside = Extract<Place, { kind: "inside" }>;

function locate(cwd: string, path: string): Place {
  const fault = faultOf(path);
  if (fault !== null) return refuse(path, fault);
  try {
    const root = realpathSync.native(cwd);
    const real = realPlace(resolve(root, path));
    const walked = realPlace(isAbsolute(path) ? path : root + sep + path);
    if (real !== walked) return refuse(path, 'a ".." in it steps out of a link');
    if (real === null) return refuse(path, "it is a link to something that does not exist");
    if (!isInside(root, real)) return refuse(path, `it is outside the working directory ${cwd}`);
    return { kind: "inside", path: real, shown: relative(root, real).split(sep).join("/") || "." };
  } catch (error) {
    return refuse(path, (error as Error).message);
  }
}

/** Both the path as asked for and the place it leads to must be free: either may be the one that counts. */
function shielded(cwd: string, path: string, place: Inside, protect: readonly string[]): Place {
  try {
    const root = realpathSync.native(cwd);
    const asked = relative(root, resolve(root, path));
    const control = controlPart(place.shown) ?? controlPart(asked);
    if (control !== null) return refuse(path, `${control} is not for tools to change`);
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
  if (/\p{Cc}/u.test(path)) return "it holds a control character";
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

function controlPart(way: string): string | null {
  if (way === ".." || way.startsWith(`..${sep}`)) return null; // another name of the ground: its real one counts
  const parts = way.split(/[\\/]/).map(folded);
  if (parts[0] === AGENTS) return AGENTS;
  return parts.find((part) => CONTROL.includes(part)) ?? null;
}

/** As careless file systems compare names: case, invisible characters, endings and streams do not count. */
function folded(part: string): string {
  const plain = part.normalize("NFKC").replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  const name = plain
    .replace(/:.*$/s, "")
    .replace(/[. ]+$/, "")
    .toLowerCase();
  return name === "git~1" ? ".git" : name;
}

function refuse(path: string, why: string): Place {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return { kind: "refused", why: `${JSON.stringify(shown)} is refused: ${why}.` };
}
