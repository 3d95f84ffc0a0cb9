/** Documents 001 and 002 and old agent files, run by the public door. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import {
  createMemoryJournal,
  load,
  loadAgentDefinition,
  run,
  StepFlowRunner,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { play } from "../engine/played.ts";
import { printed, tree001, tree002, type Edits } from "../load/documents.ts";
import { projectWith } from "./project.ts";

const ANALYZE = "s_a8f3";
const IMPLEMENT = "s_b2c1";
const REVIEW = "s_c9d4";

const work = (step: string, more: object = {}): ScriptReply => ({ step, text: `${step} is done`, ...more });
const checked = (step: string, result: string | boolean, message = `${step} is ${result}`): ScriptReply => ({
  step: `${step}#check`,
  output: { result, message },
});
const done = (step: string, result: string | boolean = "ok") => [work(step), checked(step, result)];

const pathOf = (result: Pick<Result, "path">) => result.path.map(({ step, label }) => `${step}:${label}`);
const pass = (...steps: readonly string[]) =>
  steps.map((step) => `${step}:${step === REVIEW ? "complete" : "next"}`);

async function run001(script: readonly ScriptReply[], registry: Edits = {}, agent: Edits = {}) {
  const cwd = projectWith(tree001(registry, agent));
  const args = { topic: "the login" };
  return await run({ agent: "code-improver", cwd, args, journal: createMemoryJournal(), script });
}

test("document 001's example runs as printed: every check ok", async () => {
  const cwd = projectWith(tree001());
  const definition = await loadAgentDefinition("code-improver", { cwd });
  const result = await new StepFlowRunner(definition).run({
    args: { topic: "Refactoring authentication module" },
    cwd,
    journal: createMemoryJournal(),
    script: [
      work(ANALYZE, {
        saw: [
          "You improve code.",
          "Analyze: Refactoring authentication module, Refactoring authentication module, Refactoring authentication module; keep {other} and { this }.",
        ],
      }),
      { ...checked(ANALYZE, "ok", "complete"), saw: ["Is the analysis complete?", `${ANALYZE} is done`] },
      work(IMPLEMENT),
      { ...checked(IMPLEMENT, "pass", "tests pass"), saw: ["All tests are passing"] },
      work(REVIEW),
      checked(REVIEW, true, "fine"),
    ],
  });
  assert.deepEqual([result.success, result.exitCode, result.finalStepId], [true, 0, REVIEW], result.reason);
  assert.match(result.completionReason, /s_c9d4.*fine/);
  assert.equal(result.flow?.dialect, "check");
  // Check prompts are no entries of the path and do not count.
  assert.deepEqual([result.iterations, result.usage.turns], [3, 6]);
  assert.deepEqual(result.state.history, [
    { stepId: ANALYZE, iteration: 1, transition: "next", checkResult: { ok: true, message: "complete" } },
    { stepId: IMPLEMENT, iteration: 2, transition: "next", checkResult: { ok: true, message: "tests pass" } },
    { stepId: REVIEW, iteration: 3, transition: "complete", checkResult: { ok: true, message: "fine" } },
  ]);
  assert.deepEqual(result.state.totalIterations, 3);
});

test("ng is retried twice, then the run fails", async () => {
  const script = [...done(ANALYZE, "ng"), ...done(ANALYZE, "ng"), ...done(ANALYZE, "ng")];
  const result = await run001(script);
  assert.deepEqual(pathOf(result), [`${ANALYZE}:retry`, `${ANALYZE}:retry`, `${ANALYZE}:fail`]);
  assert.deepEqual(
    [result.outcome, result.code, result.exitCode, result.finalStepId, result.iterations],
    ["failed", "RETRIES_EXHAUSTED", 1, ANALYZE, 3],
  );
  assert.match(result.reason, /2 retries are used up/);
});

test("two retries and then ok goes on; entering anew counts anew", async () => {
  const result = await run001([
    ...done(ANALYZE, "ng"),
    ...done(ANALYZE, "ng"),
    ...done(ANALYZE),
    ...done(IMPLEMENT, "ng"),
    ...done(ANALYZE, "ng"),
    ...done(ANALYZE, "ng"),
    ...done(ANALYZE),
    ...done(IMPLEMENT),
    ...done(REVIEW),
  ]);
  assert.equal(result.outcome, "completed", result.reason);
  const analyzed = [`${ANALYZE}:retry`, `${ANALYZE}:retry`, `${ANALYZE}:next`];
  assert.deepEqual(pathOf(result), [
    ...analyzed,
    `${IMPLEMENT}:fallback`,
    ...analyzed,
    ...pass(IMPLEMENT, REVIEW),
  ]);
});

test("implement ng falls back to analyze, review ng to implement", async () => {
  const result = await run001([
    ...done(ANALYZE),
    ...done(IMPLEMENT, "ng"),
    ...done(ANALYZE),
    ...done(IMPLEMENT),
    ...done(REVIEW, false),
    ...done(IMPLEMENT),
    ...done(REVIEW),
  ]);
  assert.deepEqual(pathOf(result), [
    ...pass(ANALYZE),
    `${IMPLEMENT}:fallback`,
    ...pass(ANALYZE, IMPLEMENT),
    `${REVIEW}:fallback`,
    ...pass(IMPLEMENT, REVIEW),
  ]);
  assert.equal(result.outcome, "completed", result.reason);
});

for (const [what, reply] of [
  ["prose", { text: "It looks fine to me." }],
  ["broken JSON", { text: '```json\n{ "result": "ok", ' }],
  ["no result", { output: { message: "hm" } }],
  ["a word that is none", { output: { result: "maybe", message: "hm" } }],
  ["a number", { output: { result: 1 } }],
] as const) {
  test(`a check answered with ${what} counts as ng, without asking again`, async () => {
    const unread: ScriptReply = { step: `${ANALYZE}#check`, ...reply };
    const result = await run001([
      work(ANALYZE),
      unread,
      ...done(ANALYZE),
      ...done(IMPLEMENT),
      ...done(REVIEW),
    ]);
    assert.equal(result.outcome, "completed", result.reason);
    assert.deepEqual(pathOf(result), [`${ANALYZE}:retry`, ...pass(ANALYZE, IMPLEMENT, REVIEW)]);
    assert.equal(result.path[0]?.check?.label, "fail");
  });
}

for (const [result, label] of [
  ["ok", "next"],
  ["OK", "next"],
  ["pass", "next"],
  ["true", "next"],
  [true, "next"],
  ["ng", "retry"],
  ["fail", "retry"],
  ["false", "retry"],
  [false, "retry"],
] as const) {
  test(`the result ${JSON.stringify(result)} means ${label}`, async () => {
    const rest = label === "next" ? [] : done(ANALYZE);
    const script = [...done(ANALYZE, result), ...rest, ...done(IMPLEMENT), ...done(REVIEW)];
    assert.equal((await run001(script)).path[0]?.label, label);
  });
}

test("a check in prose with a fenced block is read", async () => {
  const text =
    'I ran everything.\n\n```json\n{ "result": "ok", "message": "All tests pass, no errors" }\n```\n';
  const result = await run001([
    work(ANALYZE),
    { step: `${ANALYZE}#check`, text },
    ...done(IMPLEMENT),
    ...done(REVIEW),
  ]);
  assert.equal(result.path[0]?.check?.message, "All tests pass, no errors", result.reason);
});

test("unlimited retries end at 100 iterations", async () => {
  const edits = { "/steps/s_a8f3/check/onFail": { retry: true, maxRetries: 0 } };
  const script = Array.from({ length: 100 }, () => done(ANALYZE, "ng")).flat();
  const result = await run001(script, edits);
  assert.deepEqual([result.outcome, result.code, result.iterations], ["failed", "AGENT_MAX_ITERATIONS", 100]);
  assert.equal(result.path.length, 100);
});

test("iterations.min does a step that often before its check", async () => {
  const edits = { "/steps/s_a8f3/iterations": { min: 3, max: 3 } };
  const rest = [...done(IMPLEMENT), ...done(REVIEW)];
  const result = await run001([work(ANALYZE), work(ANALYZE), ...done(ANALYZE), ...rest], edits);
  assert.deepEqual(pathOf(result), [
    `${ANALYZE}:retry`,
    `${ANALYZE}:retry`,
    ...pass(ANALYZE, IMPLEMENT, REVIEW),
  ]);
  // A retry after that is checked at once.
  const again = [work(ANALYZE), work(ANALYZE), ...done(ANALYZE, "ng"), ...done(ANALYZE), ...rest];
  assert.equal((await run001(again, edits)).outcome, "completed");
});

test("without onFail a step is done again up to iterations.max, then the run fails", async () => {
  const edits = {
    "/steps/s_b2c1/check/onFail": undefined,
    "/steps/s_b2c1/iterations": { min: 1, max: 2 },
  };
  const twice = [...done(ANALYZE), ...done(IMPLEMENT, "ng"), ...done(IMPLEMENT, "ng")];
  const failed = await run001(twice, edits);
  assert.deepEqual(
    [failed.code, failed.exitCode, failed.finalStepId],
    ["ITERATIONS_EXHAUSTED", 1, IMPLEMENT],
    failed.reason,
  );
  const once = [...done(ANALYZE), ...done(IMPLEMENT, "ng"), ...done(IMPLEMENT), ...done(REVIEW)];
  assert.equal((await run001(once, edits)).outcome, "completed");
});

test("complete comes before next, next before fallback, fallback before retry", async () => {
  const edits = {
    "/steps/s_a8f3/check/onPass": { retry: true, fallback: IMPLEMENT, next: REVIEW },
    "/steps/s_c9d4/check/onPass": { next: ANALYZE, complete: true },
  };
  const result = await run001([...done(ANALYZE), ...done(REVIEW)], edits);
  assert.deepEqual(pathOf(result), pass(ANALYZE, REVIEW));
});

test("arguments that are not declared are taken; once parameters are declared they are not", async () => {
  const script = [...done(ANALYZE), ...done(IMPLEMENT), ...done(REVIEW)];
  const parameters = { depth: { type: "number", description: "How deep", cli: "--depth" } };
  assert.equal((await run001(script)).outcome, "completed");
  assert.equal((await run001(script, {}, { "/parameters": parameters })).code, "PARAMETERS_INVALID");
});

test("a missing system prompt is made from the agent's name and description", async () => {
  const { [".agent/code-improver/prompts/system.md"]: _system, ...files } = tree001();
  const script = [
    work(ANALYZE, { saw: ["You are Code Improver. Agent that analyzes and improves code"] }),
    checked(ANALYZE, "ok"),
    ...done(IMPLEMENT),
    ...done(REVIEW),
  ];
  const result = await run({
    agent: "code-improver",
    cwd: projectWith(files),
    journal: createMemoryJournal(),
    script,
  });
  assert.equal(result.outcome, "completed", result.reason);
});

test("prompts by path, with an edition, with an adaptation, with a fallback", async () => {
  const edits = {
    "/steps/s_a8f3/prompt": { path: "analyze.md" },
    "/steps/s_b2c1/prompt": { c1: "steps", c2: "phase", c3: "implement", edition: "short", adaptation: "x" },
    "/steps/s_c9d4/prompt": { path: "nowhere.md", fallback: "analyze.md" },
  };
  const folder = ".agent/code-improver/prompts";
  const cwd = projectWith({
    ...tree001(edits),
    [`${folder}/analyze.md`]: "---\nname: x\n---\nBy path.",
    [`${folder}/steps/phase/implement/f_short_x.md`]: "By adaptation.",
  });
  const script = [
    work(ANALYZE, { saw: ["By path."], unseen: ["name: x"] }),
    checked(ANALYZE, "ok"),
    work(IMPLEMENT, { saw: ["By adaptation."] }),
    checked(IMPLEMENT, "ok"),
    ...done(REVIEW),
  ];
  const result = await run({ agent: "code-improver", cwd, journal: createMemoryJournal(), script });
  assert.equal(result.outcome, "completed", result.reason);
});

test("every cut of document 001's run resumes to the same end", async () => {
  const { flow } = await load("code-improver", { cwd: projectWith(tree001()) });
  const scenario = {
    flow: flow as Flow,
    args: { topic: "x" },
    model: [
      ...done(ANALYZE, "ng"),
      work(ANALYZE),
      { step: `${ANALYZE}#check`, text: "no JSON" },
      ...done(ANALYZE),
      ...done(IMPLEMENT, "ng"),
      ...done(ANALYZE, "ng"),
      ...done(ANALYZE),
      ...done(IMPLEMENT),
      ...done(REVIEW, "ng"),
      ...done(IMPLEMENT),
      ...done(REVIEW),
    ],
  };
  const whole = await play(scenario);
  assert.equal(whole.state.verdict?.outcome, "completed");
  const told = (played: typeof whole) => ({
    verdict: played.state.verdict,
    visits: played.state.visits,
    iterations: played.state.iterations,
    path: played.entries.flatMap(({ led }) => (led === undefined ? [] : [led])),
  });
  for (let cut = 1; cut < whole.entries.length; cut++) {
    const past = whole.entries.slice(0, cut);
    const resumed = await play({ ...scenario, past });
    assert.deepEqual(told(resumed), told(whole), `cut after ${cut}`);
    const answered = past.filter(({ event }) => event.type === "step.answered").length;
    assert.deepEqual(resumed.asked, whole.asked.slice(answered), `asked again after cut ${cut}`);
  }
});

// Document 002.

const say = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action }, ...more },
});

async function run002(script: readonly ScriptReply[], registry: Edits = {}) {
  const cwd = projectWith(tree002(registry));
  return await run({ agent: "issues", cwd, journal: createMemoryJournal(), script });
}

test("document 002's example runs once complete.issue is there; the model says its own words", async () => {
  const analysis = { analysis: { understanding: "a bug", approach: "mend it" }, issue: 7 };
  const result = await run002([
    say("initial.issue", "retry"),
    say("initial.issue", "continue", analysis),
    say("continuation.issue", "continue"),
    say("continuation.issue", "complete"),
    say("complete.issue", "repeat"),
    say("complete.issue", "complete"),
  ]);
  assert.deepEqual(pathOf(result), [
    "initial.issue:repeat",
    "initial.issue:next",
    "continuation.issue:next",
    "continuation.issue:complete",
    "complete.issue:repeat",
    "complete.issue:complete",
  ]);
  assert.deepEqual(
    [result.outcome, result.exitCode, result.finalStepId, result.flow?.dialect],
    ["completed", 0, "complete.issue", "complete"],
    result.reason,
  );
  assert.deepEqual(result.handoff["initial.issue"], {
    understanding: "a bug",
    approach: "mend it",
    issue: 7,
  });
});

test("complete from the first step leads straight to complete.issue", async () => {
  const result = await run002([say("initial.issue", "complete"), say("complete.issue", "complete")]);
  assert.deepEqual(pathOf(result), ["initial.issue:complete", "complete.issue:complete"], result.reason);
});

test("done and finished mean complete", async () => {
  const edits = { "/steps/complete.issue/outputSchemaRef/schema": "#/definitions/free" };
  const schema = {
    type: "object",
    properties: { stepId: { const: "complete.issue" } },
    additionalProperties: true,
  };
  const files = tree002(edits);
  const file = ".agent/issues/schemas/issue.schema.json";
  const { definitions } = JSON.parse(files[file]!) as { definitions: object };
  const cwd = projectWith({
    ...files,
    [file]: JSON.stringify({ definitions: { ...definitions, free: schema } }),
  });
  for (const word of ["done", "finished", "complete", "Complete"]) {
    const script = [say("initial.issue", "complete"), say("complete.issue", word)];
    const result = await run({ agent: "issues", cwd, journal: createMemoryJournal(), script });
    assert.equal(result.outcome, "completed", `${word}: ${result.reason}`);
  }
});

test("any transition of a complete.* step to null ends the run", async () => {
  const edits = {
    "/steps/complete.issue/structuredGate/allowedIntents": ["next", "repeat"],
    "/steps/complete.issue/transitions": { next: { target: null }, repeat: { target: "continuation.issue" } },
  };
  const files = tree002(edits);
  const file = ".agent/issues/schemas/issue.schema.json";
  const cwd = projectWith({
    ...files,
    [file]: files[file]!.replace('"enum":["complete","repeat"]', '"enum":["continue","repeat"]'),
  });
  const script = [
    say("initial.issue", "complete"),
    say("complete.issue", "repeat"),
    say("continuation.issue", "complete"),
    say("complete.issue", "continue"),
  ];
  const result = await run({ agent: "issues", cwd, journal: createMemoryJournal(), script });
  assert.equal(result.outcome, "completed", result.reason);
  assert.deepEqual(pathOf(result), [
    "initial.issue:complete",
    "complete.issue:repeat",
    "continuation.issue:complete",
    "complete.issue:complete",
  ]);
});

test("fallbackIntent is taken for a word that is no intent", async () => {
  const files = tree002();
  const file = ".agent/issues/schemas/issue.schema.json";
  const cwd = projectWith({
    ...files,
    [file]: files[file]!.replaceAll(
      '{"enum":["continue","retry","complete","escalate"]}',
      '{"type":"string"}',
    ),
  });
  const script = [
    say("initial.issue", "hurry"),
    say("continuation.issue", "complete"),
    say("complete.issue", "complete"),
  ];
  const result = await run({ agent: "issues", cwd, journal: createMemoryJournal(), script });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(result.path[0]?.label, "next");
  assert.match(result.path[0]?.notes?.join() ?? "", /SpecViolation.*"hurry"/);
});

test("without fallbackIntent a word that is no intent ends the run", async () => {
  const files = tree002({ "/steps/initial.issue/structuredGate/fallbackIntent": undefined });
  const file = ".agent/issues/schemas/issue.schema.json";
  const cwd = projectWith({
    ...files,
    [file]: files[file]!.replaceAll(
      '{"enum":["continue","retry","complete","escalate"]}',
      '{"type":"string"}',
    ),
  });
  const script = [say("initial.issue", "hurry")];
  const result = await run({ agent: "issues", cwd, journal: createMemoryJournal(), script });
  assert.deepEqual([result.outcome, result.code], ["failed", "GATE_INTERPRETATION_ERROR"]);
});

test("escalate aborts", async () => {
  const result = await run002([
    say("initial.issue", "escalate", { next_action: { action: "escalate", reason: "nobody knows" } }),
  ]);
  assert.deepEqual([result.outcome, result.code, result.exitCode], ["failed", "AGENT_ABORTED", 1]);
  assert.deepEqual(pathOf(result), ["initial.issue:abort"]);
  assert.match(result.reason, /nobody knows/);
});

test("an answer in another step's name fails the schema and is sent back once", async () => {
  const wrong: ScriptReply = {
    step: "continuation.issue",
    output: { stepId: "initial.issue", next_action: { action: "continue" } },
  };
  const result = await run002([
    say("initial.issue", "continue"),
    wrong,
    { ...say("continuation.issue", "complete"), saw: ["/stepId must be equal to constant"] },
    say("complete.issue", "complete"),
  ]);
  assert.equal(result.outcome, "completed", result.reason);
});

test("R4: no usable answer after the first iteration ends the run with document 002's words", async () => {
  const wrong: ScriptReply = {
    step: "continuation.issue",
    output: { stepId: "initial.issue", next_action: { action: "continue" } },
  };
  for (const answers of [
    [wrong, wrong],
    [{ step: "continuation.issue", text: "prose" }, wrong],
  ]) {
    const result = await run002([
      say("initial.issue", "continue"),
      say("continuation.issue", "continue"),
      ...answers,
    ]);
    assert.deepEqual([result.outcome, result.code, result.exitCode], ["failed", "FAILED_STEP_ROUTING", 1]);
    assert.equal(result.reason, printed("002-no-intent.txt").trim());
  }
});

test("a miss on the first iteration repeats the entry step once", async () => {
  const prose: ScriptReply = { step: "initial.issue", text: "prose" };
  const result = await run002([
    prose,
    prose,
    say("initial.issue", "complete"),
    say("complete.issue", "complete"),
  ]);
  assert.deepEqual(pathOf(result), [
    "initial.issue:null",
    "initial.issue:complete",
    "complete.issue:complete",
  ]);
});

test("a flow whose steps have no gates is refused with document 002's words", async () => {
  const result = await run002([], {
    "/steps/initial.issue/structuredGate": undefined,
    "/steps/initial.issue/transitions": undefined,
    "/steps/continuation.issue/structuredGate": undefined,
  });
  assert.equal(result.exitCode, 2);
  const messages = result.problems.map(({ message }) => message);
  assert.ok(messages.includes(printed("002-validation-failed.txt").trim()), messages.join("\n\n"));
});
