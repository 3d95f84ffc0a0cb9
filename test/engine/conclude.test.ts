/** What is due when a run is complete comes before its end, and the end waits for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addEntry, createReport } from "../../src/engine/report.ts";
import type { Drive } from "../../src/engine/drive.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play, type Played } from "../../src/testing/scenario.ts";

const flow = sketchFlow({
  "initial.a": { edges: { handoff: "closure.a" } },
  "closure.a": { edges: { closing: null, repeat: "closure.a" } },
});
const say = (action: string) => ({ output: { next_action: { action } } });
const model = [say("handoff"), say("closing")];
const merge = { key: "merge", kind: "merge", detail: "" } as const;
const doing =
  (done: boolean): NonNullable<Drive["conclude"]> =>
  async (_, record) => {
    await record({ type: "effect.intended", ...merge });
    await record({ type: done ? "effect.applied" : "effect.failed", key: "merge", detail: "" });
    return done;
  };
const types = ({ entries }: Played) => entries.map(({ event }) => event.type);
const BEFORE = ["run.started", "step.answered", "step.answered", "effect.intended"];

test("effects come before the end, and settle no visit again", async () => {
  const played = await play({ flow, model, conclude: doing(true) });
  assert.deepEqual(types(played), [...BEFORE, "effect.applied", "run.ended"]);
  assert.equal(played.state.verdict?.outcome, "completed");
  const report = createReport();
  for (const entry of played.entries) addEntry(report, entry);
  assert.equal(report.path.length, 2);
  assert.equal(report.effects.get("merge")?.state, "applied");
});

test("an effect that fails leaves the end pending, and a resumed run begins with it", async () => {
  const played = await play({ flow, model, conclude: doing(false) });
  assert.deepEqual(types(played), [...BEFORE, "effect.failed"]);
  assert.deepEqual(
    played.state.pending.map(({ type }) => type),
    ["end"],
  );
  const again = await play({ flow, model: [], past: played.entries, conclude: doing(true) });
  assert.deepEqual(types(again).slice(5), ["run.resumed", "effect.intended", "effect.applied", "run.ended"]);
  assert.deepEqual(again.asked, []);
});

test("nothing is due when a run fails", async () => {
  const conclude = () => Promise.reject(new Error("not to be called"));
  const played = await play({ flow, model: [say("handoff"), { text: "hm" }, { text: "hm" }], conclude });
  assert.equal(played.state.verdict?.outcome, "failed");
  assert.equal(types(played).at(-1), "run.ended");
});
