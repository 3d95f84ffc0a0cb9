import assert from "node:assert/strict";
import { test } from "node:test";
import type { Problem } from "../../src/flow/problem.ts";
import { CODES, type Code } from "../../src/load/codes.ts";
import { answerOf, load, tree, type Changes } from "./world.ts";

/** One change to the good agent, and the one finding it must bring. `at` is the file and the JSON pointer. */
type Row = {
  readonly code: Code;
  readonly severity?: Problem["severity"];
  readonly name: string;
  readonly changes: Changes;
  readonly at: string;
  readonly step?: string | null;
  readonly says?: RegExp;
  readonly witness?: readonly string[];
};

const S = "/steps/initial.issue";
const CLOSURE = "/steps/closure.issue";
const gate = (more: { readonly [key: string]: unknown } = {}) => ({
  allowedIntents: ["next", "repeat"],
  intentSchemaRef: "#/properties/next_action/properties/action",
  intentField: "next_action.action",
  ...more,
});
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
const conditional = (rule: object): Changes => ({ [`registry ${S}/transitions/next`]: rule });

const ROWS: readonly Row[] = [
  // Files.
  {
    code: "AC-SERVICE-001",
    name: "no agent.json",
    changes: { "agent.json": undefined },
    at: "agent.json ",
    says: /\.agent\/iterator\/agent\.json/,
  },
  {
    code: "AC-SERVICE-002",
    name: "broken agent.json",
    changes: { "agent.json": '{\n  "name": ,\n}' },
    at: "agent.json ",
    says: /not valid JSON/,
  },
  {
    code: "AC-SERVICE-002",
    name: "broken registry",
    changes: { "steps_registry.json": "{" },
    at: "steps_registry.json ",
  },
  {
    code: "AC-SERVICE-002",
    name: "broken schema file",
    changes: { "schemas/issue.schema.json": "{ nope" },
    at: "schemas/issue.schema.json ",
    step: "initial.issue",
  },
  {
    code: "AC-SERVICE-004",
    name: "no registry",
    changes: { "steps_registry.json": undefined },
    at: "steps_registry.json ",
  },
  {
    code: "AC-SERVICE-004",
    name: "registry outside of the project",
    changes: { "agent /runner/flow/prompts/registry": "../../../x.json" },
    at: "../x.json ",
  },
  {
    code: "DIALECT",
    name: "gates beside check prompts",
    changes: { "registry /basePath": "prompts" },
    at: `steps_registry.json ${S}/structuredGate`,
    says: /basePath at \/basePath.*check prompts.*"structuredGate" at \/steps\/initial\.issue\/structuredGate/,
  },
  {
    code: "DIALECT",
    name: "handoff beside complete",
    changes: { [`registry ${S}/structuredGate/allowedIntents`]: ["next", "complete"] },
    at: "steps_registry.json /steps/continuation.issue/structuredGate/allowedIntents",
    says: /"complete" at .*complete intent.*"handoff" at /,
  },
  {
    code: "DIALECT",
    name: "no such dialect",
    changes: { "registry /dialect": "gates" },
    at: "steps_registry.json /dialect",
    says: /Did you mean "gate"/,
  },

  {
    code: "AC-SERVICE-003",
    name: "prompts outside of the project",
    changes: { "registry /userPromptsBase": "/etc/prompts" },
    at: "steps_registry.json /userPromptsBase",
  },

  // agent.json.
  {
    code: "AC-VALID-001",
    name: "wrong type",
    changes: { "agent /runner/boundaries/allowedTools": "Read" },
    at: "agent.json /runner/boundaries/allowedTools",
    says: /must be a list/,
  },
  {
    code: "AC-VALID-001",
    name: "wrong word",
    changes: { "agent /runner/boundaries/permissionMode": "acceptEdit" },
    at: "agent.json /runner/boundaries/permissionMode",
    says: /Did you mean "acceptEdits"/,
  },
  {
    code: "AC-VALID-001",
    name: "no runner",
    changes: { "agent /runner": undefined },
    at: "agent.json /runner",
    says: /runner is missing/,
  },
  {
    code: "AC-VALID-001",
    severity: "warning",
    name: "no displayName",
    changes: { "agent /displayName": undefined },
    at: "agent.json /displayName",
  },
  { code: "AC-VALID-001", name: "not an object", changes: { "agent.json": "[]" }, at: "agent.json " },
  {
    code: "AC-VALID-001",
    name: "maxIterations below 1",
    changes: { "agent /runner/verdict/config/maxIterations": 0 },
    at: "agent.json /runner/verdict/config/maxIterations",
  },
  {
    code: "AC-VALID-001",
    name: "broken pattern of a parameter",
    changes: { "agent /parameters/issue/validation": { pattern: "(" } },
    at: "agent.json /parameters/issue/validation/pattern",
  },
  {
    code: "AC-VALID-002",
    name: "keyword without keyword",
    changes: { "agent /runner/verdict/type": "detect:keyword" },
    at: "agent.json /runner/verdict/config/verdictKeyword",
  },
  {
    code: "AC-VALID-002",
    name: "file without path",
    changes: {
      "agent /runner/verdict": {
        type: "poll:state",
        config: { resourceType: "file", targetState: "exists" },
      },
    },
    at: "agent.json /runner/verdict/config/path",
  },
  {
    code: "AC-VALID-002",
    name: "composite child without its setting",
    changes: {
      "agent /runner/verdict": {
        type: "meta:composite",
        config: { operator: "or", conditions: [{ type: "count:check", config: {} }] },
      },
    },
    at: "agent.json /runner/verdict/config/conditions/0/config/maxChecks",
  },
  {
    code: "AC-VERDICT-010",
    name: "graph inside a composite",
    changes: {
      "agent /runner/verdict": {
        type: "meta:composite",
        config: { operator: "or", conditions: [{ type: "detect:graph" }] },
      },
    },
    at: "agent.json /runner/verdict/config/conditions/0/type",
  },
  {
    code: "LEGACY-GONE",
    name: "a setting that is no more",
    changes: { "agent /behavior": { preCloseValidation: { enabled: true } } },
    at: "agent.json /behavior/preCloseValidation",
  },
  { code: "AC-NAME", name: "other name", changes: { "agent /name": "other" }, at: "agent.json /name" },
  {
    code: "OLD-NAME",
    name: "former verdict type",
    changes: { "agent /runner/verdict/type": "stepMachine" },
    at: "agent.json /runner/verdict/type",
    says: /"detect:graph"/,
  },
  {
    code: "UNKNOWN-KEY",
    name: "misspelled key",
    changes: { "agent /runner/flow/defaultModle": "opus" },
    at: "agent.json /runner/flow/defaultModle",
    says: /Did you mean "defaultModel"/,
  },
  {
    code: "UNKNOWN-KEY",
    name: "misspelled key of a step",
    changes: { [`registry ${S}/uvVariable`]: [] },
    at: `steps_registry.json ${S}/uvVariable`,
    step: "initial.issue",
  },
  {
    code: "PR-SYSTEM",
    name: "no system prompt",
    changes: { "prompts/system.md": undefined },
    at: "agent.json /runner/flow/systemPromptPath",
  },
  {
    code: "PR-RESOLVE-005",
    severity: "warning",
    name: "unknown placeholder in the system prompt",
    changes: { "prompts/system.md": "{uv-issue}" },
    at: "agent.json /runner/flow/systemPromptPath",
  },
  ...(
    [
      [
        "/runner/boundaries/sandbox",
        { excludedCommands: ["docker"] },
        "/runner/boundaries/sandbox/excludedCommands",
      ],
      [
        "/runner/boundaries/sandbox",
        { allowUnsandboxedCommands: true },
        "/runner/boundaries/sandbox/allowUnsandboxedCommands",
      ],
      ["/runner/integrations", { github: { labels: { blocked: "x" } } }, "/runner/integrations/github"],
      ["/runner/actions", { enabled: true }],
      ["/runner/execution", { worktree: { enabled: true } }, "/runner/execution/worktree"],
      ["/runner/execution", { finalize: { push: true } }, "/runner/execution/finalize"],
      ["/runner/logging", { directory: "logs" }],
      ["/runner/verdict", { type: "poll:state" }, "/runner/verdict/type"],
      ["/runner/verdict/config/registryPath", "other.json"],
    ] as const
  ).map(([place, value, at = place]): Row => ({
    code: "CONFIG-NOT-ACTED-ON",
    name: at,
    changes: {
      [`agent ${place}`]: value,
      ...(at === "/runner/verdict/type" ? { "registry /entryStep": "initial.issue" } : {}),
    },
    at: `agent.json ${at}`,
  })),
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "condition of a step",
    changes: { [`registry ${S}/condition`]: "args.issue" },
    at: `steps_registry.json ${S}/condition`,
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "fallback of a transition",
    changes: { [`registry ${S}/transitions/next/fallback`]: "closure.issue" },
    at: `steps_registry.json ${S}/transitions/next/fallback`,
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "inline schema of a validation",
    changes: { "registry /validationSteps/closure.issue/outputSchema": {} },
    at: "steps_registry.json /validationSteps/closure.issue/outputSchema",
  },

  // The sandbox.
  {
    code: "SANDBOX-HOST",
    name: "hosts although there is no network",
    changes: { "agent /runner/boundaries/sandbox": { network: { mode: "none", trustedDomains: ["a.org"] } } },
    at: "agent.json /runner/boundaries/sandbox/network/trustedDomains",
  },
  ...[
    "*",
    "*.",
    "*.com",
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "2130706433",
    "app.localhost",
    "localhost.",
    "https://a.org",
    "a.org/path",
    "user@a.org",
    "a.*.org",
    "*a.org",
    "a..org",
    "-a.org",
    "a.org:0",
    "a.org:70000",
    "a b.org",
    "",
    "аpple.com",
    "a.org\0.evil.org",
  ].map((host): Row => ({
    code: "SANDBOX-HOST",
    name: JSON.stringify(host),
    changes: { "agent /runner/boundaries/sandbox": { network: { mode: "custom", trustedDomains: [host] } } },
    at: "agent.json /runner/boundaries/sandbox/network/trustedDomains/0",
  })),
  ...["/", "//", "/.", "~", "~/", "~root/x", "", " ", "a\nb", "/srv/*"].map((path): Row => ({
    code: "SANDBOX-PATH",
    name: JSON.stringify(path),
    changes: { "agent /runner/boundaries/sandbox": { filesystem: { allowedPaths: [path] } } },
    at: "agent.json /runner/boundaries/sandbox/filesystem/allowedPaths/0",
  })),

  // Parameters.
  {
    code: "FORBIDDEN-NAME",
    name: "as a parameter",
    changes: { "agent /parameters/__proto__": { type: "string", cli: "--x", description: "x" } },
    at: "agent.json /parameters/__proto__",
  },
  {
    code: "PARAM-FLAG",
    name: "same flag twice",
    changes: { "agent /parameters/iterateMax/cli": "--issue" },
    at: "agent.json /parameters/iterateMax/cli",
    says: /"issue" and "iterateMax"/,
  },
  {
    code: "PARAM-DEFAULT",
    name: "default of another type",
    changes: { "agent /parameters/iterateMax/default": "500" },
    at: "agent.json /parameters/iterateMax/default",
  },
  {
    code: "PARAM-DEFAULT",
    name: "default out of range",
    changes: { "agent /parameters/iterateMax/validation": { max: 5 } },
    at: "agent.json /parameters/iterateMax/default",
  },
  {
    code: "PARAM-REQUIRED",
    name: "required with a default",
    changes: { "agent /parameters/issue/default": 1 },
    at: "agent.json /parameters/issue/default",
  },
  {
    code: "PARAM-DESCRIPTION",
    name: "no description",
    changes: { "agent /parameters/issue/description": undefined },
    at: "agent.json /parameters/issue",
  },

  {
    code: "PARAM-UNREAD",
    name: "a parameter no prompt reads",
    changes: { "agent /parameters/topic": { type: "string", description: "x", cli: "--topic" } },
    at: "agent.json /parameters/topic",
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
    code: "FORBIDDEN-NAME",
    name: "as a step id",
    changes: { "registry /steps/__proto__": { stepId: "__proto__", c2: "initial", c3: "x" } },
    at: "steps_registry.json /steps/__proto__",
  },
  {
    code: "FORBIDDEN-NAME",
    name: "as a handoff key",
    changes: { [`registry ${S}/structuredGate/handoffFields`]: ["analysis.constructor"] },
    at: `steps_registry.json ${S}/structuredGate/handoffFields`,
  },
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
    says: /all it can give is "abort"/,
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
    at: `steps_registry.json ${S}/structuredGate/targetField`,
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
    code: "FLOW-HANDOFF-WORK",
    name: "handoff to work",
    changes: { "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue" },
    at: "steps_registry.json /steps/continuation.issue/transitions/handoff",
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
    code: "SCHEMA_CIRCULAR_REFERENCE",
    name: "a circle",
    changes: { "schema /definitions/base": { $ref: "#/definitions/base" } },
    at: `steps_registry.json ${S}/outputSchemaRef`,
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
    at: `steps_registry.json ${CLOSURE}/outputSchemaRef`,
  },
  {
    code: "SCHEMA-STEP-ID-OPEN",
    name: "a const in another schema only",
    changes: { "schema /closure.issue/properties/stepId": { const: "closure.issue" } },
    at: `steps_registry.json ${S}/outputSchemaRef`,
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
    at: `steps_registry.json ${CLOSURE}/outputSchemaRef`,
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
    says: /it is the first step of the run/,
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
    name: "the supplier comes only afterwards",
    changes: {
      [`registry ${CLOSURE}/structuredGate/handoffFields`]: ["stepId"],
      "registry /steps/continuation.issue/uvVariables": ["issue", "closure_issue_stepId"],
    },
    at: "steps_registry.json /steps/continuation.issue/uvVariables/1",
  },
  {
    code: "DATA-SKIPPED",
    name: "a way around the supplier",
    changes: {
      "registry /steps/continuation.issue/structuredGate/handoffFields": ["stepId"],
      [`registry ${CLOSURE}/uvVariables`]: ["issue", "continuation_issue_stepId"],
      ...conditional({
        condition: "approach",
        targets: { quick: "closure.issue", default: "continuation.issue" },
      }),
    },
    at: `steps_registry.json ${CLOSURE}/uvVariables/1`,
    says: /a way to it that leaves "continuation\.issue" out/,
    witness: ["initial.issue", "closure.issue"],
  },

  // Prompts and variables.
  {
    code: "UV-FRONT-MATTER",
    name: "another list in the front matter",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        "---\ntitle: x\nuvVariables:\n  - uv-topic\n---\nLook at issue {uv-issue}.",
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    step: "initial.issue",
    says: /"topic" only in the front matter, "issue" only in the registry/,
  },
  {
    code: "PR-INTENT",
    name: "an example answer with a word that is no intent",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        'Issue {uv-issue}.\n{ "next_action": { "reason": "", "action": "next|proceed" } }',
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    says: /"proceed", which there is not/,
  },
  {
    code: "PR-INTENT",
    name: "an intent that this step does not allow",
    changes: {
      "prompts/steps/initial/issue/f_default.md": "Issue {uv-issue}: give the action `next` or `closing`.",
    },
    at: "prompts/steps/initial/issue/f_default.md ",
    says: /"closing", which the step "initial\.issue" does not allow/,
  },
  {
    code: "PR-C3L-004",
    name: "no prompt file",
    changes: { "prompts/steps/initial/issue/f_default.md": undefined },
    at: `steps_registry.json ${S}`,
    says: /\.agent\/iterator\/prompts\/steps\/initial\/issue\/f_default\.md.*No fallback prompt found for key: "issue_initial_default" \(step: initial\.issue\)/,
  },
  {
    code: "FALLBACK-KEY",
    name: "a key that is in no catalogue, beside a missing prompt",
    changes: { "prompts/steps/initial/issue/f_default.md": undefined },
    at: `steps_registry.json ${S}/fallbackKey`,
    says: /"issue_initial_default"/,
  },
  {
    code: "PR-EDITION",
    name: "no failure prompt",
    changes: { "prompts/steps/retry/issue/f_failed_git-dirty.md": undefined },
    at: `steps_registry.json ${CLOSURE}`,
    says: /retry\/issue\/f_failed_git-dirty\.md.*closure\/issue\/f_failed_git-dirty\.md.*initial\/issue\/f_failed_git-dirty\.md.*retry\/issue\/f_failed\.md/,
  },
  {
    code: "PR-RESOLVE-003",
    name: "a variable nobody supplies",
    changes: { [`registry ${S}/uvVariables`]: ["issue_number"] },
    at: `steps_registry.json ${S}/uvVariables/0`,
    says: /Did you mean "issue"/,
  },
  {
    code: "PR-RESOLVE-003",
    name: "a keyword without verdictKeyword",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "completion_keyword"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "PR-RESOLVE-003",
    severity: "warning",
    name: "a variable of another runtime",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "mood"], "registry /runtimeUvVariables": ["mood"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "PR-RESOLVE-005",
    name: "an undeclared placeholder",
    changes: { "prompts/steps/initial/issue/f_default.md": "{uv-isue}" },
    at: `steps_registry.json ${S}/uvVariables`,
    says: /Did you mean "issue"/,
  },
  {
    code: "UV-EARLY",
    name: "completed_iterations in the first step",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "completed_iterations"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-OPTIONAL",
    name: "an optional parameter",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic" },
      [`registry ${S}/uvVariables`]: ["issue", "topic"],
    },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-UNDECLARED",
    name: "a parameter that is read but not declared",
    changes: { "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-iterateMax}" },
    at: `steps_registry.json ${S}/uvVariables`,
  },
  {
    code: "UV-PLAIN",
    name: "a placeholder without uv-",
    changes: { "prompts/steps/initial/issue/f_default.md": "{issue} {{x}} ${y} {input_text}" },
    at: `steps_registry.json ${S}/uvVariables`,
    says: /has \{issue\}, which/,
  },

  // Checks before the end.
  {
    code: "CHECK-UNKNOWN",
    name: "unknown validator",
    changes: { "registry /validationSteps/closure.issue/validationConditions": [{ validator: "git-cleen" }] },
    at: "steps_registry.json /validationSteps/closure.issue/validationConditions/0/validator",
    step: "closure.issue",
    says: /Did you mean "git-clean"/,
  },
  {
    code: "CHECK-PATTERN",
    name: "unknown failure pattern",
    changes: { "registry /failurePatterns": {} },
    at: "steps_registry.json /validators/git-clean/failurePattern",
  },
  {
    code: "CHECK-SUCCESS",
    name: "unknown successWhen",
    changes: { "registry /validators/git-clean/successWhen": "exitCode:zero" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    step: "closure.issue",
  },
  {
    code: "CHECK-SUCCESS",
    name: "broken regex",
    changes: { "registry /validators/git-clean/successWhen": "matches:(" },
    at: "steps_registry.json /validators/git-clean/successWhen",
  },
  {
    code: "CHECK-EXTRACTOR",
    name: "unknown extractor",
    changes: { "registry /validators/git-clean/extractParams/changedFiles": "parseChangedFile" },
    at: "steps_registry.json /validators/git-clean/extractParams/changedFiles",
    says: /Did you mean "parseChangedFiles"/,
  },
  {
    code: "CHECK-EXTRACTOR",
    severity: "warning",
    name: "unknown extractor of an unused validator",
    changes: {
      "registry /validators/other": {
        type: "command",
        command: "ls",
        successWhen: "empty",
        failurePattern: "git-dirty",
        extractParams: { x: "y" },
      },
    },
    at: "steps_registry.json /validators/other/extractParams/x",
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "|| true",
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": "npm test || true",
    },
    at: "steps_registry.json /validators/git-clean/command",
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "| tee",
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": "npm test 2>&1 | tee log.txt",
    },
    at: "steps_registry.json /validators/git-clean/command",
  },
  ...(
    [
      ["; true", "command", "npm test; true", "exitCode:0"],
      ["|| :", "command", "npm test || :", "exitCode:0"],
      ["|| exit 0", "command", "npm test || exit 0", "exitCode:0"],
      ["exit 0 at the end", "command", "npm test\nexit 0", "exitCode:0"],
      ["|| echo", "command", "npm test || echo failed # known", "exitCode:0"],
      ["a pattern for anything", "successWhen", "npm test", "matches:.*"],
    ] as const
  ).map(([name, key, command, successWhen]): Row => ({
    code: "CHECK-CANNOT-FAIL",
    name,
    changes: {
      "registry /validators/git-clean/successWhen": successWhen,
      "registry /validators/git-clean/command": command,
    },
    at: `steps_registry.json /validators/git-clean/${key}`,
  })),
  {
    code: "CHECK-NONE",
    name: "nothing looks at the work",
    changes: {
      "registry /validationSteps": {},
      "registry /validators": {},
      "registry /failurePatterns": {},
    },
    at: `steps_registry.json ${CLOSURE}`,
    witness: ["initial.issue", "continuation.issue", "closure.issue"],
  },
  {
    code: "CHECK-VALIDATOR-UNUSED",
    name: "a validator nobody asks for",
    changes: {
      "registry /validators/tests": {
        type: "command",
        command: "npm test",
        successWhen: "exitCode:0",
        failurePattern: "git-dirty",
      },
    },
    at: "steps_registry.json /validators/tests",
  },
  {
    code: "CHECK-PATTERN-UNUSED",
    name: "a failure pattern nobody names",
    changes: { "registry /failurePatterns/tests-failed": { edition: "failed" } },
    at: "steps_registry.json /failurePatterns/tests-failed",
  },
  {
    code: "CHECK-BORROWED",
    name: "the only validation under another name",
    changes: {
      "registry /validationSteps": {
        "closure.isue": { c2: "retry", c3: "issue", validationConditions: [{ validator: "git-clean" }] },
      },
    },
    at: "steps_registry.json /validationSteps/closure.isue",
    step: "closure.issue",
  },
  {
    code: "CHECK-UNUSED",
    name: "a validation of no closure",
    changes: {
      "registry /validationSteps/closure.isue": {
        c2: "retry",
        c3: "issue",
        validationConditions: [{ validator: "git-clean" }],
      },
    },
    at: "steps_registry.json /validationSteps/closure.isue",
    says: /Did you mean "closure\.issue"/,
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

test("the good agent has no problems", () => {
  const { flow, problems } = load(tree());
  assert.deepEqual(problems, []);
  assert.notEqual(flow, null);
});

for (const row of ROWS) {
  test(`${row.code}: ${row.name}`, () => {
    const { problems } = load(tree(row.changes));
    const [file, pointer] = row.at.split(" ");
    const found = problems.find(
      (problem) => problem.code === row.code && problem.file.endsWith(file!) && problem.pointer === pointer,
    );
    assert.ok(
      found,
      `not found among:\n${problems.map((one) => `${one.code} ${one.file} ${one.pointer}: ${one.message}`).join("\n")}`,
    );
    assert.equal(found.severity, row.severity ?? CODES[row.code].severity);
    if (row.step !== undefined) assert.equal(found.step, row.step);
    if (row.says !== undefined) assert.match(found.message, row.says);
    if (row.witness !== undefined) assert.deepEqual(found.witness, row.witness);
    assert.ok(found.line >= 1 && found.column >= 1 && found.why !== "" && found.fix !== "");
  });
}

/** What looks like a finding and is none: no finding of this code may come of it. */
const INNOCENT: readonly { readonly code: Code; readonly name: string; readonly changes: Changes }[] = [
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
    code: "SANDBOX-HOST",
    name: "hosts that say what they mean",
    changes: {
      "agent /runner/boundaries/sandbox": {
        network: {
          mode: "custom",
          trustedDomains: [
            "registry.npmjs.org",
            "*.github.com",
            "localhost:8080",
            "10.0.0.7:443",
            "xn--bcher-kva.example",
          ],
        },
      },
    },
  },
  {
    code: "SANDBOX-PATH",
    name: "folders beside the project and below the home folder",
    changes: {
      "agent /runner/boundaries/sandbox": {
        filesystem: { allowedPaths: ["../shared", "build", "/srv/cache", "~/.cache/tool"] },
      },
    },
  },
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
  {
    code: "DATA-NEVER",
    name: "an input with a default",
    changes: {
      [`registry ${S}/inputs`]: { how: { from: "initial.issue.approach", default: "at will" } },
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-how}",
    },
  },
  {
    code: "UV-FRONT-MATTER",
    name: "the same list, in brackets",
    changes: {
      "prompts/steps/initial/issue/f_default.md": '---\nuvVariables: ["uv-issue"]\n---\n{uv-issue}',
    },
  },
  {
    code: "UV-FRONT-MATTER",
    name: "front matter without a list",
    changes: { "prompts/steps/initial/issue/f_default.md": "---\ntitle: x\n---\n{uv-issue}" },
  },
  ...[
    "Take action: call `closing` time on it.",
    'The action "commit" of the workflow; the button "next".',
    "Never give the intent `closing` here.",
    "Decide the action: `next`, `repeat`, or `abort`.",
    'Write {"action": "progress", "issue": 1} when you start.',
    'Answer {"next_action": {"action": "continue"}}, where `intent` is <your intent>.',
  ].map((text) => ({
    code: "PR-INTENT" as const,
    name: text,
    changes: { "prompts/steps/initial/issue/f_default.md": `{uv-issue} ${text}` },
  })),
  {
    code: "PARAM-UNREAD",
    name: "a parameter that a command reads",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic", default: "x" },
      [`registry ${CLOSURE}/runner`]: { command: "echo", args: ["${context.topic}"] },
    },
  },
  ...[
    "npm test && true",
    "npm test | grep ok",
    "set -o pipefail; npm test | tee log",
    "true && npm test",
  ].map((command) => ({
    code: "CHECK-CANNOT-FAIL" as const,
    name: command,
    changes: {
      "registry /validators/git-clean/successWhen": "exitCode:0",
      "registry /validators/git-clean/command": command,
    },
  })),
  {
    code: "CHECK-CANNOT-FAIL",
    name: "an anchored pattern",
    changes: { "registry /validators/git-clean/successWhen": "matches:^$" },
  },
  {
    code: "CHECK-NONE",
    name: "an agent that can change nothing",
    changes: {
      "registry /validationSteps": {},
      "registry /validators": {},
      "registry /failurePatterns": {},
      "agent /runner/boundaries": { allowedTools: ["Read"], permissionMode: "plan" },
    },
  },
  { code: "CHECK-VALIDATOR-UNUSED", name: "a validator in use", changes: {} },
  { code: "CHECK-PATTERN-UNUSED", name: "a pattern in use", changes: {} },
];

