/** What an agent says over the Agent Client Protocol, in our words. Pure. */
import type { ToolSpec } from "../../engine/ports.ts";
import type { Fault } from "../../flow/event.ts";
import { figure } from "../../flow/figure.ts";
import { errorText, shown } from "../../flow/text/harmless.ts";
import { isObject, own, parseJsonObject, type Json, type JsonObject } from "../../flow/json.ts";
import { isServerName, MCP_PREFIX, serverNamed, toolNameOf } from "../../flow/mcp.ts";
import { commandIn } from "./acp-command.ts";
import { globsIn, hasOnlyTerms, placesIn } from "./acp-places.ts";
import { withPrinted } from "../agent-child.ts";
import { memberAt, countIn, listIn, textIn } from "../untyped.ts";

/**
 * The server that we hand to an agent has one tool, for its answer. Its name begins like this and goes on at random for
 * each session: no project can have a server of that name.
 */
export const SERVER = "lockstep";
export const SUBMIT = "submit";

/** One prompt so far. */
export type AcpHeard = {
  readonly text: string;
  /** What was said of each tool call. The protocol does not tell where a response ends: each call counts as one. */
  readonly calls: ReadonlyMap<string, Announced>;
  /** Money of the whole session. */
  readonly costUsd: number | null;
};

/** What an agent said of a tool call before it asked: at first, and with all that followed. */
export type Announced = {
  readonly first: JsonObject;
  readonly now: JsonObject;
  /** The id was announced again as another call: what was said belongs to one of several. */
  readonly reused?: true;
};

export const NOTHING_FROM_ACP: AcpHeard = { text: "", calls: new Map(), costUsd: null };

export function hearAcp(heard: AcpHeard, update: JsonObject): AcpHeard {
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      return { ...heard, text: heard.text + textIn(memberAt(update, "content", "text")) };
    case "tool_call":
    case "tool_call_update": {
      const id = textIn(update.toolCallId);
      const said = given(update, ABOUT_CALL);
      const known = heard.calls.get(id);
      const before = known ?? { first: said, now: {} };
      const isAgain = known !== undefined && update.sessionUpdate === "tool_call";
      const isReused = known?.reused === true || (isAgain && identity(known.now) !== identity(said));
      const now = { ...before.now, ...said };
      const call = { first: before.first, now, ...(isReused && { reused: true as const }) };
      return { ...heard, calls: new Map([...heard.calls, [id, call]]) };
    }
    case "usage_update": {
      const { cost } = update;
      if (!isObject(cost) || cost.currency !== "USD") return heard;
      const amount = figure(cost.amount);
      // Money that was spent stays spent: a report that falls takes nothing back.
      return { ...heard, costUsd: amount === null ? null : Math.max(amount, heard.costUsd ?? 0) };
    }
    default:
      return heard;
  }
}

