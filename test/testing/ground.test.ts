/** Tests of a flow in memory: the clock, and what a test file can reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileTree } from "../../src/flow/files.ts";
import type { Finding } from "../../src/load/rules/rule.ts";
import { readTestFile } from "../../src/load/tests.ts";
import { story } from "../../src/story/story.ts";
import { prepareFlow, runTest, type TestResult } from "../../src/testing/flow-tests.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import type { Json } from "../../src/flow/json.ts";

const FILE = ".agent/sketch/tests/a.json";

const FLOW = sketchFlow(
  {
    begin: { edges: { next: "close" }, tools: ["Read"] },
    close: {
      kind: "close",
      edges: { closing: null },
      guard: {
        on: "closing",
        checks: [{ check: "green", edition: sketchPrompt("failed") }],
        onFailure: "retry",
        maxFailures: 5,
        back: { kind: "caller" },
      },
    },
  },
  { checks: { green: sketchCheck("green", "make test") }, limits: { visits: 20, wallMs: 3_600_000 } },
);

function filesWith(tests: Json, asked: string[] = []): FileTree {
  return {
    list: () => null,
    read: (path) => {
      asked.push(path);
      return path === FILE ? { kind: "text", text: JSON.stringify({ tests }) } : { kind: "missing" };
    },
  };
}

async function ran(written: Json): Promise<TestResult> {
  const findings: Finding[] = [];
  const [one] = readTestFile(FLOW, filesWith([written]), FILE, findings);
  assert.deepEqual(
    findings.map(({ message }) => message),
    [],
  );
  return runTest(await prepareFlow(FLOW), one!);
}

const LIMITED = { step: "begin", error: { kind: "rate-limit", retryAfterMs: 300_000 } };

test("a rate limit is waited out at once, `waited` sees it, and the time limit of the run still stands", async () => {
  const script = [LIMITED, "begin next", "close closing"];
  const whole = await ran({ name: "waits", script, expect: { outcome: "completed", waited: ">= 300000" } });
  assert.deepEqual(whole.unmet, []);
  const unseen = await ran({ name: "waits", script, expect: { waited: 0 } });
  assert.deepEqual(
    unseen.unmet.map(({ key }) => key),
    ["waited"],
  );
});

test("waits that are longer than the time limit of the run end it", async () => {
  const slow = { step: "begin", error: { kind: "rate-limit", retryAfterMs: 3_000_000 } };
  const { outcomes } = await ran({ name: "late", script: [slow, slow, "begin next", "close closing"] });
  assert.equal(outcomes?.observed.outcome, "failed");
});

test("the moments that a run gives as it goes are those of the story of its entries", async () => {
  const flow = await prepareFlow(FLOW);
  const slow = { step: "begin", error: { kind: "rate-limit", retryAfterMs: 3_000_000 } };
  const scripts: readonly Json[] = [
    [LIMITED, "begin next", "close closing", "begin next", "close closing"],
    [{ step: "begin", calls: [{ name: "Write", input: {} }] }, { step: "begin", text: "no" }, "begin abort"],
    [slow, slow],
    ["begin next"],
  ];
  for (const script of scripts)
    for (const until of [{}, { until: "close" }]) {
      const { ran: run } = await ran({ name: "m", script, checks: { green: ["fail", "pass"] }, ...until });
      assert.ok(run!.moments!.length > 2);
      assert.deepEqual(run!.moments, [...story(flow, run!.entries)], JSON.stringify([script, until]));
    }
});

test("a test file reads nothing outside of the project: the path is cut off at its root", () => {
  const asked: string[] = [];
  const hostile = {
    name: "reads",
    script: "../../../../../../etc/passwd",
    tools: { Read: "file:../../../../../../../etc/shadow" },
    checks: { green: { exit: 1, stdout: "file:/etc/hosts" } },
    project: "../../../../../../",
  };
  const findings: Finding[] = [];
  const [one] = readTestFile(FLOW, filesWith([hostile], asked), FILE, findings);
  for (const path of asked) assert.doesNotMatch(path, /^\/|\.\./);
  assert.equal(one?.ground.kind, "project");
  const codes = findings.map(({ code, pointer }) => `${code} ${pointer.split("/").at(-1)!}`);
  assert.deepEqual([...new Set(codes)].toSorted(), [
    "TEST-FIXTURE Read",
    "TEST-FIXTURE green",
    "TEST-FIXTURE project",
    "TEST-FIXTURE script",
    "TEST-KEY checks",
    "TEST-KEY tools",
  ]);
});

test("without a ground for it, a test on a copy of a project is left out, and says so", async () => {
  const findings: Finding[] = [];
  const [one] = readTestFile(FLOW, filesWith([{ name: "p", project: "x" }]), FILE, findings);
  const { status, test: left } = await runTest(await prepareFlow(FLOW), one!);
  assert.deepEqual([status, left.skip], ["skipped", "it needs a copy of a project"]);
});
