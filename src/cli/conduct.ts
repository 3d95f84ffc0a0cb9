/** Starting and resuming look the same from outside: progress, a signal to stop, one result at the end. */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { answerFrom, notAnAnswer, offer } from "../flow/question.ts";
import { EXIT } from "../flow/verdict.ts";
import { broken, visible, visibleInLine } from "../flow/text/visible.ts";
import { RunnerError, type DriveOptions, type Result } from "../run/index.ts";
import { parseNetwork } from "../run/world/config.ts";
import { createFiles, readWritten } from "../run/world/files.ts";
import { foreignLines, type TrustJournal, type Yes } from "../run/trust/foreign.ts";
import { findProject } from "../run/world/project.ts";
import { commandLines } from "../run/trust/trust.ts";
import { UsageError } from "./args.ts";
import type { Call, UnderWay } from "./call.ts";
import { amount, spending } from "./limits.ts";
import { renderProblems } from "./text/problems.ts";
import { createProgress } from "./text/progress.ts";
import { renderBrief, renderReport } from "./text/report.ts";
import { jsonLine, shellWord, shown } from "./text/text.ts";

type Confirm = NonNullable<NonNullable<DriveOptions["trust"]>["confirm"]>;

/** Drives a run and reports it; the exit code is the result's. */
export async function conduct(
  call: Call,
  drive: (options: DriveOptions) => Promise<Result>,
): Promise<number> {
  const { screen, host } = call;
  const signal = host.stopped();
  const said = new Set<string>();
  const options = driveOptions(call, signal, said);
  const progress = createProgress(screen, call.on("verbose"), () => performance.now());
  let phase: UnderWay["phase"] | null = null;
  const driving = (run: string, now: UnderWay["phase"]) => {
    if (phase !== now) host.driving({ run, phase: (phase = now), resume: resumeCommand(call, { run }) });
  };
  const result = await drive({
    ...options,
    ...(screen.isLive ? { onText: progress.hear } : {}),
    onRun: (run, isRecorded) => driving(run, isRecorded ? "recorded" : "begins"),
    observe: (entry, state, flow) => {
      driving(state.run, entry.event.type === "run.ended" ? "over" : "recorded");
      if (call.on("events")) screen.emit(jsonLine(entry));
      else progress.observe(entry, state, flow);
    },
  });
  progress.stop();
  return tellResult(call, signal.aborted ? stoppedBy(signal, stoppedEarly(result)) : result, said);
}

/** How the command line wants a run to be driven. `said`: what was printed on the way. */
export function driveOptions(call: Call, signal: AbortSignal, said = new Set<string>()): DriveOptions {
  const { screen, host } = call;
  if (call.on("json") && call.on("events"))
    throw new UsageError("--json and --events cannot both have stdout.");
  const trust = call.text("trust");
  const script = call.text("script");
  const [model, use] = [call.text("model"), call.text("backend")];
  if (script !== undefined && (model ?? use) !== undefined)
    throw new UsageError("--script answers in the place of a model: leave --model and --backend out.");
  const log = call.text("log");
  return {
    cwd: resolve(call.cwd),
    ...(call.stateDir === undefined ? {} : { stateDir: call.stateDir }),
    ...(script === undefined ? {} : { script: { text: readScript(call, script), file: script } }),
    ...(model === undefined ? {} : { model }),
    ...(use === undefined ? {} : { use }),
    ...(log === undefined ? {} : { log: resolve(call.cwd, log) }),
    env: host.env,
    trust: {
      ...(trust === undefined ? {} : { digest: trust }),
      ...(screen.isAnswering ? { confirm: askForTrust(call, signal) } : {}),
    },
    ...journalAccess(call, signal),
    ...onPermission(call),
    ...waiting(call),
    notify: (text) => {
      said.add(text);
      screen.complain(shown(call.typed(text)));
    },
    ...spending(call),
    ...sandboxOf(call),
    ...networkOf(call),
    ...(screen.isAnswering ? { ask: askPerson(call) } : {}),
    signal,
    onBegin: () => void host.interruption(),
  };
}

