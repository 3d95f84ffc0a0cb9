import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { meaningOf } from "../../../src/effects/checks/extract-meaning.ts";
import { extract } from "../../../src/effects/checks/extract.ts";
import { linesOf } from "../../../src/effects/process/output.ts";
import type { Json } from "../../../src/flow/json.ts";
import { EXTRACTORS } from "../../../src/load/registry/guards.ts";
import type { Tool } from "../recorded.ts";
import { OUTPUTS, recorded, RECORDED } from "../recorded.ts";

function from(name: string, stdout: string, stderr = "", exitCode: number | null = 1): Json {
  return extract(name, { stdout, stderr, exitCode });
}

test("every name that a flow may use is known here", () => {
  const unknown = [...EXTRACTORS].filter((name) => from(name, "x") === null);
  assert.deepEqual(unknown, []);
});

test("every recorded output is named with the command that printed it", () => {
  const files = readdirSync(OUTPUTS).map((file) => file.replace(/\.txt$/, ""));
  assert.deepEqual(files.toSorted(), Object.keys(RECORDED).toSorted());
});

describe("git: files", () => {
  const quoted = '"with \\"quotes\\".ts"';
  const cases: readonly [string, readonly string[]][] = [
    ["parseChangedFiles", ["both.ts", "gone.ts", "old.ts -> new.ts", "staged.ts", "unstaged.ts", quoted]],
    ["parseUntrackedFiles", ["folder/", "untracked.ts"]],
    ["parseStagedFiles", ["both.ts", "old.ts -> new.ts", "staged.ts", quoted]],
    ["parseUnstagedFiles", ["both.ts", "gone.ts", "unstaged.ts"]],
  ];
  for (const [name, expected] of cases) {
    test(name, () => {
      assert.deepEqual(from(name, recorded("git-status")), expected);
      assert.deepEqual(from(name, ""), []);
      assert.deepEqual(from(name, "fatal: not a git repository"), []);
    });
  }
});

describe("git: branch, upstream and merge", () => {
  const cases: readonly [Tool, branch: string, remote: string, merge: string][] = [
    ["git-status", "main", "up to date", ""],
    ["git-status-even", "main", "up to date", ""],
    ["git-status-ahead", "feature/x.y", "ahead 1", ""],
    ["git-status-behind", "feature/x.y", "behind 1", ""],
    ["git-status-diverged", "feature/x.y", "ahead 1, behind 1", ""],
    ["git-status-long", "feature/x.y", "ahead 1, behind 1", ""],
    ["git-status-gone", "feature/x.y", "gone", ""],
    ["git-status-no-upstream", "side", "no upstream", ""],
    ["git-status-fresh", "main", "no upstream", ""],
    ["git-status-detached", "", "no branch", ""],
    ["git-status-conflict", "main", "ahead 1", "conflict: a.ts, b.ts"],
    ["git-status-conflict-long", "main", "ahead 1", "conflict: a.ts, b.ts"],
    ["git-branch", "main", "", ""],
    ["git-branch-vv", "main", "ahead 1", ""],
    ["git-branch-detached", "", "", ""],
    ["git-merge-conflict", "", "", "conflict: a.ts, b.ts"],
    ["git-merge-unfinished", "", "", "conflict"],
    ["git-merge-dirty", "", "", "blocked: a.ts"],
    ["git-merge-ff", "", "", "merged"],
    ["git-merge-ok", "", "", "merged"],
    ["git-merge-even", "", "", "up to date"],
    ["git-push-rejected", "", "rejected", ""],
    ["git-push-no-upstream", "", "no upstream", ""],
  ];
  for (const [tool, ...expected] of cases) {
    test(tool, () => {
      const names = ["parseBranchName", "parseRemoteStatus", "parseMergeStatus"];
      assert.deepEqual(
        names.map((name) => from(name, recorded(tool))),
        expected,
      );
    });
  }

  const words: readonly [string, string, string][] = [
    ["parseBranchName", "feature/x\n", "feature/x"],
    ["parseBranchName", "HEAD\n", ""],
    ["parseBranchName", "two words", ""],
    ["parseBranchName", "a\nb", ""],
    ["parseRemoteStatus", "Your branch is up to date with 'origin/main'.", "up to date"],
    ["parseRemoteStatus", "Your branch is behind 'origin/main' by 2 commits, and can be", "behind 2"],
    ["parseRemoteStatus", "Your branch is based on 'origin/x', but the upstream is gone.", "gone"],
    ["parseRemoteStatus", "* main 1a2b3c4 [origin/main] a message", "up to date"],
    ["parseMergeStatus", "All conflicts fixed but you are still merging.", "merging"],
    [
      "parseMergeStatus",
      "CONFLICT (modify/delete): a b.ts deleted in HEAD and modified in x.",
      "conflict: a b.ts",
    ],
    ["parseMergeStatus", "AA new.ts\nDD old.ts\nM  fine.ts", "conflict: new.ts, old.ts"],
  ];
  for (const [name, output, expected] of words) {
    test(`${name} of ${JSON.stringify(output)}`, () => assert.equal(from(name, output), expected));
  }
});

