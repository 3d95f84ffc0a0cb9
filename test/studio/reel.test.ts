/** What the studio shows of a run, at every entry of every recorded fixture, against the folds that the commands use. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openQuestions } from "../../src/engine/decide/people.ts";
import { EMPTY_STATE } from "../../src/engine/decide/state.ts";
import type { Backend, Journal, RunRow } from "../../src/engine/ports.ts";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { createMemoryJournal } from "../../src/run/index.ts";
import { journalOf, parseBundle } from "../../src/run/records/bundle.ts";
import { readRow, show, shownOf } from "../../src/run/records/runs.ts";
import { story } from "../../src/story/story.ts";
import { createTally, addToTally, tallied } from "../../src/story/tally.ts";
import { traceOf } from "../../src/story/visits.ts";
import type { Frame, TakenWay } from "../../src/tell/frames.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play } from "../../src/testing/scenario.ts";
import { createShelf } from "../../src/studio/shelf.ts";
import { JOURNALS } from "../run/golden.ts";

const fixtures = readdirSync(JOURNALS).filter((name) => name.endsWith(".json"));

async function open(name: string): Promise<{ readonly journal: Journal; readonly row: RunRow }> {
  const journal = await journalOf(parseBundle(readFileSync(join(JOURNALS, name), "utf8"), name));
  const [row] = await journal.list();
  return { journal, row: row! };
}

/** Lanes after each frame: a frame that says 0 keeps those before it. */
function lanesAfter(frames: readonly Frame[]): readonly unknown[] {
  let lanes: unknown = [];
  return frames.map((frame) => (lanes = frame[5] === 0 ? lanes : frame[5]));
}

/** A stop rule ends a run, or sends it back by its checks, without an edge of the step. */
const STOPPED: { readonly [name: string]: readonly TakenWay[] } = {
  "verdict-keyword.json": [
    ["work", "work", "done", "back"],
    ["work", null, "done"],
  ],
  "verdict-outside.json": [["work", null, "done"]],
};

for (const name of fixtures) {
  test(`${name}: frames, states and the document are those of the folds, at every entry`, async () => {
    const { journal, row } = await open(name);
    const { flow, entries, adopted } = await readRow(journal, row);
    const { fold, damage } = await createShelf().look("reel", journal, row);
    assert.equal(damage, null);
    assert.equal(fold.frames.count(), entries.length);
    const frames = fold.frames.slice(0);
    const lanes = lanesAfter(frames);
    const tally = createTally();
    let turns = 0;
    let asks = 0;
    for (const { entry, after } of story(flow, entries, adopted)) {
      const frame = frames[entry.seq - 1]!;
      const { event } = entry;
      const at = "step" in event ? [event.step, event.visit] : [null, 0];
      assert.deepEqual(frame.slice(0, 5), [entry.seq, frame[1], event.type, ...at]);
      const under = [
        ...after.lanes.map(({ step, visit, command }) => [step, visit, command.type]),
        ...after.halted.map(({ step, visit, command }) => [step, visit, command.type, 1]),
      ];
      assert.deepEqual(lanes[entry.seq - 1], under);
      turns += frame[6]?.used?.[0] ?? 0;
      assert.equal(turns, after.usage.turns);
      asks = frame[6]?.asks ?? asks;
      assert.equal(asks, openQuestions(after).length);
      addToTally(tally, entry, after);
      const moment = await fold.at(journal, row, entry.seq);
      assert.deepEqual([moment.entry, moment.after], [entry, after]);
      assert.deepEqual(
        fold
          .lanesAt(entry.seq)
          .map(({ step, visit, doing, halted }) => (halted ? [step, visit, doing, 1] : [step, visit, doing])),
        under,
      );
      assert.ok(fold.lanesAt(entry.seq).every(({ since }) => since <= entry.at));
    }
    assert.deepEqual(fold.standing(row, null, row.createdAt).result.steps, tallied(tally));
    const now = Date.now();
    assert.deepEqual(shownOf(fold.standing(row, null, now)), await show(journal, row.id, now));
    const visits = traceOf(flow, entries, adopted).visits.map(({ step, visit, begun }) => [
      step,
      visit,
      begun,
    ]);
    const own = (await Array.fromAsync(fold.visits())).filter(
      ({ step }) => flow.steps[step]?.aside === undefined,
    );
    assert.deepEqual(
      own.map(({ step, visit, seq }) => [step, visit, seq]),
      visits,
    );
  });

  test(`${name}: every edge that was taken is an edge of the drawing, and every visit was led to once`, async () => {
    const { journal, row } = await open(name);
    const { fold } = await createShelf().look("reel", journal, row);
    const ways = fold.frames.slice(0).flatMap((frame) => frame[6]?.ways ?? []);
    const { edges } = outlineOf(fold.flow());
    const isDrawn = ([from, to, label, how]: TakenWay) =>
      edges.some(
        (edge) =>
          edge.from === from &&
          (edge.label === label || edge.as === label) &&
          (how === "back") === (edge.kind === "back") &&
          (to === null
            ? edge.to.kind === "end"
            : (edge.to.kind === "step" && edge.to.step === to) ||
              (edge.to.kind === "any" && edge.to.among.includes(to))),
      );
    const odd = ways
      .filter(([from, , label]) => from !== null && label !== null)
      .filter((way) => !isDrawn(way));
    assert.deepEqual(
      odd,
      STOPPED[name] ?? [],
      JSON.stringify(edges.map(({ from, label, kind, to }) => [from, label, kind, to])),
    );
    assert.equal(ways.filter(([from]) => from === null).length, 1);
    const end = fold.frames.slice(0).findLast((frame) => frame[6]?.ended !== undefined)?.[6]?.ended;
    assert.equal(
      ways.some(([, to]) => to === null),
      end?.[0] === "completed",
      String(end),
    );
    // What began was led to: each visit by one way, and only the siblings of a fork meet in one.
    const begun = fold.frames.slice(0).flatMap((frame) => frame[6]?.began ?? []);
    const led = new Set(ways.map(([, to]) => to));
    assert.deepEqual(
      begun.filter(([step]) => !led.has(step)),
      [],
    );
  });
}

