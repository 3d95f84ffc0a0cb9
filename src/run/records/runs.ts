/** Looking at recorded runs. */
import { setImmediate } from "node:timers/promises";
import { RunnerError, type Journal, type RunRow, type WhichRuns } from "../../engine/ports.ts";
import { prepare, type Prepared, type PreparedFlows } from "../../engine/schema/prepared.ts";
import { addUsage, EMPTY_STATE } from "../../engine/decide/state.ts";
import { usageIn } from "../../story/tally.ts";
import { effectOf } from "../../flow/due.ts";
import type { Entry, Event } from "../../flow/event.ts";
import { adoptions } from "../../flow/adopted.ts";
import { own, type JsonObject } from "../../flow/json.ts";
import { EXIT, type Verdict } from "../../flow/verdict.ts";
import { BEGIN_FAILED, FINALIZE_FAILED, type Result } from "../../tell/result.ts";
import type { RunStanding } from "./standing.ts";
import { EntryDamaged, RecordDamaged } from "../../journal/errors.ts";
import { ended, shellWord } from "../../flow/text/harmless.ts";
import { didYouMean } from "../../flow/text/suggest.ts";

export type RunSummary = {
  readonly run: string;
  readonly agent: string;
  /**
   * `running` while a living process drives it; `queued` when none does, and nothing was under way; `interrupted` when
   * none does and it has not ended; `poisoned` when workers leave it alone; `damaged` when its newest entry cannot be read, or Lockstep cannot have written its id.
   */
  readonly state:
    | "running"
    | "queued"
    | "completed"
    | "failed"
    | "waiting"
    | "paused"
    | "interrupted"
    | "poisoned"
    | "damaged";
  readonly code: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly events: number;
  readonly step: string | null;
  /** All steps under way: several while a fork is open. */
  readonly steps: readonly string[];
};

/** Newest first. */
export async function listRuns(journal: Journal, which?: WhichRuns): Promise<readonly RunSummary[]> {
  return (await journal.list(which)).map(summarise);
}

/** All of them, newest first, read page by page. */
export async function* everyRow(
  journal: Journal,
  which: Pick<WhichRuns, "agent"> = {},
): AsyncGenerator<RunRow> {
  const seen = new Set<string>();
  let before: { readonly before?: string } = {};
  for (;;) {
    const page = await journal.list({ ...which, ...before, limit: PAGE }).catch((error: unknown) => {
      if (!(error instanceof RunnerError) || error.code !== "RUN_UNKNOWN") throw error;
      // Another process has removed the run at which the page ended.
      return null;
    });
    for (const row of page ?? []) {
      if (!seen.has(row.id)) yield row;
      seen.add(row.id);
    }
    if (page !== null && page.length < PAGE) return;
    before = page === null ? {} : { before: page.at(-1)!.id };
  }
}

const PAGE = 100;

/**
 * The entries of a run from one on, some at a time: a long run is not held in memory. Throws `EntryDamaged` after the
 * last one before the damage.
 */
export async function* slicesOf(
  journal: Journal,
  run: string,
  afterSeq = 0,
): AsyncGenerator<readonly Entry[]> {
  for (let seq = afterSeq; ;) {
    const { slice, damage } = await sliceOf(journal, run, seq);
    if (slice.length > 0) yield slice;
    if (damage !== null) throw damage;
    if (slice.length < SLICE) return;
    seq = slice.at(-1)!.seq;
    // A journal on disk is read without a turn of the event loop: signals, timers and others who wait get one here.
    await setImmediate();
  }
}

/** Entries that are read at once. */
export const SLICE = 200;

async function sliceOf(
  journal: Journal,
  run: string,
  afterSeq: number,
): Promise<{ readonly slice: readonly Entry[]; readonly damage: EntryDamaged | null }> {
  try {
    return { slice: await journal.read(run, afterSeq, SLICE), damage: null };
  } catch (error) {
    if (!(error instanceof EntryDamaged)) throw error;
    const readable = error.seq - 1 - afterSeq;
    return { slice: readable > 0 ? await journal.read(run, afterSeq, readable) : [], damage: error };
  }
}

/**
 * What a run was started with, and what it cost so far as prices are known; `costUsd` is null where none is. `damaged`:
 * not all of it can be read.
 */
export type Particulars = {
  readonly args: JsonObject;
  readonly costUsd: number | null;
  /** The batch that it belongs to. */
  readonly batch?: string;
  readonly damaged?: true;
};

