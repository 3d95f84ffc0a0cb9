/** Many runs of one agent side by side, each with parameters of its own; none stops because another one failed. */
import type { Journal } from "../engine/ports.ts";
import { own, type Json } from "../flow/json.ts";
import { EXIT } from "../flow/verdict.ts";
import { chooseBackend } from "./backend.ts";
import { createElapsed } from "../engine/stamp.ts";
import { systemClock } from "./clock.ts";
import type { Loaded } from "./load.ts";
import type { DriveOptions, RunOptions } from "./options.ts";
import { toFailure, type Result } from "./result.ts";
import { runLoaded, withJournal } from "./run.ts";
import { settleStart, tellLoudly } from "./ground.ts";
import { grantedAtStart, requireMetered } from "./limits.ts";
import { requireTrust, trusting } from "./trust.ts";

export type BatchItem = {
  /** What people call it. */
  readonly name: string;
  readonly args: { readonly [name: string]: Json };
};

export type BatchOptions = Omit<RunOptions, "agent" | "observe" | "onText"> & {
  readonly items: readonly BatchItem[];
  /** How many are under way at the same time. */
  readonly concurrency?: number;
  /** Hears of everything that is recorded of any of them. */
  readonly observe?: (item: BatchItem, ...heard: Parameters<NonNullable<DriveOptions["observe"]>>) => void;
  readonly onResult?: (item: BatchItem, result: Result) => void;
};

export type Batch = {
  readonly v: 1;
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
};

/** What would stop every one of them is thrown, before any of them begins. */
export async function runBatch(loaded: Loaded, options: BatchOptions): Promise<Batch> {
  const { items, concurrency = 1, signal, backend, observe, onResult, onBegin, ...shared } = options;
  const clock = options.clock ?? systemClock;
  const elapsed = createElapsed(clock);
  const said = await requireCommon(loaded, options);
  onBegin?.();
  const { notify } = options;
  const ask = options.ask === undefined ? undefined : (await import("./people.ts")).oneByOne(options.ask);
  const results = await withJournal(loaded.project.stateDir, options, async (journal) => {
    const others = await underWay(journal, loaded.agent);
    return await inTurn(items, concurrency, signal, async (item) => {
      const other = others.find(({ args }) => isPart(item.args, args));
      const result =
        other === undefined
          ? await runLoaded(loaded, {
              ...shared,
              // One that was handed in is not theirs to close.
              ...(backend !== undefined && { backend: { ...backend, close: () => Promise.resolve() } }),
              journal,
              steered: options.steered ?? options.journal === undefined,
              args: { ...options.args, ...item.args },
              ...(signal !== undefined && { signal }),
              ...(notify !== undefined && {
                notify: (text) => (said.includes(text) ? undefined : notify(text)),
              }),
              ...(ask !== undefined && {
                ask: (question, choices, stop, free) => ask(`${item.name}: ${question}`, choices, stop, free),
              }),
              ...(observe !== undefined && { observe: (...heard) => observe(item, ...heard) }),
            })
          : toFailure(loaded.agent, "RUN_OWNED_ELSEWHERE", `Run ${other.run} is at work on it already.`);
      onResult?.(item, result);
      return result;
    });
  });
  return toBatch(loaded.agent, items, results, elapsed());
}

/** Trust is asked for once, and what holds for all of them is told of once. */
async function requireCommon({ flow, project }: Loaded, options: BatchOptions): Promise<readonly string[]> {
  if (flow === null) return [];
  const env = options.env ?? process.env;
  const { stateDir, root } = project;
  const backend = options.backend ?? (await chooseBackend(options, flow, { env, stateDir, root }));
  if (options.backend === undefined) await backend.close?.();
  const { config, settled } = await settleStart(flow, backend, project, options);
  await using ground = settled;
  const spending = grantedAtStart(flow, config.limits, options.spending);
  const unmetered = requireMetered(flow, backend, spending, options);
  const isOpen = options.journal === undefined && options.trustJournal !== true;
  await requireTrust(flow, trusting(root, !ground.isFree, options, isOpen ? stateDir : undefined));
  return [...unmetered, ...tellLoudly(ground, options)];
}

/** Runs of this agent that a living process drives. */
async function underWay(journal: Journal, agent: string): Promise<readonly UnderWay[]> {
  const rows = await journal.list({ agent, owned: true });
  return await Promise.all(
    rows.map(async ({ id }) => {
      const first = (await journal.read(id, 0, 1))[0]?.event;
      return { run: id, args: first?.type === "run.started" ? first.args : {} };
    }),
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
  items: readonly BatchItem[],
  concurrency: number,
  signal: AbortSignal | undefined,
  work: (item: BatchItem) => Promise<Result>,
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
  agent: string,
  items: readonly BatchItem[],
  results: readonly (Result | null)[],
  durationMs: number,
): Batch {
  const begun = results.filter((result) => result !== null);
  const exitCode = exitOf(results);
  return {
    v: 1,
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
  };
}

/** Runs that asked a model. */
function costOf(asked: readonly Result[]): Pick<Batch, "costUsd" | "knownCostUsd"> {
  const known = sum(asked, ({ costUsd, knownCostUsd }) => costUsd ?? knownCostUsd ?? 0);
  const isWhole = asked.length > 0 && asked.every(({ costUsd }) => costUsd !== null);
  if (isWhole) return { costUsd: known };
  return known === 0 ? { costUsd: null } : { costUsd: null, knownCostUsd: known };
}

function exitOf(results: readonly (Result | null)[]): number {
  const codes = new Set(results.map((result) => result?.exitCode ?? EXIT.interrupted));
  if (codes.has(EXIT.interrupted)) return EXIT.interrupted;
  codes.delete(EXIT.completed);
  return codes.size === 0 ? EXIT.completed : codes.size === 1 ? [...codes][0]! : EXIT.failed;
}

function sum(results: readonly Result[], of: (result: Result) => number): number {
  return results.reduce((total, result) => total + of(result), 0);
}
