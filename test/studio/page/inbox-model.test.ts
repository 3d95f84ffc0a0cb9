/** The inbox: the order of questions, what became of them, and how a call is shown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  becameBy,
  callSeen,
  choicesShown,
  nextCards,
  type Card,
} from "../../../src/studio/page/screens/inbox-model.ts";
import type { AnsweredQuestion, QuestionSeen } from "../../../src/studio/wire.ts";

function asked(id: string, more: Partial<QuestionSeen> = {}): QuestionSeen {
  return {
    id,
    run: "r1",
    agent: "a",
    runAbout: "",
    step: "s",
    visit: 1,
    about: "permission",
    code: "PermissionRequired",
    question: "Bash?",
    choices: ["allow", "deny"],
    free: false,
    expiresAt: null,
    answer: "",
    askedAt: 0,
    isDriven: false,
    isPaused: false,
    isNameless: false,
    call: null,
    ...more,
  };
}

const given = (id: string | null, more: Partial<AnsweredQuestion> = {}): AnsweredQuestion => ({
  run: "r1",
  agent: "a",
  id,
  step: "s",
  visit: 1,
  question: "Bash?",
  answer: "deny",
  by: "terminal",
  at: 0,
  ...more,
});

const ids = (cards: readonly Card[]) => cards.map(({ question }) => question.id).join(" ");
const at = (ms: number) => new Date(ms).toISOString();

test("the nearest deadline comes first, then the oldest question", () => {
  const open = [
    asked("late", { askedAt: 1, expiresAt: at(900) }),
    asked("never-new", { askedAt: 9 }),
    asked("soon", { askedAt: 8, expiresAt: at(100) }),
    asked("never-old", { askedAt: 2 }),
  ];
  assert.equal(ids(nextCards([], { open, answered: [] }, 0)), "soon late never-old never-new");
});

test("a question that is shown does not move when another comes", () => {
  const shown = nextCards([], { open: [asked("a", { expiresAt: at(500) })], answered: [] }, 0);
  const open = [asked("b", { expiresAt: at(1) }), asked("a", { expiresAt: at(500) })];
  assert.equal(ids(nextCards(shown, { open, answered: [] }, 0)), "a b");
});

for (const [name, question, answered, now, expected] of [
  ["answered elsewhere", asked("q"), [given("q")], 0, { kind: "answered", answer: "deny", by: "terminal" }],
  [
    "answered without a name",
    asked("-"),
    [given(null)],
    0,
    { kind: "answered", answer: "deny", by: "terminal" },
  ],
  ["another visit was answered", asked("q"), [given("q", { visit: 2 })], 0, { kind: "over" }],
  ["another step was answered", asked("q"), [given("q", { step: "t" })], 0, { kind: "over" }],
  ["another run was answered", asked("q"), [given("q", { run: "r2" })], 0, { kind: "over" }],
  ["another question was answered", asked("q"), [given("other")], 0, { kind: "over" }],
  ["the time is over", asked("q", { expiresAt: at(50) }), [], 50, { kind: "expired" }],
  ["there is time left", asked("q", { expiresAt: at(50) }), [], 49, { kind: "over" }],
] as const)
  test(`a question that is gone says why: ${name}`, () => {
    const [card] = nextCards([{ question, became: null }], { open: [], answered }, now);
    assert.deepEqual(card?.became, expected);
  });

test("what was answered here stays answered while the server still lists it", () => {
  const became = { kind: "sent", answer: "allow", goesOn: "driven" } as const;
  const cards = nextCards([{ question: asked("q"), became }], { open: [asked("q")], answered: [] }, 0);
  assert.deepEqual(
    cards.map((card) => card.became),
    [became],
  );
});

for (const [code, kind] of [
  ["QUESTION_ANSWERED", "answered"],
  ["QUESTION_EXPIRED", "expired"],
  ["NO_QUESTION", "over"],
  ["JOURNAL_UNAVAILABLE", undefined],
] as const)
  test(`the refusal ${code} leaves the card ${kind ?? "open"}`, () =>
    assert.equal(becameBy(code)?.kind, kind));

for (const [name, about, choices, expected] of [
  [
    "a call",
    "permission",
    ["allow", "allow-run", "deny", "stop"],
    ["a:Allow once", "r!:Allow for this run", "d:Deny", "s!:Stop the run"],
  ],
  ["a grant", "grant", ["allow", "deny", "stop"], ["a:Allow once", "d:Deny", "s!:Stop the run"]],
  ["words of a flow", "user", ["allow", "deny"], ["1:null", "2:null"]],
  ["choices that are not ours", "permission", ["allow", "dance"], ["1:null", "2:null"]],
  [
    "many",
    "gate",
    "abcdefghij".split(""),
    ["1", "2", "3", "4", "5", "6", "7", "8", "9", ""].map((key) => `${key}:null`),
  ],
] as const)
  test(`choices of ${name}`, () => {
    const shown = choicesShown({ about, choices });
    assert.deepEqual(
      shown.map(({ key, words, confirm }) => `${key}${confirm === null ? "" : "!"}:${words}`),
      expected,
    );
  });

for (const [name, call, expected] of [
  [
    "a command and what else is given",
    { name: "Bash", input: { command: "rm -r x", timeout: 5 } },
    { command: "rm -r x", edits: [], rest: [["timeout", "5"]] },
  ],
  [
    "a command of another tool is a member like others",
    { name: "mcp", input: { command: "rm" } },
    { command: null, edits: [], rest: [["command", "rm"]] },
  ],
  [
    "a command that is not a text",
    { name: "Bash", input: { command: ["rm"] } },
    { command: null, edits: [], rest: [["command", '[\n  "rm"\n]']] },
  ],
  [
    "an edit",
    { name: "Edit", input: { file_path: "a.ts", old_string: "x", new_string: "y", replace_all: true } },
    {
      command: null,
      edits: [{ before: "x", after: "y" }],
      rest: [
        ["file_path", "a.ts"],
        ["replace_all", "true"],
      ],
    },
  ],
  [
    "several edits",
    { name: "MultiEdit", input: { file_path: "a.ts", edits: [{ old_string: "x", new_string: "y" }] } },
    { command: null, edits: [{ before: "x", after: "y" }], rest: [["file_path", "a.ts"]] },
  ],
  [
    "an edit that holds more than a pair is shown as it is",
    { name: "MultiEdit", input: { edits: [{ old_string: "x", new_string: "y", replace_all: true }] } },
    {
      command: null,
      edits: [],
      rest: [["edits", JSON.stringify([{ old_string: "x", new_string: "y", replace_all: true }], null, 2)]],
    },
  ],
  [
    "an input that is not an object",
    { name: "X", input: "text" },
    { command: null, edits: [], rest: [["input", "text"]] },
  ],
] as const)
  test(`a call shows everything: ${name}`, () => assert.deepEqual(callSeen(call as never), expected));

test("a second question of the same visit is a card of its own, also after the first was answered here", () => {
  const first = asked("q", { askedAt: 1 });
  const sent: Card = { question: first, became: { kind: "expired" } };
  const second = asked("q", { askedAt: 2, question: "Edit?" });
  const cards = nextCards([sent], { open: [second], answered: [] }, 5);
  assert.deepEqual(
    cards.map(({ question, became }) => [question.question, became === null]),
    [
      ["Bash?", false],
      ["Edit?", true],
    ],
  );
});
