/** `lockstep pause RUN`, `lockstep stop RUN` and `lockstep continue RUN` */
import { systemClock } from "../../run/world/clock.ts";
import { requireRecord } from "../../run/records/journal.ts";
import { resume } from "../../run/resume.ts";
import { pauseRun, stopRun, type Steered } from "../../run/people/steer.ts";
import type { CommandCall } from "../call.ts";
import type { CallOf } from "../commands.ts";
import { conduct } from "../conduct.ts";
import { isOnServer, withOwnJournal } from "../journal.ts";

export async function pause(call: CallOf<"pause">): Promise<number> {
  return tell(call, await steer(call, pauseRun), "lockstep continue");
}

export async function stop(call: CallOf<"stop">): Promise<number> {
  return tell(call, await steer(call, stopRun), "lockstep resume");
}

export async function goOn(call: CallOf<"continue">): Promise<number> {
  const [run = ""] = call.words;
  if (isOnServer(call) && !call.flags.here) {
    const code = await (await import("../fleet/offer.ts")).offered(call, run, true);
    if (code !== null) return code;
  }
  return await conduct(call, async (options) => await resume({ ...options, run, unpause: true }));
}

async function steer(call: CallOf<"pause" | "stop">, how: typeof pauseRun): Promise<Steered> {
  const [ref = ""] = call.words;
  return await withOwnJournal(call, ref, async (journal, stateDir) => {
    const record = requireRecord(journal, ref, stateDir);
    return await how(record, stateDir, ref, systemClock, call.host.env);
  });
}

function tell({ screen, flags, typed }: CommandCall, steered: Steered, next: string): number {
  const { run, state } = steered;
  const said = {
    asked: `Run ${run} pauses as soon as its current work is done.`,
    ended: `Run ${run} ended before it could pause; see: lockstep show ${run}`,
    paused: `Run ${run} is paused. Continue with: ${next} ${run}`,
    stopped: `Run ${run} is stopped. Continue with: ${next} ${run}`,
  }[state];
  if (flags.json) screen.document({ v: 1, ...steered });
  else screen.print(typed(said));
  return 0;
}
