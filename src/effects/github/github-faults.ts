/** What can go wrong between us and GitHub: a value for each, with one sentence that says what to do next. */
import { shownInLine } from "../../flow/text/harmless.ts";
import { isObject, own } from "../../flow/json.ts";

export type FailureKind =
  | "no-token"
  | "no-repository"
  | "unauthorised"
  | "forbidden"
  | "limited"
  | "not-found"
  | "gone"
  | "conflict"
  | "invalid"
  | "server"
  | "network"
  | "timeout"
  | "unreadable";

export type GithubFailure = {
  readonly ok: false;
  readonly kind: FailureKind;
  /** One sentence, and what to do next; never the token. */
  readonly why: string;
  /** Of a limit: when it ends, in epoch milliseconds. */
  readonly until?: number;
};

export type GithubOutcome<T> = { readonly ok: true; readonly value: T } | GithubFailure;

export function githubFailure(kind: FailureKind, why: string): GithubFailure {
  return { ok: false, kind, why };
}

/** What came back from one request, whatever its status. */
export type GithubReply = {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | number | undefined };
  readonly data: unknown;
};

/** What a sentence can name: the thing that was asked for, in which repository, and whose token it was asked with. */
export type GithubRequest = { readonly what: string; readonly where: string; readonly tokenFrom: string };

/** null: there is nothing wrong with it. */
export function judgeReply(reply: GithubReply, asked: GithubRequest, now: number): GithubFailure | null {
  const { status } = reply;
  if (status === 304 || (status >= 200 && status < 300)) return null;
  const until = endOfLimit(reply, now);
  if (until !== null) return limited(until);
  return githubFailure(...sentence(reply, asked));
}

export function limited(until: number): GithubFailure {
  const when = new Date(until).toISOString().replace(/\.\d+Z$/, "Z");
  const why = `GitHub accepts no more requests until ${when}: resume the run after that.`;
  return { ok: false, kind: "limited", why, until };
}

function sentence(
  reply: GithubReply,
  { what, where, tokenFrom }: GithubRequest,
): readonly [FailureKind, string] {
  const { status, headers } = reply;
  const said = wordsOf(reply.data);
  const quoted = said === "" ? "" : ` (${said})`;
  switch (status) {
    case 401:
      return [
        "unauthorised",
        `GitHub does not accept the token from ${tokenFrom}: make a new one, or sign in again with "gh auth login".`,
      ];
    case 403: {
      const wanted = headers["x-accepted-github-permissions"];
      const permission =
        wanted === undefined ? "the permission" : `the permission ${shownInLine(String(wanted))}`;
      return [
        "forbidden",
        `The token from ${tokenFrom} may not do this with ${what} of ${where}${quoted}: give it ${permission}, or use one that has it.`,
      ];
    }
    case 404:
      return [
        "not-found",
        `There is no ${what} in ${where}, or the token from ${tokenFrom} may not see it: check the name and what the token may read.`,
      ];
    case 408:
      return ["timeout", `GitHub gave up waiting for the request about ${what}: try again.`];
    case 409:
    case 423:
      return [
        "conflict",
        `GitHub could not do this with ${what} of ${where}${quoted}: look at it and try again.`,
      ];
    case 410:
    case 451:
      return ["gone", `There is no ${what} in ${where} any more${quoted}: name another one.`];
    default:
      if (status >= 500)
        return ["server", `GitHub has a problem of its own (status ${status}): try again later.`];
      if (status < 400)
        return ["gone", `${capital(what)} of ${where} was moved elsewhere: use its new address.`];
      return [
        "invalid",
        `GitHub does not take this about ${what} of ${where} as it is${quoted}: correct it.`,
      ];
  }
}

/** What the other side said, on one line. */
function wordsOf(data: unknown): string {
  if (!isObject(data)) return "";
  const message = own(data, "message");
  const errors = own(data, "errors");
  const more = Array.isArray(errors)
    ? errors.map((error) => detailOf(error)).filter((text) => text !== "")
    : [];
  const text = [typeof message === "string" ? message : "", ...more].filter((part) => part !== "").join("; ");
  return shownInLine(text, MOST_WORDS);
}

const MOST_WORDS = 300;

function detailOf(error: unknown): string {
  if (typeof error === "string") return error;
  if (!isObject(error)) return "";
  const { message, field, code } = error;
  if (typeof message === "string") return message;
  return [field, code].filter((part) => typeof part === "string").join(" ");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** When the limit that this reply reports is over; null: it reports none. */
export function endOfLimit({ status, headers, data }: GithubReply, now: number): number | null {
  if (status !== 403 && status !== 429) return null;
  const after = headers["retry-after"];
  if (after !== undefined) return endOfWait(String(after), now);
  if (String(headers["x-ratelimit-remaining"]) === "0") return endOfWindow(headers, now);
  const isSecondary = /secondary rate limit|abuse detection/i.test(wordsOf(data));
  return status === 429 || isSecondary ? now + UNSAID_MS : null;
}

export function endOfWindow(headers: GithubReply["headers"], now: number): number {
  const reset = Number(headers["x-ratelimit-reset"]);
  return Number.isFinite(reset) && reset > 0 ? Math.min(reset * 1000, now + DAY_MS) : now + UNSAID_MS;
}

/** Seconds or a date; anything else counts as not given. */
function endOfWait(after: string, now: number): number {
  const seconds = /^\d+$/.test(after) ? Number(after) : (Date.parse(after) - now) / 1000;
  return now + (Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0) * 1000, DAY_MS) : UNSAID_MS);
}

/** What GitHub advises to wait when it does not say how long. */
const UNSAID_MS = 60_000;
const DAY_MS = 24 * 60 * 60_000;
