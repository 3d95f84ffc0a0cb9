/** What an eval has found: rates with their intervals, money, comparisons, and whether the least rates are met. Pure. */
import { POWERS, type EvalMin, type MinName } from "../flow/flow-eval.ts";
import {
  compareRates,
  passPower,
  wilson,
  type Interval,
  type PassK,
  type RateDifference,
  type Tried,
} from "./figures.ts";
import type { Rate } from "./honesty.ts";

/** One run of a task by a model. `open`: it is still to be done. */
export type EvalRun = {
  readonly task: string;
  readonly model: string;
  /** The how manieth of its task and model, from 0. */
  readonly at: number;
  readonly state: "open" | "running" | "passed" | "failed" | "error" | "cut";
  /** The id of its run; of the last one where it was tried several times. null: none has begun. */
  readonly run: string | null;
  /** Why it did not pass, in a sentence. */
  readonly reason: string | null;
  /** The run completed, so that the checks of the flow had passed. */
  readonly green: boolean;
  /** Whether the hidden checks passed; null: there are none, or they were not run. */
  readonly hidden: boolean | null;
  /** What this run and earlier tries of it cost; null: the price is not known. */
  readonly costUsd: number | null;
  /** What was set aside for it while it is running; null: nothing. */
  readonly setAside: number | null;
  /** Earlier tries that the machinery broke. */
  readonly errors: readonly { readonly run: string | null; readonly reason: string }[];
};

export type TaskFigures = Tried & { readonly task: string; readonly errors: number; readonly cut: number };

export type ModelFigures = {
  readonly model: string;
  readonly tasks: readonly TaskFigures[];
  readonly passed: number;
  readonly failed: number;
  readonly errors: number;
  readonly cut: number;
  readonly notBegun: number;
  /** pass^k for k = 1, 2, 4, 8, as far as each task has so many runs. */
  readonly pass: readonly PassK[];
  /** Runs that were complete and whose hidden checks failed, among those that were complete and had some. */
  readonly falseGreen: Rate;
  /** null: the price of a model is not known, or nothing was run. */
  readonly cost: { readonly all: number; readonly perRun: number; readonly perSuccess: number | null } | null;
  /** More than a fifth of its runs were errors: the rates say little. */
  readonly inconclusive: boolean;
};

export function figuresOf(runs: readonly EvalRun[]): readonly ModelFigures[] {
  return [...Map.groupBy(runs, ({ model }) => model)].map(([model, its]) => modelFigures(model, its));
}

function modelFigures(model: string, runs: readonly EvalRun[]): ModelFigures {
  const tasks = [...Map.groupBy(runs, ({ task }) => task)].map(([task, its]): TaskFigures => {
    const passed = numberOf(its, "passed");
    const tried = passed + numberOf(its, "failed");
    return { task, passed, runs: tried, errors: numberOf(its, "error"), cut: numberOf(its, "cut") };
  });
  const errors = numberOf(runs, "error");
  const ended = runs.filter(({ state }) => state !== "open" && state !== "running");
  return {
    model,
    tasks,
    passed: numberOf(runs, "passed"),
    failed: numberOf(runs, "failed"),
    errors,
    cut: numberOf(runs, "cut"),
    notBegun: runs.length - ended.length,
    pass: POWERS.flatMap((k) => passPower(tasks, k) ?? []),
    falseGreen: falseGreenOf(runs),
    cost: costOf(ended),
    inconclusive: ended.length > 0 && errors > ended.length / 5,
  };
}

function numberOf(runs: readonly EvalRun[], state: EvalRun["state"]): number {
  return runs.filter((run) => run.state === state).length;
}

function falseGreenOf(runs: readonly EvalRun[]): Rate {
  const green = runs.filter((run) => run.green && run.hidden !== null);
  const count = green.filter(({ hidden }) => hidden === false).length;
  return { count, of: green.length, interval: wilson(count, green.length) };
}

