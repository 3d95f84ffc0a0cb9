/** A request that a server of ours refuses: in words, with a code, and with the status that fits it. */
import type { Problem } from "../flow/problem.ts";
import type { TrustQuestion } from "../run/trust/trust.ts";

/** As it is sent. `field`: the part of the request that is wrong, where it is one. */
export type Refusal = {
  readonly v: 1;
  readonly code: string;
  readonly reason: string;
  readonly field?: string;
  /** Findings about an agent that cannot run. */
  readonly problems?: readonly Problem[];
  /** What has to be trusted before this can be done: send its digest back. */
  readonly trust?: TrustQuestion;
};

/** A request that is refused in words. `more`: further members of the refusal. */
export class RequestRefusal extends Error {
  readonly status: number;
  readonly refusal: Refusal;
  constructor(
    status: number,
    code: string,
    reason: string,
    more: Omit<Partial<Refusal>, "v" | "code" | "reason"> = {},
  ) {
    super(reason);
    this.name = "RequestRefusal";
    this.status = status;
    this.refusal = { v: 1, code, reason, ...more };
  }
}

/** The status that a failure of ours is answered with. */
export function statusOf(code: string): number {
  if (NOT_FOUND.has(code)) return 404;
  if (CONFLICT.has(code)) return 409;
  return code === "JOURNAL_UNAVAILABLE" ? 503 : 400;
}

const NOT_FOUND: ReadonlySet<string> = new Set([
  "RUN_UNKNOWN",
  "STEP_UNKNOWN",
  "ENTRY_UNKNOWN",
  "AGENT_UNKNOWN",
]);
const CONFLICT: ReadonlySet<string> = new Set([
  "RUN_OWNED_ELSEWHERE",
  "RUN_EXISTS",
  "RUN_AMBIGUOUS",
  "RUN_OPEN",
  "RUN_OVER",
  "RUN_PAUSED",
  "RUN_HELD",
  "FLOW_INCOMPATIBLE",
  "FLOW_INVALID",
  "NOT_DRIVEN",
  "NO_QUESTION",
  "QUESTION_ANSWERED",
  "QUESTION_EXPIRED",
  "NOT_TRUSTED",
  "STATE_FOREIGN",
]);