type Failed = { readonly name: string; readonly file?: string; readonly error: string };

describe("failed tests, as recorded", () => {
  const adds = "AssertionError: expected -1 to be 3 // Object.is equality";
  const objects = "AssertionError: expected { a: 1, b: [ 1, 2 ] } to deeply equal { a: 1, b: [ 1, 3 ] }";
  const jest: Row[] = [
    ["adds", "jest/sum.test.cjs", "expect(received).toBe(expected) // Object.is equality"],
    [
      "sum › of objects › is > an object",
      "jest/sum.test.cjs",
      "expect(received).toEqual(expected) // deep equality",
    ],
    ["sum › throws", "jest/sum.test.cjs", "TypeError: boom"],
    [
      "Test suite failed to run",
      "jest/broken.test.cjs",
      "Cannot find module './nowhere.cjs' from 'broken.test.cjs'",
    ],
  ];
  const pytest: Row[] = [
    ["test_adds", "test_calc.py", "assert -1 == 3"],
    [
      "TestSum::test_objects",
      "test_calc.py",
      "AssertionError: assert {'a': 1, 'b': [1, 2]} == {'a': 1, 'b': [1, 3]}",
    ],
    ["TestSum::test_throws", "test_calc.py", "ValueError: boom"],
    ["test_pairs[1-2]", "test_calc.py", "AssertionError: a - b"],
    ["test_uses", "test_calc.py", "RuntimeError: no fixture"],
  ];
  const go: Row[] = [
    ["TestAdds", "calc_test.go", "calc_test.go:7: Add(1, 2) = -1, want 3"],
    ["TestSum/of_two", "calc_test.go", "calc_test.go:15: about to fail"],
    ["TestPanics", "/project/sub/sub_test.go", "panic: assignment to entry in nil map [recovered]"],
  ];
  const strictly = "Expected values to be strictly equal:";
  const deeply = "Expected values to be strictly deep-equal:";

  type Row = readonly [name: string, file: string | undefined, firstLine: string];
  const cases: readonly [Tool, readonly Row[]][] = [
    [
      "vitest",
      [
        [
          "broken.test.ts",
          "broken.test.ts",
          "Error: Cannot find module './nowhere.ts' imported from /project/vitest/broken.test.ts",
        ],
        ["adds", "sum.test.ts", adds],
        ["sum > of objects > is > an object", "sum.test.ts", objects],
        ["sum > throws", "sum.test.ts", "TypeError: boom"],
      ],
    ],
    [
      "vitest-alike",
      ["with 1 > starts", "with 1 > stops", "with 2 > starts", "with 2 > stops"].map((name): Row => [
        name,
        "alike.test.ts",
        "Error: no server",
      ]),
    ],
    ["jest", jest],
    ["jest-color", jest],
    [
      "node-spec",
      [
        ["node/broken.test.ts", "node/broken.test.ts", "'test failed'"],
        ["adds", "node/sum.test.ts", `AssertionError [ERR_ASSERTION]: ${strictly}`],
        ["of objects # one", "node/sum.test.ts", `AssertionError [ERR_ASSERTION]: ${deeply}`],
        ["throws", "node/sum.test.ts", "TypeError: boom"],
      ],
    ],
    [
      "node-tap",
      [
        ["node/broken.test.ts", "/project/node/broken.test.ts", "test failed"],
        ["adds", "/project/node/sum.test.ts", strictly],
        ["of objects # one", "/project/node/sum.test.ts", deeply],
        ["throws", "/project/node/sum.test.ts", "boom"],
      ],
    ],
    ["pytest", pytest],
    ["pytest-short", pytest],
    [
      "pytest-line",
      pytest.map(([name, file, line]): Row => [name, file, line.replace(/(?<='a': 1, )'b'.*/, "...")]),
    ],
    [
      "pytest-broken",
      [["test_broken.py", "test_broken.py", "ModuleNotFoundError: No module named 'nowhere'"]],
    ],
    [
      "cargo-test",
      [
        ["tests::is_an_error", undefined, 'Error: "boom"'],
        [
          "tests::should_panic_but_does_not",
          "src/lib.rs",
          "note: test did not panic as expected at src/lib.rs:26:8",
        ],
        ["tests::adds", "src/lib.rs", "thread 'tests::adds' (27315) panicked at src/lib.rs:11:9:"],
        ["outside", "tests/outside.rs", "thread 'outside' (27320) panicked at tests/outside.rs:3:5:"],
      ],
    ],
    ["go-test", go],
    ["go-test-v", go],
    ["go-test-broken", [["example.com/broken", undefined, "build failed"]]],
    [
      "deno-test",
      [
        ["adds", "./deno/sum_test.ts", `error: AssertionError: ${strictly}`],
        ["sum ... throws", "./deno/sum_test.ts", "error: TypeError: boom"],
      ],
    ],
    [
      "deno-test-broken",
      [["./deno/broken_test.ts", "./deno/broken_test.ts", "error: (in promise) Error: no tests here"]],
    ],
  ];
  for (const [tool, expected] of cases) {
    test(tool, () => {
      const found = from("failedTests", recorded(tool)) as readonly Failed[];
      const rows = found.map(({ name, file, error }) => [name, file, error.split("\n", 1)[0]]);
      assert.deepEqual(rows, expected);
      assert.deepEqual(from("parseTestOutput", "", recorded(tool)), found);
    });
  }

  const errors: readonly [Tool, name: string, error: string][] = [
    ["node-tap", "adds", `${strictly}\n\n-1 !== 3`],
    [
      "node-spec",
      "adds",
      `AssertionError [ERR_ASSERTION]: ${strictly}\n\n-1 !== 3\n\n    at TestContext.<anonymous> (file:///project/node/sum.test.ts:5:27)`,
    ],
    [
      "jest",
      "sum › throws",
      'TypeError: boom\n\n  12 |   });\n  13 |   test("throws", () => {\n> 14 |     throw new TypeError("boom");\n     |           ^\n  15 |   });\n  16 |   test("passes", () => {\n  17 |     expect(sum(2, 1)).toBe(1);\n\n  at Object.<anonymous> (sum.test.cjs:14:11)',
    ],
    ["pytest", "test_pairs[1-2]", "AssertionError: a - b\nassert -1 == 3\n +  where -1 = add(1, 2)"],
    [
      "cargo-test",
      "tests::adds",
      "thread 'tests::adds' (27315) panicked at src/lib.rs:11:9:\nassertion `left == right` failed\n  left: -1\n right: 3",
    ],
    ["go-test", "TestSum/of_two", "calc_test.go:15: about to fail\ncalc_test.go:16: two\n    lines"],
    ["go-test-v", "TestSum/of_two", "calc_test.go:15: about to fail\ncalc_test.go:16: two\n    lines"],
    [
      "deno-test",
      "sum ... throws",
      'error: TypeError: boom\n    throw new TypeError("boom");\n          ^\n    at file:///project/deno/sum_test.ts:8:11\n    at file:///project/deno/sum_test.ts:7:11',
    ],
  ];
  for (const [tool, name, error] of errors) {
    test(`${tool}: the whole error of ${name}`, () => {
      const found = from("failedTests", recorded(tool)) as readonly Failed[];
      assert.equal(found.find((each) => each.name === name)?.error, error);
    });
  }
});

