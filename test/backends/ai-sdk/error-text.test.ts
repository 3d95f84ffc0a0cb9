/** What is read from the body of a refusal, of whatever shape and length. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readBody } from "../../../src/backends/ai-sdk/error-text.ts";

const rows: readonly (readonly [body: string, isPage: boolean, words: RegExp])[] = [
  ["<html><title>Sign in</title>", true, /^the answer is an HTML page \("Sign in"\)/],
  ['<!DOCTYPE html><title lang="en">Sign in</title>', true, /"Sign in"/],
  ["<?xml version='1.0'?>\n<!-- a -->\n<!-- b --> <HTML>", true, /an HTML page, probably/],
  ["<!----><div>", true, /an HTML page/],
  ["<!-- <html> --> sorry", false, /sorry$/],
  ["<!-- <html>", false, /^<!-- <html>$/],
  ["<?xml <html", false, /^<\?xml <html$/],
  ["<htmlx>", false, /^<htmlx>$/],
  ['{"error":{"message":"no"}}', false, /^no$/],
];
for (const [body, isPage, words] of rows)
  test(`the body ${body}`, () => {
    const said = readBody(body);
    assert.equal(said.isPage ?? false, isPage);
    assert.match(said.words ?? "", words);
  });

test("a body of a great many comments is read", () => {
  const comments = "<!-- -->".repeat(100_000);
  for (const body of [comments, `${comments}x`, `${comments}<html>`, `<html>${"<title".repeat(100_000)}`])
    assert.ok(readBody(body).words!.length > 0);
});
