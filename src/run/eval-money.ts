/** The money of an eval: what is spent, what is set aside for runs under way, and what the next run gets. */
import type { Entry } from "../flow/event.ts";
import { amountFor } from "../proof/eval.ts";
import { usageIn } from "../story/tally.ts";
import type { Result } from "../tell/result.ts";
import type { EvalRecord, PlacedRun } from "./eval-record.ts";

/** The next call of a run may be so many times as large as the largest before. */
const GROWTH = 3;

/** `runs`: as they are now. */
export function createMoney({ budgetUsd, scripts }: EvalRecord, runs: readonly PlacedRun[]) {
  const isFree = scripts.length > 0;
  /** What runs under way have spent so far, and the largest call of each model. */
  const live = new Map<number, number>();
  const largest = new Map<string, number>();
  const committed = () =>
    runs.reduce((sum, { state, costUsd, setAside, model }, at) => {
      const held =
        state === "running"
          ? Math.max((setAside ?? 0) + GROWTH * (largest.get(model) ?? 0), live.get(at) ?? 0)
          : 0;
      return sum + (costUsd ?? 0) + held;
    }, 0);
  return {
    hear: (at: number, { event }: Entry) => {
      const usage = usageIn(event);
      if (usage === undefined) return;
      const cost = usage.costUsd ?? 0;
      const { model } = runs[at]!;
      live.set(at, (live.get(at) ?? 0) + cost);
      largest.set(model, Math.max(largest.get(model) ?? 0, cost));
    },
    /** null: the price is not known. Under a budget, all that was set aside counts as spent then. */
    spentBy: (at: number, { costUsd, knownCostUsd = 0, usage }: Result): number | null => {
      live.delete(at);
      if (isFree) return 0;
      if (costUsd !== null) return costUsd;
      if (usage.turns === 0) return 0;
      return budgetUsd === null ? null : Math.max(knownCostUsd, runs[at]!.setAside ?? 0);
    },
    setAsideFor: (model: string): number | null | "nothing" => {
      if (isFree || budgetUsd === null) return null;
      const its = runs.filter((run) => run.model === model);
      const ended = its.flatMap(({ state, costUsd }) =>
        ["passed", "failed", "cut"].includes(state) && costUsd !== null ? [costUsd] : [],
      );
      // The first run of a model shows how large its calls are: until then nothing of it runs beside it.
      if (!largest.has(model) && its.some(({ state }) => state === "running")) return "nothing";
      const amount = amountFor(ended, budgetUsd);
      // One run may exceed the budget by the growth of one call, but not all that are side by side.
      const margin = largest.get(model) ?? 0;
      return committed() + amount + margin <= budgetUsd ? amount : "nothing";
    },
  };
}
