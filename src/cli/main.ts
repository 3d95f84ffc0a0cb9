#!/usr/bin/env node
/**
 * The front door: finds the command, and is the only place that prints errors and exits. What is imported here must
 * load on any Node, so that an old one gets a sentence instead of a stack trace.
 */
import module from "node:module";
import { isAbsolute, join } from "node:path";
import { parseLine, UsageError } from "./args.ts";
import { createCall, type Call, type Host } from "./call.ts";
import { commandNamed, everyFlag, GLOBAL_FLAGS, type Command } from "./commands.ts";
import { createPaint, jsonLine, shown } from "./text.ts";
import { asTyped, programName } from "./typed.ts";
import { versionText } from "./version.ts";

const OLDEST_NODE = 24;
/** Commands whose last line on stdout is always the outcome. */
const RUNNING: ReadonlySet<string> = new Set(["run", "resume", "fork", "continue"]);
const NAMES_A_PROXY = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"];
/** As shells tell the signals that ended a process. */
const LEFT_BY = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

/** What was understood so far: it decides how a failure is answered. */
let asked: Command | null = null;
let current: Call | null = null;
let stopping: AbortController | null = null;
let deafen: (() => void) | null = null;
let isFailing = false;

const host: Host = {
  stdin: {
    // Asked for by few commands, and what answers it takes time to load.
    get isTTY() {
      return process.getBuiltinModule("node:tty").isatty(0);
    },
    open: () => process.stdin,
  },
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  program: programName(process.argv[1], process.env),
  cwd: () => process.cwd(),
  stopped: () => (stopping ??= new AbortController()).signal,
  interruption,
  interruptible,
};

// Not awaited here: a bundle may put what commands share into this very file, and they would wait for its end.
void main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<void> {
  process.stdout.on("error", noteLost);
  // Nothing is left to report it to.
  process.stderr.on("error", () => undefined);
  process.on("uncaughtException", (error) => void crash(error, argv));
  // Node ends without a word when nothing is left to wait for, although the command has not answered.
  process.once(
    "beforeExit",
    () => void crash(new Error("the command stopped before it had an answer"), argv),
  );
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) return refuseNode(argv);
  leave(await answer(argv).catch(async (error: unknown) => await fail(error, argv)));
}

function refuseNode(argv: readonly string[]): void {
  const reason =
    `lockstep needs Node ${OLDEST_NODE} or newer, and this is Node ${process.versions.node}. ` +
    `Install a newer one from https://nodejs.org, or with your version manager.`;
  const failure = { v: 1, outcome: "failed", success: false, code: "NODE_TOO_OLD", reason, exitCode: 3 };
  process.stderr.write(`${reason}\n`);
  if (argv.includes("--json")) process.stdout.write(`${JSON.stringify(failure)}\n`);
  leave(failure.exitCode);
}

/** A bug outside of what is awaited: told like any other failure. */
async function crash(error: unknown, argv: readonly string[]): Promise<void> {
  leave(await fail(error, argv));
}

/** For the completions of shells: an answer or nothing, since an error would be written over the line. */
async function offer(typed: readonly string[]): Promise<number> {
  keepCompiled(process.env);
  const { complete, offeredText } = await import("./complete.ts");
  const offered = await complete(typed, { cwd: process.cwd(), env: process.env }).catch(() => null);
  if (offered !== null) process.stdout.write(`${offeredText(offered)}\n`);
  return 0;
}

async function answer(argv: readonly string[]): Promise<number> {
  if (argv[0] === "__complete") return await offer(argv.slice(argv[1] === "--" ? 2 : 1));
  const { words, flags } = parseLine(argv, { flags: everyFlag(), lenient: true });
  const [word] = words;
  const isAsked = (flag: string) => flags.get(flag)?.at(-1) === "true";
  if (word === undefined && isAsked("version")) return printVersion(isAsked("json"));
  if (word === undefined && isAsked("help")) return await run(commandNamed("help"), ["help", ...argv]);
  if (word === undefined) {
    parseLine(argv, { flags: GLOBAL_FLAGS });
    return await printUsage(isAsked("json"));
  }
  return await run(commandNamed(word), argv);
}

async function run(command: Command, argv: readonly string[]): Promise<number> {
  asked = command;
  const reading = command.takesParameters
    ? ({ kind: "lenient" } as const)
    : ({ kind: "strict", declared: [] } as const);
  const call = createCall(command, argv, host, reading, (read) => {
    current = read;
  });
  if (!command.takesParameters && command.name !== "help") {
    if (call.on("help"))
      return await run(commandNamed("help"), ["help", command.name, ...asJson(call.on("json"))]);
    if (call.on("version")) return printVersion(call.on("json"));
  }
  keepCompiled(process.env);
  if (NAMES_A_PROXY.some((name) => process.env[name]))
    await (await import("../run/proxy.ts")).useProxies(process.env);
  const perform = await command.load();
  return await perform(call);
}

