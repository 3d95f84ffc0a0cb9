/** One streamed response, put together, and whether it is one. */
import type {
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { TurnRequest } from "../../engine/ports.ts";
import type { Call, Fault } from "../../flow/event.ts";
import { parseJsonObject, type JsonObject } from "../../flow/json.ts";
import { createCallIds } from "../call-ids.ts";
import { modelFault } from "./faults.ts";
import type { Keepsake } from "./prompt.ts";
import type { ModelTarget } from "./providers.ts";

export type ResponseHeard =
  | {
      readonly kind: "heard";
      readonly text: string;
      readonly calls: readonly LanguageModelV4ToolCall[];
      readonly thoughts: Keepsake["thoughts"];
      /** null: the stream ended before the response did. */
      readonly stop: { readonly unified: string; readonly raw: string | undefined } | null;
      readonly usage: LanguageModelV4Usage | null;
      /** The model that the response names. */
      readonly model?: string;
    }
  | { readonly kind: "trouble"; readonly error: unknown };

/** A stream without an end must not fill the memory; far less than this is refused as an answer. */
const LONGEST = 16 * 1024 * 1024;

/** To its end, or to the first trouble. */
export async function hearResponse(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: TurnRequest["onText"],
): Promise<ResponseHeard> {
  let text = "";
  const calls: LanguageModelV4ToolCall[] = [];
  const thoughts = new Map<string, { text: string; marks: Keepsake["thoughts"][number]["marks"] }>();
  let stop: (ResponseHeard & { kind: "heard" })["stop"] = null;
  let usage: LanguageModelV4Usage | null = null;
  let model: string | undefined;
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
      case "response-metadata":
        model = part.modelId ?? model;
        break;
      case "finish":
        stop =
          part.finishReason.unified === "error" && part.finishReason.raw === undefined
            ? null
            : part.finishReason;
        ({ usage } = part);
        break;
      case "error":
        if (isUnfinished(part.error)) break;
        return { kind: "trouble", error: part.error };
      default:
    }
  }
  const said = { kind: "heard", text, calls, thoughts: [...thoughts.values()], stop, usage } as const;
  return model === undefined ? said : { ...said, model };
}

/** The stream just ended: what was received of it says whether that is an end. */
function isUnfinished(error: unknown): boolean {
  return error instanceof Error && /ended without a finish reason/.test(error.message);
}

/** A response that was not streamed. */
export function heardWhole(
  { content, finishReason, usage, response }: LanguageModelV4GenerateResult,
  onText: TurnRequest["onText"],
): ResponseHeard {
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  if (text !== "") onText?.(text);
  return {
    kind: "heard",
    text,
    calls: content.flatMap((part) =>
      part.type === "tool-call" && part.providerExecuted !== true ? [part] : [],
    ),
    thoughts: content.flatMap((part) =>
      part.type === "reasoning" ? [{ text: part.text, marks: part.providerMetadata ?? {} }] : [],
    ),
    stop: finishReason,
    usage,
    ...(response?.modelId !== undefined && { model: response.modelId }),
  };
}

/** Why what was heard is not an answer; null: it is one. A part of an answer is worse than none. */
export function brokenOff(
  { text, calls, stop, usage }: ResponseHeard & { kind: "heard" },
  target: ModelTarget,
  tail: string,
): Fault | null {
  const raw = stop?.raw === undefined ? "" : ` (${stop.raw})`;
  const isEmpty = text === "" && calls.length === 0;
  switch (stop?.unified) {
    case undefined:
    case "interrupted":
      // Some servers give no reason for the end, and mark the end itself.
      if (!isEmpty && /^data: ?\[DONE\]\s*$/m.test(tail)) return null;
      return modelFault("network", "the response broke off", { target });
    case "error":
      return modelFault("network", `the response ended with an error${raw}`, { target });
    case "content-filter":
      return modelFault("other", `the model refused to answer${raw}. ${text.slice(0, 300)}`, { target });
    case "length": {
      if (stop?.raw === "model_context_window_exceeded")
        return modelFault("other", "the conversation and the response fill the context window of the model", {
          target,
          hint: "Use a model with a larger one, or let the step read less.",
        });
      const tokens = usage?.outputTokens.total;
      const length = tokens === undefined ? "its limit" : `${tokens} tokens`;
      return modelFault("other", `the response was cut off at ${length}`, {
        target,
        hint: 'Raise "maxOutputTokens" of this model in your config.json, or ask for less at once.',
      });
    }
    case "other":
      return isEmpty ? modelFault("network", `the response is empty${raw}`, { target }) : null;
    default:
      return null;
  }
}

export type ReadCall = Call & { readonly unreadable?: string };

/** Ids are made unique; an input that cannot be read is given on as such, so that the tool can refuse it. */
export function readCalls(
  calls: readonly LanguageModelV4ToolCall[],
  key: string,
  ours: ReadonlyMap<string, string>,
): readonly ReadCall[] {
  const idOf = createCallIds(key);
  return calls.map(({ toolCallId, toolName: wireName, input }, place) => {
    const toolName = ours.get(wireName) ?? wireName;
    const id = idOf(toolCallId, place);
    const read = readInput(input);
    if (read !== null) return { id, name: toolName, input: read };
    const unreadable = input.slice(0, 2000);
    return { id, name: toolName, input: { unreadable }, unreadable };
  });
}

function readInput(text: string): JsonObject | null {
  return text.trim() === "" ? {} : parseJsonObject(text);
}
