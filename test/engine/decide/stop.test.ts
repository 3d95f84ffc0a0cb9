/** When a run is over by its stop rule: every kind of rule, and rules made of others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StopFacts } from "../../../src/flow/deed.ts";
import { listens, outsideOf, standing } from "../../../src/engine/decide/stop.ts";
import type { StopRule } from "../../../src/flow/flow.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";

const FLOW = sketchFlow({ "initial.a": { edges: { closing: null } } });

type Given = Partial<StopFacts> & { readonly isAction?: boolean };

function stands(stop: StopRule, { isAction = false, ...facts }: Given = {}): string {
  const actions = { ...FLOW.settings.actions, enabled: isAction };
  const flow = { ...FLOW, stop, settings: { ...FLOW.settings, actions } };
  const state = { iterations: 0, visits: {} };
  const found = standing(flow, { state, said: "", payload: {}, sights: null, ...facts });
  return found.kind === "over" ? `over: ${found.why}` : found.kind;
}

const signal = (...fields: readonly { readonly name: string; readonly value?: string }[]): StopRule => ({
  kind: "signal",
  type: "done",
  fields,
});
const keyword = (text: string): StopRule => ({ kind: "keyword", text });
const block = (body: string, type = "done", fence = "```") => `x\n${fence}${type}\n${body}\n${fence}\ny`;
const OVER = "over: The signal done was given";

const ROWS: readonly (readonly [name: string, rule: StopRule, given: Given, stands: string])[] = [
  ["never", { kind: "end" }, {}, "going"],
  ["visits, one less", { kind: "visits", count: 2 }, { state: { iterations: 1, visits: {} } }, "going"],
  [
    "visits, as many",
    { kind: "visits", count: 2 },
    { state: { iterations: 2, visits: {} } },
    "over: Completed 2/2 iterations: budget reached",
  ],
  ["a keyword that is not given", keyword("DONE"), { said: "Don" }, "going"],
  ["a keyword in what was said", keyword("DONE"), { said: "I am DONE." }, "over: The keyword DONE was given"],
  [
    "a keyword in the payload, as JSON writes it",
    keyword('say "x"'),
    { payload: { a: ['say "x"'] } },
    'over: The keyword say "x" was given',
  ],
  ["a payload that names the signal", signal(), { payload: { signal: "done" } }, OVER],
  ["a payload of its type", signal(), { payload: { type: "done" } }, OVER],
  ["a payload of another type", signal(), { payload: { type: "other", signal: "x" } }, "going"],
  ["a payload that is completed", signal(), { payload: { status: "completed" } }, OVER],
  ["a payload with a complete result", signal(), { payload: { result: "complete" } }, OVER],
  [
    "a payload that says neither",
    signal(),
    { payload: { status: "complete", result: "completed" } },
    "going",
  ],
  ["a field that is missing", signal({ name: "n" }), { payload: { type: "done" } }, "going"],
  ["a field that is there", signal({ name: "n" }), { payload: { type: "done", n: 1 } }, OVER],
  [
    "a field of another value",
    signal({ name: "n", value: "a" }),
    { payload: { type: "done", n: "b" } },
    "going",
  ],
  [
    "one of two fields",
    signal({ name: "n", value: "a" }, { name: "m" }),
    { payload: { type: "done", n: "a" } },
    "going",
  ],
  ["the fields without the type", signal({ name: "n" }), { payload: { n: 1 } }, "going"],
  ["a fenced block", signal({ name: "n" }), { said: block('{"n": 1}') }, OVER],
  ["a fenced block of more marks", signal(), { said: block("", "done", "`````") }, OVER],
  ["a fenced block that is indented", signal(), { said: "  ``` done \n  ```" }, OVER],
  ["a fenced block without its field", signal({ name: "n" }), { said: block("{}") }, "going"],
  ["a fenced block that holds no object", signal({ name: "n" }), { said: block("n") }, "going"],
  ["a fenced block of words, and no fields", signal(), { said: block("anything") }, OVER],
  ["a block of another type", signal(), { said: block("{}", "json") }, "going"],
  ["a block that is not closed", signal(), { said: "```done\n{}" }, "going"],
  ["a fence amid a line", signal(), { said: "x ```done\n{}\n```" }, "going"],
  [
    "a block within a block of another type is part of that",
    signal({ name: "n" }),
    { said: '```md\n```done\n{"n":1}\n```' },
    "going",
  ],
  [
    "a fence with a word within a block is part of it",
    signal({ name: "n" }),
    { said: '```done\nx\n```done\n{"n": 1}\n```' },
    "going",
  ],
  ["the second of two blocks", signal({ name: "n" }), { said: `${block("{}")}\n${block('{"n": 1}')}` }, OVER],
];

for (const [name, rule, given, expected] of ROWS)
  test(`stop rule: ${name}`, () => assert.equal(stands(rule, given), expected));

// Rules made of others, and what only a look outside can tell.

const module = (path: string): StopRule => ({ kind: "module", path }) as unknown as StopRule;
const [ONE, TWO] = [module("one.mjs"), module("two.mjs")];
const seen = (...met: readonly boolean[]): Given => ({
  sights: met.map((is) => ({ met: is, what: is ? "seen" : "" })),
});
const any = (...of: readonly StopRule[]): StopRule => ({ kind: "any", of });
const all = (...of: readonly StopRule[]): StopRule => ({ kind: "all", of });
const SAID = { said: "A B" };

const MADE: readonly (readonly [name: string, rule: StopRule, given: Given, stands: string])[] = [
  ["outside, before a look", ONE, {}, "look"],
  ["outside, met", ONE, seen(true), "over: seen"],
  ["outside, not met", ONE, seen(false), "going"],
  ["any of none", any(), {}, "going"],
  [
    "any: the first that is over says why",
    any(keyword("A"), keyword("B")),
    SAID,
    "over: The keyword A was given",
  ],
  ["any: one of two", any(keyword("C"), keyword("B")), SAID, "over: The keyword B was given"],
  [
    "any: nobody looks where one is over already",
    any(ONE, keyword("A")),
    SAID,
    "over: The keyword A was given",
  ],
  ["any: a look where none is over", any(keyword("C"), ONE), SAID, "look"],
  ["any: the second outside", any(ONE, TWO), seen(false, true), "over: seen"],
  ["all of none", all(), {}, "going"],
  ["all: one is going", all(keyword("A"), keyword("C")), SAID, "going"],
  ["all: nobody looks where one is going", all(ONE, keyword("C")), SAID, "going"],
  ["all: a look where the others are over", all(ONE, keyword("A")), SAID, "look"],
  [
    "all are over, and say why in order",
    all(keyword("A"), keyword("B")),
    SAID,
    "over: The keyword A was given; The keyword B was given",
  ],
  ["all: one outside is met, the other is not", all(ONE, TWO), seen(true, false), "going"],
  [
    "all within any",
    any(all(keyword("A"), keyword("C")), keyword("B")),
    SAID,
    "over: The keyword B was given",
  ],
];

for (const [name, rule, given, expected] of MADE)
  test(`stop rule of rules: ${name}`, () => assert.equal(stands(rule, given), expected));

test("what is outside is known in order, and who listens", () => {
  assert.deepEqual(outsideOf(any(keyword("A"), all(ONE), TWO)), [ONE, TWO]);
  assert.deepEqual(outsideOf(keyword("A")), []);
  const heard = [keyword("A"), signal(), ONE, any({ kind: "end" }, signal()), all(keyword("A"))];
  assert.ok(heard.every((rule) => listens(rule)));
  const deaf: readonly StopRule[] = [
    { kind: "end" },
    { kind: "visits", count: 1 },
    any(),
    all({ kind: "end" }),
  ];
  assert.ok(!deaf.some((rule) => listens(rule)));
});
