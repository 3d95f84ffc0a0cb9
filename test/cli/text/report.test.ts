/** Problems and reports of runs, as text. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { countProblems, renderProblems } from "../../../src/cli/text/problems.ts";
import { ledLine } from "../../../src/cli/text/progress.ts";
import { renderBrief, renderReport } from "../../../src/cli/text/report.ts";
import { asTyped } from "../../../src/cli/text/typed.ts";
import { answerCommands } from "../../../src/flow/question.ts";
import type { Problem } from "../../../src/flow/problem.ts";
import type { Result, Shown } from "../../../src/run/index.ts";
import { toFailure } from "../../../src/tell/result.ts";
import { check, plain } from "../rendered.ts";

// Problems.
const problem: Problem = {
  code: "SR-TRANS-001",
  severity: "error",
  file: ".agent/x/steps_registry.json",
  line: 2,
  column: 5,
  pointer: "/steps/a",
  step: "a",
  message: 'leads to "\u001b[31mb"',
  why: "It must exist.",
  fix: "Name a step.",
  witness: ["a", "b"],
};
const reading = (text: string) => ({ read: () => ({ kind: "text", text }) as const });

test("a problem shows its place, three lines around it, why, fix and way", () => {
  assert.equal(
    renderProblems([problem], reading("{\n\tx: 1,\n}\n"), plain),
    [
      ".agent/x/steps_registry.json:2:5  error  SR-TRANS-001",
      '  leads to "\\x1b[31mb"',
      "    1 | {",
      "  > 2 | → x: 1,",
      "      |      ^",
      "    3 | }",
      "  why  It must exist.",
      "  fix  Name a step.",
      "  way  a → b",
    ].join("\n"),
  );
});

for (const [name, files, expected] of [
  ["a missing file", { read: () => ({ kind: "missing" }) as const }, /error {2}SR-TRANS-001\n {2}leads/],
  ["an empty file", reading(""), /leads[^\n]*\n {2}why/],
  ["a place beyond the end", reading("one line"), /leads[^\n]*\n {2}why/],
  ["a first line", reading("{}"), /why/],
] as const) {
  test(`a problem of ${name} has no code frame and is told all the same`, () => {
    assert.match(renderProblems([problem], files, plain), expected);
  });
}

test("a place far to the right on a very long line is in view", () => {
  const line = `${" ".repeat(5000)}HERE${" ".repeat(5000)}`;
  const shown = renderProblems([{ ...problem, line: 1, column: 5001 }], reading(line), plain);
  const [, , code = "", mark = ""] = shown.split("\n");
  assert.equal(code.indexOf("HERE"), mark.indexOf("^"));
  assert.ok(code.length < 200);
});

test("problems are counted", () => {
  assert.equal(countProblems([]), "no problems");
  assert.equal(countProblems([problem]), "1 error");
  assert.equal(countProblems([problem, problem, { ...problem, severity: "warning" }]), "2 errors, 1 warning");
});

// The report.
const result: Result = {
  ...toFailure("notes", "X", "Because."),
  run: "0123456789",
  outcome: "completed",
  success: true,
  code: null,
  exitCode: 0,
  iterations: 3,
  durationMs: 1500,
};

test("a report tells everything there is to tell", () => {
  const full: Result = {
    ...result,
    verdict: "good",
    path: [
      { step: "initial.note", visit: 1, label: "next", to: "continuation.note" },
      { step: "continuation.note", visit: 1, label: "repeat", to: "continuation.note" },
      { step: "continuation.note", visit: 2, label: "handoff", to: "closure.note" },
      { step: "closure.note", visit: 1, label: "closing", to: "closure.note", overturned: true },
      { step: "closure.note", visit: 2, label: "closing", to: null },
    ],
    checks: [
      { name: "tests", ok: false, pattern: "red", attempt: 1, summary: "" },
      { name: "tests", ok: true, pattern: "red", attempt: 2, summary: "" },
    ],
    handoff: { "initial.note": { angle: "x", points: [] }, empty: {} },
    usage: { turns: 5, inputTokens: 10, outputTokens: 2 },
    costUsd: 0.5,
    warnings: ["odd \u001b[2J"],
  };
  assert.equal(
    renderReport(full, "lockstep resume 0123456789", plain),
    [
      "✓ completed  notes · run 0123456789 · 3 iterations · 1.5 s",
      "  Because.",
      "  path      initial.note → continuation.note ×2 → closure.note ✗ → closure.note → end",
      "  checks    tests: ✗ red, ✓",
      "  handoff   initial.note: angle, points",
      "  verdict   good",
      "  usage     5 turns · 10 tokens in, 2 out · $0.5000",
      "  warnings  odd \\x1b[2J",
    ].join("\n"),
  );
});

test("of a poisoned run only the command that workers obey is named, and its id is harmless", () => {
  const poisoned: Shown = {
    ...result,
    run: "0\u001b[2J",
    outcome: "poisoned",
    code: "POISONED",
    success: false,
    resumable: true,
    exitCode: 3,
    reason: "B: it fails. To try again: lockstep fleet retry '0\u001b[2J'",
  };
  const shown = renderReport(poisoned, "lockstep resume 0 --state s", plain);
  assert.match(shown, /^✗ poisoned {2}notes · run 0\\x1b\[2J · /);
  assert.match(shown, /^ {2}B: it fails\.$/m);
  assert.match(shown, /^ {2}next {6}lockstep fleet retry 0 --state s$/m);
  assert.ok(!shown.includes("resume"));
});

test("a cost of which only a part is known is told as such", () => {
  const report = renderReport({ ...result, knownCostUsd: 0.25 }, "", plain);
  assert.match(report, /usage +0 turns · at least \$0\.2500, some costs are unknown$/m);
});

test("what a run made is shown, and of much of it the beginning", () => {
  const text = Array.from({ length: 30 }, (_, at) => `line ${at}\u001b[2J`).join("\n");
  const cases = [
    [{ note: "short" }, "  result    short"],
    ["in words", "  result    in words"],
    [
      { note: "a\nb", points: [1, 2] },
      "  result    note:\n              a\n              b\n            points: [1,2]",
    ],
    [{ text }, "            line 18\\x1b[2J\n            … 11 more lines: lockstep show 0123456789 --result"],
    [null, "  Because.\n  usage"],
  ] as const;
  for (const [made, shown] of cases) {
    const report = renderReport({ ...result, result: made }, "", plain);
    assert.ok(report.includes(shown), report);
    assert.equal(report.includes("\n  result"), made !== null);
  }
});

const warning = (message: string): Problem => ({ ...problem, severity: "warning", message });

test("what check found is one line of the report, and the cause comes first", () => {
  const problems = [warning("w1"), warning("w2"), problem];
  const report = renderReport(failed("X", { problems, warnings: ["w1", "w2", "real"] }), "", plain);
  assert.deepEqual(report.split("\n").slice(0, 2), [
    "✗ failed X  notes · run 0123456789 · 3 iterations · 1.5 s",
    "  Because.",
  ]);
  assert.match(report, /warnings {2}real\n {12}2 warnings from check, shown by: lockstep check notes$/);
  assert.doesNotMatch(renderReport(failed("X", { warnings: ["w1"] }), "", plain), /from check/);
});

test("an answer that could not be used is named before the words that the written form fixes", () => {
  const last = { step: "a", visit: 2, label: null, to: null, notes: ["no JSON"] };
  const more = { path: [last], warnings: ["a@2: no JSON", "other"], reason: "[StepFlow] No intent" };
  const report = renderReport(failed("FAILED_STEP_ROUTING", more), "", plain);
  assert.match(report, /\n {2}Step "a" gave no usable answer: no JSON\n {2}\[StepFlow\] No intent\n/);
  assert.match(report, /warnings {2}other$/m);
  // Another end, or a label that was read: then the reason says it all.
  for (const [code, label] of [
    ["AGENT_ABORTED", null],
    ["FAILED_STEP_ROUTING", "next"],
  ] as const)
    assert.match(
      renderReport(failed(code, { ...more, path: [{ ...last, label }] }), "", plain),
      /s\n {2}\[StepFlow\] No intent\n[^]*warnings {2}a@2: no JSON\n {12}other/,
    );
});

test("a run that waits shows its questions once, and a command for each answer on one line", () => {
  const question = {
    id: "q1",
    step: "a",
    visit: 1,
    about: "permission",
    code: "PermissionRequired",
    question: `Step "a" wants to call Bash:\n  | ${"x".repeat(100)}`,
    choices: ["allow", "deny"],
    free: false,
    expiresAt: null,
    answer: "lockstep answer 0123456789 q1 allow",
  } as const;
  const reason = `${question.question}\nNo one is available to answer. Answer with: ${question.answer}`;
  const more = { outcome: "waiting", reason, questions: [question] } as const;
  const resume = `lockstep resume 0123456789 --state ${"long-".repeat(12)}folder`;
  const report = renderReport(failed("PermissionRequired", more), resume, plain);
  assert.equal(report.split("wants to call").length, 2);
  const typed = resume.replace("resume", "answer");
  assert.ok(report.endsWith(`\n  next      ${typed} q1 allow\n            ${typed} q1 deny`), report);
});

const USAGES: readonly [name: string, Partial<typeof result>, says: RegExp][] = [
  [
    "no cost",
    { usage: { turns: 2, inputTokens: 9, outputTokens: 1, unknown: ["costUsd"] } },
    /2 turns · 9 tokens in, 1 out · cost unknown$/m,
  ],
  [
    "no tokens",
    { usage: { turns: 2, inputTokens: 0, outputTokens: 0, unknown: ["tokens"] }, costUsd: 1 },
    /2 turns · tokens unknown · \$1\.0000$/m,
  ],
  [
    "some tokens",
    { usage: { turns: 2, inputTokens: 9, outputTokens: 1, unknown: ["tokens", "costUsd"] } },
    /2 turns · at least 9 tokens in, 1 out · cost unknown$/m,
  ],
  [
    "a script, which costs nothing",
    { usage: { turns: 2, inputTokens: 0, outputTokens: 0 } },
    /usage +2 turns$/m,
  ],
];
for (const [name, more, says] of USAGES) {
  test(`what is not known is not shown as nothing: ${name}`, () => {
    assert.match(renderReport({ ...result, ...more }, "", plain), says);
  });
}

const LIMITS: readonly [name: string, limit: NonNullable<typeof result.limit>, next: string][] = [
  ["turns", { of: "run", step: "", name: "turns", most: 2, used: 2 }, "--max-turns 4"],
  [
    "one that does not exist, in a record of somebody else",
    { of: "run", step: "", name: "$(id)" as "turns", most: 2, used: 2 },
    "--max '$(id)=4'",
  ],
  [
    "a large next call",
    { of: "run", step: "", name: "tokens", most: 100, used: 90, next: 200 },
    "--max-tokens 490",
  ],
  ["cost", { of: "run", step: "", name: "costUsd", most: 0.333, used: 0.33, next: 0.1 }, "--max-cost 0.67"],
  ["a small cost", { of: "run", step: "", name: "costUsd", most: 0.0001, used: 0.0001 }, "--max-cost 0.0002"],
  ["time", { of: "run", step: "", name: "wallMs", most: 45_000, used: 45_000 }, "--max-time 90s"],
  ["much time", { of: "run", step: "", name: "wallMs", most: 1_800_000, used: 1_800_000 }, "--max-time 1h"],
  ["a step", { of: "step", step: "a.b", name: "tokens", most: 50, used: 50 }, "--max a.b.tokens=100"],
  [
    "an attempt",
    { of: "attempt", step: "it's", name: "wallMs", most: 1, used: 1 },
    `--max 'it'\\''s.perAttempt.wallMs=2ms'`,
  ],
];
for (const [name, limit, next] of LIMITS) {
  test(`a limit that was reached is raised by a line that can be typed: ${name}`, () => {
    const ended = { ...result, outcome: "failed", code: "BUDGET_EXHAUSTED", limit } as const;
    const report = renderReport(ended, "lockstep resume 01", plain);
    assert.equal(report.split("\n").at(-1), `  next      lockstep resume 01 ${next}`);
  });
}

test("the middle of a long way is left out", () => {
  const path = Array.from({ length: 1000 }, (_, at) => ({
    step: `s${at}`,
    visit: 1,
    label: "next",
    to: `s${at + 1}`,
  }));
  const report = renderReport({ ...result, path }, "", plain);
  assert.match(report, /s5 → \(988 more\) → s994/);
});

const failed = (code: string, more: Partial<Shown> = {}): Shown => ({
  ...result,
  outcome: "failed",
  success: false,
  code,
  ...more,
});

const nexts: readonly (readonly [code: string, more: Partial<Shown>, next: RegExp | null])[] = [
  ["SCRIPT_EXHAUSTED", {}, /next +RESUME --script MORE$/],
  ["SCRIPT_MISMATCH", {}, /RESUME --script FILE$/],
  ["AGENT_RATE_LIMIT", { resumable: true }, /next +RESUME$/],
  ["BACKEND_UNAVAILABLE", { resumable: true }, /next +RESUME$/],
  ["BACKEND_UNAVAILABLE", { run: null }, null],
  ["JOURNAL_UNAVAILABLE", { resumable: true }, /next +RESUME$/],
  ["INTERRUPTED", { outcome: "interrupted", resumable: true }, /next +RESUME$/],
  ["WAITS", { outcome: "waiting", resumable: true }, /next +RESUME$/],
  ["RUNNING", { outcome: "running", exitCode: null, resumable: false }, null],
  ["FLOW_INVALID", { run: null }, /lockstep check notes$/],
  ["PARAMETERS_INVALID", { run: null }, /lockstep run notes --help$/],
  ["AGENT_MAX_ITERATIONS", {}, /lockstep why 0123456789/],
  ["AGENT_ABORTED", {}, null],
];

for (const [code, more, next] of nexts) {
  test(`after ${code}${more.run === null ? " without a run" : ""} the report ${next === null ? "asks for nothing" : "says what to type"}`, () => {
    const report = renderReport(failed(code, more), "RESUME", plain);
    if (next === null) assert.doesNotMatch(report, /\n {2}next/);
    else assert.match(report, next);
  });
}

const REASONS: readonly [more: Partial<Shown>, said: string, next: string | null][] = [
  [
    {
      outcome: "interrupted",
      code: "INTERRUPTED",
      resumable: true,
      reason: "Stopped before the end. Continue with: lockstep resume 01",
    },
    "Stopped before the end.",
    "npx lockstep resume 01",
  ],
  [
    {
      outcome: "failed",
      code: "JOURNAL_UNAVAILABLE",
      resumable: true,
      reason: "It is full. Completed work is kept; continue with: lockstep resume 01",
    },
    "It is full. Completed work is kept.",
    "npx lockstep resume 01",
  ],
  [
    {
      outcome: "waiting",
      code: "PAUSED",
      resumable: false,
      reason: "Paused by a person.\nContinue with: lockstep continue 01",
    },
    "Paused by a person.",
    "npx lockstep continue 01",
  ],
  [
    {
      outcome: "failed",
      code: "X",
      resumable: true,
      reason: "Push it yourself.\nThen continue with: lockstep resume 01",
    },
    "Push it yourself.\n  Then continue with: npx lockstep resume 01",
    "npx lockstep resume 01",
  ],
  [
    { outcome: "failed", code: "X", resumable: false, reason: "Continue with: lockstep resume 02" },
    "Continue with: npx lockstep resume 02",
    null,
  ],
  [
    {
      outcome: "failed",
      code: "PERMISSION_DENIED",
      resumable: false,
      reason: 'A person denied it and stopped the run: Step "a" wants to call Bash:',
    },
    'A person denied it and stopped the run: Step "a" wants to call Bash.',
    null,
  ],
];
for (const [more, said, next] of REASONS) {
  test(`the report gives each command once, as it is typed: ${more.reason}`, () => {
    const typed = (text: string) => asTyped(text, "npx lockstep");
    const bare = { ...result, result: null, path: [], checks: [], warnings: [], ...more };
    const report = renderReport(bare, "lockstep resume 01", plain, typed);
    assert.ok(report.split("\n").slice(1).join("\n").startsWith(`  ${said}\n`), report);
    assert.equal(/^ {2}next +(.*)$/m.exec(report)?.[1] ?? null, next);
  });
}

test("what is not done after a complete run is said once in a report, and in the brief one too", () => {
  const detail = "not merged: git refuses";
  const reason = `It is complete.\nThe run is complete, but an effect after it failed: ${detail}\nThen continue with: lockstep resume 01`;
  const effects = [{ at: 0, key: "merge", kind: "merge", state: "failed", target: "main", detail }] as const;
  const failed = { outcome: "failed", code: "FINALIZE_FAILED", success: false, resumable: true } as const;
  const shown = { ...result, ...failed, reason, effects, warnings: [] };
  for (const [name, text] of [
    ["report", renderReport(shown, "lockstep resume 01", plain)],
    ["brief", renderBrief(shown, "lockstep resume 01", plain)],
  ] as const)
    assert.equal(text.split(detail).length, 2, `${name}:\n${text}`);
  assert.match(
    renderReport(shown, "lockstep resume 01", plain),
    /an effect after it failed \(see effects\)\.\n[^]*effects +merge ✗ not merged: git refuses\n[^]*next +lockstep resume 01$/,
  );
});

test("on a narrow terminal values stay under values, and commands whole", () => {
  const path = ["one", "two", "three", "four"].map((step) => ({ step, visit: 1, label: "next", to: "end" }));
  const warning = { ...problem, severity: "warning" } as const;
  const shown = {
    ...result,
    result: "a note of words that are long",
    path,
    problems: [warning],
    warnings: [],
  };
  const report = renderReport(
    { ...shown, reason: "It ended as it was meant to, at last" },
    "",
    plain,
    (text) => text,
    32,
  );
  for (const part of [
    "  It ended as it was meant to,\n    at last\n",
    "  result    a note of words that\n            are long\n",
    "  path      one → two → three →\n            four → end\n",
    "  warnings  1 warning from\n            check, shown by:\n            lockstep check notes",
  ])
    assert.ok(report.includes(part), `${part}\n${report}`);
});

test("a check with the name of its pattern is named once", () => {
  const tried = { ...check, name: "tests", pattern: "tests" };
  const report = renderReport(
    {
      ...result,
      checks: [
        { ...tried, attempt: 1 },
        { ...tried, ok: true, attempt: 2 },
      ],
    },
    "",
    plain,
  );
  assert.match(report, /^ {2}checks +tests: ✗, ✓$/m);
  const led = { step: "a", visit: 1, label: "closing", to: "b", overturned: true } as const;
  assert.equal(ledLine(led, tried, plain), "  a #1 → closing ✗ tests → b");
});

for (const [id, command] of [
  ["q0e2p40q", "lockstep answer r1 q0e2p40q yes"],
  ["$(id)", "lockstep answer r1 '$(id)' yes"],
  ["q1\n  next rm\u001b", String.raw`lockstep answer r1 'q1 next rm\x1b' yes`],
] as const) {
  test(`the command that answers a question quotes its id: ${JSON.stringify(id)}`, () => {
    assert.deepEqual(answerCommands("lockstep answer r1", { id, choices: ["yes"] }), [command]);
  });
}
