/** What a module of the project loads when it is run: the files it imports and the packages in the project, by content. */
import { createHash, type Hash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import { isFolder, isInsideProject, readTextFile, statIfAny } from "../world/files.ts";

/** More than this is not followed, and that is said. */
export type Bounds = { readonly files: number; readonly bytes: number };
const BOUNDS: Bounds = { files: 5000, bytes: 128 * 1024 * 1024 };

/**
 * One line for each file and each package that the module loads, and one for each import that cannot be followed. Paths
 * are meant from `root`. The module itself is not among them.
 *
 *     importLines("/project", ".agent/a/hooks.mjs")  // → ["lib/util.mjs (sha256 …)", "package yaml@2.9.1 (12 files, sha256 …)"]
 */
export function importLines(root: string, file: string, bounds: Bounds = BOUNDS): readonly string[] {
  const real = realpathSync.native(root);
  const walk: Walk = {
    root: real,
    bounds,
    read: { files: 0, bytes: 0, code: 0 },
    lines: new Set(),
    seen: new Set(),
    todo: [],
    isFull: false,
  };
  const entry = join(real, file);
  walk.seen.add(place(entry) ?? entry);
  const source = content(walk, entry);
  if (source !== null) follow(walk, entry, source.toString("utf8"));
  for (let next = walk.todo.pop(); next !== undefined; next = walk.todo.pop()) next();
  if (walk.isFull)
    walk.lines.add(`more than ${bounds.files} files or ${bounds.bytes} bytes, which are not looked at`);
  return [...walk.lines].toSorted();
}

type Walk = {
  readonly root: string;
  readonly bounds: Bounds;
  readonly read: { files: number; bytes: number; code: number };
  readonly lines: Set<string>;
  /** Files and package folders, by where they really are. */
  readonly seen: Set<string>;
  /** What is still to be looked at. */
  readonly todo: (() => void)[];
  isFull: boolean;
};

/** Reads the imports of one source. */
function follow(walk: Walk, file: string, source: string): void {
  const { specifiers, unknown } = importsIn(source);
  for (const what of unknown) walk.lines.add(`${name(walk, file)} ${what}, which cannot be followed`);
  for (const specifier of specifiers) followOne(walk, file, specifier);
}

function followOne(walk: Walk, from: string, { text, isCertain }: Specifier): void {
  const missing = (what: string) => {
    if (isCertain) walk.lines.add(`${name(walk, from)} imports ${JSON.stringify(text)}, ${what}`);
  };
  if (text === "" || isBuiltin(text) || text.startsWith("data:")) return;
  if (/^(?:\.{0,2}\/|\.{1,2}$|file:)/.test(text)) {
    const path = pathNamed(text, from);
    const found = path === null ? null : resolveFile(path);
    if (found === null) missing("which is not there");
    else followFile(walk, found);
    return;
  }
  if (text.startsWith("#")) {
    const owner = packageAround(walk, dirname(from));
    const targets = owner === null ? [] : leaves(owner.json.imports ?? null);
    if (owner === null || targets.length === 0) missing("which its package.json does not define");
    else followTargets(walk, owner.folder, targets);
    return;
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(text)) return missing("an address");
  followPackage(walk, from, text, missing);
}

function followFile(walk: Walk, path: string): void {
  const real = place(path);
  if (real === null || walk.seen.has(real)) return;
  walk.seen.add(real);
  if (!isInsideProject(walk.root, real)) {
    walk.lines.add(`${path}, outside of the project`);
    return;
  }
  const bytes = content(walk, real);
  if (bytes === null) return;
  walk.lines.add(`${name(walk, real)} (sha256 ${createHash("sha256").update(bytes).digest("hex")})`);
  if (!CODE.has(extname(real))) return;
  walk.read.code += bytes.length;
  if (bytes.length > LARGEST_CODE || walk.read.code > MOST_CODE)
    walk.lines.add(`${name(walk, real)} is ${bytes.length} bytes long, and what it imports is not followed`);
  else walk.todo.push(() => follow(walk, real, bytes.toString("utf8")));
}

/** Sources that people write are far smaller. */
const LARGEST_CODE = 1024 * 1024;
/** Of all of them together. */
const MOST_CODE = 8 * LARGEST_CODE;
const CODE = new Set([".mjs", ".js", ".cjs", ".ts", ".mts", ".cts", ""]);

/** A package is taken whole, with all that it depends on: which of its files it loads is its own business. */
function followPackage(walk: Walk, from: string, text: string, missing: (what: string) => void): void {
  const [first = "", second = ""] = text.split("/");
  const wanted = first.startsWith("@") ? `${first}/${second}` : first;
  const around = packageAround(walk, dirname(from));
  if (around !== null && around.json.name === wanted) {
    followTargets(walk, around.folder, leaves(around.json.exports ?? around.json.main ?? null));
    return;
  }
  const folder = findPackage(walk, dirname(from), wanted);
  if (folder === null) return missing("a package that is not in the project");
  takePackage(walk, folder, wanted);
}

function takePackage(walk: Walk, folder: string, wanted: string): void {
  const real = place(folder);
  if (real === null || walk.seen.has(real)) return;
  walk.seen.add(real);
  if (!isInsideProject(walk.root, real)) {
    walk.lines.add(`package ${wanted}, which lies outside of the project`);
    return;
  }
  const hash = createHash("sha256");
  const count = { files: 0 };
  digestFolder(walk, real, real, hash, count);
  const json = readJson(join(real, "package.json"));
  const version = typeof json?.version === "string" ? `@${json.version}` : "";
  walk.lines.add(`package ${wanted}${version} (${count.files} files, sha256 ${hash.digest("hex")})`);
  for (const key of ["dependencies", "optionalDependencies", "peerDependencies"]) {
    const needed = json?.[key];
    if (!isObject(needed)) continue;
    for (const other of Object.keys(needed)) {
      const at = findPackage(walk, real, other);
      if (at !== null) walk.todo.push(() => takePackage(walk, at, other));
    }
  }
}

/** Every file below it; the packages within are taken by themselves. */
function digestFolder(walk: Walk, top: string, folder: string, hash: Hash, count: { files: number }): void {
  const entries = readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    if (walk.isFull) return;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== "node_modules") digestFolder(walk, top, path, hash, count);
      continue;
    }
    const within = relative(top, path);
    if (!entry.isFile()) {
      const target = entry.isSymbolicLink() ? place(path) : null;
      const isTaken = target !== null && isInsideProject(top, target) && statSync(target).isFile();
      hash.update(
        `${within}\0${isTaken ? "link" : "other"}\0${target === null ? "" : relative(top, target)}\0`,
      );
      if (!isTaken) continue;
    }
    const bytes = content(walk, path);
    if (bytes === null) continue;
    count.files += 1;
    hash.update(`${within}\0${bytes.length}\0`).update(bytes);
  }
}

