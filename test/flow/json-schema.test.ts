/** The one table of keywords that hold schemas, and the one way to follow a reference. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../src/flow/json.ts";
import { followRef, mapSchemas, schemaHolder, schemasIn } from "../../src/flow/json-schema.ts";

const A = { type: "string" };
const B = { type: "number" };

const HELD: readonly [keyword: string, value: Json, found: readonly Json[]][] = [
  ["not", A, [A]],
  ["not", true, [true]],
  ["not", [A], []],
  ["not", 5, []],
  ["allOf", [A, B], [A, B]],
  ["allOf", A, []],
  ["items", A, [A]],
  ["items", [A, B], [A, B]],
  ["prefixItems", [A], [A]],
  ["prefixItems", A, []],
  ["properties", { a: A, b: B }, [A, B]],
  ["properties", [A], []],
  ["dependencies", { a: ["b"], b: B }, [["b"], B]],
  ["$defs", { a: A }, [A]],
  ["enum", [A], []],
  ["const", A, []],
  ["toString", A, []],
];

for (const [keyword, value, found] of HELD) {
  test(`${keyword}: ${JSON.stringify(value)} holds ${found.length} schemas`, () => {
    assert.deepEqual(schemasIn(keyword, value), found);
    if (found.length === 0)
      assert.equal(
        mapSchemas(keyword, value, () => null),
        undefined,
      );
    else
      assert.deepEqual(
        mapSchemas(keyword, value, (schema) => schema),
        value,
      );
  });
}

/** Each keyword of the drafts that holds schemas: what they are held against, and a value of its form. */
const ABOUT: readonly [about: string, keywords: string, value: Json][] = [
  ["value", "not if then else", A],
  ["value", "allOf anyOf oneOf", [A]],
  ["value", "dependentSchemas dependencies", { a: A }],
  ["members", "additionalProperties unevaluatedProperties propertyNames", A],
  ["items", "additionalItems contains unevaluatedItems items", A],
  ["named", "prefixItems", [A]],
  ["named", "properties patternProperties definitions $defs", { a: A }],
];

for (const [about, keywords, value] of ABOUT) {
  test(`${keywords}: about ${about}`, () => {
    for (const keyword of keywords.split(" ")) {
      assert.equal(schemaHolder(keyword)?.about, about, keyword);
      assert.deepEqual(schemasIn(keyword, value), [A], keyword);
    }
  });
}

test("a member called __proto__ is a member like any other", () => {
  const value = JSON.parse('{"__proto__": {"type": "string"}}') as Json;
  const mapped = mapSchemas("properties", value, () => B);
  assert.equal(JSON.stringify(mapped), '{"__proto__":{"type":"number"}}');
});

const ROOT = { $defs: { a: A, "b/c": B, "d e": A, "50%": B, list: [A, B] }, "": { "": A } };

const REFS: readonly [ref: string, value: Json | undefined][] = [
  ["#", ROOT],
  ["#/$defs/a", A],
  ["#/$defs/b~1c", B],
  ["#/$defs/b%2Fc", B],
  ["#/$defs/d%20e", A],
  ["#/$defs/d e", A],
  ["#/$defs/50%", B],
  ["#/$defs/list/1", B],
  ["#//", A],
  ["#/$defs/none", undefined],
  ["#/$defs/toString", undefined],
  ["#a", undefined],
  ["other.json#/$defs/a", undefined],
  ["/$defs/a", undefined],
];

for (const [ref, value] of REFS) {
  test(`${ref} leads to ${value === undefined ? "nothing" : JSON.stringify(value).slice(0, 20)}`, () => {
    assert.deepEqual(followRef(ROOT, ref)?.value, value);
  });
}
