/** A run step by step: what each decision did, recorded where it was decided. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { stateAfter } from "../../src/engine/decide/decide.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import type { Deed } from "../../src/flow/deed.ts";
import type { CheckResult } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { story } from "../../src/story/story.ts";
import { sketchCheck, sketchFlow, sketchMachine } from "../../src/testing/flows.ts";
import { play } from "../../src/testing/scenario.ts";
import { ready } from "../ready.ts";

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const CHECKED = {
  checks: [{ check: "tests", edition: { file: null, text: "", tried: [], variables: [] } }],
  on: "closing",
  onFailure: "retry",
  maxFailures: 2,
  back: { kind: "goto", step: "initial.a" },
} as const;
const TESTS = { checks: { tests: sketchCheck("tests", "true") } };

type Row = {
  readonly flow: Flow;
  readonly model: readonly ScriptReply[];
  readonly checks?: readonly (readonly Partial<CheckResult>[])[];
  /** The deeds of each entry. */
  readonly expected: readonly string[];
};

const ROWS: { readonly [what: string]: Row } = {
  "answers lead from step to step": {
    flow: sketchFlow({
      "initial.a": { edges: { next: "closure.a" } },
      "closure.a": { edges: { closing: null } },
    }),
    model: [say("next"), say("CLOSING")],
    expected: [
      "began initial.a",
      "read next by word, followed next to closure.a, settled initial.a, began closure.a",
      "read closing by alias, followed closing to end, settled closure.a, ended completed",
      "",
    ],
  },
  "an answer is sent back until it fits": {
    flow: sketchFlow({ "closure.a": { edges: { closing: null } } }),
    model: [{ text: "hm" }, say("closing")],
    expected: [
      "began closure.a",
      "read nothing, sent-back misfit",
      "read closing by word, followed closing to end, settled closure.a, ended completed",
      "",
    ],
  },
  "the stop rule is asked where the edge leads on": {
    flow: sketchFlow(
      { "initial.a": { edges: { next: "initial.a" } } },
      { stop: { kind: "visits", count: 1 } },
    ),
    model: [say("next")],
    expected: [
      "began initial.a",
      "read next by word, followed next to initial.a unless stopped, settled initial.a, ended completed",
      "",
    ],
  },
  "checks overturn a label once": {
    flow: sketchFlow(
      {
        "initial.a": { edges: { next: "closure.a" } },
        "closure.a": { edges: { closing: null }, guard: CHECKED },
      },
      TESTS,
    ),
    model: [say("next"), say("closing"), say("next"), say("closing")],
    checks: [[{ ok: false }]],
    expected: [
      "began initial.a",
      "read next by word, followed next to closure.a, settled initial.a, began closure.a",
      "read closing by word, checking tests",
      "checked label: tests failed, overturned to initial.a, settled closure.a, began initial.a",
      "read next by word, followed next to closure.a, settled initial.a, began closure.a",
      "read closing by word, checking tests",
      "checked label, followed closing to end, settled closure.a, ended completed",
      "",
    ],
  },
  "a fault is waited out, and one that stays holds the visit": {
    flow: sketchFlow({ "closure.a": { edges: { closing: null } } }),
    model: [
      { error: { kind: "network", message: "gone" } },
      { error: { kind: "auth", message: "who are you" } },
    ],
    expected: ["began closure.a", "waits for attempt 2 of 5", "", "held closure.a, ended failed", ""],
  },
  "a stage is tried again in its conversation": {
    flow: sketchMachine({ plan: { assert: ["tests"] } }, TESTS),
    model: [{ text: "hm" }, { output: {} }, { output: {} }],
    checks: [[{ ok: false }]],
    expected: [
      "began plan, phase act",
      "sent-back silent",
      "read ok by const, phase assert, checking tests",
      "checked attempt: tests failed, judged 1 retry, phase act",
      "read ok by const, phase assert, checking tests",
      "checked attempt, judged 2 ok, phase exit, phase next, followed ok to end, settled plan, ended completed",
      "",
    ],
  },
  "siblings set out and meet again": {
    flow: sketchFlow({
      "initial.a": {
        edges: { next: { kind: "fork", steps: ["initial.b", "initial.c"], join: "closure.a" } },
      },
      "initial.b": { edges: { done: null } },
      "initial.c": { edges: { done: null } },
      "closure.a": { edges: { closing: null } },
    }),
    model: [say("next"), say("done"), say("done"), say("closing")],
    expected: [
      "began initial.a",
      "read next by word, followed next to initial.b+initial.c, settled initial.a, forked initial.b+initial.c, " +
        "began initial.b, began initial.c",
      "read done by word, followed done to end, settled initial.b, joined closure.a with 1 left",
      "read done by word, followed done to end, settled initial.c, joined closure.a with 0 left, began closure.a",
      "read closing by word, followed closing to end, settled closure.a, ended completed",
      "",
    ],
  },
  "what would go beyond a limit is held": {
    flow: sketchFlow(
      { "initial.a": { edges: { next: "initial.a" } } },
      { limits: { visits: 9, turns: 2, soft: 0.5 } },
    ),
    model: [say("next"), say("next")],
    expected: [
      "began initial.a",
      "read next by word, followed next to initial.a, settled initial.a, began initial.a, noted run.turns",
      "read next by word, followed next to initial.a, settled initial.a, began initial.a, limited turns, " +
        "held initial.a, ended failed",
      "",
    ],
  },
};

