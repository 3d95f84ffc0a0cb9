/** What a replay costs: every decision of long runs worked out again, in memory and read from disk. */
import { join } from "node:path";
import type { Flow } from "../src/flow/flow.ts";
import {
  createMemoryJournal,
  openJournal,
  replayRun,
  runLoaded,
  type Backend,
  type Journal,
} from "../src/run/index.ts";
import { sketchFlow, sketchMachine } from "../src/testing/flows.ts";
import { loaded, median, row, spread, USAGE, type Row } from "./measure.ts";

const EVENTS = 10_000;
/** 100,000 events a second. */
const LIMIT_US = 10;

export async function measureReplay(folder: string): Promise<readonly Row[]> {
  const steps = sketchFlow(
    {
      "initial.a": { edges: { next: "continuation.a" } },
      "continuation.a": { edges: { next: "initial.a" } },
    },
    { stop: { kind: "visits", count: EVENTS }, limits: { visits: EVENTS } },
  );
  const machine = sketchMachine({ only: { turns: EVENTS } });
  const disk = await openJournal(join(folder, "state"), { now: Date.now });
  try {
    return [
      await timed("replay of steps", steps, createMemoryJournal(), folder, LIMIT_US),
      await timed("replay of a stage", machine, createMemoryJournal(), folder, LIMIT_US),
      await timed("replay of steps, read from disk", steps, disk, folder, null),
    ];
  } finally {
    await disk.close();
  }
}

async function timed(
  name: string,
  flow: Flow,
  journal: Journal,
  folder: string,
  limit: number | null,
): Promise<Row> {
  const { run } = await runLoaded(loaded(flow, folder), { cwd: folder, journal, backend: talker(EVENTS) });
  const costs: number[] = [];
  for (let round = -2; round < 9; round++) {
    const from = performance.now();
    const { events, difference } = await replayRun(journal, run!);
    if (difference !== null || events < EVENTS) throw new Error(`${name}: ${JSON.stringify(difference)}`);
    if (round >= 0) costs.push(((performance.now() - from) * 1000) / events);
  }
  const rate = Math.round(1_000_000 / median(costs));
  return row(
    name,
    median(costs),
    "µs",
    limit,
    `${rate.toLocaleString("en")} events a second, ${spread(costs)}`,
  );
}

/** Says the same all the time, and completes where there is something to complete. */
function talker(turns: number): Backend {
  return {
    spec: { id: "bench", options: null },
    turn: ({ asker, output }) => {
      const isTool = output?.channel.kind === "tool";
      const calls =
        output?.channel.kind === "tool" && asker.turn >= turns
          ? [{ id: "last", name: output.channel.name, input: {} }]
          : [];
      const payload = isTool ? {} : { output: { next_action: { action: "next" } } };
      return Promise.resolve({ kind: "reply", text: "", calls, usage: USAGE, ...payload });
    },
  };
}
