/** What a model asks the user, as a question: its text and the answers that may be chosen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { userWish } from "../../../src/boundaries/gate/permissions.ts";
import type { JsonObject } from "../../../src/flow/json.ts";

const person = { ask: () => Promise.resolve(null), isReachable: true, absent: "halt" as const };
const wish = (input: JsonObject) =>
  userWish({ id: "1", name: "AskUserQuestion", input }, 0, { person, asksUser: true });

const ROWS: readonly (readonly [
  name: string,
  input: JsonObject,
  text: string,
  choices: readonly string[],
])[] = [
  ["one question", { question: "May I?" }, "May I?", []],
  [
    "with options",
    { questions: [{ question: "Which?", options: ["a", "b"] }] },
    "Which? (a / b)",
    ["a", "b"],
  ],
  [
    "options with labels, of which some say nothing",
    { questions: [{ question: "Which?", options: [{ label: "a" }, { label: "" }, "", 3, {}, "c"] }] },
    "Which? (a / c)",
    ["a", "c"],
  ],
  [
    "several questions are answered in words",
    { question: "One?", questions: [{ question: "Two?", options: ["x"] }, "no object", { other: 1 }] },
    "One?\nTwo? (x)",
    [],
  ],
];

for (const [name, input, text, choices] of ROWS)
  test(`a question to the user: ${name}`, () => {
    const found = wish(input);
    assert.ok(found?.text.includes(text), found?.text);
    assert.deepEqual(found?.choices, choices);
  });
