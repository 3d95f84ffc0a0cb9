/**
 * Finds for every element of a flow the shortest way that shows it: breadth first over `decide` itself, so that what is
 * found can happen and what is impossible for the engine is not found.
 */
import { decide } from "../engine/decide/decide.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import { EMPTY_STATE, type Lane, type State } from "../engine/decide/state.ts";
import type { Deed } from "../flow/deed.ts";
import type { Event } from "../flow/event.ts";
import { cached } from "../flow/cached.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { Moment } from "../story/story.ts";
import { inputFor } from "./arguments.ts";
import { handedKey, unaskableIn } from "./asking.ts";
import { choicesFor, eventOf, type Happening } from "./choices.ts";
import { shownIn } from "./cover.ts";
import type { Element } from "./elements.ts";

/** A way through the flow: what happens, one after the other, from the start of the run. */
export type Course = readonly Happening[];

/** A way with every moment of it; the first is the start of the run. `until`: it is long enough when this step begins. */
export type Walked = {
  readonly course: Course;
  readonly moments: readonly Moment[];
  readonly until?: StepId;
};

export type Searched = {
  /** Elements that were shown, each with how much has to happen until then. */
  readonly found: ReadonlyMap<string, number>;
  /** The way that shows the element first, and on to an end, a completed one where there is one that is not far. */
  readonly wayTo: (id: string) => Walked;
  /** Which of these the way to the element shows; they are taken out of the set. */
  readonly shownOnWayTo: (id: string, way: Walked, open: Set<string>) => readonly string[];
  /** Prompts that cannot be made on a way that the flow allows: for each reason the first such way. */
  readonly unaskable: readonly { readonly step: StepId; readonly why: string; readonly way: Walked }[];
  /** States that were told apart. */
  readonly states: number;
  /** The search ended because there was nothing left to try, so that what was not found cannot happen. */
  readonly isWhole: boolean;
};

export type SearchOptions = {
  readonly args?: JsonObject;
  readonly most?: number;
  readonly wanted: readonly Element[];
};

const MOST_STATES = 150_000;

export function search(flow: Prepared, { args = {}, most = MOST_STATES, wanted }: SearchOptions): Searched {
  const first = step(flow, EMPTY_STATE, started(flow, args));
  const nodes: Node[] = [{ state: first.after, from: -1, length: 0, leg: { course: [], moments: [first] } }];
  const known = new Map<string, number>([[stateKey(flow, first.after), 0]]);
  const edges: Edge[][] = [];
  const ways = new Map<string, Way>();
  const unaskable = new Map<string, number>();
  for (const id of shownIn(first)) ways.set(id, { at: 0, leg: NOWHERE });

  // Fewest visits first: of two ways to the same state, the one that leaves more of them for what comes next.
  const waiting = createWaiting();
  waiting.add(0, 0);
  for (let at = waiting.next(); at !== undefined && nodes.length < most; at = waiting.next()) {
    if (edges[at] !== undefined) continue;
    const { state, length } = nodes[at]!;
    const key = stateKey(flow, state);
    const out: Edge[] = [];
    edges[at] = out;
    const trouble = unaskableIn(flow, state);
    if (trouble !== null && !unaskable.has(trouble.why)) unaskable.set(trouble.why, at);
    for (const choice of choicesFor(flow, state)) {
      const moment = taken(flow, state, choice);
      if (moment === null) continue;
      const leg = pumped(flow, key, choice, moment);
      const { after } = leg.moments.at(-1)!;
      const next = stateKey(flow, after);
      const visits = after.iterations;
      const node: Node = { state: after, from: at, length: length + leg.course.length, leg };
      let to = known.get(next);
      if (to === undefined) {
        to = nodes.push(node) - 1;
        known.set(next, to);
        waiting.add(to, visits);
      } else if (edges[to] === undefined && visits < nodes[to]!.state.iterations) {
        nodes[to] = node;
        waiting.add(to, visits);
      }
      out.push({ choice, times: leg.course.length, to });
      for (const one of leg.moments)
        for (const id of shownIn(one)) if (!ways.has(id)) ways.set(id, { at, leg });
    }
  }
  const graph: Graph = { flow, nodes, edges };
  const atSteps = nodesBySteps(nodes);
  for (const element of wanted) {
    if (ways.has(element.id) || !isCounted(flow, element)) continue;
    const among = element.step === null ? nodes.keys() : (atSteps.get(element.step) ?? []);
    const way = byCounting(graph, element, among);
    if (way !== null) ways.set(element.id, way);
  }
  const finish = finisher(graph, known);
  const shownUpTo = shownOnce(nodes);
  const lengthOf = ({ at, leg }: Way) => nodes[at]!.length + leg.course.length;
  return {
    found: new Map(Array.from(ways, ([id, way]) => [id, lengthOf(way)])),
    wayTo: (id) => finish(walkedTo(nodes, ways.get(id)!)),
    shownOnWayTo: (id, { moments }, open) => {
      const { at } = ways.get(id)!;
      const onWay = shownUpTo(at, open);
      const beyond = moments.slice(nodes[at]!.length + 1).flatMap((moment) => [...shownIn(moment)]);
      return [...onWay, ...beyond.filter((other) => open.delete(other))];
    },
    unaskable: Array.from(unaskable, ([why, at]) => {
      const way = walkedTo(nodes, { at, leg: NOWHERE });
      return { step: nodes[at]!.state.lanes[0]!.step, why, way };
    }),
    states: nodes.length,
    isWhole: nodes.length < most,
  };
}

