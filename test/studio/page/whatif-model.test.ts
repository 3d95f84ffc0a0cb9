/** Recorded runs against the files as they are now: groups, places and words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { partingPlace, wayWords, whatIfGroups } from "../../../src/studio/page/screens/whatif-model.ts";
import type { RunWhatIf } from "../../../src/tell/what-if.ts";

const led = (step: string, visit: number, label: string | null, to: string | null) => ({
  step,
  visit,
  label,
  to,
});
const ran = (run: string, kind: RunWhatIf["kind"], more: object = {}) =>
  ({ run, kind, at: null, recorded: null, derived: null, stuck: null, ...more }) as unknown as RunWhatIf;
const parts = (was: object | null, now: object | null) => ({ at: { recorded: was, derived: now } });

test("runs are grouped by the place where they part, the largest group first", () => {
  const groups = whatIfGroups([
    ran("same", "same"),
    ran("one", "path", parts(led("a", 1, "next", "b"), led("a", 1, "next", "c"))),
    ran("two", "stuck", { stuck: { step: "b", visit: 1, why: "no answer" } }),
    ran("three", "path", parts(led("b", 1, "x", null), led("b", 1, "y", null))),
    ran("four", "path", parts(led("b", 1, "x", null), null)),
    ran("five", "verdict"),
  ]);
  assert.deepEqual(
    groups.map(({ at, kind, runs }) => [at, kind, runs.map(({ run }) => run).join(" ")]),
    [
      ["b@1", "changed", "three four"],
      ["a@1", "changed", "one"],
      ["b@1", "stuck", "two"],
      [null, "changed", "five"],
    ],
  );
});

for (const [name, run, place, was, now] of [
  [
    "another edge",
    ran("r", "path", parts(led("a", 2, "next", "b"), led("a", 2, "done", null))),
    "a@2",
    "next → b",
    "done → end",
  ],
  [
    "it goes on where it ended",
    ran("r", "path", parts(null, led("a", 1, null, "c"))),
    "a@1",
    "nothing",
    "no label → c",
  ],
  [
    "it parts where nothing is recorded",
    ran("r", "stuck", {
      ...parts(led("a", 1, "x", "b"), null),
      stuck: { step: "c", visit: 1, why: "no answer of c" },
    }),
    "a@1",
    "x → b",
    "no answer of c",
  ],
  [
    "it cannot be followed",
    ran("r", "stuck", {
      recorded: { outcome: "completed", code: null },
      stuck: { step: "c", visit: 3, why: "gone" },
    }),
    "c@3",
    "completed",
    "gone",
  ],
  [
    "another end",
    ran("r", "verdict", {
      recorded: { outcome: "completed", code: null },
      derived: { outcome: "failed", code: "X" },
    }),
    null,
    "completed",
    "failed (X)",
  ],
  [
    "it has not ended",
    ran("r", "verdict", { derived: { outcome: "failed", code: "X" } }),
    null,
    "not ended",
    "failed (X)",
  ],
  ["it cannot be read", ran("r", "stuck", { damaged: "entry 3 is damaged" }), null, "", "entry 3 is damaged"],
] as const)
  test(`what if: ${name}`, () => assert.deepEqual([partingPlace(run), wayWords(run)], [place, { was, now }]));
