/** Whether a run that is under way can go on with another flow, by what it has seen and what is pending. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { obstacles } from "../../src/story/adoptable.ts";
import type { State } from "../../src/engine/decide/state.ts";
import type { Led } from "../../src/flow/event.ts";
import type { Flow, StepGuard } from "../../src/flow/flow.ts";
import type { JsonObject } from "../../src/flow/json.ts";
import { sketchCheck, sketchFlow, sketchMachine, sketchPrompt } from "../../src/testing/flows.ts";
import { play } from "../engine/played.ts";

const guard = (...names: readonly string[]): StepGuard => ({
  on: "closing",
  checks: names.map((check) => ({ check, edition: sketchPrompt(check) })),
  onFailure: "retry",
  maxFailures: 3,
  back: { kind: "caller" },
});
const checks = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, sketchCheck(name, "true")]));
const guarded = (own: StepGuard | undefined, ...names: readonly string[]): Flow =>
  sketchFlow(
    {
      a: { edges: { next: "b" } },
      b: { edges: { closing: null }, ...(own !== undefined && { guard: own }) },
    },
    { checks: checks(...names) },
  );
const BEFORE = guarded(guard("tests", "lint"), "tests", "lint");
const MACHINE = sketchMachine({
  s: { next: { kind: "fork", steps: ["a", "b"], join: "end" } },
  a: {},
  b: {},
  end: {},
});

/** The state in which the command of this type is first pending, and the way that led there. */
async function pendingOf(flow: Flow, type: string, replies: readonly JsonObject[]) {
  let found: State | null = null;
  const path: Led[] = [];
  const observe = ({ led }: { readonly led?: Led }, state: State) => {
    if (found !== null) return;
    if (led !== undefined) path.push(led);
    if (state.pending.some((command) => command.type === type)) found = state;
  };
  await play({ flow, model: replies.map((output) => ({ output })), observe });
  return { state: found ?? assert.fail(`no ${type} was pending`), path };
}

const act = (action: string) => ({ next_action: { action } });
const ANSWERS = [act("next"), act("closing")];

const rows: readonly [
  name: string,
  before: Flow,
  pending: string,
  after: Flow,
  expected: readonly RegExp[],
][] = [
  ["nothing changed", BEFORE, "check", BEFORE, []],
  ["one check more", BEFORE, "check", guarded(guard("tests", "lint", "types"), "tests", "lint", "types"), []],
  [
    "one of two checks gone",
    BEFORE,
    "check",
    guarded(guard("tests"), "tests"),
    [/^check "lint" of b@1 is pending, and is not there any more$/],
  ],
  [
    "the guard gone, the checks still there",
    BEFORE,
    "check",
    guarded(undefined, "tests", "lint"),
    [/^checks of b@1 are pending, and nothing is guarded there any more$/],
  ],
  [
    "all of it gone",
    BEFORE,
    "check",
    guarded(undefined),
    [/check "tests"/, /check "lint"/, /nothing is guarded/],
  ],
  ["the guard gone before anything is checked", BEFORE, "ask", guarded(undefined), []],
  ["a sibling that is to come", MACHINE, "ask", MACHINE, []],
];
for (const [name, before, pending, after, expected] of rows) {
  test(`adopting with a ${pending} pending: ${name}`, async () => {
    const { state, path } = await pendingOf(before, pending, before === BEFORE ? ANSWERS : [{}, {}, {}, {}]);
    const found = obstacles(before, after, state, path);
    assert.equal(found.length, expected.length, found.join("\n"));
    for (const [place, pattern] of expected.entries()) assert.match(found[place]!, pattern);
  });
}
