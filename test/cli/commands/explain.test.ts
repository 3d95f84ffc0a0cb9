import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { costLine } from "../../../src/tell/budget.ts";
import { agentText } from "../../../src/cli/commands/explain.ts";
import { stepText } from "../../../src/cli/text/explain-step.ts";
import { renderText } from "../../../src/cli/graph/graph-text.ts";
import { createPaint } from "../../../src/cli/text/text.ts";
import { outlineOf } from "../../../src/tell/outline.ts";
import { AGENT } from "../../../src/load/agent/agent-shape.ts";
import { leavesOf } from "../../../src/load/text/record.ts";
import type { ValueOrigin } from "../../../src/load/index.ts";
import { originOf } from "../../../src/tell/explain.ts";
import { explainAgent, explainStep } from "../../../src/run/explain.ts";
import { load as loadFrom } from "../../../src/run/load.ts";
import { load, tree, type Changes } from "../../load/world.ts";

const plain = createPaint(false);
const S = "/steps/continuation.issue";

function world(changes: Changes = {}) {
  const files = tree(changes);
  const loaded = { agent: "iterator", ...load(files) };
  return {
    flow: loaded.flow!,
    loaded,
    agent: explainAgent(loaded)!,
    step: (id: string) => explainStep(loaded, id)!,
  };
}

function line(origin: ValueOrigin): string {
  return origin.kind === "default"
    ? "default"
    : `${origin.kind} ${origin.file.split("/").at(-1)}${origin.pointer}`;
}

// Where a value comes from.

const settings: readonly [name: string, changes: Changes, key: string, value: unknown, from: string][] = [
  [
    "a limit",
    { "agent /runner/limits": { turns: 7 } },
    "runner.limits.turns",
    7,
    "written agent.json/runner/limits/turns",
  ],
  [
    "a written value",
    { "agent /runner/verdict/config/maxIterations": 7 },
    "runner.verdict.config.maxIterations",
    7,
    "written agent.json/runner/verdict/config/maxIterations",
  ],
  [
    "a default",
    { "agent /runner/verdict/config": {}, "agent /runner/verdict/type": "detect:graph" },
    "runner.verdict.config.maxIterations",
    20,
    "default",
  ],
  [
    "an older word for a type",
    { "agent /runner/verdict/type": "stepMachine" },
    "runner.verdict.type",
    "detect:graph",
    "written agent.json/runner/verdict/type",
  ],
  [
    "a value of the wrong type is not what holds",
    { "agent /runner/actions": { enabled: "yes" } },
    "runner.actions.enabled",
    false,
    "overruled agent.json/runner/actions/enabled",
  ],
  [
    "a list",
    { "agent /runner/boundaries/allowedTools": ["Read", "Grep"] },
    "runner.boundaries.allowedTools",
    ["Read", "Grep"],
    "written agent.json/runner/boundaries/allowedTools",
  ],
  [
    "no permission mode",
    { "agent /runner/boundaries/permissionMode": undefined },
    "runner.boundaries.permissionMode",
    null,
    "default",
  ],
];

for (const [name, changes, key, value, from] of settings) {
  test(`settings: ${name}`, () => {
    const found = world(changes).agent.settings.find((setting) => setting.key === key)!;
    assert.deepEqual(found.value, value);
    assert.equal(line(found.origin), from);
  });
}

test("an origin has the line and column where its author wrote it", () => {
  const files = tree();
  const agent = files[".agent/iterator/agent.json"]!;
  const { origin } = load({
    ...files,
    ".agent/iterator/agent.json": agent.replace(
      '"runner": {',
      '"runner": {\n "logging": { "format": "text" },',
    ),
  });
  const line = agent.slice(0, agent.indexOf('"runner": {')).split("\n").length + 1;
  assert.deepEqual(origin(["settings", "runner", "logging", "format"])?.origin, {
    kind: "written",
    file: ".agent/iterator/agent.json",
    line,
    column: 15,
    pointer: "/runner/logging/format",
  });
  assert.equal(origin(["settings", "runner", "logging", "directory"]), null);
  assert.equal(origin(["steps", "initial.issue", "model"]), null);
});

test("in a file of an earlier form it is the place of the old key", () => {
  const files = tree();
  const old = { version: "1.11.0", name: "iterator", displayName: "I", behavior: { defaultModel: "haiku" } };
  const { origin } = load({ ...files, ".agent/iterator/agent.json": JSON.stringify(old) });
  const written = origin(["settings", "runner", "flow", "defaultModel"])!;
  assert.equal(line(written.origin), "written agent.json/behavior/defaultModel");
});

