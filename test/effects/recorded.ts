/** What tools print. The node:test and tsc samples are recorded; those of git and Deno are written after their formats. */

/** `node --test --test-reporter=tap`, Node 24.21. */
export const NODE_TAP = `TAP version 13
# Subtest: adds
not ok 1 - adds
  ---
  duration_ms: 1.132026
  type: 'test'
  location: '/tmp/lab/a.test.ts:3:1'
  failureType: 'testCodeFailure'
  error: |-
    Expected values to be strictly equal:
    
    2 !== 3
    
  code: 'ERR_ASSERTION'
  name: 'AssertionError'
  expected: 3
  actual: 2
  operator: 'strictEqual'
  stack: |-
    TestContext.<anonymous> (file:///tmp/lab/a.test.ts:3:29)
    Test.runInAsyncScope (node:async_hooks:227:14)
    Test.run (node:internal/test_runner/test:1402:25)
    Test.start (node:internal/test_runner/test:1262:17)
    startSubtestAfterBootstrap (node:internal/test_runner/harness:387:17)
  ...
# Subtest: passes
ok 2 - passes
  ---
  duration_ms: 0.14868
  type: 'test'
  ...
# Subtest: a suite
    # Subtest: nested fails
    not ok 1 - nested fails
      ---
      duration_ms: 0.199446
      type: 'test'
      location: '/tmp/lab/a.test.ts:5:29'
      failureType: 'testCodeFailure'
      error: 'boom'
      code: 'ERR_TEST_FAILURE'
      stack: |-
        TestContext.<anonymous> (file:///tmp/lab/a.test.ts:5:64)
        Test.runInAsyncScope (node:async_hooks:227:14)
        Test.run (node:internal/test_runner/test:1402:25)
        Test.start (node:internal/test_runner/test:1262:17)
        node:internal/test_runner/test:1903:71
        node:internal/per_context/primordials:504:82
        new Promise (<anonymous>)
        new SafePromise (node:internal/per_context/primordials:478:3)
        node:internal/per_context/primordials:504:9
        Array.map (<anonymous>)
      ...
    # Subtest: todo one
    not ok 2 - todo one # TODO
      ---
      duration_ms: 0.088351
      type: 'test'
      location: '/tmp/lab/a.test.ts:5:87'
      failureType: 'testCodeFailure'
      error: 'x'
      code: 'ERR_TEST_FAILURE'
      stack: |-
        TestContext.<anonymous> (file:///tmp/lab/a.test.ts:5:134)
        Test.runInAsyncScope (node:async_hooks:227:14)
        Test.run (node:internal/test_runner/test:1402:25)
        Suite.processPendingSubtests (node:internal/test_runner/test:974:18)
        Test.postRun (node:internal/test_runner/test:1542:19)
        Test.run (node:internal/test_runner/test:1467:12)
        async Promise.all (index 0)
        async Suite.run (node:internal/test_runner/test:1905:7)
        async Test.processPendingSubtests (node:internal/test_runner/test:974:7)
      ...
    1..2
not ok 3 - a suite
  ---
  duration_ms: 0.613708
  type: 'suite'
  location: '/tmp/lab/a.test.ts:5:1'
  failureType: 'subtestsFailed'
  error: '1 subtest failed'
  code: 'ERR_TEST_FAILURE'
  ...
1..3
# tests 4
# suites 1
# pass 1
# fail 2
# cancelled 0
# skipped 0
# todo 1
# duration_ms 100.470532
`;

/** `node --test --test-reporter=spec`, Node 24.21. */
export const NODE_SPEC = `✖ adds (1.182761ms)
✔ passes (0.202139ms)
▶ a suite
  ✖ nested fails (0.164633ms)
  ⚠ todo one (0.090574ms) # TODO
✖ a suite (0.599497ms)
ℹ tests 4
ℹ suites 1
ℹ pass 1
ℹ fail 2
ℹ cancelled 0
ℹ skipped 0
ℹ todo 1
ℹ duration_ms 91.087955

✖ failing tests:

test at a.test.ts:3:1
✖ adds (1.182761ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
  
  2 !== 3
  
      at TestContext.<anonymous> (file:///tmp/lab/a.test.ts:3:29)
      at Test.runInAsyncScope (node:async_hooks:227:14)
      at Test.run (node:internal/test_runner/test:1402:25)
      at Test.start (node:internal/test_runner/test:1262:17)
      at startSubtestAfterBootstrap (node:internal/test_runner/harness:387:17) {
    generatedMessage: true,
    code: 'ERR_ASSERTION',
    actual: 2,
    expected: 3,
    operator: 'strictEqual',
    diff: 'simple'
  }

test at a.test.ts:5:29
✖ nested fails (0.164633ms)
  Error: boom
      at TestContext.<anonymous> (file:///tmp/lab/a.test.ts:5:64)
      at Test.runInAsyncScope (node:async_hooks:227:14)
      at Test.run (node:internal/test_runner/test:1402:25)
      at Test.start (node:internal/test_runner/test:1262:17)
      at node:internal/test_runner/test:1903:71
      at node:internal/per_context/primordials:504:82
      at new Promise (<anonymous>)
      at new SafePromise (node:internal/per_context/primordials:478:3)
      at node:internal/per_context/primordials:504:9
      at Array.map (<anonymous>)

test at a.test.ts:5:87
⚠ todo one (0.090574ms) # TODO
  Error: x
      at TestContext.<anonymous> (file:///tmp/lab/a.test.ts:5:134)
      at Test.runInAsyncScope (node:async_hooks:227:14)
      at Test.run (node:internal/test_runner/test:1402:25)
      at Suite.processPendingSubtests (node:internal/test_runner/test:974:18)
      at Test.postRun (node:internal/test_runner/test:1542:19)
      at Test.run (node:internal/test_runner/test:1467:12)
      at async Promise.all (index 0)
      at async Suite.run (node:internal/test_runner/test:1905:7)
      at async Test.processPendingSubtests (node:internal/test_runner/test:974:7)
`;

/** `tsc --noEmit`, TypeScript 7.0. */
export const TSC = `t/bad.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.
t/bad.ts(2,40): error TS2322: Type 'string' is not assignable to type 'number'.
`;

/** `tsc --noEmit --pretty`, TypeScript 7.0. */
export const TSC_PRETTY = `\u001b[96mt/bad.ts\u001b[0m:\u001b[93m1\u001b[0m:\u001b[93m7\u001b[0m - \u001b[91merror\u001b[0m\u001b[90m TS2322: \u001b[0mType 'string' is not assignable to type 'number'.

\u001b[7m1\u001b[0m const x: number = "a";
\u001b[7m \u001b[0m \u001b[91m      ~\u001b[0m

Found 1 error in t/bad.ts\u001b[90m:1\u001b[0m
`;

/** `git status --porcelain -b --ignored`, Git 2.39. */
export const GIT_STATUS = `## main...origin/main
M  staged.ts
 M unstaged.ts
MM both.ts
A  "with \\"quotes\\".ts"
R  old.ts -> new.ts
 D gone.ts
?? untracked.ts
?? folder/
!! ignored.log
`;
