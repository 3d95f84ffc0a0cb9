/** Limits of steps and of their attempts: what is set aside, what is told, and how a run goes on with more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, TurnRequest } from "../../src/engine/ports.ts";
import { replay } from "../../src/story/replay.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow, Granted, Limits, StepLimits } from "../../src/flow/flow.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { createMemoryJournal, resume } from "../../src/run/index.ts";
import { runLoaded } from "../../src/run/open.ts";
import { sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { play } from "./played.ts";
import { ready } from "../ready.ts";

const project = { root: "/", agentsDir: "/.agent", stateDir: "/.lockstep" };
const loaded = (flow: Flow) => ({ agent: "sketch", project, flow, problems: [] });
const USAGE = { turns: 1, inputTokens: 6, outputTokens: 4, costUsd: 0.1 };

const round = (a: StepLimits, limits: Limits = {}): Flow =>
  sketchFlow(
    { a: { edges: { next: "b" }, limits: a }, b: { edges: { next: "a", closing: null } } },
    { limits: { visits: 40, ...limits } },
  );

/** Answers as it is told; remembers whom it heard, and what was said to it last. */
function model(answer: (request: TurnRequest, asked: number) => JsonObject | null, usage = USAGE) {
  const heard: { readonly step: string; readonly text: string }[] = [];
  const backend: Backend = {
    spec: { id: "test", options: null },
    turn: async (request) => {
      const last = request.messages.at(-1);
      heard.push({ step: request.asker.step, text: last?.role === "user" ? last.text : "" });
      const output = answer(request, heard.length);
      await new Promise(setImmediate);
      return { kind: "reply", text: "", calls: [], ...(output !== null && { output }), usage };
    },
  };
  const steps = () => heard.map(({ step }) => step);
  const told = (words: RegExp) =>
    heard.flatMap(({ step, text }, place) => (words.test(text) ? [`${step} ${place + 1}`] : []));
  return { backend, steps, told };
}

const goesOn = () => ({ next_action: { action: "next" } });

const rows: readonly [name: string, a: StepLimits, raised: StepLimits, asked: string, why: RegExp][] = [
  ["turns", { turns: 2 }, { turns: 3 }, "abab", /limit of 2 turns of step "a" is reached: 2 turns used/],
  ["tokens", { tokens: 29 }, { tokens: 30 }, "abab", /29 tokens of step "a".* reckoned with 10 tokens/],
  ["cost", { costUsd: 0.2 }, { costUsd: 0.3 }, "abab", /limit of \$0\.2 of step "a"/],
];
for (const [name, a, raised, asked, why] of rows) {
  test(`a step stops the run at its limit of ${name}, and a raised one goes on there`, async () => {
    const journal = createMemoryJournal();
    const { backend, steps } = model(goesOn);
    const stopped = await runLoaded(loaded(round(a)), { journal, backend });
    assert.deepEqual([stopped.exitCode, stopped.code, stopped.finalStepId], [4, "BUDGET_EXHAUSTED", "a"]);
    assert.match(stopped.reason, why);
    assert.equal(steps().join(""), asked);
    const [[limited, most] = []] = Object.entries(a);
    const { limit } = stopped;
    assert.deepEqual([limit?.of, limit?.step, limit?.name, limit?.most], ["step", "a", limited, most]);
    const more = await resume({ run: stopped.run!, journal, backend, spending: { steps: { a: raised } } });
    assert.deepEqual([more.code, steps().join("")], ["BUDGET_EXHAUSTED", `${asked}ab`]);
  });
}

test("an attempt has limits of its own, which each visit has anew", async () => {
  const { backend, steps } = model((_request, asked) =>
    asked === 5 ? {} : { next_action: { action: "next" } },
  );
  const flow = round({ perAttempt: { turns: 1 } });
  const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend });
  assert.match(result.reason, /limit of 1 turn of one attempt of step "a"/);
  assert.equal(steps().join(""), "ababa");
});

test("each try of a stage is an attempt", async () => {
  const flow = sketchMachine({
    a: {
      attempts: 3,
      turns: 2,
      schema: { type: "object", required: ["x"] },
      limits: { perAttempt: { turns: 2 } },
    },
  });
  const { backend, steps } = model(() => ({}));
  const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend });
  assert.notEqual(result.code, "BUDGET_EXHAUSTED", result.reason);
  assert.ok(steps().length >= 2);
});

