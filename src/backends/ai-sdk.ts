/**
 * Models of many providers, asked through the interface that the AI SDK's provider packages share.
 *
 * One request is one model response: tools are described and never run here, nothing is tried again here, and whatever
 * goes wrong comes back as a fault. Responses are streamed, so that silence can be told from work.
 */
import type { LanguageModelV4, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Backend, TurnRequest, TurnResult } from "../engine/ports.ts";
import type { Call, Fault, Usage } from "../flow/event.ts";
import { isObject, own, type Json } from "../flow/json.ts";
import { toFault } from "./ai-sdk-faults.ts";
import { brokenOff, hear, readCalls, type Heard } from "./ai-sdk-hear.ts";
import { loadProvider } from "./ai-sdk-load.ts";
import { toPrompt, toTools, type Keepsake } from "./ai-sdk-prompt.ts";
import { createEar, type Patience } from "./patience.ts";
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
export async function createAiSdk(targets: Models, options: AiSdkOptions = {}): Promise<Backend> {
  const ear = createEar(options.fetch ?? fetch);
  const models = new Map<string, LanguageModelV4>();
  for (const [name, { provider, model, apiKey, baseUrl }] of Object.entries(targets)) {
    const make = await loadProvider(provider);
    const baseURL = baseUrl ?? PROVIDERS[provider].baseUrl ?? "";
    models.set(name, make({ model, baseURL, fetch: ear.fetch, ...(apiKey === undefined ? {} : { apiKey }) }));
  }
  const kept = new Map((options.marks ?? []).flatMap(readMark));

  async function turn(request: TurnRequest): Promise<TurnResult> {
    const name = Object.hasOwn(targets, request.model) ? request.model : "*";
    const target = own(targets, name);
    if (target === undefined) return fault("bad-request", `No model is configured for "${request.model}".`);
    const who = whoIs(target);
    const patience = ear.patience(request.signal, target.timeoutMs ?? SILENCE_MS);
    const asked = target.toolCalling === false ? { ...request, tools: [] } : request;
    const listening = listen(asked, target, models.get(name)!, patience);
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
    model: LanguageModelV4,
    patience: Patience,
  ): Promise<Heard> {
    const { provider } = target;
    const by = whoIs(target);
    const tools = toTools(request);
    const schema = wantsFormat(request, provider) ? strictSchema(request.output?.schema ?? null) : null;
    const maxOutputTokens =
      target.maxOutputTokens ?? (provider === "anthropic" ? priceFor(target)?.maxOutput : undefined);
    const { stream } = await model.doStream({
      prompt: toPrompt(request, { by, kept, ...CACHE_MARKS[provider] }),
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
    const wrong = brokenOff(heard, who);
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

  const refs = Object.fromEntries(Object.entries(targets).map(([name, target]) => [name, refOf(target)]));
  return {
    spec: { id: "ai-sdk", options: { models: refs } },
    turn,
    toolCalling: (model) => (own(targets, model) ?? own(targets, "*"))?.toolCalling !== false,
  };
}

function whoIs({ provider, model }: ModelTarget): string {
  return `${provider}/${model}`;
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

function troubled(error: unknown, { apiKey }: ModelTarget, who: string): TurnResult {
  const secret = apiKey === undefined ? {} : { secret: apiKey };
  return { kind: "fault", fault: toFault(error, { who, now: Date.now(), ...secret }) };
}

function fault(kind: Fault["kind"], message: string): TurnResult {
  return { kind: "fault", fault: { kind, message } };
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
