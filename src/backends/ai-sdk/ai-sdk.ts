/**
 * Models of many providers, asked through the interface that the AI SDK's provider packages share.
 *
 * One request is one model response: tools are described and never run here, nothing is tried again here, and whatever
 * goes wrong comes back as a fault. Responses are streamed, so that silence can be distinguished from work.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Backend, TurnRequest, TurnResult } from "../../engine/ports.ts";
import type { Answerer, Call, Fault, Usage } from "../../flow/event.ts";
import { figure } from "../../flow/figure.ts";
import { isObject, own, parseJson, type Json } from "../../flow/json.ts";
import type { Proxy } from "./connection.ts";
import { errorEvent, modelFault, notInFormat, toFault } from "./faults.ts";
import { brokenOff, hearResponse, heardWhole, readCalls, type ResponseHeard } from "./response.ts";
import { loadProvider } from "./packages.ts";
import { toolNames, toPrompt, toTools, type Keepsake } from "./prompt.ts";
import { readBody, reportsError } from "./error-text.ts";
import { createModelWire, type Exchange } from "./wire.ts";
import { createPatience } from "./patience.ts";
import { costOf, isFree, priceOf } from "./prices.ts";
import { nameForTraces, PROVIDERS, refOf, type ModelTarget, type ProviderId } from "./providers.ts";
import { strictSchema } from "./wire-schema.ts";

/** By the names that steps use; `*` is for every other name. */
export type Models = { readonly [name: string]: ModelTarget };

export type AiSdkOptions = {
  /** What an earlier stretch of the run kept. */
  readonly marks?: readonly Json[];
  readonly fetch?: typeof globalThis.fetch;
  /** Added to messages about servers that cannot be reached, such as a proxy that is not used. */
  readonly connectionHint?: string;
  /** The proxies that `fetch` uses. */
  readonly proxies?: readonly Proxy[];
};

/**
 * NO_BACKEND when the package of a provider is missing.
 *
 * @example
 * const backend = await createAiSdk({ "*": { provider: "anthropic", model: "claude-sonnet-5-5", apiKey } });
 */
