/** Test files: what is read of them, and every finding about them with its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NOTHING_AROUND } from "../../src/flow/flow-test.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { Json, JsonObject } from "../../src/flow/json.ts";
import { readTests, testPaths, testsIn } from "../../src/load/tests.ts";
import { sketchCheck, sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { filesOf, type Tree } from "./world.ts";

const FOLDER = ".agent/sketch/tests";
const FILE = `${FOLDER}/a.json`;

const SKETCH = sketchFlow(
  {
    begin: {
      edges: { next: "close" },
      handoff: ["plan"],
      tools: ["Read", "Bash(git status)", "mcp__shop__*"],
    },
    close: { edges: { closing: null }, tools: ["Grep"] },
    free: { edges: {}, free: true, tools: [] },
  },
  {
    checks: { green: sketchCheck("green", "make test") },
    parameters: [
      { name: "issue", type: "number", required: false, default: null },
    ] as unknown as Flow["parameters"],
    hooks: { file: "hooks.ts", digest: "" },
  },
);
const FLOW: Flow = {
  ...SKETCH,
  steps: { ...SKETCH.steps, ...sketchMachine({ build: {} }).steps },
};

const BESIDE: Tree = {
  [`${FOLDER}/fixtures/out.txt`]: "7 failed",
  [`${FOLDER}/fixtures/script.yaml`]: "replies:\n  - begin next\n  - { step: close, label: clsing }\n",
  [`${FOLDER}/fixtures/prose.txt`]: "no script",
  [`${FOLDER}/fixtures/shop/cart.js`]: "",
};

const onCopy = (expect: Json) => one({ project: "fixtures/shop", expect });
const expecting = (expect: Json) => one({ expect });

const read = (written: Json, more: Tree = {}) =>
  readTests(FLOW, filesOf({ ...BESIDE, [FILE]: JSON.stringify(written), ...more }));

const one = (written: JsonObject) => ({ tests: [{ name: "t", ...written }] });
const reply = (written: Json) => one({ script: [written] });

test("test files are those of the folder with a known ending, in the order of their names", () => {
  const names = [
    "b.yml",
    "a.yaml",
    "c.json",
    "D.YAML",
    "settings.yaml",
    "settings.json",
    ".hidden.yaml",
    "notes.md",
  ];
  const files = filesOf(Object.fromEntries(names.map((name) => [`${FOLDER}/${name}`, ""])));
  assert.deepEqual(
    testPaths("sketch", files),
    ["D.YAML", "a.yaml", "b.yml", "c.json"].map((name) => `${FOLDER}/${name}`),
  );
  assert.deepEqual(testPaths("sketch", filesOf({})), []);
});

test("files that hold tests and are not read are named; what tests use, and settings, are not", () => {
  const holding = "params: { issue: 1 }\ntests:\n  - { name: t, script: [begin next] }\n";
  const unread = ["a.yaml.txt", ".hidden.yml", "sub/b.yaml", "a.test", "Settings", "sub/c.json"];
  const tree = Object.fromEntries(unread.map((name) => [`${FOLDER}/${name}`, holding]));
  const beside = ["notes.md", "fixtures/x.yaml", "a.yaml~", "sub/deep/x.yaml", "snapshots/x.yaml"];
  const { problems } = read(one({}), {
    ...tree,
    [`${FOLDER}/sub/c.json`]: JSON.stringify({ tests: [] }),
    [`${FOLDER}/shop/package.json`]: JSON.stringify({ scripts: { tests: "x" } }),
    ...Object.fromEntries(beside.map((name) => [`${FOLDER}/${name}`, holding])),
  });
  assert.deepEqual(
    problems
      .map(({ code, severity, file }) => `${code} ${severity} ${file.slice(FOLDER.length + 1)}`)
      .toSorted(),
    unread.map((name) => `TEST-UNREAD warning ${name}`).toSorted(),
  );
});

test("everything that can be written is read, and a test adds to what its file says, or replaces it", () => {
  const { tests, problems } = read({
    params: { issue: 1 },
    input: "of the file",
    checks: { green: "fail" },
    tools: { Read: "of the file", Grep: { ok: false, content: "none" } },
    hooks: { setup: { a: 1 } },
    sights: [true],
    answers: ["yes", null, "no"],
    clock: "2026-01-02T00:00:00Z",
    order: ["close"],
    tests: [
      { name: "plain" },
      {
        name: "own",
        params: { issue: 2 },
        input: "its own",
        checks: { green: [{ exit: 2, stdout: "file:fixtures/out.txt" }, "pass"] },
        tools: { Read: ["file:fixtures/out.txt", { ok: false }] },
        hooks: { "build.exit": [1, 2] },
        sights: [],
        answers: [],
        clock: "1970-01-01T00:00:01Z",
        order: [],
        until: "close",
        skip: "because",
        only: true,
        generated: true,
        covers: ["begin"],
        expect: { outcome: "failed", turns: "<= 3", snapshot: ["path", "result"] },
        script: [
          "begin next",
          {
            step: "begin",
            label: "next",
            with: { a: 1 },
            times: 3,
            saw: "x",
            unseen: ["y"],
            usage: { in: 5 },
          },
          { text: "prose", calls: [{ name: "Read", input: { a: 1 }, id: "c" }, { name: "Grep" }] },
          { output: null },
          { error: { kind: "rate-limit", retryAfterMs: 5, status: 429, message: "slow" } },
          "free anything",
        ],
      },
      {
        name: "on a copy",
        github: { issue: 3 },
        project: "fixtures/shop",
        git: { commits: 2, dirty: true },
      },
    ],
  });
  assert.deepEqual(problems, []);
  const [plain, own, copied] = tests;
  assert.deepEqual(plain!.params, { issue: 1 });
  assert.deepEqual([plain!.input, plain!.ground, plain!.script], ["of the file", { kind: "memory" }, []]);
  assert.deepEqual(plain!.expect, { lines: {}, values: { outcome: "completed", warnings: [] } });
  assert.deepEqual(plain!.around, {
    ...NOTHING_AROUND,
    checks: { green: [{ kind: "fail" }] },
    tools: { Read: [{ ok: true, content: "of the file" }], Grep: [{ ok: false, content: "none" }] },
    hooks: { setup: [{ a: 1 }] },
    sights: [true],
    answers: ["yes", null, "no"],
    clock: Date.parse("2026-01-02T00:00:00Z"),
    order: ["close"],
  });
  assert.deepEqual(
    [own!.params, own!.input, own!.until, own!.skip],
    [{ issue: 2 }, "its own", "close", "because"],
  );
  assert.deepEqual([own!.only, own!.generated, own!.covers], [true, true, ["begin"]]);
  assert.deepEqual(copied!.around.github, { issue: 3 });
  assert.deepEqual(copied!.ground, {
    kind: "project",
    folder: `${FOLDER}/fixtures/shop`,
    git: { commits: 2, branch: "main", dirty: true },
  });
  assert.deepEqual(own!.around, {
    checks: { green: [{ kind: "output", exit: 2, stdout: "7 failed", stderr: "" }, { kind: "pass" }] },
    tools: {
      Read: [
        { ok: true, content: "7 failed" },
        { ok: false, content: "" },
      ],
      Grep: [{ ok: false, content: "none" }],
    },
    hooks: { setup: [{ a: 1 }], "build.exit": [1, 2] },
    sights: [],
    answers: [],
    github: null,
    clock: 1000,
    order: [],
  });
  assert.deepEqual(
    own!.script.map(({ line: _line, ...rest }) => rest),
    [
      { step: "begin", label: "next" },
      { step: "begin", label: "next", with: { a: 1 }, times: 3, saw: ["x"], unseen: ["y"], usage: { in: 5 } },
      {
        text: "prose",
        calls: [
          { name: "Read", input: { a: 1 }, id: "c" },
          { name: "Grep", input: {} },
        ],
      },
      { output: null },
      { error: { kind: "rate-limit", retryAfterMs: 5, status: 429, message: "slow" } },
      { step: "free", label: "anything" },
    ],
  );
  assert.deepEqual(own!.expect.values, { outcome: "failed", turns: "<= 3", snapshot: ["path", "result"] });
});

test("each case is a test of its own, in which a value that stands alone keeps its type, and keys are replaced too", () => {
  const { tests, problems } = read(
    one({
      name: "risk ${case.risk}",
      params: { "${case.parameter}": "${case.issue}" },
      script: [
        { step: "begin", label: "${case.label}", with: { "a.b": "${case.risk}", c: "is ${case.issue}" } },
      ],
      cases: [
        { risk: "low", issue: 1, label: "next", parameter: "issue" },
        { risk: "high", issue: 2, label: "abort", parameter: "issue" },
      ],
    }),
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(
    tests.map(({ name, params, script }) => [name, params.issue, script[0]!.label, script[0]!.with]),
    [
      ["risk low", 1, "next", { "a.b": "low", c: "is 1" }],
      ["risk high", 2, "abort", { "a.b": "high", c: "is 2" }],
    ],
  );
});

test("a list among the responses stands for its responses, so that YAML can name a beginning", () => {
  const yaml = `tests:
  - { name: one, script: [&begin [begin next], close closing] }
  - { name: two, script: [[*begin, { step: close, label: closing }]] }
  - { name: three, script: [*begin, ["\${case.then}"]], cases: [{ then: [close closing] }] }
`;
  const files = filesOf({ [`${FOLDER}/a.yaml`]: yaml });
  const { tests, problems } = readTests(FLOW, files);
  assert.deepEqual(problems, []);
  for (const { script } of tests)
    assert.deepEqual(
      script.map(({ step, label }) => `${step} ${label}`),
      ["begin next", "close closing"],
    );
});

test("everything that means something can be expected", () => {
  const { problems } = read({
    tests: [
      ...[
        { outcome: "re:^(?:failed|waiting)$", code: "absent", exit: 4, final: "absent", reason: "re:^Step" },
        { final: "re:^b", path: ["begin next", "...", "re:^close", "begin x *", "begin next x p -> close"] },
        { path: ["begin -", "free - -> fork begin+close", "build ok -> end"], final: "close" },
        { visits: { begin: 0, close: "absent", free: "> 0" }, turns: "<= 3", tokens: 0.5, waited: "< 10" },
        { costUsd: "absent", checks: [], calls: ["Read", "Bash denied", "..."], effects: ["label applied"] },
        { checks: ["...", "green failed", "re:passed$"], asked: [], warnings: ["re:unused"] },
        { handoff: { begin: { plan: "absent", other: 3 }, build: { any: "absent" }, close: "absent" } },
        { said: { unseen: "word" } },
        {
          said: [
            { at: "begin@2", saw: ["a", "re:b+"] },
            { at: "close", unseen: ["c"] },
          ],
        },
        { snapshot: "path" },
      ].map((expect) => ({ name: "t", expect })),
      ...[
        { files: { "a/b.txt": "whole", "c.txt": "absent", "d.json": { json: { a: "re:x" } } }, changed: [] },
        {
          files: { "e.txt": { has: "a", lacks: ["re:b"] } },
          git: { clean: true, commits: ">= 2", last: "re:a" },
        },
        { github: { issues: { "1": { state: "open" } } }, git: "absent" },
      ].map((expect) => ({ name: "t", project: "fixtures/shop", git: true, github: {}, expect })),
      {
        name: "t",
        tools: { Bash: "x", mcp__shop__buy: "y", done: "z" },
        hooks: { "build.exit": 1, next: 2 },
      },
      { name: "t", project: "./fixtures/../../../../.agent/sketch/tests/fixtures/shop" },
    ],
  });
  assert.deepEqual(
    problems.map(({ pointer, message }) => `${pointer} ${message}`),
    [],
  );
});

const wrong: readonly (readonly [Json, code: string, pointer: string, message: RegExp])[] = [
  [{ tests: 3 }, "TEST-KEY", "/tests", /tests/],
  [{ tests: [] }, "TEST-KEY", "/tests", /tests/],
  [{ tests: [{ script: [] }] }, "TEST-KEY", "/tests/0/name", /name/],
  [one({ until: "clse" }), "TEST-STEP", "/tests/0/until", /"clse".*Did you mean "close"/],
  [one({ order: ["begin", "clse"] }), "TEST-STEP", "/tests/0/order/1", /"clse"/],
  [{ order: ["clse"], ...one({}) }, "TEST-STEP", "/order/0", /"clse"/],
  [one({ params: { isue: 1 } }), "TEST-PARAM", "/tests/0/params/isue", /Did you mean "issue"/],
  [{ params: { isue: 1 }, ...one({}) }, "TEST-PARAM", "/params/isue", /Did you mean "issue"/],
  [one({ checks: { gren: "pass" } }), "TEST-CHECK", "/tests/0/checks/gren", /Did you mean "green"/],
  [{ checks: { gren: "pass" }, ...one({}) }, "TEST-CHECK", "/checks/gren", /Did you mean "green"/],
  [one({ checks: { green: "passes" } }), "TEST-CHECK", "/tests/0/checks/green", /"passes" is not a result/],
  [{ checks: { green: ["pass", {}] }, ...one({}) }, "TEST-CHECK", "/checks/green", /not a result/],
  [one({ answers: ["yes", 3] }), "TEST-KEY", "/tests/0/answers/1", /is 3/],
  [one({ clock: "noon" }), "TEST-KEY", "/tests/0/clock", /"noon" is not a time/],
  [{ clock: "noon", ...one({}) }, "TEST-KEY", "/clock", /"noon" is not a time/],
  [one({ checks: { green: { stdout: "file:no.txt" } } }), "TEST-FIXTURE", "/tests/0/checks/green", /no\.txt/],
  [{ checks: { green: { stderr: "file:no.txt" } }, ...one({}) }, "TEST-FIXTURE", "/checks/green", /no\.txt/],
  [one({ tools: { Read: "file:no.txt" } }), "TEST-FIXTURE", "/tests/0/tools/Read", /no\.txt does not exist/],
  [one({ tools: { Read: { content: "file:no.txt" } } }), "TEST-FIXTURE", "/tests/0/tools/Read", /no\.txt/],
  [one({ project: "fixtures/no" }), "TEST-FIXTURE", "/tests/0/project", /fixtures\/no does not exist/],
  [{ project: "fixtures/no", ...one({}) }, "TEST-FIXTURE", "/project", /fixtures\/no does not exist/],
  [one({ script: "fixtures/no.yaml" }), "TEST-FIXTURE", "/tests/0/script", /no\.yaml does not exist/],
  [one({ script: "fixtures/prose.txt" }), "TEST-FIXTURE", "/tests/0/script", /no list of replies/],
  [one({ script: "fixtures/script.yaml" }), "TEST-LABEL", "/replies/1/label", /Did you mean "closing"/],
  [one({ expect: { pth: [] } }), "TEST-KEY", "/tests/0/expect/pth", /Did you mean "path"/],
  [one({ expect: { snapshot: ["path", "words"] } }), "TEST-KEY", "/tests/0/expect/snapshot", /"words"/],
  [one({ cases: [{ risk: 1 }] }), "TEST-KEY", "/tests/0/cases/0/risk", /"risk" of the cases is never used/],
  [null, "TEST-KEY", "", /a\.json is empty/],
  [{ tests: [{ name: "t" }, null] }, "TEST-KEY", "/tests/1", /The test is empty/],
  [one({ skip: "" }), "TEST-KEY", "/tests/0/skip", /not empty/],
  [one({ until: "" }), "TEST-KEY", "/tests/0/until", /not empty/],
  [one({ cases: [] }), "TEST-KEY", "/tests/0/cases", /at least one entry/],
  [one({ cases: [{}, null] }), "TEST-KEY", "/tests/0/cases/1", /The case is empty/],
  [one({ name: "${case.a}" }), "TEST-KEY", "/tests/0", /\$\{case\.a\} is used, and the test has no cases/],
  [
    one({ input: "${case.risk}", cases: [{ risk: "a" }, { risk: "b", rsk: "c" }] }),
    "TEST-KEY",
    "/tests/0/cases/1/rsk",
    /never used/,
  ],
  [
    one({ input: "${case.a}${case.b}", cases: [{ a: 1, b: 2 }, { a: 1 }] }),
    "TEST-KEY",
    "/tests/0/cases/1",
    /no value "b"/,
  ],
  [
    one({ tools: { Raed: "x" } }),
    "TEST-KEY",
    "/tests/0/tools/Raed",
    /may use the tool "Raed".*Did you mean "Read"/,
  ],
  [{ tools: { Write: "x" }, ...one({}) }, "TEST-KEY", "/tools/Write", /may use the tool "Write"/],
  [one({ tools: { Read: [] } }), "TEST-KEY", "/tests/0/tools/Read", /results of "Read" is empty/],
  [one({ checks: { green: [] } }), "TEST-KEY", "/tests/0/checks/green", /results of "green" is empty/],
  [one({ hooks: { next: [] } }), "TEST-KEY", "/tests/0/hooks/next", /results of "next" is empty/],
  [one({ hooks: { nxt: 1 } }), "TEST-KEY", "/tests/0/hooks/nxt", /Did you mean "next"/],
  [one({ hooks: { "begin.next": 1 } }), "TEST-KEY", "/tests/0/hooks/begin.next", /not a hook of the flow/],
  [
    one({ project: "../../../../other" }),
    "TEST-FIXTURE",
    "/tests/0/project",
    /\.\.\/other is not in the project/,
  ],
  [one({ project: "/etc" }), "TEST-FIXTURE", "/tests/0/project", /\/etc is not in the project/],
  [
    one({ project: "fixtures/out.txt" }),
    "TEST-FIXTURE",
    "/tests/0/project",
    /is not a folder that can be read/,
  ],
  [one({ script: "../../../../x.yaml" }), "TEST-FIXTURE", "/tests/0/script", /leaves the project/],
  [
    one({ tools: { Read: "file:../../../../x" } }),
    "TEST-FIXTURE",
    "/tests/0/tools/Read",
    /leaves the project/,
  ],
  [reply({ label: "next", saw: "" }), "TEST-KEY", "/tests/0/script/0/saw", /saw holds no word/],
  [reply({ label: "next", unseen: [] }), "TEST-KEY", "/tests/0/script/0/unseen", /unseen holds no word/],
  [
    reply({ label: "next", unseen: ["re:("] }),
    "TEST-KEY",
    "/tests/0/script/0/unseen",
    /"re:\(": .*not a valid regular/,
  ],
  [expecting({}), "TEST-KEY", "/tests/0/expect", /pass however the run goes/],
  [expecting({ outcome: "complete" }), "TEST-KEY", "/tests/0/expect/outcome", /Did you mean "completed"/],
  [expecting({ outcome: true }), "TEST-KEY", "/tests/0/expect/outcome", /is true/],
  [
    expecting({ reason: "re:[" }),
    "TEST-KEY",
    "/tests/0/expect/reason",
    /"re:\[": it is not a valid regular expression/,
  ],
  [expecting({ reason: "re:" }), "TEST-KEY", "/tests/0/expect/reason", /it is empty, and matches every text/],
  [expecting({ code: 4 }), "TEST-KEY", "/tests/0/expect/code", /is 4, but must be a text/],
  [expecting({ final: "clse" }), "TEST-STEP", "/tests/0/expect/final", /Did you mean "close"/],
  [expecting({ exit: "3" }), "TEST-KEY", "/tests/0/expect/exit", /the text "3"/],
  [expecting({ turns: "<= x" }), "TEST-KEY", "/tests/0/expect/turns", /"<= x", but must be a number/],
  [expecting({ turns: "=< 3" }), "TEST-KEY", "/tests/0/expect/turns", /"=< 3", but must be a number/],
  [expecting({ tokens: ">= 0" }), "TEST-KEY", "/tests/0/expect/tokens", /is always so/],
  [expecting({ waited: "> -1" }), "TEST-KEY", "/tests/0/expect/waited", /is always so/],
  [expecting({ costUsd: -1 }), "TEST-KEY", "/tests/0/expect/costUsd", /at least 0/],
  [expecting({ visits: {} }), "TEST-KEY", "/tests/0/expect/visits", /is empty, which is always so/],
  [
    expecting({ visits: { clse: "absent" } }),
    "TEST-STEP",
    "/tests/0/expect/visits/clse",
    /Did you mean "close"/,
  ],
  [expecting({ visits: { close: "2" } }), "TEST-KEY", "/tests/0/expect/visits/close", /the text "2"/],
  [expecting({ path: "begin next" }), "TEST-KEY", "/tests/0/expect/path", /must be a list/],
  [expecting({ path: ["...", "..."] }), "TEST-KEY", "/tests/0/expect/path", /which any list fits/],
  [expecting({ path: ["begin next now"] }), "TEST-KEY", "/tests/0/expect/path/0", /not a decision of a path/],
  [expecting({ path: ["bgin next"] }), "TEST-STEP", "/tests/0/expect/path/0", /Did you mean "begin"/],
  [
    expecting({ path: ["begin next -> fork close+fre"] }),
    "TEST-STEP",
    "/tests/0/expect/path/0",
    /"fre" is not a step/,
  ],
  [expecting({ checks: ["gren failed"] }), "TEST-CHECK", "/tests/0/expect/checks/0", /Did you mean "green"/],
  [
    expecting({ checks: ["green fails"] }),
    "TEST-KEY",
    "/tests/0/expect/checks/0",
    /NAME passed, or NAME failed/,
  ],
  [expecting({ calls: ["Read done"] }), "TEST-KEY", "/tests/0/expect/calls/0", /TOOL ok/],
  [expecting({ asked: [3] }), "TEST-KEY", "/tests/0/expect/asked/0", /must be a text/],
  [
    expecting({ handoff: { bgin: "absent" } }),
    "TEST-STEP",
    "/tests/0/expect/handoff/bgin",
    /Did you mean "begin"/,
  ],
  [
    expecting({ handoff: { begin: { plna: "absent" } } }),
    "TEST-KEY",
    "/tests/0/expect/handoff/begin/plna",
    /never hands on "plna".*"plan"/,
  ],
  [
    expecting({ handoff: { begin: { plan: { a: "re:(" } } } }),
    "TEST-KEY",
    "/tests/0/expect/handoff/begin/plan/a",
    /cannot be used/,
  ],
  [expecting({ said: "words" }), "TEST-KEY", "/tests/0/expect/said", /must be \{ at, saw, unseen \}/],
  [expecting({ said: [] }), "TEST-KEY", "/tests/0/expect/said", /must be \{ at, saw, unseen \}/],
  [expecting({ said: { at: "begin" } }), "TEST-KEY", "/tests/0/expect/said", /neither saw nor unseen/],
  [
    expecting({ said: [{ at: "bgin", unseen: "a" }] }),
    "TEST-STEP",
    "/tests/0/expect/said/0/at",
    /Did you mean "begin"/,
  ],
  [
    expecting({ said: { at: "begin@0", unseen: "a" } }),
    "TEST-KEY",
    "/tests/0/expect/said/at",
    /counted from 1/,
  ],
  [expecting({ said: { saw: [] } }), "TEST-KEY", "/tests/0/expect/said/saw", /holds no word/],
  [expecting({ snapshot: [] }), "TEST-KEY", "/tests/0/expect/snapshot", /one or more of/],
  [
    onCopy({ files: { "../x": "absent" } }),
    "TEST-FIXTURE",
    "/tests/0/expect/files/..~1x",
    /\.\.\/x is not in the project/,
  ],
  [onCopy({ files: {} }), "TEST-KEY", "/tests/0/expect/files", /is empty, which is always so/],
  [onCopy({ files: { a: {} } }), "TEST-KEY", "/tests/0/expect/files/a", /expects nothing of the file/],
  [onCopy({ files: { a: { lacks: [] } } }), "TEST-KEY", "/tests/0/expect/files/a/lacks", /holds no word/],
  [onCopy({ git: { clean: "yes" } }), "TEST-KEY", "/tests/0/expect/git/clean", /true or false/],
  [onCopy({ git: { commits: "two" } }), "TEST-KEY", "/tests/0/expect/git/commits", /must be a number/],
  [onCopy({ changed: "a" }), "TEST-KEY", "/tests/0/expect/changed", /must be a list/],
  [reply("bgin next"), "TEST-STEP", "/tests/0/script/0", /Did you mean "begin"/],
  [reply("begin nxt"), "TEST-LABEL", "/tests/0/script/0", /Did you mean "next"/],
  [reply("begin"), "TEST-KEY", "/tests/0/script/0", /write STEP LABEL/],
  [reply("begin next twice"), "TEST-KEY", "/tests/0/script/0", /write STEP LABEL/],
  [reply(7), "TEST-KEY", "/tests/0/script/0", /7 is not a response/],
  [reply({ step: "begin" }), "TEST-KEY", "/tests/0/script/0", /says nothing/],
  [reply({ step: "begin", lable: "next", text: "" }), "TEST-KEY", "/tests/0/script/0/lable", /mean "label"/],
  [reply({ step: "bgin", label: "next" }), "TEST-STEP", "/tests/0/script/0/step", /Did you mean "begin"/],
  [reply({ step: "begin", label: "nxt" }), "TEST-LABEL", "/tests/0/script/0/label", /Did you mean "next"/],
  [
    reply({ step: 1, label: "next" }),
    "TEST-KEY",
    "/tests/0/script/0/step",
    /step.* is 1, but must be a string/,
  ],
  [reply({ label: ["next"] }), "TEST-KEY", "/tests/0/script/0/label", /label.* must be a string/],
  [reply({ label: "next", with: "a" }), "TEST-KEY", "/tests/0/script/0/with", /with.* must be an object/],
  [
    reply({ label: "next", times: 0 }),
    "TEST-KEY",
    "/tests/0/script/0/times",
    /times.* is 0, but must be a whole number of at least 1/,
  ],
  [reply({ label: "next", times: 1.5 }), "TEST-KEY", "/tests/0/script/0/times", /whole number/],
  [reply({ label: "next", saw: 7 }), "TEST-KEY", "/tests/0/script/0/saw", /must be a string or a list/],
  [
    reply({ label: "next", unseen: ["a", 7] }),
    "TEST-KEY",
    "/tests/0/script/0/unseen",
    /unseen holds something that is not a text/,
  ],
  [reply({ text: 7 }), "TEST-KEY", "/tests/0/script/0/text", /text.* is 7, but must be a string/],
  [reply({ calls: { name: "Read" } }), "TEST-KEY", "/tests/0/script/0/calls", /calls.* must be a list/],
  [reply({ calls: [{}] }), "TEST-KEY", "/tests/0/script/0/calls/0/name", /name.* is missing/],
  [
    reply({ calls: [{ name: "Read", input: 1 }] }),
    "TEST-KEY",
    "/tests/0/script/0/calls/0/input",
    /must be an object/,
  ],
  [reply({ error: "rate-limit" }), "TEST-KEY", "/tests/0/script/0/error", /must be an object/],
  [
    reply({ error: { kind: "slow" } }),
    "TEST-KEY",
    "/tests/0/script/0/error/kind",
    /"slow", but must be one of "auth", "rate-limit"/,
  ],
  [reply({ error: {} }), "TEST-KEY", "/tests/0/script/0/error/kind", /kind.* is missing/],
  [reply({ text: "", usage: 3 }), "TEST-KEY", "/tests/0/script/0/usage", /must be an object/],
];
for (const [written, code, pointer, message] of wrong)
  test(`${JSON.stringify(written)}: ${code} at ${pointer}`, () => {
    const { problems } = read(written);
    assert.deepEqual(
      problems.map((problem) => [problem.code, problem.pointer, problem.severity]),
      [[code, pointer, "error"]],
    );
    const [{ message: said, fix }] = problems as [(typeof problems)[0]];
    assert.match(said, message);
    assert.ok(fix.length > 0);
  });

test("a finding names the line, also in a script file, and is given once for all cases and tests", () => {
  const yaml = [
    "checks: { gren: pass }",
    "tests:",
    "  - name: one",
    '    script: ["begin ${case.x}", close nowhere]',
    "    cases: [{ x: next }, { x: abort }]",
    "  - name: two",
    "    script: fixtures/script.yaml",
  ].join("\n");
  const files = filesOf({ ...BESIDE, [`${FOLDER}/a.yaml`]: yaml });
  const { problems } = testsIn(FLOW, files, `${FOLDER}/a.yaml`);
  assert.deepEqual(
    problems.map(({ code, file, line }) => `${code} ${file.slice(FOLDER.length + 1)}:${line}`),
    ["TEST-CHECK a.yaml:1", "TEST-LABEL a.yaml:4", "TEST-LABEL fixtures/script.yaml:3"],
  );
});

test("a file that cannot be read is one finding, and the others are read all the same", () => {
  const { tests, problems } = read(one({}), {
    [`${FOLDER}/b.yaml`]: "tests: [",
    [`${FOLDER}/c.yaml`]: "tests:\n  - name: x\n    name: y\n",
    [`${FOLDER}/d.json`]: `{"tests":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
  });
  assert.deepEqual(
    tests.map(({ name }) => name),
    ["t"],
  );
  assert.deepEqual(
    problems.map(({ code, file }) => [code, file.slice(FOLDER.length + 1)]),
    [
      ["TEST-KEY", "b.yaml"],
      ["TEST-KEY", "c.yaml"],
      ["TEST-KEY", "d.json"],
    ],
  );
  assert.match(problems[2]!.message, /nested too deeply/);
  const gone = testsIn(FLOW, filesOf({}), FILE);
  assert.match(gone.problems[0]!.message, /does not exist/);
});

test("every case has a name of its own, also where the name does not say what it is about", () => {
  const script = ["begin next", "close closing"];
  const named = (name: string, ...inputs: readonly string[]) => ({
    name,
    script,
    input: "${case.in}",
    cases: inputs.map((input) => ({ in: input })),
  });
  const { tests, problems } = read({
    tests: [named("t", "a", "b", "c"), named("in ${case.in}", "a", "b", "a")],
  });
  assert.deepEqual(problems, []);
  assert.deepEqual(
    tests.map(({ name }) => name),
    ["t", "t (case 2)", "t (case 3)", "in a", "in b", "in a (case 3)"],
  );
});
