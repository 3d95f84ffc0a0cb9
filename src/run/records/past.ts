/** A recorded run that is to go on: read some entries at a time, and folded on the way. A long run is not held in memory. */
import { createPastFold, type FoldedPast } from "../../engine/drive/past.ts";
import type { Hear } from "../../engine/drive/drive.ts";
import type { Journal, RunRow } from "../../engine/ports.ts";
import type { Prepared } from "../../engine/schema/prepared.ts";
import { flowFrom } from "../../flow/adopted.ts";
import { own } from "../../flow/json.ts";
import { composer } from "../../prompts/compose.ts";
import { addEntry, createReport, type Report } from "../../story/report.ts";
import { openStory } from "../../story/story.ts";
import { addToTally, createTally, type Tally } from "../../story/tally.ts";
import { createRecall, type Recalled } from "./recall.ts";
import { flowOf, slicesOf, type RecordedRun } from "./runs.ts";

export type RecordedPast = Omit<RecordedRun, "entries"> & {
  readonly recalled: Recalled;
  readonly report: Report;
  readonly tally: Tally;
  /** Throws where the entries do not fit their flow. */
  readonly folded: () => FoldedPast;
  /** Reads the entries once more, each with what was decided. */
  readonly retell: (hear: Hear) => Promise<void>;
};

export async function readPast(journal: Journal, row: RunRow): Promise<RecordedPast> {
  const { id } = row;
  const flow = await flowOf(journal, id, row.digest);
  const adopted: { [digest: string]: Prepared } = {};
  let { digest } = row;
  const recall = createRecall();
  const report = createReport();
  const tally = createTally();
  const fold = createPastFold(flow, adopted, { compose: composer });
  let fault: { readonly error: unknown } | null = null;
  for await (const slice of slicesOf(journal, id, 0, AT_ONCE)) {
    for (const { event } of slice)
      if (event.type === "run.adopted")
        adopted[(digest = event.flow)] ??= await flowOf(journal, id, event.flow);
    for (const entry of slice) {
      recall.add(entry);
      addEntry(report, entry);
      try {
        if (fault === null) addToTally(tally, entry, fold.add(entry));
      } catch (error) {
        fault = { error };
      }
    }
  }
  const current = own(adopted, digest) ?? flow;
  return {
    ...{ row, flow, adopted, current, digest, recalled: recall.recalled(), report, tally },
    folded: () => {
      if (fault !== null) throw fault.error;
      return fold;
    },
    retell: async (hear) => {
      const next = openStory();
      let held = flow;
      for await (const slice of slicesOf(journal, id))
        for (const entry of slice) {
          // What was written since then is told by whoever wrote it.
          if (entry.seq > (fold.last?.seq ?? 0)) return;
          held = flowFrom(held, entry.event, adopted);
          const { after, deeds } = next(entry, held);
          hear(entry, after, deeds);
        }
    },
  };
}

const AT_ONCE = 1000;
