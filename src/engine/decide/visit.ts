/** Transitions of a visit: entered, asked again, settled, ended. The small steps that `decide` is made of. */
import type { AtVisit, ChecksRead, Deed, Phase } from "../../flow/deed.ts";
import type { CheckResult, Event, Led } from "../../flow/event.ts";
import type { Say, StepCommand } from "../../flow/command.ts";
import type { Flow, Guard, Label, Step, StepId } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import { lifecycleOf } from "../../flow/lifecycle.ts";
import { messages } from "../../flow/text/endings.ts";
import type { Lane, Life, State } from "./state.ts";

/** What every decision needs: the flow, and the list that collects what it does; null: only the state is wanted. */
export type Deciding = { readonly flow: Flow; readonly deeds: Deed[] | null };

/** Where an event takes place: the visit it speaks of, and all that is known around it. */
export type Here = Deciding & { readonly state: State; readonly lane: Lane; readonly step: Step };

export type Entrance = {
  readonly step: StepId;
  readonly origin: StepId | null;
  readonly say?: Say;
  readonly strikes?: number;
  /** Whose results the visit is given; the one of the step that led here, unless said otherwise. */
  readonly upstream?: readonly StepId[];
  /** The visit that leads here, and how it was settled. */
  readonly leaving?: Lane;
  readonly settled?: Led | null;
};

/** Begins a visit, unless a limit is reached. A question about another step is not counted. */
export function enter(deciding: Deciding, state: State, to: Entrance): State {
  const { flow, deeds } = deciding;
  const settled = to.settled === undefined ? state.settled : to.settled;
  const from = settled?.step ?? null;
  const step = own(flow.steps, to.step);
  if (step === undefined)
    return end(deciding, state, settled, "FAILED_STEP_ROUTING", messages.unknownStep(to.step), from);
  const counts = step.aside === undefined;
  const { limits } = flow;
  if (counts && state.iterations >= limits.visits) {
    const why = messages.maxIterations(limits.visits, to.step);
    return end(deciding, state, settled, "AGENT_MAX_ITERATIONS", why, from);
  }
  const visit = (own(state.visits, to.step) ?? 0) + 1;
  const say = to.say === undefined ? PROMPT : [to.say];
  const life = lifecycleOf(step) === undefined ? null : openLife(state, to);
  const lane: Lane = {
    step: to.step,
    visit,
    turn: 1,
    repairs: 0,
    faults: 0,
    strikes: to.strikes ?? 0,
    origin: to.origin,
    say,
    said: "",
    answer: null,
    command:
      life === null
        ? { type: "ask", step: to.step, visit, turn: 1, attempt: 1, say }
        : opening(flow, step, visit, life, say),
    life,
  };
  // A computed member of a literal is set several times slower.
  const visits: { [step: StepId]: number } = { ...state.visits };
  visits[to.step] = visit;
  const beside = to.leaving === undefined ? state.lanes : lanesBeside(state, to.leaving);
  const lanes = beside.length === 0 ? [lane] : [...beside, lane];
  const pending = beside.length === 0 ? [lane.command] : lanes.map(commandOf);
  const iterations = counts ? state.iterations + 1 : state.iterations;
  if (deeds !== null) {
    if (settled !== null && settled !== state.settled) deeds.push({ kind: "settled", led: settled });
    deeds.push({ kind: "began", step: to.step, visit, iteration: state.iterations + 1 });
    if (life !== null) deeds.push(phaseDeed(lane, phaseOf(lane), null));
  }
  return { ...state, iterations, visits, lanes, pending, settled };
}

/** What is said to begin with, almost always. */
const PROMPT: readonly Say[] = [{ kind: "prompt" }];

function openLife({ ctx, handoff }: State, { origin, upstream }: Entrance): Life {
  const before = upstream ?? (origin === null ? [] : [origin]);
  return {
    phase: "setup",
    ctx,
    upstream: before.map((id) => own(handoff, id)).filter((result) => result !== undefined),
    deferred: 0,
    since: 0,
    tries: [{ index: 1, turns: 0, capHit: false }],
    completion: null,
    result: null,
  };
}

