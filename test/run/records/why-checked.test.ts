/** What why reports of checks: the rule they belong to, what failed, and what was not run any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StepGuard } from "../../../src/flow/flow.ts";
import { whyAll } from "../../../src/tell/why.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../../src/testing/flows.ts";
import { ready } from "../../ready.ts";
import { play } from "../../engine/played.ts";

const checks = { one: sketchCheck("one", "true"), two: sketchCheck("two", "true") };
const say = (action: string) => ({ output: { next_action: { action } } });

async function checkedWith(guard: Partial<StepGuard>) {
  const whole: StepGuard = {
    on: "closing",
    checks: [
      { check: "one", edition: sketchPrompt("one failed") },
      { check: "two", edition: sketchPrompt("two failed") },
    ],
    onFailure: "retry",
    maxFailures: 3,
    back: { kind: "goto", step: "c" },
    ...guard,
  };
  const flow = sketchFlow({ c: { edges: { closing: null }, guard: whole } }, { checks });
  const { entries } = await play({
    flow,
    checks: [[{ ok: false }]],
    model: [say("closing"), say("closing")],
  });
  const [first] = whyAll(ready(flow), entries);
  const checked = first!.moments.find((moment) => moment.checked !== undefined)!.checked!;
  return [checked.on, checked.onFailure, checked.maxFailures, checked.failures, checked.notRun];
}

test("why reports the rule that a failed check belongs to", async () => {
  assert.deepEqual(await checkedWith({}), ["closing", "retry", 3, 1, ["two"]]);
  assert.deepEqual(await checkedWith({ onFailure: "abort", maxFailures: 1 }), [
    "closing",
    "abort",
    1,
    1,
    ["two"],
  ]);
});
