/** What is known of each provider of models without loading its package. */
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
};

/** One model and where it is. Made from the user's own configuration and environment, never from a project's files. */
export type ModelTarget = {
  readonly provider: ProviderId;
  readonly model: string;
  /** How the journal names it: enough to find it again, and nothing secret. `provider/model` unless said. */
  readonly ref?: string;
  readonly baseUrl?: string;
  readonly apiKey?: string;
  readonly maxOutputTokens?: number;
  /** Silence on the connection after which a request is given up. */
  readonly timeoutMs?: number;
  /** false: it cannot call tools, and is not offered any. */
  readonly toolCalling?: boolean;
  /** Absent: what `prices.json` says. */
  readonly price?: Price;
};

export const PROVIDERS: { readonly [id in ProviderId]: Provider } = {
  anthropic: {
    package: "@ai-sdk/anthropic",
    version: "4",
    keys: ["ANTHROPIC_API_KEY"],
    baseUrl: "https://api.anthropic.com/v1",
    baseUrlEnv: "ANTHROPIC_BASE_URL",
  },
  openai: {
    package: "@ai-sdk/openai",
    version: "4",
    keys: ["OPENAI_API_KEY"],
    baseUrl: "https://api.openai.com/v1",
    baseUrlEnv: "OPENAI_BASE_URL",
  },
  "openai-chat": {
    package: "@ai-sdk/openai",
    version: "4",
    keys: ["OPENAI_API_KEY"],
    baseUrl: "https://api.openai.com/v1",
    baseUrlEnv: "OPENAI_BASE_URL",
  },
  google: {
    package: "@ai-sdk/google",
    version: "4",
    keys: ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    baseUrl: "https://generativelanguage.googleapis.com/v1beta",
  },
  "openai-compatible": { package: "@ai-sdk/openai-compatible", version: "3", keys: [], baseUrl: null },
  // Ollama speaks the chat protocol too, so that it needs no package of its own.
  ollama: {
    package: "@ai-sdk/openai-compatible",
    version: "3",
    keys: [],
    baseUrl: "http://127.0.0.1:11434/v1",
  },
};

export function isProvider(word: string): word is ProviderId {
  return Object.hasOwn(PROVIDERS, word);
}

export function refOf({ ref, provider, model }: ModelTarget): string {
  return ref ?? `${provider}/${model}`;
}
