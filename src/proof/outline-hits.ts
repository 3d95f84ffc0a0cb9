/** A drawing with hits: how often tests or runs have shown each step and each way between steps. */
import { called } from "./elements.ts";
import type { Coverage } from "./coverage.ts";
import type { Edge, Outline } from "../tell/outline.ts";

/** Steps and ways that coverage does not measure, since no run can come there, get no hits. */
export function withHits(outline: Outline, { elements }: Pick<Coverage, "elements">): Outline {
  const hits = new Map(elements.map((one) => [one.id, one.hits]));
  const withThem = <T extends object>(one: T, found: number | undefined): T =>
    found === undefined ? one : Object.assign({ hits: found }, one);
  return {
    ...outline,
    nodes: outline.nodes.map((node) => withThem(node, hits.get(called.step(node.id)))),
    edges: outline.edges.map((edge) => withThem(edge, hitsOfEdge(edge, hits))),
  };
}

/** undefined: nothing has shown it. */
export function hitsOfEdge(edge: Edge, hits: ReadonlyMap<string, number>): number | undefined {
  const { from, label, kind, to } = edge;
  if (to.kind === "any") {
    const found = to.among.flatMap((step) => hits.get(called.edge(from, label, step)) ?? []);
    return found.length === 0 ? undefined : found.reduce((sum, one) => sum + one, 0);
  }
  const target = to.kind === "end" ? (to.outcome === "completed" ? "end" : `end ${to.code}`) : to.step;
  if (kind === "back") return hits.get(called.back(from, target));
  if (kind === "join") return hits.get(called.join(from, to.kind === "end" ? null : to.step));
  if (kind !== "fork") return hits.get(called.edge(from, label, target));
  const begin = called.edge(from, label, "fork ");
  const fork = [...hits.keys()].find(
    (id) => id.startsWith(begin) && id.slice(begin.length).split("+").includes(target),
  );
  return fork === undefined ? undefined : hits.get(fork);
}
