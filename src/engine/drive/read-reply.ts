/** Reads what a backend gave into a reply that can be recorded. */
import type { Answerer, Reply, Usage } from "../../flow/event.ts";
import type { Flow, Step } from "../../flow/flow.ts";
import { isObject } from "../../flow/json.ts";
import { ANSWER_CAPS, bound, extractBeside, extractObject } from "../decide/answer.ts";
import type { TurnResult } from "../ports.ts";

/**
 * Bounds what came back before anything is recorded, and reads the payload where the backend did not. `usage`: what is
 * counted, where that is not what the result says.
 */
export function readTurn(
  { settings: { actions } }: Flow,
  step: Step,
  result: TurnResult,
  usage?: Usage,
): Reply | Promise<Reply> {
  const mark = restOf(result);
  if (result.kind === "fault") return { kind: "fault", fault: result.fault, ...mark };
  if (result.text.length > ANSWER_CAPS.bytes) {
    return { kind: "oversized", why: `longer than ${ANSWER_CAPS.bytes} characters`, ...mark };
  }
  if (result.calls.length > 0) {
    const calls = bound(result.calls);
    if (calls.kind === "oversized") return { ...calls, ...mark };
  } else if (result.output === undefined && result.text !== "" && wantsObject(step)) {
    const found = actions.enabled ? extractBeside(result.text, actions) : extractObject(result.text);
    return found.then((payload) => said(result, payload, usage));
  }
  return said(result, result.output, usage);
}

/** What is recorded with a reply of any kind. */
function restOf({ mark, judged, by }: TurnResult): Pick<TurnResult, "mark" | "judged" | "by"> | undefined {
  if (mark === undefined && judged === undefined && by === undefined) return undefined;
  return {
    ...(mark !== undefined && { mark }),
    ...(judged !== undefined && { judged }),
    ...(by !== undefined && { by: named(by) }),
  };
}

/** A server chooses these names: they are recorded with every answer, so they are short. */
function named({ provider, model, answered: other }: Answerer): Answerer {
  const short = (text: string) => text.slice(0, 200);
  return {
    provider: short(provider),
    ...(model !== undefined && { model: short(model) }),
    ...(other !== undefined && { answered: short(other) }),
  };
}

function said(result: TurnResult & { kind: "reply" }, payload: unknown, usage = result.usage): Reply {
  const { text, calls, session, capped, asked } = result;
  const rest = restOf(result);
  const bounded = payload === undefined ? null : bound(payload);
  if (bounded?.kind === "oversized") return { ...bounded, ...rest };
  const output = bounded !== null && isObject(bounded.value) ? bounded.value : undefined;
  const reply: Reply =
    output === undefined
      ? { kind: "said", text, calls, usage }
      : { kind: "said", text, calls, output, usage };
  if (session === undefined && rest === undefined && capped === undefined && asked === undefined)
    return reply;
  return {
    ...reply,
    ...(session === undefined ? undefined : { session }),
    ...(capped === undefined ? undefined : { capped }),
    ...(asked === undefined ? undefined : { asked }),
    ...rest,
  };
}

function wantsObject({ answer }: Step): boolean {
  return answer.kind === "object" && answer.channel.kind === "output";
}
