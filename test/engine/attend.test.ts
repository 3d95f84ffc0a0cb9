/** What is due outside comes before whatever a run does next, and the run waits for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addEntry, createReport } from "../../src/story/report.ts";
import type { Drive } from "../../src/engine/drive/drive.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play, type Played } from "./played.ts";

const flow = sketchFlow({
  "initial.a": { edges: { handoff: "closure.a" } },
  "closure.a": { edges: { closing: null, repeat: "closure.a" } },
});
const say = (action: string) => ({ output: { next_action: { action } } });
const model = [say("handoff"), say("closing")];
const merge = { key: "merge", kind: "merge", detail: "" } as const;
const doing =
  (done: boolean): NonNullable<Drive["attend"]> =>
  async ({ pending: [next] }, record) => {
    if (next?.type !== "end") return true;
    await record({ type: "effect.intended", ...merge });
    await record({ type: done ? "effect.applied" : "effect.failed", key: "merge", detail: "" });
    return done;
  };
const types = ({ entries }: Played) => entries.map(({ event }) => event.type);
const BEFORE = ["run.started", "step.answered", "step.answered", "effect.intended"];

test("effects come before the end, and settle no visit again", async () => {
  const played = await play({ flow, model, attend: doing(true) });
  assert.deepEqual(types(played), [...BEFORE, "effect.applied", "run.ended"]);
  assert.equal(played.state.verdict?.outcome, "completed");
  const report = createReport();
  for (const entry of played.entries) addEntry(report, entry);
  assert.equal(report.path.length, 2);
  assert.equal(report.effects.get("merge")?.state, "applied");
});

test("an effect that fails leaves the end pending, and a resumed run begins with it", async () => {
  const played = await play({ flow, model, attend: doing(false) });
  assert.deepEqual(types(played), [...BEFORE, "effect.failed"]);
  assert.deepEqual(
    played.state.pending.map(({ type }) => type),
    ["end"],
  );
  const again = await play({ flow, model: [], past: played.entries, attend: doing(true) });
  assert.deepEqual(types(again).slice(5), ["run.resumed", "effect.intended", "effect.applied", "run.ended"]);
  assert.deepEqual(again.asked, []);
});

test("it is heard of before every command, of the end of a failed run too", async () => {
  const heard: string[] = [];
  const attend: Drive["attend"] = async ({ pending }) => {
    heard.push(pending.map(({ type }) => type).join());
    return true;
  };
  const failing = [say("handoff"), { text: "hm" }, { text: "hm" }];
  const played = await play({ flow, model: failing, attend });
  assert.equal(played.state.verdict?.outcome, "failed");
  assert.deepEqual(heard, ["ask", "ask", "ask", "end"]);
});

test("what fails between two steps leaves the next one pending, and it is not asked before", async () => {
  const failing: Drive["attend"] = async ({ pending: [next] }) =>
    next?.type === "ask" && next.step === "initial.a";
  const played = await play({ flow, model, attend: failing });
  assert.equal(played.state.verdict, null);
  const again = await play({ flow, model, past: played.entries, attend: doing(true) });
  assert.equal(again.state.verdict?.outcome, "completed");
});
