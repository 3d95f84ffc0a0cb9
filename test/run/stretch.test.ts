/** Submitting and driving apart: what is prepared by one process is driven by others, stretch by stretch. */
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createScripted } from "../../src/backends/scripted/scripted.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import { RunnerError, type Backend, type Journal } from "../../src/engine/ports.ts";
import { createMemoryJournal } from "../../src/journal/memory.ts";
import { openJournal } from "../../src/run/records/journal.ts";
import { show, summarise } from "../../src/run/records/runs.ts";
import { followRun } from "../../src/run/watch/follow.ts";
import { mailOf } from "../../src/run/people/mail.ts";
import { driveStretch, type StretchEnd, type StretchOptions } from "../../src/run/stretch.ts";
import { prepareRun, type PrepareOptions } from "../../src/run/submit.ts";
import type { FoundSource } from "../../src/run/source.ts";
import { systemClock } from "../../src/run/world/clock.ts";
import { agentFiles, homeBeside, projectWith, PROVEN, stepTo } from "./project.ts";

const say = (stepId: string, action: string): ScriptReply => ({
  output: { stepId, next_action: { action } },
});
const SCRIPT = [say("initial.a", "next"), say("closure.a", "closing")];
const FOUND: FoundSource = { source: { kind: "none" }, within: ".", base: "main", bundle: null };

/** A project of two steps that are not begun twice; with a command, it needs trust. */
function world(more: { readonly registry?: object } = {}) {
  const once = { more: { ifInterrupted: "fail" } };
  const steps = {
    "initial.a": stepTo("work", { next: "closure.a" }, once),
    "closure.a": stepTo("closure", { closing: null }, once),
  };
  const cwd = projectWith({ ...agentFiles("a", steps, more), proof: "" });
  const HOME = homeBeside();
  const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, HOME, LOCKSTEP_TRUST: "all" };
  return { cwd, env, stateDir: join(HOME, "state") };
}

type World = ReturnType<typeof world>;

/** Recorded by somebody who does not drive it. */
async function submit({ cwd, env }: World, journal: Journal, options: Partial<PrepareOptions> = {}) {
  const prepared = await prepareRun({ agent: "a", cwd, env, script: SCRIPT, ...options });
  const handle = await journal.create(prepared.run, prepared.entries);
  await handle.release();
  return prepared.run.id;
}

function driving(
  { env, stateDir }: World,
  journal: Journal,
  run: string,
  more: Partial<StretchOptions> = {},
): Promise<StretchEnd> {
  const never = new AbortController().signal;
  return driveStretch({
    journal,
    run,
    place: null,
    stateDir,
    takeOver: false,
    yieldSignal: never,
    stopSignal: never,
    parkMs: 30_000,
    env,
    sandbox: "off",
    ...more,
  });
}

/** A model that does something in its n-th answer, and counts. */
function acting(script: readonly ScriptReply[], at: number, act: () => void | Promise<void>) {
  const scripted = createScripted(script);
  const asked: string[] = [];
  const backend: Backend = {
    ...scripted,
    turn: async (request) => {
      asked.push(request.asker.step);
      const result = await scripted.turn!(request);
      if (asked.length === at) await act();
      return result;
    },
  };
  return { backend, asked };
}

const JOURNALS: { readonly [name: string]: (of: World) => Promise<Journal> } = {
  memory: () => Promise.resolve(createMemoryJournal()),
  SQLite: ({ stateDir, env }) => openJournal(stateDir, systemClock, { env }),
};

