/** Foreign text on one line, and the answer that typed words mean. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerFrom } from "../../../src/flow/question.ts";
import { ended, escapedInLine, shellWord, shown, shownInLine } from "../../../src/flow/text/harmless.ts";

test("foreign text is spelled out, folded into one line and cut", () => {
  const rows: readonly (readonly [text: string, shown: string])[] = [
    ["plain", "plain"],
    ["two  spaces", "two  spaces"],
    ["a\nb", "a b"],
    ["a \n\t b", "a b"],
    ["ab\u001b[31m", "ab\\x1b[31m"],
    ["a\u202eb", "a\\u202eb"],
    ["a\rb", "a\\rb"],
    ["x".repeat(200), "x".repeat(200)],
    ["x".repeat(201), `${"x".repeat(199)}…`],
  ];
  for (const [text, line] of rows) assert.equal(shownInLine(text), line);
  assert.equal(shownInLine("abcdef", 4), "abc…");
  assert.equal(shown("a\n\tb\u0007"), "a\n\tb\\x07");
  assert.equal(escapedInLine("a\nb\tc", 20), "a\\nb\\tc");
  assert.equal(escapedInLine("abcdef", 4), "abc…");
  assert.equal(escapedInLine("abcd", 4), "abcd");
});

test("a text as a sentence, and a word for a shell", () => {
  for (const whole of ["Done.", "Done!", "Done…", 'He said "no."', "(yes.)"])
    assert.equal(ended(whole), whole);
  assert.deepEqual(["Done", "Done. ", "a.b"].map(ended), ["Done.", "Done.", "a.b."]);
  assert.deepEqual(["a/b.c", "", "a b", "it's", "a;b"].map(shellWord), [
    "a/b.c",
    "''",
    "'a b'",
    "'it'\\''s'",
    "'a;b'",
  ]);
});

test("typed words mean a whole choice before a part of one, and as written before in another case", () => {
  const rows: readonly (readonly [
    choices: readonly string[],
    free: boolean,
    typed: string,
    meant: string | null,
  ])[] = [
    [["yes", "no"], false, " YES ", "yes"],
    [["yes", "no"], false, "y", "yes"],
    [["yes", "yesterday"], false, "yes", "yes"],
    [["year", "yes"], false, "ye", null],
    [["Yes", "YES"], false, "yes", "Yes"],
    [["Yes", "YES"], false, "YES", "YES"],
    [["yes", "no"], false, "maybe", null],
    [["yes", "no"], false, "  ", null],
    [["yes", "no"], true, "y", "y"],
    [["yes", "no"], true, "No", "no"],
    [[], true, "words ", "words"],
  ];
  for (const [choices, free, typed, meant] of rows)
    assert.equal(answerFrom({ choices, free }, typed), meant, typed);
});
