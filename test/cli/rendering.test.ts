import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMANDS } from "../../src/cli/commands.ts";
import { commandHelp, mainHelp } from "../../src/cli/help.ts";
import { countProblems, renderProblems } from "../../src/cli/text/problems.ts";
import type { Deed } from "../../src/flow/deed.ts";
import { backendText, createProgress, entryLines, ledLine, statusLine } from "../../src/cli/text/progress.ts";
import { renderBrief, renderReport } from "../../src/cli/text/report.ts";
import { createScreen, type Manners } from "../../src/cli/screen.ts";
import { createPaint } from "../../src/cli/text/text.ts";
import { asTyped } from "../../src/cli/text/typed.ts";
import type { CheckResult, Entry } from "../../src/flow/event.ts";
import type { Parameter } from "../../src/flow/flow.ts";
import type { Problem } from "../../src/flow/problem.ts";
import { answerCommands } from "../../src/flow/question.ts";
import type { DriveOptions, Result, Shown } from "../../src/run/index.ts";
import { toFailure } from "../../src/run/result.ts";

const plain = createPaint(false);

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
      reason: "Stopped before the end. Go on with: lockstep resume 01",
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
      reason: "Paused by a person.\nGo on with: lockstep continue 01",
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
    { outcome: "failed", code: "X", resumable: false, reason: "Go on with: lockstep resume 02" },
    "Go on with: npx lockstep resume 02",
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

// Progress.

const check: CheckResult = { name: "tests", ok: false, pattern: "red", summary: "2 fail", params: {} };

test("a settled visit is one line", () => {
  const led = { step: "initial.issue", visit: 1, label: "next", to: "continuation.issue" };
  assert.equal(ledLine(led, undefined, plain), "  initial.issue #1 → next → continuation.issue");
  assert.equal(ledLine({ ...led, to: null }, undefined, plain), "  initial.issue #1 → next → end");
  assert.equal(
    ledLine({ ...led, label: null }, undefined, plain),
    "  initial.issue #1 → no answer → continuation.issue",
  );
  assert.equal(
    ledLine({ ...led, overturned: true }, check, plain),
    "  initial.issue #1 → next ✗ tests (red) → continuation.issue",
  );
});

type State = Parameters<NonNullable<DriveOptions["observe"]>>[1];
const lane = { step: "a", visit: 2, say: [], command: { type: "check", step: "a", visit: 2, attempt: 1 } };
const state = {
  run: "r",
  iterations: 3,
  lanes: [lane],
  pending: [],
  last: { label: "next" },
} as unknown as State;

test("the live line tells step, visit, iteration, what is done, how long, and the last label", () => {
  assert.equal(statusLine(state, 12_000), "a #2 · checking · 12.0 s · iteration 3 · last next");
  assert.match(statusLine(state, 12_000, ["340 characters heard"]), / · last next · 340 characters heard$/);
  assert.equal(statusLine({ ...state, lanes: [], last: null }, 5), "ending · 5 ms · iteration 3");
});

test("while a failed request waits, the live line counts down to the next attempt", () => {
  const wait = { type: "wait", step: "a", visit: 2, attempt: 1, ms: 5000 };
  const at = (ms: number, more: object = { retry: { next: 3, of: 5 } }) => {
    const lanes = [{ ...lane, command: { ...wait, ...more } }];
    return statusLine({ ...state, last: null, lanes } as unknown as State, 9000, [], ms);
  };
  assert.equal(at(0), "a #2 · attempt 3 of 5 in 5.0 s · 9.0 s · iteration 3");
  assert.equal(at(3500), "a #2 · attempt 3 of 5 in 1.5 s · 9.0 s · iteration 3");
  assert.equal(at(9999), "a #2 · attempt 3 of 5 in 0 ms · 9.0 s · iteration 3");
  assert.equal(at(0, {}), "a #2 · waiting · 9.0 s · iteration 3");
});

test("the header names the backend with its models", () => {
  const cases = [
    [{ id: "scripted", options: { replies: [] } }, "scripted"],
    [{ id: "acp", options: null }, "acp"],
    [{ id: "claude-agent", options: {}, models: ["opus\u001b[2J"] }, "claude-agent opus\\x1b[2J"],
    [{ id: "ai-sdk", options: { models: { a: "mine" } }, models: ["x/1", "y/2"] }, "ai-sdk x/1, y/2"],
  ] as const;
  for (const [spec, text] of cases) assert.equal(backendText(spec), text);
});

