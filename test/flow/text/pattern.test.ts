/** Patterns in counted steps: they mean what they mean to the language, and none takes longer than it may. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  MOST_STEPS,
  patternFault,
  readPattern,
  TooManySteps,
  withinSteps,
} from "../../../src/flow/text/pattern.ts";

function matcherOf(pattern: string) {
  const read = readPattern(pattern);
  assert.equal(read.kind, "matcher", pattern);
  return read.kind === "matcher" ? read.matcher : assert.fail();
}

/** Long enough that the language's own engine is not asked. */
const PADDING = "z".repeat(400);

describe("they mean the same as to the language", () => {
  const rows: readonly (readonly [pattern: string, texts: readonly string[]])[] = [
    ["^(\\w+)-(\\d+)$", ["abc-12", "abc-", "-12", "a b-1", ""]],
    ["(?:ab|a)(?:bc|c)", ["abc", "abbc", "ac", "bc", "xabcx"]],
    ["^(?:a{2,3}b?){2}$", ["aaaa", "aabaa", "aaab", "aaabaaab", "a"]],
    ["(?=.*\\d)(?=.*[A-Z])^.{4,}$", ["aB1c", "ab1c", "AB1", "ABCD1"]],
    ["(?<!\\$)\\b\\d+\\b(?!%)", ["10", "$10", "10%", "a 7 b", "x7"]],
    ["(?<=a(?:bc|c))d", ["abcd", "acd", "bcd", "ad"]],
    ["^[^\\s\\]\\\\]+$", ["ab", "a b", "a]b", "a\\b"]],
    ["^\\p{Lu}\\p{Ll}*$", ["Élan", "élan", "A", "1"]],
    ["^.$", ["😀", "a", "\n", "\ud83d", "ab"]],
    ["^[😀-😂]+$", ["😀😁", "😃", "a"]],
    ["\\u{1F600}|\\ud83d\\ude01", ["x😀", "😁", "😂"]],
    ["^(?<year>\\d{4})$", ["2026", "26"]],
    ["(a*)*b", ["aaab", "aaa", "b"]],
    ["(?:){3}a??$", ["a", "", "b"]],
    ["[]|[^]", ["", "x"]],
    ["\\Ba\\B", ["bab", "a", "ba"]],
  ];
  for (const [pattern, texts] of rows) {
    test(pattern, () => {
      const native = new RegExp(pattern, "u");
      for (const text of texts.flatMap((one) => [one, one + PADDING, PADDING + one, one.repeat(4)]))
        assert.equal(matcherOf(pattern).test(text), native.test(text), JSON.stringify(text.slice(0, 40)));
    });
  }

  test("and so do those that nobody thought of", () => {
    let seed = 13;
    const below = (most: number) => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((seed / 2 ** 32) * most);
    };
    const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
    const atoms = [
      "a",
      "b",
      "-",
      "\\d",
      "\\w",
      "\\s",
      "\\W",
      ".",
      "[ab]",
      "[^a]",
      "😀",
      "\\p{L}",
      "\\u0062",
      "^",
      "$",
      "\\b",
      "\\B",
    ];
    const times = ["*", "+", "?", "{2}", "{1,2}", "{0,3}?", "{2,}", "*?", "{0}"];
    const made = (depth: number): string => {
      const kind = below(depth > 3 ? 5 : 10);
      if (kind < 5) return pick(atoms);
      if (kind < 7) return made(depth + 1) + made(depth + 1);
      if (kind === 7) return `(${made(depth + 1)}|${made(depth + 1)})`;
      if (kind === 8) return `(?:${made(depth + 1)})${pick(times)}`;
      return `(?${pick(["=", "!", "<=", "<!"])}${made(depth + 1)})`;
    };
    let matched = 0;
    for (let round = 0; round < 3_000; round += 1) {
      // A group around it, so that the language's own engine is never asked.
      const pattern = `(?:${made(0)})`;
      const text = Array.from({ length: below(9) }, () =>
        pick(["a", "b", "-", " ", "1", "\n", "😀", "é"]),
      ).join("");
      const expected = new RegExp(pattern, "u").test(text);
      matched += Number(expected);
      assert.equal(matcherOf(pattern).test(text), expected, JSON.stringify([pattern, text]));
    }
    assert.ok(matched > 500 && matched < 2_500, String(matched));
  });
});

test("no text makes them take longer than it is long, or they say so", () => {
  const rows = [
    ["^(a+)+$", "a".repeat(100_000) + "!", false],
    ["^(a|a|aa)*$", "a".repeat(50_000) + "!", false],
    ["(x+x+)+y", "x".repeat(100_000), false],
    ["^(\\w+\\s?)*$", "word ".repeat(20_000) + "!", false],
    ["^([a-z]+)*@", "a".repeat(100_000), false],
    ["(a*)*(a*)*(a*)*$", "a".repeat(50_000), true],
    ["(.*)(.*)(.*)(.*)=", "x".repeat(100_000), false],
  ] as const;
  for (const [pattern, text, expected] of rows)
    assert.equal(matcherOf(pattern).test(text), expected, pattern);
  assert.throws(() => matcherOf("(?:a?){500}b").test("a".repeat(1_000_000)), TooManySteps);
  assert.throws(() => matcherOf("(?=(a*)*b)c").test("a".repeat(20_000)), TooManySteps);
});

test("the steps of many matches are counted together, and each time anew", () => {
  const slow = matcherOf("^(a+)+$");
  const once = () => slow.test("a".repeat(10_000) + "!");
  assert.throws(() => withinSteps(100_000, () => Array.from({ length: 50 }, once)), TooManySteps);
  assert.equal(withinSteps(MOST_STEPS, once), false);
  assert.equal(once(), false);
});

test("what cannot be matched in counted steps is refused before it is used", () => {
  const rows = [
    ["(", /not a valid/],
    ["(a)\\1", /refers back/],
    ["(?<x>a)\\k<x>", /refers back/],
    ["(?i:a)", /changes flags/],
    ["((a{1,900}){1,900}){1,900}", /repetitions are too large/],
    ["a{100000}", /repetitions are too large/],
    ["(".repeat(101) + ")".repeat(101), /nest deeper/],
    ["a".repeat(9_000), /longer than/],
  ] as const;
  for (const [pattern, why] of rows) assert.match(patternFault(pattern) ?? "", why, pattern.slice(0, 40));
  for (const good of ["", "a", "^(a+)+$", "\\1".slice(1), "(?<n>a)"])
    assert.equal(patternFault(good), null, good);
});
