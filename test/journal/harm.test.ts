/** Bytes of a journal that change on disk: each is noticed when it is read, or makes no difference. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { RunnerError, type Journal } from "../../src/engine/ports.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { LARGEST_ROW } from "../../src/journal/sqlite/artifacts.ts";
import { openSqliteJournal } from "../../src/journal/sqlite/sqlite.ts";

describe("journal: harm", () => {
  it("notices every byte that is flipped, unless it makes no difference", () =>
    world(async (directory) => {
      await record(directory);
      const file = join(directory, "runs.db");
      const whole = readFileSync(file);
      const before = await contentsOf(directory);
      let noticed = 0;
      for (const place of places(whole.length, FLIPS)) {
        const bytes = Buffer.from(whole);
        bytes[place]! ^= 1 << (place % 8);
        writeFileSync(file, bytes);
        const after = await contentsOf(directory);
        if (after === null) noticed += 1;
        else assert.deepEqual(after, before, `byte ${place} of ${whole.length}`);
      }
      assert.ok(noticed > FLIPS / 2, `${noticed} of ${FLIPS}`);
    }));

  for (const { what, sql, said } of [
    {
      what: "a byte of an entry",
      sql: "UPDATE event SET body = replace(body, '3 7', '3 8') WHERE run = 3",
      said: /entry 7 of run run3 does not fit its checksum/,
    },
    {
      what: "an entry of another run",
      sql: "UPDATE event SET body = (SELECT body FROM event WHERE run = 4 AND seq = 7), sum = (SELECT sum FROM event WHERE run = 4 AND seq = 7) WHERE run = 3 AND seq = 7",
      said: /entry 7 of run run3 does not fit/,
    },
    {
      what: "an entry under another number",
      sql: "UPDATE event SET body = (SELECT body FROM event WHERE run = 3 AND seq = 6), sum = (SELECT sum FROM event WHERE run = 3 AND seq = 6) WHERE run = 3 AND seq = 7",
      said: /entry 7 of run run3 does not fit/,
    },
    {
      what: "a missing entry",
      sql: "DELETE FROM event WHERE run = 3 AND seq = 7",
      said: /entry 7 of run run3 is missing/,
    },
    {
      what: "a missing last entry",
      sql: "DELETE FROM event WHERE run = 3 AND seq = 12",
      said: /entry 12 of run run3 is missing/,
    },
    {
      what: "a checksum",
      sql: "UPDATE event SET sum = sum + 1 WHERE run = 3 AND seq = 7",
      said: /entry 7 of run run3 does not fit/,
    },
    {
      what: "the agent of a run",
      sql: "UPDATE run SET agent = 'agenT' WHERE key = 3",
      said: /the row of run run3 is not valid.* "lockstep salvage", or .*: lockstep runs --prune run3$/,
    },
    {
      what: "the time of a run",
      sql: "UPDATE run SET created_at = created_at + 1 WHERE key = 3",
      said: /the row of run run3 is not valid.* "lockstep salvage", or .*: lockstep runs --prune run3$/,
    },
    {
      what: "the flow of a run",
      sql: "UPDATE run SET digest = 'd1' WHERE key = 3",
      said: /the row of run run3 is not valid.* "lockstep salvage", or .*: lockstep runs --prune run3$/,
    },
    {
      what: "a flow",
      sql: "UPDATE flow SET json = replace(json, 'flow 0', 'flow O') WHERE digest = 'd0'",
      said: /the flow d0 was changed .* cannot be read: run12, run9, run6, run3\. .*lockstep show RUN --events/,
    },
    {
      what: "a flow that is not JSON, recorded without a checksum",
      sql: "UPDATE flow SET json = substr(json, 9), sum = NULL WHERE digest = 'd0'",
      said: /the flow d0 was changed/,
    },
  ]) {
    it(`names what was changed and the way out: ${what}`, () =>
      world(async (directory) => {
        await record(directory);
        const db = new DatabaseSync(join(directory, "runs.db"));
        db.exec(sql);
        db.close();
        const journal = await open(directory);
        try {
          const rows = await journal.list();
          const row = rows.find(({ id }) => id === "run3")!;
          const read = async () => [await journal.read("run3"), await journal.flow(row.digest)];
          const message =
            row.damaged ??
            (await read().then(
              () => "",
              ({ message: text }: Error) => text,
            ));
          assert.match(message, said);
          assert.match(message, /: lockstep (?:salvage|runs --prune run3)$/);
          // All others are as before.
          for (const { id, damaged } of rows)
            if (id !== "run3") assert.deepEqual([damaged, (await journal.read(id)).length], [undefined, 12]);
        } finally {
          await journal.close();
        }
      }));
  }
});

const FLIPS = 280;

/** The same in every run of this test, all over the file. */
function places(length: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => (index * 7919 * 31 + index) % length);
}

/** Everything that can be read of it; null: something was noticed. */
async function contentsOf(directory: string): Promise<unknown> {
  let journal: Journal | undefined;
  try {
    journal = await open(directory);
    const rows = await journal.list();
    if (rows.some(({ damaged }) => damaged !== undefined)) return null;
    const runs = [];
    for (const row of rows) runs.push([row, await journal.read(row.id), await journal.flow(row.digest)]);
    return runs;
  } catch (error) {
    assert.ok(error instanceof RunnerError, String(error));
    return null;
  } finally {
    await journal?.close();
  }
}

function open(directory: string): Promise<Journal> {
  const refuseWrites = () => new RunnerError("X", "only looked at");
  return openSqliteJournal({ directory, now: () => 1_000, ownerId: "reader", pid: 1, refuseWrites });
}

async function record(directory: string): Promise<void> {
  const journal = await openSqliteJournal({ directory, now: () => 1_000, ownerId: "writer", pid: 1 });
  for (let run = 1; run <= 12; run++) {
    const flow = { ir: 1, agent: "a", text: `flow ${run % 3} `.repeat(40) } as unknown as Flow;
    const about = { id: `run${run}`, agent: "agent", at: 1_000 + run, digest: `d${run % 3}`, flow };
    const entries = Array.from({ length: 12 }, (_, index) => entry(run, index + 1));
    await (await journal.create(about, entries)).release();
  }
  await journal.close();
}

function entry(run: number, seq: number): Entry {
  const note = run === 5 && seq === 5 ? "x".repeat(LARGEST_ROW) : `${run} ${seq} `.repeat(seq * 12);
  const event = { type: "step.waited", step: "s", visit: seq, ms: 5, note };
  return { seq, at: 1_000 + seq, event } as unknown as Entry;
}

async function world(body: (directory: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "lockstep-harm-"));
  try {
    await body(join(root, "state"));
  } finally {
    await rm(root, { recursive: true });
  }
}
