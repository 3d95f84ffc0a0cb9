/**
 * The live part of a flow as numbers, for proofs over all ways at once: what always comes before a step, and where
 * steps go round for ever. One pass over the graph; each question afterwards is cheap.
 */
import type { StepId } from "../../flow/flow.ts";
import { nextNodes, type WayNode, type Steps } from "../../flow/graph.ts";

export type Ways = {
  /** Whether every way from the entry to `later` has been at `earlier` before. No step comes before itself. */
  readonly isAlwaysBefore: (earlier: StepId, later: StepId) => boolean;
  /** Whether some way leads from one step to another. */
  readonly leadsTo: (from: StepId, to: StepId) => boolean;
  /** The shortest way from the entry to a step that does not leave `around` on the way; empty when there is none. */
  readonly pathAround: (around: StepId, to: StepId) => readonly StepId[];
  /** The shortest way from a step back to itself, by way of others if there is one; empty when there is none. */
  readonly roundTrip: (step: StepId) => readonly StepId[];
  /** Groups of steps that lead to each other and to nothing else, each in the order of the graph. */
  readonly traps: () => readonly (readonly StepId[])[];
};

/** Nodes are numbered so that on any way without a circle the numbers rise: 0 is the entry. */
export function waysFrom(entry: StepId, steps: Steps): Ways {
  const { nodes, next } = number(entry, steps);
  const places = new Map(nodes.map((node, place) => [node, place]));
  const { first, size } = spans(dominators(next));
  const searches = new Map<string, Int32Array>();

  /** Breadth first from the places given; `wall` is entered but not left. Each place's predecessor, -1 for none. */
  const search = (key: string, from: readonly number[], wall: number): Int32Array => {
    const known = searches.get(key);
    if (known !== undefined) return known;
    const before = new Int32Array(nodes.length).fill(-1);
    const queue = [...from];
    for (const place of queue) {
      if (place === wall) continue;
      for (const other of next[place]!) {
        if (before[other] !== -1 || other === place) continue;
        before[other] = place;
        queue.push(other);
      }
    }
    searches.set(key, before);
    return before;
  };
  const pathBack = (before: Int32Array, from: number, to: number): readonly StepId[] => {
    const path: WayNode[] = [nodes[to]!];
    for (let place = to; ;) {
      place = before[place]!;
      if (place === -1) return [];
      path.push(nodes[place]!);
      if (place === from) return path.toReversed().filter((node) => typeof node === "string");
    }
  };
  return {
    isAlwaysBefore: (earlier, later) => {
      const a = places.get(earlier);
      const b = places.get(later);
      if (a === undefined || b === undefined || a === b) return false;
      return first[a]! <= first[b]! && first[b]! < first[a]! + size[a]!;
    },
    leadsTo: (from, to) => {
      const place = places.get(from);
      const target = places.get(to);
      if (place === undefined || target === undefined) return false;
      return search(`from ${place}`, [place], -1)[target] !== -1;
    },
    pathAround: (around, to) => {
      const wall = places.get(around) ?? -1;
      const target = places.get(to);
      if (target === 0) return [entry];
      return target === undefined ? [] : pathBack(search(`around ${wall}`, [0], wall), 0, target);
    },
    roundTrip: (step) => {
      const place = places.get(step);
      if (place === undefined) return [];
      const round = pathBack(search(`from ${place}`, [place], -1), place, place);
      return round.length === 0 && next[place]!.includes(place) ? [step, step] : round;
    },
    traps: () =>
      bottoms(next)
        .map((group) => group.map((place) => nodes[place]!).filter((node) => typeof node === "string"))
        .filter((group) => group.length > 0),
  };
}

type Numbered = { readonly nodes: readonly WayNode[]; readonly next: readonly (readonly number[])[] };