export async function particularsOf(journal: Journal, run: string): Promise<Particulars> {
  let args: JsonObject = {};
  let batch: string | undefined;
  let { usage } = EMPTY_STATE;
  let isDamaged = false;
  try {
    for await (const slice of slicesOf(journal, run))
      for (const { event } of slice) {
        if (event.type === "run.started") ({ args, batch } = event);
        if (event.type === "run.started" || event.type === "run.adopted")
          isDamaged ||= (await journal.flow(event.flow)) === null;
        const spent = usageIn(event);
        if (spent !== undefined) usage = addUsage(usage, spent);
      }
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    isDamaged = true;
  }
  const about = { args, costUsd: usage.costUsd, ...(batch !== undefined && { batch }) };
  return { ...about, ...(isDamaged && { damaged: true }) };
}

/** The event that a run began with; null: it cannot be read. A run that is damaged must not hide the others. */
export async function startOf(journal: Journal, run: string): Promise<Started | null> {
  const entries = await journal.read(run, 0, 1).catch((error: unknown) => {
    if (error instanceof RunnerError) return [];
    throw error;
  });
  const first = entries[0]?.event;
  return first?.type === "run.started" ? first : null;
}

type Started = Extract<Event, { type: "run.started" }>;

/** How a run stands in a list if what is read of it is damaged, and not only its newest entry. */
export const DAMAGED = { state: "damaged", code: "JOURNAL_UNAVAILABLE" } as const;

/**
 * How a recorded run stands: its result, or `running` while a living process drives it and `queued` before one does, when
 * it has no exit code yet.
 * `damaged`: how it went is not known, and the rest is what could be read of it.
 */
export type Shown = Omit<Result, "outcome" | "exitCode"> & {
  readonly outcome: Result["outcome"] | "running" | "queued" | "poisoned" | "damaged";
  readonly exitCode: number | null;
};

/**
 * The document of a run, from its journal alone. Only what a running run took so far is asked of the clock. `hear` is
 * called with each entry on the way.
 */
export async function show(
  journal: Journal,
  ref: string,
  now: number = Date.now(),
  hear?: (entry: Entry) => void,
): Promise<Shown> {
  const row = await findRun(journal, ref);
  const { standingOf } = await import("./standing.ts");
  return shownOf(await standingOf(journal, row, now, hear));
}

/** The document of a run that stands so. */
export function shownOf({ result, damage, isRunning, rests, held }: Omit<RunStanding, "state">): Shown {
  const damaged = {
    outcome: "damaged",
    success: false,
    code: "JOURNAL_UNAVAILABLE",
    exitCode: EXIT.unavailable,
  } as const;
  const running = { outcome: "running", code: "RUNNING", exitCode: null } as const;
  if (damage === null && !isRunning && held !== null) {
    const poisoned = { outcome: "poisoned", code: "POISONED", exitCode: EXIT.unavailable } as const;
    const reason = `${ended(held)} To try again: lockstep fleet retry ${shellWord(result.run ?? "")}`;
    return { ...result, ...poisoned, success: false, reason, completionReason: reason };
  }
  if (damage === null && rests !== null) {
    const queued = { outcome: "queued", code: "QUEUED", exitCode: null } as const;
    return { ...result, ...queued, reason: rests, completionReason: rests };
  }
  if (damage === null && !isRunning) return result;
  const reason = damage?.why ?? "The run is active in another process.";
  const stands = damage === null ? running : damaged;
  return { ...result, ...stands, resumable: false, reason, completionReason: reason };
}

/** A run as it is recorded, with the flows it is pinned to; ready to be folded. */
export async function readRun(journal: Journal, ref: string): Promise<RecordedRun> {
  return await readRow(journal, await findRun(journal, ref));
}

export async function readRow(journal: Journal, row: RunRow): Promise<RecordedRun> {
  return await withFlows(journal, row, await journal.read(row.id));
}

async function withFlows(journal: Journal, row: RunRow, entries: readonly Entry[]): Promise<RecordedRun> {
  const flow = await flowOf(journal, row.id, row.digest);
  const adopted: { [digest: string]: Prepared } = {};
  let { digest } = row;
  for (digest of adoptions(entries)) adopted[digest] = await flowOf(journal, row.id, digest);
  return { row, flow, adopted, current: own(adopted, digest) ?? flow, digest, entries };
}

/** Where a run that is damaged stops being readable: before the entry `seq`; null: its entries are whole. */
export type Damage = { readonly seq: number | null; readonly why: string };
export type PartlyRecorded = RecordedRun & { readonly damage: Damage | null };

/** The same as far as it can be read, for looking at it. Throws where nothing can. */
export async function readPartly(journal: Journal, ref: string): Promise<PartlyRecorded> {
  const row = await findRun(journal, ref);
  const entries: Entry[] = [];
  const met = await untilDamage(async () => {
    for await (const slice of slicesOf(journal, row.id)) entries.push(...slice);
  });
  if (met !== null && met.seq <= 1) throw met;
  return { ...(await withFlows(journal, row, entries)), damage: damageOf(row, met) };
}

