import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocument } from "../../../src/load/text/document.ts";
import { pointerOf } from "../../../src/flow/json-pointer.ts";
import { JSON_DEPTH, membersWritten, scanJson } from "../../../src/flow/text/places.ts";
import { random } from "../../load/random.ts";
import { filesOf, tree } from "../../load/world.ts";

const TEXT = '{\n  "a": 1,\n  "b/c": [true,\n    { "d~": null }\n  ],\n  "é": "x",\n  "~1": 2\n}';

const PLACES: readonly [string, number, number][] = [
  ["", 1, 1],
  ["/a", 2, 3],
  ["/b~1c", 3, 3],
  ["/b~1c/0", 3, 11],
  ["/b~1c/1", 4, 5],
  ["/b~1c/1/d~0", 4, 7],
  ["/é", 6, 3],
  ["/~01", 7, 3],
  ["/a/not/there", 2, 3],
  ["/nowhere", 1, 1],
];

for (const [pointer, line, column] of PLACES) {
  test(`the place of "${pointer}"`, () => {
    assert.deepEqual(scanJson(TEXT).place(pointer), { line, column });
  });
}

const FAULTS: readonly [string, string, number, number, RegExp][] = [
  ["an empty file", "", 1, 1, /file is empty/],
  ["a trailing comma in an object", '{\n "a": 1,\n}', 3, 1, /comma before "}"/],
  ["a trailing comma in a list", "[1,\n]", 2, 1, /comma before "]"/],
  ["a missing comma", '{ "a": 1\n  "b": 2 }', 2, 3, /"," or "}" is missing/],
  ["a missing colon", '{ "a" 1 }', 1, 7, /":" is missing/],
  ["single quotes", "{ 'a': 1 }", 1, 3, /double quotes/],
  ["an open string", '{ "a": "x\n" }', 1, 8, /not closed/],
  ["an open object", '{ "a": 1', 1, 9, /ends inside an object/],
  ["an open list", '{ "a": [1', 1, 10, /ends inside a list/],
  ["a bare word", '{ "a": yes }', 1, 8, /not a valid JSON value/],
  ["a comment at the end", "{} // x", 1, 4, /JSON has no comments/],
  ["a comment within", '{\n  /* x */ "a": 1 }', 2, 3, /JSON has no comments/],
  ["a comment in a list", "[1, // x\n 2]", 1, 5, /JSON has no comments/],
  ["more text", "{} x", 1, 4, /text after the end/],
  ["a leading zero", "[01]", 1, 2, /not a valid JSON value/],
];

for (const [name, text, line, column, says] of FAULTS) {
  test(`${name} is found where it is`, () => {
    const read = readDocument(filesOf({ "a.json": text }), "a.json");
    assert.equal(read.kind, "broken");
    assert.deepEqual(read.kind === "broken" && read.place, { line, column });
    assert.match(read.kind === "broken" ? read.what : "", says);
  });
}

test("a byte order mark is no fault", () => {
  const read = readDocument(filesOf({ "a.json": '\uFEFF{ "a": 1 }' }), "a.json");
  assert.deepEqual(read.kind === "read" && read.document.value, { a: 1 });
});

test("no depth of nesting overflows", () => {
  const text = "[".repeat(200_000) + "]".repeat(200_000);
  assert.match(scanJson(text).fault?.what ?? "", /is nested deeper than 200 levels/);
  assert.equal(scanJson("[".repeat(200) + "]".repeat(200)).fault, null);
});

test("the scan and JSON.parse agree on what is JSON, and on every pointer", () => {
  const good = Object.values(tree()).filter((text) => text.startsWith("{"));
  const next = random(7);
  for (let round = 0; round < 2_000; round++) {
    const source = good[round % good.length]!;
    const at = Math.floor(next() * source.length);
    const inserted = ['"', ",", "}", "]", ":", "\\", "0", " ", "\n", "{"][Math.floor(next() * 10)]!;
    const text = source.slice(0, at) + inserted + source.slice(at + (next() < 0.5 ? 1 : 0));
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = undefined;
    }
    const scan = scanJson(text);
    assert.equal(scan.fault === null, value !== undefined, text);
    if (value === undefined) continue;
    for (const path of pathsOf(value)) {
      const { line, column } = scan.place(pointerOf(path));
      const here = text.split("\n")[line - 1]!.slice(column - 1);
      const key = path.at(-1);
      if (key !== undefined && !/^\d+$/.test(key))
        assert.ok(here.startsWith('"'), `${pointerOf(path)}: ${here}`);
    }
  }
});

function* pathsOf(value: unknown, path: readonly string[] = []): Generator<readonly string[]> {
  yield path;
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) yield* pathsOf(member, [...path, key]);
}

test("a text that nests too deeply is known by its brackets, and not by what stands in texts", () => {
  const deep = (levels: number, inner = "1") => "[".repeat(levels) + inner + "]".repeat(levels);
  const most = JSON_DEPTH;
  const rows: readonly (readonly [text: string, isDeep: boolean])[] = [
    [deep(most), false],
    [deep(most + 1), true],
    [`{"a":${deep(most - 1)}}`, false],
    [`{"a":${deep(most)}}`, true],
    [deep(most - 1, "1,[],{},[]"), false],
    [JSON.stringify("[".repeat(most + 2)), false],
    [`["x", "xy", ${JSON.stringify('"[')}, ${deep(most - 1)}]`, false],
    [`["x", "xy", "", ${deep(most)}]`, true],
    [`["\\\\", "\\"", ${deep(most)}]`, true],
  ];
  for (const [text, isDeep] of rows) assert.equal(membersWritten(text) === null, isDeep, text.slice(0, 60));
});
