/** Runs an ES module of the project in a process of its own and calls into it. */
import { createHash } from "node:crypto";
import type { ChildProcess } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import { RunnerError } from "../../engine/ports.ts";
import type { HookResult } from "../../flow/event.ts";
import { isObject, own, parseJson, type Json } from "../../flow/json.ts";
import { createCapture, type Capture } from "../process/capture.ts";
import { stdioOf } from "../process/descriptors.ts";
import { CHILD_SOURCE } from "./module-child.ts";
import { childEnv, firstOf, guard, unguard, type Env } from "../process/process.ts";
import { endTree, MARKS, newMark, type ProcessTree } from "../process/tree.ts";

export type ModuleHostOptions = {
  /** Its full path. */
  readonly file: string;
  /** The SHA-256 of what it held when it was read; with any other content it is not run. */
  readonly digest: string;
  readonly cwd: string;
  /** Ours; the module sees only what `childEnv` lets through. */
  readonly env: Env;
  /** Puts the process into the sandbox: what is started in its place, and what is called when it has ended. */
  readonly confine?: (
    command: readonly string[],
    cwd: string,
  ) => { readonly command: readonly string[]; readonly env: Env; readonly afterwards: () => unknown };
  /** For each call. */
  readonly timeoutMs?: number;
  /** The text of a function over the exports of the module: `call` finds its path in what that gives. */
  readonly adapter?: string;
};

/** One process, started by the first call and kept for those that follow; after a crash the next call starts another. */
export type ModuleHost = {
  /**
   * Calls what the exports hold at `path`. With `mutable` the first argument may be changed, and what comes back is
   * `{ value, changed }`; otherwise every argument is read-only. Rejects only with MODULE_KILLED: a signal from outside
   * ended the process, which says nothing about the module.
   */
  readonly call: (
    path: readonly string[],
    args: readonly Json[],
    signal: AbortSignal,
    options?: { readonly mutable?: boolean },
  ) => Promise<HookResult>;
  /** When it resolves, nothing of the module is left running. */
  readonly close: () => Promise<void>;
};

export function createModuleHost(options: ModuleHostOptions): ModuleHost {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  let current: Promise<Running | HookResult> | null = null;

  return {
    call: async (path, args, signal, { mutable = false } = {}) => {
      if (signal.aborted) return ABORTED;
      current ??= start(options, () => (current = null));
      const module = await current;
      if (!("ask" in module)) {
        current = null;
        return module;
      }
      const first = await firstOf(module.ask({ path, args, mutable }), timeoutMs, signal);
      if (typeof first !== "string") {
        if (first.kind === "killed") throw new RunnerError("MODULE_KILLED", first.message);
        return first;
      }
      await module.stop();
      return first === "aborted"
        ? ABORTED
        : threw("HOOK_TIMEOUT", `${path.join(".")} gave nothing within ${timeoutMs} ms.`);
    },
    close: async () => {
      const module = current === null ? null : await current;
      if (module !== null && "ask" in module) await module.stop();
    },
  };
}

const TIMEOUT_MS = 30_000;
const GRACE_MS = 500;
const DRAIN_MS = 500;
/** How long a process may take to exit once it has closed its line. */
const LEAVE_MS = 2000;
const MOST_MODULE = 32 * 1024 * 1024;
const MOST_OUTPUT = 64 * 1024;
const MOST_RESULT = 4 * 1024 * 1024;
/** For each call: the longest result with every character escaped twice, and a little for the rest. */
const MOST_MESSAGE = 8 * MOST_RESULT;

type Request = {
  readonly path: readonly string[];
  readonly args: readonly Json[];
  readonly mutable: boolean;
};

/** A signal that we did not send ended the process. */
type Killed = { readonly kind: "killed"; readonly message: string };
type Answer = HookResult | Killed;

type Running = {
  /** Resolves with what the module says, or with how its process ended. */
  readonly ask: (request: Request) => Promise<Answer>;
  /** Ends the whole tree; resolves when it has ended. */
  readonly stop: () => Promise<void>;
};

