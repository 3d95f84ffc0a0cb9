/** What the figures of many runs add up to; each number with the runs that it was counted in. */
import type { StepId } from "../flow/flow.ts";
import { honestyOf, type CheckHealth, type Honesty } from "./honesty.ts";
import type { RunFigures } from "./run-figures.ts";

/** A run, and how it stands: that can change without a new entry, when the process that drives it dies. */
export type FiguredRun = {
  readonly run: string;
  readonly agent: string;
  readonly state: string;
  readonly code: string | null;
  readonly figures: RunFigures;
};

/** Places in `AddedFigures.ids`, in order: the runs that a number was counted in. */
export type InRuns = readonly number[];

export type AddedFigures = {
  readonly ids: readonly string[];
  readonly time: Spread | null;
  /** In US dollars; runs without a known price are left out. */
  readonly cost: Spread | null;
  readonly visits: Spread | null;
  /** By day and state of the run. */
  readonly days: readonly { readonly day: string; readonly state: string; readonly in: InRuns }[];
  readonly flows: readonly FlowFigures[];
  readonly codes: readonly { readonly code: string; readonly in: InRuns }[];
  readonly steps: readonly StepFigures[];
  readonly retries: readonly RetryFigures[];
  readonly patterns: readonly PatternFigures[];
  readonly honesty: Pick<Honesty, "claims" | "falseDone" | "honestFirst" | "recovered">;
  readonly gates: readonly GateFigures[];
  readonly checks: readonly (CheckHealth & { readonly in: InRuns; readonly failedIn: InRuns })[];
  readonly people: readonly PeopleFigures[];
  readonly denials: readonly {
    readonly step: StepId;
    readonly tool: string;
    readonly times: number;
    readonly in: InRuns;
  }[];
};

export type Spread = { readonly median: number; readonly p90: number; readonly most: number };

export type FlowFigures = {
  readonly agent: string;
  readonly flow: string;
  /** The day of its first run. */
  readonly since: string;
  readonly in: InRuns;
  readonly completedIn: InRuns;
  readonly costUsd: number | null;
};

export type StepFigures = {
  readonly agent: string;
  readonly step: StepId;
  readonly visits: number;
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly ms: number;
  /** What is known of it; null: nothing is. */
  readonly costUsd: number | null;
  /** Runs in which models answered whose price is not known. */
  readonly unpricedIn: InRuns;
  readonly in: InRuns;
};

export type RetryFigures = {
  readonly agent: string;
  readonly step: StepId;
  readonly model: string;
  readonly answers: number;
  readonly repairs: number;
  readonly faults: { readonly [kind: string]: number };
  readonly aliases: number;
  readonly fallbacks: number;
  readonly in: InRuns;
};

/** A way in which a check failed. It is recovered from where a later claim of the same run passes its checks. */
export type PatternFigures = {
  readonly check: string;
  readonly pattern: string;
  readonly hits: number;
  readonly in: InRuns;
  readonly recovered: number;
  readonly recoveredIn: InRuns;
  /** Runs that have ended without that. */
  readonly gaveUpIn: InRuns;
  /** Of those that were recovered from, on average; null: none was. */
  readonly until: {
    readonly claims: number;
    readonly tokens: number;
    readonly costUsd: number | null;
    readonly ms: number;
  } | null;
  readonly models: { readonly [model: string]: number };
};

/** How often "done" was said at a step, and how often it was true. */
export type GateFigures = {
  readonly agent: string;
  readonly step: StepId;
  readonly model: string;
  readonly said: number;
  readonly stood: number;
  readonly in: InRuns;
  readonly falseIn: InRuns;
};

export type PeopleFigures = {
  readonly about: string;
  readonly asked: number;
  readonly answered: number;
  readonly expired: number;
  readonly open: number;
  readonly medianMs: number | null;
  readonly in: InRuns;
};

