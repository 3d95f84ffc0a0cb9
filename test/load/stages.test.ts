import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Step } from "../../src/flow/flow.ts";
import { CODES } from "../../src/load/codes.ts";
import { printed } from "./documents.ts";
import { BUILD, FOLDER, loadStages, PLAN, stageTree, told, type StageChanges } from "./stage-world.ts";

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

/** A change to the good machine, and the findings it brings: exactly these. */
type Row = readonly [name: string, changes: StageChanges, findings: readonly string[]];

const plan = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} stages/plan.md ${pointer}`.trimEnd();
const onPlan = (name: string, fields: object, code: string, pointer: string): Row => [
  name,
  { plan: { ...fields } },
  [plan(pointer, code)],
];
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

/** Code that may lead anywhere, so that nothing is proved about the ways. */
const NEXT_HOOK: StageChanges = { "hooks.mjs": "export default { plan: { next() {} } }" };

const FIELD_ROWS: readonly Row[] = [
  // id
  [
    "id: not kebab-case",
    { review: { id: "JoinReview" }, build: { next: "JoinReview" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: a number",
    { review: { id: 7 }, build: { next: "review" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: a name of the machinery",
    { review: { id: "constructor" }, build: { next: "review" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: the word for the end",
    { review: { id: "end" }, build: { next: "end" }, ...NEXT_HOOK },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  ["id: used twice", { other: { id: "review" } }, ["error StageDefinitionInvalid stages/review.md /id"]],
  // name
  onPlan("name: empty", { name: "" }, "StageFieldMissing", "/name"),
  onPlan("name: blank", { name: "  " }, "StageFieldMissing", "/name"),
  onPlan("name: a list", { name: ["Plan"] }, "StageFieldType", "/name"),
  // allowedTools
  ["allowedTools: none", { plan: { allowedTools: [] } }, []],
  [
    "allowedTools: a tool of an MCP server",
    {
      plan: { allowedTools: ["mcp__docs__search"] },
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
    },
    [],
  ],
  onPlan(
    "allowedTools: a tool of a server that nobody declared",
    { allowedTools: ["mcp__docs__search"] },
    "StageToolUnknown",
    "/allowedTools/0",
  ),
  [
    "allowedTools: all tools of a server",
    {
      plan: { allowedTools: ["mcp__docs__*"] },
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
    },
    [plan("/allowedTools/0", "StageToolUnknown")],
  ],
  [
    "allowedTools: the tool of GitHub without GitHub",
    {
      plan: { allowedTools: ["mcp__github__github_read"] },
      "agent.json": JSON.stringify({ runner: { integrations: { github: { enabled: false } } } }),
    },
    [plan("/allowedTools/0", "GITHUB-TOOL-OFF")],
  ],
  ["allowedTools: the tool of GitHub", { plan: { allowedTools: ["mcp__github__github_read"] } }, []],
  [
    "mcpServers: declared twice, and not used",
    {
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
      "agent.json": JSON.stringify({ runner: { mcpServers: { docs: { url: "https://x.test/" } } } }),
    },
    [
      "warning MCP-UNUSED agent.json /runner/mcpServers/docs",
      "error MCP-NAME machine.yaml /mcpServers/docs",
      "warning MCP-UNUSED machine.yaml /mcpServers/docs",
    ],
  ],
  onPlan("allowedTools: a word", { allowedTools: "Read" }, "StageFieldType", "/allowedTools"),
  onPlan(
    "allowedTools: a number in the list",
    { allowedTools: ["Read", 3] },
    "StageFieldType",
    "/allowedTools/1",
  ),
  onPlan(
    "allowedTools: an unknown tool",
    { allowedTools: ["Read", "read"] },
    "StageToolUnknown",
    "/allowedTools/1",
  ),
  onPlan(
    "allowedTools: a tool that only coding agents have",
    { allowedTools: ["Read", "WebSearch"] },
    "StageToolUnknown",
    "/allowedTools/1",
  ),
  ["a very long body", { plan: { body: "x".repeat(1_000_001) } }, [plan("", "PROMPT-SIZE", "warning")]],
  onPlan("allowedTools: a pattern", { allowedTools: ["*"] }, "StageToolUnknown", "/allowedTools/0"),
  onPlan(
    "allowedTools: its own completion tool",
    { allowedTools: ["submit_plan"] },
    "StageToolUnknown",
    "/allowedTools/0",
  ),
  [
    "allowedTools: a tool that the agent may not use",
    { "agent.json": '{"runner":{"boundaries":{"allowedTools":["Read","Write","Bash(git status:*)"]}}}' },
    [
      "error StageToolUnknown stages/plan.md /allowedTools/1",
      "error StageToolUnknown stages/review.md /allowedTools/1",
    ],
  ],
  // completionTool
  onPlan(
    "completionTool: the name of a tool",
    { completionTool: "Read" },
    "CompletionToolReserved",
    "/completionTool",
  ),
  onPlan(
    "completionTool: the name of an MCP tool",
    { completionTool: "mcp__a__b" },
    "CompletionToolReserved",
    "/completionTool",
  ),
  onPlan("completionTool: two words", { completionTool: "submit plan" }, "StageFieldType", "/completionTool"),
  ["completionTool: the same in two stages", { plan: { completionTool: "submit_build" } }, []],
  // completionSchema
  onPlan(
    "completionSchema: a word",
    { completionSchema: "object" },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  [
    "completionSchema: of no object",
    { plan: { completionSchema: { type: "string" } } },
    [
      "error StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary",
      plan("/completionSchema", "StageCompletionSchemaInvalid"),
    ],
  ],
  onPlan(
    "completionSchema: without a type",
    { completionSchema: {} },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  onPlan(
    "completionSchema: of another draft",
    {
      completionSchema: {
        ...(PLAN.completionSchema as object),
        $schema: "http://json-schema.org/draft-04/schema#",
      },
    },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  [
    "completionSchema: of draft-07",
    {
      plan: {
        completionSchema: {
          ...(PLAN.completionSchema as object),
          $schema: "http://json-schema.org/draft-07/schema#",
        },
      },
    },
    [],
  ],
  // retryPolicy
  onPlan("retryPolicy: a number", { retryPolicy: 3 }, "StageRetryPolicyInvalid", "/retryPolicy"),
  onPlan(
    "retryPolicy: no attempts",
    { retryPolicy: { maxAttempts: 0, backoff: "none" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/maxAttempts",
  ),
  onPlan(
    "retryPolicy: half an attempt",
    { retryPolicy: { maxAttempts: 1.5, backoff: "none" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/maxAttempts",
  ),
  onPlan(
    "retryPolicy: unknown backoff",
    { retryPolicy: { maxAttempts: 1, backoff: "fibonacci" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/backoff",
  ),
  onPlan(
    "retryPolicy: without backoff",
    { retryPolicy: { maxAttempts: 1 } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/backoff",
  ),
  // turnCap
  onPlan("turnCap: none", { turnCap: 0 }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: a fraction", { turnCap: 1.5 }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: no number", { turnCap: Number.NaN }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: without limit", { turnCap: Number.POSITIVE_INFINITY }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: a word", { turnCap: "20" }, "StageTurnCapTooLow", "/turnCap"),
  // limits
  onPlan("limits: a soft one above", { limits: { turns: 3, soft: 2 } }, "LIMIT-INVALID", "/limits/soft"),
  onPlan("limits: none", { limits: { turns: 0 } }, "StageFieldType", "/limits/turns"),
  // resolutionPolicy
  ...["retry-later", "fail", "skip", "ask"].map((policy): Row => [
    `resolutionPolicy: ${policy}`,
    { plan: { resolutionPolicy: policy } },
    [],
  ]),
  onPlan(
    "resolutionPolicy: unknown",
    { resolutionPolicy: "later" },
    "StageResolutionPolicyInvalid",
    "/resolutionPolicy",
  ),
  // description, inputsSchema, tags
  ["description: a text", { plan: { description: "Plans." } }, []],
  onPlan("description: a list", { description: ["Plans."] }, "StageFieldType", "/description"),
  ["inputsSchema: a schema", { build: { inputsSchema: { type: "object", required: ["parsed"] } } }, []],
  onPlan("inputsSchema: a word", { inputsSchema: "any" }, "StageInputsInvalid", "/inputsSchema"),
  onPlan(
    "inputsSchema: of another draft",
    { inputsSchema: { $schema: "x" } },
    "StageInputsInvalid",
    "/inputsSchema",
  ),
  ["tags: words", { plan: { tags: ["a", "b"] } }, []],
  onPlan("tags: a word", { tags: "a" }, "StageFieldType", "/tags"),
  onPlan("tags: a number among them", { tags: ["a", 1] }, "StageFieldType", "/tags/1"),
  // anything else
  ["another key is the author's own", { plan: { owner: "me", model: "opus", meta: { a: [1] } } }, []],
  [
    "a near miss is told",
    { plan: { turncap: 3, allowed_tools: [] } },
    [plan("/turncap", "UNKNOWN-KEY", "warning"), plan("/allowed_tools", "UNKNOWN-KEY", "warning")],
  ],
  [
    "a near miss of a required key is one error",
    { plan: { turnCap: undefined, turn_cap: 3 } },
    [plan("/turn_cap", "UNKNOWN-KEY")],
  ],
];

for (const field of FIELDS.slice(1)) {
  test(`${field} is required`, () => {
    const found = problemsOf({ plan: { [field]: undefined } }).map(told);
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
    problems.map(told),
    FIELDS.map((field) => plan(`/${field}`, "StageFieldMissing")),
  );
});

for (const [name, changes, findings] of FIELD_ROWS) {
  test(`field ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(told), findings);
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
    assert.deepEqual(problems.map(told), findings);
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
  assert.deepEqual(problems.map(told), [
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
  }).map(told);
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

