/** What is said when a prompt file is missing: the catalogue, the prompts by verdict type, and where neither may be used. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../../src/flow/flow.ts";
import type { Scene } from "../../../src/flow/scene.ts";
import { FALLBACKS } from "../../../src/load/registry/fallbacks.ts";
import { composer } from "../../../src/prompts/compose.ts";
import { actionSchema } from "../../../src/testing/flows.ts";
import { load, tree, type Changes } from "../world.ts";

const S = "registry /steps/initial.issue";
const NO_FILES: Changes = {
  "prompts/steps/initial/issue/f_default.md": undefined,
  "prompts/steps/continuation/issue/f_default.md": undefined,
  "prompts/steps/closure/issue/f_default.md": undefined,
};

/** Document 000, "Available fallbackKey Values", in its order. */
const CATALOGUE = [
  ...["iterate", "issue", "issue_label_only", "project", "keyword", "manual", "structured_signal"].flatMap(
    (word) => [`initial_${word}`, `continuation_${word}`],
  ),
  "continuation_project_preparation",
  "continuation_project_processing",
  "continuation_project_review",
  "issue_closure_default",
  "project_closure_default",
  "polling_closure_default",
  "review_closure_default",
  "iteration_closure_default",
  "facilitation_closure_default",
  "project_continuation_closure_default",
  "statuscheck_continuation_default",
  "system",
];
const VARIABLES = new Set(
  (
    "agent_name verdict_criteria max_iterations iteration remaining topic completion_keyword issue " +
    "previous_summary project_number phases phase signal_type required_fields check_count"
  ).split(" "),
);

const scene = (more: Partial<Scene> = {}): Scene => ({
  args: { issue: 7, iterateMax: 500 },
  input: "",
  iterations: 3,
  visits: { "closure.issue": 1 },
  handoff: {},
  last: null,
  ...more,
});

function said(flow: Flow | null, id: string, more: Partial<Scene> = {}): string {
  assert.ok(flow);
  const composed = composer.say(flow, flow.steps[id]!, { kind: "prompt" }, scene(more));
  return composed.kind === "text" ? composed.text.split("\n\nWhen you are done, answer")[0]! : composed.why;
}

const found = (changes: Changes, ...codes: readonly string[]) =>
  load(tree(changes)).problems.filter(({ code }) => codes.includes(code));

test("the catalogue is document 000's", () => assert.deepEqual([...FALLBACKS.keys()], CATALOGUE));

for (const [key, text] of FALLBACKS) {
  test(`the built-in prompt ${key} is short, and reads known variables only`, () => {
    const lines = text.split("\n").filter((line) => line !== "");
    assert.ok(lines.length >= 1 && lines.length <= 6, `${lines.length} lines`);
    const names = [...text.matchAll(/\{([^{}]*)\}/g)].map((match) => match[1]!);
    assert.deepEqual(
      names.filter((name) => !name.startsWith("uv-") || !VARIABLES.has(name.slice(3))),
      [],
    );
    assert.ok(lines.some((line) => !line.includes("{")));
  });

  test(`the built-in prompt ${key} stands in for a missing file, whatever the agent declares`, () => {
    const { flow, problems } = load(tree({ ...NO_FILES, [`${S}/fallbackKey`]: key }));
    assert.deepEqual(
      problems.filter(({ severity }) => severity === "error"),
      [],
    );
    const { prompt } = flow!.steps["initial.issue"]!;
    assert.equal(prompt.file, `built-in:${key}`);
    assert.deepEqual(prompt.tried, [".agent/iterator/prompts/steps/initial/issue/f_default.md"]);
    const words = said(flow, "initial.issue");
    assert.match(words, /\b7\b/, "what the step declares is told");
    assert.doesNotMatch(words, /\{|\}|has no value|supplies/);
  });
}

