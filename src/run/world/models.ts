/** From the names that steps use to models that can be asked: the user's configuration, the environment, a few words. */
import { manual } from "../../flow/manual.ts";
import type { Backend } from "../../engine/ports.ts";
import { RunnerError } from "../../engine/ports.ts";
import { sdkInstallCommand, isInstalled } from "../../backends/ai-sdk/packages.ts";
import { priceOf, type Price } from "../../backends/ai-sdk/prices.ts";
import {
  isProvider,
  PROVIDERS,
  TOKENS,
  type ModelTarget,
  type ProviderId,
} from "../../backends/ai-sdk/providers.ts";
import type { Flow } from "../../flow/flow.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { ENV_REFERENCE, variablesIn } from "../../flow/mcp.ts";
import { didYouMean, onlyNear } from "../../flow/text/suggest.ts";
import { addressFault, addressShown, readConfig, type UserConfig, type WireSettings } from "./config.ts";
import { proxiesOf, proxyFault, proxyHint } from "./proxy.ts";

export type ModelSurroundings = { readonly config: UserConfig; readonly env: NodeJS.ProcessEnv };

/** A model that a name means, whether or not it can be asked here. */
export type NamedModel = {
  /** What finds it again: never an address, so that a journal can be given away, and cannot lead a key astray. */
  readonly ref: string;
  readonly provider: ProviderId;
  readonly model: string;
  readonly baseUrl: string | null;
  /** The variable that the address comes from; null: a file says it, or nothing does. */
  readonly baseUrlEnv: string | null;
  /** Variables of which one has to hold the key; empty: it needs none. */
  readonly keyEnv: readonly string[];
  /** Variables with keys of other providers, which would give the name another meaning. */
  readonly otherKeyEnv: readonly string[];
  readonly maxOutputTokens: number | null;
  readonly settings: WireSettings;
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
  around: ModelSurroundings,
  how: { readonly model?: string; readonly recorded?: Json; readonly marks: readonly Json[] },
): Promise<Backend> {
  const refs = isObject(how.recorded) && isObject(how.recorded.models) ? how.recorded.models : {};
  const targets = modelNames(flow).map((name) => {
    const ref = own(refs, name) ?? own(refs, "*");
    const meant = how.model ?? (typeof ref === "string" ? ref : name);
    return [name, toTarget(findModel(meant, around), around.env)] as const;
  });
  const { createAiSdk } = await import("../../backends/ai-sdk/ai-sdk.ts");
  const hint = proxyHint(around.env);
  const known = { marks: how.marks, proxies: proxiesOf(around.env) };
  return await createAiSdk(
    Object.fromEntries(targets),
    hint === null ? known : { ...known, connectionHint: hint },
  );
}

/** The names that the steps of a flow ask for. */
export function modelNames(flow: Flow): readonly string[] {
  return [
    ...new Set(Object.values(flow.steps).flatMap(({ by, model }) => (by.kind === "model" ? [model] : []))),
  ];
}

/** NO_BACKEND when nothing has that name. */
export function findModel(name: string, { config, env }: ModelSurroundings): NamedModel {
  const meant = followNames(name, config);
  const entry = own(config.models, meant);
  if (entry !== undefined && typeof entry !== "string") {
    const { provider, model, ...settings } = entry;
    return { ...plainModel(provider, model, { config, env }, settings), ref: meant };
  }
  const word = own(WORDS, meant);
  if (word !== undefined) {
    const ids = ["anthropic", "openai", "google"] as const;
    const provider = ids.find((id) => keyIn(PROVIDERS[id].keys, env) !== undefined);
    const named = plainModel(provider ?? "anthropic", word[provider ?? "anthropic"]!, { config, env });
    const others = ids.slice(1).flatMap((id) => PROVIDERS[id].keys.slice(0, 1));
    return provider === undefined ? { ...named, otherKeyEnv: others } : named;
  }
  const [provider = "", ...rest] = meant.split("/");
  if (isProvider(provider) && rest.length > 0) return plainModel(provider, rest.join("/"), { config, env });
  const family = FAMILIES.find(([begins]) => begins.test(meant));
  if (family !== undefined) return plainModel(family[1], meant, { config, env });
  throw unknown(name, meant, config);
}

