/** The little of the Model Context Protocol that it takes to hand tools of ours to an agent. */
import type { ToolSpec } from "../../engine/ports.ts";
import type { CallResult } from "../../flow/event.ts";
import { isObject, own, type Json, type JsonObject } from "../../flow/json.ts";
import { toDraft07 } from "../draft-07.ts";
import { textIn } from "../untyped.ts";
import { errorText } from "../../flow/text/harmless.ts";

export type Served = {
  readonly server: string;
  /** By the names that the agent calls them by. */
  readonly tools: readonly ToolSpec[];
  readonly call: (name: string, input: JsonObject) => Promise<Pick<CallResult, "ok" | "content">>;
};

/** What is said to a message of the agent; null: it wants no answer. Does not reject. */
export async function replyTo(message: Json, served: Served): Promise<JsonObject | null> {
  const id = isObject(message) ? own(message, "id") : undefined;
  if (!isObject(message) || id === undefined) return null;
  const method = textIn(message.method);
  const result = await answer(method, isObject(message.params) ? message.params : {}, served);
  const unknown = { code: -32_601, message: `There is no ${method}.` };
  return { jsonrpc: "2.0", id, ...(result === null ? { error: unknown } : { result }) };
}

/** null: nothing that is asked here. */
async function answer(
  method: string,
  { protocolVersion = "2025-06-18", name, arguments: input = {} }: JsonObject,
  { server, tools, call }: Served,
): Promise<JsonObject | null> {
  switch (method) {
    case "initialize":
      return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: server, version: "1" } };
    case "ping":
      return {};
    case "tools/list":
      return { tools: tools.map(toListed) };
    case "tools/call": {
      if (!isObject(input)) return said(false, "The input is not an object.");
      const { ok, content } = await call(textIn(name), input).catch(toFailure);
      return said(ok, content);
    }
    default:
      return null;
  }
}

function toListed({ name, description, input }: ToolSpec): JsonObject {
  return { name, description, inputSchema: toDraft07(input) };
}

function toFailure(error: unknown): Pick<CallResult, "ok" | "content"> {
  return { ok: false, content: errorText(error) };
}

function said(ok: boolean, text: string): JsonObject {
  return { content: [{ type: "text", text }], isError: !ok };
}
