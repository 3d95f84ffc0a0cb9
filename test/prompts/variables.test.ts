/** Where the values in a prompt come from, and what is said when one is not there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flow, Prompt, StopRule } from "../../src/flow/flow.ts";
import type { Json, JsonObject } from "../../src/flow/json.ts";
import type { Composed, Scene } from "../../src/flow/scene.ts";
import { composer } from "../../src/prompts/compose.ts";
import { sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import { play } from "../engine/played.ts";

const PARAMETER = {
  name: "issue",
  type: "number",
  description: "",
  flag: "--issue",
  required: true,
} as const;

type Sketch = Partial<Omit<Flow, "steps">> & {
  readonly prompt: string;
  readonly variables?: readonly string[];
  readonly config?: JsonObject;
};

function flowWith({ prompt, variables = [], config = {}, ...more }: Sketch): Flow {
  const flow = sketchFlow(
    { "initial.a": { prompt, variables, edges: { next: "initial.a" }, free: true } },
    { parameters: [PARAMETER], ...more },
  );
  const need = { variable: "plan", from: { step: "initial.b", key: "plan" }, required: true };
  const step = { ...flow.steps["initial.a"]!, needs: [need] };
  const verdict = { ...flow.settings.verdict, config };
  return { ...flow, steps: { "initial.a": step }, settings: { ...flow.settings, verdict } };
}

/** An input by what the step handed on, its default, and whether it is required. */
const INPUTS: readonly [
  handed: Json | undefined,
  fallback: Json | undefined,
  required: boolean,
  gets: string | null,
][] = [
  ["handed on", "the default", true, "handed on"],
  ["handed on", undefined, false, "handed on"],
  [0, 7, true, "0"],
  [false, true, false, "false"],
  [undefined, "the default", true, "the default"],
  [undefined, 0, false, "0"],
  [undefined, undefined, false, ""],
  [undefined, undefined, true, null],
];
for (const [handed, fallback, required, gets] of INPUTS) {
  test(`an input with ${JSON.stringify({ handed, fallback, required })} gives ${JSON.stringify(gets)}`, () => {
    const flow = flowWith({ prompt: "[{uv-plan}]", variables: required ? ["plan"] : [] });
    const need = {
      variable: "plan",
      from: { step: "initial.b", key: "plan" },
      required,
      ...(fallback !== undefined && { default: fallback }),
    };
    const step = { ...flow.steps["initial.a"]!, needs: [need] };
    const handoff = handed === undefined ? {} : { "initial.b": { plan: handed } };
    const said = composer.say(flow, step, { kind: "prompt" }, { ...SCENE, handoff });
    assert.equal("text" in said ? said.text : null, gets === null ? null : `[${gets}]`);
  });
}

const SCENE: Scene = { args: {}, input: "", iterations: 1, visits: {}, handoff: {}, last: null };

function say(sketch: Sketch, scene: Partial<Scene> = {}): Composed {
  const flow = flowWith(sketch);
  return composer.say(flow, flow.steps["initial.a"]!, { kind: "prompt" }, { ...SCENE, ...scene });
}

