/** One streamed response, put together, and whether it is one. */
import type {
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { TurnRequest } from "../engine/ports.ts";
import type { Call, Fault } from "../flow/event.ts";
import { isObject, type JsonObject } from "../flow/json.ts";
import type { Keepsake } from "./ai-sdk-prompt.ts";

export type Heard =
  | {
      readonly kind: "heard";
      readonly text: string;
      readonly calls: readonly LanguageModelV4ToolCall[];
      readonly thoughts: Keepsake["thoughts"];
      /** null: the stream ended before the response did. */
      readonly stop: { readonly unified: string; readonly raw: string | undefined } | null;
      readonly usage: LanguageModelV4Usage | null;
    }
  | { readonly kind: "trouble"; readonly error: unknown };

/** A stream without an end must not fill the memory; far less than this is refused as an answer. */
const LONGEST = 16 * 1024 * 1024;

/** To its end, or to the first trouble. */
export async function hear(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: TurnRequest["onText"],
): Promise<Heard> {
  let text = "";
  const calls: LanguageModelV4ToolCall[] = [];
  const thoughts = new Map<string, { text: string; marks: Keepsake["thoughts"][number]["marks"] }>();
  let stop: (Heard & { kind: "heard" })["stop"] = null;
  let usage: LanguageModelV4Usage | null = null;
  let size = 0;
  for await (const part of stream) {
    if ("delta" in part) size += part.delta.length;
    if (size > LONGEST)
      return { kind: "trouble", error: new Error(`the response is longer than ${LONGEST} characters`) };
    switch (part.type) {
      case "text-delta":
        text += part.delta;
        onText?.(part.delta);
        break;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end": {
        const { text: before, marks } = thoughts.get(part.id) ?? { text: "", marks: {} };
        const delta = part.type === "reasoning-delta" ? part.delta : "";
        thoughts.set(part.id, { text: before + delta, marks: { ...marks, ...part.providerMetadata } });
        break;
      }
      case "tool-call":
        if (part.providerExecuted !== true) calls.push(part);
        break;
      case "finish":
        stop = part.finishReason;
        ({ usage } = part);
        break;
      case "error":
        return { kind: "trouble", error: part.error };
      default:
    }
  }
  return { kind: "heard", text, calls, thoughts: [...thoughts.values()], stop, usage };
}

/** Why what was heard is no answer; null: it is one. A part of an answer is worse than none. */
export function brokenOff(
  { text, calls, stop, usage }: Heard & { kind: "heard" },
  who: string,
): Fault | null {
  const raw = stop?.raw === undefined ? "" : ` (${stop.raw})`;
  switch (stop?.unified) {
    case undefined:
    case "interrupted":
      return { kind: "network", message: `${who}: the response broke off.` };
    case "error":
      return { kind: "network", message: `${who}: the response ended with an error${raw}.` };
    case "content-filter":
      return {
        kind: "other",
        message: `${who}: the model refused to answer${raw}. ${text.slice(0, 300)}`.trim(),
      };
    case "length": {
      const tokens = usage?.outputTokens.total;
      const length = tokens === undefined ? "its limit" : `${tokens} tokens`;
      const message = `${who}: the response was cut off at ${length}. Raise maxOutputTokens of this model, or ask for less at once.`;
      return { kind: "other", message };
    }
    case "other":
      if (text !== "" || calls.length > 0) return null;
      return { kind: "network", message: `${who}: the response is empty${raw}.` };
    default:
      return null;
  }
}

export type ReadCall = Call & { readonly unreadable?: string };

/** Ids are made unique; an input that cannot be read is given on as such, so that the tool can refuse it. */
export function readCalls(calls: readonly LanguageModelV4ToolCall[], key: string): readonly ReadCall[] {
  const ids = new Set<string>();
  return calls.map(({ toolCallId, toolName, input }, place) => {
    const id = toolCallId === "" || ids.has(toolCallId) ? `${key}#${place + 1}` : toolCallId;
    ids.add(id);
    const read = readInput(input);
    if (read !== null) return { id, name: toolName, input: read };
    const unreadable = input.slice(0, 2000);
    return { id, name: toolName, input: { unreadable }, unreadable };
  });
}

function readInput(text: string): JsonObject | null {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
