/** Runs the tests that were chosen, and keeps the runs of those that fail. */
import { relative } from "node:path";
import { setImmediate } from "node:timers/promises";
import { errorText } from "../../flow/text/harmless.ts";
import { reasonsFor, visitToLookAt } from "../../proof/because.ts";
import { forgetTestRuns, keepTestRun, recordFailed } from "../../run/records/test-runs.ts";
import { prepareFlow, runTest, type Grounds, type TestResult } from "../../testing/flow-tests.ts";
import { shellWord } from "../text/text.ts";
import { testKeyOf, type ChosenTest } from "./choose.ts";
import { driftRemarks } from "./stale.ts";
import type { Tested, TestReport } from "./tested.ts";

export type RunTestsOptions = {
  /** Where failed runs are kept. */
  readonly stateDir: string;
  /** Paths are shown relative to it. */
  readonly cwd: string;
  readonly signal: AbortSignal;
  /** So many failures end it; absent: none. */
  readonly bail: number | undefined;
  /** Each test is run again from every prefix of its journal. */
  readonly cut: boolean;
  /** What there is for the tests of an agent besides memory. */
  readonly groundsOf: (agent: string) => Grounds;
  /** How many tests on copies of a project run at once. */
  readonly jobs: number;
  /** What else is made of a result while it is at hand. */
  readonly onResult?: (chosen: ChosenTest, result: TestResult) => void;
};

export async function runTests(chosen: readonly ChosenTest[], options: RunTestsOptions): Promise<TestReport> {
  const { stateDir, signal, bail = Infinity } = options;
  const tested: Tested[] = [];
  const remarks: string[] = [];
  const flows = new Map<string, ReturnType<typeof prepareFlow>>();
  const prepared = ({ of: { agent, flow } }: ChosenTest) => {
    const known = flows.get(agent) ?? prepareFlow(flow);
    flows.set(agent, known);
    return known;
  };
  const ahead = startAhead(chosen, options.jobs, async (one) => runWhole(await prepared(one), one, options));
  let failed = 0;
  let stopped: TestReport["stopped"] = null;
  for (const one of chosen) {
    // A busy process hears no signals.
    await setImmediate();
    stopped = signal.aborted ? "interrupted" : failed >= bail ? "bail" : null;
    if (stopped !== null) break;
    const began = performance.now();
    const result = await ahead.of(one);
    // What was stopped in the middle says nothing.
    if (signal.aborted && one.test.ground.kind === "project") {
      stopped = "interrupted";
      break;
    }
    options.onResult?.(one, result);
    const ms = performance.now() - began;
    if (result.status === "failed") failed += 1;
    tested.push(told(one, result, ms, options, remarks));
  }
  await ahead.settled();
  record(stateDir, chosen.slice(0, tested.length), tested, remarks);
  remarks.push(...tested.flatMap(driftRemarks));
  return { tested, notRun: chosen.length - tested.length, stopped, remarks };
}

/** Tests on copies of a project wait for programs: the next of them are begun while one is waited for. */
function startAhead(
  chosen: readonly ChosenTest[],
  jobs: number,
  run: (one: ChosenTest) => Promise<TestResult>,
): {
  readonly of: (one: ChosenTest) => Promise<TestResult>;
  /** Each has removed its copy. */
  readonly settled: () => Promise<unknown>;
} {
  const later = chosen.filter(({ test }) => test.ground.kind === "project");
  const begun = new Map<ChosenTest, Promise<TestResult>>();
  const begin = (one: ChosenTest) => {
    const result = run(one);
    // It is heard of when it is its turn.
    result.catch(() => undefined);
    begun.set(one, result);
    return result;
  };
  return {
    of: async (one) => {
      if (one.test.ground.kind !== "project") return run(one);
      for (const next of later.slice(later.indexOf(one), later.indexOf(one) + jobs))
        if (!begun.has(next)) void begin(next);
      return begun.get(one)!;
    },
    settled: () => Promise.allSettled(begun.values()),
  };
}

async function runWhole(
  flow: Awaited<ReturnType<typeof prepareFlow>>,
  { test, of: { agent, settings } }: ChosenTest,
  { cut, groundsOf }: RunTestsOptions,
): Promise<TestResult> {
  const result = await runTest(flow, test, { ...groundsOf(agent), settings });
  if (!cut || result.status !== "passed" || test.ground.kind === "project") return result;
  const { differsWhenCut } = await import("../../testing/cut.ts");
  const differs = await differsWhenCut(flow, result);
  return differs === null ? result : { ...result, status: "failed", unmet: [differs] };
}

function told(
  chosen: ChosenTest,
  { test, status, unmet, ran, drifted, outcomes }: TestResult,
  ms: number,
  options: RunTestsOptions,
  remarks: string[],
): Tested {
  const about = {
    agent: chosen.of.agent,
    test,
    status,
    unmet,
    ...(drifted.compared > 0 && { drifted }),
    ms,
  };
  if (status !== "failed" || ran === null || outcomes === null) return { ...about, because: [], look: null };
  const because = reasonsFor(test, outcomes, unmet);
  const visit = visitToLookAt(outcomes.path, unmet);
  const file = ran.entries.length === 0 ? null : kept(chosen, ran.entries, options, remarks);
  const look =
    file === null
      ? null
      : ["lockstep why", shellWord(file), ...(visit === null ? [] : [shellWord(visit)])].join(" ");
  return { ...about, because, look };
}

function kept(
  chosen: ChosenTest,
  entries: NonNullable<TestResult["ran"]>["entries"],
  { stateDir, cwd }: RunTestsOptions,
  remarks: string[],
): string | null {
  try {
    return relative(cwd, keepTestRun(stateDir, testKeyOf(chosen), chosen.of.flow, entries));
  } catch (error) {
    remark(remarks, `The runs of failed tests cannot be kept: ${errorText(error)}`);
    return null;
  }
}

function record(
  stateDir: string,
  run: readonly ChosenTest[],
  tested: readonly Tested[],
  remarks: string[],
): void {
  const keys = run.map(testKeyOf);
  const failed = keys.filter((_, at) => tested[at]!.status === "failed");
  try {
    forgetTestRuns(
      stateDir,
      keys.filter((_, at) => tested[at]!.status === "passed"),
    );
    recordFailed(stateDir, keys, failed);
  } catch (error) {
    remark(remarks, `Which tests failed cannot be recorded for --last-failed: ${errorText(error)}`);
  }
}

/** Once is enough. */
function remark(remarks: string[], text: string): void {
  if (!remarks.includes(text)) remarks.push(text);
}
