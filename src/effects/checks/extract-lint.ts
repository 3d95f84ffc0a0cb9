/** What linters object to, as eslint (stylish, unix, compact), oxlint, biome, Deno and clippy print it. */
import type { CommandOutput, OutputPath } from "../process/output.ts";
import { firstFound, firstMatch, linesOf, partsIn, untilNext, withoutScheme } from "../process/output.ts";

export type LintFault = {
  readonly rule: string;
  readonly message: string;
  readonly file: string;
  readonly line: number;
  readonly column?: number;
};

/** Errors and warnings alike: which of them make a linter fail is up to its settings. */
export function lintErrors({ stdout, stderr }: CommandOutput): readonly LintFault[] {
  return firstFound(WAYS, linesOf(stdout, stderr));
}

const WAYS: readonly OutputPath<LintFault>[] = [stylish, unix, compact, boxed, biome, arrows];

type Parts = { readonly [part in keyof LintFault]?: string | undefined };

/** Code that cannot even be parsed breaks no rule; its rule is "unknown". */
function fault({ rule = "unknown", message = "", file = "unknown", line = "0", column }: Parts): LintFault {
  return {
    rule,
    message: message.trim(),
    file: withoutScheme(file),
    line: Number(line),
    ...(column === undefined ? {} : { column: Number(column) }),
  };
}

/** eslint: a line with the file, then `  1:5  error  message  rule` for each of its faults. */
function stylish(lines: readonly string[]): readonly LintFault[] {
  let file: string | undefined;
  return lines.flatMap((text) => {
    if (/^\S/.test(text)) file = text;
    const [, line, column, rest] = /^\s+(\d+):(\d+)\s+(?:error|warning)\s+(\S.*)$/.exec(text) ?? [];
    if (rest === undefined) return [];
    const [, message, rule] = /^(.*\S) {2,}(\S+)$/.exec(rest) ?? [undefined, rest];
    return [fault({ rule, message, file, line, column })];
  });
}

/** eslint and oxlint: `a.js:1:5: message [Error/rule]`. */
function unix(lines: readonly string[]): readonly LintFault[] {
  return partsIn(
    lines,
    /^(?<file>.+?):(?<line>\d+):(?<column>\d+): (?<message>.*) \[(?:Error|Warning)(?:\/(?<rule>.+))?\]$/,
  ).map(fault);
}

/** eslint: `a.js: line 1, col 5, Error - message (rule)`; Deno leaves the word out. */
function compact(lines: readonly string[]): readonly LintFault[] {
  return lines.flatMap((text) => {
    const [, file, line, column, rest] = /^(.+?): line (\d+), col (\d+)(?:, \w+)? - (.*)$/.exec(text) ?? [];
    if (rest === undefined) return [];
    const [, message, rule] = /^(.*) \(([^()\s]+)\)$/.exec(rest) ?? [undefined, rest];
    return [fault({ rule, message, file, line, column })];
  });
}

/** oxlint: `  × plugin(rule): message`, then the source in a box that opens with `╭─[a.js:1:5]`. */
function boxed(lines: readonly string[]): readonly LintFault[] {
  return lines.flatMap((text, index) => {
    const [, rule, message] = /^\s*[×⚠x!] (?:([\w@/-]+\([\w@/-]+\)): )?(\S.*)$/.exec(text) ?? [];
    if (message === undefined) return [];
    const after = untilNext(lines, index + 1, /^\s*[×⚠x!] /, 5);
    const [, file, line, column] = firstMatch(after, /^\s*(?:╭─|,-)\[(.+):(\d+):(\d+)\]$/) ?? [];
    return file === undefined ? [] : [fault({ rule, message, file, line, column })];
  });
}

/** biome: `a.js:1:5 lint/group/rule  FIXABLE  ━━━`, an empty line, then the message. */
function biome(lines: readonly string[]): readonly LintFault[] {
  return lines.flatMap((text, index) => {
    if (!text.endsWith("━")) return [];
    const [, file, line, column, rule] = /^(.+?)(?::(\d+):(\d+))? ([a-z]+\/\S+|parse) .*$/.exec(text) ?? [];
    if (file === undefined) return [];
    const after = lines.slice(index + 1, index + 5);
    const message = firstMatch(after, /^\s*[×!iℹ✖⚠] (.*)$/)?.[1];
    return [fault({ rule, message, file, line, column })];
  });
}

/** Deno and clippy: `error[rule]: message` or `warning: message`, then `--> a.js:1:5`. */
function arrows(lines: readonly string[]): readonly LintFault[] {
  return lines.flatMap((text, index) => {
    const unparsed = /^Error linting: (.+)$/.exec(text)?.[1];
    if (unparsed !== undefined) return [unparsable(unparsed, lines, index + 1)];
    const [, code, message] = /^(?:error|warning)(?:\[([\w/-]+)\])?: (.*)$/.exec(text) ?? [];
    if (message === undefined) return [];
    const after = untilNext(lines, index + 1, /^(?:$|error|warning)/);
    const [, file, line, column] = firstMatch(after, /^ *--> (.+?):(\d+):(\d+)$/) ?? [];
    return file === undefined ? [] : [fault({ rule: code ?? rustLint(after), message, file, line, column })];
  });
}

/** clippy explains a rule where it first meets it; later it only links to it. */
function rustLint(lines: readonly string[]): string | undefined {
  const named = firstMatch(lines, /`(?:#\[(?:warn|deny|forbid)\(|-[DWF] )([\w:-]+)/)?.[1];
  if (named !== undefined) return named.replaceAll("-", "_");
  const linked = firstMatch(lines, /rust-clippy\/\S*#(\w+)$/)?.[1];
  return linked === undefined ? undefined : `clippy::${linked}`;
}

function unparsable(file: string, lines: readonly string[], start: number): LintFault {
  const after = untilNext(lines, start, /^\S/);
  const [, line, column] = firstMatch(after, /^\s*at .+:(\d+):(\d+)$/) ?? [];
  return fault({ message: after[0], file, line, column });
}
