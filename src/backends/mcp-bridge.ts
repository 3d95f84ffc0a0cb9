/**
 * Tools that we run for a coding agent, handed to it as MCP servers. The agent starts a small program for each, which only
 * passes on what is said between the two of us: the servers themselves, their keys and the gate stay on our side.
 */
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { CallResult } from "../flow/event.ts";
import type { ToolSpec } from "../engine/ports.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { serverNamed, toolNameOf } from "../flow/mcp.ts";
import { toDraft07 } from "./draft-07.ts";
import { textIn } from "./untyped.ts";

/** What the agent is told of the tools of one server. */
export type BridgedServer = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
};

export type BridgedCall = (name: string, input: JsonObject) => Promise<Pick<CallResult, "ok" | "content">>;

export type Bridge = { readonly servers: readonly BridgedServer[]; readonly close: () => Promise<void> };

/** `call` is asked for when a call comes: an agent may keep its servers from one query to the next. */
export async function openBridge(
  folder: string,
  tools: readonly ToolSpec[],
  call: () => BridgedCall,
): Promise<Bridge> {
  const path = join(folder, `tools-${++bridges}.sock`);
  const lines = new Set<Socket>();
  const door = createServer((line) => {
    lines.add(line);
    line.on("close", () => lines.delete(line)).on("error", () => undefined);
    serve(line, tools, call);
  });
  await new Promise<void>((resolve, reject) => door.once("error", reject).listen(path, resolve));
  const names = new Set(tools.flatMap(({ name }) => serverNamed(name) ?? []));
  return {
    servers: [...names].map((name) => ({
      name,
      command: process.execPath,
      args: ["--input-type=module", "--eval", RELAY, path, name],
    })),
    close: async () => {
      for (const line of lines) line.destroy();
      await new Promise((resolve) => door.close(resolve));
    },
  };
}

let bridges = 0;

/** Its arguments are the socket and the name of the server, which is the first line it says to us. */
const RELAY = `
import { connect } from "node:net";
const [path, server] = process.argv.slice(-2);
const line = connect(path).on("error", () => process.exit(1)).on("close", () => process.exit(0));
line.write(server + "\\n");
process.stdin.pipe(line);
line.pipe(process.stdout);
`;

function serve(line: Socket, tools: readonly ToolSpec[], call: () => BridgedCall): void {
  let server: string | null = null;
  createInterface({ input: line }).on("line", (text) => {
    if (server === null) server = text;
    else void reply(line, text, server, tools, call);
  });
}

async function reply(
  line: Socket,
  text: string,
  server: string,
  tools: readonly ToolSpec[],
  call: () => BridgedCall,
): Promise<void> {
  const request = parse(text);
  const id = request === null ? undefined : own(request, "id");
  if (request === null || id === undefined) return;
  const params = isObject(request.params) ? request.params : {};
  const told = await answer(textIn(request.method), params, server, tools, call);
  if (line.writable) line.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...told })}\n`);
}

async function answer(
  method: string,
  params: JsonObject,
  server: string,
  tools: readonly ToolSpec[],
  call: () => BridgedCall,
): Promise<JsonObject> {
  switch (method) {
    case "initialize": {
      const { protocolVersion = "2025-06-18" } = params;
      const serverInfo = { name: server, version: "1" };
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } };
    }
    case "ping":
      return { result: {} };
    case "tools/list":
      return { result: { tools: tools.flatMap((tool) => listed(tool, server)) } };
    case "tools/call": {
      const input = isObject(params.arguments) ? params.arguments : {};
      try {
        const { ok, content } = await call()(toolNameOf(server, textIn(params.name)), input);
        return { result: { content: [{ type: "text", text: content }], isError: !ok } };
      } catch (error) {
        return { error: { code: -32_603, message: error instanceof Error ? error.message : String(error) } };
      }
    }
    default:
      return { error: { code: -32_601, message: "Method not found" } };
  }
}

function listed({ name, description, input }: ToolSpec, server: string): readonly JsonObject[] {
  if (serverNamed(name) !== server) return [];
  return [{ name: name.slice(toolNameOf(server, "").length), description, inputSchema: toDraft07(input) }];
}

function parse(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
