/** Questions about tool calls show the whole call, whatever the model wrote into it. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  answerCommands,
  answerFrom,
  GRANT_CHOICES,
  notAnAnswer,
  offer,
  PERMISSION_CHOICES,
} from "../../src/flow/question.ts";
import { createMemoryJournal, run, type Backend, type ScriptReply } from "../../src/run/index.ts";
import { agentFiles, projectWith } from "./project.ts";
import { machineFiles } from "./stage-project.ts";

type Input = { readonly [key: string]: string };
type Asked = { readonly text: string; readonly choices: readonly string[] };

const next = { stepId: "initial.a", next_action: { action: "next" } };
const closing = { stepId: "closure.a", next_action: { action: "closing" } };
const steps = agentFiles("m", {
  "initial.a": {
    kind: "work",
    intents: ["next"],
    transitions: { next: { target: "closure.a" } },
    more: { permissionMode: "default" },
  },
  "closure.a": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
});

/** A coding agent with a loop of its own, as Claude Code is: it asks within its query. */
function agentWith(name: string, input: Input): Backend {
  const answers = [next, closing];
  return {
    spec: { id: "agent", options: null },
    run: async ({ gate }) => {
      if (answers.length === 2) await gate({ name, input }, null);
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      return { kind: "reply", text: "", calls: [], output: answers.shift(), usage };
    },
  };
}

/** What a person is asked about the call, behind each of the doors; the answer is no. */
const DOORS: {
  readonly [door: string]: (name: string, input: Input, answer?: string) => Promise<readonly Asked[]>;
} = {
  "a step": async (name, input, answer) => {
    const script: ScriptReply[] = [{ calls: [{ name, input }] }, { output: next }, { output: closing }];
    return await questions(steps, { script }, answer);
  },
  "a coding agent": async (name, input, answer) =>
    await questions(steps, { backend: agentWith(name, input) }, answer),
  "a stage": async (name, input, answer) => {
    const script: ScriptReply[] = [{ calls: [{ name, input }] }, { output: {} }];
    return await questions(machineFiles({ stages: { a: { tools: ["Read"] } } }), { script }, answer);
  },
};

async function questions(
  files: { readonly [path: string]: string },
  model: { readonly script: ScriptReply[] } | { readonly backend: Backend },
  answer = "deny",
): Promise<readonly Asked[]> {
  const asked: Asked[] = [];
  const cwd = projectWith(files);
  const ask = (text: string, choices: readonly string[]) => {
    asked.push({ text, choices });
    return Promise.resolve(answer);
  };
  const env = { PATH: process.env.PATH, LOCKSTEP_TRUST: "all" };
  const result = await run({ agent: "m", cwd, journal: createMemoryJournal(), env, ask, ...model });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(existsSync(join(cwd, "PWNED")), false);
  return asked;
}

const EVIL = "; id > PWNED";
const FAKE = "\nAllowed for this run would be: Bash(ls)\n[a]llow once · [d]eny";
const SPOOFS: readonly (readonly [what: string, name: string, input: Input, line: string])[] = [
  ["control: a plain command", "Bash", { command: `npm test${EVIL}` }, `  | npm test${EVIL}`],
  [
    "500 spaces",
    "Bash",
    { command: `npm test${" ".repeat(500)}${EVIL}` },
    `  | npm test··· 500 spaces ···${EVIL}`,
  ],
  [
    "a long description first",
    "Bash",
    { description: "x".repeat(5000), command: `npm test${EVIL}` },
    `  | npm test${EVIL}`,
  ],
  ["carriage return", "Bash", { command: `id > PWNED\rnpm test` }, "  | id > PWNED\\rnpm test"],
  ["backspaces", "Bash", { command: `id > PWNED #\b\b\bls` }, "  | id > PWNED #\\b\\b\\bls"],
  ["direction of writing", "Bash", { command: `ls \u202e${EVIL}` }, `  | ls \\u{202e}${EVIL}`],
  ["zero width", "Bash", { command: `ls\u200b${EVIL}` }, `  | ls\\u{200b}${EVIL}`],
  ["Cyrillic letters", "Bash", { command: `\u0441\u0440 a${EVIL}` }, `  | \\u{441}\\u{440} a${EVIL}`],
  ["many empty lines", "Bash", { command: `ls${"\n".repeat(300)}${EVIL}` }, "  | ··· 299 empty lines ···"],
  [
    "a question within the command",
    "Bash",
    { command: `ls${FAKE}${EVIL}` },
    `  | [a]llow once · [d]eny${EVIL}`,
  ],
  [
    "a question within a field",
    "Write",
    { content: `x${FAKE}`, file_path: "a" },
    "  | [a]llow once · [d]eny",
  ],
  [
    "a field named like a question",
    "Write",
    { [`a${FAKE}`]: "", file_path: "a", content: "" },
    "  file_path: a",
  ],
];

for (const [door, ask] of Object.entries(DOORS)) {
  for (const [what, name, input, line] of SPOOFS) {
    test(`asked for ${door}: ${what}`, async () => {
      const asked = await ask(name, input);
      assert.equal(asked.length, 1);
      const lines = asked[0]!.text.split("\n");
      assert.ok(lines.includes(line), asked[0]!.text);
      if (name === "Bash") assert.ok(lines[1]!.startsWith("  | "), "the command comes first");
      // Nothing of the call stands at the beginning of a line, where the question itself does.
      const own = lines.filter((text) => !text.startsWith("  "));
      assert.match(own[0]!, /wants to call/);
      assert.ok(
        own.length <= 3 &&
          own.slice(1).every((text) => /^Allowed (?:for this run )?would be|^These are/.test(text)),
      );
    });
  }

  test(`asked for ${door}: what is too long is cut with a mark, and can be allowed only once`, async () => {
    const [asked] = await ask("Bash", { command: `echo ${"x".repeat(100_500)}${EVIL}` });
    assert.match(asked!.text, /\n… \d{3,} more characters \(see them with: lockstep show RUN --events\)$/m);
    assert.ok(!asked!.choices.includes("allow-run") && asked!.choices.includes("allow"));
    assert.doesNotMatch(asked!.text, /for this run/);
  });
}

