/** Evals through the library: copies, retries of the machinery, budgets, and going on after a kill. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Backend, TurnRequest, TurnResult } from "../../src/engine/ports.ts";
import type { EvalTask } from "../../src/flow/flow-eval.ts";
import { readEval, writeEval, type EvalRecord } from "../../src/run/eval-record.ts";
import { runEval, type EvalOptions } from "../../src/run/eval.ts";
import { createMemoryJournal, load, readRun, type Loaded } from "../../src/run/index.ts";
import { agentFiles, homeBeside, projectWith, stepTo } from "./project.ts";

const STEPS = {
  "initial.t": stepTo("work", { next: "closure.t" }),
  "closure.t": stepTo("closure", { closing: null, abort: null }),
};

const TASK: EvalTask = {
  name: "does it",
  file: "a.yaml",
  line: 1,
  params: {},
  input: "",
  project: null,
  expect: { lines: {}, values: { outcome: "completed" } },
  hidden: null,
};

type Turn = (
  place: number,
  step: string,
  request: TurnRequest,
) => Partial<TurnResult> & { readonly usd?: number; readonly action?: string };

/** Answers as `turn` says: `place` is the how manieth run asks, in the order in which they begin. */
function model(turn: Turn): {
  readonly backend: (name: string) => Backend;
  readonly seen: { runs: string[]; most: number };
} {
  const seen = { runs: [] as string[], most: 0 };
  let now = 0;
  const backend: Backend = {
    spec: { id: "test", options: {} },
    turn: async (request) => {
      const [run = ""] = request.asker.key.split("/");
      if (!seen.runs.includes(run)) seen.runs.push(run);
      seen.most = Math.max(seen.most, (now += 1));
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
      const { step } = request.asker;
      const { usd = 0, action, ...given } = turn(seen.runs.indexOf(run), step, request);
      const usage = { inputTokens: 1, outputTokens: 1, turns: 1, costUsd: usd };
      const output = {
        stepId: step,
        next_action: { action: action ?? (step === "initial.t" ? "next" : "closing") },
      };
      return { kind: "reply", text: "", calls: [], output, usage, ...given } as TurnResult;
    },
  };
  return { backend: () => backend, seen };
}

async function world() {
  const root = projectWith(agentFiles("t", STEPS));
  const loaded: Loaded = await load("t", { cwd: root });
  const home = homeBeside();
  const around = {
    cwd: root,
    env: { HOME: home, LOCKSTEP_TRUST: "all" },
    journal: createMemoryJournal(),
  };
  const start = (options: Partial<EvalOptions> & Pick<EvalOptions, "plan">) =>
    runEval(loaded, { ...around, tasks: [TASK], ...options });
  return { root, loaded, start, journal: around.journal, stateDir: loaded.project.stateDir };
}

const plan = (runs: number, more: Partial<Extract<EvalOptions["plan"], { readonly runs: number }>> = {}) => ({
  runs,
  models: ["m"],
  scripts: [],
  budgetUsd: 100,
  ...more,
});
const states = ({ runs }: EvalRecord) => runs.map(({ state }) => state);
const spent = ({ runs }: EvalRecord) => runs.reduce((sum, { costUsd }) => sum + costUsd!, 0);
const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith("lockstep-eval-"));

test("every run is recorded, in a copy that is gone afterwards, and tasks and models take turns", async () => {
  const { start, journal, stateDir } = await world();
  const before = copies();
  const { backend } = model(() => ({}));
  const record = await start({
    plan: plan(2, { models: ["a", "b"] }),
    tasks: [TASK, { ...TASK, name: "again" }],
    backend,
    jobs: 3,
  });
  assert.deepEqual(new Set(states(record)), new Set(["passed"]));
  assert.deepEqual(
    record.runs.slice(0, 4).map(({ task, model: name, at }) => [task, name, at]),
    [
      ["does it", "a", 0],
      ["does it", "b", 0],
      ["again", "a", 0],
      ["again", "b", 0],
    ],
  );
  for (const { run } of record.runs) {
    const { entries } = await readRun(journal, run!);
    const first = entries[0]!.event;
    assert.ok(first.type === "run.started" && first.batch === record.eval && first.dryRun === true);
    assert.ok(!existsSync(first.cwd));
  }
  assert.deepEqual(copies(), before);
  assert.deepEqual(readEval(stateDir, record.eval.slice(0, 8)).runs, record.runs);
});

test("a model that gives up fails; a broken machine is tried twice more and counts for nothing", async () => {
  const { start } = await world();
  const { backend, seen } = model((place) => {
    // The runs begin one after the other: 0 fails, 1 and 2 break and 3 passes, 4 to 6 break.
    if (place === 0) return { action: "abort" };
    if (place === 3) return {};
    return { kind: "fault", fault: { kind: "auth", message: "the key is wrong" } } as never;
  });
  const record = await start({ plan: plan(3), backend });
  assert.deepEqual(states(record), ["failed", "passed", "error"]);
  assert.equal(seen.runs.length, 7);
  assert.deepEqual(
    record.runs.map(({ errors }) => errors.length),
    [0, 2, 2],
  );
  assert.match(record.runs[2]!.reason ?? "", /key is wrong/);
});

