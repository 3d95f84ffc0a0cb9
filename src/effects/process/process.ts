/** Runs one command to its end: bounded in time and memory, and nothing of it is left running. */
import type { ChildProcessByStdio, spawn as spawnType } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WARY, withSettings } from "../../flow/machine/git-variables.ts";
import { SHELL } from "../../flow/machine/programs.ts";
import { createCapture } from "./capture.ts";
import { stdioOf } from "./descriptors.ts";
import { openSink, type Sink } from "./sink.ts";
import { endTree, isNamespaceGone, killTree, MARKS, newMark } from "./tree.ts";

export type Env = { readonly [name: string]: string | undefined };

export type ProcessOptions = {
  /** A line for `sh -c`, or an argument vector that no shell ever reads. */
  readonly command: string | readonly string[];
  readonly cwd: string;
  /** Exactly what the child sees; narrow it with `childEnv` first. */
  readonly env: Env;
  /** Variables that a project names. Only the command itself obeys them: nothing that is started around it does. */
  readonly values?: { readonly [name: string]: string };
  readonly timeoutMs: number;
  /** Kept of each stream: half from its head, half from its tail. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
  /** Each character of `stdout` is a byte, as far as it is not truncated. */
  readonly bytes?: true;
  /** What becomes of each stream before anybody sees it. */
  readonly tidy?: (text: string) => string;
  /** How long the command may tidy up between SIGTERM and SIGKILL. */
  readonly graceMs?: number;
  /** Nothing that it starts leaves its process group, so only the group is searched. */
  readonly tame?: true;
  /**
   * The program reports the first process of a PID namespace on descriptor 3, as bubblewrap does with `--info-fd 3`.
   * The kernel ends every process of the namespace with that one, so only that one has to be waited for.
   */
  readonly reportsNamespace?: true;
  /** It goes on to its end when our process ends, however that comes: its output goes to files, and no exit takes it along. */
  readonly lasting?: true;
};

export type ProcessResult = {
  /** null when a signal ended it. Never started: 127 if it does not exist, else 126, as a shell would say. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** It was stopped at its time cap; whatever `exitCode` says, it did not finish its work. */
  readonly timedOut: boolean;
  /** It was stopped by the caller's signal. */
  readonly aborted: boolean;
  readonly truncated: boolean;
};

export type RunProcess = (options: ProcessOptions) => Promise<ProcessResult>;

/**
 * Never rejects. When it resolves, every process of the command's tree has ended, also those that it left behind and
 * those that held its pipes open.
 */
export async function runProcess(options: ProcessOptions): Promise<ProcessResult> {
  const stdout = createCapture(options.maxOutputBytes, options.tidy, options.bytes && "latin1");
  const stderr = createCapture(options.maxOutputBytes, options.tidy);
  const mark = newMark();

  if (options.signal.aborted) return { ...NOT_RUN, aborted: true };
  const sinks = options.lasting ? [openSink(), openSink()] : [];
  const started = await start(options, mark, sinks);
  if ("failure" in started) {
    for (const sink of sinks) sink?.drain(() => undefined);
    return { ...NOT_RUN, ...started.failure };
  }
  const { child, leader } = started;
  if (!options.lasting) guard(leader, mark);
  const namespace = options.reportsNamespace ? firstOfNamespace(child) : null;
  child.stdout?.on("data", stdout.write);
  child.stderr?.on("data", stderr.write);

  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const exited = new Promise<"exited">((resolve) => child.once("exit", () => resolve("exited")));
  const ending = await firstOf(exited, options.timeoutMs, options.signal);
  // Its pipes are closed by the last of its processes, which is sooner heard than looked for.
  if (namespace !== null && ending === "exited")
    await Promise.race([closed, sleep(LINGER_MS, undefined, { ref: false })]);
  const isDone = ending === "exited" && (await isGone(namespace, LINGER_MS));
  if (!isDone) {
    await endTree(
      { leader, mark: options.tame ? null : mark },
      ending === "exited" ? LINGER_MS : 0,
      options.graceMs ?? GRACE_MS,
    );
    await isGone(namespace, DRAIN_MS);
  }
  unguard(leader);
  await Promise.race([closed, sleep(DRAIN_MS, undefined, { ref: false })]);
  child.stdout?.destroy();
  child.stderr?.destroy();
  sinks[0]?.drain(stdout.write);
  sinks[1]?.drain(stderr.write);

  return {
    exitCode: child.exitCode,
    signal: child.signalCode,
    stdout: stdout.text(),
    stderr: stderr.text(),
    timedOut: ending === "timed out",
    aborted: ending === "aborted",
    truncated: stdout.truncated() || stderr.truncated(),
  };
}

/** Whether it came to its own end: one that was cut off has not said anything. */
export function isFinished({ exitCode, timedOut, aborted }: ProcessResult): boolean {
  return exitCode !== null && !timedOut && !aborted;
}

export function endingOf({ exitCode, signal, timedOut, aborted }: ProcessResult, timeoutMs: number): string {
  if (aborted) return "was interrupted";
  if (timedOut) return `was stopped after ${timeoutMs} ms`;
  return exitCode === null ? `was ended by ${signal ?? "a signal"}` : `ended with exit code ${exitCode}`;
}

