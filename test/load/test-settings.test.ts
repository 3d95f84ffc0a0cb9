/** tests/settings.yaml: what is read, and what is reported with its line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import { NO_SETTINGS } from "../../src/flow/test-settings.ts";
import { readTestSettings } from "../../src/load/test-settings.ts";
import { filesOf } from "./world.ts";

const flow = { agent: "a", steps: { one: {}, two: {} } } as unknown as Flow;
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
      "  - [one next, two next]",
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
      { path: ["one next", "two next"], line: 8 },
    ],
    within: { visits: 8 },
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
  ["never:\n  - [1]", "TEST-SETTING", 2, /never/],
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
