/**
 * What Lockstep itself loads or reads, as far as it lies where a run may write: its own package, every package it may
 * load, `node_modules/.bin`, the settings of the package manager that starts it, and the Node that runs it.
 *
 * A missing place counts too. Node looks for a package in one folder after the other, so a folder that is made nearer to
 * us, or where a package is not installed, would be loaded instead.
 */
import { lstatSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Fixed, Guarded } from "../../boundaries/gate/paths.ts";
import { isFolder, isThere, realPath } from "./files.ts";
import { keepImports } from "./own-imports.ts";
import { loadedBy } from "./own-modules.ts";
import { settingsFolder } from "./project.ts";

export type OwnFiles = {
  /** Absolute and without links. They exist. */
  readonly there: readonly Fixed[];
  /** They do not exist, and may not be made. */
  readonly missing: readonly Fixed[];
  /** Links on the way to any of them, and where they lead. */
  readonly links: readonly { readonly path: string; readonly to: string }[];
  /** All that this process may load, wherever it lies. */
  readonly packages: readonly string[];
};

type Env = { readonly [name: string]: string | undefined };

const NOTHING: OwnFiles = { there: [], missing: [], links: [], packages: [] };

/** The same in all runs of this process that may write to the same folders. `roots` are absolute and without links. */
export function ownFiles(
  roots: readonly string[],
  env: Env = process.env,
  modules: readonly string[] = [],
): OwnFiles {
  const key = JSON.stringify([roots, env["PATH"], env["LOCKSTEP_PACKAGES"], modules]);
  const known = KNOWN.get(key) ?? withModules(find(roots, env), roots, modules);
  KNOWN.set(key, known);
  return known;
}

const KNOWN = new Map<string, OwnFiles>();

/** The same for tools, with the places of one run. */
export function guardedIn(
  { cwd, root, stateDir }: { readonly cwd: string; readonly root: string; readonly stateDir: string },
  env: Env = process.env,
  modules: readonly string[] = [],
): Guarded {
  const { there, missing } = keptIn([realPath(cwd)], env, modules);
  const agents = realPath(join(root, ".agent"));
  return {
    fixed: [...there, ...missing, { path: agents, what: "where the agents are defined" }],
    records: [realPath(stateDir), realPath(settingsFolder(env))],
  };
}

/** From here on, no package is loaded that comes into being in these folders. */
export function keptIn(
  roots: readonly string[],
  env: Env = process.env,
  modules: readonly string[] = [],
): OwnFiles {
  const own = ownFiles(roots, env, modules);
  if (own.packages.length > 0) keepImports(roots, own.packages);
  return own;
}

const OWN = "part of the Lockstep that runs this flow";
const SOURCES = `${OWN} (to work on it, run an installed Lockstep instead)`;
const MODULE = "loaded by a module of this agent";
const PACKAGE = "a package that Lockstep may load";
const PROGRAMS = "where the programs are that a package manager starts Lockstep with";
const SETTINGS = "what a package manager reads when it starts Lockstep";
const NODE = "the Node that runs Lockstep";
const PRELOAD = "what Node loads for Lockstep because the environment says so";
const STORE = "where the package manager keeps files that are also files of Lockstep";

/** Most installations lie elsewhere: then nothing of them can be written, and nothing has to be looked for. */
function find(roots: readonly string[], env: Env): OwnFiles {
  const isWithin = (path: string) => roots.some((root) => isInside(root, path));
  const home = packageAround(dirname(fileURLToPath(import.meta.url)));
  const others = env["LOCKSTEP_PACKAGES"] ? [realPath(resolve(env["LOCKSTEP_PACKAGES"]))] : [];
  const names = namesOf(home);
  const starts = [home, ...others].map((folder) => ({ folder, names }));
  const near =
    [home, ...others, ...searched(env)].some(isWithin) || roots.some((root) => isInside(home, root));
  const first = starts.flatMap(({ folder }) => names.flatMap((name) => lookFor(name, folder).found));
  const all = [...programs(roots, env), ...atStart(roots, env), fixed(realPath(process.execPath), NODE)];
  const plain = all.filter(({ path }) => isWithin(path));
  if (!near && !first.some(isWithin) && plain.length === 0) return NOTHING;

  const packages = closure(starts, isWithin);
  const found = [
    ...ownParts(home, roots),
    ...plain,
    ...packages.there.map((path) => fixed(path, PACKAGE)),
    ...packages.missing.map((path) => fixed(path, PACKAGE)),
    ...[home, ...others].flatMap((folder) => besides(folder)),
  ];
  const within = [...new Map(found.map((one) => [one.path, one])).values()].filter(({ path }) =>
    roots.some((root) => isInside(root, path) || isInside(path, root)),
  );
  const there = outermost(within.filter(({ path }) => isThere(path)));
  const kept = new Set(there.map(({ path }) => path));
  const missing = within.filter(
    ({ path }) => !ancestors(path).some((one) => kept.has(one)) && !isThere(path),
  );
  const links = packages.links.filter(({ path }) => isWithin(path));
  // A link cannot be made read-only, but the folder it lies in can.
  const holders = links.map(({ path }) => fixed(realPath(dirname(path)), PACKAGE)).filter(isNarrow);
  return { there: outermost([...there, ...holders]), missing, links, packages: [home, ...packages.there] };
}