/**
 * What a child may see of our environment: a short list, and what the user themselves added to it. Keys and tokens are
 * not on the list, so no child ever gets one.
 */
export function childEnv(env: Env, more: readonly string[] = []): Env {
  const isListed = (name: string) => CHILD_ENV.has(name) || LOCALE.test(name) || more.includes(name);
  const listed = Object.fromEntries(Object.entries(env).filter(([name]) => isListed(name)));
  return { ...listed, ...withSettings(listed, WARY) };
}

const LOCALE = /^LC_[A-Z]+$/;
const CHILD_ENV: ReadonlySet<string> = new Set(
  [
    "PATH HOME LANG TERM TMPDIR CI NO_COLOR",
    // Without these, Windows starts next to nothing.
    "Path SystemRoot SYSTEMROOT windir ComSpec COMSPEC PATHEXT TEMP TMP",
    "USERPROFILE USERNAME HOMEDRIVE HOMEPATH APPDATA LOCALAPPDATA ProgramFiles",
    MARKS,
  ].flatMap((names) => names.split(" ")),
);

const NOT_RUN: ProcessResult = {
  exitCode: null,
  signal: null,
  stdout: "",
  stderr: "",
  timedOut: false,
  aborted: false,
  truncated: false,
};

/** Children that are about to end by themselves when the command has ended are left alone for this long. */
const LINGER_MS = 50;
const GRACE_MS = 2_000;
/** With the tree gone the pipes close at once; only a process that escaped it could still hold them. */
const DRAIN_MS = 500;

/** What is running now, with its mark where it has one. A program that is left in a hurry takes it along. */
const guarded = new Map<number, string | null>();

export function guard(leader: number, mark: string | null = null): void {
  if (guarded.size === 0 && !process.listeners("exit").includes(endGuarded)) process.once("exit", endGuarded);
  guarded.set(leader, mark);
}

export function unguard(leader: number): void {
  guarded.delete(leader);
}

function endGuarded(): void {
  for (const [leader, mark] of guarded) killTree(leader, mark);
}

async function isGone(namespace: Promise<number | null> | null, withinMs: number): Promise<boolean> {
  if (namespace === null) return false;
  const late = sleep(DRAIN_MS, null, { ref: false });
  return await isNamespaceGone(await Promise.race([namespace, late]), withinMs);
}

/** null if it reported nothing: it could not start, or is another program. */
async function firstOfNamespace(child: Child): Promise<number | null> {
  const report = child.stdio[3] as Readable | null | undefined;
  if (report === null || report === undefined) return null;
  let text = "";
  report.setEncoding("utf8").on("data", (part: string) => (text = (text + part).slice(0, MAX_REPORT)));
  await once(report, "close").catch(() => undefined);
  const pid = Number(/"child-pid": (\d+)/.exec(text)?.[1]);
  return Number.isSafeInteger(pid) && pid > 1 ? pid : null;
}

const MAX_REPORT = 4096;

let spawn: typeof spawnType | undefined;

type Child = ChildProcessByStdio<null, Readable | null, Readable | null>;
type Started =
  | { readonly child: Child; readonly leader: number }
  | { readonly failure: { readonly exitCode: number; readonly stderr: string } };

/** `spawn` reports some failures by throwing (too long, a NUL) and others by an event (not found). */
async function start(
  options: ProcessOptions,
  mark: string,
  [out, err]: readonly (Sink | null)[],
): Promise<Started> {
  const [file = "", ...args] =
    typeof options.command === "string" ? [SHELL, "-c", options.command] : options.command;
  const marks = [options.env[MARKS], mark].filter(Boolean).join(":");
  // Most runs start no command; they should not pay for being able to.
  spawn ??= (await import("node:child_process")).spawn;
  try {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: { ...options.env, ...options.values, [MARKS]: marks },
      detached: true,
      stdio: stdioOf([
        "ignore",
        out?.fd ?? "pipe",
        err?.fd ?? "pipe",
        ...(options.reportsNamespace ? (["pipe"] as const) : []),
      ]),
    }) as unknown as Child;
    if (child.pid !== undefined) return { child, leader: child.pid };
    const [error] = (await once(child, "error")) as [unknown];
    return notStarted(options, file, error);
  } catch (error) {
    return notStarted(options, file, error);
  }
}

function notStarted(options: ProcessOptions, file: string, error: unknown): Started {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return {
    failure: {
      exitCode: code === "ENOENT" ? 127 : 126,
      stderr: `cannot start ${JSON.stringify(file)} in ${options.cwd}: ${UNSTARTED[code] ?? ""}${code}`,
    },
  };
}

/** A model reads these, and can do something about them. */
const UNSTARTED: { readonly [code: string]: string } = {
  ERR_INVALID_ARG_VALUE: "the command contains a NUL character, ",
  E2BIG: "the command is too long, ",
};

/** What is waited for, unless its time is up or it is aborted first. The timer keeps our process alive meanwhile. */
export function firstOf<T>(
  work: Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<T | "timed out" | "aborted"> {
  return new Promise((resolve) => {
    const settle = (first: T | "timed out" | "aborted") => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(first);
    };
    const onAbort = () => settle("aborted");
    const timer = setTimeout(settle, Math.min(timeoutMs, MAX_TIMER_MS), "timed out");
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    void work.then(settle);
  });
}

/** A longer timer would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
