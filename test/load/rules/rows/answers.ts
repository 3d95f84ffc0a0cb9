/** Rows about steps, gates, schemas and the data that steps hand on. */
import type { Changes } from "../../world.ts";
import { CLOSURE, S, V, conditional, gate, judgedBy, type NotFound, type Row } from "./row.ts";

/** What an answer of the first step may leave out, and what becomes of it. */
const OPTIONAL: readonly (readonly [name: string, gate: object, schema: object, at: string, says: RegExp])[] =
  [
    [
      "the object around the intent",
      {},
      { required: ["analysis"] },
      "/properties/next_action",
      /without "next_action\.action", which then ends the run: "next_action" is not required/,
    ],
    [
      "the intent itself",
      {},
      { "properties/next_action/required": [] },
      "/properties/next_action/properties/action",
      /"action" is not required/,
    ],
    [
      "the intent, for which another is taken that nobody wrote",
      { failFast: false },
      { required: undefined },
      "/properties/next_action",
      /which then counts as "next"/,
    ],
    [
      "the intent, beside a fallback that is never taken",
      { fallbackIntent: "repeat" },
      { required: undefined },
      "/properties/next_action",
      /ends the run/,
    ],
  ];
const answering = (more: object, schema: object): Changes => ({
  [`registry ${S}/structuredGate`]: gate({ handoffFields: ["analysis.understanding"], ...more }),
  ...Object.fromEntries(
    Object.entries(schema).map(([path, value]) => [`schema /initial.issue/${path}`, value as unknown]),
  ),
});

