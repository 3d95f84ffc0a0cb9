/** Rescuing a damaged state folder into a new one that can take its place. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { salvage, type Salvaged } from "../../journal/sqlite/salvage.ts";
import { leaveOut } from "../batch-record.ts";
import { copyBelongings } from "./run-files.ts";
import { bindDatabase, rememberState, stateStanding } from "../trust/state-folders.ts";

export type { Salvaged, SalvagedRun } from "../../journal/sqlite/salvage.ts";

/**
 * `isOwn`: the user made the damaged folder, so the new one is recorded as the user's own for the day it is put in its
 * place. One that came from elsewhere stays foreign.
 */
export function salvageState(
  stateDir: string,
  out: string,
  env: NodeJS.ProcessEnv,
  now: number,
): Salvaged & { readonly isOwn: boolean } {
  const isOwn = stateStanding(stateDir, env).kind === "ours";
  const salvaged = salvage(stateDir, out);
  writeFileSync(join(out, ".gitignore"), "*\n", { flag: "wx" });
  copyBelongings(stateDir, out);
  // An item whose run is not recorded would be done again.
  leaveOut(out, new Set(salvaged.runs.filter(({ state }) => state === "lost").map(({ run }) => run)));
  if (isOwn && rememberState(out, env, "made", now, stateDir) === null) bindDatabase(out, env, true);
  return { ...salvaged, isOwn };
}
