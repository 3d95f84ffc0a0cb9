/** Rows about entries, transitions and the ways through a flow. */
import { answerOf, type Changes } from "../../world.ts";
import { CLOSURE, S, conditional, gate, type NotFound, type Row } from "./row.ts";

const verification = (intents: readonly string[], transitions: object) => ({
  stepId: "verification.issue",
  c2: "verification",
  c3: "issue",
  outputSchemaRef: { file: "issue.schema.json", schema: "verification.issue" },
  structuredGate: gate({ allowedIntents: intents }),
  transitions,
});

/** A verification step on the live path. */
const verified = (intents: readonly string[], transitions: object): Changes => ({
  "registry /steps/verification.issue": verification(intents, transitions),
  "registry /steps/initial.issue/transitions/next/target": "verification.issue",
  "schema /verification.issue": answerOf(...intents),
  "prompts/steps/verification/issue/f_default.md": "Verify.",
});

/** `jump` allowed in the first step. */
const jumping = (more: Changes = {}): Changes => ({
  "registry /steps/initial.issue/structuredGate/allowedIntents": ["next", "repeat", "jump"],
  "schema /initial.issue/properties/next_action/properties/action/enum": ["next", "repeat", "jump"],
  ...more,
});

/** A switch on a field that is high or low. */
const switching = (targets: object, more: object = {}): Changes => ({
  ...conditional({ condition: "approach", targets, ...more }),
  "schema /initial.issue/properties/analysis/properties/approach": { enum: ["high", "low"] },
});

