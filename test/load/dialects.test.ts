/** Every written form loads into the one representation, and what is wrong in it is reported in its own words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import type { Json, JsonObject } from "../../src/flow/json.ts";
import { hasErrors, type Problem } from "../../src/flow/problem.ts";
import { CODES, type Code } from "../../src/load/codes.ts";
import { COMPLETE_ISSUE, edited, parsed, printed, tree001, tree002, type Edits } from "./documents.ts";
import { AGENT, load, tree, type Changes, type Tree } from "./world.ts";

const line = ({ code, pointer, message }: Problem) => `${code} ${pointer}: ${message}`;
const errors = (problems: readonly Problem[]) => problems.filter(({ severity }) => severity === "error");

function flowOf(files: Tree, name: string): Flow {
  const { flow, problems } = load(files, name);
  assert.ok(flow !== null && !hasErrors(problems), errors(problems).map(line).join("\n"));
  return flow;
}

// The examples of the documents.
test("document 001's registry and agent.json load as printed", () => {
  const { flow, problems } = load(tree001(), "code-improver");
  assert.deepEqual(errors(problems).map(line), []);
  assert.equal(flow?.dialect, "check");
  assert.equal(flow.entry, "s_a8f3");
  assert.deepEqual(Object.keys(flow.steps), [
    "s_a8f3",
    "s_a8f3#check",
    "s_b2c1",
    "s_b2c1#check",
    "s_c9d4",
    "s_c9d4#check",
  ]);
  assert.deepEqual([flow.limits, flow.stop, flow.openArguments], [{ visits: 100 }, { kind: "end" }, true]);
  assert.deepEqual(flow.steps.s_b2c1?.tools, {
    allow: ["Read", "Write", "Edit", "Bash", "Glob", "Grep"],
    mode: "acceptEdits",
  });
  assert.deepEqual(flow.steps["s_b2c1#check"]?.tools, flow.steps.s_b2c1?.tools);
});

test("only where parameters cannot be declared any argument is taken", () => {
  const none = { "/parameters": {} };
  const declared = { "/parameters": { topic: { type: "string", description: "t", cli: "--topic" } } };
  assert.equal(flowOf(tree001({}, none), "code-improver").openArguments, true);
  assert.equal(flowOf(tree001({}, declared), "code-improver").openArguments, undefined);
  assert.equal(load(tree({ "agent /parameters": {} })).flow!.openArguments, undefined);
});

test("document 001's prompt references lead to the files it names", () => {
  const folder = ".agent/code-improver/prompts";
  const prompts = { "/steps/s_a8f3/prompt": parsed("001-prompt-path.json") };
  assert.equal(flowOf(tree001(prompts), "code-improver").steps.s_a8f3?.prompt.file, `${folder}/system.md`);
  const coordinates = { "/steps/s_b2c1/prompt": parsed("001-prompt-c3l.json") };
  assert.equal(
    flowOf(tree001(coordinates), "code-improver").steps.s_b2c1?.prompt.file,
    `${folder}/steps/phase/analyze/f_default.md`,
  );
});

test("the fallback of a prompt is read only where the prompt itself is not there", () => {
  const folder = ".agent/code-improver/prompts";
  const first = `${folder}/steps/phase/analyze/f_default.md`;
  const rows = [
    ["steps/phase/analyze/f_default.md", "system.md", first, 1],
    ["nowhere.md", "system.md", `${folder}/system.md`, 2],
    ["nowhere.md", "neither.md", null, 2],
    ["nowhere.md", undefined, null, 1],
  ] as const;
  for (const [path, fallback, file, places] of rows) {
    const prompt = { path, ...(fallback !== undefined && { fallback }) };
    const found = load(tree001({ "/steps/s_b2c1/prompt": prompt }), "code-improver").flow!.steps.s_b2c1!
      .prompt;
    const names = new Set(found.tried.map((one) => one.split("/").at(-1)));
    assert.deepEqual([found.file, names.size], [file, places], found.tried.join("\n"));
  }
});

test("document 001's iterations, check definition and check prompt are read", () => {
  const edits = {
    "/steps/s_b2c1/iterations": parsed("001-iterations.jsonc"),
    "/steps/s_a8f3/check": parsed("001-check.json"),
  };
  const flow = flowOf(tree001(edits), "code-improver");
  assert.deepEqual(flow, flowOf(tree001(), "code-improver"));
  const check = flow.steps["s_b2c1#check"];
  assert.equal(check?.prompt.text, printed("001-check-prompt.md").trim());
});

test("document 002's example never defines complete.issue, and both transitions to it are found", () => {
  const files = tree002({ "/steps/complete.issue": undefined });
  const found = errors(load(files, "issues").problems);
  assert.deepEqual(
    found.map(({ code, pointer, witness }) => [code, pointer, witness.join(" ")]),
    [
      ["SR-TRANS-001", "/steps/initial.issue/transitions/complete/target", "initial.issue complete.issue"],
      [
        "SR-TRANS-001",
        "/steps/continuation.issue/transitions/complete/target",
        "initial.issue continuation.issue complete.issue",
      ],
    ],
  );
});

test("document 002's example as printed names no entry step either", () => {
  const agent = edited(AGENT, { "/name": "issues", "/runner/verdict": { type: "issue" } });
  const registry = JSON.stringify(parsed("002-steps-registry.jsonc"));
  const files = tree002(
    {},
    { ".agent/issues/agent.json": agent, ".agent/issues/steps_registry.json": registry },
  );
  const entry = load(files, "issues").problems.find(({ code }) => code === "SR-ENTRY-001");
  assert.equal(entry?.message, printed("002-no-entry.txt").trim());
});

test("document 000's step, gate, transitions, validator and pattern make a flow", () => {
  const gate = parsed("000-structured-gate.json").structuredGate;
  const transitions = parsed("000-transitions.json").transitions;
  const step = JSON.parse(
    printed("000-step.txt")
      .replace('"structuredGate": { ... }', `"structuredGate": ${JSON.stringify(gate)}`)
      .replace('"transitions": { ... }', `"transitions": ${JSON.stringify(transitions)}`),
  ) as { readonly "initial.issue": Json };
  const validation = parsed("000-validation-steps.json").validationSteps as JsonObject;
  const { "git-clean": validator } = parsed("000-validator.json");
  const changes: Changes = {
    "registry /steps/initial.issue": step["initial.issue"],
    "schema /initial.issue/properties/next_action/properties/action/enum": ["next", "repeat", "handoff"],
    "registry /steps/closure.issue/transitions": parsed("000-transitions-terminal.json").transitions,
    "registry /validators/git-clean": validator,
    "registry /validators/type-check": validator,
    "registry /failurePatterns": parsed("000-failure-pattern.json"),
    "registry /validationSteps/closure.issue": validation["closure.issue"],
  };
  const flow = flowOf(tree(changes), "iterator");
  assert.deepEqual(Object.keys(flow.steps["initial.issue"]!.edges), ["next", "repeat", "handoff", "abort"]);
  assert.deepEqual(
    flow.steps["closure.issue"]?.guard?.checks.map(({ check }) => check),
    ["git-clean", "type-check"],
  );
});

test("document 000's entryStepMapping and conditional transition are read", () => {
  const mapping = parsed("000-entry-step-mapping.json").entryStepMapping;
  const { problems } = load(tree({ "registry /entryStepMapping": mapping }));
  assert.ok(
    problems.some(({ code }) => code === "SR-ENTRY-003"),
    problems.map(line).join("\n"),
  );

  const { next } = parsed("000-transitions-conditional.json").transitions as JsonObject;
  const { flow } = load(tree({ "registry /steps/initial.issue/transitions/next": next }));
  const edge = flow?.steps["initial.issue"]?.edges.next;
  assert.deepEqual(edge?.kind === "switch" && [edge.on, Object.keys(edge.cases)], [
    ["status"],
    ["ready", "blocked"],
  ]);
});

test("document 000's own fallbackKeys are not in its catalogue, and that is found", () => {
  const steps = parsed("000-assess.json").steps as JsonObject;
  const changes: Changes = {
    "registry /steps": steps,
    "registry /validationSteps": undefined,
    "registry /entryStepMapping": undefined,
    "registry /entryStep": "initial.assess",
  };
  const { problems } = load(tree(changes));
  const keys = problems.filter(({ code }) => code === "FALLBACK-KEY").map(({ pointer }) => pointer);
  assert.deepEqual(keys, ["/steps/initial.assess/fallbackKey", "/steps/continuation.assess/fallbackKey"]);
  assert.ok(
    problems.some(({ message }) => message.includes('No fallback prompt found for key: "initial_assess"')),
  );
});

test("a fallbackKey of the catalogue is no error: its prompt is said, and that is told", () => {
  const changes = {
    "registry /steps/initial.issue/fallbackKey": "initial_issue",
    "prompts/steps/initial/issue/f_default.md": undefined,
  };
  const codes = new Set(load(tree(changes)).problems.map(({ code }) => code));
  assert.deepEqual(
    ["PR-C3L-004", "FALLBACK-KEY", "PROMPT-FALLBACK-USED"].map((code) => codes.has(code)),
    [false, false, true],
  );
});

test("document 003's agent.json loads as printed", () => {
  const { flow, problems } = load({
    ...tree({ "registry /entryStepMapping": { "poll:state": "initial.issue" } }),
    ".agent/iterator/agent.json": printed("003-agent.json"),
  });
  assert.deepEqual(errors(problems).map(line), []);
  assert.deepEqual(
    flow?.parameters.map(({ name }) => name),
    ["issue", "iterateMax", "resume"],
  );
  assert.equal(flow.settings.worktree.root, "../worktree");
});

// Which form a file has.
const GATE_STEP = { structuredGate: { allowedIntents: ["next"] } };
const RECOGNISED: readonly (readonly [name: string, registry: Json, dialect: string | null])[] = [
  ["nothing at all", {}, "gate"],
  ["basePath", { basePath: "prompts" }, "check"],
  ["a step with a prompt", { steps: { a: { prompt: { path: "x.md" } } } }, "check"],
  ["a step with a check", { steps: { a: { check: {} } } }, "check"],
  ["the intent complete", { steps: { a: { structuredGate: { allowedIntents: ["complete"] } } } }, "complete"],
  ["a step complete.x", { steps: { "complete.x": {} } }, "complete"],
  ["a step complete.x with gates", { steps: { "complete.x": GATE_STEP } }, "complete"],
  [
    "a step complete.x in a file with closing",
    { steps: { "complete.x": { structuredGate: { allowedIntents: ["closing"] } } } },
    "gate",
  ],
  [
    "old names in entryStepMapping alone",
    { entryStepMapping: { issue: "a" }, steps: { a: GATE_STEP } },
    "gate",
  ],
  ["its own word", { dialect: "complete", steps: { a: GATE_STEP } }, "complete"],
  ["its own word against a step's name", { dialect: "gate", steps: { "complete.x": GATE_STEP } }, "gate"],
  ["another word", { dialect: "stages" }, null],
  ["no word", { dialect: 2 }, null],
  ["check prompts and gates", { basePath: "x", steps: { a: GATE_STEP } }, null],
  [
    "complete and closing",
    { steps: { a: { structuredGate: { allowedIntents: ["complete", "closing"] } } } },
    null,
  ],
  ["its own word and check prompts", { dialect: "gate", basePath: "x" }, null],
];

for (const [name, registry, dialect] of RECOGNISED) {
  test(`recognised by ${name}: ${dialect ?? "refused"}`, () => {
    const { flow, problems } = load(tree({ "steps_registry.json": JSON.stringify(registry) }));
    assert.equal(flow?.dialect ?? null, dialect);
    assert.equal(
      problems.some(({ code }) => code === "DIALECT"),
      dialect === null,
    );
  });
}

// Rules of the two forms. One edit to a good file, and the one finding it must bring.
type Row = {
  readonly code: Code;
  readonly name: string;
  readonly edits: Edits;
  readonly at: string;
  readonly says?: RegExp;
  readonly severity?: Problem["severity"];
  readonly witness?: string;
};

const A = "/steps/s_a8f3";
const OTHER_ID = {
  prompt: { path: "system.md" },
  check: { prompt: { path: "system.md" }, onPass: { next: "s_a8f3" } },
};
const ROWS_001: readonly Row[] = [
  {
    code: "SR-TRANS-001",
    name: "next to a step that is not there",
    edits: { [`${A}/check/onPass/next`]: "s_b2c2" },
    at: `${A}/check/onPass/next`,
    says: /Did you mean "s_b2c1"/,
    witness: "s_a8f3 s_b2c2",
  },
  {
    code: "SR-TRANS-001",
    name: "fallback to a step that is not there",
    edits: { "/steps/s_c9d4/check/onFail/fallback": "s_0000" },
    at: "/steps/s_c9d4/check/onFail/fallback",
    witness: "s_a8f3 s_b2c1 s_c9d4 s_0000",
  },
  {
    code: "TRANS-EMPTY",
    name: "empty onPass",
    edits: { [`${A}/check/onPass`]: {} },
    at: `${A}/check/onPass`,
  },
  {
    code: "TRANS-EMPTY",
    name: "onFail with nothing but false",
    edits: { [`${A}/check/onFail`]: { retry: false, complete: false } },
    at: `${A}/check/onFail`,
  },
  { code: "STEP-NO-WAY", name: "no check", edits: { [`${A}/check`]: undefined }, at: A, says: /no check/ },
  { code: "STEP-NO-WAY", name: "no onPass", edits: { [`${A}/check/onPass`]: undefined }, at: `${A}/check` },
  {
    code: "STEP-ID-FORM",
    name: "an id that is no hash",
    edits: { "/steps/analysis": { ...OTHER_ID, id: "analysis" } },
    at: "/steps/analysis",
  },
  {
    code: "SR-VALID-004",
    name: "the id of a check",
    edits: { "/steps/s_a8f3#check": OTHER_ID },
    at: "/steps/s_a8f3#check",
  },
  {
    code: "SR-VALID-004",
    name: "an id that differs from its key",
    edits: { [`${A}/id`]: "s_0000" },
    at: `${A}/id`,
  },
  {
    code: "SR-VALID-004",
    name: "a prompt without a place",
    edits: { [`${A}/prompt`]: { c1: "steps", c2: "phase" } },
    at: `${A}/prompt`,
  },
  {
    code: "SR-VALID-004",
    name: "fewer iterations than the least",
    edits: { [`${A}/iterations`]: { min: 3, max: 2 } },
    at: `${A}/iterations/max`,
  },
  {
    code: "PR-C3L-004",
    name: "no check prompt",
    edits: { [`${A}/check/prompt/c3`]: "nowhere" },
    at: `${A}/check/prompt`,
    says: /checks\/step\/nowhere\/f_default\.md/,
  },
  {
    code: "TRANS-UNUSED",
    name: "two ways on",
    edits: { [`${A}/check/onPass/retry`]: true },
    at: `${A}/check/onPass/retry`,
    says: /"next" comes first/,
  },
  {
    code: "FLOW-NO-END",
    name: "no complete",
    edits: { "/steps/s_c9d4/check/onPass": { next: "s_a8f3" } },
    at: A,
    witness: "s_a8f3",
  },
  {
    code: "FLOW-UNREACHABLE",
    name: "a step that nothing leads to",
    edits: { [`${A}/check/onPass/next`]: "s_c9d4", "/steps/s_c9d4/check/onFail": { retry: true } },
    at: "/steps/s_b2c1",
  },
  { code: "SR-ENTRY-001", name: "no entry", edits: { "/entryStep": undefined }, at: "" },
  {
    code: "SR-ENTRY-002",
    name: "an entry that is not there",
    edits: { "/entryStep": "s_x" },
    at: "/entryStep",
  },
  { code: "SR-LOAD-001", name: "no steps", edits: { "/steps": {} }, at: "/steps" },
  {
    code: "AC-SERVICE-003",
    name: "prompts outside of the project",
    edits: { "/basePath": "../../../prompts" },
    at: "/basePath",
  },
  {
    code: "FORBIDDEN-NAME",
    name: "a forbidden id",
    edits: { "/steps/constructor": OTHER_ID },
    at: "/steps/constructor",
  },
  {
    code: "UNKNOWN-KEY",
    name: "a misspelled key",
    edits: { [`${A}/chek`]: {} },
    at: `${A}/chek`,
    says: /"check"/,
  },
];

const I = "/steps/initial.issue";
const ROWS_002: readonly Row[] = [
  {
    code: "COMPLETE-TARGET",
    name: "complete to a step that is not final",
    edits: { [`${I}/transitions/complete/target`]: "continuation.issue" },
    at: `${I}/transitions/complete/target`,
    witness: "initial.issue continuation.issue",
  },
  {
    code: "COMPLETE-SCHEMA",
    name: "no schema",
    edits: { [`${I}/outputSchemaRef`]: undefined },
    at: I,
  },
  {
    code: "COMPLETE-SCHEMA",
    name: "a schema by its bare name",
    edits: { [`${I}/outputSchemaRef/schema`]: "initial.issue" },
    at: `${I}/outputSchemaRef/schema`,
  },
  {
    code: "COMPLETE-SCHEMA",
    name: "the schema of another step",
    edits: { [`${I}/outputSchemaRef/schema`]: "#/definitions/continuation.issue" },
    at: `${I}/outputSchemaRef`,
    says: /accepts only "continuation\.issue" as stepId/,
  },
  {
    code: "SCHEMA_POINTER_ERROR",
    name: "a pointer that leads nowhere",
    edits: { [`${I}/outputSchemaRef/schema`]: "#/definitions/initial.other" },
    at: `${I}/outputSchemaRef`,
  },
  {
    code: "SR-GATE-003",
    name: "no gate",
    edits: { "/steps/continuation.issue/structuredGate": undefined },
    at: "/steps",
    says: /^\[StepFlow\] Flow validation failed\. .*\nSteps missing structuredGate: continuation\.issue\nSee agents/,
  },
  {
    code: "SR-TRANS-003",
    name: "an intent without a transition: not even repeat is implied",
    edits: { [`${I}/transitions/repeat`]: undefined },
    at: `${I}/transitions`,
  },
  {
    code: "SR-TRANS-002",
    name: "null from a step that is not final",
    edits: { [`${I}/transitions/next/target`]: null },
    at: `${I}/transitions/next/target`,
    says: /only complete may end the flow/,
  },
  {
    code: "SR-VALID-001",
    name: "an intent of another dialect",
    edits: { [`${I}/structuredGate/allowedIntents`]: ["next", "repeat", "complete", "escalate"] },
    at: `${I}/structuredGate/allowedIntents/3`,
  },
  {
    code: "GATE-FALLBACK",
    name: "a fallbackIntent that is not allowed",
    edits: {
      [`${I}/structuredGate/fallbackIntent`]: "abort",
      [`/steps/continuation.issue/structuredGate/fallbackIntent`]: "jump",
    },
    at: "/steps/continuation.issue/structuredGate/fallbackIntent",
  },
  {
    code: "GATE-FALLBACK-NEVER",
    name: "a fallbackIntent that the schema does not list",
    edits: { [`${I}/structuredGate/fallbackIntent`]: "repeat" },
    at: `${I}/structuredGate/fallbackIntent`,
    says: /the schema requires "next_action\.action" and does not list that word/,
  },
  {
    code: "PR-C3L-004",
    name: "no prompt, whatever the fallbackKey",
    edits: { [`${I}/c3`]: "other", [`${I}/fallbackKey`]: "initial_issue" },
    at: I,
    says: /"initial_issue" is not used: a flow with a complete intent uses only its own prompts/,
  },
  {
    code: "FLOW-CYCLE",
    name: "a final step that never ends",
    edits: {
      "/steps/complete.issue/structuredGate/allowedIntents": ["repeat"],
      "/steps/complete.issue/transitions": { repeat: { target: "initial.issue" } },
    },
    at: I,
  },
];

for (const [document, name, rows, files] of [
  ["001", "code-improver", ROWS_001, tree001],
  ["002", "issues", ROWS_002, tree002],
] as const) {
  for (const row of rows) {
    test(`document ${document}, ${row.code}: ${row.name}`, () => {
      const { problems } = load(files(row.edits), name);
      const found = problems.find(({ code, pointer }) => code === row.code && pointer === row.at);
      assert.ok(found, `not found among:\n${problems.map(line).join("\n")}`);
      assert.equal(found.severity, row.severity ?? CODES[row.code].severity);
      assert.ok(found.file.endsWith("steps_registry.json"));
      if (row.says !== undefined) assert.match(found.message, row.says);
      if (row.witness !== undefined) assert.equal(found.witness.join(" "), row.witness);
    });
  }
}

test("document 001's number of visits is fixed, and another one is said to have no effect", () => {
  const agent = { "/behavior/completionConfig": { maxIterations: 7 } };
  const { flow, problems } = load(tree001({}, agent), "code-improver");
  assert.deepEqual(flow?.limits, { visits: 100 });
  const found = problems.find(({ pointer }) => pointer === "/behavior/completionConfig/maxIterations");
  assert.equal(found?.code, "CONFIG-NOT-ACTED-ON");
});

test("a schema that does not fix stepId is only warned about", () => {
  const files = tree002();
  const file = ".agent/issues/schemas/issue.schema.json";
  const open = files[file]!.replace('"stepId":{"const":"initial.issue"}', '"stepId":{"type":"string"}');
  const { problems } = load({ ...files, [file]: open }, "issues");
  const found = problems.find(({ code }) => code === "COMPLETE-SCHEMA");
  assert.deepEqual(
    [found?.severity, found?.file, found?.pointer],
    ["warning", file, "/definitions/initial.issue"],
  );
});

test("a strict flow has no self-name correction, no implied ways, and section.* is no step of it", () => {
  const flow = flowOf(
    tree002({ "/steps/section.context": { stepId: "section.context", c2: "section", c3: "x" } }),
    "issues",
  );
  const step = flow.steps["initial.issue"]!;
  assert.equal(step.answer.kind === "object" && step.answer.correct, undefined);
  assert.deepEqual(Object.keys(flow.steps), ["initial.issue", "continuation.issue", "complete.issue"]);
  assert.deepEqual(
    Object.values(flow.steps).map(({ kind }) => kind),
    ["work", "work", "close"],
  );
  assert.equal(step.decide.by === "field" && step.decide.fallback, "next");
});

test("checks before the end hold in a strict flow too, under their old names", () => {
  const edits = {
    "/completionPatterns": { dirty: { edition: "failed" } },
    "/validators": {
      clean: { type: "command", command: "true", successWhen: "exitCode:0", failurePattern: "dirty" },
    },
    "/completionSteps": { "complete.issue": { completionConditions: [{ validator: "clean" }] } },
    "/steps/complete.issue": {
      ...COMPLETE_ISSUE,
      structuredGate: { allowedIntents: ["complete", "next", "repeat"] },
      transitions: { ...COMPLETE_ISSUE.transitions, next: { target: null } },
    },
  };
  const flow = flowOf(tree002(edits), "issues");
  const step = flow.steps["complete.issue"]!;
  assert.deepEqual([step.guard?.on, step.guard?.checks.length], ["complete", 1]);
  // Whatever ends the flow goes through the checks.
  assert.deepEqual(step.decide.by === "field" && [step.decide.allow, step.decide.alias.continue], [
    ["complete", "repeat"],
    "complete",
  ]);
});
