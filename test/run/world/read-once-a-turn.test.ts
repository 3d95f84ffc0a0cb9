/** What the runs of one turn share: it is read once, and read again in the next turn. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { inThisTurn } from "../../../src/run/world/read-once-a-turn.ts";

describe("run: what runs of the same turn read of the machine", () => {
  it("is read once in a turn for the same parts, and again in the next", async () => {
    let reads = 0;
    const read = (...parts: readonly unknown[]) => inThisTurn(parts, () => (reads += 1));
    const [flow, other] = [{}, {}];
    assert.deepEqual([read("a", flow), read("a", flow), read("a", other), read("b", flow)], [1, 1, 2, 3]);
    await setImmediate();
    assert.deepEqual([read("a", flow), read("a", flow)], [4, 4]);
  });
});
