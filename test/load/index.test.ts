import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandCheck, Flow, Step } from "../../src/flow/flow.ts";
import { parseSuccess } from "../../src/load/registry/guards.ts";
import { answerOf, load, tree, type Changes, sha256 } from "./world.ts";

/** The flow of the good agent with these changes; it must have no errors. */
function flowWith(changes: Changes = {}): Flow {
  const { flow, problems } = load(tree(changes));
  assert.deepEqual(
    problems.filter((problem) => problem.severity === "error"),
    [],
  );
  assert.ok(flow);
  return flow;
}

function stepWith(id: string, changes: Changes): Step {
  return flowWith(changes).steps[id]!;
}

const S = "registry /steps/initial.issue";
const CLOSURE = "registry /steps/closure.issue";

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

test("after a failed check the run goes on where the author says, else where repeat leads", () => {
  const repeat = { [`${CLOSURE}/transitions/repeat/target`]: "continuation.issue" };
  assert.deepEqual(stepWith("closure.issue", repeat).guard?.back, {
    kind: "goto",
    step: "continuation.issue",
  });
  const target = { ...repeat, "registry /validationSteps/closure.issue/onFailure/target": "initial.issue" };
  assert.deepEqual(stepWith("closure.issue", target).guard?.back, { kind: "goto", step: "initial.issue" });
});

const FAILURE_PROMPTS: readonly [string, readonly string[], string | null][] = [
  [
    "the validation's own place",
    ["retry/issue/f_failed_git-dirty", "closure/issue/f_failed_git-dirty"],
    "retry/issue/f_failed_git-dirty",
  ],
  [
    "the closure's",
    ["closure/issue/f_failed_git-dirty", "initial/issue/f_failed_git-dirty", "retry/issue/f_failed"],
    "closure/issue/f_failed_git-dirty",
  ],
  [
    "the first step's",
    ["initial/issue/f_failed_git-dirty", "retry/issue/f_failed"],
    "initial/issue/f_failed_git-dirty",
  ],
  ["without adaptation", ["retry/issue/f_failed", "closure/issue/f_failed"], "retry/issue/f_failed"],
  ["none", [], null],
];

for (const [name, present, expected] of FAILURE_PROMPTS) {
  test(`a failure prompt is found at ${name}`, () => {
    const files = Object.fromEntries(present.map((path) => [`prompts/steps/${path}.md`, "mend it"]));
    const step = stepWith("closure.issue", {
      "prompts/steps/retry/issue/f_failed_git-dirty.md": undefined,
      ...files,
    });
    const file = step.guard?.checks[0]?.edition.file;
    assert.equal(file, expected === null ? null : `.agent/iterator/prompts/steps/${expected}.md`);
  });
}

const VALIDATION = { c2: "retry", c3: "issue", validationConditions: [{ validator: "git-clean" }] };
const JUDGES: readonly [string, object, boolean][] = [
  [
    "its own entry",
    { "closure.issue": VALIDATION, "closure.graph": { ...VALIDATION, validationConditions: [] } },
    true,
  ],
  ["the customary entry of the verdict type", { "closure.graph": VALIDATION, other: VALIDATION }, true],
  ["the only entry", { other: VALIDATION }, true],
  ["none of several others", { other: VALIDATION, another: VALIDATION }, false],
  ["not by one that is another step's", { "initial.issue": VALIDATION }, false],
];

for (const [name, validationSteps, expected] of JUDGES) {
  test(`a closure is judged by ${name}`, () => {
    const step = stepWith("closure.issue", { "registry /validationSteps": validationSteps });
    assert.equal(step.guard !== undefined, expected);
  });
}

test("params of a condition become variables of the command, and make it a check of its own", () => {
  const flow = flowWith({
    "registry /validators/git-clean/command": "git -C ${dir} status ${HOME}",
    "registry /validationSteps/closure.issue/validationConditions": [
      { validator: "git-clean", params: { dir: "a" } },
      { validator: "git-clean", params: { dir: "b" } },
    ],
  });
  assert.deepEqual(
    commandChecks(flow).map(({ name, command, env }) => [name, command, env]),
    [
      ["git-clean(dir=a)", "git -C ${dir} status ${HOME}", { dir: "a" }],
      ["git-clean(dir=b)", "git -C ${dir} status ${HOME}", { dir: "b" }],
    ],
  );
});

function commandChecks({ checks }: Flow): readonly CommandCheck[] {
  return Object.values(checks).filter((check) => check.kind === "command");
}

