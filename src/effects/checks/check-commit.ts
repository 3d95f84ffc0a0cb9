/** A check that the newest commit is described in the conventional form, `type(scope)!: subject`. */
import type { CheckResult } from "../../flow/event.ts";
import type { FailureParams } from "../../flow/failure.ts";
import type { Check } from "../../flow/flow.ts";
import { NOT_INSTALLED } from "../../flow/machine/programs.ts";
import { clipCaptured } from "../process/capture.ts";
import { isUnrecoverable, type CheckPlace } from "./check-command.ts";
import { GIT_ENV, gitCommand } from "../git/git.ts";
import { firstLines, oneLine } from "../process/output.ts";
import { endingOf, isFinished, type ProcessResult } from "../process/process.ts";

/** Merges are passed over: git words them itself. Without a repository no work on the project can make it pass. */
export async function judgeCommit(
  { name, pattern, timeoutMs }: Extract<Check, { kind: "commit-message" }>,
  { cwd, env, exec, git }: CheckPlace,
  signal: AbortSignal,
): Promise<CheckResult> {
  const seen = { ...env, ...GIT_ENV, GIT_ALLOW_PROTOCOL: "none" };
  const command = gitCommand(git ?? NOT_INSTALLED, NEWEST.split(" "));
  const result = await exec({ command, cwd, env: seen, timeoutMs, maxOutputBytes: MAX_BYTES, signal });
  const commit = readCommit(result, timeoutMs);
  if (commit.kind === "unreadable") {
    const { why, unrecoverable } = commit;
    const params: Omit<FailureParams<"commit-message">, "commit"> = {
      commitMessage: "",
      problems: [why],
      expectedForm: FORM,
      summary: why,
    };
    return { name, ok: false, pattern, summary: why, params, ...(unrecoverable ? { unrecoverable } : {}) };
  }
  const problems = commitFaults(commit.message);
  const [header = ""] = commit.message.split("\n", 1);
  const summary = `The newest commit is "${oneLine(header)}"${problems.length === 0 ? "" : `: ${problems.join("; ")}`}.`;
  const params: FailureParams<"commit-message"> = {
    commitMessage: clipCaptured(commit.message, MAX_PARAM_BYTES),
    commit: commit.commit,
    problems,
    expectedForm: FORM,
    summary,
  };
  return { name, ok: problems.length === 0, pattern, summary, params: problems.length === 0 ? {} : params };
}

/** A plumbing command reads no settings of `git log`. */
const NEWEST = "rev-list --max-count=1 --no-merges --encoding=UTF-8 --format=%B HEAD --";
const MAX_BYTES = 64 * 1024;
const MAX_PARAM_BYTES = 8 * 1024;

type CommitRead =
  | { readonly kind: "commit"; readonly commit: string; readonly message: string }
  | { readonly kind: "unreadable"; readonly why: string; readonly unrecoverable: boolean };

function readCommit(result: ProcessResult, timeoutMs: number): CommitRead {
  const { exitCode, stdout, stderr } = result;
  const isNew = exitCode === 128 && stderr.includes("bad revision");
  if (isNew || (exitCode === 0 && stdout === ""))
    return { kind: "unreadable", why: "There is no commit yet.", unrecoverable: false };
  if (!isFinished(result) || exitCode !== 0) {
    const why = `\`git rev-list\` ${endingOf(result, timeoutMs)}: ${firstLines(stderr)}.`;
    return { kind: "unreadable", why, unrecoverable: isFinished(result) || isUnrecoverable(result) };
  }
  const end = stdout.indexOf("\n");
  const commit = stdout.slice("commit ".length, end);
  return { kind: "commit", commit, message: stdout.slice(end + 1).trimEnd() };
}

const FORM = "type(scope)!: subject";
const HEADER = /^[a-z][a-z0-9-]*(?:\([^()\s][^()]*\))?!?: \S/u;
const MAX_HEADER = 100;

/** What keeps a message from having the form; a scope and the mark of a breaking change may be left out. */
export function commitFaults(message: string): readonly string[] {
  const [header = "", second = ""] = message.split("\n");
  return [
    ...(HEADER.test(header) ? [] : [`the first line does not have the form "${FORM}"`]),
    ...(header.length <= MAX_HEADER
      ? []
      : [`the first line has ${header.length} characters, more than ${MAX_HEADER}`]),
    ...(second.trim() === "" ? [] : ["the second line is not empty"]),
  ];
}
