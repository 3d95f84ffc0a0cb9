/** What a run may spend: nothing is asked beyond a limit, the model hears of it once before, and a raised one goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend } from "../../../src/engine/ports.ts";
import type { Flow, Spending, Step } from "../../../src/flow/flow.ts";
import { prepare } from "../../../src/engine/schema/prepared.ts";
import { story } from "../../../src/story/story.ts";
import { run, resume, createMemoryJournal } from "../../../src/run/index.ts";
import { runLoaded } from "../../../src/run/open.ts";
import { sketchFlow, sketchMachine } from "../../../src/testing/flows.ts";
import { play } from "../played.ts";

const steps = (limits: Spending): Flow =>
  sketchFlow(
    { a: { edges: { next: "b" } }, b: { edges: { next: "a", closing: null } } },
    { limits: { visits: 20, ...limits } },
  );

/** Says what leads on, for so much, and remembers what it was told. */
function model(usage: { inputTokens: number; outputTokens: number; costUsd: number | null }, last: number) {
  const heard: string[] = [];
  let asked = 0;
  const backend: Backend = {
    spec: { id: "test", options: null },
    turn: ({ messages }) => {
      asked += 1;
      const newest = messages.at(-1);
      heard.push(newest?.role === "user" ? newest.text : "");
      const output = { next_action: { action: asked === last ? "closing" : "next" } };
      return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage: { turns: 1, ...usage } });
    },
  };
  return { backend, heard, asked: () => asked };
}

const FREE = { inputTokens: 10, outputTokens: 5, costUsd: null };

const rows: readonly [
  name: string,
  limits: Spending,
  usage: typeof FREE | { costUsd: number; inputTokens: number; outputTokens: number },
  asked: number,
][] = [
  ["turns", { turns: 3 }, FREE, 3],
  ["tokens", { tokens: 30 }, FREE, 2],
  ["tokens, where one call more would go beyond it", { tokens: 44 }, FREE, 2],
  ["tokens, just filled", { tokens: 45 }, FREE, 3],
  ["cost", { costUsd: 0.3 }, { ...FREE, costUsd: 0.1 }, 3],
  ["the first of several", { turns: 5, tokens: 30 }, FREE, 2],
];
for (const [name, limits, usage, asked] of rows) {
  test(`a run stops at its limit of ${name}`, async () => {
    const { backend, asked: count } = model(usage, 99);
    const { state } = await play({ flow: steps(limits), model: backend });
    assert.deepEqual([state.verdict?.outcome, state.verdict?.code], ["failed", "BUDGET_EXHAUSTED"]);
    assert.match(state.verdict?.reason ?? "", /is reached: .* used.*\. Resume the run with a higher one/);
    assert.equal(count(), asked);
    assert.ok(state.halted.length > 0, "it can be resumed");
  });
}

test("a run below its limits is not stopped, also where the price is not known and nothing limits the cost", async () => {
  const { backend } = model(FREE, 4);
  const { state } = await play({ flow: steps({ tokens: 9000, turns: 20 }), model: backend });
  assert.equal(state.verdict?.outcome, "completed");
});

test("siblings under way finish when one of them comes without figures; nothing more is asked", async () => {
  const flow: Flow = {
    ...sketchMachine({
      start: { next: { kind: "fork", steps: ["one", "two"], join: "end" } },
      one: {},
      two: {},
      end: {},
    }),
    limits: { visits: 20, tokens: 900 },
  };
  const asked: string[] = [];
  const backend: Backend = {
    spec: { id: "test", options: null },
    turn: ({ asker, output }) => {
      asked.push(asker.step);
      const name = output?.channel.kind === "tool" ? output.channel.name : "";
      const tokens = asker.step === "one" ? 0 : 10;
      const usage = { turns: 1, inputTokens: tokens, outputTokens: 0, costUsd: null };
      return Promise.resolve({ kind: "reply", text: "", calls: [{ id: "1", name, input: {} }], usage });
    },
  };
  const { state } = await play({ flow, model: backend });
  assert.deepEqual([state.verdict?.code, asked.toSorted()], ["LIMIT_UNMETERED", ["one", "start", "two"]]);
  assert.ok(state.halted.length > 0, "it can be resumed");
});

