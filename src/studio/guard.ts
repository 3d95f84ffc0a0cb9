/** Whether a request may be answered at all: judged by its head alone. Pure. */
import {
  foreignPage,
  hasBody,
  headerValues,
  refused,
  repeatedHeader,
  wrongBody,
  wrongHost,
  wrongTarget,
  wrongToken,
  type HeaderValues,
  type HeadRules,
  type RefusedHead,
  type RequestHead,
} from "../serve/head.ts";

export type GuardRules = HeadRules & { readonly isReadOnly: boolean };

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
  const foreign = wrongSite(method, all, rules) ?? wrongToken(all("authorization")[0], rules, OPEN_LINK);
  if (foreign !== null) return foreign;
  if (method === "POST") {
    if (rules.isReadOnly)
      return refused(405, "READ_ONLY", "This studio is read-only: it starts and changes nothing.");
    const body = wrongBody(all);
    if (body !== null) return body;
  }
  return { kind: "api", method, segments: segments.slice(1), query };
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

function wrongSite(method: string, all: HeaderValues, rules: GuardRules): RefusedHead | null {
  const foreign = foreignPage(all, rules);
  if (foreign !== null || method !== "POST" || all("origin").length > 0) return foreign;
  return refused(403, "FOREIGN_ORIGIN", "A POST request must name the origin of the studio.");
}

const OPEN_LINK =
  "The request does not have the token of this studio. Open the link that `lockstep studio` printed.";
