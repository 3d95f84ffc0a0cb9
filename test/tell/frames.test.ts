/** The edges that a run took, as its frames have them: one case for each way on that a flow can have. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { story } from "../../src/story/story.ts";
import { createKeptFrames } from "../../src/studio/kept-frames.ts";
import { createFrames, type TakenWay } from "../../src/tell/frames.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import { play, type Scenario } from "../../src/testing/scenario.ts";

const says = (action: string, more: object = {}) => ({ output: { next_action: { action, ...more } } });

type Case = {
  readonly name: string;
  readonly flow: Flow;
  readonly model: Scenario["model"];
  readonly more?: Partial<Scenario>;
  readonly ways: readonly TakenWay[];
};

const cases: readonly Case[] = [
  {
    name: "a step that repeats is left by its own edge each time",
    flow: sketchFlow({ a: { edges: { again: "a", next: "b" } }, b: { edges: { done: null } } }),
    model: [says("again"), says("again"), says("next"), says("done")],
    ways: [
      [null, "a", null],
      ["a", "a", "again"],
      ["a", "a", "again"],
      ["a", "b", "next"],
      ["b", null, "done"],
    ],
  },
  {
    name: "a counted edge leads elsewhere when it is used up",
    flow: sketchFlow({
      a: {
        edges: {
          again: {
            kind: "times",
            max: 1,
            move: { kind: "goto", step: "a" },
            after: { kind: "goto", step: "b" },
          },
        },
      },
      b: { edges: { done: null } },
    }),
    model: [says("again"), says("again"), says("done")],
    ways: [
      [null, "a", null],
      ["a", "a", "again"],
      ["a", "b", "again"],
      ["b", null, "done"],
    ],
  },
  {
    name: "a jump leads to the step that the answer names",
    flow: sketchFlow({
      a: { edges: { go: { kind: "jump", field: ["next_action", "details", "target"], among: ["b", "c"] } } },
      b: { edges: { done: null } },
      c: { edges: { go: "b" } },
    }),
    model: [says("go", { details: { target: "c" } }), says("go"), says("done")],
    ways: [
      [null, "a", null],
      ["a", "c", "go"],
      ["c", "b", "go"],
      ["b", null, "done"],
    ],
  },
  {
    name: "siblings are led to by the step that forks, and each leads to where they meet",
    flow: sketchFlow({
      a: { edges: { both: { kind: "fork", steps: ["b", "c"], join: "d" } } },
      b: { edges: { done: null } },
      c: { edges: { done: null } },
      d: { edges: { done: null } },
    }),
    model: [
      { step: "a", ...says("both") },
      { step: "b", ...says("done") },
      { step: "c", ...says("done") },
      { step: "d", ...says("done") },
    ],
    ways: [
      [null, "a", null],
      ["a", "b", "both"],
      ["a", "c", "both"],
      ["b", "d", "done"],
      ["c", "d", "done"],
      ["d", null, "done"],
    ],
  },
  {
    name: "siblings that meet nowhere each lead to the end",
    flow: sketchFlow({
      a: { edges: { both: { kind: "fork", steps: ["b", "c"], join: null } } },
      b: { edges: { done: null } },
      c: { edges: { done: null } },
    }),
    model: [
      { step: "a", ...says("both") },
      { step: "b", ...says("done") },
      { step: "c", ...says("done") },
    ],
    ways: [
      [null, "a", null],
      ["a", "b", "both"],
      ["a", "c", "both"],
      ["b", null, "done"],
      ["c", null, "done"],
    ],
  },
  {
    name: "checks that fail lead back, and the edge of the label is not taken",
    flow: sketchFlow(
      {
        a: { edges: { next: "b" } },
        b: {
          edges: { done: null },
          guard: {
            on: "done",
            checks: [{ check: "tests", edition: sketchPrompt("It failed.") }],
            onFailure: "retry",
            maxFailures: 3,
            back: { kind: "goto", step: "a" },
          },
        },
      },
      { checks: { tests: sketchCheck("tests", "true") } },
    ),
    model: [says("next"), says("done"), says("next"), says("done")],
    more: { checks: [[{ ok: false }]] },
    ways: [
      [null, "a", null],
      ["a", "b", "next"],
      ["b", "a", "done", "back"],
      ["a", "b", "next"],
      ["b", null, "done"],
    ],
  },
  {
    name: "an answer that cannot be used takes no edge",
    flow: sketchFlow({ a: { edges: { done: null } } }),
    model: [{ output: { nothing: true } }, says("done")],
    ways: [
      [null, "a", null],
      ["a", null, "done"],
    ],
  },
];

for (const { name, flow, model, more, ways } of cases)
  test(name, async () => {
    const { entries } = await play({ flow, model, ...more });
    const next = createFrames();
    const { add, slice } = createKeptFrames();
    for (const moment of story(await prepare(flow), entries)) add(next(moment));
    const frames = slice(0);
    assert.deepEqual(
      frames.flatMap((frame) => frame[6]?.ways ?? []),
      ways,
    );
  });
