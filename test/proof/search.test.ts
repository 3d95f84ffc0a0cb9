/** Generated tests: everything of every example is found, each test passes, also after it was written and read again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readTests } from "../../src/load/tests.ts";
import { hitsIn } from "../../src/proof/cover.ts";
import { elementsOf } from "../../src/proof/elements.ts";
import { writeTests } from "../../src/proof/write-tests.ts";
import { runTest } from "../../src/testing/flow-tests.ts";
import { generate } from "../../src/testing/generate.ts";
import { filesOf } from "../load/world.ts";
import { exampleAgents } from "./examples.ts";

for (const { name, flow } of await exampleAgents())
  test(`${name}: every element is found, and every test passes from its text`, async () => {
    const made = await generate(flow, new Map());
    assert.deepEqual(made.astray, []);
    assert.deepEqual(made.missing, []);
    const text = writeTests(made.tests, [], null);
    const read = readTests(flow, filesOf({ [`.agent/${flow.agent}/tests/generated.yaml`]: text }));
    assert.deepEqual(read.problems, []);
    const shown = new Set<string>();
    for (const one of read.tests) {
      assert.equal(one.generated, true);
      const { status, unmet, outcomes } = await runTest(flow, one);
      assert.equal(status, "passed", `${one.name}: ${JSON.stringify(unmet)}`);
      const hits = hitsIn(outcomes!.moments);
      for (const id of one.covers) assert.ok(hits.has(id), `${one.name} shows ${id}`);
      for (const id of hits.keys()) shown.add(id);
    }
    assert.deepEqual(
      elementsOf(flow).filter(({ id }) => !shown.has(id)),
      [],
    );
  });

test("what is shown already is not generated again, and one element can be asked for", async () => {
  const [first] = await exampleAgents();
  const { flow } = first!;
  const all = elementsOf(flow);
  const whole = await generate(flow, new Map(all.map(({ id }) => [id, 1])));
  assert.deepEqual([whole.tests, whole.missing], [[], []]);
  const one = await generate(flow, new Map(), { only: "closure.issue check git-clean fails" });
  assert.equal(one.tests.length, 1);
  assert.deepEqual(one.tests[0]!.covers, ["closure.issue check git-clean fails"]);
});
