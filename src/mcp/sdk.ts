/** What we use of `@modelcontextprotocol/server`, and where it comes from. */
import { loadPeer } from "../backends/peer.ts";
import type { JsonObject } from "../flow/json.ts";
import { manual } from "../flow/manual.ts";

export type ServerSdk = {
  readonly Server: new (
    about: { readonly name: string; readonly version: string },
    options: object,
  ) => SdkServer;
  readonly ProtocolError: new (code: number, message: string) => Error;
  readonly inputRequired: ((asked: {
    readonly inputRequests: { readonly [key: string]: object };
    readonly requestState: string;
  }) => object) & { readonly elicit: (asked: object) => object };
  readonly inputResponse: (responses: unknown, key: string) => InputResponse;
  readonly createRequestStateCodec: (options: {
    readonly key: Uint8Array;
    readonly ttlSeconds: number;
  }) => StateCodec;
  readonly createMcpHandler: (factory: () => SdkServer, options: object) => HttpHandler;
  readonly isLegacyRequest: (request: Request, body: unknown) => Promise<boolean>;
  readonly WebStandardStreamableHTTPServerTransport: new (options: object) => SessionTransport;
};

export type StdioSdk = {
  readonly serveStdio: (
    factory: () => SdkServer,
    options: { readonly onerror: (error: Error) => void },
  ) => { readonly close: () => Promise<void> };
};

export type SdkServer = {
  readonly connect: (transport: object) => Promise<void>;
  readonly close: () => Promise<void>;
  readonly setRequestHandler: (
    method: string,
    handler: (request: { readonly params?: JsonObject }, context: SdkContext) => Promise<object>,
  ) => void;
  readonly getClientCapabilities: () => JsonObject | undefined;
  readonly sendToolListChanged: () => Promise<void>;
};

export type SdkContext = {
  readonly mcpReq: {
    readonly _meta?: { readonly progressToken?: string | number };
    readonly envelope?: JsonObject;
    readonly inputResponses?: unknown;
    readonly requestState: () => unknown;
    readonly signal: AbortSignal;
    readonly notify: (notification: { readonly method: string; readonly params: object }) => Promise<void>;
  };
};

/** `missing`: the request brought nothing for this key. */
export type InputResponse =
  | { readonly kind: "missing" | "sampling" | "roots" }
  | {
      readonly kind: "elicit";
      readonly action: "accept" | "decline" | "cancel";
      readonly content?: JsonObject;
    };

export type StateCodec = {
  readonly mint: (payload: object) => Promise<string>;
  readonly verify: (state: string, context: SdkContext) => Promise<unknown>;
};

export type HttpHandler = {
  readonly fetch: (request: Request, options: { readonly parsedBody?: unknown }) => Promise<Response>;
  readonly close: () => Promise<void>;
  readonly notify: { readonly toolsChanged: () => void };
};

export type SessionTransport = {
  readonly sessionId?: string;
  readonly handleRequest: (request: Request, options: { readonly parsedBody?: unknown }) => Promise<Response>;
  readonly close: () => Promise<void>;
};

const PEER = {
  name: "@modelcontextprotocol/server",
  version: "2",
  whose: "`lockstep mcp`",
  page: manual("mcp-server"),
  code: "MCP_UNAVAILABLE",
};

/** MCP_UNAVAILABLE with the line that installs it. */
export async function loadSdk(env: NodeJS.ProcessEnv): Promise<ServerSdk> {
  return (await loadPeer(PEER, env)) as ServerSdk;
}

export async function loadStdio(env: NodeJS.ProcessEnv): Promise<StdioSdk> {
  return (await loadPeer({ ...PEER, name: `${PEER.name}/stdio` }, env)) as StdioSdk;
}

/** Whether the person at the client can be asked: it shows forms. */
export function canElicit(server: SdkServer, { mcpReq }: SdkContext): boolean {
  const declared =
    mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? server.getClientCapabilities();
  const { elicitation } = (declared ?? {}) as {
    readonly elicitation?: { readonly form?: object; readonly url?: object };
  };
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** The connection ended; otherwise the client said that it no longer wants the answer. */
export function isDisconnected({ reason }: AbortSignal): boolean {
  return reason instanceof Error && "code" in reason && reason.code === "CONNECTION_CLOSED";
}
