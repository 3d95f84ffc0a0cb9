/** tests/settings.yaml: what is read, and what is reported with its line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_SETTINGS } from "../../src/flow/test-settings.ts";
import { readTestSettings } from "../../src/load/test-settings.ts";
import { sketchCheck, sketchFlow } from "../../src/testing/flows.ts";
import { filesOf } from "./world.ts";

const flow = sketchFlow(
  { one: { edges: { next: "two" } }, two: { edges: { next: "one", closing: null } } },
  { agent: "a", checks: { green: sketchCheck("green", "make test") } },
);
const read = (text: string, name = "settings.yaml") =>
  readTestSettings(flow, filesOf({ [`.agent/a/tests/${name}`]: text }));

test("without a file nothing is asked", () => {
  assert.deepEqual(readTestSettings(flow, filesOf({})), { settings: NO_SETTINGS, problems: [] });
});

test("every key is read, with the lines of what reports name", () => {
  const { settings, problems } = read(
    [
      "coverage: { steps: 100, checks: 90.5 }",
      "ignore:",
      "  - { id: one, why: it is only for the old form }",
      "drift: { tools: fail, prompt: ignore }",
      "before: { two: one }",
      "never:",
      "  - two next -> one",
      "  - [one next, ..., two next x green-failed, two x * -> end, one -, two abort, re:^two]",
      "within: { visits: 8 }",
    ].join("\n"),
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(settings, {
    file: ".agent/a/tests/settings.yaml",
    coverage: { steps: 100, checks: 90.5 },
    ignore: [{ id: "one", why: "it is only for the old form", line: 3 }],
    drift: { tools: "fail", prompt: "ignore" },
    before: { two: ["one"] },
    never: [
      { path: ["two next -> one"], line: 7 },
      {
        path: [
          "one next",
          "...",
          "two next x green-failed",
          "two x * -> end",
          "one -",
          "two abort",
          "re:^two",
        ],
        line: 8,
      },
    ],
    within: { visits: 8 },
    lines: {
      "before two": 5,
      "never two next -> one": 7,
      "never one next, ..., two next x green-failed, two x * -> end, one -, two abort, re:^two": 8,
      "within visits": 9,
    },
  });
});

test("the file may be JSON", () => {
  const { settings, problems } = read('{ "coverage": { "steps": 50 } }', "settings.json");
  assert.deepEqual([settings.coverage, problems], [{ steps: 50 }, []]);
});

const wrong: readonly (readonly [string, string, number, RegExp])[] = [
  ["coverage: { stesp: 100 }", "TEST-SETTING", 1, /steps/],
  ["coverage: { steps: 101 }", "TEST-SETTING", 1, /more than 100/],
  ["coverage: { steps: -1 }", "TEST-SETTING", 1, /coverage\/steps|steps/],
  ["ignore:\n  - { id: one }", "TEST-SETTING", 2, /why/],
  ["ignore:\n  - { why: because }", "TEST-SETTING", 2, /id/],
  ["before: { thre: one }", "TEST-SETTING", 1, /no step "thre"/],
  ["before: { two: oen }", "TEST-SETTING", 1, /Did you mean "one"/],
  ["before: { two: [] }", "TEST-SETTING", 1, /does not name a step/],
  ["never:\n  - [1]", "TEST-SETTING", 2, /1 is not a decision of a path/],
  ['never:\n  - ""', "TEST-SETTING", 2, /"" is not a decision of a path/],
  ["never:\n  - []", "TEST-SETTING", 2, /names no decision, so it forbids nothing/],
  ["never:\n  - [...]", "TEST-SETTING", 2, /names no decision, so it forbids every run/],
  ["never:\n  - [one next, ..., tow]", "TEST-SETTING", 2, /no step "tow" in the flow\. Did you mean "two"/],
  ["never:\n  - two next -> oen", "TEST-SETTING", 2, /no step "oen"/],
  ["never:\n  - one nxet", "TEST-SETTING", 2, /step "one" cannot say "nxet"\. Did you mean "next"/],
  ["never:\n  - two closing x gren-failed", "TEST-SETTING", 2, /Did you mean "green-failed"/],
  ["never:\n  - 're:('", "TEST-SETTING", 2, /"re:\(" of never cannot be used/],
  ["within: { hours: 3 }", "TEST-SETTING", 1, /hours/],
  ["coverage: [", "TEST-KEY", 1, /cannot be read/],
];
for (const [text, code, line, message] of wrong)
  test(`${code} for ${JSON.stringify(text)}`, () => {
    const { problems } = read(text);
    assert.equal(problems.length, 1, JSON.stringify(problems));
    assert.equal(problems[0]!.code, code);
    assert.equal(problems[0]!.line, line);
    assert.match(problems[0]!.message, message);
  });
