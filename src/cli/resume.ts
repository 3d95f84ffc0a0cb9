/** `lockstep resume RUN` */
import { resume, openExistingJournal, RunnerError } from "../run/index.ts";
import { findProject } from "../run/project.ts";
import { toFailure } from "../run/result.ts";
import type { Call } from "./call.ts";
import { conduct } from "./conduct.ts";

export async function resumeRun(call: Call): Promise<number> {
  const [run = ""] = call.words;
  return await conduct(call, async (options) => {
    const { stateDir } = findProject(call.cwd, call.stateDir);
    try {
      const journal = await openExistingJournal(stateDir, { now: Date.now });
      if (journal === null)
        return toFailure("", "RUN_UNKNOWN", `There is no run "${run}": none is recorded in ${stateDir}.`);
      try {
        return await resume({ ...options, run, journal });
      } finally {
        await journal.close();
      }
    } catch (error) {
      if (!(error instanceof RunnerError)) throw error;
      return toFailure("", error.code, error.message);
    }
  });
}
