/**
 * Tools that we run for a coding agent, handed to it as MCP servers. The agent starts a small program for each, which only
 * passes on what is said between the two of us: the servers themselves, their keys and the gate stay on our side.
 */
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ToolSpec } from "../../engine/ports.ts";
import { parseJson } from "../../flow/json.ts";
import { serverNamed, toolNameOf } from "../../flow/mcp.ts";
import { replyTo, type Served } from "./mcp-serve.ts";

/** What the agent receives about the tools of one server. */
export type BridgedServer = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
};

export type BridgedCall = Served["call"];

export type McpBridge = { readonly servers: readonly BridgedServer[]; readonly close: () => Promise<void> };

/** `call` is asked for when a call comes: an agent may keep its servers from one query to the next. */
export async function openMcpBridge(
  folder: string,
  tools: readonly ToolSpec[],
  call: () => BridgedCall,
): Promise<McpBridge> {
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
  let served: Served | null = null;
  const hear = async (text: string, to: Served) => {
    const reply = await replyTo(parseJson(text) ?? null, to);
    if (reply !== null && line.writable) line.write(`${JSON.stringify(reply)}\n`);
  };
  createInterface({ input: line }).on("line", (text) => {
    if (served === null) served = servedBy(text, tools, call);
    else void hear(text, served);
  });
}

function servedBy(server: string, tools: readonly ToolSpec[], call: () => BridgedCall): Served {
  const prefix = toolNameOf(server, "");
  return {
    server,
    tools: tools.flatMap(({ name, description, input }) =>
      serverNamed(name) === server ? [{ name: name.slice(prefix.length), description, input }] : [],
    ),
    call: (name, input) => call()(prefix + name, input),
  };
}
