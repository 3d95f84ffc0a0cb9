/**
 * The front door: finds the command, and is the only place that prints errors and exits. What is imported here must
 * load on any Node, so that an old one gets a sentence instead of a stack trace.
 */
import { parseLine, UsageError, type Line } from "./args.ts";
import { createCall, lineOf, type CommandCall, type Host, type CallUnderWay } from "./call.ts";
import { commandNamed, commandsOf, everyFlag, GLOBAL_FLAGS, type CliCommand } from "./commands.ts";
import { createOutput } from "./output.ts";
import { createPaint, jsonLine, shown } from "./text/text.ts";
import { asTyped, programName } from "./text/typed.ts";
import { versionText } from "./version.ts";

const OLDEST_NODE = 24;
/** Commands whose last line on stdout is always the outcome. */
const RUNNING: ReadonlySet<string> = new Set(["run", "resume", "fork", "continue"]);
const NAMES_A_PROXY = ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"];
/**
 * Exit codes as shells report the signals that ended a process. SIGHUP comes last: Node has handlers of its own for the
 * others, so that a process whose SIGHUP is caught is seen from outside to listen for all of them.
 */
const LEFT_BY = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** Commands that keep most of what they make while they search: they need room for young objects. */
const SEARCHING: ReadonlySet<string> = new Set(["test", "fuzz", "mutate"]);
/** Only what takes longer bounds its memory: loading what does it would cost a short command more than it saves. */
const LONG_MS = 100;
/** How long the answer to a signal may take to go out: there may be no reader. */
const LEAVE_MS = 2000;

type Signal = keyof typeof LEFT_BY;

/** What was understood so far: it decides how a failure is answered. */
let asked: CliCommand | null = null;
let looked: Line | null = null;
let current: CommandCall | null = null;
let stopping: AbortController | null = null;
/** Whether the first signal only aborts `stopping`, so that the command comes to an end by itself. */
let isOrderly = false;
/** The run that this process drives, once it is recorded. */
let underWay: CallUnderWay | null = null;
/** A second signal came while a run was about to be recorded: whether there is one is known in a moment. */
let awaited: Signal | null = null;
/** The result is on stdout: nothing else is written there. */
let isAnswered = false;
/** The process is about to end: only the answer to that is written. */
let isFailing = false;
let isLeaving = false;
/** A signal came while the answer was on its way out. */
let isInsisted = false;
let isListening = false;
/** Why the result could not be written; null: it could. */
let lost: string | null = null;

/** A process that waits for a reader hears no signal. */
const mayWait = () => !isListening;
const stdout = createOutput(1, mayWait, noteLost);
// Nothing is left to report it to.
const stderr = createOutput(2, mayWait, () => undefined);

const host: Host = {
  stdin: {
    // Asked for by few commands, and what answers it takes time to load.
    get isTTY() {
      return process.getBuiltinModule("node:tty").isatty(0);
    },
    open: () => process.stdin,
  },
  stdout: {
    write: (text) => isFailing || stdout.write(text),
    get isTTY() {
      return stdout.isTTY;
    },
    get columns() {
      return stdout.columns;
    },
  },
  stderr,
  env: process.env,
  program: programName(process.argv[1], process.env),
  cwd: () => process.cwd(),
  stopped: () => (stopping ??= new AbortController()).signal,
  interruption,
  interruptible,
  driving: (what) => {
    underWay = what;
    if (what.phase === "recorded" && awaited !== null) leaveAtOnce(awaited);
  },
  answered: () => {
    isAnswered = true;
  },
};

// Not awaited here: a bundle may put what commands share into this very file, and they would wait for its end.
void main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<void> {
  // Before anything else: a program that reads the result gets one from here on. A person at a terminal has only Ctrl-C,
  // so there the kernel ends the process until a run begins, also one that is too busy to hear a signal.
  if (!stdout.isTTY || argv.includes("--json")) listen();
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
    `lockstep needs Node ${OLDEST_NODE} or newer, but this is Node ${process.versions.node}. ` +
    `Install a newer one from https://nodejs.org, or with your version manager.`;
  const failure = { v: 1, outcome: "failed", success: false, code: "NODE_TOO_OLD", reason, exitCode: 3 };
  stderr.write(`${reason}\n`);
  if (argv.includes("--json")) stdout.write(`${JSON.stringify(failure)}\n`);
  leave(failure.exitCode);
}

/** A bug outside of what is awaited is reported like any other failure. */
async function crash(error: unknown, argv: readonly string[]): Promise<void> {
  leave(await fail(error, argv));
}