export async function createAiSdk(targets: Models, options: AiSdkOptions = {}): Promise<Backend> {
  const wire = createModelWire(options.fetch ?? fetch);
  const models = new Map<string, LanguageModelV4>();
  for (const [name, target] of Object.entries(targets)) {
    const { provider, model, apiKey, authToken, headers, baseUrl, extraBody = {} } = target;
    const make = await loadProvider(provider);
    const baseURL = baseUrl ?? PROVIDERS[provider].baseUrl ?? "";
    const key = authToken !== undefined ? { authToken } : apiKey === undefined ? {} : { apiKey };
    const more = headers === undefined ? {} : { headers };
    models.set(name, make({ model, baseURL, fetch: wire.fetch(extraBody), ...key, ...more }));
  }
  const kept = new Map((options.marks ?? []).flatMap(readMark));

  async function turn(request: TurnRequest): Promise<TurnResult> {
    const name = Object.hasOwn(targets, request.model) ? request.model : "*";
    const target = own(targets, name);
    if (target === undefined) return refused("bad-request", `No model is configured for "${request.model}".`);
    const asked = target.toolCalling === false ? { ...request, tools: [] } : request;
    const many = tooManyTools(asked, target);
    if (many !== null) return { kind: "fault", fault: many };
    const silenceMs = target.timeoutMs ?? SILENCE_MS;
    const patience = createPatience(request.signal, silenceMs);
    const exchange = wire.open(patience, target.stream !== false);
    const listening = listen(asked, target, models.get(name)!, exchange);
    // A package that ignores the signal is left behind: nothing of it is waited for or used.
    listening.catch(() => undefined);
    try {
      const heard = await Promise.race([listening, patience.over]);
      if (heard.kind === "trouble") return troubled(heard.error, target, exchange);
      const by = { ...answererOf(target), ...(heard.model !== undefined && { answered: heard.model }) };
      return { ...toResult(heard, asked, target, exchange), by };
    } catch (error) {
      if (request.signal.aborted) return refused("other", `${whoIs(target)}: the request was stopped.`);
      if (!patience.isOver()) return troubled(error, target, exchange);
      const hint = 'A model that needs longer gets a larger "timeoutMs" in your config.json.';
      const words = `nothing was received for ${silenceMs / 1000} s`;
      return { kind: "fault", fault: modelFault("network", words, { target, hint }) };
    } finally {
      patience.end();
    }
  }

  async function listen(
    request: TurnRequest,
    target: ModelTarget,
    model: LanguageModelV4,
    exchange: Exchange,
  ): Promise<ResponseHeard> {
    const call = toCall(request, target, exchange.signal);
    if (target.stream === false) return heardWhole(await model.doGenerate(call), request.onText);
    try {
      const { stream } = await model.doStream(call);
      return await hearResponse(stream, request.onText);
    } catch (error) {
      const document = exchange.document();
      if (document === null) throw error;
      return await readDocument(document, request, model, call, exchange);
    }
  }

  function toCall(
    request: TurnRequest,
    target: ModelTarget,
    abortSignal: AbortSignal,
  ): LanguageModelV4CallOptions {
    const { provider, temperature, reasoningEffort } = target;
    const tools = toTools(request);
    const schema = wantsFormat(request, provider) ? strictSchema(request.output?.schema ?? null) : null;
    const maxOutputTokens =
      target.maxOutputTokens ?? (provider === "anthropic" ? priceFor(target)?.maxOutput : undefined);
    return {
      prompt: toPrompt(request, { by: whoIs(target), kept, ...CACHE_MARKS[provider] }),
      ...(tools.length === 0 ? {} : { tools }),
      ...(schema === null ? {} : { responseFormat: { type: "json", schema, name: "answer" } }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(reasoningEffort === undefined ? {} : { reasoning: reasoningEffort }),
      // What a run says is recorded here, and need not be kept there.
      ...(provider === "openai" ? { providerOptions: { openai: { store: false } } } : {}),
      abortSignal,
    };
  }

  /** A server that does not stream sends its whole answer at once, or an error, or something else altogether. */
  async function readDocument(
    document: string,
    request: TurnRequest,
    model: LanguageModelV4,
    call: LanguageModelV4CallOptions,
    exchange: Exchange,
  ): Promise<ResponseHeard> {
    const value = parseJson(document.trim());
    if (readBody(document).isPage || (value !== undefined && reportsError(value)))
      return { kind: "trouble", error: { responseBody: document } };
    if (value === undefined) return { kind: "trouble", error: { message: notInFormat(document) } };
    exchange.readAgain();
    return heardWhole(await model.doGenerate(call), request.onText);
  }

  function toResult(
    heard: ResponseHeard & { kind: "heard" },
    request: TurnRequest,
    target: ModelTarget,
    exchange: Exchange,
  ): TurnResult {
    const tail = exchange.tail();
    const wrong = brokenOff(heard, target, tail);
    if (wrong !== null && wrong.kind === "network" && errorEvent(tail) !== null)
      return troubled(new Error(wrong.message), target, exchange);
    if (wrong !== null) return { kind: "fault", fault: wrong };
    const calls = readCalls(heard.calls, request.asker.key, toolNames(request).ours);
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
    const keepsake = keepsakeOf(heard, plain, target);
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

  function troubled(error: unknown, target: ModelTarget, exchange: Exchange): TurnResult {
    const { connectionHint, proxies = [] } = options;
    const about = { target, now: Date.now(), tail: exchange.tail(), proxies };
    return {
      kind: "fault",
      fault: toFault(error, connectionHint === undefined ? about : { ...about, connectionHint }),
    };
  }

  const refs = Object.fromEntries(Object.entries(targets).map(([name, target]) => [name, refOf(target)]));
  const targetOf = (model: string) => own(targets, model) ?? own(targets, "*");
  return {
    spec: {
      id: "ai-sdk",
      options: { models: refs },
      models: [...new Set(Object.values(targets).map(whoIs))],
    },
    turn: async (request) => {
      const [target, result] = [targetOf(request.model), await turn(request)];
      return target === undefined ? result : { by: answererOf(target), ...result };
    },
    unpriced: (model) => {
      const target = targetOf(model);
      return target === undefined || priceFor(target) !== null ? null : whoIs(target);
    },
    toolCalling: (model) => targetOf(model)?.toolCalling !== false,
  };
}

function whoIs({ provider, model }: ModelTarget): string {
  return `${provider}/${model}`;
}

function answererOf(target: ModelTarget): Answerer {
  return { provider: nameForTraces(target), model: target.model };
}

/** Silence after which a request is given up, unless the model says otherwise. */
const SILENCE_MS = 120_000;

/** Anthropic caches only what is marked: everything up to the system prompt, and everything said so far. */
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

/** OpenAI refuses a request with more of them, after the conversation was sent. */
function tooManyTools(request: TurnRequest, target: ModelTarget): Fault | null {
  const { mostTools } = PROVIDERS[target.provider];
  const count = toTools(request).length;
  if (mostTools === undefined || count <= mostTools) return null;
  const hint = "Allow fewer of them in the step's allowedTools.";
  return modelFault(
    "bad-request",
    `the step offers ${count} tools, and this provider takes at most ${mostTools}`,
    {
      target,
      hint,
    },
  );
}

function refused(kind: Fault["kind"], message: string): TurnResult {
  return { kind: "fault", fault: { kind, message } };
}

/** `inputTokens` counts everything that was sent, cached or not; the cost knows the difference. */
function toUsage(usage: LanguageModelV4Usage | null, target: ModelTarget): Usage {
  const { total, cacheRead: read = 0, cacheWrite: written = 0 } = usage?.inputTokens ?? {};
  const [input, output] = [figure(total), figure(usage?.outputTokens.total)];
  const [cacheRead, cacheWrite] = [figure(read), figure(written)];
  const price = priceFor(target);
  const figures = { turns: 1, inputTokens: input ?? 0, outputTokens: output ?? 0 };
  const isCounted = input !== null && output !== null && cacheRead !== null && cacheWrite !== null;
  // Some servers leave the usage out, and some send zeros in its place.
  if (!isCounted || input + output === 0)
    return { ...figures, costUsd: price !== null && isFree(price) ? 0 : null, unknown: ["tokens"] };
  return { ...figures, costUsd: costOf(price, { input, output, cacheRead, cacheWrite }) };
}

function priceFor({ price, provider, model }: ModelTarget) {
  return price ?? priceOf(provider, model);
}

/**
 * Only responses with calls are followed by a request that has to hold their thoughts. The chat protocol has no
 * signatures: models that think before they call a tool refuse a conversation without their own thoughts.
 */
function keepsakeOf(
  { thoughts, calls }: ResponseHeard & { kind: "heard" },
  plain: readonly Call[],
  target: ModelTarget,
): Keepsake | null {
  const { provider } = target;
  const marks = calls.flatMap(({ providerMetadata }, at) =>
    providerMetadata === undefined ? [] : [[plain[at]!.id, providerMetadata] as const],
  );
  const isChat = provider === "openai-compatible" || provider === "ollama";
  const wanted = thoughts.filter(({ text, marks: about }) =>
    isChat ? text !== "" : Object.keys(about).length > 0,
  );
  const isWanted = wanted.length > 0 || (provider === "google" && marks.length > 0);
  if (calls.length === 0 || !isWanted) return null;
  return { by: whoIs(target), thoughts: wanted, calls: Object.fromEntries(marks) };
}

function readMark(mark: Json): (readonly [string, Keepsake])[] {
  if (!isObject(mark)) return [];
  return Object.entries(mark).flatMap(([id, value]) =>
    isObject(value) && Array.isArray(value.thoughts) && isObject(value.calls) && typeof value.by === "string"
      ? [[id, value as unknown as Keepsake] as const]
      : [],
  );
}
