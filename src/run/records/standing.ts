/** How a recorded run stands: its result document, worked out from its journal alone. */
import { uptime } from "node:os";
import type { Journal, RunRow } from "../../engine/ports.ts";
import { addEntry, createReport, type Report } from "../../story/report.ts";
import type { State } from "../../engine/decide/state.ts";
import { addToTally, createTally, tallied, talliedUntil } from "../../story/tally.ts";
import type { Entry } from "../../flow/event.ts";
import type { Moment } from "../../story/story.ts";
import { foldPartly, type PartlyFolded } from "./fold.ts";
import { toResult, type Result } from "../../tell/result.ts";
import { restOf, type Damage } from "./runs.ts";

export type RunStanding = {
  readonly result: Result;
  readonly state: State;
  /** Where it stops being readable. */
  readonly damage: Damage | null;
  /** Whether a living process drives it, and it has not ended. */
  readonly isRunning: boolean;
  /** Why no process drives it, where nothing is under way; null otherwise. */
  readonly rests: string | null;
  /** Why workers leave it alone; null: they do not. */
  readonly held: string | null;
};

/** `now`: what is under way in a running run counts as work up to then. `hear` is called with each entry. */
export async function standingOf(
  journal: Journal,
  row: RunRow,
  now: number,
  hear?: (entry: Entry) => void,
): Promise<RunStanding> {
  const { add, standing } = createStanding();
  const folded = await foldPartly(journal, row, (moment) => {
    add(moment);
    hear?.(moment.entry);
  });
  return standing(row, folded, now);
}

/** The same for a run that is read by others, and may go on. */
export function createStanding(): {
  readonly add: (moment: Moment) => void;
  readonly standing: (row: RunRow, folded: PartlyFolded, now: number) => RunStanding;
  readonly report: Report;
} {
  const report = createReport();
  const tally = createTally();
  return {
    report,
    add({ entry, after }) {
      addEntry(report, entry);
      addToTally(tally, entry, after);
    },
    standing(row, { state, flow, digest, last, damage }, now) {
      const isRunning = damage === null && row.owned && last?.event.type !== "run.ended";
      const rests = row.owned ? null : restOf(last);
      // The clock may have been set since: no process has driven the run for longer than this machine is up.
      const lastAt = report.lastAt ?? now;
      const until = Math.min(Math.max(now, lastAt), lastAt + Math.ceil(uptime() * 1000));
      const told = {
        run: row.id,
        flow,
        digest,
        state,
        report: isRunning ? { ...report, drivenMs: report.drivenMs + until - lastAt } : report,
        steps: isRunning ? talliedUntil(tally, until) : tallied(tally),
      };
      const result = toResult({ ...told, problems: [], warnings: [] });
      return { result, state, damage, isRunning, rests, held: row.held ?? null };
    },
  };
}
