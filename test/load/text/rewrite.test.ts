/** A JSON text that gets another value keeps what its author wrote. */
import assert from "node:assert/strict";
import { diff } from "node:util";
import { test } from "node:test";
import { rewriteJson } from "../../../src/load/text/rewrite.ts";
import type { Json } from "../../../src/flow/json.ts";

const FILE = `{
    "name":   "old",
    "tools": ["Read",
              "Write"],

    "completion": { "type": "stepMachine", "config": {"max": 3} },
    "behavior": {
        "mode": "plan",
        "list": [1, 2,   3]
    },
    "last": true
}
`;

const before = JSON.parse(FILE) as { [key: string]: Json };
const { completion, behavior, ...rest } = before;

const without = (gone: string) =>
  Object.fromEntries(Object.entries(before).filter(([name]) => name !== gone));

const cases: readonly (readonly [name: string, value: Json, text: string])[] = [
  ["nothing", before, FILE],
  ["a value", { ...before, last: false }, FILE.replace("true", "false")],
  [
    "a value deep inside",
    { ...before, completion: { type: "x", config: { max: 3 } } },
    FILE.replace('"stepMachine"', '"x"'),
  ],
  [
    "a name",
    { ...rest, verdict: completion!, behavior: behavior! },
    FILE.replace('"completion"', '"verdict"'),
  ],
  [
    "a name and a value in it",
    { ...rest, verdict: { type: "x", config: { max: 3 } }, behavior: behavior! },
    FILE.replace('"completion"', '"verdict"').replace('"stepMachine"', '"x"'),
  ],
  [
    "one less in the middle",
    { ...rest, behavior: behavior! },
    FILE.replace('\n\n    "completion": { "type": "stepMachine", "config": {"max": 3} },', ""),
  ],
  ["the last one less", without("last"), FILE.replace(/,\n {4}"last": true/, "")],
  ["the first one less", without("name"), FILE.replace('"name":   "old",\n    ', "")],
  [
    "one more",
    { ...before, more: { a: [1] } },
    FILE.replace('"last": true', '"last": true,\n    "more": {\n        "a": [1]\n    }'),
  ],
  [
    "something that moves, as it was written",
    { ...rest, completion: completion!, runner: { list: [1, 2, 3], mode: "plan", tools: ["Read", "Write"] } },
    FILE.replace('"behavior"', '"runner"').replace(
      '"list": [1, 2,   3]',
      '"list": [1, 2,   3],\n        "tools": ["Read",\n                  "Write"]',
    ),
  ],
];

for (const [name, value, text] of cases)
  test(`${name} changes`, () => {
    assert.equal(rewriteJson(FILE, value), text);
    const crlf = (one: string) => one.replaceAll("\n", "\r\n");
    assert.equal(rewriteJson(crlf(FILE), value), crlf(text));
  });

test("a text in one line stays one", () => {
  const text = '{"a":1,"b":{"c":[1,2]}}';
  assert.equal(
    rewriteJson(text, { a: 1, b: { c: [1, 2] }, d: { e: [3] } }),
    '{"a":1,"b":{"c":[1,2]},"d":{"e":[3]}}',
  );
  assert.equal(rewriteJson(text, { z: 1 }), '{"z":1}');
  assert.equal(rewriteJson(text, { q: [1] }), '{"q":[1]}');
  assert.equal(rewriteJson("{}", { q: [1] }), '{"q":[1]}');
});

test("whatever becomes of a value, the text holds it, and only lines about it are others", () => {
  // A small generator with a fixed start: the same values every time.
  let seed = 7;
  const pick = (most: number) => (seed = (seed * 48_271) % 2_147_483_647) % most;
  const make = (depth: number): Json => {
    const kind = pick(depth > 2 ? 3 : 5);
    if (kind === 0) return pick(9);
    if (kind === 1) return `t${pick(5)}`;
    if (kind === 2) return pick(2) === 0;
    if (kind === 3) return Array.from({ length: pick(4) }, () => make(depth + 1));
    return Object.fromEntries(Array.from({ length: pick(5) }, () => [`k${pick(9)}`, make(depth + 1)]));
  };
  let kept = 0;
  for (let round = 0; round < 400; round++) {
    const old = { a: make(0), b: make(0), c: { d: make(0), e: make(1) } };
    const now = pick(2) === 0 ? { ...old, a: make(0) } : { ...old, c: { ...old.c, f: make(1) } };
    const text = JSON.stringify(old, null, pick(2) === 0 ? 2 : "\t");
    const result = rewriteJson(text, now);
    assert.deepEqual(JSON.parse(result), now, text);
    const same = diff(text.split("\n"), result.split("\n")).filter(([side]) => side === 0).length;
    if (same >= JSON.stringify(old.b, null, 2).split("\n").length) kept += 1;
  }
  assert.equal(kept, 400);
});
