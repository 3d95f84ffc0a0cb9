/** Tests of tests: the shipped tests of the examples notice changes, and a change that none notices comes with a test that does. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { exampleAgents } from "../proof/examples.ts";
import { agentTests } from "../../src/testing/agent-tests.ts";
import type { FlowTest } from "../../src/flow/flow-test.ts";
import { readTestFile, readTests } from "../../src/load/tests.ts";
import { mutantsOf } from "../../src/proof/mutants.ts";
import { writeTests } from "../../src/proof/write-tests.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";
import { baseOf, mutate, scoreOf, type Mutated } from "../../src/testing/mutate.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");

async function example(folder: string, agent: string) {
  const cwd = join(EXAMPLES, folder);
  const { flow } = await load(agent, { cwd });
  const { tests, problems } = readTests(flow!, createFiles(cwd));
  assert.deepEqual(problems, []);
  return { flow: await prepareFlow(flow!), tests };
}

const open = ({ fate }: Mutated) => fate.kind === "survived" || fate.kind === "uncovered";

for (const { name, folder, loaded, flow } of await exampleAgents())
  test(`${name}: its tests pass, take every transition, and notice nearly every change`, async () => {
    const { tests, problems } = readTests(flow, createFiles(folder));
    assert.deepEqual(problems, []);
    const inMemory = tests.filter(({ ground }) => ground.kind === "memory");
    const base = await baseOf(flow, inMemory);
    assert.deepEqual(
      base.failing.map(({ test: { name: failed }, unmet }) => ({ name: failed, unmet })),
      [],
    );
    assert.ok(
      inMemory.some(({ generated }) => !generated),
      "somebody wrote tests",
    );
    const { coverage } = await agentTests(loaded.agent, { cwd: folder, memory: true, isCi: true });
    const { steps, transitions, checks } = coverage(base.results).totals;
    for (const { covered, of } of [steps, transitions, checks]) assert.equal(covered, of);
    const { mutants } = await mutate(flow, base);
    assert.ok(scoreOf(mutants)! >= 0.9, `${scoreOf(mutants)}`);
    for (const kind of ["words", "reach"])
      assert.ok(
        mutants.some(({ mutant, fate }) => mutant.kind === kind && fate.kind === "killed"),
        kind,
      );
    // Where no script distinguishes two flows, no test can.
    const noticed = mutants.filter((one) => !open(one) || ("test" in one.fate && one.fate.test !== null));
    const gates = noticed.filter(({ mutant }) => mutant.kind === "gates");
    const swaps = noticed.filter(({ mutant }) => mutant.labels?.length === 2);
    assert.deepEqual(
      [...gates, ...swaps].filter(open).map(({ mutant }) => mutant.what),
      [],
    );
    if (Object.keys(flow.checks).length > 0) assert.ok(gates.length > 0);
    if (Object.keys(flow.steps).length > 1) assert.ok(swaps.length > 0);
  });

test("a change that no test notices comes with a test that passes on the flow, and the score rises with it", async () => {
  const { flow, tests } = await example("01-fix-a-test", "fixer");
  const few = tests.slice(0, 1);
  const classes = ["gates", "routes", "reach", "words"] as const;
  const before = await mutate(flow, await baseOf(flow, few), { classes });
  const offered = before.mutants.filter(open).map(({ mutant, fate }) => {
    assert.ok("test" in fate && fate.test !== null, mutant.what);
    return fate.test;
  });
  assert.ok(offered.length > 20);
  for (const one of offered) assert.equal((await runTest(flow, one)).status, "passed", one.name);
  const read = readBack(flow, offered);
  const after = await mutate(flow, await baseOf(flow, [...few, ...read]), { classes });
  assert.ok(scoreOf(before.mutants)! < 0.7);
  assert.equal(scoreOf(after.mutants), 1);
});

/** As they are after they were written to a file. */
function readBack(flow: Parameters<typeof readTestFile>[0], tests: readonly FlowTest[]): readonly FlowTest[] {
  const text = writeTests(tests, [], null);
  const findings: Parameters<typeof readTestFile>[3] = [];
  const files = { ...createFiles(EXAMPLES), read: () => ({ kind: "text", text }) as const };
  const read = readTestFile(flow, files, "generated.yaml", findings);
  assert.deepEqual(findings, []);
  return read;
}

