/** The heaviest way through a flow: by the ceiling on visits, or by the shape of the flow alone. */
import { targetsOf } from "../flow/graph.ts";
import type { Flow, Move, Step, StepId } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import { backTargets, branchesOf, isForking, movesOf } from "../flow/branches.ts";

type Weight = (step: Step) => number;

/** What can be reached from the entry. */
export type FlowGraph = {
  readonly flow: Flow;
  readonly steps: ReadonlyMap<StepId, Step>;
  readonly returns: readonly Return[];
};

/** The same, and the most visits of counted steps. */
type Graph = FlowGraph & { readonly visits: number };

/** Failed checks lead to one of `targets`, `times` times in a run. */
type Return = { readonly guard: StepId; readonly targets: readonly StepId[]; readonly times: number };

export function toGraph(flow: Flow): FlowGraph {
  const back = backTargets(flow);
  const steps = new Map<StepId, Step>();
  const seen = new Set([flow.entry]);
  for (const id of seen) {
    const step = own(flow.steps, id);
    if (step === undefined) continue;
    steps.set(id, step);
    for (const move of Object.values(step.edges)) for (const to of targetsOf(move)) seen.add(to);
    // A caller was there before; only a named step may be met for the first time.
    if (step.guard?.back.kind === "goto" && back.has(id)) seen.add(step.guard.back.step);
  }
  const returns = [...back].flatMap(([id, targets]) => {
    const guard = steps.get(id)?.guard;
    // Another try in the same conversation is part of the visit.
    const times = guard?.back.kind === "again" ? 0 : (guard?.maxFailures ?? 1) - 1;
    return times > 0 ? [{ guard: id, targets: targets.filter((to) => steps.has(to)), times }] : [];
  });
  return { flow, steps, returns };
}

export type Worst = {
  readonly most: number;
  /** What keeps it from growing: the ceiling on visits, the shape of the flow, or nothing. */
  readonly by: "visits" | "shape" | "nothing";
  /** The most that one counted visit and the questions after it can weigh. */
  readonly heaviest: number;
};

/** The least of what the ceiling on visits and the shape of the flow allow. */
export function worst(graph: Graph, weight: Weight): Worst {
  const tail = worstTail(graph, weight);
  const counted = [...graph.steps.values()].filter((step) => step.aside === undefined);
  const heaviest = most(counted.map(weight)) + tail;
  const byShape = worstOfShape(graph, weight);
  const isWalk = counted.length === graph.steps.size && !hasForks(graph);
  const byVisits = isWalk ? worstWalk(graph, weight) : graph.visits * heaviest;
  const least = Math.min(byShape, byVisits);
  const isVisits = byVisits < byShape || least === graph.visits * heaviest;
  return {
    most: least,
    by: least === Infinity ? "nothing" : isVisits ? "visits" : "shape",
    heaviest,
  };
}

/** Work that a walk may cost before the rest is estimated by the heaviest step. */
const WALK_WORK = 500_000;

/** The heaviest walk of so many visits. */
function worstWalk({ steps, flow, visits, returns }: Graph, weight: Weight): number {
  const ids = [...steps.keys()];
  const place = new Map(ids.map((id, at) => [id, at]));
  const lists = new Map<readonly StepId[], readonly number[]>();
  const placesOf = (targets: readonly StepId[]) => {
    const known = lists.get(targets);
    if (known !== undefined) return known;
    const places = targets.flatMap((id) => place.get(id) ?? []);
    lists.set(targets, places);
    return places;
  };
  const next = [...steps.values()].map((step) => waysFrom(step, returns).map(placesOf));
  const weights = ids.map((id) => weight(steps.get(id)!));
  const cost = ids.length + [...lists.values(), ...next].reduce((sum, list) => sum + list.length, 0);
  const rounds = Math.min(visits, Math.max(1, Math.floor(WALK_WORK / cost)));
  const entry = place.get(flow.entry);
  if (entry === undefined) return 0;

  let best = weights;
  let before = ids.map(() => 0);
  for (let round = 1; round < rounds; round += 1) {
    const bestOf = new Map<readonly number[], number>();
    for (const lists of next) {
      for (const list of lists) {
        if (!bestOf.has(list))
          bestOf.set(
            list,
            list.reduce((most, at) => Math.max(most, best[at]!), 0),
          );
      }
    }
    before = best;
    best = weights.map((own, at) => own + most(next[at]!.map((list) => bestOf.get(list)!)));
  }
  const first = steps.get(flow.entry)!;
  const walked = forgives(first)
    ? Math.max(best[entry]!, rounds > 1 ? weights[entry]! + before[entry]! : 0)
    : best[entry]!;
  return walked + (visits - rounds) * most(weights);
}

/** Lists of steps that may come next. The targets of a jump are one list, which all jumps share. */
function waysFrom(step: Step, returns: readonly Return[]): readonly (readonly StepId[])[] {
  const single = new Set(mayRepeat(step) ? [step.id] : []);
  const lists = returns.filter(({ guard }) => guard === step.id).map(({ targets }) => targets);
  for (const move of movesOf(step)) {
    if (move.kind === "goto") single.add(move.step);
    else if (move.kind === "jump") lists.push(move.among);
  }
  return [[...single], ...lists];
}

/**
 * What the flow allows when nothing counts visits: Infinity where an uncounted circle is. Steps with the questions about
 * them are one place; counted edges inside of it are taken so often in each stay there.
 */