/** For the completions of shells: an answer or nothing, since an error would be written over the line. */
async function offer(typed: readonly string[]): Promise<number> {
  const { complete, offeredText } = await import("./commands/complete.ts");
  const offered = await complete(typed, { cwd: process.cwd(), env: process.env }).catch(() => null);
  if (offered !== null) stdout.write(`${offeredText(offered)}\n`);
  return 0;
}

async function answer(argv: readonly string[]): Promise<number> {
  if (argv[0] === "__complete") return await offer(argv.slice(argv[1] === "--" ? 2 : 1));
  const [word, verb] = lookAt(argv).words;
  // As other programs have it; a command that is more verbose has to be named.
  const isVersion = isAsked("version") || (argv.length === 1 && argv[0] === "-v");
  if (word === undefined && isVersion) return printVersion(isAsked("json"));
  if (word === undefined && isAsked("help")) return await run(commandNamed("help"), ["help", ...argv]);
  if (word === undefined) {
    parseLine(argv, { flags: GLOBAL_FLAGS });
    if (stdout.isTTY && !isAsked("json")) return await run(commandNamed("next"), ["next", ...argv]);
    return await printUsage(isAsked("json"));
  }
  const isFamily = verb === undefined && commandsOf(word).length > 0;
  if (isFamily && isAsked("help")) return await run(commandNamed("help"), ["help", ...argv]);
  return await run(commandNamed(word, verb), argv);
}

/** A first look at the line: which command it is for, and how that is to be answered. */
function lookAt(argv: readonly string[]): Line {
  return (looked ??= parseLine(argv, { flags: everyFlag(), lenient: true }));
}

function isAsked(flag: string): boolean {
  return looked?.flags.get(flag)?.at(-1) === "true";
}

async function run(command: CliCommand, argv: readonly string[]): Promise<number> {
  asked = command;
  // Looking at a large flow can keep the process too busy to hear a signal, and there is nothing that has to be stopped.
  if (!isRunning(command) && command.kind === undefined) deafen();
  const line = command.takesParameters ? lookAt(argv) : lineOf(command, argv);
  const call = createCall(command, argv, host, line, (read) => {
    current = read;
  });
  const { help, version, json } = call.flags;
  if (!command.takesParameters && command.name !== "help") {
    if (help)
      return await run(commandNamed("help"), [
        "help",
        ...command.name.split(" "),
        ...(json ? ["--json"] : []),
      ]);
    if (version) return printVersion(json);
  }
  if (NAMES_A_PROXY.some((name) => process.env[name]))
    await (await import("../run/world/proxy.ts")).useProxies(process.env);
  if (!SEARCHING.has(command.name)) setTimeout(boundYoungObjects, LONG_MS).unref();
  const perform = await command.load();
  return await perform(call);
}

/**
 * V8 doubles the memory for young objects up to 128 MB on a large machine, which gains nothing here: from now on it
 * stays as large as it is. The flag is read whenever that memory would grow. A later V8 may not have it.
 */
function boundYoungObjects(): void {
  if (!isLeaving && Number.parseInt(process.versions.v8, 10) <= 14)
    process.getBuiltinModule("node:v8").setFlagsFromString("--semi-space-growth-factor=1");
}

function printVersion(json: boolean): number {
  deafen();
  stdout.write(`${versionText(json)}\n`);
  return 0;
}

/** `lockstep` alone where no person reads it: help, but no success. */
async function printUsage(json: boolean): Promise<number> {
  if (json) throw new UsageError("No command given.");
  const { mainHelp } = await import("./help.ts");
  stderr.write(`${mainHelp(createPaint(false), host.program)}\n`);
  return 2;
}