describe("failed tests, of other runners and in other shapes", () => {
  const cases: readonly [string, string, Json][] = [
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
    ["TAP without a dash", "not ok 3 adds", [{ name: "adds", error: "" }]],
    [
      "told twice, as jest does after many suites",
      "FAIL a.js\n  ● x\n\n    no\n\nSummary of all failing tests\nFAIL a.js\n  ● x\n\n    no\n\nTest Suites: 1 failed",
      [{ name: "x", file: "a.js", error: "no" }],
    ],
    [
      "vitest, with a project's name",
      " FAIL  |web| a.test.ts > x\nError: no",
      [{ name: "x", file: "a.test.ts", error: "Error: no" }],
    ],
    [
      "pytest, whose parameter looks like a message",
      "FAILED t.py::test[a - b] - boom\nFAILED t.py::test[open - boom",
      [
        { name: "test[a - b]", file: "t.py", error: "boom" },
        { name: "test[open - boom", file: "t.py", error: "" },
      ],
    ],
    [
      "pytest without its summary",
      "____ test_a ____\n>  assert 0\nE  assert 0\n\nt.py:2: AssertionError\n==== 1 failed ====",
      [{ name: "test_a", file: "t.py", error: "assert 0" }],
    ],
    [
      "go, cut before its package is named",
      "--- FAIL: TestA (0.00s)\n    a_test.go:1: no",
      [{ name: "TestA", file: "a_test.go", error: "a_test.go:1: no" }],
    ],
    [
      "go, without a test that failed",
      "panic: in init\nFAIL\texample.com/a\t0.1s\nok  \texample.com/b\t0.1s",
      [{ name: "example.com/a", error: "panic: in init" }],
    ],
    [
      "cargo of before 2023",
      "---- t stdout ----\nthread 't' panicked at 'no', src/lib.rs:3:5\n\nfailures:\n    t",
      [{ name: "t", file: "src/lib.rs", error: "thread 't' panicked at 'no', src/lib.rs:3:5" }],
    ],
  ];
  for (const [name, stdout, expected] of cases) {
    test(name, () => {
      assert.deepEqual(from("failedTests", stdout), expected);
      assert.deepEqual(from("parseTestOutput", "", stdout), expected);
    });
  }
});

