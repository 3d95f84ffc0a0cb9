/** The kept runs are about the scenarios of today: after a change of all of them nothing would be compared. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "./played.ts";
import { scenarios } from "./scenarios.ts";

test(
  "the runs of most scenarios are kept (npm run kept)",
  { skip: process.env.LOCKSTEP_RECORD === "kept" },
  () => {
    const all = Object.values(scenarios);
    const known = all.filter(isKept);
    assert.ok(known.length > all.length / 2, `${known.length} of ${all.length}`);
  },
);