// Placeholders.

const inputs = {
  type: "object",
  required: ["task", "label"],
  properties: {
    task: { type: "string" },
    label: { type: "object", required: ["text"], properties: { text: { type: "string" } } },
    branch: { type: "string", default: "main" },
    note: { type: "string" },
    issue: {
      type: "object",
      required: ["title"],
      properties: { title: { type: "string" }, body: { type: "string" } },
    },
  },
};
const body = (text: string, more: StageChanges = {}): StageChanges => ({ plan: { body: text }, ...more });
const declared = { machine: { entry: "plan", inputs } };
const after = (text: string, fields: object = {}): StageChanges => ({ build: { body: text, ...fields } });
const build = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} stages/build.md ${pointer}`;

const CHECK = { type: "command", command: "test -f ready", successWhen: "exitCode:0" };
/** plan, then a and b side by side, then review. `b` has the payload of build. */
const forked: StageChanges = {
  plan: { next: { parallel: ["a", "b"], join: "review" } },
  a: { id: "a" },
  b: { id: "b", completionSchema: BUILD.completionSchema },
  build: undefined,
};

const PLACEHOLDERS: readonly Row[] = [
  ["ctx.<field> without declared inputs", body("{{ctx.task}} {{ ctx.a.b[2].c-d }} ${ctx.x}"), []],
  ["ctx.<field> that is declared", body("{{ctx.task}} {{ctx.branch}} ${ctx.label.text}", declared), []],
  [
    "ctx.<field> that is not declared",
    body("{{ctx.tusk}}", declared),
    [plan("/body#tusk", "StageCtxUnresolved")],
  ],
  [
    "ctx.<field> that is not declared, in the other form",
    body("${ctx.tusk}", declared),
    [plan("/body#tusk", "StageCtxUnresolved")],
  ],
  [
    "ctx.<field> that hooks may write",
    body("{{ctx.tusk}}", { ...declared, "hooks.mjs": "export default {}" }),
    [],
  ],
  [
    "ctx.<field> that may be given beside the inputs",
    body("{{ctx.tusk}}", { machine: { entry: "plan", inputs: { ...inputs, additionalProperties: true } } }),
    [],
  ],
  [
    "ctx.<field> that need not be given",
    body("{{ctx.note}}", declared),
    [plan("/body#note", "StageCtxUnresolved", "warning")],
  ],
  [
    "ctx.<field>.<member> that need not be given",
    body("{{ctx.issue.body}}", declared),
    [plan("/body#issue.body", "StageCtxUnresolved", "warning")],
  ],
  [
    "ctx.<field>.<member> of a text",
    body("{{ctx.task.length}}", declared),
    [plan("/body#task.length", "StageCtxUnresolved")],
  ],
  [
    "ctx.workflowRunId and ctx.stageExecutionId",
    body("{{ctx.workflowRunId}} {{ctx.stageExecutionId}}", declared),
    [],
  ],
  [
    "a member of ctx.workflowRunId",
    body("{{ctx.workflowRunId.x}}"),
    [plan("/body#workflowRunId.x", "StageCtxUnresolved")],
  ],
  ["stage.id and stage.name", body("{{stage.id}} {{ stage.name }}", declared), []],
  ["stage.<other>", body("{{stage.turnCap}}"), [plan("/body#stage.turnCap", "StageCtxUnresolved")]],
  ["ctx.attempts", body("{{ctx.attempts[0].turns}}"), [plan("/body#attempts[0].turns", "StageCtxForbidden")]],
  ["ctx.host", body("${ctx.host.run}"), [plan("/body#host.run", "StageCtxForbidden")]],
  ["env.<name>", body("{{env.FOO}}"), [plan("/body#{{env.FOO}}", "STAGE-PLACEHOLDER", "warning")]],
  [
    "env.<name> in the other form",
    body("${env.FOO}"),
    [plan("/body#${env.FOO}", "STAGE-PLACEHOLDER", "warning")],
  ],
  [
    "another root",
    body("{{task}} {{ctx}}"),
    [
      plan("/body#{{task}}", "STAGE-PLACEHOLDER", "warning"),
      plan("/body#{{ctx}}", "STAGE-PLACEHOLDER", "warning"),
    ],
  ],
  ["a variable of a shell", body("echo ${HOME} $x {x}"), []],
  [
    "an input without ctx",
    body("${task} {{ctx.task}}", declared),
    [plan("/body#${task}", "STAGE-PLACEHOLDER", "warning")],
  ],
  ["an escape", body("\\{{ctx.attempts}} \\${ctx.host} \\{{env.X}}"), []],
  [
    "the same one twice is told once",
    body("{{stage.x}} {{stage.x}}"),
    [plan("/body#stage.x", "StageCtxUnresolved")],
  ],
  [
    "ctx.upstream on the first stage",
    body("{{ctx.upstream[0].parsed}}"),
    [plan("/body#upstream[0].parsed", "StageCtxUnresolved")],
  ],
  ["ctx.upstream as a whole", body("{{ctx.upstream}}"), []],
  [
    "ctx.upstream after a stage",
    after("{{ctx.upstream[0].parsed.summary}} {{ctx.upstream[0].verdict}} {{ctx.upstream[0]}}"),
    [],
  ],
  [
    "ctx.upstream beyond the stages before",
    after("{{ctx.upstream[1].parsed}}"),
    [build("/body#upstream[1].parsed", "StageCtxUnresolved")],
  ],
  [
    "a member of the list ctx.upstream",
    after("{{ctx.upstream.parsed}}"),
    [build("/body#upstream.parsed", "StageCtxUnresolved")],
  ],
  [
    "a member of the list ctx.upstream that ends with a number",
    after("{{ctx.upstream.x1}}"),
    [build("/body#upstream.x1", "StageCtxUnresolved")],
  ],
  [
    "a field that no result has",
    after("{{ctx.upstream[0].transcript}}"),
    [build("/body#upstream[0].transcript", "StageCtxUnresolved")],
  ],
  [
    "a payload field that need not be there",
    after("{{ctx.upstream[0].parsed.note}}"),
    [build("/body#upstream[0].parsed.note", "StageCtxUnresolved", "warning")],
  ],
  [
    "an element that need not be there",
    after("{{ctx.upstream[0].parsed.steps[0]}}"),
    [build("/body#upstream[0].parsed.steps[0]", "StageCtxUnresolved", "warning")],
  ],
  [
    "a payload field that is not named",
    after("{{ctx.upstream[0].parsed.summry}}"),
    [build("/body#upstream[0].parsed.summry", "StageCtxUnresolved", "warning")],
  ],
  [
    "a payload field that is excluded",
    { review: { body: "{{ctx.upstream[0].parsed.red}}" } },
    ["error StageCtxUnresolved stages/review.md /body#upstream[0].parsed.red"],
  ],
  [
    "an output that is declared",
    {
      plan: { output: { s: "parsed.summary" } },
      ...after("{{ctx.upstream[0].output.s}} {{ctx.upstream[0].output}}"),
    },
    [],
  ],
  [
    "an output that nobody leaves",
    after("{{ctx.upstream[0].output.s}}"),
    [build("/body#upstream[0].output.s", "StageCtxUnresolved")],
  ],
  [
    "an output that hooks may leave",
    { ...after("{{ctx.upstream[0].output.s}}"), "hooks.mjs": "export default {}" },
    [],
  ],
  [
    "ctx.upstream of a join, in the order of the siblings",
    {
      ...forked,
      review: { body: "{{ctx.upstream[0].parsed.summary}} {{ctx.upstream[1].parsed.green}}", next: "end" },
    },
    [],
  ],
  [
    "ctx.upstream of a join, beyond its siblings",
    { ...forked, review: { body: "{{ctx.upstream[2].parsed}}" } },
    ["error StageCtxUnresolved stages/review.md /body#upstream[2].parsed"],
  ],
  [
    "ctx.upstream on a sibling",
    { ...forked, a: { body: "{{ctx.upstream[0].parsed.summary}}" } },
    ["error StageCtxUnresolved stages/a.md /body#upstream[0].parsed.summary"],
  ],
  [
    "a payload that one of two stages before does not have",
    {
      plan: { next: { switch: "parsed.summary", cases: { easy: "review", default: "build" } } },
      review: { body: "{{ctx.upstream[0].parsed.summary}}" },
    },
    ["warning StageCtxUnresolved stages/review.md /body#upstream[0].parsed.summary"],
  ],
  [
    "the payload of a stage that may have failed",
    { build: { onFail: "mend" }, mend: { id: "mend", body: "{{ctx.upstream[0].parsed.green}}" } },
    ["warning StageCtxUnresolved stages/mend.md /body#upstream[0].parsed.green"],
  ],
  [
    "the verdict of a stage that may have failed",
    {
      build: { onFail: "mend" },
      mend: { id: "mend", body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[0].reason}}" },
    },
    [],
  ],
  [
    "the payload of a stage that its gate may skip",
    {
      machine: { entry: "plan", checks: { ready: CHECK } },
      plan: { gate: "ready", resolutionPolicy: "skip" },
    },
    ["warning StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary"],
  ],
  [
    "the payload of a sibling in an independent group",
    {
      ...forked,
      plan: { next: { parallel: ["a", "b"], join: "review", policy: "independent" } },
      review: { body: "{{ctx.upstream[0].parsed.summary}}" },
    },
    ["warning StageCtxUnresolved stages/review.md /body#upstream[0].parsed.summary"],
  ],
];

for (const [name, changes, findings] of PLACEHOLDERS) {
  test(`placeholder ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(told), findings);
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
/** Stages that nobody need lead to, since code may. */
const AROUND: StageChanges = {
  ...NEXT_HOOK,
  build: undefined,
  review: undefined,
  a: { id: "a" },
  b: { id: "b" },
  c: { id: "c" },
};

