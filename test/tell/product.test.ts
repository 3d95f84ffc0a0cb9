/** What a run made is in its result, whatever form the agent is written in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryJournal, run, show, type ScriptReply } from "../../src/run/index.ts";
import { tree001 } from "../load/documents.ts";
import { agentFiles, projectWith, stepTo, type StepFile } from "../run/project.ts";
import { machineFiles } from "../run/stage-project.ts";

const says = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action, reason: "r" }, ...more },
});

const registry = (closure: Partial<StepFile>) =>
  agentFiles("m", {
    "initial.a": {
      ...stepTo("work", { next: "closure.a", abort: null }),
      gate: { handoffFields: ["plan"] },
      properties: { plan: { type: "string" } },
    },
    "closure.a": {
      ...stepTo("closure", { closing: null, repeat: "closure.a" }),
      properties: { note: { type: "string" }, points: { type: "array" } },
      ...closure,
    },
  });
const begin = says("initial.a", "next", { plan: "dig" });
const made = { note: "n", points: [1] };

const ROWS: readonly {
  readonly name: string;
  readonly files: { readonly [path: string]: string };
  readonly script: readonly ScriptReply[];
  readonly args?: { readonly [name: string]: string };
  readonly agent?: string;
  readonly outcome?: string;
  readonly result: unknown;
}[] = [
  {
    name: "what the last step hands on",
    files: registry({ gate: { handoffFields: ["note"] } }),
    script: [begin, says("closure.a", "closing", made)],
    result: { note: "n" },
  },
  {
    name: "its answer without what routes it, where it hands on nothing",
    files: registry({}),
    script: [begin, says("closure.a", "closing", made)],
    result: made,
  },
  {
    name: "nothing, where its answer only routes",
    files: registry({}),
    script: [begin, says("closure.a", "closing")],
    result: null,
  },
  {
    name: "the newest answer of a step that was repeated",
    files: registry({}),
    script: [
      begin,
      says("closure.a", "repeat", { note: "old" }),
      says("closure.a", "closing", { note: "new" }),
    ],
    result: { note: "new" },
  },
  {
    name: "nothing, where the run was given up",
    files: registry({}),
    script: [says("initial.a", "abort", { plan: "dig" })],
    outcome: "failed",
    result: null,
  },
  {
    name: "nothing, where the run has more to do",
    files: registry({}),
    script: [begin],
    outcome: "failed",
    result: null,
  },
  {
    name: "what a stage completed with",
    files: machineFiles({ stages: { a: {} } }),
    script: [{ output: { title: "t" } }],
    result: { title: "t" },
  },
  {
    name: "nothing, where a stage completed with nothing",
    files: machineFiles({ stages: { a: {} } }),
    script: [{ output: {} }],
    result: null,
  },
  {
    name: "the text of a step with a check prompt, and not the check",
    agent: "code-improver",
    args: { topic: "x" },
    files: tree001(),
    script: ["s_a8f3", "s_b2c1", "s_c9d4"].flatMap((step) => [
      { step, text: `${step} is done` },
      { step: `${step}#check`, text: '{"result":"ok","message":"fine"}' },
    ]),
    result: "s_c9d4 is done",
  },
];

for (const { name, files, script, args = {}, agent = "m", outcome = "completed", result } of ROWS) {
  test(`the result is ${name}`, async () => {
    const journal = createMemoryJournal();
    const cwd = projectWith(files);
    const env = { LOCKSTEP_TRUST: "all" };
    const ran = await run({ agent, args, cwd, journal, env, script });
    assert.equal(ran.outcome, outcome, ran.reason);
    assert.deepEqual(ran.result, result);
    assert.deepEqual((await show(journal, "@last")).result, result);
  });
}
