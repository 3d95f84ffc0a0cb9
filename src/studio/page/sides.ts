/** Two sides on one graph: the ways of two runs, or the ways that were taken and those that would be. */
import type { Outline } from "../../tell/outline.ts";
import type { CompareDocument, WhatIfDocument } from "../wire-agents.ts";
import { wayKey } from "./stand.ts";

/** How often each side took a way, by `wayKey`. */
export type Sides = readonly [ReadonlyMap<string, number>, ReadonlyMap<string, number>];

export function sidesOfRuns([a, b]: CompareDocument["taken"]): Sides {
  return [countsOf(a), countsOf(b)];
}

function countsOf(taken: CompareDocument["taken"][number]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [[from, to, label, how], times] of taken)
    if (from !== null) count(counts, wayKey(from, to, how === "back", label), times);
  return counts;
}

/** Where runs part: the way that each of them took there, and the one that it would take. */
export function sidesOfWhatIf({ runs }: Pick<WhatIfDocument, "runs">): Sides {
  const [was, now] = [new Map<string, number>(), new Map<string, number>()];
  for (const { at } of runs)
    for (const [counts, led] of [
      [was, at?.recorded],
      [now, at?.derived],
    ] as const)
      if (led != null) count(counts, wayKey(led.step, led.to, led.overturned === true, led.label), 1);
  return [was, now];
}

function count(counts: Map<string, number>, key: string, times: number): void {
  counts.set(key, (counts.get(key) ?? 0) + times);
}

/** How often each side took one of these ways. */
export function timesOf(sides: Sides, ways: readonly string[]): readonly [number, number] {
  const sum = (counts: ReadonlyMap<string, number>) =>
    ways.reduce((all, way) => all + (counts.get(way) ?? 0), 0);
  return [sum(sides[0]), sum(sides[1])];
}

/** Steps and edges of both flows, each once. */
export function joinedOutline([a, b]: CompareDocument["outlines"]): Outline {
  const steps = new Set(a.nodes.map(({ id }) => id));
  const keyOf = ({ from, label, kind, to }: Outline["edges"][number]) =>
    JSON.stringify([from, label, kind, to]);
  const edges = new Set(a.edges.map(keyOf));
  return {
    ...a,
    nodes: [...a.nodes, ...b.nodes.filter(({ id }) => !steps.has(id))],
    edges: [...a.edges, ...b.edges.filter((edge) => !edges.has(keyOf(edge)))],
  };
}
