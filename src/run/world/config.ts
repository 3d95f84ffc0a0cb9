/**
 * The user's own configuration: `lockstep/config.json` in their config folder. Where a model is and which key it gets is
 * said here or in the environment, never in a project's files.
 */
import { manual } from "../../flow/manual.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Price } from "../../backends/ai-sdk/prices.ts";
import {
  EFFORTS,
  isProvider,
  PROVIDERS,
  type ProviderId,
  type RequestSettings,
} from "../../backends/ai-sdk/providers.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { Granted, Limits } from "../../flow/flow.ts";
import { isObject, type Json, type JsonObject } from "../../flow/json.ts";
import { faultOfHost } from "../../flow/hosts.ts";
import { scanJson } from "../../flow/text/places.ts";
import { softFault } from "../../flow/spending.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { CONFIG_KEYS, FIGURES, MODEL_KEYS, PROGRAM_FIELDS, WIRE_KEYS } from "./config-shape.ts";
import { readWritten } from "./files.ts";
import { configFolder } from "./project.ts";

export type UserConfig = {
  readonly models: { readonly [name: string]: ModelEntry };
  /** How requests are sent to all models of a provider. */
  readonly providers: { readonly [id in ProviderId]?: WireSettings };
  /** By `provider/model`, before our own figures. */
  readonly prices: { readonly [ref: string]: Price };
  readonly defaultBackend: string | null;
  /** The programs that backends start, by the id of the backend. */
  readonly programs: { readonly [backend: string]: ProgramEntry };
  /** auto: commands are confined wherever that is possible. */
  readonly sandbox: SandboxWish;
  /** What confined commands may reach; null: what the agent file says, else the usual hosts. */
  readonly network: NetworkWish | null;
  /** Names of environment variables that commands may see, besides the usual ones. */
  readonly env: readonly string[];
  /** What any run may spend at the most, whatever its files say, and whether it may where that cannot be checked. */
  readonly limits: Limits & Pick<Granted, "unmetered">;
};

export type SandboxWish = "on" | "off" | "auto";

/** usual: where software comes from. all: the network of this machine. Else a list of hosts. */
export type NetworkWish = "none" | "usual" | "all" | readonly string[];

export type ProgramEntry = {
  readonly command: string;
  readonly args?: readonly string[];
  /** Names of environment variables that it needs beside the usual ones. */
  readonly pass?: readonly string[];
  /** How long an answer of it may take. */
  readonly timeoutMs?: number;
};

/** `provider/model`, or how the model is asked. */
export type ModelEntry = string | ({ readonly provider: ProviderId; readonly model: string } & WireSettings);

/** How requests to a model are sent. In `headers`, `${NAME}` stands for a variable of the environment. */
export type WireSettings = RequestSettings & {
  readonly baseUrl?: string;
  /** The environment variable that holds the key. */
  readonly apiKeyEnv?: string;
};

/** CONFIG_INVALID names the file and what is wrong with it. */
export function readConfig(env: NodeJS.ProcessEnv): UserConfig {
  const file = configFile(env);
  if (file === null || !existsSync(file)) return NOTHING_SAID;
  const invalid = (what: string) =>
    new RunnerError("CONFIG_INVALID", `${file}: ${what}. See ${manual("models")}`);
  const value = parsed(textOf(file, invalid), invalid);
  if (!isObject(value)) throw invalid("it must be an object");
  requireKeys(value, CONFIG_KEYS, "", invalid);
  const { safeFolders = [] } = value;
  if (!Array.isArray(safeFolders) || !safeFolders.every((one) => typeof one === "string"))
    throw invalid("safeFolders must be a list of folders");
  const { models = {}, providers = {}, prices = {}, defaultBackend = null } = value;
  if (!isObject(providers)) throw invalid("providers must be an object");
  requireKeys(providers, Object.keys(PROVIDERS), "providers", invalid);
  if (!isObject(models)) throw invalid("models must be an object");
  if (!isObject(prices)) throw invalid("prices must be an object");
  if (defaultBackend !== null && typeof defaultBackend !== "string")
    throw invalid("defaultBackend must be a name");
  return {
    models: mapped(models, (entry, name) => readModel(entry, `models.${name}`, invalid)),
    providers: mapped(providers, (entry, id) => readWire(entry, `providers.${id}`, WIRE_KEYS, invalid)),
    prices: mapped(prices, (entry, ref) => readPrice(entry, `prices.${ref}`, invalid)),
    defaultBackend,
    programs: readPrograms(value, invalid),
    sandbox: readWish(value.sandbox ?? "auto", invalid),
    network: readNetwork(value.network ?? null, invalid),
    env: readNames(value.env ?? [], invalid),
    limits: readLimits(value.limits ?? {}, invalid),
  };
}