export const FOUND: readonly Row[] = [
  {
    code: "SR-ENTRY-001",
    name: "no entry",
    changes: { "registry /entryStepMapping": undefined },
    at: "steps_registry.json ",
    says: /^\[StepFlow\] No entry step configured for completionType "detect:graph"\.\nDefine either "entryStepMapping\.detect:graph" or "entryStep" in steps_registry\.json\.$/,
  },
  {
    code: "SR-ENTRY-002",
    name: "unknown entryStep",
    changes: { "registry /entryStepMapping": undefined, "registry /entryStep": "initial.isue" },
    at: "steps_registry.json /entryStep",
    says: /Did you mean "initial\.issue"/,
  },
  {
    code: "SR-ENTRY-002",
    severity: "warning",
    name: "unknown general entry that is not used",
    changes: { "registry /entryStep": "nowhere" },
    at: "steps_registry.json /entryStep",
  },
  {
    code: "SR-ENTRY-003",
    name: "unknown mapped entry",
    changes: { "registry /entryStepMapping/detect:graph": "nowhere" },
    at: "steps_registry.json /entryStepMapping/detect:graph",
  },
  {
    code: "SR-ENTRY-003",
    severity: "warning",
    name: "unknown entry of another type",
    changes: { "registry /entryStepMapping/poll:state": "nowhere" },
    at: "steps_registry.json /entryStepMapping/poll:state",
  },
  // Routes.
  {
    code: "SR-TRANS-001",
    name: "unknown target",
    changes: { "registry /steps/continuation.issue/transitions/next/target": "closure.isue" },
    at: "steps_registry.json /steps/continuation.issue/transitions/next/target",
    says: /Did you mean "closure\.issue"/,
    witness: ["initial.issue", "continuation.issue", "closure.isue"],
  },
  {
    code: "SR-TRANS-001",
    name: "target without a kind",
    changes: {
      "registry /steps/odd": { c2: "odd", c3: "issue", name: "Odd" },
      "registry /steps/continuation.issue/transitions/next/target": "odd",
    },
    at: "steps_registry.json /steps/continuation.issue/transitions/next/target",
    says: /"odd" has no kind/,
  },
  {
    code: "SR-TRANS-001",
    name: "unknown target of a failed check",
    changes: { "registry /validationSteps/closure.issue/onFailure/target": "nowhere" },
    at: "steps_registry.json /validationSteps/closure.issue/onFailure/target",
    step: "closure.issue",
  },
  {
    code: "SR-TRANS-002",
    name: "next to null",
    changes: { [`registry ${S}/transitions/next/target`]: null },
    at: `steps_registry.json ${S}/transitions/next/target`,
  },
  {
    code: "SR-TRANS-003",
    name: "next without a rule",
    changes: { "registry /steps/continuation.issue/transitions/next": undefined },
    at: "steps_registry.json /steps/continuation.issue/transitions",
  },
  {
    code: "SR-TRANS-004",
    name: "handoff without a rule",
    changes: { "registry /steps/continuation.issue/transitions/handoff": undefined },
    at: "steps_registry.json /steps/continuation.issue/transitions",
  },
  {
    code: "SR-TRANS-005",
    name: "handoff to null",
    changes: { "registry /steps/continuation.issue/transitions/handoff/target": null },
    at: "steps_registry.json /steps/continuation.issue/transitions/handoff/target",
  },
  {
    code: "SR-TRANS-006",
    name: "handoff to an unknown step",
    changes: { "registry /steps/continuation.issue/transitions/handoff/target": "x" },
    at: "steps_registry.json /steps/continuation.issue/transitions/handoff/target",
  },
  {
    code: "SR-TRANS-007",
    name: "escalate without a rule",
    changes: verified(["next", "escalate"], { next: { target: "continuation.issue" } }),
    at: "steps_registry.json /steps/verification.issue/transitions",
  },
  {
    code: "SR-TRANS-008",
    name: "escalate to null",
    changes: verified(["next", "escalate"], {
      next: { target: "continuation.issue" },
      escalate: { target: null },
    }),
    at: "steps_registry.json /steps/verification.issue/transitions/escalate/target",
  },
  {
    code: "SR-TRANS-009",
    name: "escalate to an unknown step",
    changes: verified(["next", "escalate"], {
      next: { target: "continuation.issue" },
      escalate: { target: "x" },
    }),
    at: "steps_registry.json /steps/verification.issue/transitions/escalate/target",
  },
  {
    code: "SR-TRANS-010",
    name: "jump without target and field",
    changes: jumping(),
    at: `steps_registry.json ${S}/structuredGate`,
  },
  {
    code: "SR-TRANS-010",
    name: "dynamic jump without field",
    changes: jumping({
      [`registry ${S}/structuredGate/targetMode`]: "dynamic",
      [`registry ${S}/transitions/jump`]: { target: "closure.issue" },
    }),
    at: `steps_registry.json ${S}/structuredGate`,
  },
  {
    code: "SR-TRANS-010",
    name: "conditional jump without condition",
    changes: jumping({
      [`registry ${S}/structuredGate/targetMode`]: "conditional",
      [`registry ${S}/structuredGate/targetField`]: "next_action.target",
    }),
    at: `steps_registry.json ${S}/structuredGate`,
  },
  {
    code: "TRANS-CONDITION",
    name: "condition on nothing handed on",
    changes: conditional({ condition: "aproach", targets: { default: "continuation.issue" } }),
    at: `steps_registry.json ${S}/transitions/next/condition`,
    says: /Did you mean "approach"/,
  },
  {
    code: "TRANS-DEFAULT",
    name: "no default",
    changes: conditional({ condition: "approach", targets: { quick: "continuation.issue" } }),
    at: `steps_registry.json ${S}/transitions/next/targets`,
  },
  {
    code: "SR-TRANS-001",
    name: "unknown target of a condition",
    changes: conditional({
      condition: "approach",
      targets: { quick: "nowhere", default: "continuation.issue" },
    }),
    at: `steps_registry.json ${S}/transitions/next/targets/quick`,
  },
  {
    code: "TRANS-CLOSING",
    name: "closing without a rule",
    changes: { [`registry ${CLOSURE}/transitions/closing`]: undefined },
    at: `steps_registry.json ${CLOSURE}/transitions`,
  },
  {
    code: "TRANS-UNUSED",
    name: "a rule for an intent that is not allowed",
    changes: { [`registry ${S}/transitions/handoff`]: { target: "closure.issue" } },
    at: `steps_registry.json ${S}/transitions/handoff`,
  },
  {
    code: "TRANS-UNUSED",
    name: "a target of closing",
    changes: { [`registry ${CLOSURE}/transitions/closing/target`]: "initial.issue" },
    at: `steps_registry.json ${CLOSURE}/transitions/closing`,
  },
  {
    code: "TRANS-REPEAT",
    name: "repeat without a rule",
    changes: { [`registry ${S}/transitions/repeat`]: undefined },
    at: `steps_registry.json ${S}/transitions`,
  },
  {
    code: "FLOW-CYCLE",
    name: "a circle of work steps",
    changes: { "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue" },
    at: `steps_registry.json ${S}`,
    says: /"initial\.issue", "continuation\.issue" lead only to each other/,
    witness: ["initial.issue", "continuation.issue", "initial.issue"],
  },
  {
    code: "FLOW-NO-END",
    name: "a step that leads into a trap only",
    changes: {
      "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" },
      [`registry ${S}/transitions/next/target`]: "initial.trap",
    },
    at: `steps_registry.json ${S}`,
    witness: ["initial.issue", "initial.trap"],
  },
  {
    code: "FLOW-NO-END",
    name: "two steps that lead into a trap only: the first is named, the other is counted",
    changes: {
      "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" },
      "registry /steps/continuation.issue/transitions/handoff/target": "initial.trap",
    },
    at: `steps_registry.json ${S}`,
    says: /The step "initial\.issue" has no path .* The same applies to 1 more\./,
    witness: ["initial.issue", "continuation.issue", "initial.trap"],
  },
  {
    code: "FLOW-DEAD-END",
    name: "a step that can only abort",
    changes: {
      "registry /steps/initial.trap": {
        ...trap(),
        stepId: "initial.trap",
        structuredGate: gate({ allowedIntents: ["abort"] }),
        transitions: {},
      },
      ...conditional({
        condition: "approach",
        targets: { odd: "initial.trap", default: "continuation.issue" },
      }),
    },
    at: "steps_registry.json /steps/initial.trap",
    says: /it can only give "abort"/,
    witness: ["initial.issue", "initial.trap"],
  },
  {
    code: "FLOW-LIVELOCK",
    name: "two steps that only repeat each other",
    changes: {
      ...Object.fromEntries(
        (["a", "b"] as const).map((name) => [
          `registry /steps/initial.${name}`,
          {
            ...trap(),
            stepId: `initial.${name}`,
            structuredGate: gate({ allowedIntents: ["repeat"] }),
            transitions: { repeat: { target: name === "a" ? "initial.b" : "initial.a" } },
          },
        ]),
      ),
      ...conditional({ condition: "approach", targets: { odd: "initial.a", default: "continuation.issue" } }),
    },
    at: "steps_registry.json /steps/initial.a",
    witness: ["initial.issue", "initial.a", "initial.b", "initial.a"],
  },
  {
    code: "FLOW-JUMP-TRAP",
    name: "a jump to anywhere, with a trap among the steps",
    changes: jumping({
      [`registry ${S}/structuredGate/targetField`]: "next_action.target",
      "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" },
    }),
    at: `steps_registry.json ${S}/structuredGate/targetField`,
    says: /can lead to "initial\.trap"/,
    witness: ["initial.issue", "initial.trap"],
  },
  {
    code: "FLOW-JUMP-TARGET",
    name: "a jump that the schema leads nowhere",
    changes: jumping({
      [`registry ${S}/structuredGate/targetField`]: "next_action.target",
      "schema /initial.issue/properties/next_action/properties/target": {
        enum: ["continuation.issue", "closure.isue"],
      },
    }),
    at: "schemas/issue.schema.json /initial.issue/properties/next_action/properties/target",
    says: /Did you mean "closure\.issue"/,
    witness: ["initial.issue", "closure.isue"],
  },
  {
    code: "FLOW-CYCLE",
    name: "a trap behind the entry",
    changes: {
      "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" },
      ...conditional({
        condition: "approach",
        targets: { odd: "initial.trap", default: "continuation.issue" },
      }),
    },
    at: "steps_registry.json /steps/initial.trap",
    witness: ["initial.issue", "initial.trap", "initial.trap"],
  },
  {
    code: "FLOW-UNREACHABLE",
    name: "a step nothing leads to",
    changes: { "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" } },
    at: "steps_registry.json /steps/initial.trap",
  },
  {
    code: "FLOW-NEXT-CLOSURE",
    name: "next into a closure",
    changes: { "registry /steps/continuation.issue/transitions/next/target": "closure.issue" },
    at: "steps_registry.json /steps/continuation.issue/transitions/next",
  },
  {
    code: "TRANS-UNUSED",
    name: "a case that the schema does not allow",
    changes: switching({ hgih: "initial.issue", low: "continuation.issue", default: "continuation.issue" }),
    at: `steps_registry.json ${S}/transitions/next/targets/hgih`,
    step: "initial.issue",
    says: /"hgih" of "next".*the schema allows high, low in "analysis\.approach".*Did you mean "high"\?/,
  },
  {
    code: "TRANS-BOTH",
    name: "a target beside a condition",
    changes: switching(
      { high: "initial.issue", default: "continuation.issue" },
      { target: "continuation.issue" },
    ),
    at: `steps_registry.json ${S}/transitions/next/condition`,
    step: "initial.issue",
    says: /has "target" and "condition"; only "target" is read/,
  },
  {
    code: "TRANS-BOTH",
    name: "a target of null beside a condition",
    changes: switching({ high: "initial.issue", default: "continuation.issue" }, { target: null }),
    at: `steps_registry.json ${S}/transitions/next/target`,
    step: "initial.issue",
    says: /has "condition" and "target"; only "condition" is read/,
  },
  {
    code: "TRANS-BOTH",
    name: "a target beside targets",
    changes: conditional({ target: "continuation.issue", targets: { high: "initial.issue" } }),
    at: `steps_registry.json ${S}/transitions/next/targets`,
    step: "initial.issue",
  },
  {
    code: "FLOW-HANDOFF-WORK",
    name: "handoff to work",
    changes: { "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue" },
    at: "steps_registry.json /steps/continuation.issue/transitions/handoff",
  },
];

