/** A disk that fills up in the middle of a run: the run stops with a sentence, and goes on once there is room. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { needs } from "../needs.ts";
import { openJournal, resume, runLoaded, type Backend } from "../../src/run/index.ts";
import { actionSchema, sketchFlow } from "../../src/testing/flows.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-full-"));
const disk = join(folder, "disk");
mkdirSync(disk);
const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]).status === 0;
const room = needs(mounted, "no right to mount a small file system (run as root to include the full disk)");

test("a full disk stops the run with exit 3, loses nothing, and the run goes on later", room, async () => {
  try {
    const schema = { ...actionSchema(["next"]), additionalProperties: true };
    const flow = sketchFlow(
      {
        "initial.a": { edges: { next: "continuation.a" }, schema },
        "continuation.a": { edges: { next: "initial.a" }, schema },
      },
      { stop: { kind: "visits", count: 400 }, limits: { visits: 400 } },
    );
    const agent = {
      agent: "sketch",
      project: { root: disk, agentsDir: disk, stateDir: join(disk, "state") },
      flow,
      problems: [],
    };
    let asked = 0;
    const backend: Backend = {
      spec: { id: "filler", options: null },
      turn: () => {
        asked += 1;
        const output = { next_action: { action: "next" }, filler: "x".repeat(3000) };
        return Promise.resolve({
          kind: "reply",
          text: "",
          calls: [],
          output,
          usage: { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null },
        });
      },
    };
    writeFileSync(join(disk, "ballast"), Buffer.alloc(900 * 1024));
    const stopped = await runLoaded(agent, { cwd: disk, backend });
    assert.deepEqual(
      [stopped.code, stopped.exitCode, stopped.resumable],
      ["JOURNAL_UNAVAILABLE", 3, true],
      stopped.reason,
    );
    assert.match(stopped.reason, /full|space/i);
    assert.match(stopped.reason, new RegExp(`lockstep resume ${stopped.run}`));
    const askedBefore = asked;
    assert.ok(askedBefore > 5 && askedBefore < 400, `${askedBefore} steps fitted`);

    rmSync(join(disk, "ballast"));
    spawnSync("mount", ["-o", "remount,size=64m", disk]);
    const ended = await resume({ run: "@last", cwd: disk, stateDir: join(disk, "state"), backend });
    assert.deepEqual([ended.outcome, ended.iterations], ["completed", 400], ended.reason);
    // Only the step whose answer could not be written is asked again.
    assert.equal(asked, 401);
    const journal = await openJournal(join(disk, "state"), { now: Date.now });
    const entries = await journal.read(ended.run!);
    await journal.close();
    assert.deepEqual(
      entries.map(({ seq }) => seq),
      entries.map((_, index) => index + 1),
    );
  } finally {
    spawnSync("umount", [disk]);
    rmSync(folder, { recursive: true, force: true });
  }
});