/** What is run is what was read: the content is compared before the process is started. */
async function start(options: ModuleHostOptions, ended: () => void): Promise<Running | HookResult> {
  const { file, digest, cwd, env, adapter = null, confine = asItIs } = options;
  const content = await stat(file).then(
    async (found) => (found.isFile() && found.size <= MOST_MODULE ? await readFile(file, "utf8") : null),
    () => null,
  );
  if (content === null) return threw("MODULE_CHANGED", `${file} is gone.`);
  if (createHash("sha256").update(content).digest("hex") !== digest)
    return threw("MODULE_CHANGED", `${file} is no longer what it was when the flow was read.`);

  const mark = newMark();
  const seen = childEnv(env);
  const { spawn } = await import("node:child_process");
  const settings = JSON.stringify({ file, adapter, mostResult: MOST_RESULT });
  const plain = [process.execPath, "--input-type=module", "-e", CHILD_SOURCE, settings];
  const { command, env: more, afterwards: settle } = confine(plain, cwd);
  const [program = "", ...args] = command;
  const child = spawn(program, args, {
    cwd,
    env: { ...seen, ...more, [MARKS]: [more[MARKS] ?? seen[MARKS], mark].filter(Boolean).join(":") },
    detached: true,
    // A plain pipe instead of Node's own channel, which takes in whatever is sent and cannot be bounded.
    stdio: stdioOf(["ignore", "pipe", "pipe", "pipe"]),
  });
  child.on("error", () => undefined);
  if (child.pid === undefined) return threw("HOOK_CRASHED", `cannot start ${program} in ${cwd}`);
  const isWrapped = program !== process.execPath;
  return supervise(child, { leader: child.pid, mark }, file, { ended, settle, isWrapped });
}

const asItIs: NonNullable<ModuleHostOptions["confine"]> = (command) => ({
  command,
  env: {},
  afterwards: () => undefined,
});

type Supervision = {
  readonly ended: () => void;
  readonly settle: () => unknown;
  /** Another program started it, and passes on as an exit code by which signal it ended. */
  readonly isWrapped: boolean;
};

/** The process does not keep ours from ending; what it prints is kept only in case it crashes. */
function supervise(
  child: ChildProcess,
  tree: ProcessTree,
  file: string,
  { ended, settle, isWrapped }: Supervision,
): Running {
  const printed = createCapture(MOST_OUTPUT);
  const waiting = new Map<number, (result: Answer) => void>();
  let asked = 0;
  /** Whatever ends the process from then on may be us. */
  let isStopped = false;
  guard(tree.leader, tree.mark);
  const streams = [child.stdout as Socket, child.stderr as Socket];
  for (const stream of streams) {
    stream.on("data", printed.write);
    stream.unref();
  }
  child.unref();
  const line = child.stdio[3] as Socket;
  line.on("error", () => undefined);
  // A process that can no longer answer is of no use, and may not notice by itself. One that is exiting closes the
  // line too, a moment before its exit code is known.
  line.once("close", () => {
    void (async () => {
      const how = isFlooded ? null : await Promise.race([exited, sleep(LEAVE_MS, null, { ref: false })]);
      if (how !== null) return;
      isStopped = true;
      await endTree(tree, 0, GRACE_MS);
    })();
  });
  line.unref();
  let budget = MOST_MESSAGE;
  let isFlooded = false;
  hearLines(line, {
    heard: (text) => {
      const message = parseJson(text);
      if (!isObject(message)) return;
      const id = Number(own(message, "id"));
      waiting.get(id)?.(readResult(own(message, "result")));
      waiting.delete(id);
    },
    isTooMuch: (bytes) => (budget -= bytes) < 0,
    flooded: () => {
      isFlooded = true;
      const why = `The process of ${file} sent more than ${MOST_MESSAGE} bytes and was ended.`;
      for (const answer of waiting.values()) answer(threw("HOOK_RESULT_INVALID", why));
      waiting.clear();
    },
  });
  const exited = new Promise<Ending>((resolve) => {
    child.once("exit", (code, signal) => {
      ended();
      resolve({ code, signal });
    });
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));

  /** What the module left running goes with it; then calls that still wait are rejected. */
  const gone = (async () => {
    const ending = await exited;
    const by = isStopped ? null : killedBy(ending, isWrapped);
    await endTree(tree, 0, GRACE_MS);
    unguard(tree.leader);
    await Promise.race([closed, sleep(DRAIN_MS, undefined, { ref: false })]);
    for (const stream of [...streams, line]) stream.destroy();
    const last: Answer =
      by === null
        ? threw("HOOK_CRASHED", `The process of ${file} ${endingText(ending)}.${lastWords(printed)}`)
        : { kind: "killed", message: killedText(file, by) };
    for (const answer of waiting.values()) answer(last);
    settle();
    return last;
  })();
  // The code that waits for the end, if any, receives it.
  gone.catch(() => undefined);

  return {
    ask: (request) => {
      if (child.exitCode !== null || child.signalCode !== null) return gone;
      asked += 1;
      const id = asked;
      return new Promise((resolve) => {
        waiting.set(id, resolve);
        budget = MOST_MESSAGE;
        // A process that no longer reads is about to end.
        line.write(`${JSON.stringify({ id, ...request })}\n`, () => undefined);
      });
    },
    stop: async () => {
      // From here on somebody waits for its end, and nothing else may be left that keeps the program alive.
      isStopped = true;
      child.ref();
      for (const stream of [...streams, line]) stream.ref();
      await endTree(tree, 0, GRACE_MS);
      await gone;
    },
  };
}

