/** `STEP LABEL` is an answer that the step accepts, for every live step and label of every example. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnswer } from "../../src/engine/decide/gate.ts";
import { answerLabels, draftAnswer, draftsOf } from "../../src/proof/answers.ts";
import { expandReplies } from "../../src/proof/expand.ts";
import { outlineOf } from "../../src/tell/outline.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { exampleAgents } from "./examples.ts";

for (const { name, flow } of await exampleAgents())
  test(`${name}: every label of every live step can be said`, () => {
    const live = outlineOf(flow).nodes.filter(({ isReached, by }) => isReached && by === "model");
    for (const { id } of live) {
      const step = flow.steps[id]!;
      if (step.answer.kind !== "object" || step.stage !== undefined) continue;
      for (const label of answerLabels(step)) {
        const draft = draftAnswer(step, label);
        assert.equal(draft.kind, "answer", `${id} ${label}: ${JSON.stringify(draft)}`);
        if (draft.kind !== "answer") continue;
        const reading = readAnswer(step, step.answer, draft.payload);
        assert.equal(reading.kind === "label" ? reading.label : reading.kind, label);
        const expanded = expandReplies(flow, [{ line: 1, step: id, label }]);
        assert.deepEqual(expanded.kind === "replies" && expanded.replies[0]?.output, draft.payload);
      }
    }
  });

test("a label that the step cannot give, and a step that does not exist, are refused with the reason", () => {
  const flow = sketchFlow({ one: { edges: { next: null } } });
  const wrong = draftAnswer(flow.steps.one!, "back");
  assert.ok(wrong.kind === "none" && /"back"/.test(wrong.why));
  const lost = expandReplies(flow, [{ line: 4, step: "two", label: "next" }]);
  assert.ok(lost.kind === "none" && lost.line === 4 && /no step "two"/.test(lost.why));
});

test("each branch of a label has an answer of its own", () => {
  const flow = sketchFlow({ one: { edges: { next: null, again: "one" } } });
  assert.deepEqual(
    draftsOf(flow.steps.one!).map(({ label }) => label),
    ["next", "again", "abort"],
  );
});
