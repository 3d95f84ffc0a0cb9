import assert from "node:assert/strict";
import { test } from "node:test";
import type { Move, Step } from "../../../src/flow/flow.ts";
import { waysFrom } from "../../../src/load/rules/ways.ts";
import { random } from "../random.ts";

type Graph = { readonly [id: string]: readonly string[] };

function stepsOf(graph: Graph): ReadonlyMap<string, Step> {
  return new Map(
    Object.entries(graph).map(([id, targets]) => {
      const edges = targets.map((step, index): [string, Move] => [`to${index}`, { kind: "goto", step }]);
      return [id, { id, edges: Object.fromEntries(edges) } as unknown as Step];
    }),
  );
}

/** What can be reached from a step by at least one move, `wall` entered but not left. */
function reached(graph: Graph, from: string, wall: string | null): ReadonlySet<string> {
  const found = new Set<string>();
  const queue = [from];
  for (const id of queue) {
    if (id === wall) continue;
    for (const next of graph[id] ?? []) {
      if (found.has(next) || graph[next] === undefined) continue;
      found.add(next);
      queue.push(next);
    }
  }
  return found;
}

test("in random graphs the proofs say what trying every way says", () => {
  const next = random(7);
  for (let round = 0; round < 400; round++) {
    const ids = Array.from({ length: 2 + Math.floor(next() * 9) }, (_, index) => `s${index}`);
    const graph: Graph = Object.fromEntries(
      ids.map((id) => [id, ids.filter(() => next() < 1.6 / ids.length)]),
    );
    const ways = waysFrom("s0", stepsOf(graph));
    const live = new Set(["s0", ...reached(graph, "s0", null)]);
    const told = `round ${round}: ${JSON.stringify(graph)}`;
    for (const a of live) {
      for (const b of live) {
        if (a === b) continue;
        const around = b === "s0" || (a !== "s0" && reached(graph, "s0", a).has(b));
        assert.equal(ways.isAlwaysBefore(a, b), !around, `${told} ${a} ${b}`);
        assert.equal(ways.leadsTo(a, b), reached(graph, a, null).has(b), told);
        const path = ways.pathAround(a, b);
        assert.equal(path.length > 0, around, `${told} ${a} ${b}`);
        assert.ok(!path.slice(0, -1).includes(a), told);
        for (const [index, id] of path.slice(1).entries()) assert.ok(graph[path[index]!]!.includes(id), told);
      }
    }
    const traps = [...live].filter((id) =>
      [...reached(graph, id, null)].every((other) => other === id || reached(graph, other, null).has(id)),
    );
    assert.deepEqual(new Set(ways.traps().flat()), new Set(traps), told);
  }
});

test("a way back goes by another step where there is one", () => {
  const ways = waysFrom("a", stepsOf({ a: ["a", "b"], b: ["a", "c"], c: ["c"] }));
  assert.deepEqual(ways.roundTrip("a"), ["a", "b", "a"]);
  assert.deepEqual(ways.roundTrip("c"), ["c", "c"]);
});
