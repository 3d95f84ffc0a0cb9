/** What stages cost: one turn of a conversation in memory, and a thousand machines at once. */
import { setTimeout as delay } from "node:timers/promises";
import type { Flow } from "../src/flow/flow.ts";
import { createMemoryJournal, runLoaded, type Backend } from "../src/run/index.ts";
import { sketchMachine } from "../src/testing/flows.ts";
import { gaps, handLoop, loaded, median, micro, row, spread, USAGE, type Row } from "./measure.ts";

export async function measureStages(folder: string): Promise<readonly Row[]> {
  return [...(await measureTurns(folder)), await measureMany(folder)];
}

const TURNS = 1000;

async function measureTurns(folder: string): Promise<readonly Row[]> {
  const ratios: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < 21; round++) {
    const hand = median(await handLoop(TURNS));
    const turn = median(await turnGaps(folder));
    ratios.push(turn / hand);
    ours.push(turn);
  }
  const detail = `p50 ${micro(median(ours))}, ${spread(ratios)}`;
  return [
    row("in-memory turn of a stage", median(ours) * 1000, "µs", 25, detail),
    row("in-memory turn of a stage / hand loop", median(ratios), "x", null, detail),
  ];
}

/** A stage in which the model talks for a long time before it completes. */
async function turnGaps(folder: string): Promise<readonly number[]> {
  const stamps: number[] = [];
  const backend = talker(TURNS, () => void stamps.push(performance.now()));
  const machine = sketchMachine({ only: { turns: TURNS } });
  await complete(machine, folder, backend);
  return gaps(stamps);
}

async function measureMany(folder: string): Promise<Row> {
  const runs = 1000;
  const machine = sketchMachine({
    plan: { next: { kind: "fork", steps: ["a", "b"], join: "review" } },
    a: {},
    b: {},
    review: { next: "end" },
    end: {},
  });
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: async ({ asker }) => {
      await delay(20);
      const calls = [{ id: asker.key, name: "done", input: {} }];
      return { kind: "reply", text: "", calls, usage: USAGE };
    },
  };
  await Promise.all(Array.from({ length: runs }, () => complete(machine, folder, backend)));
  const rss = process.resourceUsage().maxRSS / 1024;
  return row(
    "memory of 1,000 concurrent stage machines",
    rss,
    "MB",
    200,
    "five stages each, two of them beside each other",
  );
}

async function complete(machine: Flow, folder: string, backend: Backend): Promise<void> {
  const journal = createMemoryJournal();
  const result = await runLoaded(loaded(machine, folder), { cwd: folder, journal, backend });
  if (!result.success) throw new Error(`The benchmark run went wrong: ${result.reason}`);
}

function talker(turns: number, tick: () => void): Backend {
  return {
    spec: { id: "bench", options: null },
    turn: ({ asker }) => {
      tick();
      const calls = asker.turn < turns ? [] : [{ id: "1", name: "done", input: {} }];
      return Promise.resolve({ kind: "reply", text: "Still at it.", calls, usage: USAGE });
    },
  };
}
