/** Rows about tools, servers and the sandbox. */
import type { Changes } from "../../world.ts";
import { WORD, type NotFound, type Row } from "./row.ts";

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

export const FOUND: readonly Row[] = [
  ...TOOLS.map(([entry, says]): Row => ({
    code: "TOOL-UNKNOWN",
    name: `allowedTools has "${entry}"`,
    changes: { "agent /runner/boundaries/allowedTools": ["Read", entry] },
    at: "agent.json /runner/boundaries/allowedTools/1",
    step: null,
    says,
  })),
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
];

export const NOT_FOUND: readonly NotFound[] = [
  ...["build/", "a/.", "x~", "../cache", "/srv/x/", "~/x"].map((path) => ({
    code: "SANDBOX-PATH" as const,
    name: path,
    changes: { "agent /runner/boundaries/sandbox": { filesystem: { allowedPaths: [path] } } },
  })),
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
