/** Tools that only we have, served to Claude Code from this process: the little of the Model Context Protocol it takes. */
import type { RunRequest, ToolSpec } from "../engine/ports.ts";
import { isObject, type Json, type JsonObject } from "../flow/json.ts";

/** What the SDK connects us to. */
type Transport = {
  onmessage?: (message: Json) => void;
  readonly start?: () => Promise<void>;
  readonly send: (message: JsonObject) => Promise<void>;
};

/** As the SDK takes it: it asks nothing of an instance but to be connected. */
type Server = {
  readonly type: "sdk";
  readonly name: string;
  readonly instance: { readonly connect: (transport: Transport) => Promise<void> };
};

/** A tool with the name `mcp__SERVER__TOOL` is ours to run; Claude Code has the others itself. */
export function isServed({ name }: Pick<ToolSpec, "name">): boolean {
  return SERVED.test(name);
}

const SERVED = /^mcp__([a-z0-9]+)__(\w+)$/;

export function serversFor({ tools, call }: RunRequest): { readonly [name: string]: Server } {
  if (call === undefined) return {};
  const names = new Set(tools.flatMap(({ name }) => SERVED.exec(name)?.[1] ?? []));
  return Object.fromEntries(
    [...names].map((name) => {
      const own = tools.filter((tool) => SERVED.exec(tool.name)?.[1] === name);
      return [
        name,
        { type: "sdk", name, instance: { connect: (transport) => connect(transport, own, call) } },
      ];
    }),
  );
}

type RunTool = NonNullable<RunRequest["call"]>;

async function connect(transport: Transport, tools: readonly ToolSpec[], call: RunTool): Promise<void> {
  const onmessage = (message: Json) => {
    if (!isObject(message) || message["id"] === undefined) return;
    const { id } = message;
    void answer(message, tools, call)
      .then((result) => result ?? Promise.reject(new Error("not known here")))
      .then((result) => transport.send({ jsonrpc: "2.0", id, result }))
      .catch((error: unknown) =>
        transport.send({ jsonrpc: "2.0", id, error: { code: -32603, message: String(error) } }),
      )
      // Whoever asked is gone.
      .catch(() => undefined);
  };
  Object.assign(transport, { onmessage });
  await transport.start?.();
}

/** null: nothing that is asked here. */
async function answer(
  message: JsonObject,
  tools: readonly ToolSpec[],
  call: RunTool,
): Promise<JsonObject | null> {
  const { method } = message;
  const params = isObject(message["params"]) ? message["params"] : {};
  if (method === "ping") return {};
  if (method === "initialize") {
    const protocolVersion = params["protocolVersion"] ?? "2025-06-18";
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "lockstep", version: "1" } };
  }
  if (method === "tools/list") {
    return {
      tools: tools.map(({ name, description, input }) => ({
        name: shortName(name),
        description,
        inputSchema: input,
      })),
    };
  }
  const tool = tools.find(({ name }) => method === "tools/call" && shortName(name) === params["name"]);
  if (tool === undefined) return null;
  const input = isObject(params["arguments"]) ? params["arguments"] : {};
  const { ok, content } = await call({ name: tool.name, input });
  return { content: [{ type: "text", text: content }], isError: !ok };
}

function shortName(name: string): string {
  return SERVED.exec(name)?.[2] ?? name;
}
