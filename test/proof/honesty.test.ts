/** Known claims in runs give the known table. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { CheckGiven, FlowTest } from "../../src/flow/flow-test.ts";
import { readTests } from "../../src/load/tests.ts";
import { claimsBy, createClaims, honestyOf, type RunClaims } from "../../src/proof/honesty.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";

const cwd = join(import.meta.dirname, "../../examples/01-fix-a-test");
const { flow } = await load("fixer", { cwd });
const ready = await prepareFlow(flow!);
const first = readTests(flow!, createFiles(cwd)).tests[0]!;

const DAY = 86_400_000;

/** A run that claims once for each item: the name of the check that fails, or null. */
async function runOf(name: string, week: number, claims: readonly (string | null)[]): Promise<RunClaims> {
  const given: { [check: string]: CheckGiven[] } = { "tests-pass": [], "git-clean": [] };
  for (const failed of claims) {
    given["tests-pass"]!.push({ kind: failed === "tests-pass" ? "fail" : "pass" });
    if (failed !== "tests-pass") given["git-clean"]!.push({ kind: failed === "git-clean" ? "fail" : "pass" });
  }
  const usage = { in: 90, out: 10, usd: 0.5 };
  const script = [
    { line: 1, step: "initial.issue", label: "next", usage },
    ...claims.flatMap(() => [
      { line: 1, step: "continuation.issue", label: "handoff", usage },
      { line: 1, step: "closure.issue", label: "closing", usage },
    ]),
  ];
  const { clock } = first.around;
  const one: FlowTest = {
    ...first,
    script,
    around: { ...first.around, checks: given, clock: clock + week * 7 * DAY },
    expect: { lines: {}, values: { outcome: "re:." } },
  };
  const { status, outcomes } = await runTest(ready, one);
  assert.equal(status, "passed");
  const { add, claims: found, isOver } = createClaims();
  for (const moment of outcomes!.moments) add(moment);
  return { run: name, flow: week === 0 ? "old" : "new", isOver: isOver(), claims: found };
}

const RUNS = [
  await runOf("right at once", 0, [null]),
  await runOf("right at last", 0, ["tests-pass", "tests-pass", null]),
  await runOf("never right", 1, ["tests-pass", "tests-pass", "tests-pass"]),
  { run: "no claim", flow: "new", isOver: true, claims: [] },
];

test("rates, tries, price and patterns are those of the known claims", () => {
  const honesty = honestyOf(RUNS, ["tests-pass", "git-clean", "never-declared-in-a-run"]);
  assert.equal(honesty.runs, 4);
  assert.equal(honesty.claims, 7);
  assert.deepEqual([honesty.falseDone.count, honesty.falseDone.of], [5, 7]);
  assert.deepEqual([honesty.honestFirst.count, honesty.honestFirst.of], [1, 3]);
  assert.deepEqual([honesty.recovered.count, honesty.recovered.of], [1, 2]);
  assert.deepEqual([honesty.exhausted.count, honesty.leftOpen.count], [1, 0]);
  assert.deepEqual(honesty.tries, { 1: 1, 3: 1 });
  // From the first false claim of "right at last" to the one that passed: four responses.
  assert.equal(honesty.price!.tokens, 400);
  assert.equal(honesty.price!.costUsd, 2);
  assert.deepEqual(honesty.patterns, [{ pattern: "tests-failed", hits: 5, recovered: 1 }]);
  assert.deepEqual(honesty.checks, [
    { check: "tests-pass", passed: 2, failed: 5, couldNotRun: 0, note: null },
    { check: "git-clean", passed: 2, failed: 0, couldNotRun: 0, note: "never failed" },
    { check: "never-declared-in-a-run", passed: 0, failed: 0, couldNotRun: 0, note: "never ran" },
  ]);
});

test("a run that has not ended is not given up", () => {
  const never = { ...RUNS[2]!, isOver: false };
  const { recovered, exhausted, leftOpen } = honestyOf([RUNS[1]!, never], []);
  assert.deepEqual([recovered.count, exhausted.count, leftOpen.count, leftOpen.of], [1, 0, 1, 2]);
});

type Result = RunClaims["claims"][number]["results"][number];
const HEALTH: readonly [results: readonly Result["ok"][], broken: number, note: string | null][] = [
  [[], 0, "never ran"],
  [[true, true], 0, "never failed"],
  [[true], 2, "never failed"],
  [[false, false], 0, "never passed"],
  [[], 2, "never passed"],
  [[true, false], 0, null],
];
for (const [oks, broken, note] of HEALTH)
  test(`a check with the results ${oks.join(" ")} that could not run ${broken} times: ${note}`, () => {
    const results: readonly Result[] = [
      ...oks.map((ok) => ({ name: "c", ok })),
      ...Array.from({ length: broken }, () => ({ name: "c", ok: false, unrecoverable: true as const })),
    ];
    const claim = { ...RUNS[0]!.claims[0]!, results };
    const { checks } = honestyOf([{ ...RUNS[0]!, claims: [claim] }], ["c"]);
    assert.deepEqual(
      checks.map((one) => [one.check, one.note]),
      [["c", note]],
    );
  });

test("without a claim there is no rate", () => {
  const { falseDone, honestFirst, price } = honestyOf(RUNS.slice(3), []);
  assert.deepEqual([falseDone.interval, honestFirst.interval, price], [null, null, null]);
});

const groups: readonly [key: Parameters<typeof claimsBy>[1], rows: readonly string[]][] = [
  ["step", ["closure.issue 3 5/7"]],
  ["check", ["tests-pass 3 5/7", "git-clean 2 0/2"]],
  ["week", ["2025-12-29 2 2/4", "2026-01-05 1 3/3 changed"]],
  ["flow", ["old 2 2/4", "new 1 3/3"]],
];

for (const [key, rows] of groups)
  test(`by ${key}: runs, and false claims of all`, () => {
    assert.deepEqual(
      claimsBy(RUNS, key).map(
        ({ name, runs, falseDone, isChanged }) =>
          `${name} ${runs} ${falseDone.count}/${falseDone.of}${isChanged ? " changed" : ""}`,
      ),
      rows,
    );
  });
