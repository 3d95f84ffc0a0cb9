/** Looking at recorded runs. */
import { uptime } from "node:os";
import { decide } from "../engine/decide.ts";
import { RunnerError, type Journal, type RunRow } from "../engine/ports.ts";
import { addEntry, createReport, isSideNote } from "../engine/report.ts";
import { prepareSchemas, schemasOf } from "../engine/schema.ts";
import { addUsage, EMPTY_STATE } from "../engine/state.ts";
import { addToTally, addUntil, createTally, tallied, usageIn } from "../engine/tally.ts";
import type { Entry } from "../flow/event.ts";
import { adoptions, flowFrom } from "../flow/adopted.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { LogLine } from "./log-line.ts";
import type { Verdict } from "../flow/verdict.ts";
import { BEGIN_FAILED, FINALIZE_FAILED, isBeginning, toResult, type Result } from "./result.ts";
import type { Why } from "./why.ts";

export type RunSummary = {
  readonly run: string;
  readonly agent: string;
  /**
   * `running` while a living process drives it; `interrupted` when none does and it has not ended; `damaged` when its
   * newest entry cannot be read, or Lockstep cannot have written its id.
   */
  readonly state: "running" | "completed" | "failed" | "waiting" | "paused" | "interrupted" | "damaged";
  readonly code: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly events: number;
  readonly step: string | null;
  /** All steps under way: several while a fork is open. */
  readonly steps: readonly string[];
};

/** Newest first. */
export async function listRuns(journal: Journal): Promise<readonly RunSummary[]> {
  return (await journal.list()).map(summarise);
}

/** What a run was started with, and what it cost so far as prices are known; `costUsd` is null where none is. */
export type Particulars = { readonly args: JsonObject; readonly costUsd: number | null };

/** A damaged run has none. */
export async function particularsOf(journal: Journal, run: string): Promise<Particulars> {
  let args: JsonObject = {};
  let { usage } = EMPTY_STATE;
  const entries = await journal.read(run).catch((error: unknown) => {
    if (error instanceof RunnerError) return [];
    throw error;
  });
  for (const { event } of entries) {
    if (event.type === "run.started") ({ args } = event);
    const spent = usageIn(event);
    if (spent !== undefined) usage = addUsage(usage, spent);
  }
  return { args, costUsd: usage.costUsd };
}

/** How a recorded run stands: its result, or `running` while a living process drives it. Then it has no exit code yet. */
export type Shown = Omit<Result, "outcome" | "exitCode"> & {
  readonly outcome: Result["outcome"] | "running";
  readonly exitCode: number | null;
};

/** The document of a run, from its journal alone. Only what a running run took so far is asked of the clock. */
export async function show(journal: Journal, ref: string, now: number = Date.now()): Promise<Shown> {
  const recorded = await readRun(journal, ref);
  const isRunning = recorded.row.owned && recorded.entries.at(-1)?.event.type !== "run.ended";
  if (!isRunning) return resultOf(recorded);
  const reason = "The run is in progress, driven by another process.";
  return {
    ...resultOf(recorded, now),
    outcome: "running",
    code: "RUNNING",
    exitCode: null,
    resumable: false,
    reason,
    completionReason: reason,
  };
}

/** `until`: what is under way counts as work up to then. */
export function resultOf(recorded: RecordedRun, until: number | null = null): Result {
  const { row, flow, adopted, current, entries } = recorded;
  const report = createReport();
  const tally = createTally();
  let state = EMPTY_STATE;
  let held = flow;
  for (const entry of entries) {
    held = flowFrom(held, entry.event, adopted);
    state = decide(held, state, entry.event);
    addEntry(report, entry);
    addToTally(tally, entry, state);
  }
  if (until !== null) {
    // The clock may have been set since: no process has driven it longer than this machine is up.
    const last = report.lastAt ?? until;
    const at = Math.min(Math.max(until, last), last + Math.ceil(uptime() * 1000));
    addUntil(tally, at);
    report.drivenMs += at - last;
  }
  return toResult({
    run: row.id,
    flow: current,
    digest: adoptions(entries).at(-1) ?? row.digest,
    state,
    report,
    steps: tallied(tally),
    problems: [],
    warnings: [],
  });
}

/** Why a visit of a run went the way it did, from its journal alone; `target` is `STEP` or `STEP@VISIT`. */
export async function why(journal: Journal, ref: string, target?: string): Promise<Why> {
  const { row, flow, adopted, entries } = await readRun(journal, ref);
  // Loaded by those who ask only.
  const told = await import("./why.ts");
  return told.asDriven(told.why(flow, entries, target, adopted), row.owned);
}

/**
 * The log of a run, from its journal alone. `follow` waits for more until the run has ended, or nobody drives it.
 *
 * @example
 * for await (const { level, message } of logs(journal, "@last")) console.log(level, message);
 */
