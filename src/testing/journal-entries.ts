/** What every journal must do with entries and flows: keep them whole, in order, and give them back. */
import assert from "node:assert/strict";
import type { Entry } from "../flow/event.ts";
import type { JsonObject } from "../flow/json.ts";
import {
  newRun,
  aFlow,
  waited,
  adopted,
  spoken,
  seqs,
  refuses,
  type JournalCases,
} from "./journal-samples.ts";

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

const MISNUMBERED = {
  "repeats the last one": [waited(2)],
  "repeats the first one": [waited(1)],
  "leaves a gap": [waited(4)],
  "counts from zero": [waited(0)],
  "leaves a gap further on": [waited(3), waited(5)],
  "repeats itself further on": [waited(3), waited(3)],
};

export const entryCases: JournalCases = {
  ...Object.fromEntries(
    Object.entries(ODD_TEXTS).map(([script, text]): [string, JournalCases[string]] => [
      `gives back what was appended: ${script}`,
      async (journal) => {
        const handle = await journal.create(newRun("r1"));
        const entry = spoken(1, text, { [text]: text, list: [text, null, 0.1, -1e21] });
        await handle.append([entry]);
        assert.deepEqual(await journal.read("r1"), [entry]);
      },
    ]),
  ),

  "gives back everything an entry holds, a member named __proto__ included": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    const output = JSON.parse('{"__proto__":{"admin":true},"constructor":1}') as JsonObject;
    const led = { step: "s", visit: 1, label: "next", to: null, notes: ["put right"] } as const;
    await handle.append([{ ...spoken(1, "", output), led }]);
    assert.deepEqual(await journal.read("r1"), [{ ...spoken(1, "", output), led }]);
  },

  "keeps the order of entries, of appends, and of appends that were not waited for": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await handle.append([waited(1), waited(2), waited(3)]);
    await Promise.all([handle.append([waited(4)]), handle.append([waited(5), waited(6)])]);
    await handle.append([waited(7)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3, 4, 5, 6, 7]);
  },

  "reads only what came after a given entry": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await handle.append([waited(1), waited(2), waited(3)]);
    assert.deepEqual(seqs(await journal.read("r1", 0)), [1, 2, 3]);
    assert.deepEqual(seqs(await journal.read("r1", 2)), [3]);
    assert.deepEqual(seqs(await journal.read("r1", 3)), []);
    assert.deepEqual(seqs(await journal.read("r1", 99)), []);
  },

  "does not change what was read when more is appended": async (journal) => {
    const handle = await journal.create(newRun("r1"));
    await handle.append([waited(1)]);
    const before = await journal.read("r1");
    await handle.append([waited(2)]);
    assert.deepEqual(seqs(before), [1]);
  },

  "makes a run together with its first entries": async (journal) => {
    const handle = await journal.create(newRun("r1"), [waited(1), waited(2)]);
    await handle.append([waited(3)]);
    assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3]);
    await refuses("ENTRY_OUT_OF_ORDER", journal.create(newRun("r2"), [waited(2)]), /r2/);
    await refuses("RUN_UNKNOWN", journal.read("r2"), /r2/);
  },

  ...Object.fromEntries(
    Object.entries(MISNUMBERED).map(([what, entries]): [string, JournalCases[string]] => [
      `refuses an append that ${what}, writes nothing of it, and goes on`,
      async (journal) => {
        const handle = await journal.create(newRun("r1"));
        await handle.append([waited(1), waited(2)]);
        await refuses("ENTRY_OUT_OF_ORDER", handle.append(entries), /r1/);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2]);
        await handle.append([waited(3)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3]);
      },
    ]),
  ),

  "reads a run in slices": async (journal) => {
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
  },

  "reads a long run from anywhere, whole or in part": async (journal) => {
    const long = 1_201;
    await journal.create(
      newRun("r1"),
      Array.from({ length: long }, (_, place) => waited(place + 1)),
    );
    for (const [after, limit, first, last] of [
      [0, undefined, 1, long],
      [0, 500, 1, 500],
      [0, 501, 1, 501],
      [200, 1_000, 201, 1_200],
      [201, 1_000, 202, long],
      [202, 5_000, 203, long],
      [1_200, undefined, long, long],
    ] as const) {
      const read = await journal.read("r1", after, limit);
      const expected = Array.from({ length: last - first + 1 }, (_, place) => first + place);
      assert.deepEqual(seqs(read), expected, `${limit} after ${after}`);
    }
  },

  "gives every entry its own names back, however many there are": async (journal) => {
    const names = [
      "",
      "__proto__",
      "constructor",
      "1",
      "a b",
      ...Array.from({ length: 1_100 }, (_, n) => `s${n}`),
    ];
    const entries = [...names, ...names.toReversed()].map((step, place) => {
      const { seq, at, event } = waited(place + 1);
      const led = { step, visit: 1, label: null, to: place % 2 === 0 ? step : null };
      return { seq, at, event: { ...event, step }, led } as Entry;
    });
    await journal.create(newRun("r1"), entries);
    assert.deepEqual(await journal.read("r1"), entries);
  },

  "keeps a flow once per digest": async (journal) => {
    await journal.create({ ...newRun("r1"), digest: "d1", flow: aFlow("first") });
    await journal.create({ ...newRun("r2"), digest: "d2", flow: aFlow("second") });
    await journal.create({ ...newRun("r3"), digest: "d1", flow: aFlow("never stored") });
    assert.deepEqual(await journal.flow("d1"), aFlow("first"));
    assert.deepEqual(await journal.flow("d2"), aFlow("second"));
    assert.equal(await journal.flow("d3"), null);
  },

  "keeps the flows that entries adopt, whether a run is made with them or goes on with them": async (
    journal,
  ) => {
    const made = { d2: aFlow("second"), "digest-1": aFlow("never stored") };
    const handle = await journal.create(newRun("r1"), [waited(1), adopted(2, "d2")], made);
    await handle.append([adopted(3, "d3")], { d3: aFlow("third") });
    const refused = handle.append([adopted(3, "d4")], { d4: aFlow("fourth") });
    await refuses("ENTRY_OUT_OF_ORDER", refused, /r1/);
    assert.deepEqual(await journal.flow("digest-1"), aFlow("a flow"));
    assert.deepEqual(await journal.flow("d2"), aFlow("second"));
    assert.deepEqual(await journal.flow("d3"), aFlow("third"));
    assert.equal(await journal.flow("d4"), null);
  },

  "reports the size of a run": async (journal) => {
    const entries = [waited(1), spoken(2, "naïve 日本", {})];
    const handle = await journal.create(newRun("r1"));
    assert.equal(await journal.size("r1"), 0);
    await handle.append(entries);
    const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
    assert.equal(await journal.size("r1"), bytes);
    await refuses("RUN_UNKNOWN", journal.size("r2"), /r2/);
  },

  "keeps entries of any size, alone and among small ones, and reports their size": async (journal) => {
    const huge = spoken(2, "naïve 日本 ".repeat(200_000), {});
    const entries = [waited(1), huge, waited(3), spoken(4, "x".repeat(300_000), {})];
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
  },
};
