/** What each step of a run took: visits, responses, tokens, time and money. A fold of the journal beside the state. */
import { countedUsage } from "../flow/figure.ts";
import type { Entry, Event, Usage } from "../flow/event.ts";
import type { StepId } from "../flow/flow.ts";
import type { Lane, State } from "../engine/decide/state.ts";

export type StepTally = {
  readonly step: StepId;
  readonly visits: number;
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** While something was done for it; siblings count side by side, and the time between two stretches not at all. */
  readonly ms: number;
  readonly costUsd: number | null;
};

export type Tally = {
  /** In the order in which the steps were first visited. */
  readonly steps: Map<StepId, Spent>;
  /** The visits in progress, each with the time at which what it is at was begun. */
  visits: readonly Mark[];
  /** How far the clock was set in all: the times of the visits go on as if it had not been. */
  moved: number;
};

type Spent = { -readonly [key in keyof StepTally]: StepTally[key] };
type Mark = { step: StepId; visit: number; since: number };

export function createTally(): Tally {
  return { steps: new Map(), visits: [], moved: 0 };
}

/** What ends a stretch before the run ends. */
const ENDS_STRETCH: ReadonlySet<Event["type"]> = new Set([
  "run.stopped",
  "run.limited",
  "run.paused",
  "run.yielded",
]);

/** Adds one entry, with the state it led to; entries come in order. This is done for every entry of every run. */
export function addToTally(tally: Tally, entry: Entry, after: State): void {
  const { event } = entry;
  if (entry.moved !== undefined) tally.moved += entry.moved;
  const at = entry.at - tally.moved;
  if ("visit" in event) {
    const mark = markOf(tally.visits, event.step, event.visit);
    const spent = tally.steps.get(event.step);
    if (mark !== undefined && spent !== undefined) {
      spent.ms += Math.max(0, at - mark.since);
      mark.since = at;
      count(spent, usageIn(event));
    }
  }
  if (event.type === "run.limited" && event.of !== undefined)
    count(tally.steps.get(event.of), usageIn(event));
  // What was under way when the stretch ended was work too, although nothing else is recorded of it.
  if (ENDS_STRETCH.has(event.type)) addUntil(tally, entry.at);
  if (event.type === "run.resumed") tally.visits = [];
  const lane = after.lanes[0];
  const mark = tally.visits[0];
  // Mostly there is one visit at a time, and it is still the same or just the next one.
  if (lane !== undefined && mark !== undefined && after.lanes.length === 1 && tally.visits.length === 1) {
    if (mark.visit !== lane.visit || mark.step !== lane.step) begin(tally, mark, lane, at);
    return;
  }
  const visits: Mark[] = [];
  for (const one of after.lanes) {
    const known = markOf(tally.visits, one.step, one.visit);
    visits.push(known ?? begin(tally, { step: "", visit: 0, since: 0 }, one, at));
  }
  tally.visits = visits;
}

function count(spent: Spent | undefined, usage: Usage | undefined): void {
  if (spent === undefined || usage === undefined) return;
  const { turns, inputTokens, outputTokens, costUsd } = usage;
  if (turns > 0 || spent.turns === 0) spent.costUsd = costOf(spent, costUsd);
  spent.turns += turns;
  spent.inputTokens += inputTokens;
  spent.outputTokens += outputTokens;
}

/** Counts what is under way as work up to a time. */
function addUntil({ steps, visits, moved }: Tally, at: number): void {
  for (const mark of visits) {
    const spent = steps.get(mark.step);
    if (spent !== undefined) spent.ms += Math.max(0, at - moved - mark.since);
    mark.since = at - moved;
  }
}

export function tallied({ steps }: Tally): readonly StepTally[] {
  return [...steps.values()];
}

/** The same, with what is under way counted as work up to a time. The tally stays as it is. */
export function talliedUntil({ steps, visits, moved }: Tally, at: number): readonly StepTally[] {
  const copy: Tally = {
    steps: new Map([...steps].map(([step, spent]) => [step, { ...spent }])),
    visits: visits.map((mark) => ({ ...mark })),
    moved,
  };
  addUntil(copy, at);
  return tallied(copy);
}

/** A step with one response whose price is not known has no known cost. */
function costOf(before: Spent, costUsd: number | null): number | null {
  if (before.turns === 0) return costUsd;
  return before.costUsd === null || costUsd === null ? null : before.costUsd + costUsd;
}

/** `mark` is where the visit is marked from now on. */
function begin({ steps }: Tally, mark: Mark, { step, visit }: Lane, at: number): Mark {
  const spent = steps.get(step);
  if (spent !== undefined) spent.visits = visit;
  else
    steps.set(step, { step, visits: visit, turns: 0, inputTokens: 0, outputTokens: 0, ms: 0, costUsd: null });
  mark.step = step;
  mark.visit = visit;
  mark.since = at;
  return mark;
}

function markOf(marks: readonly Mark[], step: StepId, visit: number): Mark | undefined {
  for (const mark of marks) if (mark.visit === visit && mark.step === step) return mark;
  return undefined;
}

/** What an event says that models cost. */
export function usageIn(event: Event): Usage | undefined {
  const usage = recordedIn(event);
  return usage === undefined ? undefined : countedUsage(usage);
}

function recordedIn(event: Event): Usage | undefined {
  if (event.type === "step.cut") return event.usage;
  if (event.type === "run.limited") return event.spent;
  if (event.type !== "step.answered") return undefined;
  const { reply } = event;
  return reply.kind === "said" ? reply.usage : reply.kind === "fault" ? reply.fault.usage : undefined;
}
