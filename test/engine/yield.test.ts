/** Yielding: a run that one process puts down and another goes on with, and waits that hold no process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createScripted } from "../../src/backends/scripted/scripted.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import type { Backend } from "../../src/engine/ports.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { replay } from "../../src/story/replay.ts";
import { sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { ready } from "../ready.ts";
import { play, type Played, type Scenario } from "./played.ts";

const say = (action: string): ScriptReply => ({ output: { next_action: { action } } });
const busy = (retryAfterMs: number): ScriptReply => ({ error: { kind: "rate-limit", retryAfterMs } });
const LINE = sketchFlow({
  "initial.a": { edges: { next: "initial.b" } },
  "initial.b": { edges: { next: "closure.a" } },
  "closure.a": { edges: { closing: null } },
});
/** No step of it is begun a second time. */
const ONCE: Flow = {
  ...LINE,
  steps: Object.fromEntries(
    Object.entries(LINE.steps).map(([id, step]) => [id, { ...step, ifInterrupted: "fail" }]),
  ),
};
const typesOf = ({ entries }: Played) => entries.map(({ event }) => event.type);
const yieldOf = ({ entries }: Played) => {
  const last = entries.at(-1)?.event;
  return last?.type === "run.yielded" ? last : null;
};

/** A model in whose n-th answer the process is asked to yield. */
function yieldingAt(replies: readonly ScriptReply[], at: number): Pick<Scenario, "model" | "wishes"> {
  const wish = new AbortController();
  const scripted = createScripted(replies);
  let asked = 0;
  const model: Backend = {
    ...scripted,
    turn: async (request) => {
      const result = await scripted.turn!(request);
      asked += 1;
      if (asked === at) wish.abort();
      return result;
    },
  };
  return { model, wishes: { yield: wish.signal } };
}

const REPLIES = [say("next"), say("next"), say("closing")];

for (const [at, path] of [
  [1, ["initial.b@1/1", "closure.a@1/1"]],
  [2, ["closure.a@1/1"]],
] as const) {
  test(`a run yields after answer ${at}: nothing is asked twice, and nothing counts as cut off`, async () => {
    const rested = await play({ flow: ONCE, ...yieldingAt(REPLIES, at) });
    assert.equal(rested.state.verdict, null);
    const answers = Array.from({ length: at }, () => "step.answered");
    assert.deepEqual(typesOf(rested), ["run.started", ...answers, "run.yielded"]);
    assert.equal(yieldOf(rested)?.waits, undefined);
    const whole = await play({ flow: ONCE, past: rested.entries, model: REPLIES });
    assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
    assert.deepEqual(whole.asked, path);
    assert.equal(replay(ready(ONCE), whole.entries).difference, null);
    // Without the entry the next process cannot know.
    const cut = await play({ flow: ONCE, past: rested.entries.slice(0, -1), model: REPLIES });
    assert.equal(cut.state.verdict?.code, "STEP_INTERRUPTED");
  });
}

test("a run whose last answer is under way ends and does not yield", async () => {
  const whole = await play({ flow: LINE, ...yieldingAt(REPLIES, 3) });
  assert.equal(whole.state.verdict?.outcome, "completed");
  assert.equal(whole.entries.at(-1)?.event.type, "run.ended");
});

for (const [started, code] of [
  [{ queued: true }, null],
  [{}, "STEP_INTERRUPTED"],
] as const) {
  test(`a run that was only recorded, ${JSON.stringify(started)}: ${code ?? "it starts"}`, async () => {
    const { entries } = await play({ flow: ONCE, model: REPLIES });
    const first = { ...entries[0]!, event: { ...entries[0]!.event, ...started } } as Entry;
    const ran = await play({ flow: ONCE, past: [first], model: REPLIES });
    assert.equal(ran.state.verdict?.code, code);
    // One that was begun and cut off is not fresh, whoever recorded it.
    const resumed: Entry = { seq: 2, at: 1, event: { type: "run.resumed", epoch: 1, fresh: true } };
    const cut = await play({ flow: ONCE, past: [first, resumed], model: REPLIES });
    assert.equal(cut.state.verdict?.code, "STEP_INTERRUPTED");
  });
}

test("siblings that are under way come in before the run yields", async () => {
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
  const rested = await play({ flow, ...yieldingAt(replies, 2) });
  assert.deepEqual(rested.asked, ["s@1/1", "a@1/1", "b@1/1"]);
  assert.equal(yieldOf(rested)?.waits, undefined);
  const whole = await play({ flow, model: replies, past: rested.entries });
  assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
  assert.deepEqual(whole.asked, ["a@1/2", "meet@1/1"]);
});

// Waits.

const BUSY = [say("next"), busy(60_000), ...REPLIES.slice(1)];