function trap() {
  return {
    name: "Trap",
    c2: "initial",
    c3: "issue",
    outputSchemaRef: { file: "issue.schema.json", schema: "initial.issue" },
    structuredGate: gate(),
    transitions: { next: { target: "initial.trap" }, repeat: { target: "initial.trap" } },
  };
}

export const NOT_FOUND: readonly NotFound[] = [
  {
    code: "TRANS-REPEAT",
    name: "repeat to another step",
    changes: { [`registry ${S}/transitions/repeat/target`]: "continuation.issue" },
  },
  {
    code: "FLOW-CYCLE",
    name: "a circle with a way out",
    changes: { "registry /steps/continuation.issue/transitions/next/target": "initial.issue" },
  },
  {
    code: "FLOW-CYCLE",
    name: "a circle that a count ends",
    changes: {
      "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
      "registry /entryStep": "initial.issue",
      "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue",
    },
  },
  { code: "FLOW-NO-END", name: "a step that ends by way of another", changes: {} },
  {
    code: "FLOW-DEAD-END",
    name: "abort beside another intent",
    changes: { [`registry ${S}/structuredGate/allowedIntents`]: ["next", "repeat", "abort"] },
  },
  {
    code: "FLOW-LIVELOCK",
    name: "repeat beside a way on",
    changes: { [`registry ${S}/transitions/repeat/target`]: "initial.issue" },
  },
  {
    code: "FLOW-JUMP-TRAP",
    name: "a jump whose enum leaves the trap out",
    changes: jumping({
      [`registry ${S}/structuredGate/targetField`]: "next_action.target",
      "schema /initial.issue/properties/next_action/properties/target": { enum: ["continuation.issue"] },
      "registry /steps/initial.trap": { ...trap(), stepId: "initial.trap" },
    }),
  },
  {
    code: "FLOW-JUMP-TARGET",
    name: "a jump among steps that exist",
    changes: jumping({
      [`registry ${S}/structuredGate/targetField`]: "next_action.target",
      "schema /initial.issue/properties/next_action/properties/target": { enum: ["continuation.issue"] },
    }),
  },
  {
    code: "FLOW-CYCLE",
    name: "a circle that a keyword ends",
    changes: {
      "agent /runner/verdict": { type: "detect:keyword", config: { verdictKeyword: "ALL_DONE" } },
      "registry /entryStep": "initial.issue",
      "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue",
    },
  },
  {
    code: "FLOW-NEXT-CLOSURE",
    name: "a verification step whose next is the closure",
    changes: verified(["next", "repeat"], {
      next: { target: "closure.issue" },
      repeat: { target: "continuation.issue" },
    }),
  },
  {
    code: "TRANS-UNUSED",
    name: "cases that the schema allows",
    changes: switching({ high: "initial.issue", low: "continuation.issue", default: "continuation.issue" }),
  },
  {
    code: "TRANS-UNUSED",
    name: "cases of a field whose values are not listed",
    changes: conditional({
      condition: "approach",
      targets: { a: "initial.issue", default: "continuation.issue" },
    }),
  },
  {
    code: "TRANS-BOTH",
    name: "a condition alone",
    changes: switching({ high: "initial.issue", default: "continuation.issue" }),
  },
];
