/** Many runs of one agent side by side, each with parameters of its own; none stops because another one failed. */
import { prepare } from "../engine/schema/prepared.ts";
import { relative, resolve } from "node:path";
import type { ScriptReply } from "../backends/scripted/script.ts";
import { RunnerError, type Backend, type Journal } from "../engine/ports.ts";
import { defined, own, type Json } from "../flow/json.ts";
import { EXIT } from "../flow/verdict.ts";
import { createElapsed } from "../engine/drive/stamp.ts";
import {
  batchNamed,
  forgetBatch,
  holdBatch,
  isBatchRecorded,
  readBatch,
  writeBatch,
  type BatchRecord,
  type PlannedItem,
} from "./batch-record.ts";
import { systemClock } from "./world/clock.ts";
import { openOwnJournal } from "./records/journal.ts";
import { startOf } from "./records/runs.ts";
import { load, type Loaded } from "./load.ts";
import type { DriveOptions, RunOptions } from "./options.ts";
import { findProject, recordPlace } from "./world/project.ts";
import { stoppedEarly, toFailure, type Result } from "../tell/result.ts";
import { resultIfOver, resume } from "./resume.ts";
import { admit, journalOn, newRunId, redactorOf, runLoaded, withStack } from "./open.ts";
import { startFolder } from "./world/workplace.ts";

export type BatchItem = {
  /** What people call it. */
  readonly name: string;
  readonly args: { readonly [name: string]: Json };
};

export type BatchOptions = Omit<RunOptions, "agent" | "observe" | "onText" | "onRun"> & {
  readonly items: readonly BatchItem[];
  /** How many are under way at the same time. */
  readonly concurrency?: number;
  /** How many more there would have been: only reported. */
  readonly left?: number;
} & BatchObservers;

/** `batch`: its name or a unique beginning of that. What is given here holds in the place of what the batch began with. */
export type ResumeBatchOptions = Omit<DriveOptions, "observe" | "onText" | "onRun" | "journal"> & {
  readonly batch: string;
  readonly adopt?: boolean;
  readonly takeOver?: boolean;
} & BatchObservers;

type BatchObservers = {
  /** Called when nothing can refuse the batch any more, with its name and all items; null: it is not recorded. */
  readonly onBatch?: (batch: string | null, items: readonly BatchItem[], agent: string) => void;
  /** Hears of everything that is recorded of any of them. */
  readonly observe?: (item: BatchItem, ...heard: Parameters<NonNullable<DriveOptions["observe"]>>) => void;
  readonly onResult?: (item: BatchItem, result: Result) => void;
};

export type Batch = {
  readonly v: 1;
  /** `resume` goes on with it; null: it is not recorded, or nothing is left to go on with. */
  readonly batch: string | null;
  readonly agent: string;
  readonly success: boolean;
  /** 0: all are complete. Else what all others have in common, or 1; 130: it was interrupted. */
  readonly exitCode: number;
  /** In the order in which they were given; null: it was not begun. */
  readonly items: readonly { readonly name: string; readonly result: Result | null }[];
  readonly usage: Result["usage"];
  /** null: the price of a model that was asked is not known. */
  readonly costUsd: number | null;
  /** Only where the cost of some runs is known and of others is not: what is known. */
  readonly knownCostUsd?: number;
  readonly durationMs: number;
  readonly left: number;
};

/** What would stop every one of them is thrown, before any of them begins. */
export async function runBatch(loaded: Loaded, options: BatchOptions): Promise<Batch> {
  const record = recordOf(loaded, options);
  const said = await requireCommon(loaded, options);
  options.onBegin?.();
  const { stateDir } = loaded.project;
  const kept = options.journal === undefined && record.items.length > 0 ? stateDir : null;
  const each = await forEach(options);
  await using stack = new AsyncDisposableStack();
  const journal = options.journal ?? (await journalOn(stack, loaded.project, options));
  if (kept !== null) {
    writeBatch(kept, record);
    stack.use(holdBatch(kept, record.batch));
  }
  const { observe: _, steered = options.journal === undefined, ...how } = options;
  const begin = beginner(loaded, record, { ...how, each, said, journal, steered });
  return await drive(record, options, kept, begin);
}

