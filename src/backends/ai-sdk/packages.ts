/** The providers' packages, each loaded when a model of it is asked for the first time. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { RunnerError } from "../../engine/ports.ts";
import { installCommand as commandFor } from "../../flow/machine/install.ts";
import { PROVIDERS, type ProviderId } from "./providers.ts";

export type Connection = {
  readonly model: string;
  readonly baseURL: string;
  readonly apiKey?: string;
  /** Only Anthropic distinguishes a token from a key. */
  readonly authToken?: string;
  readonly headers?: { readonly [name: string]: string };
  readonly fetch: typeof globalThis.fetch;
};

type Make = (connection: Connection) => LanguageModelV4;

/** NO_BACKEND with the command that installs it when the package is missing. */
export async function loadProvider(id: ProviderId): Promise<Make> {
  try {
    return await withoutEmpty(LOADERS[id]);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
    throw new RunnerError(
      "NO_BACKEND",
      `Models of ${id} need a package that is not installed: ${sdkInstallCommand(id)}`,
      {
        cause,
      },
    );
  }
}

/** The packages read these while they are loaded, and fail at one that is set to nothing. */
const READ_AT_LOAD = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"];

async function withoutEmpty<T>(load: () => Promise<T>): Promise<T> {
  const empty = READ_AT_LOAD.filter((name) => process.env[name]?.trim() === "");
  const values = empty.map((name) => [name, process.env[name]] as const);
  for (const name of empty) delete process.env[name];
  try {
    return await load();
  } finally {
    Object.assign(process.env, Object.fromEntries(values));
  }
}

export function isInstalled(id: ProviderId): boolean {
  try {
    import.meta.resolve(PROVIDERS[id].package);
    return true;
  } catch {
    return false;
  }
}

/** Its optional parts have to be where this program is installed. */
export function sdkInstallCommand(id: ProviderId): string {
  const { package: name, version } = PROVIDERS[id];
  return commandFor(`${name}@${version}`, import.meta.url);
}

const LOADERS: { readonly [id in ProviderId]: () => Promise<Make> } = {
  anthropic: async () => {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    return ({ model, ...connection }) => createAnthropic(connection)(model);
  },
  openai: async () => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return ({ model, ...connection }) => createOpenAI(connection).responses(model);
  },
  "openai-chat": async () => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return ({ model, ...connection }) => createOpenAI(connection).chat(model);
  },
  google: async () => {
    const { createGoogle } = await import("@ai-sdk/google");
    return ({ model, ...connection }) => createGoogle(connection)(model);
  },
  "openai-compatible": loadCompatible,
  ollama: loadCompatible,
};

async function loadCompatible(): Promise<Make> {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  return ({ model, ...connection }) =>
    createOpenAICompatible({ name: "compatible", includeUsage: true, ...connection })(model);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
}
