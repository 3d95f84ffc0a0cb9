/** A check by a command: whether it could run, what its success rule says, and what a failure prompt can say about it. */
import type { CheckResult } from "../../flow/event.ts";
import type { FailureParams } from "../../flow/failure.ts";
import type { CommandCheck, SuccessRule } from "../../flow/flow.ts";
import type { Json, JsonObject } from "../../flow/json.ts";
import { clipCaptured } from "../process/capture.ts";
import { firstLines, oneLine } from "../process/output.ts";
import { matchesPattern, type PatternResult } from "./match-pattern.ts";
import type { Env, ProcessResult, RunProcess } from "../process/process.ts";
import { endingOf, isFinished } from "../process/process.ts";

/** Where a check runs, what it sees of the environment, and what runs it. */
export type CheckPlace = {
  readonly cwd: string;
  readonly env: Env;
  readonly exec: RunProcess;
  readonly git: string | null;
};

/** Whether the command could run at all comes first; only then does the success rule have a say. */
export async function judgeCommand(
  check: CommandCheck,
  { cwd, env, exec }: CheckPlace,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { name, pattern, command, env: values = {}, timeoutMs, maxOutputBytes } = check;
  const result = await exec({ cwd, env, values, command, timeoutMs, maxOutputBytes, signal });
  const unrecoverable = isUnrecoverable(result);
  const finding = unrecoverable ? { ok: false } : await applyRule(check.success, result, signal);
  const summary = summarize(check, result, finding);
  return {
    name,
    ok: finding.ok,
    pattern,
    summary,
    params: finding.ok ? {} : await paramsOf(check, result, summary),
    ...(unrecoverable ? { unrecoverable } : {}),
  };
}

/** The command is missing or forbidden: no work on the project will make it pass. */
export function isUnrecoverable({ exitCode, stderr }: ProcessResult): boolean {
  return exitCode === 126 || exitCode === 127 || /EACCES|Permission denied/.test(stderr);
}

async function applyRule(
  rule: SuccessRule,
  result: ProcessResult,
  signal: AbortSignal,
): Promise<PatternResult> {
  const { exitCode, stdout } = result;
  if (!isFinished(result)) return { ok: false };
  switch (rule.kind) {
    case "empty":
      return { ok: stdout.trim() === "" && foundNothing(result) };
    case "exit":
      return { ok: exitCode === rule.code };
    case "contains":
      return { ok: stdout.includes(rule.text) };
    case "matches":
      return await matchesPattern(rule.pattern, stdout, signal);
  }
}

/** No output because there is nothing to report, and not because the command failed: `grep` exits with 1, silently. */
function foundNothing({ exitCode, stderr }: ProcessResult): boolean {
  return exitCode === 0 || (exitCode === 1 && stderr.trim() === "");
}

/** What ran, what was expected and what came; on a second line, how the output begins. */
function summarize(check: CommandCheck, result: ProcessResult, finding: PatternResult): string {
  const ran = `\`${oneLine(check.command)}\` ${endingOf(result, check.timeoutMs)}`;
  const why = finding.why === undefined ? "" : ` (${finding.why})`;
  const output = firstLines(result.stdout) || firstLines(result.stderr);
  return `${ran}; expected ${oneLine(expectation(check.success, result))}${why}.${output === "" ? "" : `\n${output}`}`;
}

function expectation(rule: SuccessRule, result: ProcessResult): string {
  switch (rule.kind) {
    case "empty":
      return result.stdout.trim() !== "" || !isFinished(result) || foundNothing(result)
        ? "no output"
        : "exit code 0, or 1 with nothing on stderr";
    case "exit":
      return `exit code ${rule.code}`;
    case "contains":
      return `output containing ${JSON.stringify(rule.text)}`;
    case "matches":
      return `output matching /${rule.pattern}/`;
  }
}

/**
 * What a failure prompt can say: extracted facts; what they mean and the raw ones stand under names that no extractor
 * took. Loaded when something failed, since most checks pass.
 */
async function paramsOf(check: CommandCheck, result: ProcessResult, summary: string): Promise<JsonObject> {
  const { extract, meaningOf } = (extracting ??= await loadExtracting());
  const extracted = Object.entries(check.extract).map(
    ([param, name]) => [param, extract(name, result)] as const,
  );
  const { stdout, stderr, exitCode } = result;
  const raw: FailureParams<"command"> = { stdout, stderr, exitCode, command: check.command, summary };
  const meaning = meaningOf(Object.values(check.extract), result);
  const all = [...Object.entries<Json>(raw), ...Object.entries(meaning), ...extracted];
  return Object.fromEntries(all.map(([param, value]) => [param, capped(value)]));
}

async function loadExtracting() {
  const [{ extract }, { meaningOf }] = await Promise.all([
    import("./extract.ts"),
    import("./extract-meaning.ts"),
  ]);
  return { extract, meaningOf };
}

/** Kept: a module is looked up at each import(), which takes longer than the work with it. */
let extracting: Awaited<ReturnType<typeof loadExtracting>> | null = null;

function capped(value: Json): Json {
  return typeof value === "string" ? clipCaptured(value, MAX_PARAM_BYTES) : value;
}

const MAX_PARAM_BYTES = 8 * 1024;
