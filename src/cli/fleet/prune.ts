/** `lockstep fleet prune`: removes old runs of a fleet, with their letters and files. */
import { EXIT } from "../../flow/verdict.ts";
import { pruneFleet } from "../../fleet/prune.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { isYes } from "../conduct.ts";
import { count, size } from "../text/text.ts";
import { fleetAddress } from "./address.ts";

const USUAL_AGE = 30 * 86_400_000;

export async function fleetPrune(call: CallOf<"fleet prune">): Promise<number> {
  const { flags, screen, host } = call;
  const address = fleetAddress(call);
  const dryRun = flags["dry-run"];
  const before = Date.now() - (flags["older-than"] ?? USUAL_AGE);
  const done = await pruneFleet(address, host.env, before, {
    confirm: async (runs) => {
      if (dryRun) return false;
      if (flags.yes || runs === 0) return true;
      if (!screen.isAnswering)
        throw new UsageError(
          `Cannot ask for confirmation to remove ${count(runs, "run")} without a terminal: pass --yes, or preview with --dry-run.`,
        );
      return await isYes(call, `Remove ${count(runs, "run")} for good?`, host.stopped());
    },
    onGone: (gone, runs) => screen.status(`removed ${gone} of ${count(runs, "run")}`),
  });
  screen.status(null);
  const { runs, cleared } = done;
  if (flags.json) screen.document({ v: 1, dryRun, ...(cleared ?? { runs, blobs: 0, bytes: 0 }) });
  else if (cleared !== null)
    screen.print(
      `Removed ${count(cleared.runs, "run")}, and ${size(cleared.bytes)} of files that no run needs.`,
    );
  else if (dryRun) screen.print(`Would remove ${count(runs, "run")}.`);
  else screen.complain("Nothing was removed.");
  return cleared === null && !dryRun ? EXIT.failed : EXIT.completed;
}
