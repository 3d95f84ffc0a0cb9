/** The studio's HTTP server: judges a request, finds its route, answers it, and compresses what is long. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { promisify } from "node:util";
import { constants, gzip } from "node:zlib";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";
import { errorText, jsonLine } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import type { Asset, Assets } from "./assets.ts";
import { MOST_BODY } from "../serve/head.ts";
import { judgeRequest, type GuardRules } from "./guard.ts";
import { RequestRefusal, statusOf } from "../serve/refusal.ts";
import { findRoute, type StudioAnswer, type StudioRequest, type StudioRoute, type Studio } from "./route.ts";
import type { Refusal } from "./wire.ts";

export type ServedStudio = {
  readonly rules: GuardRules;
  readonly routes: readonly StudioRoute[];
  readonly assets: Assets;
  readonly studio: Studio;
};

/** With these no page can be made from text, no other site can frame or read anything, and nothing is kept. */
const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Cache-Control": "no-store",
} as const;

const HEAD_MS = 5000;
const REQUEST_MS = 30_000;
/** How much of a refused request is still read, and how long the client may be silent. */
const MOST_DISCARDED = 64 * MOST_BODY;
const SILENT_MS = 500;
const MOST_CONNECTIONS = 256;
/** Shorter answers are not worth it, unless that was done before. */
const COMPRESS_FROM = 1024;
const compress = promisify(gzip);

/** `rules` is asked at every request: the port is known once the server listens. */
export function createStudioServer(served: () => ServedStudio): Server {
  const server = createServer(
    {
      headersTimeout: HEAD_MS,
      // Connections that send nothing must not keep the person with the token out for long.
      connectionsCheckingInterval: 1000,
      requestTimeout: REQUEST_MS,
      maxHeaderSize: 16 * 1024,
      requireHostHeader: false,
    },
    (request, response) => void answer(served(), request, response),
  );
  server.maxConnections = MOST_CONNECTIONS;
  server.on("clientError", (_error, socket) => {
    if (socket.writable)
      socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    else socket.destroy();
  });
  return server;
}

async function answer(
  served: ServedStudio,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  // A client that goes away is not an error of ours.
  response.on("error", () => undefined);
  try {
    await respond(served, request, response);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else await sendRefusal(served, request, response, error);
  }
}

async function respond(
  served: ServedStudio,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const head = { method: request.method ?? "", target: request.url ?? "", headers: request.rawHeaders };
  const judged = judgeRequest(head, served.rules);
  if (judged.kind === "refused") {
    if (judged.status === 405) response.setHeader("Allow", "GET, HEAD, POST");
    throw new RequestRefusal(judged.status, judged.code, judged.reason);
  }
  if (judged.kind === "page") return await sendPage(served.assets, judged, request, response);
  const found = findRoute(served.routes, judged.segments);
  if (found === null) throw new RequestRefusal(404, "NOT_FOUND", "The studio has no such document.");
  const route = found.routes.find(({ method }) => method === judged.method);
  if (route === undefined) {
    response.setHeader("Allow", found.routes.map(({ method }) => method).join(", "));
    throw new RequestRefusal(405, "METHOD_NOT_ALLOWED", `This path does not take ${judged.method}.`);
  }
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const asked: StudioRequest = {
    params: found.params,
    query: judged.query,
    body: judged.method === "POST" ? await readBody(request) : {},
    signal: gone.signal,
  };
  await send(served, request, response, await route.answer(asked, served.studio));
}

async function readBody(request: IncomingMessage): Promise<JsonObject> {
  const parts: Buffer[] = [];
  let bytes = 0;
  // A request that is left before its end is destroyed, and its answer with it, unless that is said here.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BODY)
      throw new RequestRefusal(413, "BODY_TOO_LARGE", "The body of a request may have 1 MB at most.");
    parts.push(part);
  }
  const value = parsed(Buffer.concat(parts));
  if (!isObject(value))
    throw new RequestRefusal(400, "BAD_BODY", "The body of the request is not a JSON object.");
  return value;
}