/** The report for the person, without what was said already; then the result on stdout. */
export function tellResult(call: Call, result: Result, said: ReadonlySet<string> = new Set()): number {
  const { screen } = call;
  const errors = result.problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0 && !result.success && !call.on("json")) {
    const { root } = findProject(call.cwd);
    screen.tell(`${renderProblems(errors, createFiles(root), screen.err, call.typed)}\n`);
  }
  const warnings = result.warnings.filter((text) => !said.has(text)).map(call.typed);
  const width = screen.isLive ? screen.width : Infinity;
  const resume = resumeCommand(call, result);
  const report = renderReport({ ...result, warnings }, resume, screen.err, call.typed, width);
  if (result.success) screen.tell(report);
  else if (call.on("quiet")) screen.complain(renderBrief(result, resume, screen.err, call.typed));
  else screen.complain(report);
  if (call.on("json")) screen.document(result);
  else if (!call.on("events")) screen.outcome(jsonLine(lastLine(result)));
  return result.exitCode;
}

/** The last line on stdout: the outcome in one word, with what the run made. */
function lastLine({ success, outcome, code, result }: Result): object {
  if (success) return { outcome: "success", ...(result !== null && { result }) };
  if (code === "PAUSED" || code === "RUN_PAUSED") return { outcome: "paused" };
  return { outcome: outcome === "waiting" ? "waiting" : "failed" };
}

/** With the flags that lead to the same journal, and `more` of those that were given. */
export function resumeCommand(
  call: Call,
  { run }: Pick<Result, "run">,
  more: readonly string[] = [],
): string {
  const flags = ["cwd", "state", ...more].flatMap((flag) => {
    const value = call.text(flag);
    return value === undefined ? [] : [`--${flag}`, shellWord(value)];
  });
  return ["lockstep", "resume", shellWord(run ?? "@last"), ...flags].join(" ");
}

/** Relative to the folder that the call works in. */
function readScript(call: Call, file: string): string {
  try {
    return readWritten(resolve(call.cwd, file));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new RunnerError("SCRIPT_INVALID", `The script ${file} cannot be read: ${why}`, { cause });
  }
}

/** Interrupted before there was a run: neither a failure nor something to go on with. */
function stoppedEarly(result: Result): Result {
  if (result.run !== null) return result;
  const reason = "Stopped before the run began.";
  return {
    ...result,
    outcome: "interrupted",
    code: "INTERRUPTED",
    reason,
    completionReason: reason,
    exitCode: 130,
  };
}

/** Programs that end processes know a signal by its number. */
export function stoppedBy(signal: AbortSignal, result: Result): Result {
  return result.outcome === "interrupted" ? { ...result, exitCode: codeOf(signal) } : result;
}

export function codeOf({ reason }: AbortSignal): number {
  return reason === "SIGTERM" ? EXIT.terminated : reason === "SIGHUP" ? EXIT.hungUp : EXIT.interrupted;
}

function waiting(call: Call): Pick<DriveOptions, "wait" | "expireMs"> {
  const wait = call.on("wait") ? { wait: true } : {};
  if (call.on("wait") && (call.text("on-permission") ?? "halt") !== "halt")
    throw new UsageError("--wait waits for an answer, and --on-permission settles it without one.");
  const expire = call.text("expire");
  return { ...wait, ...(expire !== undefined && { expireMs: amount("wallMs", expire, "--expire") }) };
}

function onPermission(call: Call): Pick<DriveOptions, "onPermission"> {
  const said = call.text("on-permission");
  if (said === undefined) return {};
  if (said === "deny" || said === "halt" || said === "allow") return { onPermission: said };
  throw new UsageError(`--on-permission knows deny, halt and allow, not "${said}".`);
}

/** What was said on the line, or nothing: then the user's settings hold. */
export function sandboxOf(call: Call): Pick<DriveOptions, "sandbox"> {
  const said = call.text("sandbox");
  if (said === undefined) return {};
  if (said === "on" || said === "off" || said === "auto") return { sandbox: said };
  throw new UsageError(`--sandbox knows on, off and auto, not "${said}".`);
}

/** The same for what confined commands may reach. */
export function networkOf(call: Call): Pick<DriveOptions, "network"> {
  const said = call.text("network");
  if (said === undefined) return {};
  const read = parseNetwork(said);
  if ("fault" in read) throw new UsageError(`--network: ${read.fault}.`);
  return { network: read.wish };
}

