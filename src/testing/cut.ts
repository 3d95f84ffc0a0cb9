/** Runs a test again from every prefix of its journal: the run must come to the same end, and ask nothing again that is on record. */
import type { Prepared } from "../engine/schema/prepared.ts";
import { sameJson, type Json } from "../flow/json.ts";
import type { Unmet } from "../proof/expect.ts";
import { observe } from "../proof/observe.ts";
import { testAsRun, type TestResult } from "./flow-tests.ts";
import { runInMemory } from "./ground.ts";

/** What a resumed run must have in common with the whole one. */
const SAME = [
  "outcome",
  "code",
  "exit",
  "final",
  "reason",
  "path",
  "visits",
  "checks",
  "handoff",
  "asked",
  "calls",
] as const;

/** The first cut after which the run differs; null: none, or the run has no end to compare with. */
export async function differsWhenCut(
  flow: Prepared,
  { test: written, ran, outcomes }: TestResult,
): Promise<Unmet | null> {
  if (ran === null || outcomes === null || written.until !== undefined) return null;
  const { entries } = ran;
  const ends = entries.findIndex(({ event }) => event.type === "run.ended");
  const test = testAsRun(flow, written);
  for (let cut = 1; cut < ends; cut++) {
    const past = entries.slice(0, cut);
    const again = await runInMemory(flow, test, past);
    const { observed } = observe(flow, again.entries, again);
    const differs = (key: string, expected: Json, got: Json | undefined): Unmet => ({
      key: "cut",
      line: written.line,
      at: `${cut}.${key}`,
      expected,
      got,
    });
    const asked = again.heard.length;
    const due = ran.heard.length - answersIn(past);
    if (asked !== due) return differs("requests", due, asked);
    const key = SAME.find((name) => !sameJson(outcomes.observed[name] ?? null, observed[name] ?? null));
    if (key !== undefined) return differs(key, outcomes.observed[key] ?? null, observed[key]);
  }
  return null;
}

function answersIn(past: FlowEntries): number {
  return past.filter(({ event }) => event.type === "step.answered").length;
}

type FlowEntries = NonNullable<TestResult["ran"]>["entries"];