export const FOUND: readonly Row[] = [
  ...OPTIONAL.map(([name, more, schema, at, says]): Row => ({
    code: "GATE-OPTIONAL",
    name,
    changes: answering(more, schema),
    at: `schemas/issue.schema.json /initial.issue${at}`,
    step: "initial.issue",
    says,
  })),
  {
    code: "GATE-FALLBACK-NEVER",
    name: "beside failFast",
    changes: { [`registry ${S}/structuredGate`]: gate({ failFast: true, fallbackIntent: "next" }) },
    at: `steps_registry.json ${S}/structuredGate/fallbackIntent`,
    step: "initial.issue",
    says: /failFast is true/,
  },
  // The registry and its steps.
  {
    code: "SR-LOAD-001",
    name: "no version",
    changes: { "registry /version": undefined },
    at: "steps_registry.json /version",
  },
  {
    code: "SR-LOAD-001",
    name: "no steps",
    changes: { "registry /steps": {}, "registry /entryStepMapping": {} },
    at: "steps_registry.json /steps",
  },
  {
    code: "SR-LOAD-002",
    name: "other agent's registry",
    changes: { "registry /agentId": "reviewer" },
    at: "steps_registry.json /agentId",
  },
  {
    code: "SR-VALID-001",
    name: "closing in a work step",
    changes: { [`registry ${S}/structuredGate/allowedIntents`]: ["next", "closing"] },
    at: `steps_registry.json ${S}/structuredGate/allowedIntents`,
    step: "initial.issue",
  },
  {
    code: "SR-VALID-001",
    name: "no intent at all",
    changes: { [`registry ${S}/structuredGate/allowedIntents/0`]: "nxt" },
    at: `steps_registry.json ${S}/structuredGate/allowedIntents/0`,
    says: /Did you mean "next"/,
  },
  {
    code: "SR-VALID-002",
    name: "no intentField",
    changes: { [`registry ${S}/structuredGate/intentField`]: undefined },
    at: `steps_registry.json ${S}/structuredGate/intentField`,
  },
  {
    code: "SR-VALID-002",
    name: "intentSchemaRef leads to no enum",
    changes: { [`registry ${S}/structuredGate/intentSchemaRef`]: "#/properties/next_action" },
    at: `steps_registry.json ${S}/structuredGate/intentSchemaRef`,
  },
  {
    code: "SR-VALID-002",
    name: "intentSchemaRef is no pointer",
    changes: { [`registry ${S}/structuredGate/intentSchemaRef`]: "next_action.action" },
    at: `steps_registry.json ${S}/structuredGate/intentSchemaRef`,
  },
  {
    code: "SR-VALID-003",
    name: "enum lacks an intent",
    changes: { "schema /initial.issue/properties/next_action/properties/action/enum": ["next"] },
    at: `steps_registry.json ${S}/structuredGate/allowedIntents`,
    says: /"repeat" is allowed but missing/,
  },
  {
    code: "SR-VALID-003",
    name: "enum has one too many",
    changes: {
      "schema /initial.issue/properties/next_action/properties/action/enum": ["next", "repeat", "handoff"],
    },
    at: `steps_registry.json ${S}/structuredGate/allowedIntents`,
    says: /"handoff" is in the enum but not allowed/,
  },
  {
    code: "SR-VALID-004",
    name: "stepId differs from its key",
    changes: { [`registry ${S}/stepId`]: "initial.other" },
    at: `steps_registry.json ${S}/stepId`,
  },
  {
    code: "SR-VALID-004",
    name: "gate without kind",
    changes: {
      [`registry /steps/odd`]: { stepId: "odd", c2: "odd", c3: "odd", structuredGate: gate() },
    },
    at: "steps_registry.json /steps/odd",
    severity: "warning",
  },
  {
    code: "SR-VALID-004",
    name: "transition without target",
    changes: { [`registry ${S}/transitions/next`]: {} },
    at: `steps_registry.json ${S}/transitions/next`,
  },
  {
    code: "SR-VALID-004",
    severity: "warning",
    name: "command outside of a closure",
    changes: { [`registry ${S}/runner`]: { command: "ls" } },
    at: `steps_registry.json ${S}/runner`,
  },
  {
    code: "SR-VALID-004",
    severity: "warning",
    name: "validation with another name",
    changes: { "registry /validationSteps/closure.issue/stepId": "x" },
    at: "steps_registry.json /validationSteps/closure.issue/stepId",
  },
  {
    code: "SR-GATE-003",
    name: "a step without gate among gated ones",
    changes: { "registry /steps/continuation.issue/structuredGate": undefined },
    at: "steps_registry.json /steps/continuation.issue",
    says: /^\[StepFlow\] Flow validation failed\. All Flow steps must define structuredGate and transitions\.\nSteps missing structuredGate: continuation\.issue$/,
  },
  {
    code: "SR-GATE-004",
    name: "a graph without gates",
    changes: {
      [`registry ${S}/structuredGate`]: undefined,
      "registry /steps/continuation.issue/structuredGate": undefined,
      [`registry ${CLOSURE}/structuredGate`]: undefined,
    },
    at: "agent.json /runner/verdict/type",
  },
  {
    code: "SR-GATE-SCHEMA",
    name: "gate without schema",
    changes: { [`registry ${S}/outputSchemaRef`]: undefined },
    at: `steps_registry.json ${S}`,
  },
  {
    code: "GATE-FIELD",
    name: "intentField not in the schema",
    changes: { [`registry ${S}/structuredGate/intentField`]: "next_action.intent" },
    at: `steps_registry.json ${S}/structuredGate/intentField`,
  },
  {
    code: "GATE-FALLBACK",
    name: "fallbackIntent not allowed",
    changes: {
      [`registry ${S}/structuredGate/failFast`]: false,
      [`registry ${S}/structuredGate/fallbackIntent`]: "handoff",
    },
    at: `steps_registry.json ${S}/structuredGate/fallbackIntent`,
  },
  {
    code: "HANDOFF-FIELD",
    name: "handoff field not in the schema",
    changes: { [`registry ${S}/structuredGate/handoffFields`]: ["analysis.approach", "analysis.mood"] },
    at: `steps_registry.json ${S}/structuredGate/handoffFields/1`,
  },
  {
    code: "HANDOFF-KEY",
    name: "keys collide even by their full path",
    changes: { [`registry ${S}/structuredGate/handoffFields`]: ["a.b", "c.b", "x.a_b"] },
    at: `steps_registry.json ${S}/structuredGate/handoffFields`,
  },
  {
    code: "INPUT-SOURCE",
    name: "input from an unknown step",
    changes: { [`registry ${CLOSURE}/inputs`]: { what: { from: "initial.isue.approach" } } },
    at: `steps_registry.json ${CLOSURE}/inputs/what/from`,
    says: /Did you mean "initial\.issue"/,
  },
  {
    code: "INPUT-SOURCE",
    name: "input of an unknown key",
    changes: { [`registry ${CLOSURE}/inputs`]: { what: { from: "initial.issue.aproach" } } },
    at: `steps_registry.json ${CLOSURE}/inputs/what/from`,
    says: /Did you mean "approach"/,
  },
  {
    code: "INPUT-SHADOWED",
    name: "an input with a parameter's name",
    changes: { [`registry ${CLOSURE}/inputs`]: { issue: { from: "initial.issue.approach" } } },
    at: `steps_registry.json ${CLOSURE}/inputs/issue`,
  },
  // Schemas.
  {
    code: "FAILED_SCHEMA_RESOLUTION",
    name: "no schema file",
    changes: { "schemas/issue.schema.json": undefined },
    at: `steps_registry.json ${S}/outputSchemaRef`,
    says: /\.agent\/iterator\/schemas\/issue\.schema\.json/,
  },
  {
    code: "FAILED_SCHEMA_RESOLUTION",
    name: "a reference that is no object",
    changes: { [`registry ${S}/outputSchemaRef`]: "issue.schema.json" },
    at: `steps_registry.json ${S}/outputSchemaRef`,
  },
  {
    code: "SCHEMA_POINTER_ERROR",
    name: "no such schema",
    changes: { [`registry ${S}/outputSchemaRef/schema`]: "#/definitions/none" },
    at: `steps_registry.json ${S}/outputSchemaRef`,
  },
  {
    code: "SCHEMA_POINTER_ERROR",
    name: "a reference that leads nowhere",
    changes: { "schema /initial.issue/properties/analysis": { $ref: "#/definitions/none" } },
    at: "schemas/issue.schema.json /initial.issue/properties/analysis/$ref",
  },
  {
    code: "FAILED_SCHEMA_RESOLUTION",
    name: "a reference to a file that is not there",
    changes: { "schema /closure.issue/properties/summary": { $ref: "none.json#/x" } },
    at: "schemas/issue.schema.json /closure.issue/properties/summary/$ref",
  },
  {
    code: "SCHEMA_CIRCULAR_REFERENCE",
    name: "a circle",
    changes: { "schema /definitions/base": { $ref: "#/definitions/base" } },
    at: "schemas/issue.schema.json /definitions/base/$ref",
  },
  {
    code: "MALFORMED_SCHEMA_IDENTIFIER",
    name: "doubled mark",
    changes: { [`registry ${S}/outputSchemaRef/schema`]: "##/definitions/base" },
    at: `steps_registry.json ${S}/outputSchemaRef`,
  },
  {
    code: "SCHEMA-STEP-ID",
    name: "the const of another step",
    changes: { "schema /closure.issue/properties/stepId": { const: "closure.other" } },
    at: "schemas/issue.schema.json /closure.issue/properties/stepId",
  },
  {
    code: "SCHEMA-STEP-ID-OPEN",
    name: "a const in another schema only",
    changes: { "schema /closure.issue/properties/stepId": { const: "closure.issue" } },
    at: "schemas/issue.schema.json /initial.issue",
    says: /as that of "closure\.issue" does/,
  },
  {
    code: "SCHEMA-UNIQUE",
    name: "objects compared without end",
    changes: {
      "schema /closure.issue/properties/found": {
        type: "array",
        uniqueItems: true,
        items: { type: "object" },
      },
    },
    at: "schemas/issue.schema.json /closure.issue/properties/found",
    says: /at \/properties\/found/,
  },
  // Data on its way.
  {
    code: "DATA-NEVER",
    name: "the first step reads what a later one hands on",
    changes: {
      "registry /steps/continuation.issue/structuredGate/handoffFields": ["stepId"],
      [`registry ${S}/uvVariables`]: ["issue", "continuation_issue_stepId"],
    },
    at: `steps_registry.json ${S}/uvVariables/1`,
    says: /this is the first step of the run/,
    witness: ["initial.issue"],
  },
  {
    code: "DATA-NEVER",
    name: "a step reads what it hands on itself",
    changes: {
      "registry /steps/continuation.issue/structuredGate/handoffFields": ["stepId"],
      "registry /steps/continuation.issue/inputs": { last: { from: "continuation.issue.stepId" } },
      "prompts/steps/continuation/issue/f_default.md": "{uv-last}",
    },
    at: "steps_registry.json /steps/continuation.issue/inputs/last/from",
    witness: ["initial.issue", "continuation.issue"],
  },
  {
    code: "DATA-NEVER",
    name: "a step reads one of two things that it hands on itself",
    changes: {
      "registry /steps/continuation.issue/structuredGate/handoffFields": ["next_action.action", "stepId"],
      "registry /steps/continuation.issue/inputs": { last: { from: "continuation.issue.stepId" } },
      "prompts/steps/continuation/issue/f_default.md": "{uv-last}",
    },
    at: "steps_registry.json /steps/continuation.issue/inputs/last/from",
  },
  {
    code: "HANDOFF-FIELD",
    name: "a member that the items of a list cannot have",
    changes: {
      [`registry ${S}/structuredGate/handoffFields`]: ["found.0.nam"],
      "schema /initial.issue/properties/found": {
        type: "array",
        items: { type: "object", properties: { name: { type: "string" } }, additionalProperties: false },
      },
    },
    at: `steps_registry.json ${S}/structuredGate/handoffFields/0`,
  },
  {
    code: "DATA-NEVER",
    name: "the supplier comes only afterwards",
    changes: {
      [`registry ${CLOSURE}/structuredGate/handoffFields`]: ["stepId"],
      "registry /steps/continuation.issue/uvVariables": ["issue", "closure_issue_stepId"],
    },
    at: "steps_registry.json /steps/continuation.issue/uvVariables/1",
  },
  {
    code: "DATA-SKIPPED",
    name: "a path around the supplier",
    changes: {
      "registry /steps/continuation.issue/structuredGate/handoffFields": ["stepId"],
      [`registry ${CLOSURE}/uvVariables`]: ["issue", "continuation_issue_stepId"],
      ...conditional({
        condition: "approach",
        targets: { quick: "closure.issue", default: "continuation.issue" },
      }),
    },
    at: `steps_registry.json ${CLOSURE}/uvVariables/1`,
    says: /a path to it does not pass through "continuation\.issue"/,
    witness: ["initial.issue", "closure.issue"],
  },
  ...(
    [
      ["a command without command", { type: "command", successWhen: "empty" }, "command"],
      ["a command without successWhen", { type: "command", command: "ls" }, "successWhen"],
      ["a file without path", { type: "file" }, "path"],
      ["semantic without semanticConfig", { type: "semantic" }, "semanticConfig"],
    ] as const
  ).map(([name, validator, key]): Row => ({
    code: "SR-VALID-004",
    name,
    changes: judgedBy(validator),
    at: `steps_registry.json ${V}/${key}`,
    step: "closure.issue",
    says: /is missing: its type is/,
  })),
];

