/** Whether a text matches a pattern of the flow's author, in bounded time. */
import { runInNewContext } from "node:vm";
import { isObject } from "../flow/json.ts";

/** A pattern may need longer than the universe has; it gets a quarter of a second, and then it has not matched. */
export function matchesPattern(
  pattern: string,
  text: string,
  signal?: AbortSignal,
): Promise<{ readonly ok: boolean; readonly why?: string }> {
  if (signal?.aborted) return Promise.resolve({ ok: false, why: "it was stopped" });
  try {
    const ok: unknown = runInNewContext(
      "new RegExp(pattern).test(text)",
      { pattern, text },
      { timeout: PATTERN_MS },
    );
    return Promise.resolve({ ok: ok === true });
  } catch (error) {
    // It comes from another realm, and is an instance of nothing here.
    const why =
      isObject(error) && error["code"] === "ERR_SCRIPT_EXECUTION_TIMEOUT"
        ? "the pattern took too long"
        : "the pattern is not a valid regular expression";
    return Promise.resolve({ ok: false, why });
  }
}

const PATTERN_MS = 250;