test("a validator of another type than command becomes a check of its own kind", () => {
  const flow = flowWith({
    "registry /validators/git-clean": undefined,
    "registry /validators/report": { type: "file", path: "out/${name}.md", failurePattern: "git-dirty" },
    "registry /validators/said": {
      type: "semantic",
      semanticConfig: { checkType: "commit-message" },
      failurePattern: "git-dirty",
      timeoutMs: 5000,
    },
    "registry /validationSteps/closure.issue/validationConditions": [
      { validator: "report", params: { name: "a b" } },
      { validator: "said" },
    ],
  });
  const about = { pattern: "git-dirty", description: "Uncommitted changes present" };
  assert.deepEqual(Object.values(flow.checks), [
    { kind: "file", name: "report(name=a b)", ...about, path: "out/a b.md" },
    { kind: "commit-message", name: "said", ...about, timeoutMs: 5000 },
  ]);
});

const CAPS: readonly [written: object, timeoutMs: number, maxOutputBytes: number][] = [
  [{}, 600_000, 1_048_576],
  [{ timeoutMs: 5000 }, 5000, 1_048_576],
  [{ maxOutputBytes: 99 }, 600_000, 99],
];
for (const [written, timeoutMs, maxOutputBytes] of CAPS) {
  test(`a validator with ${JSON.stringify(written)} is stopped at its caps`, () => {
    const given = Object.entries(written).map(([key, value]) => [
      `registry /validators/git-clean/${key}`,
      value,
    ]);
    const [check] = commandChecks(flowWith(Object.fromEntries(given) as Changes));
    assert.deepEqual([check?.timeoutMs, check?.maxOutputBytes], [timeoutMs, maxOutputBytes]);
  });
}

const SUCCESS: readonly [string, object][] = [
  ["empty", { kind: "empty" }],
  ["exitCode:2", { kind: "exit", code: 2 }],
  ["contains:a:b", { kind: "contains", text: "a:b" }],
  ["matches:^ok$", { kind: "matches", pattern: "^ok$" }],
];

for (const [written, rule] of SUCCESS) {
  test(`successWhen ${written}`, () => {
    const flow = flowWith({ "registry /validators/git-clean/successWhen": written });
    assert.deepEqual(
      commandChecks(flow).map(({ success }) => success),
      [rule],
    );
  });
}

for (const written of [
  "exitCode:x",
  "exitCode:",
  "exitCode:-1",
  "exitCode:1.5",
  "exitCode:1234",
  "exitCode",
  "matches:(",
  "matches:",
  "contains:",
  "contains",
  "Empty",
  "exitcode:0",
  "",
])
  test(`a rule that cannot be read: "${written}"`, () => assert.equal(parseSuccess(written), null));

test("a command takes the place of the model in a closure and ends the flow", () => {
  const step = stepWith("closure.issue", {
    [CLOSURE]: {
      stepId: "closure.issue",
      c2: "closure",
      c3: "issue",
      runner: { command: "node", args: ["merge.mjs"] },
    },
    "prompts/steps/closure/issue/f_default.md": undefined,
  });
  assert.deepEqual(step.by, { kind: "command", command: "node", args: ["merge.mjs"], timeoutMs: 30_000 });
  assert.deepEqual(step.edges, { done: { kind: "end", outcome: "completed" } });
  assert.equal(step.guard?.on, "done");
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

const EDGES: readonly [string, Changes, string, object][] = [
  [
    "repeat without a rule stays",
    { [`${S}/transitions/repeat`]: undefined },
    "repeat",
    { kind: "goto", step: "initial.issue" },
  ],
  [
    "repeat follows its target",
    { [`${S}/transitions/repeat/target`]: "continuation.issue" },
    "repeat",
    { kind: "goto", step: "continuation.issue" },
  ],
  [
    "next without a rule goes from initial to continuation",
    { [`${S}/transitions/next`]: undefined },
    "next",
    { kind: "goto", step: "continuation.issue" },
  ],
  [
    "a condition by its full path",
    {
      [`${S}/transitions/next`]: {
        condition: "analysis.approach",
        targets: { default: "continuation.issue" },
      },
    },
    "next",
    { kind: "switch", on: ["approach"], cases: {}, otherwise: { kind: "goto", step: "continuation.issue" } },
  ],
];

for (const [name, changes, label, move] of EDGES) {
  test(`edge: ${name}`, () => {
    assert.deepEqual(stepWith("initial.issue", changes).edges[label], move);
  });
}

const ALL = ["initial.issue", "continuation.issue", "closure.issue"];
const FIELD = { kind: "jump", field: ["next_action", "target"], among: ALL };
const RULE = { kind: "goto", step: "closure.issue" };
const JUMPS: readonly [string, object, object | undefined, object][] = [
  ["explicit with a rule", { targetField: "next_action.target" }, { target: "closure.issue" }, RULE],
  ["explicit with a field", { targetField: "next_action.target" }, undefined, FIELD],
  [
    "dynamic",
    { targetField: "next_action.target", targetMode: "dynamic" },
    { target: "closure.issue" },
    FIELD,
  ],
  [
    "conditional",
    { targetMode: "conditional" },
    { condition: "approach", targets: { default: "closure.issue" } },
    { kind: "switch", on: ["approach"], cases: {}, otherwise: RULE },
  ],
];

for (const [name, fields, rule, move] of JUMPS) {
  test(`jump: ${name}`, () => {
    const changes = Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [`${S}/structuredGate/${key}`, value]),
    );
    const step = stepWith("initial.issue", {
      ...changes,
      [`${S}/structuredGate/allowedIntents`]: ["next", "repeat", "jump"],
      [`${S}/transitions/jump`]: rule,
      "schema /initial.issue/properties/next_action/properties": {
        action: { enum: ["next", "repeat", "jump"] },
        target: { type: "string" },
      },
    });
    assert.deepEqual(step.edges.jump, move);
  });
}