/** RUN_OWNED_ELSEWHERE while a process drives it. Items that ended are not done again, interrupted ones are resumed, and those not begun begin with the files of now. */
export async function resumeBatch(options: ResumeBatchOptions): Promise<Batch> {
  const project = findProject(options.cwd ?? process.cwd(), options.stateDir);
  const { stateDir } = project;
  const journal = await openOwnJournal(recordPlace(project), options.clock ?? systemClock, options, null);
  if (journal === null) throw new RunnerError("RUN_UNKNOWN", `No batch is recorded in ${stateDir}.`);
  await using stack = new AsyncDisposableStack();
  stack.defer(journal.close);
  const { batch } = readBatch(stateDir, options.batch);
  if (options.takeOver !== true) stack.use(holdBatch(stateDir, batch));
  const record = readBatch(stateDir, batch);
  const rows = await journal.rows(record.items.map(({ run }) => run));
  const isBegun = ({ run }: PlannedItem) => rows.some(({ id }) => id === run);
  const ways = waysOf(record, options, project.root);
  const loaded = record.items.every(isBegun) ? null : await load(record.agent, ways);
  const said = loaded === null ? [] : await requireCommon(loaded, ways);
  options.onBegin?.();
  const each = await forEach(options);
  const { observe: _heard, ...how } = ways;
  const begin =
    loaded === null ? null : beginner(loaded, record, { ...how, each, said, journal, steered: true });
  return await drive(record, options, stateDir, async (item) => {
    if (!isBegun(item) && begin !== null) return await begin(item);
    return await withStack({ agent: record.agent, run: item.run }, options, async () => {
      const ended = await resultIfOver(journal, item.run, (options.clock ?? systemClock).now());
      if (ended !== null) return ended;
      const { onBegin: _begin, onBatch: _batch, onResult: _result, observe: _observe, ...given } = options;
      return await resume({ ...given, run: item.run, ...each(item) });
    });
  });
}

type Work = (item: PlannedItem) => Promise<Result>;
type Each = (item: BatchItem) => Pick<DriveOptions, "backend" | "ask" | "observe">;

/** `kept`: the state folder that the batch is recorded in. */
async function drive(
  record: BatchRecord,
  { signal, onBatch, onResult, clock = systemClock }: BatchObservers & Pick<DriveOptions, "clock" | "signal">,
  kept: string | null,
  work: Work,
): Promise<Batch> {
  const elapsed = createElapsed(clock);
  onBatch?.(kept === null ? null : record.batch, record.items, record.agent);
  const results = await inTurn(record.items, record.concurrency, signal, async (item) => {
    const worked = await work(item);
    const result = signal?.aborted === true ? stoppedEarly(worked) : worked;
    onResult?.(item, result);
    return result;
  });
  const isOpen = results.some((result) => result === null || isUnfinished(result));
  if (kept !== null && !isOpen) forgetBatch(kept, record.batch);
  // One that was taken over may be over and forgotten.
  const isLeft = kept !== null && isOpen && isBatchRecorded(kept, record.batch);
  return toBatch(record, isLeft, results, elapsed());
}

/** Whether `resume` may lead on, now, once what holds the run has let go of it, or once what it needs is there again. */
function isUnfinished({ success, resumable, outcome, code, run, flow }: Result): boolean {
  const isStopped = resumable || outcome === "waiting" || outcome === "interrupted";
  const isRefused = run !== null && flow === null;
  return !success && (isStopped || isRefused || HELD.has(code ?? ""));
}

const HELD: ReadonlySet<string> = new Set(["RUN_OWNED_ELSEWHERE", "RUN_PAUSED", "JOURNAL_UNAVAILABLE"]);

