/** A fork of a run: what stood there, and what is sent for what was edited. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  editedWords,
  forkBefore,
  forkRequestOf,
  forkWords,
  NO_EDITS,
  type ForkBefore,
  type ForkEdits,
} from "../../../src/studio/page/screens/fork-model.ts";
import type { Why } from "../../../src/tell/why.ts";

const VISIT = { step: "a", visit: 2 };
const BEFORE: ForkBefore = {
  output: '{\n  "x": 1\n}',
  isText: false,
  handoff: "{}",
  prompt: "Do a.",
  model: "sonnet",
  isCommand: false,
};

for (const [name, edits, before, request, faults] of [
  ["nothing", {}, {}, {}, []],
  [
    "fields that were opened and left as they were",
    { output: BEFORE.output, model: "sonnet", prompt: "Do a." },
    {},
    {},
    [],
  ],
  ["an answer", { output: '{"x":2}' }, {}, { output: { x: 2 } }, []],
  ["an answer in words", { output: "hello" }, { isText: true }, { output: "hello" }, []],
  ["an answer that is not JSON", { output: "{" }, {}, {}, ["output"]],
  ["an answer that is no object", { output: "[1]" }, {}, {}, ["output"]],
  ["a handoff", { handoff: '{"a":{"k":1}}' }, {}, { handoff: { a: { k: 1 } } }, []],
  ["a handoff that is no object", { handoff: "3" }, {}, {}, ["handoff"]],
  ["a handoff of something else", { handoff: '{"a":1}' }, {}, { handoff: { a: 1 } }, ["handoff"]],
  ["a prompt", { prompt: "Do it well." }, {}, { prompts: { a: "Do it well." } }, []],
  [
    "an answer with a hidden secret",
    { output: '{"x":"[redacted:anthropic]"}' },
    {},
    { output: { x: "[redacted:anthropic]" } },
    ["output"],
  ],
  [
    "a handoff with a hidden secret",
    { handoff: '{"a":{"k":"[redacted]"}}' },
    {},
    { handoff: { a: { k: "[redacted]" } } },
    ["handoff"],
  ],
  [
    "a prompt with a hidden secret",
    { prompt: "Use [redacted]." },
    {},
    { prompts: { a: "Use [redacted]." } },
    ["prompts"],
  ],
  ["a hidden secret that was not edited", { prompt: "[redacted]" }, { prompt: "[redacted]" }, {}, []],
  ["a prompt that the files replace", { adopt: true, prompt: "[redacted]" }, {}, { adopt: true }, []],
  ["a model", { model: " haiku " }, {}, { models: { a: "haiku" } }, []],
  ["no model", { model: " " }, {}, {}, []],
  ["the files as they are now", { adopt: true, prompt: "x", model: "y" }, {}, { adopt: true }, []],
] as const)
  test(`sent: ${name}`, () => {
    const given: ForkEdits = { ...NO_EDITS, ...edits };
    const found = forkRequestOf(VISIT, { ...BEFORE, ...before }, given);
    assert.deepEqual(
      [found.request, found.faults.map(({ field }) => field)],
      [{ at: "a@2", ...request }, faults],
    );
  });

test("an edit is told in words and as a command", () => {
  const request = {
    at: "a@2",
    output: {},
    handoff: {},
    prompts: { a: "x" },
    models: { a: "m" },
    adopt: true,
  };
  assert.deepEqual(editedWords(request), ["answer", "handoff", "prompt", "model", "files as they are now"]);
  assert.deepEqual(editedWords({ at: "a@2" }), []);
  assert.equal(
    forkWords("r1", request).join(" "),
    "fork r1 --at a@2 --edit output=output.json --edit handoff=handoff.json --edit prompt=a:prompt.md --edit model=a:m --adopt",
  );
});

const answered = (text: string, payload: object | null) => ({
  event: { type: "step.answered", reply: { kind: "said", text } },
  read: { payload },
});
const visit = (kind: string, by: string, moments: readonly object[]) =>
  ({
    step: "a",
    contracts: [
      { step: "b", model: "other", answer: { kind: "text" }, by: { kind: "model" } },
      { step: "a", model: "sonnet", answer: { kind }, by: { kind: by } },
    ],
    moments,
  }) as unknown as Why;

for (const [name, why, expected] of [
  [
    "the last answer that was read",
    visit("object", "model", [
      answered("1", { x: 1 }),
      answered("2", { x: 2 }),
      { event: { type: "step.answered" } },
    ]),
    { output: '{\n  "x": 2\n}', isText: false, prompt: "Do a.", model: "sonnet", isCommand: false },
  ],
  [
    "words",
    visit("text", "model", [answered("hello", null)]),
    { output: "hello", isText: true, prompt: "Do a.", model: "sonnet", isCommand: false },
  ],
  [
    "nothing yet, and a command",
    visit("object", "command", []),
    { output: null, isText: false, prompt: null, model: "sonnet", isCommand: true },
  ],
] as const)
  test(`what stood there: ${name}`, () =>
    assert.deepEqual(forkBefore(why, { b: { k: 1 } }, { prompt: expected.prompt }), {
      ...expected,
      handoff: '{\n  "b": {\n    "k": 1\n  }\n}',
    }));
