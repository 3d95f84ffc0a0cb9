/** Whether a request may be answered at all: judged by its head alone. Pure. */
import { timingSafeEqual } from "node:crypto";

/** The head of a request as it was sent. `headers`: name and value in turn, as Node has them in `rawHeaders`. */
export type RequestHead = {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
};

/** Where the studio can be reached, and what opens it. */
export type GuardRules = {
  readonly token: string;
  /** Values of `Host` that mean this server: `127.0.0.1:21000`. */
  readonly hosts: readonly string[];
  readonly isReadOnly: boolean;
};

export type JudgedHead =
  | {
      readonly kind: "page";
      /** Decoded parts of the path. */
      readonly segments: readonly string[];
      readonly isHead: boolean;
    }
  | {
      readonly kind: "api";
      readonly method: "GET" | "POST";
      /** Those after `api`. */
      readonly segments: readonly string[];
      readonly query: { readonly [name: string]: string };
    }
  | RefusedHead;

export type RefusedHead = {
  readonly kind: "refused";
  readonly status: number;
  readonly code: string;
  readonly reason: string;
};

/** Bytes of a body at most. */
export const MOST_BODY = 1024 * 1024;
/** Characters of a target at most. */
const LONGEST_TARGET = 8192;

export function judgeRequest(head: RequestHead, rules: GuardRules): JudgedHead {
  const { method, target } = head;
  if (method !== "GET" && method !== "HEAD" && method !== "POST")
    return refused(405, "METHOD_NOT_ALLOWED", "The studio answers GET and POST only.");
  const all = headerValues(head);
  const wrong = wrongTarget(target) ?? wrongHost(all("host"), rules) ?? repeatedHeader(all);
  if (wrong !== null) return wrong;
  const [path = "", ...rest] = target.split("?");
  const segments = decodedPath(path);
  if (segments === null) return refused(400, "BAD_TARGET", "The path of the request cannot be decoded.");
  if (method !== "POST" && hasBody(all))
    return refused(400, "BODY_UNEXPECTED", `A ${method} request must not have a body.`);
  if (segments[0] !== "api")
    return method === "POST"
      ? refused(405, "METHOD_NOT_ALLOWED", "Only paths below /api/ take a POST.")
      : { kind: "page", segments, isHead: method === "HEAD" };
  if (method === "HEAD") return refused(405, "METHOD_NOT_ALLOWED", "Paths below /api/ take GET and POST.");
  const query = queryOf(rest.join("?"));
  if (query === null) return refused(400, "BAD_TARGET", "The query of the request cannot be read.");
  const foreign = wrongSite(method, all, rules) ?? wrongToken(all("authorization")[0], rules);
  if (foreign !== null) return foreign;
  if (method === "POST") {
    if (rules.isReadOnly)
      return refused(405, "READ_ONLY", "This studio is read-only: it starts and changes nothing.");
    const body = wrongBody(all);
    if (body !== null) return body;
  }
  return { kind: "api", method, segments: segments.slice(1), query };
}

/** All values of a header, by its name in lower case. */
export type HeaderValues = (name: string) => readonly string[];

export function headerValues({ headers }: RequestHead): HeaderValues {
  const values = new Map<string, string[]>();
  for (let place = 0; place + 1 < headers.length; place += 2) {
    const name = headers[place]!.toLowerCase();
    values.set(name, [...(values.get(name) ?? []), headers[place + 1]!]);
  }
  return (name) => values.get(name) ?? [];
}

export function refused(status: number, code: string, reason: string): RefusedHead {
  return { kind: "refused", status, code, reason };
}

