/** Every recorded run in the fixtures passes as a test, written to a file and read again, also when it is redacted. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { asTest } from "../../src/cli/commands/export-test.ts";
import type { FlowTest } from "../../src/flow/flow-test.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { readTestFile } from "../../src/load/tests.ts";
import { exportRun, journalOf, parseBundle } from "../../src/run/records/bundle.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";

const HEAD = { lockstep: "Lockstep", schemas: () => null };

const FOLDER = join(import.meta.dirname, "../fixtures/journals");

async function recorded(file: string, redact: boolean) {
  const whole = parseBundle(readFileSync(join(FOLDER, file), "utf8"), file);
  const { bundle } = await exportRun(await journalOf(whole), whole.run.id, { redact });
  return bundle;
}

function readBack(flow: Flow, text: string): readonly FlowTest[] {
  const findings: Parameters<typeof readTestFile>[3] = [];
  const files = { ...createFiles(FOLDER), read: () => ({ kind: "text", text }) as const };
  const read = readTestFile(flow, files, "recorded.yaml", findings);
  assert.deepEqual(findings, []);
  return read;
}

for (const path of globSync(join(FOLDER, "*.json")))
  for (const redact of [false, true])
    test(`${basename(path)}${redact ? ", redacted" : ""}`, async () => {
      const bundle = await recorded(basename(path), redact);
      const { text, astray } = await asTest(bundle, "test", HEAD);
      assert.equal(astray, null);
      const newest = bundle.entries.findLast(({ event }) => event.type === "run.adopted")?.event;
      const digest = newest?.type === "run.adopted" ? newest.flow : bundle.run.flow;
      const flow = await prepareFlow(bundle.flows[digest]!);
      const [read] = readBack(flow, text);
      const { status, unmet } = await runTest(flow, read!);
      assert.deepEqual({ status, unmet }, { status: "passed", unmet: [] });
    });

test("a recorded result that begins like the name of a fixture is a text", async () => {
  const bundle = await recorded("closure-retry.json", false);
  const text = "file:a.txt: no such file";
  const entries = bundle.entries.map((entry) => {
    const { event } = entry;
    if (event.type === "step.called")
      return {
        ...entry,
        event: { ...event, results: event.results.map((one) => ({ ...one, content: text })) },
      };
    if (event.type !== "step.checked") return entry;
    const results = event.results.map((one) =>
      one.ok ? one : { ...one, params: { ...one.params, exitCode: 1, stdout: text, stderr: text } },
    );
    return { ...entry, event: { ...event, results } };
  });
  const flow = await prepareFlow(bundle.flows[bundle.run.flow]!);
  const exported = await asTest({ ...bundle, entries }, "test", HEAD);
  assert.equal(exported.astray, null);
  const [read] = readBack(flow, exported.text);
  assert.ok(
    Object.values(read!.around.tools)
      .flat()
      .every(({ content }) => content === text),
  );
  const outputs = Object.values(read!.around.checks)
    .flat()
    .flatMap((one) => (one.kind === "output" ? [one.stdout, one.stderr] : []));
  assert.ok(outputs.length > 0 && outputs.every((one) => one === text), JSON.stringify(outputs));
});

test("a recorded test fails on a flow that leads elsewhere", async () => {
  const bundle = await recorded("closure-retry.json", false);
  const flow = bundle.flows[bundle.run.flow]!;
  const closing = flow.steps["closure.guide"]!;
  const edges = { ...closing.edges, closing: { kind: "goto", step: "closure.guide" } as const };
  const changed = { ...flow, steps: { ...flow.steps, "closure.guide": { ...closing, edges } } };
  const { text } = await asTest(bundle, "test", HEAD);
  const [read] = readBack(flow, text);
  assert.equal((await runTest(await prepareFlow(flow), read!)).status, "passed");
  assert.equal((await runTest(await prepareFlow(changed), read!)).status, "failed");
});

test("a run that has not ended is refused", async () => {
  const bundle = await recorded("gate.json", false);
  await assert.rejects(asTest({ ...bundle, entries: bundle.entries.slice(0, 3) }, "test", HEAD), {
    code: "RUN_OPEN",
  });
});
