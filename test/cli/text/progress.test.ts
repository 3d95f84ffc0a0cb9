/** The lines that a run shows while it goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Deed } from "../../../src/flow/deed.ts";
import {
  backendText,
  createProgress,
  entryLines,
  ledLine,
  statusLine,
} from "../../../src/cli/text/progress.ts";
import { createScreen } from "../../../src/cli/screen.ts";
import type { Entry } from "../../../src/flow/event.ts";
import { check, entry, lane, manners, plain, state, stream, type State } from "../rendered.ts";

const said = {
  kind: "said",
  text: "\u001b[2Jhello",
  calls: [{ id: "1", name: "Bash", input: { command: "ls" } }],
};
const at = { step: "a", visit: 2 };

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
