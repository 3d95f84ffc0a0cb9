/** Things outside of the sandbox that a command must not reach: a pipe, sockets and a server of our own. */
import { closeSync, constants, lstatSync, openSync, readSync, rmSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { childEnv, runProcess, type ProcessOptions } from "../../effects/process/process.ts";
import type { Surroundings } from "../boundary.ts";
import { newName } from "./probe-table.ts";
import { findProgram, programsFor } from "../world/programs.ts";
import { homeFolder } from "../world/project.ts";

export type Planted = AsyncDisposable & {
  readonly pipe: Plant;
  readonly socket: Plant;
  readonly datagrams: Plant;
  /** A server on the loopback address; its `path` is a port. */
  readonly server: Plant;
};

export type Plant =
  | { readonly kind: "there"; readonly path: string; readonly isReached: () => boolean }
  | { readonly kind: "missing"; readonly why: string };

type Removable = Plant & { readonly remove: () => unknown };

/** In the home folder, which commands see. Nothing is made unless it is `wanted`. */
export async function plant(around: Surroundings, wanted: boolean): Promise<Planted> {
  if (!wanted) return NOTHING;
  const home = homeFolder(around.env);
  const path = () => join(home, `.${newName()}`);
  const pipe = await plantPipe(path(), around);
  const socket = await plantSocket(path());
  const datagrams = await plantDatagrams(path(), around);
  const server = await plantServer();
  return {
    pipe,
    socket,
    datagrams,
    server,
    [Symbol.asyncDispose]: async () => {
      for (const { remove } of [pipe, socket, datagrams, server]) await remove();
    },
  };
}

const UNWANTED: Plant = { kind: "missing", why: "commands are not confined" };
const NOTHING: Planted = {
  pipe: UNWANTED,
  socket: UNWANTED,
  datagrams: UNWANTED,
  server: UNWANTED,
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

function missing(why: string): Removable {
  return { kind: "missing", why, remove: () => undefined };
}

async function plantPipe(path: string, around: Surroundings): Promise<Removable> {
  const mkfifo = programOf("mkfifo", around);
  if (mkfifo === null) return missing("mkfifo is not installed");
  const made = await runProcess({ command: [mkfifo, path], ...waitingPlant(around) });
  if (made.exitCode !== 0) return missing(`no pipe can be made in the home folder (${made.stderr.trim()})`);
  // Held open for both directions: opening it never blocks.
  const held = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  return {
    kind: "there",
    path,
    isReached: () => {
      try {
        return readSync(held, Buffer.alloc(16)) > 0;
      } catch {
        return false; // nothing was written
      }
    },
    remove: () => {
      closeSync(held);
      rmSync(path, { force: true });
    },
  };
}

async function plantSocket(path: string): Promise<Removable> {
  try {
    const { isReached, close } = await listening((server) => server.listen(path));
    const remove = () => {
      close();
      rmSync(path, { force: true });
    };
    return { kind: "there", path, isReached, remove };
  } catch (error) {
    return missing(`no socket can be made in the home folder (${(error as Error).message})`);
  }
}

async function plantServer(): Promise<Removable> {
  try {
    const { server, isReached, close } = await listening((one) => one.listen(0, "127.0.0.1"));
    const { port } = server.address() as AddressInfo;
    return { kind: "there", path: String(port), isReached, remove: close };
  } catch (error) {
    return missing(`nothing can listen on 127.0.0.1 (${(error as Error).message})`);
  }
}

/** Node has no such sockets; socat has. */
async function plantDatagrams(path: string, around: Surroundings): Promise<Removable> {
  const { socat } = programsFor(around.env, [around.cwd, around.project.root]);
  if (socat === null) return missing("socat is not installed, which would make one");
  const stop = new AbortController();
  const command = [socat, "-u", `UNIX-RECV:${path}`, "OPEN:/dev/null"];
  const running = runProcess({ command, ...waitingPlant(around), signal: stop.signal });
  const remove = async () => {
    stop.abort();
    await running;
    rmSync(path, { force: true });
  };
  for (let left = 100; left > 0; left -= 1) {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined)
      return { kind: "there", path, isReached: () => false, remove };
    await sleep(10);
  }
  await remove();
  return missing("no datagram socket can be made in the home folder");
}

async function listening(listen: (server: Server) => unknown) {
  let reached = 0;
  const server = createServer((socket) => {
    reached += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("listening", resolve);
    listen(server);
  });
  return { server, isReached: () => reached > 0, close: () => void server.close() };
}

export function programOf(name: string, { env, cwd, project }: Surroundings): string | null {
  return findProgram(name, env, [cwd, project.root]);
}

/** How a program of ours is run for a moment. The PATH has nothing of the project on it: a probe must not be fooled. */
export function waitingPlant({ env, cwd, project }: Surroundings): Omit<ProcessOptions, "command"> {
  const { path } = programsFor(env, [cwd, project.root]);
  return {
    cwd: "/",
    env: { ...childEnv(env), PATH: path },
    timeoutMs: 20_000,
    maxOutputBytes: 64 * 1024,
    signal: new AbortController().signal,
    graceMs: 200,
    tame: true,
  };
}
