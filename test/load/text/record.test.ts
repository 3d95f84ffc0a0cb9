import assert from "node:assert/strict";
import { test } from "node:test";
import { flag, group, list, map, number, text, type Form } from "../../../src/flow/shape.ts";
import { AGENT } from "../../../src/load/agent/agent-shape.ts";
import { CHECK_REGISTRY } from "../../../src/load/questions/questions-shape.ts";
import { COMPLETE_REGISTRY, REGISTRY } from "../../../src/load/registry/registry-shape.ts";
import { CODES } from "../../../src/load/codes.ts";
import { MACHINE, STAGE } from "../../../src/load/stages/stage-shape.ts";
import { emptyDocument } from "../../../src/load/text/document.ts";
import { leavesIn, recordOf } from "../../../src/load/text/record.ts";
import { readShape } from "../../../src/load/text/shape.ts";

const SHAPE = group("A thing.", {
  open: flag("Open.", { default: false, later: true }),
  labels: list("Labels.", text("A label."), { default: [], later: true }),
  most: number("Most.", { default: null, min: 1 }),
  name: text("Its name."),
  inner: group("More.", { deep: flag("Deep.", { default: true }) }),
  parts: map("Parts.", text("A part.")),
});
const read = (value: object) =>
  readShape(SHAPE, value as never, "", { document: emptyDocument("f"), code: "AC-VALID-001", findings: [] });

const rows: readonly (readonly [name: string, value: object, record: object])[] = [
  ["what was added later is left out at its default", {}, { most: null, inner: { deep: true }, parts: {} }],
  [
    "and kept where it is something else",
    { open: true, labels: ["a"] },
    { open: true, labels: ["a"], most: null, inner: { deep: true }, parts: {} },
  ],
  [
    "what is written is kept",
    { most: 2, name: "n", inner: { deep: false }, parts: { a: "x" } },
    { most: 2, name: "n", inner: { deep: false }, parts: { a: "x" } },
  ],
  [
    "a default that is written is the same as one that is not",
    { open: false, labels: [], inner: { deep: true } },
    { most: null, inner: { deep: true }, parts: {} },
  ],
];

for (const [name, value, record] of rows) {
  test(`a record: ${name}`, () => {
    assert.deepEqual(recordOf(SHAPE, read(value)), record);
  });
}

test("a whole record has every default", () => {
  assert.deepEqual(
    leavesIn(SHAPE, read({})).map(({ path, value }) => [path.join("."), value]),
    [
      ["open", false],
      ["labels", []],
      ["most", null],
      ["name", null],
      ["inner.deep", true],
      ["parts", {}],
    ],
  );
});

function* codesIn(form: Form): Generator<string> {
  for (const code of [form.code, form.missing]) if (code !== undefined) yield code;
  if (form.kind === "list" || form.kind === "map") yield* codesIn(form.of);
  if (form.kind === "object") for (const field of Object.values(form.fields)) yield* codesIn(field);
}

test("every code that a table names is declared", () => {
  const shapes = [AGENT, REGISTRY, COMPLETE_REGISTRY, CHECK_REGISTRY, MACHINE, STAGE];
  const named = shapes.flatMap((form) => Array.from(codesIn(form)));
  assert.ok(named.length > 20);
  assert.deepEqual(
    named.filter((code) => !Object.hasOwn(CODES, code)),
    [],
  );
});
