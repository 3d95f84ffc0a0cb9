/**
 * Finds for every element of a flow the shortest way that shows it: breadth first over `decide` itself, so that what is
 * found can happen and what is impossible for the engine is not found.
 */
import type { State } from "../engine/decide/state.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import type { StepId } from "../flow/flow.ts";
import type { JsonObject } from "../flow/json.ts";
import type { Moment } from "../story/story.ts";
import { unaskableIn } from "./asking.ts";
import { choicesFor, type Happening } from "./choices.ts";
import { shownIn } from "./cover.ts";
import type { Element } from "./elements.ts";
import {
  foundWays,
  NOWHERE,
  type FoundWays,
  type Trail,
  type Trails,
  type UnaskableAt,
  type FoundWay,
} from "./found-ways.ts";
import { firstMoment, stateKey, taken, type Course } from "./stepping.ts";

export type Searched = FoundWays & {
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

/** Gives back control again and again, with the number of states so far: a large flow takes seconds. */
export function* search(
  flow: Prepared,
  { args = {}, most = MOST_STATES, wanted }: SearchOptions,
): Generator<number, Searched> {
  const first = firstMoment(flow, args);
  const nodes: Node[] = [{ state: first.after, from: -1, leg: NOWHERE, length: 0 }];
  const known = new Map<string, number>([[stateKey(flow, first.after), 0]]);
  const edges: Edge[][] = [];
  const ways = new Map<string, FoundWay>();
  const unaskable = new Map<string, UnaskableAt>();
  for (const id of shownIn(first)) ways.set(id, { at: 0, leg: NOWHERE });

  // Fewest visits first: of two ways to the same state, the one that leaves more of them for what comes next.
  const waiting = createWaiting();
  waiting.add(0, 0);
  for (let at = waiting.next(); at !== undefined && nodes.length < most; at = waiting.next()) {
    if (edges[at] !== undefined) continue;
    yield nodes.length;
    const { state, length } = nodes[at]!;
    const key = stateKey(flow, state);
    const out: Edge[] = [];
    edges[at] = out;
    const trouble = unaskableIn(flow, state);
    if (trouble !== null && !unaskable.has(trouble.why))
      unaskable.set(trouble.why, { at, step: state.lanes[0]!.step });
    for (const choice of choicesFor(flow, state)) {
      const moment = taken(flow, state, choice);
      if (moment === null) continue;
      const moments = pumped(flow, key, choice, moment);
      const { after } = moments.at(-1)!;
      const leg = moments.map(() => choice);
      const next = stateKey(flow, after);
      const visits = after.iterations;
      const node: Node = { state: after, from: at, leg, length: length + leg.length };
      let to = known.get(next);
      if (to === undefined) {
        to = nodes.push(node) - 1;
        known.set(next, to);
        waiting.add(to, visits);
      } else if (edges[to] === undefined && visits < nodes[to]!.state.iterations) {
        nodes[to] = node;
        waiting.add(to, visits);
      }
      out.push({ choice, times: leg.length, to });
      for (const one of moments) for (const id of shownIn(one)) if (!ways.has(id)) ways.set(id, { at, leg });
    }
  }
  const graph: Graph = { flow, nodes, edges };
  const atSteps = nodesBySteps(nodes);
  for (const element of wanted) {
    if (ways.has(element.id) || !isCounted(flow, element)) continue;
    yield nodes.length;
    const among = element.step === null ? nodes.keys() : (atSteps.get(element.step) ?? []);
    const way = byCounting(graph, element, among);
    if (way !== null) ways.set(element.id, way);
  }
  return {
    ...foundWays(flow, first, forgotten(graph, known), ways, unaskable),
    states: nodes.length,
    isWhole: nodes.length < most,
  };
}

/** What ways are made of. The states take most of the memory of a search, and are decided again where a way needs them. */
function forgotten({ nodes, edges }: Graph, known: ReadonlyMap<string, number>): Trails {
  const distances = distancesToEnd(nodes, edges);
  return {
    trails: nodes.map(({ from, leg, length }) => ({ from, leg, length })),
    known,
    distances,
    onward: nodes.map((_, at) => {
      let best: Edge | undefined;
      for (const edge of edges[at] ?? [])
        if ((distances[edge.to] ?? Infinity) < (best === undefined ? Infinity : distances[best.to]!))
          best = edge;
      return best?.choice;
    }),
  };
}

/** Choices to a completed end, from every state that has one before it. */
function distancesToEnd(nodes: readonly Node[], edges: Edges): readonly (number | undefined)[] {
  const back: number[][] = nodes.map(() => []);
  for (const [from, out] of edges.entries()) for (const { to } of out ?? []) back[to]!.push(from);
  const distances: (number | undefined)[] = nodes.map(() => undefined);
  let wave = [...nodes.keys()].filter((at) => nodes[at]!.state.verdict?.outcome === "completed");
  for (const at of wave) distances[at] = 0;
  for (let distance = 1; wave.length > 0; distance++) {
    const next: number[] = [];
    for (const at of wave)
      for (const from of back[at]!)
        if (distances[from] === undefined) {
          distances[from] = distance;
          next.push(from);
        }
    wave = next;
  }
  return distances;
}

/** The same again and again, until a count makes a difference. Visits alone make one where the run ends by them. */
function pumped(flow: Prepared, key: string, choice: Happening, moment: Moment): readonly Moment[] {
  const { before, after } = moment;
  const moments = [moment];
  if (stateKey(flow, after) === key && (flow.stop.kind !== "end" || after.iterations === before.iterations))
    while (moments.length < MOST_PUMPED) {
      const again = taken(flow, moments.at(-1)!.after, choice);
      if (again === null) break;
      moments.push(again);
      if (stateKey(flow, again.after) !== key) break;
    }
  return moments;
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

type Node = Trail & { readonly state: State };
type Edge = { readonly choice: Happening; readonly times: number; readonly to: number };
type Edges = readonly (readonly Edge[])[];
type Graph = {
  readonly flow: Prepared;
  readonly nodes: readonly Node[];
  readonly edges: Edges;
};

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
function byCounting(graph: Graph, element: Element, among: Iterable<number>): FoundWay | null {
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
function goRound(flow: Prepared, from: State, circle: Course, element: Element): Course | null {
  const course: Happening[] = [];
  let state = from;
  while (course.length < MOST_ROUND) {
    const before = countOf(element, state);
    for (const choice of circle) {
      const moment = taken(flow, state, choice);
      if (moment === null) return null;
      course.push(choice);
      if (shownIn(moment).includes(element.id)) return course;
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
