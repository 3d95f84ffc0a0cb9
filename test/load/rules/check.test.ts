import assert from "node:assert/strict";
import { test } from "node:test";
import type { Problem } from "../../../src/flow/problem.ts";
import { CODES, type Code } from "../../../src/load/codes.ts";
import { loadRegistry } from "../../../src/load/registry/registry-agent.ts";
import { findPrompt } from "../../../src/prompts/find.ts";
import { answerOf, filesOf, load, sha256, tree, type Changes } from "../world.ts";

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
  /** Line and column. */
  readonly place?: readonly [number, number];
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
/** A switch on a field that is high or low. */
const switching = (targets: object, more: object = {}): Changes => ({
  ...conditional({ condition: "approach", targets, ...more }),
  "schema /initial.issue/properties/analysis/properties/approach": { enum: ["high", "low"] },
});

const acting = (actions: object): Changes => ({ "agent /runner/actions": { enabled: true, ...actions } });

const V = "/validators/git-clean";
const CONDITION = "/validationSteps/closure.issue/validationConditions/0";
/** Another validator in place of the good one, and the values that its condition gives. */
const judgedBy = (validator: object, params: object = {}): Changes => ({
  [`registry ${V}`]: { failurePattern: "git-dirty", ...validator },
  [`registry ${CONDITION}/params`]: params,
});
const running = (command: string, params: object = {}): Changes =>
  judgedBy({ type: "command", command, successWhen: "exitCode:0" }, params);
/** Written apart, so that no tool takes the address for a secret. */
const WORD = "pass";
const polled = (config: object) => ({ type: "poll:state", config: { resourceType: "file", ...config } });
const asked = (url: string) => ({
  type: "poll:state",
  config: { resourceType: "api", url, targetState: { state: "done" } },
});
const GATELESS: Changes = {
  [`registry ${S}/structuredGate`]: undefined,
  "registry /steps/continuation.issue/structuredGate": undefined,
  [`registry ${CLOSURE}/structuredGate`]: undefined,
  "registry /entryStep": "initial.issue",
  "registry /validationSteps": {},
};
/** A count, with checks before it ends the run. */
const before = (more: object, key = "closure.iteration"): Changes => ({
  "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
  "registry /entryStep": "initial.issue",
  [`registry /validationSteps/${key}`]: {
    c2: "retry",
    c3: "issue",
    validationConditions: [{ validator: "git-clean" }],
    ...more,
  },
});

/** Servers of tools, and the tools that are allowed. */
const served = (mcpServers: object, tools: readonly string[] = ["Read", "mcp__docs__*"]): Changes => ({
  "agent /runner/mcpServers": mcpServers,
  "agent /runner/boundaries/allowedTools": tools,
});
const DOCS = { command: "docs-server", args: ["--quiet"] };
const SERVERS = "agent.json /runner/mcpServers";

/** Entries of allowedTools that allow nothing, and what is said about them. */
const TOOLS: readonly (readonly [entry: string, says: RegExp])[] = [
  ["Raed", /there is no tool "Raed"\. Did you mean "Read"\?/],
  ["write", /there is no tool "write"\. Did you mean "Write"\?/],
  ["bash(git status)", /there is no tool "bash"\. Did you mean "Bash"\?/],
  ["Launch", /there is no tool "Launch"\.$/],
  ["Re?d", /there is no tool "Re\?d"/],
  ["X*", /there is no tool "X\*"/],
  ["", /there is no tool ""/],
  ["Read(src/**)", /only Bash takes a command in parentheses/],
];

