/** Answers to GraphQL queries: one that failed comes with the status 200, too. */
import { isObject, readPath, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import { endOfWindow, judge, limited, type Asked, type Failure, type Reply } from "./github-faults.ts";
import { at, listIn, textIn } from "./github-read.ts";

/** null: there is an answer. One that is there counts, also when something beside it could not be told. */
export function faultInGraph(reply: Reply, root: Path, asked: Asked, now: number): Failure | null {
  if (answerIn(reply, root) !== null) return null;
  const { headers } = reply;
  const first = listIn(reply.data as Json, "errors").find(isObject) ?? {};
  const [type, message] = [textIn(first, "type") || "NOT_FOUND", textIn(first, "message")];
  if (type === "RATE_LIMITED") return limited(endOfWindow(headers, now));
  const status = /secondary rate limit/i.test(message) ? 429 : (STATUS_OF_TYPE[type] ?? 422);
  return judge({ status, headers, data: { message } }, asked, now);
}

export function answerIn({ data }: Reply, root: Path): Json {
  return readPath(at(data as JsonObject, "data"), root) ?? null;
}

const STATUS_OF_TYPE: { readonly [type: string]: number } = {
  NOT_FOUND: 404,
  FORBIDDEN: 403,
  INSUFFICIENT_SCOPES: 403,
  SERVICE_UNAVAILABLE: 503,
};
