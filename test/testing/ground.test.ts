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

async function ran(written: Json, flow = FLOW): Promise<TestResult> {
  const findings: Finding[] = [];
  const [one] = readTestFile(flow, filesWith([written]), FILE, findings);
  assert.deepEqual(
    findings.map(({ message }) => message),
    [],
  );
  return runTest(await prepareFlow(flow), one!);
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

test("people are asked as in a run: about questions of the model where the flow wants that, and about calls of a mode that asks", async () => {
  const question = { name: "AskUserQuestion", input: { question: "Which colour?" } };
  const write = { name: "Write", input: { file_path: "a.txt", content: "a" } };
  const rows = [
    [question, "person", ["blue"], 1, "blue"],
    [question, "person", [], 0, "AskUserQuestion done"],
    [question, "auto", ["blue"], 0, "AskUserQuestion done"],
    [write, "auto", ["allow"], 1, "Write done"],
    [write, "auto", ["deny"], 1, 'The user denied Write in step "begin". Go on without it.'],
    [write, "auto", [], 0, /nobody is there to ask/],
  ] as const;
  for (const [call, askUser, answers, asked, result] of rows) {
    const sketch = sketchFlow({ begin: { edges: { next: null } } });
    const begin = { ...sketch.steps.begin!, tools: { allow: ["*"], mode: "default" } as const };
    const questions = { ...sketch.settings.questions, askUser };
    const flow = { ...sketch, steps: { begin }, settings: { ...sketch.settings, questions } };
    const script = [{ step: "begin", calls: [call] }, "begin next"];
    const { status, unmet, ran: run } = await ran({ name: "asks", script, answers }, flow);
    const about = JSON.stringify([call.name, askUser, answers]);
    assert.equal(status, "passed", `${about}: ${JSON.stringify(unmet)}`);
    const events = run!.entries.map(({ event }) => event);
    assert.equal(events.filter(({ type }) => type === "step.asked").length, asked, about);
    const given = events.flatMap((event) => (event.type === "step.called" ? event.results : []))[0]!.content;
    if (typeof result === "string") assert.equal(given, result, about);
    else assert.match(given, result, about);
  }
});

test("a text that begins like a fixture is itself, in every table", async () => {
  const text = "file:///etc/hosts could not be opened";
  const {
    status,
    unmet,
    ran: run,
  } = await ran({
    name: "as it is",
    script: [
      { step: "begin", calls: [{ name: "Read", input: {} }] },
      "begin next",
      "close closing",
      "begin next",
      "close closing",
    ],
    tools: { Read: { content: { text } } },
    checks: { green: [{ exit: 1, stdout: { text }, stderr: { text } }, "pass"] },
  });
  assert.equal(status, "passed", JSON.stringify(unmet));
  const said = run!.entries.flatMap(({ event }) =>
    event.type === "step.called"
      ? event.results.map(({ content }) => content)
      : event.type === "step.checked" && !event.results[0]!.ok
        ? [event.results[0]!.params.stdout, event.results[0]!.params.stderr]
        : [],
  );
  assert.deepEqual(said, [text, text, text]);
});
