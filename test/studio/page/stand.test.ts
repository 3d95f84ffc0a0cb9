/** What the page works out of frames, against the folds that the commands use, on every recorded fixture. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { journalOf, parseBundle } from "../../../src/run/records/bundle.ts";
import { readRow } from "../../../src/run/records/runs.ts";
import { story } from "../../../src/story/story.ts";
import { traceOf } from "../../../src/story/visits.ts";
import { createFrames, type Frame } from "../../../src/tell/frames.ts";
import { createKeptFrames } from "../../../src/studio/kept-frames.ts";
import { outlineOf } from "../../../src/tell/outline.ts";
import { joinedFrames } from "../../../src/studio/page/frames.ts";
import { pictureOf } from "../../../src/studio/page/picture.ts";
import { foldedVisits, standAt, visitsIn, wayKey, type VisitRun } from "../../../src/studio/page/stand.ts";
import { timelineOf } from "../../../src/studio/page/timeline.ts";
import { JOURNALS } from "../../run/golden.ts";

/** Ends by a stop rule and ways back from it have no edge of a step. */
const WITHOUT_EDGE: { readonly [name: string]: number } = {
  "verdict-keyword.json": 2,
  "verdict-outside.json": 1,
};

for (const name of readdirSync(JOURNALS).filter((file) => file.endsWith(".json"))) {
  const read = async () => {
    const journal = await journalOf(parseBundle(readFileSync(join(JOURNALS, name), "utf8"), name));
    const [row] = await journal.list();
    const recorded = await readRow(journal, row!);
    const next = createFrames();
    const { add, slice } = createKeptFrames();
    const moments = [...story(recorded.flow, recorded.entries, recorded.adopted)];
    for (const moment of moments) add(next(moment));
    return { ...recorded, moments, frames: slice(0) };
  };

  test(`${name}: lanes, visits and usage are those of the run after every entry`, async () => {
    const { moments, frames } = await read();
    for (const { entry, after } of moments) {
      const stand = standAt(frames, entry.seq);
      assert.equal(stand.seq, entry.seq);
      const isOver = entry.event.type === "run.ended" || entry.event.type === "run.noted";
      const lanes = [...after.lanes, ...after.halted].map(({ step, visit }) => [step, visit]);
      assert.deepEqual(
        stand.lanes.map(([step, visit]) => [step, visit]),
        isOver ? [] : lanes,
      );
      assert.equal(stand.ended !== null, isOver);
      assert.equal(stand.total.turns, after.usage.turns);
      assert.equal(stand.total.tokens, after.usage.inputTokens + after.usage.outputTokens);
      const visits = [...stand.steps.values()].reduce((sum, step) => sum + step.visits, 0);
      assert.equal(
        visits,
        Object.values(after.visits).reduce((sum, count) => sum + count, 0),
      );
    }
    assert.deepEqual(standAt(frames, null), standAt(frames, frames.at(-1)![0]));
  });

  test(`${name}: the strip has every visit with the label that settled it`, async () => {
    const { frames, flow, entries, adopted } = await read();
    const shown = visitsIn(frames).filter(({ step }) => flow.steps[step]?.aside === undefined);
    const { visits } = traceOf(flow, entries, adopted);
    const decided = visits.map(({ step, visit, happened }) => {
      const led = happened.findLast(({ entry }) => entry.led?.step === step)?.entry.led;
      return [step, visit, led?.overturned === true, led?.label];
    });
    assert.deepEqual(
      shown.map(({ step, visit }) => [step, visit]),
      decided.map(([step, visit]) => [step, visit]),
    );
    // What a question about a step decides, the strip shows at the question.
    const asked = new Set(Object.values(flow.steps).map(({ aside }) => aside));
    for (const [at, { step, label, overturned = false }] of shown.entries())
      if (label !== undefined && !asked.has(step))
        assert.deepEqual([overturned, label], decided[at]!.slice(2));
    assert.ok(shown.some(({ label }) => label !== undefined));
  });

  test(`${name}: every way that was taken is drawn, in a picture in which no boxes overlap`, async () => {
    const { frames, flow } = await read();
    const { boxes, lines, width, height } = pictureOf(outlineOf(flow), 2);
    const drawn = new Set(lines.flatMap(({ ways }) => ways));
    const taken = [...standAt(frames, null).ways.keys()].filter((key) => !drawn.has(key));
    assert.equal(taken.length, WITHOUT_EDGE[name] ?? 0, taken.join(" "));
    for (const [at, a] of boxes.entries()) {
      assert.ok(
        a.x - a.width / 2 >= 0 &&
          a.x + a.width / 2 <= width &&
          a.y - a.height / 2 >= 0 &&
          a.y + a.height / 2 <= height,
      );
      for (const b of boxes.slice(at + 1))
        assert.ok(
          Math.abs(a.x - b.x) >= (a.width + b.width) / 2 || Math.abs(a.y - b.y) >= (a.height + b.height) / 2,
          `${a.title} lies on ${b.title}`,
        );
    }
  });

  test(`${name}: the timeline has at most two bars for each pixel, in order, and within its width`, async () => {
    const { frames } = await read();
    for (const width of [3, 600]) {
      const { rows, xOf } = timelineOf(frames, width);
      for (const { bars } of rows) {
        assert.ok(bars.length <= 2 * width + 2);
        for (const [at, bar] of bars.entries()) {
          assert.ok(bar.x >= 0 && bar.x + bar.width <= width + 1.001 && bar.width >= 1);
          if (at > 0) assert.ok(bar.x >= bars[at - 1]!.x);
        }
      }
      assert.ok(xOf(frames[0]![0]) === 0);
      assert.ok(xOf(frames.at(-1)![0]) <= width + 0.001);
    }
  });
}

