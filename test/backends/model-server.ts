/** A model behind HTTP on loopback that says what it is told, on the wire of a provider, and misbehaves on demand. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ModelTarget, ProviderId } from "../../src/backends/ai-sdk/providers.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import type { JsonObject } from "../../src/flow/json.ts";

export type Wire = Exclude<ProviderId, "ollama">;
export const WIRES: readonly Wire[] = ["anthropic", "openai", "openai-chat", "openai-compatible", "google"];

/** What the model does with one request. A script's reply, or something that a script has no words for. */
export type Deed = ScriptReply & {
  /** Tool input as it goes over the wire, in the place of JSON. */
  readonly rawInput?: string;
  readonly stop?: "length" | "refusal";
  readonly thought?: string;
  readonly usage?: { readonly input: number; readonly output: number; readonly cacheRead?: number };
  readonly status?: number;
  readonly headers?: { readonly [name: string]: string };
  readonly body?: string;
  /** After so many events: the connection is torn down, the response ends as if it were whole, or nothing more comes. */
  readonly tear?: number;
  readonly end?: number;
  readonly hang?: number;
  /** Between two events. */
  readonly pauseMs?: number;
  /** Other events in the place of those that would be sent. */
  readonly events?: (events: readonly string[]) => readonly string[];
};

export type Seen = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: JsonObject;
};

