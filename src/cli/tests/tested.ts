/** What a run of tests gave: the data that every reporter writes. */
import type { FlowTest } from "../../flow/flow-test.ts";
import type { Flow } from "../../flow/flow.ts";
import type { TestSettings } from "../../flow/test-settings.ts";
import type { Coverage, missedIn } from "../../proof/coverage.ts";
import type { Unmet } from "../../proof/expect.ts";
import { unmetLines } from "../../proof/unmet-text.ts";
import type { TestResult } from "../../testing/flow-tests.ts";

/** One test and what came of it. */
export type Tested = {
  readonly agent: string;
  readonly test: Pick<FlowTest, "name" | "file" | "line" | "skip">;
  readonly status: TestResult["status"];
  readonly unmet: readonly Unmet[];
  /** Why it went another way, as far as that is known. */
  readonly because: readonly string[];
  /** The command that shows the failed run. */
  readonly look: string | null;
  /** Recorded responses that were given to something else than is said now. Absent: none of them is recorded. */
  readonly drifted?: TestResult["drifted"];
  readonly ms: number;
};

export type TestReport = {
  readonly tested: readonly Tested[];
  /** How many tests were chosen and not run, and why. */
  readonly notRun: number;
  readonly stopped: "bail" | "interrupted" | null;
  /** What a person should know about the run of tests as a whole. */
  readonly remarks: readonly string[];
  /** Absent: it was not asked for. */
  readonly coverage?: readonly AgentCovered[];
  /** No test was run: the document that says so in the place of results. */
  readonly refused?: object;
  /** Why a report could not be written to its file. Absent: all were. */
  readonly unwritten?: string;
};

/** What the tests of an agent have shown of its flow. */
export type AgentCovered = {
  readonly flow: Flow;
  readonly coverage: Coverage;
  readonly least: TestSettings["coverage"];
  readonly missed: ReturnType<typeof missedIn>;
};

export function failuresIn({ tested }: TestReport): readonly Tested[] {
  return tested.filter(({ status }) => status === "failed");
}

export function isCoverageMissed({ coverage = [] }: TestReport): boolean {
  return coverage.some(({ missed }) => missed.length > 0);
}

/** `12 tests, 2 failed, 1 skipped`. */
export function summaryOf(report: TestReport): string {
  const { tested, notRun, stopped } = report;
  const failed = failuresIn(report).length;
  const skipped = tested.filter(({ status }) => status === "skipped").length;
  const why = stopped === "bail" ? "--bail" : "interrupted";
  if (tested.length === 0)
    return notRun === 0 ? "no tests were run" : `no tests were run, ${notRun} not run (${why})`;
  return [
    `${tested.length} ${tested.length === 1 ? "test" : "tests"}`,
    failed > 0 ? `${failed} failed` : skipped === 0 ? "all passed" : `${tested.length - skipped} passed`,
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(notRun > 0 ? [`${notRun} not run (${why})`] : []),
  ].join(", ");
}

/** What does not hold, why, and where to look: one line each, without colours. */
export function failureLines({ test, unmet, because, look }: Tested): readonly string[] {
  return [
    ...unmet.flatMap((one) => unmetLines(test.file, one)),
    ...because.map((why) => `because: ${why}`),
    ...(look === null ? [] : [`look: ${look}`]),
  ];
}
