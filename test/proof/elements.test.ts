/** The universe of coverage: every kind grows with the part of the flow that it is about, and with nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ELEMENT_KINDS } from "../../src/flow/test-settings.ts";
import { elementsOf } from "../../src/proof/elements.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import { exampleAgents } from "./examples.ts";

const agents = await exampleAgents();

test("every element has one name, and the steps are those that a run can come to", () => {
  for (const { name, flow } of agents) {
    const elements = elementsOf(flow);
    assert.equal(new Set(elements.map(({ id }) => id)).size, elements.length, name);
    for (const { step } of elements) assert.ok(step === null || Object.hasOwn(flow.steps, step), name);
  }
});

test("every kind occurs in the examples, and none in all of its forms by chance", () => {
  for (const kind of ELEMENT_KINDS) {
    const counts = agents.map(({ flow }) => elementsOf(flow).filter((one) => one.kind === kind).length);
    assert.ok(Math.max(...counts) > 0, kind);
    assert.ok(new Set(counts).size > 1, `${kind} varies: ${counts.join(" ")}`);
  }
});

const guard = {
  on: "next",
  checks: [{ check: "tests", edition: sketchPrompt("Fix it.") }],
  onFailure: "retry",
  maxFailures: 3,
  back: { kind: "goto", step: "one" },
} as const;
const checks = { tests: sketchCheck("tests", "npm test") };

const idsOf = (flow: ReturnType<typeof sketchFlow>) => new Set(elementsOf(flow).map(({ id }) => id));

test("a step that no way leads to is not counted", () => {
  const ids = idsOf(sketchFlow({ one: { edges: { next: null } }, lost: { edges: { next: null } } }));
  assert.ok(ids.has("one"));
  assert.ok(![...ids].some((id) => id.startsWith("lost")));
});

test("a guard adds its checks, its edition, the way back and its limit", () => {
  const plain = idsOf(sketchFlow({ one: { edges: { next: null } } }));
  const guarded = idsOf(sketchFlow({ one: { edges: { next: null }, guard } }, { checks }));
  const pattern = checks.tests.pattern;
  assert.deepEqual(
    [...guarded].filter((id) => !plain.has(id)).toSorted(),
    [
      "one check tests fails",
      "one check tests passes",
      "one reaches its failures",
      `one says ${pattern}`,
      "one x -> one",
    ].toSorted(),
  );
});

test("an edge adds its way and its answer", () => {
  const plain = idsOf(sketchFlow({ one: { edges: { next: null } } }));
  const more = idsOf(sketchFlow({ one: { edges: { next: null, again: "one" } } }));
  const added = new Set([...more].filter((id) => !plain.has(id)));
  assert.ok(added.has("one again -> one"));
  assert.ok(added.has("one answers with again"));
});
