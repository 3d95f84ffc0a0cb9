/** What went wrong between us and a model, in the words of the engine, which alone decides about trying again. */
import type { Fault, FaultKind } from "../flow/event.ts";

/** Of an error response, of an error within a stream, or of a connection; what is not known is absent. */
type Trouble = {
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly data?: unknown;
  readonly responseHeaders?: unknown;
  readonly cause?: unknown;
};

/** `secret` must not be told to anybody; some services repeat the key they refuse. */
export function toFault(
  error: unknown,
  about: { readonly who: string; readonly secret?: string; readonly now: number },
): Fault {
  const trouble = (typeof error === "object" && error !== null ? error : { message: error }) as Trouble;
  const { statusCode } = trouble;
  const status = typeof statusCode === "number" && statusCode >= 300 ? statusCode : undefined;
  const words = wordsOf(trouble);
  const said = `${about.who}: ${status === undefined ? "" : `${status} `}${words}`;
  const hidden =
    about.secret === undefined || about.secret.length < 8 ? said : said.replaceAll(about.secret, "***");
  const retryAfterMs = retryAfter(trouble.responseHeaders, about.now);
  return {
    kind: kindOf(trouble, status),
    message: hidden.length > LONGEST ? `${hidden.slice(0, LONGEST - 1)}…` : hidden,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

const LONGEST = 600;

function kindOf(trouble: Trouble, status: number | undefined): FaultKind {
  const named = namesIn(trouble)
    .map((name) => KIND_BY_NAME.get(name))
    .find((kind) => kind !== undefined);
  if (named !== undefined) return named;
  if (status !== undefined) return kindOfStatus(status);
  if (isBadAnswer(trouble)) return "other";
  return isConnection(trouble) ? "network" : "other";
}

function kindOfStatus(status: number): FaultKind {
  if (status === 401 || status === 402 || status === 403) return "auth";
  if (status === 429) return "rate-limit";
  if (status === 503 || status === 529) return "overloaded";
  if (status === 408 || status >= 500) return "network";
  return "bad-request";
}

/** Names that services give to their errors; they say more than the status does. */
const KIND_BY_NAME: ReadonlyMap<string, FaultKind> = new Map([
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["invalid_api_key", "auth"],
  ["insufficient_quota", "auth"],
  ["billing_error", "auth"],
  ["rate_limit_error", "rate-limit"],
  ["rate_limit_exceeded", "rate-limit"],
  ["overloaded_error", "overloaded"],
  ["server_error", "network"],
  ["api_error", "network"],
  ["timeout_error", "network"],
  ["invalid_request_error", "bad-request"],
  ["not_found_error", "bad-request"],
  ["request_too_large", "bad-request"],
]);

function namesIn({ type, code, data }: Trouble): readonly string[] {
  const inner = member(data, "error");
  const names = [code, member(inner, "code"), type, member(inner, "type")];
  return names.filter((name) => typeof name === "string");
}

/** What came was read and made no sense; asking the same again seldom helps. */
function isBadAnswer({ cause, message }: Trouble): boolean {
  const names = [member(cause, "name"), member({ message }, "message")].map(String);
  return names.some((name) => /JSONParse|TypeValidation|Unsupported chunk/.test(name));
}

function isConnection(trouble: Trouble): boolean {
  const codes = [trouble, trouble.cause, member(trouble.cause, "cause")].map((each) => member(each, "code"));
  if (codes.some((code) => typeof code === "string" && /^(?:E[A-Z]+|UND_ERR_\w+)$/.test(code))) return true;
  const words = `${String(trouble.message)} ${String(member(trouble.cause, "message"))}`;
  return /connect|network|fetch failed|terminated|socket|closed|stream ended/i.test(words);
}

/** The service's own sentence, and below it what the connection died of. */
function wordsOf({ message, cause, data }: Trouble): string {
  const said = member(member(data, "error"), "message");
  const words =
    typeof said === "string" && said !== "" ? said : typeof message === "string" ? message : String(message);
  const why = member(cause, "message");
  const known = words === "" ? "no reason was given" : words.replaceAll(/\s+/g, " ");
  return typeof why === "string" && why !== "" && !known.includes(why) ? `${known} (${why})` : known;
}

/** Seconds, a date, or milliseconds where a service says so. A date is held against the service's own clock if it tells. */
function retryAfter(headers: unknown, now: number): number | undefined {
  const millis = Number(member(headers, "retry-after-ms") ?? Number.NaN);
  if (Number.isFinite(millis) && millis >= 0) return Math.ceil(millis);
  const after = member(headers, "retry-after");
  if (typeof after !== "string" || after === "") return undefined;
  const ms = /^\d+(?:\.\d+)?$/.test(after) ? Number(after) * 1000 : Date.parse(after) - sentAt(headers, now);
  return Number.isFinite(ms) ? Math.max(0, Math.ceil(ms)) : undefined;
}

function sentAt(headers: unknown, now: number): number {
  const sent = Date.parse(String(member(headers, "date")));
  return Number.isNaN(sent) ? now : sent;
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? (value as { readonly [key: string]: unknown })[key]
    : undefined;
}