function answering(output: JsonObject): Backend {
  const usage = { turns: 1, inputTokens: 3, outputTokens: 2, costUsd: 0.5 };
  return {
    spec: { id: "test", options: null },
    turn: () => Promise.resolve({ kind: "reply", text: "", calls: [], output, usage }),
  };
}

for (const name of fixtures)
  test(`${name}: no name leaves the frames as it is where it has to be hidden`, async () => {
    const { journal, row } = await open(name);
    const { fold } = await createShelf(() => "hidden").look("reel", journal, row);
    const text = fold.frames.bytes(0, fold.frames.count()).join("");
    const { steps, checks } = fold.flow();
    for (const word of [...Object.keys(steps), ...Object.keys(checks)])
      assert.equal(text.includes(JSON.stringify(word)), false, word);
    assert.equal(fold.frames.slice(0).length, fold.frames.count());
  });

test("the state at any entry of a long run is worked out from one that is near", async () => {
  const flow = sketchFlow(
    { a: { edges: { next: "b" } }, b: { edges: { next: "a" } } },
    { stop: { kind: "visits", count: 1100 }, limits: { visits: 1100 } },
  );
  const { entries } = await play({ flow, model: answering({ next_action: { action: "next" } }) });
  const journal = createMemoryJournal();
  await journal.create({ id: "long", agent: "sketch", at: 0, digest: "digest", flow }, entries);
  const reads: number[] = [];
  const counted: Journal = {
    ...journal,
    read: async (run, after = 0, limit = Infinity) => {
      reads.push(Math.min(limit, entries.length - after));
      return await journal.read(run, after, limit);
    },
  };
  const [row] = await journal.list();
  const { fold } = await createShelf().look("reel", counted, row!);
  const states = [...story(await prepare(flow), entries)].map(({ after }) => after);
  reads.length = 0;
  for (const seq of [1, 2, 499, 500, 501, 502, 999, 1000, 1001, entries.length]) {
    const { entry, after, before } = await fold.at(counted, row!, seq);
    assert.deepEqual(
      [entry.seq, after, before],
      [seq, states[seq - 1], states[seq - 2] ?? EMPTY_STATE],
      String(seq),
    );
  }
  assert.ok(Math.max(...reads) <= 500, String(reads));
});

