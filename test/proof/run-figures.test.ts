/** Figures of runs whose claims, retries, questions and costs are known. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { CheckGiven, FlowTest } from "../../src/flow/flow-test.ts";
import { readTests } from "../../src/load/tests.ts";
import { addUp, type FiguredRun } from "../../src/proof/added-figures.ts";
import { createRunFigures, type RunFigures } from "../../src/proof/run-figures.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";

const cwd = join(import.meta.dirname, "../../examples/01-fix-a-test");
const { flow } = await load("fixer", { cwd });
const ready = await prepareFlow(flow!);
const first = readTests(flow!, createFiles(cwd)).tests[0]!;

/** A run that claims once for each item: the name of the check that fails, or null. */
async function runOf(run: string, claims: readonly (string | null)[], usd?: number): Promise<FiguredRun> {
  const given: { [check: string]: CheckGiven[] } = { "tests-pass": [], "git-clean": [] };
  for (const failed of claims) {
    given["tests-pass"]!.push({ kind: failed === "tests-pass" ? "fail" : "pass" });
    if (failed !== "tests-pass") given["git-clean"]!.push({ kind: failed === "git-clean" ? "fail" : "pass" });
  }
  const usage = { in: 90, out: 10, ...(usd !== undefined && { usd }) };
  const script = [
    { line: 1, step: "initial.issue", label: "next", usage },
    ...claims.flatMap(() => [
      { line: 1, step: "continuation.issue", label: "handoff", usage },
      { line: 1, step: "closure.issue", label: "closing", usage },
    ]),
  ];
  const one: FlowTest = {
    ...first,
    script,
    around: { ...first.around, checks: given },
    expect: { lines: {}, values: { outcome: "re:." } },
  };
  const { status, outcomes } = await runTest(ready, one);
  assert.equal(status, "passed");
  const { add, figures } = createRunFigures("digest");
  for (const moment of outcomes!.moments) add(moment);
  const state = claims.at(-1) === null ? "completed" : "failed";
  return { run, agent: "fixer", state, code: state === "failed" ? "GAVE_UP" : null, figures: figures() };
}

const RUNS = [
  await runOf("at once", [null], 0.5),
  await runOf("at last", ["tests-pass", "git-clean", null], 0.5),
  await runOf("never", ["tests-pass", "tests-pass", "tests-pass"]),
];
const figures = addUp(RUNS, ["tests-pass", "git-clean", "unused"]);

test("a failure pattern: its hits, what recovered from it, after how much, and who gave up", () => {
  const [tests, clean] = figures.patterns;
  assert.deepEqual(
    [tests!.check, tests!.hits, tests!.in, tests!.recovered, tests!.recoveredIn, tests!.gaveUpIn],
    ["tests-pass", 4, [1, 2], 1, [1], [2]],
  );
  // Two more claims, and between each two of them two responses of 100 tokens and half a dollar.
  assert.deepEqual([tests!.until!.claims, tests!.until!.tokens, tests!.until!.costUsd], [2, 400, 2]);
  assert.deepEqual([clean!.check, clean!.hits, clean!.recovered, clean!.gaveUpIn], ["git-clean", 1, 1, []]);
  assert.deepEqual([clean!.until!.claims, clean!.until!.tokens, clean!.until!.costUsd], [1, 200, 1]);
});

test("a run that may still go on has not given up", () => {
  const [, , never] = RUNS;
  const open = { ...never!, figures: { ...never!.figures, isOver: false } };
  assert.deepEqual(addUp([open]).patterns[0]?.gaveUpIn, []);
  assert.deepEqual(addUp([never!]).patterns[0]?.gaveUpIn, [0]);
});

test('how often "done" was true, and which checks never failed or never ran', () => {
  assert.deepEqual(
    figures.gates.map(({ step, said, stood, in: where, falseIn }) => [step, said, stood, where, falseIn]),
    [["closure.issue", 7, 2, [0, 1, 2], [1, 2]]],
  );
  assert.deepEqual([figures.honesty.falseDone.count, figures.honesty.falseDone.of], [5, 7]);
  assert.deepEqual(
    figures.checks.map(({ check, passed, failed, note, in: where, failedIn }) => [
      check,
      passed,
      failed,
      note,
      where,
      failedIn,
    ]),
    [
      ["tests-pass", 3, 4, null, [0, 1, 2], [1, 2]],
      ["git-clean", 2, 1, null, [0, 1], [1]],
      ["unused", 0, 0, "never ran", [], []],
    ],
  );
});

