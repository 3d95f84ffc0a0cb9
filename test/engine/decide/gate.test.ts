/** How an answer becomes a label, a reason and data to hand on: each rule of the gate by the row that it decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnswer, readCarry, readReason } from "../../../src/engine/decide/gate.ts";
import type { Step } from "../../../src/flow/flow.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { actionSchema, sketchFlow, sketchMachine, type StepSketch } from "../../../src/testing/flows.ts";

function stepOf(sketch: Partial<StepSketch>): Step {
  return sketchFlow({ a: { edges: { next: "a", closing: null }, ...sketch } }).steps["a"]!;
}

const act = (action: JsonObject[string], more: JsonObject = {}) => ({ next_action: { action }, ...more });

const REASONS: readonly (readonly [payload: JsonObject, reason: string])[] = [
  [{ next_action: { action: "next", reason: "near" }, reason: "top", message: "said" }, "near"],
  [act("next", { reason: "top", message: "said" }), "top"],
  [{ next_action: { action: "next", reason: "" }, reason: "top" }, "top"],
  [{ next_action: { action: "next", reason: 5 }, message: "said" }, "said"],
  [{ next_action: { action: "next", details: { reason: "deep" } }, message: "said" }, "said"],
  [{ next_action: { action: "next", details: { reason: "deep" } } }, "deep"],
  [{ next_action: { action: "next", details: "deep" } }, ""],
  [act("next"), ""],
  [{ next_action: "next", reason: "top" }, "top"],
];
for (const [payload, reason] of REASONS)
  test(`the reason in ${JSON.stringify(payload)}`, () =>
    assert.equal(readReason(stepOf({}), payload), reason));

type Row = readonly [name: string, sketch: Partial<StepSketch>, output: JsonObject, reading: string];
const ALIAS = { alias: { go: "next", true: "next", ready: "closing" } };
const ANYTHING = { schema: {} };
const ROWS: readonly Row[] = [
  ["a label", {}, act("next"), "next by word"],
  ["another label", {}, act("closing"), "closing by word"],
  ["another case", ANYTHING, act("NEXT"), "next by alias"],
  ["an alias", { ...ALIAS, ...ANYTHING }, act("go"), "next by alias"],
  ["an alias in another case", { ...ALIAS, ...ANYTHING }, act("Ready"), "closing by alias"],
  ["a boolean", { ...ALIAS, ...ANYTHING }, act(true), "next by alias"],
  ["another boolean", { ...ALIAS, ...ANYTHING }, act(false), "no label: false"],
  ["a number", { ...ALIAS, ...ANYTHING }, act(1), "no label: 1"],
  ["nothing", ANYTHING, {}, "no label: nothing"],
  ["nothing, where the schema wants something", {}, {}, "misfit"],
  ["a fallback", { fallback: "next", ...ANYTHING }, act("ponder"), "next by fallback"],
  ["a word that stands in a prototype", ANYTHING, act("constructor"), 'no label: "constructor"'],
  ["an alias that the schema lists", { ...ALIAS, schema: actionSchema(["go"]) }, act("go"), "next by alias"],
  [
    "an alias of a label that it lists",
    { ...ALIAS, schema: actionSchema(["next"]) },
    act("go"),
    "next by alias",
  ],
  ["an alias where it lists neither", { ...ALIAS, schema: actionSchema(["closing"]) }, act("go"), "misfit"],
  ["a label that it does not list", { schema: actionSchema(["closing"]) }, act("next"), "misfit"],
  ["a way out that it does not list", { schema: actionSchema(["closing"]) }, act("abort"), "abort by word"],
  ["its own name", {}, act("next", { stepId: "a" }), "next by word"],
  ["another name", {}, act("next", { stepId: "b" }), "next by word, corrected"],
  ["a name that is not a text", {}, act("next", { stepId: 5 }), "misfit"],
];
for (const [name, sketch, output, expected] of ROWS) {
  test(`the answer gives ${name}: ${expected}`, () => {
    const step = stepOf(sketch);
    assert.ok(step.answer.kind === "object");
    const reading = readAnswer(step, step.answer, output);
    if (reading.kind !== "label") {
      assert.equal(reading.kind === "misfit" ? "misfit" : `no label: ${reading.found}`, expected);
      return;
    }
    const isCorrected = reading.notes.some((note) => note.includes("corrected"));
    assert.equal(`${reading.label} by ${reading.by}${isCorrected ? ", corrected" : ""}`, expected);
    if (isCorrected) assert.equal(reading.payload["stepId"], "a");
    assert.deepEqual(reading.payload["next_action"], { action: reading.label });
  });
}

test("a stage is told of every fault at once, a step of the first", () => {
  const schema = { type: "object", required: ["x", "y"] } as const;
  const stage = sketchMachine({ a: { schema } }).steps["a"]!;
  for (const [step, count] of [
    [stage, 2],
    [stepOf({ schema }), 1],
  ] as const) {
    assert.ok(step.answer.kind === "object");
    const reading = readAnswer(step, step.answer, {});
    assert.equal(reading.kind === "misfit" ? reading.errors.length : 0, count);
  }
});

const CARRIED: readonly (readonly [payload: JsonObject, data: JsonObject, missing: readonly string[]])[] = [
  [{ plan: "dig", deep: { depth: 1 } }, { plan: "dig", depth: 1 }, []],
  [{ plan: null, deep: { depth: 0 } }, { plan: null, depth: 0 }, []],
  [{ plan: "" }, { plan: "" }, ["deep.depth"]],
  [{}, {}, ["plan", "deep.depth"]],
];
for (const [payload, data, missing] of CARRIED)
  test(`handed on of ${JSON.stringify(payload)}`, () =>
    assert.deepEqual(readCarry(stepOf({ handoff: ["plan", "deep.depth"] }), payload), { data, missing }));
