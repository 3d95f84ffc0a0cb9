/** What every journal must do with many runs: list, count and remove them, and report what is new. */
import assert from "node:assert/strict";
import type { RunHandle } from "../engine/ports.ts";
import {
  newRun,
  waited,
  spoken,
  seqs,
  idsOf,
  many,
  newsOf,
  refuses,
  type JournalCases,
} from "./journal-samples.ts";

export const listCases: JournalCases = {
  "lists the run made last first, whatever the clock said, with its last entry and whether it is being driven":
    async (journal) => {
      const first = await journal.create({ ...newRun("first"), at: 200.5 });
      await journal.create({ ...newRun("second"), at: 300, agent: "other" });
      const third = await journal.create({ ...newRun("third"), at: 100 });
      await first.append([waited(1), spoken(2, "last", {})]);
      await third.append([waited(1)]);
      await third.release();
      const about = { agent: "agent", digest: "digest-1" };
      assert.deepEqual(await journal.list(), [
        { ...about, id: "third", createdAt: 100, events: 1, last: waited(1), owned: false },
        { ...about, id: "second", agent: "other", createdAt: 300, events: 0, last: null, owned: true },
        { ...about, id: "first", createdAt: 200.5, events: 2, last: spoken(2, "last", {}), owned: true },
      ]);
    },

  "lists a part of the runs: by the beginning of their ids, by agent, page by page": async (journal) => {
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
  },

  "gives the rows of the runs that are asked for, as the list has them, and counts all": async (journal) => {
    assert.equal(await journal.count(), 0);
    const first = await journal.create({ ...newRun("first"), at: 200.5 }, [waited(1)]);
    await journal.create({ ...newRun("second"), agent: "other" });
    await (await journal.create(newRun("third"), [waited(1), waited(2)])).release();
    await first.append([spoken(2, "last", {})]);
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
  },

  "returns what all runs have written since, in order and in slices": async (journal) => {
    assert.deepEqual(await newsOf(journal, ""), []);
    const start = (await journal.since()).cursor;
    const one = await journal.create(newRun("one"), [waited(1)]);
    const two = await journal.create(newRun("two"), [waited(1), waited(2)]);
    await one.append([waited(2)]);
    const middle = await journal.since();
    assert.deepEqual([middle.entries, middle.lost], [[], false]);
    await two.append([spoken(3, "a text", {}), waited(4)]);
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
    assert.deepEqual(entries[0]?.entry, spoken(3, "a text", {}));
    assert.equal((await journal.since(cursor, 0)).cursor, cursor);
  },

  "never leaves out what was written after a cursor, also when what it stood for is removed": async (
    journal,
  ) => {
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
  },

  "removes many runs that are offered at once, and refuses each one that may not go": async (journal) => {
    const ids = many(30).map((_, index) => `run-${index}`);
    for (const id of ids) await (await journal.create(newRun(id), [waited(1)])).release();
    const held = await journal.claim("run-7");
    const offered = await Promise.allSettled([...ids, "nobody"].map((id) => journal.remove(id)));
    const refused = offered.flatMap((one) =>
      one.status === "rejected" ? [(one.reason as { readonly code: string }).code] : [],
    );
    assert.deepEqual(refused, ["RUN_OWNED_ELSEWHERE", "RUN_UNKNOWN"]);
    assert.deepEqual(idsOf(await journal.list()), ["run-7"]);
    await held.append([waited(2)]);
    await journal.tidy();
    assert.deepEqual(seqs(await journal.read("run-7")), [1, 2]);
  },

  "lists runs in the order they were made also when some were removed": async (journal) => {
    const ids = async () => idsOf(await journal.list());
    assert.deepEqual(await ids(), []);
    for (const id of ["b", "c", "a"]) await (await journal.create(newRun(id))).release();
    assert.deepEqual(await ids(), ["a", "c", "b"]);
    for (const id of ["b", "a"]) await journal.remove(id);
    for (const id of ["b", "d"]) await journal.create(newRun(id));
    assert.deepEqual(await ids(), ["d", "b", "c"]);
  },

  "has another version after whatever was written, and the same one after nothing": async (journal) => {
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
  },

  "removes a run, and lets its id be used again": async (journal) => {
    const handle = await journal.create(newRun("r1"), [waited(1)]);
    const other = await journal.create(newRun("r2"), [waited(1)]);
    await handle.release();
    await journal.remove("r1");
    await refuses("RUN_UNKNOWN", journal.read("r1"), /r1/);
    await refuses("RUN_UNKNOWN", journal.claim("r1"), /r1/);
    await refuses("RUN_UNKNOWN", journal.remove("r1"), /r1/);
    assert.deepEqual(idsOf(await journal.list()), ["r2"]);
    await other.append([waited(2)]);
    const again = await journal.create(newRun("r1"));
    await again.append([waited(1)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1]);
  },

  "keeps many runs apart that are written at once": async (journal) => {
    const ids = many(40).map((_, index) => `run-${index}`);
    const handles = await Promise.all(ids.map((id) => journal.create(newRun(id))));
    const drive = async (handle: RunHandle, steps: number) => {
      for (const [index] of many(steps).entries()) {
        await handle.append([spoken(index + 1, `${handle.run} says ${index}`, {})]);
      }
    };
    await Promise.all(handles.map((handle, index) => drive(handle, 1 + (index % 7))));
    for (const [index, id] of ids.entries()) {
      const expected = many(1 + (index % 7)).map((_, step) => spoken(step + 1, `${id} says ${step}`, {}));
      assert.deepEqual(await journal.read(id), expected);
    }
  },
};
