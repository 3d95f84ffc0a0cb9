/** The tests of an agent in another runner, and scenarios, coverage and fuzzing as functions. */
import assert from "node:assert/strict";
import { cpSync, mkdtempDisposableSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { agentTests, flowTests } from "../../src/testing/index.ts";

const cwd = fileURLToPath(new URL("../../examples/09-tested-agent", import.meta.url));
const options = { cwd, memory: true, isCi: true };

test("every test of the files is declared by its name, and passes", async () => {
  const declared: (readonly [name: string, run: () => Promise<void>])[] = [];
  await flowTests("notes", { ...options, test: (name, run) => declared.push([name, run]) });
  assert.ok(declared.some(([name]) => name === "notes › is sent back while the title is missing"));
  assert.ok(declared.every(([name]) => !name.includes("is written with its title")));
  for (const [, run] of declared) await run();
});

test("a test that is left out is declared as skipped, with the reason; without test.skip it is not passed over", async () => {
  const declared: string[] = [];
  const declare = (name: string) => declared.push(name);
  const skip = (name: string) => declared.push(`skipped: ${name}`);
  using copy = mkdtempDisposableSync(join(tmpdir(), "lockstep-skipped-"));
  cpSync(cwd, copy.path, { recursive: true });
  const later = "tests:\n  - { name: waits for the title, skip: the title is not there yet, script: [] }\n";
  writeFileSync(join(copy.path, ".agent/notes/tests/later.yaml"), later);
  const inCopy = { ...options, cwd: copy.path };
  await flowTests("notes", { ...inCopy, test: Object.assign(declare, { skip }) });
  assert.deepEqual(
    declared.filter((name) => name.startsWith("skipped")),
    ["skipped: notes › waits for the title (the title is not there yet)"],
  );
  assert.ok(!declared.includes("notes › waits for the title"));
  await assert.rejects(
    async () => flowTests("notes", { ...inCopy, test: (name) => declared.push(name) }),
    /"notes › waits for the title \(the title is not there yet\)" is skipped\. Give flowTests the test function/,
  );
});

test("a scenario is read as a test file is", async () => {
  const { scenario } = await agentTests("notes", options);
  const script = ["initial.note handoff", "closure.note closing"];
  assert.equal((await scenario({ script })).status, "passed");
  const { unmet } = await scenario({ script, checks: { titled: "fail" }, expect: { outcome: "completed" } });
  assert.deepEqual(
    unmet.map(({ key }) => key),
    ["outcome", "script"],
  );
  await assert.rejects(async () => scenario({ script: ["initial.note hand"] }), /cannot say "hand".*handoff/);
  await assert.rejects(async () => scenario({ scripts: [] }), /scripts/);
});

test("a failed test throws what was expected, what came, and where", async () => {
  const { tests, run } = await agentTests("notes", options);
  const one = tests.find(({ name }) => name.startsWith("is complete"))!;
  const wrong = { ...one, expect: { lines: { outcome: 8 }, values: { outcome: "failed" } } };
  const { status, unmet } = await run(wrong);
  assert.equal(status, "failed");
  assert.deepEqual(unmet, [{ key: "outcome", line: 8, at: "", expected: "failed", got: "completed" }]);
});

test("coverage and fuzzing are functions", async () => {
  const { tests, run, coverage, fuzz } = await agentTests("notes", options);
  const results = [];
  for (const one of tests) results.push(await run(one));
  const { transitions } = coverage(results).totals;
  assert.equal(transitions.covered, transitions.of);
  const some = coverage(results.slice(0, 1)).totals.transitions;
  assert.ok(some.covered < some.of);
  const { runs, broken } = await fuzz({ runs: 50, seed: 1 });
  assert.equal(runs, 50);
  assert.deepEqual(broken, []);
});

test("the author's own properties hold for tests, scenarios and fuzzing", async () => {
  const root = mkdtempSync(join(tmpdir(), "lockstep-kit-"));
  try {
    cpSync(join(cwd, ".agent"), join(root, ".agent"), { recursive: true });
    writeFileSync(join(root, ".agent/notes/tests/settings.yaml"), "within: { visits: 1 }\n");
    const { tests, run, scenario, fuzz } = await agentTests("notes", { ...options, cwd: root });
    const keys = ({ unmet }: Awaited<ReturnType<typeof run>>) => unmet.map(({ key }) => key);
    const one = tests.find(({ name }) => name.startsWith("is complete"))!;
    assert.deepEqual(keys(await run(one)), ["settings"]);
    const script = ["initial.note handoff", "closure.note closing"];
    assert.deepEqual(keys(await scenario({ script })), ["settings"]);
    const { broken } = await fuzz({ runs: 20 });
    assert.deepEqual(
      broken.map(({ property }) => property),
      ["author"],
    );
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("an agent that is not valid, and one that does not exist, throw with the reason", async () => {
  await assert.rejects(async () => agentTests("nobody", options), /nobody/);
});

test("what callers give is checked, with what was meant", async () => {
  const { scenario, run, coverage, fuzz } = await agentTests("notes", options);
  // Callers in JavaScript have no types.
  const any = (value: unknown) => value as never;
  const script = ["initial.note handoff", "closure.note closing"];
  const rows: readonly (readonly [call: () => unknown, says: RegExp])[] = [
    [() => agentTests(any(undefined)), /agentTests takes the name of an agent, not undefined/],
    [() => agentTests(""), /not ""/],
    [() => agentTests("notes", any("x")), /takes an object of options, not "x"/],
    [() => agentTests("notes", any({ memry: true })), /no option "memry"\. Did you mean "memory"/],
    [
      () => agentTests("notes", any({ cwd, memory: "yes" })),
      /"memory" of agentTests is "yes", but must be true or false/,
    ],
    [() => flowTests("notes", any({ cwd })), /flowTests needs the option "test", a function/],
    [
      () => flowTests("notes", any({ cwd, test: {} })),
      /"test" of flowTests is an object, but must be a function/,
    ],
    [() => scenario(any(script)), /takes an object with the keys of a test/],
    [() => scenario({ script, skip: "later" }), /does not take "skip"/],
    [() => scenario({ script, cases: [{ a: 1 }] }), /does not take "cases"/],
    [() => scenario({ script, project: "fixtures" }), /does not take "project"/],
    [() => run(any({ script })), /run takes one of the tests/],
    [() => coverage(any(undefined)), /coverage takes a list of results/],
    [() => coverage(any([scenario({ script })])), /await each of them/],
    [() => fuzz(any({ run: 5 })), /no option "run"\. Did you mean "runs"/],
    [() => fuzz({ runs: 0 }), /"runs" of fuzz is 0, but must be a whole number of at least 1/],
    [() => fuzz({ runs: NaN }), /is NaN/],
    [() => fuzz({ seed: 0.5 }), /"seed" of fuzz is 0\.5, but must be a whole number/],
    [
      () => fuzz(any({ personas: ["nobody"] })),
      /"personas" of fuzz is a list, but must be a list with one or more of/,
    ],
    [() => fuzz({ personas: [] }), /one or more of/],
  ];
  for (const [call, says] of rows) await assert.rejects(async () => void (await call()), says);
});

test("an agent without tests is not declared as tested", async () => {
  using copy = mkdtempDisposableSync(join(tmpdir(), "lockstep-untested-"));
  cpSync(join(cwd, ".agent"), join(copy.path, ".agent"), { recursive: true });
  rmSync(join(copy.path, ".agent/notes/tests"), { recursive: true });
  const none = flowTests("notes", { ...options, cwd: copy.path, test: () => undefined });
  await assert.rejects(none, /no tests in \.agent\/notes\/tests that run in memory: nothing would be tested/);
});
