/** Starting and resuming look the same from outside: progress, a signal to stop, one result at the end. */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defined } from "../flow/json.ts";
import { answerFrom, notAnAnswer, offer } from "../flow/question.ts";
import { exitOfSignal } from "../flow/verdict.ts";
import { broken, visible, visibleInLine } from "../flow/text/visible.ts";
import type { DriveOptions, Result } from "../run/index.ts";
import { stoppedEarly } from "../tell/result.ts";
import { parseNetwork } from "../run/world/config.ts";
import { createFiles } from "../run/world/files.ts";
import { foreignLines, type TrustJournal, type Yes } from "../run/trust/foreign-state.ts";
import { findProject } from "../run/world/project.ts";
import { commandLines } from "../run/trust/trust.ts";
import { UsageError } from "./args.ts";
import { writtenFlags, type CommandCall, type CallUnderWay } from "./call.ts";
import type { DriveFlags } from "./commands.ts";
import { readGiven } from "./given-file.ts";
import { spending } from "./limits.ts";
import { renderProblems } from "./text/problems.ts";
import { createProgress } from "./text/progress.ts";
import { requireSummaryFile, writeSummary } from "./summary-file.ts";
import { nextAction, renderBrief, renderReport } from "./text/report.ts";
import { jsonLine, shellWord, shown, shownInLine } from "./text/text.ts";

type Confirm = NonNullable<NonNullable<DriveOptions["trust"]>["confirm"]>;

/** Drives a run and reports it; the exit code is the result's. */
export async function conduct(
  call: CommandCall<DriveFlags>,
  drive: (options: DriveOptions) => Promise<Result>,
): Promise<number> {
  const { screen, host } = call;
  const signal = host.stopped();
  const said = new Set<string>();
  const options = driveOptions(call, signal, said);
  const progress = createProgress(screen, call.flags.verbose, () => performance.now());
  let phase: CallUnderWay["phase"] | null = null;
  const driving = (run: string, now: CallUnderWay["phase"]) => {
    if (phase !== now) host.driving({ run, phase: (phase = now), resume: resumeCommand(call, { run }) });
  };
  const result = await drive({
    ...options,
    ...(screen.isLive ? { onText: progress.hear } : {}),
    onRun: (run, isRecorded) => driving(run, isRecorded ? "recorded" : "begins"),
    observe: (entry, state, flow, deeds) => {
      driving(state.run, entry.event.type === "run.ended" ? "over" : "recorded");
      if (call.flags.events) screen.emit(jsonLine(entry));
      else progress.observe(entry, state, flow, deeds);
    },
  });
  progress.stop();
  const told = signal.aborted ? stoppedBy(signal, stoppedEarly(result)) : result;
  const code = tellResult(call, told, said);
  await writeSummary(call, async () => {
    const { runSummary } = await import("./text/summary.ts");
    return runSummary(told, nextAction(told, resumeCommand(call, told)).map(call.typed));
  });
  return code;
}

/** How the command line wants a run to be driven. `said`: what was printed on the way. */
export function driveOptions(
  call: CommandCall<DriveFlags>,
  signal: AbortSignal,
  said = new Set<string>(),
): DriveOptions {
  const { screen, host, flags } = call;
  const { script, model, backend, wait, log, network } = flags;
  const onPermission = flags["on-permission"];
  if (flags.json && flags.events)
    throw new UsageError("--json and --events cannot be used together: both write to stdout.");
  if (script !== undefined && (model ?? backend) !== undefined)
    throw new UsageError("--script replaces the model: leave out --model and --backend.");
  if (wait && (onPermission ?? "halt") !== "halt")
    throw new UsageError("--wait and --on-permission cannot be used together.");
  requireSummaryFile(call);
  const isAnswering = screen.isAnswering ? true : undefined;
  return {
    cwd: resolve(call.cwd),
    env: host.env,
    ...defined({
      stateDir: call.stateDir,
      script:
        script === undefined ? undefined : { text: readGiven(call, script, "SCRIPT_INVALID"), file: script },
      model,
      use: backend,
      log: log === undefined ? undefined : resolve(call.cwd, log),
      onPermission,
      expireMs: flags.expire,
      sandbox: flags.sandbox,
      network: network === undefined ? undefined : networkWish(network),
      ask: isAnswering && askPerson(call),
    }),
    trust: defined({ digest: flags.trust, confirm: isAnswering && askForTrust(call, signal) }),
    ...(wait && { wait }),
    ...journalAccess(call, signal),
    ...spending(call),
    notify: (text) => {
      said.add(text);
      screen.complain(shown(call.typed(text)));
    },
    signal,
    onBegin: () => void host.interruption(),
  };
}

