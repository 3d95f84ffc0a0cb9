/** The results of tests for GitHub Actions: annotations for the log, and all failures for the summary of the step. */
import { relative, resolve } from "node:path";
import { failureLines, failuresIn, summaryOf, type Tested, type TestReport } from "./tested.ts";
import { escapedInLine } from "../../flow/text/harmless.ts";

/** GitHub shows so many a step, and hides the rest without a word. */
const MOST = 10;

/** `root`: the project; `workspace`: the checkout that paths are relative to. */
export function githubReport(report: TestReport, root: string, workspace: string | undefined): string {
  const failed = failuresIn(report);
  const shown = failed.length > MOST ? failed.slice(0, MOST - 1) : failed;
  const more = failed.length - shown.length;
  return [
    ...shown.map((one) => annotation(one, root, workspace)),
    ...(more === 0
      ? []
      : [`::error title=lockstep test::${more} more tests failed: see the summary of this step`]),
  ].join("\n");
}

function annotation(tested: Tested, root: string, workspace: string | undefined): string {
  const { agent, test, unmet } = tested;
  const file = workspace === undefined ? test.file : relative(workspace, resolve(root, test.file));
  const title = property(`${agent} › ${test.name}`);
  const line = unmet[0]?.line ?? test.line;
  const lines = failureLines(tested).map((text) => escapedInLine(text, 2000));
  return `::error file=${property(file)},line=${line},title=${title}::${data(lines.join("\n"))}`;
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(escapedInLine(text, 2000)).replaceAll(":", "%3A").replaceAll(",", "%2C");
}

/** Markdown. */
export function githubSummary(report: TestReport): string {
  const failed = failuresIn(report).map(failedText);
  return ["## lockstep test", `${summaryOf(report)}.`, ...failed, ""].join("\n\n");
}

function failedText(tested: Tested): string {
  const { agent, test } = tested;
  const lines = failureLines(tested).map((line) => `    ${escapedInLine(line, 2000)}`);
  return [
    `### ${marked(`${agent} › ${test.name}`)}`,
    marked(`${test.file}:${test.line}`),
    lines.join("\n"),
  ].join("\n\n");
}

/** Text that Markdown and HTML leave as it is. */
function marked(text: string): string {
  return escapedInLine(text, 2000).replaceAll(
    /[\\`*_{}[\]<>()#!|&~@]/g,
    (char) => `&#${char.charCodeAt(0)};`,
  );
}
