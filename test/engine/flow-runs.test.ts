/** Flows run by the public heart: a flow, a script, the verdict and the journal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import { createScripted } from "../../src/backends/scripted/scripted.ts";
import type { Backend, Message } from "../../src/engine/ports.ts";
import type { CheckResult } from "../../src/flow/event.ts";
import type { Flow, Move } from "../../src/flow/flow.ts";
import {
  actionSchema,
  sketchCheck,
  sketchFlow,
  sketchMachine,
  sketchPrompt,
} from "../../src/testing/flows.ts";
import { play, type Scenario } from "./played.ts";

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const prose = (words: string): ScriptReply => ({ text: words });

const linear = sketchFlow({
  "initial.issue": { edges: { next: "continuation.issue", repeat: "initial.issue" } },
  "continuation.issue": {
    edges: { next: "continuation.issue", repeat: "continuation.issue", handoff: "closure.issue" },
  },
  "closure.issue": { edges: { closing: null, repeat: "closure.issue" } },
});

const guarded = sketchFlow(
  {
    "initial.issue": { edges: { next: "continuation.issue" } },
    "continuation.issue": { edges: { handoff: "closure.issue" } },
    "closure.issue": {
      edges: { closing: null, repeat: "closure.issue" },
      guard: {
        on: "closing",
        checks: [
          { check: "tests", edition: sketchPrompt("{{summary}} in {{#each files}}<{{this}}>{{/each}}") },
        ],
        onFailure: "retry",
        maxFailures: 3,
        back: { kind: "caller" },
      },
    },
  },
  { checks: { tests: sketchCheck("tests", "npm test") } },
);
const failing: Partial<CheckResult> = {
  ok: false,
  summary: "2 failed",
  params: { summary: "2 failed", files: ["a", "b"] },
};

type Row = {
  readonly name: string;
  readonly scenario: Scenario;
  readonly outcome: string;
  readonly code: string | null;
  readonly path: string;
  readonly reason?: string | RegExp;
};

/** A path as `step:label` in order; `!` marks an overturned label, `-` a visit without one. */
const rows: readonly Row[] = [
  {
    name: "a linear flow goes from entry to end",
    scenario: { flow: linear, model: [say("next"), say("next"), say("handoff"), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:next continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "repeat goes to its declared target, which may be another step",
    scenario: {
      flow: sketchFlow({
        "initial.a": { edges: { repeat: "initial.b" } },
        "initial.b": { edges: { next: null } },
      }),
      model: [say("repeat"), say("next")],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:repeat initial.b:next",
  },
  {
    name: "abort ends in failure although the schema does not list it",
    scenario: { flow: linear, model: [say("abort", { reason: "no access" })] },
    outcome: "failed",
    code: "AGENT_ABORTED",
    path: "initial.issue:abort",
    reason: /no access/,
  },
  {
    name: "an unreadable first answer is sent back once, and the entry step is tried again",
    scenario: {
      flow: linear,
      model: [prose("hm"), prose("still hm"), say("next"), say("handoff"), say("closing")],
    },
    outcome: "completed",
    code: null,
    path: "initial.issue:- initial.issue:next continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "no intent after the first iteration ends the run with the documented words",
    scenario: { flow: linear, model: [say("next"), prose("hm"), prose("hm")] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.issue:next continuation.issue:-",
    reason:
      '[StepFlow] No intent produced for iteration 2 on step "continuation.issue".\n' +
      "Flow steps must produce structured output with a valid intent.\n" +
      "Check that the step's schema includes next_action.action and the LLM returns valid JSON.",
  },
  {
    name: "an answer that fails its schema is repaired within the visit",
    scenario: { flow: linear, model: [say("next"), say("fly"), say("handoff"), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "without a schema an unknown intent is a gate error at once",
    scenario: {
      flow: sketchFlow({ "initial.a": { edges: { next: null }, answer: { schema: { kind: "any" } } } }),
      model: [say("fly")],
    },
    outcome: "failed",
    code: "GATE_INTERPRETATION_ERROR",
    path: "initial.a:-",
    reason: /"fly" at next_action\.action; it may say next, abort/,
  },
  {
    name: "a fallback intent is taken for an unknown one",
    scenario: {
      flow: sketchFlow({ "initial.a": { edges: { next: null, repeat: "initial.a" }, fallback: "next" } }),
      model: [say("fly")],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:next",
  },
  {
    name: "an alias counts as its intent, in any case",
    scenario: {
      flow: sketchFlow({ "closure.a": { edges: { closing: null }, alias: { done: "closing" } } }),
      model: [say("DONE")],
    },
    outcome: "completed",
    code: null,
    path: "closure.a:closing",
  },
  {
    name: "an alias does not reach a label that the step does not allow",
    scenario: {
      flow: sketchFlow({
        "initial.a": {
          edges: { next: null },
          alias: { done: "closing" },
          answer: { schema: { kind: "any" } },
        },
      }),
      model: [say("done")],
    },
    outcome: "failed",
    code: "GATE_INTERPRETATION_ERROR",
    path: "initial.a:-",
  },
  {
    name: "a wrong stepId is corrected and noted",
    scenario: {
      flow: sketchFlow({ "initial.a": { edges: { next: null } } }),
      model: [say("next", { stepId: "initial.b" })],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:next",
  },
  {
    name: "a label without an edge is a routing error in the documented words",
    scenario: { flow: withoutEdge(), model: [say("next")] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.a:next",
    reason:
      "[StepFlow] No routed step ID for iteration 2.\n" +
      "All Flow steps must define structuredGate with transitions.\n" +
      "Check steps_registry.json for missing gate configuration.",
  },
  {
    name: "a condition on handed-on data picks the branch",
    scenario: {
      flow: branching(),
      model: [say("next", { status: "ready" }), say("closing")],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:next closure.ready:closing",
  },
  {
    name: "a value without a branch takes the default",
    scenario: { flow: branching(), model: [say("next", { status: "odd" }), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.a:next closure.other:closing",
  },
  {
    name: "an inherited name is no branch",
    scenario: { flow: branching(), model: [say("next", { status: "constructor" }), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.a:next closure.other:closing",
  },
  {
    name: "a boolean branches by its word",
    scenario: { flow: branching(), model: [say("next", { status: true }), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.a:next closure.ready:closing",
  },
  {
    name: "without a match and without a default there is no route",
    scenario: { flow: branching(false), model: [say("next", { status: "odd" })] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.a:next",
    reason: /no target for "odd" and no default/,
  },
  {
    name: "a jump goes to the step it names",
    scenario: { flow: jumping(), model: [say("jump", { target: "closure.b" }), say("closing")] },
    outcome: "completed",
    code: null,
    path: "initial.a:jump closure.b:closing",
  },
  ...[undefined, null, ""].map((target): Row => ({
    name: `a jump to ${JSON.stringify(target)} takes the target that is declared`,
    scenario: {
      flow: jumping({ kind: "goto", step: "closure.b" }),
      model: [say("jump", { target: target! }), say("closing")],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:jump closure.b:closing",
  })),
  ...[undefined, null, "", 7, false].map((target): Row => ({
    name: `a jump to ${JSON.stringify(target)} without a declared target is refused`,
    scenario: { flow: jumping(), model: [say("jump", { target: target! })] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.a:jump",
    reason: /not a step it may jump to/,
  })),
  ...[7, false, " ", "nowhere"].map((target): Row => ({
    name: `a jump to ${JSON.stringify(target)} does not take the target that is declared`,
    scenario: { flow: jumping({ kind: "goto", step: "closure.b" }), model: [say("jump", { target })] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.a:jump",
    reason: /not a step it may jump to/,
  })),
  ...["constructor", "__proto__", "toString", "nowhere"].map((target): Row => ({
    name: `a jump to "${target}" is refused`,
    scenario: { flow: jumping(), model: [say("jump", { target })] },
    outcome: "failed",
    code: "FAILED_STEP_ROUTING",
    path: "initial.a:jump",
    reason: /not a step it may jump to/,
  })),
  {
    name: "reaching the ceiling is a failure",
    scenario: { flow: { ...linear, limits: { visits: 3 } }, model: [say("next"), say("next"), say("next")] },
    outcome: "failed",
    code: "AGENT_MAX_ITERATIONS",
    path: "initial.issue:next continuation.issue:next continuation.issue:next",
    reason: /Maximum iterations \(3\) reached without completion/,
  },
  {
    name: "reaching the declared count is success",
    scenario: {
      flow: { ...linear, stop: { kind: "visits", count: 2 }, limits: { visits: 2 } },
      model: [say("next"), say("next")],
    },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:next",
    reason: /Completed 2\/2 iterations/,
  },
  {
    name: "closing ends the run before the count is reached",
    scenario: {
      flow: { ...linear, stop: { kind: "visits", count: 9 }, limits: { visits: 9 } },
      model: [say("next"), say("handoff"), say("closing")],
    },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "a failed check sends the run back to the step that handed over, with the failure in its prompt",
    scenario: {
      flow: guarded,
      model: [
        say("next"),
        say("handoff"),
        say("closing"),
        { ...say("handoff"), saw: ["2 failed in <a><b>"] },
        say("closing"),
      ],
      checks: [[failing]],
    },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing! continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "the last allowed failure of a check ends the run",
    scenario: {
      flow: guarded,
      model: [
        say("next"),
        say("handoff"),
        say("closing"),
        say("handoff"),
        say("closing"),
        say("handoff"),
        say("closing"),
      ],
      checks: [[failing], [failing], [failing]],
    },
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing! continuation.issue:handoff closure.issue:closing! continuation.issue:handoff closure.issue:closing!",
    reason: /failure 3 of 3/,
  },
  {
    name: "a check that cannot recover ends the run at once",
    scenario: {
      flow: guarded,
      model: [say("next"), say("handoff"), say("closing")],
      checks: [[{ ...failing, unrecoverable: true }]],
    },
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing!",
  },
  {
    name: "a count reached while a check is being mended is not success",
    scenario: {
      flow: { ...guarded, stop: { kind: "visits", count: 4 }, limits: { visits: 4 } },
      model: [say("next"), say("handoff"), say("closing"), say("handoff")],
      checks: [[failing]],
    },
    outcome: "failed",
    code: "AGENT_MAX_ITERATIONS",
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing! continuation.issue:handoff",
  },
  {
    name: "two strikes without a schema end the run, and no model is asked",
    scenario: {
      flow: sketchFlow({
        "initial.a": {
          edges: { next: null },
          answer: { schema: { kind: "unresolved", name: "x#y", code: "SCHEMA_POINTER_ERROR", why: "no y" } },
        },
      }),
      model: [],
    },
    outcome: "failed",
    code: "FAILED_SCHEMA_RESOLUTION",
    path: "initial.a:- initial.a:-",
    reason: /no y/,
  },
  {
    name: "a prompt without its file names every path tried",
    scenario: { flow: withoutPrompt(), model: [] },
    outcome: "failed",
    code: "PR-C3L-004",
    path: "initial.a:-",
    reason: /p\/one\.md\n {2}p\/two\.md/,
  },
  {
    name: "a declared variable without a value names its channel",
    scenario: {
      flow: sketchFlow({
        "initial.a": { edges: { next: null }, prompt: "{uv-issue}", variables: ["issue"] },
      }),
      model: [],
    },
    outcome: "failed",
    code: "PR-RESOLVE-003",
    path: "initial.a:-",
    reason: /declares \{uv-issue\}/,
  },
  {
    name: "tool calls are done and their results go back within the visit",
    scenario: {
      flow: sketchFlow({ "initial.a": { edges: { next: null } } }),
      model: [{ calls: [{ name: "Read", input: {} }] }, { ...say("next"), saw: ["Read done"] }],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:next",
  },
  {
    name: "a step that never answers runs out of turns",
    scenario: {
      flow: sketchFlow({ "initial.a": { edges: { next: null }, turns: 2 } }),
      model: [1, 2, 3].map(() => ({ calls: [{ name: "Read", input: {} }] })),
    },
    outcome: "failed",
    code: "AGENT_TURN_LIMIT",
    path: "initial.a:-",
  },
  {
    name: "a completion tool beside other calls is refused whole",
    scenario: {
      flow: sketchFlow({ plan: { edges: { ok: null }, tool: "submit" } }),
      model: [
        {
          calls: [
            { name: "submit", input: { next_action: { action: "ok" } } },
            { name: "Write", input: {} },
          ],
        },
        { ...say("ok"), saw: ["must be the only tool call"], unseen: ["Write done"] },
      ],
    },
    outcome: "completed",
    code: null,
    path: "plan:ok",
  },
  {
    name: "prose where a completion tool is wanted is steered",
    scenario: {
      flow: sketchFlow({ plan: { edges: { ok: null }, tool: "submit" } }),
      model: [prose("I am done"), { ...say("ok"), saw: ["Call `submit`"] }],
    },
    outcome: "completed",
    code: null,
    path: "plan:ok",
  },
  {
    name: "siblings of a fork run beside each other and meet at the join",
    scenario: {
      flow: forking(),
      model: [say("go"), { ...say("done"), step: "b" }, { ...say("done"), step: "a" }, say("done")],
    },
    outcome: "completed",
    code: null,
    path: "start:go a:done b:done end:done",
  },
  {
    name: "a failing sibling takes the fork with it",
    scenario: {
      flow: forking(),
      model: [say("go"), { ...say("abort"), step: "b" }, { ...say("done"), step: "a" }],
    },
    outcome: "failed",
    code: "ParallelSiblingFailure",
    path: "start:go a:done b:abort",
  },
  {
    name: "a rate limit is waited out without an iteration",
    scenario: {
      flow: linear,
      model: [
        { error: { kind: "rate-limit", retryAfterMs: 10 } },
        say("next"),
        { error: { kind: "overloaded" } },
        say("handoff"),
        say("closing"),
      ],
    },
    outcome: "completed",
    code: null,
    path: "initial.issue:next continuation.issue:handoff closure.issue:closing",
  },
  {
    name: "the fifth fault in a row stops the run",
    scenario: {
      flow: linear,
      model: [1, 2, 3, 4, 5].map(() => ({ error: { kind: "rate-limit" as const } })),
    },
    outcome: "failed",
    code: "AGENT_RATE_LIMIT",
    path: "",
  },
  {
    name: "a script that ends too early says how to go on",
    scenario: { flow: linear, model: [say("next")] },
    outcome: "failed",
    code: "SCRIPT_EXHAUSTED",
    path: "initial.issue:next",
    reason: /lockstep resume run --script MORE/,
  },
  {
    name: "a script that expects another step is a mismatch",
    scenario: { flow: linear, model: [{ ...say("next"), step: "closure.issue" }] },
    outcome: "failed",
    code: "SCRIPT_MISMATCH",
    path: "",
  },
  {
    name: "a gate-less step counts whatever is said",
    scenario: {
      flow: sketchFlow(
        {
          "initial.a": { free: true, edges: { done: "continuation.a" } },
          "continuation.a": { free: true, edges: { done: "continuation.a" } },
        },
        { stop: { kind: "visits", count: 3 }, limits: { visits: 3 } },
      ),
      model: [prose("one"), prose("two"), prose("three")],
    },
    outcome: "completed",
    code: null,
    path: "initial.a:done continuation.a:done continuation.a:done",
  },
];

for (const row of rows) {
  test(row.name, async () => {
    const { state, entries } = await play(row.scenario);
    const path = entries
      .flatMap(({ led }) =>
        led === undefined ? [] : [`${led.step}:${led.label ?? "-"}${led.overturned ? "!" : ""}`],
      )
      .join(" ");
    assert.deepEqual(
      { outcome: state.verdict?.outcome, code: state.verdict?.code, path },
      { outcome: row.outcome, code: row.code, path: row.path },
      state.verdict?.reason,
    );
    if (typeof row.reason === "string") assert.equal(state.verdict?.reason, row.reason);
    else if (row.reason !== undefined) assert.match(state.verdict!.reason, row.reason);
  });
}

test("what was odd about a check that passed is noted, whatever the other checks say", async () => {
  const { guard } = guarded.steps["closure.issue"]!;
  const twice = { ...guard!, checks: [...guard!.checks, { check: "lint", edition: sketchPrompt("lint") }] };
  const flow = {
    ...guarded,
    checks: { ...guarded.checks, lint: sketchCheck("lint", "npm run lint") },
    steps: { ...guarded.steps, "closure.issue": { ...guarded.steps["closure.issue"]!, guard: twice } },
  };
  const odd = { ok: true, note: "it printed nothing, but failed" };
  const { entries } = await play({
    flow,
    model: [say("next"), say("handoff"), say("closing"), say("handoff"), say("closing")],
    checks: [[odd, failing], [odd]],
  });
  const closings = entries.flatMap(({ led }) => (led?.step === "closure.issue" ? [led] : []));
  assert.deepEqual(
    closings.map(({ overturned, notes }) => [overturned, notes]),
    [
      [true, [odd.note]],
      [undefined, [odd.note]],
    ],
  );
});

test("handed-on data stays under the name of its step", async () => {
  const flow = sketchFlow({
    "initial.a": { edges: { next: "initial.b" }, handoff: ["x.status", "note"], schema: loose(["next"]) },
    "initial.b": { edges: { next: null }, handoff: ["y.status"], schema: loose(["next"]) },
  });
  const { state } = await play({
    flow,
    model: [say("next", { x: { status: 1 }, note: "n" }), say("next", { y: { status: 2 } })],
  });
  assert.deepEqual(state.handoff, { "initial.a": { status: 1, note: "n" }, "initial.b": { status: 2 } });
});

test("a prompt reads parameters, the iteration and what other steps handed on", async () => {
  const flow = sketchFlow({
    "initial.a": {
      edges: { next: "initial.b" },
      handoff: ["found"],
      schema: loose(["next"]),
      prompt: "#{uv-issue}",
    },
    "initial.b": { edges: { next: null }, prompt: "it {uv-iteration}: {uv-initial_a_found}" },
  });
  const { state } = await play({
    flow,
    args: { issue: 12 },
    model: [
      { ...say("next", { found: "{uv-issue}" }), saw: ["#12"] },
      { ...say("next"), saw: ["it 2: {uv-issue}"] },
    ],
  });
  assert.equal(state.verdict?.outcome, "completed", state.verdict?.reason);
});

/** What the conversation was when the model was asked last. */
async function lastHeard(scenario: Scenario & { readonly model: readonly ScriptReply[] }) {
  const scripted = createScripted(scenario.model);
  let heard: readonly Message[] = [];
  const turn: Backend["turn"] = async (request) => {
    heard = [...request.messages];
    return await scripted.turn!(request);
  };
  await play({ ...scenario, model: { ...scripted, turn } });
  return heard;
}

test("an answer is in the conversation as it was said: its text, or where it has none its object", async () => {
  const next = { next_action: { action: "next" } };
  const flow = sketchFlow({ a: { edges: { next: "a", closing: null } } });
  const model = [
    { text: "In words.", output: next },
    { output: next },
    { output: { next_action: { action: "closing" } } },
  ];
  const said = (await lastHeard({ flow, model })).filter(({ role }) => role === "assistant");
  assert.deepEqual(said, [
    { role: "assistant", text: "In words.", calls: [] },
    { role: "assistant", text: "", calls: [], output: next },
  ]);
});

test("a completion that its checks refuse is answered as a call that was received", async () => {
  const flow = sketchMachine(
    { build: { assert: ["tests"] } },
    { checks: { tests: sketchCheck("tests", "npm test") } },
  );
  const model: readonly ScriptReply[] = [
    { calls: [{ name: "done", input: {} }] },
    { calls: [{ name: "done", input: {} }] },
  ];
  const heard = await lastHeard({ flow, model, checks: [[{ ok: false, summary: "2 failed" }]] });
  const results = heard.flatMap((message) => (message.role === "tool" ? message.results : []));
  assert.deepEqual(
    results.map(({ name, ok, content }) => [name, ok, content]),
    [["done", true, "Received; it was looked at."]],
  );
});

test("waits follow the server's word, else they grow", async () => {
  const { waits } = await play({
    flow: linear,
    model: [
      { error: { kind: "rate-limit", retryAfterMs: 7 } },
      { error: { kind: "overloaded" } },
      { error: { kind: "network" } },
      say("abort"),
    ],
  });
  assert.deepEqual(waits, [7, 10_000, 20_000]);
});

test("a stopped run is left without a verdict and goes on later", async () => {
  const stop = new AbortController();
  const model = [say("next"), say("handoff"), say("closing")];
  const first = await play({
    flow: linear,
    model,
    signal: stop.signal,
    observe: (entry) => entry.seq === 2 && stop.abort(),
  });
  assert.equal(first.state.verdict, null);
  const second = await play({ flow: linear, model, past: first.entries });
  assert.equal(second.state.verdict?.outcome, "completed");
  assert.deepEqual(second.asked, ["continuation.issue@1/1", "closure.issue@1/1"]);
});

function branching(withDefault = true): Flow {
  const cases = { ready: goto("closure.ready"), true: goto("closure.ready") };
  const edge = { kind: "switch" as const, on: ["status"], cases };
  return sketchFlow({
    "initial.a": {
      edges: { next: withDefault ? { ...edge, otherwise: goto("closure.other") } : edge },
      handoff: ["status"],
      schema: loose(["next"]),
    },
    "closure.ready": { edges: { closing: null } },
    "closure.other": { edges: { closing: null } },
  });
}

function jumping(otherwise?: Move): Flow {
  const among = ["initial.a", "closure.b"];
  return sketchFlow({
    "initial.a": {
      edges: { jump: { kind: "jump", field: ["target"], among, ...(otherwise && { otherwise }) } },
      schema: loose(["jump"]),
    },
    "closure.b": { edges: { closing: null } },
  });
}

function forking(): Flow {
  return sketchFlow({
    start: { edges: { go: { kind: "fork", steps: ["a", "b"], join: "end" } } },
    a: { edges: { done: null }, transcript: "fresh" },
    b: { edges: { done: null }, transcript: "fresh" },
    end: { edges: { done: null } },
  });
}

function withoutPrompt(): Flow {
  const flow = sketchFlow({ "initial.a": { edges: { next: null } } });
  const step = flow.steps["initial.a"]!;
  const prompt = { file: null, text: "", tried: ["p/one.md", "p/two.md"], variables: [] };
  return { ...flow, steps: { "initial.a": { ...step, prompt } } };
}

function withoutEdge(): Flow {
  const flow = sketchFlow({ "initial.a": { edges: { next: null } } });
  return { ...flow, steps: { "initial.a": { ...flow.steps["initial.a"]!, edges: {} } } };
}

function goto(step: string) {
  return { kind: "goto" as const, step };
}

function loose(labels: readonly string[]) {
  return { ...actionSchema(labels), additionalProperties: true };
}