export async function* logs(
  journal: Journal,
  ref: string,
  options: { readonly follow?: boolean; readonly signal?: AbortSignal } = {},
): AsyncGenerator<LogLine> {
  const { logLines, watchRun } = await import("./logs.ts");
  const signal = options.signal ?? new AbortController().signal;
  const { flow, moments } = await watchRun(journal, ref, options.follow ?? false, signal);
  for await (const { entry, before, after } of moments) yield* logLines(entry, before, after, flow);
}

/** A run as it is recorded, with the flows it is pinned to; ready to be folded. */
export async function readRun(journal: Journal, ref: string): Promise<RecordedRun> {
  return await readRow(journal, await findRun(journal, ref));
}

export async function readRow(journal: Journal, row: RunRow): Promise<RecordedRun> {
  const entries = await journal.read(row.id);
  const flow = await flowOf(journal, row.id, row.digest);
  const adopted: { [digest: string]: Flow } = {};
  let current = flow;
  for (const digest of adoptions(entries)) current = adopted[digest] = await flowOf(journal, row.id, digest);
  return { row, flow, adopted, current, entries };
}

export type RecordedRun = {
  readonly row: RunRow;
  /** The one it began with. */
  readonly flow: Flow;
  /** Those it adopted on its way. */
  readonly adopted: Flows;
  /** The one that holds now. */
  readonly current: Flow;
  readonly entries: readonly Entry[];
};

/** A flow of a run. Folding its journal holds the answers against their schemas again, so those are made ready too. */
export async function flowOf(journal: Journal, run: string, digest: string): Promise<Flow> {
  const flow = await journal.flow(digest);
  if (flow === null)
    throw new RunnerError("JOURNAL_UNAVAILABLE", `A flow of run ${run} is missing from the journal.`);
  await prepareSchemas(schemasOf(flow));
  return flow;
}

/** The one run that an id, a unique prefix, `@last` or `@failed` means. */
export async function findRun(journal: Journal, ref: string): Promise<RunRow> {
  if (ref === "@last" || ref === "@failed") {
    const row = ref === "@last" ? (await journal.list({ limit: 1 }))[0] : await newestFailed(journal);
    if (row === undefined) throw new RunnerError("RUN_UNKNOWN", `There is no run that ${ref} could mean.`);
    return row;
  }
  const matches = ref === "" ? [] : await journal.list({ prefix: ref });
  const exact = matches.find((row) => row.id === ref);
  if (exact !== undefined) return exact;
  if (matches.length === 1) return matches[0]!;
  if (matches.length === 0) {
    throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}". \`lockstep runs\` lists what there is.`);
  }
  const ids = matches.slice(0, 8).map((row) => row.id);
  throw new RunnerError("RUN_AMBIGUOUS", `"${ref}" could be any of ${ids.join(", ")}; give more of the id.`);
}

function standingOf({ owned, damaged }: RunRow, ended: Verdict | null): Pick<RunSummary, "state" | "code"> {
  if (damaged !== undefined) return { state: "damaged", code: "JOURNAL_UNAVAILABLE" };
  if (ended?.code === "PAUSED") return { state: "paused", code: null };
  const open = owned ? "running" : "interrupted";
  return { state: ended?.outcome ?? open, code: ended?.code ?? null };
}

/** Page by page: most often it is among the newest. */
async function newestFailed(journal: Journal): Promise<RunRow | undefined> {
  let before: string | undefined;
  for (;;) {
    const page = await journal.list({ limit: PAGE, ...(before !== undefined && { before }) });
    const found = page.find((row) => summarise(row).state === "failed");
    if (found !== undefined || page.length < PAGE) return found;
    before = page.at(-1)!.id;
  }
}

const PAGE = 100;

export function summarise(row: RunRow): RunSummary {
  const { last } = row;
  const ended = last?.event.type === "run.ended" ? last.event.verdict : undelivered(row);
  const only = ended?.step ?? stepOf(last);
  const steps = (ended === null ? last?.underWay : undefined) ?? (only === null ? [] : [only]);
  return {
    run: row.id,
    agent: row.agent,
    ...standingOf(row, ended),
    createdAt: new Date(row.createdAt).toISOString(),
    updatedAt: new Date(last?.at ?? row.createdAt).toISOString(),
    events: row.events,
    step: steps[0] ?? null,
    steps,
  };
}

/** Something that was to come before, or to follow, has failed: the run waits for it. */
function undelivered({ last, owned }: RunRow): Verdict | null {
  if (last?.event.type !== "effect.failed" || owned || isSideNote(last.event.key)) return null;
  const { key, detail } = last.event;
  const code = isBeginning(key) ? BEGIN_FAILED : FINALIZE_FAILED;
  return { outcome: "failed", code, reason: detail, step: null };
}

function stepOf(entry: Entry | null): string | null {
  if (entry === null) return null;
  if (entry.led?.to !== undefined && entry.led.to !== null) return entry.led.to;
  if (entry.event.type === "run.stopped") return entry.event.at?.[0] ?? null;
  return "step" in entry.event ? entry.event.step : null;
}