/** Depth first with a stack of its own; the reverse of the order in which nodes are left is the numbering. */
function number(entry: StepId, steps: Steps): Numbered {
  const seen = new Set<WayNode>([entry]);
  const left: WayNode[] = [];
  const open = [{ node: entry as WayNode, rest: nextNodes(entry, steps).values() }];
  while (open.length > 0) {
    const { node, rest } = open.at(-1)!;
    const following = rest.next();
    if (following.done === true) {
      left.push(node);
      open.pop();
    } else if (!seen.has(following.value) && isThere(following.value, steps)) {
      seen.add(following.value);
      open.push({ node: following.value, rest: nextNodes(following.value, steps).values() });
    }
  }
  const nodes = left.toReversed();
  const places = new Map(nodes.map((node, place) => [node, place]));
  const next = nodes.map((node) => {
    const targets = new Set<number>();
    for (const other of nextNodes(node, steps)) {
      const place = places.get(other);
      if (place !== undefined) targets.add(place);
    }
    return [...targets];
  });
  return { nodes, next };
}

function isThere(node: WayNode, steps: Steps): boolean {
  return typeof node !== "string" || steps.has(node);
}

/** For each place the nearest one that all ways to it go through (Cooper, Harvey, Kennedy); the entry's is itself. */
function dominators(next: readonly (readonly number[])[]): Int32Array {
  const before: number[][] = next.map(() => []);
  for (const [place, targets] of next.entries()) for (const target of targets) before[target]!.push(place);
  const nearest = new Int32Array(next.length).fill(-1);
  nearest[0] = 0;
  const meet = (a: number, b: number): number => {
    while (a !== b) {
      while (a > b) a = nearest[a]!;
      while (b > a) b = nearest[b]!;
    }
    return a;
  };
  for (let changed = true; changed;) {
    changed = false;
    for (let place = 1; place < next.length; place++) {
      let found = -1;
      for (const other of before[place]!) {
        if (nearest[other] === -1) continue;
        found = found === -1 ? other : meet(other, found);
      }
      if (nearest[place] === found) continue;
      nearest[place] = found;
      changed = true;
    }
  }
  return nearest;
}

/** The tree of dominators laid out in a row: what a place dominates are the `size` places from its `first` on. */
function spans(nearest: Int32Array): { readonly first: Int32Array; readonly size: Int32Array } {
  const size = new Int32Array(nearest.length).fill(1);
  for (let place = nearest.length - 1; place > 0; place--) size[nearest[place]!]! += size[place]!;
  const first = new Int32Array(nearest.length);
  const free = new Int32Array(nearest.length).fill(1);
  for (let place = 1; place < nearest.length; place++) {
    const owner = nearest[place]!;
    first[place] = first[owner]! + free[owner]!;
    free[owner]! += size[place]!;
  }
  return { first, size };
}

/** The strongly connected groups that nothing leads out of (Tarjan, with a stack of its own). */
function bottoms(next: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const found: number[][] = [];
  const index = new Int32Array(next.length).fill(-1);
  const low = new Int32Array(next.length);
  const group = new Int32Array(next.length).fill(-1);
  const waiting: number[] = [];
  let count = 0;
  const enter = (place: number) => {
    index[place] = low[place] = count++;
    waiting.push(place);
    return { place, at: 0 };
  };
  const open = [enter(0)];
  while (open.length > 0) {
    const top = open.at(-1)!;
    const target = next[top.place]![top.at++];
    if (target !== undefined) {
      if (index[target] === -1) open.push(enter(target));
      else if (group[target] === -1) low[top.place] = Math.min(low[top.place]!, index[target]!);
      continue;
    }
    open.pop();
    const owner = open.at(-1);
    if (owner !== undefined) low[owner.place] = Math.min(low[owner.place]!, low[top.place]!);
    if (low[top.place] !== index[top.place]) continue;
    const members: number[] = [];
    for (let member = -1; member !== top.place;) {
      member = waiting.pop()!;
      group[member] = found.length;
      members.push(member);
    }
    found.push(members.toSorted((a, b) => a - b));
  }
  return found.filter((members, own) =>
    members.every((member) => next[member]!.every((target) => group[target] === own)),
  );
}
