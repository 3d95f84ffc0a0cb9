/** Paths in placeholders, there and back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldPathText, parseFieldPath } from "../../../src/flow/text/placeholder.ts";

for (const [written, path] of [
  ["a", ["a"]],
  ["a.b", ["a", "b"]],
  ["a[0]", ["a", "0"]],
  ["a[0].b[12]", ["a", "0", "b", "12"]],
  ["0", ["0"]],
  ["0.a", ["0", "a"]],
  ["a.b2", ["a", "b2"]],
] as const) {
  test(written, () => {
    assert.deepEqual([...(parseFieldPath(written) ?? [])], path);
    assert.equal(fieldPathText(path), written);
  });
}

for (const written of ["", ".a", "a.", "a[", "a[b]", "a b", "a..b"])
  test(`not a path: "${written}"`, () => assert.equal(parseFieldPath(written), null));
