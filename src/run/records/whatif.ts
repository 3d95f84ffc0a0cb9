/** What recorded runs would have come to under other files: no model is asked and no command is run. */
import { RunnerError, type Journal, type RunRow } from "../../engine/ports.ts";
import { reroute, type Rerouted } from "../../story/reroute.ts";
import { prepare, type Prepared } from "../../engine/schema/prepared.ts";
import type { Entry, Led } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { shellWord } from "../../flow/text/harmless.ts";
import { own } from "../../flow/json.ts";
import { hasErrors } from "../../flow/problem.ts";
import type { Verdict } from "../../flow/verdict.ts";
import { coerceParameters } from "../../load/parameters.ts";
import { flowDigest, type Loaded } from "../load.ts";
import { everyRow, findRun } from "./runs.ts";

export type WhatIf = {
  readonly v: 1;
  readonly agent: string;
  readonly digest: string;
  readonly same: number;
  readonly changed: number;
  readonly stuck: number;
  readonly runs: readonly RunWhatIf[];
};

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

/** `refs`: which runs; all of the agent when there are none. `onRun` hears of each as it is worked out. */
export async function whatIf(
  journal: Journal,
  loaded: Loaded,
  refs: readonly string[] = [],
  onRun?: (run: RunWhatIf) => void,
): Promise<WhatIf> {
  const { agent, flow, problems } = loaded;
  if (flow === null || hasErrors(problems)) {
    const why = `Agent "${agent}" has problems, so no run can be replayed through it. See: lockstep check ${shellWord(agent)}`;
    throw new RunnerError("FLOW_INVALID", why);
  }
  const ready = await prepare(flow);
  const runs: RunWhatIf[] = [];
  const rows = refs.length === 0 ? everyRow(journal, { agent }) : namedRows(journal, refs);
  for await (const { id } of rows) {
    const run = await journal.read(id).then(
      (entries) => ifSo(ready, id, entries),
      (error: unknown) => unreadable(id, error),
    );
    runs.push(run);
    onRun?.(run);
  }
  const count = (kinds: readonly RunWhatIf["kind"][]) =>
    runs.filter(({ kind }) => kinds.includes(kind)).length;
  return {
    v: 1,
    agent,
    digest: flowDigest(flow),
    same: count(["same"]),
    changed: count(["path", "verdict"]),
    stuck: count(["stuck"]),
    runs,
  };
}

/** Found before anything is worked out. */
async function* namedRows(journal: Journal, refs: readonly string[]): AsyncGenerator<RunRow> {
  const rows: RunRow[] = [];
  for (const ref of refs) rows.push(await findRun(journal, ref));
  yield* rows;
}

/** One that is damaged does not hide the others. */
function unreadable(run: string, error: unknown): RunWhatIf {
  if (!(error instanceof RunnerError) || error.code !== "JOURNAL_UNAVAILABLE") throw error;
  const unknown = { at: null, recorded: null, derived: null, stuck: null };
  return { run, kind: "stuck", ...unknown, damaged: error.message };
}

function ifSo(flow: Prepared, run: string, entries: readonly Entry[]): RunWhatIf {
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

export function sameWay(a: Led, b: Led): boolean {
  return (
    a.step === b.step &&
    a.visit === b.visit &&
    a.label === b.label &&
    a.to === b.to &&
    a.overturned === b.overturned
  );
}
