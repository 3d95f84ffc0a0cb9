/** The order of the steps in a drawing: which edges close a circle, which steps can be reached, and the rank of each. */
import type { Flow, StepId } from "../flow/flow.ts";
import type { EdgeDraft } from "./outline.ts";

export type Survey = {
  readonly loops: ReadonlySet<EdgeDraft>;
  readonly reached: ReadonlySet<StepId>;
  readonly ranks: ReadonlyMap<StepId, number>;
};

/** Circles are cut where a walk from the entry meets its own way; what failed checks do comes last. */
export function survey(flow: Flow, edges: readonly EdgeDraft[]): Survey {
  const plain = Map.groupBy(
    edges.filter((edge) => edge.to.kind === "step" && edge.kind !== "back"),
    (edge) => edge.from,
  );
  const back = edges.filter((edge) => edge.to.kind === "step" && edge.kind === "back");
  const loops = new Set<EdgeDraft>();
  const state = new Map<StepId, "open" | "done">();
  const settled: StepId[] = [];
  const walk = (start: StepId) => {
    const open = [{ id: start, next: 0 }];
    state.set(start, "open");
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const edge = plain.get(top.id)?.[top.next++];
      if (edge === undefined) {
        state.set(top.id, "done");
        settled.push(top.id);
        open.pop();
        continue;
      }
      const to = targetStep(edge);
      const met = state.get(to);
      if (met === "open") loops.add(edge);
      else if (met === undefined) {
        state.set(to, "open");
        open.push({ id: to, next: 0 });
      }
    }
  };

  // What only a failed check or a wide jump leads to comes after all the rest. A caller was reached before.
  const late = edges.flatMap(({ from, to, kind }) => {
    if (to.kind === "any") return [{ from, targets: to.among.filter((id) => Object.hasOwn(flow.steps, id)) }];
    const isNamed = kind === "back" && flow.steps[from]!.guard?.back.kind === "goto";
    return isNamed && to.kind === "step" ? [{ from, targets: [to.step] }] : [];
  });
  if (Object.hasOwn(flow.steps, flow.entry)) walk(flow.entry);
  for (let met = -1; met !== state.size;) {
    met = state.size;
    for (const { from, targets } of late) {
      if (!state.has(from)) continue;
      for (const id of targets) if (!state.has(id)) walk(id);
    }
  }
  const reached = new Set(state.keys());
  for (const id of Object.keys(flow.steps)) if (!state.has(id)) walk(id);

  const ranks = new Map<StepId, number>(settled.map((id) => [id, 0]));
  for (const id of settled.toReversed()) {
    for (const edge of plain.get(id) ?? []) {
      if (loops.has(edge)) continue;
      ranks.set(targetStep(edge), Math.max(ranks.get(targetStep(edge))!, ranks.get(id)! + 1));
    }
  }
  for (const edge of back) if (ranks.get(targetStep(edge))! <= ranks.get(edge.from)!) loops.add(edge);
  return { loops, reached, ranks };
}

function targetStep({ to }: EdgeDraft): StepId {
  return to.kind === "step" ? to.step : "";
}