/** The damage at which reading ended; null: it came to its end. */
export async function untilDamage(read: () => Promise<void>): Promise<EntryDamaged | null> {
  try {
    await read();
    return null;
  } catch (error) {
    if (error instanceof EntryDamaged) return error;
    throw error;
  }
}

/** `met`: what reading it came upon. */
export function damageOf(row: RunRow, met: EntryDamaged | null): Damage | null {
  if (met !== null) return { seq: met.seq, why: met.message };
  return row.damaged === undefined ? null : { seq: null, why: row.damaged };
}

export type RecordedRun = {
  readonly row: RunRow;
  /** The one it began with. */
  readonly flow: Prepared;
  /** Those it adopted on its way. */
  readonly adopted: PreparedFlows;
  /** The one that holds now. */
  readonly current: Prepared;
  /** Of that one. */
  readonly digest: string;
  readonly entries: readonly Entry[];
};

/** A flow of a run, ready to fold its journal with. */
export async function flowOf(journal: Journal, run: string, digest: string): Promise<Prepared> {
  const flow = await journal.flow(digest);
  if (flow === null)
    throw new RecordDamaged(
      `The flow ${digest.slice(0, 12)} of run ${run} is missing from the journal, so the run cannot be read. Its entries still can, with: lockstep show ${run} --events.`,
    );
  return await prepare(flow);
}

/** The one run that an id, a unique prefix, `@last` or `@failed` means. */
export async function findRun(journal: Journal, ref: string): Promise<RunRow> {
  if (ref === "@last" || ref === "@failed") {
    const row = ref === "@last" ? (await journal.list({ limit: 1 }))[0] : await newestFailed(journal);
    if (row === undefined) throw new RunnerError("RUN_UNKNOWN", `No run matches ${ref}.`);
    return row;
  }
  const [exact] = await journal.rows([ref]);
  if (exact !== undefined) return exact;
  const matches = ref === "" ? [] : await journal.list({ prefix: ref, limit: MOST_NAMED + 1 });
  if (matches.length === 1) return matches[0]!;
  if (matches.length === 0) {
    throw new RunnerError(
      "RUN_UNKNOWN",
      `There is no run "${ref}".${didYouMean(ref, ["@last", "@failed"])} \`lockstep runs\` lists the recorded runs.`,
    );
  }
  const ids = matches.slice(0, MOST_NAMED).map((row) => row.id);
  throw new RunnerError("RUN_AMBIGUOUS", `"${ref}" could be any of ${ids.join(", ")}; give more of the id.`);
}

const MOST_NAMED = 8;

function standingOf(
  { owned, damaged, last, held }: RunRow,
  ended: Verdict | null,
): Pick<RunSummary, "state" | "code"> {
  if (damaged !== undefined) return DAMAGED;
  if (held !== undefined && !owned) return { state: "poisoned", code: "POISONED" };
  if (ended?.code === "PAUSED") return { state: "paused", code: null };
  const open = owned ? "running" : restOf(last) !== null ? "queued" : "interrupted";
  return { state: ended?.outcome ?? open, code: ended?.code ?? null };
}

/** Why nobody drives a run in which nothing is under way; null: it has ended, or something was. */
export function restOf(last: Entry | null): string | null {
  const event = last?.event;
  if (event?.type === "run.started" && event.queued === true) return "No process has begun with the run yet.";
  if (event?.type !== "run.yielded") return null;
  const until = Math.min(...(event.waits ?? []).map((wait) => wait.until));
  if (until === Infinity) return "The process that drove the run has put it down: any process can go on.";
  return `The run has nothing to do until ${new Date(until).toISOString()}.`;
}

/** Most often it is among the newest. */
async function newestFailed(journal: Journal): Promise<RunRow | undefined> {
  for await (const row of everyRow(journal)) if (summarise(row).state === "failed") return row;
  return undefined;
}

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
  if (last?.event.type !== "effect.failed" || owned) return null;
  const of = effectOf(last.event);
  // The run goes on without what an answer asked for.
  if (typeof of === "object") return null;
  const code = of === "begin" ? BEGIN_FAILED : FINALIZE_FAILED;
  return { outcome: "failed", code, reason: last.event.detail, step: null };
}

function stepOf(entry: Entry | null): string | null {
  if (entry === null) return null;
  if (entry.led?.to !== undefined && entry.led.to !== null) return entry.led.to;
  if (entry.event.type === "run.stopped") return entry.event.at?.[0] ?? null;
  return "step" in entry.event ? entry.event.step : null;
}