/** Failure prompts, and what is wrong with them: where, and in which words. */
const FAILURES: readonly (readonly [
  code: "FAILURE-NAME" | "FAILURE-BLOCK",
  text: string,
  place: readonly [number, number],
  says: RegExp,
])[] = [
  ["FAILURE-NAME", "{{summary}}\n{{sumary}}", [2, 1], /reads "sumary".*Did you mean "summary"/],
  ["FAILURE-NAME", "{{#each untracked}}{{this}}{{/each}}", [1, 1], /reads "untracked"/],
  ["FAILURE-NAME", "{{#if x.y}}a{{/if}}", [1, 1], /reads "x"/],
  ["FAILURE-NAME", "{{this}}", [1, 1], /\{\{this\}\} outside \{\{#each\}\}/],
  ["FAILURE-BLOCK", "---\na: b\n---\n{{#each changedFiles}}x{{/eech}}", [4, 24], /\{\{\/eech\}\} in/],
  ["FAILURE-BLOCK", "{{#each changedFiles}}x", [1, 1], /never closed by \{\{\/each\}\}/],
  [
    "FAILURE-BLOCK",
    "{{#if stdout}}{{#each changedFiles}}x{{/if}}",
    [1, 15],
    /never closed by \{\{\/each\}\}/,
  ],
  ["FAILURE-BLOCK", "x {{/if}}", [1, 3], /no open \{\{#if\}\}/],
  ["FAILURE-BLOCK", "x {{else}}", [1, 3], /no \{\{#if\}\} around/],
  ["FAILURE-BLOCK", "{{#unless stdout}}", [1, 1], /not a tag/],
  ["FAILURE-BLOCK", "{{ }}", [1, 1], /names nothing/],
  ["FAILURE-BLOCK", "Issue {uv-issue}", [1, 7], /\{uv-issue\} in .* a failure prompt reads only/],
];
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
const FAILURE_PROMPT = "prompts/steps/retry/issue/f_failed_git-dirty.md";

const LONG = "x".repeat(1_000_001);

const ROWS: readonly Row[] = [
  {
    code: "FAILURE-NAME",
    name: "an explanation that no extractor gives",
    changes: {
      ...running("npm test"),
      [FAILURE_PROMPT]: "{{stdout}} {{rootCause}}",
    },
    at: "retry/issue/f_failed_git-dirty.md ",
    place: [1, 12],
    says: /reads "rootCause"/,
  },
  ...(
    [
      ["prompts/system.md", null],
      ["prompts/steps/initial/issue/f_default.md", "initial.issue"],
      [FAILURE_PROMPT, "closure.issue"],
    ] as const
  ).map(([file, step]): Row => ({
    code: "PROMPT-SIZE",
    name: file,
    changes: { [file]: LONG },
    at: `${file} `,
    step,
    place: [1, 1],
    says: /a prompt of 1000001 characters/,
  })),
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
  ...FAILURES.map(([code, text, place, says]): Row => ({
    code,
    name: JSON.stringify(text),
    changes: { [FAILURE_PROMPT]: text },
    at: "retry/issue/f_failed_git-dirty.md ",
    step: "closure.issue",
    place,
    says,
  })),
  ...TOOLS.map(([entry, says]): Row => ({
    code: "TOOL-UNKNOWN",
    name: `allowedTools has "${entry}"`,
    changes: { "agent /runner/boundaries/allowedTools": ["Read", entry] },
    at: "agent.json /runner/boundaries/allowedTools/1",
    step: null,
    says,
  })),
  // Limits.
  {
    code: "LIMIT-INVALID",
    name: "a share above the whole",
    changes: { "agent /runner/limits": { turns: 5, soft: 1.2 } },
    at: "agent.json /runner/limits/soft",
    says: /1\.2 is not a valid fraction/,
  },
  {
    code: "LIMIT-INVALID",
    name: "a soft limit above its limit",
    changes: { [`registry ${S}/limits`]: { perAttempt: { turns: 5, soft: { turns: 6 } } } },
    at: `steps_registry.json ${S}/limits/perAttempt/soft`,
    step: "initial.issue",
    says: /one attempt of step "initial\.issue".*turns is 6, above its limit of 5/,
  },
  {
    code: "LIMIT-INVALID",
    name: "a soft limit on something else",
    changes: { "agent /runner/limits": { soft: { visits: 3 } } },
    at: "agent.json /runner/limits/soft",
    says: /"visits" is not one of/,
  },
  {
    code: "LIMIT-INVALID",
    name: "nothing to spend",
    changes: { "agent /runner/limits": { costUsd: 0 } },
    at: "agent.json /runner/limits/costUsd",
  },
  {
    code: "LIMIT-ABOVE",
    severity: "warning",
    name: "a step may do more than the run",
    changes: { "agent /runner/limits": { turns: 5 }, [`registry ${S}/limits`]: { turns: 6 } },
    at: `steps_registry.json ${S}/limits/turns`,
    step: "initial.issue",
    says: /is 6, above the 5 of the run/,
  },
  {
    code: "LIMIT-ABOVE",
    severity: "warning",
    name: "an attempt may do more than its step",
    changes: { [`registry ${S}/limits`]: { wallMs: 5, perAttempt: { wallMs: 6 } } },
    at: `steps_registry.json ${S}/limits/perAttempt/wallMs`,
    step: "initial.issue",
  },
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
  ...["/etc/passwd", "../x", "a/../../x", "~/.ssh", "C:/x", "a\\\\b"].map((path): Row => ({
    code: "AC-VALID-001",
    name: `an input of the worktree at ${path}`,
    changes: { "agent /runner/execution": { worktree: { enabled: true, copy: [".env", path] } } },
    at: "agent.json /runner/execution/worktree/copy/1",
  })),
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
  ...(
    [
      [
        "a list of no names",
        { type: "detect:structured", config: { signalType: "s", requiredFields: [1] } },
        "requiredFields",
        /holds 1/,
      ],
      [
        "a file with an object for a state",
        polled({ path: "x", targetState: {} }),
        "targetState",
        /an object/,
      ],
      [
        "a broken pattern",
        polled({ path: "x", targetState: "re:(" }),
        "targetState",
        /The regular expression \( in targetState is not valid: Unterminated group/,
      ],
      ["an address of another kind", asked("file:///etc/passwd"), "url", /http/],
      ["an address without a host", asked("/status"), "url", /http/],
      [
        "an address whose host is an argument",
        asked("https://{uv-issue}.test/"),
        "url",
        /must not contain a variable or a password/,
      ],
      [
        "an address with a password",
        asked(`https://me:${WORD}@x.test/`),
        "url",
        /must not contain a variable or a password/,
      ],
      [
        "a composite of nothing",
        { type: "meta:composite", config: { operator: "or", conditions: [] } },
        "conditions",
        /at least one/,
      ],
    ] as const
  ).map(([name, verdict, key, says]): Row => ({
    code: "AC-VALID-001",
    name,
    changes: { "agent /runner/verdict": verdict },
    at: `agent.json /runner/verdict/config/${key}`,
    says,
  })),
  {
    code: "AC-VALID-002",
    name: "a setting deep inside a composite",
    changes: {
      "agent /runner/verdict": {
        type: "meta:composite",
        config: {
          operator: "or",
          conditions: [
            { type: "meta:composite", config: { operator: "and", conditions: [{ type: "detect:keyword" }] } },
          ],
        },
      },
    },
    at: "agent.json /runner/verdict/config/conditions/0/config/conditions/0/config/verdictKeyword",
  },
  {
    code: "AC-SERVICE-003",
    name: "a file outside of the working folder",
    changes: { "agent /runner/verdict": polled({ path: "./../x", targetState: "exists" }) },
    at: "agent.json /runner/verdict/config/path",
  },
  {
    code: "PR-RESOLVE-003",
    name: "a path that reads no parameter",
    changes: { "agent /runner/verdict": polled({ path: "{uv-isue}.md", targetState: "exists" }) },
    at: "agent.json /runner/verdict/config/path",
    says: /Did you mean "issue"/,
  },
  {
    code: "UV-OPTIONAL",
    name: "an address that reads an optional parameter",
    changes: {
      "agent /parameters/item": { type: "string", description: "x", cli: "--item" },
      "agent /runner/verdict": asked("https://x.test/{uv-item}"),
    },
    at: "agent.json /runner/verdict/config/url",
  },
  {
    code: "AC-VERDICT-001",
    name: "no issue",
    changes: { "agent /runner/verdict": { type: "poll:state" }, "agent /parameters/issue": undefined },
    at: "agent.json /runner/verdict/config",
  },
  {
    code: "AC-VERDICT-001",
    name: "no project",
    changes: {
      "agent /runner/verdict": { type: "poll:state", config: { resourceType: "github-project" } },
    },
    at: "agent.json /runner/verdict/config",
  },
  ...(["done", { mood: "good" }] as const).map((targetState): Row => ({
    code: "AC-VALID-001",
    name: `an issue that is ${JSON.stringify(targetState)}`,
    changes: { "agent /runner/verdict": { type: "poll:state", config: { targetState } } },
    at: "agent.json /runner/verdict/config/targetState",
  })),
  ...(
    [
      ["no module", "none.mjs", /no module \.agent\/iterator\/none\.mjs/],
      ["a module of another agent", "../other/v.mjs", /outside \.agent\/iterator/],
      ["a module anywhere", "/etc/v.mjs", /outside/],
      ["no module but a text", "prompts/system.md", /not a \.mjs, \.js or \.ts/],
    ] as const
  ).map(([name, handlerPath, says]): Row => ({
    code: "AC-VERDICT-004",
    name,
    changes: { "agent /runner/verdict": { type: "meta:custom", config: { handlerPath } } },
    at: "agent.json /runner/verdict/config/handlerPath",
    says,
  })),
  {
    code: "VERDICT-NEVER",
    severity: "warning",
    name: "more checks than visits, among gates",
    changes: { "agent /runner/verdict": { type: "count:check", config: { maxChecks: 21 } } },
    at: "agent.json /runner/verdict/config",
    says: /needs 21 visits.*stopped after 20/,
  },
  {
    code: "VERDICT-NEVER",
    name: "more checks than visits, without gates",
    changes: {
      ...GATELESS,
      "agent /runner/verdict": {
        type: "meta:composite",
        config: { operator: "or", maxIterations: 5, conditions: [{ type: "count:iteration" }] },
      },
    },
    at: "agent.json /runner/verdict/config",
    says: /needs 10 visits.*stopped after 5/,
  },
  {
    code: "VERDICT-NEVER",
    severity: "warning",
    name: "checks that no way leads to",
    changes: {
      "agent /runner/verdict": { type: "count:check", config: { maxChecks: 1 } },
      "registry /entryStep": "initial.issue",
      "registry /steps/continuation.issue/transitions/handoff/target": "initial.issue",
    },
    at: "agent.json /runner/verdict/config",
    says: /no path leads to one/,
  },
  {
    code: "VERDICT-UNTOLD",
    name: "a keyword that nobody names",
    changes: {
      "agent /runner/verdict": { type: "detect:keyword", config: { verdictKeyword: "ALL_DONE" } },
      "prompts/system.md": "You work.",
    },
    at: "agent.json /runner/verdict/config",
    says: /the keyword ALL_DONE/,
  },
  {
    code: "VERDICT-UNTOLD",
    name: "a block that nobody names",
    changes: {
      "agent /runner/verdict": { type: "detect:structured", config: { signalType: "wrap-up" } },
      "prompts/system.md": "You work.",
    },
    at: "agent.json /runner/verdict/config",
    says: /a block of the type wrap-up/,
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "the ceiling of a condition",
    changes: {
      "agent /runner/verdict": {
        type: "meta:composite",
        config: {
          operator: "or",
          conditions: [{ type: "detect:keyword", config: { verdictKeyword: "x", maxIterations: 3 } }],
        },
      },
    },
    at: "agent.json /runner/verdict/config/conditions/0/config/maxIterations",
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "where a failure before the end by the verdict leads",
    changes: before({ onFailure: { action: "retry", target: "initial.issue" } }),
    at: "steps_registry.json /validationSteps/closure.iteration/onFailure/target",
  },
  {
    code: "CHECK-UNKNOWN",
    name: "before the end by the verdict",
    changes: before({ validationConditions: [{ validator: "git-claen" }] }),
    at: "steps_registry.json /validationSteps/closure.iteration/validationConditions/0/validator",
  },
  {
    code: "PR-EDITION",
    name: "before the end by the verdict",
    changes: {
      ...before({ c2: "other" }),
      "prompts/steps/retry/issue/f_failed_git-dirty.md": undefined,
    },
    at: "steps_registry.json /validationSteps/closure.iteration",
    says: /other\/issue\/f_failed_git-dirty\.md.*initial\/issue\/f_failed_git-dirty\.md/,
  },
  {
    code: "CHECK-BORROWED",
    name: "before the end by the verdict",
    changes: { ...GATELESS, ...before({}, "other") },
    at: "steps_registry.json /validationSteps/other",
    says: /The end by the verdict count:iteration has no validation of its own/,
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
    changes: { "prompts/system.md": "---\ntitle: x\n---\n\nYou work on\n  {uv-issue}." },
    at: "prompts/system.md ",
    place: [6, 3],
  },
  {
    code: "PR-RESOLVE-005",
    severity: "warning",
    name: "unknown placeholder in the description that stands in for a system prompt",
    changes: {
      "prompts/system.md": undefined,
      "agent /runner/flow/prompts/strict": true,
      "agent /description": "Works on {uv-issue}",
    },
    at: "agent.json /description",
    says: /^The description of the agent reads \{uv-issue\}/,
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
      ...[{ add: ["done"] }, { remove: ["todo"] }, { add: ["done"], remove: ["todo"] }].map(
        (completion) =>
          [
            "/runner/integrations",
            { github: { labels: { completion } } },
            "/runner/integrations/github/labels/completion",
          ] as const,
      ),
      ["/runner/execution", { finalize: { push: true } }, "/runner/execution/finalize"],
      [
        "/runner/execution",
        { worktree: { enabled: true }, finalize: { createPr: true, autoMerge: true } },
        "/runner/execution/finalize/autoMerge",
      ],
      ["/runner/logging", { directory: "../logs" }],
      ["/runner/verdict/config/registryPath", "other.json"],
    ] as const
  ).map(([place, value, at = place]): Row => ({
    code: "CONFIG-NOT-ACTED-ON",
    name: `${at}: ${JSON.stringify(value)}`,
    changes: { [`agent ${place}`]: value },
    at: `agent.json ${at}`,
  })),
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "a closing action without an issue",
    changes: {
      "agent /parameters": { topic: { type: "string", cli: "--topic" } },
      "agent /runner/integrations": { github: { defaultClosureAction: "close" } },
    },
    at: "agent.json /runner/integrations/github",
    says: /no parameter "issue"/,
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "a pull request without GitHub",
    changes: {
      "agent /runner/integrations": { github: { enabled: false } },
      "agent /runner/execution": { worktree: { enabled: true }, finalize: { createPr: true } },
    },
    at: "agent.json /runner/execution/finalize/createPr",
    says: /createPr has no effect: the branch is pushed/,
  },
  {
    code: "VERDICT-CLOSES",
    name: "an issue that is closed by a count",
    changes: {
      "agent /runner/verdict": { type: "count:iteration", config: { maxIterations: 3 } },
      "agent /runner/integrations": { github: { labels: { inProgress: "doing" } } },
      "registry /entryStep": "initial.issue",
    },
    at: "agent.json /runner/verdict",
    says: /complete after 3 visits, and its issue is then closed/,
  },
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

  // Actions.
  ...(
    [
      ["a word that is none", "buildin:log", /neither a built-in handler nor.*Did you mean "builtin:log"\?/],
      ["a built-in without its prefix", "github-issue", /Did you mean "builtin:github-issue"\?/],
      ["a path that is none", "handlers/plan.mjs", /starts with \.\//],
      [
        "a module that is not there",
        "./handlers/plan.mjs",
        /no module \.agent\/iterator\/handlers\/plan\.mjs/,
      ],
      ["a module of another agent", "./../other/plan.mjs", /outside \.agent\/iterator/],
      ["a text", "./prompts/system.md", /not a \.mjs, \.js or \.ts/],
    ] as const
  ).map(([name, handler, says]): Row => ({
    code: "ACTION-HANDLER",
    name,
    changes: acting({ types: ["plan"], handlers: { plan: handler } }),
    at: "agent.json /runner/actions/handlers/plan",
    says,
  })),
  {
    code: "ACTION-NO-TYPES",
    name: "enabled for nothing",
    changes: acting({}),
    at: "agent.json /runner/actions",
  },
  {
    code: "ACTION-STRAY",
    name: "a handler of a misspelt type",
    changes: acting({
      types: ["plan"],
      handlers: { plan: "builtin:file", "review-reslut": "builtin:log", plann: "builtin:log" },
    }),
    at: "agent.json /runner/actions/handlers/review-reslut",
  },
  {
    code: "ACTION-LOG-ONLY",
    name: "types that nobody carries out",
    changes: acting({ types: ["issue-action", "project-plan", "review-result"] }),
    at: "agent.json /runner/actions/types",
    says: /"project-plan", "review-result" have no handler/,
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "an action on GitHub that is switched off",
    changes: {
      ...acting({ types: ["issue-action"] }),
      "agent /runner/integrations/github/enabled": false,
    },
    at: "agent.json /runner/actions/types",
    says: /builtin:issue-action needs GitHub/,
  },
  {
    code: "AC-VERDICT-001",
    name: "an action on an issue that no parameter names",
    changes: {
      ...acting({ types: ["note"], handlers: { note: "builtin:github-comment" } }),
      "agent /parameters/issue": undefined,
      "prompts/steps/initial/issue/f_default.md": "Begin.",
      "prompts/steps/continuation/issue/f_default.md": "Go on.",
      "prompts/steps/closure/issue/f_default.md": "Close.",
      [`registry ${S}/uvVariables`]: [],
      "registry /steps/continuation.issue/uvVariables": [],
      [`registry ${CLOSURE}/uvVariables`]: [],
    },
    at: "agent.json /runner/actions/types",
    says: /may only act on the run's own issue/,
  },

  // Lists of commands.
  ...[
    ["git log:*", /--output=FILE writes any file/],
    ["git diff *", /--output=FILE/],
    ["git show:*", /--output=FILE/],
    ["git grep:*", /--open-files-in-pager/],
    ["git:*", /alias/],
    ["git *", /alias/],
    ["git -C x:*", /alias/],
    ["git fetch:*", /--upload-pack/],
    ["git push:*", /--receive-pack/],
    ["git bisect:*", /runs any command/],
    ["/usr/bin/git log:*", /--output=FILE/],
    ["sort:*", /-o FILE/],
    ["find:*", /-exec/],
    ["find . *", /-exec/],
    ["rg:*", /--pre/],
    ["sed:*", /-i and the command e/],
    ["env:*", /runs the command that follows/],
    ["bash -c:*", /runs the program/],
    ["python3 *", /runs the program/],
    ["awk:*", /runs the program/],
    ["xargs:*", /command that follows/],
    ["npx:*", /command that follows/],
    ["npm test:*", /--script-shell/],
    ["npm run *", /--script-shell/],
    ["make:*", /a file says/],
    ["cargo test:*", /a file says/],
    ["curl:*", /-o FILE/],
    ["tar:*", /--to-command/],
    ["tee:*", /writes any file/],
    ["docker run:*", /whole disk/],
    ["export:*", /PATH/],
    ["mapfile:*", /as code/],
    ["* --version", /which program/],
    ["py*", /which program/],
    ["eslint:*", /file of code/],
  ].map(([limit, says]): Row => ({
    code: "BASH-LIST-OPEN",
    name: String(limit),
    changes: { "agent /runner/boundaries/allowedTools": ["Read", `Bash(${String(limit)})`] },
    at: "agent.json /runner/boundaries/allowedTools/1",
    says: says as RegExp,
  })),
  ...(
    [
      [5, /^5 entries of .*"Bash\(sh -x 5:\*\)": it runs the program that it is given\.$/],
      [6, /^6 entries of .*"Bash\(sh -x 5:\*\)": [^;]*; and 1 more\.$/],
    ] as const
  ).map(([count, says]): Row => ({
    code: "BASH-LIST-OPEN",
    name: `${count} entries`,
    changes: {
      "agent /runner/boundaries/allowedTools": Array.from(
        { length: count },
        (_, place) => `Bash(sh -x ${place + 1}:*)`,
      ),
    },
    at: "agent.json /runner/boundaries/allowedTools/0",
    says,
  })),

  ...[
    ["git", ["log", "${context.branch}"], 1],
    ["/usr/bin/grep", ["${context.pattern}", "a.txt"], 0],
    ["rm", ["x", "${context.a}", "--", "y"], 1],
  ].map(([command, args, index]): Row => ({
    code: "ARGUMENT-OPTION",
    name: JSON.stringify([command, args]),
    changes: { "registry /steps/closure.issue/runner": { command, args } },
    at: `steps_registry.json /steps/closure.issue/runner/args/${String(index)}`,
  })),

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
  {
    code: "PARAM-UNREAD",
    name: "a parameter that a prompt reads under nearly its name",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic" },
      "registry /steps/initial.issue/uvVariables": ["issue", "topics"],
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-topics}",
    },
    at: "agent.json /parameters/topic",
    says: /Did you mean "topics"/,
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
    says: /"proceed", which does not exist/,
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
    code: "PR-C3L-004",
    name: "no prompt file, and no built-in prompt is wanted",
    changes: {
      "prompts/steps/initial/issue/f_default.md": undefined,
      [`registry ${S}/fallbackKey`]: "initial_issue",
      "agent /runner/flow/prompts/strict": true,
    },
    at: `steps_registry.json ${S}`,
    says: /"initial_issue" is not used: runner\.flow\.prompts\.strict forbids it/,
  },
  {
    code: "PR-C3L-004",
    name: "a place that leads out of the project, whatever the fallbackKey",
    changes: { [`registry ${S}/c3`]: "../../x", [`registry ${S}/fallbackKey`]: "initial_issue" },
    at: `steps_registry.json ${S}`,
    says: /refused: c3 .* is not a plain name.*the location cannot be read/,
  },
  {
    code: "PR-C3L-004",
    name: "no text for a section that is taken in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
    at: "steps_registry.json /steps/section.context",
    step: "initial.issue",
    says: /section\/context\/f_default\.md/,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in prompt by fallbackKey",
    changes: {
      "prompts/steps/initial/issue/f_default.md": undefined,
      [`registry ${S}/fallbackKey`]: "initial_issue",
    },
    at: `steps_registry.json ${S}`,
    says: /"initial_issue" is used instead\. Tried: \.agent\/iterator\/prompts\/steps\/initial\/issue\/f_default\.md\./,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in prompt by verdict type",
    changes: { "prompts/steps/closure/issue/f_default.md": undefined },
    at: `steps_registry.json ${CLOSURE}`,
    says: /"detect:graph" is used instead/,
  },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "a built-in system prompt",
    changes: {
      "prompts/system.md": undefined,
      "registry /steps/system": { stepId: "system", c2: "system", c3: "prompt", fallbackKey: "system" },
    },
    at: "agent.json /runner/flow/systemPromptPath",
    says: /"system" is used instead/,
  },
  {
    code: "SECTION-UNUSED",
    name: "a section that no prompt takes in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
    },
    at: "steps_registry.json /steps/section.context",
    says: /\{uv-section_context\}|"section\.context"/,
  },
  {
    code: "PR-RESOLVE-005",
    name: "a section that reads what its reader has not",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/section/context/f_default.md": "So far:\n{uv-isue}",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
    at: "section/context/f_default.md ",
    place: [2, 1],
    step: "initial.issue",
    says: /no supplier in the step "initial\.issue".*Did you mean "issue"/,
  },
  {
    code: "PR-RESOLVE-005",
    name: "a section that takes in another",
    changes: {
      "registry /steps/section.a": { stepId: "section.a", c2: "section", c3: "a" },
      "registry /steps/section.b": { stepId: "section.b", c2: "section", c3: "b" },
      "prompts/steps/section/a/f_default.md": "{uv-section_b}",
      "prompts/steps/section/b/f_default.md": "x",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_a} {uv-section_b}",
    },
    at: "section/a/f_default.md ",
    step: "initial.issue",
    says: /cannot include another section/,
  },
  {
    code: "STDIN-UNDECLARED",
    name: "a prompt that reads what its step does not ask for",
    changes: { "prompts/steps/initial/issue/f_default.md": "{uv-issue} {input_text}" },
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
  },
  {
    code: "STDIN-UNREAD",
    name: "a step that asks for what its prompt does not read",
    changes: { [`registry ${S}/usesStdin`]: true },
    at: `steps_registry.json ${S}/usesStdin`,
  },
  {
    code: "C3L-PATTERN",
    name: "a c3 that climpt would refuse",
    changes: {
      ".agent/climpt/config/iterator-steps-app.yml":
        'working_dir: ".agent/iterator"\napp_prompt:\n  base_dir: "prompts/steps"\n',
      ".agent/climpt/config/iterator-steps-user.yml":
        'params:\n  two:\n    directiveType:\n      pattern: "^(initial|continuation|closure|retry)$"\n    layerType:\n      pattern: "^(project|polling)$" # c3\n',
    },
    at: `steps_registry.json ${S}/c3`,
    says: /"issue", which the pattern \^\(project\|polling\)\$ in \.agent\/climpt\/config\/iterator-steps-user\.yml/,
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
    changes: { "prompts/steps/initial/issue/f_default.md": "\r\nLook\r\nat {uv-isue} and {uv-isue}." },
    at: "initial/issue/f_default.md ",
    place: [3, 4],
    step: "initial.issue",
    says: /Did you mean "issue"/,
  },
  {
    code: "UV-EARLY",
    name: "completed_iterations in the first step",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "completed_iterations"] },
    at: `steps_registry.json ${S}/uvVariables/1`,
  },
  {
    code: "UV-EARLY",
    severity: "warning",
    name: "previous_summary in the first step",
    changes: { [`registry ${S}/uvVariables`]: ["issue", "previous_summary"] },
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
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
  },
  {
    code: "UV-UNDECLARED",
    name: "the words of the prompt in its front matter too",
    changes: {
      "prompts/steps/initial/issue/f_default.md":
        "---\nabout: {uv-issue} {uv-iterateMax}\n---\n\n{uv-issue} {uv-iterateMax}\n",
    },
    at: "initial/issue/f_default.md ",
    place: [5, 12],
    step: "initial.issue",
  },
  {
    code: "UV-PLAIN",
    name: "a placeholder without uv-",
    changes: { "prompts/steps/initial/issue/f_default.md": "{{x}} ${y} {issue} {input_text}" },
    at: "initial/issue/f_default.md ",
    place: [1, 12],
    step: "initial.issue",
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
  ...(
    [
      ["a misspelled type", { type: "comand" }, "type", /Did you mean "command"/],
      ["a type that nobody can judge", { type: "custom" }, "type", /one of "command", "file", "semantic"/],
      ["no type", { type: undefined }, "type", /missing/],
      [
        "a misspelled checkType",
        { type: "semantic", semanticConfig: { checkType: "commit-mesage" } },
        "semanticConfig/checkType",
        /Did you mean "commit-message"/,
      ],
      [
        "a checkType that nobody can judge",
        { type: "semantic", semanticConfig: { checkType: "tone" } },
        "semanticConfig/checkType",
        /must be one of "commit-message"/,
      ],
    ] as const
  ).map(([name, validator, key, says]): Row => ({
    code: "CHECK-TYPE",
    name,
    changes: judgedBy(validator),
    at: `steps_registry.json ${V}/${key}`,
    says,
  })),
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
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "a command beside a file",
    changes: judgedBy({ type: "file", path: "a.md", command: "ls" }),
    at: `steps_registry.json ${V}/command`,
    says: /its type is "file"/,
  },
  ...(
    [
      ["PATH", "/tmp", /changes which programs run/],
      ["HOME", "/tmp", /changes which programs run/],
      ["IFS", "x", /changes which programs run/],
      ["ENV", "x", /changes which programs run/],
      ["BASH_ENV", "x", /changes which programs run/],
      ["LD_PRELOAD", "x", /changes which programs run/],
      ["DYLD_INSERT_LIBRARIES", "x", /changes which programs run/],
      ["GLIBC_TUNABLES", "x", /changes which programs run/],
      ["GCONV_PATH", "x", /changes which programs run/],
      ["NODE_OPTIONS", "x", /changes which programs run/],
      ["GIT_DIR", "x", /changes which programs run/],
      ["LOCKSTEP_TREE", "x", /changes which programs run/],
      ["a-b", "x", /only contain letters, digits and _/],
      ["1", "x", /only contain letters, digits and _/],
      ["é", "x", /only contain letters, digits and _/],
      ["", "x", /only contain letters, digits and _/],
      ["key", "a\0b", /NUL/],
      ["key", "x".repeat(200_000), /longer than/],
    ] as const
  ).map(([key, value, says]): Row => ({
    code: "CHECK-PARAM",
    name: `${JSON.stringify(key)} with ${JSON.stringify(value.slice(0, 10))}`,
    changes: running("npm test", { [key]: value }),
    at: `steps_registry.json ${CONDITION}/params/${key}`,
    step: "closure.issue",
    says,
  })),
  {
    code: "CHECK-VALUE",
    name: "a value that nobody gives",
    changes: running('npm test -- "${suit}"', { suite: "unit" }),
    at: `steps_registry.json ${CONDITION}`,
    step: "closure.issue",
    says: /\$\{suit\}.*Did you mean "suite"/,
  },
  {
    code: "CHECK-VALUE",
    name: "a value in single quotes",
    changes: running("echo \"it's\" # isn't\ngrep -q '${word}' a.md", { word: "x" }),
    at: `steps_registry.json ${V}/command`,
    says: /\$\{word\}.*single quotes/,
  },
  {
    code: "CHECK-VALUE",
    severity: "error",
    name: "a value for a path that nobody gives",
    changes: judgedBy({ type: "file", path: "out/${HOME}.md" }),
    at: `steps_registry.json ${CONDITION}`,
    says: /\$\{HOME\}/,
  },
  ...(
    [
      ["an absolute path", "/etc/passwd", {}, /leads out/],
      ["a path that climbs out", "a/../../b", {}, /leads out/],
      ["a value that climbs out", "out/${name}", { name: "../../etc/passwd" }, /leads out/],
      ["a value that is no name", "out/${name}", { name: "a\0b" }, /leads out/],
      ["a value that leaves nothing", "${name}", { name: "." }, /names no file/],
    ] as const
  ).map(([name, path, params, says]): Row => ({
    code: "AC-SERVICE-003",
    name: `a file check with ${name}`,
    changes: judgedBy({ type: "file", path }, params),
    at: `steps_registry.json ${V}/path`,
    step: "closure.issue",
    says,
  })),
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
    changes: { "registry /validators/git-clean/successWhen": "matches:a/([" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    says: /^The regular expression a\/\(\[ in successWhen of the validator "git-clean" is not valid: Unterminated character class\.$/,
  },
  {
    code: "CHECK-SUCCESS",
    name: "a rule for regexes without one",
    changes: { "registry /validators/git-clean/successWhen": "matches:" },
    at: "steps_registry.json /validators/git-clean/successWhen",
    says: /is not a valid success rule/,
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
  // Servers of tools.
  ...["a__b", "_a", "a_", "", "a.b", "ä", "constructor", "lockstep"].map((name): Row => ({
    code: "MCP-NAME",
    name: `a server called "${name}"`,
    changes: served({ [name]: DOCS }),
    at: `${SERVERS}/${name}`.trimEnd(),
  })),
  ...(
    [
      ["neither command nor address", {}, "", /neither/],
      ["command and address", { ...DOCS, url: "https://x.test/mcp" }, "", /both a command and a URL/],
      ["another type than it is", { ...DOCS, type: "http" }, "/type", /"http"/],
      ["an address of another kind", { url: "file:///etc/passwd" }, "/url", /http or https/],
      ["an address with a password", { url: `https://me:${WORD}@x.test/` }, "/url", /a password/],
      [
        "an address that is not written out",
        { url: "https://x.test/${PLACE}" },
        "/url",
        /contains a variable/,
      ],
      [
        "a default in braces",
        { ...DOCS, env: { A: "${B:-c}" } },
        "/env/A",
        /not followed by a variable name/,
      ],
      [
        "a header in braces",
        { url: "https://x.test/", headers: { A: "${b c}" } },
        "/headers/A",
        /not followed by a variable name/,
      ],
      ["a variable that is two", { ...DOCS, env: { "A=B": "d" } }, "/env/A=B", /not a valid name for env/],
      [
        "a header that is two",
        { url: "https://x.test/", headers: { "A:b": "c" } },
        "/headers/A:b",
        /not a valid name/,
      ],
      [
        "a library to load",
        { ...DOCS, env: { LD_PRELOAD: "./evil.so" } },
        "/env/LD_PRELOAD",
        /programs are loaded/,
      ],
    ] as const
  ).map(([name, server, place, says]): Row => ({
    code: "MCP-SERVER",
    name,
    changes: served({ docs: server }),
    at: `${SERVERS}/docs${place}`,
    says,
  })),
  ...(
    [
      ["a variable", { ...DOCS, env: { DOCS_TOKEN: "abc" } }, "env/DOCS_TOKEN"],
      [
        "a header",
        { url: "https://x.test/", headers: { Authorization: "Bearer abc" } },
        "headers/Authorization",
      ],
      ["the shape of a key", { ...DOCS, env: { A: `ghp_${"x".repeat(36)}` } }, "env/A"],
      ["an argument", { ...DOCS, args: [`--key=sk-${"x".repeat(30)}`] }, "args/0"],
      ["an address", { url: "https://x.test/?api_key=abc" }, "url"],
    ] as const
  ).map(([name, server, place]): Row => ({
    code: "MCP-SECRET",
    name: `a secret in ${name}`,
    changes: served({ docs: server }),
    at: `${SERVERS}/docs/${place}`,
  })),
  {
    code: "MCP-UNDECLARED",
    name: "a tool of nobody",
    changes: served({ docs: DOCS }, ["mcp__docs__*", "mcp__dosc__search"]),
    at: "agent.json /runner/boundaries/allowedTools/1",
    says: /Did you mean "docs"/,
  },
  ...[["Read"], ["*"], ["mcp__doc__*"], ["mcp__docs"]].map((tools): Row => ({
    code: "MCP-UNUSED",
    name: `a server that no step may use: ${tools.join(", ")}`,
    changes: served({ docs: DOCS }, tools),
    at: `${SERVERS}/docs`,
  })),
  {
    code: "GITHUB-TOOL-OFF",
    name: "the tool of GitHub without GitHub",
    changes: {
      "agent /runner/boundaries/allowedTools": ["Read", "mcp__github__github_read"],
      "agent /runner/integrations/github": { enabled: false },
    },
    at: "agent.json /runner/boundaries/allowedTools/1",
    says: /no step is offered it/,
  },
  {
    code: "MCP-UNUSED",
    name: "a wildcard where everything only reads",
    changes: { ...served({ docs: DOCS }), "agent /runner/boundaries/permissionMode": "plan" },
    at: `${SERVERS}/docs`,
    says: /No step may use/,
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
    if (row.place !== undefined) assert.deepEqual([found.line, found.column], row.place);
    assert.ok(found.line >= 1 && found.column >= 1 && found.why !== "" && found.fix !== "");
  });
}

/** What looks like a finding and is none: no finding of this code may come of it. */
const INNOCENT: readonly { readonly code: Code; readonly name: string; readonly changes: Changes }[] = [
  ...["build/", "a/.", "x~", "../cache", "/srv/x/", "~/x"].map((path) => ({
    code: "SANDBOX-PATH" as const,
    name: path,
    changes: { "agent /runner/boundaries/sandbox": { filesystem: { allowedPaths: [path] } } },
  })),
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "what becomes of a worktree",
    changes: {
      "agent /runner/execution": {
        worktree: { enabled: true, root: "../trees", copy: [".env", "data/in", "..x", "a..b"] },
        finalize: { push: true, remote: "fork", createPr: true, prTarget: "next" },
      },
    },
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "no labels, and an issue that is only closed",
    changes: {
      "agent /runner/integrations": { github: { labels: { completion: { add: [], remove: [] } } } },
    },
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "labels and a closing action",
    changes: {
      "agent /runner/integrations": {
        github: {
          labels: { inProgress: "doing", blocked: "stuck", completion: { add: ["done"] } },
          defaultClosureAction: "label-and-close",
        },
      },
    },
  },
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "a label that only prompts speak of, and no issue",
    changes: {
      "agent /parameters": { topic: { type: "string", cli: "--topic" } },
      "agent /runner/integrations": { github: { labels: { requirements: "docs" } } },
    },
  },
  ...(
    [
      ["a count that only labels", { defaultClosureAction: "label-only" }, "count:iteration"],
      ["an issue that is closed by a closure", { defaultClosureAction: "close" }, "detect:graph"],
      ["a count, and nothing to be done on GitHub", {}, "count:iteration"],
    ] as const
  ).map(([name, github, type]) => ({
    code: "VERDICT-CLOSES" as const,
    name,
    changes: {
      "agent /runner/verdict": { type, config: { maxIterations: 3 } },
      "agent /runner/integrations": { github },
      "registry /entryStep": "initial.issue",
    },
  })),
  {
    code: "AC-VALID-001",
    name: "inputs of a worktree in the repository",
    changes: { "agent /runner/execution": { worktree: { copy: [".env", "data/in", "..x", "a..b"] } } },
  },
  {
    code: "TRANS-REPEAT",
    name: "repeat to another step",
    changes: { [`registry ${S}/transitions/repeat/target`]: "continuation.issue" },
  },
  ...(["detect:keyword", "detect:structured", "count:check", "meta:custom"] as const).map((type) => ({
    code: "CONFIG-NOT-ACTED-ON" as const,
    name: type,
    changes: {
      "agent /runner/verdict": {
        type,
        config: { verdictKeyword: "x", signalType: "x", maxChecks: 1, handlerPath: "v.mjs" },
      },
      "v.mjs": "export default () => true;",
    },
  })),
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
  ...[
    ["Bash(git status:*)", "Bash(git branch:*)", "Bash(git rev-parse:*)"],
    ["Bash(git log --oneline -20)", "Bash(npm test)", "Bash(sort -u)", "Bash(find . -name x)"],
    ["Bash(npm test -- *)", "Bash(npm run lint -- *)"],
    [
      "Bash(ls:*)",
      "Bash(cat:*)",
      "Bash(grep:*)",
      "Bash(wc *)",
      "Bash(jq:*)",
      "Bash(head:*)",
      "Bash(test:*)",
      "Bash(printf:*)",
    ],
    ["Bash", "Bash(git log:*)"],
    ["Bash(*)", "Bash(git log:*)"],
    ["*", "Bash(git log:*)"],
    ["Read", "Write", "mcp__x__*"],
  ].map((tools) => ({
    code: "BASH-LIST-OPEN" as const,
    name: tools.join(" "),
    changes: { "agent /runner/boundaries/allowedTools": tools },
  })),
  ...[
    ["git", ["log", "--", "${context.path}"]],
    ["git", ["commit", "-m", "${context.message}"]],
    ["git", ["log", "--grep=${context.word}"]],
    ["node", ["tool.mjs", "${context.word}"]],
    ["git", ["status"]],
  ].map(([command, args]) => ({
    code: "ARGUMENT-OPTION" as const,
    name: JSON.stringify([command, args]),
    changes: { "registry /steps/closure.issue/runner": { command, args } },
  })),
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
  ...[{ default: "at will" }, { default: "at will", required: true }, { required: false }].map((more) => ({
    code: "DATA-NEVER" as const,
    name: `an input with ${JSON.stringify(more)}`,
    changes: {
      [`registry ${S}/inputs`]: { how: { from: "initial.issue.approach", ...more } },
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-how}",
    },
  })),
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
  ...(
    [
      ["a value that is given", 'npm test -- "${suite}"', { suite: "a" }],
      ["a variable of the environment", 'ls "${HOME}/x" ${CI}', {}],
      ["a default", "ls ${dir:-.}", {}],
      ["a variable of the command", 'for file in *; do test -s "${file}"; done; n=1; echo ${n}', {}],
      ["a variable that is read", 'git diff --name-only | while read -r name; do ls "${name}"; done', {}],
      ["an escaped one", 'echo \\${x} "\\${y}"', {}],
      ["a comment", "ls # ${x}", {}],
      ["an argument", 'sh -c "echo ${1}"', {}],
    ] as const
  ).map(([name, command, params]) => ({
    code: "CHECK-VALUE" as const,
    name,
    changes: running(command, params),
  })),
  {
    code: "CHECK-PARAM",
    name: "a name like a reserved one",
    changes: running('ls "${path}" "${env}" "${Path}"', { path: "a", env: "b", Path: "c", git_dir: "d" }),
  },
  {
    code: "CHECK-TYPE",
    name: "a file, and a commit message",
    changes: {
      ...judgedBy({ type: "file", path: "out/${name}" }, { name: "..a/b" }),
      "registry /validators/said": {
        type: "semantic",
        semanticConfig: { checkType: "commit-message" },
        failurePattern: "git-dirty",
      },
      "registry /validationSteps/closure.issue/validationConditions/1": { validator: "said" },
    },
  },
  {
    code: "CHECK-CANNOT-FAIL",
    name: "a pattern too odd to be tried",
    changes: judgedBy({
      type: "command",
      command: "ls",
      successWhen: "matches:(?:|){60}x|",
    }),
  },
  { code: "CHECK-VALIDATOR-UNUSED", name: "a validator in use", changes: {} },
  { code: "PROMPT-FALLBACK-USED", name: "every file is there", changes: {} },
  {
    code: "PROMPT-FALLBACK-USED",
    name: "built-in prompts are forbidden",
    changes: {
      "prompts/steps/closure/issue/f_default.md": undefined,
      "agent /runner/flow/prompts/strict": true,
    },
  },
  {
    code: "SECTION-UNUSED",
    name: "a section that a prompt takes in",
    changes: {
      "registry /steps/section.context": { stepId: "section.context", c2: "section", c3: "context" },
      "prompts/steps/section/context/f_default.md": "x",
      "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_context}",
    },
  },
  ...(["STDIN-UNDECLARED", "STDIN-UNREAD"] as const).flatMap((code) => [
    { code, name: "nothing is piped in", changes: {} },
    {
      code,
      name: "declared and read",
      changes: {
        [`registry ${S}/usesStdin`]: true,
        "prompts/steps/initial/issue/f_default.md": "{uv-issue} {input_text}",
      },
    },
    {
      code,
      name: "declared, and read through a section",
      changes: {
        [`registry ${S}/usesStdin`]: true,
        "registry /steps/section.given": { stepId: "section.given", c2: "section", c3: "given" },
        "prompts/steps/section/given/f_default.md": "{input_text}",
        "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-section_given}",
      },
    },
  ]),
  ...[
    ["no pair", {}],
    ["only one of the pair", { user: "^nothing$" }],
    ["both fit", { app: "x", user: "^(issue)$" }],
    ["an open pattern", { app: "x", user: "^[a-z-]+$" }],
    ["a pattern that could take for ever", { app: "x", user: "^(a+)+$" }],
    ["no pattern at all", { app: "x", user: "([" }],
  ].map(([name, pair]) => {
    const { app, user } = pair as { readonly app?: string; readonly user?: string };
    const folder = ".agent/climpt/config/iterator-steps";
    return {
      code: "C3L-PATTERN" as const,
      name: name as string,
      changes: {
        ...(app !== undefined && { [`${folder}-app.yml`]: "working_dir: .agent/iterator\n" }),
        ...(user !== undefined && {
          [`${folder}-user.yml`]: `params:\n  two:\n    layerType:\n      pattern: '${user}'\n`,
        }),
      },
    };
  }),
  { code: "CHECK-UNUSED", name: "checks before the end by the verdict", changes: before({}) },
  {
    code: "AC-VERDICT-001",
    name: "an issue that is told, or a verdict that looks at none",
    changes: { "agent /runner/verdict": { type: "poll:state" } },
  },
  ...["Closed", "not planned", { state: "open", labels: ["x"] }].map((targetState) => ({
    code: "AC-VALID-001" as const,
    name: `an issue that is ${JSON.stringify(targetState)}`,
    changes: { "agent /runner/verdict": { type: "poll:state", config: { targetState } } },
  })),
  {
    code: "AC-VERDICT-001",
    name: "another resource",
    changes: {
      "agent /runner/verdict": polled({ path: "x", targetState: "exists" }),
      "agent /parameters/issue": undefined,
    },
  },
  ...(["ACTION-HANDLER", "ACTION-NO-TYPES", "ACTION-STRAY", "ACTION-LOG-ONLY"] as const).map((code) => ({
    code,
    name: "actions that are declared and handled",
    changes: {
      ...acting({
        types: ["issue-action", "plan", "note", "issue", "comment", "done", "log"],
        outputFormat: "json",
        handlers: {
          plan: "./handlers/plan.mjs",
          note: "builtin:file",
          issue: "builtin:github-issue",
          comment: "builtin:github-comment",
          done: "builtin:completion-signal",
          log: "builtin:log",
        },
      }),
      "handlers/plan.mjs": "export default () => {};",
    },
  })),
  ...(["ACTION-HANDLER", "ACTION-NO-TYPES", "ACTION-STRAY"] as const).map((code) => ({
    code,
    name: "actions that are off",
    changes: { "agent /runner/actions": { enabled: false, handlers: { a: "nothing" } } },
  })),
  {
    code: "CONFIG-NOT-ACTED-ON",
    name: "actions that need no GitHub",
    changes: {
      ...acting({ types: ["note"], handlers: { note: "builtin:file" } }),
      "agent /runner/integrations/github/enabled": false,
    },
  },
  {
    code: "AC-VERDICT-004",
    name: "a module of the agent",
    changes: {
      "agent /runner/verdict": { type: "meta:custom", config: { handlerPath: "lib/v.ts" } },
      "lib/v.ts": "export default () => true;",
    },
  },
  {
    code: "AC-VERDICT-010",
    name: "a composite and a module inside a composite",
    changes: {
      "agent /runner/verdict": {
        type: "meta:composite",
        config: {
          operator: "or",
          conditions: [
            { type: "meta:custom", config: { handlerPath: "v.mjs" } },
            { type: "meta:composite", config: { operator: "and", conditions: [{ type: "poll:state" }] } },
          ],
        },
      },
      "v.mjs": "export default () => true;",
    },
  },
  {
    code: "VERDICT-NEVER",
    name: "as many checks as visits",
    changes: { "agent /runner/verdict": { type: "count:check", config: { maxChecks: 20 } } },
  },
  { code: "VERDICT-NEVER", name: "an end by gates", changes: {} },
  ...(
    [
      ["in the system prompt", { "prompts/system.md": "Write ALL_DONE." }],
      ["by the criteria", {}],
      ["in a prompt", { "prompts/steps/closure/issue/f_default.md": "{uv-issue} ALL_DONE" }],
      [
        "by a variable",
        {
          [`registry ${S}/uvVariables`]: ["issue", "completion_keyword"],
          "prompts/steps/initial/issue/f_default.md": "{uv-issue} {uv-completion_keyword}",
        },
      ],
      ["by a schema", { "schema /closure.issue/properties/word": { const: "ALL_DONE" } }],
    ] as const
  ).map(([name, changes]) => ({
    code: "VERDICT-UNTOLD" as const,
    name: `a keyword told ${name}`,
    changes: {
      "agent /runner/verdict": { type: "detect:keyword", config: { verdictKeyword: "ALL_DONE" } },
      ...(name === "by the criteria" ? {} : { "prompts/system.md": "You work." }),
      ...changes,
    },
  })),
  {
    code: "PARAM-UNREAD",
    name: "a parameter that the verdict reads",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic", default: "x" },
      "agent /runner/verdict": polled({ path: "{uv-topic}.md", targetState: "exists" }),
    },
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
  { code: "CHECK-PATTERN-UNUSED", name: "a pattern in use", changes: {} },
  ...(["LIMIT-INVALID", "LIMIT-ABOVE"] as const).map((code) => ({
    code,
    name: "limits within each other",
    changes: {
      "agent /runner/limits": { turns: 5, costUsd: 0.5, soft: { turns: 5, tokens: 7 } },
      [`registry ${S}/limits`]: { turns: 5, soft: 1, perAttempt: { turns: 5, costUsd: 0.5, soft: 0.5 } },
    },
  })),
  {
    code: "PROMPT-SIZE",
    name: "a long prompt",
    changes: { "prompts/system.md": LONG.slice(1) },
  },
  {
    code: "FAILURE-NAME",
    name: "a failure prompt of two kinds of checks",
    changes: {
      "registry /validators/there": { type: "file", path: "notes.md", failurePattern: "git-dirty" },
      "registry /validationSteps/closure.issue/validationConditions": [
        { validator: "git-clean" },
        { validator: "there" },
      ],
      [FAILURE_PROMPT]: "{{exitCode}} {{expectedPath}}",
    },
  },
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
  ...(["FAILURE-NAME", "FAILURE-BLOCK"] as const).flatMap((code) =>
    [
      "{{summary}} {{stdout}} {{stderr}} {{exitCode}} {{command}} {{rootCause}} { x } ${{y",
      "{{#each changedFiles}}{{this.path}}{{#if exitCode}}{{this}}{{else}}{{severity}}{{/if}}{{/each}}",
    ].map((text) => ({ code, name: text, changes: { [FAILURE_PROMPT]: text } })),
  ),
  ...[
    "*",
    "Read",
    "R*",
    "mcp__docs__*",
    "mcp__*",
    "Bash(git status)",
    "Bash (npm *)",
    "Task",
    "WebFetch",
  ].map(
    (entry) =>
      ({
        code: "TOOL-UNKNOWN",
        name: `allowedTools has "${entry}"`,
        changes: { "agent /runner/boundaries/allowedTools": [entry] },
      }) as const,
  ),
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
  {
    code: "GITHUB-TOOL-OFF",
    name: "every tool without GitHub",
    changes: {
      "agent /runner/boundaries/allowedTools": ["*"],
      "agent /runner/integrations/github": { enabled: false },
    },
  },
  {
    code: "GITHUB-TOOL-OFF",
    name: "the tool of GitHub with it",
    changes: { "agent /runner/boundaries/allowedTools": ["mcp__github__github_read"] },
  },
  ...(["MCP-NAME", "MCP-SERVER", "MCP-SECRET", "MCP-UNDECLARED", "MCP-UNUSED"] as const).flatMap((code) => [
    {
      code,
      name: "a program",
      changes: served({ docs: { ...DOCS, env: { DOCS_TOKEN: "${DOCS_TOKEN}", A: "b" } } }),
    },
    {
      code,
      name: "an address",
      changes: served(
        {
          "a-b_c": {
            type: "http",
            url: "https://x.test/mcp?page=1",
            headers: { Authorization: "Bearer ${DOCS_TOKEN}" },
          },
        },
        ["mcp__a-b_c__search", "mcp__github__github_read"],
      ),
    },
    {
      code,
      name: "whole names where everything only reads",
      changes: {
        ...served({ docs: DOCS }, ["mcp__docs__search"]),
        "agent /runner/boundaries/permissionMode": "plan",
      },
    },
  ]),
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
    "PARAM-RESERVED",
    "BUDGET-TURNS",
    "AC-SERVICE-003",
    // Of the text of a file: keys.test.ts.
    "DUPLICATE-KEY",
    // What only a parser finds: modules.test.ts.
    "MODULE-SYNTAX",
    "MODULE-UNPARSED",
    "MODULE-IMPORT",
    "HOOK-UNKNOWN",
    // Of what the user's own settings say: compiled.test.ts.
    "MODEL-UNKNOWN",
  ]);
  // Of stages: stages.test.ts.
  const isOfStages = (code: string) => /^(?:Stage[A-Z]|STAGE-|CompletionTool|InvalidParallel)/.test(code);
  const missing = Object.keys(CODES).filter(
    (code) => !covered.has(code) && !elsewhere.has(code) && !isOfStages(code),
  );
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
  assert.ok(
    problems.some((problem) => problem.code === "SR-GATE-SCHEMA" && problem.step === "initial.other"),
  );
  assert.ok(problems.some((problem) => problem.code === "SR-TRANS-003" && problem.step === "initial.other"));
});

