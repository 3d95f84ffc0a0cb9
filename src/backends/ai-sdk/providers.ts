/** What is known of each provider of models without loading its package. */
import type { JsonObject } from "../../flow/json.ts";
import type { Price } from "./prices.ts";

export type ProviderId = "anthropic" | "openai" | "openai-chat" | "openai-compatible" | "google" | "ollama";

export type Provider = {
  /** What has to be installed, with the version this backend was written for. */
  readonly package: string;
  readonly version: string;
  /** Environment variables that may hold the key, the usual one first; empty: none is needed. */
  readonly keys: readonly string[];
  /** null: the user has to say. */
  readonly baseUrl: string | null;
  /** The environment variable that says otherwise. */
  readonly baseUrlEnv?: string;
  /** The version that its address ends with; added where it is missing, as other programs take the address without it. */
  readonly addressVersion?: string;
  /** A request with more tools is refused; absent: no such limit is known. */
  readonly mostTools?: number;
};

/** One model and where it is. Made from the user's own configuration and environment, never from a project's files. */
export type ModelTarget = RequestSettings & {
  readonly provider: ProviderId;
  readonly model: string;
  /** How the journal names it: enough to find it again, and nothing secret. `provider/model` unless said. */
  readonly ref?: string;
  readonly baseUrl?: string;
  readonly apiKey?: string;
  /** Sent as `Authorization: Bearer`, in the place of a key. Only Anthropic distinguishes the two. */
  readonly authToken?: string;
  /** The variable that the key was read from, for messages. */
  readonly keyEnv?: string;
  /** Absent: what `prices.json` says. */
  readonly price?: Price;
};

/** How requests are sent. */
export type RequestSettings = {
  readonly maxOutputTokens?: number;
  /** Silence on the connection after which a request is given up. */
  readonly timeoutMs?: number;
  /** false: it cannot call tools, and is not offered any. */
  readonly toolCalling?: boolean;
  /** false: the whole response is asked for at once. */
  readonly stream?: boolean;
  readonly temperature?: number;
  readonly reasoningEffort?: ReasoningEffort;
  /** Sent with each request, beside those of the provider. */
  readonly headers?: { readonly [name: string]: string };
  /** Merged into the body of each request. */
  readonly extraBody?: JsonObject;
};

export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type ReasoningEffort = (typeof EFFORTS)[number];

/** Variables whose value is a token that is sent as `Authorization: Bearer` where a key would be sent otherwise. */
export const TOKENS: readonly string[] = ["ANTHROPIC_AUTH_TOKEN"];

const OPENAI: Provider = {
  package: "@ai-sdk/openai",
  version: "4",
  keys: ["OPENAI_API_KEY"],
  baseUrl: "https://api.openai.com/v1",
  baseUrlEnv: "OPENAI_BASE_URL",
  mostTools: 128,
};

export const PROVIDERS: { readonly [id in ProviderId]: Provider } = {
  anthropic: {
    package: "@ai-sdk/anthropic",
    version: "4",
    keys: ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    baseUrl: "https://api.anthropic.com/v1",
    baseUrlEnv: "ANTHROPIC_BASE_URL",
    addressVersion: "v1",
  },
  openai: OPENAI,
  "openai-chat": OPENAI,
  google: {
    package: "@ai-sdk/google",
    version: "4",
    keys: ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
    addressVersion: "v1beta",
  },
  "openai-compatible": { package: "@ai-sdk/openai-compatible", version: "3", keys: [], baseUrl: null },
  // Ollama speaks the chat protocol too, so that it needs no package of its own.
  ollama: {
    package: "@ai-sdk/openai-compatible",
    version: "3",
    keys: [],
    baseUrl: "http://127.0.0.1:11434/v1",
    addressVersion: "v1",
  },
};

/** The provider as the conventions of OpenTelemetry name it, known from its address where others speak its protocol. */
export function nameForTraces({ provider, baseUrl }: Pick<ModelTarget, "provider" | "baseUrl">): string {
  const host = URL.canParse(baseUrl ?? "") ? new URL(baseUrl!).hostname : "";
  const known = HOSTS.find(([end]) => host === end || host.endsWith(`.${end}`));
  return known?.[1] ?? TRACED[provider];
}

const TRACED: { readonly [id in ProviderId]: string } = {
  anthropic: "anthropic",
  openai: "openai",
  "openai-chat": "openai",
  google: "gcp.gemini",
  "openai-compatible": "openai-compatible",
  ollama: "ollama",
};
const HOSTS: readonly (readonly [host: string, name: string])[] = [
  ["anthropic.com", "anthropic"],
  ["openai.azure.com", "azure.ai.openai"],
  ["openai.com", "openai"],
  ["aiplatform.googleapis.com", "gcp.vertex_ai"],
  ["googleapis.com", "gcp.gemini"],
  ["amazonaws.com", "aws.bedrock"],
  ["cohere.com", "cohere"],
  ["deepseek.com", "deepseek"],
  ["groq.com", "groq"],
  ["mistral.ai", "mistral_ai"],
  ["perplexity.ai", "perplexity"],
  ["x.ai", "x_ai"],
];

export function isProvider(word: string): word is ProviderId {
  return Object.hasOwn(PROVIDERS, word);
}

export function refOf({ ref, provider, model }: ModelTarget): string {
  return ref ?? `${provider}/${model}`;
}

/** Whether an address is on this machine. */
export function isLocal(url: string | undefined): boolean {
  if (url === undefined || !URL.canParse(url)) return false;
  return /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0)$/.test(new URL(url).hostname);
}
