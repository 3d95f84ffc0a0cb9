/** Values for schemas: the smallest that fits, with wanted values at their places; never one that does not fit. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { prepareSchemas, schemaFault, validate } from "../../src/engine/schema/schema.ts";
import type { Json, JsonSchema } from "../../src/flow/json.ts";
import { synthesise, type WantedValue } from "../../src/proof/synthesise.ts";
import { needs } from "../needs.ts";

await prepareSchemas([{}]);

const rows: readonly (readonly [JsonSchema, WantedValue, Json])[] = [
  [{ type: "string" }, {}, "text"],
  [{ type: "integer", minimum: 3 }, {}, 3],
  [{ type: "integer", exclusiveMinimum: 3, multipleOf: 5 }, {}, 5],
  [{ enum: ["b", "a"] }, {}, "b"],
  [{ const: { a: 1 } }, {}, { a: 1 }],
  [{ type: "string", default: "d" }, {}, "d"],
  [{ type: "string", examples: ["e"], default: "d" }, {}, "e"],
  [{ type: "array", minItems: 2, items: { type: "boolean" } }, {}, [true, true]],
  [
    { type: "object", required: ["a"], properties: { a: { type: "string", minLength: 2 }, b: {} } },
    { with: [{ path: ["b"], value: 7 }] },
    { a: "aa", b: 7 },
  ],
  [{ type: "object", properties: { a: { default: 1 }, b: { type: "string" } } }, { without: [["a"]] }, {}],
  [
    {
      type: "object",
      properties: { a: { type: "object", required: ["c"], properties: { c: { type: "string" } } } },
    },
    { with: [{ path: ["a", "d"], value: true }] },
    { a: { c: "c", d: true } },
  ],
];
for (const [schema, wanted, value] of rows)
  test(`${JSON.stringify(schema)} with ${JSON.stringify(wanted)}`, () => {
    const made = synthesise(schema, wanted);
    assert.equal(made.kind, "value", JSON.stringify(made));
    if (made.kind !== "value") return;
    assert.deepEqual(made.value, value);
    assert.deepEqual(validate(schema, made.value), []);
  });

test("where nothing fits, the reason is given", () => {
  for (const schema of [
    { type: "string", enum: [1] },
    { type: "object", required: ["a"], properties: { a: false } },
    { type: "integer", minimum: 3, maximum: 2 },
  ] as const satisfies readonly JsonSchema[]) {
    const made = synthesise(schema);
    assert.equal(made.kind, "none", JSON.stringify(made));
    assert.ok(made.kind === "none" && made.why.length > 0);
  }
});

test("a wanted value that the schema refuses is not replaced by another", () => {
  const schema: JsonSchema = { type: "object", properties: { a: { enum: ["x"] } } };
  assert.equal(synthesise(schema, { with: [{ path: ["a"], value: "y" }] }).kind, "none");
});

test("a wanted value that its place refuses is given up at once, in the words of the validator", () => {
  const noisy = { text: { type: "string" }, list: { type: "array", items: { type: "string" }, minItems: 3 } };
  const about = (a: JsonSchema): JsonSchema => ({
    type: "object",
    required: ["a", "text", "list"],
    properties: { ...noisy, a },
    definitions: { word: { enum: ["x", "y"] } },
  });
  const refused: readonly (readonly [JsonSchema, WantedValue, RegExp])[] = [
    [about({ enum: ["x"] }), { with: [{ path: ["a"], value: "y" }] }, /^\/a .*allowed values/],
    [about({ const: "x" }), { with: [{ path: ["a"], value: "y" }] }, /^\/a .*constant/],
    [about({ type: "string" }), { with: [{ path: ["a"], value: null }] }, /^\/a must be string/],
    [about({ type: ["integer", "null"] }), { with: [{ path: ["a"], value: 1.5 }] }, /^\/a must be integer/],
    [about({ type: "array" }), { with: [{ path: ["a"], value: {} }] }, /^\/a must be array/],
    [about({ anyOf: [{ enum: ["x"] }, { const: "z" }] }), { with: [{ path: ["a"], value: "y" }] }, /\/a /],
    [about({ $ref: "#/definitions/word" }), { with: [{ path: ["a"], value: "z" }] }, /\/a /],
    [about({}), { without: [["a"]] }, /required property 'a'/],
    [
      about({ type: "object", required: ["b"], properties: { b: {} } }),
      { without: [["a", "b"]] },
      /^\/a .*required property 'b'/,
    ],
    [about({ type: "string" }), { with: [{ path: ["a", "b"], value: 1 }] }, /^\/a must be string/],
  ];
  for (const [schema, wanted, why] of refused) {
    const made = synthesise(schema, wanted);
    const what = `${JSON.stringify(schema)} with ${JSON.stringify(wanted)}: ${JSON.stringify(made)}`;
    assert.ok(made.kind === "none" && made.tried === 0, what);
    assert.match(made.why, why, what);
  }
  const taken: readonly (readonly [JsonSchema, Json])[] = [
    [about({ enum: ["x", "y"] }), "y"],
    [about({ const: { b: 1, c: 2 } }), { c: 2, b: 1 }],
    [about({ type: "string", nullable: true }), null],
    [about({ type: ["integer", "null"] }), 2],
    [about({ anyOf: [{ enum: ["x"] }, { const: "y" }] }), "y"],
    [about({ $ref: "#/definitions/word" }), "y"],
    [about({ if: { const: "y" }, then: true, else: { enum: ["x"] } }), "y"],
  ];
  for (const [schema, value] of taken) {
    const made = synthesise(schema, { with: [{ path: ["a"], value }] });
    assert.equal(made.kind, "value", `${JSON.stringify(schema)} with ${JSON.stringify(value)}`);
  }
});

const SUITE = "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests";
const isThere = needs(
  existsSync(SUITE),
  "the JSON Schema Test Suite is not installed (Debian: libtest-json-schema-acceptance-perl)",
);

type SuiteGroup = {
  readonly schema: Json;
  readonly tests: readonly { readonly valid: boolean; readonly data: Json }[];
};

for (const draft of ["draft7", "draft2020-12"])
  test(
    `the JSON Schema Test Suite, ${draft}: at least 97 % of the satisfiable schemas`,
    isThere,
    async () => {
      let fitted = 0;
      const missed: string[] = [];
      for (const file of globSync(`${SUITE}/${draft}/*.json`))
        for (const { schema, tests } of JSON.parse(readFileSync(file, "utf8")) as readonly SuiteGroup[]) {
          if (typeof schema !== "object" || schema === null || Array.isArray(schema)) continue;
          const one = schema as JsonSchema;
          await prepareSchemas([one]);
          if (JSON.stringify(one).includes("://localhost") || schemaFault(one) !== null) continue;
          // Satisfiable, and our validator agrees with the suite about how.
          if (!tests.some(({ valid, data }) => valid && validate(one, data).length === 0)) continue;
          const made = synthesise(one);
          if (made.kind === "value") {
            assert.deepEqual(validate(one, made.value), []);
            fitted += 1;
          } else missed.push(JSON.stringify(one));
        }
      assert.ok(fitted > 150, `${fitted}`);
      assert.ok(fitted / (fitted + missed.length) >= 0.97, `${fitted} fitted; not: ${missed.join("\n")}`);
    },
  );
