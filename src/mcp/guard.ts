/** Whether a request over HTTP may be answered at all: judged by its head alone, with the rules that the studio has. Pure. */
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
  type HeadRules,
  type RefusedHead,
  type RequestHead,
} from "../serve/head.ts";

/** The one path that is served. */
export const MCP_PATH = "/mcp";

const TOKEN_WORDS =
  "The request does not have the token of this server. Send it as `Authorization: Bearer TOKEN`; `lockstep mcp --http` prints it.";

/** null: it may be answered. */
export function judgeMcpRequest(head: RequestHead, rules: HeadRules): RefusedHead | null {
  const { method, target } = head;
  if (method !== "POST" && method !== "GET" && method !== "DELETE")
    return refused(405, "METHOD_NOT_ALLOWED", "This server answers POST, GET and DELETE only.");
  const all = headerValues(head);
  const wrong =
    wrongTarget(target) ??
    wrongHost(all("host"), rules) ??
    repeatedHeader(all) ??
    foreignPage(all, rules) ??
    wrongToken(all("authorization")[0], rules, TOKEN_WORDS);
  if (wrong !== null) return wrong;
  if (target !== MCP_PATH) return refused(404, "NOT_FOUND", `Only ${MCP_PATH} is served, without a query.`);
  if (method === "POST") return wrongBody(all);
  return hasBody(all) ? refused(400, "BODY_UNEXPECTED", `A ${method} request must not have a body.`) : null;
}
