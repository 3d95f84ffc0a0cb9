/** Runs the tests that were chosen, and keeps the runs of those that fail. */
import { relative } from "node:path";
import { setImmediate } from "node:timers/promises";
import { errorText } from "../../flow/text/harmless.ts";
import { reasonsFor, visitToLookAt } from "../../proof/because.ts";
import { forgetTestRuns, keepTestRun, recordFailed } from "../../run/records/test-runs.ts";
import { prepareFlow, runTest, type TestResult } from "../../testing/flow-tests.ts";
import { shellWord } from "../text/text.ts";
import { testKeyOf, type ChosenTest } from "./choose.ts";
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
  /** What else is made of a result while it is at hand. */
  readonly onResult?: (chosen: ChosenTest, result: TestResult) => void;
};

export async function runTests(chosen: readonly ChosenTest[], options: RunTestsOptions): Promise<TestReport> {
  const { stateDir, signal, bail = Infinity } = options;
  const tested: Tested[] = [];
  const remarks: string[] = [];
  const flows = new Map<string, ReturnType<typeof prepareFlow>>();
  let failed = 0;
  let stopped: TestReport["stopped"] = null;
  for (const one of chosen) {
    // A busy process hears no signals.
    await setImmediate();
    stopped = signal.aborted ? "interrupted" : failed >= bail ? "bail" : null;
    if (stopped !== null) break;
    const { agent, flow } = one.of;
    const prepared = flows.get(agent) ?? prepareFlow(flow);
    flows.set(agent, prepared);
    const began = performance.now();
    const result = await runWhole(await prepared, one, options);
    options.onResult?.(one, result);
    const ms = performance.now() - began;
    if (result.status === "failed") failed += 1;
    tested.push(told(one, result, ms, options, remarks));
  }
  record(stateDir, chosen.slice(0, tested.length), tested, remarks);
  return { tested, notRun: chosen.length - tested.length, stopped, remarks };
}

async function runWhole(
  flow: Awaited<ReturnType<typeof prepareFlow>>,
  { test }: ChosenTest,
  { cut }: RunTestsOptions,
): Promise<TestResult> {
  const result = await runTest(flow, test);
  if (!cut || result.status !== "passed") return result;
  const { differsWhenCut } = await import("../../testing/cut.ts");
  const differs = await differsWhenCut(flow, result);
  return differs === null ? result : { ...result, status: "failed", unmet: [differs] };
}

function told(
  chosen: ChosenTest,
  { test, status, unmet, ran, outcomes }: TestResult,
  ms: number,
  options: RunTestsOptions,
  remarks: string[],
): Tested {
  const about = { agent: chosen.of.agent, test, status, unmet, ms };
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
