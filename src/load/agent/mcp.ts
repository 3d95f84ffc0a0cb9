/** Servers of tools as files declare them. */
import { FORBIDDEN_NAMES } from "../../flow/json.ts";
import { isServerName, ENV_REFERENCE, type McpServer, type McpServers } from "../../flow/mcp.ts";
import { LOADER } from "../rules/values.ts";
import type { Document } from "../text/document.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { list, map, object, text, type Reads } from "../../flow/shape.ts";

export const MCP_SERVERS = map(
  "MCP (Model Context Protocol) servers. Their tools are named mcp__<name>__<tool>, and must be allowed by that name.",
  object("A server: a program to start, or a URL to connect to.", {
    type: text("stdio for a program, http for a URL; derived from the other keys by default.", {
      enum: ["stdio", "http"],
    }),
    command: text("The program.", { filled: true }),
    args: list("Its arguments.", text("A word."), { default: [] }),
    env: map("Additional environment variables; ${NAME} is one of yours.", text("A value.")),
    url: text("The address, http or https.", { filled: true }),
    headers: map("Headers of each request; ${NAME} is a variable of your environment.", text("A value.")),
  }),
);

export type McpSource = NonNullable<
  Reads<typeof MCP_SERVERS> extends ReadonlyMap<string, infer T> ? T : never
>;

/** Where servers are declared. */
export type Declared = {
  readonly document: Document;
  readonly pointer: string;
  readonly servers: ReadonlyMap<string, McpSource>;
};

/** The servers of agent.json. */
export function serversOf(
  { runner }: { readonly runner: { readonly mcpServers: Declared["servers"] } },
  document: Document,
): Declared {
  return { document, pointer: "/runner/mcpServers", servers: runner.mcpServers };
}

/** Those that can be used; of one that is declared twice, the first. Nothing at all where none is declared. */
export function mcpSetting(places: readonly Declared[]): { readonly mcpServers?: McpServers } {
  const servers = new Map<string, McpServer>();
  for (const [name, source] of places.flatMap((place) => [...place.servers])) {
    if (faultOf(source) !== null || !isUsableName(name) || servers.has(name)) continue;
    servers.set(name, toServer(source));
  }
  return servers.size === 0 ? {} : { mcpServers: Object.fromEntries(servers) };
}

function toServer({ command, args, env, url = "", headers }: McpSource): McpServer {
  return command === undefined
    ? { kind: "http", url, headers: Object.fromEntries(headers) }
    : { kind: "stdio", command, args, env: Object.fromEntries(env) };
}

/** The name by which coding agents know us. */
const OURS = "lockstep";

export function isUsableName(name: string): boolean {
  return isServerName(name) && !FORBIDDEN_NAMES.has(name) && name !== OURS;
}

type Fault = readonly [key: string, why: string, fix: string];

export function faultOf({ type, command, url, env, headers }: McpSource): Fault | null {
  if (command === undefined && url === undefined)
    return ["", "it has neither a command nor a URL", 'Write "command", or "url".'];
  if (command !== undefined && url !== undefined)
    return ["", "it has both a command and a URL", 'Remove "command" or "url".'];
  if (type !== undefined && (type === "stdio") !== (command !== undefined))
    return [
      "type",
      `its type is "${type}", but it has ${command === undefined ? "a URL" : "a command"}`,
      'Remove "type".',
    ];
  if (url !== undefined && faultOfAddress(url) !== null)
    return ["url", faultOfAddress(url)!, "Write the URL in full, such as https://example.com/mcp."];
  const [values, key] = command === undefined ? ([headers, "headers"] as const) : ([env, "env"] as const);
  // The program that confines the server would obey these too, outside.
  const hidden = [...env.keys()].find((name) => LOADER.test(name));
  if (hidden !== undefined)
    return [`env/${escapeSegment(hidden)}`, `${hidden} changes how programs are loaded`, "Remove it."];
  const misnamed = [...values.keys()].find((name) => !NAMES[key].test(name));
  if (misnamed !== undefined)
    return [
      `${key}/${escapeSegment(misnamed)}`,
      `${JSON.stringify(misnamed)} is not a valid name for ${key}`,
      "Rename it.",
    ];
  const [odd] = [...values].find(([, value]) => value.replaceAll(ENV_REFERENCE, "").includes("${")) ?? [];
  if (odd === undefined) return null;
  return [
    `${key}/${escapeSegment(odd)}`,
    `the value of ${odd} contains a "\${" that is not followed by a variable name`,
    "Write ${NAME}: only a variable name is allowed in the braces.",
  ];
}

const NAMES = { env: /^[A-Za-z_][A-Za-z0-9_]*$/, headers: /^[A-Za-z0-9_-]+$/ } as const;

function faultOfAddress(url: string): string | null {
  if (!URL.canParse(url) || !/^https?:\/\//i.test(url)) return "its URL is not http or https";
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") return "its URL contains a user name or a password";
  return url.includes("${") ? "its URL contains a variable" : null;
}
