/** The check of a whole journal finds every kind of harm, and changes nothing. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import type { Entry } from "../../../src/flow/event.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { LARGEST_ROW } from "../../../src/journal/sqlite/artifacts.ts";
import { checkJournal } from "../../../src/journal/sqlite/check.ts";
import { openSqliteJournal } from "../../../src/journal/sqlite/sqlite.ts";

type Row = readonly [what: string, harm: (directory: string) => void, found: readonly string[]];

const ROWS: readonly Row[] = [
  ["nothing", () => undefined, []],
  [
    "an entry was changed",
    sql("UPDATE event SET body = replace(body, '\"at\"', '\"aT\"') WHERE run = 1 AND seq = 2"),
    ["damage entries: entry 2 of run run1 does not fit its checksum"],
  ],
  [
    "an entry without a checksum is not JSON",
    sql("UPDATE event SET body = '{', sum = NULL WHERE run = 1 AND seq = 2"),
    ["damage entries: entry 2 of run run1 is not JSON"],
  ],
  [
    "an entry without a checksum has no event",
    sql("UPDATE event SET body = '{\"at\":1}', sum = NULL WHERE run = 1 AND seq = 2"),
    ["damage entries: entry 2 of run run1 has no event"],
  ],
  [
    "an entry in the middle is gone",
    sql("DELETE FROM event WHERE run = 1 AND seq = 2"),
    ["damage entries: run run1 has 2 of 3 entries"],
  ],
  [
    "the last entry is gone",
    sql("DELETE FROM event WHERE run = 1 AND seq = 3"),
    ["damage entries: run run1 has 2 of 3 entries"],
  ],
  [
    "the row of a run is gone",
    sql("DELETE FROM run WHERE key = 1"),
    ["damage runs: the row of run run1 is missing; 3 of its entries are there"],
  ],
  [
    "the row and the first entry of a run are gone",
    sql("DELETE FROM run WHERE key = 1; DELETE FROM event WHERE run = 1 AND seq = 1"),
    ["damage runs: the row of run with the key 1 is missing; 2 of its entries are there"],
  ],
  [
    "the row of a run was changed",
    sql("UPDATE run SET agent = 'other' WHERE key = 1"),
    ["damage runs: the row of run run1 is not valid or does not fit its checksum"],
  ],
  [
    "an id is not one",
    sql("UPDATE run SET id = char(27) WHERE key = 1"),
    ["damage runs: the row of run damaged-1 is not valid or does not fit its checksum"],
  ],
  [
    "a run is half removed",
    sql("UPDATE run SET id = '-removed-1' WHERE key = 1"),
    ["left runs: run 1 is half removed"],
  ],
  [
    "a flow was changed",
    sql("UPDATE flow SET json = json || ' '"),
    ["damage flows: the flow digest was changed; its runs: run2, run1"],
  ],
  [
    "a flow is gone",
    sql("PRAGMA foreign_keys = OFF; DELETE FROM flow"),
    ["damage flows: the flow digest is missing; its runs: run2, run1"],
  ],
  [
    "an artifact is gone",
    (at) => rmSync(join(at, "artifacts"), { recursive: true }),
    ["damage artifacts: FILE is gone: it holds entry 3 of run run2"],
  ],
  [
    "an artifact was changed",
    (at) => writeFileSync(artifact(at), "x".repeat(readFileSync(artifact(at)).length)),
    ["damage artifacts: FILE was changed: it holds entry 3 of run run2"],
  ],
  [
    "an artifact is half written",
    (at) => writeFileSync(`${artifact(at)}.some-owner`, "x"),
    ["left artifacts: 1 file that no entry needs, or half written"],
  ],
  [
    "a process died",
    (at) => {
      mkdirSync(join(at, "owners"), { recursive: true });
      writeFileSync(join(at, "owners", "dead.lock"), "");
    },
    ["left owners: FILE was left by a process that died"],
  ],
  [
    "an index does not fit its table",
    (at) => {
      const bytes = readFileSync(join(at, "runs.db"));
      bytes[indexPage(at) * 4096 - 1]! ^= 0x40;
      writeFileSync(join(at, "runs.db"), bytes);
    },
    ["damage database: row 1 missing from index sqlite_autoindex_event_1"],
  ],
  [
    "the file is empty",
    (at) => writeFileSync(join(at, "runs.db"), ""),
    ["damage database: FILE is empty (0 bytes): something has truncated it."],
  ],
  [
    "the file is not a database",
    (at) => writeFileSync(join(at, "runs.db"), "x".repeat(10_000)),
    ["damage database: FILE is not a database (file is not a database)."],
  ],
];

describe("journal: check", () => {
  for (const [what, harm, found] of ROWS)
    it(`finds that ${what}, and changes nothing`, () =>
      world(async (directory) => {
        await record(directory);
        harm(directory);
        const before = contents(directory);
        const { faults } = checkJournal(directory)!;
        const told = faults.map(
          ({ kind, part, detail }) =>
            `${kind} ${part}: ${detail.replaceAll(new RegExp(`${directory}\\S+`, "g"), "FILE")}`,
        );
        // SQLite counts the same fault in several ways.
        if (what.startsWith("an index")) assert.ok(told.includes(found[0]!), told.join("\n"));
        else assert.deepEqual(told, found);
        assert.deepEqual(contents(directory), before);
      }));

  it("says what it looked at, and that there is none", () =>
    world(async (directory) => {
      assert.equal(checkJournal(directory), null);
      await record(directory);
      const { counts, runs } = checkJournal(directory)!;
      assert.deepEqual(counts, { runs: 2, entries: 6, flows: 1, artifacts: 1, unsealed: 0 });
      assert.deepEqual(runs, ["run1", "run2"]);
    }));

  it("looks at one state while a process goes on writing", () =>
    world(async (directory) => {
      const journal = await openSqliteJournal({ directory, now: () => 1, ownerId: "writer", pid: 1 });
      const handle = await journal.create(
        { id: "run1", agent: "agent", at: 1, digest: "digest", flow: {} as Flow },
        [entry("run1", 1)],
      );
      assert.deepEqual(checkJournal(directory)!.faults, []);
      await handle.append([entry("run1", 2)]);
      assert.equal(checkJournal(directory)!.counts.entries, 2);
      await journal.close();
    }));
});

function sql(text: string): (directory: string) => void {
  return (directory) => {
    using db = new DatabaseSync(join(directory, "runs.db"));
    db.exec(text);
  };
}

function indexPage(directory: string): number {
  using db = new DatabaseSync(join(directory, "runs.db"), { readOnly: true });
  const row = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_event_1'").get();
  return Number(row!.rootpage);
}

async function record(directory: string): Promise<void> {
  const journal = await openSqliteJournal({ directory, now: () => 1, ownerId: "writer", pid: 1 });
  for (const id of ["run1", "run2"]) {
    const about = { id, agent: "agent", at: 1, digest: "digest", flow: { ir: 1 } as unknown as Flow };
    await (await journal.create(about, [entry(id, 1), entry(id, 2), entry(id, 3, id === "run2")])).release();
  }
  await journal.close();
}

function entry(run: string, seq: number, isLarge = false): Entry {
  const event = {
    type: "step.waited",
    ...(seq === 1 && { run }),
    step: "s",
    visit: seq,
    ms: 5,
    ...(isLarge && { note: "x".repeat(LARGEST_ROW) }),
  };
  return { seq, at: 1, event } as unknown as Entry;
}

function artifact(directory: string): string {
  const folder = join(directory, "artifacts");
  const name = readdirSync(folder, { recursive: true })
    .map(String)
    .find((path) => /[0-9a-f]{64}$/.test(path));
  return join(folder, name ?? "");
}

function contents(directory: string): unknown {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => [one.name, readFileSync(join(one.parentPath, one.name)).toString("base64")]);
}

async function world(body: (directory: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "lockstep-check-"));
  try {
    await body(join(root, "state"));
  } finally {
    await rm(root, { recursive: true });
  }
}
