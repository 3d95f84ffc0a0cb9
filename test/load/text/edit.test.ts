import assert from "node:assert/strict";
import { test } from "node:test";
import type { Edit } from "../../../src/flow/problem.ts";
import { editJson } from "../../../src/load/text/edit.ts";

const at = (pointer: string, change: Omit<Edit, "file" | "pointer">) =>
  ({ file: "f", pointer, ...change }) as Edit;
const set = (pointer: string, value: unknown) => at(pointer, { kind: "set", value } as never);
const rename = (pointer: string, to: string) => at(pointer, { kind: "rename", to } as never);
const append = (pointer: string, value: unknown) => at(pointer, { kind: "append", value } as never);

const ROWS: readonly [string, string, readonly Edit[], string][] = [
  ["a scalar", '{ "a": 1, "b": 2 }', [set("/a", "x")], '{ "a": "x", "b": 2 }'],
  ["an element", '["a", "b"]', [set("/1", "c")], '["a", "c"]'],
  ["the whole", " 1 ", [set("", 2)], " 2 "],
  ["a list in one line", '{"a": ["x"]}', [set("/a", ["x", "y"])], '{"a": ["x", "y"]}'],
  [
    "a list over several lines",
    '{\n  "a": [\n    "x"\n  ]\n}',
    [set("/a", ["x", "y"])],
    '{\n  "a": [\n    "x",\n    "y"\n  ]\n}',
  ],
  ["a new member", '{ "a": 1 }', [set("/b", { target: null })], '{ "a": 1, "b": { "target": null } }'],
  ["a new member on its line", '{\n\t"a": 1\n}\n', [set("/b", 2)], '{\n\t"a": 1,\n\t"b": 2\n}\n'],
  [
    "a new member like its neighbour",
    '{\n  "a": {\n    "t": 1\n  }\n}',
    [set("/b", { t: 2 })],
    '{\n  "a": {\n    "t": 1\n  },\n  "b": {\n    "t": 2\n  }\n}',
  ],
  ["a new member of nothing", '{ "a": {} }', [set("/a/b", 1)], '{ "a": { "b": 1 } }'],
  ["a new member of what is not there", '{ "x": {} }', [set("/x/a/b", 1)], '{ "x": { "a": { "b": 1 } } }'],
  ["compact stays compact", '{"a":1}', [set("/b", [1, 2])], '{"a":1,"b":[1,2]}'],
  ["line ends stay", '{\r\n "a": 1\r\n}', [set("/b", 2)], '{\r\n "a": 1,\r\n "b": 2\r\n}'],
  ["two new members", '{ "a": 1 }', [set("/b", 2), set("/c", 3)], '{ "a": 1, "b": 2, "c": 3 }'],
  ["the same twice", '{ "a": 1 }', [set("/b", 2), set("/b", 2)], '{ "a": 1, "b": 2 }'],
  ["two for an empty one", "{}", [set("/b", 2), set("/c", 3)], '{ "b": 2 }'],
  ["one inside the other", '{ "a": [1] }', [set("/a", 1), set("/a/0", 2)], '{ "a": 1 }'],
  ["a name", '{ "a": 1, "q\\"": 2 }', [rename('/q"', "b")], '{ "a": 1, "b": 2 }'],
  ["a name that is taken", '{ "a": 1, "b": 2 }', [rename("/a", "b")], '{ "a": 1, "b": 2 }'],
  ["a name and what is below", '{ "a": [1] }', [rename("/a", "b"), set("/a/0", 2)], '{ "b": [2] }'],
  ["one more", '{ "a": ["x"] }', [append("/a", "y"), append("/a", "z")], '{ "a": ["x", "y", "z"] }'],
  ["the first", '{ "a": [ ] }', [append("/a", "y")], '{ "a": ["y"] }'],
  [
    "a list that is not there",
    '{ "x": 1 }',
    [append("/a", "y"), append("/a", "z")],
    '{ "x": 1, "a": ["y"] }',
  ],
  ["no list", '{ "a": 1 }', [append("/a", "y")], '{ "a": 1 }'],
  ["no object", '{ "a": [1] }', [set("/a/b", 1)], '{ "a": [1] }'],
  ["escaped names", '{ "a/b": { "~": 1 } }', [set("/a~1b/~0", 2)], '{ "a/b": { "~": 2 } }'],
  ["a member named twice", '{ "a": { "x": 1 }, "a": {} }', [set("/a/x", 2)], '{ "a": { "x": 1 }, "a": {} }'],
  ["no JSON", '{ "a": 1', [set("/a", 2)], '{ "a": 1'],
];

for (const [name, text, edits, expected] of ROWS) {
  test(`edited: ${name}`, () => {
    const edited = editJson(text, edits);
    assert.equal(edited.text, expected);
    assert.equal(edited.changes.length === 0, text === expected);
  });
}

test("a change tells its line, and what was there before", () => {
  const { changes } = editJson('{\n  "a": [\n    1\n  ]\n}', [set("/a", [2]), set("/b", 3)]);
  assert.deepEqual(
    changes.map(({ line, before, after }) => [line, before, after]),
    [
      [2, "[ 1 ]", "[2]"],
      [1, "", '"b": 3'],
    ],
  );
});
