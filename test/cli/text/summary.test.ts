import assert from "node:assert/strict";
import { test } from "node:test";
import { batchSummary, runSummary } from "../../../src/cli/text/summary.ts";
import { githubFindings } from "../../../src/cli/text/github-findings.ts";
import type { Problem } from "../../../src/flow/problem.ts";
import { toFailure, type Result } from "../../../src/tell/result.ts";

const EVIL = "<script>x</script> | @all #1 [a](http://b) `c`\n## d\u001b[31m\u202e";

const evil: Result = {
  ...toFailure(EVIL, "CODE_1", EVIL),
  run: EVIL,
  verdict: EVIL,
  result: EVIL,
  path: [{ step: EVIL, visit: 1, label: null, to: null }],
  checks: [{ name: EVIL, ok: false, pattern: EVIL, attempt: 2, summary: EVIL }],
  effects: [{ kind: EVIL, state: "failed", detail: EVIL }] as unknown as Result["effects"],
  questions: [{ question: EVIL }] as unknown as Result["questions"],
  warnings: [EVIL],
};

test("nothing that others wrote is Markdown or HTML in a summary", () => {
  const text = runSummary(evil, [`lockstep resume ${EVIL}`]);
  const outside = text.split("\n").filter((line) => !line.startsWith("    "));
  for (const line of outside) assert.doesNotMatch(line, /<|@|\]\(|:\/\/|`|^## d|\p{Cc}|\u202e/u, line);
  assert.equal(outside.filter((line) => line.startsWith("## ")).length, 1);
  for (const line of text.split("\n")) assert.doesNotMatch(line, /\p{Cc}|\u202e/u, line);
  const rows = outside.filter((line) => line.startsWith("| "));
  const cells = rows.map((line) => line.split("|").length - 2);
  assert.deepEqual(new Set(cells), new Set([2, 3]));
});

test("a summary has a section for what there is, and none for what there is not", () => {
  const sections = (text: string) => [...text.matchAll(/^### (.*)$/gm)].map(([, title]) => title);
  assert.deepEqual(sections(runSummary(evil, ["x"])), [
    "Checks",
    "Effects",
    "Questions",
    "Warnings",
    "Result",
    "Next",
  ]);
  assert.deepEqual(sections(runSummary(toFailure("a", "B", "c", [problem("error", 1)]), [])), ["Problems"]);
  assert.deepEqual(sections(runSummary(toFailure("a", "B", "c"), [])), []);
});

test("a long result is cut", () => {
  const text = runSummary({ ...evil, result: "line\n".repeat(5000) }, []);
  assert.match(text, /… 4900 more lines/);
  assert.ok(text.length < 10_000);
});

test("the summary of a batch has a row for each of its runs", () => {
  const items = [
    { name: "#1", result: { ...evil, success: true } },
    { name: "#2", result: evil },
    { name: "#3", result: null },
  ];
  const batch = {
    v: 1,
    batch: null,
    agent: "a",
    success: false,
    exitCode: 1,
    items,
    usage: evil.usage,
    costUsd: 0.5,
    durationMs: 1000,
    left: 0,
  } as const;
  const text = batchSummary(batch, []);
  assert.match(text, /^## ❌ a: 1 of 3 complete$/m);
  assert.match(text, /\$0\.5000/);
  assert.deepEqual(
    text
      .split("\n")
      .filter((line) => line.startsWith("| &#35;"))
      .map((line) => /✅|❌|not begun/.exec(line)?.[0]),
    ["✅", "❌", "not begun"],
  );
});

function problem(severity: Problem["severity"], line: number): Problem {
  const texts = { message: `m${line}\n::error::x`, why: "w", fix: "100%" };
  const place = { file: "a,b:c.json", line, column: 2, pointer: "", step: null };
  return { code: "CODE", severity, ...place, ...texts, witness: [] };
}

test("findings are annotations of their level, and of too many the last one says so", () => {
  assert.deepEqual(githubFindings([], "/w/p", "/w"), []);
  assert.deepEqual(githubFindings([problem("warning", 3)], "/w/p", "/w"), [
    "::warning file=p/a%2Cb%3Ac.json,line=3,col=2,title=CODE::m3\\n::error::x%0AWhy: w%0AFix: 100%25",
  ]);
  const many = Array.from({ length: 12 }, (_, line) => problem("error", line));
  const lines = githubFindings([...many, problem("warning", 1)], "/w", undefined);
  assert.equal(lines.length, 11);
  assert.equal(lines[9], "::error title=lockstep check::3 more findings: see the log of this step");
  assert.match(lines[10]!, /^::warning file=a%2Cb%3Ac\.json/);
});