/** What differs between the runs of a batch, beside their arguments. */
async function forEach({
  backend,
  ask,
  observe,
}: BatchObservers & Pick<DriveOptions, "backend" | "ask">): Promise<Each> {
  const asking = ask === undefined ? undefined : (await import("./people/people.ts")).oneByOne(ask);
  return (item) => ({
    ...(backend !== undefined && { backend: unclosed(backend) }),
    ...(asking !== undefined && {
      ask: (question, choices, stop, free) => asking(`${item.name}: ${question}`, choices, stop, free),
    }),
    ...(observe !== undefined && { observe: (...heard) => observe(item, ...heard) }),
  });
}

type Beginning = Omit<RunOptions, "agent" | "observe" | "journal"> & {
  readonly each: Each;
  /** What was said for all of them already. */
  readonly said: readonly string[];
  readonly journal: Journal;
  readonly steered: boolean;
};

/** Begins the run of an item, unless another run works on the same. */
function beginner(loaded: Loaded, { batch }: BatchRecord, options: Beginning): Work {
  const { each, said, journal, args, notify, onBegin: _, ...shared } = options;
  let others: Promise<readonly UnderWay[]> | null = null;
  return async (item) => {
    others ??= underWay(journal, loaded.agent);
    const other = (await others).find((one) => isPart(item.args, one.args));
    if (other !== undefined)
      return toFailure(loaded.agent, "RUN_OWNED_ELSEWHERE", `Run ${other.run} is already working on it.`);
    const how = {
      ...shared,
      journal,
      args: { ...args, ...item.args },
      ...(notify !== undefined && {
        notify: (text: string) => (said.includes(text) ? undefined : notify(text)),
      }),
      ...each(item),
    };
    const result = await runLoaded(loaded, how, { run: item.run, batch });
    if (result.code !== "RUN_EXISTS") return result;
    return await begunElsewhere(journal, loaded.agent, item.run, (how.clock ?? systemClock).now());
  };
}

/** Another process has taken the batch over, and begun this item. */
async function begunElsewhere(journal: Journal, agent: string, run: string, now: number): Promise<Result> {
  const ended = await resultIfOver(journal, run, now);
  if (ended !== null) return ended;
  const reason = `Run ${run} was begun by another process. If that does not end it: lockstep resume ${run}`;
  return { ...toFailure(agent, "RUN_OWNED_ELSEWHERE", reason), run };
}

function recordOf({ agent, flow, project }: Loaded, options: BatchOptions): BatchRecord {
  const { items, concurrency = 1, left = 0, args = {}, worktree, branch, baseBranch, finalize } = options;
  const { dryRun, input, model, use, script, spending } = options;
  const redactor = redactorOf(options, flow ?? undefined);
  const text = (value: string | undefined) => (value === undefined ? undefined : redactor.text(value));
  const written = script === undefined || "file" in script ? script : asFile(script);
  const ways = { worktree, branch, baseBranch, finalize, dryRun, model, use, spending };
  return {
    v: 1,
    batch: batchNamed(newRunId()),
    agent,
    items: items.map(({ name, args: its }) => ({ name, args: its, run: newRunId() })),
    concurrency,
    left,
    folder: relative(project.root, resolve(options.cwd ?? process.cwd())),
    ways: {
      args,
      ...defined({
        ...ways,
        input: text(input),
        script: written && { ...written, text: redactor.text(written.text) },
      }),
    },
  };
}

function asFile(replies: readonly ScriptReply[]): { readonly text: string; readonly file: string } {
  return { text: JSON.stringify({ replies }), file: "script.json" };
}

/** What was recorded, under what is given now. Another model takes the place of all that said which one to ask. */
function waysOf(
  { ways, folder, items }: BatchRecord,
  options: ResumeBatchOptions,
  root: string,
): BatchOptions {
  const { model, use, script, ...others } = ways;
  const isNamed = [options.backend, options.model, options.use, options.script].some(
    (given) => given !== undefined,
  );
  const asked = isNamed ? {} : defined({ model, use, script });
  return { ...others, ...asked, ...options, cwd: resolve(root, folder), items };
}