const began = (seq: number, ms: number, doing: "ask" | "check" | "wait" | "question", step = "a"): Frame => [
  seq,
  ms,
  "step.answered",
  step,
  1,
  [[step, 1, doing]],
];

test("what is done between two entries is what the first of them says, and time without a driver is cut", () => {
  const frames: readonly Frame[] = [
    began(1, 0, "ask"),
    began(2, 100, "check"),
    [3, 150, "run.stopped", null, 0, 0],
    [4, 1150, "run.resumed", null, 0, [["a", 1, "question"]]],
    [5, 1200, "run.ended", null, 0, [], { ended: ["completed", null] }],
  ];
  const { rows, ms, cuts, xOf } = timelineOf(frames, 200);
  assert.equal(ms, 200);
  assert.deepEqual(
    rows.map(({ step, bars }) => [step, bars.map(({ kind, x, width }) => [kind, x, width])]),
    [
      [
        "a",
        [
          ["model", 0, 100],
          ["checks", 100, 50],
          ["person", 150, 50],
        ],
      ],
    ],
  );
  assert.deepEqual(cuts, [{ x: 150, ms: 1000 }]);
  assert.equal(xOf(5), 200);
});

test("bars narrower than a pixel become one, of the kind with the longest of them", () => {
  const frames: readonly Frame[] = [
    began(1, 0, "ask"),
    began(2, 1, "check"),
    began(3, 5, "ask"),
    began(4, 6, "wait"),
    [5, 1000, "run.ended", null, 0, [], { ended: ["failed", "X"] }],
  ];
  const [row] = timelineOf(frames, 100).rows;
  assert.deepEqual(
    row!.bars.map(({ kind, merged, ms, seq }) => [kind, merged, ms, seq]),
    [
      ["checks", 3, 6, 1],
      ["waiting", 1, 994, 4],
    ],
  );
});

test("narrow bars after a wide one do not take its kind", () => {
  const frames: readonly Frame[] = [
    began(1, 0, "ask"),
    began(2, 900, "check"),
    began(3, 903, "wait"),
    [4, 905, "run.ended", null, 0, [], { ended: ["completed", null] }],
  ];
  assert.deepEqual(
    timelineOf(frames, 100).rows[0]!.bars.map(({ kind, merged }) => [kind, merged]),
    [
      ["model", 1],
      ["checks", 2],
    ],
  );
});

test("what a driven run does goes on until now", () => {
  const frames: readonly Frame[] = [began(1, 0, "ask"), began(2, 100, "check")];
  const widths = (until: number | null) =>
    timelineOf(frames, 100, until).rows[0]!.bars.map(({ kind, ms }) => [kind, ms]);
  assert.deepEqual(widths(null), [["model", 100]]);
  assert.deepEqual(widths(400), [
    ["model", 100],
    ["checks", 300],
  ]);
});

const visit = (step: string, label?: string): VisitRun => ({
  step,
  visit: 1,
  seq: 1,
  ...(label !== undefined && { label }),
});
const rounds: readonly [
  about: string,
  visits: readonly VisitRun[],
  parts: readonly (readonly [string, number])[],
][] = [
  ["nothing", [], []],
  [
    "twice is not a round",
    [visit("a", "x"), visit("a", "x")],
    [
      ["a", 1],
      ["a", 1],
    ],
  ],
  ["three times is", [visit("a", "x"), visit("a", "x"), visit("a", "x")], [["a", 3]]],
  [
    "a round of two steps",
    [visit("s", "x"), ...["a", "b", "a", "b", "a", "b"].map((step) => visit(step, "x")), visit("a", "y")],
    [
      ["s", 1],
      ["ab", 3],
      ["a", 1],
    ],
  ],
  [
    "another label is not the same",
    [visit("a", "x"), visit("a", "y"), visit("a", "x")],
    [
      ["a", 1],
      ["a", 1],
      ["a", 1],
    ],
  ],
];
for (const [about, visits, parts] of rounds)
  test(`folding rounds: ${about}`, () =>
    assert.deepEqual(
      foldedVisits(visits).map((part) => [part.visits.map(({ step }) => step).join(""), part.times]),
      parts,
    ));

test("a way back is not the way of the label, and ends are told apart by their labels", () => {
  const keys = [
    wayKey("a", "b", false, "x"),
    wayKey("a", "b", true, "x"),
    wayKey("a", null, false, "x"),
    wayKey("a", null, false, "y"),
  ];
  assert.equal(new Set(keys).size, 4);
  assert.equal(wayKey("a", "b", false, "x"), wayKey("a", "b", false, "y"));
});

const frame = (seq: number): Frame => [seq, 0, "step.answered", null, 0, 0];
for (const [held, more, joined] of [
  [[], [1, 2], [1, 2]],
  [[1, 2], [3], [1, 2, 3]],
  [
    [1, 2],
    [2, 3],
    [1, 2, 3],
  ],
  [
    [1, 2],
    [1, 2],
    [1, 2],
  ],
  [[1, 2], [4], null],
  [[], [2], null],
  [[1], [], [1]],
] as const)
  test(`frames ${held.join(" ")} and ${more.join(" ")} give ${joined?.join(" ") ?? "a gap"}`, () =>
    assert.deepEqual(joinedFrames(held.map(frame), more.map(frame))?.map(([seq]) => seq) ?? null, joined));
