/** The difference of two texts, line by line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { foldedDiff, lineDiff } from "../../../src/studio/page/parts/line-diff.ts";

const MARK = { same: " ", removed: "-", added: "+" };
const words = (before: string, after: string) =>
  lineDiff(before, after).map(({ kind, text }) => `${MARK[kind]}${text}`);

for (const [name, before, after, expected] of [
  ["nothing at all", "", "", []],
  ["the same", "a\nb", "a\nb", [" a", " b"]],
  ["a line in the middle", "a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
  ["lines added at the end", "a\n", "a\nb\nc\n", [" a", "+b", "+c"]],
  ["all removed", "a\nb", "", ["-a", "-b"]],
  ["all new", "", "a", ["+a"]],
  ["a line moved", "a\nb\nc", "b\nc\na", ["-a", " b", " c", "+a"]],
  ["an empty line removed", "a\n\nb", "a\nb", [" a", "-", " b"]],
] as const)
  test(`difference: ${name}`, () => assert.deepEqual(words(before, after), expected));

test("a difference can always be read back in both directions", () => {
  const pick = (seed: number) =>
    Array.from({ length: 12 }, (_, at) => "abc"[(seed * (at + 3) * 7 + at * at) % 3]!);
  for (let seed = 1; seed < 200; seed += 1) {
    const [before, after] = [pick(seed), pick(seed * 31)];
    const lines = lineDiff(before.join("\n"), after.join("\n"));
    const without = (kind: string) => lines.filter((line) => line.kind !== kind).map(({ text }) => text);
    assert.deepEqual([without("added"), without("removed")], [before, after]);
  }
});

test("a very large difference is shown without being searched for common lines", () => {
  const many = (word: string) => Array.from({ length: 3000 }, (_, at) => `${word} ${at}`).join("\n");
  const lines = lineDiff(many("a"), many("b"));
  assert.deepEqual([lines.length, lines[0]?.kind, lines.at(-1)?.kind], [6000, "removed", "added"]);
});

test("kept lines far from a change are folded", () => {
  const before = Array.from({ length: 20 }, (_, at) => `line ${at}`);
  const after = before.with(10, "changed");
  const parts = foldedDiff(lineDiff(before.join("\n"), after.join("\n")), 2);
  assert.deepEqual(
    parts.map((part) => (part.kind === "folded" ? part.count : part.lines.map(({ text }) => text))),
    [8, ["line 8", "line 9", "line 10", "changed", "line 11", "line 12"], 7],
  );
  assert.deepEqual(foldedDiff(lineDiff("a\nb\nc\nd\nx", "a\nb\nc\nd\ny"), 3), [
    { kind: "lines", lines: [{ kind: "same", text: "a" }] },
    { kind: "lines", lines: lineDiff("b\nc\nd\nx", "b\nc\nd\ny") },
  ]);
});