/** `declared`: every check of the flow that is looked at, so that those that never ran are named. */
export function addUp(runs: readonly FiguredRun[], declared: readonly string[] = []): AddedFigures {
  const all = runs.map(({ figures }) => figures);
  const claimed = runs.map(({ run, figures: { flow, claims, isOver } }) => ({ run, flow, claims, isOver }));
  const { claims, falseDone, honestFirst, recovered, checks } = honestyOf(claimed, declared);
  return {
    ids: runs.map(({ run }) => run),
    time: spreadOf(all.map(({ ms }) => ms)),
    cost: spreadOf(all.flatMap(({ usage: { costUsd } }) => costUsd ?? [])),
    visits: spreadOf(all.map(({ visits }) => visits)),
    days: days(runs),
    flows: flows(runs),
    codes: grouped(runs, ({ code }) => (code === null ? [] : [{ key: code, one: code }]))
      .map(({ all: found, in: where }) => ({ code: found[0]!, in: where }))
      .toSorted((a, b) => b.in.length - a.in.length),
    steps: steps(runs),
    retries: retries(runs),
    patterns: patterns(runs),
    honesty: { claims, falseDone, honestFirst, recovered },
    gates: gates(runs),
    checks: checks.map((check) => Object.assign(whereRan(runs, check.check), check)),
    people: people(runs),
    denials: grouped(runs, ({ figures }) =>
      figures.denials.map((one) => ({ key: `${one.step}\0${one.tool}`, one })),
    )
      .map(({ all: found, in: where }) => ({
        step: found[0]!.step,
        tool: found[0]!.tool,
        times: sum(found, ({ times }) => times),
        in: where,
      }))
      .toSorted((a, b) => b.times - a.times),
  };
}

type Keyed<T> = { readonly key: string; readonly one: T };
type Group<T> = { readonly all: readonly T[]; readonly in: InRuns; readonly of: InRuns };

/** What runs have of each key, in the order in which the keys came up. `of`: the run of each. */
function grouped<T>(
  runs: readonly FiguredRun[],
  parts: (run: FiguredRun) => readonly Keyed<T>[],
): readonly Group<T>[] {
  const groups = new Map<string, { all: T[]; of: number[] }>();
  for (const [place, run] of runs.entries())
    for (const { key, one } of parts(run)) {
      const group = groups.get(key) ?? { all: [], of: [] };
      group.all.push(one);
      group.of.push(place);
      groups.set(key, group);
    }
  return [...groups.values()].map(({ all, of }) => ({ all, of, in: distinct(of) }));
}

function distinct(places: readonly number[]): InRuns {
  return [...new Set(places)];
}

/** The runs of those that meet a condition. */
function inWhich<T>({ all, of }: Group<T>, isMet: (one: T) => boolean): InRuns {
  return distinct(of.filter((_, place) => isMet(all[place]!)));
}