test("what each step took, and which of it has no known price", () => {
  const closure = figures.steps.find(({ step }) => step === "closure.issue")!;
  assert.deepEqual(
    [closure.visits, closure.turns, closure.inputTokens, closure.outputTokens, closure.costUsd],
    [7, 7, 630, 70, 2],
  );
  assert.deepEqual([closure.unpricedIn, closure.in], [[2], [0, 1, 2]]);
  assert.deepEqual(figures.cost, { median: 1.5, p90: 3.5, most: 3.5 });
  assert.deepEqual(figures.flows[0]?.completedIn, [0, 1]);
  assert.deepEqual(figures.codes, [{ code: "GAVE_UP", in: [2] }]);
});

const NONE: RunFigures = {
  at: Date.UTC(2026, 0, 5),
  flow: "f",
  ms: 0,
  visits: 0,
  usage: { turns: 0, inputTokens: 0, outputTokens: 0, costUsd: null },
  steps: [],
  retries: [],
  claims: [],
  isOver: true,
  questions: [],
  denials: [],
  hits: new Map(),
};
const runWith = (run: string, more: Partial<RunFigures>): FiguredRun => ({
  run,
  agent: "a",
  state: "completed",
  code: null,
  figures: { ...NONE, ...more },
});

test("questions by kind: answered, expired, open, and how long people took", () => {
  const asked = (waitedMs: number | null, by: string | null) =>
    ({ about: "permission", askedAt: 0, waitedMs, by }) as const;
  const { people } = addUp([
    runWith("x", { questions: [asked(10, "terminal"), asked(30, "studio"), asked(99, "expired")] }),
    runWith("y", { questions: [asked(null, null), asked(5, null)] }),
  ]);
  assert.deepEqual(people, [
    {
      about: "permission",
      asked: 5,
      answered: 2,
      expired: 1,
      open: 1,
      medianMs: 10,
      in: [0, 1],
    },
  ]);
});

test("a step that a command performs costs nothing, and is not without a price", () => {
  const took = (turns: number, costUsd: number | null) => ({
    step: "s",
    visits: 1,
    turns,
    inputTokens: 0,
    outputTokens: 0,
    ms: 1,
    costUsd,
  });
  const { steps } = addUp([
    runWith("x", { steps: [took(0, null)] }),
    runWith("y", { steps: [took(1, null)] }),
    runWith("z", { steps: [took(1, 0.5)] }),
  ]);
  assert.deepEqual([steps[0]?.unpricedIn, steps[0]?.costUsd, steps[0]?.visits], [[1], 0.5, 3]);
});

test("retries add up by step and model", () => {
  const tried = (model: string, repairs: number, faults: { [kind: string]: number }) => ({
    step: "s",
    model,
    answers: 2,
    repairs,
    faults,
    aliases: 1,
    fallbacks: 0,
  });
  const { retries } = addUp([
    runWith("x", { retries: [tried("m", 1, { network: 1 }), tried("n", 0, {})] }),
    runWith("y", { retries: [tried("m", 2, { network: 2, auth: 1 })] }),
  ]);
  assert.deepEqual(
    retries.map(({ model, answers, repairs, faults, aliases, in: where }) => ({
      model,
      answers,
      repairs,
      faults,
      aliases,
      where,
    })),
    [
      { model: "m", answers: 4, repairs: 3, faults: { network: 3, auth: 1 }, aliases: 2, where: [0, 1] },
      { model: "n", answers: 2, repairs: 0, faults: {}, aliases: 1, where: [0] },
    ],
  );
});

test("no runs: no figures, and nothing is not a number", () => {
  const none = addUp([]);
  assert.deepEqual([none.time, none.cost, none.visits, none.days, none.patterns], [null, null, null, [], []]);
  assert.ok(!JSON.stringify(none).includes("NaN"));
});