test("abort is always accepted, in the enum or not, with a rule or without", () => {
  const flow = flowWith({
    [`${S}/structuredGate/allowedIntents`]: ["next", "repeat", "abort"],
    "schema /continuation.issue": answerOf("next", "repeat", "handoff", "abort"),
  });
  for (const step of Object.values(flow.steps)) {
    assert.deepEqual(step.decide.by === "field" && step.decide.always, ["abort"]);
    assert.equal(step.decide.by === "field" && step.decide.allow.includes("abort"), false);
    assert.deepEqual(step.edges.abort, { kind: "end", outcome: "failed", code: "AGENT_ABORTED" });
  }
});

test("colliding handoff keys take their full path, the others their last segment", () => {
  const { flow } = load(
    tree({ [`${S}/structuredGate/handoffFields`]: ["a.status", "b.status", "c.plan", "c.plan"] }),
  );
  assert.deepEqual(flow?.steps["initial.issue"]?.carry, [
    { key: "a_status", path: ["a", "status"] },
    { key: "b_status", path: ["b", "status"] },
    { key: "plan", path: ["c", "plan"] },
  ]);
});

test("an input is a variable under its own name and under its source's", () => {
  const step = stepWith("closure.issue", {
    [`${CLOSURE}/inputs`]: { plan: { from: "initial.issue.approach", default: "none" } },
    [`${CLOSURE}/uvVariables`]: ["issue", "plan", "initial_issue_approach"],
  });
  const need = { from: { step: "initial.issue", key: "approach" }, required: false, default: "none" };
  assert.deepEqual(step.needs, [
    { variable: "plan", ...need },
    { variable: "initial_issue_approach", ...need },
  ]);
});

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