describe("type errors", () => {
  const bad = (file: string): Json => {
    const notString = "Type 'number' is not assignable to type 'string'.";
    const argument = "Argument of type 'string' is not assignable to parameter of type 'number'.";
    return [
      { file, line: 3, column: 27, message: argument, code: "TS2345" },
      { file, line: 4, column: 26, message: notString, code: "TS2322" },
      { file, line: 4, column: 29, message: notString, code: "TS2322" },
      { file, line: 5, column: 84, message: notString, code: "TS2322" },
      { file, line: 6, column: 27, message: "Cannot find name 'missing'.", code: "TS2304" },
    ];
  };
  const rust: Json = [
    [5, 7, "cannot add `&str` to `i32`: no implementation for `i32 + &str`", "E0277"] as const,
    [9, 5, "mismatched types: expected `String`, found integer", "E0308"] as const,
    [13, 5, "cannot find function `nowhere` in this scope: not found in this scope", "E0425"] as const,
  ].map(([line, column, message, code]) => ({ file: "src/lib.rs", line, column, message, code }));
  const inReturn = "cannot use 1 (untyped int constant) as string value in return statement";
  const inVariable = 'cannot use "one" (untyped string constant) as int value in variable declaration';
  const go: Json = [
    { file: "sub/sub.go", line: 3, column: 26, message: inReturn },
    { file: "./main.go", line: 3, column: 8, message: 'imported and not used: "fmt"' },
    { file: "./main.go", line: 6, column: 14, message: inVariable },
    { file: "./main.go", line: 7, column: 2, message: "undefined: missing" },
    { file: "./main.go", line: 8, column: 2, message: "unused declared but not used" },
  ];
  const chain =
    "Type '(text: number) => number' is not assignable to type '(text: string) => void'.\n  Types of parameters 'text' and 'text' are incompatible.\n    Type 'string' is not assignable to type 'number'.";

  const tools: readonly [Tool, Json][] = [
    ["tsc", bad("src/bad.ts")],
    ["tsc-pretty", bad("src/bad.ts")],
    ["tsc-chain", [{ file: "src/chain.ts", line: 2, column: 35, message: chain, code: "TS2322" }]],
    ["deno-check", bad("/project/src/bad.ts")],
    ["cargo-build", rust],
    ["cargo-short", rust],
    ["go-build", go],
    ["go-test-broken", go],
    [
      "go-vet",
      [
        { file: "sub/sub.go", line: 3, column: 26, message: inReturn },
        { file: "./main.go", line: 6, column: 14, message: inVariable },
      ],
    ],
  ];
  const others: readonly [string, string, Json][] = [
    [
      "tsc, about its settings",
      "error TS18003: No inputs were found.",
      [{ file: "unknown", line: 0, message: "No inputs were found.", code: "TS18003" }],
    ],
    [
      "Deno, without a place",
      "error: TS2304 [ERROR]: Cannot find name 'y'.\n",
      [{ file: "unknown", line: 0, message: "Cannot find name 'y'.", code: "TS2304" }],
    ],
    ["mypy and its like", "a.py:3: error: bad", [{ file: "a.py", line: 3, message: "bad" }]],
    [
      "gcc and its like",
      "src/a.c:3:9: error: bad",
      [{ file: "src/a.c", line: 3, column: 9, message: "bad" }],
    ],
    [
      "a place without a column",
      "src/a.ts:3 SyntaxError",
      [{ file: "src/a.ts", line: 3, message: "SyntaxError" }],
    ],
    ["no place", "error: it broke", [{ file: "unknown", line: 0, message: "it broke" }]],
    ["none", "All good", []],
  ];
  const all = [...tools.map(([tool, expected]) => [tool, recorded(tool), expected] as const), ...others];
  for (const [name, output, expected] of all) {
    test(name, () => {
      assert.deepEqual(from("parseTypeErrors", output), expected);
      assert.deepEqual(from("errors", "", output), expected);
    });
  }
});

