/** A recorded run that is to go on: read some entries at a time, and folded on the way. A long run is not held in memory. */
import { setImmediate } from "node:timers/promises";
import { createPastFold, type FoldedPast } from "../../engine/drive/past.ts";
import type { Hear } from "../../engine/drive/drive.ts";
import type { Journal, RunRow } from "../../engine/ports.ts";
import type { Prepared } from "../../engine/schema/prepared.ts";
import { flowFrom } from "../../flow/adopted.ts";
import type { Entry } from "../../flow/event.ts";
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
  for await (const slice of allSlicesOf(journal, id)) {
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
    row,
    flow,
    adopted,
    current,
    digest,
    recalled: recall.recalled(),
    report,
    tally,
    folded: () => {
      if (fault !== null) throw fault.error;
      return fold;
    },
    retell: async (hear) => {
      const next = openStory();
      let held = flow;
      for await (const slice of slicesOf(journal, id))
        for (const entry of slice) {
          // An entry that was written since then is reported by the code that wrote it.
          if (entry.seq > (fold.last?.seq ?? 0)) return;
          held = flowFrom(held, entry.event, adopted);
          const { after, deeds } = next(entry, held);
          hear(entry, after, deeds);
        }
    },
  };
}

/** Every entry. A server works out the next ones while those before them are folded. */
async function* allSlicesOf(journal: Journal, run: string): AsyncGenerator<readonly Entry[]> {
  let coming: Promise<readonly Entry[]> | null = journal.read(run, 0, AT_ONCE);
  for (let seq = 0; coming !== null;) {
    const slice: readonly Entry[] = await coming;
    seq += slice.length;
    coming = slice.length < AT_ONCE ? null : journal.read(run, seq, AT_ONCE);
    // If the fold stops before this slice is read, its error is dropped and not left unhandled.
    coming?.catch(() => undefined);
    if (slice.length > 0) yield slice;
    // A journal on disk is read without a turn of the event loop: signals, timers and others who wait get one here.
    await setImmediate();
  }
}

const AT_ONCE = 500;