const entry = (event: unknown, led?: Entry["led"]): Entry =>
  ({ seq: 1, at: 1, event, ...(led === undefined ? {} : { led }) }) as Entry;
const said = {
  kind: "said",
  text: "\u001b[2Jhello",
  calls: [{ id: "1", name: "Bash", input: { command: "ls" } }],
};

const at = { step: "a", visit: 2 };
const lines: readonly (readonly [
  name: string,
  entry: Entry,
  state: State,
  verbose: boolean,
  expected: readonly string[],
  deeds?: readonly Deed[],
])[] = [
  ["a plain answer says nothing", entry({ type: "step.answered", step: "a", reply: said }), state, false, []],
  [
    "an answer in full",
    entry({ type: "step.answered", step: "a", reply: said }),
    state,
    true,
    ["    a said: \\x1b[2Jhello", '    a calls Bash {"command":"ls"}'],
  ],
  [
    "trouble that is waited out",
    entry({
      type: "step.answered",
      step: "a",
      reply: { kind: "fault", fault: { kind: "network", message: "It is gone." } },
    }),
    state,
    false,
    ["    a: It is gone; trying again in 5.0 s (attempt 2 of 5)"],
    [{ kind: "waits", ...at, ms: 5000, next: 2, of: 5 }],
  ],
  [
    "an answer sent back",
    entry({ type: "step.answered", step: "a", reply: { ...said, calls: [] } }),
    state,
    false,
    ["    a: sent back, no x"],
    [{ kind: "sent-back", ...at, why: "misfit", errors: ["no x"], calls: 0 }],
  ],
  [
    "a denied tool",
    entry({
      type: "step.called",
      step: "a",
      visit: 2,
      results: [{ id: "1", name: "Bash", ok: false, content: "", denied: "not here" }],
    }),
    state,
    false,
    ["    Bash was denied: not here"],
  ],
  [
    "a tool that nobody was there to approve",
    entry({
      type: "step.called",
      step: "a",
      visit: 2,
      results: [
        {
          id: "1",
          name: "Write",
          ok: false,
          content: "",
          denied:
            'Write is denied in step "a" by permissionMode: default needs a person to approve it, and nobody is there to ask.',
        },
      ],
    }),
    state,
    false,
    ["    Write was denied in step a: nobody was there to ask."],
  ],
  [
    "an overturned visit with notes",
    entry(
      { type: "step.checked", step: "a", results: [check] },
      { step: "a", visit: 2, label: "closing", to: "b", overturned: true, notes: ["n"] },
    ),
    state,
    false,
    ["  a #2 → closing ✗ tests (red) → b", "    n"],
  ],
  [
    "a tool that a person denied",
    entry({
      type: "step.called",
      step: "a",
      visit: 2,
      results: [
        {
          id: "1",
          name: "Bash",
          ok: false,
          content: "",
          denied: 'The user denied Bash in step "a".',
          grant: { by: "person", decision: "deny", argsDigest: "" },
        },
      ],
    }),
    state,
    false,
    ["    You denied Bash in step a."],
  ],
  [
    "tools in a line",
    entry({
      type: "step.called",
      step: "a",
      visit: 2,
      results: [
        { id: "1", name: "Bash", ok: false, content: "exit 1\n\u001b[2J" },
        { id: "2", name: "Glob", ok: true, content: "" },
        { id: "3", name: "Glob", ok: true, content: "" },
      ],
    }),
    state,
    false,
    ["    Bash ls\\x1b[2J (failed), Glob ×2"],
  ],
  [
    "tools in full",
    entry({
      type: "step.called",
      step: "a",
      visit: 2,
      results: [
        { id: "1", name: "Bash", ok: false, content: "exit 1\n\u001b[2J" },
        { id: "2", name: "Glob", ok: true, content: "" },
      ],
    }),
    state,
    true,
    ["    a: Bash ls\\x1b[2J failed: exit 1 \\x1b[2J", "    a: Glob done"],
  ],
  [
    "calls without words",
    entry({ type: "step.answered", step: "a", reply: { ...said, text: "" } }),
    state,
    true,
    ['    a calls Bash {"command":"ls"}'],
  ],
  [
    "tools of an agent with a loop of its own",
    entry({
      type: "step.answered",
      step: "a",
      reply: { ...said, judged: [{ name: "Read" }, { name: "Bash", denied: "no" }, { name: "Read" }] },
    }),
    state,
    false,
    ["    Bash was denied: no", "    Read ×2"],
  ],
  [
    "stopped from outside",
    entry({ type: "run.stopped" }),
    state,
    false,
    ["    stopped from another process"],
  ],
  ["stopped by a signal", entry({ type: "run.stopped", by: "signal" }), state, false, []],
  ["a resumed run", entry({ type: "run.resumed", epoch: 2 }), state, false, ["resumed run r at a"]],
  ["the end says nothing", entry({ type: "run.ended" }), state, true, []],
];

