/** `lockstep pause RUN`, `lockstep stop RUN` and `lockstep continue RUN` */
import { systemClock } from "../../run/world/clock.ts";
import { resume, RunnerError } from "../../run/index.ts";
import { pauseRun, stopRun, type Steered } from "../../run/people/steer.ts";
import type { Call } from "../call.ts";
import { conduct } from "../conduct.ts";
import { withOwnJournal } from "../journal.ts";

export async function pause(call: Call): Promise<number> {
  return tell(call, await steer(call, pauseRun), "lockstep continue");
}

export async function stop(call: Call): Promise<number> {
  return tell(call, await steer(call, stopRun), "lockstep resume");
}

export async function goOn(call: Call): Promise<number> {
  const [run = ""] = call.words;
  return await conduct(call, async (options) => await resume({ ...options, run, unpause: true }));
}

async function steer(call: Call, how: typeof pauseRun): Promise<Steered> {
  const [ref = ""] = call.words;
  return await withOwnJournal(call, ref, async (journal, stateDir) => {
    if (journal === null)
      throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
    return await how(journal, stateDir, ref, systemClock, call.host.env);
  });
}

function tell({ screen, on, typed }: Call, steered: Steered, next: string): number {
  const { run, state } = steered;
  const said = {
    asked: `Run ${run} was asked, and rests as soon as what is under way is through.`,
    ended: `Run ${run} came to its end before that; see: lockstep show ${run}`,
    paused: `Run ${run} is paused. Go on with: ${next} ${run}`,
    stopped: `Run ${run} is stopped. Go on with: ${next} ${run}`,
  }[state];
  if (on("json")) screen.document({ v: 1, ...steered });
  else screen.print(typed(said));
  return 0;
}
