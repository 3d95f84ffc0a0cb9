/** What a flow declares as commands: its checks, and the steps that a command performs. */
import { runInNewContext } from "node:vm";
import { stripVTControlCharacters } from "node:util";
import type { Shell, TurnResult } from "../engine/ports.ts";
import { RunnerError } from "../engine/ports.ts";
import type { CheckResult } from "../flow/event.ts";
import type { Check, Performer, Step, SuccessRule } from "../flow/flow.ts";
import type { Json, JsonObject } from "../flow/json.ts";
import { isObject, own, parseDotPath, readPath } from "../flow/json.ts";
import { clip } from "./capture.ts";
import type { Env, ProcessResult, RunProcess } from "./process.ts";
import { childEnv } from "./process.ts";

export type ShellOptions = {
  /** Where every command runs. */
  readonly cwd: string;
  /** Ours; commands see only what `childEnv` lets through, and the names in `allow`. */
  readonly env: Env;
  readonly allow?: readonly string[];
  readonly exec: RunProcess;
};

/** After an abort both verbs still settle with a value that says so; it is no result, and not to be recorded as one. */
export function createShell({ cwd, env, allow, exec }: ShellOptions): Shell {
  /** Looked at when a command runs: most runs run none. */
  const place = () => ({ cwd, env: childEnv(env, allow) });
  return {
    check: async (check, signal) => {
      const { command, timeoutMs, maxOutputBytes } = check;
      const result = await exec({ ...place(), command, timeoutMs, maxOutputBytes, signal });
      return await judgeCheck(check, result);
    },
    perform: async (step, args, signal) => {
      const performer = performerOf(step);
      const argv = fillIn(performer, args);
      if (argv.kind === "unresolved") return fault(step, `no value for ${argv.template} in its args`);
      const { timeoutMs } = performer;
      const options = {
        ...place(),
        command: argv.command,
        timeoutMs,
        maxOutputBytes: MAX_ANSWER_BYTES,
        signal,
      };
      const result = await exec(options);
      return answerOf(step, performer, result);
    },
  };
}

// Checks.

/** Whether the command could run at all comes first; only then does the success rule have a say. */
async function judgeCheck(check: Check, result: ProcessResult): Promise<CheckResult> {
  const unrecoverable = isUnrecoverable(result);
  const finding = unrecoverable ? { ok: false } : applyRule(check.success, result);
  const summary = summarize(check, result, finding);
  return {
    name: check.name,
    ok: finding.ok,
    pattern: check.pattern,
    summary,
    params: finding.ok ? {} : await paramsOf(check, result, summary),
    ...(unrecoverable ? { unrecoverable } : {}),
  };
}

/** The command is missing or forbidden: no work on the project will make it pass. */
function isUnrecoverable({ exitCode, stderr }: ProcessResult): boolean {
  return exitCode === 126 || exitCode === 127 || /EACCES|Permission denied/.test(stderr);
}

type Finding = { readonly ok: boolean; readonly why?: string };

/** A command that was cut off has not said anything, not even "empty". */
function applyRule(rule: SuccessRule, result: ProcessResult): Finding {
  const { exitCode, stdout } = result;
  if (!isFinished(result)) return { ok: false };
  switch (rule.kind) {
    case "empty":
      return { ok: stdout.trim() === "" };
    case "exit":
      return { ok: exitCode === rule.code };
    case "contains":
      return { ok: stdout.includes(rule.text) };
    case "matches":
      return applyPattern(rule.pattern, stdout);
  }
}

function isFinished({ exitCode, timedOut, aborted }: ProcessResult): boolean {
  return exitCode !== null && !timedOut && !aborted;
}

/** A pattern may need longer than the universe has; it gets a quarter of a second, and then it has not matched. */
function applyPattern(pattern: string, stdout: string): Finding {
  const texts = [stdout, stdout.replace(/\r?\n$/, "")];
  try {
    const ok: unknown = runInNewContext(
      "const regex = new RegExp(pattern); texts.some((text) => regex.test(text))",
      { pattern, texts },
      { timeout: PATTERN_MS },
    );
    return { ok: ok === true };
  } catch (error) {
    const slow = isObject(error) && error["code"] === "ERR_SCRIPT_EXECUTION_TIMEOUT";
    return {
      ok: false,
      why: slow ? "the pattern took too long" : "the pattern is not a valid regular expression",
    };
  }
}

const PATTERN_MS = 250;

