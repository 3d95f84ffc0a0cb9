/** In which order a fuzzed model prefers the answers of a step: 0 must mean the answer on the shortest way to an end. */
import { branchesOf } from "../flow/branches.ts";
import type { Flow, StepId } from "../flow/flow.ts";
import { draftsOf, type Draft } from "./answers.ts";
import type { AnswerOrder } from "./personas.ts";

/** The answers of each step, the one on the shortest way to a completed end first. */
export function mannersOf(flow: Flow): AnswerOrder {
  const distances = distancesToEnd(flow);
  const sorted = new Map<StepId, readonly Draft[]>();
  return (step) => {
    const ready = sorted.get(step.id);
    if (ready !== undefined) return ready;
    const far = ({ label }: Draft) => {
      const edge = step.edges[label];
      const ends =
        edge === undefined ? [] : [...branchesOf(edge)].map(({ move }) => distanceOf(move, distances));
      return Math.min(Infinity, ...ends);
    };
    const made = draftsOf(step).toSorted((a, b) => far(a) - far(b));
    sorted.set(step.id, made);
    return made;
  };
}

type Move =
  ReturnType<typeof branchesOf> extends Generator<infer B>
    ? B extends { move: infer M }
      ? M
      : never
    : never;

function distanceOf(move: Move, distances: ReadonlyMap<StepId, number>): number {
  const of = (id: StepId) => distances.get(id) ?? Infinity;
  switch (move.kind) {
    case "end":
      return move.outcome === "completed" ? 0 : Infinity;
    case "goto":
      return of(move.step);
    case "jump":
      return Math.min(...move.among.map(of));
    case "fork":
      return Math.max(...move.steps.map(of), move.join === null ? 0 : of(move.join));
  }
}

function distancesToEnd({ steps }: Flow): ReadonlyMap<StepId, number> {
  const distances = new Map<StepId, number>();
  for (let changed = true; changed;) {
    changed = false;
    for (const { id, edges } of Object.values(steps)) {
      const all = Object.values(edges).flatMap((edge) =>
        [...branchesOf(edge)].map(({ move }) => distanceOf(move, distances)),
      );
      const best = 1 + Math.min(Infinity, ...all);
      if (best >= (distances.get(id) ?? Infinity)) continue;
      distances.set(id, best);
      changed = true;
    }
  }
  return distances;
}
