/** Agents written for earlier versions: old places and names load to the same flow, and each is reported. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import { hasErrors, type Problem } from "../../src/flow/problem.ts";
import { AGENT_ROWS, REGISTRY_ROWS } from "../../src/load/agent/legacy.ts";
import { VERDICT_TYPES, namesOf } from "../../src/load/agent/verdict-types.ts";
import { tree001, tree002 } from "./documents.ts";
import { AGENT, load, tree, type Changes } from "./world.ts";

const NEW_AGENT = {
  version: "1.11.0",
  name: "iterator",
  displayName: "Iterator",
  description: "Works",
  parameters: AGENT.parameters,
  runner: {
    flow: {
      systemPromptPath: "prompts/system.md",
      prompts: { registry: "steps_registry.json", fallbackDir: "prompts/" },
      defaultModel: "sonnet",
      askUserAutoResponse: "Decide.",
    },
    verdict: { type: "detect:keyword", config: { maxIterations: 7, verdictKeyword: "DONE" } },
    boundaries: {
      allowedTools: ["Read"],
      permissionMode: "acceptEdits",
      sandbox: { enabled: false, network: { mode: "none" } },
    },
    integrations: { github: { enabled: true, labels: { blocked: "x" } } },
    actions: { enabled: true, types: ["issue-action"], outputFormat: "json" },
    execution: { worktree: { enabled: true, root: "../w" }, finalize: { push: true } },
    logging: { directory: "tmp", format: "text" },
  },
};
const { runner: NEW, ...HEAD } = NEW_AGENT;

/** The same agent as version 1.11 wrote it. */
const FLAT = {
  ...HEAD,
  behavior: {
    systemPromptPath: NEW.flow.systemPromptPath,
    defaultModel: NEW.flow.defaultModel,
    askUserAutoResponse: NEW.flow.askUserAutoResponse,
    completionType: "detect:keyword",
    completionConfig: { maxIterations: 7, completionKeyword: "DONE" },
    allowedTools: NEW.boundaries.allowedTools,
    permissionMode: NEW.boundaries.permissionMode,
    sandboxConfig: { network: { mode: "none" } },
    disableSandbox: true,
  },
  prompts: NEW.flow.prompts,
  github: NEW.integrations.github,
  actions: { enabled: true, allowedTypes: ["issue-action"], outputFormat: "json" },
  worktree: NEW.execution.worktree,
  finalize: NEW.execution.finalize,
  logging: NEW.logging,
};

const withAgent = (agent: object, changes: Changes = {}) =>
  load(
    tree({
      ...changes,
      "registry /entryStepMapping": { "detect:keyword": "initial.issue" },
      "agent.json": JSON.stringify(agent, null, 2),
    }),
  );
const oldNames = (problems: readonly Problem[]) =>
  problems.filter(({ code }) => code === "OLD-NAME" || code === "LEGACY-GONE");

test("the flat form of version 1.11 loads to the same flow, with one warning for each old place", () => {
  const now = withAgent(NEW_AGENT);
  const before = withAgent(FLAT);
  assert.deepEqual(
    now.problems.filter(({ severity }) => severity === "error"),
    [],
  );
  assert.deepEqual(before.flow, now.flow);
  assert.deepEqual(
    oldNames(before.problems).map(({ pointer, message }) => [
      pointer,
      /place of "([^"]+)"/.exec(message)?.[1],
    ]),
    [
      ["/behavior/systemPromptPath", "runner.flow.systemPromptPath"],
      ["/behavior/askUserAutoResponse", "runner.flow.askUserAutoResponse"],
      ["/behavior/defaultModel", "runner.flow.defaultModel"],
      ["/behavior/completionType", "runner.verdict.type"],
      ["/behavior/completionConfig", "runner.verdict.config"],
      ["/behavior/allowedTools", "runner.boundaries.allowedTools"],
      ["/behavior/permissionMode", "runner.boundaries.permissionMode"],
      ["/behavior/sandboxConfig", "runner.boundaries.sandbox"],
      ["/behavior/disableSandbox", "runner.boundaries.sandbox.enabled"],
      ["/prompts", "runner.flow.prompts"],
      ["/github", "runner.integrations.github"],
      ["/actions", "runner.actions"],
      ["/worktree", "runner.execution.worktree"],
      ["/finalize", "runner.execution.finalize"],
      ["/logging", "runner.logging"],
      ["/actions/allowedTypes", "runner.actions.types"],
      ["/behavior/completionConfig/completionKeyword", "runner.verdict.config.verdictKeyword"],
    ],
  );
  // Apart from where things stand, the findings are the same.
  const rest = (problems: readonly Problem[]) =>
    problems.filter((one) => !oldNames([one]).length).map(({ code, message }) => `${code} ${message}`);
  assert.deepEqual(rest(before.problems), rest(now.problems));
  assert.ok(before.problems.every(({ pointer }) => !pointer.startsWith("/runner/")));
});