test("every setting that agent.json may hold is explained", () => {
  const told = new Set(world().agent.settings.map(({ key }) => key));
  const apart = /^runner\.(?:limits|mcpServers|verdict\.config|actions\.handlers)\b/;
  const settings = [...leavesOf(AGENT)].map(({ path }) => path.join("."));
  const expected = settings.filter((key) => key.startsWith("runner.") && !apart.test(key));
  assert.ok(expected.length > 30);
  assert.deepEqual(
    expected.filter((key) => !told.has(key)),
    [],
  );
});

test("equal values are equal whatever the order of their keys", () => {
  const origin = { kind: "written", file: "f", line: 1, column: 1, pointer: "/a" } as const;
  const written = { value: { a: [1, { b: null }], c: "x" }, origin };
  assert.equal(originOf(written, { c: "x", a: [1, { b: null }] }).kind, "written");
  assert.equal(originOf(written, { c: "x", a: [1, {}] }).kind, "overruled");
  assert.equal(originOf(null, 1).kind, "default");
});

// A step.

test("the contract of a good step agrees in every row", () => {
  const { contract } = world().step("continuation.issue");
  assert.deepEqual(
    contract.flatMap((row) => row.mismatches),
    [],
  );
  assert.deepEqual(contract.map(({ label, allowed }) => [label, allowed]).at(-1), ["abort", true]);
});

const mismatches: readonly [name: string, changes: Changes, label: string, says: RegExp][] = [
  [
    "allowed, but not in the schema",
    { [`registry ${S}/structuredGate/allowedIntents`]: ["next", "repeat", "handoff", "jump"] },
    "jump",
    /does not let the model say it/,
  ],
  [
    "in the schema, but not allowed",
    { [`registry ${S}/structuredGate/allowedIntents`]: ["next", "repeat"] },
    "handoff",
    /the schema offers it, but it is not allowed/,
  ],
  [
    "a transition for nothing",
    { [`registry ${S}/transitions/escalate`]: { target: "closure.issue" } },
    "escalate",
    /it has a transition, but is not allowed/,
  ],
  [
    "a step that does not exist",
    { [`registry ${S}/transitions/next`]: { target: "continuation.isue" } },
    "next",
    /a step that does not exist/,
  ],
];

for (const [name, changes, label, says] of mismatches) {
  test(`the contract marks what does not agree: ${name}`, () => {
    const explained = world(changes).step("continuation.issue");
    assert.match(explained.contract.find((row) => row.label === label)!.mismatches.join("; "), says);
    assert.match(stepText(explained, plain), says);
  });
}

const interruptions: readonly [name: string, changes: Changes, value: string, from: string, says: RegExp][] =
  [
    ["nobody says", {}, "retry", "default", /if cut off +done again/],
    [
      "the step",
      { [`registry ${S}/ifInterrupted`]: "ask", "agent /runner/ifInterrupted": "fail" },
      "ask",
      `written steps_registry.json${S}/ifInterrupted`,
      /if cut off +a person is asked +\S*steps_registry\.json/,
    ],
    [
      "the agent",
      { "agent /runner/ifInterrupted": "fail" },
      "fail",
      "written agent.json/runner/ifInterrupted",
      /if cut off +the run fails +\S*agent\.json/,
    ],
  ];

for (const [name, changes, value, from, says] of interruptions) {
  test(`a step that was interrupted: as ${name}`, () => {
    const explained = world(changes).step("continuation.issue");
    assert.deepEqual([explained.ifInterrupted.value, line(explained.ifInterrupted.origin)], [value, from]);
    assert.match(stepText(explained, plain), says);
  });
}

const modes: readonly [name: string, changes: Changes, mode: string, by: string][] = [
  ["the kind's", { "agent /runner/boundaries/permissionMode": undefined }, "acceptEdits", "kind"],
  [
    "the agent's, when it is stricter",
    { "agent /runner/boundaries/permissionMode": "plan" },
    "plan",
    "agent",
  ],
  ["the step's own", { [`registry ${S}/permissionMode`]: "bypassPermissions" }, "bypassPermissions", "step"],
];

for (const [name, changes, mode, by] of modes) {
  test(`the permission mode has its reason: ${name}`, () => {
    const explained = world(changes).step("continuation.issue");
    assert.deepEqual([explained.mode.value, explained.mode.by], [mode, by]);
  });
}

test("plan mode offers reading tools only", () => {
  const { tools } = world({
    "agent /runner/boundaries/permissionMode": "plan",
    "agent /runner/boundaries/allowedTools": ["*"],
  }).step("continuation.issue");
  assert.ok(tools.offered.includes("Read"));
  assert.ok(!tools.offered.includes("Write"));
});

