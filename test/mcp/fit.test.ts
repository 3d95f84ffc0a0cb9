/** What a client is given is to be seen, and has a limit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/flow/json.ts";
import { cutText, fitted, plainDocument, plainText } from "../../src/mcp/fit.ts";

for (const [text, plain] of [
  ["two\nlines\tand a tab", "two\nlines\tand a tab"],
  ["    indented", "    indented"],
  ["naïve 日本 עברית 👩‍👧 ❤️", "naïve 日本 עברית 👩‍👧 ❤️"],
  ["\u001b[2Jx\u0000", "\\x1b[2Jx\\x00"],
  ["a\u202eb\u2066c", "a\\u202eb\\u2066c"],
  ["a\u200bb\u2060c\ufeffd\u00ade", "a\\u{200b}b\\u{2060}c\\u{feff}d\\u{ad}e"],
  ["x\u{e0048}\u{e0049}", "x\\u{e0048}\\u{e0049}"],
  ["x\u{e0100}y\ufe01", "x\\u{e0100}y\\u{fe01}"],
] as const)
  test(`${JSON.stringify(text)} is given as ${JSON.stringify(plain)}`, () =>
    assert.equal(plainText(text), plain));

test("every text and every name of a document is made plain, and nothing else", () => {
  const given = { "a\u200b": ["\u001b", { b: "\u202e" }], n: 1, yes: true, none: null };
  assert.deepEqual(plainDocument(given), {
    "a\\u{200b}": ["\\x1b", { b: "\\u202e" }],
    n: 1,
    yes: true,
    none: null,
  });
});

test("a document that fits stays, one that does not loses its longest members first", () => {
  const document: JsonObject = {
    run: "r",
    long: "x".repeat(500),
    longer: ['"'.repeat(1000)],
    short: "y".repeat(20),
  };
  const size = JSON.stringify(document).length;
  assert.deepEqual(fitted(document, size), document);
  const less = fitted(document, size - 1);
  assert.deepEqual([less.run, less.long, less.short], [document.run, document.long, document.short]);
  assert.deepEqual((less.longer as JsonObject).cut, true);
  for (const most of [2000, 1000, 700, 400, 300]) {
    const cut = fitted(document, most);
    assert.ok(JSON.stringify(cut).length <= most, `${most}: ${JSON.stringify(cut).length}`);
    assert.deepEqual([cut.run, cut.short], [document.run, document.short]);
  }
  const { characters, begins } = fitted(document, 400).longer as JsonObject;
  assert.equal(characters, JSON.stringify(document.longer).length);
  assert.ok(JSON.stringify(document.longer).startsWith(begins as string));
});

test("what is left out of a text is counted", () => {
  assert.equal(cutText("abc", 3), "abc");
  assert.equal(cutText("abcdef", 4), "abcd\n… 2 more characters");
});
