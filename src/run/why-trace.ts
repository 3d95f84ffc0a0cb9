/** The visits of a run, each with all that happened in it and how the run stood before and after: a fold of its journal. */
import { decide } from "../engine/decide.ts";
import { addEntry, createReport } from "../engine/report.ts";
import { EMPTY_STATE, type Lane, type State } from "../engine/state.ts";
import type { Entry } from "../flow/event.ts";
import { flowFrom } from "../flow/adopted.ts";
import type { Flow, Flows, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";

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
  readonly flow: Flow;
};

/** One visit, with the questions about its work. */
export type Visit = {
  readonly step: StepId;
  readonly visit: number;
  readonly iteration: number;
  /** The step that led here. */
  readonly from: StepId | null;
  /** The flow that held when it was begun. */
  readonly flow: Flow;
  /** The entry that led to it. */
  readonly begun: number;
  readonly happened: readonly Happened[];
};

export type Happened = {
  readonly entry: Entry;
  readonly flow: Flow;
  readonly before: State;
  readonly after: State;
  /** Messages that stood in the conversation already. */
  readonly heard: number;
  /** For each check that was run: the how-manyth time in this run. */
  readonly attempts: readonly number[];
};

type Growing = Visit & { readonly happened: Happened[] };

export function traceOf(began: Flow, entries: readonly Entry[], adopted?: Flows): Trace {
  const visits: Growing[] = [];
  const bySteps = new Map<StepId, Growing[]>();
  const report = createReport();
  const heard = new Map<string, number>();
  let flow = began;
  let state = EMPTY_STATE;
  let newest: readonly Growing[] = [];
  let decided: Growing | null = null;

  const visitOf = ({ step, visit }: Pick<Lane, "step" | "visit">) => bySteps.get(step)?.[visit - 1];

  const meet = (lane: Lane, seq: number) => {
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
  };

  const concerned = ({ event }: Entry, before: State) => {
    if (event.type === "run.started") return [];
    // Where only the end was left to be recorded, nothing is under way.
    if (event.type === "run.resumed" && state.lanes.length === 0) return newest;
    if (event.type === "run.resumed") return present(state.lanes.map(visitOf));
    if (event.type === "run.adopted" || event.type === "run.edited")
      return present([...state.lanes, ...state.halted].map(visitOf));
    if (event.type === "run.ended") return [...new Set([...newest, ...present(before.halted.map(visitOf))])];
    return "step" in event ? present([visitOf(event)]) : newest;
  };

  for (const entry of entries) {
    const { event } = entry;
    const before = state;
    flow = flowFrom(flow, event, adopted);
    state = decide(flow, before, event);
    const ran = report.checks.length;
    addEntry(report, entry);
    const attempts = report.checks.slice(ran).map(({ attempt }) => attempt);
    const place = event.type === "step.answered" ? conversationOf(flow, event) : "";
    const happened: Happened = { entry, flow, before, after: state, heard: heard.get(place) ?? 0, attempts };
    if (event.type === "step.answered" && event.reply.kind === "said") {
      const said = laneIn(before, event)?.say.length ?? 0;
      heard.set(place, happened.heard + said + 1);
    }
    newest = concerned(entry, before);
    for (const visit of newest) visit.happened.push(happened);
    if (entry.led !== undefined) decided = newest[0] ?? decided;
    for (const lane of state.lanes) meet(lane, entry.seq);
  }
  return { visits, bySteps, newest, decided, final: state, flow };
}

export function laneIn(
  { lanes }: Pick<State, "lanes">,
  at: { readonly step: StepId; readonly visit: number },
): Lane | undefined {
  return lanes.find((lane) => lane.step === at.step && lane.visit === at.visit);
}

function conversationOf(flow: Flow, at: { readonly step: StepId; readonly visit: number }): string {
  return own(flow.steps, at.step)?.transcript === "fresh" ? `${at.step}@${at.visit}` : "shared";
}

function present<T>(list: readonly (T | undefined)[]): readonly T[] {
  return list.filter((item) => item !== undefined);
}
