import assert from "node:assert/strict";
import { test } from "node:test";
import { strictSchema, toolSchema } from "../../../src/backends/ai-sdk/wire-schema.ts";
import type { JsonSchema } from "../../../src/flow/json.ts";

const text = { type: "string" } as const;

test("what a tool takes is an object of plain keywords, with local references replaced", () => {
  const rows: readonly {
    readonly name: string;
    readonly schema: JsonSchema | null;
    readonly sent: JsonSchema;
  }[] = [
    { name: "nothing is asked for", schema: null, sent: { type: "object", properties: {} } },
    {
      name: "keywords that not everybody knows are left out, at every depth",
      schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        $id: "x",
        "x-mine": 1,
        type: "object",
        properties: { a: { ...text, $comment: "c", minLength: 2, examples: ["x"] }, if: text },
        if: { properties: {} },
        required: ["a"],
      },
      sent: { type: "object", properties: { a: { ...text, minLength: 2 }, if: text }, required: ["a"] },
    },
    {
      name: "references",
      schema: {
        type: "object",
        properties: {
          a: { $ref: "#/definitions/initial.issue" },
          b: { $ref: "#/$defs/x~1y", description: "here" },
        },
        definitions: { "initial.issue": { type: "array", items: { $ref: "#/$defs/x~1y" } } },
        $defs: { "x/y": text },
      },
      sent: {
        type: "object",
        properties: { a: { type: "array", items: text }, b: { ...text, description: "here" } },
      },
    },
    {
      name: "a reference that leads round in a circle, and one that leads nowhere",
      schema: {
        type: "object",
        properties: { next: { $ref: "#" }, lost: { $ref: "#/nowhere" }, far: { $ref: "other.json" } },
      },
      sent: {
        type: "object",
        properties: {
          next: { type: "object", properties: { next: {}, lost: {}, far: {} } },
          lost: {},
          far: {},
        },
      },
    },
    {
      name: "alternatives at the root",
      schema: {
        oneOf: [
          { type: "object", required: ["a", "b"], properties: { a: text, b: text } },
          { type: "object", required: ["a"], properties: { a: text, c: true } },
        ],
        additionalProperties: false,
      },
      sent: { type: "object", properties: { a: text, b: text, c: {} }, required: ["a"] },
    },
    {
      name: "values that look like schemas",
      schema: { type: "object", properties: { a: { enum: [{ $ref: "#" }], default: { "x-y": 1 } } } },
      sent: { type: "object", properties: { a: { enum: [{ $ref: "#" }], default: { "x-y": 1 } } } },
    },
  ];
  for (const { name, schema, sent } of rows) assert.deepEqual(toolSchema(schema), sent, name);
});

test("references that double at every level do not explode", () => {
  const $defs = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => {
      const next = { $ref: `#/$defs/d${n + 1}` };
      return [`d${n}`, { type: "object", properties: { a: next, b: next } }] as const;
    }),
  );
  assert.ok(JSON.stringify(toolSchema({ $ref: "#/$defs/d0", $defs })).length < 2_000_000);
});

test("a provider's own structured output is used only for what all of them take", () => {
  const closed = (properties: JsonSchema, more: JsonSchema = {}): JsonSchema => ({
    type: "object",
    additionalProperties: false,
    required: Object.keys(properties),
    properties,
    ...more,
  });
  const rows: readonly (readonly [string, JsonSchema | null, boolean])[] = [
    [
      "closed and all required",
      closed({ a: text, b: { type: "array", items: closed({ c: { enum: ["x"] } }) } }),
      true,
    ],
    ["with a reference", { ...closed({ a: { $ref: "#/$defs/t" } }), $defs: { t: text } }, true],
    ["alternatives inside", closed({ a: { anyOf: [text, { type: "null" }] } }), true],
    ["no schema", null, false],
    ["open", { type: "object", properties: {}, required: [] }, false],
    ["open inside", closed({ a: { type: "object" } }), false],
    ["a member that may be absent", closed({ a: text }, { required: [] }), false],
    ["a pattern", closed({ a: { ...text, pattern: "x" } }), false],
    ["a constant", closed({ a: { const: "x" } }), false],
    ["a number among words", closed({ a: { enum: ["x", 1] } }), false],
    ["a list of anything", closed({ a: { type: "array" } }), false],
    ["alternatives at the root", { anyOf: [closed({ a: text })] }, false],
  ];
  for (const [name, schema, taken] of rows) assert.equal(strictSchema(schema) !== null, taken, name);
});

test("a keyword whose value JSON Schema does not allow is left out, and one that it allows stays", () => {
  const rows: readonly (readonly [keyword: string, odd: readonly unknown[], sound: readonly unknown[]])[] = [
    ["type", ["int", [], ["string", "date"], 1, null], ["string", ["string", "null"]]],
    ["enum", [[], "a", {}], [["a"], [1, null]]],
    ["required", [true, "a", [1], ["a", "a"]], [["a", "b"], []]],
    ["minimum", ["1", true, Number.POSITIVE_INFINITY, null], [0, -1.5, 1e300]],
    ["exclusiveMaximum", [true, "1"], [3]],
    ["multipleOf", [0, -1, "2"], [0.5]],
    ["minLength", [-1, 1.5, 1e300, "2"], [0, 7]],
    ["maxItems", [-1, 2.5], [3]],
    ["uniqueItems", ["yes", 1], [true, false]],
    ["pattern", ["([", 1, "(?<a>x)(?<a>y)"], ["^[a-z]+$"]],
    ["format", [1, null], ["date"]],
    ["description", [1, ["a"]], ["words"]],
    ["items", ["x", 1], [{ type: "string" }, false]],
    ["anyOf", [[], {}, "x"], [[{ type: "string" }]]],
    ["additionalProperties", ["x", 1, []], [true, false, { type: "string" }]],
    ["properties", [[], "x"], [{ a: { type: "string" } }]],
  ];
  const kept = (keyword: string, value: unknown) => {
    const schema = { type: "object", properties: { a: { title: "A", [keyword]: value } } } as JsonSchema;
    return (toolSchema(schema).properties as { a: { readonly [key: string]: unknown } }).a;
  };
  for (const [keyword, odd, sound] of rows) {
    for (const value of odd)
      assert.deepEqual(kept(keyword, value), { title: "A" }, `${keyword}: ${String(value)}`);
    for (const value of sound)
      assert.deepEqual(kept(keyword, value), { title: "A", [keyword]: value }, keyword);
  }
  assert.deepEqual(kept("items", [{ type: "string" }, true]), {
    title: "A",
    prefixItems: [{ type: "string" }, {}],
  });
});