function days(runs: readonly FiguredRun[]): AddedFigures["days"] {
  const groups = grouped(runs, ({ state, figures: { at } }) => {
    const day = dayOf(at);
    return [{ key: `${day}\0${state}`, one: { day, state } }];
  });
  return groups
    .map(({ all, in: where }) => ({ day: all[0]!.day, state: all[0]!.state, in: where }))
    .toSorted((a, b) => (a.day === b.day ? (a.state < b.state ? -1 : 1) : a.day < b.day ? -1 : 1));
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function flows(runs: readonly FiguredRun[]): readonly FlowFigures[] {
  const groups = grouped(runs, (run) => [{ key: `${run.agent}\0${run.figures.flow}`, one: run }]);
  return groups.map((group) => {
    const { agent, figures } = group.all[0]!;
    return {
      agent,
      flow: figures.flow,
      since: dayOf(Math.min(...group.all.map((one) => one.figures.at))),
      in: group.in,
      completedIn: inWhich(group, ({ state }) => state === "completed"),
      costUsd: known(group.all.map((one) => one.figures.usage.costUsd)),
    };
  });
}

function steps(runs: readonly FiguredRun[]): readonly StepFigures[] {
  const groups = grouped(runs, ({ agent, figures }) =>
    figures.steps.map((one) => ({ key: `${agent}\0${one.step}`, one: { agent, ...one } })),
  );
  return groups.map((group) => {
    const { all } = group;
    const { agent, step } = all[0]!;
    return {
      agent,
      step,
      visits: sum(all, ({ visits }) => visits),
      turns: sum(all, ({ turns }) => turns),
      inputTokens: sum(all, ({ inputTokens }) => inputTokens),
      outputTokens: sum(all, ({ outputTokens }) => outputTokens),
      ms: sum(all, ({ ms }) => ms),
      costUsd: known(all.map(({ costUsd }) => costUsd)),
      unpricedIn: inWhich(group, ({ costUsd, turns }) => costUsd === null && turns > 0),
      in: group.in,
    };
  });
}

function retries(runs: readonly FiguredRun[]): readonly RetryFigures[] {
  const groups = grouped(runs, ({ agent, figures }) =>
    figures.retries.map((one) => ({ key: `${agent}\0${one.step}\0${one.model}`, one: { agent, ...one } })),
  );
  return groups.map(({ all, in: where }) => {
    const { agent, step, model } = all[0]!;
    const faults: { [kind: string]: number } = {};
    for (const one of all)
      for (const [kind, times] of Object.entries(one.faults)) faults[kind] = (faults[kind] ?? 0) + times;
    return {
      agent,
      step,
      model,
      answers: sum(all, ({ answers }) => answers),
      repairs: sum(all, ({ repairs }) => repairs),
      faults,
      aliases: sum(all, ({ aliases }) => aliases),
      fallbacks: sum(all, ({ fallbacks }) => fallbacks),
      in: where,
    };
  });
}

function patterns(runs: readonly FiguredRun[]): readonly PatternFigures[] {
  const groups = grouped(runs, ({ figures: { claims, isOver } }) =>
    claims.flatMap((claim, place) => {
      const { failed, model, spent } = claim;
      if (failed === null) return [];
      const later = claims.slice(place + 1).findIndex(({ stood }) => stood);
      const to = later === -1 ? null : { claims: later + 1, spent: claims[place + 1 + later]!.spent };
      return [{ key: `${failed.check}\0${failed.pattern}`, one: { ...failed, model, spent, to, isOver } }];
    }),
  );
  return groups
    .map((group) => {
      const { all } = group;
      const ended = all.flatMap(({ spent, to }) => (to === null ? [] : [{ from: spent, to }]));
      const models: { [model: string]: number } = {};
      for (const { model } of all) models[model] = (models[model] ?? 0) + 1;
      const mean = (of: (one: (typeof ended)[number]) => number) => sum(ended, of) / ended.length;
      const isPriced = ended.every(({ from, to }) => from.costUsd !== null && to.spent.costUsd !== null);
      return {
        check: all[0]!.check,
        pattern: all[0]!.pattern,
        hits: all.length,
        in: group.in,
        recovered: ended.length,
        recoveredIn: inWhich(group, ({ to }) => to !== null),
        gaveUpIn: inWhich(group, ({ to, isOver }) => to === null && isOver),
        until:
          ended.length === 0
            ? null
            : {
                claims: mean(({ to }) => to.claims),
                tokens: mean(({ from, to }) => to.spent.tokens - from.tokens),
                costUsd: isPriced
                  ? mean(({ from, to }) => (to.spent.costUsd ?? 0) - (from.costUsd ?? 0))
                  : null,
                ms: mean(({ from, to }) => to.spent.ms - from.ms),
              },
        models,
      };
    })
    .toSorted((a, b) => b.hits - a.hits);
}

function gates(runs: readonly FiguredRun[]): readonly GateFigures[] {
  const groups = grouped(runs, ({ agent, figures }) =>
    figures.claims.map((claim) => ({
      key: `${agent}\0${claim.step}\0${claim.model}`,
      one: { agent, ...claim },
    })),
  );
  return groups.map((group) => {
    const { agent, step, model } = group.all[0]!;
    return {
      agent,
      step,
      model,
      said: group.all.length,
      stood: group.all.filter(({ stood }) => stood).length,
      in: group.in,
      falseIn: inWhich(group, ({ stood }) => !stood),
    };
  });
}

function whereRan(runs: readonly FiguredRun[], check: string): { in: InRuns; failedIn: InRuns } {
  const [group] = grouped(runs, ({ figures }) =>
    figures.claims.flatMap(({ results }) =>
      results.filter(({ name }) => name === check).map((one) => ({ key: check, one })),
    ),
  );
  return group === undefined
    ? { in: [], failedIn: [] }
    : {
        in: group.in,
        failedIn: inWhich(group, ({ ok, unrecoverable }) => !ok && unrecoverable === undefined),
      };
}

function people(runs: readonly FiguredRun[]): readonly PeopleFigures[] {
  const groups = grouped(runs, ({ figures }) => figures.questions.map((one) => ({ key: one.about, one })));
  return groups.map(({ all, in: where }) => {
    const answered = all.filter(({ by }) => by !== null && by !== "expired");
    return {
      about: all[0]!.about,
      asked: all.length,
      answered: answered.length,
      expired: all.filter(({ by }) => by === "expired").length,
      open: all.filter(({ waitedMs }) => waitedMs === null).length,
      medianMs: spreadOf(answered.flatMap(({ waitedMs }) => waitedMs ?? []))?.median ?? null,
      in: where,
    };
  });
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((so, one) => so + of(one), 0);
}

/** The sum of what is known; null: nothing is. */
function known(costs: readonly (number | null)[]): number | null {
  const priced = costs.filter((cost) => cost !== null);
  return priced.length === 0 ? null : sum(priced, (cost) => cost);
}

/** By nearest rank; null: there is nothing to rank. */
function spreadOf(values: readonly number[]): Spread | null {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
  return sorted.length === 0 ? null : { median: at(0.5), p90: at(0.9), most: sorted.at(-1)! };
}
