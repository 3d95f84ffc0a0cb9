/** Rows about verdicts and limits. */
import { CLOSURE, GATELESS, S, acting, polled, type NotFound, type Row } from "./row.ts";

export const FOUND: readonly Row[] = [
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
];

export const NOT_FOUND: readonly NotFound[] = [
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
    code: "AC-VERDICT-001",
    name: "an issue that is told, or a verdict that looks at none",
    changes: { "agent /runner/verdict": { type: "poll:state" } },
  },
  {
    code: "AC-VERDICT-001",
    name: "another resource",
    changes: {
      "agent /runner/verdict": polled({ path: "x", targetState: "exists" }),
      "agent /parameters/issue": undefined,
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
  ...(["LIMIT-INVALID", "LIMIT-ABOVE"] as const).map((code) => ({
    code,
    name: "limits within each other",
    changes: {
      "agent /runner/limits": { turns: 5, costUsd: 0.5, soft: { turns: 5, tokens: 7 } },
      [`registry ${S}/limits`]: { turns: 5, soft: 1, perAttempt: { turns: 5, costUsd: 0.5, soft: 0.5 } },
    },
  })),
];