for (const [name, next, move, machine] of NEXT) {
  test(`next: ${name}`, () => {
    const { flow, problems } = loadStages(
      stageTree({ ...AROUND, plan: { next }, machine: { entry: "plan", ...machine } }),
    );
    assert.deepEqual(problems.map(told), []);
    const { ok, skip } = flow!.steps.plan!.edges;
    assert.deepEqual([ok, skip], [move, move]);
  });
}

const badNext = (name: string, next: unknown, ...found: readonly string[]): Row => [
  name,
  { ...AROUND, plan: { next } },
  found,
];
const WAYS: readonly Row[] = [
  badNext("to an unknown stage", "d", plan("/next", "StageTargetUnknown")),
  badNext("a number", 3, plan("/next", "StageDefinitionInvalid")),
  badNext("none of the forms", { then: "a" }, plan("/next", "StageDefinitionInvalid")),
  badNext("an unknown sibling", { parallel: ["a", "d"] }, plan("/next/parallel/1", "StageTargetUnknown")),
  badNext("one sibling", { parallel: ["a"] }, plan("/next/parallel", "InvalidParallelPlan")),
  badNext("no sibling", { parallel: [] }, plan("/next/parallel", "InvalidParallelPlan")),
  badNext(
    "a sibling twice",
    { parallel: ["a", "a"] },
    plan("/next/parallel", "InvalidParallelPlan"),
    plan("/next/parallel/1", "StageDefinitionInvalid"),
  ),
  badNext(
    "a join among the siblings",
    { parallel: ["a", "b"], join: "b" },
    plan("/next/join", "StageDefinitionInvalid"),
  ),
  badNext("an unknown join", { parallel: ["a", "b"], join: "d" }, plan("/next/join", "StageJoinDangling")),
  badNext(
    "a join at the end",
    { parallel: ["a", "b"], join: "end" },
    plan("/next/join", "StageJoinDangling"),
  ),
  badNext(
    "an unknown policy",
    { parallel: ["a", "b"], policy: "lazy" },
    plan("/next/policy", "StageDefinitionInvalid"),
  ),
  badNext(
    "a misspelled key",
    { parallel: ["a", "b"], jion: "c" },
    plan("/next/jion", "UNKNOWN-KEY", "warning"),
  ),
  badNext(
    "a join that is not listed",
    { execution: "parallel", nextStages: ["a", "b"], join: "c" },
    plan("/next/join", "StageJoinDangling"),
  ),
  badNext(
    "only the join beside one stage",
    { execution: "parallel", nextStages: ["a", "c"], join: "c" },
    plan("/next/nextStages", "InvalidParallelPlan"),
  ),
  badNext(
    "several stages one after the other",
    { execution: "sequential", nextStages: ["a", "b"] },
    plan("/next/nextStages", "StageDefinitionInvalid"),
  ),
  badNext(
    "a join without anything side by side",
    { execution: "sequential", nextStages: ["a"], join: "b" },
    plan("/next/join", "StageDefinitionInvalid"),
  ),
  badNext(
    "a NextResult without execution",
    { nextStages: ["a"] },
    plan("/next/execution", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch on nothing",
    { switch: "a b", cases: { x: "a" } },
    plan("/next/switch", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch beside the result",
    { switch: "approved", cases: { x: "a" } },
    plan("/next/switch", "StageDefinitionInvalid"),
  ),
  badNext(
    "a switch without cases",
    { switch: "parsed.summary" },
    plan("/next/cases", "StageDefinitionInvalid"),
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a switch with empty cases",
    { switch: "parsed.summary", cases: {} },
    plan("/next/cases", "StageDefinitionInvalid"),
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a case to an unknown stage",
    { switch: "parsed.summary", cases: { x: "d", default: "a" } },
    plan("/next/cases/x", "StageTargetUnknown"),
  ),
  badNext(
    "a switch without default",
    { switch: "parsed.summary", cases: { x: "a" } },
    plan("/next/cases", "TRANS-DEFAULT", "warning"),
  ),
  badNext(
    "a switch on a field that is not named",
    { switch: "parsed.sumary", cases: { x: "a", default: "b" } },
    plan("/next/switch", "GATE-FIELD", "warning"),
  ),
  [
    "a switch on a value that the schema does not allow",
    {
      build: { next: { switch: "parsed.green", cases: { true: "review", yes: "review", default: "plan" } } },
    },
    [build("/next/cases/yes", "TRANS-UNUSED", "warning")],
  ],
  ["onFail to a stage", { build: { onFail: "mend" }, mend: { id: "mend" } }, []],
  ["onFail to an unknown stage", { build: { onFail: "mend" } }, [build("/onFail", "StageTargetUnknown")]],
  ["onFail to the end", { build: { onFail: "end" } }, [build("/onFail", "StageTargetUnknown")]],
  [
    "onFail to where next leads",
    { plan: { onFail: "build" } },
    [
      plan("/onFail", "STAGE-CAP-SUCCESS", "warning"),
      "warning StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary",
    ].toReversed(),
  ],
  [
    "a sibling that leads on",
    { ...forked, a: { next: "review" } },
    ["error StageDefinitionInvalid stages/a.md /next"],
  ],
  [
    "a sibling that fans out",
    { ...forked, a: { next: { parallel: ["c", "d"] } }, c: { id: "c" }, d: { id: "d" } },
    ["error StageDefinitionInvalid stages/a.md /next"],
  ],
  [
    "a sibling whose failure leads to a terminal stage",
    { ...forked, a: { onFail: "mend" }, mend: { id: "mend" } },
    [],
  ],
  [
    "a sibling whose failure leads on",
    { ...forked, a: { onFail: "mend" }, mend: { id: "mend", next: "review" } },
    ["error StageDefinitionInvalid stages/a.md /onFail"],
  ],
  [
    "a stage that nothing leads to",
    { lost: { id: "lost" } },
    ["warning FLOW-UNREACHABLE stages/lost.md /id"],
  ],
  ["a stage that code may lead to", { lost: { id: "lost" }, ...NEXT_HOOK }, []],
  ["a circle without a way out", { review: { next: "plan" } }, [plan("/next", "FLOW-CYCLE")]],
  ["a circle through a join", { ...forked, review: { next: "plan" } }, [plan("/next", "FLOW-CYCLE")]],
  [
    "a circle that only failure leaves",
    { review: { next: "plan", onFail: "mend" }, mend: { id: "mend" } },
    [plan("/next", "FLOW-CYCLE")],
  ],
  [
    "a stage that leads to itself",
    { review: { next: "review" } },
    ["error FLOW-CYCLE stages/review.md /next"],
  ],
  [
    "siblings without a join end the run",
    { ...forked, plan: { next: { parallel: ["a", "b"] } }, review: undefined },
    [],
  ],
];

for (const [name, changes, findings] of WAYS) {
  test(`way: ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(told), findings);
  });
}

test("what is wrong with a way shows the way there", () => {
  const [cycle] = problemsOf({ review: { next: "review" } });
  assert.deepEqual(cycle!.witness, ["plan", "build", "review", "review"]);
  const [around] = problemsOf({ ...forked, review: { next: "plan" } });
  assert.deepEqual(around!.witness, ["plan", "review", "plan"]);
});

// The machine.

const machine = (pointer: string, code: string, severity = "error") =>
  `${severity} ${code} machine.yaml ${pointer}`.trimEnd();
const withMachine = (
  more: object,
  ...found: readonly string[]
): readonly [StageChanges, readonly string[]] => [{ machine: { entry: "plan", ...more } }, found];
const MACHINES: readonly (readonly [name: string, StageChanges, readonly string[]])[] = [
  ["an empty file", { "machine.yaml": "", ...lone() }, []],
  ["no file and one first stage", { machine: undefined, ...lone() }, []],
  ["no file and every stage led to", { machine: undefined }, [machine("/entry", "StageDefinitionInvalid")]],
  [
    "no file and two first stages",
    { machine: undefined, ...lone(), other: { id: "other", next: "review" } },
    [machine("/entry", "StageDefinitionInvalid")],
  ],
  ["an unknown entry", { machine: { entry: "pln" } }, [machine("/entry", "StageDefinitionInvalid")]],
  [
    "an entry in a file that cannot be read",
    { machine: { entry: "first" }, first: "nothing" },
    ["error StageDefinitionInvalid stages/first.md"],
  ],
  ["a list", { "machine.yaml": "- a" }, [machine("", "StageDefinitionInvalid")]],
  [
    "a tab, and stages that need what stands there",
    {
      "machine.yaml": "checks:\n\ttests: { command: npm test }\n",
      plan: { assert: ["tests"], gate: "tests", allowedTools: ["Read", "mcp__docs__search"] },
    },
    [machine("", "StageDefinitionInvalid")],
  ],
  ["a key twice", { "machine.yaml": "entry: plan\nentry: build\n" }, [machine("", "StageDefinitionInvalid")]],
  ["an unknown key", ...withMachine({ entri: 1 }, machine("/entri", "UNKNOWN-KEY", "warning"))],
  ["its own name", ...withMachine({ id: "release" })],
  ["another name", ...withMachine({ id: "other" }, machine("/id", "AC-NAME", "warning"))],
  [
    "an unknown joinRule",
    ...withMachine({ joinRule: "any" }, machine("/joinRule", "StageDefinitionInvalid")),
  ],
  ["limits", ...withMachine({ limits: { visits: 12 } })],
  [
    "no visits",
    ...withMachine({ limits: { visits: 0 } }, machine("/limits/visits", "StageDefinitionInvalid")),
  ],
  ["limits on what a run may spend", ...withMachine({ limits: { turns: 5, costUsd: 1 } })],
  [
    "a check that a stage asserts",
    { machine: { entry: "plan", checks: { tests: CHECK } }, build: { assert: ["tests"] } },
    [],
  ],
  [
    "a check that is a gate",
    { machine: { entry: "plan", checks: { tests: CHECK } }, build: { gate: "tests" } },
    [],
  ],
  [
    "a check that nobody asks for",
    ...withMachine(
      { checks: { tests: CHECK } },
      machine("/checks/tests", "CHECK-VALIDATOR-UNUSED", "warning"),
    ),
  ],
  [
    "an unknown check",
    { build: { assert: ["tests"], gate: "ready" } },
    [build("/assert/0", "CHECK-UNKNOWN"), build("/gate", "CHECK-UNKNOWN")],
  ],
  [
    "a check without command",
    {
      machine: { entry: "plan", checks: { tests: { type: "command", successWhen: "empty" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/command", "StageDefinitionInvalid")],
  ],
  [
    "a check with an unknown rule",
    {
      machine: { entry: "plan", checks: { tests: { ...CHECK, successWhen: "good" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/successWhen", "CHECK-SUCCESS")],
  ],
  [
    "a check that cannot fail",
    {
      machine: { entry: "plan", checks: { tests: { ...CHECK, command: "npm test || true" } } },
      build: { assert: ["tests"] },
    },
    [machine("/checks/tests/command", "CHECK-CANNOT-FAIL", "warning")],
  ],
  [
    "a forbidden name of a check",
    {
      "machine.yaml":
        "entry: plan\nchecks: { constructor: { type: command, command: x, successWhen: empty } }\n",
      build: { assert: ["constructor"] },
    },
    [machine("/checks/constructor", "FORBIDDEN-NAME")],
  ],
  ["assert that is no list", { build: { assert: "tests" } }, [build("/assert", "StageFieldType")]],
  [
    "output beside the payload",
    { build: { output: { x: "upstream.y" } } },
    [build("/output/x", "StageDefinitionInvalid")],
  ],
  [
    "output of a name that nothing could read",
    { build: { output: { "a b": "parsed.green" } } },
    [build("/output/a b", "StageDefinitionInvalid")],
  ],
  [
    "output of a field that is not named",
    { build: { output: { x: "parsed.red" } } },
    [build("/output/x", "HANDOFF-FIELD", "warning")],
  ],
  [
    "inputs of another type",
    ...withMachine(
      { inputs: { type: "array" } },
      machine("/inputs", "StageDefinitionInvalid"),
      plan("/body#task", "StageCtxUnresolved"),
    ),
  ],
  [
    "inputs that the runtime writes",
    ...withMachine(
      { inputs: { ...inputs, properties: { ...inputs.properties, upstream: {}, host: {} } } },
      machine("/inputs/properties/upstream", "StageDefinitionInvalid"),
      machine("/inputs/properties/host", "StageDefinitionInvalid"),
    ),
  ],
  [
    "inputs of one flag",
    ...withMachine(
      {
        inputs: {
          ...inputs,
          properties: { ...inputs.properties, a_b: { type: "string" }, "a-b": { type: "string" } },
        },
      },
      machine("/inputs/properties/a-b", "PARAM-FLAG"),
    ),
  ],
  [
    "an input whose default does not fit",
    ...withMachine(
      { inputs: { ...inputs, properties: { ...inputs.properties, n: { type: "integer", default: "x" } } } },
      machine("/inputs/properties/n/default", "PARAM-DEFAULT"),
    ),
  ],
  ["an agent file with nothing in it", { "agent.json": "{}" }, []],
  [
    "a sandbox that is opened to every host",
    {
      "agent.json":
        '{"runner":{"boundaries":{"sandbox":{"network":{"mode":"custom","trustedDomains":["*"]}}}}}',
    },
    ["error SANDBOX-HOST agent.json /runner/boundaries/sandbox/network/trustedDomains/0"],
  ],
  ["an agent file that is broken", { "agent.json": "{" }, ["error AC-SERVICE-002 agent.json"]],
  [
    "an agent file with what stages do not have",
    {
      "agent.json":
        '{"parameters":{"x":{"type":"string","cli":"--x","description":"x"}},"runner":{"verdict":{"type":"detect:graph"}}}',
    },
    [
      "warning CONFIG-NOT-ACTED-ON agent.json /parameters",
      "warning CONFIG-NOT-ACTED-ON agent.json /runner/verdict",
    ],
  ],
  ["a registry beside the stages", { "steps_registry.json": "{}" }, ["error DIALECT steps_registry.json"]],
  [
    "a registry of another name",
    { "agent.json": '{"runner":{"flow":{"prompts":{"registry":"r.json"}}}}', "r.json": "{}" },
    ["error DIALECT r.json"],
  ],
];

/** plan → build → review. */
function lone(): StageChanges {
  return { build: { next: "review" } };
}

for (const [name, changes, findings] of MACHINES) {
  test(`machine: ${name}`, () => {
    assert.deepEqual(problemsOf(changes).map(told), findings);
  });
}

test("no stage at all", () => {
  const { flow, problems } = loadStages({ [`${FOLDER}/stages/notes.txt`]: "x" });
  assert.equal(flow, null);
  assert.deepEqual(problems.map(told), ["error StageDefinitionInvalid stages"]);
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
  assert.deepEqual(problems.map(told), []);
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
  assert.deepEqual(problems.map(told), []);
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
    const found = loadStages(stageTree({ plan: { next } })).problems.map(told);
    assert.ok(found.includes(expected), found.join("\n"));
  }
});
