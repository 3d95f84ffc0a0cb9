/** Connections that could not be made or broke: what happened, and what the user can do about it. */
import type { FaultKind } from "../flow/event.ts";
import { isLocal, type ProviderId } from "./providers.ts";

export type Lost = {
  readonly kind: FaultKind;
  readonly words: string;
  readonly hint?: string;
  readonly retryAfterMs?: number;
  /** The server was not reached at all: a proxy may be missing. */
  readonly isUnreached: boolean;
};

type Row = {
  readonly codes: RegExp;
  /** false: trying again cannot help. */
  readonly passes: boolean;
  readonly isUnreached: boolean;
  readonly hint: (host: string, start: string) => string;
};

const ROWS: readonly Row[] = [
  {
    codes: /^(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME)$/,
    passes: true,
    isUnreached: true,
    hint: (host) => `The name ${host} cannot be resolved: check the base address and your network.`,
  },
  {
    codes: /^(?:ECONNREFUSED)$/,
    passes: true,
    isUnreached: true,
    hint: (host, start) =>
      `Nothing accepts connections at ${host}: start the server${start}, or correct the base address.`,
  },
  {
    codes: /^(?:ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/,
    passes: true,
    isUnreached: true,
    hint: (host) => `${host} does not answer: check the base address and your network.`,
  },
  {
    codes: /^(?:ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO|ERR_SSL_\w+)$/,
    passes: false,
    isUnreached: false,
    hint: (host) => `${host} does not speak https: begin the base address with http:// if that is intended.`,
  },
  {
    codes: /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|ALTNAME/,
    passes: false,
    isUnreached: false,
    hint: (host) =>
      `The certificate of ${host} is not valid: check the base address, and the clock of this machine.`,
  },
  {
    codes: /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)/,
    passes: false,
    isUnreached: false,
    hint: (host) =>
      `The certificate of ${host} is not trusted: set NODE_EXTRA_CA_CERTS to the file of the authority that issued it.`,
  },
  {
    codes: /^HPE_/,
    passes: false,
    isUnreached: false,
    hint: (host) => `${host} does not speak HTTP at this port: correct the base address.`,
  },
  {
    codes: /^BAD_PORT$/,
    passes: false,
    isUnreached: false,
    hint: (host) =>
      `${host} has a port that is reserved for another service: let the server listen at another one.`,
  },
  { codes: /^(?:E[A-Z]+|UND_ERR_\w+)$/, passes: true, isUnreached: false, hint: () => "" },
];

/** A local server that is being restarted is back in seconds; one that was never started is not waited for. */
const LOCAL_WAIT_MS = 1000;

/** null: the trouble is of another kind. */
export function connectionTrouble(
  error: unknown,
  baseUrl: string | undefined,
  provider?: ProviderId,
): Lost | null {
  const chain = causes(error);
  const found = chain.find(({ code }) => code !== undefined);
  const row = ROWS.find(({ codes }) => found?.code !== undefined && codes.test(found.code));
  if (row === undefined || found === undefined) return null;
  const words = `the connection failed: ${found.message || found.code}`;
  const hint = row.hint(hostOf(baseUrl), provider === "ollama" && isLocal(baseUrl) ? " (ollama serve)" : "");
  const isFast = found.code === "ECONNREFUSED" && isLocal(baseUrl);
  return {
    kind: row.passes ? "network" : "other",
    words,
    isUnreached: row.isUnreached && !isLocal(baseUrl),
    ...(hint === "" ? {} : { hint }),
    ...(isFast ? { retryAfterMs: LOCAL_WAIT_MS } : {}),
  };
}

function hostOf(baseUrl: string | undefined): string {
  return baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl).host : "the server";
}

type Cause = { readonly code: string | undefined; readonly message: string };

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
  return [...inner, { code, message: error.message }];
}
