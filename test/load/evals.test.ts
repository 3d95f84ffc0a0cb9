/** Files of evaluation tasks: what is read, and what is found wrong, with its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow } from "../../src/flow/flow.ts";
import { readEvals } from "../../src/load/evals.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const FLOW = {
  ...sketchFlow({ "closure.a": { edges: { closing: null } } }),
  checks: { "tests-pass": {} },
  parameters: [{ name: "issue", type: "number", description: "", flag: "--issue", required: false }],
} as unknown as Flow;

const FOLDER = `.agent/${FLOW.agent}/evals`;

function read(files: { readonly [name: string]: string }, folders: readonly string[] = []) {
  return readEvals(FLOW, {
    read: (path) => {
      const text = files[path.slice(FOLDER.length + 1)];
      return text === undefined ? { kind: "missing" } : { kind: "text", text };
    },
    list: (folder) => (folder === FOLDER ? Object.keys(files) : folders.includes(folder) ? ["a.js"] : null),
  });
}

test("a task takes what its file says, adds to it, and has to complete", () => {
  const text = [
    "params: { issue: 7 }",
    "project: shop",
    "min: { pass1: 0.8 }",
    "tasks:",
    "  - name: fixes it",
    "    git: true",
    '    expect: { turns: "<= 8" }',
    "    hidden: { files: secret, checks: [tests-pass] }",
    "  - { name: gives up, params: { issue: 9 }, expect: { code: ABORTED } }",
    "  - { name: later, skip: true }",
  ].join("\n");
  const folders = [`${FOLDER}/shop`, `${FOLDER}/secret`];
  const { tasks, min, problems } = read(
    { "a.yaml": text, "b.yaml": "min: { pass1: 0.5 }\ntasks: [{ name: b }]" },
    folders,
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(min, { pass1: 0.8 });
  assert.deepEqual(
    tasks.map(({ name, line, params, expect }) => [name, line, params, expect.values]),
    [
      ["fixes it", 5, { issue: 7 }, { turns: "<= 8", outcome: "completed" }],
      ["gives up", 9, { issue: 9 }, { code: "ABORTED" }],
      ["b", 2, {}, { outcome: "completed" }],
    ],
  );
  assert.deepEqual(tasks[0]!.hidden, { files: `${FOLDER}/secret`, checks: ["tests-pass"] });
  assert.deepEqual(tasks[0]!.project, {
    kind: "project",
    folder: `${FOLDER}/shop`,
    git: { commits: 1, branch: "main", dirty: false },
  });
  assert.equal(tasks[2]!.project, null);
});

const WRONG: readonly [what: string, text: string, code: string, line: number, words: RegExp][] = [
  ["an unknown key", "tasks:\n  - { name: a, proyect: x }", "UNKNOWN-KEY", 2, /proyect/],
  ["no tasks", "tasks: []", "EVAL-FILE", 1, /tasks/],
  ["an unknown parameter", "tasks:\n  - { name: a, params: { isue: 1 } }", "TEST-PARAM", 2, /issue/],
  [
    "an unknown check",
    "tasks:\n  - name: a\n    hidden: { checks: [test-pass] }",
    "EVAL-FILE",
    3,
    /tests-pass/,
  ],
  ["no such folder", "tasks:\n  - name: a\n    project: gone", "EVAL-FILE", 3, /gone/],
  [
    "no such hidden folder",
    "tasks:\n  - name: a\n    hidden: { files: gone, checks: [tests-pass] }",
    "EVAL-FILE",
    3,
    /gone/,
  ],
  ["an unknown expectation", "tasks:\n  - name: a\n    expect: { outcom: failed }", "TEST-KEY", 3, /outcome/],
  ["words to a model", "tasks:\n  - name: a\n    expect: { said: { saw: x } }", "EVAL-FILE", 3, /real run/],
  ["two tasks of one name", "tasks:\n  - name: a\n  - name: a", "EVAL-FILE", 3, /name "a"/],
  ["a rate above 1", "min: { pass1: 80 }\ntasks: [{ name: a }]", "EVAL-FILE", 1, /80/],
  ["no YAML", "tasks: [", "TEST-KEY", 1, /cannot be read/],
];
for (const [what, text, code, line, words] of WRONG)
  test(`found: ${what}`, () => {
    const { problems } = read({ "a.yaml": text });
    const [first] = problems;
    assert.deepEqual([first?.code, first?.file, first?.line], [code, `${FOLDER}/a.yaml`, line]);
    assert.match(first!.message, words);
  });

test("an agent without tasks has none", () => {
  assert.deepEqual(readEvals(FLOW, { read: () => ({ kind: "missing" }), list: () => null }), {
    tasks: [],
    min: {},
    problems: [],
  });
});
