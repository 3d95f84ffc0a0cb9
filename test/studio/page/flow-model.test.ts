/** How often recorded runs took each way, under the names that the picture of a flow has for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { keysOfWay } from "../../../src/studio/page/picture.ts";
import { takenCounts } from "../../../src/studio/page/screens/flow-model.ts";
import type { Edge } from "../../../src/tell/outline.ts";

const edge = (from: string, label: string, to: Edge["to"], more: Partial<Edge> = {}): Edge => ({
  from,
  label,
  as: null,
  kind: "goto",
  by: "model",
  when: [],
  to,
  isLoop: false,
  isTacit: false,
  ...more,
});
const step = (id: string) => ({ kind: "step", step: id }) as const;
const END = { kind: "end", outcome: "completed" } as const;

test("a picture adds up all names of a way, and each edge is counted once", () => {
  const edges = [
    edge("a", "next", step("b")),
    edge("a", "skip", step("b")),
    edge("b", "closing", END, { as: "done" }),
    edge("b", "closing", step("a"), { kind: "back" }),
    edge("b", "jump", { kind: "any", field: "to", among: ["a", "b"] }),
  ];
  const counts = takenCounts({ edges }, [2, 3, 4, 5, 6]);
  const taken = (...ways: readonly Edge[]) =>
    keysOfWay({ from: ways[0]!.from, to: ways[0]!.to, edges: ways }).reduce(
      (sum, key) => sum + (counts.get(key) ?? 0),
      0,
    );
  assert.equal(taken(edges[0]!, edges[1]!), 5);
  assert.equal(taken(edges[2]!), 4);
  assert.equal(taken(edges[3]!), 5);
});