describe("lint errors", () => {
  type Row = readonly [rule: string, message: string, file: string, line: number, column: number];
  const eslint = (dot: string): readonly Row[] => [
    ["no-var", `Unexpected var, use let or const instead${dot}`, "/project/lint/bad.js", 1, 1],
    ["no-unused-vars", `'unused' is assigned a value but never used${dot}`, "/project/lint/bad.js", 1, 5],
    ["no-undef", `'window' is not defined${dot}`, "/project/lint/bad.js", 2, 5],
    ["eqeqeq", `Expected '===' and instead saw '=='${dot}`, "/project/lint/bad.js", 2, 12],
    ["no-debugger", `Unexpected 'debugger' statement${dot}`, "/project/lint/bad.js", 2, 21],
    ["prefer-const", `'b' is never reassigned. Use 'const' instead${dot}`, "/project/lint/bad.js", 4, 7],
    ["no-undef", `'undefinedName' is not defined${dot}`, "/project/lint/bad.js", 5, 13],
    ["unknown", "Parsing error: Unexpected token ;", "/project/lint/broken.js", 1, 11],
  ];
  const unused = (name: string) =>
    `Variable '${name}' is declared but never used. Unused variables should start with a '_'.`;
  const oxlint: readonly Row[] = [
    ["unknown", "Unexpected token", "broken.js", 1, 11],
    ["eslint(no-unused-vars)", unused("unused"), "bad.js", 1, 5],
    ["eslint(no-unused-vars)", unused("b"), "bad.js", 4, 7],
    ["eslint(no-debugger)", "`debugger` statement is not allowed", "bad.js", 2, 21],
  ];
  const deno: readonly Row[] = [
    ["no-var", "`var` keyword is not allowed.", "/project/lint/bad.js", 1, 1],
    ["no-unused-vars", "`unused` is never used", "/project/lint/bad.js", 1, 5],
    ["no-debugger", "`debugger` statement is not allowed", "/project/lint/bad.js", 2, 21],
    ["prefer-const", "`b` is never reassigned", "/project/lint/bad.js", 4, 7],
  ];
  const slice = "writing `&Vec` instead of `&[_]` involves a new object where a slice will do";
  const clippy: readonly Row[] = [
    ["unused_variables", "unused variable: `unused`", "src/lib.rs", 2, 9],
    ["clippy::needless_return", "unneeded `return` statement", "src/lib.rs", 3, 5],
    ["clippy::ptr_arg", slice, "src/lib.rs", 1, 23],
  ];
  const correctness = "lint/correctness/noUnusedVariables";
  const once = "This let declares a variable that is only assigned once.";
  const debug = "This is an unexpected use of the debugger statement.";
  const cases: readonly [Tool, readonly Row[]][] = [
    ["eslint", eslint("")],
    ["eslint-unix", eslint(".")],
    ["eslint-compact", eslint(".")],
    ["oxlint", oxlint],
    ["oxlint-ascii", oxlint.slice(1)],
    ["oxlint-unix", oxlint],
    [
      "biome-lint",
      [
        ["lint/complexity/noCommaOperator", "The comma operator is disallowed.", "bad.js", 5, 11],
        [correctness, "This variable unused is unused.", "bad.js", 1, 5],
        ["lint/style/useConst", once, "bad.js", 4, 3],
        [correctness, "This variable b is unused.", "bad.js", 4, 7],
        [correctness, "This variable x is unused.", "broken.js", 1, 7],
        ["lint/suspicious/noDebugger", debug, "bad.js", 2, 21],
        ["parse", "Expected an expression, or an assignment but instead found ';'.", "broken.js", 1, 11],
      ],
    ],
    [
      "deno-lint",
      [["unknown", "SyntaxError: Expression expected", "/project/lint/broken.js", 1, 11], ...deno],
    ],
    ["deno-lint-compact", deno],
    ["cargo-clippy", clippy],
    ["cargo-clippy-deny", clippy],
  ];
  for (const [tool, rows] of cases) {
    test(tool, () => {
      const expected = rows.map(([rule, message, file, line, column]) => ({
        rule,
        message,
        file,
        line,
        column,
      }));
      assert.deepEqual(from("parseLintErrors", recorded(tool)), expected);
      assert.deepEqual(from("lintErrors", "", recorded(tool)), expected);
      assert.deepEqual(from("lintFiles", recorded(tool)), [...new Set(rows.map(([, , file]) => file))]);
    });
  }

  test("clippy names a rule by its link where it has explained it before", () => {
    const output =
      "warning: unneeded `return` statement\n --> src/a.rs:3:5\n  |\n  = help: visit https://rust-lang.github.io/rust-clippy/rust-1.95.0/index.html#needless_return\n";
    const expected = {
      rule: "clippy::needless_return",
      message: "unneeded `return` statement",
      file: "src/a.rs",
      line: 3,
      column: 5,
    };
    assert.deepEqual(from("lintErrors", output), [expected]);
  });

  test("nothing wrong", () => assert.deepEqual(from("lintErrors", "Found 0 warnings and 0 errors."), []));
});