export const NOT_FOUND: readonly NotFound[] = [
  {
    code: "SCHEMA-STEP-ID",
    name: "the step among others",
    changes: { "schema /closure.issue/properties/stepId": { enum: ["closure.issue", "x"] } },
  },
  { code: "SCHEMA-STEP-ID-OPEN", name: "no schema fixes it", changes: {} },
  {
    code: "SCHEMA-UNIQUE",
    name: "strings, and objects with a limit",
    changes: {
      "schema /closure.issue/properties/words": {
        type: "array",
        uniqueItems: true,
        items: { type: "string" },
      },
      "schema /closure.issue/properties/found": {
        type: "array",
        uniqueItems: true,
        maxItems: 9,
        items: { type: "object" },
      },
    },
  },
  ...(["DATA-NEVER", "DATA-SKIPPED"] as const).map((code) => ({
    code,
    name: "a supplier on every way",
    changes: {
      [`registry ${CLOSURE}/uvVariables`]: ["issue", "initial_issue_approach"],
      [`registry ${CLOSURE}/inputs`]: { how: { from: "initial.issue.understanding" } },
      "prompts/steps/closure/issue/f_default.md": "{uv-issue} {uv-how} {uv-initial_issue_approach}",
    },
  })),
  ...[{ default: "at will" }, { default: "at will", required: true }, { required: false }].map((more) => ({
    code: "DATA-NEVER" as const,
    name: `an input with ${JSON.stringify(more)}`,
    changes: {
      [`registry ${S}/inputs`]: { how: { from: "initial.issue.approach", ...more } },
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-how}",
    },
  })),
  {
    code: "GATE-OPTIONAL",
    name: "a fallback that is taken for it",
    changes: answering({ failFast: false, fallbackIntent: "repeat" }, { required: undefined }),
  },
  {
    code: "GATE-OPTIONAL",
    name: "a schema that cannot be read so far",
    changes: answering({}, { required: undefined, anyOf: [{ required: ["next_action"] }] }),
  },
  {
    code: "GATE-FALLBACK-NEVER",
    name: "without failFast",
    changes: answering({ failFast: false, fallbackIntent: "repeat" }, {}),
  },
];
