/** How a run or a batch went, as Markdown: the summary of a CI job, or a page to attach to something. */
import { markdownCode, markdownTable, markdownText } from "../../flow/text/markdown.ts";
import type { Batch, Result } from "../../run/index.ts";
import { blockedBy, resultText } from "./report.ts";
import { count, duration } from "./text.ts";

/** Of a long text the beginning: a CI system refuses a summary that is too long. */
const MOST_LINES = 100;
const MOST_ROWS = 200;

/** `next`: what can be typed next. */
export function runSummary(result: Result, next: readonly string[]): string {
  const { agent, outcome, success, code, reason, run, path, checks, effects, warnings, questions } = result;
  const mark = success ? "✅" : outcome === "waiting" ? "⏸️" : "❌";
  const facts: readonly (readonly [string, string])[] = [
    ...(run === null ? [] : [["run", markdownText(run)] as const]),
    ...(path.length === 0 ? [] : [["path", wayOf(result)] as const]),
    ["took", `${count(result.iterations, "iteration")}, ${duration(result.durationMs)}`],
    ["model", spent(result)],
    ...(result.worktree?.kept ? [["branch", markdownText(result.worktree.branch)] as const] : []),
    ...(result.verdict === null ? [] : [["verdict", markdownText(result.verdict)] as const]),
  ];
  return joined([
    `## ${mark} ${markdownText(agent)}: ${outcome}${code === null ? "" : ` ${markdownText(code)}`}`,
    markdownText(reason),
    ...markdownTable(["", ""], facts),
    ...section(
      "Problems",
      markdownTable(
        ["place", "code", "problem"],
        result.problems
          .slice(0, MOST_ROWS)
          .map(({ file, line, code: rule, message }) => [
            markdownText(`${file}:${line}`),
            markdownText(rule),
            markdownText(message),
          ]),
      ),
    ),
    ...section(
      "Checks",
      markdownTable(
        ["check", "try", "result"],
        checks
          .slice(-MOST_ROWS)
          .map(({ name, attempt, ok, pattern, summary }) => [
            markdownText(name),
            String(attempt),
            ok ? "✅" : `❌ ${markdownText(pattern === name ? summary : `${pattern}: ${summary}`, 300)}`,
          ]),
      ),
    ),
    ...section(
      "Effects",
      markdownTable(
        ["effect", "state", "detail"],
        effects
          .slice(-MOST_ROWS)
          .map(({ kind, state, detail }) => [markdownText(kind), state, markdownText(detail)]),
      ),
    ),
    ...section(
      "Questions",
      questions.map(({ question }) => markdownText(question)),
    ),
    ...section("Warnings", warnings.map((text) => `- ${markdownText(text)}`).slice(0, MOST_ROWS), "\n"),
    ...(result.result === null
      ? []
      : section("Result", [markdownCode(resultText(result.result), MOST_LINES)])),
    ...section("Next", next.length === 0 ? [] : [markdownCode(next.join("\n"))]),
  ]);
}

export function batchSummary(
  { agent, items, durationMs, costUsd, success }: Batch,
  next: readonly string[],
): string {
  const complete = items.filter(({ result }) => result?.success === true).length;
  const cost = costUsd === null ? "" : `, $${costUsd.toFixed(4)}`;
  return joined([
    `## ${success ? "✅" : "❌"} ${markdownText(agent)}: ${complete} of ${items.length} complete`,
    `${duration(durationMs)}${cost}`,
    ...markdownTable(
      ["", "run", "outcome", "took", "reason"],
      items.map(({ name, result }) =>
        result === null
          ? [markdownText(name), "", "not begun", "", ""]
          : [
              markdownText(name),
              markdownText(result.run ?? ""),
              `${result.success ? "✅" : "❌"} ${result.outcome}`,
              duration(result.durationMs),
              result.success
                ? ""
                : markdownText(blockedBy(result) ?? result.reason.split("\n")[0] ?? "", 300),
            ],
      ),
    ),
    ...section("Next", next.length === 0 ? [] : [markdownCode(next.join("\n"))]),
  ]);
}

function joined(parts: readonly string[]): string {
  return `${parts.join("\n\n")}\n\n`;
}

function section(title: string, parts: readonly string[], between = "\n\n"): readonly string[] {
  return parts.length === 0 ? [] : [`### ${title}`, parts.join(between)];
}

/** Each visit, also those of a long way: a page has room for them. */
function wayOf({ path }: Result): string {
  const shown = path.slice(-MOST_ROWS).map(({ step, overturned }) => `${step}${overturned ? " ✗" : ""}`);
  return markdownText(`${path.length > MOST_ROWS ? "… → " : ""}${shown.join(" → ")}`, 10_000);
}

function spent({ usage, costUsd }: Result): string {
  const cost = costUsd === null ? "" : `, $${costUsd.toFixed(4)}`;
  return `${count(usage.turns, "turn")}, ${usage.inputTokens} tokens in, ${usage.outputTokens} out${cost}`;
}