/** With what the modules of an agent load from the project: they were trusted as they are. */
function withModules(own: OwnFiles, roots: readonly string[], modules: readonly string[]): OwnFiles {
  if (modules.length === 0) return own;
  const { files, packages } = loadedBy(modules);
  const isWithin = ({ path }: { readonly path: string }) => roots.some((root) => isInside(root, path));
  const found = closure(packages, (path) => isWithin({ path }));
  const there = [...files, ...found.there].map((path) => fixed(path, MODULE)).filter(isWithin);
  const missing = found.missing.map((path) => fixed(path, MODULE)).filter(isWithin);
  return {
    ...own,
    there: outermost([...own.there, ...there]),
    missing: [...new Map([...own.missing, ...missing].map((one) => [one.path, one])).values()].filter(
      ({ path }) => !isThere(path),
    ),
    links: [...own.links, ...found.links.filter(isWithin)],
  };
}

/** Node looks there, and packages are not installed there: one place stands for all in it. */
const NESTED = /^(.*?\/node_modules\/(?:@[^/]+\/)?node_modules)\//;

/** A folder that holds packages, and not one of the project. */
function isNarrow({ path }: Fixed): boolean {
  return path.split(sep).includes("node_modules");
}

function fixed(path: string, what: string): Fixed {
  return { path, what };
}

/**
 * All of the package. Where the run works inside of it, Lockstep is being developed with Lockstep: then only what this
 * process is made of.
 */
function ownParts(home: string, roots: readonly string[]): readonly Fixed[] {
  if (!roots.some((root) => isInside(home, root))) return [fixed(home, OWN)];
  const [top = ""] = relative(home, realPath(fileURLToPath(import.meta.url))).split(sep);
  return [top, ...LOADED_BESIDE].map((name) => fixed(join(home, name), SOURCES));
}

/** What commands read of the package beside their own code: `bench` runs it, `init` and `completion` copy it. */
const LOADED_BESIDE = ["bench", "templates", "package.json"];

/** Beside a package, in each folder above it that holds `node_modules`. */
function besides(home: string): readonly Fixed[] {
  const holders = ancestors(home).filter(
    (folder, index) => index === 0 || isInside(join(folder, "node_modules"), home),
  );
  const named = (names: readonly string[], what: string) =>
    holders.flatMap((folder) => names.map((name) => fixed(realPath(join(folder, name)), what)));
  const stores = named(STORES, STORE).filter(({ path }) => isThere(path));
  return [...named(["node_modules/.bin"], PROGRAMS), ...named(MANAGERS, SETTINGS), ...stores];
}

/** Each can name a program, or code that is loaded before ours. */
const MANAGERS = [".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn", ".pnp.cjs", ".pnp.js", ".pnp.loader.mjs"];
/** pnpm gives a file of a package a second name there. */
const STORES = [".pnpm-store"];

/** Folders of programs that `npx` and `npm run` put on the PATH. */
function programs(roots: readonly string[], env: Env): readonly Fixed[] {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => isAbsolute(folder));
  return folders
    .filter((folder) => basename(folder) === ".bin" && basename(dirname(folder)) === "node_modules")
    .map((folder) => fixed(realPath(folder), PROGRAMS))
    .filter(({ path }) => roots.some((root) => isInside(root, path)));
}

