/** What an agent says over the Agent Client Protocol, in our words. Pure. */
import { stripVTControlCharacters } from "node:util";
import type { ToolSpec } from "../engine/ports.ts";
import type { Fault } from "../flow/event.ts";
import { figure } from "../flow/figure.ts";
import { shown } from "../flow/harmless.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { toolNameOf } from "../flow/mcp.ts";
import { at, countIn, listIn, textIn } from "./untyped.ts";

/** The one tool of the server that we hand to an agent, for its answer. */
export const SERVER = "lockstep";
export const SUBMIT = "submit";

/** One prompt so far. */
export type Heard = {
  readonly text: string;
  /** What was said of each tool call. The protocol does not tell where a response ends: each call counts as one. */
  readonly calls: ReadonlyMap<string, Announced>;
  /** Money of the whole session. */
  readonly costUsd: number | null;
};

/** What an agent said of a tool call before it asked: at first, and with all that followed. */
export type Announced = { readonly first: JsonObject; readonly now: JsonObject };

export const NOTHING: Heard = { text: "", calls: new Map(), costUsd: null };

export function hear(heard: Heard, update: JsonObject): Heard {
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      return { ...heard, text: heard.text + textIn(at(update, "content", "text")) };
    case "tool_call":
    case "tool_call_update": {
      const id = textIn(update.toolCallId);
      const said = given(update, ABOUT_CALL);
      const before = heard.calls.get(id) ?? { first: said, now: {} };
      const call = { first: before.first, now: { ...before.now, ...said } };
      return { ...heard, calls: new Map([...heard.calls, [id, call]]) };
    }
    case "usage_update": {
      const { cost } = update;
      const isUsd = isObject(cost) && cost.currency === "USD" && typeof cost.amount === "number";
      return isUsd ? { ...heard, costUsd: figure(cost.amount) } : heard;
    }
    default:
      return heard;
  }
}

/** Not its output, which may be long. */
const ABOUT_CALL = ["kind", "title", "name", "rawInput", "locations", "_meta"];

/** A field that is absent or null leaves what was said before. */
function given(update: JsonObject, names: readonly string[] = Object.keys(update)): JsonObject {
  const fields = names.map((name) => [name, own(update, name)] as const);
  return Object.fromEntries(
    fields.filter(([, value]) => value !== undefined && value !== null),
  ) as JsonObject;
}

export type Judged = { readonly name: string; readonly input: JsonObject };

/** What is known when an agent asks for permission. */
export type Asking = {
  /** What the program calls itself. */
  readonly agent?: string;
  /** Where the session works, by all its paths. */
  readonly cwds?: readonly string[];
  readonly announced?: Announced | undefined;
  /** What the request says beside the call. */
  readonly meta?: Json | undefined;
  /** Tools of ours that it was handed, beside the one for its answer. */
  readonly served?: readonly ToolSpec[] | undefined;
};

/**
 * What an agent asks permission for, as calls that our gate knows: each must pass. An empty list: the tool for its answer,
 * which needs no permission. Tools are told apart by their kind, as every agent has names of its own. A tool of ours is
 * known by what the program itself says of it and never by words that a model may have chosen: for many tools the title
 * is such a text. What is not certain is judged as a tool that is not known.
 */
export function toCalls(toolCall: JsonObject, asking: Asking = {}): readonly Judged[] {
  const { agent = "", cwds = [], announced = UNANNOUNCED, served = [] } = asking;
  const call = { ...announced.now, ...given(toolCall) };
  const { kind, rawInput } = call;
  const raw = isObject(rawInput) ? rawInput : {};
  const { name, input = raw, by } = toolOf(call, announced.first, agent, asking.meta);
  if (by === "server" || (isUnspecific(kind) && by !== "nothing")) {
    if (plain(name) === OUR_NAME) return [];
    const ours = served.filter((tool) => plain(tool.name) === plain(name));
    if (ours.length > 0) return ours.map((tool) => ({ name: tool.name, input }));
    if (by === "server") return [{ name, input }];
  }
  switch (kind) {
    case "execute":
      return [{ name: "Bash", input: { command: commandOf(call, raw, agent, cwds) } }];
    case "read":
      return onPaths("Read", call, raw);
    case "search":
      return onPaths("Grep", call, raw);
    case "edit":
    case "delete":
    case "move":
      return onPaths("Edit", call, raw);
    case "fetch":
      return [{ name: "WebFetch", input: raw }];
    default:
      // In quotes it is not the name of any tool: a title must not pass as one that is allowed.
      return [{ name: by === "name" ? name : JSON.stringify(name), input }];
  }
}

