/**
 * Every agent with a step registry under test/fixtures that loads, and the flows of the recorded runs there: generated
 * tests cover its steps and transitions, or it is proved that nothing can; no fuzzed run breaks a property.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import { hasErrors } from "../../src/flow/problem.ts";
import { load } from "../../src/run/load.ts";
import { parseBundle } from "../../src/run/records/bundle.ts";
import { prepareFlow } from "../../src/testing/flow-tests.ts";
import { fuzz } from "../../src/testing/fuzz.ts";
import { generate } from "../../src/testing/generate.ts";
import { filesOf, storedAgents } from "../baseline/agents.ts";
import { JOURNALS } from "../run/golden.ts";

/** What does not change where a flow can lead: of flows that differ in nothing else, one is enough. */
const BESIDE = new Set(
  "agent text title description criteria file tried flag settings version prompt system variables parameters edition sections command constants tools models model name finalize env timeoutMs extract github".split(
    " ",
  ),
);

function shapeOf(flow: Flow): string {
  return JSON.stringify(flow, (key, value: unknown) => (BESIDE.has(key) ? undefined : value));
}

async function fixtureFlows(): Promise<ReadonlyMap<string, Flow>> {
  const flows = new Map<string, Flow>();
  const shapes = new Set<string>();
  const add = (name: string, flow: Flow) => {
    if (flow.dialect === "stage") return;
    const shape = shapeOf(flow);
    if (!shapes.has(shape)) flows.set(name, flow);
    shapes.add(shape);
  };
  for (const file of readdirSync(JOURNALS)) {
    const { flows: recorded } = parseBundle(readFileSync(join(JOURNALS, file), "utf8"), file);
    for (const flow of Object.values(recorded)) add(file, flow);
  }
  for (const { key, name, tree } of storedAgents()) {
    const { flow, problems } = await load(name, { cwd: JOURNALS, files: filesOf(tree) });
    if (flow !== null && !hasErrors(problems)) add(key, flow);
  }
  return flows;
}

/** CI takes all of them; otherwise every fourth is enough, so that the suite stays short. */
const EVERY = process.env.PROOF_FIXTURES === "all" ? 1 : 4;

/** The search does not try every number of visits: this is said, and does not count as a proof. */
const COUNTED = /the verdict counts visits/;

test("steps and transitions of every fixture agent are covered by generated tests, or proved to be out of reach", async () => {
  const flows = await fixtureFlows();
  assert.ok(flows.size > 100, `${flows.size} flows`);
  let doubted = 0;
  for (const [name, flow] of [...flows].filter((_, place) => place % EVERY === 0)) {
    const prepared = await prepareFlow(flow);
    const { missing } = await generate(prepared, new Map());
    const kept = missing.filter(({ element: { kind } }) => kind === "steps" || kind === "transitions");
    for (const { element, doubt } of kept) {
      assert.match(doubt ?? "the verdict counts visits", COUNTED, `${name}: ${element.id}`);
      if (doubt !== null) doubted += 1;
    }
    if (kept.length === 0 && [...flows.keys()].indexOf(name) % 3 > 0) continue;
    const { broken, hits } = await fuzz(prepared, { runs: 8 });
    assert.deepEqual(
      broken.map(({ property, what }) => `${property}: ${what}`),
      [],
      name,
    );
    for (const { element } of kept) assert.ok(!hits.has(element.id), `${name}: fuzz shows ${element.id}`);
  }
  assert.ok(doubted < flows.size / 20, `${doubted} transitions are neither covered nor proved`);
});

for (const [key, steps] of [
  ["check-006", 1],
  ["check-232", 1],
  ["check-522", 2],
] as const)
  test(`fuzz finds the answers of ${key} that fit their schema and end the run for want of a label`, async () => {
    const { name, tree } = storedAgents().find((stored) => stored.key === key)!;
    const { flow } = await load(name, { cwd: JOURNALS, files: filesOf(tree) });
    const { weaknesses } = await fuzz(await prepareFlow(flow!), { runs: 60 });
    const legal = weaknesses.filter(({ code }) => code === "FUZZ-LEGAL-END");
    assert.equal(new Set(legal.map(({ step }) => step)).size, steps);
  });
