import assert from "node:assert/strict";
import { test } from "node:test";
import { slug } from "./slug.js";

test("a slug is lower case with dashes", () => {
  assert.equal(slug("Hello, World"), "hello-world");
});

test("a slug has no dashes at its ends", () => {
  assert.equal(slug(" ...Hello! "), "hello");
});