const models: readonly [name: string, changes: Changes, model: string, from: string][] = [
  ["default", { "agent /runner/flow/defaultModel": undefined }, "opus", "default"],
  [
    "the agent's",
    { "agent /runner/flow/defaultModel": "haiku" },
    "haiku",
    "written agent.json/runner/flow/defaultModel",
  ],
  [
    "the step's",
    { "agent /runner/flow/defaultModel": "haiku", [`registry ${S}/model`]: "sonnet" },
    "sonnet",
    "written steps_registry.json/steps/continuation.issue/model",
  ],
];

for (const [name, changes, value, from] of models) {
  test(`the model has its origin: ${name}`, () => {
    const { model } = world(changes).step("continuation.issue");
    assert.deepEqual([model.value, line(model.origin)], [value, from]);
  });
}

test("every variable has its supplier, or nobody", () => {
  const { variables } = world({
    [`registry ${S}/uvVariables`]: ["issue", "iteration", "nobody"],
    [`registry ${S}/inputs`]: { seen: { from: "initial.issue.understanding" } },
    "prompts/steps/continuation/issue/f_default.md": "{uv-issue} {uv-seen} {uv-iteration}",
  }).step("continuation.issue");
  assert.deepEqual(
    variables.map(({ name, isDeclared, isUsed, supplier }) => [
      name,
      isDeclared,
      isUsed,
      supplier?.kind ?? null,
    ]),
    [
      ["issue", true, true, "parameter"],
      ["iteration", true, true, "runtime"],
      ["nobody", true, false, null],
      ["seen", false, true, "input"],
    ],
  );
});

const UNWRITTEN = { "prompts/steps/continuation/issue/f_default.md": undefined };

test("a missing prompt is told with every path that was tried", () => {
  const strict = { ...UNWRITTEN, "agent /runner/flow/prompts/strict": true };
  const explained = world(strict).step("continuation.issue");
  assert.equal(explained.prompt?.file, null);
  assert.match(
    stepText(explained, plain),
    /prompt +there is none\n +not at \.agent\/iterator\/prompts\/steps\/continuation/,
  );
});

test("a built-in prompt is told as such, word for word, with every path that was tried", () => {
  const explained = world(UNWRITTEN).step("continuation.issue");
  assert.equal(explained.prompt?.file, "built-in:detect:graph");
  assert.match(explained.prompt.builtIn ?? "", /^The step is \{uv-step_id\}\./);
  const told = stepText(explained, plain);
  assert.match(
    told,
    /prompt +built-in:detect:graph, because there is no file:\n +│ The step is \{uv-step_id\}\./,
  );
  assert.match(told, /not at \.agent\/iterator\/prompts\/steps\/continuation\/issue\/f_default\.md/);
  assert.match(told, /step_id +- +✓ +the constant continuation\.issue/);
});

test("a section is told as the supplier of its variable, and what it reads is told too", () => {
  const { variables } = world({
    "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
    "prompts/steps/section/context/f_default.md": "Iteration {uv-iteration}.",
    "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
  }).step("initial.issue");
  assert.deepEqual(
    variables.map(({ name, supplier }) => [name, supplier?.kind]),
    [
      ["issue", "parameter"],
      ["section_context", "section"],
      ["iteration", "runtime"],
    ],
  );
});

test("the checks of a closure are told with command, rule, prompt and what a failure leads to", () => {
  const told = stepText(world().step("closure.issue"), plain);
  assert.match(told, /checks before closing {2}\.agent\/iterator\/steps_registry\.json:\d+/);
  assert.match(
    told,
    /git-clean {2}git status --porcelain\n {4}passes if it prints nothing, within .*; else git-dirty\n {4}described by \.agent\//,
  );
  assert.match(told, /a failure leads back to .*; the 3rd ends the run/);
});

test("each kind of check is told in its own words", () => {
  const told = stepText(
    world({
      "registry /validators/git-clean/command": 'git -C "${dir}" status',
      "registry /validators/report": { type: "file", path: "out/report.md", failurePattern: "git-dirty" },
      "registry /validators/said": {
        type: "semantic",
        semanticConfig: { checkType: "commit-message" },
        failurePattern: "git-dirty",
      },
      "registry /validationSteps/closure.issue/validationConditions": [
        { validator: "git-clean", params: { dir: "$(x) y" } },
        { validator: "report" },
        { validator: "said" },
      ],
    }).step("closure.issue"),
    plain,
  );
  assert.match(
    told,
    /git-clean\(dir=\$\(x\) y\) {2}git -C "\$\{dir\}" status\n.*\n {4}dir = \$\(x\) y\n {4}described by/,
  );
  assert.match(told, /report {2}out\/report\.md\n {4}passes if it is there; else git-dirty\n/);
  assert.match(told, /said\n {4}passes if the newest commit has the form type\(scope\)!: subject; else/);
});

