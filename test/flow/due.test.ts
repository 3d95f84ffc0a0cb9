/** What an effect belongs to: as it is recorded, and as keys of earlier versions say it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { effectOf } from "../../src/flow/due.ts";

const KEYS = [
  ["issue.begin.add", "begin"],
  ["issue.github", "begin"],
  ["issue.blocked.remove in progress", "blocked"],
  ["issue.end.close", "close"],
  ["issue.end.strange", "close"],
  ["commit", "publish"],
  ["remove", "publish"],
  ["pull-request", "publish"],
  ["submodule action/a@1/0 4b1d", "publish"],
  ["action/initial.a@1/0", { step: "initial.a", visit: 1 }],
  ["action/initial.a@12/3/label x@1/2", { step: "initial.a", visit: 12 }],
  ["action/a/b@2/0/close", { step: "a/b", visit: 2 }],
] as const;

for (const [key, of] of KEYS)
  test(`the key ${key}`, () => {
    assert.deepEqual(effectOf({ key }), of);
    // What is recorded counts.
    assert.equal(effectOf({ key, of: "publish" }), "publish");
  });