/** null: it cannot be read, or there is too much already. */
function content(walk: Walk, path: string): Buffer | null {
  const { read, bounds } = walk;
  const size = statIfAny(path);
  if (size === undefined || !size.isFile()) return null;
  if (read.files + 1 > bounds.files || read.bytes + size.size > bounds.bytes) {
    walk.isFull = true;
    return null;
  }
  read.files += 1;
  read.bytes += size.size;
  return readFileSync(path);
}

function followTargets(walk: Walk, folder: string, targets: readonly string[]): void {
  for (const target of targets) {
    if (target.includes("*")) {
      walk.lines.add(`${name(walk, folder)} names ${JSON.stringify(target)}, which cannot be followed`);
    } else if (target.startsWith("./")) {
      const found = resolveFile(resolve(folder, target));
      if (found !== null) followFile(walk, found);
    } else followOne(walk, join(folder, "package.json"), { text: target, isCertain: true });
  }
}

type Package = { readonly folder: string; readonly json: JsonObject };

/** The package that a folder belongs to, in the project. */
function packageAround({ root }: Walk, folder: string): Package | null {
  for (let at = folder; isInsideProject(root, at); at = dirname(at)) {
    const json = readJson(join(at, "package.json"));
    if (json !== null) return { folder: at, json };
    if (at === root) break;
  }
  return null;
}

/** As Node looks for it, up to the project's own folder. */
function findPackage({ root }: Walk, from: string, wanted: string): string | null {
  if (wanted.includes("..") || wanted === "") return null;
  for (let at = from; isInsideProject(root, at); at = dirname(at)) {
    const folder = join(at, "node_modules", wanted);
    if (basename(at) !== "node_modules" && isFolder(folder)) return folder;
    if (at === root) break;
  }
  return null;
}

