/** What went wrong between Lockstep and a model, in the words of the engine, which alone decides about trying again. */
import type { Fault, FaultKind } from "../../flow/event.ts";
import { ended, shownInLine } from "../../flow/text/harmless.ts";
import { isObject, parseJson, type Json } from "../../flow/json.ts";
import { connectionTrouble, type Proxy } from "./connection.ts";
import { KNOWN, type KnownRefusal, type Reason } from "./refusals.ts";
import { readBody, readValue, reportsError, type ErrorWords } from "./error-text.ts";
import { PROVIDERS, type ModelTarget } from "./providers.ts";

/** Of an error response, of an error within a stream, or of a connection; what is not known is absent. */
type Trouble = {
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly type?: unknown;
  readonly code?: unknown;
  readonly data?: unknown;
  readonly responseBody?: unknown;
  readonly responseHeaders?: unknown;
  readonly cause?: unknown;
};

export type FaultContext = {
  readonly target: ModelTarget;
  readonly now: number;
  /** The last part of the response, where there was one. */
  readonly tail?: string;
  /** Added where no connection could be made. */
  readonly connectionHint?: string;
  readonly proxies?: readonly Proxy[];
};

export function toFault(error: unknown, about: FaultContext): Fault {
  const trouble = (typeof error === "object" && error !== null ? error : { message: error }) as Trouble;
  const said = saidIn(trouble, about.tail ?? "");
  const status = statusOf(trouble) ?? said.status;
  const address = about.target.baseUrl ?? PROVIDERS[about.target.provider].baseUrl ?? undefined;
  if (status === undefined && said.words === null) {
    const lost = connectionTrouble(error, address, about.target.provider, about.proxies);
    if (lost !== null) {
      const { kind, words, hint, retryAfterMs } = lost;
      const hints = [hint, ...(lost.isUnreached ? [about.connectionHint] : [])];
      return sentence(
        { kind, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
        [words],
        hints,
        about,
      );
    }
  }
  const words = said.words ?? ownWords(trouble);
  const reason: Reason = { words, names: said.names, status, ...about.target };
  const known = KNOWN.find((each) => isKnown(each, reason));
  const retryAfterMs = retryAfter(trouble.responseHeaders, about.now) ?? said.retryAfterMs;
  const kind = known?.kind ?? kindOf(said, status, trouble);
  const hint = known?.hint?.(reason) ?? plainHint(kind, said, reason, trouble);
  return sentence(
    {
      kind,
      ...(status === undefined ? {} : { status }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
    [...(status === undefined ? [] : [String(status)]), words],
    [hint],
    about,
  );
}

/** A fault whose message is made of sentences. */
export function modelFault(
  kind: FaultKind,
  words: string,
  { target, hint }: { readonly target: ModelTarget; readonly hint?: string },
): Fault {
  return sentence({ kind }, [words], [hint], { target });
}

const LONGEST = 600;
/** Room for what a server says; the hint comes after it and is never cut off. */
const LONGEST_WORDS = 400;

/** `secrets` must not be shown; some services repeat the key they refuse. */
function sentence(
  fault: Omit<Fault, "message">,
  words: readonly string[],
  hints: readonly (string | null | undefined)[],
  { target }: Pick<FaultContext, "target">,
): Fault {
  const said = shownInLine(hidden(words.join(" ").trim(), target), LONGEST_WORDS);
  const all = [ended(`${target.provider}/${target.model}: ${said}`), ...hints.filter(Boolean)];
  return { ...fault, message: shownInLine(all.join(" "), LONGEST) };
}

function hidden(text: string, { apiKey, authToken, headers = {} }: ModelTarget): string {
  const values = Object.values(headers);
  const sent = [apiKey, authToken, ...values, ...values.flatMap((value) => value.split(/\s+/))];
  const secrets = sent.filter((one) => one !== undefined && one.length >= 8) as readonly string[];
  return secrets.reduce((all, one) => all.replaceAll(one, "***"), text);
}

function statusOf({ statusCode }: Trouble): number | undefined {
  return typeof statusCode === "number" && statusCode >= 300 ? statusCode : undefined;
}

/** What the server itself said: in the body of a refusal, or in the last event of a stream. */
function saidIn({ responseBody, data, type, code, message }: Trouble, tail: string): ErrorWords {
  if (typeof responseBody === "string" && responseBody.trim() !== "") return readBody(responseBody);
  const event = errorEvent(tail);
  if (event !== null) return readValue(event);
  if (typeof data === "object" && data !== null) return readValue(data as Json);
  const names = [type, code].filter((name) => typeof name === "string");
  const isTheirs =
    names.length > 0 && typeof message === "string" && !/^(?:E[A-Z]+|ERR_|UND_ERR_)/.test(names[0]!);
  return { words: isTheirs && message !== "" ? message : null, names };
}

/** An event that reports an error, whatever the provider's package made of it. */
export function errorEvent(tail: string): Json | null {
  for (const [, data = ""] of [...tail.matchAll(/^data: ?(\{.*"(?:error|detail)".*)$/gm)].toReversed()) {
    // One that is not whole says nothing: what the package says about it is all there is.
    const value = parseJson(data) ?? null;
    const said = member(value, "error") ?? member(value, "detail") ?? null;
    if (said !== null && reportsError(dropEmpty(value))) return value;
  }
  return null;
}

/** Some put an empty list of choices beside the error. */
function dropEmpty(value: Json): Json {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, one]) => !(Array.isArray(one) && one.length === 0)),
  );
}