describe("unformatted files", () => {
  const five = ["bad.js", "eslint.config.js", "format.js", "format.json", "sub dir/two words.ts"];
  const broken = [five[0], "broken.js", ...five.slice(1)] as readonly string[];
  const cases: readonly [Tool, readonly string[]][] = [
    ["prettier", five],
    ["prettier-broken", broken],
    ["prettier-list", [...five, "broken.js"]],
    ["oxfmt", five],
    ["oxfmt-broken", [...five, "broken.js"]],
    ["biome-format", broken],
    [
      "deno-fmt",
      ["eslint.config.js", "broken.js", "format.json", "format.js", "sub dir/two words.ts"].map(
        (file) => `/project/lint/${file}`,
      ),
    ],
    ["cargo-fmt", ["/project/src/ugly.rs"]],
    ["gofmt", ["ugly.go"]],
    ["gofmt-diff", ["ugly.go"]],
  ];
  for (const [tool, expected] of cases) {
    test(tool, () => {
      assert.deepEqual(from("parseFormatOutput", recorded(tool)), expected);
      assert.deepEqual(from("formatFiles", "", recorded(tool)), expected);
    });
  }

  test("sentences that end like a path are none", () => {
    const stdout =
      "Checking formatting...\n t/bad.ts (0ms)\nerror: Found 1 file in x.md\nREADME.md\nt/bad.ts";
    assert.deepEqual(from("formatFiles", stdout), ["t/bad.ts", "README.md"]);
  });

  test("diff is the diff if there is one, else the files", () => {
    assert.equal(from("generateDiff", recorded("prettier")), five.join("\n"));
    assert.equal(from("diff", `gofmt says:\n${recorded("gofmt-diff")}`), recorded("gofmt-diff").trim());
    assert.equal(from("diff", "fine"), "");
  });
});

