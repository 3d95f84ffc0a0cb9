/** Measures what tests and recorded runs show of an agent's flow. */
import { setImmediate } from "node:timers/promises";
import type { FileTree } from "../../flow/files.ts";
import type { Flow } from "../../flow/flow.ts";
import { hasErrors, type Problem } from "../../flow/problem.ts";
import type { TestSettings } from "../../flow/test-settings.ts";
import { readTestSettings } from "../../load/test-settings.ts";
import { readTests } from "../../load/tests.ts";
import { addHits, hitsIn, type Hits } from "../../proof/cover.ts";
import { coverageOf, type Coverage, type ShownBy } from "../../proof/coverage.ts";
import { flowDigest, type LoadedAgent } from "../../run/load.ts";
import { foldEvery } from "../../run/records/fold.ts";
import type { Moment } from "../../story/story.ts";
import { prepareFlow, runTest, type TestResult } from "../../testing/flow-tests.ts";
import type { CommandCall } from "../call.ts";
import { withJournal } from "../journal.ts";

/** `settings`: of the agent's tests, for what is ignored. */
export function coverageBy(
  { origin }: Pick<LoadedAgent, "origin">,
  flow: Flow,
  shown: readonly ShownBy[],
  { ignore }: TestSettings,
): Coverage {
  return coverageOf(
    flow,
    flowDigest(flow),
    shown,
    (part) => {
      const written = origin(part)?.origin;
      return written === undefined || written.kind === "default" ? null : written;
    },
    ignore,
  );
}

/** What each test that was run has shown. A failed test counts: it has shown what it has shown. */
export function shownByTests(results: readonly TestResult[]): readonly ShownBy[] {
  return results.flatMap(({ test: { name }, outcomes }) =>
    outcomes === null ? [] : [{ name, hits: hitsIn(outcomes.moments) }],
  );
}

export type MeasuredTests =
  | { readonly kind: "measured"; readonly coverage: Coverage; readonly failed: number }
  | { readonly kind: "invalid"; readonly problems: readonly Problem[] };

/** Runs the agent's tests in memory, and measures. Aborted: what was shown until then is measured. */
export async function measureTests(
  loaded: LoadedAgent,
  flow: Flow,
  files: FileTree,
  signal?: AbortSignal,
): Promise<MeasuredTests> {
  const { settings, problems } = readTestSettings(flow, files);
  const read = readTests(flow, files);
  const found = [...problems, ...read.problems];
  if (hasErrors(found)) return { kind: "invalid", problems: found };
  const prepared = await prepareFlow(flow);
  const shown: ShownBy[] = [];
  let failed = 0;
  for (const test of read.tests) {
    if (test.ground.kind !== "memory") continue;
    // A busy process hears no signals.
    if (signal !== undefined) await setImmediate();
    if (signal?.aborted) break;
    const result = await runTest(prepared, test);
    if (result.status === "failed") failed += 1;
    shown.push(...shownByTests([result]));
  }
  return { kind: "measured", coverage: coverageBy(loaded, flow, shown, settings), failed };
}

export type MeasuredRuns = {
  readonly coverage: Coverage;
  readonly runs: number;
  /** Runs of earlier versions of the flow: what they showed counts where it is still there. */
  readonly earlier: number;
  /** Runs that can only partly be read, or not at all. */
  readonly damaged: number;
};

/** Recorded runs of the agent, each read slice by slice. `since`: epoch milliseconds. */
export async function measureRuns(
  call: CommandCall,
  loaded: LoadedAgent,
  flow: Flow,
  files: FileTree,
  since: number,
  signal?: AbortSignal,
): Promise<MeasuredRuns> {
  const digest = flowDigest(flow);
  const shown: ShownBy[] = [];
  let earlier = 0;
  let damaged = 0;
  await withJournal(call, async (journal) => {
    if (journal === null) return;
    const which = { agent: loaded.agent, since };
    let hits: Hits = new Map();
    const open = () => {
      hits = new Map();
      return (moment: Moment) => addHits(hits, moment);
    };
    for await (const { row, isWhole } of foldEvery(journal, which, open)) {
      if (row.digest !== digest) earlier += 1;
      if (!isWhole) damaged += 1;
      shown.push({ name: row.id, hits });
      if (signal !== undefined) await setImmediate();
      if (signal?.aborted) break;
      call.screen.status(shown.length % EVERY === 0 ? `read ${shown.length} runs` : null);
    }
  }).finally(() => call.screen.status(null));
  const { settings } = readTestSettings(flow, files);
  return { coverage: coverageBy(loaded, flow, shown, settings), runs: shown.length, earlier, damaged };
}

/** How often it is shown how many runs were read. */
const EVERY = 20;
