/** The form that starts a run: what each parameter is typed into, and what is sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Parameter } from "../../../src/flow/flow.ts";
import type { Json } from "../../../src/flow/json.ts";
import {
  sentArgs,
  fieldErrors,
  fieldHint,
  fieldKind,
  firstTyped,
  freeRows,
  hiddenIn,
  jsonFault,
  NO_CHOICES,
  startRequest,
} from "../../../src/studio/page/screens/start-model.ts";

function parameter(type: Parameter["type"], more: Partial<Parameter> = {}): Parameter {
  return { name: "p", type, description: "", flag: "--p", required: false, ...more };
}

for (const [name, given, kind, hint] of [
  ["a text", parameter("string"), "text", ""],
  ["a text with a pattern", parameter("string", { validation: { pattern: "^a" } }), "text", "must match ^a"],
  [
    "a number with a range",
    parameter("number", { validation: { min: 1, max: 9 }, default: 3 }),
    "number",
    "1 to 9 · default 3",
  ],
  ["a number from below", parameter("number", { validation: { min: 1 } }), "number", "at least 1"],
  [
    "a number from above",
    parameter("number", { validation: { max: 9 }, required: true, default: 1 }),
    "number",
    "at most 9",
  ],
  [
    "a choice",
    parameter("string", { validation: { enum: ["a", "b"] }, default: "a" }),
    "choice",
    "default a",
  ],
  ["a choice of numbers", parameter("number", { validation: { enum: [1, 2] } }), "choice", ""],
  ["a switch", parameter("boolean", { default: true }), "switch", ""],
  ["a list", parameter("array", { validation: { enum: ["a"] } }), "lines", "one value a line"],
  ["an object", parameter("object", { default: { a: 1 } }), "json", 'a JSON object · default {"a":1}'],
] as const)
  test(`field of ${name}`, () => assert.deepEqual([fieldKind(given), fieldHint(given)], [kind, hint]));

for (const [name, given, text, expected] of [
  ["a text", parameter("string"), "hello", { p: "hello" }],
  ["an empty text leaves the default to the agent", parameter("string", { default: "x" }), "", {}],
  ["what is the default anyway is not sent", parameter("number", { default: 2 }), "2", {}],
  ["what is not the default is sent", parameter("number", { default: 2 }), "3", { p: "3" }],
  ["a number is sent as typed", parameter("number"), "12x", { p: "12x" }],
  ["lines", parameter("array"), "a\n\n b \n", { p: ["a", " b "] }],
  ["no lines", parameter("array"), "\n", {}],
  ["an object is sent as typed", parameter("object"), "{}", { p: "{}" }],
  ["a switch that is off by default, off", parameter("boolean"), "", {}],
  ["a switch that is off by default, on", parameter("boolean"), "true", { p: true }],
  ["a switch that is on by default, off", parameter("boolean", { default: true }), "", { p: false }],
  ["a switch that is on by default, on", parameter("boolean", { default: true }), "true", {}],
  ["a switch that is required, off", parameter("boolean", { required: true }), "", { p: false }],
] as const)
  test(`sent: ${name}`, () => assert.deepEqual(sentArgs([given], { p: text }), expected));

test("free rows are sent under their names, and rows without one are not", () => {
  const rows = [
    { name: " topic ", value: "tides" },
    { name: " ", value: "lost" },
    { name: "__proto__", value: "x" },
  ];
  const args = sentArgs([], {}, rows);
  assert.deepEqual(Object.entries(args), [
    ["topic", "tides"],
    ["__proto__", "x"],
  ]);
  assert.equal(Object.getPrototypeOf(args), Object.prototype);
});

test("the arguments of an earlier run fill the fields", () => {
  const parameters = [
    parameter("array", { name: "list" }),
    parameter("object", { name: "settings" }),
    parameter("boolean", { name: "fast", default: true }),
    parameter("number", { name: "issue", default: 1 }),
  ];
  const earlier = { list: ["a", 2], settings: { b: 1 }, fast: false, other: "free" };
  assert.deepEqual(firstTyped(parameters, earlier), {
    list: "a\n2",
    settings: '{\n  "b": 1\n}',
    fast: "",
    issue: "1",
  });
  assert.deepEqual(freeRows(parameters, earlier), [{ name: "other", value: "free" }]);
  assert.deepEqual(firstTyped(parameters), { list: "", settings: "", fast: "true", issue: "1" });
});

for (const [name, value, isHidden] of [
  ["a secret", "[redacted]", true],
  ["a key", "use [redacted:anthropic] here", true],
  ["a secret in a list", ["a", "[redacted:github-token]"], true],
  ["a secret in an object", { deep: { key: "[redacted]" } }, true],
  ["words about it", "redacted: no", false],
  ["an open bracket", "[redacted", false],
  ["another mark", "[redacted by hand]", false],
  ["a number", 3, false],
] as const)
  test(`an argument of an earlier run with ${name} is ${isHidden ? "asked for again" : "taken over"}`, () => {
    const earlier = { p: value as Json };
    assert.deepEqual([...hiddenIn(earlier)], isHidden ? ["p"] : []);
    const [row] = freeRows([], earlier);
    const typed = firstTyped([parameter("string", { default: "x" })], earlier);
    assert.deepEqual([row?.value === "", typed.p === ""], [isHidden, isHidden]);
    assert.deepEqual(Object.keys(sentArgs([parameter("string")], typed)), isHidden ? [] : ["p"]);
  });

for (const [name, given, trust, expected] of [
  ["nothing but the agent", {}, null, {}],
  ["a model", { model: "sonnet" }, null, { model: "sonnet" }],
  ["a script in place of the model", { model: "sonnet", script: " s.yaml " }, null, { script: "s.yaml" }],
  [
    "limits",
    { turns: "5", costUsd: "0.5", minutes: "2" },
    null,
    { limits: { turns: 5, costUsd: 0.5, wallMs: 120_000 } },
  ],
  ["limits that are not numbers", { turns: "x", costUsd: "-1", minutes: "0" }, null, {}],
  ["a worktree", { worktree: "yes" }, null, { worktree: true }],
  ["no worktree", { worktree: "no" }, null, { worktree: false }],
  [
    "a dry run that halts",
    { isDry: true, onPermission: "halt" },
    null,
    { dryRun: true, onPermission: "halt" },
  ],
  ["input and trust", { input: "text" }, "sha256:1", { input: "text", trust: "sha256:1" }],
] as const)
  test(`request: ${name}`, () =>
    assert.deepEqual(startRequest("a", {}, { ...NO_CHOICES, ...given }, trust), {
      agent: "a",
      args: {},
      ...expected,
    }));

test("errors stand at their fields", () => {
  const errors = [
    { field: "p", message: "one" },
    { field: null, message: "whole" },
    { field: "p", message: "two" },
  ];
  assert.deepEqual(
    [...fieldErrors(errors)],
    [
      ["p", ["one", "two"]],
      ["", ["whole"]],
    ],
  );
});

for (const [text, isFault] of [
  ["", false],
  [" {} ", false],
  ["[]", true],
  ["{", true],
  ["null", true],
] as const)
  test(`JSON object ${JSON.stringify(text)}`, () => assert.equal(jsonFault(text) !== null, isFault));