describe("files", () => {
  test("that are named with a line, each once, without those of libraries", () => {
    const stdout = `${recorded("tsc")}\nsrc/a.tsx:3:1 and (file:///w/b.ts:4:2) at node_modules/x/y.ts:1 node:fs.js:2 c.ts d.mjs:9`;
    assert.deepEqual(from("files", stdout, "src/a.tsx:9"), ["src/bad.ts", "src/a.tsx", "/w/b.ts", "d.mjs"]);
    assert.deepEqual(from("extractFiles", recorded("cargo-build")), ["src/lib.rs"]);
    assert.deepEqual(from("files", recorded("go-test")), ["calc_test.go", "/project/sub/sub_test.go"]);
    assert.deepEqual(from("extractFiles", "nothing"), []);
  });

  const missing: readonly [string, readonly string[]][] = [
    ["ls: cannot access 'a b.md': No such file or directory", ["a b.md"]],
    ["cat: docs/x.md: No such file or directory", ["docs/x.md"]],
    ["Error: ENOENT: no such file or directory, open '/w/x.json'", ["/w/x.json"]],
    ["FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", ["x.csv"]],
    ["open config.yml: no such file or directory", ["config.yml"]],
    ["cat: x: No such file or directory\ncat: x: No such file or directory", ["x"]],
    ["all there", []],
  ];
  for (const [output, expected] of missing) {
    test(`that are missing: ${output}`, () => {
      assert.deepEqual(from("missingPaths", "", output), expected);
      assert.equal(from("expectedPath", output), expected[0] ?? "");
    });
  }
});

