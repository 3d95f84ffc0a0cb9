import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { literalsOf } from "../../../src/boundaries/tools/literals.ts";
import { createDice, madePattern, madeText } from "../patterns.ts";

describe("the texts of which one stands wherever the pattern matches", () => {
  const cases: readonly [string, readonly string[] | null][] = [
    ["needle", ["needle"]],
    ["a b-c_d", ["a b-c_d"]],
    ["foo\\.bar\\(\\)", ["foo.bar()"]],
    ["\\/\\-\\[x\\]", ["/-[x]"]],
    ["^needle$", ["needle"]],
    ["\\bneedle\\b", ["needle"]],
    ["foo.*barn", ["barn"]],
    ["foo\\d+", ["foo"]],
    ["fooo?", ["foo"]],
    ["abc*de", ["ab"]],
    ["abc+de", ["abc"]],
    ["abc{0,3}de", ["ab"]],
    ["abc{2}de", ["abc"]],
    ["abc{2,}?d", ["abc"]],
    ["ab{x}", ["ab{x}"]],
    ["ab{,2}", ["ab{,2}"]],
    ["ab]}", ["ab]}"]],
    ["foo|barn", ["foo", "barn"]],
    ["(foo|bar)x", ["foo", "bar"]],
    ["(foo|bar)some", ["some"]],
    ["(?:foo)+", ["foo"]],
    ["(?<name>foo)", ["foo"]],
    ["(foo)?ab", ["ab"]],
    ["(?:foo){0}ab", ["ab"]],
    ["ab(?=cdef)", ["ab"]],
    ["ab(?!cdef)", ["ab"]],
    ["(?<!cdef)ab", ["ab"]],
    ["(?<=cdef|)ab", ["ab"]],
    ["[abc]de", ["de"]],
    ["[\\]x]de", ["de"]],
    ["[]de", ["de"]],
    ["(ab)\\1", ["ab"]],
    ["ab\\12cd", ["ab"]],
    ["größe", ["größe"]],
    ["ab\ud83d\ude00c", ["ab"]],
    ["ab\ufffdc", ["ab"]],
    ["ab\nc", ["ab"]],
    ["x", null],
    ["foo|x", null],
    ["foo|", null],
    ["\\d+", null],
    [".", null],
    ["x*", null],
    ["(foo|bar)?", null],
    ["\\x41bc", null],
    ["\\u0041bc", null],
    ["\\cAbc", null],
    ["\\p{L}bc", null],
    ["(?<a>x)\\k<a>foo", null],
    ["(?i:foo)", null],
    ["(?-i:foo)", null],
    [Array.from({ length: 21 }, (_, index) => `text${index}`).join("|"), null],
    ["a".repeat(1_001), null],
  ];
  for (const [pattern, expected] of cases) {
    test(JSON.stringify(pattern.slice(0, 60)), () => assert.deepEqual(literalsOf(pattern, false), expected));
  }

  test("with case ignored, only ASCII is text", () => {
    assert.deepEqual(literalsOf("Needle", true), ["Needle"]);
    assert.deepEqual(literalsOf("größe in", true), ["e in"]);
    assert.equal(literalsOf("ÄÖÜ", true), null);
  });

  test("no character beyond ASCII equals one of ASCII when case is ignored", () => {
    const others = Array.from({ length: 0xffff - 0x7f }, (_, index) => String.fromCharCode(0x80 + index));
    assert.deepEqual(
      others.filter((char) => /[\0-\x7f]/i.test(char)),
      [],
    );
  });
});

test("whatever a pattern matches has one of its texts", () => {
  const roll = createDice(7);
  const lines = Array.from({ length: 50 }, () => madeText(roll));
  let matches = 0;
  for (let round = 0; round < 10_000; round += 1) {
    const ignoreCase = round % 2 === 0;
    const pattern = madePattern(roll);
    const texts = literalsOf(pattern, ignoreCase);
    if (texts === null) continue;
    const regex = new RegExp(pattern, ignoreCase ? "i" : "");
    const fold = (one: string) => (ignoreCase ? one.toLowerCase() : one);
    for (const line of lines.filter((one) => regex.test(one))) {
      matches += 1;
      assert.ok(
        texts.some((one) => fold(line).includes(fold(one))),
        `${pattern} matches ${JSON.stringify(line)}, which has none of ${JSON.stringify(texts)}`,
      );
    }
  }
  assert.ok(matches > 2_000, `only ${matches} pairs tell anything`);
});
