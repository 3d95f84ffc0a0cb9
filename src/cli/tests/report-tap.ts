/** The results of tests in the Test Anything Protocol, version 13. */
import { jsonLine } from "../text/text.ts";
import { escapedInLine } from "../../flow/text/harmless.ts";
import { failureLines, type Tested, type TestReport } from "./tested.ts";

export function tapReport(report: TestReport): string {
  const { tested, stopped, remarks } = report;
  return [
    "TAP version 13",
    `1..${tested.length}`,
    ...remarks.map((remark) => `# ${escapedInLine(remark, 2000)}`),
    ...tested.flatMap((one, at) => testLines(one, at + 1)),
    ...(stopped === "interrupted" ? ["Bail out! interrupted"] : []),
  ].join("\n");
}

function testLines(tested: Tested, number: number): readonly string[] {
  const { agent, test, status } = tested;
  const name = escaped(`${agent} › ${test.name}`);
  const skip = status === "skipped" ? ` # SKIP ${escaped(test.skip ?? "")}` : "";
  const head = `${status === "failed" ? "not ok" : "ok"} ${number} - ${name}${skip}`;
  if (status !== "failed") return [head];
  // A JSON text is a YAML text as well.
  const about = { at: `${test.file}:${test.line}`, message: failureLines(tested).join("\n") };
  return [
    head,
    "  ---",
    ...Object.entries(about).map(([key, value]) => `  ${key}: ${jsonLine(value)}`),
    "  ...",
  ];
}

/** `#` would begin a directive. */
function escaped(text: string): string {
  return escapedInLine(text, 2000).replaceAll("\\", "\\\\").replaceAll("#", "\\#");
}