function textOf(file: string, invalid: (what: string) => RunnerError): string {
  try {
    return readWritten(file);
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error));
  }
}

/** A fault is named by its place alone: what is written there may be a key. */
function parsed(text: string, invalid: (what: string) => RunnerError): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const { fault } = scanJson(text);
    if (fault === null) throw invalid("it is not valid JSON");
    throw invalid(
      `it is not valid JSON at line ${fault.place.line}, column ${fault.place.column}: ${fault.what}`,
    );
  }
}

const NOTHING_SAID: UserConfig = {
  models: {},
  providers: {},
  prices: {},
  defaultBackend: null,
  programs: {},
  sandbox: "auto",
  network: null,
  env: [],
  limits: {},
};

function readWish(value: Json, invalid: Invalid): SandboxWish {
  if (value === "on" || value === "off" || value === "auto") return value;
  throw invalid('sandbox is "on", "off" or "auto"');
}

function readNetwork(value: Json, invalid: Invalid): NetworkWish | null {
  if (value === null) return null;
  const text =
    Array.isArray(value) && value.every((one) => typeof one === "string") ? value.join(",") : value;
  if (typeof text !== "string") throw invalid(`network is ${NETWORKS}`);
  const read = parseNetwork(text);
  if ("fault" in read) throw invalid(`network: ${read.fault}`);
  return read.wish;
}

/** What `--network` says. */
export function parseNetwork(text: string): { readonly wish: NetworkWish } | { readonly fault: string } {
  const word = text.trim();
  if (word === "none" || word === "usual" || word === "all") return { wish: word };
  const hosts = word.split(",").map((host) => host.trim());
  for (const host of hosts) {
    const fault = faultOfHost(host);
    if (fault !== null)
      return { fault: `${JSON.stringify(host)} cannot be allowed: ${fault.why}. It is ${NETWORKS}` };
  }
  return { wish: hosts };
}

const NETWORKS = "none, usual, all, or a list of hosts such as registry.npmjs.org,*.example.com";

function readLimits(value: Json, invalid: Invalid): UserConfig["limits"] {
  if (!isObject(value)) throw invalid("limits must be an object");
  requireKeys(value, ["turns", "tokens", "costUsd", "wallMs", "soft", "unmetered"], "limits", invalid);
  const { soft, unmetered = true, ...amounts } = value;
  if (unmetered !== true) throw invalid("limits.unmetered must be true, or left out");
  for (const [name, most] of Object.entries(amounts)) {
    const isWhole = name === "costUsd" || Number.isSafeInteger(most);
    if (typeof most !== "number" || !(most > 0) || !isWhole)
      throw invalid(`limits.${name} must be a ${name === "costUsd" ? "" : "whole "}number above 0`);
  }
  const fault = soft === undefined ? null : softFault(soft, amounts);
  if (fault !== null) throw invalid(`limits.soft: ${fault}`);
  return value;
}

function readNames(value: Json, invalid: Invalid): readonly string[] {
  const names: readonly Json[] | null = Array.isArray(value) ? value : null;
  if (names === null || !names.every((name): name is string => typeof name === "string"))
    throw invalid("env must be a list of environment variable names");
  const never = names.find(isNeverPassed);
  if (never === undefined) return names;
  throw invalid(`env must not contain ${never}: model and GitHub keys are never passed to commands`);
}

