/**
 * What a run, its steps and their attempts may still spend. Looked at before each question to the model: what it is
 * reckoned to take is set aside, so that nothing is asked beyond a limit, however many ask at once.
 */
import type { Deed } from "../../flow/deed.ts";
import type { Event, Figure, LimitName, Reached, Usage } from "../../flow/event.ts";
import type { Command } from "../../flow/command.ts";
import type { Flow, Granted, Limits, Spending, StepId, StepLimits } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import type { Amounts, Budget, Lane, Spent, State, Unmetered } from "./state.ts";
import { haltAll, sayBesides, type Deciding } from "./visit.ts";

/** What limits a run from now on; null: nothing does. What was spent before stays spent. */
export function openBudget(flow: Flow, granted: Granted | null, before: Budget | null): Budget | null {
  const { steps: ofSteps, unmetered: _, ...limits }: Granted = granted ?? limitsIn(flow.limits);
  const steps: { [step: StepId]: StepLimits } = { ...ofSteps };
  for (const { id, limits: written } of Object.values(flow.steps)) {
    if (written !== undefined && !Object.hasOwn(steps, id)) steps[id] = written;
  }
  const isLimited = AMOUNTS.some((name) => limits[name] !== undefined) || Object.keys(steps).length > 0;
  if (!isLimited && before === null) return null;
  const unmetered = before?.unmetered;
  return {
    granted,
    limits,
    steps,
    spent: before?.spent ?? {},
    told: [],
    ...(unmetered !== undefined && { unmetered }),
  };
}

/** Somebody goes on with the run: what stopped it was reported. */
export function reopened(budget: Budget | null): Budget | null {
  if (budget === null) return null;
  const { blind: _blind, reached: _reached, ...rest } = budget;
  return rest;
}

function limitsIn({ visits: _visits, ...limits }: Flow["limits"]): Limits {
  return limits;
}

/** The budget after a call of the lane. */
export function spend(budget: Budget, lane: Lane, usage: Usage): Budget {
  const call = amountsOf(usage);
  const known = own(budget.spent, lane.step);
  const isSame = known !== undefined && isOfAttempt(known, lane);
  const spent: Spent = {
    all: known === undefined ? call : added(known.all, call),
    largest: known === undefined ? call : larger(known.largest, call),
    attempt: {
      visit: lane.visit,
      index: attemptOf(lane),
      spent: isSame ? added(known.attempt.spent, call) : call,
    },
    told: known?.told.filter((name) => isSame || !name.startsWith("attempt.")) ?? [],
  };
  const after = { ...budget, spent: { ...budget.spent, [lane.step]: spent } };
  return usage.unknown === undefined ? after : uncounted(after, lane.step, usage.unknown);
}

/** Remembers the limits that an answer without these figures cannot be counted against. */
function uncounted(budget: Budget, step: StepId, unknown: readonly Figure[]): Budget {
  const missing = limitsOn(budget, step).flatMap(({ of, limits }) =>
    unknown.flatMap((name): Unmetered[] => {
      const most = limits[name];
      return most === undefined ? [] : [{ of, step: of === "run" ? "" : step, name, most }];
    }),
  );
  if (missing.length === 0) return budget;
  const known = budget.unmetered ?? [];
  const isNew = (one: Unmetered) =>
    !known.some(({ of, step: other, name }) => of === one.of && other === one.step && name === one.name);
  const unmetered = [...known, ...missing.filter(isNew)];
  return { ...budget, unmetered, ...(budget.granted?.unmetered === undefined && { blind: true as const }) };
}

/** Holds back what does not fit beside what is under way, and ends the run when nothing else is; tells what is near. */
export function bounded(deciding: Deciding, before: State, state: State): State {
  const { flow, deeds } = deciding;
  const { budget, lanes } = state;
  if (budget === null || state.verdict !== null || state.pending === before.pending) return state;
  const underWay = new Set(before.pending);
  const asking = lanes.filter((lane) => isQuestion(flow, lane));
  let reserved = asking
    .filter(({ command }) => underWay.has(command))
    .reduce((sum, { step }) => added(sum, reckoned(budget, step)), NOTHING);
  let after = state;
  let beyond: Reached | null = null;
  const pending: Command[] = [];
  for (const lane of lanes) {
    if (underWay.has(lane.command) || !asking.includes(lane)) {
      pending.push(lane.command);
      continue;
    }
    const call = reckoned(budget, lane.step);
    const excess = excessOf(budget, state.usage, lane, reserved, call);
    beyond ??= excess;
    if (excess !== null || budget.blind) continue;
    reserved = added(reserved, call);
    const told = tellNear(deeds, after, lane);
    after = told.state;
    pending.push(told.command);
  }
  const isHeld = beyond !== null || (budget.blind === true && asking.length > 0);
  if (pending.length > 0 || !isHeld) return { ...after, pending };
  if (beyond === null) {
    const why = unmeteredWhy(budget.unmetered!.at(-1)!);
    return haltAll(deciding, state, "LIMIT_UNMETERED", why);
  }
  const ended = { ...state, budget: { ...budget, reached: beyond } };
  deeds?.push({ kind: "limited", reached: beyond });
  const of = beyond.of === "run" ? undefined : beyond.step;
  return haltAll(deciding, ended, "BUDGET_EXHAUSTED", exhausted(beyond), of);
}

