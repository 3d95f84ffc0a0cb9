/**
 * The user's own configuration: `lockstep/config.json` in their config folder. Where a model is and which key it gets is
 * said here or in the environment, never in a project's files.
 */
import { manual } from "../../flow/manual.ts";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Price } from "../../backends/ai-sdk/prices.ts";
import { PROVIDERS, type ProviderId, type RequestSettings } from "../../backends/ai-sdk/providers.ts";
import { RunnerError } from "../../engine/ports.ts";
import type { Granted, Limits } from "../../flow/flow.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import type { Form } from "../../flow/shape.ts";
import { faultOfHost } from "../../flow/hosts.ts";
import { scanJson } from "../../flow/text/places.ts";
import { softFault } from "../../flow/spending.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { CONFIG, MODEL, PROGRAMS, WIRE } from "./config-shape.ts";
import { readWritten } from "./files.ts";
import type { NoticeTarget } from "../../effects/notify.ts";
import type { NoticeKind } from "../../tell/notice.ts";
import { configFolder } from "./project.ts";
import { errorText } from "../../flow/text/harmless.ts";

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
  /** Who is notified of runs. */
  readonly notify: { readonly [name: string]: NotifyTarget };
  /** What a worker of a fleet does on this machine. */
  readonly fleet: FleetConfig;
};

export type FleetConfig = {
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly work?: string;
  readonly leaseSeconds?: number;
  readonly stretchHours?: number;
  readonly groups?: { readonly [group: string]: number };
  readonly repositories?: readonly string[];
  readonly trust?: "submitted" | readonly string[];
};

/** Which notices go to whom; `on` absent: all. */
export type NotifyTarget = NoticeTarget & { readonly on?: readonly NoticeKind[] };

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
    new RunnerError("CONFIG_INVALID", `${file}: ${what}. See ${manual(pageOf(what))}`);
  const value = parsed(textOf(file, invalid), invalid);
  const fault = isObject(value) ? faultOf(CONFIG, withoutNull(value), "") : "it must be an object";
  if (fault !== null) throw invalid(fault);
  const { network, ...said } = withoutNull(value as JsonObject);
  const read = network === undefined ? { wish: null } : readNetwork(network);
  const programs = Object.entries(said).filter(([key]) => Object.hasOwn(PROGRAMS, key));
  return {
    ...NOTHING_SAID,
    ...(said as Partial<UserConfig>),
    network: "wish" in read ? read.wish : null,
    programs: Object.fromEntries(programs) as UserConfig["programs"],
  };
}

/** The page about the key that a fault begins with, where it is not the one about the file. */
function pageOf(fault: string): string {
  const [key = ""] = /^\w+/.exec(fault) ?? [];
  return ["notify", "fleet", "limits"].includes(key) ? key : "models";
}

