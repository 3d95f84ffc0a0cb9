/** Going on with a run of a fleet: a worker is asked for, instead of driving it here. */
import { RunnerError, type Journal } from "../../engine/ports.ts";
import { findRun, summarise } from "../records/runs.ts";
import { pausedError, resultIfOver } from "../resume.ts";

/** A run that a worker of the fleet takes soon. */
export type OfferedToFleet = { readonly run: string; readonly agent: string; readonly queue: string };

/**
 * null: the run is not one of a fleet, or is over. RUN_HELD, RUN_PAUSED or RUN_OWNED_ELSEWHERE where no worker may take it
 * now; `unpause` takes a pause back. `before` is called once it is known that the run is offered.
 */
export async function offerToFleet(
  journal: Journal,
  ref: string,
  now: number,
  { unpause = false }: { readonly unpause?: boolean } = {},
  before?: () => void,
): Promise<OfferedToFleet | null> {
  const { mail } = journal;
  if (mail?.fleet === undefined) return null;
  const row = await findRun(journal, ref);
  const { id: run, agent } = row;
  const found = await mail.fleet.queueOf(run);
  if (found === null || (await resultIfOver(journal, run, now)) !== null) return null;
  const { queue, held } = found;
  if (held !== null)
    throw new RunnerError(
      "RUN_HELD",
      `No worker takes run ${run} of "${agent}": ${held} Give it another chance with: lockstep fleet retry ${run}`,
    );
  const isPausing = (await mail.wishFor(run)) === "pause";
  if (row.owned && !(isPausing && unpause))
    throw new RunnerError("RUN_OWNED_ELSEWHERE", `A process is running run ${run} of "${agent}" already.`);
  const isPaused = isPausing || summarise(row).state === "paused";
  if (isPaused && !unpause) throw pausedError(row);
  before?.();
  if (isPaused) await mail.leaveWish(run, "continue");
  else await mail.fleet.wake(run);
  return { run, agent, queue };
}
