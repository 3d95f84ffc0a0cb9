/** Which tests failed, as vitest, jest, node:test (TAP and spec), pytest, cargo, go and Deno print it. */
import type { CommandOutput, OutputPath } from "../process/output.ts";
import { dedent, ERROR_LINES, firstFound, firstMatch, indentOf, linesOf } from "../process/output.ts";
import { untilNext, withoutScheme } from "../process/output.ts";

export type FailedTest = { readonly name: string; readonly file?: string; readonly error: string };

export function failedTests({ stdout, stderr }: CommandOutput): readonly FailedTest[] {
  const found = firstFound(WAYS, linesOf(stdout, stderr));
  const byKey = new Map(
    found.toReversed().map((test) => [`${test.file}\n${test.name}\n${test.error}`, test]),
  );
  return [...byKey.values()].toReversed();
}

/** The last two are for runners that we do not know. */
const WAYS: readonly OutputPath<FailedTest>[] = [
  jestFailures,
  vitestFailures,
  pytestFailures,
  cargoFailures,
  goFailures,
  tapFailures,
  specFailures,
  denoErrors,
  namedFailures,
  assertionErrors,
];

function failure(name: string, place: string | undefined, error: readonly string[]): FailedTest {
  const file = place === undefined ? undefined : unquote(place).replace(/(?::\d+){1,2}$/, "");
  return {
    name: name.trim(),
    ...(file === undefined ? {} : { file: withoutScheme(file) }),
    error: dedent(untilNext(error, 0, ERROR_FIELDS).filter((line) => !isForeignFrame(line))),
  };
}

/** Node prints the fields of an error after its stack; the message has said what they say. */
const ERROR_FIELDS = /^\s*at .* \{$/;

/** A line of a stack trace inside the runner or a library: true, but of no help. */
function isForeignFrame(line: string): boolean {
  return /^\s*at /.test(line) && FOREIGN.some((place) => line.includes(place));
}

const FOREIGN = [
  "(node:",
  " node:internal/",
  "/node_modules/",
  "(ext:",
  "(<anonymous>)",
  "Promise.all (index ",
];

// vitest: ` FAIL  file > suite > name`, then the error, down to a ruler. Tests that fail alike share one error.

const VITEST_HEADING = /^ FAIL {2}(?:\|[^|]*\| )?(\S.*)$/;

function vitestFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const heading = VITEST_HEADING.exec(line)?.[1];
    if (heading === undefined) return [];
    const window = lines.slice(index + 1, index + 1 + 2 * ERROR_LINES);
    const start = window.findIndex((next) => !VITEST_HEADING.test(next));
    const error = start === -1 ? [] : untilNext(window, start, /^(?: FAIL {2}|⎯{3})/);
    const [file = "", ...names] = heading.split(" > ");
    const suite = / \[ (.+) \]$/.exec(file);
    if (suite !== null) return [failure(suite[1] ?? "", suite[1], error)];
    return [failure(names.length === 0 ? file : names.join(" > "), file, error)];
  });
}

// jest: `FAIL file` (in colour with spaces around the word), and below it `  ● suite › name` with the error.

function jestFailures(lines: readonly string[]): readonly FailedTest[] {
  const found: FailedTest[] = [];
  let file: string | undefined;
  for (const [index, line] of lines.entries()) {
    file = /^ ?FAIL {1,2}(\S.*?)(?: \([\d.]+ m?s\))?$/.exec(line)?.[1] ?? file;
    const name = /^ {2}● (.+)$/.exec(line)?.[1];
    if (file === undefined || name === undefined) continue;
    const error = untilNext(
      lines,
      index + 1,
      /^(?: {2}● | ?(?:FAIL|PASS) |Test Suites: |Summary of all failing tests)/,
    );
    found.push(failure(name, file, error));
  }
  return found;
}

// pytest: a section for each failure with its error in the lines that start with E, then one line each that names it.