describe("the raw and the unknown", () => {
  const cases: readonly [string, Json][] = [
    ["stdout", "out\n"],
    ["stderr", " err\n"],
    ["exitCode", 1],
    ["errorOutput", "err"],
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

describe("what it means", () => {
  const meaning = (extractors: readonly string[], tool: Tool) =>
    meaningOf(extractors, { stdout: recorded(tool), stderr: "", exitCode: 1 });

  const cases: readonly [string, Tool, Json][] = [
    [
      "failedTests",
      "vitest",
      {
        summary: "4 tests failed: broken.test.ts, adds, sum > of objects > is > an object, …",
        severity: "error",
        relatedFiles: ["broken.test.ts", "sum.test.ts"],
        rootCause: "Error: Cannot find module './nowhere.ts' imported from /project/vitest/broken.test.ts",
        suggestedAction:
          'Make "broken.test.ts" pass, then the others; change a test only if what it expects is wrong.',
      },
    ],
    [
      "parseTypeErrors",
      "cargo-build",
      {
        summary: "3 errors in 1 file",
        severity: "error",
        relatedFiles: ["src/lib.rs"],
        rootCause: "src/lib.rs:5: cannot add `&str` to `i32`: no implementation for `i32 + &str`",
        suggestedAction: "Fix the first error; the others may follow from it.",
      },
    ],
    [
      "parseChangedFiles",
      "git-status",
      {
        summary: "6 files changed, 2 files untracked",
        severity: "warning",
        relatedFiles: [
          "both.ts",
          "gone.ts",
          "old.ts -> new.ts",
          "staged.ts",
          "unstaged.ts",
          '"with \\"quotes\\".ts"',
          "folder/",
          "untracked.ts",
        ],
        rootCause: "The working tree holds changes that are not committed.",
        suggestedAction: "Commit what belongs to the task, and remove or ignore the rest.",
      },
    ],
    [
      "parseMergeStatus",
      "git-status-conflict",
      {
        summary: "merge: conflict: a.ts, b.ts",
        severity: "error",
        relatedFiles: ["a.ts", "b.ts"],
        rootCause: "Both sides of the merge changed the same lines.",
        suggestedAction: "Resolve the conflicts, `git add` the files, then commit.",
      },
    ],
    [
      "parseRemoteStatus",
      "git-status-ahead",
      {
        summary: "branch: ahead 1",
        severity: "warning",
        relatedFiles: [],
        rootCause: "There are commits that are not pushed.",
        suggestedAction: "Push the branch.",
      },
    ],
    ["parseBranchName", "git-status-even", {}],
    ["lintErrors", "eslint", {}],
    ["nonsense", "vitest", {}],
  ];
  for (const [name, tool, expected] of cases) {
    test(`${name} of ${tool}`, () => assert.deepEqual(meaning([name], tool), expected));
  }

  test("the first extractor that finds something gives it", () => {
    const tests = meaning(["failedTests"], "jest");
    assert.deepEqual(meaning(["stdout", "parseMergeStatus", "failedTests"], "jest"), tests);
  });
});

describe("hostile output", () => {
  const MEGABYTE = 1_000_000;
  const fill = (piece: string, size = MEGABYTE) => piece.repeat(Math.floor(size / piece.length));

  test("has no long lines, whatever it holds", () => {
    for (const piece of ["x", "\u001b[", "\u001b];", "\r", "a.ts:1:1 => "]) {
      assert.ok(linesOf(fill(piece)).every((line) => line.length <= 2_000));
    }
  });

  /** For each extractor, lines that all look like findings, and lines that almost do. */
  const cases: readonly [string, readonly string[]][] = [
    ["errorOutput", ["error:\n", "FAILE"]],
    ["parseChangedFiles", ["MM a\n", "?? \n"]],
    ["parseBranchName", ["* (\n", "## ...\n", "On branch"]],
    ["parseRemoteStatus", ["## a...b [\n", " ! [rejecte", "* a aaaa [b: \n"]],
    ["parseMergeStatus", ["CONFLICT (a): conflict in a\n", "CONFLICT (): (): ", "UU a\n"]],
    ["failedTests", [" FAIL  a > b\n", " FAIL  a [ ", "FAIL a\n  ● b\n", "FAIL \n"]],
    ["failedTests", ["FAILED a.py::b[\n", "FAILED .py.py.py - ", "___ a ___\n", "___ _", "E\n"]],
    [
      "failedTests",
      ["---- a stdout ----\n", "---- ", "--- FAIL: a/a (0s)\n", "=== RUN a\n", "FAIL\ta [b]\n"],
    ],
    ["failedTests", ["not ok 1 - a\n---\n", "✖ a (1ms)\n", "✖ a (1", "test at a:1:1\n"]],
    ["failedTests", ["a => b:1:1\nerror: \n", " => b:1:1", " ... FAILED\n", "AssertionError:\n"]],
    ["errors", ["a(1,1): error TS1: a\n b\n", "(1,1)", "TS1 [ERROR]: x\n", "a:1:1 - error TS"]],
    ["errors", ["error: a\n --> a:1:1\n", " --> :1", "error[E1]: a\n", "a.go:1:1: a\n\tb\n", ".go:1"]],
    ["errors", ["a:1: error: b\n", ":1:1", "a.ts:1 error\n", ".ts:1", "error: \n"]],
    ["lintErrors", ["  1:1  error  a  b\n", " 1:1 error   ", "a:1:1: a [Error/b]\n", ":1:1:  ["]],
    ["lintErrors", ["a: line 1, col 1 - b (c)\n", ": line 1", "× a(b): c\n,-[a:1:1]\n", "× ", ",-["]],
    ["lintErrors", ["a:1:1 lint/b ━\n", " a/b ", "warning: a\n --> a:1:1\n", "Error linting: a\n", "`-D "]],
    ["lintFiles", ["a:1:1: a [Error/b]\n"]],
    ["formatFiles", ["[warn] a.b\n", "[warn] .", "from a:\n", "a format ━\n", "format ━", "a.ts (1ms)\n"]],
    ["diff", ["@@ -\n", "+++ a\n", ".ts\n"]],
    ["files", ["a.ts:1 ", ".ts:", "(", "a.ts(1\n"]],
    ["missingPaths", ["a: no such file or directory\n", "'", "open open ", ": a"]],
  ];
  for (const [name, pieces] of cases) {
    test(`${name} reads it to the end: ${JSON.stringify(pieces)}`, () => {
      for (const piece of pieces) {
        const line = piece.includes("\n") ? piece : `${fill(piece, 1_990)}\n`;
        const value = from(name, fill(line));
        if (Array.isArray(value)) assert.ok(value.length <= 50 && JSON.stringify(value).length < 120_000);
      }
    });
  }

  test("what it means is found as well", () => {
    const cases = { failedTests: "not ok 1 - a\n", errors: "error: a\n", parseMergeStatus: "UU a\n" };
    for (const [name, piece] of Object.entries(cases)) {
      const meaning = meaningOf([name], { stdout: fill(piece), stderr: "", exitCode: 1 });
      assert.ok(JSON.stringify(meaning).length < 10_000);
    }
  });

  test("findings are capped, and what they mean still counts them all", () => {
    const output = Array.from(
      { length: 80 },
      (_, index) => `not ok 1 - t${index}\n  ---\n  error: '${"x".repeat(1_500)}'\n  ...`,
    );
    const found = from("failedTests", output.join("\n")) as readonly Failed[];
    assert.equal(found.length, 50);
    assert.match(found[0]?.error ?? "", /^x{500}\n\[… 500 bytes cut …\]\nx{500}$/);
    const { summary } = meaningOf(["failedTests"], { stdout: output.join("\n"), stderr: "", exitCode: 1 });
    assert.equal(summary, "80 tests failed: t0, t1, t2, …");
  });
});
