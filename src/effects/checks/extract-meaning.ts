/** What a failed check about tests, types or git comes to, in the words a prompt can use whatever tool was run. */
import type { EXPLAINING, Explanation } from "../../flow/failure.ts";
import { own, type Json, type JsonObject } from "../../flow/json.ts";
import { conflictPaths, isUntracked, mergeStatus, remoteStatus, statusEntries } from "./extract-git.ts";
import { failedTests } from "./extract-tests.ts";
import { typeErrors } from "./extract-types.ts";
import type { CommandOutput } from "../process/output.ts";
import { boundedOutput } from "../process/output.ts";

type Meaning = Explanation & {
  readonly severity: "warning" | "error";
  readonly relatedFiles: readonly string[];
};

/** Of the first of these extractors that is about tests, types or git and finds something; else nothing. */
export function meaningOf(extractors: readonly string[], output: CommandOutput): JsonObject {
  const readers = new Set(extractors.flatMap((name) => own<Reader>(READERS, name) ?? []));
  for (const read of readers) {
    const meaning = read(output);
    if (meaning === null) continue;
    return Object.fromEntries(
      Object.entries<Json>(meaning).map(([param, value]) => [param, boundedOutput(value)]),
    );
  }
  return {};
}

type Reader = (output: CommandOutput) => Meaning | null;

const READERS: { readonly [extractor in (typeof EXPLAINING)[number]]: Reader } = {
  parseTestOutput: ofTests,
  failedTests: ofTests,
  parseTypeErrors: ofTypes,
  errors: ofTypes,
  parseChangedFiles: ofGit,
  parseUntrackedFiles: ofGit,
  parseStagedFiles: ofGit,
  parseUnstagedFiles: ofGit,
  parseBranchName: ofGit,
  parseRemoteStatus: ofGit,
  parseMergeStatus: ofGit,
};

function ofTests(output: CommandOutput): Meaning | null {
  const tests = failedTests(output);
  const [first] = tests;
  if (first === undefined) return null;
  const names = tests.slice(0, NAMED).map(({ name }) => name);
  const more = tests.length > NAMED ? ", …" : "";
  return {
    summary: `${count(tests.length, "test")} failed: ${names.join(", ")}${more}`,
    severity: "error",
    relatedFiles: unique(tests.flatMap(({ file }) => file ?? [])),
    rootCause: firstLine(first.error) || `The test "${first.name}" failed without saying why.`,
    suggestedAction: `Make "${first.name}" pass${tests.length > 1 ? ", then the others" : ""}; change a test only if what it expects is wrong.`,
  };
}

function ofTypes(output: CommandOutput): Meaning | null {
  const errors = typeErrors(output);
  const [first] = errors;
  if (first === undefined) return null;
  const files = unique(errors.map(({ file }) => file)).filter((file) => file !== "unknown");
  const where = files.length === 0 ? "" : ` in ${count(files.length, "file")}`;
  const place = first.file === "unknown" ? "" : `${first.file}:${first.line}: `;
  return {
    summary: `${count(errors.length, "error")}${where}`,
    severity: "error",
    relatedFiles: files,
    rootCause: `${place}${firstLine(first.message)}`,
    suggestedAction:
      errors.length === 1
        ? "Fix the cause of this error; do not cast it away."
        : "Fix the first error; the others may follow from it.",
  };
}

/** A conflict weighs more than files that are not committed, and those more than commits that are not pushed. */
function ofGit(output: CommandOutput): Meaning | null {
  return ofMerge(output) ?? ofTree(output) ?? ofRemote(output);
}

function ofMerge(output: CommandOutput): Meaning | null {
  const status = mergeStatus(output);
  const advice = adviceOn(status, MERGE_ADVICE);
  return (
    advice && {
      summary: `merge: ${status}`,
      severity: "error",
      relatedFiles: conflictPaths(output),
      ...advice,
    }
  );
}

type Advice = readonly (readonly [status: RegExp, cause: string, action: string])[];

const MERGE_ADVICE: Advice = [
  [
    /^conflict(?::|$)/,
    "Both sides of the merge changed the same lines.",
    "Resolve the conflicts, `git add` the files, then commit.",
  ],
  [/^blocked(?::|$)/, "The merge would overwrite uncommitted changes.", "Commit them, then merge again."],
  [/^merging(?::|$)/, "The merge is resolved, but not committed.", "Commit the merge."],
];

function adviceOn(status: string, all: Advice) {
  const [, rootCause, suggestedAction] = all.find(([pattern]) => pattern.test(status)) ?? [];
  return rootCause === undefined || suggestedAction === undefined ? null : { rootCause, suggestedAction };
}

function ofTree(output: CommandOutput): Meaning | null {
  const entries = statusEntries(output);
  if (entries.length === 0) return null;
  const untracked = entries.filter(isUntracked).length;
  const changed = entries.length - untracked;
  const parts = [
    ...(changed === 0 ? [] : [`${count(changed, "file")} changed`]),
    ...(untracked === 0 ? [] : [`${count(untracked, "file")} untracked`]),
  ];
  return {
    summary: parts.join(", "),
    severity: "warning",
    relatedFiles: entries.map(({ path }) => path),
    rootCause: "The working tree holds changes that are not committed.",
    suggestedAction: "Commit what belongs to the task, and remove or ignore the rest.",
  };
}

function ofRemote(output: CommandOutput): Meaning | null {
  const status = remoteStatus(output);
  const advice = adviceOn(status, REMOTE_ADVICE);
  return advice && { summary: `branch: ${status}`, severity: "warning", relatedFiles: [], ...advice };
}

const REMOTE_ADVICE: Advice = [
  [
    /behind|rejected/,
    "The upstream has commits that this branch lacks.",
    "Fetch and integrate them, then push.",
  ],
  [/ahead/, "There are commits that are not pushed.", "Push the branch."],
  [/gone/, "The upstream branch was deleted.", "Push the branch anew, or set another upstream."],
  [/no branch/, "The head is detached.", "Switch to the branch that the work belongs to, or make one."],
  [/no upstream/, "The branch has no upstream.", "Push it with `git push -u`."],
];

const NAMED = 3;

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

function unique(values: readonly string[]): readonly string[] {
  return [...new Set(values)];
}
