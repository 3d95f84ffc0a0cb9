/** Whose results a stage finds in `ctx.upstream`, derived from the graph before anything runs. */
import type { Label, Step, StepId } from "./flow.ts";
import { branchesOf } from "./branches.ts";

/** One way to get into a stage. */
export type Arrival = {
  /** In the order of `ctx.upstream`; nobody for the entry and for siblings. */
  readonly from: readonly StepId[];
  /** Whether each of them surely has a payload: who failed or was skipped may have none. */
  readonly isPaid: boolean;
};

export function arrivalsOf(steps: Iterable<Step>, entry: StepId): ReadonlyMap<StepId, readonly Arrival[]> {
  const arrivals = new Map<StepId, Arrival[]>([[entry, [ALONE]]]);
  const add = (to: StepId, arrival: Arrival) => {
    const known = arrivals.get(to);
    if (known === undefined) arrivals.set(to, [arrival]);
    else known.push(arrival);
  };
  for (const step of steps) {
    for (const [label, edge] of Object.entries(step.edges)) {
      if (!mayTake(step, label)) continue;
      for (const { move } of branchesOf(edge)) {
        if (move.kind === "goto") add(move.step, { from: [step.id], isPaid: label === "ok" });
        if (move.kind !== "fork") continue;
        for (const id of move.steps) add(id, ALONE);
        if (move.join !== null) add(move.join, { from: move.steps, isPaid: move.policy !== "independent" });
      }
    }
  }
  return arrivals;
}

const ALONE: Arrival = { from: [], isPaid: true };

/** A stage is skipped by its gate only. */
function mayTake({ stage }: Step, label: Label): boolean {
  if (label !== "skip") return true;
  return stage?.gate !== undefined && (stage.unresolved === "skip" || stage.unresolved === "ask");
}
