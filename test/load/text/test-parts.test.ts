/** A key of a test file that is misspelled, or that the ground of the test does not look at, is an error with its line. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../../src/flow/json.ts";
import type { Form } from "../../../src/flow/shape.ts";
import { readTests } from "../../../src/load/tests.ts";
import { REPLY, TEST, TEST_FILE, TEST_PARTS } from "../../../src/load/text/tests-shape.ts";
import { load } from "../../../src/run/load.ts";
import { filesOf } from "../world.ts";

const cwd = new URL("../../../examples/01-fix-a-test/", import.meta.url).pathname;
const { flow } = await load("fixer", { cwd });

function problemsIn(file: Json | string) {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  const files = filesOf({
    ".agent/fixer/tests/one.yaml": text,
    ".agent/fixer/tests/box/a.txt": "",
  });
  return readTests(flow!, files).problems.map(
    ({ code, severity, line, message }) => `${severity} ${code} ${line} ${message}`,
  );
}

const SCRIPT = ["initial.issue next", "continuation.issue handoff", "closure.issue closing"];
const fileWith = (test: { readonly [key: string]: Json }) => ({
  tests: [{ name: "one", script: SCRIPT, ...test }],
});

/** Every key of the shape with one letter too many. */
function misspelled({ kind, ...form }: Form): readonly string[] {
  return kind === "object" && "fields" in form ? Object.keys(form.fields).map((key) => `${key}x`) : [];
}

/** A value at a place of TEST_PARTS. */
function at(place: string, value: Json): Json {
  return place
    .split("/")
    .reduceRight<Json>(
      (inner, segment) => (segment === "[]" ? [inner] : { [segment === "*" ? "a" : segment]: inner }),
      value,
    );
}

test("every key of every object of a test file is an error when it is misspelled, with what was meant", () => {
  const places: (readonly [key: string, file: Json])[] = [
    ...misspelled(TEST_FILE).map((key) => [key, { ...fileWith({}), [key]: "a" }] as const),
    ...misspelled(TEST).map((key) => [key, fileWith({ [key]: "a" })] as const),
    ...misspelled(REPLY).map(
      (key) => [key, fileWith({ script: [{ step: "initial.issue", label: "next", [key]: "a" }] })] as const,
    ),
    ...TEST_PARTS.flatMap(([place, shape]) =>
      misspelled(shape).map((key) => [key, fileWith(at(place, { [key]: "a" }) as never)] as const),
    ),
  ];
  assert.ok(places.length > 80, `${places.length} keys`);
  for (const [key, file] of places) {
    const found = problemsIn(file).find(
      (one) => one.startsWith("error TEST-KEY") && one.includes(`"${key}"`),
    );
    assert.match(found ?? "nothing was reported", /Did you mean/, `${key} in ${JSON.stringify(file)}`);
  }
});

const ROWS: readonly (readonly [what: string, test: string, problem: RegExp | null])[] = [
  ["a call without its name", "script: [{ step: initial.issue, calls: [{ nme: Read }] }]", /5 .*"nme"/],
  [
    "a fault that does not exist",
    "script: [{ error: { kind: rate-limt } }]",
    /5 .*Did you mean "rate-limit"/,
  ],
  ["zero times", "script: [{ step: initial.issue, label: next, times: 0 }]", /5 .*at least 1/],
  ["an answer that is not a text", "answers: [7]", /5 .*answers.* is 7, but must be a string/],
  ["an answer of nobody", "answers: [null, sure]", null],
  ["a table of checks in memory", "checks: { tests-pass: [fail, { exit: 0 }] }", null],
  [
    "a table of checks on a copy",
    "project: box, checks: { tests-pass: fail }",
    /5 checks is for tests in memory/,
  ],
  ["a table of tools on a copy", "project: box, tools: { Read: x }", /5 tools is for tests in memory/],
  ["a table of hooks on a copy", "project: box, hooks: { gate: 1 }", /5 hooks is for tests in memory/],
  ["a table of sights on a copy", "project: box, sights: [true]", /5 sights is for tests in memory/],
  ["an order on a copy", "project: box, order: [initial.issue]", /5 order is for tests in memory/],
  ["a repository in memory", "git: true", /5 git needs a copy of a project/],
  ["a repository on a copy", "project: box, git: true", null],
  ["GitHub in memory", "github: { issue: 7 }", /5 github needs a copy of a project/],
  ["files in memory", "expect: { files: { a: absent } }", /5 expect\.files needs a copy of a project/],
  ["files on a copy", "project: box, expect: { files: { a: absent } }", null],
  ["changes in memory", "expect: { changed: [] }", /5 expect\.changed needs a copy/],
  ["git afterwards in memory", "expect: { git: absent }", /5 expect\.git needs a copy/],
  ["GitHub afterwards in memory", "expect: { github: absent }", /5 expect\.github needs a copy/],
];

for (const [what, written, problem] of ROWS)
  test(`${what} is ${problem === null ? "read" : "an error"}`, () => {
    const found = problemsIn(`params: { issue: 7 }\ntests:\n  - {\n    name: one,\n    ${written} }\n`);
    if (problem === null) assert.deepEqual(found, []);
    else assert.match(found.join("\n"), problem);
    assert.ok(found.every((one) => one.startsWith("error ")));
  });

test("what all tests of a file share is held against the ground that they have", () => {
  const one = { name: "one", script: SCRIPT };
  const rows: readonly (readonly [
    shared: { readonly [key: string]: Json },
    test: Json,
    says: RegExp | null,
  ])[] = [
    [{ checks: { "tests-pass": "fail" } }, { ...one, project: "box" }, null],
    [{ checks: { "tests-pass": "fail" }, project: "box" }, one, /checks is for tests in memory/],
    [{ github: { issue: 7 } }, { ...one, project: "box" }, null],
    [{ github: { issue: 7 } }, one, /github needs a copy/],
    [
      { github: { isue: 7 } },
      { ...one, project: "box" },
      /"isue" is not a key of github\. Did you mean "issue"/,
    ],
  ];
  for (const [shared, written, says] of rows) {
    const found = problemsIn({ ...shared, tests: [written] }).join("\n");
    if (says === null) assert.equal(found, "");
    else assert.match(found, says);
  }
});

test("what every case of a table shows is reported once", () => {
  const found = problemsIn(
    fileWith({
      name: "${case.a}",
      cases: [{ a: "x" }, { a: "y" }],
      script: [{ setp: "initial.issue", label: "next" }],
    }),
  );
  assert.equal(found.length, 1, found.join("\n"));
});
