/** A recorded run led through another flow: what was answered, checked and seen then is given to it now. */
import { visitKey, laneIn, type AtVisit } from "../flow/deed.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import type { CheckResult, Entry, Event, Led } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { StepId } from "../flow/flow.ts";
import { stateAfter } from "../engine/decide/decide.ts";
import { besidesAct } from "../engine/decide/due.ts";
import { answers } from "./replay.ts";
import { EMPTY_STATE, type State } from "../engine/decide/state.ts";

export type Rerouted = {
  readonly path: readonly Led[];
  readonly state: State;
  /** Where nothing is recorded that would lead on; null: the end was reached. */
  readonly stuck: (AtVisit & { readonly why: string }) | null;
};

type StepEvent = Extract<Event, { readonly step: StepId }>;
type Recorded = { readonly seq: number; readonly event: StepEvent };

/** `started` begins the run; of `entries` what happened in visits is used, each at most once, and what was edited. */
export function reroute(
  flow: Prepared,
  started: Event & { type: "run.started" },
  entries: readonly Entry[],
): Rerouted {
  const left = byVisit(entries);
  const edits = entries.filter(({ event }) => event.type === "run.edited");
  const path: Led[] = [];
  let state = EMPTY_STATE;
  const go = (event: Event) => {
    state = stateAfter(flow, state, event);
    if (state.settled !== null) path.push(state.settled);
  };

  go(started);
  for (;;) {
    // Nothing is done outside here.
    const pending = besidesAct(state);
    const [first] = pending;
    if (first === undefined) return { path, state, stuck: null };
    if (first.type === "end") {
      const goesOn = state.halted.some((lane) => (left.get(visitKey(lane))?.length ?? 0) > 0);
      go({ type: "run.ended", verdict: first.verdict });
      if (!goesOn) return { path, state, stuck: null };
      go({ type: "run.resumed", epoch: 0 });
      continue;
    }
    const ready = (pending as readonly StepCommand[]).flatMap((command) => fitting(command, left) ?? []);
    const next = ready.toSorted((a, b) => a.seq - b.seq)[0];
    if (next === undefined) {
      const { step, visit } = first;
      return { path, state, stuck: { step, visit, why: whyStuck(first, state, left) } };
    }
    next.take();
    while (edits[0] !== undefined && edits[0].seq < next.seq) go(edits.shift()!.event);
    go(next.event);
  }
}

function byVisit(entries: readonly Entry[]): Map<string, Recorded[]> {
  const left = new Map<string, Recorded[]>();
  for (const { seq, event } of entries) {
    if (!("step" in event)) continue;
    const key = visitKey(event);
    const list = left.get(key) ?? [];
    list.push({ seq, event });
    left.set(key, list);
  }
  return left;
}

type Fitting = { readonly seq: number; readonly event: Event; readonly take: () => void };

/** The first thing recorded of the visit that can be what comes of the command; what lies before it fits nowhere now. */
function fitting(command: StepCommand, left: Map<string, Recorded[]>): Fitting | null {
  const list = left.get(visitKey(command)) ?? [];
  const index = list.findIndex(({ event }) => answers(command, inTurn(event, command)));
  const found = list[index];
  if (found === undefined) {
    // Time passes without anybody recording it.
    if (command.type !== "wait") return null;
    const { step, visit, ms } = command;
    return { seq: 0, event: { type: "step.waited", step, visit, ms }, take: () => undefined };
  }
  const take = () => void list.splice(0, index + 1);
  const event = inTurn(found.event, command);
  if (command.type !== "check" || event.type !== "step.checked") return { seq: found.seq, event, take };
  const results = resultsOf(command.checks, event.results);
  return results === null ? null : { seq: found.seq, event: { ...event, results }, take };
}

function inTurn(event: StepEvent, command: StepCommand): StepEvent {
  if (event.type !== "step.answered" || command.type !== "ask") return event;
  return { ...event, turn: command.turn };
}

/** As if these had been run, in this order: up to the first that fails. Null: one of them was not run. */
function resultsOf(names: readonly string[], run: readonly CheckResult[]): readonly CheckResult[] | null {
  const results: CheckResult[] = [];
  for (const name of names) {
    const result = run.find((other) => other.name === name);
    if (result === undefined) return null;
    results.push(result);
    if (!result.ok) break;
  }
  return results;
}

function whyStuck(command: StepCommand, state: State, left: Map<string, Recorded[]>): string {
  if (command.type === "check") {
    const run = (left.get(visitKey(command)) ?? []).flatMap(({ event }) =>
      event.type === "step.checked" ? event.results : [],
    );
    const missing = command.checks.filter((name) => !run.some((result) => result.name === name));
    return `what ${missing.map((name) => `"${name}"`).join(", ") || "its checks"} would find is not recorded`;
  }
  if (command.type === "hook") return `what its ${command.hook} hook would give is not recorded`;
  if (command.type === "look") return "what would be seen outside is not recorded";
  if (command.type === "call") return "what its tools would give is not recorded";
  const lane = laneIn(state, command);
  const errors = lane?.say.flatMap((say) => (say.kind === "repair" ? say.errors : [])) ?? [];
  if (errors.length > 0) return `its recorded answer does not fit any more: ${errors.join("; ")}`;
  return "no answer to it is recorded";
}
