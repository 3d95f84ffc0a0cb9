/** Which JSON object of a response is the answer: each rule by the text that it decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ANSWER_CAPS, bound, extractObject } from "../../../src/engine/decide/answer.ts";
import type { JsonObject } from "../../../src/flow/json.ts";

type Row = readonly [name: string, text: string, found: JsonObject | undefined];
const fenced = (body: string, fence = "```") => `${fence}json\n${body}\n${fence}`;
const ROWS: readonly Row[] = [
  ["the whole text", ' {"a": 1}\n', { a: 1 }],
  ["amid prose", 'Here it is: {"a": 1}. Done.', { a: 1 }],
  ["the last of two in prose", 'First {"a": 1}, then {"a": 2}.', { a: 2 }],
  [
    "objects in an object, in prose",
    'Here: {"a": {"b": {}}, "c": {"d": 1}} as asked.',
    { a: { b: {} }, c: { d: 1 } },
  ],
  ["braces in a text", 'Here: {"a": "}{", "b": "{"} as asked.', { a: "}{", b: "{" }],
  ["a quote that is escaped", String.raw`Here: {"a": "\"}", "b": 1} as asked.`, { a: '"}', b: 1 }],
  ["behind a brace that is not closed", 'Use { with care: {"a": 1}', { a: 1 }],
  ["a fenced block", `Here:\n${fenced('{"a": 1}')}\nDone.`, { a: 1 }],
  ["the last fenced block", `${fenced('{"a": 1}')}\n${fenced('{"a": 2}')}`, { a: 2 }],
  ["a fenced block before prose with another", `${fenced('{"a": 1}')}\nInstead of {"a": 2}.`, { a: 1 }],
  ["a block with tildes", `${fenced('{"a": 1}', "~~~")}\nInstead of {"a": 2}.`, { a: 1 }],
  ["a block that is indented", `  ${fenced('{"a": 1}')}\nInstead of {"a": 2}.`, { a: 1 }],
  ["a block that is not closed", `{"a": 2}\n\`\`\`json\n{"a": 1}`, { a: 1 }],
  ["a block of something else", `${fenced("ls")}\nThe answer is {"a": 2}.`, { a: 2 }],
  ["a comma too many", '{"a": 1,}', { a: 1 }],
  ["one that was cut off", '{"a": {"b": 1', undefined],
  ["a list", '["a"]', undefined],
  ["prose", "I am done.", undefined],
];
for (const [name, text, found] of ROWS)
  test(`the object in a response: ${name}`, async () => assert.deepEqual(await extractObject(text), found));

// What came back is bounded before anything reads it.

const nested = (levels: number, within: (inner: unknown) => unknown) => {
  let value: unknown = 1;
  for (let level = 1; level < levels; level += 1) value = within(value);
  return value;
};
const { depth, nodes, bytes } = ANSWER_CAPS;
const fit: readonly (readonly [name: string, value: unknown])[] = [
  ["lists as deep as may be", nested(depth, (inner) => [inner])],
  ["objects as deep as may be", nested(depth, (inner) => ({ inner }))],
  ["as many values as may be", Array.from({ length: nodes - 1 }, () => 0)],
  ["a text as long as may be", "x".repeat(bytes)],
  ["keys and texts together", { ["k".repeat(100)]: "x".repeat(bytes - 100) }],
  ["plain values", { a: null, b: true, c: [1.5, "x"], d: {} }],
];
for (const [name, value] of fit)
  test(`a value within the caps stays the same: ${name}`, () => {
    const bounded = bound(value);
    assert.ok(bounded.kind === "json" && bounded.value === value);
  });

const beyond: readonly (readonly [name: string, value: unknown, why: RegExp])[] = [
  ["lists too deep", nested(depth + 1, (inner) => [inner]), /nested deeper than 64/],
  ["objects too deep", nested(depth + 1, (inner) => ({ inner })), /nested deeper than 64/],
  ["one value too many", Array.from({ length: nodes }, () => 0), /more than 100000 values/],
  ["a list that is too long", Array.from({ length: nodes + 1 }, () => 0), /more than 100000 values/],
  ["a text too long", "x".repeat(bytes + 1), /longer than 1048576 characters/],
  ["a key too long", { ["k".repeat(bytes + 1)]: 1 }, /longer than 1048576 characters/],
];
for (const [name, value, why] of beyond)
  test(`a value beyond the caps is refused: ${name}`, () => {
    const bounded = bound(value);
    assert.match(bounded.kind === "oversized" ? bounded.why : "", why);
  });

test("what JSON does not know is written as JSON writes it", () => {
  class Odd {
    readonly a = 1;
  }
  const rows: readonly (readonly [value: unknown, as: unknown])[] = [
    [{ a: undefined, b: 1 }, { b: 1 }],
    [{ a: 12n }, { a: "12" }],
    [
      [Number.NaN, Number.POSITIVE_INFINITY],
      [null, null],
    ],
    [new Odd(), { a: 1 }],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [undefined, null],
    [() => 1, null],
    [Object.assign(Object.create(null) as object, { a: 1 }), { a: 1 }],
  ];
  for (const [value, as] of rows) {
    const bounded = bound(value);
    assert.equal(JSON.stringify(bounded.kind === "json" ? bounded.value : bounded), JSON.stringify(as));
  }
});