test("without an entry every step counts as live", () => {
  const { problems } = load(
    tree({
      "registry /entryStepMapping": {},
      "prompts/steps/closure/issue/f_default.md": undefined,
      "agent /runner/flow/prompts/strict": true,
    }),
  );
  assert.equal(problems.find((problem) => problem.code === "PR-C3L-004")?.severity, "error");
});

test("steps that share a schema without a required intent are one finding", () => {
  const { problems } = load(
    tree({
      "schema /initial.issue": { $ref: "#/definitions/work" },
      "schema /continuation.issue": { $ref: "#/definitions/work" },
      "schema /definitions/work": { ...answerOf("next", "repeat", "handoff"), required: [] },
      [`registry ${S}/structuredGate`]: gate({ allowedIntents: ["next", "repeat", "handoff"] }),
      [`registry ${S}/transitions/handoff`]: { target: "closure.issue" },
    }),
  );
  assert.deepEqual(
    problems.map(({ code, file, pointer, step }) => [code, file.split("/").at(-1), pointer, step]),
    [["GATE-OPTIONAL", "issue.schema.json", "/definitions/work/properties/next_action", "initial.issue"]],
  );
});

test("a system prompt that is there and cannot be read is an error, named or not", () => {
  for (const path of ["prompts/system.md", undefined]) {
    const files = filesOf(tree({ "agent /runner/flow/systemPromptPath": path }));
    const why = "it has 30000000 bytes";
    const read: typeof files.read = (file) =>
      file.endsWith("prompts/system.md") ? { kind: "unreadable", why } : files.read(file);
    const world = {
      tools: { offered: [], known: new Set<string>(["Read", "Write", "Bash"]) },
      digest: sha256,
    };
    const { problems } = loadRegistry("iterator", { read }, (ref) => findPrompt({ read }, ref), world);
    assert.deepEqual(
      problems.map(({ code, severity, message }) => [code, severity, message.includes(why)]),
      [["PR-SYSTEM", "error", true]],
    );
  }
});

test("a misspelled tool is not put right by --fix: that would widen what a model may use", () => {
  const { problems } = load(tree({ "agent /runner/boundaries/allowedTools": ["Read", "bash"] }));
  assert.deepEqual(
    problems.map(({ code, mend }) => [code, mend]),
    [["TOOL-UNKNOWN", undefined]],
  );
});