function isUnspecific(kind: Json | undefined): boolean {
  return kind === undefined || kind === "other";
}

const UNANNOUNCED: Announced = { first: {}, now: {} };

/** Programs that have a shape of their own for what they ask. */
const CODEX = "@agentclientprotocol/codex-acp";
const EARLIER_CODEX = "codex-acp";
const GEMINI = "gemini-cli";

/** The mode in which a program asks before it changes anything; null: it is in that mode, or has none that is known. */
export function modeToAsk(agent: string, modes: Json | undefined): string | null {
  const mode = own(ASKING_MODES, agent);
  const isThere = listIn(at(modes, "availableModes")).some((one) => at(one, "id") === mode);
  return mode === undefined || !isThere || at(modes, "currentModeId") === mode ? null : mode;
}

/** By default, or by the user's own settings, some of them ask a model instead, or nobody. */
const ASKING_MODES: { readonly [agent: string]: string } = {
  [CODEX]: "read-only",
  [EARLIER_CODEX]: "read-only",
  [GEMINI]: "default",
  "@zed-industries/claude-code-acp": "default",
  "@agentclientprotocol/claude-agent-acp": "default",
};

/**
 * `by`: what the name was taken from. `server`: the program says that it is a tool of a server. A title may be anything,
 * unless the kind says that it is the name of a tool.
 */
type Tool = {
  readonly name: string;
  readonly input?: JsonObject;
  readonly by: "server" | "name" | "title" | "nothing";
};

function toolOf(call: JsonObject, first: JsonObject, agent: string, asked: Json | undefined): Tool {
  if (agent === CODEX) return codexTool(call, first, asked);
  if (agent === EARLIER_CODEX) return earlierCodexTool(call, first);
  if (agent === GEMINI) return geminiTool(call);
  const named = textIn(at(call, "_meta", "claudeCode", "toolName")) || textIn(call.name);
  if (named !== "") return { name: named, by: "name" };
  // The first title is the name of the tool for the agents that were tried; later ones say what is done with it.
  const title = textIn(first.title) || titleOf(call);
  return { name: title, by: call.kind === "other" ? "title" : "nothing" };
}

function titleOf({ title }: JsonObject): string {
  return textIn(title) || "an unnamed tool";
}

/** It marks what belongs to a server, and names server and tool before it asks. */
function codexTool(call: JsonObject, first: JsonObject, asked: Json | undefined): Tool {
  const isOfServer =
    at(first, "_meta", "is_mcp_tool_call") === true && at(asked, "is_mcp_tool_approval") === true;
  if (!isOfServer) return { name: titleOf(call), by: "nothing" };
  const [server, tool] = [textIn(at(first, "rawInput", "server")), textIn(at(first, "rawInput", "tool"))];
  const input = at(first, "rawInput", "arguments");
  return { name: toolNameOf(server, tool), input: isObject(input) ? input : {}, by: "server" };
}

/** The same in other fields. */
function earlierCodexTool(call: JsonObject, first: JsonObject): Tool {
  const { kind, rawInput } = call;
  const isAsked = at(rawInput, "request", "_meta", "codex_approval_kind") === "mcp_tool_call";
  const server = textIn(at(rawInput, "server_name"));
  const isAnnounced = at(first, "rawInput", "server") === server;
  if (kind !== undefined || !isAsked || server === "" || !isAnnounced)
    return { name: titleOf(call), by: "nothing" };
  const name = toolNameOf(server, textIn(at(first, "rawInput", "tool")));
  const input = at(rawInput, "request", "_meta", "tool_params");
  return { name, input: isObject(input) ? input : {}, by: "server" };
}

/** Its ids begin with the name of the tool. The title of a tool of a server can be a text of the model. */
function geminiTool(call: JsonObject): Tool {
  const [, name] = /^(mcp_.+?)(?:__.*|-\d+-\d+)$/s.exec(textIn(call.toolCallId)) ?? [];
  if (name === undefined) return { name: titleOf(call), by: "nothing" };
  const told = textIn(at(listIn(call.content)[0], "content", "text"));
  return { name, input: parsed(told), by: "server" };
}

