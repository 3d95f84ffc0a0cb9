/** What loading makes of an agent: the documents' examples, defaults, and what it survives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, load, tree, type Changes } from "./world.ts";
import { S, flowWith, stepWith } from "./loaded.ts";

/** Document 003, section 11.10, word for word. */
const DOCUMENT_003 = {
  $schema: "../../agents/schemas/agent.schema.json",
  version: "1.12.0",
  name: "iterator",
  displayName: "Iterator Agent",
  description: "Autonomous development agent that works on GitHub Issues",
  parameters: {
    issue: { type: "number", description: "GitHub Issue number to work on", required: true, cli: "--issue" },
    iterateMax: {
      type: "number",
      description: "Maximum number of iterations (fallback)",
      required: false,
      default: 500,
      cli: "--iterate-max",
    },
    resume: {
      type: "boolean",
      description: "Resume previous session",
      required: false,
      default: false,
      cli: "--resume",
    },
  },
  runner: {
    flow: {
      systemPromptPath: "prompts/system.md",
      prompts: { registry: "steps_registry.json", fallbackDir: "prompts/" },
    },
    verdict: { type: "poll:state", config: { maxIterations: 500 } },
    boundaries: {
      allowedTools: ["Skill", "Read", "Write", "Edit", "Bash", "Glob", "Grep", "Task", "TodoWrite"],
      permissionMode: "acceptEdits",
    },
    integrations: {
      github: {
        enabled: true,
        labels: {
          requirements: "docs",
          inProgress: "in-progress",
          blocked: "need clearance",
          completion: { add: ["done"], remove: ["in-progress"] },
        },
        defaultClosureAction: "label-only",
      },
    },
    actions: {
      enabled: true,
      types: ["issue-action", "project-plan", "review-result"],
      outputFormat: "json",
    },
    execution: { worktree: { enabled: true, root: "../worktree" } },
    logging: { directory: "tmp/logs/agents/iterator", format: "jsonl", maxFiles: 100 },
  },
};

test("the complete agent.json of document 003 loads, and says what is not acted on", () => {
  const { flow, problems } = load(
    tree({
      "agent.json": JSON.stringify(DOCUMENT_003),
      "registry /entryStepMapping": { "poll:state": "initial.issue" },
    }),
  );
  assert.deepEqual(
    [...new Set(problems.map(({ code, severity }) => `${severity} ${code}`))],
    ["warning ACTION-LOG-ONLY", "warning PARAM-UNREAD"],
  );
  assert.deepEqual(
    problems.map(({ pointer }) => pointer),
    ["/runner/actions/types", "/parameters/resume"],
  );
  assert.deepEqual(flow?.constants, {
    label_requirements: "docs",
    label_inProgress: "in-progress",
    label_blocked: "need clearance",
  });
  assert.equal(flow?.settings.github.asked, true);
  assert.deepEqual(flow?.settings.github.completion, { add: ["done"], remove: ["in-progress"] });
  const issue = { kind: "state", resource: { kind: "github-issue", want: "closed" } };
  assert.deepEqual([flow?.stop, flow?.limits], [issue, { visits: 500 }]);
});

test("the registry snippets of document 000 load: a gate with everything, conditional and terminal transitions", () => {
  const flow = flowWith({
    [`${S}/structuredGate`]: {
      allowedIntents: ["next", "repeat", "handoff"],
      intentSchemaRef: "#/properties/next_action/properties/action",
      intentField: "next_action.action",
      targetField: "next_action.details.target",
      handoffFields: ["analysis.understanding", "analysis.status"],
      failFast: true,
      fallbackIntent: "next",
    },
    [`${S}/transitions`]: {
      next: {
        condition: "status",
        targets: { ready: "continuation.issue", blocked: "initial.issue", default: "continuation.issue" },
      },
      repeat: { target: "initial.issue" },
      handoff: { target: "closure.issue" },
    },
    "schema /initial.issue/properties/next_action/properties/action/enum": ["next", "repeat", "handoff"],
    "schema /initial.issue/properties/analysis/properties/status": { type: "string" },
  });
  const goto = (step: string) => ({ kind: "goto", step });
  assert.deepEqual(flow.steps["initial.issue"]!.edges.next, {
    kind: "switch",
    on: ["status"],
    cases: { ready: goto("continuation.issue"), blocked: goto("initial.issue") },
    otherwise: goto("continuation.issue"),
  });
  assert.equal("fallback" in flow.steps["initial.issue"]!.decide, false);
});

