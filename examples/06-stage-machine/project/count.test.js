import assert from "node:assert/strict";
import { test } from "node:test";
import { count } from "./count.js";

test("every word is counted", () => {
  assert.deepEqual(count("to be or not to be"), { to: 2, be: 2, or: 1, not: 1 });
});