/** What a lifecycle begins with: the code of the project, the gate, or the model. */
function opening(flow: Flow, step: Step, visit: number, life: Life, say: readonly Say[]): StepCommand {
  const at = { step: step.id, visit, attempt: 1 };
  if (flow.hooks !== undefined) return { type: "hook", ...at, hook: "setup", input: life.ctx };
  const gate = lifecycleOf(step)?.gate;
  return gate === undefined ? { type: "ask", ...at, turn: 1, say } : { type: "check", ...at, checks: [gate] };
}

/** The phase that a visit is in. Where its project has no code, it begins with its gate or its conversation. */
export function phaseOf({ life, command: { type } }: Lane): Phase {
  if (life === null || life.phase !== "setup") return life?.phase ?? "act";
  return type === "hook" ? "setup" : type === "check" ? "gate" : "act";
}

export function phaseDeed({ step, visit, life }: Lane, phase: Phase, from: Phase | null): Deed {
  const { index = 1, capHit = false } = life?.tries.at(-1) ?? {};
  return { kind: "phase", step, visit, phase, from, attempt: index, capHit };
}

export function askAgain(state: State, lane: Lane): State {
  const { step, visit, turn, say } = lane;
  return replaceLane(state, { ...lane, command: { type: "ask", step, visit, turn, attempt: 1, say } });
}

export function doNext(here: Here, command: StepCommand): State {
  return replaceLane(here.state, { ...here.lane, command });
}

type Settling = {
  readonly label?: Label | null;
  readonly notes?: readonly string[];
  readonly overturned?: true;
};

/** Ends the run in failure; a sibling takes the whole fork with it. */
export function fail(here: Here, code: string, reason: string, how: Settling = {}): State {
  const { state, lane } = here;
  const plain = led(here, how.label ?? null, null, how.notes ?? []);
  const settled: Led = how.overturned ? { ...plain, overturned: true } : plain;
  if (state.fork === null) return end(here, state, settled, code, reason, settled.step);
  const { failed } = state.fork;
  if (failed !== undefined) {
    const why = `${failed.why}. Then "${lane.step}" failed too: ${code}: ${reason}`;
    return end(here, state, settled, "ParallelSiblingFailure", why, failed.step);
  }
  const why = messages.siblingFailed(lane.step, state.fork, `${code}: ${reason}`);
  return end(here, state, settled, "ParallelSiblingFailure", why, lane.step);
}

/** Ends the run for a reason outside the flow. The visit stays unsettled, so that a resumed run asks it again. */
export function halt(here: Here, code: string, reason: string): State {
  return haltAll(here, askAgain(here.state, { ...here.lane, faults: 0 }), code, reason, here.step.id);
}

/** Ends the run for a reason that has to do with none of its visits: a resumed run goes on with all of them. */
export function haltAll(deciding: Deciding, state: State, code: string, reason: string, of?: StepId): State {
  const { fork } = state;
  const halted = [...state.halted, ...state.lanes];
  deciding.deeds?.push({ kind: "held", visits: state.lanes });
  const ended = end(deciding, state, state.settled, code, reason, of ?? halted[0]?.step ?? null);
  return { ...ended, halted, fork };
}

/** Ends this stretch of the run: somebody has to act before it can go on, and then it goes on with the same command. */
export function suspend(here: Here, code: string, reason: string): State {
  const { state, lane, step } = here;
  const lanes = state.lanes.map((other) => (isSame(other, lane) ? lane : other));
  return hold(here, { ...state, lanes }, code, reason, step.id);
}

/** Ends this stretch because somebody wants it so: it goes on where it stands, and only when it is told to. */
export function paused(deciding: Deciding, state: State): State {
  const step = state.halted[0]?.step ?? state.lanes[0]?.step ?? null;
  return hold(deciding, state, "PAUSED", "The run is paused.", step);
}

function hold({ deeds }: Deciding, state: State, code: string, reason: string, step: StepId | null): State {
  const verdict = { outcome: "waiting", code, reason, step } as const;
  const halted = [...state.halted, ...state.lanes];
  deeds?.push({ kind: "held", visits: state.lanes }, { kind: "ended", verdict });
  return { ...state, lanes: NONE, settled: null, verdict, pending: [{ type: "end", verdict }], halted };
}

const NONE: readonly Lane[] = [];

