/** The kept findings are about the agents of today: after a change of the good agents nothing would be compared. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isKept } from "./findings.ts";
import { stageTree } from "./stage-world.ts";
import { tree } from "./world.ts";

test(
  "findings are kept of the good agents (npm run kept)",
  { skip: process.env.LOCKSTEP_RECORD === "kept" },
  () => {
    assert.ok(isKept("iterator", tree()));
    assert.ok(isKept("release", stageTree()));
    assert.equal(isKept("iterator", tree({ "agent /displayName": "another" })), false);
  },
);