function costOf(ended: readonly EvalRun[]): ModelFigures["cost"] {
  if (ended.length === 0 || ended.some(({ costUsd }) => costUsd === null)) return null;
  const all = ended.reduce((sum, { costUsd }) => sum + costUsd!, 0);
  const passed = numberOf(ended, "passed");
  return { all, perRun: all / ended.length, perSuccess: passed === 0 ? null : all / passed };
}

// Comparing.

export type ModelComparison = RateDifference & {
  readonly model: string;
  readonly against: string;
  /** About how many runs more of each would tell them apart; 0: they are apart. null: too many to say. */
  readonly moreRuns: number | null;
};

/** Each model against the first, on the same draws; models without a run of every task are left out. */
export function comparisonsOf(models: readonly ModelFigures[]): readonly ModelComparison[] {
  const [first, ...others] = models.filter(({ tasks }) => tasks.every(({ runs }) => runs > 0));
  if (first === undefined) return [];
  return others.map((other) => {
    const difference = compareRates(first.tasks, other.tasks);
    const { mean, interval, better } = difference;
    const runs = Math.min(...[...first.tasks, ...other.tasks].map((task) => task.runs));
    const more = moreRuns(difference, runs);
    return { model: other.model, against: first.model, mean, interval, better, moreRuns: more };
  });
}

const MOST_RUNS = 10_000;

/** An interval becomes half as wide with four times as many runs. */
function moreRuns({ mean, interval: { low, high } }: RateDifference, runs: number): number | null {
  if (low > 0 || high < 0) return 0;
  const needed = runs * ((high - low) / 2 / Math.abs(mean)) ** 2;
  return needed > MOST_RUNS ? null : Math.max(1, Math.ceil(needed - runs));
}

// Least rates.

/** `missed`: the whole interval is below. `open`: it lies around it. */
export type HeldRate = {
  readonly model: string;
  readonly what: string;
  readonly least: number;
  readonly interval: Interval | null;
  readonly state: "met" | "open" | "missed";
};

export function heldTo(models: readonly ModelFigures[], min: EvalMin): readonly HeldRate[] {
  return models.flatMap(({ model, pass }) =>
    (Object.entries(min) as readonly [MinName, number][]).map(([name, least]) => {
      const found = pass.find(({ k }) => `pass${k}` === name);
      return against({ model, what: name, least }, found);
    }),
  );
}

/** An earlier report: the rates of the same models, or of its only one. */
export type EvalBaseline = { readonly models: readonly Pick<ModelFigures, "model" | "pass">[] };

export function heldToBaseline(
  models: readonly ModelFigures[],
  { models: before }: EvalBaseline,
): readonly HeldRate[] {
  return models.flatMap(({ model, pass }) => {
    const base = before.find((one) => one.model === model) ?? (before.length === 1 ? before[0]! : null);
    const rate = base?.pass.find(({ k }) => k === 1)?.mean;
    if (rate === undefined) return [];
    return [
      against(
        { model, what: `pass1 of the baseline`, least: rate },
        pass.find(({ k }) => k === 1),
      ),
    ];
  });
}

function against(about: Pick<HeldRate, "model" | "what" | "least">, found: PassK | undefined): HeldRate {
  if (found === undefined) return { ...about, interval: null, state: "open" };
  const { interval } = found;
  const state = interval.high < about.least ? "missed" : interval.low >= about.least ? "met" : "open";
  return { ...about, interval, state };
}

// Money.

/**
 * What is set aside for the next run of a model: one and a half times the 95th percentile of its runs, once five have
 * ended; before that a fifth of the budget. What is sent to models has no upper bound that could be used instead.
 */
export function amountFor(costs: readonly number[], budget: number): number {
  const sorted = costs.toSorted((a, b) => a - b);
  const high = sorted[Math.ceil(0.95 * sorted.length) - 1] ?? 0;
  return costs.length < 5 || high === 0 ? budget / 5 : 1.5 * high;
}
