/** Removal of old runs of a fleet, in batches, with their letters and files. */
import { clearOld, countOld, type Cleared } from "../journal/postgres/clearing.ts";
import { withFleet } from "./open.ts";

export type Pruning = {
  /** Whether so many runs are removed. */
  readonly confirm: (runs: number) => Promise<boolean>;
  /** Hears how many are gone so far. */
  readonly onGone: (gone: number, runs: number) => void;
};

/** `before`: runs whose newest entry is older, in epoch milliseconds. `cleared` is null where nothing was removed. */
export async function pruneFleet(
  address: string,
  env: NodeJS.ProcessEnv,
  before: number,
  { confirm, onGone }: Pruning,
): Promise<{ readonly runs: number; readonly cleared: Cleared | null }> {
  return await withFleet(address, env, async (postgres) => {
    const runs = await countOld(postgres, before);
    if (!(await confirm(runs))) return { runs, cleared: null };
    return { runs, cleared: await clearOld(postgres, before, (gone) => onGone(gone, runs)) };
  });
}
