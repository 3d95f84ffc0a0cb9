/** Flows with a script each, one of every kind: what survives a crash is tried on them. */
import type { Toolbox } from "../../src/engine/ports.ts";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import {
  actionSchema,
  sketchCheck,
  sketchFlow,
  sketchMachine,
  sketchPrompt,
} from "../../src/testing/flows.ts";
import type { Scenario } from "../../src/testing/scenario.ts";

const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const loose = (labels: readonly string[]) => ({ ...actionSchema(labels), additionalProperties: true });
const END = { kind: "end", outcome: "completed" } as const;
/** A box with one tool. */
const READER: Toolbox = {
  offer: () => [{ name: "Read", description: "", input: {} }],
  judge: () => null,
  call: () => Promise.reject(new Error("a stage calls as a stage")),
  callGranted: (_step, batch) =>
    Promise.resolve({
      kind: "results",
      results: batch.map(({ id, name }) => ({ id, name, ok: true, content: `${name} done` })),
    }),
};
/** A box whose every call a person has to approve. */
const ASKING: Toolbox = {
  ...READER,
  offer: () => [{ name: "Write", description: "", input: {} }],
  wish: (step, batch, { ruled }) => {
    const call = batch.findIndex((_, index) => !ruled.some((ruling) => ruling.call === index));
    const text = `${step.id} ${call}?`;
    return call === -1 ? null : { about: "permission", text, choices: ["allow", "deny"], call };
  },
  call: (_step, batch, _signal, approved) =>
    Promise.resolve(
      batch.map(({ id, name }, index) => {
        const { answer = "nothing" } = approved?.ruled.find(({ call }) => call === index) ?? {};
        return { id, name, ok: true, content: `it was ${answer}` };
      }),
    ),
};
const ANSWERING = {
  ask: ({ text: asked }: { readonly text: string }) =>
    Promise.resolve({ answer: asked.includes("1?") ? "deny" : "allow", by: "terminal" as const }),
  isReachable: true,
  absent: "halt" as const,
};
const goto = (step: string) => ({ kind: "goto" as const, step });

