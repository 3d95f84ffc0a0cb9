/** How a recorded run stands: its result document, worked out from its journal alone. */
import { uptime } from "node:os";
import type { Journal, RunRow } from "../../engine/ports.ts";
import { addEntry, createReport } from "../../story/report.ts";
import type { State } from "../../engine/decide/state.ts";
import { addToTally, addUntil, createTally, tallied } from "../../story/tally.ts";
import type { Entry } from "../../flow/event.ts";
import type { Moment } from "../../story/story.ts";
import { foldPartly } from "./fold.ts";
import { toResult, type Result } from "../../tell/result.ts";
import type { Damage } from "./runs.ts";

export type RunStanding = {
  readonly result: Result;
  readonly state: State;
  /** Where it stops being readable. */
  readonly damage: Damage | null;
  /** Whether a living process drives it, and it has not ended. */
  readonly isRunning: boolean;
};

/** `now`: what is under way in a running run counts as work up to then. `hear` is called with each entry. */
export async function standingOf(
  journal: Journal,
  row: RunRow,
  now: number,
  hear?: (entry: Entry) => void,
): Promise<RunStanding> {
  const report = createReport();
  const tally = createTally();
  const hearAll = ({ entry, after }: Moment) => {
    addEntry(report, entry);
    addToTally(tally, entry, after);
    hear?.(entry);
  };
  const { state, flow, digest, last, damage } = await foldPartly(journal, row, hearAll);
  const isRunning = damage === null && row.owned && last?.event.type !== "run.ended";
  if (isRunning) {
    // The clock may have been set since: no process has driven the run for longer than this machine is up.
    const lastAt = report.lastAt ?? now;
    const until = Math.min(Math.max(now, lastAt), lastAt + Math.ceil(uptime() * 1000));
    addUntil(tally, until);
    report.drivenMs += until - lastAt;
  }
  const about = { run: row.id, flow, digest, state, report, steps: tallied(tally) };
  return { result: toResult({ ...about, problems: [], warnings: [] }), state, damage, isRunning };
}
