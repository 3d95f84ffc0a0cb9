/** Rows about agent.json: files, settings, parameters and actions. */
import {
  CLOSURE,
  S,
  V,
  WORD,
  acting,
  asked,
  before,
  judgedBy,
  polled,
  type NotFound,
  type Row,
} from "./row.ts";

export const FOUND: readonly Row[] = [
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
  ...(["done", { mood: "good" }] as const).map((targetState): Row => ({
    code: "AC-VALID-001",
    name: `an issue that is ${JSON.stringify(targetState)}`,
    changes: { "agent /runner/verdict": { type: "poll:state", config: { targetState } } },
    at: "agent.json /runner/verdict/config/targetState",
  })),
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
    code: "CONFIG-NOT-ACTED-ON",
    name: "a command beside a file",
    changes: judgedBy({ type: "file", path: "a.md", command: "ls" }),
    at: `steps_registry.json ${V}/command`,
    says: /its type is "file"/,
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
];

export const NOT_FOUND: readonly NotFound[] = [
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
  {
    code: "AC-VALID-001",
    name: "inputs of a worktree in the repository",
    changes: { "agent /runner/execution": { worktree: { copy: [".env", "data/in", "..x", "a..b"] } } },
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
    code: "PARAM-UNREAD",
    name: "a parameter that a command reads",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic", default: "x" },
      [`registry ${CLOSURE}/runner`]: { command: "echo", args: ["${context.topic}"] },
    },
  },
  ...["Closed", "not planned", { state: "open", labels: ["x"] }].map((targetState) => ({
    code: "AC-VALID-001" as const,
    name: `an issue that is ${JSON.stringify(targetState)}`,
    changes: { "agent /runner/verdict": { type: "poll:state", config: { targetState } } },
  })),
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
    code: "PARAM-UNREAD",
    name: "a parameter that the verdict reads",
    changes: {
      "agent /parameters/topic": { type: "string", description: "x", cli: "--topic", default: "x" },
      "agent /runner/verdict": polled({ path: "{uv-topic}.md", targetState: "exists" }),
    },
  },
];