function worstOfShape(graph: Graph, weight: Weight): number {
  const { steps, flow, returns } = graph;
  const at = (id: StepId) => placeOf(steps.get(id)!, steps);
  const places = Map.groupBy(steps.values(), ({ id }) => at(id));
  const stays = new Map<StepId, number>();
  for (const [place, members] of places) {
    // From being entered to being left.
    const stay = longestWithin(members, (id) => steps.has(id) && at(id) === place, weight);
    if (stay === Infinity) return Infinity;
    stays.set(place, stay);
  }

  const order = inOrder([...places.keys()], (place) => {
    const moves = places.get(place)!.flatMap(({ edges }) => Object.values(edges));
    const next = moves.flatMap((move) => Array.from(targetsOf(move))).filter((id) => steps.has(id));
    return [...new Set(next.map(at))].filter((id) => id !== place);
  });
  if (order === null) return Infinity;
  const longest = new Map<StepId, number>();
  for (const place of order.toReversed()) {
    const further = (move: Move): number => {
      const lengthOf = (id: StepId) => (steps.has(id) && at(id) !== place ? longest.get(at(id))! : 0);
      const branches = [...branchesOf(move)].map(({ move: one }) => {
        if (one.kind === "fork")
          return (
            one.steps.reduce((sum, id) => sum + lengthOf(id), 0) +
            (one.join === null ? 0 : lengthOf(one.join))
          );
        return most([...targetsOf(one)].map(lengthOf));
      });
      return most(branches);
    };
    const ways = places.get(place)!.flatMap((step) => Object.values(step.edges).map(further));
    longest.set(place, stays.get(place)! + most(ways));
  }
  const entry = steps.get(flow.entry);
  if (entry === undefined) return 0;
  const again = returns.map(({ targets, times }) => times * most(targets.map((id) => longest.get(at(id))!)));
  const forgiven = forgives(entry) ? weight(entry) : 0;
  return forgiven + longest.get(at(flow.entry))! + again.reduce((sum, one) => sum + one, 0);
}

/** What questions about steps can add after one counted visit. */
function worstTail({ steps }: Graph, weight: Weight): number {
  const asides = [...steps.values()].filter((step) => step.aside !== undefined);
  const isInside = (id: StepId) => steps.get(id)?.aside !== undefined;
  return longestWithin(asides, isInside, weight);
}

/** The heaviest way within some steps; counted edges that stay within add what they may. Infinity: there is a circle. */
function longestWithin(members: readonly Step[], isInside: (id: StepId) => boolean, weight: Weight): number {
  const byId = new Map(members.map((step) => [step.id, step]));
  const isFree = (move: Move, owner: Step) => !isCounted(move, owner, byId);
  const next = (id: StepId): readonly StepId[] => {
    const step = byId.get(id)!;
    const around = weight(step) > 0 && mayRepeat(step) ? [id] : [];
    const free = Object.values(step.edges).map((move) => (isFree(move, step) ? move : (move as Times).after));
    const inside = free.flatMap((move) => [...targetsOf(move)].filter(isInside));
    return [...inside.filter((to) => to !== id || weight(step) > 0), ...around];
  };
  const order = inOrder([...byId.keys()], next);
  if (order === null) return Infinity;
  const longest = new Map<StepId, number>();
  for (const id of order.toReversed()) {
    const ways = next(id).filter((to) => to !== id);
    longest.set(id, weight(byId.get(id)!) + most(ways.map((to) => longest.get(to)!)));
  }
  const counted = members.flatMap((step) =>
    Object.values(step.edges).flatMap((move) => {
      if (isFree(move, step)) return [];
      const { max, move: inner } = move as Times;
      const inside = [...targetsOf(inner)].filter(isInside);
      return [max * most(inside.map((to) => longest.get(to)!))];
    }),
  );
  return most(longest.values()) + counted.reduce((sum, one) => sum + one, 0);
}

type Times = Move & { kind: "times" };

/** Whether the edge is one that counts, and all it leads to is its own step or a question about it. */
function isCounted(move: Move, step: Step, within: ReadonlyMap<StepId, Step>): boolean {
  const owner = step.aside ?? step.id;
  return (
    move.kind === "times" &&
    [...targetsOf(move.move)].every((id) => id === owner || within.get(id)?.aside === owner)
  );
}

/** By itself, whatever its edges say: a command that fails, and a question whose unusable first answer is forgiven. */
function mayRepeat(step: Step): boolean {
  return step.by.kind === "command" || (step.aside !== undefined && forgives(step));
}

export function forgives({ by, answer }: Step): boolean {
  return (
    by.kind === "model" && answer.kind === "object" && answer.miss.kind === "fail" && answer.miss.forgiveFirst
  );
}

function placeOf(step: Step, steps: ReadonlyMap<StepId, Step>): StepId {
  return step.aside !== undefined && steps.has(step.aside) ? step.aside : step.id;
}

export function hasForks({ steps }: FlowGraph): boolean {
  return [...steps.values()].some(isForking);
}

/** Every id before those it leads to; null when they lead round in a circle. */
function inOrder(ids: readonly StepId[], next: (id: StepId) => readonly StepId[]): readonly StepId[] | null {
  const ways = new Map(ids.map((id) => [id, new Set(next(id))]));
  const before = new Map<StepId, number>();
  for (const list of ways.values()) for (const id of list) before.set(id, (before.get(id) ?? 0) + 1);
  const order = ids.filter((id) => !before.has(id));
  for (const id of order) {
    for (const to of ways.get(id)!) {
      before.set(to, before.get(to)! - 1);
      if (before.get(to) === 0) order.push(to);
    }
  }
  return order.length === ids.length ? order : null;
}

export function most(values: Iterable<number>): number {
  let greatest = 0;
  for (const value of values) if (value > greatest) greatest = value;
  return greatest;
}
