/** What the other rooms make of stages before they run: the budget, the drawing, the explanation. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { renderDot } from "../../src/cli/graph/graph-dot.ts";
import { renderMermaid } from "../../src/cli/graph/graph-mermaid.ts";
import { renderSvg } from "../../src/cli/graph/graph-svg.ts";
import { renderText } from "../../src/cli/graph/graph-text.ts";
import { stepText } from "../../src/cli/text/explain-step.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { budgetLine, budgetOf } from "../../src/tell/budget.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { explainAgent, explainStep } from "../../src/run/explain.ts";
import { FOLDER, loadStages, stageTree, type StageChanges } from "./stage-world.ts";

const plain = createPaint(false);
const CHECK = { type: "command", command: "npm test", successWhen: "exitCode:0" };
const checked: StageChanges = {
  machine: { entry: "plan", checks: { tests: CHECK }, limits: { visits: 9 } },
  build: { assert: ["tests"], gate: "tests", onFail: "mend", output: { ok: "parsed.green" } },
  mend: { id: "mend", body: "{{ctx.upstream[0].reason}} {{ctx.task}} {{stage.id}}" },
};
const straight: StageChanges = { build: { next: "review" } };
const flowOf = (changes: StageChanges) => loadStages(stageTree(changes)).flow!;

const budgets: readonly [name: string, changes: StageChanges, line: string][] = [
  [
    "turnCap × maxAttempts of each stage on the way",
    straight,
    "30 answers (the longest path through the flow)",
  ],
  [
    "all siblings, and the join",
    {
      plan: { next: { parallel: ["a", "b"], join: "review" } },
      build: undefined,
      a: { id: "a", turnCap: 7 },
      b: { id: "b", retryPolicy: { maxAttempts: 1, backoff: "none" } },
    },
    "39 answers (the longest path through the flow)",
  ],
  ["a circle, by visits", {}, "1,000 answers (100 visits × 10 answers)"],
  [
    "asserts are tries within the visit",
    { ...straight, ...only("tests") },
    "30 answers (the longest path through the flow)",
  ],
];

function only(check: string): StageChanges {
  return { machine: { entry: "plan", checks: { [check]: CHECK } }, plan: { assert: [check] } };
}

for (const [name, changes, line] of budgets) {
  test(`the budget of stages: ${name}`, () => assert.equal(budgetLine(budgetOf(flowOf(changes))), line));
}

test("a drawing says who routes each stage, in every format", () => {
  const outline = outlineOf(flowOf(checked));
  assert.deepEqual(
    outline.nodes.map(({ id, routedBy, checks }) => [id, routedBy, checks.join()]),
    [
      ["plan", "runtime", ""],
      ["build", "check", "tests"],
      ["mend", "runtime", ""],
      ["review", "runtime", ""],
    ],
  );
  for (const drawing of [
    renderText(outline, 120, plain),
    renderMermaid(outline),
    renderDot(outline),
    renderSvg(outline),
  ]) {
    assert.match(drawing, /routed by runtime/);
    assert.match(drawing, /routed by check/);
  }
  const text = renderText(outline, 120, plain);
  assert.match(text, /build \(work, routed by check\)/);
  assert.match(text, /ok +→ review {2}\[parsed\.green = true\]/);
  assert.match(text, /ok +↻|ok +↩ itself|ok +↩ build/);
  assert.match(text, /cap ends the run where no line is drawn for it/);
  assert.doesNotMatch(text, /skip ■/);
});

test("explain tells what a stage is made of, and where that is written", () => {
  const tree = stageTree(checked);
  const loaded = { agent: "release", ...loadStages(tree) };
  const step = explainStep(loaded, "build")!;
  const lines = tree[`${FOLDER}/stages/build.md`]!.split("\n");
  const lineOf = (key: string) => lines.findIndex((line) => line.startsWith(`${key}:`)) + 1;
  assert.deepEqual(step.stage, {
    attempts: 2,
    backoff: "none",
    turnCap: 5,
    gate: "tests",
    unresolved: "retry-later",
    envelope: ["Read", "Write", "Bash"],
    completionTool: "submit_build",
    inputsSchema: null,
    output: [{ key: "ok", path: "parsed.green" }],
    placeholders: [
      {
        written: "{{ctx.upstream[0].parsed.summary}}",
        supplier: { kind: "handoff", step: "plan", key: "parsed.summary" },
      },
    ],
  });
  const rows = step.contract.map(({ label, transition, mismatches }) => [
    label,
    transition?.kind === "written" ? transition.line : transition?.kind,
    mismatches.length,
  ]);
  assert.deepEqual(rows, [
    ["ok", lineOf("next"), 0],
    ["skip", lineOf("next"), 0],
    ["fail", lineOf("onFail"), 0],
    ["cap", lineOf("onFail"), 0],
  ]);
  assert.equal(step.guard!.origin.kind === "written" && step.guard!.origin.line, lineOf("assert"));
  assert.equal(step.tools.origin.kind === "written" && step.tools.origin.line, lineOf("allowedTools"));
  const text = stepText(step, plain);
  assert.match(text, /retries +2 attempts of 5 turns each/);
  assert.match(text, /gate +tests must pass first/);
  assert.match(text, /ends with +a call of submit_build, alone in its response/);
  assert.match(text, /\{\{ctx\.upstream\[0\]\.parsed\.summary\}\} +parsed\.summary, handed on by plan/);
  assert.match(stepText(explainStep(loaded, "mend")!, plain), /\{\{stage\.id\}\} +the constant mend/);

  const agent = explainAgent(loaded)!;
  const entry = agent.entry.origin;
  assert.equal(entry.kind === "written" && entry.file, `${FOLDER}/machine.yaml`);
  const visits = agent.settings.find(({ key }) => key === "limits.visits")!;
  assert.deepEqual([visits.value, visits.origin.kind], [9, "written"]);
});

test("without stages nothing that a command needs at once imports the YAML parser", () => {
  const src = new URL("../../src/", import.meta.url);
  const seen = new Set(
    ["cli/main.ts", "cli/commands/run.ts", "cli/commands/check.ts", "cli/graph/graph.ts"].map(
      (file) => new URL(file, src).href,
    ),
  );
  for (const file of seen) {
    const code = readFileSync(new URL(file), "utf8");
    for (const [, path = ""] of code.matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)";/gm)) {
      assert.notEqual(path, "yaml", file);
      if (path.startsWith(".")) seen.add(new URL(path, file).href);
    }
  }
  assert.ok(seen.size > 40);
});