test("document 000's steps without gates follow each other by name", () => {
  const bare = (phase: string) => ({
    stepId: `${phase}.assess`,
    c2: phase,
    c3: "assess",
    edition: "default",
    uvVariables: ["issue"],
    fallbackKey: `${phase}_assess`,
  });
  const flow = flowWith({
    "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
    "registry /entryStepMapping": { "count:iteration": "initial.assess" },
    "registry /validationSteps": {},
    "registry /steps": { "initial.assess": bare("initial"), "continuation.assess": bare("continuation") },
    "prompts/steps/initial/assess/f_default.md": "{uv-issue}",
    "prompts/steps/continuation/assess/f_default.md": "{uv-issue}",
  });
  const initial = flow.steps["initial.assess"]!;
  assert.deepEqual([initial.answer, initial.decide], [{ kind: "text" }, { by: "const", label: "done" }]);
  assert.deepEqual(initial.edges, { done: { kind: "goto", step: "continuation.assess" } });
  assert.deepEqual(flow.steps["continuation.assess"]!.edges, {
    done: { kind: "goto", step: "continuation.assess" },
  });
  assert.deepEqual([flow.stop, flow.limits], [{ kind: "visits", count: 3 }, { visits: 3 }]);
});

test("an author's alias is compared without regard to case, and beside the usual ones", () => {
  const changes = {
    "registry /steps/initial.issue/structuredGate/aliases": { Weiter: "next", "NOCH einmal": "repeat" },
  };
  const { decide } = stepWith("initial.issue", changes);
  const alias = decide.by === "field" ? decide.alias : {};
  assert.deepEqual(
    ["weiter", "noch einmal", "Weiter", "continue"].map((word) => alias[word]),
    ["next", "repeat", undefined, "next"],
  );
});

test("a closing step ends the flow, guarded by its checks", () => {
  const step = stepWith("closure.issue", {});
  assert.deepEqual(step.edges, {
    closing: { kind: "end", outcome: "completed" },
    repeat: { kind: "goto", step: "closure.issue" },
    abort: { kind: "end", outcome: "failed", code: "AGENT_ABORTED" },
  });
  assert.deepEqual([step.guard?.on, step.guard?.onFailure, step.guard?.maxFailures], ["closing", "retry", 3]);
  assert.deepEqual(step.guard?.back, { kind: "caller" });
  assert.equal(
    step.guard?.checks[0]?.edition.file,
    ".agent/iterator/prompts/steps/retry/issue/f_failed_git-dirty.md",
  );
});

const KINDS: readonly [string, object, string | undefined][] = [
  ["c2 initial", { c2: "initial" }, "work"],
  ["c2 continuation", { c2: "continuation" }, "work"],
  ["c2 verification", { c2: "verification" }, "verify"],
  ["c2 closure", { c2: "closure" }, "close"],
  ["stepKind over c2", { c2: "initial", stepKind: "closure" }, "close"],
  ["c2 section", { c2: "section" }, undefined],
  ["c2 retry", { c2: "retry" }, undefined],
];

for (const [name, fields, kind] of KINDS) {
  test(`the kind of a step: ${name}`, () => {
    const { flow } = load(tree({ "registry /steps/some": { stepId: "some", c3: "x", ...fields } }));
    assert.equal(flow?.steps.some?.kind, kind);
  });
}