/** The same again and again, until a count makes a difference. Visits alone make one where the run ends by them. */
function pumped(flow: Prepared, key: string, choice: Happening, moment: Moment): Walked {
  const { before, after } = moment;
  const moments = [moment];
  if (stateKey(flow, after) === key && (flow.stop.kind !== "end" || after.iterations === before.iterations))
    while (moments.length < MOST_PUMPED) {
      const again = taken(flow, moments.at(-1)!.after, choice);
      if (again === null) break;
      moments.push(again);
      if (stateKey(flow, again.after) !== key) break;
    }
  return { course: moments.map(() => choice), moments };
}

/** A way goes on to a completed end where there is one, by the shortest way that was found. */
function finisher(
  { flow, nodes, edges }: Graph,
  index: ReadonlyMap<string, number>,
): (way: Walked) => Walked {
  const distances = distancesToEnd(nodes, edges);
  const distance = (edge: Edge) => distances.get(edge.to) ?? Infinity;
  return ({ course, moments }) => {
    const whole = [...course];
    const all = [...moments];
    const here = index.get(stateKey(flow, all.at(-1)!.after));
    const isFar = here !== undefined && (distances.get(here) ?? 0) > FAR;
    for (let left = MOST_FINISHING; left > 0; left--) {
      const state = all.at(-1)!.after;
      const at = index.get(stateKey(flow, state));
      if (state.pending.length === 0 || at === undefined) break;
      let best: Edge | undefined;
      for (const edge of edges[at] ?? [])
        if (distance(edge) < (best === undefined ? Infinity : distance(best))) best = edge;
      const choice = best?.choice ?? choicesFor(flow, state)[0];
      const moment = choice === undefined ? null : taken(flow, state, choice);
      if (moment === null || choice === undefined) break;
      const until = isFar ? newlyBegun(all, moment) : undefined;
      whole.push(choice);
      all.push(moment);
      if (until !== undefined) return { course: whole, moments: all, until };
    }
    return { course: whole, moments: all };
  };
}

/** An end that is further off says nothing about the element: the test is over when the run goes on to a new step. */
const FAR = 60;

/** A step that begins in this moment, and in none before. */
function newlyBegun(before: readonly Moment[], { deeds }: Moment): StepId | undefined {
  for (const deed of deeds) {
    if (deed.kind !== "began") continue;
    const isSame = (other: Deed) => other.kind === "began" && other.step === deed.step;
    if (!before.some((moment) => moment.deeds.some(isSame))) return deed.step;
  }
  return undefined;
}

/** Nodes in the order of their visits; of the same number, those that came first. */
function createWaiting(): {
  readonly add: (node: number, visits: number) => void;
  readonly next: () => number | undefined;
} {
  const lists: (number[] | undefined)[] = [];
  let visits = 0;
  let place = 0;
  return {
    add: (node, of) => void (lists[of] ??= []).push(node),
    next: () => {
      while (visits < lists.length && place >= (lists[visits]?.length ?? 0)) {
        visits += 1;
        place = 0;
      }
      return lists[visits]?.[place++];
    },
  };
}

const MOST_PUMPED = 600;
const MOST_FINISHING = 400;

/** `leg`: what led here from the node before. */
type Node = {
  readonly state: State;
  readonly from: number;
  /** How much has to happen until the run is here. */
  readonly length: number;
  readonly leg: Walked;
};
/** To a node, and on. */
type Way = { readonly at: number; readonly leg: Walked };
type Edge = { readonly choice: Happening; readonly times: number; readonly to: number };
type Edges = readonly (readonly Edge[])[];
type Graph = {
  readonly flow: Prepared;
  readonly nodes: readonly Node[];
  readonly edges: Edges;
};

const NOWHERE: Walked = { course: [], moments: [] };

/** Ways share their beginnings: a node up to which everything was taken out is not looked at again. */
function shownOnce(nodes: readonly Node[]): (at: number, open: Set<string>) => readonly string[] {
  const done = new Set<number>([-1]);
  return (at, open) => {
    const fresh: number[] = [];
    for (let here = at; !done.has(here); here = nodes[here]!.from) {
      done.add(here);
      fresh.push(here);
    }
    return fresh
      .toReversed()
      .flatMap((node) => nodes[node]!.leg.moments.flatMap((moment) => [...shownIn(moment)]))
      .filter((id) => open.delete(id));
  };
}

