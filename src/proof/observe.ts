/** What a run did, in the words of a test: a fold of its story. */
import type { Prepared, PreparedFlows } from "../engine/schema/prepared.ts";
import type { Entry, Led } from "../flow/event.ts";
import type { Json } from "../flow/json.ts";
import { exitCode } from "../flow/verdict.ts";
import { addEntry, createReport } from "../story/report.ts";
import { story, type Moment } from "../story/story.ts";

/** A request to a model. */
export type Heard = {
  readonly step: string;
  readonly visit: number;
  readonly system: string;
  /** What was new in this request. */
  readonly said: string;
  /** All of it, as `saw` looks for words. */
  readonly text: string;
};

/** What a test can expect, by its key. */
export type Observed = { readonly [key: string]: Json | undefined };

/** One decision of the path; `text` is what tests are written with. */
export type Leg = {
  readonly step: string;
  readonly visit: number;
  readonly label: string | null;
  readonly pattern: string | null;
  readonly to: string;
  readonly text: string;
};

export type Outcomes = {
  readonly moments: readonly Moment[];
  readonly path: readonly Leg[];
  readonly observed: Observed;
};

export type Beside = {
  readonly heard: readonly Heard[];
  readonly waits: readonly number[];
  readonly warnings: readonly string[];
  /** The story of the run, where it is known already. */
  readonly moments?: readonly Moment[];
};

export function observe(
  flow: Prepared,
  entries: readonly Entry[],
  { waits, warnings, moments: known }: Beside,
  adopted?: PreparedFlows,
): Outcomes {
  const report = createReport();
  const moments = known ?? [...story(flow, entries, adopted)];
  for (const { entry } of moments) addEntry(report, entry);
  const path = legsOf(moments);
  const { state, usage } = { state: moments.at(-1)?.after, usage: moments.at(-1)?.after.usage };
  const verdict = state?.verdict ?? { outcome: "interrupted", code: null, reason: "", step: null };
  const observed: Observed = {
    outcome: verdict.outcome,
    code: verdict.code ?? undefined,
    exit: exitCode(verdict),
    final: verdict.step ?? undefined,
    reason: verdict.reason,
    path: path.map(({ text }) => text),
    visits: { ...state?.visits },
    checks: report.checks.map(({ name, ok }) => `${name} ${ok ? "passed" : "failed"}`),
    handoff: state?.handoff ?? {},
    asked: moments.flatMap(({ entry: { event } }) =>
      event.type === "step.asked" ? [event.question.text] : [],
    ),
    calls: moments.flatMap(callsIn),
    effects: [...report.effects.values()].map(({ kind, state: how }) => `${kind} ${how}`),
    turns: usage?.turns ?? 0,
    tokens: (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0),
    costUsd: usage?.costUsd ?? undefined,
    waited: waits.reduce((sum, ms) => sum + ms, 0),
    warnings,
  };
  return { moments, path, observed };
}

export function callsIn({ deeds }: Moment): readonly string[] {
  return deeds.flatMap((deed) =>
    deed.kind === "called"
      ? deed.results.map(
          ({ name, ok, denied }) => `${name} ${denied !== undefined ? "denied" : ok ? "ok" : "failed"}`,
        )
      : [],
  );
}

export function legsOf(moments: readonly Moment[]): readonly Leg[] {
  return moments.flatMap(({ deeds }) => {
    const failed = deeds.find((deed) => deed.kind === "overturned");
    return deeds.flatMap((deed) =>
      deed.kind === "settled"
        ? [legOf(deed.led, deed.led.overturned ? (failed?.failed.pattern ?? null) : null)]
        : [],
    );
  });
}

function legOf({ step, visit, label, to, fork }: Led, pattern: string | null): Leg {
  const target = fork === undefined ? (to ?? "end") : `fork ${fork.join("+")}`;
  const overturned = pattern === null ? "" : ` x ${pattern}`;
  return {
    step,
    visit,
    label,
    pattern,
    to: target,
    text: `${step} ${label ?? "-"}${overturned} -> ${target}`,
  };
}
