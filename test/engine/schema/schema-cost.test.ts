/** What judging by a schema is counted to take, keyword by keyword, and which schemas cannot be counted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isAffordable, sizeOf, uncountable } from "../../../src/engine/schema/schema-cost.ts";
import type { Json, JsonSchema } from "../../../src/flow/json.ts";

/** The smallest allowance that is enough, counted in sixty-fourths as texts are. */
function costOf(schema: JsonSchema, value: Json): number {
  let [low, high] = [0, 64 * 100_000];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isAffordable(schema, value, middle / 64)) high = middle;
    else low = middle + 1;
  }
  return low / 64;
}

const TEXT = "x".repeat(64);
const TRUE = true as const;

// A schema counts 1, each keyword 1, and what the keyword has to look at.
const COSTS: readonly (readonly [name: string, schema: JsonSchema, value: Json, cost: number])[] = [
  ["nothing is said", {}, 1, 1],
  ["a keyword", { type: "string" }, 1, 2],
  ["two keywords", { type: "string", title: "x" }, 1, 3],
  ["a constant", { const: 1 }, 1, 3],
  ["a long constant", { const: TEXT }, 1, 4],
  ["a choice", { enum: [1, [2, { a: null }]] }, 1, 2 + 11],
  ["not", { not: { type: "string" } }, 1, 4],
  ["if, then, else", { if: {}, then: {}, else: { title: "" } }, 1, 4 + 1 + 1 + 2],
  ["alternatives", { anyOf: [{}, { type: "string" }], allOf: [{}], oneOf: [TRUE, {}] }, 1, 4 + 3 + 1 + 2],
  ["depending on a member", { dependentSchemas: { a: { type: "string" }, b: {} } }, {}, 2 + 3],
  ["a reference", { $ref: "#/$defs/a", $defs: { a: { type: "string" } } }, 1, 3 + 2],
  ["a reference to what is not there", { $ref: "#/$defs/b", $defs: { a: {} } }, 1, 3 + 1],
  ["a reference to a name with a slash", { $ref: "#/$defs/a~1b", $defs: { "a/b": { type: "x" } } }, 1, 3 + 2],
  ["a reference to an encoded name", { $ref: "#/$defs/a%20b", $defs: { "a b": { type: "x" } } }, 1, 3 + 2],
  ["a reference that is wrongly encoded", { $ref: "#/$defs/%", $defs: { "%": { type: "x" } } }, 1, 3 + 2],
  [
    "a reference that is used twice",
    { anyOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }], $defs: { a: {} } },
    1,
    3 + 3 + 3,
  ],
  [
    "members that are listed",
    { properties: { a: { type: "string" }, b: {}, c: {} } },
    { a: 1, z: 1 },
    2 + 3 + 2,
  ],
  ["members that are not an object", { properties: { a: {} } }, [1], 2],
  ["members by pattern", { patternProperties: { "^a": { type: "x" }, b: {} } }, { a: 1, b: 2 }, 2 + 4 + 2],
  ["every other member", { additionalProperties: { type: "x" } }, { a: 1, b: 2 }, 2 + 4],
  ["names of members", { propertyNames: { minLength: 1 } }, { [TEXT]: 1 }, 2 + 2 + 1],
  ["a length is not counted for values", { additionalProperties: { minLength: 1 } }, { [TEXT]: 1 }, 2 + 2],
  ["required", { required: ["a", "b"] }, {}, 2 + 5 + 2 / 64],
  ["required of a list", { required: ["a", "b"] }, [], 2],
  ["required by others", { dependentRequired: { a: ["b"] } }, {}, 2 + 5 + 1 / 64],
  ["items", { items: { type: "x" } }, [1, 2, 3], 2 + 6],
  ["items of what is no list", { items: { type: "x" } }, { a: 1 }, 2],
  ["items in order", { prefixItems: [{ type: "x" }, {}, {}] }, [1, 2], 2 + 3],
  ["items in order, as it was written before", { items: [{ type: "x" }, {}] }, [1, 2, 3], 2 + 3],
  ["what a list contains", { contains: { type: "x" } }, [1, 2], 2 + 4],
  ["items without duplicates", { uniqueItems: true }, [1, 2, 3, 4], 2 + (9 * 4) / 2],
  ["items that may be duplicates", { uniqueItems: false }, [1, 2, 3, 4], 2],
  ["scalar items without duplicates", { uniqueItems: true, items: { type: "number" } }, [1, 2], 3 + 5 + 4],
  ["scalars of several types", { uniqueItems: true, items: { type: ["number", "null"] } }, [1, 2], 3 + 5 + 4],
  [
    "objects without duplicates",
    { uniqueItems: true, items: { type: ["object", "null"] } },
    [1, 2],
    3 + 5 + 4,
  ],
  [
    "lists without duplicates",
    { uniqueItems: true, items: { type: "array" } },
    [1, 2, 3],
    3 + (7 * 3) / 2 + 6,
  ],
  ["any items without duplicates", { uniqueItems: true, items: {} }, [1, 2, 3], 3 + (7 * 3) / 2 + 3],
  ["lengths of a text", { minLength: 1, maxLength: 9 }, TEXT, 3 + 2],
  ["a format that is read once", { format: "uuid" }, TEXT, 2 + 4],
  ["another format", { format: "email" }, TEXT, 2 + 64 ** 2],
  ["a pattern counts its own steps", { pattern: "x*" }, TEXT, 2],
];

