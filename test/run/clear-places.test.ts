/** Which folders of runs a worker removes. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearPlaces } from "../../src/run/clear-places.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { newRun, waited } from "../../src/testing/journal-samples.ts";
import type { Entry } from "../../src/flow/event.ts";

const NOW = Date.UTC(2030, 0, 10);
const ended = (outcome: "completed" | "waiting"): Entry => ({
  seq: 2,
  at: 0,
  event: { type: "run.ended", verdict: { outcome, code: null, reason: "", step: null } },
});

for (const [isBeginning, kept] of [
  [true, ["driven", "driven-old", "notes.txt", "open", "waiting"]],
  [false, ["driven", "driven-old", "notes.txt", "old", "open", "waiting"]],
] as const)
  test(`${isBeginning ? "as it begins" : "while it works"}, what is over or unknown goes`, async () => {
    const work = mkdtempSync(join(tmpdir(), "lockstep-places-"));
    try {
      const journal = createMemoryJournal();
      const make = async (id: string, entries: readonly Entry[], isDriven = false) => {
        const handle = await journal.create(newRun(id), entries);
        if (!isDriven) await handle.release();
      };
      await make("over", [waited(1), ended("completed")]);
      await make("waiting", [waited(1), ended("waiting")]);
      await make("open", [waited(1)]);
      await make("old", [waited(1)]);
      await make("driven", [waited(1)], true);
      await make("driven-old", [waited(1)], true);
      for (const name of ["over", "waiting", "open", "old", "driven", "driven-old", "unknown", "notes.txt"]) {
        mkdirSync(join(work, "runs", name), { recursive: true });
        const days = name.endsWith("old") ? 3 : 1;
        const at = new Date(NOW - days * 86_400_000);
        utimesSync(join(work, "runs", name), at, at);
      }
      await clearPlaces(work, journal, { now: NOW, isBeginning });
      assert.deepEqual(readdirSync(join(work, "runs")).toSorted(), kept);
      assert.deepEqual(await clearPlaces(join(work, "none"), journal, { now: NOW, isBeginning }), []);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