type Ending = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** Signals that come from outside. With others the kernel or the process itself reports a fault in what it runs. */
const FROM_OUTSIDE: { readonly [signal: string]: number } = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

function killedBy({ code, signal }: Ending, isWrapped: boolean): string | null {
  const found = Object.entries(FROM_OUTSIDE).find(
    ([name, number]) => name === signal || (isWrapped && code === 128 + number),
  );
  return found?.[0] ?? null;
}

function endingText({ code, signal }: Ending): string {
  return code === null ? `was ended by ${signal ?? "a signal"}` : `exited with ${code}`;
}

function killedText(file: string, signal: string): string {
  const cause =
    signal === "SIGKILL"
      ? " The machine may have run out of memory: the kernel ends processes that way."
      : "";
  return `The process that runs ${file} was ended by ${signal} from outside.${cause}`;
}

function readResult(result: Json | undefined): HookResult {
  const { kind, json, code, message } = isObject(result) ? result : {};
  if (kind === "absent") return { kind };
  const value = kind === "gave" && typeof json === "string" ? parseJson(json) : undefined;
  if (value !== undefined) return { kind: "gave", value };
  if (kind === "threw" && typeof code === "string" && typeof message === "string")
    return threw(code, message);
  return threw("HOOK_RESULT_INVALID", "The module's process gave an answer of its own making.");
}

/** What is heard of a line: each one that is whole, until it is too much. */
type Hearing = {
  readonly heard: (line: string) => void;
  readonly isTooMuch: (bytes: number) => boolean;
  readonly flooded: () => void;
};

function hearLines(stream: Socket, { heard, isTooMuch, flooded }: Hearing): void {
  let pieces: string[] = [];
  const decoder = new StringDecoder("utf8");
  const onData = (chunk: Buffer) => {
    if (isTooMuch(chunk.length)) {
      pieces = [];
      stream.off("data", onData);
      stream.destroy();
      return flooded();
    }
    const [first = "", ...more] = decoder.write(chunk).split("\n");
    pieces.push(first);
    for (const next of more) {
      heard(pieces.join(""));
      pieces = [next];
    }
  };
  stream.on("data", onData);
}

function lastWords(printed: Capture): string {
  const last = printed.text().trimEnd().split("\n").slice(-10).join("\n").slice(-2000);
  return last === "" ? "" : ` Its last words:\n${last}`;
}

function threw(code: string, message: string): HookResult {
  return { kind: "threw", code, message };
}

const ABORTED = threw("HOOK_ABORTED", "It was stopped.");
