/** The result document: one versioned JSON value for every way a run can go. */
import type { Effect, Report } from "../engine/report.ts";
import type { State } from "../engine/state.ts";
import type { StepTally } from "../engine/tally.ts";
import type { Led, Origin } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { own, type JsonObject } from "../flow/json.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { waitingQuestions, type OpenQuestion } from "./questions.ts";
import { EXIT, exitCode, type Outcome, type Verdict } from "../flow/verdict.ts";

export type Result = {
  readonly v: 1;
  readonly run: string | null;
  /** The run whose past it shares. */
  readonly forkedFrom: Origin | null;
  readonly agent: string;
  readonly flow: { readonly digest: string; readonly dialect: string } | null;
  readonly outcome: Outcome;
  readonly success: boolean;
  readonly reason: string;
  readonly completionReason: string;
  readonly code: string | null;
  readonly exitCode: number;
  /** Whether `resume` could go on with it. */
  readonly resumable: boolean;
  readonly finalStepId: string | null;
  readonly iterations: number;
  readonly path: readonly Led[];
  readonly handoff: { readonly [step: string]: JsonObject };
  /** The `verdict` member of the closing answer, where it has one. */
  readonly verdict: string | null;
  readonly checks: Report["checks"];
  /** What was done to the world, or was meant to be. */
  readonly effects: readonly Effect[];
  /** Where the run worked; null: in the folder it was started in. `kept`: it has not been removed by the run. */
  readonly worktree: {
    readonly path: string;
    readonly branch: string;
    readonly base: string;
    readonly kept: boolean;
  } | null;
  /** What it waits to be told. */
  readonly questions: readonly OpenQuestion[];
  readonly problems: readonly Problem[];
  readonly usage: { inputTokens: number; outputTokens: number; turns: number };
  readonly costUsd: number | null;
  /** What each step took, in the order in which they were first visited. */
  readonly steps: readonly StepTally[];
  readonly durationMs: number;
  readonly warnings: readonly string[];
};

type Told = {
  readonly run: string;
  readonly flow: Flow;
  readonly digest: string;
  readonly state: State;
  readonly report: Report;
  readonly steps: readonly StepTally[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
};

/** Of a run that began. Without a verdict it was stopped on its way. */
export function toResult(told: Told): Result {
  const { run, flow, digest, state, report } = told;
  const over = recordedEnd(state);
  const questions = waitingQuestions(run, state);
  const verdict: Verdict = (over === null ? null : withRemedy(run, over, questions)) ??
    undelivered(told) ?? {
      outcome: "interrupted",
      code: "INTERRUPTED",
      reason: `Stopped before the end. Go on with: lockstep resume ${run}`,
      step: state.lanes[0]?.step ?? null,
    };
  const said = state.last === null ? undefined : own(state.last.payload, "verdict");
  return {
    ...blank(flow.agent, verdict, told.problems),
    run,
    forkedFrom: report.forkedFrom,
    flow: { digest, dialect: flow.dialect },
    iterations: state.iterations,
    path: report.path,
    handoff: state.handoff,
    verdict: typeof said === "string" ? said : null,
    checks: report.checks,
    effects: [...report.effects.values()],
    worktree: worktreeOf(report),
    questions,
    resumable: over === null || state.halted.length > 0,
    usage: {
      inputTokens: state.usage.inputTokens,
      outputTokens: state.usage.outputTokens,
      turns: state.usage.turns,
    },
    costUsd: state.usage.costUsd,
    steps: told.steps,
    durationMs: report.endedAt - report.startedAt,
    warnings: [
      ...told.problems.filter((problem) => problem.severity === "warning").map((problem) => problem.message),
      ...report.path.flatMap((led) => (led.notes ?? []).map((note) => `${led.step}@${led.visit}: ${note}`)),
      ...report.denials,
      ...report.left.map((visit) => `${visit} was told to stop and did not do so in time`),
      ...told.warnings,
    ],
  };
}

/** What to type, for a run that waits for somebody. */
function withRemedy(run: string, verdict: Verdict, questions: readonly OpenQuestion[]): Verdict {
  if (verdict.outcome !== "waiting") return verdict;
  const typed =
    verdict.code === "PAUSED"
      ? [`Go on with: lockstep continue ${run}`]
      : questions.map(({ answer }) => `Nobody is there to answer. Answer with: ${answer}`);
  return typed.length === 0 ? verdict : { ...verdict, reason: [verdict.reason, ...typed].join("\n") };
}

/** How the run ended. An end that is decided and not recorded is none yet: something that is due before is not done. */
export function recordedEnd({ pending, verdict }: State): Verdict | null {
  return pending.length === 0 ? verdict : null;
}

/** The code of a run that is complete, but whose work did not get where it was to go. Its end is not recorded. */
export const FINALIZE_FAILED = "FINALIZE_FAILED";

function undelivered({ run, state, report }: Told): Verdict | null {
  const [end] = state.pending;
  const failed = [...report.effects.values()].find((effect) => effect.state === "failed");
  if (end?.type !== "end" || failed === undefined) return null;
  const { step, reason: how } = end.verdict;
  const reason = `${how}\nThe run is complete, but its work is not where it was to go: ${failed.detail}\nThen go on with: lockstep resume ${run}`;
  return { outcome: "failed", code: FINALIZE_FAILED, reason, step };
}

function worktreeOf({ worktree, effects }: Report): Result["worktree"] {
  if (worktree === null) return null;
  const { path, branch, base } = worktree;
  return { path, branch, base, kept: effects.get("remove")?.state !== "applied" };
}

/** Of a run that could not begin, or whose environment broke. */
export function toFailure(
  agent: string,
  code: string,
  reason: string,
  problems: readonly Problem[] = [],
): Result {
  return blank(agent, { outcome: "failed", code, reason, step: null }, problems);
}

function blank(agent: string, verdict: Verdict, problems: readonly Problem[]): Result {
  const success = verdict.outcome === "completed";
  return {
    v: 1,
    run: null,
    forkedFrom: null,
    agent,
    flow: null,
    outcome: verdict.outcome,
    success,
    reason: verdict.reason,
    completionReason: verdict.reason,
    code: verdict.code,
    exitCode: !success && hasErrors(problems) ? EXIT.invalid : exitCode(verdict),
    resumable: false,
    finalStepId: verdict.step,
    iterations: 0,
    path: [],
    handoff: {},
    verdict: null,
    checks: [],
    effects: [],
    worktree: null,
    questions: [],
    problems,
    usage: { inputTokens: 0, outputTokens: 0, turns: 0 },
    costUsd: null,
    steps: [],
    durationMs: 0,
    warnings: [],
  };
}
