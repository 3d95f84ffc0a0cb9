/** Connections that could not be made or broke: what happened, and what the user can do about it. */
import type { FaultKind } from "../../flow/event.ts";
import { isLocal, type ProviderId } from "./providers.ts";

export type Lost = {
  readonly kind: FaultKind;
  readonly words: string;
  readonly hint?: string;
  readonly retryAfterMs?: number;
  /** The server was not reached at all: a proxy may be missing. */
  readonly isUnreached: boolean;
};

/** A proxy that requests go through. */
export type Proxy = {
  /** The environment variable that names it. */
  readonly variable: string;
  readonly hostname: string;
  readonly port: number;
  readonly hasLogin: boolean;
};

type Row = {
  readonly codes: RegExp;
  /** Trying again can help. */
  readonly passes?: true;
  readonly isUnreached?: true;
  readonly hint: (host: string, start: string) => string;
  /** Where the proxy is what could not be reached. */
  readonly ofProxy?: string;
};

const ROWS: readonly Row[] = [
  {
    codes: /^(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME)$/,
    passes: true,
    isUnreached: true,
    hint: (host) => `The name ${host} cannot be resolved: check the base address and your network.`,
    ofProxy: "Its name cannot be resolved",
  },
  {
    codes: /^(?:ECONNREFUSED)$/,
    passes: true,
    isUnreached: true,
    hint: (host, start) =>
      `Nothing accepts connections at ${host}: start the server${start}, or correct the base address.`,
    ofProxy: "Nothing accepts connections there",
  },
  {
    codes: /^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/,
    passes: true,
    isUnreached: true,
    hint: (host) => `${host} does not answer: check the base address and your network.`,
    ofProxy: "It does not answer",
  },
  {
    codes: /^(?:ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO|ERR_SSL_\w+)$/,
    hint: (host) => `${host} does not speak https: begin the base address with http:// if that is intended.`,
  },
  {
    codes: /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|ALTNAME/,
    hint: (host) =>
      `The certificate of ${host} is not valid: check the base address, and the clock of this machine.`,
  },
  {
    codes: /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)/,
    hint: (host) =>
      `The certificate of ${host} is not trusted: set NODE_EXTRA_CA_CERTS to the file of the authority that issued it.`,
  },
  {
    codes: /^HPE_/,
    hint: (host) => `${host} does not speak HTTP at this port: correct the base address.`,
  },
  {
    codes: /^BAD_PORT$/,
    hint: (host) =>
      `${host} has a port that is reserved for another service: let the server listen at another one.`,
  },
  { codes: /^(?:E[A-Z]+|UND_ERR_\w+)$/, passes: true, hint: () => "" },
];

/** A local server that is being restarted is back in seconds; one that was never started is not waited for. */
const LOCAL_WAIT_MS = 1000;

/** null: the trouble is of another kind. */
export function connectionTrouble(
  error: unknown,
  baseUrl: string | undefined,
  provider?: ProviderId,
  proxies: readonly Proxy[] = [],
): Lost | null {
  const chain = causes(error);
  const refused = chain.flatMap(({ message }) => /^Proxy response \((\d{3})\)/.exec(message)?.[1] ?? []);
  if (refused[0] !== undefined)
    return refusedByProxy(Number(refused[0]), hostOf(baseUrl), proxyFor(baseUrl, proxies));
  const found = chain.find(({ code }) => code !== undefined);
  const row = ROWS.find(({ codes }) => found?.code !== undefined && codes.test(found.code));
  if (row === undefined || found === undefined) return null;
  const words = `the connection failed: ${found.message || found.code}`;
  const proxy = proxies.find((one) => isAbout(found, one, baseUrl));
  if (proxy !== undefined && row.ofProxy !== undefined)
    return {
      kind: NEVER_PASSES.test(found.code!) ? "other" : "network",
      words,
      isUnreached: false,
      hint: `The proxy in ${proxy.variable} is ${proxy.hostname}:${proxy.port}. ${row.ofProxy}: start it, correct ${proxy.variable}, or unset it.`,
    };
  const hint = row.hint(hostOf(baseUrl), provider === "ollama" && isLocal(baseUrl) ? " (ollama serve)" : "");
  const isFast = found.code === "ECONNREFUSED" && isLocal(baseUrl);
  return {
    kind: row.passes ? "network" : "other",
    words,
    isUnreached: row.isUnreached === true && !isLocal(baseUrl),
    ...(hint === "" ? {} : { hint }),
    ...(isFast ? { retryAfterMs: LOCAL_WAIT_MS } : {}),
  };
}

