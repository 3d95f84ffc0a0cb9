/** The user's own settings: a file in their configuration folder, which no project can write. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import { isObject, type Json } from "../flow/json.ts";

export type SandboxWish = "on" | "off" | "auto";

export type Config = {
  /** auto: commands are confined when the agent file asks for it. */
  readonly sandbox: SandboxWish;
  /** Names of environment variables that commands may see, besides the usual ones. */
  readonly env: readonly string[];
};

export function configDir(env: NodeJS.ProcessEnv): string {
  const config = env.XDG_CONFIG_HOME || join(env.HOME ?? env.USERPROFILE ?? ".", ".config");
  return join(config, "lockstep");
}

export function readConfig(env: NodeJS.ProcessEnv): Config {
  const file = join(configDir(env), "config.json");
  if (!existsSync(file)) return DEFAULT;
  try {
    return parse(JSON.parse(readFileSync(file, "utf8")) as Json);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError("CONFIG_INVALID", `Your settings in ${file} cannot be used: ${why}.`, { cause });
  }
}

export function isWish(value: unknown): value is SandboxWish {
  return value === "on" || value === "off" || value === "auto";
}

const DEFAULT: Config = { sandbox: "auto", env: [] };

function parse(value: Json): Config {
  if (!isObject(value)) throw new Error("it must hold a JSON object");
  const { sandbox = DEFAULT.sandbox, env = [], ...rest } = value;
  const [stranger] = Object.keys(rest);
  if (stranger !== undefined) throw new Error(`there is no setting "${stranger}"; known are sandbox and env`);
  if (!isWish(sandbox)) throw new Error('"sandbox" is "on", "off" or "auto"');
  if (!Array.isArray(env) || !env.every((name) => typeof name === "string"))
    throw new Error('"env" is a list of names of environment variables');
  const never = env.find((name) => NEVER.test(name));
  if (never !== undefined)
    throw new Error(`"env" must not hold ${never}: keys of models and of GitHub are never given to commands`);
  return { sandbox, env };
}

/** What only the runner itself uses. A command that had it could act as the run, or spend in its name. */
const NEVER =
  /^(?:GH|GITHUB)(?:_ENTERPRISE)?_(?:TOKEN|PAT)$|^(?:ANTHROPIC|CLAUDE_CODE|OPENAI|AZURE_OPENAI|GOOGLE_GENERATIVE_AI|GOOGLE|GEMINI|MISTRAL|COHERE|GROQ|XAI|DEEPSEEK|OPENROUTER|TOGETHER(?:_AI)?|FIREWORKS|PERPLEXITY|CEREBRAS|HF|HUGGINGFACE|REPLICATE|AI_GATEWAY)_(?:API_KEY|AUTH_TOKEN|OAUTH_TOKEN|TOKEN|KEY)$/i;
