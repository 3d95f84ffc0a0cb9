/** The open questions of a run, as people and programs read them. */
import { openQuestions } from "../engine/decide/people.ts";
import type { State } from "../engine/decide/state.ts";
import type { Question } from "../flow/event.ts";
import { answerCommands, waitingCode } from "../flow/question.ts";

export type OpenQuestion = {
  readonly id: string;
  readonly step: string;
  readonly visit: number;
  readonly about: Question["about"];
  /** The code of a run that waits for nothing else. */
  readonly code: string;
  readonly question: string;
  readonly choices: readonly string[];
  /** Any other words are an answer too. */
  readonly free: boolean;
  readonly expiresAt: string | null;
  /** A command that answers it: the first choice, or words of one's own. */
  readonly answer: string;
};

export function waitingQuestions(run: string, state: State): readonly OpenQuestion[] {
  return openQuestions(state).map(({ step, visit, question }) => openQuestion(run, step, visit, question));
}

export function openQuestion(run: string, step: string, visit: number, question: Question): OpenQuestion {
  const { id, about, text, choices, free = false, expiresAt } = question;
  return {
    id,
    step,
    visit,
    about,
    code: waitingCode(question),
    question: text,
    choices,
    free,
    expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
    answer: answerCommands(`lockstep answer ${run}`, question)[0]!,
  };
}
