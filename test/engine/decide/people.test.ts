/** Pausing, being cut off and going round in circles: what the engine makes of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Backend, Person, Ports } from "../../../src/engine/ports.ts";
import { replay } from "../../../src/story/replay.ts";
import type { ScriptReply } from "../../../src/backends/scripted/script.ts";
import { createScripted } from "../../../src/backends/scripted/scripted.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { watchOver } from "../../../src/run/world/watchdog.ts";
import { sketchFlow, sketchMachine } from "../../../src/testing/flows.ts";
import { play, type Played } from "../played.ts";
import { ready } from "../../ready.ts";

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const LINE = sketchFlow({
  "initial.a": { edges: { next: "initial.b" } },
  "initial.b": { edges: { next: "closure.a" } },
  "closure.a": { edges: { closing: null } },
});
const typesOf = ({ entries }: Played) => entries.map(({ event }) => event.type);

/** A model in whose n-th answer somebody wants the run to pause. */
function pausing(replies: readonly ScriptReply[], at: number) {
  const pause = new AbortController();
  const scripted = createScripted(replies);
  let asked = 0;
  const model: Backend = {
    ...scripted,
    turn: async (request) => {
      const result = await scripted.turn!(request);
      asked += 1;
      if (asked === at) pause.abort();
      return result;
    },
  };
  return { model, wishes: { pause: pause.signal, stop: new AbortController().signal } };
}

test("a pause lets what is under way come in, and goes on from there", async () => {
  const { model, wishes } = pausing([say("next"), say("next")], 1);
  const rested = await play({ flow: LINE, model, wishes });
  assert.deepEqual(
    [rested.state.verdict?.outcome, rested.state.verdict?.code],
    ["waiting", "PAUSED"],
    rested.state.verdict?.reason,
  );
  assert.deepEqual(typesOf(rested), ["run.started", "step.answered", "run.paused", "run.ended"]);
  assert.equal(rested.entries[1]?.led?.to, "initial.b");
  for (const cut of [3, 4]) {
    const past = rested.entries.slice(0, cut);
    const whole = await play({ flow: LINE, past, model: [say("next"), say("next"), say("closing")] });
    assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
    assert.deepEqual(whole.asked, ["initial.b@1/1", "closure.a@1/1"]);
    assert.equal(replay(ready(LINE), whole.entries).difference, null);
  }
});

test("a run whose last answer is under way is over, and not paused", async () => {
  const { model, wishes } = pausing([say("next"), say("next"), say("closing")], 3);
  const whole = await play({ flow: LINE, model, wishes });
  assert.equal(whole.state.verdict?.outcome, "completed");
});

test("siblings that are under way come in before the run rests", async () => {
  const flow = sketchMachine({
    s: { next: { kind: "fork", steps: ["a", "b"], join: "meet" } },
    a: { turns: 3 },
    b: {},
    meet: {},
  });
  const replies: readonly ScriptReply[] = [
    { step: "s", output: {} },
    { step: "a", text: "hm" },
    { step: "b", output: {} },
    { step: "a", output: {} },
    { step: "meet", output: {} },
  ];
  const { model, wishes } = pausing(replies, 2);
  const rested = await play({ flow, model, wishes });
  assert.equal(rested.state.verdict?.code, "PAUSED");
  assert.deepEqual(rested.asked, ["s@1/1", "a@1/1", "b@1/1"]);
  const whole = await play({ flow, model: replies, past: rested.entries });
  assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
  assert.deepEqual(whole.asked, ["a@1/2", "meet@1/1"]);
});

test("a question that is open when the run is paused is open when it goes on", async () => {
  const pause = new AbortController();
  const waiting: Person = {
    ask: async (_question, signal) => {
      pause.abort();
      return await new Promise((resolve) => {
        if (signal.aborted) resolve(null);
        signal.addEventListener("abort", () => resolve(null));
      });
    },
    isReachable: true,
    absent: "deny",
  };
  const flow = sketchMachine(
    { a: { rules: { gate: "ready", unresolved: "ask" } } },
    { checks: { ready: { ...GATE, name: "ready" } } },
  );
  const scenario = { flow, checks: [[{ ok: false }]], model: [{ output: {} }] };
  const wishes = { pause: pause.signal, stop: new AbortController().signal };
  const rested = await play({ ...scenario, ports: { person: waiting }, wishes });
  assert.deepEqual(typesOf(rested).slice(-3), ["step.asked", "run.paused", "run.ended"]);
  const yes: Person = { ...waiting, ask: () => Promise.resolve({ answer: "proceed", by: "answer" }) };
  const whole = await play({ ...scenario, ports: { person: yes }, past: rested.entries });
  assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
  assert.equal(replay(ready(flow), whole.entries).difference, null);
});