/** What ran, what was expected and what came; on a second line, how the output begins. */
function summarize(check: Check, result: ProcessResult, finding: Finding): string {
  const ran = `\`${oneLine(check.command)}\` ${endingOf(result, check.timeoutMs)}`;
  const why = finding.why === undefined ? "" : ` (${finding.why})`;
  const output = firstLines(result.stdout) || firstLines(result.stderr);
  return `${ran}; expected ${oneLine(expectation(check.success))}${why}.${output === "" ? "" : `\n${output}`}`;
}

function endingOf({ exitCode, signal, timedOut, aborted }: ProcessResult, timeoutMs: number): string {
  if (aborted) return "was interrupted";
  if (timedOut) return `was stopped after ${timeoutMs} ms`;
  return exitCode === null ? `was ended by ${signal ?? "a signal"}` : `ended with exit code ${exitCode}`;
}

function expectation(rule: SuccessRule): string {
  switch (rule.kind) {
    case "empty":
      return "no output";
    case "exit":
      return `exit code ${rule.code}`;
    case "contains":
      return `output containing ${JSON.stringify(rule.text)}`;
    case "matches":
      return `output matching /${rule.pattern}/`;
  }
}

function firstLines(text: string): string {
  const lines = text.slice(0, 4_096).split("\n");
  return oneLine(
    lines
      .filter((line) => line.trim() !== "")
      .slice(0, 3)
      .map((line) => line.trim())
      .join(" | "),
  );
}

/** Fit to be shown among other words: no control characters, not too long. */
function oneLine(text: string): string {
  const plain = stripVTControlCharacters(text)
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  return plain.length > MAX_SHOWN ? `${plain.slice(0, MAX_SHOWN)} …` : plain;
}

const MAX_SHOWN = 300;

/**
 * What a failure prompt can tell: extracted facts; what they mean and the raw ones stand under names that no extractor
 * took. Loaded when something failed, since most checks pass and most runs have none.
 */
async function paramsOf(check: Check, result: ProcessResult, summary: string): Promise<JsonObject> {
  const { extract } = await import("./extract.ts");
  const { meaningOf } = await import("./extract-meaning.ts");
  const extracted = Object.entries(check.extract).map(
    ([param, name]) => [param, extract(name, result)] as const,
  );
  const { stdout, stderr, exitCode } = result;
  const raw = { stdout, stderr, exitCode, command: check.command, summary };
  const meaning = meaningOf(Object.values(check.extract), result);
  const all = [...Object.entries<Json>(raw), ...Object.entries(meaning), ...extracted];
  return Object.fromEntries(all.map(([param, value]) => [param, capped(value)]));
}

function capped(value: Json): Json {
  return typeof value === "string" ? clip(value, MAX_PARAM_BYTES) : value;
}

const MAX_PARAM_BYTES = 8 * 1024;

// Steps performed by a command.

type CommandPerformer = Extract<Performer, { kind: "command" }>;

const MAX_ANSWER_BYTES = 1024 * 1024;

function performerOf(step: Step): CommandPerformer {
  if (step.by.kind === "command") return step.by;
  throw new RunnerError("STEP_NOT_A_COMMAND", `Step "${step.id}" is performed by a model, not by a command.`);
}

type Argv =
  | { readonly kind: "resolved"; readonly command: readonly string[] }
  | { readonly kind: "unresolved"; readonly template: string };

/** Values become part of one argument each; no shell ever reads them. */
function fillIn({ command, args }: CommandPerformer, values: JsonObject): Argv {
  const missing: string[] = [];
  const filled = args.map((arg) =>
    arg.replace(/\$\{context\.([^{}]+)\}/g, (template, key: string) => {
      const value = own(values, key) ?? readPath(values, parseDotPath(key)) ?? null;
      if (value === null) missing.push(template);
      return typeof value === "string" ? value : JSON.stringify(value);
    }),
  );
  const [template] = missing;
  return template === undefined
    ? { kind: "resolved", command: [command, ...filled] }
    : { kind: "unresolved", template };
}

function answerOf(step: Step, performer: CommandPerformer, result: ProcessResult): TurnResult {
  if (!isFinished(result) || result.exitCode !== 0) {
    const said = result.stderr.trim().slice(-STDERR_TAIL);
    const ending = `\`${oneLine(performer.command)}\` ${endingOf(result, performer.timeoutMs)}`;
    return fault(step, said === "" ? ending : `${ending}: ${said}`);
  }
  const text = result.stdout;
  return { kind: "reply", text, calls: [], output: parseObject(text) ?? { raw: text }, usage: NO_USAGE };
}

const STDERR_TAIL = 2_000;
const NO_USAGE = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };

function parseObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function fault(step: Step, what: string): TurnResult {
  return { kind: "fault", fault: { kind: "process", message: `Step "${step.id}": ${what}.` } };
}
