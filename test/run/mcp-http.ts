/** An MCP server behind HTTP on loopback, written by hand, which misbehaves on demand. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type HttpKind =
  | "json"
  | "events"
  /** Sends everybody elsewhere. */
  | "moved"
  | "closed"
  /** Forgets every session after the first call. */
  | "forgetful"
  | "endless";

export type HttpTools = {
  readonly url: string;
  readonly seen: readonly { readonly method: string; readonly headers: IncomingMessage["headers"] }[];
  readonly connections: () => number;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

type Message = {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly name?: string };
};

export async function httpTools(kind: HttpKind): Promise<HttpTools> {
  const seen: { method: string; headers: IncomingMessage["headers"] }[] = [];
  const sessions = new Set<string>();
  let connections = 0;
  let calls = 0;

  function answer({ method, params }: Message): object | null {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "http", version: "1" },
        };
      case "tools/list":
        return { tools: [{ name: "echo", description: "Again.", inputSchema: { type: "object" } }] };
      case "tools/call":
        calls += 1;
        return { content: [{ type: "text", text: `call ${calls} of ${params?.name}` }] };
      default:
        return null;
    }
  }

  function reply(request: IncomingMessage, response: ServerResponse, body: string): void {
    const message = body === "" ? { method: request.method! } : (JSON.parse(body) as Message);
    seen.push({ method: message.method, headers: request.headers });
    if (kind === "moved") return void response.writeHead(307, { location: "/elsewhere" }).end();
    if (kind === "closed") return void response.writeHead(401).end("who are you?");
    if (request.method === "DELETE") return void response.writeHead(200).end();
    if (request.method !== "POST") return void response.writeHead(405).end();
    const session = String(request.headers["mcp-session-id"] ?? "");
    if (message.method !== "initialize" && !sessions.has(session))
      return void response.writeHead(404).end("no such session");
    const result = answer(message);
    if (message.id === undefined || result === null) return void response.writeHead(202).end();
    const text = JSON.stringify({ jsonrpc: "2.0", id: message.id, result });
    const headers: { [name: string]: string } = {};
    if (message.method === "initialize") {
      headers["mcp-session-id"] = `s-${sessions.size + 1}`;
      sessions.add(headers["mcp-session-id"]);
    }
    if (message.method === "tools/call") {
      if (kind === "forgetful") sessions.clear();
      if (kind === "endless") return endless(response);
    }
    if (kind === "json") {
      response.writeHead(200, { "content-type": "application/json", ...headers }).end(text);
      return;
    }
    response
      .writeHead(200, { "content-type": "text/event-stream", ...headers })
      .end(`event: message\ndata: ${text}\n\n`);
  }

  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (body += chunk));
    request.on("end", () => reply(request, response, body));
  }).on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    seen,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Until the other side has had enough. */
function endless(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const more = () => {
    while (!response.destroyed && response.write(`data: ${"x".repeat(64 * 1024)}`));
  };
  response.on("drain", more).on("error", () => undefined);
  more();
}
