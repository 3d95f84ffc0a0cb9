/** Answering a run that waits for a word from somebody, from any process and at any time. */
import { RunnerError, type Journal } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import { readRun } from "./runs.ts";

export type Question = {
  readonly run: string;
  readonly agent: string;
  readonly step: string;
  readonly code: string;
  readonly question: string;
  readonly choices: readonly string[];
};

/** What the run waits to be told; NO_QUESTION when it waits for nothing of the kind. */
export async function questionOf(journal: Journal, ref: string): Promise<Question> {
  const {
    row: { id, agent },
    entries,
  } = await readRun(journal, ref);
  const asked = lastQuestion(entries);
  if (asked === null)
    throw new RunnerError(
      "NO_QUESTION",
      `Run ${id} of "${agent}" waits for no answer. \`lockstep show ${id}\` tells how it stands.`,
    );
  return { run: id, agent, ...asked };
}

/** The answer to the question that a run stopped at: given once, and whatever comes after it is for others to say. */
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

function lastQuestion(entries: readonly Entry[]): Omit<Question, "run" | "agent"> | null {
  const ended = entries.at(-1)?.event;
  if (ended?.type !== "run.ended" || ended.verdict.outcome !== "waiting") return null;
  const event = entries.findLast((entry) => entry.event.type === "step.suspended")?.event;
  if (event?.type !== "step.suspended" || event.choices === undefined) return null;
  const { step, code, why, choices } = event;
  return { step, code, question: why, choices };
}
