/** What a run took: only while it was driven, the same in its header and in its steps, in `run` and in `show`. */
import assert from "node:assert/strict";
import { uptime } from "node:os";
import { test } from "node:test";
import {
  createMemoryJournal,
  createScripted,
  fork,
  resume,
  run,
  show,
  type Backend,
  type Journal,
  type ScriptReply,
  type Shown,
} from "../../src/run/index.ts";
import type { Clock } from "../../src/engine/ports.ts";
import { agentFiles, projectWith, stepTo } from "./project.ts";

const says = (stepId: string, action: string): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action, reason: "r" } },
});
const FILES = agentFiles("a", {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null, repeat: "closure.a" }),
});

/** A clock that stands still unless it is set. */
type HandClock = Clock & { at: number };

function handClock(): HandClock {
  const clock: HandClock = {
    at: 1_700_000_000_000,
    now: () => clock.at,
    sleep: async () => await new Promise((resolve) => setImmediate(resolve)),
  };
  return clock;
}

/** Each answer takes so long. */
function slow(clock: HandClock, ms: number, replies: readonly ScriptReply[]): Backend {
  const scripted = createScripted(replies);
  return {
    ...scripted,
    turn: async (request) => {
      clock.at += ms;
      return await scripted.turn!(request);
    },
  };
}

type World = { readonly cwd: string; readonly journal: Journal; readonly clock: HandClock };

function world(): World {
  return { cwd: projectWith(FILES), journal: createMemoryJournal(), clock: handClock() };
}

const times = ({ durationMs, steps }: Pick<Shown, "durationMs" | "steps">) => ({
  whole: durationMs,
  ...Object.fromEntries(steps.map(({ step, ms }) => [step, ms])),
});

test("the time in which nobody drove a run is not its time", async () => {
  const { clock, ...around } = world();
  const begun = await run({
    agent: "a",
    ...around,
    clock,
    backend: slow(clock, 3000, [says("initial.a", "next")]),
  });
  assert.equal(begun.code, "SCRIPT_EXHAUSTED");
  clock.at += 3_600_000;
  const backend = slow(clock, 2000, [says("closure.a", "closing")]);
  const ended = await resume({ run: begun.run!, ...around, clock, backend });
  assert.deepEqual(times(ended), { whole: 8000, "initial.a": 3000, "closure.a": 5000 });
  clock.at += 3_600_000;
  assert.deepEqual(times(await show(around.journal, begun.run!)), times(ended));
});

for (const [name, edits] of [
  ["no edit", {}],
  ["an edited answer", { output: { stepId: "closure.a", next_action: { action: "repeat", reason: "r" } } }],
  ["an edited handoff", { handoff: { "initial.a": { plan: "x" } } }],
  ["another model", { models: { "closure.a": "opus" } }],
] as const) {
  test(`a fork that is made later does not count the time in between: ${name}`, async () => {
    const { clock, ...around } = world();
    const replies = [says("initial.a", "next"), says("closure.a", "closing")];
    const first = await run({ agent: "a", ...around, clock, backend: slow(clock, 1000, replies) });
    assert.deepEqual(times(first), { whole: 2000, "initial.a": 1000, "closure.a": 1000 });
    clock.at += 20_000;
    const backend = slow(clock, 500, [says("closure.a", "closing")]);
    const forked = await fork({ run: first.run!, at: "closure.a@1", edits, ...around, clock, backend });
    assert.equal(forked.outcome, "completed", forked.reason);
    assert.deepEqual(times(forked), { whole: 1500, "initial.a": 1000, "closure.a": 500 });
    assert.deepEqual(times(await show(around.journal, forked.run!)), times(forked));
  });
}

test("what was under way when a run was stopped counts, and is recorded", async () => {
  const { clock, ...around } = world();
  const stopper = new AbortController();
  const scripted = createScripted([says("initial.a", "next")]);
  const backend: Backend = {
    ...scripted,
    turn: async (request) => {
      if (request.asker.step === "initial.a") return await scripted.turn!(request);
      clock.at += 4000;
      stopper.abort();
      return { kind: "fault", fault: { kind: "other", message: "stopped" } };
    },
  };
  const stopped = await run({ agent: "a", ...around, clock, backend, signal: stopper.signal });
  assert.deepEqual([stopped.outcome, stopped.resumable], ["interrupted", true]);
  assert.deepEqual(times(stopped), { whole: 4000, "initial.a": 0, "closure.a": 4000 });
  const shown = await show(around.journal, stopped.run!);
  assert.deepEqual(times(shown), times(stopped));
  const entries = await around.journal.read(stopped.run!);
  assert.deepEqual(entries.at(-1)?.event, { type: "run.stopped", by: "signal", at: ["closure.a"] });
});

test("a stop that cannot be recorded is a stop all the same", async () => {
  const { clock, journal, cwd } = world();
  const stopper = new AbortController();
  const full: Journal = {
    ...journal,
    create: async (...about) => {
      const handle = await journal.create(...about);
      return {
        ...handle,
        append: async (entries, ...more) => {
          if (stopper.signal.aborted) throw new Error("the disk is full");
          await handle.append(entries, ...more);
        },
      };
    },
  };
  const observe = () => stopper.abort();
  const around = { cwd, journal: full, clock, signal: stopper.signal, observe };
  const stopped = await run({ agent: "a", ...around, script: [says("initial.a", "next")] });
  assert.deepEqual([stopped.outcome, stopped.exitCode], ["interrupted", 130]);
});

test("a run in progress is running, with the time it took so far, and is nothing to resume", async () => {
  const { clock, ...around } = world();
  const seen: Shown[] = [];
  const scripted = createScripted([says("initial.a", "next"), says("closure.a", "closing")]);
  const backend: Backend = {
    ...scripted,
    turn: async (request) => {
      clock.at += 1000;
      seen.push(await show(around.journal, "@last", clock.at));
      return await scripted.turn!(request);
    },
  };
  const ended = await run({ agent: "a", ...around, clock, backend });
  assert.equal(ended.outcome, "completed");
  const running = { outcome: "running", code: "RUNNING", exitCode: null, resumable: false, result: null };
  for (const { outcome, code, exitCode, resumable, result } of seen)
    assert.deepEqual({ outcome, code, exitCode, resumable, result }, running);
  assert.deepEqual(seen.map(times), [
    { whole: 1000, "initial.a": 1000 },
    { whole: 2000, "initial.a": 1000, "closure.a": 1000 },
  ]);
  const shown = await show(around.journal, "@last");
  assert.deepEqual([shown.outcome, shown.exitCode, shown.durationMs], ["completed", 0, 2000]);
});

for (const [name, set] of [
  ["40 days forward", 40 * 86_400_000],
  ["2 days back", -2 * 86_400_000],
] as const) {
  test(`a run in progress is never shown with the time by which the clock was set: ${name}`, async () => {
    const { clock, ...around } = world();
    const seen: Shown[] = [];
    const scripted = createScripted([says("initial.a", "next"), says("closure.a", "closing")]);
    const backend: Backend = {
      ...scripted,
      turn: async (request) => {
        seen.push(await show(around.journal, "@last", clock.at + set));
        return await scripted.turn!(request);
      },
    };
    await run({ agent: "a", ...around, clock, backend });
    const most = Math.ceil((uptime() + 1) * 1000);
    assert.equal(seen.length, 2);
    for (const { durationMs, steps } of seen)
      for (const ms of [durationMs, ...steps.map((step) => step.ms)])
        assert.ok(ms >= 0 && ms <= most, `${ms} of ${most}`);
  });
}
