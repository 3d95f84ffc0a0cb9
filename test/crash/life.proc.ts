/** A long life in small: a thousand runs in one process leave nothing behind. `lockstep bench --part life` has ten thousand. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createMemoryJournal, openJournal, runLoaded } from "../../src/run/index.ts";
import { quickFolder } from "./folder.ts";
import { agents } from "./killed-agents.ts";

const RUNS = 1000;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

for (const place of ["a journal that stays open", "a journal of its own each", "memory"] as const) {
  test(`${RUNS} runs in ${place}: no descriptor, no listener and hardly any memory is left`, async (context) => {
    const folder = quickFolder("life");
    const all = agents(folder);
    const { signal } = new AbortController();
    const stays = await openJournal(join(folder, ".lockstep"), { now: Date.now });
    const one = async (nth: number) => {
      const { loaded, script } = nth % 2 === 0 ? all.short! : all.stages!;
      // A limit on time needs a signal of its own beside the one that all runs share.
      const flow = { ...loaded.flow!, limits: { ...loaded.flow!.limits, wallMs: 1_000_000 } };
      const journal =
        place === "memory"
          ? createMemoryJournal()
          : place === "a journal that stays open"
            ? stays
            : undefined;
      const result = await runLoaded(
        { ...loaded, flow },
        { cwd: folder, script, signal, ...(journal !== undefined && { journal }) },
      );
      assert.equal(result.outcome, "completed", result.reason);
      await turn();
    };
    try {
      for (let nth = 0; nth < RUNS / 4; nth++) await one(nth);
      const before = await leftovers(signal);
      for (let nth = 0; nth < RUNS; nth++) await one(nth);
      const after = await leftovers(signal);
      context.diagnostic(`${JSON.stringify(before)} → ${JSON.stringify(after)}`);
      assert.equal(after.descriptors, before.descriptors);
      assert.equal(after.listeners, before.listeners);
      assert.equal(after.timers, before.timers);
      assert.ok(after.heap - before.heap < 1024 * RUNS, `${after.heap - before.heap} bytes more`);
    } finally {
      await stays.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** What was given up is given back in the turns after it was collected. */
async function leftovers(signal: AbortSignal) {
  for (let round = 0; round < 4; round++) {
    collect();
    await turn();
  }
  const told = "/proc/self/fd";
  return {
    descriptors: existsSync(told) ? readdirSync(told).length : 0,
    listeners: getEventListeners(signal, "abort").length,
    timers: process.getActiveResourcesInfo().filter((name) => name === "Timeout").length,
    heap: process.memoryUsage().heapUsed,
  };
}