function parsed(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** `allow_once` or nothing: an agent that was told "always" would not ask again. */
export function choose(options: Json | undefined, allow: boolean): JsonObject {
  const kinds = allow ? ["allow_once"] : ["reject_once", "reject_always"];
  const list = listIn(options).filter((one) => isObject(one));
  const option = list.find((one) => kinds.includes(textIn(one.kind)));
  return {
    outcome:
      option === undefined
        ? { outcome: "cancelled" }
        : { outcome: "selected", optionId: option.optionId ?? "" },
  };
}

/** Tokens, where the agent reports them; not a number where it reports what cannot be a count. */
export function tokensOf(response: JsonObject): {
  readonly inputTokens: number;
  readonly outputTokens: number;
} {
  const count = (name: string) => countIn(at(response, "usage", name));
  const quota = (name: string) => countIn(at(response, "_meta", "quota", "token_count", name));
  const input = count("inputTokens") + count("cachedReadTokens") + count("cachedWriteTokens");
  const output = count("outputTokens");
  return {
    inputTokens: input === 0 ? quota("input_tokens") : input,
    outputTokens: output === 0 ? quota("output_tokens") : output,
  };
}

/** The model of a session, where the agent says; else "". */
export function modelIn(session: JsonObject): string {
  const option = listIn(session.configOptions).find((one) => at(one, "category") === "model");
  return textIn(at(session, "models", "currentModelId")) || textIn(at(option, "currentValue"));
}

/** `printed`: what the agent wrote to stderr. */
export function toFault(error: unknown, printed = ""): Fault {
  const code: unknown = typeof error === "object" && error !== null && "code" in error ? error.code : null;
  const message = error instanceof Error ? error.message : String(error);
  const data = typeof error === "object" && error !== null && "data" in error ? (error.data as Json) : null;
  const details = textIn(data) || textIn(at(data, "details")) || textIn(at(data, "message"));
  const reason = details === "" || message.includes(details) ? message : `${message}: ${details}`;
  const last = shown(stripVTControlCharacters(printed).trim());
  const words = last === "" ? "" : `\nIt printed:\n${last}`;
  if (code === -32000) {
    return { kind: "auth", message: `The agent wants you to sign in first: ${shown(reason)}${words}` };
  }
  return { kind: code === null ? "process" : "other", message: `The agent failed: ${shown(reason)}${words}` };
}

/** Every place that it names, in the fields of the agents that were tried. */
function onPaths(name: string, { locations, content }: JsonObject, input: JsonObject): readonly Judged[] {
  const { changes } = input;
  const changed = isObject(changes) ? Object.entries(changes) : [];
  const paths = [
    ...PATHS.map((field) => own(input, field)),
    ...listIn(locations).map((place) => at(place, "path")),
    ...listIn(content).map((part) => (at(part, "type") === "diff" ? at(part, "path") : undefined)),
    ...changed.flatMap(([path, change]) => [path, at(change, "move_path")]),
  ].filter((path) => typeof path === "string");
  // A change that does not say where cannot be judged: a path that is refused stands for it.
  const known = paths.length > 0 || name !== "Edit" ? new Set(paths) : [""];
  const calls = [...known].map((path) => ({ name, input: { file_path: path } }));
  return calls.length === 0 ? [{ name, input: {} }] : calls;
}

const PATHS = ["file_path", "path", "abs_path", "notebook_path", "filePath", "filepath"];

/** null: not known. A command that is to run elsewhere is judged with the way there. */
function commandOf(
  { title, content }: JsonObject,
  input: JsonObject,
  agent: string,
  cwds: readonly string[],
): Json {
  const command = agent === GEMINI && input.command === undefined ? (title ?? null) : lineOf(input);
  if (typeof command !== "string") return command;
  const told = textIn(at(listIn(content)[0], "content", "text"));
  // Gemini CLI says where before anything else, so no word of the model can stand there.
  const elsewhere = agent === GEMINI ? /^\[in (.*)\]/s.exec(told)?.[1] : (input.cwd ?? input.workdir);
  if (elsewhere === undefined || elsewhere === null || cwds.includes(textIn(elsewhere))) return command;
  return `cd ${quoted(textIn(elsewhere))} && ${command}`;
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

function lineOf({ command }: JsonObject): Json {
  if (!Array.isArray(command)) return command ?? null;
  const words = listIn(command).map(textIn);
  // `bash -lc LINE` is the line; other words are put together again.
  const isShell = words.length === 3 && /(?:^|\/)(?:ba|z)?sh$/.test(words[0]!) && /^-l?c$/.test(words[1]!);
  return isShell ? words[2]! : words.join(" ");
}

/** `mcp__docs__search`, `mcp_docs_search`, `docs: search` and `docs.search` are the same tool. */
function plain(name: string): string {
  return name.replace(/^mcp__?/, "").replaceAll(/[^A-Za-z0-9-]+/g, "_");
}

const OUR_NAME = plain(toolNameOf(SERVER, SUBMIT));