const sums: readonly [
  name: string,
  costs: readonly (number | null)[],
  told: { readonly costUsd: number | null; readonly knownCostUsd?: number },
  steps: readonly (number | null)[],
][] = [
  ["known", [0.25, 0.5, 0.25], { costUsd: 1 }, [0.5, 0.5]],
  ["free", [0, 0, 0], { costUsd: 0 }, [0, 0]],
  ["not known", [null, null, null], { costUsd: null }, [null, null]],
  ["known first", [0.25, null, 0.25], { costUsd: null, knownCostUsd: 0.5 }, [0.5, null]],
  ["known later", [null, null, 0.25], { costUsd: null, knownCostUsd: 0.25 }, [null, null]],
  ["known but for the last", [0.25, 0.5, null], { costUsd: null, knownCostUsd: 0.75 }, [null, 0.5]],
];
for (const [name, costs, told, ofSteps] of sums) {
  test(`what a run cost where prices are ${name}`, async () => {
    let asked = 0;
    const backend: Backend = {
      spec: { id: "test", options: null },
      turn: () => {
        const costUsd = costs[asked++]!;
        const action = asked === costs.length ? "closing" : "next";
        const usage = { turns: 1, inputTokens: 10, outputTokens: 5, costUsd };
        return Promise.resolve({
          kind: "reply",
          text: "",
          calls: [],
          output: { next_action: { action } },
          usage,
        });
      },
    };
    const flow = sketchFlow(
      { a: { edges: { next: "b", closing: null } }, b: { edges: { next: "a" } } },
      { limits: { visits: 20 } },
    );
    const loaded = { agent: "t", project, flow, problems: [] };
    const {
      costUsd,
      knownCostUsd,
      steps: took,
    } = await runLoaded(loaded, {
      backend,
      journal: createMemoryJournal(),
      env: {},
    });
    assert.deepEqual({ costUsd, ...(knownCostUsd !== undefined && { knownCostUsd }) }, told);
    assert.deepEqual(
      took.map((step) => step.costUsd),
      ofSteps,
    );
  });
}

const sizes: readonly [tokens: readonly number[], limit: number, asked: number][] = [
  // a, b, a, b …: a step is expected to take as much as its largest call, not as its last one; a new one as any other.
  [[20, 1, 1, 1, 1, 1], 30, 1],
  [[20, 1, 1, 1, 1, 1], 40, 2],
  [[20, 1, 1, 1, 1, 1], 42, 4],
  [[20, 1, 1, 1, 1, 1], 43, 6],
  [[1, 20, 1, 1, 1, 1], 30, 3],
  [[1, 1, 20, 1, 1, 1], 30, 4],
  [[1, 1, 1, 1, 1, 1], 4, 4],
];
const three = (limits: Spending): Flow =>
  sketchFlow(
    { a: { edges: { next: "b" } }, b: { edges: { next: "c" } }, c: { edges: { next: "a" } } },
    { limits: { visits: 20, ...limits } },
  );
/** a, b, c, a …: a step that has made no call is expected to take as much as the largest of any step. */
const ofThree: typeof sizes = [
  [[1, 20, 1, 1, 1, 1], 30, 2],
  [[20, 1, 1, 1, 1, 1], 41, 3],
  [[1, 20, 1, 1, 1, 1], 41, 4],
];
for (const unit of ["tokens", "costUsd"] as const) {
  for (const [tokens, limit, expected] of [...sizes, ...ofThree]) {
    const flow = ofThree.some((row) => row[0] === tokens) ? three : steps;
    const name = `${flow === three ? "three" : "two"} steps`;
    test(`${name}: calls of ${tokens.join(", ")} stop at ${unit} of ${limit} after ${expected}`, async () => {
      let asked = 0;
      const backend: Backend = {
        spec: { id: "test", options: null },
        turn: () => {
          const size = tokens[asked++] ?? 1;
          const [inputTokens, costUsd] = unit === "tokens" ? [size, null] : [1, size / 100];
          const usage = { turns: 1, inputTokens, outputTokens: 0, costUsd };
          const output = { next_action: { action: "next" } };
          return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage });
        },
      };
      const most = unit === "tokens" ? limit : limit / 100;
      const { state } = await play({ flow: flow({ [unit]: most }), model: backend });
      assert.deepEqual([state.verdict?.code, asked], ["BUDGET_EXHAUSTED", expected]);
    });
  }
}

test("the model is told once that a limit is near", async () => {
  const { backend, heard } = model(FREE, 9);
  await play({ flow: steps({ turns: 10 }), model: backend });
  const told = heard.flatMap((text, index) => (/turns are used/.test(text) ? [index] : []));
  assert.deepEqual(told, [8]);
});

