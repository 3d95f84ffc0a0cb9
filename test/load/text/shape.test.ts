import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import type { Json } from "../../../src/flow/json.ts";
import { AGENT } from "../../../src/load/agent/agent-shape.ts";
import { emptyDocument } from "../../../src/load/text/document.ts";
import type { Finding } from "../../../src/load/rules/rule.ts";
import { REGISTRY } from "../../../src/load/registry/registry-shape.ts";
import {
  anything,
  flag,
  group,
  list,
  map,
  number,
  object,
  openGroup,
  text,
  toJsonSchema,
} from "../../../src/flow/shape.ts";
import { readShape } from "../../../src/load/text/shape.ts";
import { AGENT as GOOD_AGENT, REGISTRY as GOOD_REGISTRY } from "../world.ts";

const SHAPE = group("A thing.", {
  name: text("Its name.", { required: true, pattern: "^[a-z]+$" }),
  size: number("Its size.", { default: 3, min: 1, integer: true }),
  open: flag("Whether it is open.", { default: false }),
  mode: text("Its mode.", { enum: ["a", "b"], old: { ay: "a" }, default: "b" }),
  tags: list("Its tags.", text("A tag."), { default: [] }),
  parts: map("Its parts.", object("A part.", { weight: number("How heavy.", { required: true }) })),
  inner: group("More.", { deep: text("Deep.", { default: "x", required: true }) }),
  free: openGroup("Free.", { known: flag("Known.") }, number("A number.")),
  extra: anything("Anything.", { types: ["object", "string"] }),
  next: text("The next one.", { nullable: true }),
});

function read(value: Json) {
  const findings: Finding[] = [];
  const result = readShape(SHAPE, value, "", {
    document: emptyDocument("f.json"),
    code: "AC-VALID-001",
    findings,
  });
  return { result, said: findings.map(({ code, pointer, message }) => `${code} ${pointer} ${message}`) };
}

test("what is absent has its default, all the way down", () => {
  const { result, said } = read({ name: "n" });
  assert.deepEqual(said, []);
  assert.deepEqual(
    { ...result, parts: [...result.parts], inner: { ...result.inner }, free: [...result.free.rest] },
    {
      name: "n",
      size: 3,
      open: false,
      mode: "b",
      tags: [],
      parts: [],
      inner: { deep: "x" },
      free: [],
      extra: undefined,
      next: undefined,
    },
  );
});

test("what is written is read", () => {
  const { result, said } = read({
    name: "n",
    size: 4,
    tags: ["t"],
    parts: { p: { weight: 2 } },
    free: { known: true, a: 1 },
    next: null,
    $schema: "s",
  });
  assert.deepEqual(said, []);
  assert.equal(result.parts.get("p")?.weight, 2);
  assert.deepEqual([...result.free.rest], [["a", 1]]);
  assert.equal(result.next, null);
});

const FAULTS: readonly [string, Json, RegExp][] = [
  ["missing", {}, /AC-VALID-001 \/name name is missing/],
  ["wrong type", { name: 1 }, /\/name name is 1, but must be a string/],
  ["off the pattern", { name: "N" }, /must be text that matches/],
  ["too small", { name: "n", size: 0 }, /a whole number of at least 1/],
  ["no whole number", { name: "n", size: 1.5 }, /a whole number/],
  ["wrong word", { name: "n", mode: "c" }, /must be one of "a", "b"/],
  ["former word", { name: "n", mode: "ay" }, /OLD-NAME \/mode .*old name of "a"/],
  ["no flag", { name: "n", open: "yes" }, /true or false/],
  ["no list", { name: "n", tags: "t" }, /must be a list/],
  ["wrong member", { name: "n", tags: ["a", 1] }, /\/tags\/1 .* must be a string/],
  ["no object", { name: "n", parts: [] }, /\/parts .* must be an object/],
  ["missing in a member", { name: "n", parts: { "a/b": {} } }, /\/parts\/a~1b\/weight/],
  ["wrong kind of anything", { name: "n", extra: [] }, /an object or a string/],
  ["unknown key", { name: "n", siez: 1 }, /UNKNOWN-KEY \/siez .*Did you mean "size"/],
  ["a key of objects", { name: "n", ["__proto__"]: 1 }, /UNKNOWN-KEY \/__proto__/],
];

for (const [name, value, says] of FAULTS) {
  test(`reported: ${name}`, () => {
    const { said } = read(value);
    assert.equal(said.length, 1, said.join("\n"));
    assert.match(said[0]!, says);
  });
}

test("the same tables are JSON Schemas that take the good files and refuse a misspelled key", () => {
  const ajv = new Ajv({ strict: false });
  for (const [shape, good] of [
    [AGENT, GOOD_AGENT],
    [REGISTRY, GOOD_REGISTRY],
  ] as const) {
    const validate = ajv.compile(toJsonSchema(shape));
    assert.equal(validate(good), true, JSON.stringify(validate.errors));
    assert.equal(validate({ ...good, nmae: 1 }), false);
  }
});
