/** `lockstep mcp`: serves the agents of the project to an MCP client, until it goes or the server is interrupted. */
import {
  serveOverHttp,
  serveOverStdio,
  TOKEN_VARIABLE,
  type McpOptions,
  type McpSettings,
} from "../../mcp/index.ts";
import { loadNamed, parametersOf } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CallOf } from "../commands.ts";
import { resumeCommand } from "../conduct.ts";
import { renderMermaid } from "../graph/graph-mermaid.ts";
import { isDrawable } from "../graph/graph.ts";
import { renderText } from "../graph/graph-text.ts";
import { nextAction } from "../text/report.ts";
import { createPaint } from "../text/text.ts";
import { versionText } from "../version.ts";

/** A client that gives up after a minute must have an answer by then. */
const WAIT_MS = 45_000;
const WIDTH = 120;

export async function serveMcp(call: CallOf<"mcp">): Promise<number> {
  const { flags, host } = call;
  if (!flags.http && flags.port !== undefined) throw new UsageError("--port only works with --http.");
  if (flags.script !== undefined && (flags.model ?? flags.backend) !== undefined)
    throw new UsageError("--script replaces the model: leave out --model and --backend.");
  if (!flags.http && flags.json)
    throw new UsageError("--json only works with --http: without it stdout carries the protocol.");
  await requireModel(call);
  if (flags.http) return await serveHttp(call);
  if (host.stdin.isTTY)
    call.screen.tell(
      "Waiting for an MCP client on stdin. Let the client start this command; Ctrl-C ends it.",
    );
  await serveOverStdio(optionsOf(call), host.stdin.open(), host.interruption());
  return 0;
}

/** A script or a model that no run could begin with is refused before any client is served. */
export async function requireModel({
  flags,
  cwd,
  host: { env },
}: {
  readonly flags: Pick<CallOf<"mcp">["flags"], "script" | "model" | "backend">;
  readonly cwd: string;
  readonly host: Pick<CallOf<"mcp">["host"], "env">;
}): Promise<void> {
  const { script, model, backend } = flags;
  if (script !== undefined) {
    const [{ readGiven }, { parseScript }] = await Promise.all([
      import("../given-file.ts"),
      import("../../run/index.ts"),
    ]);
    await parseScript(readGiven({ cwd }, script, "SCRIPT_INVALID"), script);
  }
  if (model === undefined) return;
  const [{ readConfig }, { findModel }] = await Promise.all([
    import("../../run/world/config.ts"),
    import("../../run/world/models.ts"),
  ]);
  const config = readConfig(env);
  // Coding agents have names of their own for models.
  if ((backend ?? config.defaultBackend ?? "ai-sdk") === "ai-sdk") findModel(model, { config, env });
}

async function serveHttp(call: CallOf<"mcp">): Promise<number> {
  const { flags, screen, host } = call;
  const { url, port, token, close } = await serveOverHttp(optionsOf(call), flags.port ?? 0);
  try {
    if (flags.json) screen.document({ v: 1, url, port, token });
    else screen.print(`${url}\nAuthorization: Bearer ${token ?? `$${TOKEN_VARIABLE}`}`);
    screen.tell("Serving until Ctrl-C.");
    const signal = host.interruption();
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve(), { once: true });
    if (signal.aborted) resolve();
    await promise;
    return 0;
  } finally {
    await close();
  }
}

function optionsOf(call: CallOf<"mcp">): McpOptions {
  const { host, cwd, stateDir, typed } = call;
  return {
    cwd,
    stateDir,
    env: host.env,
    version: versionText(false),
    settings: settingsOf(call),
    typed,
    next: (shown) => nextAction(shown, resumeCommand(call, shown)),
    draw: (outline, format) =>
      format === "text" && isDrawable(outline)
        ? renderText(outline, WIDTH, createPaint(false))
        : renderMermaid(outline),
    knowledge: {
      program: [process.execPath, process.argv[1] ?? ""],
      load: async (name, files) => await loadNamed(name, cwd, files),
      parametersOf,
    },
  };
}

const STARTING = ["script", "model", "backend"];
const DRIVING = [
  "sandbox",
  "network",
  "max-turns",
  "max-tokens",
  "max-cost",
  "max-time",
  "max",
  "allow-unmetered",
];

function settingsOf({ flags, written }: CallOf<"mcp">): McpSettings {
  const all: { readonly [name: string]: readonly string[] } = written;
  const given = (names: readonly string[]) =>
    names.flatMap((name) =>
      (all[name] ?? []).map((value) => (name === "allow-unmetered" ? `--${name}` : `--${name}=${value}`)),
    );
  return {
    starting: given(STARTING),
    driving: given(DRIVING),
    onPermission: flags["on-permission"] ?? "halt",
    waitSeconds: (flags["reply-within"] ?? WAIT_MS) / 1000,
  };
}