test("siblings cannot go beyond a limit together", async () => {
  const machine = sketchMachine(
    { split: { next: { kind: "fork", steps: ["a", "b"], join: "end" } }, a: {}, b: {}, end: {} },
    { limits: { visits: 20, turns: 2 } },
  );
  const { state, asked } = await play({
    flow: machine,
    model: [{ step: "split", output: {} }, { output: {} }, { output: {} }],
  });
  assert.deepEqual([state.verdict?.code, asked], ["BUDGET_EXHAUSTED", ["split@1/1", "a@1/1"]]);
});

test("of siblings only the one that is near its limit is told", async () => {
  const machine = sketchMachine({
    split: { next: { kind: "fork", steps: ["a", "b"], join: "end" } },
    a: {},
    b: {},
    end: {},
  });
  const a: Step = { ...machine.steps["a"]!, limits: { turns: 3, soft: 0.3 } };
  const flow = { ...machine, steps: { ...machine.steps, a } };
  const output = (step: string) => ({ step, output: {} });
  const { entries } = await play({
    flow,
    model: [output("split"), { step: "a", text: "not yet" }, output("b"), output("a"), output("end")],
  });
  const told = [...story(await prepare(flow), entries)].flatMap(({ after }) =>
    after.lanes.filter(({ say }) => say.some(({ kind }) => kind === "budget")).map(({ step }) => step),
  );
  assert.deepEqual([...new Set(told)], ["a"]);
});

const project = { root: "/", agentsDir: "/.agent", stateDir: "/.lockstep" };

test("a raised limit goes on where the run stopped, and repeats nothing", async () => {
  const journal = createMemoryJournal();
  const { backend, asked } = model(FREE, 6);
  const loaded = { agent: "sketch", project, flow: steps({ turns: 3 }), problems: [] };
  const stopped = await runLoaded(loaded, { journal, backend });
  assert.deepEqual([stopped.exitCode, stopped.code, stopped.resumable], [4, "BUDGET_EXHAUSTED", true]);
  const again = await resume({ run: stopped.run!, journal, backend });
  assert.deepEqual([again.code, asked()], ["BUDGET_EXHAUSTED", 3]);
  const more = await resume({ run: stopped.run!, journal, backend, spending: { turns: 5 } });
  assert.deepEqual([more.code, asked()], ["BUDGET_EXHAUSTED", 5]);
  const done = await resume({ run: stopped.run!, journal, backend, spending: { turns: 50 } });
  assert.deepEqual([done.exitCode, asked(), done.usage.turns], [0, 6, 6]);
});

test("what is given for a run stands above what its files say", async () => {
  const { backend, asked } = model(FREE, 99);
  const loaded = { agent: "sketch", project, flow: steps({ turns: 9 }), problems: [] };
  const result = await runLoaded(loaded, { journal: createMemoryJournal(), backend, spending: { turns: 2 } });
  assert.deepEqual([result.code, asked()], ["BUDGET_EXHAUSTED", 2]);
});

test("time is up in the middle of a question: the run ends, and the question is asked again when it is resumed", async () => {
  const journal = createMemoryJournal();
  let now = 0;
  let isSlow = true;
  const clock = {
    now: () => now,
    // Time passes only for whoever waits for it.
    sleep: async (ms: number, signal: AbortSignal) => {
      await new Promise(setImmediate);
      if (!signal.aborted) now += ms;
    },
  };
  const backend: Backend = {
    spec: { id: "test", options: null },
    turn: async ({ signal }) => {
      if (isSlow) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      const usage = { turns: 1, ...FREE };
      if (signal.aborted) return { kind: "fault", fault: { kind: "other", message: "stopped" } };
      return { kind: "reply", text: "", calls: [], output: { next_action: { action: "closing" } }, usage };
    },
  };
  const flow = sketchFlow({ a: { edges: { closing: null } } }, { limits: { visits: 20, wallMs: 5000 } });
  const stopped = await runLoaded(
    { agent: "sketch", project, flow, problems: [] },
    { journal, backend, clock },
  );
  assert.deepEqual([stopped.code, stopped.exitCode, stopped.resumable], ["BUDGET_EXHAUSTED", 4, true]);
  assert.match(stopped.reason, /5000 ms/);
  assert.deepEqual(stopped.limit, { of: "run", step: "", name: "wallMs", most: 5000, used: 5000 });
  isSlow = false;
  const done = await resume({ run: stopped.run!, journal, backend, clock, spending: { wallMs: 9_000_000 } });
  assert.equal(done.exitCode, 0, done.reason);
});

test("limits of an agent that cannot be loaded are no matter", async () => {
  const result = await run({
    agent: "nobody",
    cwd: "/",
    journal: createMemoryJournal(),
    spending: { turns: 1 },
  });
  assert.equal(result.exitCode, 2);
});