/** What a call is: some programs announce one twice, the second time with its input. */
function identity(call: JsonObject): string {
  const name = memberAt(call, "_meta", "claudeCode", "toolName") ?? call.name ?? call.title;
  return JSON.stringify([
    call.kind,
    name,
    memberAt(call, "rawInput", "server"),
    memberAt(call, "rawInput", "tool"),
  ]);
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

export type JudgedAcpCall = { readonly name: string; readonly input: JsonObject };

/** What is known when an agent asks for permission. */
export type AcpPermission = {
  /** What the program calls itself. */
  readonly agent?: string;
  /** Where the session works, by all its paths. */
  readonly cwds?: readonly string[];
  readonly announced?: Announced | undefined;
  /** What the request says beside the call. */
  readonly meta?: Json | undefined;
  /** The name of the server for its answer. */
  readonly server?: string;
  /** Tools of ours that it was handed, beside the one for its answer. */
  readonly served?: readonly ToolSpec[] | undefined;
};

/**
 * What an agent asks permission for, as calls that our gate knows: each must pass. An empty list: the tool for its answer,
 * which needs no permission. Tools are distinguished by their kind, as every agent has names of its own. A tool of ours is
 * known by what the program itself says of it and never by words that a model may have chosen: for many tools the title
 * is such a text. What is not certain is judged as a tool that is not known.
 */
export function toCalls(toolCall: JsonObject, asking: AcpPermission = {}): readonly JudgedAcpCall[] {
  const { agent = "", cwds = [], announced = UNANNOUNCED, served = [], server = "" } = asking;
  const call = { ...announced.now, ...given(toolCall) };
  const { kind, rawInput } = call;
  const raw = isObject(rawInput) ? rawInput : {};
  if (announced.reused === true) return [unknown(titleOf(call), raw)];
  const { name, input = raw, by, spellings } = toolOf(call, announced.first, agent, asking.meta);
  if (by === "server" || (isUnspecific(kind) && by !== "nothing")) {
    const means = (known: string) => spellings(known).includes(name);
    if (server !== "" && means(toolNameOf(server, SUBMIT))) return [];
    const ours = served.filter((tool) => means(tool.name));
    if (ours.length > 0) return ours.map((tool) => ({ name: tool.name, input }));
    if (by === "server") return [{ name, input }];
  }
  const said = [announced.first, announced.now, call];
  const tool = toolOfKind(kind) ?? (by === "name" ? (own(BY_NAME, name) ?? null) : null);
  // The tools of that name, for the agents that were tried, look for a regular expression.
  const isRegex = name.toLowerCase() === "grep";
  const hasCommand = raw.command !== undefined || raw.cmd !== undefined;
  const isCommand = tool === "Bash" || hasCommand;
  const command = isCommand
    ? [{ name: "Bash", input: { command: commandIn(said, agent === GEMINI, cwds) } }]
    : [];
  if (tool === "Bash") return command;
  if (tool === "WebFetch") return [...command, { name: tool, input: raw }];
  if (tool !== null) return [...command, ...onPaths(tool, said, raw, { isRun: hasCommand, isRegex })];
  return [...command, by === "name" ? { name, input } : unknown(name, input)];
}

/** In quotes it is not the name of any tool: a title must not pass as one that is allowed. */
function unknown(name: string, input: JsonObject): JudgedAcpCall {
  return { name: JSON.stringify(name), input };
}

function isUnspecific(kind: Json | undefined): boolean {
  return kind === undefined || kind === "other";
}

function toolOfKind(kind: Json | undefined): string | null {
  return own(BY_KIND, textIn(kind)) ?? null;
}

const BY_KIND: { readonly [kind: string]: string } = {
  execute: "Bash",
  read: "Read",
  search: "Grep",
  edit: "Edit",
  delete: "Edit",
  move: "Edit",
  fetch: "WebFetch",
};

/** Tools whose input is judged by what is in it, for programs that name them without a kind. */
const BY_NAME: { readonly [name: string]: string } = Object.fromEntries(
  "Bash Read NotebookRead LS Grep Glob Write Edit MultiEdit NotebookEdit"
    .split(" ")
    .map((name) => [name, name]),
);

const UNANNOUNCED: Announced = { first: {}, now: {} };

/** Programs that have a shape of their own for what they ask. */
const CODEX = "@agentclientprotocol/codex-acp";
const EARLIER_CODEX = "codex-acp";
const GEMINI = "gemini-cli";
const OPENCODE = "OpenCode";

/** The mode in which a program asks before it changes anything; null: it is in that mode, or has none that is known. */
export function modeToAsk(agent: string, modes: Json | undefined): string | null {
  const mode = own(ASKING_MODES, agent);
  const isThere = listIn(memberAt(modes, "availableModes")).some((one) => memberAt(one, "id") === mode);
  return mode === undefined || !isThere || memberAt(modes, "currentModeId") === mode ? null : mode;
}

/** By default, or by the user's own settings, some of them ask a model instead, or do not ask at all. */
const ASKING_MODES: { readonly [agent: string]: string } = {
  [CODEX]: "read-only",
  [EARLIER_CODEX]: "read-only",
  [GEMINI]: "default",
  "@zed-industries/claude-code-acp": "default",
  "@agentclientprotocol/claude-agent-acp": "default",
};

/**
 * `by`: what the name was taken from. `server`: the program says that it is a tool of a server. A title may be anything,
 * unless the program is known to put a name there. `spellings`: how the program may write the name of a tool that we handed
 * to it.
 */
type Tool = {
  readonly name: string;
  readonly input?: JsonObject;
  readonly by: "server" | "name" | "title" | "nothing";
  readonly spellings: (name: string) => readonly string[];
};

/** What cannot be taken apart in two ways: the name of a server has none of these signs. */
function plainSpellings(name: string): readonly string[] {
  const server = serverNamed(name) ?? "";
  const tool = name.slice(toolNameOf(server, "").length);
  return [name, ...["__", ".", "/", ": "].map((between) => server + between + tool)];
}

/** With one `_` between server and tool. */
function joined(name: string): string {
  return name.slice(MCP_PREFIX.length).replace("__", "_");
}

function untold(call: JsonObject): Tool {
  return { name: titleOf(call), by: "nothing", spellings: plainSpellings };
}

function toolOf(call: JsonObject, first: JsonObject, agent: string, asked: Json | undefined): Tool {
  if (agent === CODEX) return codexTool(call, first, asked);
  if (agent === EARLIER_CODEX) return earlierCodexTool(call, first);
  if (agent === GEMINI) return geminiTool(call);
  if (agent === OPENCODE) return openCodeTool(call, first);
  const names = [call, first].flatMap((said) =>
    [textIn(memberAt(said, "_meta", "claudeCode", "toolName")), textIn(said.name)].filter(
      (name) => name !== "",
    ),
  );
  const [name] = names;
  // A later title says what is done with the tool.
  if (name === undefined) return untold(first.title === undefined ? call : first);
  if (new Set(names).size > 1) return { ...untold(call), name: names.join(" or ") };
  const isOfServer = isUnspecific(call.kind) && serverNamed(name) !== null;
  return { name, by: isOfServer ? "server" : "name", spellings: plainSpellings };
}

/** Its first title is the name of the tool, `docs_search`, and it asks for a tool of a server under the same title. */
function openCodeTool(call: JsonObject, first: JsonObject): Tool {
  const name = textIn(first.title);
  if (call.kind !== "other" || name === "" || call.title !== name || (call.name ?? name) !== name)
    return untold(name === "" ? call : first);
  return { name, by: "title", spellings: (known) => [joined(known)] };
}

function titleOf({ title }: JsonObject): string {
  return textIn(title) || "an unnamed tool";
}

/** It marks what belongs to a server, and names server and tool before it asks. */
function codexTool(call: JsonObject, first: JsonObject, asked: Json | undefined): Tool {
  const isOfServer =
    memberAt(first, "_meta", "is_mcp_tool_call") === true && memberAt(asked, "is_mcp_tool_approval") === true;
  if (!isOfServer) return untold(call);
  const [server, tool] = [
    textIn(memberAt(first, "rawInput", "server")),
    textIn(memberAt(first, "rawInput", "tool")),
  ];
  return toolOfServer(server, tool, memberAt(first, "rawInput", "arguments"));
}

/** The same in other fields. */
function earlierCodexTool(call: JsonObject, first: JsonObject): Tool {
  const { kind, rawInput } = call;
  const isAsked = memberAt(rawInput, "request", "_meta", "codex_approval_kind") === "mcp_tool_call";
  const server = textIn(memberAt(rawInput, "server_name"));
  const isAnnounced = memberAt(first, "rawInput", "server") === server;
  if (kind !== undefined || !isAsked || server === "" || !isAnnounced) return untold(call);
  const tool = textIn(memberAt(first, "rawInput", "tool"));
  return toolOfServer(server, tool, memberAt(rawInput, "request", "_meta", "tool_params"));
}

/** A name that two servers could share is put in quotes. */
function toolOfServer(server: string, tool: string, said: Json | undefined): Tool {
  const name = toolNameOf(server, tool);
  const input = isObject(said) ? said : {};
  const isClear = isServerName(server);
  return { name: isClear ? name : JSON.stringify(name), input, by: "server", spellings: (known) => [known] };
}

/**
 * Its ids begin with the name of the tool, `mcp_docs_search`. The title of a tool of a server can be a text of the model.
 * A name that begins like ours for tools of servers is put in quotes.
 */
function geminiTool(call: JsonObject): Tool {
  const name = isUnspecific(call.kind) ? geminiName(textIn(call.toolCallId)) : "";
  if (!name.startsWith("mcp_")) return untold(call);
  const input = parseJsonObject(textIn(memberAt(listIn(call.content)[0], "content", "text"))) ?? {};
  const spellings = (known: string) => [`mcp_${joined(known)}`];
  return { name: name.startsWith(MCP_PREFIX) ? JSON.stringify(name) : name, input, by: "server", spellings };
}

/** `NAME-1794-1`, `NAME__NAME_1794_1` or `NAME__ID`. It is read from the end, as a name may have the same signs in it. */
function geminiName(id: string): string {
  if (id.length > LONGEST_ID) return "";
  const counted = /^(.+)-\d+-\d+$/s.exec(id) ?? /^(.+)__\1_\d+_\d+$/s.exec(id);
  return counted?.[1] ?? id.slice(0, Math.max(0, id.lastIndexOf("__")));
}

const LONGEST_ID = 400;

/** `allow_once` or nothing: an agent that was answered "always" would not ask again. */
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
export function acpTokens(response: JsonObject): {
  readonly inputTokens: number;
  readonly outputTokens: number;
} {
  const count = (name: string) => countIn(memberAt(response, "usage", name));
  const quota = (name: string) => countIn(memberAt(response, "_meta", "quota", "token_count", name));
  const input = count("inputTokens") + count("cachedReadTokens") + count("cachedWriteTokens");
  const output = count("outputTokens");
  return {
    inputTokens: input === 0 ? quota("input_tokens") : input,
    outputTokens: output === 0 ? quota("output_tokens") : output,
  };
}

/** The model of a session, where the agent says; else "". */
export function modelIn(session: JsonObject): string {
  const option = listIn(session.configOptions).find((one) => memberAt(one, "category") === "model");
  return textIn(memberAt(session, "models", "currentModelId")) || textIn(memberAt(option, "currentValue"));
}

/** `printed`: what the agent wrote to stderr. No line of what it says can be taken for one of ours. */
export function toAcpFault(error: unknown, printed = ""): Fault {
  const code: unknown = typeof error === "object" && error !== null && "code" in error ? error.code : null;
  const message = errorText(error);
  const data = typeof error === "object" && error !== null && "data" in error ? (error.data as Json) : null;
  const details = textIn(data) || textIn(memberAt(data, "details")) || textIn(memberAt(data, "message"));
  const whole = details === "" || message.includes(details) ? message : `${message}: ${details}`;
  const reason = shown(whole).replaceAll("\n", "\n  | ");
  const isAuth = code === -32000;
  const what = isAuth ? "The agent wants you to sign in first" : "The agent failed";
  const kind = isAuth ? "auth" : code === null ? "process" : "other";
  return { kind, message: withPrinted(`${what}: ${reason}`, printed) };
}

/** Every place that it names. `isRun`: a command does it, which is judged for itself. */
function onPaths(
  name: string,
  said: readonly JsonObject[],
  input: JsonObject,
  { isRun, isRegex }: { readonly isRun: boolean; readonly isRegex: boolean },
): readonly JudgedAcpCall[] {
  const { named, others } = placesIn(said);
  const isSearch = name === "Grep" || name === "Glob";
  // What does not say where cannot be judged: a path that is refused stands for it.
  const unsaid = isSearch && hasOnlyTerms(input) ? "." : "";
  const paths = new Set([...(named.length > 0 || isRun ? named : [unsaid]), ...others]);
  const globs = isSearch && !isRun ? globsIn(input, isRegex) : [];
  const field = name === "Glob" ? "pattern" : "glob";
  return [...paths].flatMap((path) =>
    globs.length === 0
      ? [{ name, input: { file_path: path } }]
      : globs.map((glob) => ({ name, input: { file_path: path, [field]: glob } })),
  );
}
