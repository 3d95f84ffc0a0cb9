import assert from "node:assert/strict";
import { test } from "node:test";
import {
  age,
  createPaint,
  duration,
  jsonLine,
  shellWord,
  shown,
  shownInLine,
  table,
  wrapped,
} from "../../../src/cli/text/text.ts";

const HOSTILE = "a\u001b[31mb\u0007\u009b2J\u202ec\r\u0000";

test("what a terminal would obey is spelled out", () => {
  assert.equal(shown(HOSTILE), "a\\x1b[31mb\\x07\\x9b2J\\u202ec\\r\\x00");
  assert.equal(shown("two\nlines\tand a tab, é 漢 👍🏽"), "two\nlines\tand a tab, é 漢 👍🏽");
});

test("text on one line has no line ends and an end", () => {
  assert.equal(shownInLine("a\n  b\tc"), "a b c");
  assert.equal(shownInLine("a\u001bb"), "a\\x1bb");
  assert.equal(shownInLine("x".repeat(300)).length, 200);
});

test("JSON for a terminal holds no control character and says the same", () => {
  for (const indent of [undefined, 2]) {
    const text = jsonLine({ HOSTILE }, indent);
    assert.deepEqual(JSON.parse(text), { HOSTILE });
    assert.doesNotMatch(text.replaceAll("\n", ""), /[\p{Cc}\u202e]/u);
  }
  assert.doesNotMatch(jsonLine({ text: "a\nb" }), /\n/);
});

test("colours are there or not", () => {
  assert.equal(createPaint(false)("red", "x"), "x");
  const paint = createPaint(true);
  assert.equal(paint("red", "x"), "\u001b[31mx\u001b[39m");
  assert.equal(createPaint(true, ";7")("red", "x"), "\u001b[31;7mx\u001b[39;7m");
  const inner = paint("dim", `a${paint("bold", "b")}c`);
  assert.equal(inner, "\u001b[2ma\u001b[1mb\u001b[22m\u001b[2mc\u001b[22m");
});

test("columns line up", () => {
  assert.deepEqual(
    table([
      ["a", "bb", "c"],
      ["aaa", "b", "ccc"],
    ]),
    ["a    bb  c", "aaa  b   ccc"],
  );
  assert.deepEqual(table([]), []);
});

for (const [ms, long, short] of [
  [0, "0 ms", "0s"],
  [-5, "0 ms", "0s"],
  [999, "999 ms", "0s"],
  [2400, "2.4 s", "2s"],
  [200_000, "3 min 20 s", "3m"],
  [18_720_000, "5 h 12 min", "5h"],
  [400_000_000, "4 d", "4d"],
] as const) {
  test(`${ms} ms is ${long}, or ${short} ago`, () => {
    assert.equal(duration(ms), long);
    assert.equal(age(ms), short);
  });
}

for (const [word, quoted] of [
  ["plain-word_1.yaml", "plain-word_1.yaml"],
  ["two words", "'two words'"],
  ["it's", `'it'\\''s'`],
  ["", "''"],
  ["$(x)", "'$(x)'"],
] as const) {
  test(`a shell reads ${quoted} as one word`, () => assert.equal(shellWord(word), quoted));
}

test("a line that is too long is broken between words, and goes on behind its indent", () => {
  const cases = [
    ["  short", 10, "  short"],
    ["  one two three", 9, "  one two\n    three"],
    ["  onewordthatislong x", 8, "  onewordthatislong\n    x"],
    ["漢漢 漢漢", 8, "漢漢\n  漢漢"],
    ["\u001b[2m    dim one two\u001b[22m", 11, "\u001b[2m    dim one\n      two\u001b[22m"],
    ["", 5, ""],
  ] as const;
  for (const [line, width, expected] of cases) assert.equal(wrapped(line, width), expected);
});