/** What is known of the nodes on the way is not decided again. */
function walkedTo(nodes: readonly Node[], { at, leg }: Way): Walked {
  const legs = [leg];
  for (let here = at; here !== -1; here = nodes[here]!.from) legs.push(nodes[here]!.leg);
  const course: Happening[] = [];
  const moments: Moment[] = [];
  for (let place = legs.length - 1; place >= 0; place--) {
    for (const choice of legs[place]!.course) course.push(choice);
    for (const moment of legs[place]!.moments) moments.push(moment);
  }
  return { course, moments };
}

/** What the choice leads to; null: it does not belong to what is pending. */
export function taken(flow: Prepared, state: State, choice: Happening): Moment | null {
  const event = eventOf(flow, state, choice);
  return event === null ? null : step(flow, state, event);
}

/** The state in which a run begins. */
export function stepFrom(flow: Prepared, args: JsonObject): State {
  return step(flow, EMPTY_STATE, started(flow, args)).after;
}

export function started(flow: Prepared, args: JsonObject): Event {
  const backend = { id: "scripted", options: null };
  return {
    type: "run.started",
    run: "run",
    agent: flow.agent,
    flow: "digest",
    args,
    input: inputFor(flow),
    cwd: "/",
    backend,
  };
}

/** null: the way does not fit the flow. */
export function walk(flow: Prepared, args: JsonObject, course: Course): Walked | null {
  const moments = [step(flow, EMPTY_STATE, started(flow, args))];
  for (const choice of course) {
    const moment = taken(flow, moments.at(-1)!.after, choice);
    if (moment === null) return null;
    moments.push(moment);
  }
  return { course, moments };
}

function step(flow: Prepared, before: State, event: Event): Moment {
  const { state: after, deeds } = decide(flow, before, event);
  return { entry: { seq: 1, at: 0, event }, flow, before, after: forgetful(flow, after), deeds };
}

/**
 * Counts of visits grow with the flow, are copied in each visit, and change nothing that can happen: of a large flow only
 * those of the steps at work are kept. What one attempt may spend is told apart by them.
 */
function forgetful(flow: Prepared, state: State): State {
  if (!isLarge(flow) || state.lanes.length === Object.keys(state.visits).length) return state;
  const visits = Object.fromEntries(state.lanes.map(({ step: id, visit }) => [id, visit]));
  return { ...state, visits };
}

const isLarge = cached((flow: Flow): boolean => {
  const steps = Object.values(flow.steps);
  return steps.length > MANY_STEPS && steps.every(({ limits }) => limits?.perAttempt === undefined);
});

const MANY_STEPS = 50;

/**
 * What tells two states apart for what can happen next. Counts that outlive a visit, and words, are left out: with them
 * there would be hundreds of thousands of states in a flow of thirty steps.
 */
export function stateKey(flow: Prepared, state: State): string {
  if (state.verdict !== null) return `${state.pending.length} ${state.verdict.outcome} ${state.verdict.code}`;
  const lanes = state.lanes.map((lane) => laneKey(flow, state, lane)).join(";");
  const fork =
    state.fork === null
      ? ""
      : `${state.fork.steps.join(",")}>${state.fork.join}:${state.fork.done.join(",")}:${state.fork.failed?.step}`;
  // In its first visit a run may be forgiven what it is not later.
  const first = state.iterations === 1 ? "first" : "";
  const asked = unaskableIn(flow, state) === null ? handedKey(flow, state) : "unaskable";
  return `${lanes}|${fork}|${state.queue.join(",")}|${state.failing}|${state.halted.length}|${first}|${asked}`;
}

function laneKey(flow: Prepared, state: State, lane: Lane): string {
  const { step: id, command, repairs, origin, strikes, answer, life, faults } = lane;
  const says = lane.say
    .map((say) => (say.kind === "failed-check" ? `x${say.result.pattern}` : say.kind))
    .join("+");
  const doing = `${command.type} ${detailOf(command)}`;
  const counted = flow.steps[id]?.edges;
  const taken = counted === undefined ? "" : JSON.stringify(state.taken[id] ?? "");
  const tries =
    life === null ? "" : `${life.phase}${life.tries.length}${life.deferred}${life.result?.verdict}`;
  return `${id} ${doing} ${says} ${repairs} ${strikes} ${faults} ${origin} ${answer?.label}${answer?.over === undefined ? "" : "!"} ${tries} ${taken}`;
}

