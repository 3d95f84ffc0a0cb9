/** `lockstep run NAME --issues LIST` and `--label NAME`: one run for each issue, reported in one table. */
import type { Flow } from "../../flow/flow.ts";
import { EXIT, exitOfSignal } from "../../flow/verdict.ts";
import {
  resumeBatch,
  runBatch,
  type Batch,
  type BatchItem,
  type BatchOptions,
  type Loaded,
  type Result,
} from "../../run/index.ts";
import type { Labelled } from "../../run/issues.ts";
import { parametersOf } from "../agent.ts";
import { UsageError } from "../args.ts";
import type { CommandCall } from "../call.ts";
import type { CallOf, DriveFlags, StartFlags } from "../commands.ts";
import { driveOptions, resumeCommand, stoppedBy } from "../conduct.ts";
import { statusLine } from "../text/progress.ts";
import { blockedBy, nextAction } from "../text/report.ts";
import { writeSummary } from "../summary-file.ts";
import { argsOf, boundOf, worktreeOf } from "./run.ts";
import type { Screen } from "../screen.ts";
import { count, duration, jsonLine, shownInLine, table, type Paint } from "../text/text.ts";

export async function runIssues(call: CallOf<"run">, loaded: Loaded): Promise<number> {
  const { screen, host } = call;
  const flow = loaded.flow!;
  const args = argsOf(call, parametersOf(flow));
  requireIssue(call, flow);
  const signal = host.stopped();
  const options = driveOptions(call, signal);
  const where = worktreeOf(call, flow);
  if (where.branch !== undefined)
    throw new UsageError("--branch cannot be used with a batch: each run gets its own branch.");
  const concurrency = call.flags.concurrency ?? (where.worktree ? 2 : 1);
  const { numbers: issues, left } = await host.interruptible(async () => await issuesOf(call, signal));
  if (issues.length === 0)
    screen.tell(`No open issue has the label "${shownInLine(call.flags.label ?? "")}".`);
  if (left > 0) {
    const all = issues.length + left;
    screen.tell(
      `${left} more open issues have the label; include them with --limit ${Math.min(all, MOST_AT_ONCE)}.`,
    );
  }
  const items = issues.map((issue) => ({ name: `#${issue}`, args: { issue: String(issue) } }));
  const bound = await boundOf(call, flow);
  const onBegin = () => {
    if (bound !== null) {
      screen.tell(`${count(items.length, "issue")}. For each: ${bound}`);
      if (concurrency > 1 && !where.worktree)
        screen.complain("The runs share this folder; with --worktree, each gets its own.");
    }
    options.onBegin?.();
  };
  const how = { ...options, ...where, args, items, concurrency, left, onBegin };
  return await conductBatch(call, signal, async (heard) => await runBatch(loaded, { ...how, ...heard }));
}

/** `lockstep resume BATCH` */
export async function resumeIssues(call: CallOf<"resume">, batch: string): Promise<number> {
  const signal = call.host.stopped();
  const [adopt, takeOver] = [call.flags.adopt, call.flags["take-over"]];
  const options = { ...driveOptions(call, signal), batch, adopt, takeOver };
  return await conductBatch(call, signal, async (heard) => await resumeBatch({ ...options, ...heard }));
}

type Heard = Required<Pick<BatchOptions, "onBatch" | "observe" | "onResult">>;

async function conductBatch(
  call: CommandCall<DriveFlags>,
  signal: AbortSignal,
  drive: (heard: Heard) => Promise<Batch>,
): Promise<number> {
  const { screen, host } = call;
  const results = new Map<string, Result>();
  let items: readonly BatchItem[] = [];
  const board = createBoard(
    screen,
    () => items.length,
    () => performance.now(),
  );
  const given = await drive({
    onBatch: (batch, all, agent) => {
      items = all;
      const resume = batch === null ? "lockstep runs" : resumeBatchCommand(call, batch);
      if (batch !== null) screen.tell(call.typed(`If it is interrupted, continue with: ${resume}`));
      const soFar = () => ({
        v: 1,
        batch,
        agent,
        success: false,
        items: all.map(({ name }) => ({ name, result: results.get(name) ?? null })),
      });
      host.driving({ run: null, phase: "recorded", resume, document: soFar });
    },
    observe: ({ name }, entry, state) => {
      if (call.flags.events) screen.emit(jsonLine({ item: name, ...entry }));
      board.observe(name, state, entry.event.type === "run.started");
    },
    onResult: ({ name }, result) => {
      results.set(name, result);
      board.done(name, result);
    },
  }).finally(board.stop);
  const batch = signal.aborted ? stoppedAll(signal, given) : given;
  screen.tell(renderBatch(call, batch, screen.err));
  if (call.flags.quiet && batch.batch !== null)
    screen.complain(call.typed(`next: ${resumeBatchCommand(call, batch.batch)}`));
  if (call.flags.json) screen.document(batch);
  else if (!call.flags.events) screen.outcome(jsonLine({ outcome: outcomeOf(batch) }));
  await writeSummary(call, async () => {
    const { batchSummary } = await import("../text/summary.ts");
    return batchSummary(batch, nextOf(call, batch).map(call.typed));
  });
  return batch.exitCode;
}

