/** What validators, conditions and their failures become in a flow. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandCheck, Flow } from "../../src/flow/flow.ts";
import { parseSuccess } from "../../src/load/registry/guards.ts";
import type { Changes } from "./world.ts";
import { CLOSURE, VALIDATION, flowWith, stepWith } from "./loaded.ts";

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
