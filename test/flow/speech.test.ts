/** The words of a journal are pinned to the number by which programs know whether they understand each other. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SPEECH } from "../../src/flow/event.ts";

/** The kinds of events that programs of each speech write. A line that was published is not changed any more. */
const KINDS: { readonly [speech: number]: readonly string[] } = {
  1: [
    "effect.applied effect.failed effect.held effect.intended",
    "run.adopted run.edited run.ended run.left run.limited run.noted run.paused run.resumed run.started run.stopped run.yielded",
    "step.answered step.asked step.called step.checked step.cut step.hooked step.looked step.suspended step.told step.waited step.warned",
  ],
};

test("a kind of event that older programs cannot read needs a higher SPEECH", () => {
  const source = readFileSync(new URL("../../src/flow/event.ts", import.meta.url), "utf8");
  const union = source.slice(source.indexOf("export type Event ="));
  const written = new Set(
    [...union.matchAll(/readonly type: ([^;}]+)/g)].flatMap(([, names = ""]) =>
      [...names.matchAll(/"([a-z.]+)"/g)].map(([, name = ""]) => name),
    ),
  );
  assert.deepEqual(
    [...written].toSorted(),
    (KINDS[SPEECH] ?? []).flatMap((line) => line.split(" ")).toSorted(),
    "Raise SPEECH in src/flow/event.ts, and add the kinds of that speech here: an older worker must leave such a run alone.",
  );
  assert.deepEqual(
    Object.keys(KINDS).map(Number),
    Array.from({ length: SPEECH }, (_, place) => place + 1),
  );
});
