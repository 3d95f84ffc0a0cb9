/** The server over HTTP: judges a request, finds its session, and passes it to the SDK. Loopback only. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import { isObject, type Json } from "../flow/json.ts";
import { errorText, jsonLine } from "../flow/text/harmless.ts";
import { MOST_BODY, refused, type HeadRules, type RefusedHead } from "../serve/head.ts";
import { judgeMcpRequest } from "./guard.ts";
import type { HttpHandler } from "./sdk.ts";
import { createSdkServer, type Serving } from "./serving.ts";
import { createSessions, type Sessions } from "./sessions.ts";

export type McpHttp = {
  readonly server: Server;
  readonly toolsChanged: () => void;
  readonly close: () => Promise<void>;
};

const HEAD_MS = 5000;
const REQUEST_MS = 30_000;
const MOST_CONNECTIONS = 256;
/** How long a server that closes lets its last answers be read. */
const LAST_WORDS_MS = 2000;

/** `rules` is asked at every request: the port is known once the server listens. */
export function createMcpHttp(serving: Serving, rules: () => HeadRules): McpHttp {
  const { sdk } = serving;
  // A stream from the start: a call may take long, and what is silent is taken for dead.
  const modern = sdk.createMcpHandler(() => createSdkServer(serving, true), {
    legacy: "reject",
    responseMode: "sse",
  });
  const sessions = createSessions(serving);
  const posts = new Set<Promise<void>>();
  const server = createServer(
    {
      headersTimeout: HEAD_MS,
      connectionsCheckingInterval: 1000,
      requestTimeout: REQUEST_MS,
      maxHeaderSize: 16 * 1024,
      requireHostHeader: false,
    },
    (request, response) => {
      const answering = answer({ serving, modern, sessions }, rules(), request, response);
      if (request.method !== "POST") return;
      posts.add(answering);
      void answering.finally(() => posts.delete(answering));
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.on("clientError", (_error, socket) => {
    if (socket.writable)
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else socket.destroy();
  });
  return {
    server,
    toolsChanged: () => {
      modern.notify.toolsChanged();
      sessions.toolsChanged();
    },
    async close() {
      await Promise.race([Promise.allSettled(posts), delay(LAST_WORDS_MS, undefined, { ref: false })]);
      await modern.close();
      await sessions.close();
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeAllConnections();
      await promise;
    },
  };
}

type Parts = { readonly serving: Serving; readonly modern: HttpHandler; readonly sessions: Sessions };

async function answer(
  parts: Parts,
  rules: HeadRules,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // A client that goes away is not an error of ours.
  response.on("error", () => undefined);
  response.setHeader("X-Content-Type-Options", "nosniff");
  response.setHeader("Cache-Control", "no-store");
  try {
    const head = { method: request.method ?? "", target: request.url ?? "", headers: request.rawHeaders };
    const wrong = judgeMcpRequest(head, rules);
    if (wrong !== null) return sendRefusal(request, response, wrong);
    const body = request.method === "POST" ? await readBody(request) : undefined;
    if (body !== undefined && "status" in body) return sendRefusal(request, response, body);
    await send(response, await passOn(parts, request, response, body?.value));
  } catch (error) {
    if (response.headersSent) response.destroy();
    else
      sendRefusal(
        request,
        response,
        refused(
          500,
          "INTERNAL",
          parts.serving.ground.redact(`The server could not answer: ${errorText(error)}`),
        ),
      );
  }
}

/** Newer clients say with every request who they are; older ones have a session. */
async function passOn(
  { serving: { sdk }, modern, sessions }: Parts,
  request: IncomingMessage,
  response: ServerResponse,
  parsedBody: Json | undefined,
): Promise<Response> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const asked = new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method ?? "GET",
    headers: headersOf(request),
    signal: gone.signal,
    // Both read it as it was parsed; it only has to be there.
    ...(parsedBody !== undefined && { body: "{}" }),
  });
  if (await sdk.isLegacyRequest(asked, parsedBody)) return await sessions.answer(asked, parsedBody);
  return await modern.fetch(asked, parsedBody === undefined ? {} : { parsedBody });
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let place = 0; place + 1 < rawHeaders.length; place += 2) {
    const name = rawHeaders[place]!.toLowerCase();
    // The token has done its work, and the body is replaced by what was parsed.
    if (name !== "authorization" && name !== "content-length" && name !== "transfer-encoding")
      headers.append(name, rawHeaders[place + 1]!);
  }
  return headers;
}

async function readBody(request: IncomingMessage): Promise<{ readonly value: Json } | RefusedHead> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BODY)
      return refused(413, "BODY_TOO_LARGE", "The body of a request may have 1 MB at most.");
    parts.push(part);
  }
  const value = parsed(Buffer.concat(parts));
  return isObject(value) || Array.isArray(value)
    ? { value: value as Json }
    : refused(400, "BAD_BODY", "The body of the request is not a message in JSON.");
}

function parsed(bytes: Buffer): Json {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Json;
  } catch {
    return null;
  }
}

async function send(response: ServerResponse, answered: Response): Promise<void> {
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body === null) return void response.end();
  response.flushHeaders();
  // A reader that goes away ends the stream, and so the call that writes into it.
  await pipeline(Readable.fromWeb(answered.body), response).catch(() => undefined);
}

function sendRefusal(
  request: IncomingMessage,
  response: ServerResponse,
  { status, code, reason }: RefusedHead,
): void {
  if (status === 401) response.setHeader("WWW-Authenticate", "Bearer");
  if (status === 405) response.setHeader("Allow", "POST, GET, DELETE");
  // What was sent besides is not read any more.
  if (!request.complete) response.setHeader("Connection", "close");
  response.writeHead(status, { "Content-Type": "application/json; charset=utf-8" });
  response.end(jsonLine({ v: 1, code, reason }));
}
