/** Where code does not compile, as tsc, Deno, rustc, go and compilers of the `file:line: error:` kind print it. */
import type { CommandOutput, OutputPath } from "../process/output.ts";
import { firstFound, firstMatch, linesOf, partsIn, untilNext, withoutScheme } from "../process/output.ts";

export type TypeFault = {
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly message: string;
  readonly code?: string;
};

/** tsc prints to stdout, the others to stderr. */
export function typeErrors({ stdout, stderr }: CommandOutput): readonly TypeFault[] {
  return firstFound(WAYS, linesOf(stderr, stdout));
}

/** The last two are for compilers that we do not know. */
const WAYS: readonly OutputPath<TypeFault>[] = [
  tscErrors,
  denoErrors,
  rustErrors,
  goErrors,
  placedErrors,
  loosePlaces,
  bareErrors,
];

type Parts = { readonly [part in keyof TypeFault]?: string | undefined };

function fault({ file = "unknown", line = "0", column, code, message = "" }: Parts): TypeFault {
  return {
    file: withoutScheme(file),
    line: Number(line),
    ...(column === undefined ? {} : { column: Number(column) }),
    message: message.trim(),
    ...(code === undefined ? {} : { code }),
  };
}

/** `src/a.ts(1,7): error TS2322: …`, with --pretty `src/a.ts:1:7 - error TS2322: …`; indented lines say more. */
function tscErrors(lines: readonly string[]): readonly TypeFault[] {
  return lines.flatMap((line, index) => {
    const [found, file, row, column, code, head] =
      /^(.+?)\((\d+),(\d+)\): error (TS\d+): (.*)$/.exec(line) ??
      /^(.+?):(\d+):(\d+) - error (TS\d+): (.*)$/.exec(line) ??
      /^()()()error (TS\d+): (.*)$/.exec(line) ??
      [];
    if (found === undefined) return [];
    const message = [head, ...untilNext(lines, index + 1, /^(?! +\S)/, MORE_LINES)].join("\n");
    return [fault(file === "" ? { code, message } : { file, line: row, column, code, message })];
  });
}

const MORE_LINES = 5;

/** `TS2322 [ERROR]: …`, some lines of source, then `at file:///a.ts:1:7`. */
function denoErrors(lines: readonly string[]): readonly TypeFault[] {
  return lines.flatMap((line, index) => {
    const [, code, message] = /^(?:error: )?(TS\d+) \[ERROR\]: (.*)$/.exec(line) ?? [];
    if (code === undefined) return [];
    const after = untilNext(lines, index + 1, /^(?:error: )?TS\d+ \[ERROR\]/);
    const [, file, row, column] = firstMatch(after, /^\s*at (.+?):(\d+):(\d+)$/) ?? [];
    return [fault({ file, line: row, column, code, message })];
  });
}

/** `error[E0308]: …`, `--> src/lib.rs:9:5`, then the source, underlined with what is wrong there. */
function rustErrors(lines: readonly string[]): readonly TypeFault[] {
  return lines.flatMap((line, index) => {
    const [, code, head] = /^error(?:\[(E\d+)\])?: (.*)$/.exec(line) ?? [];
    if (head === undefined) return [];
    const after = untilNext(lines, index + 1, /^(?:$|error|warning)/);
    const [, file, row, column] = firstMatch(after, /^ *--> (.+?):(\d+):(\d+)$/) ?? [];
    if (file === undefined) return [];
    const label = firstMatch(after, /^ *\|[^^]*\^+ (.+)$/)?.[1];
    const message = label === undefined ? head : `${head}: ${label}`;
    return [fault({ file, line: row, column, code, message })];
  });
}

/** `./main.go:3:8: …`, from the first column on; what a test prints looks the same, but is indented. */
function goErrors(lines: readonly string[]): readonly TypeFault[] {
  return lines.flatMap((line, index) => {
    const [, file, row, column, head] = /^(?:vet: )?(\S+\.go):(\d+)(?::(\d+))?: (.*)$/.exec(line) ?? [];
    if (file === undefined) return [];
    const message = [head, ...untilNext(lines, index + 1, /^(?!\t)/, MORE_LINES)].join("\n");
    return [fault({ file, line: row, column, message })];
  });
}

/** `a.rs:3:9: error[E0308]: …` and `a.py:3: error: …`. */
function placedErrors(lines: readonly string[]): readonly TypeFault[] {
  return partsIn(
    lines,
    /^(?<file>\S.*?):(?<line>\d+):(?:(?<column>\d+):)? error(?:\[(?<code>\w+)\])?: (?<message>.*)$/,
  ).map(fault);
}

function loosePlaces(lines: readonly string[]): readonly TypeFault[] {
  const found = partsIn(
    lines,
    /^\s*(?<file>\S+\.[cm]?[jt]sx?):(?<line>\d+)(?::(?<column>\d+))?:? (?<message>.*)$/,
  );
  return found.filter(({ message = "" }) => /error/i.test(message)).map(fault);
}

function bareErrors(lines: readonly string[]): readonly TypeFault[] {
  return partsIn(lines, /^\s*(?:error|[A-Za-z]*Error): (?<message>.*)$/).map(fault);
}