test("a run that goes on is read on where it was left, and another run under the same name is read anew", async () => {
  const { journal, row } = await open("gate.json");
  const all = await journal.read(row.id);
  const read: [number, number][] = [];
  let end = 5;
  const growing: Journal = {
    ...journal,
    read: async (run, after = 0, limit) => {
      const slice = all.slice(after, Math.min(end, after + (limit ?? all.length)));
      read.push([after, slice.length]);
      return await Promise.resolve(run === row.id ? slice : []);
    },
  };
  const shelf = createShelf();
  const first = await shelf.look("reel", growing, { ...row, events: 5 });
  assert.equal(first.fold.frames.count(), 5);
  end = all.length;
  const second = await shelf.look("reel", growing, row);
  assert.equal(second.fold, first.fold);
  assert.equal(second.fold.frames.count(), all.length);
  assert.deepEqual(read, [
    [0, 5],
    [5, all.length - 5],
  ]);
  await shelf.look("reel", growing, row);
  assert.equal(read.length, 2);
  const other = await shelf.look("reel", growing, { ...row, createdAt: row.createdAt + 1 });
  assert.notEqual(other.fold, first.fold);
  assert.deepEqual(other.fold.frames.slice(0), first.fold.frames.slice(0));
});

test("what is kept stays below its bound, and what was looked at last stays", async () => {
  const shelf = createShelf(undefined, 30_000);
  const opened = await Promise.all(fixtures.map(open));
  for (const { journal, row } of opened) {
    await shelf.look("talk", journal, row);
    await shelf.look("reel", journal, row);
  }
  const { journal, row } = opened.at(-1)!;
  const before = await shelf.look("reel", journal, row);
  assert.equal((await shelf.look("reel", journal, row)).fold, before.fold);
  assert.ok(shelf.weight() <= 60_000, String(shelf.weight()));
  for (const one of opened) shelf.forget(one.row.id);
  assert.equal(shelf.weight(), 0);
});

test("requests for the same run at the same time read it once", async () => {
  const { journal, row } = await open("stages.json");
  let reads = 0;
  const counted: Journal = {
    ...journal,
    read: async (...asked) => {
      reads += 1;
      return await journal.read(...asked);
    },
  };
  const shelf = createShelf();
  const looks = await Promise.all(
    Array.from({ length: 5 }, async () => await shelf.look("log", counted, row)),
  );
  assert.equal(new Set(looks.map(({ fold }) => fold)).size, 1);
  assert.equal(looks[0]!.fold.length, new Set(looks[0]!.fold).size);
  // The others find nothing new.
  assert.ok(reads <= 5);
  assert.equal(looks[0]!.fold.filter(({ message }) => message.startsWith("Run started")).length, 1);
});

for (const name of fixtures)
  test(`${name}: a row of the list says the same, whether or not the screen of the run is open`, async () => {
    const { journal, row } = await open(name);
    const alone = await createShelf().look("line", journal, row);
    let reads = 0;
    const counted: Journal = {
      ...journal,
      read: async (...asked) => {
        reads += 1;
        return await journal.read(...asked);
      },
    };
    const shelf = createShelf();
    await shelf.look("reel", counted, row);
    const before = reads;
    const beside = await shelf.look("line", counted, row);
    assert.equal(reads, before);
    assert.deepEqual(
      [beside.fold.facts(), beside.fold.questions(row), beside.fold.answered(row), beside.damage],
      [alone.fold.facts(), alone.fold.questions(row), alone.fold.answered(row), alone.damage],
    );
  });

test("the first entries of a long run are there while the rest is read", async () => {
  const flow = sketchFlow(
    { a: { edges: { next: "a" } } },
    { stop: { kind: "visits", count: 900 }, limits: { visits: 900 } },
  );
  const { entries } = await play({ flow, model: answering({ next_action: { action: "next" } }) });
  const journal = createMemoryJournal();
  await journal.create({ id: "long", agent: "sketch", at: 0, digest: "digest", flow }, entries);
  const { promise: rest, resolve: goOn } = Promise.withResolvers<void>();
  const halting: Journal = {
    ...journal,
    read: async (run, after = 0, limit) => {
      if (after >= 400) await rest;
      return await journal.read(run, after, limit);
    },
  };
  const [row] = await journal.list();
  const shelf = createShelf();
  for (const least of [1, 400]) {
    const { fold, isWhole } = await shelf.look("reel", halting, row!, least);
    assert.ok(fold.frames.count() >= least && fold.frames.count() <= 400, String(fold.frames.count()));
    assert.equal(isWhole, false);
  }
  const looking = shelf.look("reel", halting, row!, 401);
  const early = await Promise.race([looking, new Promise<null>((resolve) => setImmediate(resolve, null))]);
  assert.equal(early, null);
  goOn();
  assert.ok((await looking).fold.frames.count() > 400);
  const { fold, isWhole } = await shelf.look("reel", halting, row!);
  assert.deepEqual([fold.frames.count(), isWhole], [entries.length, true]);
});
