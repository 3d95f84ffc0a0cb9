/**
 * The MCP server that takes an agent's answer: one tool, whose input is written to a file. The agent starts it, so it
 * is a program of its own, handed over as text: it needs nothing but Node.
 */
import { SERVER, SUBMIT } from "./acp-read.ts";

/** Its one argument is the file. The caller validates the answer later. */
export const SUBMIT_SERVER = `
import { renameSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const file = process.argv.at(-1);
const tool = {
  name: ${JSON.stringify(SUBMIT)},
  description: "Takes your answer to the current task. Call it once, when you are done, with nothing beside it.",
  inputSchema: { type: "object" },
};

function answer({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: ${JSON.stringify(SERVER)}, version: "1" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: [tool] };
    case "tools/call":
      writeFileSync(file + ".part", JSON.stringify(params.arguments ?? {}));
      renameSync(file + ".part", file);
      return { content: [{ type: "text", text: "Received. End your turn now." }] };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  const request = JSON.parse(line);
  if (request.id === undefined) continue;
  const result = answer(request);
  const outcome = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...outcome }) + "\\n");
}
`;