test("runner.completion of version 1.12 loads to the same flow", () => {
  const { verdict, ...runner } = NEW;
  const completion = { type: "keywordSignal", config: { maxIterations: 7, completionKeyword: "DONE" } };
  const before = withAgent({ ...HEAD, runner: { ...runner, completion } });
  assert.deepEqual(before.flow, withAgent(NEW_AGENT).flow);
  assert.deepEqual(
    oldNames(before.problems).map(({ pointer }) => pointer),
    ["/runner/completion", "/runner/completion/config/completionKeyword", "/runner/completion/type"],
  );
  assert.equal(verdict.type, "detect:keyword");
});

for (const type of VERDICT_TYPES) {
  const config = {
    maxIterations: 3,
    maxChecks: 2,
    verdictKeyword: "DONE",
    signalType: "x",
    operator: "or",
    conditions: [{ type: "count:check", config: { maxChecks: 1 } }],
    handlerPath: "x.mjs",
  };
  for (const word of namesOf(type)) {
    test(`the verdict type ${word} means ${type}`, () => {
      const at = (verdict: object) => withAgent({ ...NEW_AGENT, runner: { ...NEW, verdict } });
      const mapped = tree({
        "agent /runner/verdict": { type: word, config },
        "registry /entryStepMapping": { [word]: "initial.issue" },
      });
      assert.equal(load(mapped).flow?.entry, "initial.issue");
      const { flow, problems } = at({ type: word, config });
      assert.deepEqual(flow, at({ type, config }).flow);
      assert.equal(oldNames(problems).length, word === type ? 0 : 1);
    });
  }
}

test("completionKeyword inside a composite is found as well", () => {
  const verdict = (key: string) => ({
    type: "meta:composite",
    config: { operator: "or", conditions: [{ type: "detect:keyword", config: { [key]: "DONE" } }] },
  });
  const at = (key: string) => withAgent({ ...NEW_AGENT, runner: { ...NEW, verdict: verdict(key) } });
  const before = at("completionKeyword");
  assert.deepEqual(before.flow, at("verdictKeyword").flow);
  assert.deepEqual(
    oldNames(before.problems).map(({ pointer }) => pointer),
    ["/runner/verdict/config/conditions/0/config/completionKeyword"],
  );
});

test("renamed keys of the registry load to the same flow", () => {
  const now = tree();
  const file = ".agent/iterator/steps_registry.json";
  const before = now[file]!.replaceAll("validationConditions", "completionConditions")
    .replaceAll("validationSteps", "completionSteps")
    .replaceAll("failurePatterns", "completionPatterns");
  const { flow, problems } = load({ ...now, [file]: before });
  assert.deepEqual(flow, load(now).flow);
  assert.deepEqual(
    problems.map(({ code, pointer }) => [code, pointer]),
    [
      ["OLD-NAME", "/completionPatterns"],
      ["OLD-NAME", "/completionSteps"],
      ["OLD-NAME", "/completionSteps/closure.issue/completionConditions"],
    ],
  );
});

test("later problems point at what the author wrote, with its line", () => {
  const file = ".agent/iterator/steps_registry.json";
  const files = tree({
    "registry /validationSteps/closure.issue/validationConditions": [{ validator: "git-claen" }],
  });
  const before = files[file]!.replaceAll("validationConditions", "completionConditions").replaceAll(
    "validationSteps",
    "completionSteps",
  );
  const found = load({ ...files, [file]: before }).problems.find(({ code }) => code === "CHECK-UNKNOWN");
  assert.equal(found?.pointer, "/completionSteps/closure.issue/completionConditions/0/validator");
  assert.match(before.split("\n")[found.line - 1]!, /git-claen/);

  const wrong = withAgent({ ...FLAT, behavior: { ...FLAT.behavior, permissionMode: "yolo" } });
  const mode = wrong.problems.find(({ code }) => code === "AC-VALID-001");
  assert.equal(mode?.pointer, "/behavior/permissionMode");
  assert.match(mode.message, /^behavior\.permissionMode is "yolo"/);
});

