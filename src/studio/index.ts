/** The studio: a local web page over the journal of one project. It only looks, and what it starts is the command itself. */
import { createHash, randomBytes } from "node:crypto";
import { accessSync, constants, existsSync } from "node:fs";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { createRedactor } from "../boundaries/redact/redact.ts";
import { errorText } from "../flow/text/harmless.ts";
import { RunnerError } from "../run/errors.ts";
import { findProject, recordPlace } from "../run/world/project.ts";
import { secretsOf } from "../run/world/secrets.ts";
import { openAssets } from "./assets.ts";
import type { CommandKnowledge } from "../serve/command.ts";
import { createDesk, withFileNews } from "./desk.ts";
import { openDoor } from "../serve/door.ts";
import { createNews } from "./news.ts";
import type { Studio } from "./route.ts";
import { routesOf } from "./routes.ts";
import { createStudioServer, type ServedStudio } from "./server.ts";
import { createShelf } from "./shelf.ts";
import { createStreams } from "./streams.ts";

export type StudioOptions = {
  readonly cwd: string;
  readonly stateDir?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  /** How this user types the command. */
  readonly command: string;
  /** The folder was named on the command line, so a command that somebody pastes has to name it too. */
  readonly isCwdGiven?: boolean;
  readonly knowledge: CommandKnowledge;
  /** Absent: one that follows from the project's folder, or the next free one. 0: any. */
  readonly port?: number | undefined;
  /** Absent: 127.0.0.1. Anything else that is not loopback is read-only. */
  readonly host?: string | undefined;
  /** Values of `Host` besides those of loopback, with or without a port. */
  readonly names?: readonly string[];
  readonly readOnly?: boolean;
};

export type OpenStudio = {
  /** With the token in its fragment. */
  readonly url: string;
  readonly port: number;
  readonly readOnly: Studio["readOnly"];
  readonly close: () => Promise<void>;
};

/** PORT_TAKEN where the port cannot be listened on. */
export async function openStudio(options: StudioOptions): Promise<OpenStudio> {
  const { cwd, stateDir, env, version, command } = options;
  const project = findProject(cwd, stateDir, env);
  const closing = new AbortController();
  const door = openDoor(recordPlace(project), env);
  const { value: redact, text: redactText } = createRedactor(() => secretsOf({ env, cwd }));
  const shelf = createShelf(redactText);
  const desk = createDesk(project, options.knowledge, { cwd, stateFlag: stateDir, env });
  const news = withFileNews(createNews(door.journal, shelf, { watch: door.watch }), desk, closing.signal);
  const streams = createStreams();
  const host = options.host ?? "127.0.0.1";
  const readOnly = readOnlyBecause(options, host, project.stateDir);
  const studio: Studio = {
    project,
    cwd,
    where: [
      ...(options.isCwdGiven === true ? [`--cwd=${resolve(cwd)}`] : []),
      ...(stateDir === undefined ? [] : [`--state=${recordPlace(project)}`]),
    ],
    env,
    version,
    command,
    readOnly,
    began: Date.now(),
    now: Date.now,
    journal: door.journal,
    redact,
    shelf,
    news,
    desk,
    signal: closing.signal,
  };
  const token = randomBytes(32).toString("base64url");
  let served: ServedStudio | null = null;
  const server = createStudioServer(() => served!);
  const port = await listen(server, host, options.port, project.root);
  const hosts = hostsOf(host, port, options.names ?? []);
  served = {
    rules: { token, hosts, isReadOnly: readOnly !== null },
    routes: routesOf(streams).filter(({ method }) => readOnly === null || method === "GET"),
    assets: openAssets(),
    studio,
  };
  return {
    url: `http://${hosts[0]}/#token=${token}`,
    port,
    readOnly,
    async close() {
      closing.abort();
      news.close();
      streams.close();
      const { promise, resolve } = Promise.withResolvers<void>();
      server.close(() => resolve());
      server.closeAllConnections();
      await promise;
      await door.close();
    },
  };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

function readOnlyBecause(
  { readOnly = false }: StudioOptions,
  host: string,
  stateDir: string,
): Studio["readOnly"] {
  if (!isLoopback(host)) return { why: "It can be reached from other machines (--host)." };
  if (readOnly) return { why: "It was started with --read-only." };
  return existsSync(stateDir) && !isWritable(stateDir) ? { why: `${stateDir} cannot be written.` } : null;
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The one to show comes first. A name without a port is meant with ours. */
function hostsOf(host: string, port: number, names: readonly string[]): readonly string[] {
  const named = names.map((name) => (/:\d+$/.test(name) ? name : `${name}:${port}`).toLowerCase());
  const own = isLoopback(host) ? [`${host.includes(":") ? `[${host}]` : host}:${port}`] : [];
  return [...new Set([...named, ...own, `127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`])];
}

const FIRST_PORT = 21_000;
const PORTS = 8000;
const TRIES = 50;

/** The same for the same folder, so that links survive a restart and two projects are two origins. */
export function portOf(root: string): number {
  return FIRST_PORT + (createHash("sha256").update(root).digest().readUInt32BE(0) % PORTS);
}

async function listen(server: Server, host: string, port: number | undefined, root: string): Promise<number> {
  const first = port ?? portOf(root);
  for (let place = 0; ; place += 1) {
    const next = port ?? FIRST_PORT + ((first - FIRST_PORT + place) % PORTS);
    const failure = await tryPort(server, host, next);
    if (failure === null) return (server.address() as AddressInfo).port;
    const isTaken = "code" in failure && failure.code === "EADDRINUSE";
    if (isTaken && port === undefined && place < TRIES) continue;
    throw new RunnerError(
      "PORT_TAKEN",
      `The studio cannot listen on ${host}:${next}: ${errorText(failure)}. Choose another port with --port N.`,
    );
  }
}

async function tryPort(server: Server, host: string, port: number): Promise<Error | null> {
  const { promise, resolve } = Promise.withResolvers<Error | null>();
  const failed = (error: Error) => resolve(error);
  server.once("error", failed);
  server.listen({ port, host }, () => resolve(null));
  const outcome = await promise;
  server.removeListener("error", failed);
  return outcome;
}
