/** How often recorded runs took each way of a flow, by the names that a picture has for its ways. */
import type { Outline } from "../../../tell/outline.ts";
import { keysOfWay } from "../picture.ts";

/** @param taken how often each of `outline.edges` was taken, by its place */
export function takenCounts(
  outline: Pick<Outline, "edges">,
  taken: readonly number[],
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const [place, edge] of outline.edges.entries()) {
    // A way may have several names: it is counted under one of them, as a picture adds all of them up.
    const [key] = keysOfWay({ from: edge.from, to: edge.to, edges: [edge] });
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + (taken[place] ?? 0));
  }
  return counts;
}