/** A name may stand for another name, and the last one of them for a model. */
function followNames(name: string, { models }: UserConfig): string {
  const seen = [name];
  let meant = name;
  for (let next = own(models, meant); typeof next === "string"; next = own(models, meant)) {
    // A built-in name, or one of a provider, may be written as itself.
    if (next === meant && (Object.hasOwn(WORDS, next) || next.includes("/"))) break;
    if (seen.includes(next))
      throw new RunnerError(
        "NO_BACKEND",
        `"${name}" refers to itself under "models" in your config.json (${[...seen, next].join(" → ")}). ` +
          `Write the model that it stands for, such as "${next}": "ollama/qwen3" (${manual("models")}).`,
      );
    meant = next;
    seen.push(next);
  }
  return meant;
}

function plainModel(
  provider: ProviderId,
  model: string,
  { config, env }: ModelSurroundings,
  written: WireSettings = {},
): NamedModel {
  const { baseUrl, baseUrlEnv, keys } = PROVIDERS[provider];
  const ref = `${provider}/${model}`;
  const shared = config.providers[provider] ?? {};
  const settings = { ...shared, ...written, headers: { ...shared.headers, ...written.headers } };
  const given = baseUrlEnv === undefined ? undefined : filled(env[baseUrlEnv]);
  const isFromEnv = settings.baseUrl === undefined && given !== undefined;
  return {
    ref,
    provider,
    model,
    baseUrl: settings.baseUrl ?? given ?? baseUrl,
    baseUrlEnv: isFromEnv ? baseUrlEnv! : null,
    keyEnv: settings.apiKeyEnv === undefined ? keys : [settings.apiKeyEnv],
    otherKeyEnv: [],
    maxOutputTokens: settings.maxOutputTokens ?? null,
    settings,
    price: own(config.prices, ref) ?? priceOf(provider, model),
  };
}

function toTarget(named: NamedModel, env: NodeJS.ProcessEnv): ModelTarget {
  const why = whyNot(named, env);
  if (why !== null) throw new RunnerError("NO_BACKEND", why);
  const { ref, provider, model, baseUrl, keyEnv, settings, price } = named;
  const { apiKeyEnv: _, headers = {}, ...sent } = settings;
  const from = keyEnv.find((name) => filled(env[name]) !== undefined);
  const headerPairs = Object.entries(filledHeaders(headers, env));
  return {
    ref,
    provider,
    model,
    ...sent,
    ...(baseUrl === null ? {} : { baseUrl: withVersion(provider, baseUrl) }),
    ...(from === undefined
      ? {}
      : { keyEnv: from, [TOKENS.includes(from) ? "authToken" : "apiKey"]: filled(env[from])! }),
    ...(headerPairs.length === 0 ? {} : { headers: Object.fromEntries(headerPairs) }),
    ...(price === null ? {} : { price }),
  };
}

/** Everything that keeps the model from being asked here, with what to do about it; null: it can be asked. */
export function whyNot(named: NamedModel, env: NodeJS.ProcessEnv): string | null {
  const faults = modelFaults(named, env);
  return faults === null ? null : `The model ${named.ref} ${faults}`;
}

/** The same, without the name of the model: equal for models that have the same faults. */
export function modelFaults(named: NamedModel, env: NodeJS.ProcessEnv): string | null {
  const { provider, baseUrl, baseUrlEnv, keyEnv, otherKeyEnv, settings } = named;
  const faults: string[] = [];
  if (baseUrl === null)
    faults.push(`has no URL: set its baseUrl under models in your config.json (${manual("models")}).`);
  const wrong = baseUrlEnv === null ? null : addressFault(baseUrl);
  if (wrong !== null) {
    const shown =
      baseUrl !== null && addressShown(baseUrl) === baseUrl ? ` is ${JSON.stringify(baseUrl)}, and` : "";
    faults.push(`cannot be asked: ${baseUrlEnv}${shown} ${wrong}.`);
  }
  if (keyEnv.length > 0 && keyIn(keyEnv, env) === undefined) {
    const others =
      otherKeyEnv.length === 0 ? "" : ` (${otherKeyEnv.join(" or ")} will do as well, for a model of theirs)`;
    faults.push(
      `needs a key: set ${keyEnv.join(" or ")} in your environment${others}, or map its name to another model (${manual("models")}).`,
    );
  }
  const unset = variablesIn(settings.headers ?? {}).find((name) => filled(env[name]) === undefined);
  if (unset !== undefined)
    faults.push(`needs ${unset} for its headers in your config.json: set it in your environment.`);
  const proxy = baseUrl === null ? null : proxyFault(baseUrl, env);
  if (proxy !== null) faults.push(`cannot be asked through the proxy of your environment: ${proxy}.`);
  if (!isInstalled(provider))
    faults.push(`needs a package that is not installed: ${sdkInstallCommand(provider)}`);
  return faults.length === 0 ? null : faults.join(" It also ");
}

