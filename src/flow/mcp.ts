/** Servers of tools over the Model Context Protocol: how they are declared, what their tools are called, who may use any. */
import type { Step } from "./flow.ts";

export type McpServers = { readonly [name: string]: McpServer };

/** `${NAME}` in a value of `env` or `headers` stands for a variable of the user's environment. */
export type McpServer =
  | {
      readonly kind: "stdio";
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Values;
    }
  | { readonly kind: "http"; readonly url: string; readonly headers: Values };

type Values = { readonly [name: string]: string };

/** Its command line or its address. */
export function serverText(server: McpServer): string {
  return server.kind === "http" ? server.url : [server.command, ...server.args].join(" ");
}

/** What it is given: its headers or its environment. */
export function serverValues(server: McpServer): Values {
  return server.kind === "http" ? server.headers : server.env;
}

/** What begins so belongs to a server. */
export const MCP_PREFIX = "mcp__";

/** No `__` in it and no `_` at its ends: the name of a tool is then made from one server and one tool only. */
export function isServerName(name: string): boolean {
  return /^[A-Za-z0-9-](?:[A-Za-z0-9_-]*[A-Za-z0-9-])?$/.test(name) && !name.includes("__");
}

export function toolNameOf(server: string, tool: string): string {
  return `${MCP_PREFIX}${server}__${tool}`;
}

/** `mcp__docs__search` and `mcp__docs__*` → `docs`; null where a pattern names no single server. */
export function serverNamed(pattern: string): string | null {
  return /^mcp__([A-Za-z0-9-](?:[A-Za-z0-9-]|_(?!_))*)__/.exec(pattern)?.[1] ?? null;
}

/** Whether the step could be given some tool of the server. Which ones there are, only the server knows. */
export function mayUseServer({ by, tools: { allow, mode } }: Step, server: string): boolean {
  if (by.kind === "command") return false;
  const prefix = toolNameOf(server, "");
  return allow.some((pattern) => {
    const star = pattern.indexOf("*");
    if (star === -1) return pattern.startsWith(prefix);
    const head = pattern.slice(0, star);
    const fits = head.startsWith(prefix) || prefix.startsWith(head);
    // A tool that only reads must be listed by its whole name, and one that is not known by more than "*".
    if (mode === "plan" || mode === "default") return false;
    return fits && (mode === "bypassPermissions" || !/^\**$/.test(pattern));
  });
}

/** The servers that some step of the list could be given a tool of. */
export function serversInUse(
  servers: McpServers,
  steps: readonly Step[],
): readonly (readonly [string, McpServer])[] {
  return Object.entries(servers).filter(([name]) => steps.some((step) => mayUseServer(step, name)));
}

/** The variables that the values stand for, in order. */
export function variablesIn(values: Values): readonly string[] {
  return Object.values(values).flatMap((value) =>
    [...value.matchAll(ENV_REFERENCE)].map((match) => match[1]!),
  );
}

export const ENV_REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g;
