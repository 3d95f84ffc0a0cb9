/**
 * A model on loopback that says what it is told to, in the stream format of the Messages API. Real HTTP, no mocks: what
 * speaks to it is the same code that would speak to the provider.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export type Spoken = {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly input: object }[];
  readonly tokens?: { readonly input: number; readonly output: number };
  /** Between one content block and the next. */
  readonly pauseMs?: number;
};

export type Served =
  | Spoken
  | {
      readonly status: number;
      readonly headers?: { readonly [name: string]: string };
      readonly error?: { readonly type: string; readonly message: string };
    }
  /** Never answers, or breaks off: before a byte was sent, or in the middle of the message. */
  | { readonly hang: true }
  | { readonly cut: "before" | "inside" };

export type Asked = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** What the request sends back of the calls before: the last message, as text. */
  readonly last: string;
};

export type Server = {
  readonly url: string;
  /** Every request so far, in order. */
  readonly asked: readonly Asked[];
  readonly close: () => Promise<void>;
};

/** One reply a request, in order; a request beyond the last is answered with an error that says so. */
export async function startServer(replies: readonly Served[]): Promise<Server> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      asked.push({ path: request.url ?? "", headers: request.headers, body, last: lastMessage(body) });
      serve(response, replies[asked.length - 1] ?? TOO_MANY, asked.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function lastMessage(body: string): string {
  const { messages = [] } = (body === "" ? {} : JSON.parse(body)) as {
    readonly messages?: readonly unknown[];
  };
  return JSON.stringify(messages.at(-1) ?? null);
}

const TOO_MANY: Served = {
  status: 400,
  error: { type: "invalid_request_error", message: "the script is at its end" },
};

function serve(response: ServerResponse, reply: Served, nth: number): void {
  if ("hang" in reply) return;
  if ("status" in reply) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    const error = reply.error ?? { type: "api_error", message: `scripted ${reply.status}` };
    response.end(JSON.stringify({ type: "error", error }));
    return;
  }
  if ("cut" in reply) {
    if (reply.cut === "before") {
      response.destroy();
      return;
    }
    response.writeHead(200, STREAM);
    const [start, ...rest] = eventsOf({ text: "half of a sen" }, nth);
    for (const event of [start, ...rest.slice(0, 2)]) response.write(event);
    // The client drops what it has not read when the connection breaks, and nothing says that it has read.
    setTimeout(() => response.destroy(), 1000);
    return;
  }
  response.writeHead(200, STREAM);
  void stream(response, eventsOf(reply, nth), reply.pauseMs ?? 0);
}

async function stream(response: ServerResponse, events: readonly string[], pauseMs: number): Promise<void> {
  for (const event of events) {
    response.write(event);
    if (pauseMs > 0 && event.startsWith("event: content_block_stop")) await delay(pauseMs);
  }
  response.end();
}

const STREAM = { "content-type": "text/event-stream", "cache-control": "no-cache" };

function eventsOf({ text, calls = [], tokens = { input: 10, output: 5 } }: Spoken, nth: number): string[] {
  const usage = { input_tokens: tokens.input, output_tokens: 1 };
  const blocks = [
    ...(text === undefined ? [] : [textBlock(text)]),
    ...calls.map(({ name, input }, place) => callBlock(`toolu_${nth}_${place + 1}`, name, input)),
  ];
  const message = {
    id: `msg_${nth}`,
    type: "message",
    role: "assistant",
    model: "claude-scripted",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  };
  return [
    event("message_start", { message }),
    ...blocks.flatMap(({ start, delta }, index) => [
      event("content_block_start", { index, content_block: start }),
      event("content_block_delta", { index, delta }),
      event("content_block_stop", { index }),
    ]),
    event("message_delta", {
      delta: { stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null },
      usage: { output_tokens: tokens.output },
    }),
    event("message_stop", {}),
  ];
}

function textBlock(text: string) {
  return { start: { type: "text", text: "" }, delta: { type: "text_delta", text } };
}

function callBlock(id: string, name: string, input: object) {
  return {
    start: { type: "tool_use", id, name, input: {} },
    delta: { type: "input_json_delta", partial_json: JSON.stringify(input) },
  };
}

function event(type: string, data: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
}
