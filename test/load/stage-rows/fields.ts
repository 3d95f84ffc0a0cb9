/** Rows about the fields of a stage file. */
import { PLAN } from "../stage-world.ts";
import { NEXT_HOOK, plan, type Row } from "./row.ts";

const onPlan = (name: string, fields: object, code: string, pointer: string): Row => [
  name,
  { plan: { ...fields } },
  [plan(pointer, code)],
];

export const FIELD_ROWS: readonly Row[] = [
  // id
  [
    "id: not kebab-case",
    { review: { id: "JoinReview" }, build: { next: "JoinReview" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: a number",
    { review: { id: 7 }, build: { next: "review" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: a name of the machinery",
    { review: { id: "constructor" }, build: { next: "review" } },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  [
    "id: the word for the end",
    { review: { id: "end" }, build: { next: "end" }, ...NEXT_HOOK },
    ["error StageIdInvalid stages/review.md /id"],
  ],
  ["id: used twice", { other: { id: "review" } }, ["error StageDefinitionInvalid stages/review.md /id"]],
  // name
  onPlan("name: empty", { name: "" }, "StageFieldMissing", "/name"),
  onPlan("name: blank", { name: "  " }, "StageFieldMissing", "/name"),
  onPlan("name: a list", { name: ["Plan"] }, "StageFieldType", "/name"),
  // allowedTools
  ["allowedTools: none", { plan: { allowedTools: [] } }, []],
  [
    "allowedTools: a tool of an MCP server",
    {
      plan: { allowedTools: ["mcp__docs__search"] },
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
    },
    [],
  ],
  onPlan(
    "allowedTools: a tool of a server that nobody declared",
    { allowedTools: ["mcp__docs__search"] },
    "StageToolUnknown",
    "/allowedTools/0",
  ),
  [
    "allowedTools: all tools of a server",
    {
      plan: { allowedTools: ["mcp__docs__*"] },
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
    },
    [plan("/allowedTools/0", "StageToolUnknown")],
  ],
  [
    "allowedTools: the tool of GitHub without GitHub",
    {
      plan: { allowedTools: ["mcp__github__github_read"] },
      "agent.json": JSON.stringify({ runner: { integrations: { github: { enabled: false } } } }),
    },
    [plan("/allowedTools/0", "GITHUB-TOOL-OFF")],
  ],
  ["allowedTools: the tool of GitHub", { plan: { allowedTools: ["mcp__github__github_read"] } }, []],
  [
    "mcpServers: declared twice, and not used",
    {
      machine: { entry: "plan", mcpServers: { docs: { command: "docs-server" } } },
      "agent.json": JSON.stringify({ runner: { mcpServers: { docs: { url: "https://x.test/" } } } }),
    },
    [
      "warning MCP-UNUSED agent.json /runner/mcpServers/docs",
      "error MCP-NAME machine.yaml /mcpServers/docs",
      "warning MCP-UNUSED machine.yaml /mcpServers/docs",
    ],
  ],
  onPlan("allowedTools: a word", { allowedTools: "Read" }, "StageFieldType", "/allowedTools"),
  onPlan(
    "allowedTools: a number in the list",
    { allowedTools: ["Read", 3] },
    "StageFieldType",
    "/allowedTools/1",
  ),
  onPlan(
    "allowedTools: an unknown tool",
    { allowedTools: ["Read", "read"] },
    "StageToolUnknown",
    "/allowedTools/1",
  ),
  onPlan(
    "allowedTools: a tool that only coding agents have",
    { allowedTools: ["Read", "WebSearch"] },
    "StageToolUnknown",
    "/allowedTools/1",
  ),
  ["a very long body", { plan: { body: "x".repeat(1_000_001) } }, [plan("", "PROMPT-SIZE", "warning")]],
  onPlan("allowedTools: a pattern", { allowedTools: ["*"] }, "StageToolUnknown", "/allowedTools/0"),
  onPlan(
    "allowedTools: its own completion tool",
    { allowedTools: ["submit_plan"] },
    "StageToolUnknown",
    "/allowedTools/0",
  ),
  [
    "allowedTools: a tool that the agent may not use",
    { "agent.json": '{"runner":{"boundaries":{"allowedTools":["Read","Write","Bash(git status:*)"]}}}' },
    [
      "error StageToolUnknown stages/plan.md /allowedTools/1",
      "error StageToolUnknown stages/review.md /allowedTools/1",
    ],
  ],
  // completionTool
  onPlan(
    "completionTool: the name of a tool",
    { completionTool: "Read" },
    "CompletionToolReserved",
    "/completionTool",
  ),
  onPlan(
    "completionTool: the name of an MCP tool",
    { completionTool: "mcp__a__b" },
    "CompletionToolReserved",
    "/completionTool",
  ),
  onPlan("completionTool: two words", { completionTool: "submit plan" }, "StageFieldType", "/completionTool"),
  ["completionTool: the same in two stages", { plan: { completionTool: "submit_build" } }, []],
  // completionSchema
  onPlan(
    "completionSchema: a word",
    { completionSchema: "object" },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  [
    "completionSchema: of no object",
    { plan: { completionSchema: { type: "string" } } },
    [
      "error StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary",
      plan("/completionSchema", "StageCompletionSchemaInvalid"),
    ],
  ],
  onPlan(
    "completionSchema: without a type",
    { completionSchema: {} },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  onPlan(
    "completionSchema: of another draft",
    {
      completionSchema: {
        ...(PLAN.completionSchema as object),
        $schema: "http://json-schema.org/draft-04/schema#",
      },
    },
    "StageCompletionSchemaInvalid",
    "/completionSchema",
  ),
  [
    "completionSchema: of draft-07",
    {
      plan: {
        completionSchema: {
          ...(PLAN.completionSchema as object),
          $schema: "http://json-schema.org/draft-07/schema#",
        },
      },
    },
    [],
  ],
  // retryPolicy
  onPlan("retryPolicy: a number", { retryPolicy: 3 }, "StageRetryPolicyInvalid", "/retryPolicy"),
  onPlan(
    "retryPolicy: no attempts",
    { retryPolicy: { maxAttempts: 0, backoff: "none" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/maxAttempts",
  ),
  onPlan(
    "retryPolicy: half an attempt",
    { retryPolicy: { maxAttempts: 1.5, backoff: "none" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/maxAttempts",
  ),
  onPlan(
    "retryPolicy: unknown backoff",
    { retryPolicy: { maxAttempts: 1, backoff: "fibonacci" } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/backoff",
  ),
  onPlan(
    "retryPolicy: without backoff",
    { retryPolicy: { maxAttempts: 1 } },
    "StageRetryPolicyInvalid",
    "/retryPolicy/backoff",
  ),
  // turnCap
  onPlan("turnCap: none", { turnCap: 0 }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: a fraction", { turnCap: 1.5 }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: no number", { turnCap: Number.NaN }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: without limit", { turnCap: Number.POSITIVE_INFINITY }, "StageTurnCapTooLow", "/turnCap"),
  onPlan("turnCap: a word", { turnCap: "20" }, "StageTurnCapTooLow", "/turnCap"),
  // limits
  onPlan("limits: a soft one above", { limits: { turns: 3, soft: 2 } }, "LIMIT-INVALID", "/limits/soft"),
  onPlan("limits: none", { limits: { turns: 0 } }, "StageFieldType", "/limits/turns"),
  // resolutionPolicy
  ...["retry-later", "fail", "skip", "ask"].map((policy): Row => [
    `resolutionPolicy: ${policy}`,
    { plan: { resolutionPolicy: policy } },
    [],
  ]),
  onPlan(
    "resolutionPolicy: unknown",
    { resolutionPolicy: "later" },
    "StageResolutionPolicyInvalid",
    "/resolutionPolicy",
  ),
  // description, inputsSchema, tags
  ["description: a text", { plan: { description: "Plans." } }, []],
  onPlan("description: a list", { description: ["Plans."] }, "StageFieldType", "/description"),
  ["inputsSchema: a schema", { build: { inputsSchema: { type: "object", required: ["parsed"] } } }, []],
  onPlan("inputsSchema: a word", { inputsSchema: "any" }, "StageInputsInvalid", "/inputsSchema"),
  onPlan(
    "inputsSchema: of another draft",
    { inputsSchema: { $schema: "x" } },
    "StageInputsInvalid",
    "/inputsSchema",
  ),
  ["tags: words", { plan: { tags: ["a", "b"] } }, []],
  onPlan("tags: a word", { tags: "a" }, "StageFieldType", "/tags"),
  onPlan("tags: a number among them", { tags: ["a", 1] }, "StageFieldType", "/tags/1"),
  // anything else
  ["another key is the author's own", { plan: { owner: "me", model: "opus", meta: { a: [1] } } }, []],
  [
    "a key that restricts something elsewhere has no effect here",
    { plan: { permissionMode: "plan", sandbox: {}, maxTurns: 3 } },
    ["/permissionMode", "/sandbox", "/maxTurns"].map((key) => plan(key, "UNKNOWN-KEY", "warning")),
  ],
  [
    "a near miss is told",
    { plan: { turncap: 3, allowed_tools: [] } },
    [plan("/turncap", "UNKNOWN-KEY", "warning"), plan("/allowed_tools", "UNKNOWN-KEY", "warning")],
  ],
  [
    "a near miss of a required key is one error",
    { plan: { turnCap: undefined, turn_cap: 3 } },
    [plan("/turn_cap", "UNKNOWN-KEY")],
  ],
];
