/** What the public kit is given is checked: bad input gives an error that names the function, the argument and the place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as kit from "../../src/testing/index.ts";

/** As a caller without types gives it. */
const loose = kit as unknown as { readonly [name: string]: (...given: readonly unknown[]) => unknown };

const FLOW = kit.sketchFlow({ work: { edges: { next: null } } });
const GOOD = { flow: FLOW, model: [{ output: { next_action: { action: "next" } } }] };

const rows: readonly (readonly [name: string, given: readonly unknown[], says: RegExp])[] = [
  ["play", [], /^play takes an object of options, not undefined\.$/],
  ["play", [[GOOD]], /^play takes an object of options, not a list\.$/],
  ["play", [{ model: [] }], /^play needs the option "flow", an object\.$/],
  ["play", [{ flow: FLOW }], /^play needs the option "model", an object or a list\.$/],
  ["play", [{ ...GOOD, flow: {} }], /"flow" of play is not a flow: .* Make one with sketchFlow/],
  ["play", [{ ...GOOD, flow: { ...FLOW, entry: "wrok" } }], /its entry "wrok" is not one of them/],
  ["play", [{ ...GOOD, modell: [] }], /^play has no option "modell"\. Did you mean "model"\?/],
  ["play", [{ ...GOOD, model: "next" }], /"model" of play is "next", but must be an object or a list/],
  [
    "play",
    [{ ...GOOD, model: {} }],
    /"model" of play is an object, but must be a list of replies or a backend/,
  ],
  ["play", [{ ...GOOD, model: ["work next"] }], /^model\[0\] of play is "work next", but must be an object/],
  [
    "play",
    [{ ...GOOD, model: [{ text: "a" }, { txt: "b" }] }],
    /^model\[1\] of play has no member "txt"\. Did you mean "text"\?/,
  ],
  ["play", [{ ...GOOD, args: [] }], /"args" of play is a list, but must be an object/],
  ["play", [{ ...GOOD, checks: [{ ok: true }] }], /^checks\[0\] of play is an object, but must be a list/],
  ["play", [{ ...GOOD, checks: [[true]] }], /^checks\[0\]\[0\] of play is true, but must be an object/],
  ["play", [{ ...GOOD, sights: [true, "no"] }], /^sights\[1\] of play is not true or false/],
  ["play", [{ ...GOOD, past: [null] }], /^past\[0\] of play is null, but must be an object/],
  ["play", [{ ...GOOD, pauseMs: "1s" }], /"pauseMs" of play is "1s", but must be a number of milliseconds/],
  ["play", [{ ...GOOD, observe: {} }], /"observe" of play is an object, but must be a function/],
  ["fakeClock", [5], /^fakeClock takes a list/],
  ["sketchFlow", [], /^sketchFlow takes an object of steps/],
  ["sketchFlow", [[{ edges: {} }]], /^sketchFlow takes an object of steps: \{ NAME/],
  ["sketchFlow", [{ work: null }], /^step "work" of sketchFlow takes an object of options, not null/],
  ["sketchFlow", [{ work: {} }], /^step "work" of sketchFlow needs the option "edges", an object/],
  [
    "sketchFlow",
    [{ work: { edges: {}, promt: "a" } }],
    /^step "work" of sketchFlow has no option "promt"\. Did you mean "prompt"\?/,
  ],
  [
    "sketchFlow",
    [{ work: { edges: { next: 1 } } }],
    /^The edge "next" of step "work" of sketchFlow must lead to/,
  ],
  [
    "sketchFlow",
    [{ work: { edges: {} } }, { limit: {} }],
    /^sketchFlow has no option "limit"\. Did you mean "limits"\?/,
  ],
  ["sketchFlow", [{ work: { edges: {} } }, null], /^sketchFlow takes an object of options, not null/],
  ["sketchCheck", ["", "make"], /^sketchCheck takes the name of the check, not ""/],
  ["sketchCheck", ["a"], /^sketchCheck takes its command, not undefined/],
  ["text", [1], /^A prompt is a text/],
  ["text", ["a", "b"], /^A prompt is a text, and a list of the variables/],
  ["actionSchema", ["next"], /^actionSchema takes a list of labels/],
  ["request", [{ messages: "hi" }], /"messages" of request is "hi", but must be a list/],
  ["backendSuite", [], /^backendSuite takes the name of the backend, not undefined/],
  [
    "backendSuite",
    ["mine", {}],
    /^backendSuite takes a function that makes a backend for given replies, not an object/,
  ],
  ["journalSuite", [() => null], /^journalSuite takes the name of the journal, not a function/],
  ["journalSuite", ["mine"], /^journalSuite takes a function that makes a place for journals, not undefined/],
  [
    "journalSuite",
    ["mine", () => null, { alon: "a" }],
    /^journalSuite has no option "alon"\. Did you mean "alone"\?/,
  ],
];

for (const [name, given, says] of rows)
  test(`${name} refuses ${JSON.stringify(given)?.slice(0, 60)}: ${says.source.slice(0, 60)}`, async () => {
    await assert.rejects(
      async () => await loose[name]!(...given),
      (error) => error instanceof TypeError && (assert.match(error.message, says), true),
    );
  });

test("what is right is played, with a list of replies and with a backend", async () => {
  const { state, asked } = await kit.play(GOOD);
  assert.deepEqual([state.verdict?.outcome, asked], ["completed", ["work@1/1"]]);
  const { createScripted } = await import("../../src/backends/scripted/scripted.ts");
  const by = await kit.play({ ...GOOD, model: createScripted(GOOD.model, []), sights: [true], checks: [[]] });
  assert.equal(by.state.verdict?.outcome, "completed");
});
