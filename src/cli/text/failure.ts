/** What a command that failed prints: words for people, one document for programs. */
import { EXIT, exitCode } from "../../flow/verdict.ts";
import type { Problem } from "../../flow/problem.ts";
import { errorText } from "../../flow/text/harmless.ts";
import { toFailure } from "../../tell/result.ts";
import { UsageError } from "../args.ts";
import type { CallUnderWay } from "../call.ts";
import type { CliCommand } from "../commands.ts";
import { meantBy } from "./meant.ts";

export type Failure = {
  readonly code: string;
  readonly reason: string;
  readonly exitCode: number;
  /** Where a bug was met; null for everything that is not one. */
  readonly stack: string | null;
};

/** `cwd`: the folder that the command was to work in. */
export function toFailing(error: unknown, command: CliCommand | null, agent: string, cwd: string): Failure {
  if (error instanceof UsageError) {
    const { message } = error;
    const hint = meantBy(error, cwd);
    const about =
      command?.takesParameters && agent !== ""
        ? `${command.name} ${agent} `
        : command === null
          ? ""
          : `${command.name} `;
    const said = `${message}${hint}`;
    // A command at the end is to be pasted without what follows.
    const reason = `${said}${/[.?!]$/.test(said) ? " " : "\n"}See: lockstep ${about}--help`;
    return { code: "USAGE", reason, exitCode: EXIT.invalid, stack: null };
  }
  if (isRunnerError(error)) {
    const { code, message } = error;
    return { code, reason: message, exitCode: exitCode({ outcome: "failed", code }), stack: null };
  }
  const reason = `This is a bug in Lockstep: ${errorText(error)}`;
  const stack = error instanceof Error && error.stack !== undefined ? error.stack : String(error);
  return { code: "INTERNAL", reason, exitCode: EXIT.failed, stack };
}

export type Interruption = {
  /** What the run was about to do; null: the command drives none. */
  readonly word: "began" | "went on" | null;
  readonly isSecond: boolean;
  /** The command that goes on with what was recorded by then. */
  readonly resume: string | null;
};

/** A signal ended the command before it had a result. */
export function interruptedBy(
  signal: string,
  exitCode: number,
  { word, isSecond, resume }: Interruption,
): Failure {
  const why = isSecond
    ? `Left at once because of a second ${signal}.`
    : `Stopped by ${signal}${word === null ? "" : ` before the run ${word}`}.`;
  const reason = resume === null ? why : `${why} Recorded work is kept; continue with: ${resume}`;
  return { code: INTERRUPTED, reason, exitCode, stack: null };
}

const INTERRUPTED = "INTERRUPTED";

export function failureDocument(
  failure: Failure,
  command: CliCommand | null,
  agent: string,
  underWay: CallUnderWay | null,
): unknown {
  const { code, reason, exitCode } = failure;
  const outcome = code === INTERRUPTED ? "interrupted" : "failed";
  if (underWay?.document !== undefined) return { ...underWay.document(), code, reason, exitCode };
  switch (command?.document ?? "plain") {
    case "result": {
      const run = underWay?.run ?? null;
      const resumable = run !== null && underWay?.phase !== "over";
      return { ...toFailure(agent, code, reason), run, outcome, exitCode, resumable };
    }
    case "findings":
      return { v: 1, agent, ok: false, problems: [failureProblem(failure)] };
    case "plain":
      return command?.kind === undefined
        ? { v: 1, outcome, success: false, code, reason, exitCode }
        : { ...noReport(command.kind, failure, []), outcome };
  }
}

/** Why a command that reports has nothing to report; `problems`: of the files that it read. */
export function noReport(
  kind: string,
  { code, reason, exitCode }: Omit<Failure, "stack">,
  problems: readonly Problem[],
) {
  return { v: 1, kind, ok: false, outcome: "failed", success: false, code, reason, exitCode, problems };
}

/** The line itself as a finding, for `check --json`. */
export function failureProblem({ code, reason }: Pick<Failure, "code" | "reason">): Problem {
  return {
    code,
    severity: "error",
    file: "(command line)",
    line: 1,
    column: 1,
    pointer: "",
    step: null,
    message: reason,
    why: "Nothing could be checked.",
    fix: "lockstep check --help",
    witness: [],
  };
}

/** Known by its name: the room that defines it need not be loaded to report a mistyped flag. */
function isRunnerError(error: unknown): error is Error & { readonly code: string } {
  return (
    error instanceof Error &&
    error.name === "RunnerError" &&
    "code" in error &&
    typeof error.code === "string"
  );
}
