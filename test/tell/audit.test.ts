/** The audit of a run: the life of its stages, told from the journal alone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Toolbox } from "../../src/engine/ports.ts";
import { audit, type AuditRecord } from "../../src/tell/audit.ts";
import { sketchCheck, sketchMachine } from "../../src/testing/flows.ts";
import { play } from "../engine/played.ts";
import { ready } from "../ready.ts";

const recordText = ({ name, about }: AuditRecord) => {
  const word = about.verdict ?? about.check ?? about.stageId ?? about.from;
  return typeof word === "string" ? `${name} ${word}` : name;
};
const NOISE = new Set(["StagePreFired", "StagePostFired", "StageExecutionSpanStart"]);

test("a stage that is steered, sends a bad payload, is refused a batch, fails its check and is tried again", async () => {
  const flow = sketchMachine(
    {
      plan: { schema: { type: "object", required: ["n"] }, assert: ["tests"], next: "end" },
      end: { turns: 1, attempts: 1 },
    },
    { checks: { tests: sketchCheck("tests", "true") } },
  );
  const { entries } = await play({
    flow,
    checks: [[{ ok: false, summary: "red" }]],
    model: [
      { text: "hm" },
      { output: {} },
      {
        calls: [
          { name: "done", input: {} },
          { name: "done", input: {} },
        ],
      },
      { output: { n: 1 } },
      { output: { n: 2 } },
      { text: "hm" },
    ],
  });
  const records = audit(ready(flow), entries);
  assert.deepEqual(records.filter(({ name }) => !NOISE.has(name)).map(recordText), [
    "SMAttached",
    "SessionTurnStart plan",
    "StageSteered",
    "StageParseError",
    "StageBatchRejected",
    "StageCheck tests",
    "StageAssertOutcome retry",
    "StageCheck tests",
    "StageAssertOutcome ok",
    "StageExited ok",
    "StageExecution plan",
    "SMTransition plan",
    "SessionTurnEnd plan",
    "SessionTurnStart end",
    "StageCapHit end",
    "StageAssertOutcome fail",
    "StageExited fail",
    "StageExecution end",
    "SMTransition end",
    "SessionTurnEnd end",
    "SMDetached",
  ]);
  const phases = records.flatMap(({ name, about }) =>
    about.stageId === "plan" && name.startsWith("StageP") && "phase" in about
      ? [`${name === "StagePreFired" ? ">" : "<"}${typeof about.phase === "string" ? about.phase : ""}`]
      : [],
  );
  assert.deepEqual(
    phases.join(" "),
    ">Setup <Setup >Init <Init >CheckGate <CheckGate >Act <Act >Assert <Assert >Act <Act >Assert <Assert >Exit <Exit >Next <Next",
  );
});

test("the same mistake in the next response is a mistake again, and told in each", async () => {
  const flow = sketchMachine({
    plan: { turns: 5, schema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } } },
  });
  const odd = { output: { n: "x" } };
  const other = { output: { n: 1.5, m: 2 } };
  for (const [model, mistakes] of [
    [[odd, { output: { n: 1 } }], 1],
    [[odd, odd, { output: { n: 1 } }], 2],
    [[odd, other, { output: { n: 1 } }], 2],
    [[odd, { text: "hm" }, { output: { n: 1 } }], 1],
    [[{ output: { n: 1 } }], 0],
  ] as const) {
    const { entries } = await play({ flow, model });
    const records = audit(ready(flow), entries);
    assert.equal(records.filter(({ name }) => name === "StageParseError").length, mistakes);
  }
});

test("every execution that begins is exited or ended, and siblings are one turn", async () => {
  const flow = sketchMachine({
    split: { next: { kind: "fork", steps: ["a", "b"], join: "meet" } },
    a: {},
    b: {},
    meet: {},
  });
  const { entries } = await play({
    flow,
    model: [
      { step: "split", output: {} },
      { step: "a", output: {} },
      { step: "b", output: {} },
      { step: "meet", output: {} },
    ],
  });
  const records = audit(ready(flow), entries);
  const count = (name: string) => records.filter((record) => record.name === name).length;
  assert.deepEqual(
    [
      count("StageExecutionSpanStart"),
      count("StageExited"),
      count("SessionTurnStart"),
      count("SessionTurnEnd"),
    ],
    [4, 4, 2, 2],
  );
});

test("a call that is denied is proposed, denied and cancelled, and one that is allowed has come to its end", async () => {
  const flow = sketchMachine({ plan: { tools: ["Write"] } });
  const toolbox: Toolbox = {
    offer: () => [{ name: "Write", description: "", input: {} }],
    judge: () => null,
    call: () => Promise.reject(new Error("a stage calls as a stage")),
    callGranted: (_step, batch) =>
      Promise.resolve({
        kind: "results",
        results: batch.map(({ id, name, input }) =>
          input.path === "a"
            ? { id, name, ok: true, content: "written" }
            : { id, name, ok: false, content: "no", ...(input.path === "b" && { denied: "not there" }) },
        ),
      }),
  };
  const calls = ["a", "b", "c"].map((path) => ({ name: "Write", input: { path } }));
  const { entries } = await play({ flow, model: [{ calls }, { output: {} }], ports: { toolbox } });
  const about = audit(ready(flow), entries)
    .filter(({ name }) => /^ToolInvocation(?!Proposed)|^Approval/.test(name))
    .map(({ name, about: { decision, source, reason, why, content } }) =>
      [name, decision, source, reason, why, content].filter((word) => typeof word === "string").join(" "),
    );
  assert.deepEqual(about, [
    "Approval approve sm-envelope",
    "ToolInvocationSucceeded written",
    "Approval deny gate",
    "ToolInvocationCancelled approval-denied not there",
    "Approval approve sm-envelope",
    "ToolInvocationFailed no",
  ]);
});