/** A key that is null is a key that is not written. */
function withoutNull(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

function textOf(file: string, invalid: (what: string) => RunnerError): string {
  try {
    return readWritten(file);
  } catch (error) {
    throw invalid(errorText(error));
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
  notify: {},
  fleet: {},
};

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

/** The same in the file, where hosts may also be a list. */
function readNetwork(value: Json): ReturnType<typeof parseNetwork> {
  if (typeof value === "string") return parseNetwork(value);
  const isList = Array.isArray(value) && value.every((one) => typeof one === "string");
  return isList ? parseNetwork(value.join(",")) : { fault: `it is ${NETWORKS}` };
}

const NETWORKS = "none, usual, all, or a list of hosts such as registry.npmjs.org,*.example.com";

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

// What is wrong with the file.

/** The first fault, with its place; null: there is none. What is written is not repeated: it may be a key. */
function faultOf(form: Form, value: Json | undefined, where: string): string | null {
  const meaning = form.doc.replace(/\.$/, "");
  const must = (isFit: boolean, what: string) => (isFit ? null : `${where} must be ${what}`);
  switch (form.kind) {
    case "object":
      if (!isObject(value)) return must(false, "an object");
      return (
        unknownKey(value, Object.keys(form.fields), where) ??
        firstFault(Object.entries(form.fields), ([key, of]) => {
          const member = own(value, key);
          if (member === undefined && of.required !== true) return null;
          const at = where === "" ? key : `${where}.${key}`;
          const instead = own(INSTEAD, key);
          if (instead !== undefined) return instead(member!, at);
          return faultOf(of, member, at) ?? own(MORE, key)?.(member!, at) ?? null;
        })
      );
    case "map":
      if (!isObject(value)) return must(false, "an object");
      return firstFault(Object.entries(value), ([key, member]) =>
        faultOf(form.of, member, `${where}.${key}`),
      );
    case "list": {
      const isFit = Array.isArray(value) && value.every((one: Json) => faultOf(form.of, one, "") === null);
      const words = form.of.kind === "text" ? form.of.enum : undefined;
      return must(
        isFit,
        words === undefined ? `a list of texts: ${meaning}` : `a list of: ${words.join(", ")}`,
      );
    }
    case "number": {
      const isFit = typeof value === "number" && value >= (form.min ?? 0);
      if (form.integer) return must(isFit && Number.isSafeInteger(value), "a whole number above 0");
      return must(isFit, "a number of 0 or more");
    }
    case "flag":
      return must(typeof value === "boolean", "true or false");
    case "text":
      if (form.enum)
        return must(
          form.enum.some((word) => word === value),
          `one of ${form.enum.join(", ")}`,
        );
      return must(
        typeof value === "string" && new RegExp(form.pattern ?? (form.filled ? "." : "")).test(value),
        `a text: ${meaning}`,
      );
    case "any":
      return must(form.types?.includes("object") !== true || isObject(value), "an object");
  }
}

type FaultsOf = { readonly [key: string]: (value: Json, where: string) => string | null };

/** Better words than those for what the table says. */
const INSTEAD: FaultsOf = {
  baseUrl: (address, where) => {
    const fault = addressFault(address);
    return fault === null ? null : `${where} ${fault}`;
  },
  unmetered: (value, where) => (value === true ? null : `${where} must be true, or left out`),
};

/** What the table does not say of a value that is as the table says. */
const MORE: FaultsOf = {
  models: (models, where) =>
    firstFault(Object.entries(models as JsonObject), ([name, model]) => {
      if (typeof model === "string" && model !== "") return null;
      if (isObject(model)) return faultOf(MODEL, model, `${where}.${name}`);
      return `${where}.${name} must be "provider/model" or an object`;
    }),
  providers: (providers, where) => {
    if (!isObject(providers)) return `${where} must be an object`;
    const known = Object.entries(providers);
    return (
      unknownKey(providers, Object.keys(PROVIDERS), where) ??
      firstFault(known, ([id, settings]) => faultOf(WIRE, settings, `${where}.${id}`))
    );
  },
  headers: (headers, where) =>
    firstFault(Object.entries(headers as JsonObject), ([name, value]) => {
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
        return `${where}: "${name}" is not a valid header name`;
      if (OWN_HEADERS.has(name.toLowerCase())) return `${where}: Lockstep itself sets ${name}`;
      const isFit = /^[\t\x20-\x7e]*$/.test(value as string);
      return isFit ? null : `${where}.${name} must be a text of printable ASCII characters`;
    }),
  extraBody: (body, where) => {
    const taken = Object.keys(body as JsonObject).find((key) => OWN_MEMBERS.has(key));
    return taken === undefined ? null : `${where}: Lockstep itself sets "${taken}"`;
  },
  trust: (trust, where) => {
    const isFit =
      trust === "submitted" || (Array.isArray(trust) && trust.every((one: Json) => typeof one === "string"));
    return isFit ? null : `${where} must be "submitted" or a list of digests`;
  },
  stretchHours: (hours, where) =>
    Number(hours) > 0 && Number(hours) <= 20 ? null : `${where} must be a number above 0, 20 at most`,
  network: (network, where) => {
    const read = readNetwork(network);
    return "fault" in read ? `${where}: ${read.fault}` : null;
  },
  env: (names, where) => {
    const never = (names as readonly string[]).find(isNeverPassed);
    if (never === undefined) return null;
    return `${where} must not contain ${never}: model and GitHub keys are never passed to commands`;
  },
  notify: (targets, where) =>
    firstFault(Object.entries(targets as JsonObject), ([name, target]) =>
      targetFault(target as JsonObject, `${where}.${name}`),
    ),
  costUsd: (most, where) => (most === 0 ? `${where} must be a number above 0` : null),
  limits: (limits, where) => {
    const { soft, ...amounts } = limits as JsonObject;
    const fault = soft === undefined ? null : softFault(soft, amounts);
    return fault === null ? null : `${where}.soft: ${fault}`;
  },
};

/** A webhook or a command, and not both; a notice may hold what a model said, so it is not sent in clear over a network. */
function targetFault(target: JsonObject, where: string): string | null {
  const { webhook, command, secretEnv, pass, on } = target;
  if ((webhook === undefined) === (command === undefined))
    return `${where} must have a webhook or a command, and not both`;
  if (Array.isArray(on) && on.length === 0) return `${where}.on must name a kind of notice, or be left out`;
  if (command !== undefined) {
    if (secretEnv !== undefined) return `${where}.secretEnv is for a webhook`;
    const never = (Array.isArray(pass) ? (pass as readonly string[]) : []).find(isNeverPassed);
    if (never !== undefined) return `${where}.pass must not contain ${never}`;
    const [program] = command as readonly string[];
    return program ? null : `${where}.command must begin with a program`;
  }
  if (pass !== undefined) return `${where}.pass is for a command`;
  const url = typeof webhook === "string" && URL.canParse(webhook) ? new URL(webhook) : null;
  const isLocal = url !== null && /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLocal);
  return isSafe ? null : `${where}.webhook must be an https address (http only on this machine)`;
}

const OWN_HEADERS = new Set(["host", "content-length", "content-type", "connection", "transfer-encoding"]);
/** What a request is about. Another value would make the record of the run wrong. */
const OWN_MEMBERS = new Set(["model", "messages", "system", "input", "contents", "tools", "stream", "store"]);

function firstFault<T>(all: readonly T[], faultIn: (one: T) => string | null): string | null {
  for (const one of all) {
    const fault = faultIn(one);
    if (fault !== null) return fault;
  }
  return null;
}

function unknownKey(value: JsonObject, known: readonly string[], where: string): string | null {
  const stranger = Object.keys(value).find((key) => !known.includes(key) && !FOREIGN.has(key));
  if (stranger === undefined) return null;
  const hint = didYouMean(stranger, known);
  return `${where === "" ? "" : `${where}: `}unknown key "${stranger}".${hint} Known keys: ${known.join(", ")}`;
}

/** For editors. */
const FOREIGN = new Set(["$schema", "$comment"]);

// Addresses.

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
