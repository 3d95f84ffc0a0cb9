import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
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

/** The best of a few, since the machine may be busy with something else. */
function measure(files: Tree, rounds = 5): { readonly ms: number; readonly problems: number } {
  let ms = Infinity;
  let problems = 0;
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    problems = load(files).problems.length;
    ms = Math.min(ms, performance.now() - from);
  }
  return { ms, problems };
}

test("a registry of 1,000 steps is loaded and checked in well under 150 ms", () => {
  const { ms, problems } = measure(large());
  assert.ok(ms < 150, `${ms.toFixed(1)} ms`);
  assert.ok(problems <= 1, `${problems} problems`);
});

test("a thousand mistakes do not make it slow", () => {
  const broken = large((step, index) => {
    step.transitions = {
      next: { target: `initial.s${index}x` },
      repeat: { target: null },
      handoff: { target: "closure.isue" },
    };
    step.uvVariables = ["isue"];
  });
  const { ms, problems } = measure(broken, 1);
  assert.ok(problems > STEPS);
  assert.ok(ms < 5_000, `${ms.toFixed(1)} ms`);
});

test("a thousand jumps to anywhere do not make it slow", () => {
  const jumps = large((step) => {
    const gate = step.structuredGate as { [key: string]: unknown };
    step.structuredGate = { ...gate, allowedIntents: ["next", "repeat", "jump"], targetField: "stepId" };
  });
  const { ms } = measure(jumps);
  assert.ok(ms < 300, `${ms.toFixed(1)} ms`);
});
