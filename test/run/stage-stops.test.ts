/** A group of stages that is stopped in the middle: by a failure among them, by a model that is gone, from outside. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, ScriptReply, TurnResult } from "../../src/run/index.ts";
import { pathOf, runMachine, type Ran } from "./stage-project.ts";

const STAGES = {
  s: { next: { parallel: ["a", "b", "c"], join: "meet" } },
  a: { turnCap: 1 },
  b: {},
  c: {},
  meet: { body: "{{ctx.upstream[0].stageId}} {{ctx.upstream[1].stageId}} {{ctx.upstream[2].stageId}}" },
};
const of = (step: string, reply: ScriptReply = { output: {} }): ScriptReply => ({ ...reply, step });
const askedOf = (ran: Ran) => ran.asked.map(({ asker: { step, visit, turn } }) => `${step}@${visit}/${turn}`);

/** Says nothing to `deaf` for ever, whatever the signal says; prose to `a`; and to anybody else that it is done. */
function deafTo(deaf: readonly string[]): Backend {
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
  return {
    spec: { id: "deaf", options: null },
    turn: async ({ asker, signal }): Promise<TurnResult> => {
      if (deaf.includes(asker.step)) return await new Promise(() => undefined);
      if (asker.step === "s")
        return { kind: "reply", text: "", calls: [{ id: "1", name: "submit", input: {} }], usage };
      if (asker.step === "a") return { kind: "reply", text: "hm", calls: [], usage };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { kind: "fault", fault: { kind: "other", message: "stopped" } };
    },
  };
}

test("a sibling that stops when it is told to is waited for, and nothing is left", async () => {
  const ran = await runMachine({ stages: STAGES, model: deafTo([]) });
  assert.equal(ran.result.code, "ParallelSiblingFailure");
  assert.deepEqual([ran.waits, ran.result.warnings], [[], []]);
  assert.ok(ran.entries.every(({ event }) => event.type !== "run.left"));
});

test("a sibling that does not stop is given a while, then it is recorded and warned about", async () => {
  const ran = await runMachine({ stages: STAGES, model: deafTo(["b", "c"]) });
  assert.equal(ran.result.code, "ParallelSiblingFailure");
  assert.deepEqual(ran.waits, [5000]);
  const left = ran.entries.flatMap(({ event }) => (event.type === "run.left" ? [event.still] : []));
  assert.deepEqual(left, [["b@1", "c@1"]]);
  assert.deepEqual(ran.result.warnings, [
    "b@1 was asked to stop and did not stop in time",
    "c@1 was asked to stop and did not stop in time",
  ]);
  assert.equal(pathOf(ran.result), "s:ok a:cap", "each visit is told once");
  assert.deepEqual(
    ran.entries.map(({ seq }) => seq),
    ran.entries.map((_, place) => place + 1),
  );
});

test("a fan-out that was broken off asks only those that were not done", async () => {
  const ran = await runMachine({
    stages: { ...STAGES, a: { turnCap: 2 } },
    model: [of("s"), of("a"), of("b", { text: "hm" }), of("c")],
  });
  const { result } = ran;
  assert.deepEqual([result.code, result.resumable], ["SCRIPT_EXHAUSTED", true], result.reason);
  const before = askedOf(ran);
  const whole = await ran.again([of("b"), of("meet", { output: {}, saw: ["a b c"] })]);
  assert.deepEqual(
    [whole.result.outcome, pathOf(whole.result)],
    ["completed", "s:ok a:ok b:ok c:ok meet:ok"],
  );
  assert.deepEqual(askedOf(whole), ["b@1/2", "meet@1/1"]);
  assert.ok(before.includes("a@1/1") && before.includes("c@1/1"));
  const ids = ["s", "a", "b", "c", "meet"].map((id) => whole.result.handoff[id]!.stageExecutionId);
  assert.deepEqual(
    ids,
    ["s", "a", "b", "c", "meet"].map((id) => `${result.run}/${id}/1`),
  );
});

test("a conversation that was broken off goes on where it was: prompt, answers, results and tries", async () => {
  const stages = {
    p: {
      allowedTools: ["Read"],
      retryPolicy: { maxAttempts: 2, backoff: "none" },
      turnCap: 2,
      body: "Do {{ctx.task}}.",
    },
  };
  const files = { "note.txt": "the note" };
  const read = { calls: [{ name: "Read", input: { file_path: "note.txt" } }] };
  const replies: readonly ScriptReply[] = [read, { text: "hm" }, read, { output: {} }];
  const whole = await runMachine({ stages, files, args: { task: "it" }, model: replies });
  assert.equal(whole.result.outcome, "completed", whole.result.reason);
  for (let cut = 1; cut < replies.length; cut++) {
    const ran = await runMachine({ stages, files, args: { task: "it" }, model: replies.slice(0, cut) });
    assert.equal(ran.result.code, "SCRIPT_EXHAUSTED");
    const rest = await ran.again(replies.slice(cut));
    assert.equal(rest.result.outcome, "completed", rest.result.reason);
    const said = (one: Ran) =>
      JSON.stringify([one.asked.at(-1)!.system, one.asked.at(-1)!.messages]).replaceAll(
        one.result.run!,
        "RUN",
      );
    assert.equal(said(rest), said(whole), `cut after ${cut}`);
    assert.equal(rest.result.handoff.p!.attemptCount, 2);
  }
});
