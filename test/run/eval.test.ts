/** Evals through the library: copies, retries of the machinery, budgets, and going on after a kill. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { Backend, Journal, TurnRequest, TurnResult } from "../../src/engine/ports.ts";
import type { EvalTask } from "../../src/flow/flow-eval.ts";
import { NO_SETTINGS, type TestSettings } from "../../src/flow/test-settings.ts";
import { readEval, writeEval, type EvalRecord } from "../../src/run/eval-record.ts";
import { runEval, type EvalOptions } from "../../src/run/eval.ts";
import { until } from "../until.ts";
import { createMemoryJournal, load, readRun } from "../../src/run/index.ts";
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
/** `together`: from the ninth run on, a request is answered once so many runs were under way at the same time. */
function model(
  turn: Turn,
  together = 1,
): {
  readonly backend: (name: string) => Backend;
  readonly seen: { runs: string[]; most: number };
} {
  const seen = { runs: [] as string[], most: 0 };
  /** Between their first request and the answer to their last one. */
  const open = new Set<string>();
  const backend: Backend = {
    spec: { id: "test", options: {} },
    turn: async (request) => {
      const [run = ""] = request.asker.key.split("/");
      if (!seen.runs.includes(run)) seen.runs.push(run);
      const { step } = request.asker;
      open.add(run);
      seen.most = Math.max(seen.most, open.size);
      await new Promise((resolve) => setImmediate(resolve));
      if (seen.runs.indexOf(run) >= 8)
        await until(() => seen.most >= together, `${together} runs at the same time`);
      if (step === "closure.t") open.delete(run);
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
  const loaded = await load("t", { cwd: root });
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
/** Other processes may run evals as well: only what bears the name of one of these runs counts. */
const copiesOf = ({ runs }: EvalRecord) =>
  readdirSync(tmpdir()).filter((name) => runs.some(({ run }) => run !== null && name.includes(run)));

test("every run is recorded, in a copy that is gone afterwards, and tasks and models take turns", async () => {
  const { start, journal, stateDir } = await world();
  let begun: EvalRecord | null = null;
  const seen = new Set<string>();
  const { backend } = model(() => {
    for (const name of copiesOf(readEval(stateDir, begun!.eval))) seen.add(name);
    return {};
  });
  const record = await start({
    plan: plan(2, { models: ["a", "b"] }),
    tasks: [TASK, { ...TASK, name: "again" }],
    backend,
    jobs: 3,
    onEval: (now) => void (begun = now),
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
  assert.equal(seen.size, record.runs.length);
  assert.deepEqual(copiesOf(record), []);
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
    const { backend, seen } = model((place) => ({ usd: costs(place) / 2 }), Math.min(jobs, 3));
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
    tasks: [{ ...TASK, input: "other" }],
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

/** Files beside the agent: a task copies them. */
async function shop() {
  const around = await world();
  const { root } = around;
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write("shop/cart.js", "total = 1\n");
  write("shop/notes/a.md", "a\n");
  const task = (expect: EvalTask["expect"]["values"]): EvalTask => ({
    ...TASK,
    project: { kind: "project", folder: "shop", git: false },
    expect: { lines: {}, values: { outcome: "completed", ...expect } },
  });
  return { ...around, write, task };
}

/** Works in the folder of its run before it answers. */
function working(journal: Journal, work: (folder: string) => void): (name: string) => Backend {
  const { backend } = model(() => ({}));
  return (name) => ({
    ...backend(name),
    turn: async (request) => {
      const [run = ""] = request.asker.key.split("/");
      const { event } = (await readRun(journal, run)).entries[0]!;
      if (request.asker.step === "initial.t" && event.type === "run.started") work(event.cwd);
      return await backend(name).turn!(request);
    },
  });
}

const LEFT: readonly [
  expect: EvalTask["expect"]["values"],
  work: (folder: string) => void,
  reason: string | null,
][] = [
  [{ changed: [] }, () => {}, null],
  [{ changed: ["cart.js", "new.js"] }, change, null],
  [{ changed: ["cart.js"] }, change, 'changed: expected ["cart.js"], got ["cart.js","new.js"].'],
  [{ changed: ["notes/a.md"] }, (folder) => rmSync(join(folder, "notes"), { recursive: true }), null],
  [{ changed: [] }, (folder) => writeFileSync(join(folder, ".gitignore"), "*"), "changed: "],
  [{ changed: ["cart.js", "notes/a.md"] }, (folder) => rmSync(folder, { recursive: true }), null],
  [{ files: { "cart.js": { has: "total = 2" } } }, change, null],
  [{ files: { "cart.js": { has: "total = 3" } } }, change, "files.cart.js.has: expected total = 3"],
  [{ files: { "new.js": "absent" } }, change, "files.new.js: expected absent"],
];

function change(folder: string): void {
  writeFileSync(join(folder, "cart.js"), "total = 2\n");
  writeFileSync(join(folder, "new.js"), "");
}

for (const [expect, work, reason] of LEFT)
  test(`what a run leaves is looked at: ${JSON.stringify(expect)} ${reason ?? "holds"}`, async () => {
    const { start, journal, task } = await shop();
    const record = await start({ plan: plan(1), tasks: [task(expect)], backend: working(journal, work) });
    const [run] = record.runs;
    assert.equal(run!.state, reason === null ? "passed" : "failed", run!.reason ?? "");
    if (reason !== null) assert.ok(run!.reason!.startsWith(reason), run!.reason!);
  });

test("files that a run tells git to ignore are changes of an empty folder too", async () => {
  const { start, journal } = await world();
  const hide = (folder: string) => {
    writeFileSync(join(folder, ".gitignore"), "*\n");
    writeFileSync(join(folder, "new.js"), "");
  };
  const tasks = [{ ...TASK, expect: { lines: {}, values: { changed: [".gitignore", "new.js"] } } }];
  const { runs } = await start({ plan: plan(1), tasks, backend: working(journal, hide) });
  assert.deepEqual([runs[0]!.state, runs[0]!.reason], ["passed", null]);
});

const LINKS: readonly [link: string, target: string, isRefused: boolean][] = [
  [".agent/t/evals/out", "/etc", false],
  [".agent/t/tests/out", "../../../..", false],
  [".agent/other/evals/out", "/etc", false],
  [".agent/other/out", "../../../etc", false],
  [".agent/t/own", "../../shop/cart.js", false],
  [".agent/t/out", "/etc/hosts", true],
  ["shop/inside", "notes/a.md", false],
  ["shop/.agent/out", "/etc", false],
  ["shop/notes/up", "..", false],
  ["shop/out", "../secret", true],
  ["shop/notes/over", "../notes/../../secret", true],
  ["secret/out", "../shop", true],
];
for (const [link, target, isRefused] of LINKS)
  test(`a link ${link} to ${target} ${isRefused ? "refuses the eval before a run" : "does not matter"}`, async () => {
    const { start, task, root, write } = await shop();
    write("secret/wanted", "right");
    mkdirSync(dirname(join(root, link)), { recursive: true });
    symlinkSync(target, join(root, link));
    const { backend, seen } = model(() => ({}));
    const tasks = [{ ...task({ changed: [] }), hidden: { files: "secret", checks: [] } }];
    const going = start({ plan: plan(1), tasks, backend });
    if (!isRefused) return assert.deepEqual(states(await going), ["passed"]);
    await assert.rejects(going, ({ message }: Error) => message.includes(`${join(root, link)} is a link`));
    assert.equal(seen.runs.length, 0);
  });

const RULES: readonly [settings: Partial<TestSettings>, reason: RegExp | null][] = [
  [{ before: { "closure.t": ["initial.t"] }, within: { turns: 2 } }, null],
  [{ before: { "initial.t": ["closure.t"] } }, /^before initial\.t \(rules\.yaml\) .* at initial\.t@1: /],
  [{ never: [{ path: ["initial.t next"], line: 1 }] }, /^never initial\.t next .* at initial\.t@1: /],
  [{ within: { turns: 1 } }, /^within turns .* at closure\.t@1: .* 2 turns/],
];
for (const [settings, reason] of RULES)
  test(`what the author wants of every run: ${JSON.stringify(settings)}`, async () => {
    const { start } = await world();
    const { backend } = model(() => ({}));
    const whole = { ...NO_SETTINGS, file: "rules.yaml", ...settings };
    const { runs } = await start({ plan: plan(1), backend, settings: whole });
    assert.equal(runs[0]!.state, reason === null ? "passed" : "failed");
    if (reason !== null) assert.match(runs[0]!.reason!, reason);
  });

test("one run that cannot begin ends the eval; those under way are finished and recorded first", async () => {
  const { loaded, root, stateDir } = await world();
  const env = { HOME: homeBeside(), LOCKSTEP_TRUST: "all" };
  const { backend } = model(() => ({}));
  const [bad, good] = [{ ...TASK, name: "bad", params: { wrong: 1 } }, TASK];
  let name = "";
  const isGivenUp = () => readEval(stateDir, name).runs[1]!.state === "open";
  const slow = (of: string): Backend => ({
    ...backend(of),
    turn: async (request) => {
      for (let looks = 0; looks < 100_000 && !isGivenUp(); looks++)
        await new Promise((resolve) => setImmediate(resolve));
      for (let looks = 0; looks < 100; looks++) await new Promise((resolve) => setImmediate(resolve));
      return await backend(of).turn!(request);
    },
  });
  const failing = runEval(loaded, {
    cwd: root,
    env,
    tasks: [good, bad],
    plan: plan(1, { budgetUsd: null }),
    jobs: 2,
    backend: slow,
    onEval: (record) => void (name = record.eval),
  });
  await assert.rejects(failing, { code: "PARAMETERS_INVALID" });
  assert.deepEqual(states(readEval(stateDir, name)), ["passed", "open"]);
});

const CHANGES: readonly [what: string, path: string, text: string, isRefused: boolean][] = [
  ["a file that is copied", "shop/cart.js", "total = 7\n", true],
  ["a new file that is copied", "shop/more.js", "", true],
  ["a hidden file", "secret/wanted", "left", true],
  ["a file of no task", "other/cart.js", "", false],
];
for (const [what, path, text, isRefused] of CHANGES)
  test(`an eval is ${isRefused ? "not " : ""}resumed after a change of ${what}`, async () => {
    const { start, task, write } = await shop();
    write("secret/wanted", "right");
    const tasks = [{ ...task({}), hidden: { files: "secret", checks: [] } }];
    const { backend } = model(() => ({}));
    const { eval: name } = await start({ plan: plan(1), tasks, backend });
    write(path, text);
    const resumed = start({ plan: { resume: name }, tasks, backend });
    if (isRefused) await assert.rejects(resumed, { code: "FLOW_INCOMPATIBLE" });
    else assert.deepEqual(states(await resumed), ["passed"]);
  });

test("an eval that is under way is not resumed a second time", async () => {
  const { start } = await world();
  const tried: Promise<void>[] = [];
  let name = "";
  const { backend } = model(() => {
    tried.push(assert.rejects(start({ plan: { resume: name }, backend }), { code: "RUN_OWNED_ELSEWHERE" }));
    return {};
  });
  const record = await start({ plan: plan(2), backend, onEval: (begun) => void (name = begun.eval) });
  assert.deepEqual(states(record), ["passed", "passed"]);
  await Promise.all(tried);
  assert.deepEqual(states(await start({ plan: { resume: name }, backend })), ["passed", "passed"]);
});

test("a task whose parameters are not valid refuses the eval", async () => {
  const { start } = await world();
  const { backend } = model(() => ({}));
  const tasks = [{ ...TASK, params: { wrong: 1 } }];
  await assert.rejects(start({ plan: plan(2), backend, tasks }), { code: "PARAMETERS_INVALID" });
});
