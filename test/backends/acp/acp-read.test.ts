/** What agents ask leave for, as calls that the gate knows; without any agent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toCalls, type JudgedAcpCall } from "../../../src/backends/acp/acp-read.ts";
import type { Json, JsonObject } from "../../../src/flow/json.ts";

const CODEX = "@agentclientprotocol/codex-acp";

const edit = (...paths: readonly string[]): readonly JudgedAcpCall[] =>
  paths.map((file_path) => ({ name: "Edit", input: { file_path } }));
const read = (...paths: readonly string[]): readonly JudgedAcpCall[] =>
  paths.map((file_path) => ({ name: "Read", input: { file_path } }));
const bash = (command: Json): readonly JudgedAcpCall[] => [{ name: "Bash", input: { command } }];

const grep = (file_path: string, glob?: string): JudgedAcpCall => ({
  name: "Grep",
  input: { file_path, ...(glob !== undefined && { glob }) },
});
const judgedAs = (kind: string): JudgedAcpCall => ({
  name: kind === "fetch" ? "WebFetch" : '"t"',
  input: { command: ["/bin/bash", "-lc", "find . -delete"] },
});

const calls: readonly (readonly [name: string, toolCall: JsonObject, expected: readonly JudgedAcpCall[]])[] =
  [
    ["a line for a shell", { kind: "execute", rawInput: { command: "ls -l" } }, bash("ls -l")],
    [
      "a shell with its line",
      { kind: "execute", rawInput: { command: ["/bin/bash", "-lc", "a && b"] } },
      bash("a && b"),
    ],
    ["words", { kind: "execute", rawInput: { command: ["git", "status"] } }, bash("git status")],
    ["no command", { kind: "execute" }, bash(null)],
    [
      "every place of an edit",
      { kind: "edit", rawInput: { file_path: "a" }, locations: [{ path: "b" }] },
      edit("a", "b"),
    ],
    ["an edit nowhere", { kind: "edit", rawInput: { patch: "x" } }, edit("")],
    ["a deletion", { kind: "delete", locations: [{ path: "a" }] }, edit("a")],
    ["a move", { kind: "move", rawInput: { path: "a" } }, edit("a")],
    ["reading", { kind: "read", rawInput: { path: "a" } }, [{ name: "Read", input: { file_path: "a" } }]],
    ["reading nothing in particular", { kind: "read" }, read("")],
    ["searching", { kind: "search", rawInput: { path: "a" } }, [{ name: "Grep", input: { file_path: "a" } }]],
    ["fetching", { kind: "fetch", rawInput: { url: "u" } }, [{ name: "WebFetch", input: { url: "u" } }]],
    [
      "a tool by its name",
      { kind: "other", name: "deploy", title: "Deploy it" },
      [{ name: "deploy", input: {} }],
    ],
    ["a tool by its title", { title: "Deploy it" }, [{ name: '"Deploy it"', input: {} }]],
    ["our own tool", { kind: "other", name: "mcp__lockstep7f__submit" }, []],
    ["our own tool, written otherwise", { name: "lockstep7f: submit" }, []],
    [
      "one with our name as its title and nothing else",
      { title: "mcp__lockstep7f__submit" },
      [{ name: '"mcp__lockstep7f__submit"', input: {} }],
    ],
    [
      "one with our name as its title, which has another name",
      { kind: "other", name: "Task", title: "mcp__lockstep7f__submit" },
      [{ name: "Task", input: {} }],
    ],
    [
      "one that thinks under our name",
      { kind: "think", title: "mcp__lockstep7f__submit" },
      [{ name: '"mcp__lockstep7f__submit"', input: {} }],
    ],
    [
      "one with the name of an allowed tool as its title",
      { kind: "other", title: "Read" },
      [{ name: '"Read"', input: {} }],
    ],
    [
      "an edit in several places",
      {
        kind: "edit",
        rawInput: {
          filepath: "a",
          changes: { b: { type: "update", move_path: "c" }, d: { move_path: null } },
        },
        content: [
          { type: "diff", path: "e" },
          { type: "content", path: "f" },
        ],
      },
      edit("a", "b", "d", "c", "e"),
    ],
    [
      "a command elsewhere",
      { kind: "execute", rawInput: { command: "ls", cwd: "/it's" } },
      bash("cd '/it'\\''s' && ls"),
    ],
    [
      "a command under our name",
      { kind: "execute", title: "lockstep7f submit", rawInput: { command: "rm a" } },
      bash("rm a"),
    ],
    [
      "one that only sounds like ours",
      { title: "run mcp__lockstep7f__submit" },
      [{ name: '"run mcp__lockstep7f__submit"', input: {} }],
    ],
    ...["read", "search", "edit", "fetch", "think", "other"].map(
      (kind) =>
        [
          `a command as ${kind}`,
          { kind, title: "t", rawInput: { command: ["/bin/bash", "-lc", "find . -delete"] } },
          [
            ...bash("find . -delete"),
            ...(kind === "edit" || kind === "read" || kind === "search" ? [] : [judgedAs(kind)]),
          ],
        ] as const,
    ),
    [
      "a command as reading, with its place",
      { kind: "read", rawInput: { cmd: "cat a", parsed_cmd: [{ type: "read", path: "a" }] } },
      [...bash("cat a"), ...read("a")],
    ],
    ...[
      [["./bash", "-lc", "git status"], "./bash -lc 'git status'"],
      [["/tmp/evil/sh", "-c", "git status"], "/tmp/evil/sh -c 'git status'"],
      [["/usr/bin/zsh", "-c", "a"], "a"],
      [["sh", "-c", "a"], "a"],
      [["/usr/bin/../x/sh", "-c", "a"], "/usr/bin/../x/sh -c a"],
      [["git status", "x"], "'git status' x"],
      [["git", "status", ";", "rm"], "git status ';' rm"],
      [["git", ""], "git ''"],
      [["git", 1], null],
      [[], null],
      [{ toString: "a" }, { toString: "a" }],
    ].map(
      ([command, line]) =>
        [
          `the words ${JSON.stringify(command)}`,
          { kind: "execute", rawInput: { command: command as Json } },
          bash(typeof line === "string" ? line : null),
        ] as const,
    ),
    ...(
      [
        [{ env: { PATH: "." } }, null],
        [{ shell: "/tmp/evil" }, null],
        [{ args: [";", "rm"] }, null],
        [{ cmd: "rm" }, null],
        [{ dangerouslyDisableSandbox: true }, null],
        [{ dangerouslyDisableSandbox: false, env: null }, "ls"],
        [{ description: "d", timeout: 5, run_in_background: true }, "ls"],
        [{ cwd: 5 }, null],
        [{ cwd: "" }, "cd '' && ls"],
        [{ cwd: "/w" }, "ls"],
        [{ cwd: "/w", workdir: "/x" }, "cd '/x' && ls"],
        [{ cwd: null, workdir: "/x" }, "cd '/x' && ls"],
        ...["directory", "dir_path", "working_directory", "workingDir", "workdir"].map(
          (field) => [{ [field]: "/x" }, "cd '/x' && ls"] as const,
        ),
      ] as const
    ).map(
      ([more, line]) =>
        [
          `a command with ${JSON.stringify(more)}`,
          { kind: "execute", rawInput: { command: "ls", ...more } },
          bash(line),
        ] as const,
    ),
    ...(
      [
        ["read", { absolute_path: "/x" }, read("/x")],
        ["read", { paths: ["/x", "y"] }, read("/x", "y")],
        ["read", { uri: "file:///etc/pass%77d" }, read("/etc/passwd")],
        ["read", { uri: "https://x/y" }, read("")],
        ["read", { limit: 5 }, read("")],
        ["search", { dir_path: "/x", pattern: "K" }, [grep("/x", "K")]],
        ["search", { directory: "/x", pattern: "/api" }, [grep("/x", "/api")]],
        ["search", { pattern: "/etc/**" }, [grep(".", "/etc/**")]],
        ["search", { pattern: "K", glob: "/etc/*" }, [grep(".", "/etc/*"), grep(".", "K")]],
        ["search", { pattern: "K" }, [grep(".", "K")]],
        ["search", { query: "K" }, [grep(".")]],
        ["search", { pattern: "K", scope: "home" }, [grep("", "K")]],
        ["read", { profile: "a" }, read("")],
        ["search", {}, [grep("")]],
        ["edit", { path: "a", target_file: "/x" }, edit("a", "/x")],
        ["edit", { path: "a", edits: [{ path: ".agent/x", new_string: "/y" }] }, edit("a", ".agent/x")],
        ["edit", { path: "file:///etc/passwd" }, edit("/etc/passwd")],
        ["edit", { path: "a", mode: "../x" }, edit("a", "../x")],
        ["edit", { mode: "../x" }, edit("", "../x")],
        ["edit", { path: "a", content: "/x", old_string: "file:///x" }, edit("a")],
        ["move", { path: "a", destination: "/x" }, edit("a", "/x")],
        ["move", { path: "a", new_path: ".git/hooks/x" }, edit("a", ".git/hooks/x")],
      ] as const
    ).map(
      ([kind, rawInput, expected]) =>
        [`${kind} with ${JSON.stringify(rawInput)}`, { kind, rawInput }, expected] as const,
    ),
    [
      "searching by the name of a tool for regular expressions",
      { kind: "search", name: "Grep", rawInput: { pattern: "/api", glob: "*.ts" } },
      [grep(".", "*.ts")],
    ],
    [
      "searching by a name without a kind",
      { name: "Glob", rawInput: { pattern: "../*" } },
      [{ name: "Glob", input: { file_path: ".", pattern: "../*" } }],
    ],
    [
      "reading by name with a place in another field",
      { kind: "other", name: "Read", rawInput: { uri: "file:///etc/passwd" } },
      read("/etc/passwd"),
    ],
    [
      "writing by name nowhere",
      { kind: "other", name: "Write", rawInput: { content: "x" } },
      [{ name: "Write", input: { file_path: "" } }],
    ],
    ["an edit by name, as a thought", { kind: "think", name: "Edit", rawInput: { file: "/x" } }, edit("/x")],
    ["a command by name", { kind: "think", name: "Bash", rawInput: { command: "ls", x: 1 } }, bash(null)],
    ...[
      "lockstep7f submit",
      "lockstep7f—submit",
      "lockstep7f / submit",
      "mcp_lockstep7f\nsubmit",
      "lockstep_submit",
    ].map(
      (text) =>
        [
          `something with the title ${JSON.stringify(text)}`,
          { kind: "other", title: text },
          [{ name: JSON.stringify(text), input: {} }],
        ] as const,
    ),
    [
      "our tool by its title alone",
      { kind: "other", title: "lockstep7f_submit" },
      [{ name: '"lockstep7f_submit"', input: {} }],
    ],
    [
      "a tool of a project's server with the name we begin with",
      { kind: "other", name: "mcp__lockstep__submit" },
      [{ name: "mcp__lockstep__submit", input: {} }],
    ],
  ];
for (const [name, toolCall, expected] of calls) {
  test(`an agent asks for ${name}`, () =>
    assert.deepEqual(toCalls(toolCall, { server: "lockstep7f", cwds: ["/w"] }), expected));
}

/** What the programs really sent, each with the name that it gives of itself and what it announced before. */
const EARLIER_ASK = {
  toolCallId: "call_15",
  title: "Approve MCP tool call",
  rawInput: {
    server_name: "lockstep7f",
    request: { mode: "form", _meta: { codex_approval_kind: "mcp_tool_call", tool_params: { a: 1 } } },
  },
};
const EARLIER_TOLD = { title: "Tool: lockstep7f/submit", rawInput: { server: "lockstep7f", tool: "submit" } };

