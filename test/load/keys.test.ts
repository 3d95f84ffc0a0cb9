import assert from "node:assert/strict";
import { test } from "node:test";
import { repeatedMembers } from "../../src/load/places.ts";
import { load, tree } from "./world.ts";

const REPEATED: readonly [name: string, text: string, found: readonly [string, number, number][]][] = [
  ["nothing twice", '{ "a": { "a": 1 }, "b": [{ "a": 1 }, { "a": 2 }], "c": "\\"a\\": 1" }', []],
  ["at the top", '{ "a": 1,\n  "b": 2, "a": 3 }', [["/a", 2, 11]]],
  [
    "three times",
    '{ "a": 1, "a": 2,\n"a": 3 }',
    [
      ["/a", 1, 11],
      ["/a", 2, 1],
    ],
  ],
  ["within a list", '[0, {}, { "x/y": 1, "x/y": { "z": [] } }]', [["/2/x~1y", 1, 21]]],
  ["spelled in two ways", '{ "a": 1, "\\u0061": 2 }', [["/a", 1, 11]]],
  ["in the first of two", '{ "p": { "q": 1, "q": 2 }, "r": { "q": 3 } }', [["/p/q", 1, 18]]],
  ["a value like a key", '{ "a": "a", "b": ["a", "a"] }', []],
  ["names of the language", '{ "__proto__": 1, "toString": 2, "__proto__": 3 }', [["/__proto__", 1, 34]]],
];

for (const [name, text, found] of REPEATED) {
  test(`members that stand twice: ${name}`, () => {
    assert.deepEqual(
      repeatedMembers(text).map(({ pointer, place }) => [pointer, place.line, place.column]),
      found,
    );
  });
}

/** What is put before a line of a good file, and what is then found: at the second place, which is the line itself. */
const ROWS: readonly {
  readonly name: string;
  readonly file: string;
  readonly before: string;
  readonly put: string;
  readonly severity: "error" | "warning";
  readonly pointer: string;
  readonly step: string | null;
}[] = [
  {
    name: "two steps of one id",
    file: "steps_registry.json",
    before: '    "closure.issue": {\n      "stepId": "closure.issue",\n      "name": "Issue Closure Prompt"',
    put: '    "closure.issue": { "stepId": "closure.issue" },\n',
    severity: "error",
    pointer: "/steps/closure.issue",
    step: "closure.issue",
  },
  {
    name: "a key of a step",
    file: "steps_registry.json",
    before: '      "c2": "continuation"',
    put: '      "c2": "initial",\n',
    severity: "warning",
    pointer: "/steps/continuation.issue/c2",
    step: "continuation.issue",
  },
  {
    name: "a key of agent.json",
    file: "agent.json",
    before: '  "name": "iterator"',
    put: '  "name": "other",\n',
    severity: "warning",
    pointer: "/name",
    step: null,
  },
  {
    name: "a key of a schema",
    file: "schemas/issue.schema.json",
    before: '  "closure.issue": {',
    put: '  "closure.issue": {},\n',
    severity: "warning",
    pointer: "/closure.issue",
    step: null,
  },
];

for (const { name, file, before, put, severity, pointer, step } of ROWS) {
  test(`DUPLICATE-KEY: ${name}`, () => {
    const path = `.agent/iterator/${file}`;
    const good = tree();
    const text = good[path]!;
    const at = text.indexOf(before);
    assert.ok(at > 0);
    const { problems } = load({ ...good, [path]: text.slice(0, at) + put + text.slice(at) });
    const line = (text.slice(0, at) + put).split("\n").length;
    const column = before.length - before.trimStart().length + 1;
    assert.deepEqual(
      problems.map((one) => [one.code, one.severity, one.file, one.line, one.column, one.pointer, one.step]),
      [["DUPLICATE-KEY", severity, path, line, column, pointer, step]],
    );
  });
}
