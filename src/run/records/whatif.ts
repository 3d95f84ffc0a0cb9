/** What recorded runs would have come to under other files: no model is asked and no command is run. */
import { RunnerError, type Journal, type RunRow } from "../../engine/ports.ts";
import { prepare } from "../../engine/schema/prepared.ts";
import { shellWord } from "../../flow/text/harmless.ts";
import { hasErrors } from "../../flow/problem.ts";
import { runWhatIf, type RunWhatIf } from "../../tell/what-if.ts";
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

/** What was worked out, by files, run and number of entries. */
export type KnownWhatIfs = Map<string, RunWhatIf>;

/** Works out some runs now and the others in later calls. */
export type WhatIfInParts = {
  readonly known: KnownWhatIfs;
  /** Asked after each run that had to be worked out: whether to stop there. */
  readonly isEnough: () => boolean;
};

/** Of so many runs the result is kept; those that were worked out first are forgotten first. */
const MOST_KNOWN = 10_000;

/** `refs`: which runs; all of the agent when there are none. `onRun` hears of each as it is worked out. */
export async function whatIf(
  journal: Journal,
  loaded: Loaded,
  refs: readonly string[] = [],
  onRun?: (run: RunWhatIf) => void,
): Promise<WhatIf> {
  const { isAll: _, ...all } = await whatIfPartly(journal, loaded, refs, onRun, {
    known: new Map(),
    isEnough: () => false,
  });
  return all;
}

/** The same for as many runs as are enough. */
export async function whatIfPartly(
  journal: Journal,
  loaded: Loaded,
  refs: readonly string[],
  onRun: ((run: RunWhatIf) => void) | undefined,
  { known, isEnough }: WhatIfInParts,
): Promise<WhatIf & { readonly isAll: boolean }> {
  const { agent, flow, problems } = loaded;
  if (flow === null || hasErrors(problems)) {
    const why = `Agent "${agent}" has problems, so no run can be replayed through it. See: lockstep check ${shellWord(agent)}`;
    throw new RunnerError("FLOW_INVALID", why);
  }
  const ready = await prepare(flow);
  const digest = flowDigest(flow);
  const runs: RunWhatIf[] = [];
  let isAll = true;
  let isStopping = false;
  const rows = refs.length === 0 ? everyRow(journal, { agent }) : namedRows(journal, refs);
  for await (const { id, events } of rows) {
    if (isStopping) {
      isAll = false;
      break;
    }
    const key = `${digest} ${events} ${id}`;
    let run = known.get(key);
    if (run === undefined) {
      run = await journal.read(id).then(
        (entries) => runWhatIf(ready, id, entries),
        (error: unknown) => unreadable(id, error),
      );
      if (run.damaged === undefined) known.set(key, run);
      isStopping = isEnough();
    }
    runs.push(run);
    onRun?.(run);
  }
  for (const key of known.keys()) {
    if (known.size <= MOST_KNOWN) break;
    known.delete(key);
  }
  const count = (kinds: readonly RunWhatIf["kind"][]) =>
    runs.filter(({ kind }) => kinds.includes(kind)).length;
  return {
    v: 1,
    agent,
    digest,
    same: count(["same"]),
    changed: count(["path", "verdict"]),
    stuck: count(["stuck"]),
    runs,
    isAll,
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
