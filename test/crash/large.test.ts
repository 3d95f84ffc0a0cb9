/** Runs with large entries through the public door: exported whole, resumed elsewhere, and gone without a trace. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseBundle } from "../../src/run/records/bundle.ts";
import {
  createMemoryJournal,
  exportRun,
  importRun,
  listRuns,
  openJournal,
  replayRun,
  resume,
  runLoaded,
} from "../../src/run/index.ts";
import { prunable, prune } from "../../src/run/records/prune.ts";
import { agents, modelOf } from "./killed-agents.ts";

test("a run with large entries is exported whole, can be resumed where it is imported, and leaves nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-large-"));
  const files = () =>
    readdirSync(join(folder, ".lockstep", "artifacts"), { recursive: true, withFileTypes: true }).filter(
      (found) => found.isFile(),
    );
  try {
    const { loaded, script } = agents(folder).large!;
    const journal = await openJournal(loaded.project.stateDir, { now: Date.now });
    const stop = new AbortController();
    const observe = ({ seq }: { readonly seq: number }) => void (seq === 2 && stop.abort());
    const begun = await runLoaded(loaded, { cwd: folder, journal, script, signal: stop.signal, observe });
    assert.equal(begun.outcome, "interrupted");
    // The answer, and the beginning, which holds the script.
    assert.equal(files().length, 2);
    const text = JSON.stringify((await exportRun(journal, begun.run!)).bundle);
    assert.ok(text.length > 300_000);
    assert.ok((await journal.size(begun.run!)) > 300_000);

    const rows = await prunable(journal, { now: Date.now() + 1 });
    assert.equal((await prune(journal, rows)).length, 1);
    await journal.close();
    assert.deepEqual(files(), []);

    for (const other of [
      createMemoryJournal(),
      await openJournal(loaded.project.stateDir, { now: Date.now }),
    ]) {
      const { run } = await importRun(other, parseBundle(text, "x"), { cwd: folder, now: 1 });
      const backend = await modelOf(other, run, "large");
      const ended = await resume({ run, cwd: folder, journal: other, backend, trustJournal: true });
      assert.equal(ended.outcome, "completed", ended.reason);
      assert.equal((await replayRun(other, run)).difference, null);
      assert.equal((await listRuns(other)).length, 1);
      await other.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
