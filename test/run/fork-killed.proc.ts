/** A fork and an import are all or nothing, whenever their process is killed. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openJournal, replayRun, show } from "../../src/run/index.ts";

const KILLS = 12;

test("whatever is there after a kill is whole: it replays, and it can be resumed", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "lockstep-fork-killed-"));
  try {
    for (let kill = 0; kill < KILLS; kill++) {
      const child = spawn(
        process.execPath,
        [fileURLToPath(new URL("forking.ts", import.meta.url)), cwd, String(kill)],
        {
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      // Killed some time after it began to fork and import, each time a little later.
      await new Promise((resolve) => child.stdout.once("data", resolve));
      setTimeout(() => child.kill("SIGKILL"), kill * 3);
      await new Promise((resolve) => child.once("exit", resolve));
    }
    const journal = await openJournal(join(cwd, ".lockstep"), { now: Date.now });
    try {
      const rows = await journal.list();
      assert.ok(rows.length > KILLS, String(rows.length));
      for (const { id, events, owned } of rows) {
        assert.equal(owned, false);
        assert.ok(events >= 2, `${id} has ${events} entries`);
        assert.equal((await replayRun(journal, id)).difference, null, id);
        const { outcome, resumable } = await show(journal, id);
        assert.ok(outcome === "completed" || resumable, `${id} ${outcome}`);
      }
    } finally {
      await journal.close();
    }
  } finally {
    rmSync(cwd, { recursive: true, force: true });
  }
});