function pytestFailures(lines: readonly string[]): readonly FailedTest[] {
  const sections = pytestSections(lines);
  const named = lines.flatMap((line) => {
    const [, file, rest = ""] = /^(?:FAILED|ERROR) (\S.*?\.py)((?:::| - ).*|)$/.exec(line) ?? [];
    if (file === undefined) return [];
    const [name, message] = splitMessage(rest.replace(/^::/, ""));
    const section = sections.get(name === "" ? file : name.replaceAll("::", "."));
    return [failure(name || file, file, section?.error ?? [message])];
  });
  if (named.length > 0) return named;
  return [...sections].map(([name, { file, error }]) => failure(name, file, error));
}

/** `name - message`, where the name may end in brackets that hold anything. */
function splitMessage(text: string): readonly [name: string, message: string] {
  const bracket = text.indexOf("[");
  const dash = text.indexOf(" - ");
  const end = bracket !== -1 && bracket < dash ? text.indexOf("] - ") + 1 : dash;
  if (dash === -1 || end === 0) return [text, ""];
  return [text.slice(0, end), text.slice(end + " - ".length)];
}

type PytestSection = { readonly file?: string; readonly error: readonly string[] };

function pytestSections(lines: readonly string[]): ReadonlyMap<string, PytestSection> {
  const sections = new Map<string, PytestSection>();
  for (const [index, line] of lines.entries()) {
    const name = /^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.+?) _{3,}$/.exec(line)?.[1];
    if (name === undefined) continue;
    const body = untilNext(lines, index + 1, /^(?:_{3,} .+ _{3,}|={3,} .+ ={3,})$/, PYTEST_LINES);
    const marked = body.filter((each) => /^E(?: |$)/.test(each)).map((each) => each.slice(1));
    const file = body.findLast((each) => /^\S+\.py:\d+: /.test(each))?.split(":", 1)[0];
    sections.set(name, { ...(file === undefined ? {} : { file }), error: marked.length > 0 ? marked : body });
  }
  return sections;
}

const PYTEST_LINES = 200;

// cargo: `---- name stdout ----`, then what the test printed.

function cargoFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const name = /^---- (.+) stdout ----$/.exec(line)?.[1];
    if (name === undefined) return [];
    const error = untilNext(
      lines,
      index + 1,
      /^(?:---- .+ ----|failures:|stack backtrace:|note: run with .*)$/,
    );
    return [failure(name, firstMatch(error, /(?: at|,) (\S+\.rs):\d+:\d+/)?.[1], error)];
  });
}

// go: what a test prints stands after `--- FAIL: Name`, or with -v after `=== RUN   Name`.

function goFailures(lines: readonly string[]): readonly FailedTest[] {
  const found: FailedTest[] = [];
  let inPackage = goPackage();
  for (const line of lines) {
    const [, name, why] = /^(?:FAIL|ok {2})\t(\S+)(?: \[(.+)\])?/.exec(line) ?? [];
    if (name === undefined) {
      inPackage.read(line);
      continue;
    }
    const failed = inPackage.failures();
    if (failed.length > 0) found.push(...failed);
    else if (line.startsWith("FAIL"))
      found.push(failure(name, undefined, why ? [why] : inPackage.unclaimed()));
    inPackage = goPackage();
  }
  return [...found, ...inPackage.failures()];
}

/** The output of one package, sorted by test. */
function goPackage() {
  const printed = new Map<string, string[]>();
  const failed = new Set<string>();
  let current = "";
  return {
    read: (line: string) => {
      const [, verdict, ended] = /^\s*--- (FAIL|PASS|SKIP): (\S+) \([\d.]+s\)$/.exec(line) ?? [];
      const running = /^=== [A-Z]+\s+(\S+)/.exec(line)?.[1];
      if (ended !== undefined && verdict === "FAIL") failed.add(ended);
      current = ended ?? running ?? current;
      if (ended !== undefined || running !== undefined || /^(?:FAIL|PASS|exit status \d+)$/.test(line))
        return;
      const sofar = printed.get(current) ?? [];
      if (sofar.length === 0) printed.set(current, sofar);
      if (sofar.length < ERROR_LINES) sofar.push(line);
    },
    unclaimed: () => printed.get(current) ?? [],
    /** A test that failed only because one inside it did is left out. */
    failures: () => {
      const parents = new Set([...failed].map((name) => name.slice(0, name.lastIndexOf("/"))));
      return [...failed].flatMap((name) => {
        const said = printed.get(name) ?? [];
        if (said.length === 0 && parents.has(name)) return [];
        const file = firstMatch(said, /(\S+_test\.go):\d+/)?.[1];
        return [failure(name, file, untilNext(said, 0, /^goroutine \d+ /))];
      });
    },
  };
}

