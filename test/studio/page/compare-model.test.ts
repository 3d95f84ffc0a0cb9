/** Two runs beside each other: groups, the first difference in words, and their ways. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  differenceGroups,
  firstSentence,
  foldedWay,
  joinedWays,
  visitOf,
  type RunDifferenceSeen,
} from "../../../src/studio/page/screens/compare-model.ts";
import type { VisitSeen } from "../../../src/studio/wire.ts";

const differs = (about: RunDifferenceSeen["about"], at: string, a: unknown = 1, b: unknown = 2) =>
  ({ about, at, a, b }) as RunDifferenceSeen;

/** `a@1 b@1`, each letter a step; the visits are counted. */
function way(letters: string): readonly VisitSeen[] {
  const seen = new Map<string, number>();
  return letters.split("").map((step, seq) => {
    const visit = (seen.get(step) ?? 0) + 1;
    seen.set(step, visit);
    return { step, visit, seq };
  });
}
const text = (visits: readonly VisitSeen[]) => visits.map(({ step }) => step).join("");

test("differences are grouped in the order of a run", () => {
  const groups = differenceGroups([
    differs("usage", "/turns"),
    differs("answer", "a@1"),
    differs("answer", "b@1"),
  ]);
  assert.deepEqual(
    groups.map(({ about, rows }) => [about, rows.map(({ at }) => at)]),
    [
      ["answer", ["a@1", "b@1"]],
      ["usage", ["/turns"]],
    ],
  );
});

for (const [name, differences, expected] of [
  ["nothing differs", [], null],
  [
    "what was given comes last",
    [differs("argument", "/issue"), differs("path", "a@1", "b", "c")],
    "Path at a@1: b in A, c in B",
  ],
  [
    "only what was given",
    [differs("argument", "/issue", 1, null)],
    "Arguments at /issue: 1 in A, nothing in B",
  ],
  ["an object", [differs("verdict", "", { code: null }, "x")], 'Verdict: {"code":null} in A, x in B'],
] as const)
  test(`first difference: ${name}`, () => assert.equal(firstSentence(differences), expected));

for (const [at, expected] of [
  ["closure.issue@2", { step: "closure.issue", visit: 2 }],
  ["a@1/next_action", { step: "a", visit: 1 }],
  ["a@1 tests-pass", { step: "a", visit: 1 }],
  ["a@12x", null],
  ["/turns", null],
  ["a@0", null],
] as const)
  test(`the visit in ${at}`, () => assert.deepEqual(visitOf({ at }), expected));

for (const [a, b, expected] of [
  ["", "", []],
  ["abc", "abc", ["abc"]],
  ["abcd", "abxy", ["ab", "cd|xy"]],
  ["ab", "abc", ["ab", "|c"]],
  ["ax", "by", ["ax|by"]],
] as const)
  test(`ways ${a} and ${b}`, () =>
    assert.deepEqual(
      joinedWays([way(a), way(b)]).map((part) =>
        part.kind === "shared" ? text(part.visits) : `${text(part.a)}|${text(part.b)}`,
      ),
      expected,
    ));

test("a shared step at another visit parts the ways", () => {
  const late = way("aa").slice(1);
  assert.deepEqual(
    joinedWays([way("a"), late]).map(({ kind }) => kind),
    ["apart"],
  );
});

for (const [letters, expected] of [
  ["", []],
  ["abc", ["a", "b", "c"]],
  ["abab", ["a", "b", "a", "b"]],
  ["xababaxb", ["x", "a", "b", "a", "b", "a", "x", "b"]],
  ["xabababc", ["x", "ab×3", "c"]],
  ["aaaab", ["a×4", "b"]],
  ["abcabcabcabc", ["abc×4"]],
] as const)
  test(`loops in ${letters} are folded`, () =>
    assert.deepEqual(
      foldedWay(way(letters)).map(({ steps, times }) => `${text(steps)}${times > 1 ? `×${times}` : ""}`),
      expected,
    ));
