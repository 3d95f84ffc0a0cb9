/** What an agent says over the Agent Client Protocol, in our words. Pure. */
import type { ToolSpec } from "../engine/ports.ts";
import type { Fault } from "../flow/event.ts";
import { isObject, own, type Json, type JsonObject } from "../flow/json.ts";
import { at, listIn, numberIn, textIn } from "./untyped.ts";

/** The one tool of the server that we hand to an agent, for its answer. */
export const SERVER = "lockstep";
export const SUBMIT = "submit";

/** One prompt so far. */
export type Heard = {
  readonly text: string;
  /** The protocol does not tell where a response ends: each tool call counts as one. */
  readonly calls: ReadonlySet<string>;
  /** Money of the whole session. */
  readonly costUsd: number | null;
};

export const NOTHING: Heard = { text: "", calls: new Set(), costUsd: null };

export function hear(heard: Heard, update: JsonObject): Heard {
  switch (update.sessionUpdate) {
    case "agent_message_chunk":
      return { ...heard, text: heard.text + textIn(at(update, "content", "text")) };
    case "tool_call":
      return { ...heard, calls: new Set([...heard.calls, textIn(update.toolCallId)]) };
    case "usage_update": {
      const { cost } = update;
      const isUsd = isObject(cost) && cost.currency === "USD" && typeof cost.amount === "number";
      return isUsd ? { ...heard, costUsd: cost.amount as number } : heard;
    }
    default:
      return heard;
  }
}

export type Judged = { readonly name: string; readonly input: JsonObject };

/**
 * What an agent asks leave for, as calls that our gate knows: each must pass. Tools are told apart by their kind, as
 * every agent has names of its own. An empty list: our own tool, which needs no leave.
 */
export function toCalls(toolCall: JsonObject, served: readonly ToolSpec[] = []): readonly Judged[] {
  const { kind, rawInput, locations } = toolCall;
  const input = isObject(rawInput) ? rawInput : {};
  if (isSubmit(toolCall)) return [];
  const ours = served.find(({ name }) => plain(name) === plain(nameOf(toolCall)));
  if (ours !== undefined) return [{ name: ours.name, input }];
  switch (kind) {
    case "execute":
      return [{ name: "Bash", input: { command: commandOf(input) } }];
    case "read":
      return onPaths("Read", input, locations);
    case "search":
      return onPaths("Grep", input, locations);
    case "edit":
    case "delete":
    case "move":
      return onPaths("Edit", input, locations);
    case "fetch":
      return [{ name: "WebFetch", input }];
    default:
      return [{ name: nameOf(toolCall), input }];
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

/** Tokens, where the agent tells them. */
export function tokensOf(response: JsonObject): {
  readonly inputTokens: number;
  readonly outputTokens: number;
} {
  const figure = (name: string) => numberIn(at(response, "usage", name));
  return {
    inputTokens: figure("inputTokens") + figure("cachedReadTokens") + figure("cachedWriteTokens"),
    outputTokens: figure("outputTokens"),
  };
}

export function toFault(error: unknown): Fault {
  const code: unknown = typeof error === "object" && error !== null && "code" in error ? error.code : null;
  const message = error instanceof Error ? error.message : String(error);
  if (code === -32000) {
    return { kind: "auth", message: `The agent wants you to sign in first: ${message}` };
  }
  return { kind: code === null ? "process" : "other", message: `The agent failed: ${message}` };
}

function onPaths(name: string, input: JsonObject, locations: Json | undefined): readonly Judged[] {
  const paths = [
    ...["file_path", "path", "abs_path", "notebook_path"].map((field) => own(input, field)),
    ...listIn(locations).map((place) => (isObject(place) ? place.path : undefined)),
  ].filter((path) => typeof path === "string");
  // A change that does not say where cannot be judged: a path that is refused stands for it.
  const known = paths.length > 0 || name !== "Edit" ? paths : [""];
  return known.length === 0
    ? [{ name, input: {} }]
    : known.map((path) => ({ name, input: { file_path: path } }));
}

function commandOf({ command }: JsonObject): Json {
  if (!Array.isArray(command)) return command ?? null;
  const words = listIn(command).map(textIn);
  // `bash -lc LINE` is the line; other words are put together again.
  const isShell = words.length === 3 && /(?:^|\/)(?:ba|z)?sh$/.test(words[0]!) && /^-l?c$/.test(words[1]!);
  return isShell ? words[2]! : words.join(" ");
}

function nameOf({ name, title }: JsonObject): string {
  return typeof name === "string" ? name : typeof title === "string" ? title : "an unnamed tool";
}

/** `mcp__docs__search`, `docs: search` and `docs.search` are the same tool. */
function plain(name: string): string {
  return name.replace(/^mcp__/, "").replaceAll(/[^A-Za-z0-9-]+/g, "_");
}

function isSubmit(toolCall: JsonObject): boolean {
  const { kind } = toolCall;
  const isPlain = kind === undefined || kind === null || kind === "other";
  return isPlain && OUR_NAMES.test(nameOf(toolCall));
}

const OUR_NAMES = new RegExp(`^(?:mcp__)?${SERVER}(?:__|[.:/ ]|: )${SUBMIT}$`);
