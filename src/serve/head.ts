/** What any request to a server of ours must have in its head, whatever it asks for. Pure. */
import { timingSafeEqual } from "node:crypto";

/** The head of a request as it was sent. `headers`: name and value in turn, as Node has them in `rawHeaders`. */
export type RequestHead = {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
};

/** Where a server can be reached, and what opens it. */
export type HeadRules = {
  readonly token: string;
  /** Values of `Host` that mean this server: `127.0.0.1:21000`. */
  readonly hosts: readonly string[];
};

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
export function wrongHost(hosts: readonly string[], rules: Pick<HeadRules, "hosts">): RefusedHead | null {
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

export function hasBody(all: HeaderValues): boolean {
  const [length = "0"] = all("content-length");
  return length !== "0" || all("transfer-encoding").length > 0;
}

/** Pages of other sites are told nothing, and can do nothing. */
export function foreignPage(all: HeaderValues, { hosts }: Pick<HeadRules, "hosts">): RefusedHead | null {
  const [site] = all("sec-fetch-site");
  const [origin] = all("origin");
  if (site !== undefined && site !== "same-origin")
    return refused(403, "FOREIGN_SITE", "The request comes from a page of another site.");
  return origin === undefined || hosts.some((host) => origin.toLowerCase() === `http://${host}`)
    ? null
    : refused(403, "FOREIGN_ORIGIN", "The request comes from a page of another origin.");
}

/** `why`: what to do about it. */
export function wrongToken(
  given: string | undefined,
  { token }: Pick<HeadRules, "token">,
  why: string,
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