const TOPICS: readonly (readonly [more: object, isRead: boolean])[] = [
  [{ required: true }, true],
  [{ required: false, default: "birds" }, true],
  [{ required: false }, false],
];
for (const [more, isRead] of TOPICS) {
  test(`a built-in prompt reads a parameter only where it has a value: ${JSON.stringify(more)}`, () => {
    const topic = { type: "string", description: "x", cli: "--topic", ...more };
    const reading = [...FALLBACKS].filter(([, text]) => text.includes("{uv-topic}")).map(([key]) => key);
    assert.ok(reading.length > 0);
    for (const key of reading) {
      const { flow } = load(
        tree({ ...NO_FILES, "agent /parameters/topic": topic, [`${S}/fallbackKey`]: key }),
      );
      assert.equal(flow!.steps["initial.issue"]!.prompt.text.includes("{uv-topic}"), isRead, key);
    }
  });
}

test("a built-in prompt tells everything when the agent supplies everything", () => {
  const parameter = (name: string) => ({
    type: "string",
    description: "x",
    cli: `--${name}`,
    required: true,
  });
  const names = ["topic", "project-number", "phases", "phase"];
  const parameters = Object.fromEntries(
    names.map((name) => [`agent /parameters/${name.replace("-", "_")}`, parameter(name)]),
  );
  for (const [key, text] of FALLBACKS) {
    if (key === "system") continue;
    const { flow } = load(
      tree({
        ...NO_FILES,
        ...parameters,
        "agent /runner/verdict/config": {
          verdictKeyword: "DONE!",
          signalType: "facilitator-done",
          requiredFields: ["summary"],
        },
        [`${S}/fallbackKey`]: key,
        [`${S}/uvVariables`]: [],
      }),
    );
    assert.equal(flow?.steps["initial.issue"]?.prompt.text, text, key);
  }
});

const exact = 'No fallback prompt found for key: "initial.issue" (step: initial.issue)';

test("a key that is not in the catalogue is an error with document 000's words, and only without the file", () => {
  const key = { [`${S}/fallbackKey`]: "initial.issue" };
  const errors = found({ ...NO_FILES, ...key }, "PR-C3L-004");
  assert.deepEqual(
    errors.map(({ severity, step, message }) => [severity, step, message.includes(exact)]),
    [["error", "initial.issue", true]],
  );
  assert.match(found({ ...NO_FILES, ...key }, "FALLBACK-KEY")[0]!.message, /Did you mean "initial_issue"/);
  assert.deepEqual(found(key, "PR-C3L-004", "FALLBACK-KEY", "PROMPT-FALLBACK-USED"), []);
});

/** Nothing in the files was written for built-in prompts. */
const PLAIN: Changes = {
  [`${S}/fallbackKey`]: undefined,
  "agent /runner/flow/prompts/fallbackDir": undefined,
};
const CLOSURE = "prompts/steps/closure/issue/f_default.md";
const KEY = { [`${S}/fallbackKey`]: "initial_issue" };
const STRICT = { "agent /runner/flow/prompts/strict": true };

const FEATURES: readonly [name: string, changes: Changes, missing: readonly string[]][] = [
  ["nothing", {}, ["initial.issue", "continuation.issue"]],
  ["fallbackKey, anywhere", { "registry /steps/continuation.issue/fallbackKey": "continuation_issue" }, []],
  ["userPromptsBase", { "registry /userPromptsBase": "prompts" }, []],
  ["schemasBase", { "registry /schemasBase": "schemas" }, []],
  ["fallbackDir", { "agent /runner/flow/prompts/fallbackDir": "prompts" }, []],
  [
    "fallbackDir, and strict",
    { "agent /runner/flow/prompts/fallbackDir": "prompts", ...STRICT },
    ["initial.issue", "continuation.issue", "closure.issue"],
  ],
  ["nothing, and strict", STRICT, ["initial.issue", "continuation.issue", "closure.issue"]],
];
for (const [name, changes, missing] of FEATURES) {
  test(`which missing prompts are errors: ${name} written`, () => {
    const all = { ...NO_FILES, ...PLAIN, ...changes };
    assert.deepEqual(
      found(all, "PR-C3L-004").map(({ step }) => step),
      missing,
    );
    const others = ["initial.issue", "continuation.issue", "closure.issue"].filter(
      (id) => !missing.includes(id),
    );
    assert.deepEqual(
      found(all, "PROMPT-FALLBACK-USED").map(({ step, severity }) => `${severity} ${step}`),
      others.map((id) => `warning ${id}`),
    );
    assert.deepEqual(
      Object.values(load(tree(all)).flow!.steps)
        .filter(({ prompt }) => prompt.file === null)
        .map(({ id }) => id),
      missing,
    );
  });
}