/** `//evil/x` resolves to another host, and so does the absolute form. */
export function wrongTarget(target: string): RefusedHead | null {
  if (target.length > LONGEST_TARGET) return refused(414, "BAD_TARGET", "The target is too long.");
  const isPlain = /^\/(?!\/)[!-~]*$/.test(target) && !/[\\#]/.test(target);
  return isPlain ? null : refused(400, "BAD_TARGET", "The target must be a path that begins with one slash.");
}

/** A name of another owner that leads here (DNS rebinding) is not a name of this server. */
export function wrongHost(hosts: readonly string[], rules: Pick<GuardRules, "hosts">): RefusedHead | null {
  const [host = "", ...others] = hosts;
  if (host === "" || others.length > 0)
    return refused(400, "BAD_HOST", "The request must name exactly one host.");
  return rules.hosts.includes(host.toLowerCase())
    ? null
    : refused(421, "WRONG_HOST", "This server does not answer for the host that the request names.");
}

const SINGLE = [
  "authorization",
  "origin",
  "sec-fetch-site",
  "content-type",
  "content-length",
  "transfer-encoding",
];

export function repeatedHeader(all: HeaderValues): RefusedHead | null {
  const name = SINGLE.find((one) => all(one).length > 1);
  return name === undefined ? null : refused(400, "BAD_HEADER", `The header ${name} must be sent once.`);
}

function decodedPath(path: string): readonly string[] | null {
  try {
    const segments = path.slice(1).split("/").map(decodeURIComponent);
    const isOdd = (segment: string) => segment === "." || segment === ".." || /\p{Cc}/u.test(segment);
    return segments.some(isOdd) ? null : segments;
  } catch {
    return null;
  }
}

/** Every name once: of two values it would be open which one counts. */
function queryOf(text: string): { readonly [name: string]: string } | null {
  const pairs = [...new URLSearchParams(text)];
  const names = new Set(pairs.map(([name]) => name));
  return names.size === pairs.length && !names.has("__proto__") ? Object.fromEntries(pairs) : null;
}

export function hasBody(all: HeaderValues): boolean {
  const [length = "0"] = all("content-length");
  return length !== "0" || all("transfer-encoding").length > 0;
}

/** Pages of other sites are told nothing, and can do nothing. */
export function foreignPage(all: HeaderValues, { hosts }: Pick<GuardRules, "hosts">): RefusedHead | null {
  const [site] = all("sec-fetch-site");
  const [origin] = all("origin");
  if (site !== undefined && site !== "same-origin")
    return refused(403, "FOREIGN_SITE", "The request comes from a page of another site.");
  return origin === undefined || hosts.some((host) => origin.toLowerCase() === `http://${host}`)
    ? null
    : refused(403, "FOREIGN_ORIGIN", "The request comes from a page of another origin.");
}

function wrongSite(method: string, all: HeaderValues, rules: GuardRules): RefusedHead | null {
  const foreign = foreignPage(all, rules);
  if (foreign !== null || method !== "POST" || all("origin").length > 0) return foreign;
  return refused(403, "FOREIGN_ORIGIN", "A POST request must name the origin of the studio.");
}

const OPEN_LINK =
  "The request does not have the token of this studio. Open the link that `lockstep studio` printed.";

/** `why`: what to do about it. */
export function wrongToken(
  given: string | undefined,
  { token }: Pick<GuardRules, "token">,
  why = OPEN_LINK,
): RefusedHead | null {
  const [, said = ""] = /^Bearer ([\w-]{1,200})$/i.exec(given ?? "") ?? [];
  return isSame(said, token) ? null : refused(401, "TOKEN_NEEDED", why);
}

/** In a time that does not depend on where they differ. */
function isSame(said: string, token: string): boolean {
  const [one, other] = [Buffer.from(said), Buffer.from(token)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export function wrongBody(all: HeaderValues): RefusedHead | null {
  const [type = ""] = all("content-type");
  if (!/^application\/json(?:;\s*charset=utf-8)?$/i.test(type.trim()))
    return refused(415, "WRONG_TYPE", "The body of a POST request must be application/json.");
  const [length] = all("content-length");
  if (length !== undefined && !/^\d{1,15}$/.test(length))
    return refused(400, "BAD_HEADER", "The length of the body is not a number.");
  return Number(length ?? 0) > MOST_BODY
    ? refused(413, "BODY_TOO_LARGE", "The body of a request may have 1 MB at most.")
    : null;
}