for (const [what, { flow, model, checks = [], expected }] of Object.entries(ROWS))
  test(what, async () => {
    const { entries, state } = await play({ flow, model, checks });
    const moments = [...story(ready(flow), entries)];
    assert.deepEqual(
      moments.map(({ deeds }) => deeds.map(inWords).join(", ")),
      expected,
    );
    assert.deepEqual(moments.at(-1)?.after, state);
    for (const { before, after, entry } of moments)
      assert.deepEqual(
        stateAfter(ready(flow), before, entry.event),
        after,
        "the same state where no deeds are wanted",
      );
  });

test("from an adopted flow on, decisions are made by it", async () => {
  const began = sketchFlow({ "initial.a": { edges: { next: "initial.a" } } }, { limits: { visits: 9 } });
  const later = sketchFlow(
    { "initial.a": { edges: { next: "closure.b" } }, "closure.b": { edges: { closing: null } } },
    { limits: { visits: 9 } },
  );
  const { entries } = await play({ flow: began, model: [say("next"), say("next")] });
  const [start, first, second] = entries;
  const adopted = { seq: 3, at: 0, event: { type: "run.adopted", flow: "later" } } as const;
  const told = [
    ...story(ready(began), [start!, first!, adopted, { ...second!, seq: 4 }], { later: ready(later) }),
  ];
  assert.deepEqual(
    told.map(({ flow }) => (flow === later ? "later" : "began")),
    ["began", "began", "later", "later"],
  );
  assert.equal(told.at(-1)?.after.lanes[0]?.step, "closure.b");
});

function inWords(deed: Deed): string {
  const { kind } = deed;
  switch (deed.kind) {
    case "began":
      return `${kind} ${deed.step}`;
    case "read":
      return deed.label === null ? `${kind} nothing` : `${kind} ${deed.label} by ${deed.by}`;
    case "sent-back":
      return `${kind} ${deed.why}`;
    case "called":
      return `${kind} ${deed.calls.map(({ name }) => name).join("+")}`;
    case "waits":
      return `${kind} for attempt ${deed.next} of ${deed.of}`;
    case "checking":
      return `${kind} ${deed.checks.join("+")}`;
    case "checked":
      return `${kind} ${deed.of}${deed.failed === null ? "" : `: ${deed.failed.name} failed`}`;
    case "overturned":
      return `${kind} to ${deed.to ?? "end"}`;
    case "followed": {
      const { move } = deed;
      const to = move?.kind === "goto" ? move.step : move?.kind === "fork" ? move.steps.join("+") : "end";
      return `${kind} ${deed.label} to ${to}${deed.stop === null ? "" : " unless stopped"}`;
    }
    case "forked":
      return `${kind} ${deed.steps.join("+")}`;
    case "joined":
      return `${kind} ${deed.join} with ${deed.left} left`;
    case "phase":
      return `${kind} ${deed.phase}`;
    case "judged":
      return `${kind} ${deed.attempt} ${deed.verdict}`;
    case "noted":
      return `${kind} ${deed.limit}`;
    case "held":
      return `${kind} ${deed.visits.map(({ step }) => step).join("+")}`;
    case "limited":
      return `${kind} ${deed.reached.name}`;
    case "stuck":
      return `${kind} ${deed.step} ${deed.times}`;
    case "settled":
      return `${kind} ${deed.led.step}`;
    case "ended":
      return `${kind} ${deed.verdict.outcome}`;
  }
}
