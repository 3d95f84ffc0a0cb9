/** Functions of the library that few programs need: looking at recorded runs, and steering them. Each is loaded when it is called. */
import type { Clock, Journal } from "../engine/ports.ts";
import type { ForkOptions } from "./fork.ts";
import type { Loaded } from "./load.ts";
import type { Questions } from "./people/answer.ts";
import type { OpenQuestion } from "./people/questions.ts";
import type { Steered } from "./people/steer.ts";
import type { Bundle, Exported, ExportOptions, Imported, ImportOptions } from "./records/bundle.ts";
import type { Comparison } from "./records/compare.ts";
import type { TimedReplay } from "./records/replay.ts";
import type { WhatIf } from "./records/whatif.ts";
import type { Result } from "./result.ts";
import type { Followed } from "./watch/follow.ts";

/** Works out every decision of a run again, and tells the first that comes out another way than it is recorded. */
export async function replayRun(journal: Journal, ref: string): Promise<TimedReplay> {
  return await (await import("./records/replay.ts")).replayRun(journal, ref);
}

/**
 * Forks a run and drives the new one to its end. The original stays as it is; so do the files in the working directory.
 *
 * @example
 * const result = await fork({ run: "@last", at: "closure.issue@1", edits: { models: { "closure.issue": "haiku" } } });
 */
export async function fork(options: ForkOptions): Promise<Result> {
  return await (await import("./fork.ts")).fork(options);
}

/** Where two runs part ways. */
export async function compareRuns(journal: Journal, a: string, b: string): Promise<Comparison> {
  return await (await import("./records/compare.ts")).compareRuns(journal, a, b);
}

/** What recorded runs would have come to with other files. */
export async function whatIf(journal: Journal, loaded: Loaded, refs?: readonly string[]): Promise<WhatIf> {
  return await (await import("./records/whatif.ts")).whatIf(journal, loaded, refs);
}

/** A run as one value that replays anywhere. */
export async function exportRun(journal: Journal, ref: string, options?: ExportOptions): Promise<Exported> {
  return await (await import("./records/bundle.ts")).exportRun(journal, ref, options);
}

/** Makes an exported run one of this journal. */
export async function importRun(journal: Journal, bundle: Bundle, options: ImportOptions): Promise<Imported> {
  return await (await import("./records/bundle.ts")).importRun(journal, bundle, options);
}

/** Every entry of a run, from its first one on and as they come, while another process drives it. */
export async function* followRun(
  journal: Journal,
  ref: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  yield* (await import("./watch/follow.ts")).followRun(journal, ref, clock, signal);
}

/** What a run waits to be told. NO_QUESTION when it waits for nothing of the kind. */
export async function questionsOf(journal: Journal, ref: string): Promise<Questions> {
  return await (await import("./people/answer.ts")).questionsOf(journal, ref);
}

/**
 * Leaves an answer for the process that drives the run, now or later.
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