/** Whatever refuses one of them refuses all, and is asked and reported once. Gives what was reported. */
export async function requireCommon(loaded: Loaded, options: BatchOptions): Promise<readonly string[]> {
  const { project, problems } = loaded;
  if (loaded.flow === null) return [];
  const flow = await prepare(loaded.flow);
  await using stack = new AsyncDisposableStack();
  const { backend } = options;
  // One that was handed in is the caller's to close.
  const asked = { ...options, ...(backend !== undefined && { backend: unclosed(backend) }) };
  const about = { project, flow, began: flow, adopted: {}, problems, digest: "", cwd: startFolder(options) };
  return (await admit({ ...about, past: null }, asked, stack)).said;
}

function unclosed(backend: Backend): Backend {
  return { ...backend, close: () => Promise.resolve() };
}

/** Runs of this agent that a living process drives. */
async function underWay(journal: Journal, agent: string): Promise<readonly UnderWay[]> {
  const rows = await journal.list({ agent, owned: true });
  return await Promise.all(
    rows.map(async ({ id }) => ({ run: id, args: (await startOf(journal, id))?.args ?? {} })),
  );
}

type UnderWay = { readonly run: string; readonly args: { readonly [name: string]: Json } };

function isPart(args: BatchItem["args"], whole: UnderWay["args"]): boolean {
  return Object.entries(args).every(([name, value]) => asText(own(whole, name)) === asText(value));
}

/** What was given as text may have been turned into a number. */
function asText(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** So many at a time, begun in order. After the signal none is begun any more: those have no result. */
async function inTurn(
  items: readonly PlannedItem[],
  concurrency: number,
  signal: AbortSignal | undefined,
  work: Work,
): Promise<readonly (Result | null)[]> {
  const results: (Result | null)[] = items.map(() => null);
  let next = 0;
  const isStopped = () => signal?.aborted === true;
  const lane = async () => {
    while (next < items.length && !isStopped()) {
      const place = next++;
      results[place] = await work(items[place]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, lane));
  return results;
}

function toBatch(
  { agent, batch, items, left }: BatchRecord,
  isOpen: boolean,
  results: readonly (Result | null)[],
  durationMs: number,
): Batch {
  const begun = results.filter((result) => result !== null);
  const exitCode = exitOf(results);
  return {
    v: 1,
    batch: isOpen ? batch : null,
    agent,
    success: exitCode === EXIT.completed,
    exitCode,
    items: items.map(({ name }, place) => ({ name, result: results[place] ?? null })),
    usage: {
      inputTokens: sum(begun, ({ usage }) => usage.inputTokens),
      outputTokens: sum(begun, ({ usage }) => usage.outputTokens),
      turns: sum(begun, ({ usage }) => usage.turns),
    },
    ...costOf(begun.filter(({ usage }) => usage.turns > 0)),
    durationMs,
    left,
  };
}

/** Runs that asked a model. */
function costOf(asked: readonly Result[]): Pick<Batch, "costUsd" | "knownCostUsd"> {
  const known = sum(asked, ({ costUsd, knownCostUsd }) => costUsd ?? knownCostUsd ?? 0);
  const isWhole = asked.length > 0 && asked.every(({ costUsd }) => costUsd !== null);
  if (isWhole) return { costUsd: known };
  return known === 0 ? { costUsd: null } : { costUsd: null, knownCostUsd: known };
}

/** Of several runs together: one code where they agree. */
export function exitOf(results: readonly ({ readonly exitCode: number | null } | null)[]): number {
  const codes = new Set(results.map((result) => result?.exitCode ?? EXIT.interrupted));
  if (codes.has(EXIT.interrupted)) return EXIT.interrupted;
  codes.delete(EXIT.completed);
  return codes.size === 0 ? EXIT.completed : codes.size === 1 ? [...codes][0]! : EXIT.failed;
}

function sum(results: readonly Result[], of: (result: Result) => number): number {
  return results.reduce((total, result) => total + of(result), 0);
}