for (const [turns, queries] of [
  [1, 6],
  [2, 3],
  [3, 2],
  [9, 1],
] as const) {
  test(`a query of ${turns} responses counts as so many: a cap of 6 is reached by ${queries}`, async () => {
    const usage = { turns, inputTokens: 0, outputTokens: 0, costUsd: null };
    let asked = 0;
    const backend: Backend = {
      spec: { id: "agent", options: null },
      turn: () => {
        asked += 1;
        return Promise.resolve({ kind: "reply", text: "I am at it.", calls: [], usage });
      },
    };
    const flow = sketchMachine({ a: { attempts: 1, turns: 6 } });
    const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend });
    assert.deepEqual([result.code, asked], ["AGENT_TURN_LIMIT", queries], result.reason);
  });
}

const softly: readonly [name: string, a: StepLimits, run: Limits, told: readonly string[]][] = [
  ["four fifths of a step's limit", { turns: 5 }, {}, ["a 9"]],
  ["a share that the step says", { turns: 5, soft: 0.4 }, {}, ["a 5"]],
  ["an amount", { turns: 5, soft: { turns: 1 } }, {}, ["a 3"]],
  ["one word for each limit", { turns: 5, soft: 0.4 }, { turns: 20, soft: { turns: 7 } }, ["a 5", "b 8"]],
  ["nothing where all may be used first", { turns: 5, soft: 1 }, {}, []],
  ["not before anything is used", { turns: 5, soft: 0 }, {}, ["a 3"]],
  ["four fifths where an amount of something else is given", { turns: 5, soft: { tokens: 1 } }, {}, ["a 9"]],
  ["of the run and of the step at once", { turns: 5, soft: 0.4 }, { turns: 20, soft: 0.2 }, ["a 5"]],
  ["for cost and for tokens", { costUsd: 0.5 }, { tokens: 100, soft: { tokens: 30 } }, ["b 4", "a 9"]],
];
for (const [name, a, run, told] of softly) {
  test(`the model is told once: ${name}`, async () => {
    const { backend, told: when } = model(goesOn);
    await runLoaded(loaded(round(a, run)), { journal: createMemoryJournal(), backend });
    assert.deepEqual(when(/are used/), told);
  });
}

/** The narrowest limit is named, where several are reached by the same call. */
const narrowest: readonly [a: StepLimits, run: Limits, asked: string, of: string, step: string][] = [
  [{ turns: 1 }, { turns: 2 }, "ab", "step", "a"],
  [{ turns: 2 }, { turns: 2 }, "ab", "run", "a"],
  [{ turns: 3, perAttempt: { tokens: 9 } }, { tokens: 9 }, "a", "run", "b"],
  [{ turns: 1, perAttempt: { tokens: 9 } }, { turns: 2 }, "ab", "attempt", "a"],
];
for (const [a, run, asked, of, step] of narrowest) {
  test(`of ${JSON.stringify(a)} and ${JSON.stringify(run)} the limit of the ${of} is named`, async () => {
    const { backend, steps } = model(goesOn);
    const result = await runLoaded(loaded(round(a, run)), { journal: createMemoryJournal(), backend });
    assert.deepEqual([result.code, steps().join("")], ["BUDGET_EXHAUSTED", asked]);
    assert.deepEqual([result.limit?.of, result.finalStepId], [of, step], result.reason);
  });
}

test("what is set aside for a sibling counts against the run, and not against the limit of another step", async () => {
  const flow = sketchMachine(
    {
      split: { next: { kind: "fork", steps: ["a", "b"], join: "end" } },
      a: {},
      b: { limits: { turns: 1, tokens: 15 } },
      end: {},
    },
    { limits: { visits: 40, turns: 9 } },
  );
  const began: string[] = [];
  const { backend } = model(({ asker }) => {
    began.push(asker.step);
    return {};
  });
  const observe = ({ event }: Entry) =>
    void (event.type === "step.answered" && began.push(`${event.step} answered`));
  const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend, observe });
  assert.equal(result.exitCode, 0, result.reason);
  assert.deepEqual(began.slice(2, 4), ["a", "b"], "b does not wait for a");
});

