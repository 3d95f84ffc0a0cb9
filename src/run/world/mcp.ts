/** The servers of tools of a run: started before anything is recorded, behind the run's sandbox, and gone when it ends. */
import { manual } from "../../flow/manual.ts";
import { loadPeer } from "../../backends/peer.ts";
import { mayOffer, TOOL_NAMES } from "../../boundaries/gate/gate.ts";
import type { ServedTool } from "../../boundaries/tools/toolbox.ts";
import { openServer, type McpSdk, type OpenServer } from "../../effects/mcp/mcp-client.ts";
import { childEnv, type Env } from "../../effects/process/process.ts";
import { RunnerError } from "../../engine/ports.ts";
import { errorText, shownInLine } from "../../flow/text/harmless.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import {
  ENV_REFERENCE,
  serverNamed,
  serversInUse,
  serverText,
  serverValues,
  toolNameOf,
  variablesIn,
  type McpServer,
} from "../../flow/mcp.ts";
import { reachFrom } from "../../flow/graph.ts";
import { isNeverPassed } from "./config.ts";
import type { SandboxGround } from "./sandbox.ts";

export type Servers = {
  readonly tools: readonly ServedTool[];
  readonly warnings: readonly string[];
  /** When it resolves, nothing of the servers is left running. */
  readonly close: () => Promise<void>;
};

export type ServersAround = {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Names of the user's environment that programs may see, besides the usual ones. */
  readonly allow: readonly string[];
  /** How their programs are started. */
  readonly child: SandboxGround["child"];
  readonly signal: AbortSignal;
  readonly startMs?: number;
  readonly callMs?: number;
};

/** MCP_UNAVAILABLE, with the server and the reason, when one that a step may use cannot be had. */
export async function openServers(flow: Flow, around: ServersAround): Promise<Servers> {
  const steps = stepsOf(flow);
  const wanted = serversInUse(flow.settings.mcpServers ?? {}, steps);
  if (wanted.length === 0) return { tools: [], warnings: [], close: () => Promise.resolve() };
  for (const [name, server] of wanted) requireVariables(name, server, around);
  const sdk = (await loadPeer(peerOf(wanted[0]![0]), around.env)) as McpSdk;
  const settled = await Promise.allSettled(
    wanted.map(async ([name, server]) => [name, await open(name, server, sdk, around)] as const),
  );
  const opened = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const close = async () => void (await Promise.all(opened.map(([, server]) => server.close())));
  try {
    for (const one of settled) if (one.status === "rejected") throw one.reason;
    const tools = opened.flatMap(([name, server]) => toolsOf(name, server));
    const warnings = [
      ...opened.flatMap(([, { notes }]) => notes),
      ...missingTools(steps, opened),
      ...tooManyTools(steps, tools),
    ];
    return { tools, warnings, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Why no server of tools could be spoken to here; null when one could. */
export async function whyNoServers(server: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  try {
    await loadPeer(peerOf(server), env);
    return null;
  } catch (error) {
    return errorText(error);
  }
}

function peerOf(server: string) {
  return {
    name: "@modelcontextprotocol/client",
    version: "2",
    whose: `The MCP server "${server}"`,
    page: manual("mcp"),
    code: "MCP_UNAVAILABLE",
  };
}

/** The steps that a run can come to; code may lead anywhere. */
function stepsOf({ steps, entry, hooks }: Flow): readonly Step[] {
  const all = Object.values(steps);
  if (hooks !== undefined || !Object.hasOwn(steps, entry)) return all;
  const reach = reachFrom(entry, new Map(Object.entries(steps)));
  return all.filter(({ id }) => reach.steps.has(id));
}

function requireVariables(name: string, server: McpServer, { env, allow }: ServersAround): void {
  const seen = childEnv(env, allow);
  for (const variable of variablesIn(serverValues(server))) {
    if (seen[variable] !== undefined) continue;
    const why = isNeverPassed(variable)
      ? `${variable} is a model or GitHub key, which is never passed to a program of a project`
      : allow.includes(variable)
        ? `${variable} is not set`
        : `${variable} is not passed on by default: list it in "env" in your own config.json`;
    throw unavailable(name, server, why);
  }
}

async function open(
  name: string,
  server: McpServer,
  sdk: McpSdk,
  { cwd, env, allow, child, ...how }: ServersAround,
): Promise<OpenServer> {
  const seen = childEnv(env, allow);
  const values = expanded(serverValues(server), seen);
  try {
    if (server.kind === "http")
      return await openServer({ name, sdk, where: { url: server.url, headers: values }, ...how });
    const argv = [server.command, ...server.args];
    const confined = child(argv, cwd);
    const { command, afterwards } = confined;
    const where = { argv: command, cwd, env: { ...seen, ...values, ...confined.env } };
    return await openServer({ name, sdk, where, afterwards, ...how });
  } catch (error) {
    throw unavailable(name, server, errorText(error), error);
  }
}

function expanded(
  values: { readonly [name: string]: string },
  seen: Env,
): { readonly [name: string]: string } {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      value.replaceAll(ENV_REFERENCE, (_, variable: string) => seen[variable] ?? ""),
    ]),
  );
}

