/** Coverage is the same from a test, from its bundle and after a resume; its files name every element once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { FlowTest } from "../../src/flow/flow-test.ts";
import { ELEMENT_KINDS } from "../../src/flow/test-settings.ts";
import { argumentsFor } from "../../src/proof/arguments.ts";
import { cover, hitsIn } from "../../src/proof/cover.ts";
import { coverageOf, gapsIn, missedIn, percent, toLcov, type PlaceOf } from "../../src/proof/coverage.ts";
import { elementsOf } from "../../src/proof/elements.ts";
import { generate } from "../../src/testing/generate.ts";
import { runInMemory } from "../../src/testing/ground.ts";
import { runTest } from "../../src/testing/flow-tests.ts";
import { exampleAgents, type ExampleAgent } from "./examples.ts";

const agents = await exampleAgents();
const placeOf =
  ({ loaded }: ExampleAgent): PlaceOf =>
  (part) => {
    const written = loaded.origin(part)?.origin;
    return written === undefined || written.kind === "default" ? null : written;
  };

for (const { name, flow } of agents)
  test(`${name}: the same from a test, from its bundle and after a resume`, async () => {
    const { tests } = await generate(flow, new Map());
    for (const one of tests.toReversed().slice(0, MOST)) {
      const { outcomes, ran } = await runTest(flow, one);
      const hits = hitsIn(outcomes!.moments);
      const bundled = JSON.parse(JSON.stringify(ran!.entries)) as readonly Entry[];
      assert.deepEqual(cover(flow, bundled), hits, one.name);
      const params = argumentsFor(flow, one.params);
      const given: FlowTest = { ...one, params };
      const cut = Math.ceil(ran!.entries.length / 2);
      const resumed = await runInMemory(flow, given, ran!.entries.slice(0, cut));
      assert.deepEqual(
        [...cover(flow, resumed.entries).keys()].toSorted(),
        [...hits.keys()].toSorted(),
        `${one.name}, cut after entry ${cut}`,
      );
    }
  });

/** The longest ways of each agent. */
const MOST = 12;

test("a document names every element once, with the place where it is written", () => {
  for (const agent of agents) {
    const { elements, totals } = coverageOf(agent.flow, "d", [], placeOf(agent));
    assert.deepEqual(
      elements.map(({ id }) => id),
      elementsOf(agent.flow).map(({ id }) => id),
    );
    const sum = ELEMENT_KINDS.reduce((all, kind) => all + totals[kind].of, 0);
    assert.equal(sum, elements.length);
    const steps = elements.filter(({ kind }) => kind === "steps");
    for (const { id, file, line } of steps) assert.ok(file !== null && line! > 0, `${agent.name} ${id}`);
  }
});

const [first] = agents;

test("hits, ignored elements, gaps and thresholds", () => {
  const { flow } = first!;
  const [step] = elementsOf(flow);
  const shown = [
    { name: "a", hits: new Map([[step!.id, 2]]) },
    {
      name: "b",
      hits: new Map([
        [step!.id, 1],
        ["gone", 4],
      ]),
    },
  ];
  const ignore = [
    { id: "continuation.issue", why: "because", line: 3 },
    { id: "no such element", why: "because", line: 4 },
  ];
  const coverage = coverageOf(flow, "d", shown, () => null, ignore);
  const [covered] = coverage.elements;
  assert.deepEqual([covered!.hits, covered!.by], [3, ["a", "b"]]);
  assert.deepEqual(coverage.totals.steps, { covered: 1, of: 2 });
  assert.deepEqual(coverage.stale, [ignore[1]]);
  assert.ok(!gapsIn(coverage).some(({ id }) => id === "continuation.issue" || id === step!.id));
  assert.deepEqual(missedIn(coverage, { steps: 50, checks: 1 }), [{ kind: "checks", least: 1, got: 0 }]);
  assert.deepEqual(missedIn(coverage, { steps: 50.1 }), [{ kind: "steps", least: 50.1, got: 50 }]);
  assert.equal(percent({ covered: 999, of: 1000 }), 99.9);
  assert.equal(percent({ covered: 0, of: 0 }), 100);
});

test("every line of lcov is one where an element is written, and its sums are right", () => {
  for (const agent of agents) {
    const coverage = coverageOf(agent.flow, "d", [], placeOf(agent));
    const text = toLcov(coverage);
    for (const record of text.split("end_of_record\n").filter((one) => one.trim() !== "")) {
      const file = /^SF:(.*)$/m.exec(record)![1];
      const lines = new Set(coverage.elements.filter((one) => one.file === file).map(({ line }) => line));
      const written = [...record.matchAll(/^DA:(\d+),(\d+)$/gm)];
      assert.deepEqual(new Set(written.map(([, line]) => Number(line))), lines);
      assert.equal(Number(/^LF:(\d+)$/m.exec(record)![1]), written.length);
      const branches = [...record.matchAll(/^BRDA:(\d+),0,(\d+),(-|\d+)$/gm)];
      assert.equal(Number(/^BRF:(\d+)$/m.exec(record)![1]), branches.length);
      for (const [, line] of branches) assert.ok(lines.has(Number(line)));
    }
  }
});
