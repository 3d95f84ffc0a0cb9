/** `lockstep mcp`: the agents of a project as tools of an MCP server, over stdio or over HTTP on loopback. */
import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { createRedactor } from "../boundaries/redact/redact.ts";
import { errorText } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { findProject, recordPlace } from "../run/world/project.ts";
import { secretsOf } from "../run/world/secrets.ts";
import { createAgentFiles } from "../serve/agent-files.ts";
import type { CommandKnowledge } from "../serve/command.ts";
import { openDoor } from "../serve/door.ts";
import { createDriver } from "../serve/drive.ts";
import type { McpGround } from "./ground.ts";
import { MCP_PATH } from "./guard.ts";
import { createMcpHttp } from "./http.ts";
import { loadSdk, loadStdio, type SdkServer } from "./sdk.ts";
import { createSdkServer, createServing, type Serving } from "./serving.ts";
import { watchTools } from "./watch.ts";

export type { McpSettings } from "./ground.ts";

export type McpOptions = Pick<McpGround, "cwd" | "env" | "settings" | "draw" | "typed" | "next"> & {
  readonly stateDir?: string | undefined;
  readonly version: string;
  readonly knowledge: CommandKnowledge;
};

/** The variable that holds the token of the server, where the user sets one. No run is given it. */
export const TOKEN_VARIABLE = "LOCKSTEP_MCP_TOKEN";

type Opened = {
  readonly serving: Serving;
  /** Calls that wait for a run are answered now. */
  readonly stop: () => void;
  readonly close: () => Promise<void>;
};

/** MCP_UNAVAILABLE where the SDK is not installed. */
async function open(options: McpOptions): Promise<Opened> {
  const { cwd, stateDir, version, knowledge, settings, draw, typed, next } = options;
  const { [TOKEN_VARIABLE]: token, ...env } = options.env;
  const sdk = await loadSdk(env);
  const project = findProject(cwd, stateDir, env);
  const closing = new AbortController();
  const door = openDoor(recordPlace(project), env);
  const { program, load, parametersOf } = knowledge;
  const { value: redact } = createRedactor(() => [
    ...secretsOf({ env, cwd }),
    ...(token === undefined ? [] : [token]),
  ]);
  const ground: McpGround = {
    project,
    cwd,
    env,
    settings,
    journal: door.journal,
    agents: createAgentFiles(project, load),
    parametersOf,
    draw,
    driver: createDriver({ program, cwd, stateFlag: stateDir, env }),
    typed,
    next,
    redact,
    signal: closing.signal,
  };
  return {
    serving: createServing(sdk, ground, version),
    stop: () => closing.abort(),
    close: door.close,
  };
}

/** Serves the one client at the other end of stdin and stdout until it goes, or until the signal. */
export async function serveOverStdio(
  options: McpOptions,
  stdin: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<void> {
  const { serving, stop, close } = await open(options);
  const { serveStdio } = await loadStdio(serving.ground.env);
  const gone = Promise.withResolvers<void>();
  for (const over of ["end", "close", "error"]) stdin.once(over, () => gone.resolve());
  signal.addEventListener("abort", () => gone.resolve(), { once: true });
  const servers = new Set<SdkServer>();
  const handle = serveStdio(
    () => {
      const server = createSdkServer(serving, false);
      servers.add(server);
      return server;
    },
    { onerror: () => undefined },
  );
  watchTools(serving.ground, () => {
    for (const server of servers) void server.sendToolListChanged().catch(() => undefined);
  });
  if (signal.aborted) gone.resolve();
  await gone.promise;
  stop();
  await handle.close();
  await close();
}

export type OpenMcp = {
  readonly url: string;
  readonly port: number;
  /** null: it is the one that the user set. */
  readonly token: string | null;
  readonly close: () => Promise<void>;
};

/** `port`: 0 means any. PORT_TAKEN where it cannot be listened on. */
export async function serveOverHttp(options: McpOptions, port: number): Promise<OpenMcp> {
  const own = tokenOf(options.env);
  const token = own ?? randomBytes(32).toString("base64url");
  const { serving, stop, close } = await open(options);
  let hosts: readonly string[] = [];
  const http = createMcpHttp(serving, () => ({ token, hosts }));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  http.server.once("error", reject);
  http.server.listen({ port, host: "127.0.0.1" }, resolve);
  await promise.catch(async (error: unknown) => {
    await close();
    const why = `The server cannot listen on 127.0.0.1:${port}: ${errorText(error)}. Choose another port with --port N.`;
    throw new RunnerError("PORT_TAKEN", why, { cause: error });
  });
  const { port: taken } = http.server.address() as AddressInfo;
  hosts = [`127.0.0.1:${taken}`, `localhost:${taken}`];
  watchTools(serving.ground, http.toolsChanged);
  return {
    url: `http://127.0.0.1:${taken}${MCP_PATH}`,
    port: taken,
    token: own === null ? token : null,
    close: async () => {
      stop();
      await http.close();
      await close();
    },
  };
}

/** The user's own, which stays the same; null: there is another one at every start. */
function tokenOf({ [TOKEN_VARIABLE]: given }: NodeJS.ProcessEnv): string | null {
  if (given === undefined || given === "") return null;
  if (/^[\w-]{32,200}$/.test(given)) return given;
  throw new RunnerError(
    "USAGE",
    `${TOKEN_VARIABLE} must have 32 to 200 letters, digits, "_" or "-". Make one: openssl rand -hex 32`,
  );
}
