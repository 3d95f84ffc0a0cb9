/**
 * Named ways to read facts out of a command's output, for the prompt that tells a model what failed.
 *
 * Every pattern here is anchored or runs over single words: the output may be hostile, and reading it stays linear.
 */
import { stripVTControlCharacters } from "node:util";
import type { Json } from "../flow/json.ts";

export type CommandOutput = {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number | null;
};

/** The value that the extractor of this name finds; null when there is no such extractor. */
export function extract(name: string, output: CommandOutput): Json {
  return EXTRACTORS.get(name)?.(output) ?? null;
}

type Extractor = (output: CommandOutput) => Json;

const EXTRACTORS: ReadonlyMap<string, Extractor> = new Map<string, Extractor>([
  ["stdout", ({ stdout }) => stdout],
  ["stderr", ({ stderr }) => stderr],
  ["exitCode", ({ exitCode }) => exitCode],
  ["errorOutput", errorOutput],
  ["parseChangedFiles", changedPaths((x, y) => x !== "?" && y !== "?")],
  ["parseUntrackedFiles", changedPaths((x, y) => x === "?" && y === "?")],
  ["parseStagedFiles", changedPaths((x) => x !== " " && x !== "?")],
  ["parseUnstagedFiles", changedPaths((_x, y) => y !== " " && y !== "?")],
  ["parseTestOutput", failedTests],
  ["failedTests", failedTests],
  ["parseTypeErrors", typeErrors],
  ["errors", typeErrors],
  ["extractFiles", namedFiles],
  ["files", namedFiles],
  ["parseFormatOutput", unformattedFiles],
  ["formatFiles", unformattedFiles],
]);

function errorOutput({ stdout, stderr }: CommandOutput): string {
  if (stderr.trim() !== "") return stderr.trim();
  const lines = linesOf(stdout);
  const first = lines.findIndex((line) => /FAILED|error:/i.test(line));
  return (first === -1 ? stdout : lines.slice(first).join("\n")).trim();
}

/** `git status --porcelain`: two columns for the state, a space, the path. */
function changedPaths(wanted: (x: string, y: string) => boolean): Extractor {
  return ({ stdout }) =>
    linesOf(stdout).flatMap((line) => {
      const [x = "", y = "", gap, ...path] = line;
      const isEntry = gap === " " && path.length > 0 && x !== "#" && x !== "!";
      return isEntry && wanted(x, y) ? [path.join("").trim()] : [];
    });
}

// Failed tests.

type FailedTest = { readonly name: string; readonly file?: string; readonly error: string };

/** Each runner prints its own way; the first way that finds something is the right one. */
function failedTests({ stdout, stderr }: CommandOutput): Json {
  const lines = [...linesOf(stdout), ...linesOf(stderr)];
  return firstFound([tapFailures, specFailures, denoErrors, denoFailures, assertionErrors], lines);
}

/** node:test and others in TAP: `not ok 1 - name`, then a YAML block. */
function tapFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const name = /^\s*not ok \d+ - (.*)$/.exec(line)?.[1];
    if (name === undefined || /# (?:TODO|SKIP)\b/i.test(name)) return [];
    const block = yamlBlock(lines, index + 1);
    if (block.some((field) => field.trim() === "failureType: 'subtestsFailed'")) return [];
    const place = block.find((field) => field.trim().startsWith("location: "));
    return [failure(name.replaceAll("\\#", "#"), place?.trim().slice("location: ".length), yamlError(block))];
  });
}

function yamlBlock(lines: readonly string[], start: number): readonly string[] {
  if (lines[start]?.trim() !== "---") return [];
  const window = lines.slice(start + 1, start + 1 + YAML_LINES);
  const end = window.findIndex((line) => line.trim() === "...");
  return end === -1 ? window : window.slice(0, end);
}

const YAML_LINES = 100;

