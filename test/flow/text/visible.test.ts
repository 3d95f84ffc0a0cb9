/** What a person decides on hides nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { broken, visible } from "../../../src/flow/text/visible.ts";

const SHOWN: readonly (readonly [what: string, text: string, shown: string])[] = [
  ["plain text", "npm test -- --watch", "npm test -- --watch"],
  ["a heredoc with indentation", "cat <<E\n        a\nE", "cat <<E\n        a\nE"],
  ["500 spaces", `npm test${" ".repeat(500)}; id`, "npm test··· 500 spaces ···; id"],
  ["40 tabs", `a${"\t".repeat(40)}; id`, "a··· 40 × \\t ···; id"],
  ["no-break spaces", `a${"\u00a0".repeat(30)}b`, "a··· 30 × \\xa0 ···b"],
  ["60 empty lines", `a${"\n".repeat(61)}b`, "a\n··· 60 empty lines ···\nb"],
  ["lines of spaces", `a\n${"   \n".repeat(30)}b`, "a\n··· 30 empty lines ···\nb"],
  ["carriage return", "rm -rf ~\rnpm test", "rm -rf ~\\rnpm test"],
  ["backspaces", "rm x\b\b\b\bls", "rm x\\b\\b\\b\\bls"],
  ["escape sequence", "\u001b[2Kls", "\\x1b[2Kls"],
  ["C1 control", "\u009b2Kls", "\\x9b2Kls"],
  ["direction override", "ls \u202etxt.sh", "ls \\u{202e}txt.sh"],
  ["direction isolate and letter mark", "\u2066a\u2069\u061c", "\\u{2066}a\\u{2069}\\u{61c}"],
  ["Hebrew letters, which turn what stands around them", "rm \u05d0 -rf", "rm \\u{5d0} -rf"],
  ["zero width", "l\u200bs\u2060 \ufeff", "l\\u{200b}s\\u{2060} \\u{feff}"],
  ["Hangul filler and Braille blank", "a\u3164b\u2800", "a\\u{3164}b\\u{2800}"],
  ["tag characters", "a\u{e0041}", "a\\u{e0041}"],
  ["a Cyrillic letter in a Latin word", "p\u0430ypal", "p\\u{430}ypal"],
  ["a word of Cyrillic look-alikes", "\u0441\u043e\u0440\u0443", "\\u{441}\\u{43e}\\u{440}\\u{443}"],
  ["control: Russian, German, Japanese", "привет größe 日本語", "привет größe 日本語"],
  ["full width and mathematical letters", "\uff4c\uff53 \u{1d5c5}", "\\u{ff4c}\\u{ff53} \\u{1d5c5}"],
  ["dashes and slashes that are none", "\u2013x \u2215etc", "\\u{2013}x \\u{2215}etc"],
  ["half of a character", "a\ud800b", "a\\u{d800}b"],
];

for (const [what, text, shown] of SHOWN) {
  test(`shown to a person: ${what}`, () => assert.equal(visible(text), shown));
}

test("showing again changes nothing", () => {
  for (const [, , shown] of SHOWN) assert.equal(visible(shown), shown);
});

test("a long line cannot pose as several: what goes on is marked", () => {
  const fake = `ls ${"x".repeat(73)}[a]llow once · [d]eny`;
  const lines = broken(fake).split("\n");
  assert.ok(lines.length > 1);
  assert.ok(lines.slice(1).every((line) => line.startsWith("  : ")));
  assert.equal(lines.map((line, place) => (place === 0 ? line : line.slice(4))).join(""), fake);
  assert.equal(broken("日".repeat(60)).split("\n")[0], "日".repeat(38));
  assert.equal(broken("short"), "short");
});

const FOLDED: readonly (readonly [what: string, text: string, lines: readonly string[]])[] = [
  ["between words", "one two three four five", ["one two three four ", "five"]],
  ["before a word that only its end is too long for", "one two three sixteen", ["one two three ", "sixteen"]],
  ["a word that ends the line, before a space", "one two three twenty x", ["one two three ", "twenty x"]],
  ["a space that ends the line", "one two three seven eight", ["one two three seven ", "eight"]],
  [
    "several times",
    "one two three four five six seven eight",
    ["one two three four ", "five six seven ", "eight"],
  ],
  [
    "inside of a word where the last space is too far back",
    `one ${"x".repeat(30)}`,
    [`one ${"x".repeat(16)}`, "x".repeat(14)],
  ],
  ["inside of a long word that goes on", "x".repeat(50), ["x".repeat(20), "x".repeat(16), "x".repeat(14)]],
  [
    "between words of wide letters",
    `${"日".repeat(6)} ${"本".repeat(5)}`,
    [`${"日".repeat(6)} `, "本".repeat(5)],
  ],
  ["control: a line that fits", "one two three twenty", ["one two three twenty"]],
];

for (const [what, text, lines] of FOLDED) {
  test(`a long line is broken ${what}`, () => {
    assert.equal(broken(text, 20), lines.join("\n  : "));
    assert.equal(lines.join(""), text);
  });
}