export type ModelServer = {
  readonly url: string;
  readonly seen: readonly Seen[];
  /** Connections that the other side gave up. */
  readonly dropped: () => number;
  readonly target: ModelTarget;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** `next` gives what is done with a request, or undefined for one too many. */
export async function modelServer(
  wire: Wire,
  next: readonly Deed[] | ((seen: Seen) => Deed | undefined),
): Promise<ModelServer> {
  const seen: Seen[] = [];
  let dropped = 0;
  const queue = typeof next === "function" ? next : listed(next);
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => (text += chunk));
    response.on("close", () => (dropped += response.writableFinished ? 0 : 1));
    request.on("end", () => {
      const one: Seen = {
        path: request.url ?? "",
        headers: request.headers,
        body: JSON.parse(text || "{}") as JsonObject,
      };
      seen.push(one);
      void act(wire, completing(queue(one), one.body), text, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const path = wire === "google" ? "/v1beta" : "/v1";
  return {
    url,
    seen,
    dropped: () => dropped,
    target: { provider: wire, model: MODEL[wire], baseUrl: url + path, apiKey: KEY },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const KEY = "key-that-nobody-may-see";
export const MODEL: { readonly [wire in Wire]: string } = {
  anthropic: "claude-sonnet-5-5",
  openai: "gpt-5-mini",
  "openai-chat": "gpt-5-mini",
  "openai-compatible": "local-model",
  google: "gemini-2.5-flash",
};

/** A payload goes through the tool that the request offers for it. */
function completing(deed: Deed | undefined, body: JsonObject): Deed | undefined {
  const text = JSON.stringify(body);
  const [, name] =
    /"name":"(\w+)","description":"Call this, and nothing beside it/.exec(text) ??
    /"name":"(StructuredOutput)"/.exec(text) ??
    [];
  if (deed?.output === undefined || name === undefined) return deed;
  const { output, ...rest } = deed;
  return { ...rest, calls: [...(deed.calls ?? []), { name, input: output as JsonObject }] };
}

function listed(deeds: readonly Deed[]): () => Deed | undefined {
  let at = 0;
  return () => deeds[at++];
}

async function act(
  wire: Wire,
  deed: Deed | undefined,
  body: string,
  response: ServerResponse,
): Promise<void> {
  if (deed === undefined) return fail(wire, response, 400, "one request too many");
  const unseen = deed.saw?.find((word) => !body.includes(JSON.stringify(word).slice(1, -1)));
  if (unseen !== undefined) return fail(wire, response, 400, `the request does not hold ${unseen}`);
  if (deed.error !== undefined) return refuse(wire, deed.error, response);
  if (deed.status !== undefined) {
    response.writeHead(deed.status, { "content-type": "application/json", ...deed.headers });
    response.end(deed.body ?? errorBody(wire, "it broke", deed.status));
    return;
  }
  const events = deed.events?.(eventsOf(wire, deed)) ?? eventsOf(wire, deed);
  if (deed.hang === 0) return;
  if (deed.tear === 0) return void response.destroy();
  response.writeHead(200, { "content-type": "text/event-stream", ...deed.headers });
  response.flushHeaders();
  for (const [place, event] of events.entries()) {
    if (place === deed.hang) return;
    if (place === deed.tear) return void response.destroy();
    if (place === deed.end) break;
    if (deed.pauseMs !== undefined) await new Promise((resolve) => setTimeout(resolve, deed.pauseMs));
    await new Promise((resolve) => response.write(event, resolve));
  }
  response.end();
}

const STATUS = { auth: 401, "rate-limit": 429, overloaded: 529, "bad-request": 400 } as const;

function refuse(wire: Wire, error: NonNullable<Deed["error"]>, response: ServerResponse): void {
  const { kind, message = "it broke", retryAfterMs } = error;
  if (kind === "network") return void response.destroy();
  if (kind === "auth" || kind === "rate-limit" || kind === "overloaded" || kind === "bad-request") {
    const headers = retryAfterMs === undefined ? {} : { "retry-after-ms": String(retryAfterMs) };
    return fail(wire, response, STATUS[kind], message, headers);
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end("data: {not json\n\n");
}

function fail(
  wire: Wire,
  response: ServerResponse,
  status: number,
  message: string,
  headers: { readonly [name: string]: string } = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(errorBody(wire, message, status));
}

function errorBody(wire: Wire, message: string, status: number): string {
  if (wire === "google") return JSON.stringify({ error: { code: status, message, status: "FAILED" } });
  if (wire === "anthropic") return JSON.stringify({ type: "error", error: { type: "some_error", message } });
  return JSON.stringify({ error: { message, type: "some_error", code: null } });
}

// What is sent, event by event.

export function eventsOf(wire: Wire, deed: Deed): readonly string[] {
  switch (wire) {
    case "anthropic":
      return anthropic(deed);
    case "openai":
      return responses(deed);
    case "openai-chat":
    case "openai-compatible":
      return chat(deed);
    case "google":
      return google(deed);
  }
}

/** What is said in words: `output` is said as JSON unless it goes through a tool. */
function said({ text, output, calls }: Deed): {
  readonly text: string;
  readonly calls: NonNullable<Deed["calls"]>;
} {
  const words = [text, output === undefined ? undefined : JSON.stringify(output)].filter(
    (each) => each !== undefined,
  );
  return { text: words.join("\n"), calls: calls ?? [] };
}

function usageOf({ usage }: Deed) {
  return usage ?? { input: 100, output: 20 };
}

let ids = 0;
const newId = (prefix: string) => `${prefix}_${++ids}`;
const halves = (text: string) =>
  [text.slice(0, text.length >> 1), text.slice(text.length >> 1)].filter((half) => half !== "");

function anthropic(deed: Deed): readonly string[] {
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const { text, calls } = said(deed);
  const { input, output, cacheRead = 0 } = usageOf(deed);
  const usage = { input_tokens: input - cacheRead, cache_read_input_tokens: cacheRead, output_tokens: 1 };
  const events = [
    event("message_start", {
      message: {
        id: newId("msg"),
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage,
      },
    }),
    event("ping", {}),
  ];
  let index = 0;
  const block = (start: object, deltas: readonly object[]) => {
    events.push(event("content_block_start", { index, content_block: start }));
    for (const delta of deltas) events.push(event("content_block_delta", { index, delta }));
    events.push(event("content_block_stop", { index }));
    index += 1;
  };
  if (deed.thought !== undefined) {
    block({ type: "thinking", thinking: "" }, [
      { type: "thinking_delta", thinking: deed.thought },
      { type: "signature_delta", signature: `signed:${deed.thought}` },
    ]);
  }
  if (text !== "")
    block(
      { type: "text", text: "" },
      halves(text).map((half) => ({ type: "text_delta", text: half })),
    );
  for (const call of calls) {
    const json = deed.rawInput ?? JSON.stringify(call.input);
    block(
      { type: "tool_use", id: call.id ?? newId("toolu"), name: call.name, input: {} },
      halves(json).map((partial_json) => ({ type: "input_json_delta", partial_json })),
    );
  }
  const stop = { length: "max_tokens", refusal: "refusal", none: calls.length > 0 ? "tool_use" : "end_turn" }[
    deed.stop ?? "none"
  ];
  events.push(
    event("message_delta", {
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: output },
    }),
    event("message_stop", {}),
  );
  return events;
}

function responses(deed: Deed): readonly string[] {
  let sequence = 0;
  const event = (type: string, more: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`;
  const { text, calls } = said(deed);
  const { input, output, cacheRead = 0 } = usageOf(deed);
  const response = { id: newId("resp"), object: "response", created_at: 1, model: "m", service_tier: null };
  const events = [
    event("response.created", { response: { ...response, status: "in_progress", output: [] } }),
  ];
  let output_index = 0;
  if (deed.thought !== undefined) {
    const item = {
      type: "reasoning",
      id: newId("rs"),
      summary: [],
      encrypted_content: `signed:${deed.thought}`,
    };
    events.push(
      event("response.output_item.added", { output_index, item }),
      event("response.output_item.done", { output_index, item }),
    );
    output_index += 1;
  }
  if (text !== "") {
    const id = newId("msg");
    const item = { type: "message", id, role: "assistant", status: "in_progress", content: [] };
    events.push(event("response.output_item.added", { output_index, item }));
    for (const delta of halves(text))
      events.push(
        event("response.output_text.delta", {
          item_id: id,
          output_index,
          content_index: 0,
          delta,
          logprobs: [],
        }),
      );
    const content = [{ type: "output_text", text, annotations: [] }];
    events.push(
      event("response.output_item.done", { output_index, item: { ...item, status: "completed", content } }),
    );
    output_index += 1;
  }
  for (const call of calls) {
    const id = newId("fc");
    const json = deed.rawInput ?? JSON.stringify(call.input);
    // Codex offers the tools of a server as a namespace: `server/tool` here.
    const [name = "", namespace] = call.name.split("/").toReversed();
    const item = {
      type: "function_call",
      id,
      call_id: call.id ?? newId("call"),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      arguments: "",
      status: "in_progress",
    };
    events.push(event("response.output_item.added", { output_index, item }));
    for (const delta of halves(json))
      events.push(event("response.function_call_arguments.delta", { item_id: id, output_index, delta }));
    events.push(
      event("response.output_item.done", {
        output_index,
        item: { ...item, arguments: json, status: "completed" },
      }),
    );
    output_index += 1;
  }
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
  const reason = { length: "max_output_tokens", refusal: "content_filter" }[
    deed.stop as "length" | "refusal"
  ];
  const status = reason === undefined ? "completed" : "incomplete";
  const incomplete_details = reason === undefined ? null : { reason };
  events.push(
    event(`response.${status}`, { response: { ...response, status, incomplete_details, output: [], usage } }),
  );
  return events;
}

function chat(deed: Deed): readonly string[] {
  const { text, calls } = said(deed);
  const { input, output, cacheRead = 0 } = usageOf(deed);
  const id = newId("chatcmpl");
  const event = (more: object) =>
    `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 1, model: "m", ...more })}\n\n`;
  const choice = (delta: object, finish_reason: string | null = null) =>
    event({ choices: [{ index: 0, delta, finish_reason }] });
  const events = [
    choice({ role: "assistant", content: "" }),
    ...halves(deed.thought ?? "").map((reasoning_content) => choice({ reasoning_content })),
    ...halves(text).map((content) => choice({ content })),
  ];
  for (const [index, call] of calls.entries()) {
    const [first = "", second = ""] = halves(deed.rawInput ?? JSON.stringify(call.input));
    const head = {
      index,
      id: call.id ?? newId("call"),
      type: "function",
      function: { name: call.name, arguments: first },
    };
    events.push(
      choice({ tool_calls: [head] }),
      choice({ tool_calls: [{ index, function: { arguments: second } }] }),
    );
  }
  const stop = {
    length: "length",
    refusal: "content_filter",
    none: calls.length > 0 ? "tool_calls" : "stop",
  }[deed.stop ?? "none"];
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
  events.push(choice({}, stop), event({ choices: [], usage }), "data: [DONE]\n\n");
  return events;
}

function google(deed: Deed): readonly string[] {
  const { text, calls } = said(deed);
  const { input, output, cacheRead = 0 } = usageOf(deed);
  const usageMetadata = {
    promptTokenCount: input,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
    cachedContentTokenCount: cacheRead,
  };
  const signed = deed.thought === undefined ? {} : { thoughtSignature: `signed:${deed.thought}` };
  const event = (parts: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts }, index: 0, ...more }], usageMetadata, modelVersion: "m" })}\n\n`;
  const stop = { length: "MAX_TOKENS", refusal: "SAFETY", none: "STOP" }[deed.stop ?? "none"];
  return [
    ...halves(text).map((half) => event([{ text: half }])),
    ...(calls.length === 0
      ? []
      : [
          event(
            calls.map(({ name, input: args }) => Object.assign({ functionCall: { name, args } }, signed)),
          ),
        ]),
    event([{ text: "" }], { finishReason: stop }),
  ];
}