function yamlError(block: readonly string[]): readonly string[] {
  const start = block.findIndex((line) => line.trim().startsWith("error: "));
  const head = block[start];
  if (head === undefined) return [];
  const value = head.trim().slice("error: ".length);
  if (!value.startsWith("|")) return [unquote(value)];
  const indent = indentOf(head);
  const rest = block.slice(start + 1);
  const end = rest.findIndex((line) => line.trim() !== "" && indentOf(line) <= indent);
  return end === -1 ? rest : rest.slice(0, end);
}

/** node:test for people: after "failing tests:", each with `test at file:line:column` before it. */
function specFailures(lines: readonly string[]): readonly FailedTest[] {
  const start = lines.findIndex((line) => line.trim() === "✖ failing tests:");
  return lines.flatMap((line, index) => {
    const name = /^\s*✖ (.*) \([\d.]+ms\)$/.exec(line)?.[1];
    if (name === undefined || index <= start) return [];
    const place = /^test at (.*)$/.exec(lines[index - 1] ?? "")?.[1];
    return [failure(name, place, untilNext(lines, index + 1, /^(?:test at |\s*[✖✔▶ℹ] )/))];
  });
}

/** Deno's error section: `name => ./file.ts:1:6`, then the error. */
function denoErrors(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const [, name, place] = /^(.+) => (\S+:\d+:\d+)$/.exec(line) ?? [];
    const next = lines[index + 1] ?? "";
    if (name === undefined || !next.startsWith("error: ")) return [];
    return [failure(name, place, untilNext(lines, index + 1, /^.+ => \S+:\d+:\d+$/))];
  });
}

/** `FAILED | name`, or `file.ts ... FAILED`; the counting line at the end looks like the first. */
function denoFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const following = lines.slice(index + 1, index + 1 + ERROR_LINES);
    const named = /^\s*FAILED\s*\|\s*(\S.*)$/.exec(line)?.[1];
    if (named !== undefined && !/^\d+ (?:passed|failed)/.test(named))
      return [failure(named, undefined, following)];
    const tried = /^(.*) \.\.\. FAILED\b/.exec(line)?.[1]?.trim();
    if (tried === undefined) return [];
    return [failure(tried, SOURCE_FILE.test(tried) ? tried : undefined, following)];
  });
}

function assertionErrors(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) =>
    line.includes("AssertionError:")
      ? [failure("AssertionError", undefined, lines.slice(index, index + 1 + ERROR_LINES))]
      : [],
  );
}

const ERROR_LINES = 9;

function failure(name: string, place: string | undefined, error: readonly string[]): FailedTest {
  const file = place === undefined ? undefined : unquote(place).replace(/(?::\d+){1,2}$/, "");
  return {
    name: name.trim(),
    ...(file === undefined ? {} : { file: withoutScheme(file) }),
    error: dedent(error.slice(0, ERROR_LINES)),
  };
}

function untilNext(lines: readonly string[], start: number, next: RegExp): readonly string[] {
  const window = lines.slice(start, start + ERROR_LINES);
  const end = window.findIndex((line) => next.test(line));
  return end === -1 ? window : window.slice(0, end);
}

// Type errors.

type Diagnostic = {
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly message: string;
};

/** tsc prints to stdout, Deno to stderr. The last two ways are for compilers we do not know. */
function typeErrors({ stdout, stderr }: CommandOutput): Json {
  const lines = [...linesOf(stderr), ...linesOf(stdout)];
  return firstFound([tscErrors, denoTypeErrors, placedErrors, bareErrors], lines);
}

/** `src/a.ts(1,7): error TS2322: …`, or with --pretty `src/a.ts:1:7 - error TS2322: …`. */
function tscErrors(lines: readonly string[]): readonly Diagnostic[] {
  return lines.flatMap((line) => {
    const match =
      /^(.+?)\((\d+),(\d+)\): error (TS\d+: .*)$/.exec(line) ??
      /^(.+?):(\d+):(\d+) - error (TS\d+: .*)$/.exec(line);
    return match ? [diagnostic(match[1], match[2], match[3], match[4])] : [];
  });
}