test("a file is said in place of a built-in prompt wherever it is found", () => {
  const { flow, problems } = load(
    tree({
      ...NO_FILES,
      ...KEY,
      [CLOSURE]: "x",
      "agent /runner/flow/prompts/fallbackDir": "more",
      "more/steps/initial/issue/f_default.md": "mine {uv-issue}",
      "more/steps/continuation/issue/f_default.md": "mine {uv-issue}",
    }),
  );
  assert.equal(
    flow?.steps["initial.issue"]?.prompt.file,
    ".agent/iterator/more/steps/initial/issue/f_default.md",
  );
  assert.ok(!problems.some(({ code }) => code === "PROMPT-FALLBACK-USED"));
});

/** A verdict type, and what its built-in prompts say at the first step, at a later one and at the end. */
const VERDICTS: readonly [
  name: string,
  verdict: object,
  file: string,
  first: RegExp,
  later: RegExp,
  end?: RegExp,
][] = [
  [
    "count:iteration",
    { type: "count:iteration", config: { maxIterations: 5 } },
    "count:iteration",
    /^This is the first iteration of 5\./,
    /^This is iteration 3 of 5; 2 remain after it\.\n\n### Iteration 2: initial\.issue\n\nDecided: next \(clear\)/,
    /confirm it only if it is\.\n/,
  ],
  [
    "count:check",
    { type: "count:check", config: { maxChecks: 4 } },
    "count:check",
    /^There will be 4 status checks/,
    /^Status checks so far: 1 of 4\.\n\n### Iteration 2/,
  ],
  [
    "poll:state of an issue",
    { type: "poll:state" },
    "poll:state",
    /^Work on issue 7 until it is settled\./,
    /^Work on issue 7 until it is settled\.\n\n### Iteration 2[^]*Do what is still missing/,
  ],
  [
    "poll:state of a file",
    {
      type: "poll:state",
      config: { resourceType: "file", path: "out/{uv-issue}.txt", targetState: "exists" },
    },
    "poll:state",
    /^Work until the file out\/\{uv-issue\}\.txt is as it should be\./,
    /^Work until the file/,
  ],
  [
    "detect:keyword",
    { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
    "detect:keyword",
    /verified, and only then, write TASK_COMPLETE\./,
    /^This is iteration 3\.\n\n### Iteration 2[^]*write TASK_COMPLETE\./,
  ],
  [
    "detect:structured, fields by name",
    { type: "detect:structured", config: { signalType: "all-done", requiredFields: ["summary"] } },
    "detect:structured",
    /```all-done\n\{\n {2}"summary": "<summary>"\n\}\n```/,
    /### Iteration 2[^]*```all-done\n/,
  ],
  [
    "detect:structured, fields with values",
    { type: "detect:structured", config: { signalType: "all-done", requiredFields: { ok: true, n: 2 } } },
    "detect:structured",
    /```all-done\n\{\n {2}"ok": true,\n {2}"n": 2\n\}\n```/,
    /```all-done\n/,
  ],
  [
    "detect:graph",
    { type: "detect:graph" },
    "detect:graph",
    /^The step is initial\.issue\.\nIssue Initial Prompt\nReads the issue\.\nDo what it is there for/,
    /^The step is continuation\.issue\.\nIssue Continuation Prompt\n\n### Iteration 2/,
  ],
  [
    "meta:composite, as its first",
    {
      type: "meta:composite",
      config: {
        operator: "or",
        conditions: [
          { type: "detect:keyword", config: { verdictKeyword: "OVER" } },
          { type: "count:iteration", config: { maxIterations: 3 } },
        ],
      },
    },
    "detect:keyword",
    /write OVER\./,
    /write OVER\./,
  ],
  [
    "meta:custom",
    { type: "meta:custom", config: { handlerPath: "over.mjs" } },
    "meta:custom",
    /^Do the work you are here for, and check it/,
    /^This is iteration 3\.\n\n### Iteration 2[^]*Go on from there/,
  ],
];
const LAST = { step: "initial.issue", iteration: 2, label: "next", reason: "clear", text: "", payload: {} };

for (const [name, verdict, file, first, later, end] of VERDICTS) {
  test(`without file and key a step is asked by its verdict: ${name}`, () => {
    const { flow } = load(
      tree({
        ...NO_FILES,
        "agent /runner/verdict": verdict,
        "registry /entryStepMapping": undefined,
        "registry /entryStep": "initial.issue",
        [`${S}/fallbackKey`]: undefined,
        [`${S}/description`]: "Reads the issue.",
      }),
    );
    assert.equal(flow?.steps["initial.issue"]?.prompt.file, `built-in:${file}`);
    const second = { iterations: 3, last: LAST };
    assert.match(said(flow, "initial.issue", { iterations: 1 }), first);
    assert.doesNotMatch(said(flow, "initial.issue", second), /### Iteration/);
    assert.match(said(flow, "continuation.issue", second), later);
    const closing = said(flow, "closure.issue", second);
    assert.match(closing, later.source.startsWith("^The step is") ? /^The step is closure\.issue\./ : later);
    assert.match(closing, end ?? /confirm it only if it is\./);
    assert.doesNotMatch(closing, /close the issue/i);
  });
}

test("the entry is asked as the first step whatever its id", () => {
  const { flow } = load(
    tree({
      ...NO_FILES,
      "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 1 } },
      "registry /validationSteps": {},
      "registry /entryStepMapping": { "count:iteration": "consider" },
      "registry /steps": {
        consider: { stepId: "consider", stepKind: "closure", c2: "consider", c3: "default" },
      },
    }),
  );
  assert.match(said(flow, "consider", { iterations: 1 }), /^This is the first iteration of 1\./);
});

test("inputs of a step are told, and values of settings stay what they are", () => {
  const { flow } = load(
    tree({
      ...NO_FILES,
      "agent /runner/verdict": {
        type: "detect:structured",
        config: { signalType: "{uv-issue} $& {input_text}", requiredFields: ["{uv-iteration}"] },
      },
      "registry /entryStepMapping": undefined,
      "registry /entryStep": "initial.issue",
      "registry /steps/continuation.issue/inputs": { plan: { from: "initial.issue.approach" } },
      "registry /steps/continuation.issue/uvVariables": ["issue"],
    }),
  );
  const words = said(flow, "continuation.issue", {
    handoff: { "initial.issue": { approach: "{uv-issue}" } },
  });
  assert.match(
    words,
    /```\{uv-issue\} \$& \{input_text\}\n\{\n {2}"\{uv-iteration\}": "<\{uv-iteration\}>"\n\}/,
  );
  assert.match(words, /- issue: 7\n- plan: \{uv-issue\}$/);
});

