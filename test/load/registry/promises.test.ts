import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFieldPath } from "../../../src/flow/text/placeholder.ts";
import { promiseOf, valuesAt, type Promised } from "../../../src/load/registry/promises.ts";

const SCHEMA = {
  type: "object",
  required: ["sure", "deep", "list", "any", "ref", "closed"],
  properties: {
    sure: { type: "string" },
    maybe: { type: "string" },
    deep: { type: "object", required: ["a"], properties: { a: { enum: ["x", "y"] }, b: { const: 1 } } },
    list: {
      type: "array",
      minItems: 1,
      maxItems: 3,
      items: { type: "object", required: ["n"], properties: { n: {} } },
    },
    any: true,
    flag: { type: "boolean" },
    ref: { $ref: "#/$defs/thing" },
    loop: { $ref: "#/$defs/loop" },
    closed: { type: "object", properties: { a: {} }, additionalProperties: false },
    open: { type: "object", properties: { a: {} }, additionalProperties: true },
    either: { anyOf: [{ properties: { a: {} } }] },
    never: false,
  },
  $defs: {
    thing: { type: "object", required: ["t"], properties: { t: {} } },
    loop: { $ref: "#/$defs/loop" },
  },
} as const;

const rows: readonly [path: string, promised: Promised][] = [
  ["sure", "sure"],
  ["maybe", "maybe"],
  ["other", "unnamed"],
  ["deep.a", "sure"],
  ["deep.b", "maybe"],
  ["maybe.x", "never"],
  ["sure.length", "never"],
  ["list[0].n", "sure"],
  ["list[1].n", "maybe"],
  ["list[3]", "never"],
  ["list.length", "never"],
  ["any.x", "unknown"],
  ["ref.t", "sure"],
  ["ref.u", "unnamed"],
  ["loop.x", "unknown"],
  ["closed.b", "never"],
  ["open.b", "unknown"],
  ["either.a", "unknown"],
  ["never.x", "never"],
];

for (const [path, promised] of rows) {
  test(`${path} is ${promised}`, () => assert.equal(promiseOf(SCHEMA, parseFieldPath(path)!), promised));
}

test("values that are listed", () => {
  assert.deepEqual(valuesAt(SCHEMA, ["flag"]), ["true", "false"]);
  assert.deepEqual(valuesAt(SCHEMA, ["deep", "a"]), ["x", "y"]);
  assert.deepEqual(valuesAt(SCHEMA, ["deep", "b"]), ["1"]);
  assert.equal(valuesAt(SCHEMA, ["sure"]), null);
  assert.equal(valuesAt({ enum: [{}] }, []), null);
});