export function keyIn(names: readonly string[], env: NodeJS.ProcessEnv): string | undefined {
  return names.map((name) => filled(env[name])).find((value) => value !== undefined);
}

/** A variable that is set to nothing is not set: CI systems give that for what is not defined. */
function filled(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value.trim();
}

export function filledHeaders(
  headers: { readonly [name: string]: string },
  env: NodeJS.ProcessEnv,
): { readonly [name: string]: string } {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, fillIn(value, env)]));
}

function fillIn(value: string, env: NodeJS.ProcessEnv): string {
  return value.replaceAll(ENV_REFERENCE, (_, name: string) => filled(env[name]) ?? "");
}

/** The same address serves Claude Code and others, which add the version of the protocol themselves. */
export function withVersion(provider: ProviderId, url: string): string {
  const trimmed = url.trim().replace(/\/+$/, "");
  const { addressVersion } = PROVIDERS[provider];
  return addressVersion === undefined || /\/v\d[\w.-]*$/.test(trimmed)
    ? trimmed
    : `${trimmed}/${addressVersion}`;
}

/** Every name that means something here. */
export function knownNames(config: Pick<UserConfig, "models">): readonly string[] {
  return [...new Set([...Object.keys(config.models), ...Object.keys(WORDS)])];
}

/** The name that a name is most likely a misspelling of; null: it is known, or there is no single near name. */
export function misspelledModel(name: string, env: NodeJS.ProcessEnv): string | null {
  const names = knownNames(configOr(env));
  if (names.includes(name)) return null;
  const [provider = "", ...rest] = name.split("/");
  if (rest.length === 0) return onlyNear(name, names);
  const near = isProvider(provider) ? null : onlyNear(provider, Object.keys(PROVIDERS));
  return near === null ? null : [near, ...rest].join("/");
}

/** What is wrong with the user's settings is reported when they are used. */
function configOr(env: NodeJS.ProcessEnv): Pick<UserConfig, "models"> {
  try {
    return readConfig(env);
  } catch {
    return { models: {} };
  }
}

function unknown(name: string, meant: string, config: UserConfig): RunnerError {
  const rest = meant.includes("/") ? meant.slice(meant.indexOf("/")) : "";
  const names = knownNames(config).filter((other) => other !== name && other !== meant);
  const hint = didYouMean(meant, [...names, ...Object.keys(PROVIDERS).map((id) => `${id}${rest}`)]);
  const what =
    meant === name
      ? `Unknown model "${name}".`
      : `"${name}" means "${meant}" in your config.json, which is not the name of a model.`;
  return new RunnerError(
    "NO_BACKEND",
    `${what}${hint} Known names: ${knownNames(config).join(", ")} and any provider/model, with one of ` +
      `${Object.keys(PROVIDERS).join(", ")}; define it under models in your config.json (${manual("models")}).`,
  );
}

/** What one step may cost in output at the most: known only where the price and the length of a response are. */
export function outputOf(
  name: string,
  around: ModelSurroundings,
): { readonly tokens: number; readonly usd: number } | null {
  const { maxOutputTokens, price } = findModel(name, around);
  const tokens = maxOutputTokens ?? price?.maxOutput;
  if (price === null || tokens === undefined) return null;
  const highest = Math.max(price.output, ...(price.tiers ?? []).map(({ output }) => output));
  return { tokens, usd: (tokens * highest) / 1_000_000 };
}