for (const [name, schema, value, cost] of COSTS)
  test(`cost: ${name}`, () => assert.equal(costOf(schema, value), cost));

test("what leads round in itself can never be afforded", () => {
  const round: JsonSchema = { $ref: "#" };
  assert.equal(isAffordable(round, 1), false);
  assert.equal(isAffordable(round, 1, Number.MAX_SAFE_INTEGER), false);
});

test("the size of a value: its values, their members, and a share of the characters", () => {
  const rows: readonly (readonly [Json, number])[] = [
    [1, 1],
    [null, 1],
    [true, 1],
    ["", 1],
    [TEXT, 2],
    [[], 1],
    [[1, 2], 5],
    [{ a: TEXT, b: [1] }, 1 + (1 + 2) + (1 + 3)],
  ];
  for (const [value, size] of rows) assert.equal(sizeOf(value), size, JSON.stringify(value));
});

/** So deep, with keywords of every kind on the way. */
function nested(levels: number, within: (inner: Json) => JsonSchema): JsonSchema {
  let schema: JsonSchema = {};
  for (let level = 0; level < levels; level += 1) schema = within(schema);
  return schema;
}

const WITHIN: { readonly [name: string]: (inner: Json) => JsonSchema } = {
  not: (inner) => ({ not: inner }),
  anyOf: (inner) => ({ anyOf: [inner] }),
  prefixItems: (inner) => ({ prefixItems: [inner] }),
  "items as a list": (inner) => ({ items: [inner] }),
  items: (inner) => ({ items: inner }),
  contains: (inner) => ({ contains: inner }),
  additionalProperties: (inner) => ({ additionalProperties: inner }),
  propertyNames: (inner) => ({ propertyNames: inner }),
  properties: (inner) => ({ properties: { a: inner } }),
  patternProperties: (inner) => ({ patternProperties: { a: inner } }),
  $defs: (inner) => ({ $defs: { a: inner } }),
  dependentSchemas: (inner) => ({ dependentSchemas: { a: inner } }),
};

for (const [name, within] of Object.entries(WITHIN))
  test(`schemas are looked for in ${name}`, () => {
    assert.equal(uncountable(nested(200, within)), null);
    assert.match(uncountable(nested(201, within)) ?? "", /deeper than 200 levels|more than 200 patterns/);
    assert.match(uncountable(within({ $dynamicRef: "#x" })) ?? "", /"\$dynamicRef" is not supported/);
  });

const many = (count: number, one: (at: number) => Json) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, one(at)]));

const COUNTED: readonly (readonly [name: string, schema: JsonSchema, why: RegExp | null])[] = [
  ["2,000 schemas", { properties: many(1999, () => ({})) }, null],
  ["2,001 schemas", { properties: many(2000, () => ({})) }, /more than 2000 schemas/],
  ["50,000 values", { enum: Array.from({ length: 49_999 }, (_, at) => at) }, null],
  ["50,001 values", { enum: Array.from({ length: 50_000 }, (_, at) => at) }, /more than 50000 values/],
  ["200 patterns", { properties: many(199, () => ({ pattern: "x" })), pattern: "y" }, null],
  [
    "201 patterns",
    { properties: many(200, () => ({ pattern: "x" })), pattern: "y" },
    /more than 200 patterns/,
  ],
  ["201 patterns of names", { patternProperties: many(201, () => true) }, /more than 200 patterns/],
  ["$recursiveRef", { $recursiveRef: "#" }, /"\$recursiveRef" is not supported/],
  ["$id at the top", { $id: "https://x", type: "object" }, null],
  ["$id below", { properties: { a: { $id: "https://x" } } }, /"\$id" below the top is not supported/],
  ["a property that is called $id", { properties: { $id: { type: "string" } } }, null],
  ["a reference to the whole", { properties: { a: { $ref: "#" } } }, null],
  ["a reference to a part", { properties: { a: { $ref: "#/$defs/a" } } }, null],
  ["a reference to an anchor", { $ref: "#a" }, /"\$ref" must be a JSON pointer/],
  ["a reference to a file", { $ref: "other.json#/a" }, /"\$ref" must be a JSON pointer/],
  ["an example is not a schema", { examples: [{ $ref: "other.json" }] }, null],
  ["a list of words is not a list of schemas", { required: ["$ref"], const: { $ref: "x" } }, null],
  ["true and false are schemas", { properties: { a: true, b: false } }, null],
];

for (const [name, schema, why] of COUNTED)
  test(`counting: ${name}`, () => {
    const found = uncountable(schema);
    if (why === null) assert.equal(found, null);
    else assert.match(found ?? "", why);
  });