for (const [name, open] of Object.entries(JOURNALS)) {
  test(`${name}: a submitted run is queued until it is driven, and counts as cut off only when it was`, async () => {
    const here = world();
    const journal = await open(here);
    const run = await submit(here, journal);
    const [queued] = await journal.rows([run]);
    assert.equal(summarise(queued!).state, "queued");
    const shown = await show(journal, run);
    assert.deepEqual([shown.outcome, shown.exitCode, shown.resumable], ["queued", null, true]);
    const end = await driving(here, journal, run);
    assert.equal(end.kind, "ended", JSON.stringify(end));
    assert.equal((await show(journal, run)).outcome, "completed");
    // The same again, but the first stretch dies in its first answer.
    const other = await submit(here, journal);
    const handle = await journal.claim(other);
    await handle.append([
      { seq: 2, at: 0, event: { type: "run.resumed", epoch: handle.epoch, fresh: true } },
    ]);
    await handle.release();
    const cut = await driving(here, journal, other);
    assert.equal(cut.kind === "ended" && cut.result.code, "STEP_INTERRUPTED");
    await journal.close();
  });

  test(`${name}: a run that yields goes on elsewhere, and nothing is asked twice`, async () => {
    const here = world();
    const journal = await open(here);
    const run = await submit(here, journal);
    const wish = new AbortController();
    const { backend, asked } = acting(SCRIPT, 1, () => wish.abort());
    const first = await driving(here, journal, run, { backend, yieldSignal: wish.signal });
    assert.deepEqual(first, { kind: "yielded", isCutOff: false });
    assert.equal(summarise((await journal.rows([run]))[0]!).state, "queued");
    assert.equal((await show(journal, run)).outcome, "queued");
    const second = await driving(here, journal, run, { backend });
    assert.equal(second.kind, "ended", JSON.stringify(second));
    assert.deepEqual(asked, ["initial.a", "closure.a"]);
    const again = await driving(here, journal, run, { backend });
    assert.equal(again.kind, "ended", "it had ended before");
    await journal.close();
  });
}

test("a queued run is followed until it has been driven to its end", async () => {
  const here = world();
  const journal = createMemoryJournal();
  const run = await submit(here, journal);
  const types: string[] = [];
  let end: Promise<StretchEnd> | null = null;
  for await (const { entry } of followRun(journal, run, systemClock, AbortSignal.timeout(60_000))) {
    types.push(entry.event.type);
    // Not before it was seen that nobody drives it.
    end ??= new Promise((resolve) => setTimeout(resolve, 200)).then(() => driving(here, journal, run));
  }
  assert.equal((await end)?.kind, "ended");
  assert.deepEqual([types[0], types.at(-1)], ["run.started", "run.ended"]);
});

test("a long wait ends the stretch and says until when", async () => {
  const here = world();
  const journal = createMemoryJournal();
  const run = await submit(here, journal, {
    script: [{ error: { kind: "rate-limit", retryAfterMs: 120_000 } }, ...SCRIPT],
  });
  let now = 1_700_000_000_000;
  const clock = { now: () => now, sleep: () => Promise.reject(new Error("it must not wait here")) };
  const end = await driving(here, journal, run, { clock });
  assert.deepEqual(end, { kind: "parked", until: now + 120_000 });
  assert.match((await show(journal, run)).reason, /nothing to do until 2023-11-14T22:15:20/);
  // Woken too early, it is parked again.
  now += 30_000;
  assert.deepEqual(await driving(here, journal, run, { clock }), { kind: "parked", until: now + 90_000 });
  now += 90_000;
  const last = await driving(here, journal, run, { clock });
  assert.equal(last.kind, "ended", JSON.stringify(last));
});

test("a script of the worker goes on in the next stretch, and another one begins", async () => {
  const here = world();
  const journal = createMemoryJournal();
  const run = await submit(here, journal, { script: [say("initial.a", "never")] });
  const busy: ScriptReply = { error: { kind: "rate-limit", retryAfterMs: 120_000 } };
  const [first, last] = SCRIPT as [ScriptReply, ScriptReply];
  const text = JSON.stringify({ replies: [busy, first, busy, last] });
  let now = 1_700_000_000_000;
  const clock = { now: () => now, sleep: () => Promise.reject(new Error("it must not wait here")) };
  const ends: string[] = [];
  for (let stretch = 1; stretch <= 3; stretch += 1) {
    ends.push((await driving(here, journal, run, { clock, script: { text, file: "s.json" } })).kind);
    now += 120_000;
  }
  assert.deepEqual(ends, ["parked", "parked", "ended"]);
  assert.equal((await show(journal, run)).outcome, "completed");
  const other = await submit(here, journal);
  assert.equal((await driving(here, journal, other, { clock, script: [busy] })).kind, "parked");
  now += 120_000;
  assert.equal((await driving(here, journal, other, { clock, script: [first, last] })).kind, "ended");
  assert.equal((await show(journal, other)).outcome, "completed");
});

