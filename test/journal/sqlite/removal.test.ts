import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Journal, NewRun } from "../../../src/engine/ports.ts";
import type { Entry } from "../../../src/flow/event.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { openSqliteJournal } from "../../../src/journal/sqlite/sqlite.ts";

/** What one transaction may take away: each is a few milliseconds of work. */
const MOST_ROWS = 2_000;
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_PAGES = 500;

const SIZES = [
  { what: "many short runs", runs: 300, entries: 20, letters: 10, fewest: 3, most: 40 },
  { what: "a run of many entries", runs: 1, entries: 9_000, letters: 10, fewest: 5, most: 10 },
  { what: "runs of large entries", runs: 3, entries: 40, letters: 200_000, fewest: 3, most: 30 },
  { what: "runs without entries", runs: 4_500, entries: 0, letters: 0, fewest: 0, most: 0 },
] as const;

describe("journal: sqlite, removing", () => {
  for (const { what, runs, entries, letters, fewest, most } of SIZES) {
    it(`removes ${what} in transactions that are soon over, beside a run that goes on`, () =>
      world(async ({ open, database }) => {
        const [pruner, driver] = [await open("pruner"), await open("driver")];
        const ids = Array.from({ length: runs }, (_, index) => `run-${index}`);
        await makeRuns(driver, ids, entries, letters);
        const beside = await driver.create(newRun("beside"), [noted(1, 1)]);
        const seen: Size[] = [];
        const over = new AbortController();
        const isOver = () => over.signal.aborted;
        // Nothing in this process writes twice between two turns of the event loop.
        const watched = (async () => {
          for (; !isOver(); await turn()) seen.push(database());
          // The last transaction may have come after the last look.
          seen.push(database());
        })();
        const driven = (async () => {
          for (let seq = 2; !isOver(); seq++) {
            // Never a part of a run: it is there whole, or not at all.
            for (const { id, events } of await driver.list({ prefix: "run-", limit: 3 }))
              assert.equal(events, entries, id);
            await beside.append([noted(seq, 1)]);
          }
        })();
        await Promise.all(ids.map((id) => pruner.remove(id)));
        await pruner.tidy();
        over.abort();
        await Promise.all([watched, driven]);
        const steps = seen.slice(1).map((now, place) => differenceOf(seen[place]!, now));
        const removing = steps.filter(({ rows }) => rows > 0);
        for (const { rows, bytes, pages, runs: gone } of steps) {
          assert.ok(rows + gone <= MOST_ROWS + 1, `${rows} rows of ${gone} runs`);
          assert.ok(bytes <= MOST_BYTES + letters, `${bytes} bytes`);
          assert.ok(pages <= MOST_PAGES + 10, `${pages} pages`);
        }
        assert.ok(removing.length >= fewest && removing.length <= most, `${removing.length} transactions`);
        const { free, rows } = database();
        assert.deepEqual([free, await pruner.count()], [0, 1]);
        assert.equal((await driver.read("beside")).length, rows);
      }));
  }

  it("hides a run at once that is removed in several transactions, and goes on after its process has ended", () =>
    world(async ({ open, database }) => {
      const [first, reader] = [await open("first"), await open("reader")];
      await makeRuns(first, ["long", "kept"], 5_000, 10);
      const { cursor } = await reader.since("", 1);
      const all = database().rows;
      const removed = first.remove("long").catch((error: unknown) => error);
      for (let turns = 0; database().rows === all && turns < 1_000; turns++) await turn();
      const left = database().rows;
      assert.ok(left < all && left > 5_000, `${left} of ${all}`);
      await first.close();
      assert.equal(((await removed) as { readonly code: string }).code, "JOURNAL_UNAVAILABLE");

      assert.deepEqual(
        (await reader.list()).map(({ id, events }) => `${id} ${events}`),
        ["kept 5000"],
      );
      assert.equal(await reader.count(), 1);
      for (const id of ["long", "-removed-1", "damaged-1"]) {
        await assert.rejects(reader.read(id), { code: "RUN_UNKNOWN" }, id);
        await assert.rejects(reader.claim(id), { code: "RUN_UNKNOWN" }, id);
        assert.deepEqual(await reader.rows([id]), [], id);
      }
      assert.equal((await reader.since(cursor)).lost, true);
      assert.ok((await reader.since("")).entries.every(({ run }) => run === "kept"));

      const again = await reader.create(newRun("long"), [noted(1, 1)]);
      await again.append([noted(2, 1)]);
      await reader.tidy();
      assert.deepEqual([database().rows, database().free], [5_002, 0]);
      assert.equal((await reader.read("long")).length, 2);
      assert.equal((await reader.read("kept")).length, 5_000);
    }));

  for (const { what, removed } of [
    { what: "while they are looked for", removed: [] },
    { what: "in the place of an entry that was removed meanwhile", removed: ["newest"] },
  ])
    it(`keeps the flow and the file that somebody names ${what}`, () =>
      world(async ({ open }) => {
        const [pruner, driver] = [await open("pruner"), await open("driver")];
        const large = (seq: number) => noted(seq, 300_000);
        const adopted = (seq: number): Entry => ({
          seq,
          at: 1_000,
          event: { type: "run.adopted", flow: "d2" },
        });
        const flow = { ir: 2 } as unknown as Flow;
        const old = await driver.create(newRun("old"), [adopted(1), large(2)], { d2: flow });
        await old.release();
        const beside = await driver.create(newRun("beside"), [noted(1, 1)]);
        await (await driver.create(newRun("newest"), [noted(1, 1)])).release();
        await pruner.remove("old");
        const tidied = pruner.tidy();
        // It has begun to look, and does not hold the lock.
        for (let rounds = 0; rounds < 50; rounds++) await Promise.resolve();
        await Promise.all([
          ...removed.map((id) => driver.remove(id)),
          beside.append([adopted(2), large(3)], { d2: flow }),
        ]);
        await tidied;
        assert.deepEqual(await driver.read("beside", 1), [adopted(2), large(3)]);
        const later = await open("later");
        assert.deepEqual(await later.flow("d2"), flow);
        await beside.release();
        await later.remove("beside");
        await later.tidy();
        assert.equal(await (await open("last")).flow("d2"), null);
      }));
});

