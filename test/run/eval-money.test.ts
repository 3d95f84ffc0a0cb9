/** What an eval sets aside is enough when all runs side by side meet dearer calls in the same moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import { createMoney } from "../../src/run/eval-money.ts";
import { BLANK } from "../../src/run/eval-plan.ts";
import type { PlacedRun } from "../../src/run/eval-record.ts";
import type { Result } from "../../src/tell/result.ts";

const RUNS = 80;

/** Runs in rounds: as many begin as may, then each makes its calls up to its limit, then all end. */
function spentOf(budgetUsd: number, jobs: number, callsOf: (place: number) => readonly number[]) {
  const runs = Array.from({ length: RUNS }, (_, at): PlacedRun => ({ ...BLANK, task: "t", model: "m", at }));
  const record = { v: 1, eval: "e", agent: "a", digest: "", budgetUsd, scripts: [], runs } as const;
  const money = createMoney(record, runs);
  let most = 0;
  for (let first = 0; first < RUNS;) {
    let next = first;
    for (; next < RUNS && next - first < jobs; next++) {
      const setAside = money.setAsideFor("m");
      if (setAside === "nothing") break;
      runs[next] = { ...runs[next]!, state: "running", setAside };
    }
    if (next === first) break;
    most = Math.max(most, next - first);
    for (let at = first; at < next; at++) {
      let costUsd = 0;
      let largest = 0;
      for (const cost of callsOf(at)) {
        if (costUsd + largest > runs[at]!.setAside!) break;
        costUsd += cost;
        largest = Math.max(largest, cost);
        money.hear(at, called(cost));
      }
      const spent = money.spentBy(at, { costUsd, usage: { turns: 1 } } as Result);
      runs[at] = { ...runs[at]!, state: "passed", costUsd: spent, setAside: null };
    }
    first = next;
  }
  return { spent: runs.reduce((sum, { costUsd }) => sum + costUsd!, 0), most };
}

function called(costUsd: number): Entry {
  const usage = { turns: 1, inputTokens: 1, outputTokens: 1, costUsd };
  const reply = { kind: "said", text: "", calls: [], usage } as const;
  return { seq: 1, at: 0, event: { type: "step.answered", step: "s", visit: 1, reply } as never };
}

/** What the calls of a run cost. */
const SHAPES: readonly (readonly number[])[] = [[1], [0.5, 0.5], [0.1, 0.9], [0.2, 0.2, 0.6]];
for (const jobs of [1, 3, 8])
  test(`${jobs} at once, prices that triple or fall: exceeded by the growth of one call at most`, () => {
    for (const shape of SHAPES)
      for (const [before, after] of [
        [1, 3],
        [3, 1],
        [1, 1],
      ] as const)
        for (let budget = 8; budget <= 60; budget += 1)
          for (const from of [1, 5, 6, 9, 14]) {
            const { spent, most } = spentOf(budget, jobs, (place) =>
              shape.map((cost) => cost * (place < from ? before : after)),
            );
            const admitted =
              Math.max(...shape) * Math.max(before, after) - Math.min(...shape) * Math.min(before, after);
            const what = `${shape.join("+")}, from ${from} on ${after}x: $${spent} of $${budget}, ${most} at once`;
            assert.ok(spent <= budget + admitted + 1e-9, what);
            assert.ok(spent > budget / 3, what);
            if (jobs > 1 && budget >= 30) assert.ok(most > 1, what);
          }
  });
