import assert from "node:assert/strict";
import { test } from "node:test";
import { parseScript } from "../../../src/backends/scripted/script.ts";
import { createScripted } from "../../../src/backends/scripted/scripted.ts";
import type { TurnResult } from "../../../src/engine/ports.ts";
import { backendSuite, request } from "../../../src/testing/backend-suite.ts";

backendSuite("scripted", (replies) => Promise.resolve(createScripted(replies)));

const asker = (step: string, beside: readonly string[] = []) => ({ ...request().asker, step, beside });
const codeOf = (result: TurnResult) => (result.kind === "fault" ? result.fault.code : result.text);

test("replies that were given before a crash are not given again", async () => {
  const backend = createScripted([{ text: "one" }, { text: "two" }, { text: "three" }], [0, 1]);
  assert.equal(codeOf(await backend.turn!(request())), "three");
});

test("a reply for a step that runs beside this one is passed over, and kept for it", async () => {
  const backend = createScripted([
    { step: "b", text: "for b" },
    { step: "a", text: "for a" },
  ]);
  assert.equal(codeOf(await backend.turn!(request({ asker: asker("a", ["a", "b"]) }))), "for a");
  assert.equal(codeOf(await backend.turn!(request({ asker: asker("b", ["b"]) }))), "for b");
});

test("a reply for a step that is not running is a mismatch", async () => {
  const backend = createScripted([{ step: "b", text: "for b" }]);
  assert.equal(codeOf(await backend.turn!(request({ asker: asker("a") }))), "SCRIPT_MISMATCH");
});

const sights: readonly [name: string, words: { saw?: string[]; unseen?: string[] }, outcome: string][] = [
  ["a word of the system prompt counts", { saw: ["a test"] }, "ok"],
  ["a word of a message counts", { saw: ["Do it"] }, "ok"],
  ["a pattern counts", { saw: ["re:D. [ti]+"] }, "ok"],
  ["a word that is not there is a mismatch", { saw: ["Do that"] }, "SCRIPT_MISMATCH"],
  ["an unwanted word is a mismatch", { unseen: ["Do it"] }, "SCRIPT_MISMATCH"],
  ["an unwanted word that is not there is fine", { unseen: ["secret"] }, "ok"],
];
for (const [name, words, outcome] of sights) {
  test(name, async () => {
    assert.equal(codeOf(await createScripted([{ ...words, text: "ok" }]).turn!(request())), outcome);
  });
}

test("replies that were not used are named in one line", async () => {
  const backend = createScripted([{ text: "one" }, { step: "z", text: "two" }]);
  await backend.turn!(request());
  assert.deepEqual(backend.leftovers!(), ['script: reply 2 for "z" was not used']);
});

test("a script may be YAML or JSON, with or without the key", async () => {
  const yaml = await parseScript("replies:\n  - output: { a: 1 }\n  - text: hi\n", "s.yaml");
  assert.deepEqual(yaml, [{ output: { a: 1 } }, { text: "hi" }]);
  assert.deepEqual(await parseScript('[{"text":"hi"}]', "s.json"), [{ text: "hi" }]);
});

const wrong: readonly [name: string, text: string, message: RegExp][] = [
  ["no list", "hello: 1", /s\.yaml: there is no list `replies`/],
  ["a reply that says nothing", "replies: [{ step: a }]", /reply 1 says nothing/],
  ["an unknown key", "replies: [{ text: a, ouput: 1 }]", /reply 1 has the unknown key "ouput"/],
  ["an unknown error kind", "replies: [{ error: { kind: boom } }]", /error\.kind must be one of auth/],
  ["a call without a name", "replies: [{ calls: [{ input: {} }] }]", /a call needs a name/],
  ["a broken pattern", 'replies: [{ text: a, saw: ["re:("] }]', /is not a valid regular expression/],
  [
    "broken YAML",
    "replies:\n  - text: [a\n",
    /^s\.yaml: line 3, column 1: Flow sequence in block collection must be sufficiently indented and end with a \]\. The format is described in /,
  ],
  [
    "a tab",
    "replies:\n\t- text: a\n",
    /^s\.yaml: line 2, column 1: Tabs are not allowed as indentation\. The format/,
  ],
  [
    "a key twice",
    "replies:\n  - text: a\n    text: b\n",
    /^s\.yaml: line 3, column 5: the key "text" occurs twice\. The format/,
  ],
];
for (const [name, text, message] of wrong) {
  test(`a script with ${name} is refused with its place`, async () => {
    await assert.rejects(parseScript(text, "s.yaml"), (error: Error & { code?: string }) => {
      assert.equal(error.code, "SCRIPT_INVALID");
      assert.match(error.message, message);
      return true;
    });
  });
}

const IDS: readonly [given: readonly (string | undefined)[], is: readonly string[]][] = [
  [
    ["a", "b"],
    ["a", "b"],
  ],
  [
    [undefined, ""],
    ["K#1", "K#2"],
  ],
  [
    ["a", "a", "a"],
    ["a", "K#2", "K#3"],
  ],
  [
    ["K#2", undefined, "K#2"],
    ["K#2", "K#2+", "K#3"],
  ],
  [["K#done"], ["K#done"]],
];
for (const [given, is] of IDS)
  test(`calls have ids of their own: ${JSON.stringify(given)}`, async () => {
    const { key } = request().asker;
    const calls = given.map((id) =>
      id === undefined ? { name: "Read", input: {} } : { name: "Read", input: {}, id: id.replace("K", key) },
    );
    const said = await createScripted([{ calls }]).turn!(request());
    assert.ok(said.kind === "reply");
    assert.deepEqual(
      said.calls.map(({ id }) => id.replace(key, "K")),
      is,
    );
  });