test("a test that fails without a change is not counted on", async () => {
  const { flow, tests } = await example("01-fix-a-test", "fixer");
  const wrong: FlowTest = { ...tests[0]!, expect: { lines: {}, values: { outcome: "failed" } } };
  const base = await baseOf(flow, [wrong]);
  assert.equal(base.failing.length, 1);
  const { mutants } = await mutate(flow, base, { classes: ["gates"] });
  assert.equal(scoreOf(mutants), 0);
});

test("labels that a stage cannot give, and labels that are never named, are not changed", async () => {
  for (const [folder, agent, label] of [
    ["06-stage-machine", "ship", "skip"],
    ["01-fix-a-test", "fixer", "abort"],
  ] as const) {
    const { flow } = await example(folder, agent);
    const labels = [...mutantsOf(flow, new Set(Object.keys(flow.steps)))].flatMap((one) => one.labels ?? []);
    assert.ok(labels.length > 10 && !labels.includes(label), label);
  }
});

test("every check is dropped, every gate loosened and every pair of targets swapped, each once", () => {
  const checks = ["lint", "tests"].map((check) => ({ check, edition: sketchPrompt("Fix it.") }));
  const guard = { on: "next", checks, onFailure: "retry", maxFailures: 2, back: { kind: "caller" } } as const;
  const goto = (step: string) => ({ kind: "goto", step }) as const;
  const { on: _on, ...stopGuard } = guard;
  const flow = sketchFlow(
    {
      work: {
        guard,
        handoff: ["risk"],
        edges: {
          next: {
            kind: "switch",
            on: ["risk"],
            cases: { low: goto("late"), high: goto("work"), none: goto("late") },
            otherwise: { kind: "end", outcome: "completed" },
          },
          repeat: { kind: "times", max: 2, move: goto("work"), after: goto("late") },
          leave: "late",
        },
      },
      late: { edges: { next: null, repeat: "late" } },
    },
    {
      checks: { lint: sketchCheck("lint", "lint"), tests: sketchCheck("tests", "test") },
      stop: { kind: "keyword", text: "DONE" },
      stopGuard,
    },
  );
  const all = [...mutantsOf(flow, new Set(["work", "late"]))].map(({ what }) => what);
  const about = (words: RegExp) => all.filter((what) => words.test(what)).toSorted();
  assert.deepEqual(about(/dropped$/), [
    "check lint of the verdict is dropped",
    "check tests of the verdict is dropped",
    "the checks of the verdict are dropped",
    "work: check lint is dropped",
    "work: check tests is dropped",
    "work: its checks are dropped",
  ]);
  assert.deepEqual(about(/means skip/), [
    "a failed check of the verdict means skip, not retry",
    "work: a failed check means skip, not retry",
  ]);
  assert.deepEqual(about(/ led/), [
    "late: next and repeat lead where the other one led",
    "work: next and leave lead where the other one led",
    "work: next and repeat lead where the other one led",
    "work: next leads for high and none where the other one led",
    "work: next leads for high where it led by default, and the other way round",
    "work: next leads for low and high where the other one led",
    "work: next leads for low where it led by default, and the other way round",
    "work: next leads for none where it led by default, and the other way round",
    "work: repeat and leave lead where the other one led",
    "work: repeat leads at first where it led after 2 times",
  ]);
  assert.deepEqual(about(/any answer fits|is not required/), [
    'late: "next_action" is not required',
    "late: any answer fits",
    'work: "next_action" is not required',
    "work: any answer fits",
  ]);
  assert.equal(new Set(all).size, all.length);
});
