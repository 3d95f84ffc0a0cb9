/** Everything that a test can expect in memory: it passes, and it fails with what was expected, what came, where and why. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileTree } from "../../src/flow/files.ts";
import { EXPECT_KEYS } from "../../src/flow/flow-test.ts";
import { OF_A_COPY } from "../../src/load/text/test-parts.ts";
import { readTests } from "../../src/load/tests.ts";
import { reasonsFor, visitToLookAt } from "../../src/proof/because.ts";
import { unmetIn } from "../../src/proof/expect.ts";
import { unmetRows } from "../../src/proof/unmet-text.ts";
import { load } from "../../src/run/load.ts";
import { createFiles } from "../../src/run/world/files.ts";
import { prepareFlow, runTest } from "../../src/testing/flow-tests.ts";

const root = new URL("../../examples/01-fix-a-test/", import.meta.url).pathname;
const { flow } = await load("fixer", { cwd: root });
const prepared = await prepareFlow(flow!);

/** One test file of the agent, that is not on disk. */
function filesWith(text: string): FileTree {
  const { list, read } = createFiles(root);
  const [folder, name] = [".agent/fixer/tests", "one.yaml"];
  return {
    list: (path) => (path === folder ? [name] : list(path)),
    read: (path) => (path === `${folder}/${name}` ? { kind: "text", text } : read(path)),
  };
}

async function resultOf(expect: string, more = "") {
  const { tests, problems } = readTests(
    flow!,
    filesWith(`params: { issue: 7 }
tests:
  - name: one
    script:
      - { step: initial.issue, calls: [{ name: Write, input: { file_path: a, content: b } }] }
      - { step: initial.issue, label: next, usage: { in: 10, out: 5, usd: 0.25 } }
      - { step: continuation.issue, error: { kind: rate-limit, retryAfterMs: 1500 } }
      - continuation.issue handoff
      - closure.issue closing
${more}    expect:
      ${expect}
`),
  );
  assert.deepEqual(problems, []);
  return await runTest(prepared, tests[0]!);
}

/** Of each key: what holds, what does not, and what came instead. */
const ROWS: { readonly [key: string]: readonly [holds: string, fails: string, got: unknown] } = {
  outcome: ["completed", "failed", "completed"],
  code: ["absent", "GATE_FAILED", undefined],
  exit: ['"<= 0"', "6", 0],
  final: ["closure.issue", "initial.issue", "closure.issue"],
  reason: ["re:ended the run$", "re:^ended", 'Step "closure.issue" ended the run'],
  path: [
    "[initial.issue next, ..., closure.issue closing -> end]",
    "[..., closure.issue repeat]",
    [
      "initial.issue next -> continuation.issue",
      "continuation.issue handoff -> closure.issue",
      "closure.issue closing -> end",
    ],
  ],
  visits: ["{ closure.issue: 1 }", "{ closure.issue: 2 }", 1],
  checks: ["[tests-pass passed, ...]", "[]", ["tests-pass passed", "git-clean passed"]],
  handoff: ["{ initial.issue: { approach: re:. } }", "{ initial.issue: absent }", undefined],
  asked: ["[]", "[May I?]", []],
  said: ["{ at: initial.issue@1, saw: Issue 7 }", "{ at: initial.issue, unseen: [Issue 7] }", undefined],
  calls: ["[Write denied]", "[Write ok]", ["Write denied"]],
  effects: ["[]", "[label applied]", []],
  turns: ['"> 3"', '">= 9"', 4],
  tokens: ["15", '"< 15"', 15],
  costUsd: ["0.25", "0.5", 0.25],
  waited: ['">= 1500"', "0", undefined],
  warnings: ["[]", "[re:.]", []],
};

test("there is a row for every key; those of a copy, and snapshots, have theirs in projects.proc.ts", () => {
  const rows = [...Object.keys(ROWS), ...OF_A_COPY, "snapshot"];
  assert.deepEqual(rows.toSorted(), [...EXPECT_KEYS].toSorted());
});

for (const [key, [holds, fails, got]] of Object.entries(ROWS))
  test(`${key} is met, or fails with what came and where it is written`, async () => {
    const met = await resultOf(`${key}: ${holds}`);
    assert.deepEqual([met.status, met.unmet], ["passed", []]);
    const { status, unmet } = await resultOf(`${key}: ${fails}`);
    assert.equal(status, "failed");
    assert.deepEqual([unmet.map((one) => one.key), unmet[0]!.line], [[key], 11]);
    assert.notEqual(unmet[0]!.expected, undefined);
    if (got !== undefined) assert.deepEqual(unmet[0]!.got, got);
  });

test("a pattern that takes too long fails what it is about, whether it is to occur or not, and nothing else", () => {
  const heard = [{ step: "a", visit: 1, system: "", said: "", text: "a".repeat(20_000) }];
  const slow = "re:(a{1,50}b?){1,60}QQ";
  for (const said of [{ saw: slow }, { unseen: [slow] }]) {
    const expect = { lines: {}, values: { said, outcome: "failed" } };
    const observed = { outcome: "completed" } as Parameters<typeof unmetIn>[1];
    assert.deepEqual(
      unmetIn(expect, observed, heard, 1).map(({ key, got }) => [key, got]),
      [
        ["said", "a text that takes too long to match with this pattern"],
        ["outcome", "completed"],
      ],
    );
  }
});

