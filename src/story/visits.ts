/** The visits of a run, each with all that happened in it and how the run stood before and after: a fold of its journal. */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import { laneIn, visitKey, type AtVisit } from "../flow/deed.ts";
import { EMPTY_STATE, type Lane, type State } from "../engine/decide/state.ts";
import type { CheckResult, Entry, Event } from "../flow/event.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { story, type Moment } from "./story.ts";

export type Trace = {
  /** In the order in which they were begun. */
  readonly visits: readonly Visit[];
  /** By the step that was asked; a question about another step stands for the visit that it asks about. */
  readonly bySteps: ReadonlyMap<StepId, readonly Visit[]>;
  /** Those that the newest entry speaks of. */
  readonly newest: readonly Visit[];
  /** The one that was decided last. */
  readonly decided: Visit | null;
  readonly final: State;
  /** The flow that holds at the end. */
  readonly flow: Prepared;
  readonly digest: string;
  readonly started: Started | null;
  readonly last: Entry | null;
};

type Started = Event & { readonly type: "run.started" };

/** One visit, with the questions about its work. */
export type Visit = {
  readonly step: StepId;
  readonly visit: number;
  readonly iteration: number;
  /** The step that led here. */
  readonly from: StepId | null;
  /** The flow that held when it was begun. */
  readonly flow: Prepared;
  /** The entry that led to it. */
  readonly begun: number;
  readonly happened: readonly Happened[];
};

export type Happened = Moment & {
  /** Of the flow that held. */
  readonly digest: string;
  /** Messages that stood in the conversation already. */
  readonly heard: number;
  /** For each check that was run: the how-manyth time in this run. */
  readonly attempts: readonly number[];
};

type Growing = Visit & { readonly happened: Happened[] };

/** All of it: what happened in every visit. */
export function traceOf(began: Prepared, entries: readonly Entry[], adopted?: PreparedFlows): Trace {
  const { add, traced } = createTrace();
  let flow = began;
  for (const moment of story(began, entries, adopted)) {
    add(moment);
    ({ flow } = moment);
  }
  return traced(flow);
}

/** `STEP@VISIT`; null: it is not of that form. */
export function visitIn(target: string): AtVisit | null {
  const [, step, visit] = /^(.+)@(\d+)$/.exec(target) ?? [];
  return step === undefined ? null : { step, visit: Number(visit) };
}

/**
 * The trace of a run that is told entry by entry. With a target (`STEP` or `STEP@VISIT`; null: where the run stands) what
 * happened is kept for the visits only that may turn out to be meant: a long run has too many states to hold them all.
 */
export function createTrace(target?: string | null): {
  readonly add: (moment: Moment) => void;
  readonly traced: (flow: Prepared) => Trace;
} {
  const visits: Growing[] = [];
  const bySteps = new Map<StepId, Growing[]>();
  const attempts = new Map<string, number>();
  const heard = new Map<string, number>();
  const at = target == null ? null : visitIn(target);
  let held: ReadonlySet<Growing> = new Set();
  const meant: { visit: Growing | null; step: Growing | null } = { visit: null, step: null };
  let final = EMPTY_STATE;
  let digest = "";
  let started: Started | null = null;
  let last: Entry | null = null;
  let newest: readonly Growing[] = [];
  let decided: Growing | null = null;

  const visitOf = ({ step, visit }: AtVisit) => bySteps.get(step)?.[visit - 1];

  const meet = (lane: Lane, seq: number, flow: Prepared) => {
    if (visitOf(lane) !== undefined) return;
    const known = bySteps.get(lane.step) ?? [];
    const owner = own(flow.steps, lane.step)?.aside;
    const asked = owner === undefined ? undefined : bySteps.get(owner)?.at(-1);
    const { step, visit, origin: from } = lane;
    const begun = asked ?? {
      step,
      visit,
      iteration: visits.length + 1,
      from,
      flow,
      begun: seq,
      happened: [],
    };
    if (asked === undefined) visits.push(begun);
    known.push(begun);
    bySteps.set(step, known);
    if (step === target) meant.step = begun;
    if (step === at?.step && known.length === at.visit) meant.visit = begun;
  };

  const concerned = ({ event }: Entry, before: State, state: State) => {
    if (event.type === "run.started") return [];
    // Where only the end was left to be recorded, nothing is under way.
    if (event.type === "run.resumed" && state.lanes.length === 0) return newest;
    if (event.type === "run.resumed") return present(state.lanes.map(visitOf));
    if (event.type === "run.adopted" || event.type === "run.edited")
      return present([...state.lanes, ...state.halted].map(visitOf));
    if (event.type === "run.ended") return [...new Set([...newest, ...present(before.halted.map(visitOf))])];
    return "step" in event ? present([visitOf(event)]) : newest;
  };

  /** What can still be meant, or can still have something happen to it, keeps what happened. */
  const letGo = ({ lanes, halted }: State) => {
    const kept = new Set<Growing>(newest);
    for (const lane of [...lanes, ...halted]) {
      const open = visitOf(lane);
      if (open !== undefined) kept.add(open);
    }
    for (const one of [decided, meant.step, meant.visit]) if (one) kept.add(one);
    for (const visit of held) if (!kept.has(visit)) visit.happened.length = 0;
    held = kept;
  };

  return {
    add(moment) {
      const { entry, before, after, flow } = moment;
      const { event } = entry;
      if (event.type === "run.started") started = event;
      if (event.type === "run.started" || event.type === "run.adopted") digest = event.flow;
      const place = event.type === "step.answered" ? conversationOf(flow, event) : "";
      const happened: Happened = {
        ...moment,
        digest,
        heard: heard.get(place) ?? 0,
        attempts: event.type === "step.checked" ? countChecks(attempts, event.results) : [],
      };
      if (event.type === "step.answered" && event.reply.kind === "said") {
        const said = laneIn(before, event)?.say.length ?? 0;
        heard.set(place, happened.heard + said + 1);
      }
      newest = concerned(entry, before, after);
      for (const visit of newest) visit.happened.push(happened);
      if (entry.led !== undefined) decided = newest[0] ?? decided;
      for (const lane of after.lanes) meet(lane, entry.seq, flow);
      if (target !== undefined) letGo(after);
      final = after;
      last = entry;
    },
    traced: (flow) => ({ visits, bySteps, newest, decided, final, flow, digest, started, last }),
  };
}

/** For each check that was run: the how-manyth time. */
function countChecks(ran: Map<string, number>, results: readonly CheckResult[]): readonly number[] {
  return results.map(({ name }) => {
    const times = (ran.get(name) ?? 0) + 1;
    ran.set(name, times);
    return times;
  });
}

function conversationOf(flow: Flow, at: AtVisit): string {
  return own(flow.steps, at.step)?.transcript === "fresh" ? visitKey(at) : "shared";
}

function present<T>(list: readonly (T | undefined)[]): readonly T[] {
  return list.filter((item) => item !== undefined);
}
