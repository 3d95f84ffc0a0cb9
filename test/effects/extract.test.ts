import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { extract } from "../../src/effects/extract.ts";
import type { Json } from "../../src/flow/json.ts";
import { GIT_STATUS, NODE_SPEC, NODE_TAP, TSC, TSC_PRETTY } from "./recorded.ts";

function from(name: string, stdout: string, stderr = "", exitCode: number | null = 1): Json {
  return extract(name, { stdout, stderr, exitCode });
}

const quoted = '"with \\"quotes\\".ts"';

describe("git status", () => {
  const cases: readonly [string, readonly string[]][] = [
    ["parseChangedFiles", ["staged.ts", "unstaged.ts", "both.ts", quoted, "old.ts -> new.ts", "gone.ts"]],
    ["parseUntrackedFiles", ["untracked.ts", "folder/"]],
    ["parseStagedFiles", ["staged.ts", "both.ts", quoted, "old.ts -> new.ts"]],
    ["parseUnstagedFiles", ["unstaged.ts", "both.ts", "gone.ts"]],
  ];
  for (const [name, expected] of cases) {
    test(name, () => {
      assert.deepEqual(from(name, GIT_STATUS), expected);
      assert.deepEqual(from(name, ""), []);
      assert.deepEqual(from(name, "fatal: not a git repository"), []);
    });
  }
});

describe("failed tests", () => {
  const cases: readonly [string, string, Json][] = [
    [
      "node:test, TAP",
      NODE_TAP,
      [
        {
          name: "adds",
          file: "/tmp/lab/a.test.ts",
          error: "Expected values to be strictly equal:\n\n2 !== 3",
        },
        { name: "nested fails", file: "/tmp/lab/a.test.ts", error: "boom" },
      ],
    ],
    [
      "Deno, with its error section",
      "adds ... FAILED (5ms)\n\n ERRORS \n\nadds => ./a_test.ts:3:6\nerror: AssertionError: Values are not equal.\n\n    [Diff]\n\n FAILURES \n\nadds => ./a_test.ts:3:6\n\nFAILED | 1 passed | 1 failed (9ms)",
      [
        {
          name: "adds",
          file: "./a_test.ts",
          error: "error: AssertionError: Values are not equal.\n\n    [Diff]\n\n FAILURES",
        },
      ],
    ],
    ["FAILED | name", "FAILED | adds\nwhy", [{ name: "adds", error: "why" }]],
    [
      "file ... FAILED",
      "./a_test.ts ... FAILED (5ms)",
      [{ name: "./a_test.ts", file: "./a_test.ts", error: "" }],
    ],
    ["the counting line alone", "FAILED | 1 passed | 1 failed (9ms)", []],
    [
      "only an assertion",
      "x\nAssertionError: no\n  at y",
      [{ name: "AssertionError", error: "AssertionError: no\n  at y" }],
    ],
    ["everything passed", "ok 1 - adds\n# pass 1", []],
    ["an open block", "not ok 1 - a\n  ---\n  error: 'b'", [{ name: "a", error: "b" }]],
  ];
  for (const [name, stdout, expected] of cases) {
    test(name, () => {
      assert.deepEqual(from("failedTests", stdout), expected);
      assert.deepEqual(from("parseTestOutput", "", stdout), expected);
    });
  }

  test("node:test, for people", () => {
    const found = from("failedTests", NODE_SPEC) as { name: string; file: string; error: string }[];
    assert.deepEqual(
      found.map(({ name, file }) => [name, file]),
      [
        ["adds", "a.test.ts"],
        ["nested fails", "a.test.ts"],
      ],
    );
    assert.match(found[0]?.error ?? "", /^AssertionError \[ERR_ASSERTION\]: Expected values/);
    assert.match(found[1]?.error ?? "", /^Error: boom\n {4}at /);
  });
});

