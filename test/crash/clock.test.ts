/** Clocks that are set in the middle of runs, and days of polling: what takes time takes just that time. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { Backend, Clock } from "../../src/engine/ports.ts";
import { drivenMs } from "../../src/engine/drive/stamp.ts";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow, Limits } from "../../src/flow/flow.ts";
import { createMemoryJournal, resume, runBatch, runLoaded, show, type Result } from "../../src/run/index.ts";
import { story } from "../../src/story/story.ts";
import { createSpans } from "../../src/tell/spans.ts";
import { followRun } from "../../src/run/watch/follow.ts";
import { sketchCheck, sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { play } from "../engine/played.ts";
import { ready } from "../ready.ts";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const project = { root: "/", agentsDir: "/.agent", stateDir: "/.lockstep" };
const loaded = (flow: Flow) => ({ agent: flow.agent, project, flow, problems: [] });
const USAGE = { turns: 1, inputTokens: 1, outputTokens: 1, costUsd: null };

/** What becomes of the clock while a run is under way: at which of its seconds, and by how much it is set. */
type Settings = readonly { readonly after: number; readonly by: number }[];

const SETTINGS: readonly (readonly [string, Settings])[] = [
  ["an hour forward", [{ after: 95 * SECOND, by: HOUR }]],
  ["an hour back", [{ after: 95 * SECOND, by: -HOUR }]],
  ["a day forward", [{ after: 95 * SECOND, by: DAY }]],
  ["a day back", [{ after: 95 * SECOND, by: -DAY }]],
  ["to the beginning of all time", [{ after: 95 * SECOND, by: -1_700_000_000_000 }]],
  ["back in the very first question", [{ after: 5 * SECOND, by: -DAY }]],
  ["to and fro", [10, 30, 95, 130, 160, 200].map((s, i) => ({ after: s * SECOND, by: i % 2 ? DAY : -DAY }))],
  ["back by as long as the question under way takes", [{ after: 95 * SECOND, by: -20 * SECOND }]],
  ["back by a second, again and again", [20, 90, 100, 150].map((s) => ({ after: s * SECOND, by: -1500 }))],
];

