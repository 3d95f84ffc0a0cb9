/** Ways through a flow: what a step can lead to, what can be reached, and what cannot reach an end. */
import { movesOf } from "./branches.ts";
import type { Move, Step, StepId } from "./flow.ts";

export type Steps = ReadonlyMap<StepId, Step>;

export type Reach = {
  readonly steps: ReadonlySet<StepId>;
  /** The shortest way from the entry to a step, both included; empty when there is none. */
  readonly pathTo: (step: StepId) => readonly StepId[];
};

export function reachFrom(entry: StepId, steps: Steps): Reach {
  return follow(entry, steps, () => true);
}

/** What can be reached by declared ways alone, without a model that names where to go. */
export function reachWithoutJumps(entry: StepId, steps: Steps): Reach {
  return follow(entry, steps, (node) => typeof node === "string");
}

function follow(entry: StepId, steps: Steps, takes: (node: WayNode) => boolean): Reach {
  const from = new Map<WayNode, WayNode | null>([[entry, null]]);
  const reached = new Set<StepId>();
  const queue: WayNode[] = [entry];
  for (const node of queue) {
    if (typeof node === "string") reached.add(node);
    for (const next of nextNodes(node, steps)) {
      if (from.has(next) || !takes(next) || (typeof next === "string" && !steps.has(next))) continue;
      from.set(next, node);
      queue.push(next);
    }
  }
  return {
    steps: reached,
    pathTo: (step) => {
      const path: StepId[] = [];
      for (
        let node: WayNode | null | undefined = step;
        node !== null && node !== undefined;
        node = from.get(node)
      ) {
        if (typeof node === "string") path.push(node);
      }
      return path.at(-1) === entry ? path.toReversed() : [];
    },
  };
}

/**
 * The steps that no choice of labels leads from to a completed end. A target that does not exist is a problem of its
 * own and counts as an end here.
 */
export function stepsWithoutEnd(steps: Steps): ReadonlySet<StepId> {
  if (haveEndsInOrder(steps)) return new Set();
  const before = new Map<WayNode, WayNode[]>();
  const ending: WayNode[] = [];
  const seen = new Set<WayNode>();
  const queue: WayNode[] = [...steps.keys()];
  for (const node of queue) {
    if (seen.has(node)) continue;
    seen.add(node);
    if (typeof node === "string" && mayEnd(steps.get(node)!)) ending.push(node);
    for (const next of nextNodes(node, steps)) {
      if (typeof next === "string" && !steps.has(next)) ending.push(node);
      else {
        const others = before.get(next);
        if (others === undefined) before.set(next, [node]);
        else others.push(node);
        if (!seen.has(next)) queue.push(next);
      }
    }
  }
  const ends = new Set<WayNode>(ending);
  for (const node of ends) {
    for (const earlier of before.get(node) ?? []) ends.add(earlier);
  }
  return new Set([...steps.keys()].filter((id) => !ends.has(id)));
}

/** Whether each step ends or leads to a later one: most flows are written in that order, and need no search. */
function haveEndsInOrder(steps: Steps): boolean {
  const later = new Set<WayNode>();
  for (const id of [...steps.keys()].toReversed()) {
    if (!nextNodes(id, steps).some((next) => later.has(next)) && !mayEnd(steps.get(id)!)) return false;
    later.add(id);
  }
  return true;
}

/** Every step that a move may lead to. */
export function targetsOf(move: Move): readonly StepId[] {
  return moveNodes(move).flat();
}

/** The list of a jump's targets is shared by all jumps and stands in the graph as one node: edges stay few. */
export type WayNode = StepId | readonly StepId[];

/** Where a node may lead next, targets that do not exist among them. */
export function nextNodes(node: WayNode, steps: Steps): readonly WayNode[] {
  if (typeof node !== "string") return node;
  const step = steps.get(node);
  if (step === undefined) return [];
  const before = following.get(step);
  if (before !== undefined) return before;
  const next: WayNode[] = [];
  for (const label of Object.keys(step.edges)) moveNodes(step.edges[label]!, next);
  if (step.guard?.back.kind === "goto") next.push(step.guard.back.step);
  following.set(step, next);
  return next;
}

/** Many rules follow the same steps. */
const following = new WeakMap<Step, readonly WayNode[]>();

function moveNodes(move: Move, found: WayNode[] = []): readonly WayNode[] {
  switch (move.kind) {
    case "goto":
      found.push(move.step);
      break;
    case "fork":
      found.push(...move.steps);
      if (move.join !== null) found.push(move.join);
      break;
    case "end":
      break;
    case "switch":
      for (const one of Object.values(move.cases)) moveNodes(one, found);
      if (move.otherwise !== undefined) moveNodes(move.otherwise, found);
      break;
    case "jump":
      found.push(move.among);
      if (move.otherwise !== undefined) moveNodes(move.otherwise, found);
      break;
    case "times":
      moveNodes(move.move, found);
      moveNodes(move.after, found);
  }
  return found;
}

/** A completed end, or a label that leads nowhere yet. */
function mayEnd(step: Step): boolean {
  if (movesOf(step).some((move) => move.kind === "end" && move.outcome === "completed")) return true;
  return step.decide.by === "field" && step.decide.allow.some((label) => !Object.hasOwn(step.edges, label));
}
