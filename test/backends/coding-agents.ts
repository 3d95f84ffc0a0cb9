/** The coding agents that are tried: how each is pointed at a model on loopback, and what its tools are called. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Wire } from "./model-server.ts";

export type Call = { readonly name: string; readonly input: { readonly [field: string]: unknown } };

export type CodingAgent = {
  readonly name: string;
  /** The package that has to be there, below `node_modules`. */
  readonly package: string;
  readonly wire: Wire;
  /** The backend, and what config.json says of the agent; without a command it is Claude Code by its SDK. */
  readonly command?: (packages: string) => readonly string[];
  /** Variables that it is given, and files that it finds in its home folder. */
  readonly env: (url: string) => { readonly [name: string]: string };
  readonly files?: (url: string) => { readonly [path: string]: string };
  readonly bash: (command: string) => Call;
  /** It edits only what it has read. */
  readonly read?: (file: string) => Call;
  readonly edit: (file: string, old: string, text: string) => Call;
  readonly submit: (answer: object) => Call;
  /** It is asked once more after its answer was taken. */
  readonly goesOn: boolean;
  /** A call that is denied ends its turn. */
  readonly stopsWhenDenied?: true;
};

const claude = {
  wire: "anthropic",
  env: (url: string) => ({ ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "k" }),
  bash: (command: string) => ({ name: "Bash", input: { command, description: "as scripted" } }),
  edit: (file_path: string, old_string: string, new_string: string) => ({
    name: "Edit",
    input: { file_path, old_string, new_string },
  }),
} as const;

const adapter = {
  ...claude,
  read: (file_path: string) => ({ name: "Read", input: { file_path } }),
  submit: (answer: object) => ({ name: "mcp__lockstep__submit", input: { ...answer } }),
  goesOn: true,
} as const;

export const CODING_AGENTS: readonly CodingAgent[] = [
  {
    ...claude,
    name: "Claude Code",
    package: "@anthropic-ai/claude-agent-sdk",
    submit: (answer) => ({ name: "StructuredOutput", input: { ...answer } }),
    goesOn: false,
  },
  {
    ...adapter,
    name: "claude-code-acp",
    package: "@zed-industries/claude-code-acp",
    command: (packages) => node(packages, "@zed-industries/claude-code-acp/dist/index.js"),
  },
  {
    ...adapter,
    name: "claude-agent-acp",
    package: "@agentclientprotocol/claude-agent-acp",
    command: (packages) => node(packages, "@agentclientprotocol/claude-agent-acp/dist/index.js"),
  },
  {
    name: "opencode",
    package: "opencode-ai",
    wire: "anthropic",
    command: (packages) => [join(packages, "node_modules/.bin/opencode"), "acp"],
    env: (url) => ({
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        model: "anthropic/claude-sonnet-4-5",
        autoupdate: false,
        share: "disabled",
        lsp: false,
        formatter: false,
        permission: { "*": "ask" },
        provider: { anthropic: { options: { apiKey: "k", baseURL: `${url}/v1` } } },
      }),
    }),
    bash: (command) => ({ name: "bash", input: { command, description: "as scripted" } }),
    edit: (filePath, oldString, newString) => ({ name: "edit", input: { filePath, oldString, newString } }),
    submit: (answer) => ({ name: "lockstep_submit", input: { ...answer } }),
    goesOn: true,
  },
  {
    name: "Gemini CLI",
    package: "@google/gemini-cli",
    wire: "google",
    command: (packages) => [
      ...node(packages, "@google/gemini-cli/bundle/gemini.js"),
      "--acp",
      // In a folder that it does not trust it offers no tools of servers.
      "--skip-trust",
    ],
    env: (url) => ({ GEMINI_API_KEY: "k", GOOGLE_GEMINI_BASE_URL: url }),
    files: () => ({
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { disableAutoUpdate: true, disableUpdateNag: true },
      }),
    }),
    bash: (command) => ({
      name: "run_shell_command",
      input: { command, description: "As scripted (really)" },
    }),
    edit: (file_path, old_string, new_string) => ({
      name: "replace",
      input: { file_path, old_string, new_string, instruction: "as scripted" },
    }),
    submit: (answer) => ({ name: "mcp_lockstep_submit", input: { ...answer } }),
    goesOn: true,
  },
  {
    name: "Codex",
    package: "@agentclientprotocol/codex-acp",
    wire: "openai",
    command: (packages) => node(packages, "@agentclientprotocol/codex-acp/dist/index.js"),
    env: () => ({ OPENAI_API_KEY: "k" }),
    files: (url) => ({
      ".codex/config.toml": [
        'model = "gpt-5"',
        'model_provider = "loopback"',
        "[model_providers.loopback]",
        'name = "loopback"',
        `base_url = "${url}/v1"`,
        'env_key = "OPENAI_API_KEY"',
        'wire_api = "responses"',
      ].join("\n"),
    }),
    bash: (cmd) => ({
      name: "exec_command",
      // It would run it without asking in a sandbox of its own, where nothing can be written.
      input: { cmd, sandbox_permissions: "require_escalated", justification: "as scripted" },
    }),
    edit: (file, old, text) => ({
      name: "exec_command",
      input: {
        cmd: `apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: ${file}\n@@\n-${old}\n+${text}\n*** End Patch\nEOF`,
      },
    }),
    submit: (answer) => ({ name: "mcp__lockstep/submit", input: { ...answer } }),
    goesOn: true,
    stopsWhenDenied: true,
  },
];

/** Started with our own Node: that of the machine may be too old for it. */
function node(packages: string, file: string): readonly string[] {
  return [process.execPath, join(packages, "node_modules", file)];
}

/** Which of them are not installed there. */
export function missingIn(packages: string, agents: readonly CodingAgent[]): readonly string[] {
  return agents
    .map((agent) => agent.package)
    .filter((name) => !existsSync(join(packages, "node_modules", name, "package.json")));
}

export function writeAll(folder: string, files: { readonly [path: string]: string }): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