const GATE = {
  kind: "command",
  command: "true",
  env: {},
  success: { kind: "exit", code: 0 },
  pattern: "p",
  description: "",
  extract: {},
  timeoutMs: 1,
  maxOutputBytes: 1,
} as const;

// Cut off.

const withPolicy = (ifInterrupted?: "ask" | "fail"): Flow => ({
  ...LINE,
  steps: {
    ...LINE.steps,
    "initial.b": { ...LINE.steps["initial.b"]!, ...(ifInterrupted !== undefined && { ifInterrupted }) },
  },
});
const answering = (answer: string | null): Person => ({
  ask: () => Promise.resolve(answer === null ? null : { answer, by: "terminal" }),
  isReachable: answer !== null,
  absent: "deny",
});

for (const [name, policy, answer, code] of [
  ["again, unless it says otherwise", undefined, null, null],
  ["fail", "fail", null, "STEP_INTERRUPTED"],
  ["ask, and somebody says again", "ask", "retry", null],
  ["ask, and somebody says no", "ask", "fail", "STEP_INTERRUPTED"],
  ["ask, and nobody is there", "ask", null, "AnswerRequired"],
] as const) {
  test(`a step that was under way when its process died: ${name}`, async () => {
    const flow = withPolicy(policy);
    const model = [say("next"), say("next"), say("closing")];
    const { entries } = await play({ flow, model });
    const past = entries.slice(0, 2);
    const attempts: number[] = [];
    const scripted = createScripted(model.slice(1));
    const backend: Backend = {
      ...scripted,
      turn: async (request) => {
        attempts.push(request.asker.attempt);
        return await scripted.turn!(request);
      },
    };
    const ran = await play({ flow, past, model: backend, ports: { person: answering(answer) } });
    assert.equal(ran.state.verdict?.code, code, ran.state.verdict?.reason);
    if (code === null) assert.deepEqual(attempts, [2, 1]);
    assert.equal(replay(ready(flow), ran.entries).difference, null);
    // What nothing was under way in is nobody's question.
    const fine = await play({ flow, past: entries.slice(0, 1), model, ports: { person: answering(null) } });
    assert.equal(fine.state.verdict?.code, null);
  });
}

for (const [answer, by, why] of [
  ["fail", "terminal", /not done again: a person said so\.$/],
  ["fail", "expired", /not done again: nobody answered in time\.$/],
  [null, "expired", /not done again: nobody answered in time\.$/],
  [null, "headless", /not done again: there was nobody to ask\.$/],
] as const) {
  test(`a step that was cut off is not done again: ${answer} by ${by}`, async () => {
    const flow = withPolicy("ask");
    const model = [say("next"), say("next"), say("closing")];
    const { entries } = await play({ flow, model });
    const person: Person = { ask: async () => ({ answer, by }), isReachable: true, absent: "deny" };
    const ran = await play({ flow, past: entries.slice(0, 2), model: model.slice(1), ports: { person } });
    assert.equal(ran.state.verdict?.code, "STEP_INTERRUPTED");
    assert.match(ran.state.verdict.reason, why);
  });
}

// Going round.

const watching = (repeats: number, flow: Flow): Flow => ({
  ...flow,
  settings: { ...flow.settings, watch: { repeats } },
});