/** A declared variable without a value, by channel, and who is named as the one that ought to supply it. */
const MISSING: readonly [channel: string, variable: string, scene: Partial<Scene>, why: RegExp][] = [
  [
    "1, a parameter not given",
    "issue",
    {},
    /declares \{uv-issue\}, but parameter "issue" has no value: give it with --issue/,
  ],
  [
    "1, a parameter given empty",
    "issue",
    { args: { issue: "" } },
    /parameter "issue" has no value: give it with --issue/,
  ],
  ["1, a parameter given null", "issue", { args: { issue: null } }, /parameter "issue" has no value/],
  [
    "2, of the run, before there is one",
    "completed_iterations",
    {},
    /the run has no "completed_iterations" at this point/,
  ],
  [
    "2, a keyword that the verdict has not",
    "completion_keyword",
    {},
    /the run has no "completion_keyword" at this point/,
  ],
  ["3, of the verdict", "max_checks", {}, /the run has no "max_checks" at this point/],
  ["4, a step that did not run", "plan", {}, /step "initial\.b" has handed on no "plan": let it run first/],
  [
    "4, a step that handed on nothing",
    "plan",
    { handoff: { "initial.b": { plan: "" } } },
    /step "initial\.b" has handed on no "plan"/,
  ],
  ["none at all", "isue", {}, /nothing supplies "isue": declare it as a parameter, or as an input/],
  [
    "stdin",
    "input_text",
    {},
    /step "initial\.a" needs the text of stdin, but nothing was piped in: .* --input/,
  ],
];
for (const [channel, variable, scene, why] of MISSING) {
  test(`a declared variable without a value names its channel: ${channel}`, () => {
    const composed = say({ prompt: "x", variables: [variable] }, scene);
    assert.equal(composed.kind, "unaskable");
    assert.equal(composed.code, "PR-RESOLVE-003");
    assert.match(composed.why, /step "initial\.a"/);
    assert.match(composed.why, why);
  });
}

test("a placeholder without a value names its channel too, and its file", () => {
  const composed = say({ prompt: "{uv-plan}" });
  assert.equal(composed.kind === "unaskable" && composed.code, "PR-RESOLVE-005");
  assert.match(
    composed.kind === "unaskable" ? composed.why : "",
    /^inline\.md of step "initial\.a" reads \{uv-plan\}/,
  );
});

const visits = (count: number): StopRule => ({ kind: "visits", count });
const COMPOSITE: StopRule = {
  kind: "any",
  of: [
    { kind: "keyword", text: "OVER" },
    { kind: "checks", count: 9 },
  ],
};
const LAST = {
  step: "initial.a",
  iteration: 4,
  label: "next",
  reason: "it is clear",
  text: "x".repeat(1500),
  payload: { status: "in progress", next_action: { action: "next" } },
};

const VALUES: readonly [
  name: string,
  sketch: Omit<Sketch, "prompt">,
  scene: Partial<Scene>,
  value: string,
][] = [
  ["issue", {}, { args: { issue: 7 } }, "7"],
  ["issue", {}, { args: { issue: ["a", { b: 1 }] } }, '["a",{"b":1}]'],
  ["plan", {}, { handoff: { "initial.b": { plan: { steps: [1] } } } }, '{"steps":[1]}'],
  ["initial_b_plan", {}, { handoff: { "initial.b": { plan: "p" } } }, "p"],
  ["input_text", {}, { input: "piped" }, "piped"],
  ["iteration", {}, { iterations: 3 }, "3"],
  ["completed_iterations", {}, { iterations: 3 }, "2"],
  ["completion_keyword", { stop: { kind: "keyword", text: "DONE" } }, {}, "DONE"],
  ["completion_keyword", { stop: COMPOSITE }, {}, "OVER"],
  ["max_iterations", { limits: { visits: 20 } }, {}, "20"],
  ["max_iterations", { limits: { visits: 20 }, stop: visits(5) }, {}, "5"],
  [
    "max_iterations",
    { limits: { visits: 20 }, stop: { kind: "any", of: [{ kind: "end" }, visits(5)] } },
    {},
    "5",
  ],
  ["remaining", { limits: { visits: 20 } }, { iterations: 3 }, "17"],
  ["remaining", { limits: { visits: 20 }, stop: visits(5) }, { iterations: 3 }, "2"],
  ["remaining", { limits: { visits: 20 }, stop: visits(5) }, { iterations: 8 }, "0"],
  ["max_checks", { stop: { kind: "checks", count: 4 } }, {}, "4"],
  ["max_checks", { stop: COMPOSITE }, {}, "9"],
  ["check_count", {}, { iterations: 8, visits: { "initial.a": 8 } }, "8"],
  ["previous_summary", {}, {}, ""],
  [
    "previous_summary",
    {},
    { last: LAST },
    `### Iteration 4: initial.a\n\nStatus: in progress\nDecided: next (it is clear)\n\n${"x".repeat(1000)}`,
  ],
  [
    "previous_summary",
    {},
    { last: { ...LAST, reason: "", text: "", payload: { status: 3 } } },
    "### Iteration 4: initial.a\n\nDecided: next",
  ],
  ["label_done", { constants: { label_done: "done" } }, {}, "done"],
];
for (const [name, sketch, scene, value] of VALUES) {
  test(`{uv-${name}} of ${JSON.stringify({ ...sketch, ...scene }).slice(0, 80)} is ${JSON.stringify(value).slice(0, 40)}`, () => {
    const composed = say({ ...sketch, prompt: `<{uv-${name}}>`, variables: [name] }, scene);
    assert.deepEqual(composed, { kind: "text", text: `<${value}>` });
  });
}