/** What was not enforced, in words: one sentence for each limit. */
export function unmeteredLines({ unmetered = [] }: Budget): readonly string[] {
  return unmetered.map(
    ({ of, step, name, most }) =>
      `The limit of ${amount(name, most)}${OWNER[of](step)} was not enforced: answers came without their ${FIGURE[name]}.`,
  );
}

function unmeteredWhy({ of, step, name, most }: Unmetered): string {
  return (
    `The limit of ${amount(name, most)}${OWNER[of](step)} cannot be enforced: an answer came without its ${FIGURE[name]}. ` +
    `Resume the run with a model that reports it, or without this limit: --allow-unmetered.`
  );
}

const FIGURE = { tokens: "number of tokens", costUsd: "cost" } as const;
const OWNER = {
  run: () => "",
  step: (step: StepId) => ` of step "${step}"`,
  attempt: (step: StepId) => ` of one attempt of step "${step}"`,
} as const;

/** Responses that a query of the lane may take when it makes more than one; siblings share what is left. */
export function turnsWithin({ budget, usage, pending }: State, lane: Lane): number {
  if (budget === null) return Infinity;
  const asks = Math.max(1, pending.filter(({ type }) => type === "ask").length);
  const left = scopesOf(budget, usage, lane).map(({ of, limits, used }) => {
    const most = (limits.turns ?? Infinity) - used.turns;
    return of === "run" ? Math.floor(most / asks) : most;
  });
  return Math.max(1, Math.min(...left));
}

/** The model of this lane is told, and the limit remembered. */
export function tell(state: State, lane: Lane, limit: LimitName, text: string): State {
  const { budget } = state;
  if (budget === null) return state;
  const told = sayBesides(state, (other) => other === lane, { kind: "budget", text });
  return { ...told, budget: noted(budget, lane, limit) };
}

export function isTold({ told, spent }: Budget, { step }: Pick<Lane, "step">, limit: LimitName): boolean {
  return limit.startsWith("run.") ? told.includes(limit) : (own(spent, step)?.told.includes(limit) ?? false);
}

function noted(budget: Budget, lane: Lane, limit: LimitName): Budget {
  if (limit.startsWith("run.")) return { ...budget, told: [...budget.told, limit] };
  const spent = own(budget.spent, lane.step) ?? unspent(lane);
  const told = [...spent.told, limit];
  return { ...budget, spent: { ...budget.spent, [lane.step]: { ...spent, told } } };
}

function unspent(lane: Lane): Spent {
  const attempt = { visit: lane.visit, index: attemptOf(lane), spent: NOTHING };
  return { all: NOTHING, largest: NOTHING, attempt, told: [] };
}

/** From where on the model is told. */
export function softly({ soft = SOFT, ...limits }: Limits, name: keyof Spending): number {
  const most = limits[name] ?? Infinity;
  return typeof soft === "number" ? most * soft : (soft[name] ?? most * SOFT);
}

const SOFT = 0.8;

// Whose limits there are.

export type Scope = Pick<Reached, "of" | "step"> & { readonly limits: Limits };
type Used = Scope & { readonly used: Amounts };

function scopesOf(budget: Budget, usage: Usage, lane: Lane): readonly Used[] {
  const { step } = lane;
  const spent = own(budget.spent, step);
  const inAttempt = spent !== undefined && isOfAttempt(spent, lane) ? spent.attempt.spent : NOTHING;
  const used = { run: amountsOf(usage), step: spent?.all ?? NOTHING, attempt: inAttempt };
  return limitsOn(budget, step).map(({ of, limits }) => ({ of, step, limits, used: used[of] }));
}

/** The narrowest first: what is said of it says most. */
export function limitsOn({ limits, steps }: Budget, step: StepId): readonly Scope[] {
  const ofStep = own(steps, step);
  const run: Scope = { of: "run", step, limits };
  if (ofStep === undefined) return [run];
  const { perAttempt } = ofStep;
  const all: Scope = { of: "step", step, limits: ofStep };
  return perAttempt === undefined ? [all, run] : [{ of: "attempt", step, limits: perAttempt }, all, run];
}