test("section.* is no step of the flow whatever its c2", () => {
  const { flow } = load(
    tree({ "registry /steps/section.x": { stepId: "section.x", c2: "initial", c3: "x" } }),
  );
  assert.equal(flow?.steps["section.x"], undefined);
});

const MODES: readonly [string, Changes, string, string][] = [
  [
    "work, agent silent",
    { "agent /runner/boundaries/permissionMode": undefined },
    "initial.issue",
    "acceptEdits",
  ],
  ["work, agent stricter", { "agent /runner/boundaries/permissionMode": "plan" }, "initial.issue", "plan"],
  [
    "work, agent freer",
    { "agent /runner/boundaries/permissionMode": "bypassPermissions" },
    "initial.issue",
    "acceptEdits",
  ],
  [
    "the step says so",
    { [`${S}/permissionMode`]: "bypassPermissions" },
    "initial.issue",
    "bypassPermissions",
  ],
  ["verification", { [`${S}/stepKind`]: "verification" }, "initial.issue", "plan"],
];

for (const [name, changes, id, mode] of MODES) {
  test(`permission mode: ${name}`, () => {
    assert.equal(stepWith(id, changes).tools.mode, mode);
  });
}

const MODELS: readonly [string, Changes, string][] = [
  ["nothing said", {}, "opus"],
  ["the agent's", { "agent /runner/flow/defaultModel": "sonnet" }, "sonnet"],
  ["the step's", { "agent /runner/flow/defaultModel": "sonnet", [`${S}/model`]: "haiku" }, "haiku"],
];

for (const [name, changes, model] of MODELS) {
  test(`model: ${name}`, () => {
    assert.equal(stepWith("initial.issue", changes).model, model);
  });
}

const FALLBACKS: readonly [string, object, string | undefined][] = [
  ["failFast", { fallbackIntent: "repeat" }, undefined],
  ["an allowed one", { failFast: false, fallbackIntent: "repeat" }, "repeat"],
  ["none written: next", { failFast: false }, "next"],
  ["one not allowed: next", { failFast: false, fallbackIntent: "handoff" }, "next"],
];

for (const [name, fields, expected] of FALLBACKS) {
  test(`fallback intent: ${name}`, () => {
    const changes = Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [`${S}/structuredGate/${key}`, value]),
    );
    const { decide } = stepWith("initial.issue", changes);
    assert.equal(decide.by === "field" ? decide.fallback : null, expected);
  });
}

const ENTRIES: readonly [string, Changes, string][] = [
  ["the verdict type's own", {}, "initial.issue"],
  [
    "under a former name of the type",
    { "registry /entryStepMapping": { stepFlow: "continuation.issue" } },
    "continuation.issue",
  ],
  [
    "the general one",
    {
      "registry /entryStepMapping": { "poll:state": "initial.issue" },
      "registry /entryStep": "continuation.issue",
    },
    "continuation.issue",
  ],
  [
    "the graph's own setting",
    { "registry /entryStepMapping": {}, "agent /runner/verdict/config/entryStep": "continuation.issue" },
    "continuation.issue",
  ],
];

for (const [name, changes, entry] of ENTRIES) {
  test(`entry: ${name}`, () => {
    assert.equal(flowWith(changes).entry, entry);
  });
}

