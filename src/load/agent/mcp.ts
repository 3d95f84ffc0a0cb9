/** Servers of tools as files declare them: read, and held against what the steps may use. */
import type { Step, StepId } from "../../flow/flow.ts";
import { FORBIDDEN_NAMES } from "../../flow/json.ts";
import {
  isServerName,
  mayUseServer,
  MCP_PREFIX,
  REFERENCE,
  serverNamed,
  toolNameOf,
  type McpServer,
  type McpServers,
} from "../../flow/mcp.ts";
import { LOADER } from "../rules/values.ts";
import type { Code } from "../rules/codes.ts";
import type { Document } from "../text/document.ts";
import type { Finding } from "../rules/finding.ts";
import { escapeSegment } from "../text/places.ts";
import { list, map, object, text, type Reads } from "../text/shape.ts";
import { didYouMean } from "../text/suggest.ts";

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

type Source = NonNullable<Reads<typeof MCP_SERVERS> extends ReadonlyMap<string, infer T> ? T : never>;

/** Where servers are declared. */
export type Declared = {
  readonly document: Document;
  readonly pointer: string;
  readonly servers: ReadonlyMap<string, Source>;
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

function toServer({ command, args, env, url = "", headers }: Source): McpServer {
  return command === undefined
    ? { kind: "http", url, headers: Object.fromEntries(headers) }
    : { kind: "stdio", command, args, env: Object.fromEntries(env) };
}

/** The name by which coding agents know us. */
const OURS = "lockstep";

function isUsableName(name: string): boolean {
  return isServerName(name) && !FORBIDDEN_NAMES.has(name) && name !== OURS;
}

/** A list of tools, where it stands, and the steps it is for, if not for all. */
export type Listed = At & { readonly tools: readonly string[]; readonly steps?: readonly StepId[] };

/** `allowed` is the agent's own list of tools, and `steps` are those that a run can come to. */
export function* checkServers(
  places: readonly Declared[],
  allowed: Listed,
  steps: readonly Step[],
): Generator<Finding> {
  const known = new Set<string>();
  for (const { document, pointer, servers } of places) {
    for (const [name, source] of servers) {
      const at = { document, pointer: `${pointer}/${escapeSegment(name)}` };
      yield* checkServer(name, source, at, known);
      known.add(name);
      if (!isUsableName(name) || steps.some((step) => mayUseServer(step, name))) continue;
      yield {
        code: "MCP-UNUSED",
        ...at,
        message: `No step may use a tool of the server "${name}", so it is never started.`,
        fix: `Allow its tools by name, for example ${toolNameOf(name, "*")} (a read-only step needs the full name of each tool), or remove the server.`,
      };
    }
  }
  for (const [index, pattern] of allowed.tools.entries()) {
    const name = serverNamed(pattern);
    if (name === null || known.has(name) || pattern === BUILT_IN) continue;
    yield {
      code: "MCP-UNDECLARED",
      document: allowed.document,
      pointer: `${allowed.pointer}/${index}`,
      message: `"${pattern}" names a tool of the server "${name}", which the agent does not declare.${didYouMean(name, known)}`,
      fix: `Declare "${name}" in mcpServers, or remove the name.`,
    };
  }
}

/** A tool of ours that is offered only where GitHub is used. */
export function* checkGitHubTool(tools: readonly string[], at: Omit<Listed, "tools">): Generator<Finding> {
  const index = tools.indexOf(BUILT_IN);
  if (index === -1) return;
  yield {
    code: "GITHUB-TOOL-OFF",
    ...at,
    pointer: `${at.pointer}/${index}`,
    message: `"${BUILT_IN}" is allowed, but no step is offered it: runner.integrations.github.enabled is false.`,
    fix: "Remove the name, or enable GitHub.",
  };
}

/** A name of earlier days that many lists of tools hold. */
const BUILT_IN = `${MCP_PREFIX}github__github_read`;

type At = { readonly document: Document; readonly pointer: string };

function* checkServer(name: string, source: Source, at: At, known: ReadonlySet<string>): Generator<Finding> {
  if (!isUsableName(name)) {
    yield {
      code: "MCP-NAME",
      ...at,
      message: `"${name}" is not a valid server name.`,
      fix: 'Use letters, digits, "-" and single "_" within, such as docs or issue-tracker.',
    };
  }
  if (known.has(name)) {
    yield {
      code: "MCP-NAME",
      ...at,
      message: `The server "${name}" is declared in agent.json already.`,
      fix: "Give one of them another name, or remove it.",
    };
  }
  const fault = faultOf(source);
  if (fault !== null) {
    const [key, why, fix] = fault;
    yield {
      code: "MCP-SERVER",
      document: at.document,
      pointer: key === "" ? at.pointer : `${at.pointer}/${key}`,
      message: `The server "${name}" cannot be used: ${why}.`,
      fix,
    };
  }
  yield* checkSecrets(name, source, at);
}

type Fault = readonly [key: string, why: string, fix: string];

function faultOf({ type, command, url, env, headers }: Source): Fault | null {
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
  const [odd] = [...values].find(([, value]) => value.replaceAll(REFERENCE, "").includes("${")) ?? [];
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

function* checkSecrets(name: string, source: Source, at: At): Generator<Finding> {
  const { args, env, headers, url = "" } = source;
  const query = URL.canParse(url) ? [...new URL(url).searchParams] : [];
  const found = [
    ...[...env].filter(isSecret).map(([key]) => `env/${escapeSegment(key)}`),
    ...[...headers].filter(isSecret).map(([key]) => `headers/${escapeSegment(key)}`),
    ...args.flatMap((arg, index) => (SHAPE.test(arg) ? [`args/${index}`] : [])),
    ...(query.some(isSecret) ? ["url"] : []),
  ];
  const code: Code = "MCP-SECRET";
  for (const place of found) {
    yield {
      code,
      document: at.document,
      pointer: `${at.pointer}/${place}`,
      message: `The server "${name}" seems to contain a secret in ${place.replace("/", ".")}.`,
      fix: "Write ${NAME} in env or headers, set that variable in your environment, and list its name in env of your own config.json.",
    };
  }
}

/** Called like a secret without being one of the user's variables, or with the shape of a key. */
function isSecret([name, value]: readonly [string, string]): boolean {
  if (SHAPE.test(value)) return true;
  return value !== "" && value.search(REFERENCE) === -1 && CALLED.test(name);
}

const CALLED =
  /(?:^|[_-])(?:token|secret|password|passwd|passphrase|credentials?|api[_-]?key|access[_-]?key|private[_-]?key|authorization|cookie)$/i;
const SHAPE =
  /\bgh[pousr]_\w{20}|\bgithub_pat_\w{20}|\bsk-[\w-]{16}|\bxox[abpr]-[\w-]{10}|\bAKIA[0-9A-Z]{16}\b|\bglpat-[\w-]{16}|\beyJ[\w-]{8,}\.[\w-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY/;
