/** What every drawing of a flow says in the same words. */
import type { Edge, Outline, OutlineNode, Target } from "./outline.ts";
import { count } from "../flow/text/figures.ts";
import { shownInLine } from "../flow/text/harmless.ts";

export const KIND_WORDS: { readonly [kind in OutlineNode["kind"]]: string } = {
  work: "work",
  verify: "verification",
  close: "closure",
};

/** The label, and what the path of a run calls it when that is another word. */
export function labelText({ label, as }: Edge): string {
  const word = shownInLine(label, 40);
  return as === null || as === label ? word : `${word} (${shownInLine(as, 40)})`;
}

export function conditionText({ when, kind }: Edge): string {
  const parallel = kind === "fork" ? ["side by side"] : kind === "join" ? ["when all are done"] : [];
  return [...when, ...parallel].map((words) => shownInLine(words, 60)).join(", ");
}

export function targetText(to: Target): string {
  switch (to.kind) {
    case "step":
      return shownInLine(to.step, 60);
    case "missing":
      return `${shownInLine(to.step, 60)} (there is no such step)`;
    case "any":
      return `any of ${to.among.length} steps, as ${shownInLine(to.field, 60)} says`;
    case "end":
      return to.outcome === "completed" ? "end" : `failed: ${shownInLine(to.code, 60)}`;
  }
}

export function leadsToItself({ from, to }: Edge): boolean {
  return to.kind === "step" && to.step === from;
}

/** `✗ 1 error: SR-TRANS-001 · ! 2 warnings: UV-PLAIN, X`, or nothing. */
export function markText({ findings }: OutlineNode): string {
  const parts = (["error", "warning"] as const).flatMap((severity) => {
    const found = findings.filter((problem) => problem.severity === severity);
    if (found.length === 0) return [];
    const codes = [...new Set(found.map(({ code }) => code))].join(", ");
    return [`${severity === "error" ? "✗" : "!"} ${count(found.length, severity)}: ${codes}`];
  });
  return parts.join(" · ");
}

/** Edges that a picture draws as one: the same way, with all that is said of it. */
export type Way = { readonly from: string; readonly to: Target; readonly edges: readonly Edge[] };

/** What a picture of a flow is made of. `around`: ways that lead a step to itself; `others`: ends, and names that are not steps. */
export function drawnParts({ nodes, edges }: Pick<Outline, "nodes" | "edges">) {
  const ways = waysOf(edges);
  const isLoop = ({ edges: [first] }: Way) => leadsToItself(first!);
  const others = otherTargets(ways);
  const keyOf = keysOf(nodes, others);
  return {
    ways,
    around: Map.groupBy(ways.filter(isLoop), (way) => way.from),
    between: ways.filter((way) => !isLoop(way)),
    others,
    keyOf,
    stepKey: (id: string) => keyOf({ kind: "step", step: id }),
  };
}

export function waysOf(edges: readonly Edge[]): readonly Way[] {
  const ways = Map.groupBy(
    edges.filter((edge) => !edge.isTacit),
    (edge) => JSON.stringify([edge.from, identity(edge.to), edge.kind === "back", edge.isLoop]),
  );
  return [...ways.values()].map((all) => ({ from: all[0]!.from, to: all[0]!.to, edges: all }));
}

/** A line for each label: `next`, `next [risk = high]`. */
export function wayLines({ edges }: Way): readonly string[] {
  return edges.map((edge) => {
    const condition = conditionText(edge);
    const words = condition === "" ? labelText(edge) : `${labelText(edge)} [${condition}]`;
    return edge.hits === undefined ? words : `${words} ${hitsText(edge.hits)}`;
  });
}

/** `(3x)`, or that it was never shown. */
export function hitsText(hits: number): string {
  return hits === 0 ? "(not covered)" : `(${hits}x)`;
}

/** Of a way with several edges the least covered one counts. null: that was not measured. */
export function coverageOfWay({ edges }: Way): "covered" | "uncovered" | null {
  const measured = edges.filter(({ hits }) => hits !== undefined);
  if (measured.length === 0) return null;
  return measured.every(({ hits }) => hits! > 0) ? "covered" : "uncovered";
}

export function coverageOfNode({ hits }: OutlineNode): "covered" | "uncovered" | null {
  return hits === undefined ? null : hits > 0 ? "covered" : "uncovered";
}

/** `verification about a1, a command, routed by gate` */
export function kindText({ kind, aside, by, routedBy }: OutlineNode): string {
  const about = aside === null ? "" : ` about ${shownInLine(aside, 40)}`;
  return `${KIND_WORDS[kind]}${about}${by === "command" ? ", a command" : ""}, routed by ${routedBy}`;
}

/** The severity of its worst finding; null: it has none. */
export function worstOf({ findings }: OutlineNode): "error" | "warning" | null {
  if (findings.length === 0) return null;
  return findings.some(({ severity }) => severity === "error") ? "error" : "warning";
}

/** The lines in a step's box. */
export function nodeLines(node: OutlineNode): readonly string[] {
  const hits = node.hits === undefined ? "" : ` ${hitsText(node.hits)}`;
  return [
    `${shownInLine(node.id, 60)}${hits}`,
    ...(node.name === node.id ? [] : [shownInLine(node.name, 60)]),
    kindText(node),
    ...(node.checks.length === 0
      ? []
      : [`checks: ${node.checks.map((name) => shownInLine(name, 40)).join(", ")}`]),
    ...(markText(node) === "" ? [] : [markText(node)]),
  ];
}

/** What is drawn beside the steps: ends, names that are no steps, and "whatever the answer names". Each once. */
export function otherTargets(ways: readonly Way[]): readonly Target[] {
  const others = ways.map(({ to }) => to).filter((to) => to.kind !== "step");
  return [...new Map(others.map((to) => [identity(to), to])).values()];
}

/** Short names for everything drawn, safe in every format. */
export function keysOf(nodes: readonly OutlineNode[], others: readonly Target[]): (to: Target) => string {
  const steps = new Map(nodes.map((node, place) => [node.id, `s${place}`]));
  const rest = new Map(others.map((to, place) => [identity(to), `t${place}`]));
  return (to) => (to.kind === "step" ? steps.get(to.step)! : rest.get(identity(to))!);
}

function identity(to: Target): string {
  return to.kind === "any" ? `any ${to.among.length} ${to.field}` : JSON.stringify(to);
}
