/** Which files are not formatted, as prettier, oxfmt, biome, Deno, rustfmt and gofmt list them. */
import { clipCaptured } from "../process/capture.ts";
import type { CommandOutput, OutputPath } from "../process/output.ts";
import { firstFound, linesOf } from "../process/output.ts";

/** Each once. Prettier, biome and Deno print to stderr. */
export function unformattedFiles({ stdout, stderr }: CommandOutput): readonly string[] {
  return [...new Set(firstFound(WAYS, linesOf(stdout, stderr)))];
}

const WAYS: readonly OutputPath<string>[] = [marked, listed];

/** The diff that the output holds, else the files that are not formatted, a line each. */
export function formatDiff(output: CommandOutput): string {
  const lines = linesOf(output.stdout);
  const start = lines.findIndex((line) => /^(?:diff \S|@@ -|--- a\/)/.test(line));
  const text = start === -1 ? unformattedFiles(output) : lines.slice(start);
  return clipCaptured(text.join("\n").trim(), MAX_DIFF);
}

const MAX_DIFF = 8 * 1024;

/** Lines that say of a file that it is not formatted. */
const MARKS: readonly RegExp[] = [
  /^\[warn\] (.+\.\w+)$/, // prettier
  /^(.+) format ━+$/, // biome
  /^from (.+):$/, // Deno
  /^Diff in (.+?):\d+:$/, // rustfmt
  /^\+\+\+ (?:b\/)?(\S[^\t]*)/, // a diff, as of gofmt -d
];

/** Lines that say of a file that it cannot be formatted, because it cannot be parsed. */
const BROKEN: readonly RegExp[] = [
  /^\[error\] (\S.*?): SyntaxError: /, // prettier
  /^Error checking: (.+)$/, // Deno
  /^\s*(?:╭─|,-)\[(.+):\d+:\d+\]$/, // oxfmt
];

function marked(lines: readonly string[]): readonly string[] {
  const isMarked = lines.some((line) => fileIn(line, MARKS) !== undefined);
  return isMarked ? lines.flatMap((line) => fileIn(line, [...MARKS, ...BROKEN]) ?? []) : [];
}

function fileIn(line: string, patterns: readonly RegExp[]): string | undefined {
  for (const pattern of patterns) {
    const file = pattern.exec(line)?.[1];
    if (file !== undefined) return file;
  }
  return undefined;
}

/** One path a line: oxfmt with its time, `prettier -l` and `gofmt -l` without. */
function listed(lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) => {
    const broken = fileIn(line, BROKEN);
    if (broken !== undefined) return [broken];
    const path = line.trim().replace(/ \(\d+ms\)$/, "");
    return FORMATTED.test(path) && !/^(?:error|found|check|all|run)\w*:? /i.test(path) ? [path] : [];
  });
}

const FORMATTED =
  /\.(?:[cm]?[jt]sx?|jsonc?|json5|mdx?|css|scss|less|html?|vue|svelte|astro|ya?ml|toml|graphql|gql|go|rs|py)$/;
