import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../../src/flow/json.ts";
import { readDocument } from "../../../src/load/text/document.ts";
import { createSchemas } from "../../../src/load/registry/schemas.ts";
import { filesOf } from "../world.ts";

const THING = { type: "object", properties: { a: { type: "string" } } };
const CONDITION = JSON.parse('{"if":{"properties":{"a":{"const":"b"}}},"then":{"required":["a"]}}') as Json;
const CLOSED = { ...THING, additionalProperties: false };

/** Files by name in the folder `s`; other paths are from the root. */
function resolve(
  files: { readonly [name: string]: unknown },
  schema: string,
  file = "main.json",
  folders = ["s"],
) {
  const tree = Object.fromEntries(
    Object.entries(files).map(([name, value]) => [
      name.includes("/") ? name : `s/${name}`,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
  let reads = 0;
  const source = filesOf(tree);
  const memory = new Map<string, ReturnType<typeof readDocument>>();
  const read = (path: string) => {
    const known = memory.get(path);
    if (known !== undefined) return known;
    reads += 1;
    const fresh = readDocument(source, path);
    memory.set(path, fresh);
    return fresh;
  };
  const schemas = createSchemas({ read, folders });
  return { found: schemas({ file, schema }), again: schemas({ file, schema }), reads };
}

const GOOD: readonly [string, { readonly [name: string]: unknown }, string, Json][] = [
  ["a bare name in definitions", { "main.json": { definitions: { x: THING } } }, "x", CLOSED],
  ["a bare name in $defs", { "main.json": { $defs: { x: THING } } }, "x", CLOSED],
  ["a bare name at the top, with dots", { "main.json": { "initial.issue": THING } }, "initial.issue", CLOSED],
  [
    "definitions before the top",
    { "main.json": { x: { type: "string" }, definitions: { x: THING } } },
    "x",
    CLOSED,
  ],
  ["#/definitions/x", { "main.json": { definitions: { x: THING } } }, "#/definitions/x", CLOSED],
  ["#/$defs/x", { "main.json": { $defs: { x: THING } } }, "#/$defs/x", CLOSED],
  ["/a/b", { "main.json": { a: { b: THING } } }, "/a/b", CLOSED],
  ["a name that holds ~1", { "main.json": { "/": "x", "~1": THING } }, "#/~01", CLOSED],
  ["a name escaped as in a URI", { "main.json": { "a b": THING, "a%20b": {} } }, "#/a%20b", CLOSED],
  ["a name with a percent sign", { "main.json": { "a%20b": THING, "50%": {} } }, "#/a%20b", CLOSED],
  ["a percent sign that escapes nothing", { "main.json": { "50%": THING } }, "#/50%", CLOSED],
  ["~1 and ~0", { "main.json": { "a/b": { "c~d": THING } } }, "#/a~1b/c~0d", CLOSED],
  [
    "the draft of the file",
    { "main.json": { $schema: "urn:draft", x: { type: "string" } } },
    "x",
    { $schema: "urn:draft", type: "string" },
  ],
  [
    "a local $ref, siblings dropped",
    { "main.json": { x: { $ref: "#/y", description: "gone" }, y: THING } },
    "x",
    CLOSED,
  ],
  [
    "a $ref to another file",
    { "main.json": { x: { $ref: "other.json#/y" } }, "other.json": { y: THING } },
    "x",
    CLOSED,
  ],
  [
    "a $ref to a whole file",
    { "main.json": { x: { $ref: "other.json" } }, "other.json": THING },
    "x",
    CLOSED,
  ],
  [
    "a $ref is relative to its own file",
    {
      "main.json": { x: { $ref: "deep/other.json#/y" } },
      "s/deep/other.json": { y: { $ref: "near.json#/z" } },
      "s/deep/near.json": { z: THING },
    },
    "x",
    CLOSED,
  ],
  [
    "the same $ref twice is no circle",
    {
      "main.json": {
        x: { type: "object", properties: { p: { $ref: "#/y" }, q: { $ref: "#/y" } } },
        y: THING,
      },
    },
    "x",
    { type: "object", properties: { p: CLOSED, q: CLOSED }, additionalProperties: false },
  ],
  [
    "a property called $ref, and data that looks like one",
    { "main.json": { x: { type: "object", properties: { $ref: { const: { $ref: "#/no" } } } } } },
    "x",
    { type: "object", properties: { $ref: { const: { $ref: "#/no" } } }, additionalProperties: false },
  ],
  [
    "additionalProperties as written",
    { "main.json": { x: { ...THING, additionalProperties: true } } },
    "x",
    { ...THING, additionalProperties: true },
  ],
  [
    "an object without named properties stays open",
    { "main.json": { x: { type: "object" } } },
    "x",
    { type: "object" },
  ],
  [
    "nested objects are closed",
    { "main.json": { x: { type: "array", items: THING } } },
    "x",
    { type: "array", items: CLOSED },
  ],
  [
    "allOf: properties by name, the later one wins; required united; of the rest the first stays",
    {
      "main.json": {
        base: {
          type: "object",
          description: "base",
          required: ["a"],
          properties: { a: { type: "string" }, b: { type: "string" } },
        },
        more: { title: "more", description: "more", required: ["b"], properties: { b: { type: "number" } } },
        x: {
          description: "owner",
          allOf: [{ $ref: "#/base" }, { $ref: "#/more" }],
          required: ["a", "c"],
          properties: { c: { type: "boolean" }, b: { const: 1 } },
        },
      },
    },
    "x",
    {
      type: "object",
      description: "base",
      required: ["a", "b", "c"],
      properties: { a: { type: "string" }, b: { const: 1 }, c: { type: "boolean" } },
      title: "more",
      additionalProperties: false,
    },
  ],
  ...[true, false].map((always): (typeof GOOD)[number] => [
    `allOf: a member that is ${always} stays as it is`,
    { "main.json": { x: { ...THING, allOf: [always, { title: "more" }] } } },
    "x",
    { ...CLOSED, title: "more", allOf: [always] },
  ]),
  [
    "allOf: conditional members stay as they are",
    {
      "main.json": {
        x: { ...THING, allOf: [CONDITION] },
      },
    },
    "x",
    { ...CLOSED, allOf: [CONDITION] },
  ],
  [
    "allOf: conditions of a base stay beside those of the owner and of another base",
    {
      "main.json": {
        base: { ...THING, allOf: [CONDITION] },
        more: { allOf: [{ if: { required: ["a"] }, then: false }] },
        x: { allOf: [{ $ref: "#/base" }, { $ref: "#/more" }, { if: true, then: { minProperties: 1 } }] },
      },
    },
    "x",
    {
      ...CLOSED,
      allOf: [CONDITION, { if: { required: ["a"] }, then: false }, { if: true, then: { minProperties: 1 } }],
    },
  ],
];

for (const [name, files, schema, expected] of GOOD) {
  test(`resolved: ${name}`, () => {
    const { found, again } = resolve(files, schema);
    assert.deepEqual(found.kind === "schema" ? found.schema : found, expected);
    assert.equal(found, again);
  });
}

const nested = (depth: number): unknown =>
  depth === 0 ? { type: "string" } : { type: "object", properties: { a: nested(depth - 1) } };
const doubling = Object.fromEntries(
  Array.from({ length: 20 }, (_, level) => [
    `l${level}`,
    { anyOf: [{ $ref: `#/l${level + 1}` }, { $ref: `#/l${level + 1}` }] },
  ]),
);

const BAD: readonly [string, { readonly [name: string]: unknown }, string, string, RegExp][] = [
  ["no file", {}, "x", "FAILED_SCHEMA_RESOLUTION", /there is no schema file s\/main\.json/],
  ["a broken file", { "main.json": "{" }, "x", "FAILED_SCHEMA_RESOLUTION", /line 1, column 2/],
  ["no such name", { "main.json": {} }, "x", "SCHEMA_POINTER_ERROR", /no "x" in s\/main\.json/],
  ["no such pointer", { "main.json": {} }, "#/definitions/x", "SCHEMA_POINTER_ERROR", /definitions\/x/],
  ["an inherited name", { "main.json": {} }, "constructor", "SCHEMA_POINTER_ERROR", /constructor/],
  ["no schema object", { "main.json": { x: "text" } }, "x", "SCHEMA_POINTER_ERROR", /not a schema object/],
  ["##", { "main.json": {} }, "##/x", "MALFORMED_SCHEMA_IDENTIFIER", /##/],
  ["//", { "main.json": {} }, "#//x", "MALFORMED_SCHEMA_IDENTIFIER", /\/\//],
  [
    "a circle",
    { "main.json": { x: { $ref: "#/y" }, y: { properties: { z: { $ref: "#/x" } } } } },
    "x",
    "SCHEMA_CIRCULAR_REFERENCE",
    /s\/main\.json#x → .* → s\/main\.json#x/,
  ],
  [
    "a circle through files",
    { "main.json": { x: { $ref: "b.json#/y" } }, "b.json": { y: { $ref: "main.json#/x" } } },
    "x",
    "SCHEMA_CIRCULAR_REFERENCE",
    /b\.json/,
  ],
  [
    "a dangling $ref",
    { "main.json": { x: { $ref: "#/none" } } },
    "x",
    "SCHEMA_POINTER_ERROR",
    /"\$ref": "#\/none" in s\/main\.json/,
  ],
  [
    "a $ref to no file",
    { "main.json": { x: { $ref: "none.json#/y" } } },
    "x",
    "FAILED_SCHEMA_RESOLUTION",
    /s\/none\.json/,
  ],
  [
    "a $ref out of the project",
    { "main.json": { x: { $ref: "../../etc/passwd#/y" } } },
    "x",
    "FAILED_SCHEMA_RESOLUTION",
    /leaves the project/,
  ],
  [
    "an absolute $ref",
    { "main.json": { x: { $ref: "/etc/passwd#/y" } } },
    "x",
    "FAILED_SCHEMA_RESOLUTION",
    /leaves the project/,
  ],
  ["too deep", { "main.json": { x: nested(60) } }, "x", "FAILED_SCHEMA_RESOLUTION", /deeper than 50/],
  [
    "too large once resolved",
    { "main.json": { ...doubling, l20: { type: "string" } } },
    "l0",
    "FAILED_SCHEMA_RESOLUTION",
    /more than 20000 values/,
  ],
];

for (const [name, files, schema, code, says] of BAD) {
  test(`unresolved: ${name}`, () => {
    const { found } = resolve(files, schema);
    assert.equal(found.kind, "unresolved");
    assert.equal(found.kind === "unresolved" && found.code, code);
    assert.match(found.kind === "unresolved" ? found.why : "", says);
  });
}

test("each file is read once, and the first folder that has it wins", () => {
  const files = {
    "main.json": { x: { allOf: [{ $ref: "other.json#/y" }, { $ref: "other.json#/z" }] } },
    "other.json": { y: THING, z: THING },
  };
  const { found, reads } = resolve(files, "x", "main.json", ["none", "s"]);
  assert.equal(found.kind, "schema");
  assert.equal(reads, 3);
});
