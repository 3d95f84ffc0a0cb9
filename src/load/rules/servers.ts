/** Rules about servers of tools: declared so that they can be used, used by a step, and given no secrets. */
import { mayUseServer, MCP_PREFIX, ENV_REFERENCE, serverNamed, toolNameOf } from "../../flow/mcp.ts";
import { faultOf, isUsableName, type McpSource } from "../agent/mcp.ts";
import type { Machine } from "../stages/machine-parts.ts";
import { escapeSegment } from "../../flow/json-pointer.ts";
import { didYouMean } from "../../flow/text/suggest.ts";
import { atPart, type At, type LoadedFlow } from "./loaded.ts";
import { error, warning, type Codes, type Finding, type Rules, type Tell } from "./rule.ts";

export const rules: Rules = { all: [checkServers, checkGitHubTool], stage: [checkStageTools] };

export const codes = {
  "MCP-NAME": error(
    "server name",
    "The server name is part of its tools' names, which must be unique and valid for every model.",
  ),
  "MCP-SERVER": error("MCP server", "A server needs either a command to start or an address to connect to."),
  "MCP-SECRET": error(
    "secret in a file",
    "An agent's files are shared, recorded with every run and displayed, so a key in them does not stay secret.",
  ),
  "MCP-UNDECLARED": warning(
    "tool of an undeclared server",
    "Only servers that the agent declares are started, so tools of other servers are never available.",
  ),
  "MCP-UNUSED": warning(
    "unused server",
    "A server is started only when a step may use its tools, so this one is never started.",
  ),
  "GITHUB-TOOL-OFF": warning(
    "GitHub tool while GitHub is disabled",
    "When GitHub is disabled, no step is offered the tool that reads it.",
  ),
} satisfies Codes;

const ALLOWED = ["settings", "runner", "boundaries", "allowedTools"] as const;

function checkServers(loaded: LoadedFlow, tell: Tell): void {
  const known = new Set<string>();
  const steps = [...loaded.steps.values()].filter(({ id }) => loaded.live?.has(id) ?? true);
  for (const { document, pointer, servers } of loaded.servers) {
    for (const [name, source] of servers) {
      const place = { document, pointer: `${pointer}/${escapeSegment(name)}` };
      checkServer(name, source, place, known, tell);
      known.add(name);
      if (!isUsableName(name) || steps.some((step) => mayUseServer(step, name))) continue;
      tell({
        code: "MCP-UNUSED",
        ...place,
        message: `No step may use a tool of the server "${name}", so it is never started.`,
        fix: `Allow its tools by name, for example ${toolNameOf(name, "*")} (a read-only step needs the full name of each tool), or remove the server.`,
      });
    }
  }
  for (const [index, pattern] of loaded.agent.runner.boundaries.allowedTools.entries()) {
    const name = serverNamed(pattern);
    if (name === null || known.has(name) || pattern === BUILT_IN) continue;
    tell({
      code: "MCP-UNDECLARED",
      ...atPart(loaded, ...ALLOWED, String(index)),
      message: `"${pattern}" names a tool of the server "${name}", which the agent does not declare.${didYouMean(name, known)}`,
      fix: `Declare "${name}" in mcpServers, or remove the name.`,
    });
  }
}

/** A tool of ours that is offered only where GitHub is used. A name of earlier days that many lists of tools hold. */
const BUILT_IN = `${MCP_PREFIX}github__github_read`;

function checkGitHubTool(loaded: LoadedFlow, tell: Tell): void {
  const { boundaries, integrations } = loaded.agent.runner;
  const index = boundaries.allowedTools.indexOf(BUILT_IN);
  if (!integrations.github.enabled && index !== -1)
    tell(notOffered(atPart(loaded, ...ALLOWED, String(index))));
}

/** A stage whose tool is not there is not started. */
function checkStageTools(machine: Machine, tell: Tell): void {
  if (machine.agent.runner.integrations.github.enabled) return;
  for (const [id, { source }] of machine.stages) {
    const index = source.allowedTools?.indexOf(BUILT_IN) ?? -1;
    if (index === -1) continue;
    tell({ ...notOffered(atPart(machine, "steps", id, "tools", "allow", String(index))), severity: "error" });
  }
}

function notOffered(place: At): Finding {
  return {
    code: "GITHUB-TOOL-OFF",
    ...place,
    message: `"${BUILT_IN}" is allowed, but no step is offered it: runner.integrations.github.enabled is false.`,
    fix: "Remove the name, or enable GitHub.",
  };
}

function checkServer(
  name: string,
  source: McpSource,
  place: At,
  known: ReadonlySet<string>,
  tell: Tell,
): void {
  if (!isUsableName(name)) {
    tell({
      code: "MCP-NAME",
      ...place,
      message: `"${name}" is not a valid server name.`,
      fix: 'Use letters, digits, "-" and single "_" within, such as docs or issue-tracker.',
    });
  }
  if (known.has(name)) {
    tell({
      code: "MCP-NAME",
      ...place,
      message: `The server "${name}" is declared in agent.json already.`,
      fix: "Give one of them another name, or remove it.",
    });
  }
  const fault = faultOf(source);
  if (fault !== null) {
    const [key, why, fix] = fault;
    tell({
      code: "MCP-SERVER",
      document: place.document,
      pointer: key === "" ? place.pointer : `${place.pointer}/${key}`,
      message: `The server "${name}" cannot be used: ${why}.`,
      fix,
    });
  }
  checkSecrets(name, source, place, tell);
}

function checkSecrets(name: string, source: McpSource, place: At, tell: Tell): void {
  const { args, env, headers, url = "" } = source;
  const query = URL.canParse(url) ? [...new URL(url).searchParams] : [];
  const found = [
    ...[...env].filter(isSecret).map(([key]) => `env/${escapeSegment(key)}`),
    ...[...headers].filter(isSecret).map(([key]) => `headers/${escapeSegment(key)}`),
    ...args.flatMap((arg, index) => (SHAPE.test(arg) ? [`args/${index}`] : [])),
    ...(query.some(isSecret) ? ["url"] : []),
  ];
  for (const key of found) {
    tell({
      code: "MCP-SECRET",
      document: place.document,
      pointer: `${place.pointer}/${key}`,
      message: `The server "${name}" seems to contain a secret in ${key.replace("/", ".")}.`,
      fix: "Write ${NAME} in env or headers, set that variable in your environment, and list its name in env of your own config.json.",
    });
  }
}

/** Called like a secret without being one of the user's variables, or with the shape of a key. */
function isSecret([name, value]: readonly [string, string]): boolean {
  if (SHAPE.test(value)) return true;
  return value !== "" && value.search(ENV_REFERENCE) === -1 && CALLED.test(name);
}

const CALLED =
  /(?:^|[_-])(?:token|secret|password|passwd|passphrase|credentials?|api[_-]?key|access[_-]?key|private[_-]?key|authorization|cookie)$/i;
const SHAPE =
  /\bgh[pousr]_\w{20}|\bgithub_pat_\w{20}|\bsk-[\w-]{16}|\bxox[abpr]-[\w-]{10}|\bAKIA[0-9A-Z]{16}\b|\bglpat-[\w-]{16}|\beyJ[\w-]{8,}\.[\w-]{8,}\.|-----BEGIN [A-Z ]*PRIVATE KEY/;