const SYSTEMS: readonly [name: string, changes: Changes, file: string | null, text: RegExp, codes: string][] =
  [
    ["the file", {}, ".agent/iterator/prompts/system.md", /^You are iterator\. The work/, ""],
    [
      "a missing file is an error",
      { "prompts/system.md": undefined },
      null,
      /^You are Iterator Agent\. Autonomous/,
      "PR-SYSTEM",
    ],
    [
      "a sentence of our own where no file is named",
      { "prompts/system.md": undefined, "agent /runner/flow/systemPromptPath": undefined },
      null,
      /^You are Iterator Agent\. Autonomous/,
      "",
    ],
    [
      "the catalogue's, where an entry names it",
      { "prompts/system.md": undefined, "registry /steps/system/fallbackKey": "system" },
      "built-in:system",
      /^You are iterator, and you work on your own[^]*\nThe work is done when the steps/,
      "PROMPT-FALLBACK-USED",
    ],
    [
      "the catalogue's is not said by a strict agent",
      { "prompts/system.md": undefined, "registry /steps/system/fallbackKey": "system", ...STRICT },
      null,
      /^You are Iterator Agent\./,
      "PR-SYSTEM",
    ],
  ];
for (const [name, changes, file, text, codes] of SYSTEMS) {
  test(`the system prompt: ${name}`, () => {
    const { flow, problems } = load(
      tree({ "registry /steps/system": { stepId: "system", c2: "system", c3: "prompt" }, ...changes }),
    );
    assert.equal(flow?.system.file, file);
    assert.match(composer.system(flow), text);
    assert.equal(
      problems
        .map(({ code }) => code)
        .filter((code) => ["PR-SYSTEM", "PROMPT-FALLBACK-USED"].includes(code))
        .join(" "),
      codes,
    );
  });
}