describe("type errors", () => {
  const message = "TS2322: Type 'string' is not assignable to type 'number'.";
  const cases: readonly [string, string, Json][] = [
    [
      "tsc",
      TSC,
      [
        { file: "t/bad.ts", line: 1, column: 7, message },
        { file: "t/bad.ts", line: 2, column: 40, message },
      ],
    ],
    ["tsc --pretty", TSC_PRETTY, [{ file: "t/bad.ts", line: 1, column: 7, message }]],
    [
      "Deno",
      "error: TS2322 [ERROR]: Type 'string' is not assignable to type 'number'.\nconst x: number = 'a';\n      ~\n    at file:///w/a.ts:1:7\n\nTS2304 [ERROR]: Cannot find name 'y'.\n",
      [
        { file: "/w/a.ts", line: 1, column: 7, message },
        { file: "unknown", line: 0, message: "TS2304: Cannot find name 'y'." },
      ],
    ],
    [
      "a place and a word",
      "src/a.ts:3:9: error: bad",
      [{ file: "src/a.ts", line: 3, column: 9, message: "error: bad" }],
    ],
    [
      "a place without a column",
      "src/a.ts:3 SyntaxError",
      [{ file: "src/a.ts", line: 3, message: "SyntaxError" }],
    ],
    ["no place", "error: it broke", [{ file: "unknown", line: 0, message: "it broke" }]],
    ["none", "All good", []],
  ];
  for (const [name, output, expected] of cases) {
    test(name, () => {
      assert.deepEqual(from("parseTypeErrors", output), expected);
      assert.deepEqual(from("errors", "", output), expected);
    });
  }
});

describe("files", () => {
  test("that are named with a line, each once", () => {
    const stdout = `${TSC}\nsrc/a.tsx:3:1 and (file:///w/b.ts:4:2) at node_modules/x/y.ts:1 node:fs.js:2 c.ts d.mjs:9`;
    assert.deepEqual(from("files", stdout, "src/a.tsx:9"), ["t/bad.ts", "src/a.tsx", "/w/b.ts", "d.mjs"]);
    assert.deepEqual(from("extractFiles", "nothing"), []);
  });

  test("that are not formatted", () => {
    const stdout =
      "Checking formatting...\n[warn] src/a.ts\n t/bad.ts (0ms)\n/w/c.json\nerror: Found 1 file in x.md\nREADME.md\nsrc/a.ts\nmain.rs\n";
    const expected = ["src/a.ts", "t/bad.ts", "/w/c.json", "README.md"];
    assert.deepEqual(from("parseFormatOutput", stdout), expected);
    assert.deepEqual(from("formatFiles", stdout), expected);
  });
});

describe("the raw and the unknown", () => {
  const cases: readonly [string, Json][] = [
    ["stdout", "out\n"],
    ["stderr", " err\n"],
    ["exitCode", 1],
    ["errorOutput", "err"],
    ["parseBranchName", null],
    ["nonsense", null],
    ["constructor", null],
    ["__proto__", null],
    ["", null],
  ];
  for (const [name, expected] of cases) {
    test(JSON.stringify(name), () => assert.deepEqual(from(name, "out\n", " err\n"), expected));
  }

  test("errorOutput without stderr begins at the first error", () => {
    assert.equal(from("errorOutput", "fine\nfine\nerror: bad\nmore\n"), "error: bad\nmore");
    assert.equal(from("errorOutput", " just text \n"), "just text");
  });
});

test("hostile output is read, in linear time", () => {
  const pieces = [
    "not ok 1 - a\n---\n",
    "✖ a (1ms)\n",
    "✖ a (1",
    "TS1 [ERROR]: x\n",
    "a => b:1:1\n",
    " => b:1",
    "FAILED | a\n",
    " ... FAILED",
    "a.ts:1:",
    "a.ts(1,",
    "AssertionError:\n",
    "\u001b[",
    "error: ",
    "at a:1:",
    "a".repeat(100),
    " ",
    ".",
  ];
  const names = ["failedTests", "errors", "files", "formatFiles", "errorOutput", "parseChangedFiles"];
  for (const piece of pieces) {
    const output = piece.repeat(Math.floor(200_000 / piece.length));
    for (const name of names) from(name, output, "");
  }
});
