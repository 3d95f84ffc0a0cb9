/** What a flow declares as commands: its checks, and the steps that a command performs. */
import type { Shell, TurnResult } from "../../engine/ports.ts";
import { RunnerError } from "../../engine/ports.ts";
import { fillIn, type CommandPerformer } from "../../flow/argv.ts";
import type { Step } from "../../flow/flow.ts";
import { parseJsonObject } from "../../flow/json.ts";
import type { Grounded } from "../../flow/machine/ground.ts";
import { oneLine } from "./output.ts";
import type { Env, ProcessResult, RunProcess } from "./process.ts";
import { childEnv, endingOf, isFinished } from "./process.ts";

export type ShellOptions = {
  /** Where every command runs. */
  readonly cwd: string;
  /** Ours; commands see only what `childEnv` lets through, and the names in `allow`. */
  readonly env: Env;
  readonly allow?: readonly string[];
  readonly exec: RunProcess;
  /** Where files are looked at, and which of them may be. */
  readonly ground?: Grounded;
  /** Where git is, for checks that ask it; null: nowhere. */
  readonly git?: string | null;
};

/** After an abort both verbs still settle with a value that says so; it is not a result and must not be recorded as one. */
export function createShell({ cwd, env, allow, exec, ground, git = null }: ShellOptions): Shell {
  /** Looked at when a check runs: most runs have none. */
  const place = () => ({ cwd, env: childEnv(env, allow), exec, git });
  return {
    check: async (check, signal) => {
      switch (check.kind) {
        case "command":
          return await (await import("../checks/check-command.ts")).judgeCommand(check, place(), signal);
        case "file":
          return (await import("../checks/check-file.ts")).judgeFile(check, cwd, ground);
        case "commit-message":
          return await (await import("../checks/check-commit.ts")).judgeCommit(check, place(), signal);
      }
    },
    perform: async (step, args, signal) => {
      const performer = performerOf(step);
      const argv = fillIn(performer, args);
      if (argv.kind === "unresolved") return fault(step, `no value for ${argv.template} in its args`);
      const { timeoutMs } = performer;
      const options = { cwd, env: childEnv(env), timeoutMs, maxOutputBytes: MAX_ANSWER_BYTES, signal };
      const result = await exec({ ...options, command: argv.command });
      return answerOf(step, performer, result);
    },
  };
}

const MAX_ANSWER_BYTES = 1024 * 1024;

function performerOf(step: Step): CommandPerformer {
  if (step.by.kind === "command") return step.by;
  throw new RunnerError("STEP_NOT_A_COMMAND", `Step "${step.id}" is performed by a model, not by a command.`);
}

function answerOf(step: Step, performer: CommandPerformer, result: ProcessResult): TurnResult {
  if (!isFinished(result) || result.exitCode !== 0) {
    const said = result.stderr.trim().slice(-STDERR_TAIL);
    const ending = `\`${oneLine(performer.command)}\` ${endingOf(result, performer.timeoutMs)}`;
    return fault(step, said === "" ? ending : `${ending}: ${said}`);
  }
  const text = result.stdout;
  return { kind: "reply", text, calls: [], output: parseJsonObject(text) ?? { raw: text }, usage: NO_USAGE };
}

const STDERR_TAIL = 2_000;
const NO_USAGE = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };

function fault(step: Step, what: string): TurnResult {
  return { kind: "fault", fault: { kind: "process", message: `Step "${step.id}": ${what}.` } };
}
