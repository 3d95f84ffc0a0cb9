/** The defects that scripts/mutate.ts plants: every kind in its forms, and no defect in texts for people. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { diffOf, isValid, KINDS, mutationsOf, planted, type Kind } from "../scripts/mutations.ts";

const CASES: readonly (readonly [kind: Kind, source: string, changed: readonly string[]])[] = [
  ["condition dropped", "x = a && b;", ["x = (a);", "x = (b);"]],
  [
    "condition dropped",
    "x = (a || b) && c;",
    ["x = (a || b);", "x = (c);", "x = ((a)) && c;", "x = ((b)) && c;"],
  ],
  ["and for or", "x = a && b;", ["x = a || b;"]],
  ["and for or", "x = (a) /* && */ || b;", ["x = (a) /* && */ && b;"]],
  ["negation dropped", "x = !a;", ["x = (a);"]],
  ["comparison", "x = a < b;", ["x = a <= b;"]],
  ["comparison", "x = a >= b;", ["x = a > b;"]],
  ["comparison", "x = a === b;", ["x = a !== b;"]],
  ["off by one", "x = 3;", ["x = 4;"]],
  ["truth value", "x = true;", ["x = false;"]],
  ["fallback", "x = a ?? b;", ["x = (a);", "x = (b);"]],
  ["default", "const f = (a = b) => a;", ["const f = (a) => a;"]],
  ["order", "x = a.toSorted(by);", ["x = (a);"]],
  ["order", "x = a.toReversed();", ["x = (a);"]],
  ["first for last", "x = a.at(-1);", ["x = a.at(0);"]],
  ["first for last", "x = a.at(i);", ["x = a.at(-1);"]],
  ["first for last", "x = a.findLast(f);", ["x = a.find(f);"]],
  ["some for every", "x = a.some(f);", ["x = a.every(f);"]],
  ["filter dropped", "x = a.filter(f);", ["x = (a);"]],
  ["largest for smallest", "x = Math.max(a, b);", ["x = Math.min(a, b);"]],
  ["arithmetic", "x = a - b;", ["x = a + b;"]],
  ["arithmetic", "x = a + 1;", ["x = a - 1;"]],
  ["arithmetic", "x = a + b;", []],
  ["early exit dropped", "function f() { if (a) return b; g(); }", ["function f() { ; g(); }"]],
  ["early exit dropped", "for (;;) { if (a) { b(); continue; } g(); }", ["for (;;) { ; g(); }"]],
  ["branch", "x = a ? b : c;", ["x = (b);", "x = (c);"]],
  ["branch", "if (a) b();", ["if (false) b();"]],
  ["spread order", "x = { ...a, b };", ["x = { b, ...a };"]],
  ["spread order", "x = { ...(a && { b }), c };", []],
  ["spread order", "x = [a, ...b];", ["x = [...b, a];"]],
  ["part dropped", "x = { a, b };", ["x = { b };", "x = { a,  };"]],
  ["case or space kept", "x = a.toLowerCase();", ["x = (a);"]],
  ["case or space kept", "x = a.trim();", ["x = (a);"]],
  ["pattern", "x = /^a$/i;", ["x = /a$/i;", "x = /^a/i;", "x = /^a$/;"]],
  ["pattern", "x = /a(?!b)+/;", ["x = /a+/;", "x = /a(?!b)*/;"]],
  ["statements swapped", "async () => { await a(); b(); };", ["async () => { b(); await a(); };"]],
  ["statements swapped", "() => { a(); b(); };", []],
];

for (const [kind, source, changed] of CASES)
  test(`${kind}: ${source}`, () => {
    const found = mutationsOf(source).filter((mutation) => mutation.kind === kind);
    assert.deepEqual(found.map((mutation) => planted(source, mutation)).toSorted(), changed.toSorted());
  });

test("every kind has a case", () => {
  assert.deepEqual([...new Set(CASES.map(([kind]) => kind))].toSorted(), KINDS.toSorted());
});

for (const source of [
  "throw new Error(a ? b : c);",
  "x = new TypeError(a ?? b);",
  "x = `${a ?? b}`;",
  "x = { message: a ? b : c };",
  "type A = { a: 1 };",
  'import a from "b";',
])
  test(`nothing is planted in: ${source}`, () => assert.deepEqual(mutationsOf(source), []));

test("a defect is shown with its line, before and after", () => {
  const source = "const a = 1;\nconst b =\n  c && d;\n";
  const mutation = mutationsOf(source).find(({ kind }) => kind === "and for or");
  assert.ok(mutation);
  assert.equal(mutation.line, 3);
  assert.equal(diffOf(source, mutation), "-   c && d;\n+   c || d;");
});

test("what cannot be parsed is known as such", () => {
  assert.deepEqual(["a && b;", "a ?? b || c;"].map(isValid), [true, false]);
});
