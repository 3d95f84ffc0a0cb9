/** Notes on recorded runs: one that has ended takes a note and stays what it was, any other refuses it. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { createMemoryJournal, findRun, replayRun, show } from "../../../src/run/index.ts";
import { noteRun } from "../../../src/run/people/note.ts";
import { parseBundle } from "../../../src/run/records/bundle.ts";
import { foldRun } from "../../../src/run/records/fold.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { JOURNALS } from "../golden.ts";
import { projectWith } from "../project.ts";

const RUNS = join(JOURNALS, "../baseline/runs");

/** The golden runs, and recorded ones that act outside. */
const texts: readonly (readonly [name: string, text: string])[] = [
  ...readdirSync(JOURNALS).map((name) => [name, readFileSync(join(JOURNALS, name), "utf8")] as const),
  ...readdirSync(RUNS)
    .filter((name) => /^(?:actions|attend)-/.test(name))
    .map((name) => [name, gunzipSync(readFileSync(join(RUNS, name))).toString()] as const),
];

for (const [name, text] of texts)
  test(`a note on ${name}, wherever it is cut`, async () => {
    const bundle = parseBundle(text, name);
    const stateDir = join(projectWith({}), ".lockstep");
    const { id, agent, createdAt: at, flow: digest } = bundle.run;
    for (const cut of bundle.entries) {
      const journal = createMemoryJournal();
      const entries = bundle.entries.slice(0, cut.seq);
      const row = { id, agent, at, digest, flow: bundle.flows[digest]! };
      await (await journal.create(row, entries, bundle.flows)).release();
      const clock = { ...fakeClock(), now: () => cut.at + 86_400_000 };
      const note = async (text: string) => await noteRun(journal, stateDir, id, text, clock, {});
      if (cut.event.type !== "run.ended") {
        await assert.rejects(note("x"), { code: "RUN_OPEN" });
        assert.equal((await journal.read(id)).length, entries.length);
        continue;
      }
      const before = await show(journal, id);
      const stateNow = async () => (await foldRun(journal, await findRun(journal, id))).state;
      const state = await stateNow();
      assert.deepEqual(await note("one"), { run: id, agent, seq: cut.seq + 1 });
      assert.deepEqual(await note("two"), { run: id, agent, seq: cut.seq + 3 });
      assert.deepEqual(await show(journal, id), before);
      assert.deepEqual(await stateNow(), { ...state, settled: null });
      assert.equal((await replayRun(journal, id)).difference, null);
      assert.deepEqual((await journal.read(id, cut.seq)).at(-1)?.event, cut.event);
    }
  });