const calling = (step: string, visit: number, ...calls: readonly object[]) => ({
  step,
  visit,
  say: [],
  command: { type: "call", step, visit, attempt: 1, calls },
});
const before = {
  ...state,
  fork: null,
  lanes: [
    calling(
      "a",
      2,
      { id: "1", name: "Bash", input: { command: "ls\u001b[2J" } },
      { id: "2", name: "Glob", input: {} },
    ),
  ],
} as unknown as State;

/** What a decision about an entry did with the calls of its visit. */
const callsIn = ({ event }: Entry, { lanes }: State): readonly Deed[] => {
  if (event.type !== "step.called") return [];
  const { step, visit, results } = event;
  const command = lanes.find((one) => one.step === step && one.visit === visit)?.command;
  return [{ kind: "called", step, visit, results, calls: command?.type === "call" ? command.calls : [] }];
};

for (const [name, one, after, verbose, expected, deeds = callsIn(one, before)] of lines) {
  test(`progress: ${name}`, () =>
    assert.deepEqual(entryLines({ entry: one, before, after, deeds }, plain, verbose), expected));
}

test("tools of siblings name their step and what they are about, in whichever order they end and after a resume", () => {
  const stderr = stream(false);
  const screen = createScreen({ stdin: {}, stdout: stream(false), stderr, env: {} }, manners);
  const progress = createProgress(screen, false, () => 0);
  const called = (step: string, visit: number) =>
    entry({ type: "step.called", step, visit, results: [{ id: "1", name: "Edit", ok: true, content: "" }] });
  const edit = (file: string) => ({ id: "1", name: "Edit", input: { file_path: file } });
  const both = {
    ...state,
    fork: {},
    lanes: [calling("b", 1, edit("old")), calling("a", 1, edit("a.ts")), calling("b", 2, edit("b.ts"))],
  } as unknown as State;
  const flow = { agent: "x", steps: {} } as never;
  const [one, two, none] = [
    { ...both, lanes: both.lanes.slice(0, 2) },
    { ...both, fork: null, lanes: [] },
    { ...both, fork: null, lanes: [] },
  ];
  progress.observe(entry({ type: "run.resumed", epoch: 2 }), both, flow, []);
  progress.observe(called("b", 2), one, flow, callsIn(called("b", 2), both));
  progress.observe(called("a", 1), two, flow, callsIn(called("a", 1), one));
  progress.observe(called("a", 1), none, flow, callsIn(called("a", 1), two));
  progress.stop();
  assert.deepEqual(stderr.written.slice(1), ["    b: Edit b.ts\n", "    a: Edit a.ts\n", "    Edit\n"]);
});

// The screen.

const manners: Manners = { quiet: false, color: null };
const stream = (isTTY: boolean) => {
  const written: string[] = [];
  return { isTTY, columns: 40, write: (text: string) => written.push(text), written };
};

const colours: readonly (readonly [
  isTTY: boolean,
  env: { readonly [name: string]: string },
  color: boolean | null,
  on: boolean,
])[] = [
  [true, {}, null, true],
  [false, {}, null, false],
  [true, { NO_COLOR: "1" }, null, false],
  [true, { NO_COLOR: "" }, null, true],
  [true, { CI: "true" }, null, false],
  [true, { TERM: "dumb" }, null, false],
  [false, { FORCE_COLOR: "1" }, null, true],
  [false, { FORCE_COLOR: "1", CI: "1" }, null, true],
  [true, { FORCE_COLOR: "0" }, null, false],
  [true, {}, false, false],
  [false, { NO_COLOR: "1" }, true, true],
];

