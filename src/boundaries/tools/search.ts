/** Glob and Grep: only regular files are found, links are not followed, and results come in the order of their paths. */
import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { runInNewContext } from "node:vm";
import { readPinned } from "./files.ts";
import { compileGlob, type GlobMatcher } from "../gate/glob.ts";
import type { InGround, Pins } from "../../flow/machine/ground.ts";
import { namesRecords, type Ground } from "../gate/paths.ts";
import { defineTool, done, failedCall, type ToolOutcome, type Tool } from "./tool.ts";

export function searchTools(): readonly Tool[] {
  return [globTool(), grepTool()];
}

/** Why the pattern may not be used, or null: a pattern looks below its folder and nowhere else, and not at records. */
export function wanders(pattern: string): string | null {
  const leaves = isAbsolute(pattern) || pattern.split(/[\\/]/).includes("..");
  if (leaves) return `${JSON.stringify(pattern)} is refused: a pattern is relative, without ".."; use path.`;
  return namesRecords(pattern);
}

const PATH = {
  type: "string",
  minLength: 1,
  description: "Folder to search in; the working directory if not given",
};

function globTool(): Tool {
  return defineTool<{ pattern: string; path?: string }>({
    name: "Glob",
    description: "Finds files by the form of their paths, such as src/**/*.ts.",
    required: ["pattern"],
    properties: {
      pattern: { type: "string", minLength: 1, description: "Knows *, **, ?, [a-z] and {a,b}" },
      path: PATH,
    },
    run: async ({ pattern, path = "." }, { ground }, signal) => {
      const place = ground.reading(path);
      if (place.kind === "refused") return place;
      const why = wanders(pattern);
      if (why !== null) return { kind: "refused", why };
      const matches = compileGlob(pattern);
      if (matches === null) return failedCall("The pattern expands to too many patterns; use fewer braces.");
      using pins = ground.pin();
      const stats = await statsOf(pins, place);
      if (stats?.isDirectory() !== true) return failedCall(`${place.shown} is not a folder.`);

      const found: string[] = [];
      for await (const file of walkFiles({ ground, pins, place }, pattern + path, signal)) {
        if (!matches(file)) continue;
        found.push(shownPath(place.shown, file));
        if (found.length > MAX_RESULTS) break;
      }
      if (found.length === 0) return done("No files found.");
      return done(withLimit(found, MAX_RESULTS));
    },
  });
}

type GrepInput = {
  pattern: string;
  path?: string;
  glob?: string;
  output_mode?: "content" | "files_with_matches" | "count";
  "-i"?: boolean;
  "-n"?: boolean;
  "-A"?: number;
  "-B"?: number;
  "-C"?: number;
  head_limit?: number;
};

function grepTool(): Tool {
  const lines = { type: "integer", minimum: 0 };
  return defineTool<GrepInput>({
    name: "Grep",
    description: "Searches the lines of files for a JavaScript regular expression.",
    required: ["pattern"],
    properties: {
      pattern: { type: "string", minLength: 1, description: "Regular expression, matched line by line" },
      path: { ...PATH, description: "File or folder to search in; the working directory if not given" },
      glob: { type: "string", minLength: 1, description: "Search only files of this form, such as *.ts" },
      output_mode: {
        type: "string",
        enum: ["content", "files_with_matches", "count"],
        description: "Matching lines, names of files (if not given), or how many lines match in each file",
      },
      "-i": { type: "boolean", description: "Ignore case" },
      "-n": { type: "boolean", description: "Show line numbers with content; true if not given" },
      "-A": { ...lines, description: "Lines of content to show after each match" },
      "-B": { ...lines, description: "Lines of content to show before each match" },
      "-C": { ...lines, description: "Lines of content to show around each match" },
      head_limit: {
        type: "integer",
        minimum: 1,
        description: `Show at most so many lines; ${MAX_RESULTS} if not given`,
      },
    },
    run: async (input, world, signal) => {
      const place = world.ground.reading(input.path ?? ".");
      if (place.kind === "refused") return place;
      const records = input.glob === undefined ? null : namesRecords(input.glob);
      if (records !== null) return { kind: "refused", why: records };
      const flags = input["-i"] === true ? "i" : "";
      const fault = faultOf(input.pattern, flags);
      if (fault !== null) return failedCall(`The pattern is not a regular expression: ${fault}.`);
      const filter = input.glob === undefined ? () => true : fileFilter(input.glob);
      if (filter === null) return failedCall("The glob expands to too many patterns; use fewer braces.");
      using pins = world.ground.pin();
      const stats = await statsOf(pins, place);
      if (stats === null) return failedCall(`${place.shown} does not exist.`);

      const limit = input.head_limit ?? MAX_RESULTS;
      const noise = `${input.path ?? ""}${input.glob ?? ""}`;
      const spare = async () => {
        const { filesWithout } = await import("./ripgrep.ts");
        const { pattern, glob } = input;
        const bounds = { folder: place.path, glob, skip: skippedIn(noise), maxBytes: MAX_GREP_BYTES };
        return await filesWithout({ pattern, ignoreCase: flags === "i", ...bounds }, world, signal);
      };
      const paths = stats.isDirectory()
        ? worthReading(walkFiles({ ground: world.ground, pins, place }, noise, signal), filter, spare)
        : [""];
      const found: string[] = [];
      let skipped = 0;
      for await (const files of batches(pins, place, paths)) {
        signal.throwIfAborted();
        const hits = scan(input.pattern, flags, files);
        if (hits === null) return failedCall("The pattern takes too long on these files; make it simpler.");
        for (const [index, { path, lines }] of files.entries()) {
          if (lines === null) skipped += 1;
          const shown = shownPath(place.shown, path);
          for (const line of present(shown, lines ?? [], hits[index] ?? [], input)) found.push(line);
          if (found.length > limit) return report(found, limit, skipped);
        }
      }
      return report(found, limit, skipped);
    },
  });
}

