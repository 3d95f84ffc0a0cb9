/** What transitions, jumps, handoff fields and inputs become in a flow. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, load, tree, type Changes } from "./world.ts";
import { CLOSURE, S, flowWith, stepWith } from "./loaded.ts";

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