test("what ends a stretch, and what is said of it", async (t) => {
  const aborted = AbortSignal.abort();
  const cases: readonly {
    readonly name: string;
    readonly kind: StretchEnd["kind"];
    readonly code?: string;
    readonly before?: (of: World, journal: Journal, run: string) => Promise<unknown>;
    readonly submit?: Partial<PrepareOptions>;
    readonly drive?: Partial<StretchOptions>;
  }[] = [
    { name: "its end", kind: "ended" },
    { name: "a stop by the worker", kind: "yielded", drive: { stopSignal: aborted } },
    { name: "a yield before it began", kind: "yielded", drive: { yieldSignal: aborted } },
    {
      name: "a pause that somebody wished for",
      kind: "waiting",
      before: ({ stateDir }, journal, run) => mailOf(journal, stateDir).leaveWish(run, "pause"),
    },
    {
      name: "another owner",
      kind: "lost",
      before: (_, journal, run) => journal.claim(run),
    },
    {
      name: "another owner that is taken over",
      kind: "ended",
      before: (_, journal, run) => journal.claim(run),
      drive: { takeOver: true },
    },
    {
      name: "a folder that is gone",
      kind: "unavailable",
      code: "PLACE_GONE",
      drive: { place: { root: "/nowhere/at/all", cwd: "/nowhere/at/all" } },
    },
    {
      name: "a model that is away",
      kind: "unavailable",
      code: "BACKEND_UNAVAILABLE",
      submit: { script: [{ error: { kind: "auth", message: "no key" } }] },
    },
    {
      name: "a backend that is not known here",
      kind: "unavailable",
      code: "NO_BACKEND",
      submit: { script: undefined } as never,
    },
    {
      name: "an end that failed",
      kind: "ended",
      submit: { script: [{ error: { kind: "other", message: "broken" } }] },
    },
  ];
  for (const { name, kind, code, before, submit: options, drive } of cases)
    await t.test(name, async () => {
      const here = world();
      const journal = createMemoryJournal();
      const run = await submit(here, journal, options ?? {});
      await before?.(here, journal, run);
      const end = await driving(here, journal, run, drive ?? {});
      assert.equal(end.kind, kind, JSON.stringify(end));
      if (end.kind === "unavailable") assert.equal(end.code, code, end.reason);
    });
});

test("stopped in the middle, it is yielded and what was under way is given up", async () => {
  const here = world();
  const journal = createMemoryJournal();
  const run = await submit(here, journal);
  const stop = new AbortController();
  const { backend } = acting(SCRIPT, 1, () => stop.abort());
  const end = await driving(here, journal, run, { backend, stopSignal: stop.signal });
  assert.deepEqual(end, { kind: "yielded", isCutOff: true });
});

test("stopped by a person, it waits for a person", async () => {
  const here = world();
  const journal = createMemoryJournal();
  const run = await submit(here, journal);
  const mail = mailOf(journal, here.stateDir);
  const { backend } = acting(SCRIPT, 1, async () => {
    await mail.leaveWish(run, "stop");
    for (let looks = 0; looks < 600 && (await mail.wishFor(run)) !== null; looks += 1)
      await new Promise((resolve) => setTimeout(resolve, 50));
  });
  const slow: Backend = {
    ...backend,
    turn: async (request) => {
      const answer = backend.turn!(request);
      const stopped = new Promise<void>((resolve) =>
        request.signal.addEventListener("abort", () => resolve()),
      );
      await Promise.race([stopped, answer]);
      return { kind: "fault", fault: { kind: "other", message: "stopped" } };
    },
  };
  const end = await driving(here, journal, run, { backend: slow });
  assert.equal(end.kind, "waiting", JSON.stringify(end));
});

