/** How a label becomes a move: every selector, by what it finds, and edges that are taken only so often. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { route } from "../../../src/engine/decide/route.ts";
import type { Move } from "../../../src/flow/flow.ts";
import type { JsonObject } from "../../../src/flow/json.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";

const to = (step: string): Move => ({ kind: "goto", step });
const byLevel = (otherwise?: Move): Move => ({
  kind: "switch",
  on: ["level"],
  cases: { high: to("h"), "1": to("one"), true: to("yes") },
  ...(otherwise !== undefined && { otherwise }),
});
const jump = (otherwise?: Move): Move => ({
  kind: "jump",
  field: ["target"],
  among: ["h", "one"],
  ...(otherwise !== undefined && { otherwise }),
});
const twice = (move: Move, after: Move): Move => ({ kind: "times", max: 2, move, after });

/** The payload is what a jump reads, the data that is handed on what a switch reads. */
type Row = readonly [
  name: string,
  move: Move,
  data: { readonly payload?: JsonObject; readonly carried?: JsonObject; readonly taken?: number },
  expected: string,
];
const ROWS: readonly Row[] = [
  ["a step", to("h"), {}, "h"],
  ["a case", byLevel(), { carried: { level: "high" } }, "h"],
  ["a case, which is not read from the payload", byLevel(), { payload: { level: "high" } }, "none"],
  ["a number", byLevel(), { carried: { level: 1 } }, "one"],
  ["a boolean", byLevel(), { carried: { level: true } }, "yes"],
  ["a list that would be written like a case", byLevel(to("o")), { carried: { level: ["high"] } }, "o"],
  ["null", byLevel(to("o")), { carried: { level: null } }, "o"],
  ["a name of a prototype", byLevel(to("o")), { carried: { level: "constructor" } }, "o"],
  ["another value", byLevel(to("o")), { carried: { level: "low" } }, "o"],
  ["another value without a default", byLevel(), { carried: { level: "low" } }, "none"],
  ["a switch in a switch", byLevel(byLevel(to("o"))), { carried: { level: "low" } }, "o"],
  ["a named step", jump(to("o")), { payload: { target: "one" } }, "one"],
  ["a step that may not be named", jump(to("o")), { payload: { target: "elsewhere" } }, "none"],
  ["no name", jump(to("o")), { payload: {} }, "o"],
  ["no name without a default", jump(), { payload: {} }, "none"],
  ["an empty name", jump(to("o")), { payload: { target: "" } }, "o"],
  ["a name that is null", jump(to("o")), { payload: { target: null } }, "o"],
  ["a name that is a number", jump(to("o")), { payload: { target: 0 } }, "none"],
  ["the first time", twice(to("h"), to("o")), { taken: 0 }, "h, counted"],
  ["the last time", twice(to("h"), to("o")), { taken: 1 }, "h, counted"],
  ["too often", twice(to("h"), to("o")), { taken: 2 }, "o"],
  ["far too often", twice(to("h"), to("o")), { taken: 3 }, "o"],
  ["a counted switch", twice(byLevel(), to("o")), { carried: { level: "high" } }, "h, counted"],
  ["a counted switch that leads nowhere", twice(byLevel(), to("o")), {}, "none"],
  ["counted deeper in an edge", byLevel(twice(to("h"), to("o"))), { taken: 5 }, "h"],
  ["counted twice", twice(twice(to("h"), to("o")), to("x")), { taken: 1 }, "h, counted"],
];
for (const [name, move, { payload = {}, carried = {}, taken = 0 }, expected] of ROWS) {
  test(`${name}: ${expected}`, () => {
    const step = sketchFlow({ a: { edges: { next: move } } }).steps["a"]!;
    const routed = route(step, "next", payload, carried, 1, taken);
    const moved = routed.kind === "move" && routed.move.kind === "goto" ? routed.move.step : routed.kind;
    assert.equal(`${moved}${routed.kind === "move" && routed.counted ? ", counted" : ""}`, expected);
    assert.equal(route(step, "other", payload, carried, 1, taken).kind, "none");
  });
}
