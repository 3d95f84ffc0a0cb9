/** The results of tests as one document. */
import { driftDocument } from "./stale.ts";
import { failuresIn, isCoverageMissed, type Tested, type TestReport } from "./tested.ts";

export function testsDocument(report: TestReport) {
  const { tested, notRun, stopped, remarks } = report;
  return {
    v: 1,
    kind: "lockstep-tests",
    ok:
      failuresIn(report).length === 0 &&
      stopped !== "interrupted" &&
      !isCoverageMissed(report) &&
      report.unwritten === undefined,
    passed: tested.filter(({ status }) => status === "passed").length,
    failed: failuresIn(report).length,
    skipped: tested.filter(({ status }) => status === "skipped").length,
    notRun,
    stopped,
    remarks,
    ...(report.unwritten !== undefined && { reason: report.unwritten }),
    tests: tested.map(testDocument),
    ...(report.coverage !== undefined && {
      coverage: report.coverage.map(({ coverage, missed }) => ({ ...coverage, missed })),
    }),
  };
}

function testDocument({
  agent,
  test: { name, file, line, skip },
  status,
  unmet,
  because,
  look,
  drifted,
}: Tested) {
  const differences = unmet.map(({ key, file: inFile, line: at, at: below, expected, got, first, diff }) => ({
    key,
    ...(inFile !== undefined && { file: inFile }),
    line: at,
    at: below,
    expected,
    got: got ?? null,
    ...(first !== undefined && {
      first: {
        ...first,
        after: first.after ?? null,
        expected: first.expected ?? null,
        got: first.got ?? null,
      },
    }),
    ...(diff !== undefined && { diff }),
  }));
  return {
    agent,
    name,
    file,
    line,
    status,
    ...(skip !== undefined && { skip }),
    unmet: differences,
    because,
    look,
    ...(drifted !== undefined && { drift: driftDocument(drifted) }),
  };
}