test("an agent that says nothing runs on the documented defaults", () => {
  const flow = flowWith({
    "agent.json": JSON.stringify({
      name: "iterator",
      displayName: "It",
      parameters: { issue: { type: "number", cli: "--issue", required: true } },
      runner: {},
    }),
    "registry /entryStepMapping": { iterate: "initial.issue" },
    "registry /steps/continuation.issue/uvVariables": ["issue", "iteration"],
    "prompts/steps/continuation/issue/f_default.md": "Go on with issue {uv-issue}.",
    "prompts/system.md": undefined,
  });
  assert.deepEqual(flow.settings.verdict, { type: "count:iteration", config: {} });
  assert.deepEqual(flow.settings.boundaries.allowedTools, ["*"]);
  assert.equal(flow.settings.boundaries.permissionMode, "plan");
  assert.equal(flow.settings.github.enabled, true);
  assert.deepEqual(flow.settings.finalize, {
    autoMerge: true,
    push: false,
    remote: "origin",
    createPr: false,
    prTarget: null,
  });
  assert.deepEqual(flow.settings.logging, {
    enabled: false,
    directory: "logs",
    format: "jsonl",
    maxFiles: null,
  });
  assert.equal(flow.system.text, "You are It.");
});

const SURVIVES: readonly [string, Changes][] = [
  [
    "null lists",
    {
      [`${S}/uvVariables`]: null,
      [`${S}/structuredGate/handoffFields`]: null,
      "registry /failurePatterns/git-dirty/params": null,
      "prompts/steps/initial/issue/f_default.md": "x",
    },
  ],
  ["uv- prefixes", { [`${S}/uvVariables`]: ["uv-issue"] }],
  ["no edition, no usesStdin", { [`${S}/edition`]: undefined, [`${S}/usesStdin`]: undefined }],
  [
    "no adaptation, no params",
    { "registry /failurePatterns/git-dirty": { description: "x", edition: "failed" } },
  ],
  ["no extractParams", { "registry /validators/git-clean/extractParams": undefined }],
  [
    "unknown keys anywhere",
    {
      "agent /x": 1,
      "registry /x": 1,
      [`${S}/x`]: 1,
      [`${S}/structuredGate/x`]: 1,
      "registry /validators/git-clean/x": 1,
    },
  ],
  [
    "text in any language",
    {
      "agent /description": "課題を解く",
      "prompts/steps/initial/issue/f_default.md": "課題 {uv-issue} を解く",
    },
  ],
  [
    "a byte order mark",
    { "agent.json": `\uFEFF${JSON.stringify(DOCUMENT_003)}`, "registry /entryStep": "initial.issue" },
  ],
];

for (const [name, changes] of SURVIVES) {
  test(`survives ${name}`, () => {
    flowWith(changes);
  });
}