/** Every failure that is not a result: reported on stderr, and in the one document where one was asked for. */
async function fail(error: unknown, argv: readonly string[]): Promise<number> {
  // The first failure is the answer. A later one is a consequence of it, unless reporting the first one failed.
  if (isFailing) return await new Promise(() => setTimeout(() => process.exit(1), LEAVE_MS));
  isFailing = true;
  const { failureDocument, toFailing, interruptedBy } = await import("./text/failure.ts");
  const { words } = lookAt(argv);
  const agent =
    asked?.words[0]?.is === "agent"
      ? ((current?.words ?? words.slice(asked.name.split(" ").length))[0] ?? "")
      : "";
  const signal = signalIn(error);
  const failure =
    signal === null
      ? toFailing(error, asked, agent, current?.cwd ?? looked?.flags.get("cwd")?.at(-1) ?? host.cwd())
      : interruptedBy(signal, LEFT_BY[signal], {
          word: isRunning(asked) ? (asked?.name === "run" ? "began" : "went on") : null,
          isSecond: error instanceof Left && stopping?.signal.aborted === true,
          resume: underWay?.resume ?? null,
        });
  current?.screen.status(null);
  stderr.write(
    `lockstep: ${shown(current?.typed(failure.reason) ?? asTyped(failure.reason, host.program))}\n`,
  );
  if (failure.stack !== null) stderr.write(`${shown(failure.stack)}\n`);
  if (isAnswered) return failure.exitCode;
  if (current?.flags.json ?? isAsked("json"))
    stdout.write(`${jsonLine(failureDocument(failure, asked, agent, underWay))}\n`);
  else if (isRunning(asked) && !isAsked("events")) stdout.write('{"outcome":"failed"}\n');
  return failure.exitCode;
}

/** The signal that is the cause; null: something else is. */
function signalIn(error: unknown): Signal | null {
  if (error instanceof Left) return error.signal;
  const isExpected = error instanceof Error && (error.name === "RunnerError" || error.name === "AbortError");
  return isExpected && stopping?.signal.aborted === true ? (stopping.signal.reason as Signal) : null;
}

class Left extends Error {
  readonly signal: Signal;

  constructor(signal: Signal) {
    super(signal);
    this.signal = signal;
  }
}

function isRunning(command: CliCommand | null): boolean {
  return command !== null && RUNNING.has(command.name);
}

/** A reader may go away early, as `head` does: the work goes on all the same. Anything else loses the result. */
function noteLost(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") lost ??= error.message;
}

/** Ends the process once everything written has gone out, whatever else may still hold it open. */
function leave(exitCode: number): void {
  isLeaving = true;
  process.exitCode = exitCode;
  stdout.afterAll(() => {
    if (lost !== null) stderr.write(`lockstep: The result cannot be written to stdout: ${lost}\n`);
    stderr.afterAll(() => process.exit(lost !== null && exitCode === 0 ? 1 : exitCode));
  });
}

function interruption(): AbortSignal {
  // Nothing begins once the answer is that nothing was begun.
  if (isFailing) throw new Error("the command is about to end");
  isOrderly = true;
  listen();
  return (stopping ??= new AbortController()).signal;
}

async function interruptible<T>(wait: () => Promise<T>): Promise<T> {
  const [wasOrderly, wasListening] = [isOrderly, isListening];
  interruption();
  try {
    return await wait();
  } finally {
    isOrderly = wasOrderly;
    if (!wasListening) deafen();
  }
}

/** Without a listener the kernel ends the process, also one that is too busy to listen. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  for (const signal of Object.keys(LEFT_BY)) process.on(signal, hear);
}

function deafen(): void {
  isListening = false;
  for (const signal of Object.keys(LEFT_BY)) process.off(signal, hear);
}

function hear(signal: Signal): void {
  if (isFailing || isLeaving || awaited !== null) {
    // The answer is on its way out; a further signal does not wait for it.
    if (isInsisted) process.exit(process.exitCode ?? LEFT_BY[signal]);
    isInsisted = true;
    return;
  }
  if (underWay?.phase === "over") {
    // The run has its result: that is the answer, unless what is still to be closed takes too long.
    setTimeout(leaveAtOnce, LEAVE_MS, signal);
    return;
  }
  if (isOrderly && stopping?.signal.aborted !== true) {
    current?.screen.tell(stopWords(signal));
    (stopping ??= new AbortController()).abort(signal);
    return;
  }
  setTimeout(() => process.exit(LEFT_BY[signal]), LEAVE_MS);
  if (underWay?.phase === "begins") awaited = signal;
  else leaveAtOnce(signal);
}

/** What was committed is on disk, and what commands are running is taken along by the exit. */
function leaveAtOnce(signal: Signal): void {
  void crash(new Left(signal), process.argv.slice(2));
}

function stopWords(signal: Signal): string {
  const isWork = isRunning(asked) || asked?.name === "answer";
  const given = isWork ? ": current work is discarded." : ".";
  if (signal === "SIGTERM") return `SIGTERM received, stopping${given}`;
  if (signal === "SIGHUP") return `The terminal is gone, stopping${given}`;
  return `Stopping${given}${isWork ? " Press Ctrl-C again to exit immediately." : ""}`;
}