/** What goes on with the runs that are not complete. */
function nextOf(call: CommandCall<DriveFlags>, { batch, items }: Batch): readonly string[] {
  const more = items.some(({ result }) => result?.code === "SCRIPT_EXHAUSTED") ? " --script MORE" : "";
  const whole = batch === null ? [] : [resumeBatchCommand(call, batch) + more];
  return [...openRuns(call, items), ...whole];
}

/** Programs that end processes know a signal by its number. */
function stoppedAll(signal: AbortSignal, batch: Batch): Batch {
  return {
    ...batch,
    exitCode: batch.exitCode === EXIT.interrupted ? exitOfSignal(signal) : batch.exitCode,
    items: batch.items.map(({ name, result }) => ({
      name,
      result: result === null ? null : stoppedBy(signal, result),
    })),
  };
}

function resumeBatchCommand(call: CommandCall<DriveFlags>, batch: string): string {
  return resumeCommand(call, { run: batch }, ON_PERMISSION);
}

/** A run that waits keeps its question open by itself; one that has not begun would not. */
const ON_PERMISSION = ["on-permission"];

/** Where all that is not complete waits for somebody, so does the batch. */
function outcomeOf({ success, exitCode }: Batch): string {
  return success ? "success" : exitCode === EXIT.waiting ? "waiting" : "failed";
}

/** An issue is what each run differs in, so the agent has to take one. */
export function requireIssue(call: CommandCall<StartFlags>, flow: Flow): void {
  const flag = call.flags.issues === undefined ? "label" : "issues";
  const parameter = flow.parameters.find(({ name }) => name === "issue");
  if (parameter === undefined)
    throw new UsageError(
      `--${flag} passes an issue to each run, but agent "${flow.agent}" has no parameter "issue".`,
    );
  if (call.declared.has(parameter.flag.slice(2)))
    throw new UsageError(`--${flag} and ${parameter.flag} cannot be given together.`);
  if (call.flags.issues !== undefined && call.flags.label !== undefined)
    throw new UsageError("--issues and --label cannot be given together.");
}

/** `left`: open issues with the label that this batch leaves out. */
export async function issuesOf(call: CommandCall<StartFlags>, signal: AbortSignal): Promise<Labelled> {
  const list = call.flags.issues;
  if (list !== undefined) return { numbers: parseIssues(list), left: 0 };
  const { labelledIssues } = await import("../../run/issues.ts");
  const most = call.flags.limit ?? USUAL_LIMIT;
  return await labelledIssues(call.flags.label ?? "", most, { cwd: call.cwd, env: call.host.env, signal });
}

const USUAL_LIMIT = 10;
const MOST_AT_ONCE = 999;

/** `12,15,20-24` */
export function parseIssues(list: string): readonly number[] {
  const issues = list.split(",").flatMap((part) => {
    const [, from, to = from] = /^\s*#?([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?\s*$/.exec(part) ?? [];
    const [first, last] = [Number(from), Number(to)];
    if (from === undefined || last < first || last - first >= MOST_ISSUES)
      throw new UsageError(`--issues: "${part}" is not valid; write numbers like 12,15,20-24.`);
    return Array.from({ length: last - first + 1 }, (_, place) => first + place);
  });
  const once = [...new Set(issues)];
  if (once.length > MOST_ISSUES)
    throw new UsageError(`--issues takes at most ${MOST_ISSUES} issues, but ${once.length} were given.`);
  return once;
}