function parsed(bytes: Buffer): Json {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Json;
  } catch {
    return null;
  }
}

async function sendPage(
  assets: Assets,
  { segments, isHead }: { readonly segments: readonly string[]; readonly isHead: boolean },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // Everything else is a screen: the page finds out which one.
  const [first = "", ...rest] = segments;
  const asset = await assets(rest.length === 0 && first.includes(".") ? first : "index.html");
  if (asset === null) throw new RequestRefusal(404, "NOT_FOUND", "The studio has no such file.");
  await sendBody(request, response, 200, asset, isHead);
}

async function send(
  { studio }: ServedStudio,
  request: IncomingMessage,
  response: ServerResponse,
  answered: StudioAnswer,
): Promise<void> {
  switch (answered.kind) {
    case "document":
      return await sendDocument(request, response, answered.status, studio.redact(answered.document));
    case "json":
      return await sendJson(request, response, 200, answered.body);
    case "file": {
      response.writeHead(200, { "Content-Type": answered.type });
      for await (const piece of answered.pieces) {
        if (response.destroyed) return;
        if (!response.write(studio.redact(piece))) await drained(response);
      }
      response.end();
      return;
    }
    case "stream": {
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
      response.flushHeaders();
      const leave = answered.open({
        send: (text) => void response.write(text),
        held: () => response.writableLength,
        close: () => response.end(),
      });
      response.once("close", leave);
      if (response.destroyed) leave();
    }
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  response.once("drain", resolve);
  response.once("close", resolve);
  await promise;
}

async function sendRefusal(
  { studio }: ServedStudio,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): Promise<void> {
  const [status, refusal] = refusalOf(error);
  if (status === 401) response.setHeader("WWW-Authenticate", "Bearer");
  if (!request.complete) response.setHeader("Connection", "close");
  await sendDocument(request, response, status, studio.redact(refusal)).catch(() => response.destroy());
}

/** What is still sent is taken and dropped: a connection that is closed before that is reset, and the answer is lost. */
async function discarded(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, SILENT_MS);
  let bytes = 0;
  request.on("data", (part: Buffer) => {
    bytes += part.length;
    if (bytes > MOST_DISCARDED) resolve();
    else timer.refresh();
  });
  for (const over of ["end", "close", "error"]) request.once(over, () => resolve());
  await promise;
  clearTimeout(timer);
}

/** What went wrong, as every refusal of the studio says it. */
export function refusalOf(error: unknown): readonly [status: number, refusal: Refusal] {
  if (error instanceof RequestRefusal) return [error.status, error.refusal];
  if (error instanceof RunnerError)
    return [statusOf(error.code), { v: 1, code: error.code, reason: error.message }];
  return [500, { v: 1, code: "INTERNAL", reason: `The studio could not answer: ${errorText(error)}` }];
}

async function sendDocument(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  document: object,
): Promise<void> {
  await sendJson(request, response, status, Buffer.from(jsonLine(document)));
}

async function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  body: Buffer,
): Promise<void> {
  await sendBody(request, response, status, { type: "application/json; charset=utf-8", body }, false);
}

/** The pieces are as large as most of what is sent: each of them waits for a turn of the event loop. */
const PACKING = { level: constants.Z_BEST_SPEED, chunkSize: 128 * 1024 };

async function sendBody(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  { type, body, packed }: Pick<Asset, "type" | "body"> & Partial<Asset>,
  isHead: boolean,
): Promise<void> {
  const accepted = request.headers["accept-encoding"] ?? "";
  const isPacked = /\bgzip\b/.test(accepted) && (packed !== undefined || body.length >= COMPRESS_FROM);
  const sent = isPacked ? (packed ?? (await compress(body, PACKING))) : body;
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": sent.length,
    ...(isPacked && { "Content-Encoding": "gzip" }),
    Vary: "Accept-Encoding",
  });
  if (!isHead) response.write(sent);
  if (!request.complete) await discarded(request);
  response.end();
}