const BUDGETS: readonly [name: string, costs: (place: number) => number, jobs: number][] = [
  ["even costs, one at a time", () => 0.05, 1],
  ["even costs, 8 at once", () => 0.05, 8],
  ["later runs cost three times as much, 8 at once", (place) => (place < 8 ? 0.04 : 0.12), 8],
  ["later runs cost a third, 8 at once", (place) => (place < 8 ? 0.12 : 0.04), 8],
  ["every third run costs three times as much, 8 at once", (place) => (place % 3 === 2 ? 0.12 : 0.04), 8],
];
for (const [name, costs, jobs] of BUDGETS)
  test(`the budget is not exceeded by more than one call: ${name}`, async () => {
    const { start } = await world();
    const { backend, seen } = model((place) => ({ usd: costs(place) / 2 }));
    const record = await start({ plan: plan(100, { budgetUsd: 2 }), backend, jobs });
    assert.ok(spent(record) <= 2 + 0.06, `$${spent(record)} spent`);
    assert.ok(spent(record) > 1, `only $${spent(record)} spent`);
    assert.ok(jobs === 1 || seen.most > 2, `${seen.most} at once`);
    assert.ok(record.runs.some(({ state }) => state === "open"));
    assert.ok(!record.runs.some(({ state }) => state === "failed" || state === "error"));
  });

test("a run that reaches what was set aside for it is cut, and did not fail", async () => {
  const { start } = await world();
  const usd = (place: number) => (place === 6 ? 5 : 0.1);
  const { backend } = model((place) => ({ usd: usd(place) }));
  const record = await start({ plan: plan(8), backend });
  assert.deepEqual(states(record)[6], "cut");
  assert.equal(states(record).filter((state) => state === "passed").length, 7);
  assert.match(record.runs[6]!.reason ?? "", /set aside/);
});

test("a budget is refused before the first run where a price is not known", async () => {
  const { start, stateDir } = await world();
  const { backend, seen } = model(() => ({}));
  const unpriced = () => ({ ...backend("m"), unpriced: () => "test/m" });
  await assert.rejects(start({ plan: plan(2), backend: unpriced }), { code: "LIMIT_UNMETERED" });
  assert.equal(seen.runs.length, 0);
  assert.ok(!existsSync(join(stateDir, "evals")));
});

test("interrupted and resumed, no finished run is done again, and more money begins what was left", async () => {
  const { start, loaded, journal } = await world();
  const stop = new AbortController();
  const { backend, seen } = model((place) => {
    if (place === 3) stop.abort();
    return { usd: 0.1 };
  });
  const record = await start({ plan: plan(6), backend, signal: stop.signal });
  assert.deepEqual(states(record), ["passed", "passed", "passed", "open", "open", "open"]);
  const resumed = await start({ plan: { resume: record.eval }, backend });
  assert.deepEqual(states(resumed), Array(6).fill("passed"));
  assert.deepEqual(
    resumed.runs.slice(0, 3).map(({ run }) => run),
    record.runs.slice(0, 3).map(({ run }) => run),
  );
  // Six runs that ended, and the one that was interrupted.
  assert.equal(seen.runs.length, 7);
  const other = runEval(loaded, {
    cwd: ".",
    tasks: [{ ...TASK, line: 2 }],
    plan: { resume: record.eval },
    backend,
    journal,
    env: {},
  });
  await assert.rejects(other, { code: "FLOW_INCOMPATIBLE" });
});

test("killed: a run that is over is judged by its record, one under way begins again and counts as spent", async () => {
  const { start, stateDir } = await world();
  const { backend, seen } = model(() => ({ usd: 0.1 }));
  const record = await start({ plan: plan(3), backend });
  // As a kill leaves it: the first run is over but not judged, the second was never begun, the third was under way.
  const [first, second, third] = record.runs;
  const open = { state: "open", run: null, green: false, costUsd: 0 } as const;
  const running = { state: "running", green: false, costUsd: 0, setAside: 7 } as const;
  writeEval(stateDir, {
    ...record,
    runs: [
      { ...first!, ...running },
      { ...second!, ...open },
      { ...third!, ...running, run: "unknownrun" },
    ],
  });
  const resumed = await start({ plan: { resume: record.eval }, backend });
  assert.deepEqual(states(resumed), ["passed", "passed", "passed"]);
  assert.equal(resumed.runs[0]!.run, first!.run);
  assert.equal(seen.runs.length, 5);
  assert.ok(Math.abs(resumed.runs[2]!.costUsd! - 7.2) < 1e-9);
});

test("a folder in a record is removed only if it is a copy", async () => {
  const { start, stateDir, root } = await world();
  const { backend } = model(() => ({}));
  const record = await start({ plan: plan(1), backend });
  const [first] = record.runs;
  writeFileSync(join(root, "precious"), "");
  const lost = { state: "running", run: "unknownrun", folder: root } as const;
  writeEval(stateDir, { ...record, runs: [{ ...first!, ...lost }] });
  assert.deepEqual(states(await start({ plan: { resume: record.eval }, backend })), ["passed"]);
  assert.ok(existsSync(join(root, "precious")));
});

test("a task whose parameters are not valid refuses the eval", async () => {
  const { start } = await world();
  const { backend } = model(() => ({}));
  const tasks = [{ ...TASK, params: { wrong: 1 } }];
  await assert.rejects(start({ plan: plan(2), backend, tasks }), { code: "PARAMETERS_INVALID" });
});