/** What Node reads before us and beside us, because the environment says so. */
function atStart(roots: readonly string[], env: Env): readonly Fixed[] {
  const words = [env["NODE_OPTIONS"] ?? "", ...process.execArgv].join(" ");
  const named = [...words.matchAll(PRELOADED)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const files = named
    .filter((name) => /^(?:\.{0,2}\/|file:)/.test(name))
    .map((name) => (name.startsWith("file:") ? fileURLToPath(name) : resolve(name)));
  // A folder around all of the work cannot be read-only; what is new in it is not loaded either way.
  const folders = searched(env).filter((folder) => !roots.some((root) => isInside(folder, root)));
  return [...files, ...folders].map((path) => fixed(realPath(path), PRELOAD));
}

/** Folders that `require` looks through at last. */
function searched(env: Env): readonly string[] {
  const folders = (env["NODE_PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const homes = env["HOME"] === undefined ? [] : [".node_modules", ".node_libraries"];
  return [...folders.map((folder) => resolve(folder)), ...homes.map((name) => join(env["HOME"]!, name))];
}

const PRELOADED = /(?:--require|-r|--import|--(?:experimental-)?loader|--env-file)[= ]+(?:"([^"]+)"|(\S+))/g;

// Packages, as Node finds them.

type Start = { readonly folder: string; readonly names: readonly string[] };

/** Every package that can be loaded from there, with all that those load. */
function closure(starts: readonly Start[], isWithin: (path: string) => boolean) {
  const there = new Set<string>();
  const missing = new Set<string>();
  const links = new Map<string, { readonly path: string; readonly to: string }>();
  const queue = [...starts];
  for (let start = queue.pop(); start !== undefined; start = queue.pop()) {
    for (const name of start.names) {
      const looked = lookFor(name, start.folder);
      for (const path of looked.missing) if (isWithin(path)) missing.add(NESTED.exec(path)?.[1] ?? path);
      for (const link of looked.links) links.set(link.path, link);
      for (const folder of looked.found) {
        if (there.has(folder) || there.size >= MOST_PACKAGES) continue;
        there.add(folder);
        queue.push({ folder, names: namesOf(folder) });
      }
    }
  }
  return { there: [...there], missing: [...missing], links: [...links.values()] };
}

const MOST_PACKAGES = 2_000;

/** The package that Node finds from this folder, none or one, and the places where it looks before. */
function lookFor(name: string, from: string) {
  const missing: string[] = [];
  const way = `node_modules${sep}${name.replaceAll("/", sep)}`;
  for (const folder of ancestors(from)) {
    const path = folder + (folder.endsWith(sep) ? way : sep + way);
    // `require` takes a file of that name before a folder.
    missing.push(...[".js", ".json", ".node"].map((ending) => path + ending));
    if (isFolder(path)) {
      const parts = [join(folder, "node_modules"), ...(name.includes("/") ? [dirname(path)] : []), path];
      const links = parts.flatMap((one) => linkAt(one));
      return { found: [realpathSync.native(path)], missing, links };
    }
    missing.push(path);
  }
  return { found: [], missing, links: [] };
}

/** What a package may load: with its optional peers, installed or not. */
function namesOf(folder: string): readonly string[] {
  try {
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      readonly [kind: string]: { readonly [name: string]: string } | undefined;
    };
    const kinds = ["dependencies", "optionalDependencies", "peerDependencies"];
    return kinds.flatMap((kind) => Object.keys(about[kind] ?? {})).filter((name) => NAME.test(name));
  } catch {
    return []; // there is none, or it is not for Node to read either
  }
}

const NAME = /^(?:@[\w.~-]+\/)?[\w.~-]+$/;

function packageAround(folder: string): string {
  const home = ancestors(realPath(folder)).find((one) => isThere(join(one, "package.json")));
  return home ?? folder;
}

/** The folder itself first. */
function ancestors(folder: string): readonly string[] {
  const all = [folder];
  for (let parent = dirname(folder); parent !== all.at(-1); parent = dirname(parent)) all.push(parent);
  return all;
}

function outermost(all: readonly Fixed[]): readonly Fixed[] {
  const paths = new Set(all.map(({ path }) => path));
  return [...new Map(all.map((one) => [one.path, one])).values()].filter(
    ({ path }) => !ancestors(dirname(path)).some((folder) => paths.has(folder)),
  );
}

function linkAt(path: string): readonly { readonly path: string; readonly to: string }[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? [{ path, to: readlinkSync(path) }] : [];
}

/** Of paths that are absolute and hold no `..`: there are thousands to compare. */
function isInside(root: string, path: string): boolean {
  return path === root || (path.startsWith(root) && (root.endsWith(sep) || path[root.length] === sep));
}