// TAP, of node:test and others: `not ok 1 - name`, then a YAML block.

function tapFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const name = /^\s*not ok \d+ (?:- )?(.*)$/.exec(line)?.[1];
    if (name === undefined || /# (?:TODO|SKIP)\b/i.test(name)) return [];
    const block = yamlBlock(lines, index + 1);
    if (block.some((field) => field.trim() === "failureType: 'subtestsFailed'")) return [];
    const place = block.find((field) => field.trim().startsWith("location: "));
    return [failure(name.replaceAll("\\#", "#"), place?.trim().slice("location: ".length), yamlError(block))];
  });
}

function yamlBlock(lines: readonly string[], start: number): readonly string[] {
  return lines[start]?.trim() === "---" ? untilNext(lines, start + 1, /^\s*\.\.\.$/, YAML_LINES) : [];
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

function unquote(text: string): string {
  return /^'.*'$/s.test(text) ? text.slice(1, -1).replaceAll("''", "'") : text;
}

// node:test for people: after "failing tests:", each with `test at file:line:column` before it.

function specFailures(lines: readonly string[]): readonly FailedTest[] {
  const start = lines.findIndex((line) => line.trim() === "✖ failing tests:");
  return lines.flatMap((line, index) => {
    const name = /^\s*✖ (.*) \([\d.]+ms\)$/.exec(line)?.[1];
    if (name === undefined || index <= start) return [];
    const place = /^test at (.*)$/.exec(lines[index - 1] ?? "")?.[1];
    return [failure(name, place, untilNext(lines, index + 1, /^(?:test at |\s*[✖✔▶ℹ] )/))];
  });
}

// Deno: a section of errors, each below `name => ./file.ts:1:6` or `./file.ts (uncaught error)`.

const DENO_HEADING = /^(?:(.+) => (\S.*:\d+:\d+)|(\S.*) \(uncaught error\))$/;

function denoErrors(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const [heading, name, place, file] = DENO_HEADING.exec(line) ?? [];
    if (heading === undefined || !lines[index + 1]?.startsWith("error: ")) return [];
    const end = /^(?:.+ => \S.*:\d+:\d+|\S.* \(uncaught error\)| FAILURES )$/;
    return [failure(name ?? file ?? "", place ?? file, untilNext(lines, index + 1, end))];
  });
}

/** `FAILED | name`, or `file.ts ... FAILED`; the counting line at the end looks like the first. */
function namedFailures(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) => {
    const following = lines.slice(index + 1, index + 1 + UNKNOWN_LINES);
    const named = /^\s*FAILED\s*\|\s*(\S.*)$/.exec(line)?.[1];
    if (named !== undefined && !/^\d+ (?:passed|failed)/.test(named))
      return [failure(named, undefined, following)];
    const tried = /^(.*) \.\.\. FAILED\b/.exec(line)?.[1]?.trim();
    if (tried === undefined) return [];
    return [failure(tried, /\.[cm]?[jt]sx?$/.test(tried) ? tried : undefined, following)];
  });
}

function assertionErrors(lines: readonly string[]): readonly FailedTest[] {
  return lines.flatMap((line, index) =>
    line.includes("AssertionError:")
      ? [failure("AssertionError", undefined, lines.slice(index, index + 1 + UNKNOWN_LINES))]
      : [],
  );
}

/** Where we cannot tell the end of an error from what follows it. */
const UNKNOWN_LINES = 9;