function readJson(path: string): JsonObject | null {
  try {
    const value = JSON.parse(readTextFile(path)) as Json;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Every text in it. */
function leaves(value: Json | undefined): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(leaves);
  return isObject(value) ? Object.values(value).flatMap(leaves) : [];
}

function pathNamed(text: string, from: string): string | null {
  try {
    if (text.startsWith("file:")) return fileURLToPath(text);
    const plain = text.replace(/[?#].*$/s, "");
    const path = resolve(dirname(from), plain);
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
      ? resolve(dirname(from), decodeURIComponent(plain))
      : path;
  } catch {
    return null;
  }
}

/** The file itself, or as `require` completes it. */
function resolveFile(path: string): string | null {
  const tries = ["", ".js", ".json", ".node", ".mjs", ".cjs", ".ts", `${sep}index.js`, `${sep}index.json`];
  return tries.map((end) => `${path}${end}`).find((at) => statIfAny(at)?.isFile()) ?? null;
}

function place(path: string): string | null {
  try {
    return realpathSync.native(path);
  } catch {
    return null;
  }
}

function name({ root }: Walk, path: string): string {
  return relative(root, path).split(sep).join("/") || ".";
}

// Reading sources.

/** `isCertain`: it does not stand in a comment. */
type Specifier = { readonly text: string; readonly isCertain: boolean };

/** Other ways to load code. What they load is known only when they do. */
const OTHER_WAYS: readonly (readonly [RegExp, string])[] = [
  [/\bcreateRequire\b/, "uses createRequire"],
  [/\bimport\s*\.\s*meta\s*\.\s*resolve\b/, "uses import.meta.resolve"],
  [/\bWorker\s*\(/, "starts a Worker"],
  [/\beval\s*\(|\bnew\s+Function\b/, "makes code from text"],
  [/["'`](?:node:)?(?:vm|child_process|worker_threads|cluster)["'`]/, "can start other code"],
];

/**
 * All that a source may import. It is read with patterns and not as a program: what only looks like an import counts when
 * it leads to a file.
 */
export function importsIn(source: string): {
  readonly specifiers: readonly Specifier[];
  readonly unknown: readonly string[];
} {
  const code = withoutComments(source);
  const found = namedIn(code);
  const certain = new Set(found.texts);
  const all = new Set([...found.texts, ...namedIn(source).texts]);
  const ways = OTHER_WAYS.filter(([pattern]) => pattern.test(code)).map(([, what]) => what);
  return {
    specifiers: [...all].map((text) => ({ text, isCertain: certain.has(text) })),
    unknown: [...(found.isDynamic ? ["imports what it works out at run time"] : []), ...ways],
  };
}

/** The texts behind `from`, `import` and `require`; and whether something else than a text stands in such a call. */
function namedIn(source: string): { readonly texts: readonly string[]; readonly isDynamic: boolean } {
  const texts: string[] = [];
  let isDynamic = false;
  const skip = skipper(source);
  for (const { 0: word, index } of source.matchAll(/\b(?:from|import|require(?:\.resolve)?)\b/g)) {
    let at = skip(index + word.length);
    const isCall = source[at] === "(";
    if (isCall) at = skip(at + 1);
    const literal = LITERAL.exec(source.slice(at, at + LONGEST))?.[0];
    if (literal !== undefined) texts.push(textOf(literal));
    if (!isCall || word === "from") continue;
    const behind = literal === undefined ? "" : (source[skip(at + literal.length)] ?? "");
    if (!/[,)]/.test(behind)) isDynamic = true;
  }
  return { texts, isDynamic };
}

/** No path is longer. */
const LONGEST = 4096;
const LITERAL = /^(?:"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'|`(?:[^`\\$]|\\[^])*`)/;

/** The place behind white space and comments. Each place is looked at once, however often it is asked about. */
function skipper(source: string): (from: number) => number {
  const known = new Map<number, number>();
  const lastClose = source.lastIndexOf("*/");
  return (from) => {
    const passed: number[] = [];
    let at = from;
    for (;;) {
      const before = known.get(at);
      if (before !== undefined) {
        at = before;
        break;
      }
      passed.push(at);
      SPACE.lastIndex = at;
      const end = SPACE.test(source) ? SPACE.lastIndex : commentEnd(source, at, lastClose);
      if (end === null) break;
      at = end;
    }
    for (const place of passed) known.set(place, at);
    return at;
  };
}

const SPACE = /\s+/y;

/** Where the comment that begins here ends; null: none does. `lastClose`: where the last one of the source ends. */
function commentEnd(source: string, at: number, lastClose: number): number | null {
  if (source[at] !== "/") return null;
  if (source[at + 1] === "/") {
    const end = source.indexOf("\n", at);
    return end === -1 ? source.length : end;
  }
  // One that is never closed is not a valid program.
  if (source[at + 1] !== "*" || lastClose < at + 2) return null;
  return source.indexOf("*/", at + 2) + 2;
}

/** Only what begins a line or follows a space counts as a comment: a `//` within a text mostly follows something else. */
function withoutComments(source: string): string {
  const kept: string[] = [];
  const lastClose = source.lastIndexOf("*/");
  let from = 0;
  for (const { index } of source.matchAll(/(?<=^|\s)\/[/*]/g)) {
    if (index < from) continue;
    const end = commentEnd(source, index, lastClose);
    // None after it is closed either.
    if (end === null) break;
    kept.push(source.slice(from, index), " ");
    from = end;
  }
  return `${kept.join("")}${source.slice(from)}`;
}

/** What a literal stands for. */
function textOf(literal: string): string {
  return literal
    .slice(1, -1)
    .replaceAll(
      /\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r?\n|([^]))/g,
      (_, long?: string, four?: string, two?: string, plain?: string) => {
        const code = long ?? four ?? two;
        if (code === undefined) return plain ?? "";
        const point = Number.parseInt(code, 16);
        return point > 0x10_ffff ? "" : String.fromCodePoint(point);
      },
    );
}
