/** A registry of 1,000 steps: what it costs is measured by `lockstep bench`, that it works is tested here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, load, REGISTRY, SCHEMA, tree, type Tree } from "./world.ts";

const STEPS = 1_000;

/** A chain of work steps with a closure at the end, each with a prompt, a schema and a gate of its own. */
function large(change: (step: { [key: string]: unknown }, index: number) => void = () => {}): Tree {
  const steps: { [id: string]: unknown } = {};
  const schema: { [id: string]: unknown } = { ...SCHEMA };
  const prompts: { [path: string]: string } = {};
  for (let index = 0; index < STEPS - 1; index++) {
    const id = `initial.s${index}`;
    const target = index === STEPS - 2 ? "closure.issue" : `initial.s${index + 1}`;
    const step: { [key: string]: unknown } = {
      ...REGISTRY.steps["continuation.issue"],
      stepId: id,
      c2: "initial",
      c3: `s${index}`,
      outputSchemaRef: { file: "issue.schema.json", schema: id },
      transitions: { next: { target }, repeat: { target: id }, handoff: { target: "closure.issue" } },
    };
    change(step, index);
    steps[id] = step;
    schema[id] = { allOf: [{ $ref: "#/definitions/base" }], ...answerOf("next", "repeat", "handoff") };
    prompts[`prompts/steps/initial/s${index}/f_default.md`] =
      "Work on {uv-issue} in iteration {uv-iteration}.";
  }
  return tree({
    "registry /steps": { ...steps, "closure.issue": REGISTRY.steps["closure.issue"] },
    "registry /entryStepMapping/detect:graph": "initial.s0",
    "schemas/issue.schema.json": JSON.stringify(schema),
    ...prompts,
  });
}

const problemsOf = (files: Tree) => load(files).problems.length;

test("a registry of 1,000 steps loads without a problem", () => {
  assert.ok(problemsOf(large()) <= 1);
});

test("a thousand mistakes are all found", () => {
  const broken = large((step, index) => {
    step.transitions = {
      next: { target: `initial.s${index}x` },
      repeat: { target: null },
      handoff: { target: "closure.isue" },
    };
    step.uvVariables = ["isue"];
  });
  assert.ok(problemsOf(broken) > STEPS);
});

test("a thousand jumps to anywhere are followed", () => {
  const jumps = large((step) => {
    const gate = step.structuredGate as { [key: string]: unknown };
    step.structuredGate = { ...gate, allowedIntents: ["next", "repeat", "jump"], targetField: "stepId" };
  });
  assert.ok(problemsOf(jumps) >= STEPS - 1);
});

test("a thousand values handed on are found by who reads them later, and missed by who reads them earlier", () => {
  const handing = (early: boolean) =>
    large((step, index) => {
      const gate = step.structuredGate as { [key: string]: unknown };
      const from = early ? index + 1 : index - 1;
      step.structuredGate = { ...gate, handoffFields: ["stepId"] };
      if (from >= 0 && from < STEPS - 1)
        step.uvVariables = ["issue", "iterateMax", `initial_s${from}_stepId`];
    });
  assert.ok(problemsOf(handing(false)) <= 1);
  assert.ok(problemsOf(handing(true)) >= STEPS - 2);
});

/** Files that would keep a rule busy for hours if each finding looked through its whole file again. */
const lines = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join("\n");
const MANY = 20_000;
const CROWDED: readonly (readonly [name: string, files: Tree, code: string])[] = [
  [
    "placeholders of a prompt",
    tree({ "prompts/steps/initial/issue/f_default.md": lines(MANY, (index) => `{uv-x${index}}`) }),
    "PR-RESOLVE-005",
  ],
  [
    "names and blocks of a failure prompt",
    tree({
      "prompts/steps/retry/issue/f_failed_git-dirty.md": lines(MANY, (index) => `{{x${index}}} {{/eech}}`),
    }),
    "FAILURE-NAME",
  ],
  [
    "stars in the name of a tool",
    tree({
      "agent /runner/boundaries/allowedTools": [`${"*e".repeat(MANY)}x`, " ".repeat(1_000_000)],
    }),
    "TOOL-UNKNOWN",
  ],
  [
    "keys that stand twice",
    tree({ "agent.json": `{ ${lines(MANY, () => '"name": "iterator",')} "x": 1 }` }),
    "DUPLICATE-KEY",
  ],
];

for (const [name, files, code] of CROWDED) {
  test(`many ${name} are looked at in one pass`, () => {
    assert.ok(load(files).problems.some((problem) => problem.code === code));
  });
}
