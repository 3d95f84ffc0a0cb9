/** A run as a tool answers with it: how it stands, what it made, and what to do next. Pure. */
import type { Json, JsonObject } from "../flow/json.ts";
import { EXIT } from "../flow/verdict.ts";
import type { Shown } from "../run/records/runs.ts";
import type { OpenQuestion } from "../tell/open-questions.ts";
import type { McpAnswer } from "./ground.ts";

/** A model may pass on words that another model asked for. What a file wants a person to decide, only a person decides. */
export function isForModel({ about }: Pick<OpenQuestion, "about">): boolean {
  return about === "user";
}

/** `typed`: commands as the user types them. `hasAnswerTool`: the client cannot ask its person itself. */
export type RunWords = {
  readonly typed: (text: string) => string;
  /** What a person types next, as the report of a run says it. */
  readonly next: (shown: Shown) => readonly string[];
  readonly hasAnswerTool: boolean;
};

/** Not an error: it completed, goes on, or waits for somebody. */
const FINE: ReadonlySet<Shown["outcome"]> = new Set(["completed", "running", "waiting", "queued"]);

export function runAnswer(shown: Shown, words: RunWords): McpAnswer {
  const { run, agent, outcome, code, reason } = shown;
  const hint = hintFor(shown, words);
  const why = outcome === "completed" || outcome === "running" ? "" : ` ${words.typed(reason)}`;
  const headline =
    `Run ${run} of ${agent}: ${outcome}${code === null || outcome === "running" ? "" : ` (${code})`}.${why}` +
    (hint === null ? "" : `\n${hint}`);
  return {
    kind: "document",
    document: runDocument(shown, hint),
    isError: !FINE.has(outcome),
    headline,
  };
}

function runDocument(shown: Shown, hint: string | null): JsonObject {
  const { run, agent, outcome, success, reason, code, exitCode, verdict, result, handoff } = shown;
  const { finalStepId, iterations, underWay, questions, usage, costUsd, durationMs, worktree, warnings } =
    shown;
  const { inputTokens, outputTokens, turns } = usage;
  const document = {
    v: 1,
    run,
    agent,
    outcome,
    success,
    reason,
    code,
    exitCode,
    verdict,
    hint,
    result,
    finalStepId,
    iterations,
    underWay,
    questions: questions.map(questionDocument),
    usage: { inputTokens, outputTokens, turns },
    costUsd,
    durationMs,
    worktree,
    warnings,
    handoff,
  };
  return document;
}

export function questionDocument(open: OpenQuestion): { readonly [name: string]: Json } {
  const { id, step, visit, about, question, choices, free, expiresAt } = open;
  return { id, step, visit, about, question, choices, free, expiresAt };
}

/** What to do next, exactly; null: nothing. */
function hintFor(shown: Shown, words: RunWords): string | null {
  const { run, outcome, code, exitCode, resumable } = shown;
  const { typed, next } = words;
  switch (outcome) {
    case "completed":
      return null;
    case "running":
      return `The run goes on, whatever becomes of this call. Wait for its end with run_wait {"run":"${run}"}; stop it with run_stop.`;
    case "queued":
      return `The run waits for a worker of the fleet. Wait for its end with run_wait {"run":"${run}"}.`;
    case "poisoned":
      return `The workers of the fleet leave this run alone. In a terminal: ${typed(`lockstep fleet retry ${run}`)}`;
    case "waiting":
      if (code === "PAUSED")
        return `The run is paused. It goes on with: ${typed(`lockstep continue ${run}`)}`;
      return waitingHint(run!, shown.questions, words);
    default:
      if (exitCode === EXIT.limit)
        return `Only the user can raise the limit. In a terminal: ${next(shown).map(typed).join(" or ")}`;
      return resumable
        ? `It can go on from where it stopped: run_resume {"run":"${run}"}, or ${typed(`lockstep resume ${run}`)}`
        : `The tool why {"run":"${run}"} shows what led to this.`;
  }
}

function waitingHint(
  run: string,
  questions: readonly OpenQuestion[],
  { typed, hasAnswerTool }: RunWords,
): string {
  const [first] = questions;
  if (first === undefined) return `See what it waits for: ${typed(`lockstep answer ${run}`)}`;
  const askedAgain = `The user is asked again by run_wait {"run":"${run}"}, or answers in a terminal: ${typed(`lockstep answer ${run}`)}`;
  if (!isForModel(first))
    return hasAnswerTool
      ? `Only a person may decide this. In a terminal: ${typed(`lockstep answer ${run}`)}`
      : askedAgain;
  return hasAnswerTool
    ? `Ask the user, then pass on what they said: answer {"run":"${run}","question":"${first.id}","answer":"…"}`
    : askedAgain;
}

/** Every outcome that there is: the compiler names one that is missing. */
const OUTCOMES: { readonly [outcome in Shown["outcome"]]: true } = {
  completed: true,
  failed: true,
  waiting: true,
  interrupted: true,
  running: true,
  queued: true,
  poisoned: true,
  damaged: true,
};

/**
 * What every answer about a run has; programs rely on these members. A call that is refused is answered with a code and a
 * reason only, and some clients hold that against the schema too.
 */
export const RUN_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    v: { const: 1 },
    run: { type: "string", description: "The id of the run." },
    agent: { type: "string" },
    outcome: { enum: Object.keys(OUTCOMES) },
    success: { type: "boolean" },
    reason: { type: "string" },
    code: { type: ["string", "null"] },
    verdict: { type: ["string", "null"] },
    hint: { type: ["string", "null"], description: "What to do next." },
    result: { description: "What the run made." },
    costUsd: { type: ["number", "null"] },
  },
  required: ["v", "reason"],
  anyOf: [
    { required: ["run", "agent", "outcome", "success", "hint"] },
    { required: ["code"], properties: { code: { type: "string" } } },
  ],
};
