/** What each step of a run took: visits, responses, tokens, time and money. A fold of the journal beside the state. */
import type { Entry, Reply, Usage } from "../flow/event.ts";
import type { StepId } from "../flow/flow.ts";
import type { Lane, State } from "./state.ts";

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
};

type Spent = { -readonly [key in keyof StepTally]: StepTally[key] };
type Mark = { readonly step: StepId; readonly visit: number; since: number };

export function createTally(): Tally {
  return { steps: new Map(), visits: [] };
}

/** Adds one entry, with the state it led to; entries come in order. This is done for every entry of every run. */
export function addToTally(tally: Tally, { at, event }: Entry, after: State): void {
  if ("visit" in event) {
    const mark = markOf(tally.visits, event.step, event.visit);
    const spent = tally.steps.get(event.step);
    if (mark !== undefined && spent !== undefined) {
      spent.ms += at - mark.since;
      mark.since = at;
      const usage = event.type === "step.answered" ? usageOf(event.reply) : undefined;
      if (usage !== undefined) {
        const { turns, inputTokens, outputTokens, costUsd } = usage;
        spent.turns += turns;
        spent.inputTokens += inputTokens;
        spent.outputTokens += outputTokens;
        if (costUsd !== null) spent.costUsd = (spent.costUsd ?? 0) + costUsd;
      }
    }
  }
  if (event.type === "run.resumed") tally.visits = [];
  const [lane] = after.lanes;
  const [mark] = tally.visits;
  // Mostly there is one visit at a time, and it is still the same or just the next one.
  if (lane !== undefined && after.lanes.length === 1 && tally.visits.length === 1) {
    if (mark!.visit !== lane.visit || mark!.step !== lane.step) tally.visits = [begin(tally, lane, at)];
    return;
  }
  const visits: Mark[] = [];
  for (const one of after.lanes)
    visits.push(markOf(tally.visits, one.step, one.visit) ?? begin(tally, one, at));
  tally.visits = visits;
}

export function tallied({ steps }: Tally): readonly StepTally[] {
  return [...steps.values()];
}

function begin({ steps }: Tally, { step, visit }: Lane, at: number): Mark {
  const spent = steps.get(step);
  if (spent !== undefined) spent.visits = visit;
  else
    steps.set(step, { step, visits: visit, turns: 0, inputTokens: 0, outputTokens: 0, ms: 0, costUsd: null });
  return { step, visit, since: at };
}

function markOf(marks: readonly Mark[], step: StepId, visit: number): Mark | undefined {
  for (const mark of marks) if (mark.visit === visit && mark.step === step) return mark;
  return undefined;
}

function usageOf(reply: Reply): Usage | undefined {
  return reply.kind === "said" ? reply.usage : reply.kind === "fault" ? reply.fault.usage : undefined;
}
