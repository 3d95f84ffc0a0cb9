/** Whether "done" agrees with the checks: claims in recorded runs, and what became of them. No model is asked. */
import { countedUsage } from "../flow/figure.ts";
import type { CheckResult } from "../flow/event.ts";
import type { StepId } from "../flow/flow.ts";
import type { Outcome } from "../flow/verdict.ts";
import { deedsOf, type Moment } from "../story/story.ts";
import { wilson, type Interval } from "./figures.ts";

/** A guarded label that was given, and whose checks ran. */
export type DoneClaim = {
  readonly step: StepId;
  readonly visit: number;
  readonly at: number;
  readonly model: string;
  readonly stood: boolean;
  /** The check that failed, and how. */
  readonly failed: { readonly check: string; readonly pattern: string } | null;
  readonly results: readonly Pick<CheckResult, "name" | "ok" | "unrecoverable">[];
  /** Tokens, money and time of the run so far. */
  readonly spent: { readonly tokens: number; readonly costUsd: number | null; readonly ms: number };
};

/** A fold over one run: give it every moment, then ask for the claims. */
export function createClaims(): {
  readonly add: (moment: Moment) => void;
  readonly claims: DoneClaim[];
  /** Whether the flow has ended the run; else it may go on. */
  readonly isOver: () => boolean;
} {
  const claims: DoneClaim[] = [];
  const models = new Map<string, string>();
  let tokens = 0;
  let costUsd: number | null = null;
  let began: number | null = null;
  let outcome: Outcome | null = null;
  return {
    claims,
    isOver: () => outcome === "completed" || outcome === "failed",
    add: (moment) => {
      outcome = moment.after.verdict?.outcome ?? null;
      const { entry } = moment;
      const { event, at } = entry;
      began ??= at;
      if (event.type === "step.answered" && event.reply.kind === "said") {
        const { by, usage } = event.reply;
        const { inputTokens, outputTokens, costUsd: cost } = countedUsage(usage);
        tokens += inputTokens + outputTokens;
        if (cost !== null) costUsd = (costUsd ?? 0) + cost;
        models.set(`${event.step}@${event.visit}`, by?.answered ?? by?.model ?? "unknown");
      }
      for (const { step, visit, of, results, failed } of deedsOf(moment, "checked")) {
        if (of === "gate" || of === "stop") continue;
        claims.push({
          step,
          visit,
          at,
          model: models.get(`${step}@${visit}`) ?? "unknown",
          stood: failed === null,
          failed: failed === null ? null : { check: failed.name, pattern: failed.pattern },
          results,
          spent: { tokens, costUsd, ms: at - began },
        });
      }
    },
  };
}

/** The claims of one run, in order. */
export type RunClaims = {
  readonly run: string;
  readonly flow: string;
  readonly isOver: boolean;
  readonly claims: readonly DoneClaim[];
};

export type Rate = { readonly count: number; readonly of: number; readonly interval: Interval | null };

export type Honesty = {
  readonly runs: number;
  readonly claims: number;
  /** Claims that the checks overturned. */
  readonly falseDone: Rate;
  /** Runs whose first claim stood. */
  readonly honestFirst: Rate;
  /** How many claims it took until one stood → runs. */
  readonly tries: { readonly [tries: number]: number };
  /** Of the runs with a false claim: those whose last claim stood, those that ended without, and those that have not ended. */
  readonly recovered: Rate;
  readonly exhausted: Rate;
  readonly leftOpen: Rate;
  /** From a false claim to the one that stood; null: there is none. */
  readonly price: { readonly tokens: number; readonly costUsd: number | null; readonly ms: number } | null;
  readonly patterns: readonly {
    readonly pattern: string;
    readonly hits: number;
    readonly recovered: number;
  }[];
  readonly checks: readonly CheckHealth[];
};

/** A check that never failed, or never passed, is looked at too. */
export type CheckHealth = {
  readonly check: string;
  readonly passed: number;
  readonly failed: number;
  readonly couldNotRun: number;
  readonly note: "never failed" | "never passed" | "never ran" | null;
};

/** `declared`: every check of the flow, so that those that never ran are named. */
export function honestyOf(runs: readonly RunClaims[], declared: readonly string[]): Honesty {
  const claimed = runs.filter(({ claims }) => claims.length > 0);
  const all = claimed.flatMap(({ claims }) => claims);
  const tries: { [tries: number]: number } = {};
  for (const { claims } of claimed) {
    const at = claims.findIndex(({ stood }) => stood);
    if (at !== -1) tries[at + 1] = (tries[at + 1] ?? 0) + 1;
  }
  const erring = claimed.filter(({ claims }) => claims.some(({ stood }) => !stood));
  const recovered = erring.filter(({ claims }) => claims.at(-1)!.stood);
  const lost = erring.filter(({ claims }) => !claims.at(-1)!.stood);
  return {
    runs: runs.length,
    claims: all.length,
    falseDone: rate(all.filter(({ stood }) => !stood).length, all.length),
    honestFirst: rate(claimed.filter(({ claims }) => claims[0]!.stood).length, claimed.length),
    tries,
    recovered: rate(recovered.length, erring.length),
    exhausted: rate(lost.filter(({ isOver }) => isOver).length, erring.length),
    leftOpen: rate(lost.filter(({ isOver }) => !isOver).length, erring.length),
    price: priceOf(recovered),
    patterns: patternsIn(claimed),
    checks: healthOf(all, declared),
  };
}

