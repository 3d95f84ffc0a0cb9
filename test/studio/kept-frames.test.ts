/** The frames of a run as the studio keeps and sends them: any part of them is the same as frames and as bytes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prepare } from "../../src/engine/schema/prepared.ts";
import type { Entry } from "../../src/flow/event.ts";
import { story } from "../../src/story/story.ts";
import { createKeptFrames, TOGETHER } from "../../src/studio/kept-frames.ts";
import { createFrames, type Frame } from "../../src/tell/frames.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play } from "../../src/testing/scenario.ts";

const frame = (seq: number): Frame => [seq, 10 * seq, "step.answered", `„${seq}"\u202e`, 1, 0];

const parts = [
  { name: "all of few", count: 3, from: 0, to: 3 },
  { name: "one that stands alone", count: TOGETHER + 1, from: TOGETHER, to: TOGETHER + 1 },
  { name: "what is kept together", count: 3 * TOGETHER, from: TOGETHER, to: 2 * TOGETHER },
  { name: "from the middle to the middle", count: 3 * TOGETHER + 7, from: 50, to: 2 * TOGETHER + 20 },
  { name: "the newest", count: 2 * TOGETHER + 9, from: 2 * TOGETHER + 4, to: 2 * TOGETHER + 9 },
  { name: "more than there are", count: TOGETHER + 30, from: TOGETHER, to: 9 * TOGETHER },
  { name: "what is not there yet", count: TOGETHER, from: TOGETHER, to: 2 * TOGETHER },
  { name: "nothing of nothing", count: 0, from: 0, to: 1 },
];

for (const { name, count, from, to } of parts)
  test(`${name}: the frames and the bytes are those that were added`, () => {
    const kept = createKeptFrames();
    const all = Array.from({ length: count }, (_, place) => frame(place + 1));
    for (const one of all) kept.add(JSON.stringify(one));
    assert.equal(kept.count(), count);
    assert.deepEqual(kept.slice(from, to), all.slice(from, to));
    const text = Buffer.concat([...kept.bytes(from, to)]).toString();
    assert.deepEqual(JSON.parse(`[${text}]`), all.slice(from, to));
  });

test("what stands where a number should be leaves the other frames readable", async () => {
  const flow = sketchFlow({ a: { edges: { next: "b" } }, b: { edges: { done: null } } });
  const says = (action: string) => ({ output: { next_action: { action } } });
  const { entries } = await play({ flow, model: [says("next"), says("done")] });
  const odd = entries.map((entry): Entry => {
    const moved: unknown = '"]';
    return entry.seq === 2 ? { ...entry, moved: moved as number } : entry;
  });
  const next = createFrames();
  const frames = [...story(await prepare(flow), odd)].map((moment) => JSON.parse(next(moment)) as Frame);
  assert.deepEqual(
    frames.map(([seq, ms]) => [seq, ms === null]),
    entries.map(({ seq }) => [seq, seq > 1]),
  );
});