for (const [isTTY, env, color, on] of colours) {
  test(`colours are ${on ? "on" : "off"}: terminal ${isTTY}, ${JSON.stringify(env)}, flag ${color}`, () => {
    const screen = createScreen(
      { stdin: { isTTY }, stdout: stream(isTTY), stderr: stream(isTTY), env },
      { ...manners, color },
    );
    assert.equal(screen.out("red", "x") !== "x", on);
    assert.equal(screen.err("red", "x") !== "x", on);
  });
}

for (const [text, written] of [
  ["a\u001b]0;PWN\u0007b", "a\\x1b]0;PWN\\x07b"],
  ["a\u001b[2J\u001b[8mb\r\u202e\u009b2J", "a\\x1b[2J\\x1b[8mb\\r\\u202e\\x9b2J"],
  ["control: a\n\tb é ✓", "control: a\n\tb é ✓"],
  [`control: ${createPaint(true)("red", "a")}`, "control: \u001b[31ma\u001b[39m"],
] as const) {
  test(`whatever a line is made of, the terminal obeys only our colours: ${JSON.stringify(text)}`, async () => {
    const [stdout, stderr] = [stream(true), stream(true)];
    const screen = createScreen(
      { stdin: { isTTY: true }, stdout, stderr, env: { LANG: "C.UTF-8" } },
      manners,
    );
    screen.print(text);
    screen.tell(text);
    screen.complain(text);
    await screen.ask(text, () => Promise.resolve("y"));
    assert.deepEqual(stdout.written, [`${written}\n`]);
    assert.deepEqual(stderr.written, [`${written}\n`, `${written}\n`, `${written}\n> `]);
  });
}

test("the live line is taken away before anything else is written, and put back", () => {
  const stderr = stream(true);
  const screen = createScreen(
    { stdin: { isTTY: true }, stdout: stream(false), stderr, env: { NO_COLOR: "1" } },
    manners,
  );
  screen.status("x".repeat(100));
  screen.tell("hello");
  screen.status(null);
  assert.deepEqual(stderr.written, ["x".repeat(39), "\r\u001b[K", "hello\n", "x".repeat(39), "\r\u001b[K"]);
});

test("while a person types, their line is theirs: no live line, and what is told comes afterwards", async () => {
  const stderr = stream(true);
  const screen = createScreen(
    { stdin: { isTTY: true }, stdout: stream(true), stderr, env: { NO_COLOR: "1" } },
    manners,
  );
  screen.status("live");
  const answer = await screen.ask("Really?", () => {
    screen.status("live again");
    screen.tell("told meanwhile");
    screen.complain("at once");
    return Promise.resolve("y");
  });
  assert.equal(answer, "y");
  screen.status("and again");
  assert.deepEqual(stderr.written, [
    "live",
    "\r\u001b[K",
    "Really?\n> ",
    "\nat once\n> ",
    "told meanwhile\n",
    "and again",
  ]);
  await assert.rejects(screen.ask("Once more?", () => Promise.reject(new Error("gone"))));
  assert.deepEqual(stderr.written.slice(6), ["\r\u001b[K", "Once more?\n> ", "\n"]);
});