/** Agents as they are in the wild, in their unusual parts. */
const COUNT_ONE = {
  "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 1 } },
  "registry /validationSteps": {},
};
const INVENTORY: readonly [string, Changes][] = [
  [
    "one closure without a dot in its id, gated",
    {
      ...COUNT_ONE,
      "agent /runner/boundaries/permissionMode": "bypassPermissions",
      "registry /entryStepMapping": { "count:iteration": "consider" },
      "registry /steps": {
        consider: {
          stepId: "consider",
          name: "Consider",
          stepKind: "closure",
          c2: "consider",
          c3: "default",
          outputSchemaRef: { file: "issue.schema.json", schema: "closure.issue" },
          structuredGate: {
            allowedIntents: ["closing", "repeat"],
            intentSchemaRef: "#/properties/next_action/properties/action",
            intentField: "next_action.action",
          },
          transitions: { closing: { target: null }, repeat: { target: "consider" } },
        },
      },
      "prompts/steps/consider/default/f_default.md": "Consider.",
    },
  ],
  [
    "one closure without gate and schema",
    {
      ...COUNT_ONE,
      "registry /entryStepMapping": { "count:iteration": "triage" },
      "registry /steps": { triage: { stepId: "triage", stepKind: "closure", c2: "triage", c3: "default" } },
      "prompts/steps/triage/default/f_default.md": "Triage.",
    },
  ],
  [
    "one closure that is a command, without tools and prompts",
    {
      ...COUNT_ONE,
      "agent /runner/boundaries/allowedTools": [],
      "registry /entryStep": "merge",
      "registry /entryStepMapping": undefined,
      "registry /steps": {
        merge: {
          stepId: "merge",
          stepKind: "closure",
          c2: "merge",
          c3: "x",
          runner: { command: "sh", args: ["-c", "true"] },
        },
      },
    },
  ],
  [
    "the scaffold: no gates, uv- names, a step that is no step",
    {
      "agent /runner/verdict": { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
      "registry /entryStepMapping": undefined,
      "registry /entryStep": "initial.manual",
      "registry /validationSteps": undefined,
      "registry /steps": {
        system: { stepId: "system", c2: "system", c3: "x", uvVariables: ["uv-anything"] },
        "initial.manual": {
          stepId: "initial.manual",
          c2: "initial",
          c3: "manual",
          uvVariables: ["uv-issue", "uv-completion_keyword"],
          transitions: { next: { target: "continuation.manual" } },
        },
        "continuation.manual": {
          stepId: "continuation.manual",
          c2: "continuation",
          c3: "manual",
          uvVariables: ["uv-iteration", "uv-previous_summary"],
          transitions: { next: { target: "continuation.manual" } },
        },
      },
      "prompts/steps/initial/manual/f_default.md": "x",
      "prompts/steps/continuation/manual/f_default.md": "x",
    },
  ],
];

for (const [name, changes] of INVENTORY) {
  test(`loads ${name}`, () => {
    flowWith(changes);
  });
}

test("a closure that only labels has its own prompt when there is one", () => {
  const changes = { "agent /runner/integrations/github": { defaultClosureAction: "label-only" } };
  const file = "prompts/steps/closure/issue/f_default_label-only.md";
  assert.equal(
    stepWith("closure.issue", { ...changes, [file]: "label" }).prompt.file,
    `.agent/iterator/${file}`,
  );
  assert.equal(
    stepWith("closure.issue", changes).prompt.file,
    ".agent/iterator/prompts/steps/closure/issue/f_default.md",
  );
});

test("prompts and schemas are found where the files say", () => {
  const { flow } = load({
    ...tree({ "registry /userPromptsBase": "words", "agent /runner/flow/schemas": { base: "contracts" } }),
    ".agent/iterator/words/steps/initial/issue/f_default.md": "mine",
    ".agent/iterator/contracts/issue.schema.json": JSON.stringify({
      "initial.issue": answerOf("next", "repeat"),
    }),
  });
  const step = flow?.steps["initial.issue"];
  assert.equal(step?.prompt.text, "mine");
  assert.equal(step?.answer.kind === "object" && step.answer.schema.kind, "schema");
  assert.equal(
    flow?.steps["closure.issue"]?.prompt.file,
    ".agent/iterator/prompts/steps/closure/issue/f_default.md",
  );
});

test("a folder of climpt's configuration that does not end in c1 is not one of prompts", () => {
  const { flow } = load({
    ...tree({ "prompts/steps/initial/issue/f_default.md": undefined }),
    ".agent/climpt/config/iterator-steps-app.yml":
      'working_dir: ".agent/shared"\napp_prompt:\n  base_dir: "texts/other"\n',
    ".agent/shared/texts/steps/initial/issue/f_default.md": "theirs",
  });
  assert.notEqual(flow?.steps["initial.issue"]?.prompt.text, "theirs");
});

test("climpt's own configuration names a further folder of prompts", () => {
  const { flow } = load({
    ...tree({ "prompts/steps/initial/issue/f_default.md": undefined }),
    ".agent/climpt/config/iterator-steps-app.yml":
      'working_dir: ".agent/shared"\napp_prompt:\n  base_dir: "texts/steps"\n',
    ".agent/shared/texts/steps/initial/issue/f_default.md": "theirs",
  });
  assert.equal(flow?.steps["initial.issue"]?.prompt.text, "theirs");
});

test("loading twice gives the same flow", () => {
  const [one, other] = [load(tree()), load(tree())];
  assert.deepEqual([one.flow, one.problems], [other.flow, other.problems]);
});