/** Document 003, 11.3.5, and what the closing action has to do with it. */
const ADAPTED: readonly [name: string, changes: Changes, expected: string][] = [
  ["close", { "agent /runner/integrations/github": { defaultClosureAction: "close" } }, "f_default"],
  [
    "label-only",
    { "agent /runner/integrations/github": { defaultClosureAction: "label-only" } },
    "f_default_label-only",
  ],
  [
    "label-and-close",
    { "agent /runner/integrations/github": { defaultClosureAction: "label-and-close" } },
    "f_default_label-and-close",
  ],
  [
    "label-only, GitHub off",
    { "agent /runner/integrations/github": { enabled: false, defaultClosureAction: "label-only" } },
    "f_default",
  ],
  [
    "label-only takes the place of the step's own adaptation",
    {
      "agent /runner/integrations/github": { defaultClosureAction: "label-only" },
      "registry /steps/closure.issue/adaptation": "own",
    },
    "f_default_label-only",
  ],
  ["the step's own adaptation", { "registry /steps/closure.issue/adaptation": "own" }, "f_default_own"],
  [
    "label-only without such a file: the one without adaptation, not the step's own",
    {
      "agent /runner/integrations/github": { defaultClosureAction: "label-only" },
      "registry /steps/closure.issue/adaptation": "own",
      "prompts/steps/closure/issue/f_default_label-only.md": undefined,
    },
    "f_default",
  ],
];
for (const [name, changes, expected] of ADAPTED) {
  test(`the prompt of a closure: ${name}`, () => {
    const folder = "prompts/steps/closure/issue";
    const files = ["f_default_own", "f_default_label-only", "f_default_label-and-close"];
    const { flow } = load(
      tree({ ...Object.fromEntries(files.map((file) => [`${folder}/${file}.md`, file])), ...changes }),
    );
    assert.equal(flow?.steps["closure.issue"]?.prompt.file, `.agent/iterator/${folder}/${expected}.md`);
    assert.match(flow.steps["initial.issue"]!.prompt.file ?? "", /f_default\.md$/);
  });
}

test("a closure that begins the run is adapted like any other: the action holds for its end too", () => {
  const { flow } = load(
    tree({
      "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 1 } },
      "agent /runner/integrations/github": { defaultClosureAction: "label-only" },
      "registry /entryStepMapping": { "count:iteration": "closure.issue" },
      "prompts/steps/closure/issue/f_default_label-only.md": "label",
    }),
  );
  assert.equal(flow?.steps["closure.issue"]?.prompt.text, "label");
});

test("a missing closure prompt is tried with its adaptation first, then without, before words of our own", () => {
  const { flow } = load(
    tree({
      "agent /runner/integrations/github": { defaultClosureAction: "label-only" },
      [CLOSURE]: undefined,
    }),
  );
  assert.deepEqual(flow?.steps["closure.issue"]?.prompt.tried, [
    ".agent/iterator/prompts/steps/closure/issue/f_default_label-only.md",
    ".agent/iterator/prompts/steps/closure/issue/f_default.md",
  ]);
});

test("a flow of built-in prompts alone runs", async () => {
  const { play } = await import("../../../src/testing/scenario.ts");
  const { flow } = load(
    tree({
      ...NO_FILES,
      ...KEY,
      "registry /validationSteps": {},
      "schema /initial.issue": actionSchema(["next", "repeat"]),
    }),
  );
  const answer = (action: string) => ({ output: { next_action: { action } } });
  const { state } = await play({
    flow: flow!,
    args: { issue: 7, iterateMax: 1 },
    model: [
      { step: "initial.issue", saw: ["Work on issue 7."], ...answer("next") },
      { step: "continuation.issue", saw: ["### Iteration 1: initial.issue"], ...answer("handoff") },
      { step: "closure.issue", saw: ["confirm it only if it is"], ...answer("closing") },
    ],
  });
  assert.deepEqual([state.verdict?.outcome, state.iterations], ["completed", 3]);
});