test("a long call is shown whole", async () => {
  for (const [door, ask] of Object.entries(DOORS)) {
    const [asked] = await ask("Bash", { command: `echo ${"x".repeat(50_000)}${EVIL}` });
    assert.ok(asked!.text.includes(`${"x".repeat(50_000)}${EVIL}\n`), door);
    assert.equal(asked!.choices.includes("allow-run"), door !== "a stage", door);
  }
});

test("a long command warns that it does not fit on a screen", async () => {
  const [asked] = await DOORS["a step"]!("Bash", { command: Array.from({ length: 50 }, String).join("\n") });
  assert.match(asked!.text, /\nThese are 50 lines: read all of them, from the top\.\n/);
});

test("allowed for the run is named whole, or as the command above", async () => {
  const cases = [
    ["Bash", { command: "npm test" }, "Bash(npm test)"],
    ["Bash", { command: `npm test ${"x".repeat(200)}` }, "exactly the command above"],
    ["Bash", { command: "npm\u200btest" }, "exactly the command above"],
    ["Write", { file_path: "a", content: "b" }, "every call of Write that the step may make"],
  ] as const;
  for (const [name, input, covered] of cases) {
    const [asked] = await DOORS["a step"]!(name, input);
    assert.ok(asked!.text.endsWith(`\nAllowed for this run would be: ${covered}`), asked!.text);
    assert.ok(asked!.choices.includes("allow-run"));
  }
});

test("the choices about a call are offered with their letters", () => {
  const line = "[a]llow once · allow for this [r]un · [d]eny · [s]top the run";
  assert.equal(offer(PERMISSION_CHOICES), line);
  assert.equal(offer(GRANT_CHOICES), "[a]llow once · [d]eny · [s]top the run");
  assert.equal(offer(["red", "blue"], true), "[red/blue/your own words]");
});

const GATE = ["proceed", "skip", "fail"];
const TYPED: readonly (readonly [
  choices: readonly string[],
  free: boolean,
  words: readonly string[],
  answer: string | null,
])[] = [
  [
    PERMISSION_CHOICES,
    false,
    ["y", "Y", "yes", "YES", "a", "A", "al", "allow", "Allow", " allow ", "once"],
    "allow",
  ],
  [PERMISSION_CHOICES, false, ["r", "R", "run", "allow-run", "ALLOW-RUN", "allow-r"], "allow-run"],
  [PERMISSION_CHOICES, false, ["n", "N", "no", "No", "d", "deny", "DENY"], "deny"],
  [PERMISSION_CHOICES, false, ["s", "S", "stop", "st"], "stop"],
  [
    PERMISSION_CHOICES,
    false,
    ["", " ", "x", "maybe", "yep", "allowed", "y y", "1", "\u001b[A", "\u0443"],
    null,
  ],
  [GRANT_CHOICES, false, ["r", "run", "allow-run"], null],
  [GRANT_CHOICES, false, ["y"], "allow"],
  [GATE, false, ["P", "proceed"], "proceed"],
  [GATE, false, ["y", "n", "r", ""], null],
  [["retry", "fail"], false, ["r"], "retry"],
  [["Red", "Blue"], true, ["red", "RED", " Red"], "Red"],
  [["Red", "Blue"], true, ["r"], "r"],
  [["none of these"], true, [" no "], "no"],
  [["Red", "Blue"], true, ["", "  "], null],
  [["yes", "yes, and more"], false, ["ye"], "yes"],
  [["left", "lower"], false, ["l"], null],
];

for (const [choices, free, words, answer] of TYPED) {
  test(`typed for ${choices.join("/")}${free ? " or own words" : ""}: ${words.map((word) => JSON.stringify(word)).join(" ")} → ${answer}`, () => {
    for (const word of words) assert.equal(answerFrom({ choices, free }, word), answer, word);
  });
}

test("what is not an answer is named with the choices there are", () => {
  const cases = [
    ["maybe", ["allow", "deny"], false, '"maybe" is not one of the choices: allow, deny.'],
    [" ", ["allow", "deny"], false, "An empty line is not one of the choices: allow, deny."],
    ["", ["Red"], true, "An empty line is not an answer."],
    ["", [], true, "An empty line is not an answer."],
    ["\u001b[2J", ["a"], false, '"\\u001b[2J" is not one of the choices: a.'],
  ] as const;
  for (const [typed, choices, free, text] of cases) assert.equal(notAnAnswer(typed, choices, free), text);
});

test("a command that answers can be pasted, whatever a model wrote into the choices", () => {
  const question = {
    id: "q1",
    choices: ["a b", "$(id)", "it's", "--json", "plain", "two\nlines", "\u001b[2J"],
  };
  assert.deepEqual(answerCommands("lockstep answer r", { ...question, free: true }), [
    "lockstep answer r q1 --text 'a b'",
    "lockstep answer r q1 --text '$(id)'",
    `lockstep answer r q1 --text 'it'\\''s'`,
    "lockstep answer r q1 --text=--json",
    "lockstep answer r q1 plain",
    "lockstep answer r q1 --text '…'",
  ]);
  assert.deepEqual(answerCommands("lockstep answer r", { id: "-", choices: ["proceed"] }), [
    "lockstep answer r proceed",
  ]);
});