/** Saves a tenth of a short run, and half of one from source. In the user's own folder, because it is run as code. */
function keepCompiled({ XDG_CACHE_HOME, HOME }: NodeJS.ProcessEnv): void {
  const folder = XDG_CACHE_HOME || (HOME ? join(HOME, ".cache") : "");
  // Node tries for ever to make a folder where none can be made, as below /proc.
  if (isAbsolute(folder) && !folder.startsWith("/proc/") && !folder.startsWith("/dev/"))
    // Missing in Deno.
    module.enableCompileCache?.(join(folder, "lockstep", "compiled"));
}

function printVersion(json: boolean): number {
  process.stdout.write(`${versionText(json)}\n`);
  return 0;
}

/** `lockstep` alone: help, but no success. */
async function printUsage(json: boolean): Promise<number> {
  if (json) throw new UsageError("A command is needed.");
  const { mainHelp } = await import("./help.ts");
  process.stderr.write(`${mainHelp(createPaint(false), host.program)}\n`);
  return 2;
}

/** Every failure that is no result: said on stderr, and in the one document where one was asked for. */
async function fail(error: unknown, argv: readonly string[]): Promise<number> {
  // Telling of a failure failed: nothing is left but to leave.
  if (isFailing) process.exit(1);
  isFailing = true;
  const { failureDocument, toFailing } = await import("./failure.ts");
  const { words, flags } = parseLine(argv, { flags: everyFlag(), lenient: true });
  const isOn = (flag: string) => current?.on(flag) ?? flags.get(flag)?.at(-1) === "true";
  const agent = asked?.words[0]?.is === "agent" ? ((current?.words ?? words.slice(1))[0] ?? "") : "";
  const failure = toFailing(error, asked, agent);
  current?.screen.status(null);
  process.stderr.write(`lockstep: ${shown(asTyped(failure.reason, host.program))}\n`);
  if (failure.stack !== null) process.stderr.write(`${shown(failure.stack)}\n`);
  if (isOn("json")) process.stdout.write(`${jsonLine(failureDocument(failure, asked, agent))}\n`);
  else if (isRunning(asked) && !isOn("events")) process.stdout.write('{"outcome":"failed"}\n');
  return failure.exitCode;
}

function isRunning(command: Command | null): boolean {
  return command !== null && RUNNING.has(command.name);
}

function asJson(json: boolean): readonly string[] {
  return json ? ["--json"] : [];
}

/** Why the result could not be written; null: it could. */
let lost: string | null = null;

/** A reader may go away early, as `head` does: the work goes on all the same. Anything else loses the result. */
function noteLost(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") lost ??= error.message;
}

/** Ends the process once everything written has gone out, whatever else may still hold it open. */
function leave(exitCode: number): void {
  process.exitCode = exitCode;
  const end = () => {
    const words = lost === null ? "" : `lockstep: The result cannot be written to stdout: ${lost}\n`;
    process.stderr.write(words, () => process.exit(lost !== null && exitCode === 0 ? 1 : exitCode));
  };
  // An empty write fails on a full device too, and then nothing was lost: only what is still on its way is waited for.
  if (process.stdout.writableLength > 0) process.stdout.write("", end);
  else setImmediate(end);
}

function interruption(): AbortSignal {
  const controller = (stopping ??= new AbortController());
  deafen ??= listen(controller);
  return controller.signal;
}

async function interruptible<T>(wait: () => Promise<T>): Promise<T> {
  const wasDeaf = deafen === null;
  interruption();
  try {
    return await wait();
  } finally {
    if (wasDeaf) {
      deafen?.();
      deafen = null;
    }
  }
}

/** Without a listener the kernel ends the process, also one that is too busy to listen. */
function listen(controller: AbortController): () => void {
  const heard = (signal: keyof typeof LEFT_BY, why: string) => {
    const hear = () => {
      if (controller.signal.aborted) {
        // What was committed is on disk, and what commands are running is taken along by the exit.
        current?.screen.status(null);
        process.exit(LEFT_BY[signal]);
      }
      current?.screen.tell(why);
      controller.abort(signal);
    };
    process.on(signal, hear);
    return () => void process.off(signal, hear);
  };
  const isWork = isRunning(asked) || asked?.name === "answer";
  const given = isWork ? ": what is under way is given up." : ".";
  const ends = [
    heard("SIGINT", `Stopping${given}${isWork ? " Press Ctrl-C again to leave at once." : ""}`),
    heard("SIGTERM", `SIGTERM received, stopping${given}`),
    heard("SIGHUP", `The terminal is gone, stopping${given}`),
  ];
  return () => ends.forEach((end) => end());
}