for (const [isAnswering, shows] of [
  [true, false],
  [false, true],
] as const) {
  test(`a question is ${shows ? "told" : "not told as well"} where somebody ${isAnswering ? "is" : "cannot be"} asked, and time begins with the run`, () => {
    const stderr = stream(true);
    const screen = createScreen(
      { stdin: { isTTY: isAnswering }, stdout: stream(false), stderr, env: { NO_COLOR: "1" } },
      manners,
    );
    let now = 0;
    const progress = createProgress(screen, false, () => now);
    now = 60_000;
    const question = { id: "q1", text: "May I?" };
    const flow = { agent: "x", steps: {} } as never;
    progress.observe(entry({ type: "step.asked", step: "a", question }), state, flow, []);
    progress.stop();
    assert.equal(stderr.written.join("").includes("May I?"), shows);
    assert.match(stderr.written.join(""), /a #2 · checking · 0 ms/);
  });
}

const SIGNS = "✓ a → b … ✗ c · ×2 ■ │ ╭─╮";
const PLAIN_SIGNS = "+ a > b ... x c - x2 # | +-+";
for (const [env, isAscii] of [
  [{}, false],
  [{ LANG: "C" }, true],
  [{ LANG: "POSIX" }, true],
  [{ LANG: "de_DE.ISO-8859-1" }, true],
  [{ LANG: "C.UTF-8" }, false],
  [{ LANG: "en_US.utf8" }, false],
  [{ LANG: "C", LC_CTYPE: "en_US.UTF-8" }, false],
  [{ LANG: "en_US.UTF-8", LC_ALL: "C" }, true],
  [{ LANG: "en_US.UTF-8", LC_ALL: "" }, false],
  [{ LANG: "en_US.UTF-8", TERM: "dumb" }, true],
] as const) {
  test(`signs are ${isAscii ? "ASCII" : "Unicode"} with ${JSON.stringify(env)}, and programs get what they always get`, () => {
    const [stdout, stderr] = [stream(false), stream(false)];
    const screen = createScreen({ stdin: {}, stdout, stderr, env }, manners);
    screen.print(SIGNS);
    screen.tell(SIGNS);
    screen.complain(SIGNS);
    const shown = isAscii ? PLAIN_SIGNS : SIGNS;
    assert.deepEqual([stdout.written, stderr.written], [[`${shown}\n`], [`${shown}\n`, `${shown}\n`]]);
    screen.emit(SIGNS);
    screen.document({ SIGNS });
    assert.deepEqual(stdout.written.slice(1), [`${SIGNS}\n`, `${JSON.stringify({ SIGNS })}\n`]);
  });
}

for (const [name, isTTY, env, quiet, isAnswering] of [
  ["off a terminal", false, {}, false, false],
  ["under CI", true, { CI: "1" }, false, false],
  ["on a dumb terminal", true, { TERM: "dumb" }, false, true],
  ["on a dumb terminal under CI", true, { TERM: "dumb", CI: "1" }, true, false],
  ["under --quiet", true, {}, true, true],
] as const) {
  test(`there is no live line ${name}`, () => {
    const stderr = stream(isTTY);
    const screen = createScreen(
      { stdin: { isTTY }, stdout: stream(isTTY), stderr, env },
      { quiet, color: null },
    );
    screen.status("x");
    assert.deepEqual(stderr.written, []);
    assert.equal(screen.isLive, false);
    assert.equal(screen.isAnswering, isAnswering);
  });
}

test("--quiet leaves out what is only told, not what must be said", () => {
  const stderr = stream(false);
  const screen = createScreen(
    { stdin: {}, stdout: stream(false), stderr, env: {} },
    { quiet: true, color: null },
  );
  screen.tell("a");
  screen.complain("b");
  assert.deepEqual(stderr.written, ["b\n"]);
});

// Help.

test("every command has help with its flags and an example", () => {
  for (const command of COMMANDS) {
    const help = commandHelp(command, plain);
    assert.match(mainHelp(plain), new RegExp(`^  ${command.name} `, "m"));
    assert.match(help, new RegExp(`lockstep ${command.name}`));
    assert.match(help, /^Examples$/m);
    for (const flag of command.flags) assert.ok(help.includes(`--${flag.name}`), flag.name);
    for (const example of command.examples) assert.ok(help.includes(example));
  }
});

const parameter = (more: Partial<Parameter>): Parameter => ({
  name: "x",
  type: "string",
  description: "An x",
  flag: "--x",
  required: false,
  ...more,
});

for (const [one, expected] of [
  [parameter({ required: true }), "--x STRING  An x (string, required)"],
  [
    parameter({ type: "number", default: 3, validation: { min: 1, max: 9 } }),
    "--x NUMBER  An x (number, default 3, min 1, max 9)",
  ],
  [parameter({ type: "boolean" }), "--x, --no-x  An x (boolean, optional)"],
  [parameter({ type: "array" }), "--x VALUE …  An x (array, optional, may be repeated)"],
  [parameter({ validation: { enum: ["a", "b"] } }), '--x STRING  An x (string, optional, one of "a", "b")'],
  [parameter({ description: "\u001b[2J" }), "--x STRING  \\x1b[2J (string, optional)"],
] as const) {
  test(`help lists ${expected}`, () => {
    const help = commandHelp(COMMANDS[0]!, plain, [one]);
    assert.ok(help.includes(`\n  ${expected}\n`), help);
  });
}

test("help shows a built-in flag under its other name where a parameter took its own", () => {
  const help = commandHelp(COMMANDS[0]!, plain, [
    parameter({ flag: "--script" }),
    parameter({ flag: "--json" }),
  ]);
  assert.match(help, /--ls-script FILE/);
  assert.match(help, /--ls-json/);
  assert.doesNotMatch(help, / --script FILE {2}/);
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
