/** What a recorded run would have come to under another flow: worked out from its entries. */
import { RunnerError } from "../engine/ports.ts";
import { reroute, type Rerouted } from "../story/reroute.ts";
import type { Prepared } from "../engine/schema/prepared.ts";
import type { Entry, Led } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import type { Verdict } from "../flow/verdict.ts";
import { coerceParameters } from "../load/parameters.ts";

export type RunWhatIf = {
  readonly run: string;
  /** `stuck`: it leaves what is recorded, so that only a model could tell how it goes on. */
  readonly kind: "same" | "path" | "verdict" | "stuck";
  /** Where the ways part, and how. */
  readonly at: { readonly recorded: Led | null; readonly derived: Led | null } | null;
  readonly recorded: Verdict | null;
  readonly derived: Verdict | null;
  readonly stuck: Rerouted["stuck"];
  /** Why it cannot be read; then it is `stuck` at no step. */
  readonly damaged?: string;
};

/** What one run would have come to under this flow. */
export function runWhatIf(flow: Prepared, run: string, entries: readonly Entry[]): RunWhatIf {
  const started = entries[0]?.event;
  if (started?.type !== "run.started")
    throw new RunnerError("JOURNAL_UNAVAILABLE", `Run ${run} has no first entry: its journal is damaged.`);
  const recorded = verdictOf(entries);
  const { args, problems } = coerceParameters(flow.parameters, started.args, flow.openArguments ?? false);
  const [misgiven] = problems;
  if (misgiven !== undefined) {
    const stuck = { step: flow.entry, visit: 1, why: misgiven.message };
    return { run, kind: "stuck", at: null, recorded, derived: null, stuck };
  }
  const { path, state, stuck } = reroute(flow, { ...started, args }, entries);
  const recordedPath = entries.flatMap(({ led }) => led ?? []);
  const at = parting(recordedPath, path, (led) => renamed(led, flow));
  const derived = state.verdict;
  return { run, kind: kindOf(at, recorded, derived, stuck), at, recorded, derived, stuck };
}

function kindOf(
  at: RunWhatIf["at"],
  recorded: Verdict | null,
  derived: Verdict | null,
  stuck: RunWhatIf["stuck"],
): RunWhatIf["kind"] {
  if (at !== null) return at.derived === null && stuck !== null ? "stuck" : "path";
  // A run that was never ended stops where its journal does.
  if (stuck !== null) return recorded === null ? "same" : "stuck";
  return sameVerdict(recorded, derived) ? "same" : "verdict";
}

/** Of one that ended: what is written last. */
function verdictOf(entries: readonly Entry[]): Verdict | null {
  const last = entries.at(-1)?.event;
  return last?.type === "run.ended" ? last.verdict : null;
}

/** The words may differ. */
function sameVerdict(a: Verdict | null, b: Verdict | null): boolean {
  return a?.outcome === b?.outcome && a?.code === b?.code && a?.step === b?.step;
}

/** A label that the flow of the files still understands under its old name is the same label. */
function renamed(led: Led, { steps }: Flow): Led {
  const decide = own(steps, led.step)?.decide;
  const label = decide?.by === "field" && led.label !== null ? own(decide.alias, led.label) : undefined;
  return label === undefined ? led : { ...led, label };
}

function parting(
  recorded: readonly Led[],
  derived: readonly Led[],
  meant: (led: Led) => Led,
): RunWhatIf["at"] {
  const length = Math.max(recorded.length, derived.length);
  for (let place = 0; place < length; place++) {
    const [was, is] = [recorded[place] ?? null, derived[place] ?? null];
    if (was === null || is === null || !(sameWay(was, is) || sameWay(meant(was), is)))
      return { recorded: was, derived: is };
  }
  return null;
}

function sameWay(a: Led, b: Led): boolean {
  return (
    a.step === b.step &&
    a.visit === b.visit &&
    a.label === b.label &&
    a.to === b.to &&
    a.overturned === b.overturned
  );
}
