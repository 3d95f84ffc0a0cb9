/**
 * Named ways to read facts out of a command's output, for the prompt that describes a failure to the model.
 *
 * One name serves every tool of its kind. The formats are in extract-git.ts, -tests, -types, -lint and -format;
 * test/fixtures/output/ holds what the tools really print.
 */
import type { Json } from "../../flow/json.ts";
import { formatDiff, unformattedFiles } from "./extract-format.ts";
import type { StatusEntry } from "./extract-git.ts";
import { branchName, isStaged, isUnstaged, isUntracked, mergeStatus } from "./extract-git.ts";
import { remoteStatus, statusEntries } from "./extract-git.ts";
import { lintErrors } from "./extract-lint.ts";
import { failedTests } from "./extract-tests.ts";
import { typeErrors } from "./extract-types.ts";
import type { CommandOutput } from "../process/output.ts";
import { boundedOutput, linesOf, withoutScheme } from "../process/output.ts";

/** The value that the extractor of this name finds; null when there is no such extractor. */
export function extract(name: string, output: CommandOutput): Json {
  const value = EXTRACTORS.get(name)?.(output) ?? null;
  return typeof value === "string" ? value : boundedOutput(value);
}

type Extractor = (output: CommandOutput) => Json;

const EXTRACTORS: ReadonlyMap<string, Extractor> = new Map<string, Extractor>([
  ["stdout", ({ stdout }) => stdout],
  ["stderr", ({ stderr }) => stderr],
  ["exitCode", ({ exitCode }) => exitCode],
  ["errorOutput", errorOutput],
  ["parseChangedFiles", paths((entry) => !isUntracked(entry))],
  ["parseUntrackedFiles", paths(isUntracked)],
  ["parseStagedFiles", paths(isStaged)],
  ["parseUnstagedFiles", paths(isUnstaged)],
  ["parseBranchName", branchName],
  ["parseRemoteStatus", remoteStatus],
  ["parseMergeStatus", mergeStatus],
  ["parseTestOutput", failedTests],
  ["failedTests", failedTests],
  ["parseTypeErrors", typeErrors],
  ["errors", typeErrors],
  ["parseLintErrors", lintErrors],
  ["lintErrors", lintErrors],
  ["lintFiles", (output) => [...new Set(lintErrors(output).map(({ file }) => file))]],
  ["parseFormatOutput", unformattedFiles],
  ["formatFiles", unformattedFiles],
  ["generateDiff", formatDiff],
  ["diff", formatDiff],
  ["extractFiles", namedFiles],
  ["files", namedFiles],
  ["missingPaths", missingPaths],
  ["expectedPath", (output) => missingPaths(output)[0] ?? ""],
]);

function errorOutput({ stdout, stderr }: CommandOutput): string {
  const errors = linesOf(stderr).join("\n").trim();
  if (errors !== "") return errors;
  const lines = linesOf(stdout);
  const first = lines.findIndex((line) => /FAILED|error:/i.test(line));
  return lines
    .slice(first === -1 ? 0 : first)
    .join("\n")
    .trim();
}

function paths(wanted: (entry: StatusEntry) => boolean): Extractor {
  return (output) =>
    statusEntries(output)
      .filter(wanted)
      .map(({ path }) => path);
}

/** Source files that are named with a line, `a.ts:3` or `a.ts(3,1)`, each once, without those of libraries. */
function namedFiles({ stdout, stderr }: CommandOutput): readonly string[] {
  const words = linesOf(stdout, stderr).flatMap((line) => line.split(/[\s"'`<>[\],;]+/));
  const files = words.flatMap((word) => {
    const bare = word.startsWith("(") ? word.slice(1) : word;
    const file = /^(.*\.(?:[cm]?[jt]sx?|go|rs|py))[:(]\d/.exec(bare)?.[1];
    return file === undefined || /node_modules\/|^node:|^ext:|^\/rustc\/|^\/usr\/lib\//.test(file)
      ? []
      : [withoutScheme(file)];
  });
  return [...new Set(files)];
}

/** Paths of which the output says that they do not exist, as the shell's tools, Node, Python and Go say it. */
function missingPaths({ stdout, stderr }: CommandOutput): readonly string[] {
  return [...new Set(linesOf(stderr, stdout).flatMap((line) => missingPath(line) ?? []))];
}

function missingPath(line: string): string | undefined {
  const [, head] = /^(.*): no such file or directory$/i.exec(line) ?? [];
  if (head === undefined) return /no such file or directory(?:, \w+|:) '([^']+)'/i.exec(line)?.[1];
  const last = head.slice(head.lastIndexOf(": ") + 1).trim();
  return /['"‘]([^'"‘’]+)['"’]$/.exec(last)?.[1] ?? last.replace(/^(?:open|l?stat) /, "");
}