/** The report for the person, without what was said already; then the result on stdout. */
export function tellResult(
  call: CommandCall<DriveFlags>,
  result: Result,
  said: ReadonlySet<string> = new Set(),
): number {
  const { screen } = call;
  const errors = result.problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0 && !result.success && !call.flags.json) {
    const { root } = findProject(call.cwd);
    screen.tell(`${renderProblems(errors, createFiles(root), screen.err, call.typed)}\n`);
  }
  const warnings = result.warnings.filter((text) => !said.has(text)).map(call.typed);
  const width = screen.isLive ? screen.width : Infinity;
  const resume = resumeCommand(call, result);
  const report = renderReport({ ...result, warnings }, resume, screen.err, call.typed, width);
  if (result.success) screen.tell(report);
  else if (call.flags.quiet) screen.complain(renderBrief(result, resume, screen.err, call.typed));
  else screen.complain(report);
  if (call.flags.json) screen.document(result);
  else if (!call.flags.events) screen.outcome(jsonLine(lastLine(result)));
  return result.exitCode;
}

/** The last line on stdout: the outcome in one word, with what the run made. */
function lastLine({ success, outcome, code, result }: Result): object {
  if (success) return { outcome: "success", ...(result !== null && { result }) };
  if (code === "PAUSED" || code === "RUN_PAUSED") return { outcome: "paused" };
  return { outcome: outcome === "waiting" ? "waiting" : "failed" };
}

/** With the flags that lead to the same journal, those that no run records, and `more` of those that were given. */
export function resumeCommand(
  call: CommandCall,
  { run }: Pick<Result, "run">,
  more: readonly string[] = [],
): string {
  const flags = writtenFlags(call, ["cwd", "state", "sandbox", "network", ...more]);
  return ["lockstep", "resume", shellWord(shownInLine(run ?? "@last")), ...flags].join(" ");
}

/** Programs that end processes know a signal by its number. */
export function stoppedBy(signal: AbortSignal, result: Result): Result {
  return result.outcome === "interrupted" ? { ...result, exitCode: exitOfSignal(signal) } : result;
}

/** What confined commands may reach. */
export function networkWish(written: string): NonNullable<DriveOptions["network"]> {
  const read = parseNetwork(written);
  if ("fault" in read) throw new UsageError(`--network: ${read.fault}.`);
  return read.wish;
}

/** Asks until the answer is one of the choices: no answer is ever guessed. */
function askPerson(call: CommandCall): NonNullable<DriveOptions["ask"]> {
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
  // An absent answer that arrives before the run has stopped would count as a no.
  await Promise.race([stopped, sleep(STOP_MS)]);
}

const STOP_MS = 5000;

/** null: no answer was given. */
export async function askLine(
  { screen, host }: CommandCall,
  question: string,
  signal: AbortSignal,
): Promise<string | null> {
  const input = host.stdin.open();
  forgetTyped(input);
  return await screen.ask(question, async () => await readLine(host, input, signal));
}

/** Not read as a terminal of its own: so Ctrl-C stays a signal. */
async function readLine(
  host: CommandCall["host"],
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
export function journalAccess(
  call: CommandCall<Pick<DriveFlags, "trust-journal">>,
  signal: AbortSignal,
): TrustJournal {
  const { env } = call.host;
  if (call.flags["trust-journal"]) return { env, trustJournal: true };
  return call.screen.isAnswering ? { env, trustJournal: askForJournal(call, signal) } : { env };
}

/** A question that counts as refused unless the user says yes. */
export async function isYes(call: CommandCall, question: string, signal: AbortSignal): Promise<boolean> {
  const line = await askLine(call, `${question} [y/N]`, signal);
  return /^\s*y(es)?\s*$/i.test(line ?? "");
}

function askForJournal(call: CommandCall, signal: AbortSignal): Yes {
  return async (question) =>
    await isYes(
      call,
      [
        `The state folder ${visibleInLine(question.stateDir)} is not yours: ${shown(question.why)}.`,
        ...foreignLines(question).map((line) => `  ${shown(line).replaceAll("\n", "\n    ")}`),
        "Trust it from now on, including the commands, folders and replies in its run records?",
      ].join("\n"),
      signal,
    );
}

/** Everything that is to be trusted, line by line. */
export function askForTrust(call: CommandCall, signal: AbortSignal): Confirm {
  return async ({ root, agent, digest, commands, change }) =>
    await isYes(
      call,
      [
        `Agent ${visibleInLine(agent)} of the project ${visibleInLine(root)} makes Lockstep do this:`,
        ...(change === null ? [] : ["It changed since you trusted it (+ added, - removed)."]),
        ...commandLines(commands, change).map((line) => broken(line)),
        `Trust exactly this from now on (${digest})?`,
      ].join("\n"),
      signal,
    );
}
