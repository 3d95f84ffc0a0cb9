/** Files of evaluation tasks: what is read, and what is found wrong, with its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Check, Flow } from "../../src/flow/flow.ts";
import { readEvals } from "../../src/load/evals.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const FLOW = {
  ...sketchFlow({ "closure.a": { edges: { closing: null } } }),
  checks: { "tests-pass": {} },
  parameters: [{ name: "issue", type: "number", description: "", flag: "--issue", required: false }],
} as unknown as Flow;

/** One check is used by a step, the other is only declared. */
const AGENT = { flow: FLOW, checks: { ...FLOW.checks, spare: {} as Check } };

const FOLDER = `.agent/${FLOW.agent}/evals`;

const everyFolder = { includes: () => true };

function read(files: { readonly [name: string]: string }, folders: Pick<readonly string[], "includes"> = []) {
  return readEvals(AGENT, {
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
  ["an unknown key", "tasks:\n  - { name: a, proyect: x }", "EVAL-FILE", 2, /proyect/],
  ["no tasks", "tasks: []", "EVAL-FILE", 1, /tasks/],
  ["an unknown parameter", "tasks:\n  - { name: a, params: { isue: 1 } }", "EVAL-FILE", 2, /issue/],
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
  [
    "an unknown expectation",
    "tasks:\n  - name: a\n    expect: { outcom: failed }",
    "EVAL-FILE",
    3,
    /outcome/,
  ],
  ["words to a model", "tasks:\n  - name: a\n    expect: { said: { saw: x } }", "EVAL-FILE", 3, /real run/],
  ["two tasks of one name", "tasks:\n  - name: a\n  - name: a", "EVAL-FILE", 3, /name "a"/],
  ["a rate above 1", "min: { pass1: 80 }\ntasks: [{ name: a }]", "EVAL-FILE", 1, /80/],
  ["an unknown parameter of all", "params: { isue: 1 }\ntasks: [{ name: a }]", "EVAL-FILE", 1, /issue/],
  ["a parameter of another type", "tasks:\n  - { name: a, params: { issue: x } }", "EVAL-FILE", 2, /issue/],
  ["the same, of all", "params: { issue: x }\ntasks:\n  - { name: a }", "EVAL-FILE", 3, /issue/],
  [
    "a misspelled key of git",
    "project: shop\ntasks:\n  - name: a\n    git: { comits: 3 }",
    "EVAL-FILE",
    4,
    /commits/,
  ],
  [
    "fewer commits than none, for all",
    "git: { commits: -3 }\nproject: shop\ntasks: [{ name: a }]",
    "EVAL-FILE",
    1,
    /-3/,
  ],
  [
    "a misspelled key of a file",
    "tasks:\n  - name: a\n    expect: { files: { a.js: { hass: x } } }",
    "EVAL-FILE",
    3,
    /hass/,
  ],
  ["git without a project", "tasks:\n  - name: a\n    git: true", "EVAL-FILE", 3, /no project/],
  [
    "git expected of a plain folder",
    "project: shop\ntasks:\n  - name: a\n    expect: { git: { clean: true } }",
    "EVAL-FILE",
    4,
    /not a repository/,
  ],
  ["no YAML", "tasks: [", "EVAL-FILE", 1, /cannot be read/],
];
for (const [what, text, code, line, words] of WRONG)
  test(`found: ${what}`, () => {
    const { problems } = read({ "a.yaml": text }, [`${FOLDER}/shop`]);
    const [first] = problems;
    assert.deepEqual([first?.code, first?.file, first?.line], [code, `${FOLDER}/a.yaml`, line]);
    assert.match(first!.message, words);
  });

const HIDDEN: readonly [project: string, files: string, isSeen: boolean][] = [
  ["shop", "secret", false],
  ["shop", "shop/secret", true],
  ["shop", "shop", true],
  [".", "secret", true],
  ["../../..", "secret", false],
  ["../../..", "../../../secret", true],
  ["../..", "secret", true],
  ["shop", "../secret", true],
  ["shop", "../../other/evals/secret", false],
];
for (const [project, files, isSeen] of HIDDEN)
  test(`hidden files in ${files} are ${isSeen ? "" : "not "}seen by a run in a copy of ${project}`, () => {
    const text = `tasks:\n  - name: a\n    project: ${project}\n    hidden: { files: ${files}, checks: [spare] }`;
    const { problems } = read({ "a.yaml": text }, everyFolder);
    assert.deepEqual(
      problems.map(({ code, line }) => [code, line]),
      isSeen ? [["EVAL-FILE", 4]] : [],
      problems[0]?.message,
    );
  });

test("an agent without tasks has none", () => {
  assert.deepEqual(readEvals(AGENT, { read: () => ({ kind: "missing" }), list: () => null }), {
    tasks: [],
    min: {},
    problems: [],
  });
});
