/** Schemas for strict draft-07 validators: each of these is compiled by one, and accepts what the original accepts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { toDraft07 } from "../../src/backends/draft-07.ts";
import type { Json, JsonSchema } from "../../src/flow/json.ts";

const object = (properties: { [name: string]: Json }): JsonSchema => ({ type: "object", properties });

const cases: readonly [name: string, schema: JsonSchema, good: readonly Json[], bad: readonly Json[]][] = [
  ["no schema at all", {}, [{}, { a: 1 }], [[], "x"]],
  [
    "another draft and unknown words",
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "x",
      "x-y": 1,
      ...object({ a: { type: "string" } }),
    },
    [{ a: "x" }],
    [{ a: 1 }],
  ],
  [
    "references to $defs, to definitions and to a place in the schema",
    {
      ...object({
        a: { $ref: "#/$defs/word" },
        b: { $ref: "#/definitions/a~1b" },
        c: { $ref: "#/properties/d/items" },
        d: { type: "array", items: { type: "integer" } },
      }),
      $defs: { word: { type: "string" } },
      definitions: { "a/b": { enum: ["x"] } },
    },
    [{ a: "x", b: "x", c: 1, d: [1] }],
    [{ a: 1 }, { b: "y" }, { c: "1" }],
  ],
  [
    "a reference with words beside it",
    { ...object({ a: { $ref: "#/$defs/word", minLength: 2 } }), $defs: { word: { type: "string" } } },
    [{ a: "xy" }],
    [{ a: "x" }, { a: 12 }],
  ],
  [
    "recursion",
    {
      ...object({ tree: { $ref: "#/$defs/node" }, self: { $ref: "#" } }),
      $defs: { node: object({ kids: { type: "array", items: { $ref: "#/$defs/node" } } }) },
    },
    [{ tree: { kids: [{ kids: [] }] }, self: { tree: {} } }],
    [{ tree: { kids: [{ kids: 1 }] } }, { self: 1 }],
  ],
  [
    "a reference that leads nowhere",
    object({ a: { $ref: "https://example.invalid/x" }, b: { $ref: "#/no" } }),
    [{ a: 1, b: 2 }],
    [],
  ],
  [
    "tuples of the newer drafts",
    object({ a: { type: "array", prefixItems: [{ type: "string" }], items: { type: "integer" } } }),
    [{ a: ["x", 1] }],
    [{ a: [1] }, { a: ["x", "y"] }],
  ],
  [
    "dependent words of the newer drafts",
    {
      ...object({}),
      dependentRequired: { a: ["b"] },
      dependentSchemas: { c: object({ d: { type: "string" } }) },
    },
    [
      { a: 1, b: 1 },
      { c: 1, d: "x" },
    ],
    [{ a: 1 }, { c: 1, d: 1 }],
  ],
  [
    "words without effect",
    {
      ...object({ a: { type: "array", items: { type: "integer" }, additionalItems: false } }),
      if: { required: ["a"] },
    },
    [{ a: [1, 2] }],
    [{ a: ["x"] }],
  ],
  [
    "conditions",
    { ...object({}), if: { required: ["a"] }, then: { required: ["b"] } },
    [{}, { a: 1, b: 1 }],
    [{ a: 1 }],
  ],
  [
    "formats that are known, and others",
    object({ a: { type: "string", format: "date" }, b: { type: "string", format: "mood" } }),
    [{ a: "2026-01-01", b: "x" }],
    [{ a: "x" }],
  ],
  ["booleans for schemas", object({ a: true, b: false }), [{ a: 1 }], [{ b: 1 }]],
  ["a closed object", { ...object({ a: {} }), additionalProperties: false }, [{ a: 1 }], [{ b: 1 }]],
  [
    "a choice at the root",
    { oneOf: [object({ a: { const: 1 } }), { required: ["b"] }] },
    [{ a: 1 }],
    [{ a: 2 }],
  ],
  ["a root that is not an object", { type: "array", items: { type: "string" } }, [{}], [["x"]]],
  ["several types at the root", { type: ["object", "null"] }, [{}], [null]],
];

for (const [name, schema, good, bad] of cases) {
  test(`strict draft-07 takes ${name}`, () => {
    const ajv = new Ajv({ logger: false });
    addFormats.default(ajv);
    const validate = ajv.compile(toDraft07(schema));
    for (const value of good) assert.equal(validate(value), true, JSON.stringify([value, validate.errors]));
    for (const value of bad) assert.equal(validate(value), false, JSON.stringify(value));
  });
}

test("a schema with many uses of one part does not grow", () => {
  let schema: JsonSchema = { type: "string" };
  const $defs: { [name: string]: Json } = { d0: schema };
  for (let nth = 1; nth <= 40; nth++) {
    schema = object({ l: { $ref: `#/$defs/d${nth - 1}` }, r: { $ref: `#/$defs/d${nth - 1}` } });
    $defs[`d${nth}`] = schema;
  }
  const text = JSON.stringify(toDraft07({ ...schema, $defs }));
  assert.ok(text.length < 10_000, String(text.length));
});