function toolsOf(name: string, { tools, call }: OpenServer): readonly ServedTool[] {
  return (
    tools
      // The name of a built-in tool always means that tool.
      .filter((tool) => !TOOL_NAMES.has(tool.name))
      .map(({ tool, name: as, description, input, reads }) => ({
        spec: { name: as, description, input },
        reads,
        run: (given, signal) => call(tool, given, signal),
      }))
  );
}

/** Tools that a step lists by their whole names, and that are not there. */
function missingTools(
  steps: readonly Step[],
  opened: readonly (readonly [string, OpenServer])[],
): readonly string[] {
  const there = new Set(opened.flatMap(([, { tools }]) => tools.map((tool) => tool.name)));
  const servers = new Set(opened.map(([name]) => name));
  const listed = new Set(steps.flatMap(({ tools }) => tools.allow));
  return [...listed].flatMap((pattern) => {
    const server = pattern.includes("*") ? null : serverNamed(pattern);
    if (server === null || !servers.has(server) || there.has(pattern)) return [];
    const wanted = pattern.slice(toolNameOf(server, "").length);
    const theirs = opened.flatMap(([name, { tools }]) => (name === server ? tools : []));
    const found = theirs.find(({ tool }) => tool === wanted);
    return [
      found === undefined
        ? `the server "${server}" has no tool "${wanted}", which a step allows`
        : `the tool "${wanted}" of the server "${server}" is called ${found.name} here: write that in allowedTools`,
    ];
  });
}

/** Some providers refuse a request with more tools than this. */
const MOST_OFFERED = 128;

function tooManyTools(steps: readonly Step[], served: readonly ServedTool[]): readonly string[] {
  const readers = new Set(served.flatMap(({ spec, reads }) => (reads ? [spec.name] : [])));
  const names = [...TOOL_NAMES, ...served.map(({ spec }) => spec.name)];
  return steps.flatMap((step) => {
    const count = names.filter((name) => mayOffer(step, name, readers)).length;
    if (count <= MOST_OFFERED) return [];
    const fix = "list the tools that it needs in allowedTools, by their names";
    return [
      `step "${step.id}" offers ${count} tools, but OpenAI and others accept at most ${MOST_OFFERED} in a request: ${fix}`,
    ];
  });
}

function unavailable(name: string, server: McpServer, why: string, cause?: unknown): RunnerError {
  return new RunnerError(
    "MCP_UNAVAILABLE",
    `The MCP server "${name}" (${shownInLine(serverText(server))}) cannot be used: ${why}. See ${manual("mcp")}`,
    { cause },
  );
}
