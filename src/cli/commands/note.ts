/** `lockstep note RUN TEXT` */
import { noteRun } from "../../run/people/note.ts";
import { requireRecord } from "../../run/records/journal.ts";
import { systemClock } from "../../run/world/clock.ts";
import type { CallOf } from "../commands.ts";
import { withOwnJournal } from "../journal.ts";

export async function writeNote(call: CallOf<"note">): Promise<number> {
  const [ref = "", text = ""] = call.words;
  const noted = await withOwnJournal(call, ref, async (journal, stateDir) => {
    const record = requireRecord(journal, ref, stateDir);
    return await noteRun(record, stateDir, ref, text, systemClock, call.host.env);
  });
  if (call.flags.json) call.screen.document({ v: 1, ...noted });
  else call.screen.print(call.typed(`Noted on run ${noted.run}; see: lockstep show ${noted.run}`));
  return 0;
}