/** Whether a variable is kept from commands whatever the user says. */
export function isNeverPassed(name: string): boolean {
  return NEVER.test(name);
}

/** What only the runner itself uses. A command that had it could act as the run, or spend in its name. */
const NEVER =
  /^(?:GH|GITHUB)(?:_ENTERPRISE)?_(?:TOKEN|PAT)$|^(?:ANTHROPIC|CLAUDE_CODE|OPENAI|AZURE_OPENAI|GOOGLE_GENERATIVE_AI|GOOGLE|GEMINI|MISTRAL|COHERE|GROQ|XAI|DEEPSEEK|OPENROUTER|TOGETHER(?:_AI)?|FIREWORKS|PERPLEXITY|CEREBRAS|HF|HUGGINGFACE|REPLICATE|AI_GATEWAY)_(?:API_KEY|AUTH_TOKEN|OAUTH_TOKEN|TOKEN|KEY)$/i;

export function configFile(env: NodeJS.ProcessEnv): string | null {
  const folder = configFolder(env);
  return folder === null ? null : join(folder, "config.json");
}

type Invalid = (what: string) => RunnerError;

function readModel(entry: Json, where: string, invalid: Invalid): ModelEntry {
  if (typeof entry === "string" && entry !== "") return entry;
  if (!isObject(entry)) throw invalid(`${where} must be "provider/model" or an object`);
  const { provider, model } = entry;
  readWire(entry, where, MODEL_KEYS, invalid);
  if (typeof provider !== "string" || !isProvider(provider))
    throw invalid(`${where}.provider must be one of ${Object.keys(PROVIDERS).join(", ")}`);
  if (typeof model !== "string" || model === "")
    throw invalid(`${where}.model must be the provider's name of a model`);
  return entry as unknown as ModelEntry;
}

function readWire(entry: Json, where: string, keys: readonly string[], invalid: Invalid): WireSettings {
  if (!isObject(entry)) throw invalid(`${where} must be an object`);
  requireKeys(entry, keys, where, invalid);
  const { baseUrl, apiKeyEnv, temperature, reasoningEffort, headers, extraBody } = entry;
  const fault = baseUrl === undefined ? null : addressFault(baseUrl);
  if (fault !== null) throw invalid(`${where}.baseUrl ${fault}`);
  if (apiKeyEnv !== undefined && (typeof apiKeyEnv !== "string" || !/^\w+$/.test(apiKeyEnv)))
    throw invalid(`${where}.apiKeyEnv must be the name of an environment variable, not a key`);
  requireCounts(entry, ["maxOutputTokens", "timeoutMs"], where, invalid);
  for (const key of ["toolCalling", "stream"])
    if (entry[key] !== undefined && typeof entry[key] !== "boolean")
      throw invalid(`${where}.${key} must be true or false`);
  if (temperature !== undefined && (typeof temperature !== "number" || temperature < 0))
    throw invalid(`${where}.temperature must be a number of 0 or more`);
  if (reasoningEffort !== undefined && !EFFORTS.some((word) => word === reasoningEffort))
    throw invalid(`${where}.reasoningEffort must be one of ${EFFORTS.join(", ")}`);
  if (headers !== undefined) readHeaders(headers, `${where}.headers`, invalid);
  if (extraBody !== undefined) readBody(extraBody, `${where}.extraBody`, invalid);
  return entry;
}

function requireCounts(entry: JsonObject, keys: readonly string[], where: string, invalid: Invalid): void {
  for (const key of keys) {
    const count = entry[key];
    if (count !== undefined && (!Number.isSafeInteger(count) || (count as number) < 1))
      throw invalid(`${where}.${key} must be a whole number above 0`);
  }
}

