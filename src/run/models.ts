/** From the names that steps use to models that can be asked: the user's configuration, the environment, a few words. */
import { manual } from "../flow/manual.ts";
import type { Backend } from "../engine/ports.ts";
import { RunnerError } from "../engine/ports.ts";
import { installCommand, isInstalled } from "../backends/ai-sdk-load.ts";
import { priceOf, type Price } from "../backends/prices.ts";
import { isProvider, PROVIDERS, type ModelTarget, type ProviderId } from "../backends/providers.ts";
import type { Flow } from "../flow/flow.ts";
import { isObject, own, type Json } from "../flow/json.ts";
import { didYouMean } from "../load/suggest.ts";
import type { UserConfig } from "./config.ts";

export type Surroundings = { readonly config: UserConfig; readonly env: NodeJS.ProcessEnv };

/** A model that a name means, whether or not it can be asked here. */
export type NamedModel = {
  /** What finds it again: never an address, so that a journal can be given away, and cannot lead a key astray. */
  readonly ref: string;
  readonly provider: ProviderId;
  readonly model: string;
  readonly baseUrl: string | null;
  /** Variables of which one has to hold the key; empty: it needs none. */
  readonly keyEnv: readonly string[];
  readonly maxOutputTokens: number | null;
  readonly timeoutMs: number | null;
  readonly toolCalling: boolean;
  readonly price: Price | null;
};

/** The three words mean the large, middle and small model of the first provider whose key is there. */
const WORDS: { readonly [word: string]: { readonly [provider: string]: string } } = {
  opus: { anthropic: "claude-opus-5-5", openai: "gpt-6.1-sol", google: "gemini-pro-latest" },
  sonnet: { anthropic: "claude-sonnet-5-5", openai: "gpt-6.1-terra", google: "gemini-flash-latest" },
  haiku: { anthropic: "claude-haiku-5-5", openai: "gpt-6-luna", google: "gemini-flash-lite-latest" },
};

/** How the names of a provider's models begin. */
const FAMILIES: readonly (readonly [RegExp, ProviderId])[] = [
  [/^claude-/, "anthropic"],
  [/^(?:gpt-|chatgpt-|o\d)/, "openai"],
  [/^gemini-/, "google"],
];

/** The backend `ai-sdk` for the models of a flow. `recorded` are the options that an earlier stretch of the run left. */
export async function createModels(
  flow: Flow,
  around: Surroundings,
  how: { readonly model?: string; readonly recorded?: Json; readonly marks: readonly Json[] },
): Promise<Backend> {
  const refs = isObject(how.recorded) && isObject(how.recorded.models) ? how.recorded.models : {};
  const targets = modelNames(flow).map((name) => {
    const ref = own(refs, name) ?? own(refs, "*");
    const meant = how.model ?? (typeof ref === "string" ? ref : name);
    return [name, toTarget(findModel(meant, around), around.env)] as const;
  });
  const { createAiSdk } = await import("../backends/ai-sdk.ts");
  return await createAiSdk(Object.fromEntries(targets), { marks: how.marks });
}

/** The names that the steps of a flow ask for. */
export function modelNames(flow: Flow): readonly string[] {
  return [
    ...new Set(Object.values(flow.steps).flatMap(({ by, model }) => (by.kind === "model" ? [model] : []))),
  ];
}

/** NO_BACKEND when nothing has that name. */
export function findModel(name: string, { config, env }: Surroundings): NamedModel {
  const meant = followNames(name, config);
  const entry = own(config.models, meant);
  if (entry !== undefined && typeof entry !== "string") {
    const { provider, model, baseUrl, apiKeyEnv } = entry;
    const { maxOutputTokens = null, timeoutMs = null, toolCalling = true } = entry;
    const plain = plainModel(provider, model, { config, env });
    const keyEnv = apiKeyEnv === undefined ? plain.keyEnv : [apiKeyEnv];
    const limits = { maxOutputTokens, timeoutMs, toolCalling };
    return { ...plain, ref: meant, baseUrl: baseUrl ?? plain.baseUrl, keyEnv, ...limits };
  }
  const word = own(WORDS, meant);
  if (word !== undefined) {
    const provider = (["anthropic", "openai", "google"] as const).find(
      (id) => keyIn(PROVIDERS[id].keys, env) !== undefined,
    );
    return plainModel(provider ?? "anthropic", word[provider ?? "anthropic"]!, { config, env });
  }
  const [provider = "", ...rest] = meant.split("/");
  if (isProvider(provider) && rest.length > 0) return plainModel(provider, rest.join("/"), { config, env });
  const family = FAMILIES.find(([begins]) => begins.test(meant));
  if (family !== undefined) return plainModel(family[1], meant, { config, env });
  throw unknown(name, meant, config);
}