test("the overview has the budget, the parameters and a row for each step", () => {
  const { agent, flow } = world();
  const told = agentText(agent, outlineOf(flow), plain);
  assert.match(told, /budget +\d+ answers \(/);
  assert.match(
    told,
    /ends +The work is done when the steps have led to a closing step and its checks have passed\.\n/,
  );
  assert.match(told, /--issue +number +required/);
  for (const id of Object.keys(flow.steps)) assert.ok(told.includes(id));
  assert.match(told, /▶ initial\.issue +work/);
});

test("what holds in a file's text is shown without being obeyed", () => {
  const escape = "\u001b[2J";
  const { agent, flow, step } = world({
    "agent /displayName": `x${escape}`,
    "agent /runner/flow/defaultModel": escape,
    [`registry ${S}/name`]: escape,
  });
  assert.ok(!agentText(agent, outlineOf(flow), plain).includes(escape));
  assert.ok(!stepText(step("continuation.issue"), plain).includes(escape));
});

test("a step that is not there is none", () => {
  assert.equal(world().step("nope"), null);
});

test("docs/looking-at-a-flow.md shows what the commands really print", async () => {
  const root = new URL("../../../", import.meta.url).pathname;
  const page = readFileSync(`${root}docs/looking-at-a-flow.md`, "utf8").replaceAll(/^ {4}/gm, "");
  const loaded = await loadFrom("fixer", { cwd: `${root}examples/01-fix-a-test` });
  const step = explainStep(loaded, "closure.issue")!;
  for (const shown of [
    renderText(outlineOf(loaded.flow!), 100, plain),
    stepText(step, plain),
    costLine(loaded.flow!),
  ]) {
    assert.ok(page.includes(shown), shown);
  }
});

test("the lesser limit is told, with the place it comes from", () => {
  const { loaded } = world({
    "agent /runner/limits": { turns: 7, tokens: 10 },
    [`registry ${S}/limits`]: { turns: 3, perAttempt: { soft: 0.5 } },
  });
  const ofUser = { limits: { turns: 5, tokens: 20 }, file: "/home/me/config.json" };
  const told = explainAgent(loaded, ofUser)!.settings.filter(({ key }) => key.includes("limits."));
  assert.deepEqual(
    told.map(({ key, value, origin }) => [key, value, line(origin)]),
    [
      ["runner.limits.turns", 5, "written config.json/limits/turns"],
      ["runner.limits.tokens", 10, "written agent.json/runner/limits/tokens"],
    ],
  );
  const step = stepText(explainStep(loaded, "continuation.issue")!, plain);
  assert.match(step, /at most +turns 3 .*steps_registry\.json:\d+/);
  assert.match(step, /at most +perAttempt\.soft 0\.5 /);
  const { spending } = explainStep(loaded, "continuation.issue")!.limits;
  assert.deepEqual(
    spending.map(({ key }) => key),
    ["turns", "perAttempt.soft"],
  );
});

test("the checks before the end of a run are those of the agent, and of no step", () => {
  const counted = {
    "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
    "registry /entryStep": "initial.issue",
    "registry /validationSteps/closure.iteration": {
      c2: "retry",
      c3: "issue",
      validationConditions: [{ validator: "git-clean" }],
    },
  };
  assert.deepEqual(world(counted).agent.ends.checks, ["git-clean"]);
  assert.deepEqual(world().agent.ends.checks, []);
});

test("an answer in plain text is never sent back for repair", () => {
  const spoken = world({
    "registry /steps/initial.issue/structuredGate": undefined,
    "registry /steps/initial.issue/outputSchemaRef": undefined,
  });
  const repairs = (one: typeof spoken) => one.step("initial.issue").limits.repairs;
  assert.deepEqual([repairs(spoken), repairs(world())], [0, 1]);
});

test("the entry comes from the first place that names it", () => {
  const rows: readonly (readonly [changes: Changes, from: string])[] = [
    [{}, "written steps_registry.json/entryStepMapping/detect:graph"],
    [{ "registry /entryStep": "initial.issue" }, "written steps_registry.json/entryStepMapping/detect:graph"],
    [
      { "registry /entryStepMapping": undefined, "registry /entryStep": "initial.issue" },
      "written steps_registry.json/entryStep",
    ],
  ];
  for (const [changes, from] of rows) assert.equal(line(world(changes).agent.entry.origin), from);
});