const calling = (name: string, file_path = "a"): ScriptReply => ({ calls: [{ name, input: { file_path } }] });
const READING = calling("Read");
const ROUND = sketchFlow({ "initial.a": { edges: { repeat: "initial.a", closing: null } } });
/** Two steps that lead to each other. */
const PAIR = sketchFlow({
  "initial.a": { edges: { next: "initial.b" } },
  "initial.b": { edges: { next: "initial.a", closing: null } },
});
const FREE = sketchFlow(
  { "initial.a": { free: true, edges: { done: "initial.a" } } },
  { limits: { visits: 6 } },
);
const said = (...texts: readonly string[]): readonly ScriptReply[] => texts.map((text) => ({ text }));
const REPEATED = [say("repeat"), say("repeat"), say("repeat"), say("repeat")];
for (const [name, flow, model, code] of [
  ["the same calls", LINE, [READING, READING, READING, READING], "STUCK"],
  [
    "other calls in between",
    ROUND,
    [READING, READING, { calls: [{ name: "Read", input: {} }] }, READING, READING, say("closing")],
    null,
  ],
  ["the same answer", ROUND, REPEATED, "STUCK"],
  [
    "the same input for another tool",
    ROUND,
    [READING, READING, calling("Glob"), READING, say("closing")],
    null,
  ],
  [
    "the same tool for another file",
    ROUND,
    [READING, READING, calling("Read", "b"), READING, say("closing")],
    null,
  ],
  [
    "the same calls in another visit",
    PAIR,
    [READING, READING, say("next"), say("next"), READING, READING, say("next"), say("closing")],
    null,
  ],
  [
    "the same answers of two steps in turn",
    PAIR,
    [...Array.from({ length: 9 }, () => say("next")), say("closing")],
    null,
  ],
  [
    "another word beside the same intent",
    ROUND,
    [...REPEATED.map((_, place) => say("repeat", { place })), say("closing")],
    null,
  ],
  ["the same text", FREE, said("on it", "on it", "on it", "on it"), "STUCK"],
  ["another text", FREE, said("1", "2", "3", "4", "5", "6"), "AGENT_MAX_ITERATIONS"],
  [
    "the same answer, which is the last one anyway",
    { ...ROUND, limits: { visits: 4 } },
    REPEATED,
    "AGENT_MAX_ITERATIONS",
  ],
  [
    "told, it does something else",
    ROUND,
    [say("repeat"), say("repeat"), say("repeat"), { ...say("closing"), saw: ["3 times in a row"] }],
    null,
  ],
] as const) {
  test(`going round in circles: ${name}`, async () => {
    // The results are all alike, so that nothing but the calls tells them apart.
    const ran = await play({ flow: watching(3, flow), model, ports: { toolbox: results(() => true) } });
    assert.equal(ran.state.verdict?.code, code, ran.state.verdict?.reason);
    assert.equal(ran.state.halted.length, code === "STUCK" ? 1 : 0);
    const free = await play({ flow, model });
    assert.notEqual(free.state.verdict?.code, "STUCK");
  });
}

/** Tools that always say the same; `isOk`: whether the n-th call succeeds. */
function results(isOk: (n: number) => boolean): Ports["toolbox"] {
  let count = 0;
  return {
    offer: () => [],
    judge: () => null,
    call: async (_step, calls) =>
      calls.map(({ id, name }) => ({ id, name, ok: isOk((count += 1)), content: "done" })),
    callGranted: () => Promise.reject(new Error("there are no stages")),
  };
}

test("going round in circles: a call that fails and then does not has another result", async () => {
  const model = [READING, READING, READING, READING, say("closing")];
  for (const [isOk, code] of [
    [() => false, "STUCK"],
    [(n: number) => n % 2 === 0, null],
  ] as const) {
    const ran = await play({ flow: watching(3, ROUND), model, ports: { toolbox: results(isOk) } });
    assert.equal(ran.state.verdict?.code, code, ran.state.verdict?.reason);
  }
});

test("going round in circles: who goes on with a run gives it new patience", async () => {
  const flow = watching(3, ROUND);
  const stuck = await play({ flow, model: REPEATED });
  assert.equal(stuck.state.verdict?.code, "STUCK");
  const more = await play({
    flow,
    past: stuck.entries,
    model: [...REPEATED, ...REPEATED.slice(1), say("closing")],
  });
  assert.equal(more.state.verdict?.code, null, more.state.verdict?.reason);
  const again = await play({ flow, past: stuck.entries, model: [...REPEATED, ...REPEATED] });
  assert.equal(again.state.verdict?.code, "STUCK");
});

test("an agent that gives no sign of life is given up, and asked again", async () => {
  let asked = 0;
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
  const agent: Backend = {
    spec: { id: "agent", options: null },
    run: async ({ signal, onText }) => {
      asked += 1;
      onText?.("on it");
      if (asked === 1) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return { kind: "fault", fault: { kind: "process", message: "stopped" } };
      }
      return { kind: "reply", text: "", calls: [], output: say("closing").output, usage };
    },
  };
  const ran = await play({ flow: ROUND, model: watchOver(agent, 20) });
  assert.equal(ran.state.verdict?.outcome, "completed", ran.state.verdict?.reason);
  assert.equal(asked, 2);
  const faults = ran.entries.flatMap(({ event }) =>
    event.type === "step.answered" && event.reply.kind === "fault" ? [event.reply.fault] : [],
  );
  assert.match(faults[0]?.message ?? "", /no output for 20 ms/);
});
