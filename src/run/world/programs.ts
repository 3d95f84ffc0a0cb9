/** Which programs Lockstep itself starts for a run: found once in a process, and never where the run could write. */
import { dirname, isAbsolute, join, resolve } from "node:path";
import { outside, pick, readShelves, type Shelf } from "../../boundaries/sandbox/program.ts";
import { PROGRAM_NAMES, type Programs } from "../../flow/machine/programs.ts";
import { isThere, realPath } from "./files.ts";
import { inThisTurn } from "./read-once-a-turn.ts";
import { homeFolder } from "./project.ts";

/** Where programs are looked for when there is no PATH, as the C library does it. */
const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/** By PATH: a program that is planted later on is never seen. */
const shelves = new Map<string, readonly Shelf[]>();

/**
 * `folders`: where the run works, and what else it may write. The projects and repositories around each of them count
 * as well.
 *
 *     const { git } = programsFor(process.env, ["/my/project"]);
 */
export function programsFor(env: NodeJS.ProcessEnv, folders: readonly string[]): Programs {
  const PATH = env.PATH ?? DEFAULT_PATH;
  const known = shelves.get(PATH) ?? readShelves(PATH, PROGRAM_NAMES);
  shelves.set(PATH, known);
  const left = [...new Set([...new Set(folders)].flatMap(around))];
  // What lies in the home folder counts only where the system has none: a program there is easily put in place.
  const home = env.HOME === undefined ? left : [...left, realHome(env)];
  const key = [PATH, ...home, left.length].join("\0");
  if (newest?.key !== key) newest = { key, programs: chosen(known, home, left) };
  return newest.programs;
}

/** Runs that begin one after the other mostly do so in the same project. */
let newest: { readonly key: string; readonly programs: Programs } | null = null;

function chosen(known: readonly Shelf[], home: readonly string[], left: readonly string[]): Programs {
  const found = PROGRAM_NAMES.map(
    (name) => [name, pick(name, known, home) ?? pick(name, known, left)] as const,
  );
  const path = [...new Set([...outside(known, home), ...outside(known, left)])].map(({ folder }) => folder);
  return { ...(Object.fromEntries(found) as Omit<Programs, "path">), path: path.join(":") };
}

/** A program that the user's own settings name: an absolute path as it is, a name as above. null: there is none. */
export function findProgram(name: string, env: NodeJS.ProcessEnv, folders: readonly string[]): string | null {
  if (isAbsolute(name)) return name;
  if (name.includes("/")) return null;
  return pick(name, readShelves(env.PATH ?? DEFAULT_PATH, [name]), folders.flatMap(around));
}

function realHome(env: NodeJS.ProcessEnv): string {
  const home = homeFolder(env);
  return inThisTurn(["home", home], () => realPath(home));
}

/** The folder, and the tops of the project and the repository that it lies in. */
function around(folder: string): readonly string[] {
  const path = resolve(folder);
  return inThisTurn(["around", path], () => topsAround(path));
}

function topsAround(path: string): readonly string[] {
  const own = realPath(path);
  // Below "/" lies everything: without it there would be no program at all.
  return [own, topOf(own, [".git"]), topOf(own, [".agent", ".lockstep"])].filter((top) => top !== "/");
}

/** The nearest folder at or above that has one of these; the folder itself where none has. */
function topOf(folder: string, names: readonly string[]): string {
  for (let at = folder; ; at = dirname(at)) {
    if (names.some((name) => isThere(join(at, name)))) return at;
    if (at === dirname(at)) return folder;
  }
}
