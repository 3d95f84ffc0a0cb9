/** Taking turns: one after the other under one name, side by side under two. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inTurn } from "../../../src/effects/process/turn.ts";

test("work under one name is done one after the other, also after one that failed", async () => {
  const told: string[] = [];
  const work = (name: string, fails = false) =>
    inTurn("here", async () => {
      told.push(`${name} begins`);
      await Promise.resolve();
      told.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const all = await Promise.allSettled([work("a"), work("b", true), work("c")]);
  assert.deepEqual(
    all.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual(told, ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("work under another name does not wait", async () => {
  let free = () => {};
  const held = inTurn("one", () => new Promise<void>((resolve) => (free = resolve)));
  assert.equal(await inTurn("other", async () => "done"), "done");
  free();
  await held;
});
