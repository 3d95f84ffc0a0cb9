/** The results of tests for GitHub Actions: annotations for the log, and all failures for the summary of the step. */
import { relative, resolve } from "node:path";
import { failureLines, failuresIn, summaryOf, type Tested, type TestReport } from "./tested.ts";
import { escapedInLine } from "../../flow/text/harmless.ts";
import { markdownText } from "../../flow/text/markdown.ts";
import { githubAnnotation, MOST_ANNOTATIONS as MOST } from "../text/github-annotation.ts";

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
  return githubAnnotation({
    level: "error",
    file,
    line: unmet[0]?.line ?? test.line,
    title: `${agent} › ${test.name}`,
    lines: failureLines(tested),
  });
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
    `### ${markdownText(`${agent} › ${test.name}`)}`,
    markdownText(`${test.file}:${test.line}`),
    lines.join("\n"),
  ].join("\n\n");
}