/** A proxy that is not there is a wrong setting far more often than one that is being restarted. */
const NEVER_PASSES = /^(?:ECONNREFUSED|ENOTFOUND)$/;

/** The error itself names the host that it is about: some hosts are reached without the proxy. */
function isAbout(cause: Cause, { hostname, port }: Proxy, baseUrl: string | undefined): boolean {
  const target = baseUrl === undefined ? null : URL.parse(baseUrl);
  const targetPort = Number(target?.port) || (target?.protocol === "http:" ? 80 : 443);
  if (target?.hostname === hostname && targetPort === port) return false;
  if (cause.hostname !== undefined) return cause.hostname === hostname && target?.hostname !== hostname;
  if (cause.port === undefined) return cause.message.includes(`${hostname}:${port}`);
  return cause.port === port && (cause.address === hostname || targetPort !== port);
}

function proxyFor(baseUrl: string | undefined, proxies: readonly Proxy[]): Proxy | undefined {
  const name = baseUrl?.startsWith("http:") ? "http_proxy" : "https_proxy";
  return proxies.find(({ variable }) => variable.toLowerCase() === name) ?? proxies[0];
}

/** The proxy was reached, and did not connect. */
function refusedByProxy(status: number, host: string, proxy: Proxy | undefined): Lost {
  const variable = proxy?.variable ?? "HTTPS_PROXY";
  const name = proxy === undefined ? "the proxy" : `the proxy ${proxy.hostname}:${proxy.port} (${variable})`;
  const login = proxy?.hasLogin
    ? `It refuses the user name and password in ${variable}: correct them (percent-encode special characters).`
    : `It requires a login: set ${variable} to http:// and USER:PASSWORD@${proxy === undefined ? "HOST:PORT" : `${proxy.hostname}:${proxy.port}`} (percent-encode special characters).`;
  const refusal = `It does not connect to ${host}: ask its administrator to allow that, or add the host to NO_PROXY if it can be reached directly.`;
  return {
    kind: status >= 500 ? "network" : "other",
    words: `the connection failed: ${name} answers ${status}`,
    isUnreached: false,
    hint: status === 407 ? login : refusal,
  };
}

function hostOf(baseUrl: string | undefined): string {
  return baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : "the server";
}

type Cause = {
  readonly code: string | undefined;
  readonly message: string;
  /** What the connection was made to, where Node reports it. */
  readonly hostname?: string;
  readonly address?: string;
  readonly port?: number;
};

/** An error, what caused it, and the attempts that it is about (one for each address of a name), innermost first. */
function causes(error: unknown, depth = 0): readonly Cause[] {
  if (!(error instanceof Error) || depth > 5) return [];
  const attempts = error instanceof AggregateError ? (error.errors as readonly unknown[]) : [];
  const inner = [error.cause, ...attempts].flatMap((one) => causes(one, depth + 1));
  const own = "code" in error && typeof error.code === "string" ? error.code : undefined;
  // Node gives no code to these.
  const unnamed =
    error.name === "HTTPParserError" ? "HPE_ERROR" : error.message === "bad port" ? "BAD_PORT" : undefined;
  const code = own ?? unnamed;
  const { hostname, address, port } = error as Partial<Cause>;
  return [
    ...inner,
    {
      code,
      message: error.message,
      ...(typeof hostname === "string" && { hostname }),
      ...(typeof address === "string" && { address }),
      ...(typeof port === "number" && { port }),
    },
  ];
}
