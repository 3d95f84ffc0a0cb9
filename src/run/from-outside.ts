/** What others can do to a run, for the library. Most programs need none of it, so each is loaded when it is asked for. */
import type { Clock, Journal } from "../engine/ports.ts";
import type { Questions } from "./people/answer.ts";
import type { OpenQuestion } from "./people/questions.ts";
import type { Steered } from "./people/steer.ts";

/** What a run waits to be told. NO_QUESTION when it waits for nothing of the kind. */
export async function questionsOf(journal: Journal, ref: string): Promise<Questions> {
  return await (await import("./people/answer.ts")).questionsOf(journal, ref);
}

/**
 * Leaves an answer for whoever drives the run, now or later.
 *
 * @example
 * const asked = await questionsOf(journal, "@last");
 * await answerQuestion(stateDir, asked, asked.questions[0], "allow", Date.now());
 */
export async function answerQuestion(
  stateDir: string,
  asked: Questions,
  question: OpenQuestion,
  answer: string,
  now: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<void> {
  (await import("./people/answer.ts")).answerQuestion(stateDir, asked, question, answer, now, env);
}

/** What is under way is finished; then the run rests until it is resumed with `unpause`. */
export async function pauseRun(
  journal: Journal,
  stateDir: string,
  ref: string,
  clock: Clock,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Steered> {
  return await (await import("./people/steer.ts")).pauseRun(journal, stateDir, ref, clock, env);
}

/** What is under way is given up. NOT_DRIVEN when nobody drives the run. */
export async function stopRun(
  journal: Journal,
  stateDir: string,
  ref: string,
  clock: Clock,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Steered> {
  return await (await import("./people/steer.ts")).stopRun(journal, stateDir, ref, clock, env);
}
