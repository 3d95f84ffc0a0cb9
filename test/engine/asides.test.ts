/** Questions about a step's work (asides) and edges that may be taken so often (times). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import type { Flow, Move, Step } from "../../src/flow/flow.ts";
import { sketchFlow } from "../../src/testing/flows.ts";
import { play } from "./played.ts";

const goto = (step: string, as: string): Move => ({ kind: "goto", step, as });
const exhausted: Move = {
  kind: "end",
  outcome: "failed",
  code: "RETRIES_EXHAUSTED",
  reason: "no retries left",
};

/** analyse (retry twice) → build (back to analyse) → done; each with a question about its work. */
const flow: Flow = withQuestions(
  {
    analyse: {
      pass: goto("build", "next"),
      fail: { kind: "times", max: 2, move: goto("analyse", "retry"), after: exhausted },
    },
    build: { pass: { kind: "end", outcome: "completed", as: "complete" }, fail: goto("analyse", "fallback") },
  },
  100,
);

function withQuestions(
  steps: { readonly [id: string]: { readonly pass: Move; readonly fail: Move } },
  visits: number,
): Flow {
  const sketch = sketchFlow(
    Object.fromEntries(
      Object.keys(steps).map((id) => [id, { free: true as const, edges: { done: `${id}#check` } }]),
    ),
    { limits: { visits } },
  );
  const all: { [id: string]: Step } = { ...sketch.steps };
  for (const [id, { pass, fail }] of Object.entries(steps)) {
    all[`${id}#check`] = {
      ...sketch.steps[id]!,
      id: `${id}#check`,
      kind: "verify",
      aside: id,
      answer: {
        kind: "object",
        schema: { kind: "any" },
        channel: { kind: "output" },
        repairs: 0,
        miss: { kind: "label", label: "fail" },
      },
      decide: {
        by: "field",
        path: ["result"],
        alias: { ok: "pass", true: "pass", ng: "fail", false: "fail" },
        allow: ["pass", "fail"],
        always: [],
        fallback: "fail",
      },
      edges: { pass, fail },
    };
  }
  return { ...sketch, steps: all };
}

const work: ScriptReply = { text: "worked" };
const found = (result: unknown, message = "m"): ScriptReply => ({
  output: { result: result as string, message },
});

const rows: readonly [
  name: string,
  model: readonly ScriptReply[],
  outcome: string,
  path: string,
  iterations: number,
][] = [
  ["all found good", [work, found("ok"), work, found("pass")], "completed", "analyse:next build:complete", 2],
  [
    "true counts as good",
    [work, found(true), work, found(true)],
    "completed",
    "analyse:next build:complete",
    2,
  ],
  [
    "retried, then good",
    [work, found("ng"), work, found(false), work, found("ok"), work, found("ok")],
    "completed",
    "analyse:retry analyse:retry analyse:next build:complete",
    4,
  ],
  [
    "retries used up",
    [work, found("ng"), work, found("ng"), work, found("ng")],
    "RETRIES_EXHAUSTED",
    "analyse:retry analyse:retry analyse:fail",
    3,
  ],
  [
    "a step entered from another one counts its retries anew",
    [
      work,
      found("ng"),
      work,
      found("ng"),
      work,
      found("ok"),
      work,
      found("ng"),
      work,
      found("ng"),
      work,
      found("ok"),
      work,
      found("ok"),
    ],
    "completed",
    "analyse:retry analyse:retry analyse:next build:fallback analyse:retry analyse:next build:complete",
    7,
  ],
  [
    "an unreadable finding is a bad one",
    [work, { text: "looks fine" }, work, found("ok"), work, found("ok")],
    "completed",
    "analyse:retry analyse:next build:complete",
    3,
  ],
  [
    "an unknown word is a bad one",
    [work, found("maybe"), work, found("ok"), work, found("ok")],
    "completed",
    "analyse:retry analyse:next build:complete",
    3,
  ],
];
for (const [name, model, outcome, path, iterations] of rows) {
  test(name, async () => {
    const { state, entries } = await play({ flow, model });
    const told = entries
      .flatMap(({ led }) => (led === undefined ? [] : [`${led.step}:${led.label}`]))
      .join(" ");
    assert.deepEqual(
      [state.verdict?.code ?? state.verdict?.outcome, told, state.iterations],
      [outcome, path, iterations],
    );
  });
}

test("what was found is told with the decision, and the run ends at the step itself", async () => {
  const { state, entries } = await play({
    flow,
    model: [work, found("ng", "two tests fail"), work, found("ok"), work, found("ok", "all green")],
  });
  const checks = entries.flatMap(({ led }) => (led?.check === undefined ? [] : [led.check]));
  assert.deepEqual(checks, [
    { label: "fail", message: "two tests fail" },
    { label: "pass", message: "m" },
    { label: "pass", message: "all green" },
  ]);
  assert.equal(state.verdict?.step, "build");
});

test("every cut of such a run resumes to the same end", async () => {
  const model = [
    work,
    found("ng"),
    work,
    found("ok"),
    work,
    found("ng"),
    work,
    found("ok"),
    work,
    found("ok"),
  ];
  const whole = await play({ flow, model });
  for (let cut = 1; cut < whole.entries.length; cut++) {
    const resumed = await play({ flow, model, past: whole.entries.slice(0, cut) });
    assert.deepEqual(
      [resumed.state.verdict, resumed.state.iterations],
      [whole.state.verdict, whole.state.iterations],
      `cut ${cut}`,
    );
  }
});

test("the ceiling counts visits, not questions", async () => {
  const model = Array.from({ length: 40 }, (_, at) =>
    at % 2 === 0 ? work : found(at % 4 === 1 ? "ok" : "ng"),
  );
  const { state } = await play({ flow: { ...flow, limits: { visits: 5 } }, model });
  assert.deepEqual([state.verdict?.code, state.iterations], ["AGENT_MAX_ITERATIONS", 5]);
});
