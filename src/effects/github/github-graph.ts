/** Answers to GraphQL queries: one that failed comes with the status 200, too. */
import { isObject, readPath, type Json, type JsonObject, type Path } from "../../flow/json.ts";
import {
  endOfWindow,
  judgeReply,
  limited,
  type GithubRequest,
  type GithubFailure,
  type GithubReply,
} from "./github-faults.ts";
import { valueAt, listAt, textField } from "./github-read.ts";

/** null: there is an answer. One that is there counts, also when something beside it is missing. */
export function faultInGraph(
  reply: GithubReply,
  root: Path,
  asked: GithubRequest,
  now: number,
): GithubFailure | null {
  if (answerIn(reply, root) !== null) return null;
  const { headers } = reply;
  const first = listAt(reply.data as Json, "errors").find(isObject) ?? {};
  const [type, message] = [textField(first, "type") || "NOT_FOUND", textField(first, "message")];
  if (type === "RATE_LIMITED") return limited(endOfWindow(headers, now));
  const status = /secondary rate limit/i.test(message) ? 429 : (STATUS_OF_TYPE[type] ?? 422);
  return judgeReply({ status, headers, data: { message } }, asked, now);
}

export function answerIn({ data }: GithubReply, root: Path): Json {
  return readPath(valueAt(data as JsonObject, "data"), root) ?? null;
}

const STATUS_OF_TYPE: { readonly [type: string]: number } = {
  NOT_FOUND: 404,
  FORBIDDEN: 403,
  INSUFFICIENT_SCOPES: 403,
  SERVICE_UNAVAILABLE: 503,
};