const GONE = [
  "initial.issue next -> continuation.issue",
  "continuation.issue handoff -> closure.issue",
  "closure.issue closing -> end",
];

/** Of each expected path: the rows of a report. */
const DIFFERENCES: readonly (readonly [expected: string, rows: readonly string[]])[] = [
  ["[continuation.issue]", ["expected continuation.issue", `got ${GONE[0]}`]],
  [
    "[initial.issue, closure.issue, ...]",
    ["expected closure.issue", `got ${GONE[1]}`, `after ${GONE[0]} (item 1)`],
  ],
  [
    "[initial.issue, continuation.issue]",
    ["expected the end of the list", `got ${GONE[2]}`, `after ${GONE[1]} (item 2)`],
  ],
  [
    "[..., closure.issue, initial.issue]",
    ["expected initial.issue", "got the end of the list", `after ${GONE[2]} (item 3)`],
  ],
  [
    "[..., continuation.issue repeat, ...]",
    ["expected continuation.issue repeat", `got ${GONE[1]}`, `after ${GONE[0]} (item 1)`],
  ],
  [
    "[initial.issue, ..., initial.issue, ...]",
    ["expected initial.issue", `got not one of the 2 after ${GONE[0]}: ${GONE[1]}, ${GONE[2]}`],
  ],
  ["[..., closure.issue, ..., initial.issue]", ["expected initial.issue", `got nothing after ${GONE[2]}`]],
];

test("of a list the first difference is shown with the item before it", async () => {
  for (const [expected, rows] of DIFFERENCES) {
    const { unmet } = await resultOf(`path: ${expected}`);
    assert.deepEqual(
      unmet.flatMap((one) => unmetRows(one).map(([name, text]) => `${name} ${text}`)),
      rows,
      expected,
    );
    assert.deepEqual(unmet[0]!.got, GONE, "the data is whole");
  }
});

test("a test that ends at a step says which response was not given as the script says", async () => {
  const { tests } = readTests(
    flow!,
    filesWith(`params: { issue: 7 }
tests:
  - name: one
    script: [{ step: initial.issue, saw: [no such words], label: next }]
    until: continuation.issue
`),
  );
  const { unmet } = await runTest(prepared, tests[0]!);
  assert.deepEqual(
    unmet.map(({ key }) => key),
    ["visits", "script"],
  );
  assert.match(JSON.stringify(unmet[1]!.got), /reply 1 expected the request to hold \\"no such words/);
});

test("a check that passed because the test says nothing about it is the reason, and the visit is named", async () => {
  const result = await resultOf(
    "path: [..., closure.issue closing x tests-failed -> continuation.issue, ...]",
  );
  const reasons = reasonsFor(result.test, result.outcomes!, result.unmet);
  assert.ok(
    reasons.includes("tests-pass passed: the test gives no result for it, and then it passes"),
    JSON.stringify(reasons),
  );
  assert.equal(visitToLookAt(result.outcomes!.path, result.unmet), "closure.issue@1");
  const given = await resultOf("turns: 1", "    checks: { tests-pass: pass, git-clean: pass }\n");
  assert.deepEqual(reasonsFor(given.test, given.outcomes!, given.unmet), []);
});

test("the rule of the gate is the reason for a denied call", async () => {
  const { test: one, outcomes, unmet } = await resultOf("calls: [Write ok]");
  assert.match(reasonsFor(one, outcomes!, unmet).join("\n"), /^Write was denied: /m);
});

test("where nothing was said, nothing can be unseen; a step that was not visited has 0 visits", async () => {
  const rows: readonly (readonly [expect: string, at: string | null, got?: unknown])[] = [
    ["said: { at: closure.issue@2, unseen: [anything] }", "1", "no request"],
    ["said: [{ at: initial.issue, unseen: [no such words] }, { at: closure.issue@3, saw: [a] }]", "2"],
    ["said: { at: closure.issue@1, unseen: [no such words] }", null],
    ['visits: { closure.issue: "<= 1", initial.issue: "> 0" }', null],
    ["visits: { closure.issue: 0 }", "closure.issue", 1],
  ];
  for (const [expect, at, got] of rows) {
    const { unmet } = await resultOf(expect);
    assert.deepEqual(
      unmet.map((one) => one.at),
      at === null ? [] : [at],
      expect,
    );
    if (got !== undefined) assert.deepEqual(unmet[0]!.got, got);
  }
  const cut = "    until: continuation.issue\n";
  for (const expect of ["visits: { closure.issue: 0 }", "visits: { closure.issue: absent }"])
    assert.deepEqual((await resultOf(expect, cut)).unmet, [], expect);
  const [unvisited] = (await resultOf("visits: { closure.issue: 1 }", cut)).unmet;
  assert.deepEqual([unvisited!.at, unvisited!.got], ["closure.issue", 0]);
});