const CODEX_ASKS = { toolCallId: "call_9", kind: "execute", status: "pending" };
const CODEX_TOLD = {
  kind: "execute",
  title: "mcp.lockstep7f.submit",
  rawInput: { server: "lockstep7f", tool: "submit", arguments: { a: 1 } },
  _meta: { is_mcp_tool_call: true },
};
const gemini = (id: string, more: JsonObject) => ({
  toolCallId: id,
  status: "pending",
  locations: [],
  ...more,
});
const geminiOf = (text: string) => [{ type: "content", content: { type: "text", text } }];
const served = ["mcp__docs__search", "mcp__docs__read_file", "mcp__docs__a_b", "mcp__docs_a__b"].map(
  (name) => ({
    name,
    description: "",
    input: {},
  }),
);

const shapes: readonly (readonly [
  name: string,
  agent: string,
  announced: JsonObject | null,
  toolCall: JsonObject,
  expected: readonly JudgedAcpCall[],
  meta?: Json,
])[] = [
  ["Codex, our tool", CODEX, CODEX_TOLD, CODEX_ASKS, [], { is_mcp_tool_approval: true }],
  ["Codex, our tool that is not asked for as one", CODEX, CODEX_TOLD, CODEX_ASKS, bash(null)],
  [
    "Codex, a command that was announced with our names in it",
    CODEX,
    { ...CODEX_TOLD, _meta: {} },
    { ...CODEX_ASKS, rawInput: { command: "rm a", server: "lockstep7f", tool: "submit" } },
    bash(null),
    { is_mcp_tool_approval: true },
  ],
  [
    "Codex, a tool that it was handed",
    CODEX,
    { ...CODEX_TOLD, rawInput: { server: "docs", tool: "search", arguments: { q: 1 } } },
    CODEX_ASKS,
    [{ name: "mcp__docs__search", input: { q: 1 } }],
    { is_mcp_tool_approval: true },
  ],
  [
    "Codex, a tool of a server of its own",
    CODEX,
    { ...CODEX_TOLD, rawInput: { server: "mine", tool: "deploy", arguments: { command: "ls" } } },
    CODEX_ASKS,
    [{ name: "mcp__mine__deploy", input: { command: "ls" } }],
    { is_mcp_tool_approval: true },
  ],
  [
    "Codex, an edit",
    CODEX,
    { kind: "edit", title: "Editing files" },
    { toolCallId: "call_6", title: "Edit files", kind: "edit", locations: [{ path: "/w/a" }] },
    edit("/w/a"),
  ],
  [
    "claude-code-acp, its own edit",
    "@zed-industries/claude-code-acp",
    {
      title: "Write",
      kind: "edit",
      rawInput: {},
      locations: [{ path: "b.txt" }],
      _meta: { claudeCode: { toolName: "Write" } },
    },
    { toolCallId: "1", rawInput: { file_path: "b.txt", content: "x" }, title: "Write b.txt" },
    edit("b.txt"),
  ],
  [
    "claude-code-acp, a command",
    "@zed-industries/claude-code-acp",
    { title: "Terminal", kind: "execute", _meta: { claudeCode: { toolName: "Bash" } } },
    { toolCallId: "1", rawInput: { command: "ls" }, title: "`ls`" },
    bash("ls"),
  ],
  [
    "claude-code-acp, a sub-agent that is described as our tool",
    "@zed-industries/claude-code-acp",
    { title: "Task", kind: "think", _meta: { claudeCode: { toolName: "Task" } } },
    {
      toolCallId: "1",
      rawInput: { description: "mcp__lockstep7f__submit" },
      title: "mcp__lockstep7f__submit",
    },
    [{ name: "Task", input: { description: "mcp__lockstep7f__submit" } }],
  ],
  [
    "claude-code-acp, our tool",
    "@zed-industries/claude-code-acp",
    {
      title: "mcp__lockstep7f__submit",
      kind: "other",
      _meta: { claudeCode: { toolName: "mcp__lockstep7f__submit" } },
    },
    { toolCallId: "1", rawInput: { a: 1 }, title: "mcp__lockstep7f__submit" },
    [],
  ],
  [
    "opencode, our tool",
    "OpenCode",
    { title: "lockstep7f_submit", kind: "other" },
    { toolCallId: "1", title: "lockstep7f_submit", kind: "other", rawInput: {} },
    [],
  ],
  [
    "opencode, another tool with a title of the model",
    "OpenCode",
    { title: "deploy", kind: "other" },
    { toolCallId: "1", title: "lockstep7f_submit", kind: "other", rawInput: {} },
    [{ name: '"deploy"', input: {} }],
  ],
  ["earlier Codex, our tool", "codex-acp", EARLIER_TOLD, EARLIER_ASK, []],
  [
    "earlier Codex, our tool that was not announced",
    "codex-acp",
    null,
    EARLIER_ASK,
    [{ name: '"Approve MCP tool call"', input: EARLIER_ASK.rawInput }],
  ],
  [
    "earlier Codex, another server",
    "codex-acp",
    { rawInput: { server: "mine", tool: "submit" } },
    { ...EARLIER_ASK, rawInput: { ...EARLIER_ASK.rawInput, server_name: "mine" } },
    [{ name: "mcp__mine__submit", input: { a: 1 } }],
  ],
  [
    "earlier Codex, a server that asks something under our name",
    "codex-acp",
    EARLIER_TOLD,
    { ...EARLIER_ASK, rawInput: { server_name: "lockstep7f", request: { mode: "form" } } },
    [{ name: '"Approve MCP tool call"', input: { server_name: "lockstep7f", request: { mode: "form" } } }],
  ],
  [
    "earlier Codex, a tool that it was handed",
    "codex-acp",
    { rawInput: { server: "docs", tool: "search" } },
    { ...EARLIER_ASK, rawInput: { ...EARLIER_ASK.rawInput, server_name: "docs" } },
    [{ name: "mcp__docs__search", input: { a: 1 } }],
  ],
  [
    "a tool of another agent whose input looks like Codex",
    "OpenCode",
    { title: "deploy", kind: "other" },
    { ...EARLIER_ASK, kind: "other" },
    [{ name: '"deploy"', input: EARLIER_ASK.rawInput }],
  ],
  [
    "earlier Codex, a command in its folder",
    "codex-acp",
    null,
    { kind: "execute", title: "touch a", rawInput: { command: ["/bin/bash", "-lc", "touch a"], cwd: "/w" } },
    bash("touch a"),
  ],
  [
    "earlier Codex, a command in another folder",
    "codex-acp",
    null,
    {
      kind: "execute",
      title: "touch a",
      rawInput: { command: ["/bin/bash", "-lc", "touch a"], cwd: "/etc" },
    },
    bash("cd '/etc' && touch a"),
  ],
  [
    "Gemini CLI, our tool",
    "gemini-cli",
    null,
    gemini("mcp_lockstep7f_submit__mcp_lockstep7f_submit_1_0", {
      title: "submit (lockstep7f MCP Server)",
      kind: "other",
      content: geminiOf('{"a":1}'),
    }),
    [],
  ],
  [
    "Gemini CLI, our tool with an answer that has a command in it",
    "gemini-cli",
    null,
    gemini("mcp_lockstep7f_submit-1794-1", { title: "rm -rf /", kind: "other" }),
    [],
  ],
  [
    "Gemini CLI, another server's tool with our title",
    "gemini-cli",
    null,
    gemini("mcp_mine_deploy__1", {
      title: "submit (lockstep7f MCP Server)",
      kind: "other",
      content: geminiOf('{"command":"x"}'),
    }),
    [{ name: "mcp_mine_deploy", input: { command: "x" } }],
  ],
  [
    "Gemini CLI, a mode with our title",
    "gemini-cli",
    null,
    gemini("enter_plan_mode__1", { title: "submit (lockstep7f MCP Server)", kind: "other" }),
    [{ name: '"submit (lockstep7f MCP Server)"', input: {} }],
  ],
  [
    "Gemini CLI, a tool that it was handed",
    "gemini-cli",
    null,
    gemini("mcp_docs_search__1", {
      title: "search (docs MCP Server)",
      kind: "other",
      content: geminiOf('{"q":"x"}'),
    }),
    [{ name: "mcp__docs__search", input: { q: "x" } }],
  ],
  [
    "Gemini CLI, one of two tools that it calls the same",
    "gemini-cli",
    null,
    gemini("mcp_docs_a_b__1", { kind: "other" }),
    [
      { name: "mcp__docs__a_b", input: {} },
      { name: "mcp__docs_a__b", input: {} },
    ],
  ],
  [
    "Gemini CLI, a command",
    "gemini-cli",
    null,
    gemini("run_shell_command__1", {
      title: "touch a && ls",
      kind: "execute",
      content: geminiOf("[current working directory /w] ([in /etc])"),
    }),
    bash("touch a && ls"),
  ],
  [
    "Gemini CLI, a command in another folder",
    "gemini-cli",
    null,
    gemini("run_shell_command__1", {
      title: "touch a",
      kind: "execute",
      content: geminiOf("[in /etc] (fine)"),
    }),
    bash("cd '/etc' && touch a"),
  ],
  [
    "an agent that is not known, a command in its title only",
    "other-agent",
    null,
    { title: "git status", kind: "execute" },
    bash(null),
  ],
  [
    "Gemini CLI, an edit",
    "gemini-cli",
    null,
    gemini("replace__1", {
      title: "cart.js: 1 => 2",
      kind: "edit",
      content: [{ type: "diff", path: "/w/cart.js" }],
      locations: [{ path: "/w/cart.js" }],
    }),
    edit("/w/cart.js"),
  ],
  [
    "Gemini CLI, reading what a prompt mentions",
    "gemini-cli",
    null,
    gemini("resolve-prompt-x", { title: "Allow access to absolute path: /etc/passwd", kind: "read" }),
    read(""),
  ],
  ...(
    [
      ["lockstep7f.", ".submit", '"mcp__lockstep7f.__.submit"'],
      ["lockstep7f!", "submit", '"mcp__lockstep7f!__submit"'],
      ["lockstep", "submit", "mcp__lockstep__submit"],
      ["docs_read", "file", "mcp__docs_read__file"],
      ["docs", "a_b", "mcp__docs__a_b"],
      ["docs", "a b", "mcp__docs__a b"],
      ["docs__a", "b", '"mcp__docs__a__b"'],
    ] as const
  ).map(
    ([server, tool, name]) =>
      [
        `Codex, the tool ${JSON.stringify(tool)} of ${JSON.stringify(server)}`,
        CODEX,
        { ...CODEX_TOLD, rawInput: { server, tool, arguments: {} } },
        CODEX_ASKS,
        [{ name, input: {} }],
        { is_mcp_tool_approval: true },
      ] as const,
  ),
  ...(
    [
      ["mcp_lockstep7f_submit__run-1700000000000-1", "mcp_lockstep7f_submit__run"],
      ["mcp_lockstep7f_submit___x__mcp_lockstep7f_submit___x_1_0", "mcp_lockstep7f_submit___x"],
      ["mcp_lockstep7f_submit-1-1-1700-3", "mcp_lockstep7f_submit-1-1"],
      ["mcp__docs__search__1", '"mcp__docs__search"'],
      [`mcp_lockstep7f_submit__${"1".repeat(500)}`, '"t"'],
    ] as const
  ).map(
    ([id, name]) =>
      [
        `Gemini CLI, the id ${id.slice(0, 60)}`,
        "gemini-cli",
        null,
        gemini(id, { title: "t", kind: "other" }),
        [{ name, input: {} }],
      ] as const,
  ),
  [
    "Gemini CLI, a command with an id like that of our tool",
    "gemini-cli",
    null,
    gemini("mcp_lockstep7f_submit-1-1", { title: "rm -rf /", kind: "execute" }),
    bash(null),
  ],
  ...[" [in /tmp/evil]", "rm -rf /"].map(
    (text) =>
      [
        `Gemini CLI, a command with ${JSON.stringify(text)} beside it`,
        "gemini-cli",
        null,
        gemini("run_shell_command__1", { title: "npm test", kind: "execute", content: geminiOf(text) }),
        bash(null),
      ] as const,
  ),
  [
    "opencode, our tool that was not announced",
    "OpenCode",
    null,
    { toolCallId: "1", title: "lockstep7f_submit", kind: "other", rawInput: {} },
    [{ name: '"lockstep7f_submit"', input: {} }],
  ],
  [
    "opencode, another tool than the one that was announced",
    "OpenCode",
    { title: "lockstep7f_submit", kind: "other" },
    { toolCallId: "1", title: "deploy", kind: "other", rawInput: {} },
    [{ name: '"lockstep7f_submit"', input: {} }],
  ],
  [
    "opencode, our title on a tool with another name",
    "OpenCode",
    { title: "lockstep7f_submit", kind: "other" },
    { toolCallId: "1", title: "lockstep7f_submit", kind: "other", name: "Task", rawInput: {} },
    [{ name: '"lockstep7f_submit"', input: {} }],
  ],
  [
    "opencode, a tool that it was handed",
    "OpenCode",
    { title: "docs_search", kind: "other" },
    { toolCallId: "1", title: "docs_search", kind: "other", rawInput: {} },
    [{ name: "mcp__docs__search", input: {} }],
  ],
  [
    "opencode, a command whose folder only the announcement names",
    "OpenCode",
    { title: "bash", kind: "execute", rawInput: { cwd: "/w", workdir: "/x" } },
    { toolCallId: "1", title: "ls", kind: "execute", rawInput: { command: "ls" } },
    bash("cd '/x' && ls"),
  ],
  [
    "claude-agent-acp, a call under two names",
    "@agentclientprotocol/claude-agent-acp",
    { title: "t", kind: "other", name: "mcp__lockstep7f__submit" },
    { toolCallId: "1", kind: "other", name: "Task" },
    [{ name: '"Task or mcp__lockstep7f__submit"', input: {} }],
  ],
];
for (const [name, agent, announced, toolCall, expected, meta] of shapes) {
  test(`${name} is judged as what it is`, () => {
    const first = announced ?? {};
    assert.deepEqual(
      toCalls(toolCall, {
        agent,
        cwds: ["/w"],
        server: "lockstep7f",
        served,
        meta,
        announced: { first, now: first },
      }),
      expected,
    );
  });
}
