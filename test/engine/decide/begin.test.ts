/** What a run begins with: its arguments, what was piped in, and its first step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "../../../src/engine/decide/decide.ts";
import { EMPTY_STATE } from "../../../src/engine/decide/state.ts";
import { ready } from "../../ready.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";

test("a run begins at its entry with what it was given", () => {
  const flow = sketchFlow({ a: { edges: { next: "b" } }, b: { edges: { closing: null } } });
  const backend = { id: "scripted", options: null };
  const about = { agent: flow.agent, flow: "digest", cwd: "/", backend };
  const args = { issue: 12 };
  const { state } = decide(ready(flow), EMPTY_STATE, {
    type: "run.started",
    run: "r",
    args,
    input: "piped",
    ...about,
  });
  assert.deepEqual(
    [state.run, state.args, state.input, state.ctx, state.iterations, state.visits],
    ["r", args, "piped", args, 1, { a: 1 }],
  );
  assert.deepEqual(
    state.lanes.map(({ step, visit, origin }) => [step, visit, origin]),
    [["a", 1, null]],
  );
});
