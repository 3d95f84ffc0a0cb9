/** Which JSON object of a response is the answer: each rule by the text that it decides. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extractObject } from "../../../src/engine/decide/answer.ts";
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