/** What the provider's package says, without what is only for its developers. */
function ownWords(trouble: Trouble): string {
  const { message, cause } = trouble;
  const words = typeof message === "string" ? message : String(message);
  const sent = unreadable([trouble, cause]);
  if (sent !== null) return sent;
  const why = member(cause, "message");
  const known = words === "" ? "no reason was given" : words;
  return typeof why === "string" && why !== "" && !known.includes(why) ? `${known} (${why})` : known;
}

function unreadable(errors: readonly unknown[]): string | null {
  for (const error of errors) {
    const value = member(error, "text") ?? member(error, "value");
    const name = member(error, "name");
    if (typeof name !== "string" || !/JSONParse|TypeValidation/.test(name)) continue;
    const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
    return notInFormat(text);
  }
  return null;
}

export function notInFormat(text: string): string {
  return `the server sent something that is not in the provider's format: ${text.trim().slice(0, 200)}`;
}

function isKnown({ says, when }: KnownRefusal, reason: Reason): boolean {
  const { names, words } = reason;
  return (when?.(reason) ?? true) && says.test(`${names.join(" ")} ${words}`);
}

/** A status says whether trying again can help; a name counts where there is no status. */
function kindOf(said: ErrorWords, status: number | undefined, trouble: Trouble): FaultKind {
  if (status !== undefined) return kindOfStatus(status);
  if (said.isPage) return "bad-request";
  const named = said.names
    .map((name) => KIND_BY_NAME.get(name.toLowerCase()))
    .find((kind) => kind !== undefined);
  if (named !== undefined) return named;
  const words = `${String(trouble.message)} ${String(member(trouble.cause, "message"))}`;
  if (unreadable([trouble, trouble.cause]) !== null || /Unsupported chunk/.test(words)) return "other";
  return /connect|network|fetch failed|terminated|socket|closed|stream ended/i.test(words)
    ? "network"
    : "other";
}

function kindOfStatus(status: number): FaultKind {
  if (status === 401 || status === 402 || status === 403) return "auth";
  if (status === 429) return "rate-limit";
  if (status === 503 || status === 529) return "overloaded";
  if (status === 408 || status >= 500) return "network";
  return "bad-request";
}

/** Names that services give to errors which they report without a status. */
const KIND_BY_NAME: ReadonlyMap<string, FaultKind> = new Map([
  ["authentication_error", "auth"],
  ["permission_error", "auth"],
  ["rate_limit_error", "rate-limit"],
  ["rate_limit_exceeded", "rate-limit"],
  ["resource_exhausted", "rate-limit"],
  ["overloaded_error", "overloaded"],
  ["unavailable", "overloaded"],
  ["server_error", "network"],
  ["api_error", "network"],
  ["internal", "network"],
  ["internalservererror", "network"],
  ["timeout_error", "network"],
  ["invalid_request_error", "bad-request"],
  ["not_found_error", "bad-request"],
  ["request_too_large", "bad-request"],
]);

/** What helps where only the kind is known. */
function plainHint(
  kind: FaultKind,
  said: ErrorWords,
  { status, keyEnv, provider, baseUrl }: Reason,
  trouble: Trouble,
): string | null {
  if (status !== undefined && status < 400)
    return `Redirects are not followed${placeOf(member(trouble.responseHeaders, "location"))}: correct the base address.`;
  if (said.isPage && kind !== "network" && kind !== "overloaded")
    return "Check the base address, and whether you have to sign in to a network first.";
  if (kind === "auth" && keyEnv !== undefined) return `The key is the value of ${keyEnv}.`;
  if (status !== 404 && status !== 405) return null;
  const isElsewhere =
    provider === "openai" && baseUrl !== undefined && !/^https:\/\/api\.openai\.com\b/.test(baseUrl);
  return isElsewhere
    ? 'If the server only has the chat protocol, use the provider "openai-chat" or "openai-compatible".'
    : 'Check the name of the model and the base address, which usually ends with "/v1".';
}

/** Without what comes after the path: it may be meant for one person. */
function placeOf(location: unknown): string {
  const url = typeof location === "string" && URL.canParse(location) ? new URL(location) : null;
  return url === null ? "" : ` (this one leads to ${shownInLine(url.origin + url.pathname, 120)})`;
}

/** Seconds, a date, or milliseconds where a service says so. A date is held against the service's own clock if it is given. */
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
