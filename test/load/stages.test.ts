/** What loading a machine of stages finds and makes of it; the long tables are in `stage-rows/`. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Step } from "../../src/flow/flow.ts";
import { CODES } from "../../src/load/codes.ts";
import { printed } from "./documents.ts";
import { FOLDER, loadStages, stageTree, findingLine, type StageChanges } from "./stage-world.ts";
import { AROUND, CHECK, forked, inputs, plan } from "./stage-rows/row.ts";
import { FIELD_ROWS } from "./stage-rows/fields.ts";
import { PLACEHOLDERS } from "./stage-rows/placeholders.ts";
import { WAYS } from "./stage-rows/ways.ts";
import { MACHINES } from "./stage-rows/machines.ts";

const problemsOf = (changes: StageChanges) => loadStages(stageTree(changes)).problems;
const stepOf = (changes: StageChanges, id = "plan"): Step => loadStages(stageTree(changes)).flow!.steps[id]!;

test("document 004: its example file loads as it is printed, alone in its folder", () => {
  const file = `${FOLDER}/stages/plan.md`;
  const { flow, problems } = loadStages({ [file]: printed("004-plan.md") });
  assert.deepEqual(problems, []);
  assert.equal(flow!.dialect, "stage");
  assert.equal(flow!.entry, "plan");
  assert.equal(flow!.openArguments, true);
  assert.deepEqual(flow!.limits, { visits: 100 });
  const { prompt, ...step } = flow!.steps.plan!;
  assert.equal(prompt.file, file);
  assert.equal(prompt.syntax, "stage");
  assert.match(prompt.text, /^You are planning[\s\S]*Task: \{\{ctx\.task\}\}[\s\S]*concrete actions\.$/);
  assert.deepEqual(step, {
    id: "plan",
    name: "Plan",
    kind: "work",
    by: { kind: "model" },
    transcript: "fresh",
    model: "opus",
    tools: { allow: ["Read", "Grep", "Glob"], mode: "acceptEdits" },
    answer: {
      kind: "object",
      schema: {
        kind: "schema",
        name: `${file}#/completionSchema`,
        schema: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          type: "object",
          required: ["summary", "steps"],
          properties: { summary: { type: "string" }, steps: { type: "array", items: { type: "string" } } },
        },
      },
      channel: { kind: "tool", name: "submit_plan" },
      repairs: 0,
      miss: { kind: "label", label: "cap" },
    },
    decide: { by: "const", label: "ok" },
    carry: [],
    needs: [],
    edges: {
      ok: { kind: "end", outcome: "completed" },
      skip: { kind: "end", outcome: "completed" },
      fail: { kind: "end", outcome: "failed", code: "AGENT_VALIDATION_ABORT" },
      cap: { kind: "end", outcome: "failed", code: "AGENT_TURN_LIMIT" },
    },
    turns: 20,
    stage: { attempts: 2, backoff: "none", unresolved: "retry-later", output: [] },
  });
});

test("the good machine has no findings", () => {
  assert.deepEqual(loadStages(stageTree()).problems, []);
});

const FIELDS = [
  "id",
  "name",
  "allowedTools",
  "completionTool",
  "completionSchema",
  "retryPolicy",
  "turnCap",
  "resolutionPolicy",
];

for (const field of FIELDS.slice(1)) {
  test(`${field} is required`, () => {
    const found = problemsOf({ plan: { [field]: undefined } }).map(findingLine);
    assert.ok(found.includes(plan(`/${field}`, "StageFieldMissing")), found.join("\n"));
    assert.deepEqual(
      found.filter((one) => one.includes("stages/plan.md")),
      [plan(`/${field}`, "StageFieldMissing")],
    );
  });
}

test("a stage without any field is told all eight, in the order of the fields", () => {
  const { problems, flow } = loadStages({ [`${FOLDER}/stages/plan.md`]: "---\n---\n" });
  assert.equal(flow, null);
  assert.deepEqual(
    problems.map(findingLine),
    FIELDS.map((field) => plan(`/${field}`, "StageFieldMissing")),
  );
});

for (const [name, changes, findings] of FIELD_ROWS) {
  test(`field ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(findingLine), findings);
  });
}

// The container.
const front = (
  more = "",
) => `id: plan\nname: Plan\nallowedTools: []\ncompletionTool: done\ncompletionSchema: { type: object }
retryPolicy: { maxAttempts: 1, backoff: none }\nturnCap: 1\nresolutionPolicy: fail\n${more}`;
const CONTAINERS: readonly (readonly [
  name: string,
  text: string,
  findings: readonly string[],
  body?: string,
])[] = [
  ["plain", `---\n${front()}---\nDo it.\n`, [], "Do it."],
  ["with a byte order mark", `\uFEFF---\n${front()}---\nDo it.\n`, [], "Do it."],
  ["with CRLF", `---\n${front()}---\n\nDo it.\nNow.\n`.replaceAll("\n", "\r\n"), [], "Do it.\r\nNow."],
  ["without a body", `---\n${front()}---`, [], ""],
  [
    "with blank lines around the body",
    `---\n${front()}---\n\n \n  Do\n\n---\nit. \n\n\t\n`,
    [],
    "  Do\n\n---\nit. ",
  ],
  ["without front matter", "# Plan\n", [plan("", "StageDefinitionInvalid")]],
  ["with front matter that is not closed", `---\n${front()}`, [plan("", "StageDefinitionInvalid")]],
  ["with a list for front matter", "---\n- id\n---\n", [plan("", "StageDefinitionInvalid")]],
  ["with a key twice", `---\n${front("turnCap: 2\n")}---\n`, [plan("", "StageDefinitionInvalid")]],
  ["with a tag", `---\n${front("tags: !env HOME\n")}---\n`, [plan("", "StageDefinitionInvalid")]],
  ["with binary data", `---\n${front("x: !!binary aGk=\n")}---\n`, [plan("", "StageDefinitionInvalid")]],
  ["with a circle of aliases", `---\n${front("x: &a [*a]\n")}---\n`, [plan("", "StageDefinitionInvalid")]],
  ["with an alias", `---\n${front("x: &a [y]\ntags: *a\n")}---\n`, [], ""],
  [
    "with aliases that stand for too much",
    `---\n${front(laughs())}---\n`,
    [plan("", "StageDefinitionInvalid")],
  ],
  [
    "nested very deeply",
    `---\n${front(`x: ${"[".repeat(200)}${"]".repeat(200)}`)}\n---\n`,
    [plan("", "StageDefinitionInvalid")],
  ],
  [
    "with two mistakes",
    `---\n${front("tags: !env HOME\nturnCap: 2\n")}---\n`,
    [plan("", "StageDefinitionInvalid"), plan("", "StageDefinitionInvalid")],
  ],
];

function laughs(): string {
  const rows = Array.from(
    { length: 9 },
    (_, at) => `l${at + 1}: &l${at + 1} [${Array(9).fill(`*l${at}`).join(", ")}]\n`,
  );
  return `l0: &l0 [x, x, x]\n${rows.join("")}`;
}

for (const [name, text, findings, body] of CONTAINERS) {
  test(`a file ${name}`, () => {
    const { flow, problems } = loadStages({ [`${FOLDER}/stages/plan.md`]: text });
    assert.deepEqual(problems.map(findingLine), findings);
    if (body !== undefined) assert.equal(flow!.steps.plan!.prompt.text, body);
  });
}

test("findings stand where things are written, in the front matter and in the body", () => {
  const text = `---\r\n${front("retryPolicies: 1\r\n").replace("turnCap: 1", "turnCap: 0")}---\r\n\r\nA {{ctx.a}}\r\nand {{ env.HOME }} {{stage.tags}}\r\n`;
  const { problems } = loadStages({ [`${FOLDER}/stages/plan.md`]: `\uFEFF${text}` });
  const lines = text.split("\n");
  for (const { line, column, pointer } of problems) {
    const word = pointer.startsWith("/body#")
      ? pointer.includes("env")
        ? "{{ env"
        : "{{stage"
      : pointer.slice(1);
    assert.ok(lines[line - 1]!.slice(column - 1).startsWith(word), `${pointer} at ${line}:${column}`);
  }
  assert.deepEqual(problems.map(findingLine), [
    plan("/turnCap", "StageTurnCapTooLow"),
    plan("/body#{{ env.HOME }}", "STAGE-PLACEHOLDER", "warning"),
    plan("/body#stage.tags", "StageCtxUnresolved"),
  ]);
});

test("a YAML mistake stands at its line", () => {
  const [problem] = loadStages({
    [`${FOLDER}/stages/plan.md`]: `---\n${front("turnCap: 2\n")}---\n`,
  }).problems;
  assert.deepEqual([problem!.line, problem!.column], [10, 1]);
  assert.match(problem!.message, /the key "\w+" occurs twice/);
});

test("a finding in a stage's file is about that stage", () => {
  const found = problemsOf({
    plan: { turnCap: 0, body: "{{stage.x}}", next: "nowhere" },
    machine: { id: "x", entry: "plan" },
  });
  assert.deepEqual(
    found.map(({ step }) => step),
    [null, "build", "plan", "plan", "plan", "review"],
  );
});

test("all problems of all files come at once, by file and then by field", () => {
  const found = problemsOf({
    review: { turnCap: 0, name: 1 },
    plan: { resolutionPolicy: "x", name: 2 },
    machine: { entry: "plan", joinRule: "x", id: "other" },
    broken: "no front matter",
  }).map(findingLine);
  assert.deepEqual(found, [
    "warning AC-NAME machine.yaml /id",
    "error StageDefinitionInvalid machine.yaml /joinRule",
    "error StageDefinitionInvalid stages/broken.md",
    plan("/name", "StageFieldType"),
    plan("/resolutionPolicy", "StageResolutionPolicyInvalid"),
    "error StageFieldType stages/review.md /name",
    "error StageTurnCapTooLow stages/review.md /turnCap",
  ]);
});

for (const [name, changes, findings] of PLACEHOLDERS) {
  test(`placeholder ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(findingLine), findings);
  });
}

// Ways.
const NEXT: readonly (readonly [name: string, next: unknown, move: unknown, machine?: object])[] = [
  ["absent", undefined, { kind: "end", outcome: "completed" }],
  ["end", "end", { kind: "end", outcome: "completed" }],
  ["a stage", "c", { kind: "goto", step: "c" }],
  ["parallel", { parallel: ["a", "b"] }, { kind: "fork", steps: ["a", "b"], join: null }],
  [
    "parallel with a join",
    { parallel: ["b", "a"], join: "c" },
    { kind: "fork", steps: ["b", "a"], join: "c" },
  ],
  [
    "parallel and fail-fast",
    { parallel: ["a", "b"], join: "c", policy: "fail-fast" },
    { kind: "fork", steps: ["a", "b"], join: "c" },
  ],
  [
    "parallel and independent",
    { parallel: ["a", "b"], join: "c", policy: "independent" },
    { kind: "fork", steps: ["a", "b"], join: "c", policy: "independent" },
  ],
  [
    "switch",
    { switch: "parsed.summary", cases: { x: "a", y: "end", default: "b" } },
    {
      kind: "switch",
      on: ["parsed", "summary"],
      cases: { x: { kind: "goto", step: "a" }, y: { kind: "end", outcome: "completed" } },
      otherwise: { kind: "goto", step: "b" },
    },
  ],
  ["NextResult, sequential", { execution: "sequential", nextStages: ["c"] }, { kind: "goto", step: "c" }],
  [
    "NextResult, terminal",
    { execution: "sequential", nextStages: [] },
    { kind: "end", outcome: "completed" },
  ],
  [
    "NextResult, parallel without a join",
    { execution: "parallel", nextStages: ["a", "b"] },
    { kind: "fork", steps: ["a", "b"], join: null },
  ],
  [
    "NextResult, parallel with the join listed",
    { execution: "parallel", nextStages: ["a", "c", "b"], join: "c" },
    { kind: "fork", steps: ["a", "b"], join: "c" },
  ],
  [
    "NextResult, parallel with the join declared",
    { execution: "parallel", nextStages: ["a", "b"], join: "c" },
    { kind: "fork", steps: ["a", "b"], join: "c" },
    { joinRule: "declared" },
  ],
];

for (const [name, next, move, machine] of NEXT) {
  test(`next: ${name}`, () => {
    const { flow, problems } = loadStages(
      stageTree({ ...AROUND, plan: { next }, machine: { entry: "plan", ...machine } }),
    );
    assert.deepEqual(problems.map(findingLine), []);
    const { ok, skip } = flow!.steps.plan!.edges;
    assert.deepEqual([ok, skip], [move, move]);
  });
}

for (const [name, changes, findings] of WAYS) {
  test(`way: ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(findingLine), findings);
  });
}

test("what is wrong with a way shows the way there", () => {
  const [cycle] = problemsOf({ review: { next: "review" } });
  assert.deepEqual(cycle!.witness, ["plan", "build", "review", "review"]);
  const [around] = problemsOf({ ...forked, review: { next: "plan" } });
  assert.deepEqual(around!.witness, ["plan", "review", "plan"]);
});

for (const [name, changes, findings] of MACHINES) {
  test(`machine: ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(findingLine), findings);
  });
}

test("no stage at all", () => {
  const { flow, problems } = loadStages({ [`${FOLDER}/stages/notes.txt`]: "x" });
  assert.equal(flow, null);
  assert.deepEqual(problems.map(findingLine), ["error StageDefinitionInvalid stages"]);
});

test("everything that can be written is in the flow", () => {
  const { flow, problems } = loadStages(
    stageTree({
      machine: {
        entry: "plan",
        id: "release",
        inputs,
        checks: { tests: CHECK, ready: { ...CHECK, failurePattern: "early" } },
        limits: { visits: 7 },
      },
      build: {
        assert: ["tests"],
        gate: "ready",
        onFail: "mend",
        output: { ok: "parsed.green" },
        inputsSchema: { type: "object" },
        retryPolicy: { maxAttempts: 3, backoff: "linear" },
      },
      mend: { id: "mend" },
      "hooks.mjs": "export default {}",
      "agent.json":
        '{"displayName":"Release","description":"Releases.","runner":{"flow":{"defaultModel":"haiku"},"boundaries":{"permissionMode":"plan"}}}',
    }),
  );
  assert.deepEqual(problems.map(findingLine), []);
  assert.deepEqual(
    [flow!.title, flow!.description, flow!.limits, flow!.openArguments],
    ["Release", "Releases.", { visits: 7 }, undefined],
  );
  assert.deepEqual(flow!.hooks, { file: `${FOLDER}/hooks.mjs`, digest: "digest of export default {}" });
  assert.deepEqual(
    flow!.parameters.map(({ name, type, flag, required }) => [name, type, flag, required]),
    [
      ["task", "string", "--task", true],
      ["label", "object", "--label", true],
      ["branch", "string", "--branch", false],
      ["note", "string", "--note", false],
      ["issue", "object", "--issue", false],
    ],
  );
  const { checks } = flow!;
  assert.deepEqual([checks.tests!.pattern, checks.ready!.pattern], ["tests", "early"]);
  const step = flow!.steps.build!;
  assert.deepEqual(step.guard, {
    on: "ok",
    checks: [{ check: "tests", edition: { file: null, text: "", tried: [], variables: [] } }],
    onFailure: "retry",
    maxFailures: 3,
    back: { kind: "again" },
  });
  assert.deepEqual(step.stage, {
    attempts: 3,
    backoff: "linear",
    gate: "ready",
    unresolved: "retry-later",
    inputs: {
      kind: "schema",
      name: `${FOLDER}/stages/build.md#/inputsSchema`,
      schema: { $schema: "https://json-schema.org/draft/2020-12/schema", type: "object" },
    },
    output: [{ key: "ok", path: ["parsed", "green"] }],
  });
  assert.deepEqual(
    [step.edges.fail, step.edges.cap],
    [
      { kind: "goto", step: "mend" },
      { kind: "goto", step: "mend" },
    ],
  );
  assert.deepEqual([step.model, step.tools.mode], ["haiku", "plan"]);
});

test("where the agent limits commands, so does every stage", () => {
  const step = stepOf(
    { "agent.json": '{"runner":{"boundaries":{"allowedTools":["Read","Grep","Write","Bash(git *)"]}}}' },
    "build",
  );
  assert.deepEqual(step.tools.allow, ["Read", "Write", "Bash(git *)"]);
});

const COVERED: readonly (readonly [ofAgent: readonly string[], ofPlan: readonly string[]])[] = [
  [
    ["Read", "Gr*p"],
    ["Read", "Grep"],
  ],
  [["Read", "Gr*x"], ["Read"]],
  [["Read", "x*ep"], ["Read"]],
  [["Read", "G*e*p"], ["Read"]],
  [
    ["R*", "*p"],
    ["Read", "Grep"],
  ],
];
for (const [ofAgent, ofPlan] of COVERED) {
  test(`of the agent's ${ofAgent.join(" and ")} a stage keeps ${ofPlan.join(" and ")}`, () => {
    const agent = { runner: { boundaries: { allowedTools: ofAgent } } };
    assert.deepEqual(stepOf({ "agent.json": JSON.stringify(agent) }).tools.allow, ofPlan);
  });
}

test("the reason of a stage's finding begins with its class", () => {
  for (const [code, { why }] of Object.entries(CODES)) {
    if (!/^(?:Stage|CompletionTool)[A-Z]/.test(code) && code !== "InvalidParallelPlan") continue;
    assert.match(why, code === "InvalidParallelPlan" ? /^ExtensionHost: / : /^Validation: /);
  }
});

test("every code of stages has a row here", () => {
  const rows = [...FIELD_ROWS, ...PLACEHOLDERS, ...WAYS, ...MACHINES].flatMap(([, , findings]) => findings);
  const covered = new Set([...rows.map((row) => row.split(" ")[1]), "StageFieldMissing"]);
  const stage = Object.keys(CODES).filter((code) =>
    /^(?:Stage[A-Z]|STAGE-|CompletionTool|InvalidParallel)/.test(code),
  );
  assert.deepEqual(
    stage.filter((code) => !covered.has(code)),
    [],
  );
});

test("docs/stages.md shows files that load", () => {
  const page = readFileSync(new URL("../../docs/stages.md", import.meta.url), "utf8");
  const [stage, machine] = ["markdown", "yaml"].map(
    (language) => new RegExp("```" + language + "\\n([\\s\\S]*?)```").exec(page)![1]!,
  );
  const { problems } = loadStages(
    stageTree({ plan: stage!, "machine.yaml": machine!, build: { assert: ["tests"], next: "review" } }),
  );
  assert.deepEqual(problems.map(findingLine), []);
});

/** A fault of the YAML is one finding, whatever a parser makes of the lines after it. */
const BROKEN: readonly (readonly [name: string, yaml: string, found: readonly string[]])[] = [
  ["a tab before a key", "entry: plan\nlimits:\n\tvisits: 3\n", ["3:1 a tab is used for indentation"]],
  ["a tab before an element", "entry: plan\na:\n  - x\n\t- y\n", ["4:1 a tab is used for indentation"]],
  ["a key that is indented too far", "entry: plan\n limits: {}\n", ["1:8 Nested mappings"]],
  [
    "keys that stand twice are independent",
    "entry: plan\nentry: plan\nlimits: { visits: 3, visits: 4 }\n",
    ['2:1 the key "entry"', '3:22 the key "visits"'],
  ],
];

for (const [name, yaml, found] of BROKEN) {
  test(`YAML: ${name}`, () => {
    const problems = problemsOf({ "machine.yaml": yaml });
    assert.deepEqual(
      problems.map(({ file, line, column }) => `${file} ${line}:${column}`),
      found.map((one) => `${FOLDER}/machine.yaml ${one.split(" ")[0]}`),
    );
    for (const [index, one] of found.entries())
      assert.ok(problems[index]!.message.includes(one.slice(one.indexOf(" ") + 1)), problems[index]!.message);
  });
}

test("a NextResult without stages is told from what is no form of next at all", () => {
  const rows = [
    [{ execution: "sequential" }, "error StageDefinitionInvalid stages/plan.md /next/nextStages"],
    [{ nextStages: "build" }, "error StageDefinitionInvalid stages/plan.md /next/nextStages"],
    [{ other: 1 }, "error StageDefinitionInvalid stages/plan.md /next"],
  ] as const;
  for (const [next, expected] of rows) {
    const found = loadStages(stageTree({ plan: { next } })).problems.map(findingLine);
    assert.ok(found.includes(expected), found.join("\n"));
  }
});