/** Asks until the answer is one of the choices: no answer is ever guessed. */
function askPerson(call: Call): NonNullable<DriveOptions["ask"]> {
  return async (question, choices, signal, free = false) => {
    const offered = broken(visibleInLine(offer(choices, free)));
    let asked = `${broken(visible(question))}\n${offered}`;
    for (;;) {
      const line = await askLine(call, asked, signal);
      if (line === null) {
        if (!signal.aborted) await stopRun(signal);
        return null;
      }
      const answer = answerFrom({ choices, free }, line);
      if (answer !== null) return answer;
      asked = `${broken(visibleInLine(notAnAnswer(line, choices, free)))}\n${offered}`;
    }
  };
}

/** The terminal gives no more input (Ctrl-D): the run stops as with Ctrl-C, and the question stays open. */
async function stopRun(signal: AbortSignal): Promise<void> {
  const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  process.kill(process.pid, "SIGINT");
  // An answer of nobody that comes before the run has stopped would count as a no.
  await Promise.race([stopped, sleep(STOP_MS)]);
}

const STOP_MS = 5000;

/** null: nobody answered. */
async function askLine(
  { screen, host }: Call,
  question: string,
  signal: AbortSignal,
): Promise<string | null> {
  const input = host.stdin.open();
  forgetTyped(input);
  return await screen.ask(question, async () => await readLine(host, input, signal));
}

/** Not read as a terminal of its own: so Ctrl-C stays a signal. */
async function readLine(
  host: Call["host"],
  input: NodeJS.ReadStream,
  signal: AbortSignal,
): Promise<string | null> {
  const { createInterface } = await import("node:readline");
  if (signal.aborted || input.readableEnded) return null;
  const lines = createInterface({ input, terminal: false });
  try {
    return await host.interruptible(
      async () =>
        await new Promise((resolve) => {
          lines.once("line", resolve);
          lines.once("close", () => resolve(null));
          signal.addEventListener("abort", () => resolve(null), { once: true });
        }),
    );
  } finally {
    lines.close();
  }
}

/** What was typed before the question was on the screen does not answer it. */
function forgetTyped(input: NodeJS.ReadStream): void {
  while (input.read() !== null);
  let terminal: number | undefined;
  try {
    terminal = openSync("/dev/tty", constants.O_RDONLY | constants.O_NONBLOCK);
    // Also a line that is not finished: the terminal hands it out only in raw mode.
    input.setRawMode(true);
    while (readSync(terminal, Buffer.alloc(4096)) > 0);
  } catch {
    // Nothing more is there (EAGAIN), or there is no such terminal.
  } finally {
    input.setRawMode(false);
    if (terminal !== undefined) closeSync(terminal);
  }
}

/** Whether a journal that the user did not make is used: said on the line, or asked. */
export function journalAccess(call: Call, signal: AbortSignal): TrustJournal {
  const { env } = call.host;
  if (call.on("trust-journal")) return { env, trustJournal: true };
  return call.screen.isAnswering ? { env, trustJournal: askForJournal(call, signal) } : { env };
}

/** A question whose answer is no unless somebody says yes. */
export async function isYes(call: Call, question: string, signal: AbortSignal): Promise<boolean> {
  const line = await askLine(call, `${question} [y/N]`, signal);
  return /^\s*y(es)?\s*$/i.test(line ?? "");
}

function askForJournal(call: Call, signal: AbortSignal): Yes {
  return async (question) =>
    await isYes(
      call,
      [
        `The record of runs in ${visibleInLine(question.stateDir)} is foreign: ${shown(question.why)}.`,
        ...foreignLines(question).map((line) => `  ${shown(line).replaceAll("\n", "\n    ")}`),
        "Use it as your own from now on, with what it records: commands, folders, replies?",
      ].join("\n"),
      signal,
    );
}

/** Everything that is to be trusted, line by line. */
function askForTrust(call: Call, signal: AbortSignal): Confirm {
  return async ({ root, agent, digest, commands, change }) =>
    await isYes(
      call,
      [
        `Agent ${visibleInLine(agent)} of the project ${visibleInLine(root)} makes Lockstep do this:`,
        ...(change === null ? [] : ["It changed since you trusted it: + is new, - is gone."]),
        ...commandLines(commands, change).map((line) => broken(line)),
        `Trust exactly this from now on (${digest})?`,
      ].join("\n"),
      signal,
    );
}
