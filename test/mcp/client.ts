/** The official MCP client, connected to `lockstep mcp` as a user's program connects to it; and a project for it. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { MAIN, replies, script, writeAgent, type World } from "../cli/world.ts";
import { needs } from "../needs.ts";
import { until } from "../until.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const wanted = ["@modelcontextprotocol/client", "@modelcontextprotocol/server"];
const isInstalled = wanted.every((name) => existsSync(join(packages, "node_modules", name, "package.json")));

export const { skip } = needs(isInstalled, `${wanted.join(" and ")} not installed`);

// oxlint-disable-next-line typescript/no-explicit-any -- documents are read at depth, and each test asserts what it reads
export type Document = any;

export type ToolResult = {
  readonly content: readonly { readonly text: string }[];
  readonly structuredContent?: Document;
  readonly isError?: boolean;
};

type Options = {
  readonly signal?: AbortSignal;
  readonly timeout?: number;
  readonly onprogress?: (progress: { readonly progress: number; readonly message?: string }) => void;
};

export type McpClient = {
  readonly connect: (transport: object) => Promise<void>;
  readonly close: () => Promise<void>;
  readonly listTools: () => Promise<{ readonly tools: readonly Document[] }>;
  readonly callTool: (
    call: { readonly name: string; readonly arguments?: object },
    options?: Options,
  ) => Promise<ToolResult>;
  readonly listResources: () => Promise<{ readonly resources: readonly Document[] }>;
  readonly listResourceTemplates: () => Promise<{ readonly resourceTemplates: readonly Document[] }>;
  readonly readResource: (asked: {
    readonly uri: string;
  }) => Promise<{ readonly contents: readonly Document[] }>;
  readonly setRequestHandler: (method: string, handler: (request: Document) => Promise<object>) => void;
  readonly setNotificationHandler: (method: string, handler: () => void) => void;
  readonly getNegotiatedProtocolVersion: () => string | undefined;
};

type Transport = { readonly pid?: number | null; readonly terminateSession?: () => Promise<void> };
type Sdk = {
  readonly Client: new (about: object, options: object) => McpClient;
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => Transport;
  readonly StdioClientTransport: new (options: object) => Transport;
};

function sdk(): Sdk {
  const load = createRequire(join(packages, "package.json"));
  const stdio = load("@modelcontextprotocol/client/stdio") as Sdk;
  return {
    ...(load("@modelcontextprotocol/client") as Sdk),
    StdioClientTransport: stdio.StdioClientTransport,
  };
}

/** Revisions of the protocol: with a handshake and sessions, and with neither. */
export type Era = "2025" | "2026";

export type How = {
  readonly era?: Era;
  /** Shows forms: what the person says to each. Absent: the client has none. */
  readonly person?: (asked: Document) => object;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
};

function createClient({ era = "2025", person }: How): McpClient {
  const { Client } = sdk();
  const client = new Client(
    { name: "test", version: "1" },
    {
      capabilities: person === undefined ? {} : { elicitation: { form: {} } },
      versionNegotiation: { mode: era === "2026" ? { pin: "2026-07-28" } : "legacy" },
    },
  );
  if (person !== undefined)
    client.setRequestHandler(
      "elicitation/create",
      async ({ params }) => await Promise.resolve(person(params)),
    );
  return client;
}

export type Connected = McpClient & {
  /** Of the server that the client started; 0: it was not started by the client. */
  readonly pid: number;
  /** Says to the server that it will not come again; only over HTTP. */
  readonly endSession: () => Promise<void>;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

async function connected(client: McpClient, transport: Transport): Promise<Connected> {
  await client.connect(transport);
  return Object.assign(client, {
    pid: transport.pid ?? 0,
    endSession: async () => await transport.terminateSession!(),
    [Symbol.asyncDispose]: async () => await client.close(),
  });
}

export function serverEnv(world: World, env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { ...world.env, LOCKSTEP_PACKAGES: packages, LOCKSTEP_TRUST: "all", ...env };
}

export async function overStdio(world: World, how: How = {}): Promise<Connected> {
  const { StdioClientTransport } = sdk();
  const args = [MAIN, "mcp", ...(how.flags ?? ["--script", "all.json"])];
  const env = serverEnv(world, how.env);
  const transport = new StdioClientTransport({ command: process.execPath, args, cwd: world.root, env });
  return await connected(createClient(how), transport);
}

export type ServedMcp = {
  readonly url: string;
  readonly port: number;
  readonly token: string;
  /** What was printed; null: nothing, as the user has one. */
  readonly made: string | null;
  readonly pid: number;
  readonly connect: (how?: How) => Promise<Connected>;
};

/** Ends with the world. */
export async function overHttp(
  world: World,
  { flags = ["--script", "all.json"], env }: How = {},
): Promise<ServedMcp> {
  const child = world.begin(["mcp", "--http", "--json", ...flags], serverEnv(world, env));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  await until(() => stdout.endsWith("\n") || child.exitCode !== null, "the server has an address");
  if (stdout === "") throw new Error(`The server did not start: ${stderr}`);
  const {
    url,
    port,
    token: made,
  } = JSON.parse(stdout) as {
    readonly url: string;
    readonly port: number;
    readonly token: string | null;
  };
  const token = made ?? env!.LOCKSTEP_MCP_TOKEN!;
  const { StreamableHTTPClientTransport } = sdk();
  return {
    url,
    port,
    token,
    made,
    pid: child.pid!,
    connect: async (how = {}) =>
      await connected(
        createClient(how),
        new StreamableHTTPClientTransport(new URL(url), {
          requestInit: { headers: { Authorization: `Bearer ${token}` } },
        }),
      ),
  };
}

export const ALL = [replies.initial(), replies.continuation(), replies.closure()];
/** Keeps its run alive for so long. */
export const slow = (ms: number) => ({ error: { kind: "rate-limit", retryAfterMs: ms } });
export const WRITE = { calls: [{ name: "Write", input: { file_path: "made.txt", content: "hi" } }] };
export const COLOUR = {
  calls: [
    {
      name: "AskUserQuestion",
      input: {
        questions: [{ question: "Which colour?", options: [{ label: "red" }, { label: "blue" }] }],
      },
    },
  ],
};

/** The agent `notes`; what the model says first; `asks`: it may write only when a person agrees. */
export function writeNotes(
  world: World,
  { asks = false }: { readonly asks?: boolean } = {},
  ...first: readonly object[]
): void {
  writeAgent(world, "notes", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { permissionMode?: string } };
      if (asks) steps["initial.note"]!.permissionMode = "default";
    },
    agent: (agent) => {
      const runner = agent.runner as { boundaries: { allowedTools: readonly string[] }; questions?: object };
      runner.boundaries.allowedTools = ["*"];
      runner.questions = { askUser: "person" };
    },
  });
  world.write("all.json", script(...first, ...ALL));
}

export async function stateOf(world: World, run: string): Promise<string> {
  const { stdout } = await world.lockstep(["runs", "--json"]);
  const { runs } = JSON.parse(stdout) as { readonly runs: readonly { run: string; state: string }[] };
  return runs.find((row) => row.run === run)?.state ?? "none";
}

export async function becomes(world: World, run: string, state: string): Promise<void> {
  await until(async () => (await stateOf(world, run)) === state, `${run} becomes ${state}`);
}