function detailOf(command: Lane["command"]): string {
  if (command.type === "hook") return command.hook;
  if (command.type === "check") return command.checks.join("+");
  // Calls of one tool may be allowed by different rules.
  return command.type === "call" ? JSON.stringify(command.calls.map(({ name, input }) => [name, input])) : "";
}

/** Steps to a completed end, from every state that has one before it. */
function distancesToEnd(nodes: readonly Node[], edges: Edges): ReadonlyMap<number, number> {
  const back: number[][] = nodes.map(() => []);
  for (const [from, out] of edges.entries()) for (const { to } of out ?? []) back[to]!.push(from);
  const distances = new Map<number, number>();
  let wave = [...nodes.keys()].filter((at) => nodes[at]!.state.verdict?.outcome === "completed");
  for (const at of wave) distances.set(at, 0);
  for (let distance = 1; wave.length > 0; distance++) {
    const next: number[] = [];
    for (const at of wave)
      for (const from of back[at]!)
        if (!distances.has(from)) {
          distances.set(from, distance);
          next.push(from);
        }
    wave = next;
  }
  return distances;
}

/** Whether a circle can lead to the element: it is about a count, and the count is within reach. */
function isCounted({ limits }: Prepared, { id, kind }: Element): boolean {
  if (id.endsWith(" reaches its visits")) return limits.visits < MOST_ROUND;
  return kind === "limits" || kind === "branches" || kind === "transitions";
}

function nodesBySteps(nodes: readonly Node[]): ReadonlyMap<StepId, readonly number[]> {
  const found = new Map<StepId, number[]>();
  for (const [at, { state }] of nodes.entries())
    for (const { step: id } of state.lanes) {
      const known = found.get(id);
      if (known === undefined) found.set(id, [at]);
      else if (known.at(-1) !== at) known.push(at);
    }
  return found;
}

/** A circle is gone round until the count that the element is about is reached. */
function byCounting(graph: Graph, element: Element, among: Iterable<number>): Way | null {
  const { flow, nodes, edges } = graph;
  const isAbout = (from: State, to: State) => countOf(element, to) > countOf(element, from);
  // A turn is counted within one visit: what leads to the same question again is a call or two.
  const longest = element.id.endsWith(" reaches its turns") ? 3 : LONGEST_CIRCLE;
  let tries = MOST_CIRCLES;
  for (const at of among) {
    const { state } = nodes[at]!;
    for (const edge of edges[at] ?? []) {
      const moment = taken(flow, state, edge.choice);
      if (moment === null || !isAbout(state, moment.after)) continue;
      const back = pathBetween(graph, edge.to, at, longest);
      if (back === null) continue;
      const leg = goRound(flow, state, [edge.choice, ...back], element);
      if (leg !== null) return { at, leg };
      if (--tries === 0) return null;
    }
  }
  return null;
}

const MOST_CIRCLES = 40;
const LONGEST_CIRCLE = 60;

/** The count that leads to the element. */
function countOf({ id, step }: Element, state: State): number {
  if (id.endsWith(" reaches its failures")) return step === null ? 0 : (state.failures[step] ?? 0);
  if (id.endsWith(" reaches its turns"))
    return Math.max(0, (state.lanes.find((lane) => lane.step === step)?.turn ?? 0) - 1);
  return state.iterations;
}

/** null: a round does not raise the count, so that no number of rounds leads there, or the run ends before. */
function goRound(flow: Prepared, from: State, circle: Course, element: Element): Walked | null {
  const course: Happening[] = [];
  const moments: Moment[] = [];
  let state = from;
  while (course.length < MOST_ROUND) {
    const before = countOf(element, state);
    for (const choice of circle) {
      const moment = taken(flow, state, choice);
      if (moment === null) return null;
      course.push(choice);
      moments.push(moment);
      for (const shown of shownIn(moment)) if (shown === element.id) return { course, moments };
      if (moment.after.pending.length === 0) return null;
      state = moment.after;
    }
    if (countOf(element, state) <= before) return null;
  }
  return null;
}

const MOST_ROUND = 4000;

function pathBetween({ edges }: Graph, from: number, to: number, longest: number): Course | null {
  if (from === to) return [];
  const came = new Map<number, { readonly from: number; readonly edge: Edge }>();
  let wave = [from];
  for (let length = 1; length <= longest && wave.length > 0 && came.size < 20_000; length++) {
    const next: number[] = [];
    for (const at of wave)
      for (const edge of edges[at] ?? []) {
        if (came.has(edge.to) || edge.to === from) continue;
        came.set(edge.to, { from: at, edge });
        if (edge.to === to) {
          const way: Happening[] = [];
          for (let here = to; here !== from; here = came.get(here)!.from)
            for (let times = came.get(here)!.edge.times; times > 0; times--)
              way.push(came.get(here)!.edge.choice);
          return way.toReversed();
        }
        next.push(edge.to);
      }
    wave = next;
  }
  return null;
}
