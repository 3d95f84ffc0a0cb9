/** A person's note on a run that has ended, kept in its journal. */
import { RunnerError, type Clock, type Journal } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import { requireKnownState } from "../trust/foreign-state.ts";
import { findRun } from "../records/runs.ts";

/** Longer ones belong in a file of the project. */
const MOST_CHARACTERS = 10_000;

/** The end of the run stays its newest entry: it is recorded again after the note. RUN_OPEN while it has not ended. */
export async function noteRun(
  journal: Journal,
  stateDir: string,
  ref: string,
  text: string,
  clock: Clock,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly run: string; readonly agent: string; readonly seq: number }> {
  requireKnownState(stateDir, env);
  if (text.trim() === "" || text.length > MOST_CHARACTERS)
    throw new RunnerError("USAGE", `A note has 1 to ${MOST_CHARACTERS} characters, not ${text.length}.`);
  const { id: run, agent } = await findRun(journal, ref);
  const handle = await journal.claim(run);
  try {
    const { last } = await findRun(journal, run);
    if (last?.event.type !== "run.ended") {
      const why = `Run ${run} of "${agent}" has not ended, so it takes no note yet. Continue with: lockstep resume ${run}`;
      throw new RunnerError("RUN_OPEN", why);
    }
    const at = Math.max(clock.now(), last.at);
    // The time since the end was not work.
    const since = at === last.at ? {} : { moved: at - last.at };
    const note: Entry = { seq: last.seq + 1, at, ...since, event: { type: "run.noted", text } };
    await handle.append([note, { seq: last.seq + 2, at, event: last.event }]);
    return { run, agent, seq: note.seq };
  } finally {
    await handle.release();
  }
}
