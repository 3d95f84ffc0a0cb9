/**
 * Models of many providers, asked through the interface that the AI SDK's provider packages share.
 *
 * One request is one model response: tools are described and never run here, nothing is tried again here, and whatever
 * goes wrong comes back as a fault. Responses are streamed, so that silence can be told from work.
 */
import type {
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import type { Backend, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { Call, Fault, Usage } from "../flow/event.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { toFault } from "./ai-sdk-faults.ts";
import { loadProvider } from "./ai-sdk-load.ts";
import { toPrompt, toTools, type Keepsake } from "./ai-sdk-prompt.ts";
import { createPatience, type Patience } from "./patience.ts";
import { costOf, priceOf } from "./prices.ts";
import { PROVIDERS, refOf, type ModelTarget, type ProviderId } from "./providers.ts";
import { strictSchema } from "./wire-schema.ts";

/** By the names that steps use; `*` is for every other name. */
export type Models = { readonly [name: string]: ModelTarget };

export type AiSdkOptions = {
  /** What an earlier stretch of the run was told to keep. */
  readonly marks?: readonly Json[];
  readonly fetch?: typeof globalThis.fetch;
};

/**
 * NO_BACKEND when the package of a provider is missing.
 *
 * @example
 * const backend = await createAiSdk({ "*": { provider: "anthropic", model: "claude-sonnet-5-5", apiKey } });
 */
export async function createAiSdk(models: Models, options: AiSdkOptions = {}): Promise<Backend> {
  const makers = new Map<ProviderId, Awaited<ReturnType<typeof loadProvider>>>();
  for (const { provider } of Object.values(models)) {
    if (!makers.has(provider)) makers.set(provider, await loadProvider(provider));
  }
  const kept = new Map((options.marks ?? []).flatMap(readMark));

  async function turn(request: TurnRequest): Promise<TurnResult> {
    const target = own(models, request.model) ?? own(models, "*");
    if (target === undefined) return fault("bad-request", `No model is configured for "${request.model}".`);
    const who = `${target.provider}/${target.model}`;
    const patience = createPatience(request.signal, target.timeoutMs ?? SILENCE_MS, options.fetch ?? fetch);
    const listening = listen(request, target, who, patience);
    // Whoever ignores the signal is left behind: nothing of it is waited for, nor heard of again.
    listening.catch(() => undefined);
    try {
      const heard = await Promise.race([listening, patience.over]);
      return heard.kind === "trouble"
        ? troubled(heard.error, target, who)
        : toResult(heard, request, target, who);
    } catch (error) {
      if (request.signal.aborted) return fault("other", `${who}: the request was stopped.`);
      if (patience.isOver())
        return fault(
          "network",
          `${who}: nothing was heard for ${(target.timeoutMs ?? SILENCE_MS) / 1000} s.`,
        );
      return troubled(error, target, who);
    } finally {
      patience.end();
    }
  }

  async function listen(
    request: TurnRequest,
    target: ModelTarget,
    who: string,
    patience: Patience,
  ): Promise<Heard> {
    const { provider, model, apiKey } = target;
    const baseURL = target.baseUrl ?? PROVIDERS[provider].baseUrl ?? "";
    const asked = makers.get(provider)!({
      model,
      baseURL,
      fetch: patience.fetch,
      ...(apiKey === undefined ? {} : { apiKey }),
    });
    const tools = toTools(request);
    const schema = wantsFormat(request, provider) ? strictSchema(request.output?.schema ?? null) : null;
    const maxOutputTokens =
      target.maxOutputTokens ?? (provider === "anthropic" ? priceFor(target)?.maxOutput : undefined);
    const { stream } = await asked.doStream({
      prompt: toPrompt(request, { by: who, kept, ...CACHE_MARKS[provider] }),
      ...(tools.length === 0 ? {} : { tools }),
      ...(schema === null ? {} : { responseFormat: { type: "json", schema, name: "answer" } }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      // What a run says is recorded here, and need not be kept there.
      ...(provider === "openai" ? { providerOptions: { openai: { store: false } } } : {}),
      abortSignal: patience.signal,
    });
    return await hear(stream, request.onText);
  }

  function toResult(
    heard: Heard & { kind: "heard" },
    request: TurnRequest,
    target: ModelTarget,
    who: string,
  ): TurnResult {
    const wrong = brokenOff(heard, target, who);
    if (wrong !== null) return { kind: "fault", fault: wrong };
    const calls = readCalls(heard.calls, request.asker.key);
    const usage = toUsage(heard.usage, target);
    const [only] = calls;
    const { output } = request;
    if (
      calls.length === 1 &&
      only?.unreadable &&
      output?.channel.kind === "tool" &&
      only.name === output.channel.name
    ) {
      // Not given on as a completion: a schema that asks for nothing would take it for an empty one.
      const text = `${heard.text}\n[The input of ${only.name} was no JSON object: ${only.unreadable}]`.trim();
      return { kind: "reply", text, calls: [], usage };
    }
    const plain: readonly Call[] = calls.map(({ id, name, input }) => ({ id, name, input }));
    const keepsake = keepsakeOf(heard, plain, who);
    if (keepsake === null || only === undefined)
      return { kind: "reply", text: heard.text, calls: plain, usage };
    kept.set(only.id, keepsake);
    return {
      kind: "reply",
      text: heard.text,
      calls: plain,
      usage,
      mark: { [only.id]: keepsake as unknown as Json },
    };
  }

  const refs = Object.fromEntries(Object.entries(models).map(([name, target]) => [name, refOf(target)]));
  return { spec: { id: "ai-sdk", options: { models: refs } }, turn };
}

/** Silence after which a request is given up, unless the model says otherwise. */
const SILENCE_MS = 120_000;

/** Anthropic caches only what it is told to: everything up to the system prompt, and everything said so far. */
const CACHE_MARKS: {
  readonly [id in ProviderId]?: { readonly cacheMark: { readonly anthropic: JsonMark } };
} = {
  anthropic: { cacheMark: { anthropic: { cacheControl: { type: "ephemeral" } } } },
};
type JsonMark = { cacheControl: { type: "ephemeral" } };

/** A provider's own structured output: where there is nothing else to call, and the server is sure to know it. */
function wantsFormat({ output, tools }: TurnRequest, provider: ProviderId): boolean {
  const isSure = provider !== "openai-compatible" && provider !== "ollama";
  return isSure && output?.channel.kind === "output" && tools.length === 0;
}

// Hearing.

type Heard =
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

async function hear(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  onText: TurnRequest["onText"],
): Promise<Heard> {
  let text = "";
  const calls: LanguageModelV4ToolCall[] = [];
  const thoughts = new Map<string, { text: string; marks: Keepsake["thoughts"][number]["marks"] }>();
  let stop: (Heard & { kind: "heard" })["stop"] = null;
  let usage: LanguageModelV4Usage | null = null;
  for await (const part of stream) {
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
function brokenOff(
  { text, calls, stop, usage }: Heard & { kind: "heard" },
  target: ModelTarget,
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

function troubled(error: unknown, { apiKey }: ModelTarget, who: string): TurnResult {
  const secret = apiKey === undefined ? {} : { secret: apiKey };
  return { kind: "fault", fault: toFault(error, { who, now: Date.now(), ...secret }) };
}

function fault(kind: Fault["kind"], message: string): TurnResult {
  return { kind: "fault", fault: { kind, message } };
}

// What was heard, in our words.

type ReadCall = Call & { readonly unreadable?: string };

/** Ids are made unique; an input that cannot be read is given on as such, so that the tool can refuse it. */
function readCalls(calls: readonly LanguageModelV4ToolCall[], key: string): readonly ReadCall[] {
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

/** `inputTokens` counts everything that was sent, cached or not; the cost knows the difference. */
function toUsage(usage: LanguageModelV4Usage | null, target: ModelTarget): Usage {
  const input = usage?.inputTokens.total;
  const output = usage?.outputTokens.total;
  const { cacheRead = 0, cacheWrite = 0 } = usage?.inputTokens ?? {};
  const isTold = input !== undefined && output !== undefined;
  const costUsd = isTold ? costOf(priceFor(target), { input, output, cacheRead, cacheWrite }) : null;
  return { turns: 1, inputTokens: input ?? 0, outputTokens: output ?? 0, costUsd };
}

function priceFor({ price, provider, model }: ModelTarget) {
  return price ?? priceOf(provider, model);
}

/** Only responses with calls are followed by a request that has to hold their thoughts. */
function keepsakeOf(
  { thoughts, calls }: Heard & { kind: "heard" },
  plain: readonly Call[],
  by: string,
): Keepsake | null {
  const marks = calls.flatMap(({ providerMetadata }, at) =>
    providerMetadata === undefined ? [] : [[plain[at]!.id, providerMetadata] as const],
  );
  const signed = thoughts.filter(({ marks: about }) => Object.keys(about).length > 0);
  const isWanted = signed.length > 0 || (by.startsWith("google/") && marks.length > 0);
  if (calls.length === 0 || !isWanted) return null;
  return { by, thoughts: signed, calls: Object.fromEntries(marks) };
}

function readMark(mark: Json): (readonly [string, Keepsake])[] {
  if (!isObject(mark)) return [];
  return Object.entries(mark).flatMap(([id, value]) =>
    isObject(value) && Array.isArray(value.thoughts) && isObject(value.calls) && typeof value.by === "string"
      ? [[id, value as unknown as Keepsake] as const]
      : [],
  );
}