for (const { code, name, changes } of INNOCENT) {
  test(`no ${code}: ${name}`, () => {
    const found = load(tree(changes)).problems.filter((problem) => problem.code === code);
    assert.deepEqual(found, []);
  });
}

test("every code has a row here, or is about values given at the start", () => {
  const covered = new Set<string>(ROWS.map((row) => row.code));
  const elsewhere = new Set([
    // Of other dialects: dialects.test.ts.
    "STEP-ID-FORM",
    "STEP-NO-WAY",
    "TRANS-EMPTY",
    "COMPLETE-TARGET",
    "COMPLETE-SCHEMA",
    "PARAM-UNKNOWN",
    "PARAM-MISSING",
    "PARAM-TYPE",
    "PARAM-RANGE",
    "PARAM-BUILT-IN",
    "BUDGET-TURNS",
    "AC-SERVICE-003",
  ]);
  const missing = Object.keys(CODES).filter((code) => !covered.has(code) && !elsewhere.has(code));
  assert.deepEqual(missing, []);
});

test("an agent.json that may not be read is AC-SERVICE-003", () => {
  assert.deepEqual(
    load({}, "../../etc").problems.map(({ code, file }) => [code, file]),
    [["AC-SERVICE-003", "../etc/agent.json"]],
  );
});

test("an error off the live path is a warning", () => {
  const changes = {
    "registry /steps/initial.other": {
      stepId: "initial.other",
      c2: "initial",
      c3: "other",
      structuredGate: gate(),
    },
  };
  const { problems } = load(tree(changes));
  assert.ok(problems.length > 0);
  assert.deepEqual(
    problems.filter((problem) => problem.severity === "error"),
    [],
  );
  assert.ok(problems.some((problem) => problem.code === "PR-C3L-004" && problem.step === "initial.other"));
});

test("without an entry every step counts as live", () => {
  const { problems } = load(
    tree({ "registry /entryStepMapping": {}, "prompts/steps/closure/issue/f_default.md": undefined }),
  );
  assert.equal(problems.find((problem) => problem.code === "PR-C3L-004")?.severity, "error");
});
