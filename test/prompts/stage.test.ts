import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/flow/json.ts";
import { stageSupplier } from "../../src/flow/reads.ts";
import { renderStage } from "../../src/prompts/stage.ts";
import { placeholdersIn } from "../../src/flow/text/placeholder.ts";
import { loadStages, stageTree } from "../load/stage-world.ts";

const stage = (text: string) => ({
  id: "plan",
  name: "Plan it",
  prompt: { file: "plan.md", text, tried: [], variables: [], syntax: "stage" as const },
});
const CTX: JsonObject = {
  task: "fix {{ctx.secret}} and ${ctx.secret}",
  secret: "no",
  count: 3,
  half: 0.5,
  on: true,
  off: false,
  nothing: null,
  empty: "",
  list: ["a", { b: 1 }],
  map: { a: { b: [10, 20] } },
  upstream: [{ verdict: "ok", parsed: { summary: "s" } }],
  workflowRunId: "r1",
  stageExecutionId: "r1/plan/1",
};

const rendered: readonly [name: string, body: string, text: string][] = [
  [
    "a text, and what it holds is not read again",
    "Do {{ctx.task}}.",
    "Do fix {{ctx.secret}} and ${ctx.secret}.",
  ],
  ["numbers and truth values", "{{ctx.count}} ${ctx.half} {{ctx.on}} {{ctx.off}}", "3 0.5 true false"],
  ["lists and objects as compact JSON", "{{ctx.list}} {{ctx.map}}", '["a",{"b":1}] {"a":{"b":[10,20]}}'],
  ["null as nothing", "[{{ctx.nothing}}]", "[]"],
  ["an empty text", "[{{ctx.empty}}]", "[]"],
  ["paths and indices", "{{ctx.map.a.b[1]}} {{ctx.list[1].b}}", "20 1"],
  ["the stage before", "{{ctx.upstream[0].parsed.summary}}", "s"],
  ["the keys of the run", "{{ctx.workflowRunId}} {{ctx.stageExecutionId}}", "r1 r1/plan/1"],
  ["the stage itself", "{{stage.id}}: {{stage.name}}", "plan: Plan it"],
  ["an escape", "\\{{ctx.task}}", "{{ctx.task}}"],
  ["an empty body", "", ""],
];

for (const [name, body, text] of rendered) {
  test(`renders ${name}`, () => assert.deepEqual(renderStage(stage(body), CTX), { kind: "text", text }));
}

const refused: readonly [name: string, body: string, says: RegExp][] = [
  [
    "a field that is absent",
    "{{ctx.tusk}}",
    /stage "plan" reads \{\{ctx\.tusk\}\}.*--input tusk=.*hooks\.mjs/,
  ],
  ["a member that is absent", "{{ctx.map.x}}", /--input map=/],
  [
    "an optional payload field that is absent",
    "{{ctx.upstream[0].parsed.x}}",
    /the stage that led here.*parsed\.x/,
  ],
  ["a stage before that is not there", "{{ctx.upstream[1].parsed}}", /number 1 of those/],
  ["a member of null", "{{ctx.nothing.x}}", /--input nothing=/],
  ["the length of a list", "{{ctx.list.length}}", /--input list=/],
  ["the length of a text", "{{ctx.task.length}}", /--input task=/],
  ["a prototype", "{{ctx.__proto__}}", /no such value/],
  ["a constructor", "{{ctx.map.constructor}}", /no such value/],
  ["an inherited member", "{{ctx.toString}}", /no such value/],
  ["another field of the stage", "{{stage.turnCap}}", /only stage\.id and stage\.name/],
];

for (const [name, body, says] of refused) {
  test(`refuses ${name}`, () => {
    const composed = renderStage(stage(`ok {{ctx.count}} ${body}`), CTX);
    assert.equal(composed.kind, "unaskable");
    if (composed.kind !== "unaskable") return;
    assert.equal(composed.code, "StageCtxUnresolved");
    assert.match(composed.why, says);
  });
}

test("who supplies a placeholder is known before the run", () => {
  const { flow } = loadStages(
    stageTree({
      machine: {
        entry: "plan",
        inputs: { properties: { task: { type: "string" }, n: { default: 1, type: "number" } } },
      },
    }),
  );
  const of = (id: string, text: string) => stageSupplier(flow!, flow!.steps[id]!, placeholdersIn(text)[0]!);
  assert.deepEqual(of("plan", "{{ctx.task}}"), { kind: "parameter", flag: "--task", isSure: false });
  assert.deepEqual(of("plan", "{{ctx.n}}"), { kind: "parameter", flag: "--n", isSure: true });
  assert.equal(of("plan", "{{ctx.other}}"), null);
  assert.deepEqual(of("plan", "{{ctx.workflowRunId}}"), { kind: "runtime" });
  assert.deepEqual(of("plan", "{{stage.name}}"), { kind: "constant", value: "Plan" });
  assert.deepEqual(of("review", "{{ctx.upstream[0].parsed.green}}"), {
    kind: "handoff",
    step: "build",
    key: "parsed.green",
  });
  assert.equal(of("review", "{{ctx.upstream[1]}}"), null);
});