const attempts: readonly [name: string, perAttempt: Limits, told: readonly string[]][] = [
  ["its last fifth", { turns: 5 }, ["a 5", "a 10"]],
  ["an amount", { turns: 5, soft: { turns: 2 } }, ["a 3", "a 8"]],
];
for (const [name, perAttempt, told] of attempts) {
  test(`each attempt is told once of its limit: ${name}`, async () => {
    const flow = sketchMachine({ a: { attempts: 2, turns: 5, limits: { perAttempt } } });
    // It never completes: each attempt uses all of its responses.
    const { backend, told: when } = model(() => null);
    await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend });
    assert.deepEqual(when(/are used in this attempt/), told);
  });
}

test("a command in the place of a model is not held back by a limit", async () => {
  const { backend, steps } = model(goesOn);
  const flow = round({}, { turns: 1 });
  const performed: string[] = [];
  const shell = {
    check: () => Promise.reject(new Error("there are no checks")),
    perform: ({ id }: { readonly id: string }) => {
      performed.push(id);
      const usage = { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };
      const output = { next_action: { action: "closing" } };
      return Promise.resolve({ kind: "reply", text: "", calls: [], output, usage } as const);
    },
  };
  const b = {
    ...flow.steps["b"]!,
    by: { kind: "command", command: "true", args: [], timeoutMs: 1000 },
  } as const;
  const { state } = await play({
    flow: { ...flow, steps: { ...flow.steps, b } },
    model: backend,
    ports: { shell },
  });
  assert.deepEqual([state.verdict?.outcome, steps(), performed], ["completed", ["a"], ["b"]]);
});

const SIBLINGS = ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];
const fan = (limits: Limits): Flow =>
  sketchMachine(
    {
      split: { next: { kind: "fork", steps: SIBLINGS, join: "end" } },
      ...Object.fromEntries(SIBLINGS.map((id) => [id, {}])),
      end: {},
    },
    { limits: { visits: 40, ...limits } },
  );

for (const [name, limits, granted] of [
  ["tokens", { tokens: 45 }, { tokens: 200 }],
  ["cost", { costUsd: 0.45 }, { costUsd: 9 }],
  ["turns", { turns: 4 }, { turns: 99 }],
] as const satisfies readonly (readonly [string, Limits, Granted])[]) {
  test(`eight siblings at once never go beyond a limit of ${name} that three of them fit into`, async () => {
    const journal = createMemoryJournal();
    let asked = 0;
    let most = 0;
    let running = 0;
    // The first call is as large as any after it: so each takes at most what was set aside for it.
    const backend: Backend = {
      spec: { id: "test", options: null },
      turn: async () => {
        asked += 1;
        running += 1;
        most = Math.max(most, running);
        for (let rest = (asked * 7) % 5; rest >= 0; rest--) await new Promise(setImmediate);
        running -= 1;
        const usage = asked === 1 ? USAGE : { ...USAGE, inputTokens: 6 - (asked % 2), costUsd: 0.09 };
        return { kind: "reply", text: "", calls: [], output: {}, usage };
      },
    };
    const entries: Entry[] = [];
    const observe = (entry: Entry) => void entries.push(entry);
    const stopped = await runLoaded(loaded(fan(limits)), { journal, backend, observe });
    assert.deepEqual([stopped.code, stopped.exitCode, asked, most], ["BUDGET_EXHAUSTED", 4, 4, 3]);
    const { turns, inputTokens, outputTokens } = stopped.usage;
    assert.ok(turns <= 4 && inputTokens + outputTokens <= 45 && (stopped.costUsd ?? 0) <= 0.45);
    assert.equal(replay(ready(fan(limits)), entries).difference, null);
    const done = await resume({ run: stopped.run!, journal, backend, spending: granted });
    assert.deepEqual([done.exitCode, asked], [0, 10], done.reason);
  });
}

/** Time passes only for whoever waits for it. */
function slowClock() {
  let now = 0;
  return {
    now: () => now,
    sleep: async (ms: number, signal: AbortSignal) => {
      await new Promise(setImmediate);
      if (!signal.aborted) now += ms;
    },
  };
}

