/** What happened within a visit, as spans without their times. */
import type { Lane } from "../engine/decide/state.ts";
import type { CallResult, Reply, Usage } from "../flow/event.ts";
import type { Step } from "../flow/flow.ts";
import type { Attributes, TraceSpan } from "../flow/span.ts";
import { deedsOf, type Moment } from "../story/story.ts";
import { answerOf, requestOf, type Said } from "./transcript.ts";

type Part = Pick<TraceSpan, "name" | "kind" | "attributes" | "failed">;

/** Where it happened. `isTelling`: what was said is wanted as well. */
export type SpanPlace = {
  readonly backend: string;
  readonly isTelling: boolean;
  readonly step: Step;
  readonly lane: Lane;
};

export function spanParts(moment: Moment, place: SpanPlace): readonly Part[] {
  const { event } = moment.entry;
  const { isTelling } = place;
  switch (event.type) {
    case "step.answered":
      return [responsePart(moment, place, event.reply)];
    case "step.called":
      return deedsOf(moment, "called").flatMap(({ calls, results }) =>
        results.map((result) => toolPart(result, calls.find(({ id }) => id === result.id)?.input, isTelling)),
      );
    case "step.checked":
      return event.results.map(({ name, ok, pattern, summary }) => ({
        name: `check ${name}`,
        kind: "internal",
        attributes: {
          "lockstep.check.name": name,
          "lockstep.check.ok": ok,
          ...(!ok && { "error.type": pattern }),
          ...(isTelling && summary !== "" && { "lockstep.check.summary": clipped(summary) }),
        },
        failed: !ok,
      }));
    case "step.hooked":
      if (event.result.kind === "absent") return [];
      return [
        {
          name: `hook ${event.hook}`,
          kind: "internal",
          attributes: { "lockstep.hook": event.hook },
          failed: event.result.kind === "threw",
        },
      ];
    default:
      return [];
  }
}

function responsePart(moment: Moment, place: SpanPlace, reply: Reply): Part {
  const { step, lane, backend, isTelling } = place;
  // Earlier versions recorded neither: then it is what the step asks for.
  const by = "by" in reply ? reply.by : undefined;
  const model = by === undefined ? step.model : by.model;
  const trouble = troubleOf(reply);
  const failed = trouble !== null;
  const error: Attributes = trouble === null ? {} : { "error.type": trouble };
  if (step.by.kind === "command")
    return { name: `command ${step.id}`, kind: "internal", attributes: error, failed };
  return {
    name: model === undefined ? "chat" : `chat ${model}`,
    kind: "client",
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": by?.provider ?? backend,
      ...(model !== undefined && { "gen_ai.request.model": model }),
      ...(by?.answered !== undefined && { "gen_ai.response.model": by.answered }),
      "gen_ai.conversation.id": moment.before.run,
      "gen_ai.output.type": step.answer.kind === "object" ? "json" : "text",
      "lockstep.turn": lane.turn,
      ...(reply.kind === "said" && {
        ...tokensOf(reply.usage),
        "gen_ai.response.finish_reasons": [reply.calls.length > 0 ? "tool_calls" : "stop"],
        ...(reply.usage.costUsd !== null && { "lockstep.cost_usd": reply.usage.costUsd }),
      }),
      ...error,
      ...(isTelling && contentOf(moment, place, reply)),
    },
    failed,
  };
}

/** A figure that was not reported is left out: 0 would be taken for one. */
export function tokensOf({ inputTokens, outputTokens, unknown }: Usage): Attributes {
  if (unknown?.includes("tokens") && inputTokens + outputTokens === 0) return {};
  return { "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens };
}

function troubleOf(reply: Reply): string | null {
  if (reply.kind === "said") return null;
  return reply.kind === "fault" ? reply.fault.kind : reply.kind === "unaskable" ? reply.code : "oversized";
}

function toolPart({ id, name, ok, denied, content }: CallResult, input: unknown, isTelling: boolean): Part {
  return {
    name: `execute_tool ${name}`,
    kind: "internal",
    attributes: {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": name,
      "gen_ai.tool.call.id": id,
      "gen_ai.tool.type": "function",
      ...(!ok && { "error.type": denied === undefined ? "tool_error" : "denied" }),
      ...(isTelling && {
        "gen_ai.tool.call.arguments": clipped(JSON.stringify(input ?? {})),
        "gen_ai.tool.call.result": clipped(content),
      }),
    },
    failed: !ok,
  };
}

/** What is new in this turn; what was said before is in the spans before. */
function contentOf({ flow, before }: Moment, { step, lane }: SpanPlace, reply: Reply): Attributes {
  const { system, messages } = requestOf(flow, step, lane, before);
  const finish = reply.kind === "said" && reply.calls.length > 0 ? "tool_call" : "stop";
  return {
    "gen_ai.system_instructions": clipped(JSON.stringify([{ type: "text", content: system }])),
    "gen_ai.input.messages": clipped(JSON.stringify(messages.map(toMessage))),
    ...(reply.kind === "said" && {
      "gen_ai.output.messages": clipped(
        JSON.stringify([{ ...toMessage(answerOf(reply)), finish_reason: finish }]),
      ),
    }),
  };
}

function toMessage(said: Said): { readonly role: string; readonly parts: readonly unknown[] } {
  if (said.role === "tool") {
    const parts = said.results.map(({ id, content }) => ({
      type: "tool_call_response",
      id,
      response: content,
    }));
    return { role: "tool", parts };
  }
  const text = { type: "text", content: said.text };
  if (said.role !== "assistant") return { role: said.role, parts: [text] };
  const calls = said.calls.map(({ id, name, input }) => ({ type: "tool_call", id, name, arguments: input }));
  const spoken = said.output === undefined ? said.text : JSON.stringify(said.output);
  return { role: "assistant", parts: [...(spoken === "" ? [] : [{ ...text, content: spoken }]), ...calls] };
}

const LONGEST = 32 * 1024;

export function clipped(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
