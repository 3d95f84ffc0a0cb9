/** Both verbs of a backend, and what the engine does when one misbehaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, RunRequest, Toolbox, TurnResult } from "../../src/engine/ports.ts";
import { addEntry, createReport } from "../../src/story/report.ts";
import { judgedIn } from "../../src/flow/event.ts";
import { sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { play } from "./played.ts";

const flow = sketchFlow({
  "initial.a": { edges: { next: "closure.a" } },
  "closure.a": { edges: { closing: null } },
});
const spec = { id: "test", options: null };
const reply = (action: string, more: object = {}): TurnResult => ({
  kind: "reply",
  text: "",
  calls: [],
  output: { next_action: { action } },
  usage: { turns: 3, inputTokens: 10, outputTokens: 5, costUsd: 0.25 },
  ...more,
});

test("a backend that runs its own tools gets only what is new, our gate, and its session back", async () => {
  const requests: RunRequest[] = [];
  const backend: Backend = {
    spec,
    run: async (request) => {
      requests.push(request);
      const verdict = await request.gate({ name: "Read", input: {} }, ["Read"]);
      assert.deepEqual(verdict, { allow: true });
      return reply(request.asker.step === "initial.a" ? "next" : "closing", { session: "s-1" });
    },
  };
  const { state } = await play({ flow, model: backend });
  assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
  assert.deepEqual(
    requests.map(({ session, messages }) => [session, messages.length]),
    [
      [undefined, 1],
      ["s-1", 1],
    ],
  );
  assert.deepEqual(state.usage, { turns: 6, inputTokens: 20, outputTokens: 10, costUsd: 0.5 });
});

test("what was allowed and denied within a query is recorded with it, also when the query fails", async () => {
  const backend: Backend = {
    spec,
    run: async ({ gate, asker }) => {
      await gate({ name: "Read", input: {} }, null);
      await gate({ name: "Bash", input: { command: "gh pr merge 1" } }, null);
      const usage = { turns: 1, inputTokens: 7, outputTokens: 3, costUsd: 0.5 };
      const judged = [{ name: "Task", denied: "Sub-agents are not offered." }];
      return asker.step === "initial.a"
        ? reply("next", { judged })
        : { kind: "fault", fault: { kind: "process", message: "it died", usage } };
    },
  };
  const toolbox: Toolbox = {
    offer: () => [],
    judge: (_step, { name }) => (name === "Bash" ? "not this one" : null),
    call: () => Promise.resolve([]),
    callGranted: () => Promise.resolve({ kind: "results", results: [] }),
  };
  const { entries, state } = await play({ flow, model: backend, ports: { toolbox } });
  const own = [{ name: "Read" }, { name: "Bash", denied: "not this one" }];
  assert.deepEqual(
    entries.flatMap(({ event }) => (event.type === "step.answered" ? [judgedIn(event.reply)] : [])),
    [[{ name: "Task", denied: "Sub-agents are not offered." }, ...own], own],
  );
  const report = createReport();
  for (const entry of entries) addEntry(report, entry);
  assert.deepEqual(report.denials, [
    "initial.a@1: Task was denied: Sub-agents are not offered.",
    "initial.a@1: Bash was denied: not this one",
    "closure.a@1: Bash was denied: not this one",
  ]);
  assert.deepEqual(state.usage, { turns: 4, inputTokens: 17, outputTokens: 8, costUsd: 0.75 });
});

const used = (turns: number) => ({ usage: { turns, inputTokens: 0, outputTokens: 0, costUsd: null } });
const lacking = { output: undefined, text: "no answer yet" };

test("the responses of a whole query count: what is asked again has only the rest", async () => {
  const asked: number[] = [];
  const backend: Backend = {
    spec,
    run: ({ maxTurns }) => {
      asked.push(maxTurns);
      return Promise.resolve(
        asked.length === 1 ? reply("next", { ...lacking, ...used(3) }) : reply("closing"),
      );
    },
  };
  const one = sketchFlow({ "closure.a": { edges: { closing: null }, turns: 5, answer: { repairs: 1 } } });
  const { state } = await play({ flow: one, model: backend });
  assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
  assert.deepEqual(asked, [5, 2]);
});

test("a query that ran into its cap is at the limit, whatever it said", async () => {
  for (const free of [false, true]) {
    const backend: Backend = {
      spec,
      run: () => Promise.resolve(reply("closing", { ...used(4), capped: true })),
    };
    const edges = free ? { done: null } : { closing: null };
    const one = sketchFlow({ "closure.a": { edges, turns: 4, ...(free && { free }) } });
    const { state } = await play({ flow: one, model: backend });
    assert.equal(state.verdict?.code, "AGENT_TURN_LIMIT");
    assert.equal(state.usage.turns, 4);
  }
});

test("each try of a stage has the whole cap, also when an agent runs into it", async () => {
  const asked: [turns: number, session: string | undefined][] = [];
  const backend: Backend = {
    spec,
    run: ({ maxTurns, session }) => {
      asked.push([maxTurns, session]);
      const more =
        asked.length < 3 ? { ...lacking, ...used(4), capped: true } : { output: { a: 1 }, ...used(2) };
      return Promise.resolve(reply("", { session: "s-1", ...more }));
    },
  };
  const machine = sketchMachine({ only: { turns: 4, attempts: 3 } });
  const { state } = await play({ flow: machine, model: backend });
  assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
  assert.deepEqual(asked, [
    [4, undefined],
    [4, "s-1"],
    [4, "s-1"],
  ]);
});

test("a backend with both verbs is asked turn by turn", async () => {
  const backend: Backend = {
    spec,
    turn: (request) => Promise.resolve(reply(request.asker.step === "initial.a" ? "next" : "closing")),
    run: () => Promise.reject(new Error("not this one")),
  };
  assert.equal((await play({ flow, model: backend })).state.verdict?.outcome, "completed");
});

const misbehaving: readonly [name: string, backend: Backend, reason: RegExp][] = [
  ["throws", { spec, turn: () => Promise.reject(new Error("boom")) }, /The backend threw: boom/],
  [
    "throws at once",
    {
      spec,
      turn: () => {
        throw new Error("bang");
      },
    },
    /The backend threw: bang/,
  ],
  ["offers nothing", { spec }, /offers neither turn nor run/],
];
for (const [name, backend, reason] of misbehaving) {
  test(`a backend that ${name} stops its run, and the run can be resumed`, async () => {
    const { state } = await play({ flow, model: backend });
    assert.equal(state.verdict?.code, "AGENT_QUERY_ERROR");
    assert.match(state.verdict.reason, reason);
    assert.equal(state.halted.length, 1);
  });
}

test("a fault leaves no question behind in the conversation", async () => {
  const seen: number[] = [];
  let calls = 0;
  const backend: Backend = {
    spec,
    turn: (request) => {
      seen.push(request.messages.length);
      calls += 1;
      if (calls === 1) return Promise.resolve({ kind: "fault", fault: { kind: "network", message: "gone" } });
      return Promise.resolve(reply(request.asker.step === "initial.a" ? "next" : "closing"));
    },
  };
  await play({ flow, model: backend });
  assert.deepEqual(seen, [1, 1, 3]);
});

test("an answer too deep, too large or too long ends the run at once, and the journal can hold it", async () => {
  let deep: unknown = "x";
  for (let i = 0; i < 5000; i++) deep = [deep];
  const outputs = [
    { deep },
    { wide: Array.from({ length: 200_000 }, () => 0) },
    { long: "x".repeat(2_000_000) },
  ];
  for (const output of outputs) {
    const { state, entries } = await play({
      flow,
      model: { spec, turn: () => Promise.resolve(reply("next", { output })) },
    });
    assert.equal(state.verdict?.code, "GATE_INTERPRETATION_ERROR");
    assert.doesNotThrow(() => JSON.stringify(entries));
  }
});

test("siblings are stopped and waited for when one of them fails", async () => {
  const forked = sketchFlow({
    start: { edges: { go: { kind: "fork", steps: ["slow", "bad"], join: "end" } } },
    slow: { edges: { done: null }, transcript: "fresh" },
    bad: { edges: { done: null }, transcript: "fresh" },
    end: { edges: { done: null } },
  });
  let stopped = false;
  const backend: Backend = {
    spec,
    turn: ({ asker, signal }) => {
      if (asker.step === "start") return Promise.resolve(reply("go"));
      if (asker.step === "bad") return Promise.resolve(reply("abort"));
      return new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          stopped = true;
          resolve({ kind: "fault", fault: { kind: "other", message: "aborted" } });
        });
      });
    },
  };
  const { state, entries } = await play({ flow: forked, model: backend });
  assert.equal(state.verdict?.code, "ParallelSiblingFailure");
  assert.equal(stopped, true);
  assert.ok(
    entries.every(({ event }) => !("step" in event) || event.step !== "slow"),
    "nothing of the stopped one is recorded",
  );
});