export const scenarios: { readonly [name: string]: Scenario } = {
  "a linear flow with handoff and repairs": {
    flow: sketchFlow({
      "initial.a": { edges: { next: "continuation.a" }, handoff: ["found"], schema: loose(["next"]) },
      "continuation.a": { edges: { repeat: "continuation.a", handoff: "closure.a" } },
      "closure.a": { edges: { closing: null } },
    }),
    model: [say("next", { found: 1 }), say("repeat"), { text: "hm" }, say("handoff"), say("closing")],
  },
  "checks that fail twice": {
    flow: sketchFlow(
      {
        "initial.a": { edges: { handoff: "closure.a" } },
        "closure.a": {
          edges: { closing: null },
          guard: {
            on: "closing",
            checks: [
              { check: "one", edition: sketchPrompt("one failed: {{summary}}") },
              { check: "two", edition: sketchPrompt("two failed") },
            ],
            onFailure: "retry",
            maxFailures: 5,
            back: { kind: "caller" },
          },
        },
      },
      { checks: { one: sketchCheck("one", "true"), two: sketchCheck("two", "true") } },
    ),
    model: [
      say("handoff"),
      say("closing"),
      { ...say("handoff"), saw: ["one failed: broken"] },
      say("closing"),
      { ...say("handoff"), saw: ["two failed"] },
      say("closing"),
    ],
    checks: [[{ ok: false, params: { summary: "broken" } }], [{}, { ok: false }]],
  },
  "tools, waits and a completion channel": {
    flow: sketchFlow({
      plan: { edges: { ok: "build" }, tool: "submit", transcript: "fresh" },
      build: { edges: { ok: null }, tool: "submit", transcript: "fresh" },
    }),
    model: [
      { calls: [{ name: "Read", input: {} }] },
      { error: { kind: "rate-limit", retryAfterMs: 5 } },
      { text: "done" },
      say("ok"),
      {
        calls: [
          { name: "Write", input: {} },
          { name: "Read", input: {} },
        ],
      },
      { ...say("ok"), saw: ["Write done"] },
    ],
  },
  "branches, a jump and an abort": {
    flow: sketchFlow({
      "initial.a": {
        edges: {
          next: {
            kind: "switch",
            on: ["status"],
            cases: { on: goto("initial.b") },
            otherwise: goto("initial.a"),
          },
        },
        handoff: ["status"],
        schema: loose(["next"]),
      },
      "initial.b": {
        edges: { jump: { kind: "jump", field: ["to"], among: ["initial.a", "initial.b"] } },
        schema: loose(["jump"]),
      },
    }),
    model: [
      say("next", { status: "off" }),
      say("next", { status: "on" }),
      say("jump", { to: "initial.b" }),
      say("jump", { to: "initial.a" }),
      say("abort"),
    ],
  },
  "looks outside, and checks before the end that they find": {
    flow: sketchFlow(
      { "initial.a": { edges: { next: "initial.b" } }, "initial.b": { edges: { next: "initial.a" } } },
      {
        stop: {
          kind: "any",
          of: [
            { kind: "state", resource: { kind: "file", path: "out", want: { kind: "exists" } } },
            { kind: "keyword", text: "ALL_DONE" },
          ],
        },
        checks: { one: sketchCheck("one", "true") },
        stopGuard: {
          checks: [{ check: "one", edition: sketchPrompt("one failed") }],
          onFailure: "retry",
          maxFailures: 3,
          back: { kind: "onward" },
        },
      },
    ),
    model: [
      say("next"),
      { ...say("next"), text: "ALL_DONE" },
      { ...say("next"), saw: ["one failed"] },
      { ...say("next"), saw: ["one failed"] },
    ],
    sights: [false, true, true],
    checks: [[{ ok: false }], [{ ok: false }]],
  },
  "people who approve tools": {
    flow: sketchFlow({
      "initial.a": { edges: { next: "closure.a" }, tools: ["Write"] },
      "closure.a": { edges: { closing: null } },
    }),
    model: [
      {
        calls: [
          { name: "Write", input: {} },
          { name: "Write", input: {} },
        ],
      },
      { ...say("next"), saw: ["it was allow", "it was deny"] },
      { calls: [{ name: "Write", input: {} }] },
      say("closing"),
    ],
    ports: { toolbox: ASKING, person: ANSWERING },
  },
  "people who are not there": {
    flow: sketchFlow({
      start: { edges: { go: { kind: "fork", steps: ["a", "b", "c"], join: "end" } } },
      a: { edges: { done: null }, transcript: "fresh", tools: ["Write"] },
      b: { edges: { done: null }, transcript: "fresh" },
      c: { edges: { done: null }, transcript: "fresh", tools: ["Write"] },
      end: { edges: { done: null } },
    }),
    model: [
      { ...say("go"), step: "start" },
      { calls: [{ name: "Write", input: {} }], step: "a" },
      { ...say("done"), step: "b" },
      { calls: [{ name: "Write", input: {} }], step: "c" },
    ],
    ports: { toolbox: ASKING, person: { ...ANSWERING, ask: () => Promise.resolve(null) } },
  },
  "a fork with a join": {
    flow: sketchFlow({
      start: { edges: { go: { kind: "fork", steps: ["a", "b", "c"], join: "end" } } },
      a: { edges: { done: null, again: "a" }, transcript: "fresh" },
      b: { edges: { done: null }, transcript: "fresh" },
      c: { edges: { done: null }, transcript: "fresh" },
      end: { edges: { done: null } },
    }),
    model: [
      { ...say("go"), step: "start" },
      { ...say("again"), step: "a" },
      { ...say("done"), step: "a" },
      { ...say("done"), step: "b" },
      { ...say("done"), step: "c" },
      { ...say("done"), step: "end" },
    ],
  },
  "a machine of stages: gate, tools, a bad payload, a cap, a failing assert and a repair edge": {
    flow: sketchMachine(
      {
        plan: {
          tools: ["Read"],
          next: "build",
          rules: { gate: "ready", unresolved: "retry-later", backoff: "linear" },
        },
        build: {
          prompt: "{{ctx.upstream[0].stageId}}",
          assert: ["tests"],
          attempts: 3,
          turns: 2,
          next: "review",
          rules: { backoff: "exponential" },
        },
        review: {
          schema: { type: "object", required: ["approved"], properties: { approved: { type: "boolean" } } },
          next: {
            kind: "switch",
            on: ["parsed", "approved"],
            cases: { true: END },
            otherwise: goto("build"),
          },
        },
      },
      { checks: { ready: sketchCheck("ready", "true"), tests: sketchCheck("tests", "true") } },
    ),
    checks: [[{ ok: false }], [{}], [{ ok: false, summary: "red" }], [{}], [{}]],
    model: [
      { calls: [{ name: "Read", input: {} }] },
      { output: {} },
      { text: "hm" },
      { text: "hm" },
      { output: {}, saw: ["Complete the stage now."] },
      { output: {}, saw: ["red"] },
      { output: { approved: "maybe" } },
      { output: { approved: false }, saw: ["does not fit its schema"] },
      { output: {}, saw: ["review"] },
      { output: { approved: true } },
    ],
    ports: { toolbox: READER },
  },
  "a fan-out of stages, with retries and tools on either side": {
    flow: sketchMachine({
      split: { next: { kind: "fork", steps: ["a", "b", "c"], join: "meet" } },
      a: { tools: ["Read"], turns: 2 },
      b: { schema: { type: "object", required: ["n"] }, turns: 3 },
      c: {},
      meet: {
        prompt: "{{ctx.upstream[0].stageId}} {{ctx.upstream[1].parsed.n}} {{ctx.upstream[2].stageId}}",
      },
    }),
    model: [
      { step: "split", output: {} },
      { step: "a", calls: [{ name: "Read", input: {} }] },
      { step: "a", text: "hm" },
      { step: "a", output: {}, saw: ["Complete the stage now."] },
      { step: "b", output: {} },
      { step: "b", output: { n: 7 } },
      { step: "c", output: {} },
      { step: "meet", saw: ["a 7 c"], output: {} },
    ],
    ports: { toolbox: READER },
  },
};
