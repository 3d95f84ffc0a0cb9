/** What a long life costs: ten thousand runs one after the other in one process, on one journal. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openJournal, runLoaded, type Backend } from "../src/run/index.ts";
import { cycle, loaded, row, USAGE, type Row } from "./measure.ts";

const RUNS = 10_000;
/** What is compiled, cached and allocated once is there by then. */
const WARM_UP = 2000;

export async function measureLife(folder: string): Promise<readonly Row[]> {
  const output = { next_action: { action: "next" }, filler: "x".repeat(2048) };
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: () => Promise.resolve({ kind: "reply", text: "", calls: [], output, usage: USAGE }),
  };
  // As in a program that lives long: every run can be stopped by the same signal.
  const { signal } = new AbortController();
  const agent = loaded(cycle(3), folder);
  const journal = await openJournal(join(folder, "state"), { now: Date.now });
  const collect = collector();
  let [warm, descriptors, live] = [0, 0, 0];
  try {
    for (let run = 1; run <= RUNS; run++) {
      const { success, reason } = await runLoaded(agent, { cwd: folder, journal, backend, signal });
      if (!success) throw new Error(reason);
      if (run === WARM_UP) [warm, descriptors, live] = [resident(), openDescriptors(), collect()];
    }
    const [rss, open, left] = [resident(), openDescriptors(), collect()];
    const detail = `${mega(rss)} against ${mega(warm)}`;
    return [
      row(
        "objects in memory after 10,000 durable runs / after the first 2,000",
        left / live,
        "x",
        1.05,
        `${mega(left)} against ${mega(live)}, collected`,
      ),
      row("memory after 10,000 durable runs / after the first 2,000", rss / warm, "x", 1.1, detail),
      row("descriptors opened meanwhile", open - descriptors, "", 0, `${open} are open`),
    ];
  } finally {
    await journal.close();
  }
}

/**
 * Of the process, without the space for new objects: V8 enlarges that step by step, with whatever survives in it, which
 * would be taken for a leak.
 */
function resident(): number {
  const nursery = getHeapSpaceStatistics().filter(({ space_name: name }) => name === "new_space");
  return nursery.reduce((rest, { physical_space_size: size }) => rest - size, process.memoryUsage.rss());
}

/** Collects all garbage; gives the bytes of the objects that are left. */
function collector(): () => number {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  return () => {
    gc();
    return process.memoryUsage().heapUsed;
  };
}

/** 0 where the system does not tell. */
function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}

function mega(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MB`;
}