function rate(count: number, of: number): Rate {
  return { count, of, interval: wilson(count, of) };
}

function priceOf(recovered: readonly RunClaims[]): Honesty["price"] {
  const prices = recovered.map(({ claims }) => {
    const from = claims.find(({ stood }) => !stood)!.spent;
    const to = claims.at(-1)!.spent;
    return {
      tokens: to.tokens - from.tokens,
      costUsd: to.costUsd === null || from.costUsd === null ? null : to.costUsd - from.costUsd,
      ms: to.ms - from.ms,
    };
  });
  if (prices.length === 0) return null;
  const mean = (of: (price: (typeof prices)[number]) => number) =>
    prices.reduce((sum, one) => sum + of(one), 0) / prices.length;
  const isPriced = prices.every(({ costUsd }) => costUsd !== null);
  return {
    tokens: mean(({ tokens }) => tokens),
    costUsd: isPriced ? mean(({ costUsd }) => costUsd!) : null,
    ms: mean(({ ms }) => ms),
  };
}

function patternsIn(runs: readonly RunClaims[]): Honesty["patterns"] {
  const found = new Map<string, { hits: number; recovered: number }>();
  for (const { claims } of runs)
    for (const [at, { failed }] of claims.entries()) {
      if (failed === null) continue;
      const one = found.get(failed.pattern) ?? { hits: 0, recovered: 0 };
      one.hits += 1;
      if (claims[at + 1]?.stood === true) one.recovered += 1;
      found.set(failed.pattern, one);
    }
  return [...found].map(([pattern, counts]) => ({ pattern, hits: counts.hits, recovered: counts.recovered }));
}

function healthOf(claims: readonly DoneClaim[], declared: readonly string[]): readonly CheckHealth[] {
  const results = Map.groupBy(
    claims.flatMap((claim) => claim.results),
    ({ name }) => name,
  );
  return [...new Set([...declared, ...results.keys()])].map((check) => {
    const ran = results.get(check) ?? [];
    const passed = ran.filter(({ ok }) => ok).length;
    const couldNotRun = ran.filter(({ unrecoverable }) => unrecoverable !== undefined).length;
    const failed = ran.length - passed - couldNotRun;
    const note =
      ran.length === 0 ? "never ran" : passed === 0 ? "never passed" : failed === 0 ? "never failed" : null;
    return { check, passed, failed, couldNotRun, note };
  });
}

/** Monday of the week, as a date. */
function weekOf(at: number): string {
  const day = new Date(at);
  const back = (day.getUTCDay() + 6) % 7;
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate() - back))
    .toISOString()
    .slice(0, 10);
}

export const HONESTY_KEYS = ["model", "step", "check", "week", "flow"] as const;
export type HonestyKey = (typeof HONESTY_KEYS)[number];

export type HonestyRow = {
  readonly name: string;
  readonly runs: number;
  readonly claims: number;
  readonly falseDone: Rate;
  readonly honestFirst: Rate;
  /** A flow ran here that did not run in the rows before. */
  readonly isChanged: boolean;
};

/** One row for each model, step, check, week or flow; weeks in their order, everything else by its number of claims. */
export function claimsBy(runs: readonly RunClaims[], key: HonestyKey): readonly HonestyRow[] {
  const groups = new Map<string, RunClaims[]>();
  for (const run of runs) {
    const mine = new Map<string, DoneClaim[]>();
    for (const claim of run.claims)
      for (const [name, one] of sharesOf(run, claim, key)) listAt(mine, name).push(one);
    for (const [name, claims] of mine) listAt(groups, name).push({ ...run, claims });
  }
  const rows = [...groups].map(([name, of]) => ({ name, of, honesty: honestyOf(of, []) }));
  const inOrder = rows.toSorted((a, b) =>
    key === "week" ? (a.name < b.name ? -1 : 1) : b.honesty.claims - a.honesty.claims,
  );
  const flows = new Set<string>();
  return inOrder.map(({ name, of, honesty }, at) => {
    const isNew = of.some(({ flow }) => !flows.has(flow));
    for (const { flow } of of) flows.add(flow);
    const { runs: number, claims, falseDone, honestFirst } = honesty;
    return {
      name,
      runs: number,
      claims,
      falseDone,
      honestFirst,
      isChanged: key === "week" && at > 0 && isNew,
    };
  });
}

function listAt<T>(lists: Map<string, T[]>, name: string): T[] {
  const known = lists.get(name);
  if (known !== undefined) return known;
  const made: T[] = [];
  lists.set(name, made);
  return made;
}

/** A claim counts for each check that ran, and stands there if that check passed. */
function sharesOf(
  { flow }: RunClaims,
  claim: DoneClaim,
  key: HonestyKey,
): readonly (readonly [string, DoneClaim])[] {
  switch (key) {
    case "model":
      return [[claim.model, claim]];
    case "step":
      return [[claim.step, claim]];
    case "week":
      return [[weekOf(claim.at), claim]];
    case "flow":
      return [[flow.slice(0, 12), claim]];
    case "check":
      return claim.results.map(({ name, ok }) => [name, { ...claim, stood: ok }]);
  }
}