describe("system clock changes in the middle of a run", () => {
  for (const [name, settings] of SETTINGS) {
    it(`${name}: a limit on time fires when it would have, also over two stretches`, async () => {
      for (const wallMs of [170 * SECOND, 250 * SECOND]) {
        const [untouched, touched] = [await limited(wallMs, []), await limited(wallMs, settings)];
        assert.deepEqual(touched.told, untouched.told);
        assert.equal(touched.driven, wallMs);
        assert.deepEqual((await limited(HOUR, settings, {}, { wallMs })).told, touched.told, "granted");
        const visits = touched.result.path.map(({ step, visit }) => `${step}@${visit}`);
        assert.deepEqual(visits, [...new Set(visits)], "each decision once");
      }
    });

    it(`${name}: a limit on the time of a step fires when it would have`, async () => {
      const ofStep = async (set: Settings) => await limited(HOUR, set, { wallMs: 90 * SECOND });
      const [untouched, touched] = [await ofStep([]), await ofStep(settings)];
      assert.deepEqual(touched.told, untouched.told);
      assert.deepEqual([untouched.told.code, untouched.told.iterations], ["BUDGET_EXHAUSTED", 9]);
    });

    it(`${name}: a step is never told to have taken less than nothing, nor a day`, async () => {
      const [untouched, touched] = [await limited(HOUR, []), await limited(HOUR, settings)];
      assert.deepEqual(tallied(touched.result), tallied(untouched.result));
      assert.equal(touched.result.durationMs, untouched.result.durationMs);
      assert.equal(touched.shown.durationMs, untouched.result.durationMs);
    });

    it(`${name}: spans are as long as what they stand for, and each lies within its parent`, async () => {
      const [untouched, touched] = [await limited(HOUR, []), await limited(HOUR, settings)];
      assert.deepEqual(lengths(touched), lengths(untouched));
      assert.ok(lengths(untouched).some(([, ms]) => ms === 20 * SECOND));
    });

    it(`${name}: a batch takes as long as it takes`, async () => {
      const batch = async (set: Settings) => {
        const clock = world(set);
        const backend = slowModel(clock, () => 20 * SECOND);
        const items = ["x", "y"].map((item) => ({ name: item, args: {} }));
        const options = { cwd: "/", items, concurrency: 1, journal: createMemoryJournal(), clock, backend };
        return await runBatch(loaded(ten), options);
      };
      const [plain, set] = [await batch([]), await batch(settings)];
      assert.deepEqual([plain.durationMs, set.durationMs], [400 * SECOND, 400 * SECOND]);
    });

    it(`${name}: waits for a service are as long as they were to be`, async () => {
      const [untouched, touched] = [await waiting([]), await waiting(settings)];
      assert.deepEqual(
        untouched.waits,
        [5, 10, 20, 40].map((seconds) => seconds * SECOND),
      );
      assert.deepEqual(touched, untouched);
    });
  }

  it("is noted in the entry that comes next, and only where it was set", async () => {
    const { entries } = await limited(HOUR, [{ after: 95 * SECOND, by: -DAY }]);
    assert.deepEqual(
      entries.filter(({ moved }) => moved !== undefined).map(({ moved }) => moved),
      [-DAY],
    );
    assert.ok((await limited(HOUR, [])).entries.every((entry) => !("moved" in entry)));
  });

  it("set back does not keep whoever follows a run from seeing that its driver has died", async () => {
    const clock = world([{ after: 100, by: -DAY }]);
    const journal = createMemoryJournal();
    const flow = sketchFlow({ a: { edges: { next: null } } });
    const handle = await journal.create({ id: "r1", agent: "a", at: 1, digest: "d", flow });
    void clock.sleep(10 * SECOND, never).then(() => handle.release());
    for await (const { entry } of followRun(journal, "r1", clock, never)) assert.fail(String(entry.seq));
    assert.ok(clock.steady() < 12 * SECOND, String(clock.steady()));
  });

  for (const at of [0, DAY])
    it(`that stands still at ${at} does not keep a reader from seeing that the driver has died`, async () => {
      const journal = createMemoryJournal();
      const flow = sketchFlow({ a: { edges: { next: null } } });
      const handle = await journal.create({ id: "r1", agent: "a", at: 1, digest: "d", flow });
      let slept = 0;
      const clock: Clock = {
        ...world([]),
        now: () => at,
        sleep: async () => {
          slept += 1;
          if (slept === 30) await handle.release();
          if (slept > 300) throw new Error("it never ends");
        },
      };
      for await (const { entry } of followRun(journal, "r1", clock, never)) assert.fail(String(entry.seq));
      assert.ok(slept >= 30, String(slept));
    });

  it("the local time is asked nowhere, so that it may change as it likes", () => {
    const local =
      /\.get(?:Hours|Date|Day|Month|FullYear|Minutes|TimezoneOffset)\(|\.set(?:Hours|Date|Month|FullYear|Minutes)\(|toLocale(?:Date|Time)String\(|DateTimeFormat|new Date\([^)]*,/;
    const root = new URL("../../src/", import.meta.url).pathname;
    const asking = globSync("**/*.ts", { cwd: root }).filter((file) =>
      local.test(readFileSync(root + file, "utf8")),
    );
    assert.deepEqual(asking, []);
  });
});

describe("days of polling", () => {
  for (const [name, polls, settings] of [
    ["24 hours", 24 * 60, []],
    ["24 hours, the clock set every hour", 24 * 60, everyHour(24)],
    ["30 days", 30 * 24 * 60, []],
    [
      "30 days, over two changes of summer time and back",
      30 * 24 * 60,
      [
        { after: DAY, by: HOUR },
        { after: 9 * DAY, by: -HOUR },
      ],
    ],
  ] as const satisfies readonly (readonly [string, number, Settings])[]) {
    it(`${name}: each poll once, none missed, none doubled`, async () => {
      const clock = world(settings);
      const looks: string[] = [];
      const flow = sketchFlow(
        { watch: { edges: { next: "watch" }, transcript: "fresh" } },
        {
          stop: { kind: "state", resource: { kind: "file", path: "done", want: { kind: "exists" } } },
          limits: { visits: polls + 1, wallMs: (polls + 1) * MINUTE },
        },
      );
      const { state, entries } = await play({
        flow,
        model: slowModel(clock, () => MINUTE, "next"),
        ports: {
          clock,
          watch: {
            look: (_rule, { step, iteration }) => {
              looks.push(`${step} ${iteration}`);
              return Promise.resolve({ met: iteration === polls, what: "it is there" });
            },
          },
        },
      });
      assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
      assert.deepEqual(
        looks,
        Array.from({ length: polls }, (_, index) => `watch ${index + 1}`),
      );
      assert.equal(clock.steady(), polls * MINUTE);
      assert.equal(drivenMs(entries), polls * MINUTE);
    });
  }

  it("a gate that waits a day for its turn: every pause as long as it should be, whatever the clock says", async () => {
    const gates = 200;
    const machine = sketchMachine(
      { only: { rules: { gate: "ready", unresolved: "retry-later", backoff: "linear" } } },
      { checks: { ready: sketchCheck("ready", "true") } },
    );
    const checks = Array.from({ length: gates }, () => [{ ok: false }]);
    const polled = async (settings: Settings) => {
      const clock = world(settings);
      const played = await play({ flow: machine, model: [{ output: {} }], checks, ports: { clock } });
      return { verdict: played.state.verdict, waits: clock.slept, took: clock.steady() };
    };
    const untouched = await polled([]);
    assert.ok(untouched.waits.length > 0);
    assert.deepEqual(await polled(everyHour(24)), untouched);
  });

  it("a limit on time fires neither early nor never", async () => {
    for (const settings of [[], everyHour(24)]) {
      const clock = world(settings);
      const flow = sketchFlow(
        { watch: { edges: { next: "watch" }, transcript: "fresh" } },
        { limits: { visits: 2000, wallMs: 20 * HOUR + 30 * SECOND } },
      );
      const { state } = await play({ flow, model: slowModel(clock, () => MINUTE, "next"), ports: { clock } });
      assert.deepEqual([state.verdict?.code, state.iterations], ["BUDGET_EXHAUSTED", 20 * 60 + 1]);
      assert.equal(clock.steady(), 20 * HOUR + 30 * SECOND);
    }
  });
});

function everyHour(hours: number): Settings {
  return Array.from({ length: hours }, (_, hour) => ({
    after: hour * HOUR + 30 * SECOND,
    by: [DAY, -HOUR, -2 * DAY, HOUR][hour % 4]!,
  }));
}

/** A run of visits that take 20 s each, interrupted in the sixth, and resumed. `spending`: what it is started with. */
async function limited(wallMs: number, settings: Settings, ofStep: Limits = {}, spending?: Limits) {
  const clock = world(settings);
  const journal = createMemoryJournal();
  const stop = new AbortController();
  let asked = 0;
  const backend = slowModel(clock, () => {
    asked += 1;
    if (asked === 6) void clock.sleep(7 * SECOND, never).then(() => stop.abort());
    return 20 * SECOND;
  });
  const flow = sketchFlow(
    { a: { edges: { next: "b" }, limits: ofStep }, b: { edges: { next: "a" } } },
    { limits: { visits: 15, wallMs } },
  );
  const started = {
    journal,
    clock,
    backend,
    signal: stop.signal,
    ...(spending !== undefined && { spending }),
  };
  const first = await runLoaded(loaded(flow), started);
  assert.equal(first.outcome, "interrupted");
  await clock.sleep(5 * HOUR, never);
  const result = await resume({ run: first.run!, journal, clock, backend });
  const entries = await journal.read(first.run!);
  const { code, iterations, exitCode } = result;
  const shown = await show(journal, first.run!);
  const told = { code, iterations, exitCode, asked };
  return { told, flow, result, shown, entries, driven: drivenMs(entries) };
}

const ten = sketchFlow(
  { a: { edges: { next: "a" } } },
  { stop: { kind: "visits", count: 10 }, limits: { visits: 10 } },
);

/** The names and milliseconds of all spans of a run; each lies within the one that it belongs to. */
function lengths({ flow, entries }: { readonly flow: Flow; readonly entries: readonly Entry[] }) {
  const spans = createSpans(flow, "r", false);
  const all = [...story(ready(flow), entries)].flatMap(spans.hear);
  const every = [...all, ...spans.close()];
  for (const { name, parent, start, end } of every) {
    assert.ok(start <= end, `${name} ends before it begins`);
    const around = every.find(({ key }) => key === parent);
    assert.ok(
      around === undefined || (around.start <= start && end <= around.end),
      `${name} leaves its parent`,
    );
  }
  return every.map(({ name, start, end }) => [name, end - start] as const);
}

function tallied({ steps }: Result) {
  return steps.map(({ step, ms }) => [step, ms]);
}

/** Four rate limits in a row, then an answer. */
async function waiting(settings: Settings) {
  const clock = world(settings);
  const entries: Entry[] = [];
  const { state } = await play({
    flow: sketchFlow({ a: { edges: { next: null } } }, { limits: { visits: 9, wallMs: 10 * MINUTE } }),
    model: [
      ...Array.from({ length: 4 }, () => ({ error: { kind: "rate-limit" as const } })),
      { output: { next_action: { action: "next" } } },
    ],
    ports: { clock },
    observe: (entry) => entries.push(entry),
  });
  return { verdict: state.verdict, waits: clock.slept, driven: drivenMs(entries) };
}

/** Answers after the time that it is told to take, and stops when it should. */
function slowModel(clock: Clock, ms: () => number, action = "next"): Backend {
  return {
    spec: { id: "slow", options: null },
    turn: async ({ signal }) => {
      await clock.sleep(ms(), signal);
      if (signal.aborted) return { kind: "fault", fault: { kind: "other", message: "stopped" } };
      return { kind: "reply", text: "", calls: [], output: { next_action: { action } }, usage: USAGE };
    },
  };
}

const never = new AbortController().signal;

/** Time that passes at once when everybody waits for it, and a clock on the wall that is set now and then. */
function world(settings: Settings): Required<Omit<Clock, "alarm">> & { readonly slept: number[] } {
  const waiting = new Set<{ readonly due: number; readonly wake: () => void }>();
  const slept: number[] = [];
  const left = settings.toSorted((a, b) => a.after - b.after);
  let steady = 0;
  let moved = 0;
  let isGoing = false;

  const pass = () => {
    isGoing = waiting.size > 0;
    if (!isGoing) return;
    let next = [...waiting][0]!;
    for (const one of waiting) if (one.due < next.due) next = one;
    steady = next.due;
    while (left[0] !== undefined && left[0].after <= steady) moved += left.shift()!.by;
    waiting.delete(next);
    next.wake();
    setImmediate(pass);
  };

  return {
    slept,
    now: () => Date.UTC(2026, 9, 24) + steady + moved,
    steady: () => steady,
    sleep: async (ms, signal) => {
      if (signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const one = { due: steady + ms, wake: () => (slept.push(ms), resolve()) };
      waiting.add(one);
      const giveUp = () => void (waiting.delete(one) && resolve());
      signal.addEventListener("abort", giveUp, { once: true });
      if (!isGoing) setImmediate(pass);
      isGoing = true;
      await promise;
      signal.removeEventListener("abort", giveUp);
    },
  };
}
