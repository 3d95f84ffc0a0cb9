/**
 * Our tools for Claude Code: an MCP server in our own process. What it runs there is run as for any other model: behind
 * the gate, in the sandbox where there is one, and with nothing of Claude Code's own environment.
 */
import type { RunRequest, ToolSpec } from "../../engine/ports.ts";
import type { Json, JsonObject } from "../../flow/json.ts";
import { replyTo, type Served } from "../mcp/mcp-serve.ts";

/**
 * What Claude Code does by itself: it reads files, also pictures, each path held against our gate first. Searching and
 * changing files is ours: its own search would look through the records of runs, and its own writing would follow a
 * folder that was swapped for a link after the gate had judged it.
 */
const ITS_OWN: ReadonlySet<string> = new Set(["Read"]);

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
  const instance = createServer({
    server: SERVER,
    tools: ours,
    call: (name, input) => call({ name, input }, signal),
  });
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

function createServer(served: Served): Server {
  const hear = async (message: Json, transport: Transport) => {
    const reply = await replyTo(message, served);
    if (reply !== null) await transport.send(reply);
  };
  return {
    connect: async (transport) => {
      // If the query has ended, there is no one left to answer.
      const onmessage = (message: Json) => void hear(message, transport).catch(() => undefined);
      Object.assign(transport, { onmessage });
      await transport.start();
    },
  };
}
