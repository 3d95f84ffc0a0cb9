/**
 * Running a cloned project's agent means running its commands and modules, and asking the addresses it names. That is
 * done only once somebody who owns this machine said so: for exactly these, in exactly this place.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import type { CommandCheck, Flow, Module } from "../flow/flow.ts";
import { handlerOf, namesIssue } from "../flow/handlers.ts";
import { canonicalJson, own } from "../flow/json.ts";
import type { McpServer } from "../flow/mcp.ts";
import { partsOf } from "../flow/rules.ts";
import type { Actions } from "../flow/settings.ts";
import { configFolder } from "./project.ts";

export type TrustOptions = {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the commands of the run will be confined. */
  readonly confined?: boolean;
  /** A digest given on the command line. */
  readonly digest?: string;
  /** Asks the person at the terminal; absent when there is nobody. */
  readonly confirm?: (question: TrustQuestion) => Promise<boolean>;
};

export type TrustQuestion = {
  readonly root: string;
  readonly digest: string;
  readonly commands: readonly string[];
  /** What is new and what is gone since this agent was last trusted here; null: it never was. */
  readonly change: Change | null;
};

export type Change = { readonly added: readonly string[]; readonly removed: readonly string[] };

/** Returns when the flow's commands may run, NOT_TRUSTED otherwise. A flow without commands needs no trust. */
export async function requireTrust(flow: Flow, options: TrustOptions): Promise<void> {
  const commands = executables(flow);
  if (commands.length === 0 || options.env.LOCKSTEP_TRUST === "all") return;
  const digest = createHash("sha256").update(canonicalJson(commands)).digest("hex").slice(0, 16);
  if (options.digest === digest) return;
  const root = realpathSync.native(options.root);
  const folder = configFolder(options.env);
  const store = folder === null ? null : join(folder, "trust.json");
  const trusted = store === null ? new Map<string, readonly Trusted[]>() : readTrust(store);
  const entries = trusted.get(root) ?? [];
  if (entries.some((entry) => entry.digest === digest)) return;
  const change = changeSince(entries, flow.agent, commands);
  if (options.confirm !== undefined && (await options.confirm({ root, digest, commands, change }))) {
    trusted.set(root, [...entries, { digest, agent: flow.agent, commands }]);
    if (store !== null) writeTrust(store, trusted);
    return;
  }
  throw new RunnerError(
    "NOT_TRUSTED",
    `Agent "${flow.agent}" runs code of this project or asks addresses that it names, and they are not trusted yet:\n` +
      commandLines(commands, change).join("\n") +
      `\nRead them, then pass --trust ${digest}, or answer the question on a terminal. ` +
      `On a throw-away machine LOCKSTEP_TRUST=all in the environment trusts everything.`,
  );
}

/** Everything that the flow itself makes the machine run or ask: command lines, modules by their content, addresses. */
function executables(flow: Flow): readonly string[] {
  const known = listed.get(flow);
  if (known !== undefined) return known;
  const found = lookFor(flow);
  listed.set(flow, found);
  return found;
}

const listed = new WeakMap<Flow, readonly string[]>();

function lookFor(flow: Flow): readonly string[] {
  const checks = Object.values(flow.checks).flatMap((check) =>
    check.kind === "command" ? [withValues(check)] : [],
  );
  const steps = Object.values(flow.steps).flatMap(({ by }) =>
    by.kind === "command" ? [[by.command, ...by.args].map(word).join(" ")] : [],
  );
  const outside = partsOf(flow.stop).flatMap((part) => {
    if (part.kind === "module") return [moduleLine(part.module)];
    return part.kind === "state" && part.resource.kind === "api" ? [`GET ${part.resource.url}`] : [];
  });
  const acts = actionLines(flow.settings.actions);
  const servers = Object.entries(flow.settings.mcpServers ?? {}).map(serverLine);
  const hooks = flow.hooks === undefined ? [] : [moduleLine(flow.hooks)];
  // A project that takes its own reins off is asked about like one that runs something.
  const free = Object.values(flow.steps).flatMap(({ id, by, tools }) =>
    by.kind === "model" && tools.mode === "bypassPermissions"
      ? [`permissionMode bypassPermissions in ${id}`]
      : [],
  );
  return [...new Set([...checks, ...steps, ...outside, ...servers, ...hooks, ...acts, ...free])].toSorted();
}

/** Code of the project that answers set off; and the leave to act on issues that the run is not about. */
function actionLines({ enabled, types, modules = {}, otherIssues, handlers }: Actions): readonly string[] {
  if (!enabled) return [];
  const run = types.flatMap((type) => own(modules, type) ?? []).map(moduleLine);
  const anywhere = types.filter((type) => otherIssues && namesIssue(handlerOf({ handlers }, type)));
  return [...run, ...anywhere.map((type) => `blocks of the type ${JSON.stringify(type)} on any issue`)];
}

function moduleLine({ file, digest }: Module): string {
  return `node ${file} (sha256 ${digest})`;
}

/** With the variables of yours that it is given. */
function serverLine([name, server]: readonly [string, McpServer]): string {
  const values = (all: { readonly [name: string]: string }) =>
    Object.entries(all).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const what =
    server.kind === "http"
      ? ["POST", word(server.url), ...values(server.headers)]
      : [...values(server.env), ...[server.command, ...server.args].map(word)];
  return `mcp ${name}: ${what.join(" ")}`;
}

/** As a shell would be told: the values first, since they decide with the line what is done. */
function withValues({ env, command }: CommandCheck): string {
  const values = Object.entries(env).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [...values, command].join(" ");
}

/** One line each; since the last time, `+` is new and `-` is gone. */
export function commandLines(commands: readonly string[], change: Change | null): readonly string[] {
  if (change === null) return commands.map((command) => `  ${command}`);
  return [
    ...change.removed.map((command) => `- ${command}`),
    ...commands.map((command) => `${change.added.includes(command) ? "+" : " "} ${command}`),
  ];
}

/** So that two arguments never look like one. */
function word(text: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(text) ? text : JSON.stringify(text);
}

function changeSince(entries: readonly Trusted[], agent: string, commands: readonly string[]): Change | null {
  const before = entries.findLast((entry) => entry.agent === agent)?.commands;
  if (before === undefined) return null;
  return {
    added: commands.filter((command) => !before.includes(command)),
    removed: before.filter((command) => !commands.includes(command)),
  };
}

/** What somebody said yes to. An older store has the digests alone. */
type Trusted = {
  readonly digest: string;
  readonly agent?: string;
  readonly commands?: readonly string[];
};

function readTrust(file: string): Map<string, readonly Trusted[]> {
  if (!existsSync(file)) return new Map();
  try {
    const stored = JSON.parse(readFileSync(file, "utf8")) as Record<string, (string | Trusted)[]>;
    const entries = Object.entries(stored).map(([root, trusted]) => {
      const all = trusted.map((one) => (typeof one === "string" ? { digest: one } : one));
      return [root, all] as const;
    });
    return new Map(entries);
  } catch (cause) {
    throw new RunnerError("NOT_TRUSTED", `The trust store ${file} cannot be read; mend or remove it.`, {
      cause,
    });
  }
}

function writeTrust(file: string, trusted: Map<string, readonly Trusted[]>): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify(Object.fromEntries(trusted), null, 2), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
