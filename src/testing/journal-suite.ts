/** What every journal must do. One suite; each implementation runs it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Journal, NewRun, RunHandle } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";

/** A place that holds runs, empty at first. */
export type JournalPlace = {
  /** A journal on this place; opened a second time, it stands for a second process. */
  readonly open: () => Promise<Journal>;
  /** Called once all journals are closed. */
  readonly remove: () => Promise<void>;
};

export type JournalSuiteOptions = {
  /** Why a place cannot be opened twice, if it cannot. The cases that need it are listed as skipped, with this reason. */
  readonly alone?: string;
};

/**
 * Registers the cases with node:test.
 *
 *     journalSuite("memory", async () => {
 *       const journal = createMemoryJournal();
 *       return { open: async () => journal, remove: async () => {} };
 *     }, { alone: "what is in memory ends with its journal" });
 */
export function journalSuite(
  name: string,
  make: () => Promise<JournalPlace>,
  options: JournalSuiteOptions = {},
): void {
  const together = { skip: options.alone ?? false };

  /** Opens journals on a new place, and closes them when the case is over. */
  const world = async (body: (open: () => Promise<Journal>) => Promise<void>) => {
    const place = await make();
    const opened: Journal[] = [];
    try {
      await body(async () => {
        const journal = await place.open();
        opened.push(journal);
        return journal;
      });
    } finally {
      for (const journal of opened) await journal.close();
      await place.remove();
    }
  };

  describe(`journal: ${name}`, () => {
    for (const [script, text] of Object.entries(ODD_TEXTS)) {
      it(`gives back what was appended: ${script}`, () =>
        world(async (open) => {
          const journal = await open();
          const handle = await journal.create(newRun("r1"));
          const entry = answered(1, text, { [text]: text, list: [text, null, 0.1, -1e21] });
          await handle.append([entry]);
          assert.deepEqual(await journal.read("r1"), [entry]);
        }));
    }

    it("gives back everything an entry holds, a member named __proto__ included", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        const output = JSON.parse('{"__proto__":{"admin":true},"constructor":1}') as JsonObject;
        const led = { step: "s", visit: 1, label: "next", to: null, notes: ["put right"] } as const;
        await handle.append([{ ...answered(1, "", output), led }]);
        assert.deepEqual(await journal.read("r1"), [{ ...answered(1, "", output), led }]);
      }));

    it("keeps the order of entries, of appends, and of appends that were not waited for", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1), waited(2), waited(3)]);
        await Promise.all([handle.append([waited(4)]), handle.append([waited(5), waited(6)])]);
        await handle.append([waited(7)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3, 4, 5, 6, 7]);
      }));

    it("reads only what came after a given entry", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1), waited(2), waited(3)]);
        assert.deepEqual(seqs(await journal.read("r1", 0)), [1, 2, 3]);
        assert.deepEqual(seqs(await journal.read("r1", 2)), [3]);
        assert.deepEqual(seqs(await journal.read("r1", 3)), []);
        assert.deepEqual(seqs(await journal.read("r1", 99)), []);
      }));

    it("does not change what was read when more is appended", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1)]);
        const before = await journal.read("r1");
        await handle.append([waited(2)]);
        assert.deepEqual(seqs(before), [1]);
      }));

    it("knows a run without entries from a run that is not there", () =>
      world(async (open) => {
        const journal = await open();
        await journal.create(newRun("r1"));
        assert.deepEqual(await journal.read("r1"), []);
        await refuses("RUN_UNKNOWN", journal.read("r2"), /r2/);
        await refuses("RUN_UNKNOWN", journal.claim("r2"), /r2/);
      }));

    it("makes a run together with its first entries", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"), [waited(1), waited(2)]);
        await handle.append([waited(3)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3]);
        await refuses("ENTRY_OUT_OF_ORDER", journal.create(newRun("r2"), [waited(2)]), /r2/);
        await refuses("RUN_UNKNOWN", journal.read("r2"), /r2/);
      }));

    it("refuses an id that is taken, and leaves the run that has it alone", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1)]);
        await refuses("RUN_EXISTS", journal.create(newRun("r1")), /r1/);
        await handle.append([waited(2)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
      }));

    it("lets one of many creates of the same id win", () =>
      world(async (open) => {
        const journal = await open();
        const tries = await Promise.allSettled(many(5).map(() => journal.create(newRun("r1"))));
        assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
      }));

    for (const { what, entries } of [
      { what: "repeats the last one", entries: [waited(2)] },
      { what: "repeats the first one", entries: [waited(1)] },
      { what: "leaves a gap", entries: [waited(4)] },
      { what: "counts from zero", entries: [waited(0)] },
      { what: "leaves a gap further on", entries: [waited(3), waited(5)] },
      { what: "repeats itself further on", entries: [waited(3), waited(3)] },
    ]) {
      it(`refuses an append that ${what}, writes nothing of it, and goes on`, () =>
        world(async (open) => {
          const journal = await open();
          const handle = await journal.create(newRun("r1"));
          await handle.append([waited(1), waited(2)]);
          await refuses("ENTRY_OUT_OF_ORDER", handle.append(entries), /r1/);
          assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
          await handle.append([waited(3)]);
          assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3]);
        }));
    }

    it("claims a run for one writer only, until it is released", () =>
      world(async (open) => {
        const journal = await open();
        const first = await journal.create(newRun("r1"));
        await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
        await first.release();
        const tries = await Promise.allSettled(many(5).map(() => journal.claim("r1")));
        assert.equal(tries.filter(({ status }) => status === "fulfilled").length, 1);
      }));

    it("raises the epoch with each claim", () =>
      world(async (open) => {
        const journal = await open();
        const epochs: number[] = [];
        let handle = await journal.create(newRun("r1"));
        for (const _ of many(3)) {
          epochs.push(handle.epoch);
          assert.equal(handle.run, "r1");
          await handle.release();
          handle = await journal.claim("r1");
        }
        assert.deepEqual(epochs, [1, 2, 3]);
      }));

    it("commits what was offered before a release, and takes nothing after it", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await Promise.all([handle.append([waited(1)]), handle.release()]);
        await refuses("RUN_OWNED_ELSEWHERE", handle.append([waited(2)]), /r1/);
        await handle.release();
        assert.deepEqual(seqs(await journal.read("r1")), [1]);
      }));

    it("fences a stale writer: its append is refused while the others beside it are committed", () =>
      world(async (open) => {
        const journal = await open();
        const stale = await journal.create(newRun("r1"));
        await stale.append([waited(1)]);
        await stale.release();
        const fresh = await journal.claim("r1");
        const before = await journal.create(newRun("before"));
        const after = await journal.create(newRun("after"));
        const [first, refused, second, third] = await Promise.allSettled([
          before.append([waited(1)]),
          stale.append([waited(2), waited(3)]),
          fresh.append([answered(2, "by the fresh one", {})]),
          after.append([waited(1)]),
        ]);
        assert.deepEqual([first.status, second.status, third.status], many(3, "fulfilled"));
        await refuses("RUN_OWNED_ELSEWHERE", settled(refused), /r1/);
        assert.deepEqual(await journal.read("r1"), [waited(1), answered(2, "by the fresh one", {})]);
        assert.deepEqual(seqs(await journal.read("before")), [1]);
        assert.deepEqual(seqs(await journal.read("after")), [1]);
      }));

    it("lets a run be taken over that is being driven, and its driver write no more", () =>
      world(async (open) => {
        const journal = await open();
        const stale = await journal.create(newRun("r1"), [waited(1)]);
        await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1", { takeOver: false }), /r1.*--take-over/);
        const fresh = await journal.claim("r1", { takeOver: true });
        assert.equal(fresh.abandoned, true, "the owner before did not let go");
        assert.equal(fresh.epoch, 2);
        await refuses("RUN_OWNED_ELSEWHERE", stale.append([waited(2)]), /r1/);
        await stale.release();
        await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
        await fresh.append([waited(2)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
        await refuses("RUN_UNKNOWN", journal.claim("r2", { takeOver: true }), /r2/);
        await fresh.release();
        const third = await journal.claim("r1", { takeOver: true });
        assert.deepEqual([third.epoch, third.abandoned], [3, undefined]);
      }));

    it("does not let a stale writer release the run of the fresh one", () =>
      world(async (open) => {
        const journal = await open();
        const stale = await journal.create(newRun("r1"));
        await stale.release();
        const fresh = await journal.claim("r1");
        await stale.release();
        await refuses("RUN_OWNED_ELSEWHERE", journal.claim("r1"), /r1/);
        await fresh.append([waited(1)]);
      }));

    it("lists the run made last first, whatever the clock said, with its last entry and whether it is being driven", () =>
      world(async (open) => {
        const journal = await open();
        const first = await journal.create({ ...newRun("first"), at: 200.5 });
        await journal.create({ ...newRun("second"), at: 300, agent: "other" });
        const third = await journal.create({ ...newRun("third"), at: 100 });
        await first.append([waited(1), answered(2, "last", {})]);
        await third.append([waited(1)]);
        await third.release();
        const about = { agent: "agent", digest: "digest-1" };
        assert.deepEqual(await journal.list(), [
          { ...about, id: "third", createdAt: 100, events: 1, last: waited(1), owned: false },
          { ...about, id: "second", agent: "other", createdAt: 300, events: 0, last: null, owned: true },
          { ...about, id: "first", createdAt: 200.5, events: 2, last: answered(2, "last", {}), owned: true },
        ]);
      }));

    it("lists a part of the runs: by the beginning of their ids, by agent, page by page", () =>
      world(async (open) => {
        const journal = await open();
        for (const [id, agent] of [
          ["ab1", "x"],
          ["ac1", "y"],
          ["ab2", "y"],
          ["b", "x"],
          ["abz", "x"],
        ] as const)
          await journal.create({ ...newRun(id), agent });
        await (await journal.claim("ab1", { takeOver: true })).release();
        for (const [which, ids] of [
          [{}, "abz b ab2 ac1 ab1"],
          [{ prefix: "" }, "abz b ab2 ac1 ab1"],
          [{ prefix: "ab" }, "abz ab2 ab1"],
          [{ prefix: "ab1" }, "ab1"],
          [{ prefix: "ab12" }, ""],
          [{ prefix: "B" }, ""],
          [{ prefix: "%" }, ""],
          [{ agent: "x" }, "abz b ab1"],
          [{ agent: "X" }, ""],
          [{ limit: 2 }, "abz b"],
          [{ limit: 0 }, ""],
          [{ limit: 2, before: "b" }, "ab2 ac1"],
          [{ before: "ab1" }, ""],
          [{ prefix: "a", agent: "y", before: "abz", limit: 1 }, "ab2"],
          [{ prefix: "a", agent: "y", before: "ab2", limit: 5 }, "ac1"],
          [{ owned: true }, "abz b ab2 ac1"],
          [{ owned: true, limit: 1 }, "abz"],
          [{ owned: true, agent: "x" }, "abz b"],
          [{ owned: true, prefix: "ab" }, "abz ab2"],
          [{ owned: true, before: "ac1" }, ""],
        ] as const)
          assert.equal((await journal.list(which)).map(({ id }) => id).join(" "), ids, JSON.stringify(which));
        await refuses("RUN_UNKNOWN", journal.list({ before: "nobody" }), /nobody/);
      }));

    it("gives the rows of the runs that are asked for, as the list has them, and counts all", () =>
      world(async (open) => {
        const journal = await open();
        assert.equal(await journal.count(), 0);
        const first = await journal.create({ ...newRun("first"), at: 200.5 }, [waited(1)]);
        await journal.create({ ...newRun("second"), agent: "other" });
        await (await journal.create(newRun("third"), [waited(1), waited(2)])).release();
        await first.append([answered(2, "last", {})]);
        const [third, second, one] = await journal.list();
        for (const [ids, rows] of [
          [["second"], [second]],
          [
            ["first", "third", "second"],
            [one, third, second],
          ],
          [["fir", "", "third", "FIRST"], [third]],
          [[], []],
        ] as const)
          assert.deepEqual(await journal.rows(ids), rows, ids.join(" "));
        assert.equal(await journal.count(), 3);
        await journal.remove("third");
        assert.equal(await journal.count(), 2);
        assert.deepEqual(await journal.rows(["third", "first"]), [one]);
      }));

    it("returns what all runs have written since, in order and in slices", () =>
      world(async (open) => {
        const journal = await open();
        assert.deepEqual(await newsOf(journal, ""), []);
        const start = (await journal.since()).cursor;
        const one = await journal.create(newRun("one"), [waited(1)]);
        const two = await journal.create(newRun("two"), [waited(1), waited(2)]);
        await one.append([waited(2)]);
        const middle = await journal.since();
        assert.deepEqual([middle.entries, middle.lost], [[], false]);
        await two.append([answered(3, "a text", {}), waited(4)]);
        await one.append([waited(3)]);
        const all = ["one 1", "two 1", "two 2", "one 2", "two 3", "two 4", "one 3"];
        for (const [cursor, limit, news] of [
          ["", 100, all],
          [start, 100, all],
          [middle.cursor, 100, all.slice(4)],
          [middle.cursor, 2, all.slice(4, 6)],
          [middle.cursor, 0, []],
        ] as const)
          assert.deepEqual(await newsOf(journal, cursor, limit), news, `${cursor}, ${limit}`);
        const slices: string[] = [];
        for (let cursor = ""; slices.length < all.length;) {
          const { cursor: next, entries } = await journal.since(cursor, 3);
          slices.push(...entries.map(({ run, seq }) => `${run} ${seq}`));
          cursor = next;
        }
        assert.deepEqual(slices, all);
        const { cursor, entries } = await journal.since(middle.cursor, 1);
        assert.deepEqual(entries[0]?.entry, answered(3, "a text", {}));
        assert.equal((await journal.since(cursor, 0)).cursor, cursor);
      }));

    it("never leaves out what was written after a cursor, also when what it stood for is removed", () =>
      world(async (open) => {
        const journal = await open();
        for (const removed of [["new"], ["old"], ["old", "new"], []]) {
          for (const id of ["old", "new"])
            await (await journal.create(newRun(id), [waited(1), waited(2)])).release();
          const { cursor } = await journal.since();
          for (const id of removed) await journal.remove(id);
          // As many entries as were removed, under the same numbers.
          await (await journal.create(newRun("next"), [waited(1), waited(2)])).release();
          const { lost, entries, cursor: now } = await journal.since(cursor);
          if (lost) assert.deepEqual(entries, []);
          else
            assert.deepEqual(
              entries.map(({ run, seq }) => `${run} ${seq}`),
              ["next 1", "next 2"],
            );
          assert.deepEqual(await newsOf(journal, now), []);
          for (const { id } of await journal.list()) await journal.remove(id);
        }
      }));

    it("removes many runs that are offered at once, and refuses each one that may not go", () =>
      world(async (open) => {
        const journal = await open();
        const ids = many(30).map((_, index) => `run-${index}`);
        for (const id of ids) await (await journal.create(newRun(id), [waited(1)])).release();
        const held = await journal.claim("run-7");
        const offered = await Promise.allSettled([...ids, "nobody"].map((id) => journal.remove(id)));
        const refused = offered.flatMap((one) =>
          one.status === "rejected" ? [(one.reason as { readonly code: string }).code] : [],
        );
        assert.deepEqual(refused, ["RUN_OWNED_ELSEWHERE", "RUN_UNKNOWN"]);
        assert.deepEqual(
          (await journal.list()).map(({ id }) => id),
          ["run-7"],
        );
        await held.append([waited(2)]);
        await journal.tidy();
        assert.deepEqual(seqs(await journal.read("run-7")), [1, 2]);
      }));

    it("reads a run in slices", () =>
      world(async (open) => {
        const journal = await open();
        await journal.create(newRun("r1"), [waited(1), waited(2), waited(3)]);
        for (const [after, limit, seqs] of [
          [0, 2, [1, 2]],
          [2, 2, [3]],
          [3, 2, []],
          [1, 1, [2]],
          [0, 0, []],
        ] as const)
          assert.deepEqual(
            (await journal.read("r1", after, limit)).map(({ seq }) => seq),
            seqs,
          );
        await refuses("RUN_UNKNOWN", journal.read("r2", 0, 1), /r2/);
      }));

    it("lists runs in the order they were made also when some were removed", () =>
      world(async (open) => {
        const journal = await open();
        const ids = async () => (await journal.list()).map(({ id }) => id);
        assert.deepEqual(await ids(), []);
        for (const id of ["b", "c", "a"]) await (await journal.create(newRun(id))).release();
        assert.deepEqual(await ids(), ["a", "c", "b"]);
        for (const id of ["b", "a"]) await journal.remove(id);
        for (const id of ["b", "d"]) await journal.create(newRun(id));
        assert.deepEqual(await ids(), ["d", "b", "c"]);
      }));

    it("keeps a flow once per digest", () =>
      world(async (open) => {
        const journal = await open();
        await journal.create({ ...newRun("r1"), digest: "d1", flow: aFlow("first") });
        await journal.create({ ...newRun("r2"), digest: "d2", flow: aFlow("second") });
        await journal.create({ ...newRun("r3"), digest: "d1", flow: aFlow("never stored") });
        assert.deepEqual(await journal.flow("d1"), aFlow("first"));
        assert.deepEqual(await journal.flow("d2"), aFlow("second"));
        assert.equal(await journal.flow("d3"), null);
      }));

    it("keeps the flows that entries adopt, whether a run is made with them or goes on with them", () =>
      world(async (open) => {
        const journal = await open();
        const made = { d2: aFlow("second"), "digest-1": aFlow("never stored") };
        const handle = await journal.create(newRun("r1"), [waited(1), adopted(2, "d2")], made);
        await handle.append([adopted(3, "d3")], { d3: aFlow("third") });
        const refused = handle.append([adopted(3, "d4")], { d4: aFlow("fourth") });
        await refuses("ENTRY_OUT_OF_ORDER", refused, /r1/);
        assert.deepEqual(await journal.flow("digest-1"), aFlow("a flow"));
        assert.deepEqual(await journal.flow("d2"), aFlow("second"));
        assert.deepEqual(await journal.flow("d3"), aFlow("third"));
        assert.equal(await journal.flow("d4"), null);
      }));

    it("reports the size of a run", () =>
      world(async (open) => {
        const journal = await open();
        const entries = [waited(1), answered(2, "naïve 日本", {})];
        const handle = await journal.create(newRun("r1"));
        assert.equal(await journal.size("r1"), 0);
        await handle.append(entries);
        const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
        assert.equal(await journal.size("r1"), bytes);
        await refuses("RUN_UNKNOWN", journal.size("r2"), /r2/);
      }));

    it("keeps entries of any size, alone and among small ones, and reports their size", () =>
      world(async (open) => {
        const journal = await open();
        const huge = answered(2, "naïve 日本 ".repeat(200_000), {});
        const entries = [waited(1), huge, waited(3), answered(4, "x".repeat(300_000), {})];
        const handle = await journal.create(newRun("r1"), entries.slice(0, 2));
        await handle.append(entries.slice(2));
        await journal.create(newRun("r2"), [waited(1), huge]);
        assert.deepEqual(await journal.read("r1"), entries);
        assert.deepEqual(await journal.read("r1", 3), entries.slice(3));
        assert.deepEqual((await journal.list()).find(({ id }) => id === "r1")?.last, entries[3]);
        const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
        assert.equal(await journal.size("r1"), bytes);
        await handle.release();
        await journal.remove("r1");
        assert.deepEqual(await journal.read("r2"), [waited(1), huge]);
      }));

    it("has another version after whatever was written, and the same one after nothing", () =>
      world(async (open) => {
        const journal = await open();
        const versions = [await journal.version()];
        const note = async () => versions.push(await journal.version());
        const handle = await journal.create(newRun("r1"));
        await note();
        await handle.append([waited(1)]);
        await note();
        await handle.release();
        await note();
        await journal.remove("r1");
        await note();
        assert.equal(new Set(versions).size, 5);
        await journal.list();
        assert.equal(await journal.version(), versions.at(-1));
      }));

    it("removes a run, and lets its id be used again", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"), [waited(1)]);
        const other = await journal.create(newRun("r2"), [waited(1)]);
        await handle.release();
        await journal.remove("r1");
        await refuses("RUN_UNKNOWN", journal.read("r1"), /r1/);
        await refuses("RUN_UNKNOWN", journal.claim("r1"), /r1/);
        await refuses("RUN_UNKNOWN", journal.remove("r1"), /r1/);
        assert.deepEqual(
          (await journal.list()).map(({ id }) => id),
          ["r2"],
        );
        await other.append([waited(2)]);
        const again = await journal.create(newRun("r1"));
        await again.append([waited(1)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1]);
      }));

    it("does not let the writer of a removed run write into the one made after it", () =>
      world(async (open) => {
        const journal = await open();
        const stale = await journal.create(newRun("r1"), [waited(1)]);
        await stale.release();
        await journal.remove("r1");
        const fresh = await journal.create(newRun("r2"), [waited(1)]);
        await refuses("RUN_UNKNOWN", stale.append([waited(2)]), /r1/);
        await stale.release();
        await fresh.append([waited(2)]);
        assert.deepEqual(seqs(await journal.read("r2")), [1, 2]);
      }));

    it("does not remove a run that is being driven", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"), [waited(1)]);
        await refuses("RUN_OWNED_ELSEWHERE", journal.remove("r1"), /r1/);
        await handle.append([waited(2)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
      }));

    it("keeps many runs apart that are written at once", () =>
      world(async (open) => {
        const journal = await open();
        const ids = many(40).map((_, index) => `run-${index}`);
        const handles = await Promise.all(ids.map((id) => journal.create(newRun(id))));
        const drive = async (handle: RunHandle, steps: number) => {
          for (const [index] of many(steps).entries()) {
            await handle.append([answered(index + 1, `${handle.run} says ${index}`, {})]);
          }
        };
        await Promise.all(handles.map((handle, index) => drive(handle, 1 + (index % 7))));
        for (const [index, id] of ids.entries()) {
          const expected = many(1 + (index % 7)).map((_, step) =>
            answered(step + 1, `${id} says ${step}`, {}),
          );
          assert.deepEqual(await journal.read(id), expected);
        }
      }));

    it("does nothing any more once it is closed, and can be closed again", () =>
      world(async (open) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"));
        await journal.close();
        await refuses("JOURNAL_UNAVAILABLE", journal.create(newRun("r2")));
        await refuses("JOURNAL_UNAVAILABLE", journal.claim("r1"));
        await refuses("JOURNAL_UNAVAILABLE", journal.read("r1"));
        await refuses("JOURNAL_UNAVAILABLE", journal.flow("digest-1"));
        await refuses("JOURNAL_UNAVAILABLE", journal.list());
        await refuses("JOURNAL_UNAVAILABLE", journal.rows(["r1"]));
        await refuses("JOURNAL_UNAVAILABLE", journal.count());
        await refuses("JOURNAL_UNAVAILABLE", journal.since(""));
        await refuses("JOURNAL_UNAVAILABLE", journal.tidy());
        await refuses("JOURNAL_UNAVAILABLE", journal.size("r1"));
        await refuses("JOURNAL_UNAVAILABLE", journal.version());
        await refuses("JOURNAL_UNAVAILABLE", journal.remove("r1"));
        await refuses("JOURNAL_UNAVAILABLE", handle.append([waited(1)]));
        await handle.release();
        await journal.close();
      }));

    it("shows a second journal what the first has written, at once", together, () =>
      world(async (open) => {
        const [writer, reader] = [await open(), await open()];
        const handle = await writer.create(newRun("r1"));
        for (const [index] of many(3).entries()) {
          await handle.append([waited(index + 1)]);
          assert.deepEqual(seqs(await reader.read("r1", index)), [index + 1]);
        }
        assert.deepEqual(await reader.flow("digest-1"), newRun("r1").flow);
        assert.deepEqual(await reader.list(), await writer.list());
        assert.deepEqual(await reader.rows(["r1"]), await writer.list());
        assert.deepEqual(await newsOf(reader, ""), ["r1 1", "r1 2", "r1 3"]);
      }),
    );

    it("keeps a run from a second journal while the first one drives it", together, () =>
      world(async (open) => {
        const [first, second] = [await open(), await open()];
        const handle = await first.create(newRun("r1"));
        await refuses("RUN_OWNED_ELSEWHERE", second.claim("r1"), /r1/);
        await refuses("RUN_EXISTS", second.create(newRun("r1")), /r1/);
        await handle.release();
        const taken = await second.claim("r1");
        assert.equal(taken.epoch, 2);
        await refuses("RUN_OWNED_ELSEWHERE", first.claim("r1"), /r1/);
        await refuses("RUN_OWNED_ELSEWHERE", handle.append([waited(1)]), /r1/);
        await taken.append([waited(1)]);
        assert.deepEqual(seqs(await first.read("r1")), [1]);
      }),
    );

    it("lets a second journal take over what the first one drives", together, () =>
      world(async (open) => {
        const [first, second] = [await open(), await open()];
        const [taken, kept] = [await first.create(newRun("r1")), await first.create(newRun("r2"))];
        const fresh = await second.claim("r1", { takeOver: true });
        await refuses("RUN_OWNED_ELSEWHERE", taken.append([waited(1)]), /r1/);
        await refuses("RUN_OWNED_ELSEWHERE", first.claim("r1"), /r1/);
        await fresh.append([waited(1)]);
        await kept.append([waited(1)]);
        await first.close();
        await fresh.append([waited(2)]);
        assert.equal((await second.list()).find(({ id }) => id === "r1")?.owned, true);
      }),
    );

    it(
      "does not remove a run that another journal owns, and notifies a second journal of every change",
      together,
      () =>
        world(async (open) => {
          const [first, second] = [await open(), await open()];
          const handle = await first.create(newRun("r1"));
          await refuses("RUN_OWNED_ELSEWHERE", second.remove("r1"), /r1/);
          const before = await second.version();
          await handle.append([waited(1)]);
          assert.notEqual(await second.version(), before);
          await handle.release();
          await second.remove("r1");
          await refuses("RUN_UNKNOWN", first.read("r1"), /r1/);
        }),
    );

    it("forgets the flows that no run needs once a journal that removed runs is closed", together, () =>
      world(async (open) => {
        const first = await open();
        const runs = [
          { ...newRun("r1"), digest: "d1", flow: aFlow("first") },
          { ...newRun("r2"), digest: "d2", flow: aFlow("second") },
        ];
        const made = { d3: aFlow("third"), d4: aFlow("fourth") };
        const [one, two] = await Promise.all([
          first.create(runs[0]!, [adopted(1, "d3"), adopted(2, "d4")], made),
          first.create(runs[1]!, [adopted(1, "d3")], made),
        ]);
        await Promise.all([one.release(), two.release()]);
        await first.remove("r1");
        await first.close();
        const second = await open();
        const flows = await Promise.all(["d1", "d2", "d3", "d4"].map((digest) => second.flow(digest)));
        assert.deepEqual(flows, [null, aFlow("second"), aFlow("third"), null]);
      }),
    );

    it("releases its runs and keeps their entries when it is closed", together, () =>
      world(async (open) => {
        const first = await open();
        const handle = await first.create(newRun("r1"));
        const unwaited = handle.append([waited(1)]);
        await first.close();
        await unwaited;
        const second = await open();
        assert.deepEqual(
          (await second.list()).map(({ owned }) => owned),
          [false],
        );
        const next = await second.claim("r1");
        assert.equal(next.epoch, 2);
        await next.append([waited(2)]);
        assert.deepEqual(seqs(await second.read("r1")), [1, 2]);
      }),
    );
  });
}