test("the channels are asked in order: a parameter wins over all others", () => {
  const flow = {
    prompt: "{uv-plan} {uv-iteration} {uv-section_x}",
    constants: { plan: "constant" },
    sections: { section_x: sketchPrompt("section") },
  };
  const args: { readonly [name: string]: Json } = { plan: "p", iteration: "i", section_x: "s" };
  const handoff = { "initial.b": { plan: "handed on" } };
  assert.deepEqual(say(flow, { args, handoff }), { kind: "text", text: "p i s" });
  assert.deepEqual(say(flow, { handoff }), { kind: "text", text: "handed on 1 section" });
});

const section = (words: string): { readonly sections: { readonly [name: string]: Prompt } } => ({
  sections: { section_context: sketchPrompt(words) },
});

test("a section is rendered with the values of the step, once, and is then a value", () => {
  const sketch = { prompt: "A {uv-section_context} B", ...section("issue {uv-issue}, {input_text}") };
  assert.deepEqual(
    say(sketch, { args: { issue: "{uv-plan} {uv-section_context}" }, input: "{uv-issue} $&" }),
    {
      kind: "text",
      text: "A issue {uv-plan} {uv-section_context}, {uv-issue} $& B",
    },
  );
});

test("a section that reads what is not there names itself and the channel", () => {
  const composed = say({ prompt: "{uv-section_context}", ...section("{uv-issue}") });
  assert.equal(composed.kind === "unaskable" && composed.code, "PR-RESOLVE-005");
  assert.match(
    composed.kind === "unaskable" ? composed.why : "",
    /step "initial\.a" takes in inline\.md, which reads \{uv-issue\}, but parameter "issue" has no value/,
  );
});

test("a section cannot take in itself or another", () => {
  const composed = say({ prompt: "{uv-section_context}", ...section("{uv-section_context}") });
  assert.match(composed.kind === "unaskable" ? composed.why : "", /nothing supplies "section_context"/);
});

test("a declared section that is empty is no value", () => {
  const sketch = { variables: ["section_context"], prompt: "{uv-section_context}", ...section("") };
  assert.equal(say(sketch).kind, "unaskable");
});

test("check_count counts what verifies or closes, from the run itself", async () => {
  const prompt = "Checks so far: {uv-check_count}, iteration {uv-iteration}.";
  const flow = sketchFlow({
    "initial.a": { prompt, edges: { next: "verification.a" } },
    "verification.a": { kind: "verify", prompt, edges: { next: "initial.a", repeat: "closure.a" } },
    "closure.a": { prompt, edges: { closing: null } },
  });
  const answer = (action: string) => ({ output: { next_action: { action } } });
  const { state } = await play({
    flow,
    model: [
      { saw: ["Checks so far: 0, iteration 1."], ...answer("next") },
      { saw: ["Checks so far: 1, iteration 2."], ...answer("next") },
      { saw: ["Checks so far: 1, iteration 3."], ...answer("next") },
      { saw: ["Checks so far: 2, iteration 4."], ...answer("repeat") },
      { saw: ["Checks so far: 3, iteration 5."], ...answer("closing") },
    ],
  });
  assert.equal(state.verdict?.outcome, "completed");
});
