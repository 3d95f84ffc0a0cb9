/**
 * Our tools for Claude Code: an MCP server in our own process. What it runs there is run as for any other model: behind
 * the gate, in the sandbox where there is one, and with nothing of Claude Code's own environment.
 */
import type { RunRequest, ToolSpec } from "../engine/ports.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { at, textIn } from "./untyped.ts";

/** What Claude Code does by itself: it reads and edits files, each path held against our gate first. It starts nothing. */
const ITS_OWN: ReadonlySet<string> = new Set(["Read", "Glob", "Grep", "Write", "Edit"]);

const SERVER = "lockstep";
const PREFIX = `mcp__${SERVER}__`;
/** For each call; the tools have limits of their own, which are shorter. */
const LONGEST_CALL_MS = 60 * 60_000;

/** The options by which it gets the tools of a step, its own and ours. */
export function toolOptions(
  tools: readonly ToolSpec[],
  call: RunRequest["call"],
  signal: AbortSignal,
): JsonObject & { readonly toolAliases: { readonly [name: string]: string } } {
  const ours = tools.filter(({ name }) => !ITS_OWN.has(name));
  const server = { type: "sdk", name: SERVER, timeout: LONGEST_CALL_MS };
  const instance = createServer(ours, call, signal);
  return {
    tools: tools.map(({ name }) => name).filter((name) => ITS_OWN.has(name)),
    toolAliases: Object.fromEntries(ours.map(({ name }) => [name, PREFIX + name])),
    mcpServers: ours.length === 0 ? {} : { [SERVER]: { ...server, instance: instance as unknown as Json } },
  };
}

/** The name by which a step knows the tool. */
export function ourName(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

/** What the SDK connects a server with. */
type Transport = {
  onmessage?: (message: Json) => void;
  readonly start: () => Promise<void>;
  readonly send: (message: JsonObject) => Promise<void>;
};

type Server = { readonly connect: (transport: Transport) => Promise<void> };

function createServer(tools: readonly ToolSpec[], call: RunRequest["call"], signal: AbortSignal): Server {
  async function answer(method: string, params: Json | undefined): Promise<JsonObject | null> {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: at(params, "protocolVersion") ?? "",
          capabilities: { tools: {} },
          serverInfo: { name: SERVER, version: "1" },
        };
      case "ping":
        return {};
      case "tools/list":
        return {
          tools: tools.map(({ name, description, input }) => ({ name, description, inputSchema: input })),
        };
      case "tools/call": {
        const input = at(params, "arguments") ?? {};
        const name = textIn(at(params, "name"));
        if (!isObject(input)) return said(false, "The input is not an object.");
        const { ok, content } = await call({ name, input }, signal);
        return said(ok, content);
      }
      default:
        return null;
    }
  }

  async function hear(message: Json, transport: Transport): Promise<void> {
    const id = isObject(message) ? own(message, "id") : undefined;
    if (id === undefined) return;
    const method = textIn(at(message, "method"));
    const result = await answer(method, at(message, "params")).catch((error: unknown) =>
      said(false, error instanceof Error ? error.message : String(error)),
    );
    const unknown = { code: -32601, message: `There is no ${method}.` };
    await transport.send({ jsonrpc: "2.0", id, ...(result === null ? { error: unknown } : { result }) });
  }

  return {
    connect: async (transport) => {
      // Whoever is no longer there to be answered has ended the query.
      const onmessage = (message: Json) => void hear(message, transport).catch(() => undefined);
      Object.assign(transport, { onmessage });
      await transport.start();
    },
  };
}

function said(ok: boolean, text: string): JsonObject {
  return { content: [{ type: "text", text }], isError: !ok };
}