const MAX_RESULTS = 500;
const MAX_FILES = 100_000;
const MAX_GREP_BYTES = 4 * 1024 * 1024;
const BATCH_CHARS = 256 * 1024;
const SCAN_MS = 1_000;
const PORTION_LINES = 20_000;
const MAX_SHOWN_LINE = 500;

/** Not worth searching unless they are asked for by name. */
const NOISE: readonly string[] = [".git", "node_modules"];
/** Never searched. */
const RECORDS = ".lockstep";

function skippedIn(asked: string): readonly string[] {
  return [RECORDS, ...NOISE.filter((name) => !asked.includes(name))];
}

/** A folder that is searched: where it is, held, and what in it is passed over. */
type Searched = { readonly ground: Ground; readonly pins: Pins; readonly place: InGround };

async function statsOf(pins: Pins, { parts }: InGround) {
  try {
    return await lstat(pins.at(parts));
  } catch {
    return null; // it is not there any more
  }
}

/** Paths of the files below the folder, with forward slashes. Folders that cannot be read have none. */
async function* walkFiles(
  { ground, pins, place }: Searched,
  asked: string,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const skip = new Set(skippedIn(asked));
  const stack: string[][] = [[]];
  let seen = 0;
  for (let folder = stack.pop(); folder !== undefined; folder = stack.pop()) {
    const folders: string[][] = [];
    for (const entry of await listFolder(pins, [...place.parts, ...folder])) {
      signal.throwIfAborted();
      const parts = [...folder, entry.name];
      if (ground.isRecord([...place.parts, ...parts])) continue;
      if (entry.isFile()) yield parts.join("/");
      if (entry.isDirectory() && !skip.has(entry.name)) folders.push(parts);
      seen += 1;
      if (seen > MAX_FILES)
        throw new Error(`there are more than ${MAX_FILES} files; search in a smaller folder`);
    }
    stack.push(...folders.toReversed());
  }
}

