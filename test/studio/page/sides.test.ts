/** Two sides on one graph, and the part of a large flow that is drawn. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { outlineAround, pictureOf } from "../../../src/studio/page/picture.ts";
import { joinedOutline, sidesOfRuns, sidesOfWhatIf, timesOf } from "../../../src/studio/page/sides.ts";
import { wayKey } from "../../../src/studio/page/stand.ts";
import type { CompareDocument, WhatIfDocument } from "../../../src/studio/wire-agents.ts";
import type { Outline } from "../../../src/tell/outline.ts";

/** Steps a, b, …, each leading to those that are named behind it. */
function outline(...steps: readonly string[]): Outline {
  const nodes = steps.map(([id], rank) => ({ id, rank, kind: "work", checks: [], findings: [], name: "" }));
  const edges = steps.flatMap(([from, ...targets]) =>
    targets.map((step) => ({
      from,
      label: "next",
      as: null,
      kind: "go",
      when: [],
      to: { kind: "step", step },
    })),
  );
  return { agent: "x", title: "", entry: steps[0]![0]!, nodes, edges } as unknown as Outline;
}

const [ab, ba] = [wayKey("a", "b", false, null), wayKey("b", "a", true, null)];

test("ways of two runs are counted for each of them, by the same keys as those of one", () => {
  const taken: CompareDocument["taken"] = [
    [
      [["a", "b", "next"], 2],
      [["a", "b", "other"], 1],
      [[null, "a", null], 1],
    ],
    [[["b", "a", "closing", "back"], 4]],
  ];
  const sides = sidesOfRuns(taken);
  assert.deepEqual(timesOf(sides, [ab]), [3, 0]);
  assert.deepEqual(timesOf(sides, [ba]), [0, 4]);
  assert.deepEqual(timesOf(sides, [ab, ba, "other"]), [3, 4]);
});

test("where runs part, the way that was taken and the one that would be are counted", () => {
  const led = (to: string | null, more: object = {}) => ({ step: "a", visit: 1, label: "next", to, ...more });
  const runs = [
    { at: { recorded: led("b"), derived: led(null) } },
    { at: { recorded: led("b"), derived: null } },
    { at: { recorded: null, derived: led("b", { overturned: true }) } },
    { at: null },
  ] as unknown as WhatIfDocument["runs"];
  const sides = sidesOfWhatIf({ runs });
  assert.deepEqual(timesOf(sides, [ab]), [2, 0]);
  assert.deepEqual(timesOf(sides, [wayKey("a", null, false, "next")]), [0, 1]);
  assert.deepEqual(timesOf(sides, [wayKey("a", "b", true, null)]), [0, 1]);
});

test("two flows are joined: each step and each edge once", () => {
  const joined = joinedOutline([outline("ab", "b"), outline("abc", "b", "c")]);
  assert.deepEqual([joined.nodes.map(({ id }) => id).join(""), joined.edges.length], ["abc", 2]);
});

for (const [near, most, expected] of [
  ["a", 2, "ab"],
  ["c", 3, "bcd"],
  ["e", 2, "de"],
  ["c", 9, "abcde"],
  ["nowhere", 9, ""],
] as const)
  test(`${most} steps around ${near} of a chain are ${expected}`, () => {
    const around = outlineAround(outline("ab", "bc", "cd", "de", "e"), near, most);
    assert.equal(around.nodes.map(({ id }) => id).join(""), expected);
    assert.equal(around.edges.length, Math.max(0, expected.length - 1));
  });

test("a part of a flow of 1,000 steps is drawn, and none of its lines leads out of it", () => {
  const steps = Array.from({ length: 1000 }, (_, at) => String.fromCodePoint(0x4e00 + at));
  const chain = outline(...steps.map((step, at) => step + (steps[at + 1] ?? "") + (steps[at + 7] ?? "")));
  const { boxes, lines } = pictureOf(outlineAround(chain, steps[500]!), 2);
  assert.equal(boxes.length, 60);
  assert.ok(lines.length >= 59);
});