type Size = {
  readonly runs: number;
  readonly rows: number;
  readonly bytes: number;
  readonly pages: number;
  readonly free: number;
};

type World = {
  readonly open: (ownerId: string) => Promise<Journal>;
  /** As another process finds it. */
  readonly database: () => Size;
};

async function world(body: (world: World) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "lockstep-removal-"));
  const opened: Journal[] = [];
  let db: DatabaseSync | undefined;
  try {
    await body({
      async open(ownerId) {
        const journal = await openSqliteJournal({ directory, now: () => 1_000, ownerId, pid: 4_711 });
        opened.push(journal);
        return journal;
      },
      database() {
        db ??= new DatabaseSync(join(directory, "runs.db"), { readOnly: true });
        return db
          .prepare(
            `SELECT (SELECT count(*) FROM run) AS runs,
                    (SELECT count(*) FROM event) AS rows,
                    (SELECT coalesce(sum(octet_length(body)), 0) FROM event) AS bytes,
                    (SELECT page_count FROM pragma_page_count) AS pages,
                    (SELECT freelist_count FROM pragma_freelist_count) AS free`,
          )
          .get() as Size;
      },
    });
  } finally {
    db?.close();
    for (const journal of opened) await journal.close();
    await rm(directory, { recursive: true });
  }
}

function differenceOf(before: Size, after: Size): Size {
  return {
    runs: before.runs - after.runs,
    rows: before.rows - after.rows,
    bytes: before.bytes - after.bytes,
    pages: before.pages - after.pages,
    free: before.free - after.free,
  };
}

/** In large groups. */
async function makeRuns(journal: Journal, ids: readonly string[], entries: number, letters: number) {
  const all = Array.from({ length: entries }, (_, index) => noted(index + 1, letters));
  const handles = await Promise.all(ids.map((id) => journal.create(newRun(id), all)));
  await Promise.all(handles.map((handle) => handle.release()));
}

function newRun(id: string): NewRun {
  return { id, agent: "agent", at: 1_000, digest: "d1", flow: { ir: 1 } as unknown as Flow };
}

function noted(seq: number, letters: number): Entry {
  const event = { type: "step.waited", step: "s", visit: seq, ms: 5 } as const;
  return { seq, at: 1_000 + seq, event, note: "x".repeat(letters) } as Entry;
}