/** The number of the attempt within its visit. */
export function attemptOf({ life }: Lane): number {
  return life?.tries.length ?? 1;
}

function isOfAttempt({ attempt }: Spent, lane: Lane): boolean {
  return attempt.visit === lane.visit && attempt.index === attemptOf(lane);
}

/** A command in the place of a model spends nothing. */
function isQuestion(flow: Flow, { command, step }: Lane): boolean {
  return command.type === "ask" && own(flow.steps, step)?.by.kind === "model";
}

// What is too much.

/** What a call will take is not known before: as much as the largest of its step so far, or else of the run. */
function reckoned({ spent }: Budget, step: StepId): Amounts {
  const largest =
    own(spent, step)?.largest ??
    Object.values(spent)
      .map((one) => one.largest)
      .reduce(larger, NOTHING);
  return { ...largest, turns: 1 };
}

function excessOf(
  budget: Budget,
  usage: Usage,
  lane: Lane,
  reserved: Amounts,
  call: Amounts,
): Reached | null {
  for (const { of, step, limits, used: spent } of scopesOf(budget, usage, lane)) {
    for (const name of COUNTED) {
      const most = limits[name];
      if (most === undefined) continue;
      const next = call[name] + (of === "run" ? reserved[name] : 0);
      const used = spent[name];
      // Sums of prices are not exact.
      if (used + next > most * (1 + 1e-9)) return { of, step, name, most, used, next };
    }
  }
  return null;
}

function exhausted({ of, step, name, used, most, next = 0 }: Reached): string {
  const more = used >= most || next === 0 ? "" : `, and the next call is reckoned with ${amount(name, next)}`;
  return `The limit of ${amount(name, most)}${OWNER[of](step)} is reached: ${amount(name, used)} used${more}. Resume the run with a higher one.`;
}

/** Ends what may take no longer than this. */
export function outOfTime({ of, step }: Pick<Reached, "of" | "step">, most: number): TimeUp {
  const limit = { of, step, name: "wallMs", most, used: most } as const;
  const why = exhausted(limit);
  return { type: "run.limited", why, ...(of !== "run" && { of: step }), limit };
}

export type TimeUp = Event & { readonly type: "run.limited" };

export function nearing({ of }: Scope, name: keyof Spending, used: number, most: number): string {
  const owner = { run: "", step: " by this step", attempt: " in this attempt" }[of];
  return `${amount(name, used)} of ${amount(name, most)} are used${owner}. Come to an end soon.`;
}

/** Tells the lane of every limit that is near and that nobody was told of. */
function tellNear(
  deeds: Deed[] | null,
  state: State,
  lane: Lane,
): { readonly state: State; readonly command: Command } {
  let after = state;
  let told = lane;
  for (const scope of scopesOf(state.budget!, state.usage, lane)) {
    for (const name of COUNTED) {
      const most = scope.limits[name];
      const limit: LimitName = `${scope.of}.${name}`;
      const used = scope.used[name];
      if (most === undefined || used === 0 || used < softly(scope.limits, name)) continue;
      if (isTold(state.budget!, lane, limit)) continue;
      const place = after.lanes.indexOf(told);
      deeds?.push({ kind: "noted", step: lane.step, visit: lane.visit, limit });
      after = tell(after, told, limit, nearing(scope, name, used, most));
      told = after.lanes[place]!;
    }
  }
  return { state: after, command: told.command };
}

function amount(name: keyof Spending, value: number): string {
  switch (name) {
    case "turns":
      return value === 1 ? "1 turn" : `${value} turns`;
    case "tokens":
      return `${value} tokens`;
    case "costUsd":
      return `$${Number(value.toFixed(6))}`;
    case "wallMs":
      return `${value} ms`;
  }
}

// Amounts.

const AMOUNTS = ["turns", "tokens", "costUsd", "wallMs"] as const;
/** Those that are known from the answers of the model. */
const COUNTED = ["turns", "tokens", "costUsd"] as const;
const NOTHING: Amounts = { turns: 0, tokens: 0, costUsd: 0 };

/** What is not known to cost anything is not counted; a run with unknown prices is bounded by its other limits. */
function amountsOf({ turns, inputTokens, outputTokens, costUsd }: Usage): Amounts {
  return { turns, tokens: inputTokens + outputTokens, costUsd: costUsd ?? 0 };
}

function added(a: Amounts, b: Amounts): Amounts {
  return { turns: a.turns + b.turns, tokens: a.tokens + b.tokens, costUsd: a.costUsd + b.costUsd };
}

function larger(a: Amounts, b: Amounts): Amounts {
  const [turns, tokens] = [Math.max(a.turns, b.turns), Math.max(a.tokens, b.tokens)];
  return { turns, tokens, costUsd: Math.max(a.costUsd, b.costUsd) };
}