const MODULE = "export default () => true;";
const polled = (config: object) => ({ type: "poll:state", config });
const STOPS: readonly (readonly [name: string, verdict: object, stop: object, visits: number])[] = [
  ["count:iteration by default", { type: "count:iteration" }, { kind: "visits", count: 10 }, 10],
  [
    "count:iteration as written",
    { type: "count:iteration", config: { maxIterations: 3 } },
    { kind: "visits", count: 3 },
    3,
  ],
  ["another type by default", { type: "detect:graph" }, { kind: "end" }, 20],
  ["another type as written", { type: "detect:graph", config: { maxIterations: 500 } }, { kind: "end" }, 500],
  ["count:check", { type: "count:check", config: { maxChecks: 7 } }, { kind: "checks", count: 7 }, 20],
  [
    "poll:state without a word",
    polled({}),
    { kind: "state", resource: { kind: "github-issue", want: "closed" } },
    20,
  ],
  [
    "poll:state of a project",
    polled({ resourceType: "github-project", targetState: { status: "Done" } }),
    { kind: "state", resource: { kind: "github-project", want: { status: "Done" } } },
    20,
  ],
  ...(
    [
      ["exists", { kind: "exists" }],
      ["absent", { kind: "absent" }],
      ["STATUS: ok", { kind: "contains", text: "STATUS: ok" }],
      ["re:^ok$", { kind: "matches", pattern: "^ok$" }],
    ] as const
  ).map(
    ([targetState, want]) =>
      [
        `poll:state of a file: ${targetState}`,
        polled({ resourceType: "file", path: "out/{uv-issue}.md", targetState }),
        { kind: "state", resource: { kind: "file", path: "out/{uv-issue}.md", want } },
        20,
      ] as const,
  ),
  [
    "poll:state of an address",
    polled({ resourceType: "api", url: "https://x.test/{uv-issue}?a=1", targetState: { a: [1] } }),
    {
      kind: "state",
      resource: { kind: "api", url: "https://x.test/{uv-issue}?a=1", want: { a: [1] } },
    },
    20,
  ],
  [
    "detect:keyword",
    { type: "detect:keyword", config: { verdictKeyword: "DONE", maxIterations: 9 } },
    { kind: "keyword", text: "DONE" },
    9,
  ],
  [
    "detect:structured",
    { type: "detect:structured", config: { signalType: "wrap-up" } },
    { kind: "signal", type: "wrap-up", fields: [] },
    20,
  ],
  [
    "detect:structured with fields that must be there",
    { type: "detect:structured", config: { signalType: "s", requiredFields: ["a", "b"] } },
    { kind: "signal", type: "s", fields: [{ name: "a" }, { name: "b" }] },
    20,
  ],
  [
    "detect:structured with fields that must be so",
    { type: "detect:structured", config: { signalType: "s", requiredFields: { a: 1, b: null } } },
    {
      kind: "signal",
      type: "s",
      fields: [
        { name: "a", value: 1 },
        { name: "b", value: null },
      ],
    },
    20,
  ],
  [
    "meta:composite of anything but a graph",
    {
      type: "meta:composite",
      config: {
        operator: "and",
        maxIterations: 30,
        conditions: [
          { type: "count:iteration" },
          { type: "keywordSignal", config: { verdictKeyword: "DONE" } },
          {
            type: "meta:composite",
            config: {
              operator: "first",
              conditions: [
                { type: "meta:custom", config: { handlerPath: "./lib/../verdict.mjs", settings: { a: 1 } } },
                { type: "count:check", config: { maxChecks: 2 } },
              ],
            },
          },
        ],
      },
    },
    {
      kind: "all",
      of: [
        { kind: "visits", count: 10 },
        { kind: "keyword", text: "DONE" },
        {
          kind: "any",
          of: [
            {
              kind: "module",
              module: { file: ".agent/iterator/verdict.mjs", digest: sha256(MODULE) },
              config: { handlerPath: "./lib/../verdict.mjs", settings: { a: 1 } },
            },
            { kind: "checks", count: 2 },
          ],
        },
      ],
    },
    30,
  ],
];

for (const [name, verdict, stop, visits] of STOPS) {
  test(`the end of a run: ${name}`, () => {
    const flow = flowWith({
      "agent /runner/verdict": verdict,
      "registry /entryStep": "initial.issue",
      "verdict.mjs": MODULE,
    });
    assert.deepEqual([flow.stop, flow.limits.visits], [stop, visits]);
    assert.match(flow.criteria, /^The work is done when .+\.$/);
  });
}

const COUNTED = {
  "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 4 } },
  "registry /entryStep": "initial.issue",
};
const LAST: readonly [name: string, changes: Changes, guarded: boolean, visits: number][] = [
  ["a closure's own entry", {}, false, 4],
  ["the customary entry", { "registry /validationSteps/closure.iteration": VALIDATION }, true, 6],
  [
    "the customary entry, with another number",
    {
      "registry /validationSteps/closure.iteration": {
        ...VALIDATION,
        onFailure: { action: "retry", maxAttempts: 5 },
      },
    },
    true,
    8,
  ],
  [
    "one that ends the run at the first failure",
    {
      "registry /validationSteps/closure.iteration": { ...VALIDATION, onFailure: { action: "abort" } },
    },
    true,
    4,
  ],
  ["the only entry, if it is no step's", { "registry /validationSteps": { other: VALIDATION } }, true, 6],
  [
    "none of several others",
    { "registry /validationSteps": { other: VALIDATION, another: VALIDATION } },
    false,
    4,
  ],
  [
    "none where only edges end a run",
    {
      "agent /runner/verdict": { type: "detect:graph", config: { maxIterations: 4 } },
      "registry /validationSteps": { "closure.graph": VALIDATION },
    },
    false,
    4,
  ],
];

for (const [name, changes, guarded, visits] of LAST) {
  test(`before the end by the verdict: ${name}`, () => {
    const flow = flowWith({ ...COUNTED, ...changes });
    assert.deepEqual([flow.stopGuard !== undefined, flow.limits.visits], [guarded, visits]);
    if (flow.stopGuard === undefined) return;
    assert.deepEqual(flow.stopGuard.back, { kind: "onward" });
    assert.deepEqual(Object.keys(flow.checks), ["git-clean"]);
    assert.equal(
      flow.stopGuard.checks[0]?.edition.file,
      ".agent/iterator/prompts/steps/retry/issue/f_failed_git-dirty.md",
    );
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
