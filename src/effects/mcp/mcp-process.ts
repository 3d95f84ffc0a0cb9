/**
 * A server of tools that is a program: one process of its own, spoken to in lines of JSON. What it prints besides is kept
 * for the case that it fails; nothing of it is left running.
 */
import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { parseJsonObject, type JsonObject } from "../../flow/json.ts";
import { createCapture } from "../process/capture.ts";
import { stdioOf } from "../process/descriptors.ts";
import { guard, unguard, type Env } from "../process/process.ts";
import { endTree, MARKS, newMark } from "../process/tree.ts";

/** A line to a server, as the client package takes it: the client sets the `on…` callbacks. */
export type Transport = {
  onmessage?: (message: JsonObject) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly start: () => Promise<void>;
  readonly send: (message: unknown) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type Program = {
  /** No shell ever reads it. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /** Exactly what it sees. */
  readonly env: Env;
};

/** `lastWords`: the end of what it printed to stderr. */
export function createProcessTransport(program: Program): Transport & { readonly lastWords: () => string } {
  const printed = createCapture(MOST_STDERR);
  let running: Running | null = null;

  const transport: Transport & { readonly lastWords: () => string } = {
    start: async () => {
      running = await start(program);
      const { child, ended } = running;
      child.stderr.on("data", printed.write);
      child.stdin.on("error", () => undefined); // it no longer reads: it is about to end
      hearLines(child.stdout, (message) => {
        if (message !== null) return transport.onmessage?.(message);
        printed.write(Buffer.from(`a message of more than ${MOST_MESSAGE} characters`));
        return void running?.stop();
      });
      void ended.then(() => transport.onclose?.());
    },
    send: (message) => {
      if (running === null || !running.child.stdin.writable) return Promise.reject(new Error("it has ended"));
      running.child.stdin.write(`${JSON.stringify(message)}\n`);
      return Promise.resolve();
    },
    close: async () => await running?.stop(),
    lastWords: () => printed.text().trim(),
  };
  return transport;
}

const MOST_STDERR = 4 * 1024;
const MOST_MESSAGE = 8 * 1024 * 1024;
/** A server whose input ends should end by itself; then it is asked to, and then made to. */
const PATIENCE_MS = 200;
const GRACE_MS = 500;

type Child = ChildProcessByStdio<Writable, Readable, Readable>;
type Running = {
  readonly child: Child;
  /** It has ended, and so has everything that it started. */
  readonly ended: Promise<void>;
  readonly stop: () => Promise<void>;
};

async function start({ argv, cwd, env }: Program): Promise<Running> {
  const [file = "", ...args] = argv;
  const mark = newMark();
  const { spawn } = await import("node:child_process");
  const child = spawn(file, args, {
    cwd,
    env: { ...env, [MARKS]: [env[MARKS], mark].filter(Boolean).join(":") },
    detached: true,
    stdio: stdioOf(["pipe", "pipe", "pipe"]),
  }) as Child;
  const leader = child.pid;
  if (leader === undefined) {
    const [error] = (await once(child, "error")) as [unknown];
    throw new Error(error instanceof Error && "code" in error ? String(error.code) : String(error));
  }
  guard(leader);
  const tree = { leader, mark };
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const ended = (async () => {
    await exited;
    await endTree(tree, 0, GRACE_MS);
    unguard(leader);
    child.stdout.destroy();
    child.stderr.destroy();
  })();
  return {
    child,
    ended,
    stop: async () => {
      child.stdin.end();
      await endTree(tree, PATIENCE_MS, GRACE_MS);
      await ended;
    },
  };
}

/** Each line that holds a message, or null for one without end. Whatever else is printed is passed over. */
function hearLines(stream: Readable, hear: (message: JsonObject | null) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = chunk.split("\n");
    lines[0] = rest + lines[0]!;
    rest = lines.pop()!;
    for (const line of lines) {
      const message = parse(line);
      if (message !== null) hear(message);
    }
    if (rest.length <= MOST_MESSAGE) return;
    rest = "";
    stream.removeAllListeners("data");
    stream.resume();
    hear(null);
  });
}

function parse(line: string): JsonObject | null {
  const value = parseJsonObject(line);
  return value?.jsonrpc === "2.0" ? value : null;
}
