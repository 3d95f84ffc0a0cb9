/** The results of tests as JUnit XML: a suite for each agent, a case for each test. */
import { failureLines, summaryOf, type Tested, type TestReport } from "./tested.ts";

export function junitReport(report: TestReport): string {
  const agents = [...new Set(report.tested.map(({ agent }) => agent))];
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="lockstep" ${figures(report.tested)}>`,
    ...agents.flatMap((agent) =>
      suite(
        agent,
        report.tested.filter((one) => one.agent === agent),
      ),
    ),
    ...(report.stopped === null ? [] : [`  <!-- ${text(summaryOf(report)).replaceAll("--", "- -")} -->`]),
    "</testsuites>",
  ].join("\n");
}

function suite(agent: string, tested: readonly Tested[]): readonly string[] {
  return [
    `  <testsuite name="${text(agent)}" ${figures(tested)}>`,
    ...tested.flatMap(cases),
    "  </testsuite>",
  ];
}

function cases(tested: Tested): readonly string[] {
  const { agent, test, status, unmet, because, ms } = tested;
  const head = `    <testcase name="${text(test.name)}" classname="${text(agent)}" file="${text(test.file)}" line="${test.line}" time="${seconds(ms)}"`;
  if (status === "passed") return [`${head}/>`];
  if (status === "skipped")
    return [`${head}>`, `      <skipped message="${text(test.skip ?? "")}"/>`, "    </testcase>"];
  const message =
    unmet.length === 0 ? because.join(" ") : `not as expected: ${unmet.map(({ key }) => key).join(", ")}`;
  return [
    `${head}>`,
    `      <failure message="${text(message)}">${text(failureLines(tested).join("\n"))}</failure>`,
    "    </testcase>",
  ];
}

function figures(tested: readonly Tested[]): string {
  const having = (status: Tested["status"]) => tested.filter((one) => one.status === status).length;
  const ms = tested.reduce((sum, one) => sum + one.ms, 0);
  return `tests="${tested.length}" failures="${having("failed")}" errors="0" skipped="${having("skipped")}" time="${seconds(ms)}"`;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** XML 1.0 has no place for most control characters and for halves of a character. */
function text(value: string): string {
  return value
    .toWellFormed()
    .replaceAll(/\p{Cc}|[\ufffe\uffff]/gu, (char) => (/[\t\n\r]/.test(char) ? char : "\ufffd"))
    .replaceAll(/[&<>"\t\n\r]/g, (char) => `&#${char.charCodeAt(0)};`);
}
