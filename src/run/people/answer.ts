/** Questions that runs wait to have answered, and answering them: from any process and at any time. */
import { RunnerError, type Journal } from "../../engine/ports.ts";
import type { Event } from "../../flow/event.ts";
import { notAnAnswer } from "../../flow/question.ts";
import { foldRun } from "../records/fold.ts";
import { requireKnownState } from "../trust/foreign-state.ts";
import { mailAt, type MailPlace } from "./mail.ts";
import { fits, letterText, type Answering } from "./mailbox.ts";
import { openQuestion, waitingQuestions, type OpenQuestion } from "../../tell/open-questions.ts";
import { findRun } from "../records/runs.ts";

export type Questions = {
  readonly run: string;
  readonly agent: string;
  /** Whether a living process drives the run, and so waits for the answer itself. */
  readonly isDriven: boolean;
  readonly isPaused: boolean;
  /** It was asked before questions had names, and is asked again by the process that goes on with the run. */
  readonly isNameless: boolean;
  readonly questions: readonly OpenQuestion[];
};

/** The open questions of a run; NO_QUESTION where there are none. */
export async function questionsOf(journal: Journal, ref: string): Promise<Questions> {
  const row = await findRun(journal, ref);
  const { id: run, agent, owned: isDriven } = row;
  let suspended: Event | null = null;
  const { state, last } = await foldRun(journal, row, ({ entry: { event } }) => {
    if (event.type === "step.suspended") suspended = event;
  });
  const ended = last?.event;
  const isPaused = ended?.type === "run.ended" && ended.verdict.code === "PAUSED";
  const isWaiting = ended?.type === "run.ended" && ended.verdict.outcome === "waiting";
  const named = waitingQuestions(run, state);
  const nameless = named.length === 0 && isWaiting ? namelessQuestion(run, suspended) : [];
  const questions = [...named, ...nameless];
  if (questions.length === 0)
    throw new RunnerError(
      "NO_QUESTION",
      `Run ${run} of "${agent}" waits for no answer. \`lockstep show ${run}\` shows its state.`,
    );
  return { run, agent, isDriven, isPaused, isNameless: nameless.length > 0, questions };
}

/**
 * Leaves the answer where the process that drives the run, now or later, finds it: a state folder, or the mail of a
 * journal. STATE_FOREIGN: see `requireKnownState`. A run of a fleet goes on with it, unless `how` says
 * otherwise.
 *
 * @example
 * const asked = await questionsOf(journal, "@last");
 * await answerQuestion(stateDir, asked, asked.questions[0], "allow", Date.now());
 */
export async function answerQuestion(
  place: MailPlace,
  { run }: Questions,
  question: OpenQuestion,
  answer: string,
  now: number,
  env: NodeJS.ProcessEnv = process.env,
  by: Answering = "answer",
  how: { readonly wakes?: boolean } = {},
): Promise<void> {
  if (typeof place === "string") requireKnownState(place, env);
  const { id, expiresAt } = question;
  if (!fits(question, answer)) throw new RunnerError("NO_QUESTION", notAnAnswer(answer, question.choices));
  if (expiresAt !== null && Date.parse(expiresAt) <= now)
    throw new RunnerError(
      "QUESTION_EXPIRED",
      `Question ${id} of run ${run} was open until ${expiresAt}. \`lockstep resume ${run}\` continues without an answer.`,
    );
  const mail = mailAt(place);
  if (await mail.post(run, id, letterText(answer, by), how)) return;
  const why = `Question ${id} of run ${run} already has an answer: ${mail.where(run, id)}. It is used when the run continues.`;
  throw new RunnerError("QUESTION_ANSWERED", why);
}

/** The answer to a question without a name: given once, and whatever comes after it is for others to say. */
export function answerWith(
  choice: string,
): (question: string, choices: readonly string[]) => Promise<string | null> {
  let left: string | null = choice;
  return (_question, choices) => {
    const given = left !== null && choices.includes(left) ? left : null;
    left = null;
    return Promise.resolve(given);
  };
}

/** What a run was asked before questions had names: its newest `step.suspended` says it. */
export function namelessQuestion(run: string, event: Event | null): readonly OpenQuestion[] {
  if (event?.type !== "step.suspended" || event.choices === undefined) return [];
  const about = event.code === "PermissionRequired" ? "grant" : "gate";
  return [
    openQuestion(run, event.step, event.visit, { id: "-", about, text: event.why, choices: event.choices }),
  ];
}
