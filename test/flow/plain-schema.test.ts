import { Ajv } from "ajv";
import assert from "node:assert/strict";
import { test } from "node:test";
import { isPlain, misfit } from "../../src/flow/plain-schema.ts";
import { schemaFault, validate } from "../../src/engine/schema/schema.ts";
import type { Json, JsonSchema } from "../../src/flow/json.ts";

const NESTED: JsonSchema = {
  type: "object",
  required: ["next_action"],
  additionalProperties: false,
  properties: {
    next_action: {
      type: "object",
      required: ["action"],
      properties: { action: { type: "string", enum: ["next", "repeat"] } },
    },
    points: { type: "array", items: { type: ["string", "null"], minLength: 2 }, minItems: 1, maxItems: 2 },
  },
};

const PLAIN: readonly JsonSchema[] = [
  {},
  { $schema: "http://json-schema.org/draft-07/schema#", $id: "x", description: "any" },
  ...["object", "array", "string", "number", "integer", "boolean", "null"].map((type) => ({ type })),
  { type: ["string", "integer"] },
  { enum: ["a", 1, null, true] },
  { const: "a" },
  { const: null },
  { minLength: 2, maxLength: 3 },
  { minimum: 1, maximum: 2 },
  { minItems: 1, maxItems: 1 },
  { items: { type: "string" } },
  { items: true },
  { required: ["a"] },
  { required: ["toString"] },
  { properties: { a: { type: "string" }, toString: { type: "number" } } },
  { properties: { a: true }, additionalProperties: false },
  { properties: { a: {} }, additionalProperties: { type: "number" } },
  { additionalProperties: true },
  NESTED,
];

const VALUES: readonly Json[] = [
  null,
  true,
  0,
  1,
  1.5,
  2.5,
  "",
  "a",
  "ab",
  "abcd",
  "👍",
  "👍👍",
  [],
  ["a"],
  ["ab", null],
  [1, 2, 3],
  {},
  { a: "x" },
  { a: 1 },
  { b: 1 },
  { a: "x", b: "y" },
  { toString: 1 },
  JSON.parse('{"__proto__": 1}') as Json,
  { next_action: { action: "next" } },
  { next_action: { action: "else" } },
  { next_action: { action: "next", more: 1 }, points: ["ab", null] },
  { next_action: { action: "next" }, points: ["a"] },
  { next_action: { action: "next" }, points: [] },
  { next_action: { action: "next" }, other: 1 },
  { next_action: [] },
];

test("a plain schema is judged as the compiled one would", () => {
  const ajv = new Ajv({
    strict: false,
    ownProperties: true,
    validateSchema: false,
    meta: false,
    logger: false,
  });
  for (const schema of PLAIN) {
    assert.equal(isPlain(schema), true, JSON.stringify(schema));
    const { $id: _id, $schema: _draft, ...rest } = schema;
    const check = ajv.compile(rest);
    for (const value of VALUES) {
      assert.equal(
        misfit(schema, value) === null,
        check(value),
        `${JSON.stringify(schema)} ${JSON.stringify(value)}`,
      );
      assert.equal(validate(schema, value).length === 0, check(value));
    }
  }
});

test("what is odd about a schema is left to the compiler", () => {
  const odd: readonly JsonSchema[] = [
    { format: "uri" },
    { oneOf: [{}] },
    { type: "text" },
    { type: [] },
    { enum: [] },
    { enum: [{ a: 1 }] },
    { const: [1] },
    { items: [{ type: "string" }] },
    { properties: { a: { pattern: "^a" } } },
    { properties: { a: { $id: "b" } } },
    { properties: { a: false } },
    { properties: JSON.parse('{"__proto__": {}}') as Json },
    { required: "a" },
    { minLength: "2" },
    { toString: 1 },
  ];
  for (const schema of odd) assert.equal(isPlain(schema), false, JSON.stringify(schema));
  assert.match(schemaFault({ type: "text" }) ?? "", /type/);
  assert.equal(schemaFault(NESTED), null);
});

test("what does not fit is told in the same words, however often it was asked", () => {
  const schema: JsonSchema = { ...NESTED };
  const bad = { next_action: { action: "else" } };
  const first = validate(schema, bad);
  assert.match(first.join(), /must be equal to one of the allowed values/);
  for (let time = 0; time < 40; time++) {
    assert.deepEqual(validate(schema, bad), first);
    assert.deepEqual(validate(schema, { next_action: { action: "next" } }), []);
  }
});

test("so are schemas and values that nobody thought of", () => {
  const ajv = new Ajv({
    strict: false,
    ownProperties: true,
    validateSchema: false,
    meta: false,
    logger: false,
  });
  const seen = { fits: 0, not: 0 };
  for (let seed = 1; seed <= 3000; seed++) {
    const chance = createChance(seed);
    const schema = schemaBy(chance, 3);
    assert.equal(isPlain(schema), true, JSON.stringify(schema));
    const check = ajv.compile(schema);
    for (let nth = 0; nth < 8; nth++) {
      const value = valueBy(chance, 3);
      const isFit = check(value);
      seen[isFit ? "fits" : "not"] += 1;
      assert.equal(
        misfit(schema, value) === null,
        isFit,
        `seed ${seed}: ${JSON.stringify({ schema, value })}`,
      );
    }
  }
  assert.ok(seen.fits > 2000 && seen.not > 2000, JSON.stringify(seen));
});

type Chance = (below: number) => number;

function createChance(seed: number): Chance {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const NAMES = ["a", "b", "toString"];
const WORDS: readonly Json[] = ["a", "ab", "👍", "", 0, 1, 1.5, -2, true, false, null];
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

function schemaBy(chance: Chance, depth: number): JsonSchema {
  const some = <T>(list: readonly T[]) => list.filter(() => chance(2) === 0);
  const sub = (): Json => (depth === 0 || chance(5) === 0 ? {} : schemaBy(chance, depth - 1));
  const parts: readonly JsonSchema[] = [
    { type: TYPES[chance(TYPES.length)]! },
    { type: [TYPES[chance(3)]!, TYPES[3 + chance(4)]!] },
    { enum: [WORDS[chance(WORDS.length)]!, ...some(WORDS)] },
    { const: WORDS[chance(WORDS.length)]! },
    { minLength: chance(3), maxLength: 1 + chance(3) },
    { minimum: chance(3) - 1, maximum: chance(3) },
    { minItems: chance(2), maxItems: 1 + chance(2) },
    { items: sub() },
    { required: some(NAMES) },
    { properties: Object.fromEntries(some(NAMES).map((name) => [name, sub()])) },
    { additionalProperties: [true, false, sub()][chance(3)]! },
  ];
  return Object.assign({}, ...parts.filter(() => chance(4) === 0)) as JsonSchema;
}

function valueBy(chance: Chance, depth: number): Json {
  const kind = depth === 0 ? 0 : chance(3);
  if (kind === 0) return WORDS[chance(WORDS.length)]!;
  if (kind === 1) return Array.from({ length: chance(3) }, () => valueBy(chance, depth - 1));
  const names = NAMES.filter(() => chance(2) === 0);
  return Object.fromEntries(names.map((name) => [name, valueBy(chance, depth - 1)]));
}
