/** Snapshots: their files, their text, and the lines that changed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NOTHING_AROUND, type FlowTest } from "../../src/flow/flow-test.ts";
import type { Json } from "../../src/flow/json.ts";
import { changedLines, snapshotParts, snapshotPaths, snapshotText } from "../../src/proof/snapshot.ts";

function named(name: string, snapshot?: Json, file = ".agent/a/tests/closing.yaml"): FlowTest {
  return {
    name,
    file,
    line: 1,
    params: {},
    input: "",
    script: [],
    around: NOTHING_AROUND,
    ground: { kind: "memory" },
    expect: { lines: {}, values: snapshot === undefined ? {} : { snapshot } },
    only: false,
    generated: false,
    covers: [],
  };
}

test("each test with a snapshot has a file of its own, below the folder of its test file", () => {
  const tests = [
    named("Ends: at once!", "path"),
    named("ends at once", "path"),
    named("has none"),
    named("../../../evil", "path"),
    named("…", "path"),
    named("ends at once", "path", ".agent/a/tests/other.json"),
  ];
  assert.deepEqual(
    [...snapshotPaths(tests).values()].map((path) => path.replace(".agent/a/tests/", "")),
    [
      "snapshots/closing.ends-at-once.md",
      "snapshots/closing.ends-at-once-2.md",
      "snapshots/closing.evil.md",
      "snapshots/closing.test.md",
      "snapshots/other.ends-at-once.md",
    ],
  );
});

test("the parts are kept in one order, and an unknown one is refused", () => {
  assert.deepEqual(snapshotParts(["result", "prompts"]), ["prompts", "result"]);
  assert.deepEqual(snapshotParts("path"), ["path"]);
  assert.equal(snapshotParts(["path", "words"]), null);
});

test("what differs from run to run is written as a name, and a fence is longer than those in the text", () => {
  const said =
    "```js\ncode\n```\nin /tmp/x-1/project, run abcdef1234, at 2026-01-01T00:00:00.001Z, " + "a".repeat(64);
  const heard = [{ step: "initial.a", visit: 2, system: "Be brief.", said, text: said }];
  const outcomes = {
    moments: [],
    path: [],
    observed: { path: ["initial.a next -> end"], outcome: "completed" },
  };
  const volatile = [
    ["/tmp/x-1", "temporary"],
    ["/tmp/x-1/project", "folder"],
    ["abcdef1234", "run"],
  ] as const;
  const text = snapshotText(named("n"), ["prompts", "path", "result"], heard, outcomes, volatile);
  assert.equal(
    text,
    [
      "# n\n\n## Request 1: initial.a #2\n\nSystem:\n\n```text\nBe brief.\n```\n\n",
      "````text\n```js\ncode\n```\nin <folder>, run <run>, at <time>, <digest>\n````\n\n",
      "## Path\n\n- initial.a next -> end\n\n",
      '## Result\n\n```json\n{\n  "outcome": "completed"\n}\n```\n',
    ].join(""),
  );
});

const LINES = Array.from({ length: 20 }, (_, at) => `line ${at + 1}`);

test("a change is shown with the lines around it", () => {
  const after = LINES.with(9, "another");
  assert.deepEqual(changedLines(LINES.join("\n"), after.join("\n")), [
    "  line 8",
    "  line 9",
    "- line 10",
    "+ another",
    "  line 11",
    "  line 12",
  ]);
});

test("far changes are kept apart, and what is equal has none", () => {
  const after = ["new", ...LINES.slice(0, -1)];
  assert.deepEqual(changedLines(LINES.join("\n"), after.join("\n")), [
    "+ new",
    "  line 1",
    "  line 2",
    "  ...",
    "  line 18",
    "  line 19",
    "- line 20",
  ]);
  assert.deepEqual(changedLines("a\nb", "a\nb"), []);
});

test("long texts are compared by their first and last difference", () => {
  const long = Array.from({ length: 3000 }, (_, at) => `line ${at}`);
  const changed = changedLines(long.join("\n"), long.with(1500, "x").join("\n"));
  assert.deepEqual(changed, [
    "  line 1498",
    "  line 1499",
    "- line 1500",
    "+ x",
    "  line 1501",
    "  line 1502",
  ]);
});