const MOST_ISSUES = 1000;

// While it goes on.

type State = Parameters<typeof statusLine>[0];

/** A line for each run under way that lives, and one that stays for each that is over. */
function createBoard(screen: Screen, all: () => number, now: () => number) {
  const running = new Map<string, { readonly from: number; state: State }>();
  const over = { completed: 0, other: 0 };
  const refresh = () => {
    const rows = [...running].map(([name, { from, state }]) => `${name}  ${statusLine(state, now() - from)}`);
    const more = rows.length > MOST_ROWS ? [`and ${rows.length - MOST_ROWS} more`] : [];
    screen.status([...rows.slice(0, MOST_ROWS), ...more, summary()].join("\n"));
  };
  const summary = () => {
    const waiting = all() - running.size - over.completed - over.other;
    const failed = over.other === 0 ? "" : ` · ${over.other} not`;
    return `${over.completed} of ${all()} complete${failed} · ${running.size} at work · ${waiting} waiting`;
  };
  const timer = screen.isLive ? setInterval(refresh, 200) : null;
  timer?.unref();
  return {
    observe: (name: string, state: State, isBeginning: boolean) => {
      const known = running.get(name);
      if (known !== undefined) known.state = state;
      else running.set(name, { from: now(), state });
      if (known === undefined && !screen.isLive) screen.tell(`${name} ${isBeginning ? "begins" : "goes on"}`);
    },
    done: (name: string, result: Result) => {
      running.delete(name);
      if (result.success) over.completed += 1;
      else over.other += 1;
      screen.tell(rowOf(name, result, screen.err).join("  "));
    },
    stop: () => {
      if (timer !== null) clearInterval(timer);
      screen.status(null);
    },
  };
}

const MOST_ROWS = 10;

// At the end.

function renderBatch(call: CommandCall<DriveFlags>, batch: Batch, paint: Paint): string {
  const { agent, items, durationMs, costUsd, knownCostUsd } = batch;
  const begun = items.flatMap(({ name, result }) => (result === null ? [] : [rowOf(name, result, paint)]));
  const blocked = items.flatMap(({ name, result }) => {
    const why = result === null ? null : blockedBy(result);
    return why === null ? [] : [`${name}: ${shownInLine(why, LONGEST_DETAIL)}`];
  });
  const idle = items.filter(({ result }) => result === null).map(({ name }) => name);
  const complete = items.filter(({ result }) => result?.success === true).length;
  const atLeast = knownCostUsd === undefined ? "" : ` · at least $${knownCostUsd.toFixed(4)}`;
  const cost = costUsd === null ? atLeast : ` · $${costUsd.toFixed(4)}`;
  const next = nextOf(call, batch);
  return [
    "",
    paint(
      "bold",
      `${shownInLine(agent)}: ${complete} of ${items.length} complete · ${duration(durationMs)}${cost}`,
    ),
    ...table(begun).map((line) => `  ${line}`),
    ...blocked.map((line) => `  ${line}`),
    ...(idle.length === 0 ? [] : [`  not begun: ${idle.join(", ")}`]),
    ...(next.length === 0
      ? []
      : ["  continue with:", ...next.map((line) => `    ${paint("cyan", call.typed(line))}`)]),
  ].join("\n");
}

/** Long enough for the paths and commands in it. */
const LONGEST_DETAIL = 2000;

function openRuns(call: CommandCall<DriveFlags>, items: Batch["items"]): readonly string[] {
  return items.flatMap(({ result }) =>
    result?.resumable === true && !result.success
      ? nextAction(result, resumeCommand(call, result, ON_PERMISSION))
      : [],
  );
}

function rowOf(name: string, result: Result, paint: Paint): readonly string[] {
  const { outcome, success, code, run, iterations, durationMs, costUsd, reason } = result;
  // How to repair it is below the table.
  const [cause = ""] = blockedBy(result)?.split("; ") ?? reason.split("\n");
  const why = success ? "" : `${code ?? ""} ${shownInLine(cause, 120)}`.trim();
  return [
    success ? paint("green", "✓") : paint(outcome === "failed" ? "red" : "yellow", "✗"),
    name,
    run ?? "-",
    count(iterations, "iteration"),
    duration(durationMs),
    costUsd === null ? "" : `$${costUsd.toFixed(4)}`,
    why,
  ];
}