// Another machine.

for (const [name, change, kind] of [
  ["the same files", (text: string) => text, "ended"],
  ["another command", (text: string) => text.replace("test -f proof", "true"), "unavailable"],
] as const) {
  test(`trusted by the submitter, driven in a folder of a worker with ${name}`, async () => {
    const here = world({ registry: PROVEN });
    const journal = createMemoryJournal();
    const careful = { PATH: process.env.PATH, HOME: homeBeside() };
    const refused = await submit(here, journal, { found: FOUND, env: careful }).catch(
      (error: unknown) => error,
    );
    assert.ok(refused instanceof RunnerError && refused.code === "NOT_TRUSTED", String(refused));
    assert.deepEqual(await journal.list(), [], "nothing is recorded of a run that is refused");
    const prepared = await prepareRun({
      agent: "a",
      cwd: here.cwd,
      env: here.env,
      script: SCRIPT,
      found: FOUND,
    });
    const text = change(JSON.stringify(prepared.run.flow));
    const flow = JSON.parse(text) as typeof prepared.run.flow;
    await (await journal.create({ ...prepared.run, flow }, prepared.entries)).release();
    const root = projectWith({});
    cpSync(here.cwd, root, { recursive: true });
    const worker = { ...here, env: careful };
    const place = { root, cwd: root };
    const end = await driving(worker, journal, prepared.run.id, { place });
    assert.equal(end.kind, kind, JSON.stringify(end));
    if (end.kind === "unavailable") assert.equal(end.code, "NOT_TRUSTED");
    if (end.kind === "ended") assert.equal(end.result.outcome, "completed", end.result.reason);
  });
}

for (const [name, options, code] of [
  ["an agent that is not there", { agent: "nobody" }, "FLOW_INVALID"],
  ["a parameter that is not known", { args: { nothing: 1 } }, "PARAMETERS_INVALID"],
  ["a backend that is not known", { script: undefined, use: "nobody" }, "NO_BACKEND"],
] as const) {
  test(`${name} is refused before anything is recorded`, async () => {
    const { cwd, env } = world();
    const { script, ...rest } = { script: SCRIPT, ...options };
    const given = script === undefined ? rest : { ...rest, script };
    const refused = await prepareRun({ agent: "a", cwd, env, ...given }).catch((error: unknown) => error);
    assert.ok(refused instanceof RunnerError, String(refused));
    assert.equal(refused.code, code, refused.message);
  });
}

test("a run that names no backend asks the one of the process that drives it, which is then recorded", async () => {
  const { cwd, env } = world();
  for (const [given, spec] of [
    [{}, { id: "any", options: {} }],
    [{ model: "x/y" }, { id: "any", options: { model: "x/y", models: { "*": "x/y" } } }],
    [{ use: "claude-agent" }, { id: "claude-agent", options: {} }],
  ] as const) {
    const { entries } = await prepareRun({ agent: "a", cwd, env, ...given });
    const started = entries[0]?.event;
    assert.deepEqual(started?.type === "run.started" && started.backend, spec);
  }
  const here = world();
  const journal = createMemoryJournal();
  const prepared = await prepareRun({ agent: "a", cwd: here.cwd, env: here.env });
  await (await journal.create(prepared.run, prepared.entries)).release();
  const end = await driving(here, journal, prepared.run.id, { script: SCRIPT });
  assert.equal(end.kind, "ended", JSON.stringify(end));
  const resumed = (await journal.read(prepared.run.id))[1]?.event;
  assert.equal(resumed?.type === "run.resumed" && resumed.backend?.id, "scripted");
});
