/** The result document: one versioned JSON value for every way a run can go. */
import { REFUSED, type Effect, type Report } from "../story/report.ts";
import { decidedEnd } from "../engine/decide/due.ts";
import type { State } from "../engine/decide/state.ts";
import type { StepTally } from "../story/tally.ts";
import { unmeteredLines } from "../engine/decide/spend.ts";
import type { Confinement, Figure, Led, ForkOrigin, Reached } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Flow } from "../flow/flow.ts";
import { own, type Json, type JsonObject } from "../flow/json.ts";
import { hasErrors, type Problem } from "../flow/problem.ts";
import { productOf } from "./product.ts";
import { waitingQuestions, type OpenQuestion } from "./open-questions.ts";
import { EXIT, exitCode, type Outcome, type Verdict } from "../flow/verdict.ts";

export type Result = {
  readonly v: 1;
  readonly run: string | null;
  /** The run whose past it shares. */
  readonly forkedFrom: ForkOrigin | null;
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
  /** The visits that are not settled: several while a fork is open, none after the end. */
  readonly underWay: readonly UnderWay[];
  readonly handoff: { readonly [step: string]: JsonObject };
  /** What the run made: the data, or the text, of the answer that completed it. */
  readonly result: Json;
  /** The `verdict` member of the closing answer, where it has one. */
  readonly verdict: string | null;
  readonly checks: Report["checks"];
  /** What was done to the world, or was meant to be. */
  readonly effects: readonly Omit<Effect, "of">[];
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
  /** `unknown`: what some answers were not counted with; absent: nothing is missing. */
  readonly usage: {
    inputTokens: number;
    outputTokens: number;
    turns: number;
    unknown?: readonly Figure[];
  };
  /** null: the price of a model that was asked is not known. */
  readonly costUsd: number | null;
  /** Only where prices are known of some models and not of others: what the former cost. */
  readonly knownCostUsd?: number;
  /** Only where a limit ended the run: which one. */
  readonly limit?: Reached;
  /** What each step took, in the order in which they were first visited. */
  readonly steps: readonly StepTally[];
  readonly durationMs: number;
  /** How its commands were held in the newest stretch; null: it did not begin, or an earlier version recorded it. */
  readonly sandbox: Confinement | null;
  readonly warnings: readonly string[];
};

/** `doing` is the command that comes next, or is being performed. */
export type UnderWay = { readonly step: string; readonly visit: number; readonly doing: StepCommand["type"] };

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
      reason: `Stopped before the end. Continue with: lockstep resume ${run}`,
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
    underWay: [...state.lanes, ...state.halted].map(({ step, visit, command }) => ({
      step,
      visit,
      doing: command.type,
    })),
    handoff: state.handoff,
    result: over === null ? null : productOf(flow, state, report),
    verdict: typeof said === "string" ? said : null,
    checks: report.checks,
    effects: [...report.effects.values()].map(({ of: _of, ...effect }) => effect),
    worktree: worktreeOf(report),
    questions,
    resumable: over === null || state.halted.length > 0,
    usage: {
      inputTokens: state.usage.inputTokens,
      outputTokens: state.usage.outputTokens,
      turns: state.usage.turns,
      ...(state.usage.unknown !== undefined && { unknown: state.usage.unknown }),
    },
    ...costOf(state.usage),
    ...(over?.code === "BUDGET_EXHAUSTED" && state.budget?.reached && { limit: state.budget.reached }),
    steps: told.steps,
    durationMs: report.drivenMs,
    sandbox: report.sandbox,
    warnings: [
      ...told.problems.filter((problem) => problem.severity === "warning").map((problem) => problem.message),
      ...report.path.flatMap((led) => (led.notes ?? []).map((note) => `${led.step}@${led.visit}: ${note}`)),
      ...report.denials,
      ...leftUndone(report, over !== null),
      // A run that stopped for it says so in its reason.
      ...(state.budget === null || over?.code === "LIMIT_UNMETERED" ? [] : unmeteredLines(state.budget)),
      ...report.left.map((visit) => `${visit} was asked to stop and did not stop in time`),
      ...told.warnings,
    ],
  };
}