/** `code` null means completed. */
export function end(
  { deeds }: Deciding,
  state: State,
  settled: Led | null,
  code: string | null,
  reason: string,
  step: StepId | null,
): State {
  const verdict = { outcome: code === null ? "completed" : "failed", code, reason, step } as const;
  const pending = [{ type: "end", verdict }] as const;
  if (deeds !== null) {
    if (settled !== null && settled !== state.settled) deeds.push({ kind: "settled", led: settled });
    deeds.push({ kind: "ended", verdict });
  }
  return { ...state, lanes: [], halted: NONE, fork: null, settled, verdict, pending };
}

/** How the visit is told: a question about another step is told as that step's. */
export function led(
  { state, lane, step }: Here,
  label: Label | null,
  to: StepId | null,
  notes: readonly string[],
): Led {
  const plain = { step: lane.step, visit: lane.visit, label, to };
  const told =
    step.aside !== undefined
      ? { ...plain, ...asked(state, step.aside) }
      : state.fork === null
        ? plain
        : { ...plain, place: state.fork.steps.indexOf(lane.step) };
  return notes.length === 0 ? told : { ...told, notes };
}

function asked({ visits, last }: State, owner: StepId): Pick<Led, "step" | "visit" | "check"> {
  const about = { step: owner, visit: own(visits, owner) ?? 0 };
  return last === null ? about : { ...about, check: { label: last.label, message: last.reason } };
}

export function checksRead(
  { deeds, lane: { step, visit } }: Here,
  of: ChecksRead["of"],
  guard: Guard | null,
  results: readonly CheckResult[],
  failed: CheckResult | undefined,
): void {
  deeds?.push({ kind: "checked", step, visit, of, guard, results, failed: failed ?? null });
}

// Lanes.

export function find(deciding: Deciding, state: State, at: AtVisit): Here {
  const { flow, deeds } = deciding;
  const first = state.lanes[0];
  const isFirst = first !== undefined && isSame(first, at);
  const lane = isFirst ? first : state.lanes.find((other) => isSame(other, at));
  const step = lane === undefined ? undefined : flow.steps[lane.step];
  if (lane === undefined || step === undefined) {
    throw new Error(`The journal speaks of ${at.step}@${at.visit}, which is not under way`);
  }
  return { flow, deeds, state, lane, step };
}

/** The visit is settled. What is pending is set by whatever comes next. */
export function leave({ deeds }: Deciding, state: State, lane: Lane, settled: Led): State {
  deeds?.push({ kind: "settled", led: settled });
  return { ...state, lanes: lanesBeside(state, lane), settled };
}

function lanesBeside({ lanes }: State, lane: Lane): readonly Lane[] {
  return lanes.length === 1 ? NONE : lanes.filter((other) => !isSame(other, lane));
}

/** Something more is said to the visits that are about to be asked. */
export function sayBesides(state: State, isMeant: (lane: Lane) => boolean, say: Say): State {
  const lanes = state.lanes.map((lane) => {
    if (lane.command.type !== "ask" || !isMeant(lane)) return lane;
    const says = [...lane.say, say];
    return { ...lane, say: says, command: { ...lane.command, say: says } };
  });
  return { ...state, lanes, pending: lanes.map(commandOf) };
}

function replaceLane(state: State, lane: Lane): State {
  const lanes =
    state.lanes.length === 1 ? [lane] : state.lanes.map((other) => (isSame(other, lane) ? lane : other));
  return withLanes(state, lanes, null);
}

export function withLanes(state: State, lanes: readonly Lane[], settled: Led | null): State {
  return { ...state, lanes, pending: lanes.map(commandOf), settled };
}

function commandOf(lane: Lane): StepCommand {
  return lane.command;
}

function isSame(a: Lane, b: Pick<Lane, "step" | "visit">): boolean {
  return a.step === b.step && a.visit === b.visit;
}

/** A wait that was under way is not begun anew: the time since then has waited for it, except for what is `left`. */
export function attemptAgain(lane: Lane, left: Resumed["waits"] = []): Lane {
  const { command, step, visit, turn, say } = lane;
  const still = left.find((wait) => isSame(lane, wait));
  if (command.type === "wait" && still !== undefined)
    return { ...lane, command: { ...command, ms: still.ms } };
  if (command.type === "wait")
    return { ...lane, command: command.next ?? { type: "ask", step, visit, turn, attempt: 1, say } };
  return { ...lane, command: { ...command, attempt: command.attempt + 1 } };
}

type Resumed = Extract<Event, { type: "run.resumed" }>;