/** `TS2322 [ERROR]: …`, some lines of source, then `at file:///a.ts:1:7`. */
function denoTypeErrors(lines: readonly string[]): readonly Diagnostic[] {
  return lines.flatMap((line, index) => {
    const [, code, message] = /^(?:error: )?(TS\d+) \[ERROR\]: (.*)$/.exec(line) ?? [];
    if (code === undefined) return [];
    const after = untilNext(lines, index + 1, /^(?:error: )?TS\d+ \[ERROR\]/);
    const place = after.map((next) => /^\s*at (.+?):(\d+):(\d+)$/.exec(next)).find((match) => match !== null);
    return [diagnostic(place?.[1], place?.[2], place?.[3], `${code}: ${message}`)];
  });
}

function placedErrors(lines: readonly string[]): readonly Diagnostic[] {
  return lines.flatMap((line) => {
    const match = /^\s*(\S+\.[cm]?[jt]sx?):(\d+)(?::(\d+))?:? (.*)$/.exec(line);
    return match && /error/i.test(match[4] ?? "") ? [diagnostic(match[1], match[2], match[3], match[4])] : [];
  });
}

function bareErrors(lines: readonly string[]): readonly Diagnostic[] {
  return lines.flatMap((line) => {
    const message = /^\s*(?:error|[A-Za-z]*Error): (.*)$/.exec(line)?.[1];
    return message === undefined ? [] : [diagnostic(undefined, undefined, undefined, message)];
  });
}

function diagnostic(file = "unknown", line = "0", column?: string, message = ""): Diagnostic {
  return {
    file: withoutScheme(file),
    line: Number(line),
    ...(column === undefined ? {} : { column: Number(column) }),
    message: message.trim(),
  };
}

// Files.

const SOURCE_FILE = /\.[cm]?[jt]sx?$/;

/** Source files that are named with a line, `a.ts:3` or `a.ts(3,1)`, each once. */
function namedFiles({ stdout, stderr }: CommandOutput): Json {
  const words = stripVTControlCharacters(`${stdout}\n${stderr}`).split(/[\s"'`<>[\],;]+/);
  const files = words.flatMap((word) => {
    const bare = word.startsWith("(") ? word.slice(1) : word;
    const file = /^(.*\.[cm]?[jt]sx?)[:(]\d/.exec(bare)?.[1];
    return file === undefined || file.includes("node_modules/") || file.startsWith("node:")
      ? []
      : [withoutScheme(file)];
  });
  return [...new Set(files)];
}

/** One path a line, as formatters list what they would change. */
function unformattedFiles({ stdout }: CommandOutput): readonly string[] {
  const files = linesOf(stdout).flatMap((line) => {
    const path = line
      .trim()
      .replace(/^\[warn\] /, "")
      .replace(/ \(\d+ms\)$/, "");
    const isPath =
      /\.(?:[cm]?[jt]sx?|json|md)$/.test(path) && !/^(?:error|found|check|all|run)\w*:? /i.test(path);
    return isPath ? [path] : [];
  });
  return [...new Set(files)];
}

// Text.

function firstFound<T extends Json>(
  ways: readonly ((lines: readonly string[]) => readonly T[])[],
  lines: readonly string[],
): readonly T[] {
  for (const way of ways) {
    const found = way(lines);
    if (found.length > 0) return found;
  }
  return [];
}

function linesOf(text: string): readonly string[] {
  return stripVTControlCharacters(text).split(/\r?\n/);
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function dedent(lines: readonly string[]): string {
  const indent = Math.min(...lines.filter((line) => line.trim() !== "").map(indentOf));
  return lines
    .map((line) => line.slice(Number.isFinite(indent) ? indent : 0))
    .join("\n")
    .trim();
}

function unquote(text: string): string {
  return /^'.*'$/s.test(text) ? text.slice(1, -1).replaceAll("''", "'") : text;
}

function withoutScheme(path: string): string {
  return path.startsWith("file://") ? path.slice("file://".length) : path;
}
