/** `lockstep fleet retry RUN …`: runs that workers leave alone get another chance. */
import { withFleet } from "../../fleet/open.ts";
import { releaseRuns } from "../../fleet/rows.ts";
import { EXIT } from "../../flow/verdict.ts";
import { findRun } from "../../run/records/runs.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { withRecord } from "../journal.ts";
import { shownInLine } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

export async function fleetRetry(call: CallOf<"fleet retry">): Promise<number> {
  const address = fleetAddress(call);
  const runs = await withRecord(call, call.words[0] ?? "", async (journal) => {
    const rows = [];
    for (const word of call.words) rows.push(await findRun(journal, word));
    const free = rows.find(({ held }) => held === undefined);
    if (free !== undefined)
      throw new UsageError(`Run ${shownInLine(free.id, 80)} is not poisoned, so there is nothing to retry.`);
    return rows.map(({ id }) => id);
  });
  const released = await withFleet(address, call.host.env, (postgres) => releaseRuns(postgres, runs));
  if (call.flags.json) call.screen.document({ v: 1, runs: released });
  else for (const run of released) call.screen.print(`${shownInLine(run, 80)} waits for a worker again.`);
  return EXIT.completed;
}
