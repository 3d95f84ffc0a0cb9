/** The results of tests for people: one line a test, and below a failed one what was expected and what came. */
import { coverageText } from "../coverage/coverage-text.ts";
import { unmetPlace, unmetRows } from "../../proof/unmet-text.ts";
import { shownInLine, type Paint } from "../text/text.ts";
import { failuresIn, summaryOf, type Tested, type TestReport } from "./tested.ts";

/** More gaps of the coverage than these are listed only with --verbose. */
const MOST_GAPS = 20;

/** `quiet`: only what is wrong. */
export function prettyReport(
  report: TestReport,
  paint: Paint,
  { quiet = false, verbose = false }: { readonly quiet?: boolean; readonly verbose?: boolean } = {},
): string {
  const { tested, coverage = [], stopped } = report;
  const shown = quiet ? failuresIn(report) : tested;
  const lines = shown.map((one) => testText(one, paint));
  const remarks = report.remarks.map((remark) => paint("yellow", `! ${remark}`));
  const most = verbose ? Infinity : MOST_GAPS;
  const covered = coverage
    .filter(({ missed }) => !quiet || missed.length > 0)
    .flatMap((one) => coverageText(one.coverage, one.least, paint, most).concat(""));
  if (quiet && lines.length + covered.length === 0 && stopped === null) return "";
  return [
    ...lines,
    ...(lines.length > 0 ? [""] : []),
    ...covered,
    ...(quiet ? [] : remarks),
    summaryOf(report),
  ].join("\n");
}

function testText({ agent, test, status, unmet, because, look }: Tested, paint: Paint): string {
  const mark = { passed: paint("green", "✓"), failed: paint("red", "✗"), skipped: paint("dim", "-") }[status];
  const head = `${mark} ${shownInLine(agent)} › ${shownInLine(test.name)}`;
  if (status === "passed") return head;
  if (status === "skipped") return `${head}${paint("dim", `  skipped: ${shownInLine(test.skip ?? "")}`)}`;
  const width = Math.max(7, ...unmet.map((one) => unmetPlace(one).length));
  const row = (name: string, text: string) => `  ${name.padEnd(width)} ${text}`;
  const differences = unmet.flatMap((one) => [
    ...unmetRows(one).map(([name, text], at) =>
      row(
        at === 0 ? shownInLine(unmetPlace(one)) : "",
        `${name.padEnd(8)}  ${shownInLine(text, 2000)}${at === 0 ? `  ${place(one.file ?? test.file, one.line, paint)}` : ""}`,
      ),
    ),
    ...(one.diff ?? []).map((line) =>
      row(
        "",
        paint(line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim", shownInLine(line, 1000)),
      ),
    ),
  ]);
  return [
    `${head}  ${place(test.file, test.line, paint)}`,
    ...differences,
    ...because.map((why) => row("because", shownInLine(why, 1000))),
    ...(look === null ? [] : [row("look", look)]),
  ].join("\n");
}

function place(file: string, line: number, paint: Paint): string {
  return paint("dim", `${shownInLine(file)}:${line}`);
}