/** An address as it may be repeated: without what may be a secret. null: there may be a password in it. */
export function addressShown(address: string): string | null {
  const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null;
  const mayHold = url === null ? address.includes("@") : url.username !== "" || url.password !== "";
  return mayHold ? null : address.replace(/[?#].*$/s, "");
}

/** Why a value cannot be the address of a server; null: it can. */
export function addressFault(value: Json): string | null {
  const text = typeof value === "string" ? value.trim() : "";
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  if (url === null) {
    const bare = text.includes("://") ? null : addressShown(text);
    const example = bare && URL.canParse(`http://${bare}`) ? `, such as http://${bare}` : "";
    return `must be an http or https address${example}`;
  }
  if (url.username !== "" || url.password !== "")
    return "must not hold a user name or a password: use apiKeyEnv, or headers";
  if (url.search !== "" || url.hash !== "")
    return "must end with its path: leave out what begins with ? or #";
  return null;
}

function readHeaders(headers: Json, where: string, invalid: Invalid): void {
  if (!isObject(headers)) throw invalid(`${where} must be an object`);
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
      throw invalid(`${where}: "${name}" is not a valid header name`);
    if (OWN_HEADERS.has(name.toLowerCase())) throw invalid(`${where}: Lockstep itself sets ${name}`);
    if (typeof value !== "string" || !/^[\t\x20-\x7e]*$/.test(value))
      throw invalid(`${where}.${name} must be a text of printable ASCII characters`);
  }
}

const OWN_HEADERS = new Set(["host", "content-length", "content-type", "connection", "transfer-encoding"]);

function readBody(body: Json, where: string, invalid: Invalid): void {
  if (!isObject(body)) throw invalid(`${where} must be an object`);
  const own = Object.keys(body).find((key) => OWN_MEMBERS.has(key));
  if (own !== undefined) throw invalid(`${where}: Lockstep itself sets "${own}"`);
}

/** What a request is about. Another value would make the record of the run wrong. */
const OWN_MEMBERS = new Set(["model", "messages", "system", "input", "contents", "tools", "stream", "store"]);

function readPrograms(config: JsonObject, invalid: Invalid): UserConfig["programs"] {
  return Object.fromEntries(
    Object.entries(PROGRAM_FIELDS).flatMap(([id, fields]) => {
      const entry = config[id] ?? null;
      return entry === null ? [] : [[id, readProgram(entry, id, Object.keys(fields), invalid)]];
    }),
  );
}

function readProgram(entry: Json, id: string, keys: readonly string[], invalid: Invalid): ProgramEntry {
  if (!isObject(entry)) throw invalid(`${id} must be an object`);
  requireKeys(entry, keys, id, invalid);
  if (typeof entry.command !== "string" || entry.command === "")
    throw invalid(`${id}.command must name a program`);
  for (const key of ["args", "pass"]) {
    const list = entry[key] ?? [];
    if (!Array.isArray(list) || !list.every((one) => typeof one === "string"))
      throw invalid(`${id}.${key} must be a list of texts`);
  }
  requireCounts(entry, ["timeoutMs"], id, invalid);
  return entry as unknown as ProgramEntry;
}

function readPrice(entry: Json, where: string, invalid: Invalid): Price {
  if (!isObject(entry)) throw invalid(`${where} must be an object`);
  requireKeys(entry, FIGURES, where, invalid);
  for (const figure of FIGURES) {
    const value = entry[figure];
    if (value === undefined && figure !== "input" && figure !== "output") continue;
    if (typeof value !== "number" || !(value >= 0)) throw invalid(`${where}.${figure} must be a number`);
  }
  return entry as unknown as Price;
}

function requireKeys(value: JsonObject, known: readonly string[], where: string, invalid: Invalid): void {
  const stranger = Object.keys(value).find((key) => !known.includes(key) && !FOREIGN.has(key));
  if (stranger === undefined) return;
  const place = where === "" ? "" : `${where}: `;
  const hint = didYouMean(stranger, known);
  throw invalid(`${place}unknown key "${stranger}".${hint} Known keys: ${known.join(", ")}`);
}

/** For editors. */
const FOREIGN = new Set(["$schema", "$comment"]);

function mapped<T>(record: JsonObject, read: (value: Json, key: string) => T): { readonly [key: string]: T } {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, read(value, key)]));
}
