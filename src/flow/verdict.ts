/** How and why a run ended: a value, not an exception. */
import type { StepId } from "./flow.ts";

export type Verdict = {
  readonly outcome: Outcome;
  /** null when the run completed. */
  readonly code: string | null;
  readonly reason: string;
  readonly step: StepId | null;
};

export type Outcome = "completed" | "failed" | "waiting" | "interrupted";

export const EXIT = {
  completed: 0,
  failed: 1,
  invalid: 2,
  unavailable: 3,
  limit: 4,
  waiting: 5,
  unchecked: 6,
  testsFailed: 7,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const;

/** Programs that end processes know a signal by its number. */
export function exitOfSignal({ reason }: Pick<AbortSignal, "reason">): number {
  return reason === "SIGTERM" ? EXIT.terminated : reason === "SIGHUP" ? EXIT.hungUp : EXIT.interrupted;
}

/** Codes whose exit code is not simply 1. */
const EXIT_BY_CODE: ReadonlyMap<string, number> = new Map([
  ["AGENT_MAX_ITERATIONS", EXIT.limit],
  ["AGENT_TURN_LIMIT", EXIT.limit],
  ["BUDGET_EXHAUSTED", EXIT.limit],
  ["FLEET_BUDGET", EXIT.limit],
  ["LIMIT_UNMETERED", EXIT.unavailable],
  ["AGENT_VALIDATION_ABORT", EXIT.unchecked],
  ["AGENT_RATE_LIMIT", EXIT.unavailable],
  ["BACKEND_UNAVAILABLE", EXIT.unavailable],
  ["JOURNAL_UNAVAILABLE", EXIT.unavailable],
  ["RUN_OWNED_ELSEWHERE", EXIT.unavailable],
  ["NOT_TRUSTED", EXIT.unavailable],
  ["STATE_FOREIGN", EXIT.unavailable],
  ["STATE_UNSAFE", EXIT.unavailable],
  ["FOLDER_UNSAFE", EXIT.unavailable],
  ["PLACE_FOREIGN", EXIT.unavailable],
  ["PLACE_GONE", EXIT.unavailable],
  ["SANDBOX_UNAVAILABLE", EXIT.unavailable],
  ["CONFIG_INVALID", EXIT.unavailable],
  ["NOT_WRITABLE", EXIT.unavailable],
  ["MissingCapability", EXIT.unavailable],
  ["NO_BACKEND", EXIT.unavailable],
  ["WORKTREE_UNAVAILABLE", EXIT.unavailable],
  ["REPOSITORY_FORBIDDEN", EXIT.unavailable],
  ["GITHUB_UNAVAILABLE", EXIT.unavailable],
  ["MCP_UNAVAILABLE", EXIT.unavailable],
  ["MODULE_KILLED", EXIT.unavailable],
  ["FLOW_INVALID", EXIT.invalid],
  ["FLOW_INCOMPATIBLE", EXIT.invalid],
  ["PARAMETERS_INVALID", EXIT.invalid],
  ["EXPORT_INVALID", EXIT.invalid],
  ["EDIT_INVALID", EXIT.invalid],
  ["SCRIPT_INVALID", EXIT.invalid],
  ["NO_SUCH_FOLDER", EXIT.invalid],
  ["FLEET_NO_SOURCE", EXIT.invalid],
  ["FLEET_NO_HOME", EXIT.invalid],
  ["RUN_UNKNOWN", EXIT.invalid],
  ["RUN_AMBIGUOUS", EXIT.invalid],
  ["RUN_EXISTS", EXIT.invalid],
  ["NO_STAGES", EXIT.invalid],
  ["NO_QUESTION", EXIT.invalid],
  ["QUESTION_ANSWERED", EXIT.invalid],
  ["QUESTION_EXPIRED", EXIT.invalid],
  ["NOT_DRIVEN", EXIT.invalid],
  ["RUN_OVER", EXIT.invalid],
  ["RUN_OPEN", EXIT.invalid],
  ["RUN_PAUSED", EXIT.waiting],
  ["RUN_HELD", EXIT.unavailable],
  ["STEP_UNKNOWN", EXIT.invalid],
  ["USAGE", EXIT.invalid],
  ["TESTS_FAILED", EXIT.testsFailed],
]);

export function exitCode(verdict: Pick<Verdict, "outcome" | "code">): number {
  if (verdict.outcome === "completed") return EXIT.completed;
  if (verdict.outcome === "waiting") return EXIT.waiting;
  if (verdict.outcome === "interrupted") return EXIT.interrupted;
  return EXIT_BY_CODE.get(verdict.code ?? "") ?? EXIT.failed;
}