test("an old place beside the new one is passed over", () => {
  const { flow, problems } = withAgent({ ...NEW_AGENT, behavior: { defaultModel: "haiku" } });
  assert.equal(flow?.steps["initial.issue"]?.model, "sonnet");
  assert.match(oldNames(problems)[0]!.message, /also set/);
});

test("what has no equivalent is said to have none", () => {
  const { flow, problems } = withAgent(
    {
      ...HEAD,
      behavior: {
        completionType: "project",
        completionConfig: { terminalPhases: ["done"] },
        preCloseValidation: { enabled: true },
        sandbox: 1,
      },
    },
    { "registry /entryStep": "initial.issue" },
  );
  const gone = problems.filter(({ code }) => code === "LEGACY-GONE").map(({ pointer }) => pointer);
  assert.deepEqual(gone, [
    "/behavior/preCloseValidation",
    "/behavior/completionConfig/terminalPhases",
    "/behavior/completionType",
  ]);
  // Not the default, which would call a run complete after so many visits.
  assert.equal(flow?.settings.verdict.type, "detect:graph");
  const unknown = problems.find(({ code }) => code === "UNKNOWN-KEY");
  assert.equal(unknown?.pointer, "/behavior/sandbox");
});

for (const row of [...AGENT_ROWS, ...REGISTRY_ROWS]) {
  if (row.kind === "emptied") continue;
  test(`${row.at} is ${row.kind === "moved" ? `now ${row.to}` : "no more"}, and that is one warning`, () => {
    const isRegistry = REGISTRY_ROWS.includes(row);
    const pointer = `/${row.at.replace("*", "0").replaceAll(".", "/")}`;
    const value = row.kind === "word" ? row.words[0] : row.at.includes("conditions") ? "x" : {};
    // The group around it must not be there in its new place already.
    const [head] = row.at.split(".");
    const files = isRegistry
      ? tree({
          [`registry /${row.kind === "moved" ? row.to.split(".")[0]! : ""}`]: undefined,
          [`registry ${pointer}`]: value,
        })
      : tree({ ...(head !== "runner" && { "agent /runner": undefined }), [`agent ${pointer}`]: value });
    const found = oldNames(load(files).problems).filter((problem) => problem.pointer === pointer);
    assert.equal(found.length, 1);
    if (row.kind === "moved") assert.ok(found[0]!.message.includes(`"${row.to.replace("*", "0")}"`));
  });
}

/** Something is found, in words; what cannot become a flow has an error. */
function assertReported({ flow, problems }: { flow: Flow | null; problems: readonly Problem[] }): void {
  assert.ok(problems.length > 0);
  for (const { message, fix } of problems) assert.ok(message !== "" && fix !== "");
  assert.ok(flow !== null || hasErrors(problems));
}

test("odd values at old places are reported, not thrown", () => {
  const ODD = [
    null,
    1,
    "x",
    [],
    [{}],
    { a: 1 },
    { completionType: [] },
    { completionConfig: { conditions: {} } },
  ];
  for (const value of ODD) {
    for (const key of ["behavior", "prompts", "actions", "completion"]) {
      assertReported(withAgent({ ...HEAD, [key]: value }));
      assertReported(withAgent({ ...HEAD, runner: { [key]: value, verdict: value, actions: value } }));
      assertReported(load(tree({ [`registry /completionSteps/${key}`]: value })));
    }
    assertReported(
      load(tree({ "registry /completionSteps": value, "registry /validationSteps": undefined })),
    );
    for (const edits of [
      { "/steps/s_a8f3": value, "/steps/s_b2c1/iterations": value },
      { "/steps/s_a8f3/check": value, "/steps/s_b2c1/prompt": value },
      { "/steps/s_a8f3/check/onFail": value, "/basePath": value, "/entryStep": value },
    ])
      assertReported(load(tree001(edits), "code-improver"));
    const edits = { "/steps/initial.issue": value, "/steps/continuation.issue/transitions": value };
    assertReported(load(tree002(edits), "issues"));
  }
});