const ODD_TEXTS = {
  "plain words": "hello",
  nothing: "",
  "quotes and line ends": "'\"`\\ \r\n\t\u2028\u2029",
  "control characters": "\u0000\u0001\u001f\u007f\ufeff",
  "many scripts": "héllo Ωμέγα 日本語 עברית हिन्दी e\u0301",
  "beyond the basic plane": "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 𝕊 \u{10ffff}",
  "half of a surrogate pair": "\ud83d and \udc00",
  "a long text": "0123456789abcdé".repeat(20_000),
};

function newRun(id: string): NewRun {
  return { id, agent: "agent", at: 1_000, digest: "digest-1", flow: aFlow("a flow") };
}

/** A journal keeps a flow without ever looking into it. */
function aFlow(title: string): Flow {
  return { ir: 1, title, steps: {} } as unknown as Flow;
}

function waited(seq: number): Entry {
  return { seq, at: 1_000 + seq, event: { type: "step.waited", step: "s", visit: seq, ms: 5 } };
}

function adopted(seq: number, flow: string): Entry {
  return { seq, at: 1_000 + seq, event: { type: "run.adopted", flow } };
}

function answered(seq: number, text: string, output: JsonObject): Entry {
  const usage = { turns: 1, inputTokens: 10, outputTokens: 2, costUsd: null };
  const reply = { kind: "said", text, calls: [], output, usage } as const;
  return { seq, at: 1_000 + seq, event: { type: "step.answered", step: "s", visit: seq, turn: 1, reply } };
}

function seqs(entries: readonly Entry[]): readonly number[] {
  return entries.map(({ seq }) => seq);
}

function many<T = undefined>(count: number, value?: T): T[] {
  return Array.from({ length: count }, () => value as T);
}

async function newsOf(journal: Journal, cursor: string, limit?: number): Promise<readonly string[]> {
  const { entries, lost } = await journal.since(cursor, limit);
  assert.equal(lost, false);
  return entries.map(({ run, seq }) => `${run} ${seq}`);
}

async function refuses(code: string, promise: Promise<unknown>, message = /./): Promise<void> {
  await assert.rejects(promise, { name: "RunnerError", code, message });
}

async function settled<T>(result: PromiseSettledResult<T>): Promise<T> {
  if (result.status === "rejected") throw result.reason;
  return result.value;
}