for (const [name, wait, parkMs, slept] of [
  ["longer than it waits here", 60_000, 30_000, []],
  ["just as long", 30_000, 30_000, [30_000]],
  ["shorter", 20_000, 30_000, [20_000]],
  ["any, where it waits however long", 60_000, undefined, [60_000]],
] as const) {
  test(`a wait that is ${name}`, async () => {
    const model = [say("next"), busy(wait), ...REPLIES.slice(1)];
    const ran = await play({ flow: ONCE, model, ...(parkMs !== undefined && { parkMs }) });
    assert.deepEqual(ran.waits, slept);
    assert.equal(yieldOf(ran) !== null, slept.length === 0);
    assert.equal(ran.state.verdict?.outcome ?? null, slept.length === 0 ? null : "completed");
  });
}

for (const [pauseMs, parkMs, isParked, slept] of [
  [61_000, 30_000, false, []],
  [40_000, 30_000, false, [20_000]],
  [10_000, 30_000, true, []],
  [10_000, undefined, false, [50_000]],
] as const) {
  test(`a parked run goes on after ${pauseMs} ms with ${parkMs ?? "no"} limit: what is left is waited for`, async () => {
    const parked = await play({ flow: ONCE, model: BUSY, parkMs: 30_000 });
    const [wait] = yieldOf(parked)?.waits ?? [];
    assert.equal(wait?.step, "initial.b");
    const scenario = { flow: ONCE, past: parked.entries, pauseMs, model: BUSY };
    const on = await play({ ...scenario, ...(parkMs !== undefined && { parkMs }) });
    assert.deepEqual(
      on.waits.map((ms) => Math.round(ms / 100) * 100),
      slept,
    );
    assert.equal(on.state.verdict?.outcome ?? null, isParked ? null : "completed", on.state.verdict?.reason);
    assert.equal(replay(ready(ONCE), on.entries).difference, null);
    assert.equal(yieldOf(on)?.waits?.length ?? 0, isParked ? 1 : 0);
  });
}

test("a wait under way ends when the run yields, and is not begun anew", async () => {
  const wish = new AbortController();
  const clock = fakeClock();
  const sleep = async (ms: number, signal: AbortSignal) => {
    wish.abort();
    await clock.sleep(ms, signal);
  };
  const rested = await play({
    flow: ONCE,
    model: BUSY,
    wishes: { yield: wish.signal },
    ports: { clock: { ...clock, sleep } },
  });
  assert.equal(yieldOf(rested)?.waits?.length, 1);
  const whole = await play({ flow: ONCE, past: rested.entries, pauseMs: 61_000, model: BUSY });
  assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
  assert.deepEqual([whole.waits, whole.asked], [[], ["initial.b@1/1", "closure.a@1/1"]]);
});

test("a second wait of the same visit is judged by its own end", async () => {
  const model = [busy(10_000), busy(60_000), ...REPLIES];
  const parked = await play({ flow: LINE, model, parkMs: 30_000 });
  assert.deepEqual(parked.waits, [10_000]);
  assert.equal(yieldOf(parked)?.waits?.length, 1);
});

const FORK = sketchMachine({
  s: { next: { kind: "fork", steps: ["a", "b"], join: "meet" } },
  a: {},
  b: {},
  meet: {},
});
const forked = (...middle: readonly ScriptReply[]): readonly ScriptReply[] => [
  { step: "s", output: {} },
  ...middle,
  { step: "a", output: {} },
  { step: "b", output: {} },
  { step: "meet", output: {} },
];

test("siblings that all wait are parked until the first of them goes on; the other waits for what is left", async () => {
  const model = forked({ step: "a", ...busy(60_000) }, { step: "b", ...busy(200_000) });
  const parked = await play({ flow: FORK, model, parkMs: 30_000 });
  const waits = yieldOf(parked)?.waits ?? [];
  assert.deepEqual(
    waits.map(({ step }) => step),
    ["a", "b"],
  );
  assert.deepEqual(parked.waits, []);
  const on = await play({ flow: FORK, model, past: parked.entries, pauseMs: 61_000, parkMs: 30_000 });
  assert.deepEqual(on.asked, ["a@1/1"]);
  assert.deepEqual(
    yieldOf(on)?.waits?.map(({ step }) => step),
    ["b"],
  );
  const whole = await play({ flow: FORK, model, past: on.entries, pauseMs: 150_000, parkMs: 30_000 });
  assert.equal(whole.state.verdict?.outcome, "completed", whole.state.verdict?.reason);
  assert.deepEqual(whole.asked, ["b@1/1", "meet@1/1"]);
});

test("a sibling that works keeps the process of one that waits", async () => {
  const model = forked({ step: "a", ...busy(60_000) });
  const on = await play({ flow: FORK, model, parkMs: 30_000 });
  assert.deepEqual(
    yieldOf(on)?.waits?.map(({ step }) => step),
    ["a"],
  );
  assert.deepEqual(on.asked, ["s@1/1", "a@1/1", "b@1/1"]);
});
