/** One server of tools: connected to, asked for its tools once, called, started again once if it ends, and ended. */
import { shownInLine } from "../../flow/text/harmless.ts";
import { isObject, type JsonObject } from "../../flow/json.ts";
import { createProcessTransport, type Program, type Transport } from "./mcp-process.ts";
import { readResult, readTools, type ListedTool, type McpContent } from "./mcp-read.ts";

/** What we use of `@modelcontextprotocol/client`. */
export type McpSdk = {
  readonly Client: new (
    about: { readonly name: string; readonly version: string },
    options: object,
  ) => {
    readonly connect: (transport: Transport, options: RequestOptions) => Promise<void>;
    readonly request: (
      request: { readonly method: string; readonly params: object },
      options: RequestOptions,
    ) => Promise<unknown>;
    readonly close: () => Promise<void>;
  };
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => Transport;
};

type RequestOptions = {
  readonly timeout: number;
  readonly maxTotalTimeout?: number;
  readonly signal?: AbortSignal;
};

export type ServerOptions = {
  readonly name: string;
  readonly sdk: McpSdk;
  readonly where: Program | Address;
  readonly signal: AbortSignal;
  /** Looks at what the server may have done, after each call and at its end; what it says is added to the result. */
  readonly afterwards?: () => string;
  readonly startMs?: number;
  readonly callMs?: number;
};

export type Address = { readonly url: string; readonly headers: { readonly [name: string]: string } };

export type OpenServer = {
  readonly tools: readonly ListedTool[];
  /** What a person should know of what it offers. */
  readonly notes: readonly string[];
  /** Never rejects, unless the signal is aborted. */
  readonly call: (tool: string, input: JsonObject, signal: AbortSignal) => Promise<McpContent>;
  readonly close: () => Promise<void>;
};

/** Rejects with the reason when the server cannot be used; then nothing of it is left. */
export async function openServer(options: ServerOptions): Promise<OpenServer> {
  const { name, callMs = CALL_MS, afterwards } = options;
  let current: Promise<Connection> = connect(options);
  let restarts = 0;
  const first = await current;
  const { tools, notes } = await listTools(name, first, options).catch(async (error: unknown) => {
    await first.close();
    throw error;
  });

  /** What it said of its tools at first holds, also when it is started again. */
  async function connected(): Promise<Connection> {
    const known = await current;
    if (!known.isGone()) return known;
    if (restarts >= MOST_RESTARTS) throw new Error("it ended again, and is not started a third time");
    restarts += 1;
    current = connect(options);
    // Later callers must get the same failure, even if no one awaits it now.
    current.catch(() => undefined);
    return await current;
  }

  async function ask(tool: string, input: JsonObject, signal: AbortSignal): Promise<McpContent> {
    try {
      const { request } = await connected();
      const params = { name: tool, arguments: input };
      return readResult(await request("tools/call", params, { timeout: callMs, signal }));
    } catch (error) {
      if (signal.aborted) throw error;
      return { kind: "failed", content: `The server "${name}" did not do it: ${reasonOf(error)}.` };
    }
  }

  return {
    tools,
    notes,
    call: async (tool, input, signal) => {
      const result = await ask(tool, input, signal);
      const note = afterwards?.() ?? "";
      return note === "" ? result : { ...result, content: `${result.content}\n${note}` };
    },
    close: async () => {
      const last = await current.catch(() => null);
      await last?.close();
      afterwards?.();
    },
  };
}

const START_MS = 30_000;
const CALL_MS = 300_000;
const MOST_RESTARTS = 1;
const MOST_TOOLS = 1000;
const MOST_PAGES = 100;

type Connection = {
  readonly request: (method: string, params: object, options: RequestOptions) => Promise<unknown>;
  readonly isGone: () => boolean;
  readonly close: () => Promise<void>;
};

async function connect({ sdk, where, signal, startMs = START_MS }: ServerOptions): Promise<Connection> {
  const program = "argv" in where ? createProcessTransport(where) : null;
  const transport = program ?? httpTransport(sdk, where as Address, () => void close());
  // It is offered nothing that it could ask us for: no files, no model, no questions to a person.
  const client = new sdk.Client({ name: "lockstep", version: "1" }, { capabilities: {} });
  let gone = false;
  Object.assign(client, { onclose: () => (gone = true) });
  const close = async () => {
    gone = true;
    await client.close().catch(() => undefined);
    await transport.close().catch(() => undefined);
  };
  try {
    await client.connect(transport, { timeout: startMs, maxTotalTimeout: startMs, signal });
  } catch (error) {
    await close();
    const words = program?.lastWords() ?? "";
    const said = words === "" ? "" : `; it printed: ${shownInLine(words.slice(-1000), 400)}`;
    throw new Error(`${reasonOf(error)}${said}`, { cause: error });
  }
  return {
    request: async (method, params, options) => {
      try {
        return await client.request({ method, params }, { maxTotalTimeout: options.timeout, ...options });
      } catch (error) {
        // The session is over for a server that no longer knows it.
        if (statusOf(error) === 404) await close();
        throw error;
      }
    },
    isGone: () => gone,
    close,
  };
}

/**
 * Redirects are not followed, and no answer is without end. `broken` hears when an
 * answer was not given to its end: a caller would wait for it in vain.
 */
function httpTransport(sdk: McpSdk, { url, headers }: Address, broken: () => void): Transport {
  const capped = async (address: string | URL, init?: RequestInit) => {
    const response = await fetch(address, { ...init, redirect: "error" });
    const isAnswer = init?.method === "POST";
    return bounded(response, () => (isAnswer && init.signal?.aborted !== true ? broken() : undefined));
  };
  return new sdk.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers, redirect: "error" },
    fetch: capped,
    reconnectionOptions: {
      maxRetries: 2,
      initialReconnectionDelay: 500,
      maxReconnectionDelay: 5000,
      reconnectionDelayGrowFactor: 2,
    },
  });
}

const MOST_BODY = 8 * 1024 * 1024;

function bounded(response: Response, broken: () => void): Response {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  let left = MOST_BODY;
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        left -= value.length;
        if (left < 0) throw new Error(`it answered with more than ${MOST_BODY} bytes`);
        controller.enqueue(value);
      } catch (error) {
        broken();
        controller.error(error);
        await reader.cancel().catch(() => undefined);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

async function listTools(
  server: string,
  { request }: Connection,
  { signal, startMs = START_MS }: ServerOptions,
): Promise<Pick<OpenServer, "tools" | "notes">> {
  const listed: unknown[] = [];
  const cursors = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; page <= MOST_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await request("tools/list", params, { timeout: startMs, signal });
    const { tools: members, nextCursor } = isObject(answer) ? answer : {};
    if (Array.isArray(members)) listed.push(...(members as readonly unknown[]).slice(0, MOST_TOOLS));
    if (typeof nextCursor !== "string" || listed.length >= MOST_TOOLS || cursors.has(nextCursor)) break;
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
  const { tools, notes } = readTools(server, listed.slice(0, MOST_TOOLS));
  if (listed.length < MOST_TOOLS) return { tools, notes };
  const full = `the server "${server}" has ${MOST_TOOLS} tools or more; further ones are not there`;
  return { tools, notes: [full, ...notes] };
}

function statusOf(error: unknown): unknown {
  return error instanceof Error && "status" in error ? error.status : null;
}

function reasonOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error), cause: undefined };
  const why =
    cause instanceof Error && message === "fetch failed" ? `${message} (${cause.message})` : message;
  return shownInLine(why, 500).replace(/\.$/, "");
}