for (const [name, limits, why] of [
  ["step", { wallMs: 500 }, /limit of 500 ms of step "a"/],
  ["attempt", { perAttempt: { wallMs: 500 } }, /limit of 500 ms of one attempt of step "a"/],
] as const) {
  test(`the time of a ${name} is up in the middle of a call: it is stopped, and asked again when resumed`, async () => {
    const journal = createMemoryJournal();
    const clock = slowClock();
    let isSlow = true;
    const backend: Backend = {
      spec: { id: "test", options: null },
      turn: async ({ asker, signal }) => {
        if (isSlow && asker.step === "a")
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        if (signal.aborted) return { kind: "fault", fault: { kind: "other", message: "stopped" } };
        const output = { next_action: { action: asker.step === "a" ? "next" : "closing" } };
        return { kind: "reply", text: "", calls: [], output, usage: USAGE };
      },
    };
    const stopped = await runLoaded(loaded(round(limits)), { journal, backend, clock });
    assert.deepEqual([stopped.code, stopped.exitCode, stopped.resumable], ["BUDGET_EXHAUSTED", 4, true]);
    assert.match(stopped.reason, why);
    assert.deepEqual(stopped.limit, { of: name, step: "a", name: "wallMs", most: 500, used: 500 });
    assert.equal(stopped.finalStepId, "a");
    isSlow = false;
    const same = await resume({ run: stopped.run!, journal, backend, clock });
    assert.equal(same.code, "BUDGET_EXHAUSTED");
    const a = "wallMs" in limits ? { wallMs: 90_000 } : { perAttempt: { wallMs: 90_000 } };
    const done = await resume({ run: stopped.run!, journal, backend, clock, spending: { steps: { a } } });
    assert.equal(done.exitCode, 0, done.reason);
  });
}

test("that time is nearly up is told once, and recorded", async () => {
  let now = 0;
  const clock = {
    now: () => now,
    sleep: (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  };
  const { backend, told } = model((_request, asked) => {
    now += 100;
    return { next_action: { action: asked === 8 ? "closing" : "next" } };
  });
  const entries: Entry[] = [];
  const flow = round({ wallMs: 1000, soft: { wallMs: 150 } }, { wallMs: 100_000, soft: { wallMs: 550 } });
  const observe = (entry: Entry) => void entries.push(entry);
  const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend, clock, observe });
  assert.equal(result.exitCode, 0, result.reason);
  assert.deepEqual(told(/ms are used/), ["a 5", "a 7"]);
  assert.equal(entries.filter(({ event }) => event.type === "step.warned").length, 2);
  assert.equal(replay(ready(flow), entries).difference, null);
});

test("time that passes between an entry and the next question counts too", async () => {
  let now = 1_000_000;
  const clock = {
    now: () => now,
    sleep: (_ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  };
  const { backend, told } = model((_request, asked) => ({
    next_action: { action: asked === 4 ? "closing" : "next" },
  }));
  const flow = round({}, { wallMs: 100_000, soft: { wallMs: 50 } });
  const observe = ({ event }: Entry) => void (now += event.type === "step.answered" ? 100 : 0);
  const result = await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend, clock, observe });
  assert.equal(result.exitCode, 0, result.reason);
  assert.deepEqual(told(/ms are used/), ["b 2"]);
});

test("a step that is not there cannot be limited", async () => {
  const { backend } = model(goesOn);
  const spending = { steps: { aa: { turns: 1 } } };
  const result = await runLoaded(loaded(round({})), { journal: createMemoryJournal(), backend, spending });
  assert.deepEqual([result.exitCode, result.code], [2, "PARAMETERS_INVALID"]);
  assert.match(result.reason, /step "aa".*"a"/);
});

test("an agent with a loop of its own is given no more responses than are left, shared among siblings", async () => {
  const given: number[] = [];
  const backend: Backend = {
    spec: { id: "test", options: null },
    run: async ({ maxTurns, asker }) => {
      if (asker.step !== "split") given.push(maxTurns);
      return { kind: "reply", text: "", calls: [], output: {}, usage: USAGE };
    },
  };
  const flow = sketchMachine(
    {
      split: { next: { kind: "fork", steps: ["a", "b"], join: "end" } },
      a: { turns: 50 },
      b: { turns: 50, limits: { turns: 3 } },
      end: {},
    },
    { limits: { visits: 40, turns: 21 } },
  );
  await runLoaded(loaded(flow), { journal: createMemoryJournal(), backend });
  assert.deepEqual(given.slice(0, 2), [10, 3]);
});