/** What to type, for a run that waits for somebody. */
function withRemedy(run: string, verdict: Verdict, questions: readonly OpenQuestion[]): Verdict {
  if (verdict.outcome !== "waiting") return verdict;
  const typed =
    verdict.code === "PAUSED"
      ? [`Continue with: lockstep continue ${run}`]
      : questions.map(({ answer }) => `No one is available to answer. Answer with: ${answer}`);
  return typed.length === 0 ? verdict : { ...verdict, reason: [verdict.reason, ...typed].join("\n") };
}

/** How the run ended. An end that is decided but not recorded does not count yet: something due before it is not done. */
function recordedEnd({ pending, verdict }: State): Verdict | null {
  return pending.length === 0 ? verdict : null;
}

/** The code of a run that is complete, but whose work did not get where it was to go. Its end is not recorded. */
export const FINALIZE_FAILED = "FINALIZE_FAILED";

/** The code of a run that could not begin: what was to be done before the first step was not done. */
export const BEGIN_FAILED = "BEGIN_FAILED";

/** A run that waits for something outside to be done: what failed, and how to go on. */
function undelivered({ run, state, report }: Told): Verdict | null {
  // The run goes on without what an answer asked for.
  const failures = [...report.effects.values()].filter(
    ({ of, state: how }) => how === "failed" && typeof of === "string",
  );
  const onward = `Then continue with: lockstep resume ${run}`;
  const end = decidedEnd(state);
  if (end === null) {
    const failed = failures.find(({ of }) => of === "begin");
    if (failed === undefined) return null;
    const reason = `The run has not started because its preparation failed: ${failed.detail}\n${onward}`;
    return { outcome: "failed", code: BEGIN_FAILED, reason, step: state.lanes[0]?.step ?? null };
  }
  const [failed] = failures;
  const { outcome, step, reason: how } = end;
  if (failed === undefined || outcome !== "completed") return null;
  const reason = `${how}\nThe run is complete, but an effect after it failed: ${failed.detail}\n${onward}`;
  return { outcome: "failed", code: FINALIZE_FAILED, reason, step };
}

/** What could not be done, although the run went on to its end or will; and what answers asked for and were refused. */
function leftUndone({ effects }: Report, isOver: boolean): readonly string[] {
  return [...effects.values()].flatMap(({ of, kind, state, detail }) => {
    const isTold = state === "failed" ? isOver || typeof of === "object" : kind === REFUSED;
    return isTold ? [detail] : [];
  });
}

function costOf({ costUsd, partly }: State["usage"]): Pick<Result, "costUsd" | "knownCostUsd"> {
  return partly === undefined || costUsd === null ? { costUsd } : { costUsd: null, knownCostUsd: costUsd };
}

function worktreeOf({ worktree, effects }: Report): Result["worktree"] {
  if (worktree === null) return null;
  const { path, branch, base } = worktree;
  const kept = !effects.values().some(({ kind, state }) => kind === "remove" && state === "applied");
  return { path, branch, base, kept };
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

/** Of a run that was interrupted: where it was not driven yet, that is not a failure, and one that is recorded can be resumed later. */
export function stoppedEarly(result: Result): Result {
  if (result.flow !== null) return result;
  const isRecorded = result.run !== null;
  const reason = `Stopped before the run ${isRecorded ? "went on" : "began"}.`;
  const how = { outcome: "interrupted", code: "INTERRUPTED", exitCode: EXIT.interrupted } as const;
  return { ...result, ...how, reason, completionReason: reason, resumable: isRecorded };
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
    underWay: [],
    handoff: {},
    result: null,
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
    sandbox: null,
    warnings: [],
  };
}