async function listFolder(pins: Pins, parts: readonly string[]): Promise<readonly Dirent[]> {
  try {
    const entries = await readdir(pins.folder(parts), { withFileTypes: true });
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

function shownPath(folder: string, file: string): string {
  if (file === "") return folder;
  return folder === "." ? file : `${folder}/${file}`;
}

/** A glob without a slash speaks of the name alone. */
function fileFilter(glob: string): GlobMatcher | null {
  return compileGlob(glob.includes("/") ? glob : `**/${glob}`);
}

function faultOf(pattern: string, flags: string): string | null {
  try {
    void new RegExp(pattern, flags);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

/** More than it takes to reach MAX_RESULTS with something that is in every file: only a search that goes on is helped. */
const SPARE_FROM = 600;

/** The files to read: all of the first, and of the rest those that cannot be spared. */
async function* worthReading(
  paths: AsyncIterable<string>,
  filter: GlobMatcher,
  spare: () => Promise<ReadonlySet<string>>,
): AsyncGenerator<string> {
  let seen = 0;
  let spared: ReadonlySet<string> = new Set();
  for await (const path of paths) {
    if (!filter(path)) continue;
    seen += 1;
    if (seen === SPARE_FROM) spared = await spare();
    if (!spared.has(path)) yield path;
  }
}

/** A file that is searched by itself has the path "". One that is binary, unreadable or too big has no lines. */
type Lines = { readonly path: string; readonly lines: readonly string[] | null };

/**
 * The texts to search, in portions that one scan can manage. Where a portion ends does not matter: what was found
 * before the walk failed is looked at first.
 */
async function* batches(pins: Pins, place: InGround, paths: AsyncIterable<string> | Iterable<string>) {
  let files: Lines[] = [];
  let chars = 0;
  try {
    for await (const path of paths) {
      const parts = path === "" ? place.parts : [...place.parts, ...path.split("/")];
      const file = await readPinned(pins, parts, MAX_GREP_BYTES);
      const text = file.kind === "text" ? file.text : null;
      files.push({ path, lines: text?.split(/\r?\n/) ?? null });
      chars += text?.length ?? 0;
      if (chars < BATCH_CHARS) continue;
      yield files;
      files = [];
      chars = 0;
    }
  } catch (error) {
    yield files;
    throw error;
  }
  yield files;
}

const SCAN = `
  const regex = new RegExp(pattern, flags);
  texts.map((lines) => lines.flatMap((line, index) => (regex.test(line) ? [index] : [])));
`;

/** For each file the indexes of its matching lines; null when the pattern needs too long. */
function scan(
  pattern: string,
  flags: string,
  files: readonly Lines[],
): readonly (readonly number[])[] | null {
  const hits: number[][] = files.map(() => []);
  try {
    for (const portion of portions(files)) {
      const context = { pattern, flags, texts: portion.map(({ lines }) => lines) };
      const found = runInNewContext(SCAN, context, { timeout: SCAN_MS }) as readonly (readonly number[])[];
      for (const [place, { file, from }] of portion.entries()) {
        for (const index of found[place] ?? []) hits[file]!.push(from + index);
      }
    }
    return hits;
  } catch {
    return null;
  }
}

type Piece = { readonly file: number; readonly from: number; readonly lines: readonly string[] };

/** So many lines at a time that only the pattern, never the length of a file, can make a scan slow. */
function* portions(files: readonly Lines[]): Generator<readonly Piece[]> {
  let portion: Piece[] = [];
  let size = 0;
  for (const [file, { lines: all }] of files.entries()) {
    const lines = all ?? [];
    for (let from = 0; from < lines.length; from += PORTION_LINES) {
      const piece = { file, from, lines: lines.slice(from, from + PORTION_LINES) };
      portion.push(piece);
      size += piece.lines.length;
      if (size < PORTION_LINES) continue;
      yield portion;
      portion = [];
      size = 0;
    }
  }
  if (portion.length > 0) yield portion;
}

function present(
  shown: string,
  lines: readonly string[],
  hits: readonly number[],
  input: GrepInput,
): readonly string[] {
  if (hits.length === 0) return [];
  if (input.output_mode === "count") return [`${shown}:${hits.length}`];
  if (input.output_mode !== "content") return [shown];
  const before = input["-B"] ?? input["-C"] ?? 0;
  const after = input["-A"] ?? input["-C"] ?? 0;
  const isHit = new Set(hits);
  const out: string[] = [];
  let last = -1;
  for (const hit of hits) {
    const start = Math.max(last + 1, hit - before);
    if (last !== -1 && start > last + 1 && before + after > 0) out.push("--");
    for (let index = start; index <= Math.min(lines.length - 1, hit + after); index += 1) {
      const mark = isHit.has(index) ? ":" : "-";
      const number = input["-n"] === false ? "" : `${index + 1}${mark}`;
      out.push(`${shown}${mark}${number}${(lines[index] ?? "").slice(0, MAX_SHOWN_LINE)}`);
      last = index;
    }
  }
  return out;
}

function report(found: readonly string[], limit: number, skipped: number): ToolOutcome {
  const note = skipped === 0 ? "" : `\n[${skipped} files were passed over: binary, unreadable or too large]`;
  return done((found.length === 0 ? "No matches found." : withLimit(found, limit)) + note);
}

function withLimit(found: readonly string[], limit: number): string {
  const shown = found.slice(0, limit).join("\n");
  return found.length > limit
    ? `${shown}\n[there is more than these ${limit} lines; narrow the search]`
    : shown;
}