/** A name may stand for another name; one that leads back to itself stands for itself. */
function followNames(name: string, { models }: UserConfig): string {
  const seen = new Set<string>();
  let meant = name;
  for (
    let next = own(models, meant);
    typeof next === "string" && !seen.has(next);
    next = own(models, meant)
  ) {
    meant = next;
    seen.add(next);
  }
  return meant;
}

function plainModel(provider: ProviderId, model: string, { config, env }: Surroundings): NamedModel {
  const { baseUrl, baseUrlEnv, keys } = PROVIDERS[provider];
  const ref = `${provider}/${model}`;
  const price = own(config.prices, ref) ?? priceOf(provider, model);
  const elsewhere = baseUrlEnv === undefined ? undefined : env[baseUrlEnv];
  const address = elsewhere === undefined || elsewhere === "" ? baseUrl : elsewhere;
  return {
    ref,
    provider,
    model,
    baseUrl: address,
    keyEnv: keys,
    maxOutputTokens: null,
    timeoutMs: null,
    toolCalling: true,
    price,
  };
}

function toTarget(named: NamedModel, env: NodeJS.ProcessEnv): ModelTarget {
  const why = whyNot(named, env);
  if (why !== null) throw new RunnerError("NO_BACKEND", why);
  const { ref, provider, model, baseUrl, keyEnv, maxOutputTokens, timeoutMs, toolCalling, price } = named;
  const apiKey = keyIn(keyEnv, env);
  return {
    ref,
    provider,
    model,
    ...(baseUrl === null ? {} : { baseUrl: withVersion(provider, baseUrl) }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
    ...(timeoutMs === null ? {} : { timeoutMs }),
    ...(toolCalling ? {} : { toolCalling }),
    ...(price === null ? {} : { price }),
  };
}

/** Why the model cannot be asked here, with what to do about it; null: it can. */
export function whyNot(named: NamedModel, env: NodeJS.ProcessEnv): string | null {
  const { ref, provider, baseUrl, keyEnv } = named;
  if (baseUrl === null) {
    return `The model ${ref} has no address: say where it is as baseUrl in the models of your config.json (${manual("models")}).`;
  }
  if (keyEnv.length > 0 && keyIn(keyEnv, env) === undefined) {
    return `The model ${ref} needs a key: set ${keyEnv.join(" or ")} in your environment, or map its name to another model (${manual("models")}).`;
  }
  if (!isInstalled(provider))
    return `The model ${ref} needs a package that is not installed: ${installCommand(provider)}`;
  return null;
}

export function keyIn(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  return names.map((name) => env[name]).find((value) => value !== undefined && value !== "");
}

/** Other tools take this address without its version. */
export function withVersion(provider: ProviderId, url: string): string {
  const trimmed = url.replace(/\/+$/, "");
  return provider === "anthropic" && new URL(trimmed).pathname === "/" ? `${trimmed}/v1` : trimmed;
}

/** Every name that means something here. */
export function knownNames(config: UserConfig): readonly string[] {
  return [...new Set([...Object.keys(config.models), ...Object.keys(WORDS)])];
}

function unknown(name: string, meant: string, config: UserConfig): RunnerError {
  if (meant !== name) {
    const what = `"${name}" means "${meant}" in your config.json, which names no provider and model.`;
    return new RunnerError(
      "NO_BACKEND",
      `${what} Write it as provider/model, with one of ${Object.keys(PROVIDERS).join(", ")}.`,
    );
  }
  const hint = didYouMean(name, [...knownNames(config), ...Object.keys(PROVIDERS)]);
  return new RunnerError(
    "NO_BACKEND",
    `There is no model "${name}".${hint} Known are ${knownNames(config).join(", ")} and any provider/model; ` +
      `give it a meaning in the models of your config.json (${manual("models")}).`,
  );
}

/** What one step may cost in output at the most: known only where the price and the length of a response are. */
export function outputOf(
  name: string,
  around: Surroundings,
): { readonly tokens: number; readonly usd: number } | null {
  const { maxOutputTokens, price } = findModel(name, around);
  const tokens = maxOutputTokens ?? price?.maxOutput;
  if (price === null || tokens === undefined) return null;
  return { tokens, usd: (tokens * price.output) / 1_000_000 };
}
