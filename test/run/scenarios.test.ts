/** The scenarios A to Z that every runner of these flows is measured by, with the outcome that holds here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createMemoryJournal,
  createScripted,
  resume,
  run,
  type Backend,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { fakeClock } from "../../src/testing/scenario.ts";
import { agentFiles, projectWith, type StepFile } from "./project.ts";

type More = NonNullable<Parameters<typeof agentFiles>[2]>;
type Scenario = {
  /** Its letter, and what it is about. */
  readonly name: string;
  readonly steps?: { readonly [id: string]: StepFile };
  readonly verdict?: { readonly type: string; readonly config?: object };
  readonly registry?: object;
  readonly runner?: object;
  /** Files besides those that every agent here has. */
  readonly files?: { readonly [path: string]: string };
  readonly script: readonly ScriptReply[];
  /** The run stops before its end, and is resumed with this. */
  readonly resumed?: readonly ScriptReply[];
  /** `completed`, or the code of the failure. */
  readonly ends: string;
  readonly exitCode: number;
  /** `step:label` for each visit. */
  readonly path: readonly string[];
  /** Requests to the model. */
  readonly asks: number;
  readonly waits?: readonly number[];
  /** Results of checks, in order. */
  readonly checks?: readonly boolean[];
  readonly reason?: RegExp;
  /** Why it does not hold yet. */
  readonly todo?: string;
};

// Steps: initial.a → continuation.a (again and again) → closure.a.

const to = (targets: { readonly [intent: string]: string | null }) =>
  Object.fromEntries(Object.entries(targets).map(([intent, target]) => [intent, { target }]));
const INITIAL: StepFile = {
  kind: "work",
  intents: ["next", "repeat"],
  transitions: to({ next: "continuation.a", repeat: "initial.a" }),
};
const CONTINUATION: StepFile = {
  kind: "work",
  intents: ["next", "repeat", "handoff"],
  transitions: to({ next: "continuation.a", repeat: "continuation.a", handoff: "closure.a" }),
};
const CLOSURE: StepFile = {
  kind: "closure",
  intents: ["closing", "repeat"],
  transitions: to({ closing: null, repeat: "closure.a" }),
};
const STEPS = { "initial.a": INITIAL, "continuation.a": CONTINUATION, "closure.a": CLOSURE };

/** Without gate, schema and transitions: whatever is said is the answer. */
const FREE: StepFile = {
  kind: "work",
  intents: [],
  transitions: {},
  more: { structuredGate: undefined, transitions: undefined, outputSchemaRef: undefined },
};
const GATELESS = { "initial.a": FREE, "continuation.a": FREE };

// What the model says.

const says = (stepId: string, action: string, more: Partial<ScriptReply> = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action } },
  ...more,
});
const initial = (action = "next", more: Partial<ScriptReply> = {}) => says("initial.a", action, more);
const going = (action = "next", more: Partial<ScriptReply> = {}) => says("continuation.a", action, more);
const closing = (action = "closing", more: Partial<ScriptReply> = {}) => says("closure.a", action, more);
const LINEAR = [initial(), going("handoff"), closing()];
const LINEAR_PATH = ["initial.a:next", "continuation.a:handoff", "closure.a:closing"];
const free = (step: string, text: string, more: Partial<ScriptReply> = {}): ScriptReply => ({
  step,
  text,
  ...more,
});
const limited = (retryAfterMs?: number): ScriptReply => ({
  error: { kind: "rate-limit", ...(retryAfterMs !== undefined && { retryAfterMs }) },
});
const many = <T>(times: number, item: T): readonly T[] => Array.from({ length: times }, () => item);

// Checks before the end.

const PROOF = {
  type: "command",
  command: "test -f proof || { echo missing; exit 1; }",
  successWhen: "exitCode:0",
  failurePattern: "unproven",
};
const guarded = (key = "closure.a", validator: object = PROOF, maxAttempts = 3) => ({
  validators: { proof: validator },
  failurePatterns: {
    unproven: { description: "No proof", edition: "failed", adaptation: "unproven", params: [] },
  },
  validationSteps: {
    [key]: {
      stepId: key,
      name: "Proof",
      c2: "retry",
      c3: "a",
      validationConditions: [{ validator: "proof" }],
      onFailure: { action: "retry", maxAttempts },
    },
  },
});
const RETRY = { ".agent/a/prompts/steps/retry/a/f_failed_unproven.md": "There is no proof: {{summary}}" };
const unproven: Partial<ScriptReply> = { saw: ["There is no proof: `test -f proof"] };
/** The model is sent back, and hands over again without having done anything. */
const inVain = [going("handoff", unproven), closing()];
const inVainPath = ["continuation.a:handoff", "closure.a:closing"];
const prove: ScriptReply = {
  step: "continuation.a",
  ...unproven,
  calls: [{ name: "Write", input: { file_path: "proof", content: "q.e.d." } }],
};

const scenarios: readonly Scenario[] = [
  {
    name: "A: next, handoff, closing",
    script: LINEAR,
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 3,
  },
  {
    name: "B: count:iteration with gates completes at its number",
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    script: [initial(), going(), going()],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:next", "continuation.a:next"],
    asks: 3,
    reason: /3\/3 iterations: budget reached/,
  },
  {
    name: "B: closing ends it before its number",
    verdict: { type: "count:iteration", config: { maxIterations: 9 } },
    script: LINEAR,
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 3,
  },
  {
    name: "B: while a failed check is being mended, the number is not yet success",
    verdict: { type: "count:iteration", config: { maxIterations: 4 } },
    registry: guarded(),
    files: RETRY,
    script: [...LINEAR, going("handoff", unproven)],
    ends: "AGENT_MAX_ITERATIONS",
    exitCode: 4,
    path: [...LINEAR_PATH, "continuation.a:handoff"],
    asks: 4,
    checks: [false],
  },
  {
    name: "C: count:iteration without gates completes at its number",
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    steps: GATELESS,
    script: [free("initial.a", "one"), free("continuation.a", "two"), free("continuation.a", "three")],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done", "continuation.a:done"],
    asks: 3,
  },
  {
    name: "D: the keyword, letter by letter, ends the run",
    verdict: { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
    steps: GATELESS,
    script: [
      free("initial.a", "not yet"),
      free("continuation.a", "task_complete?"),
      free("continuation.a", "Verified. TASK_COMPLETE"),
    ],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done", "continuation.a:done"],
    asks: 3,
  },
  {
    name: "D: the keyword in a gated flow ends it when an edge would lead on",
    verdict: { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
    script: [initial(), going("next", { text: "Verified. TASK_COMPLETE" })],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:next"],
    asks: 2,
  },
  {
    name: "D: a keyword that never comes ends at the limit",
    verdict: { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE", maxIterations: 2 } },
    steps: GATELESS,
    script: [free("initial.a", "one"), free("continuation.a", "two")],
    ends: "AGENT_MAX_ITERATIONS",
    exitCode: 4,
    path: ["initial.a:done", "continuation.a:done"],
    asks: 2,
  },
  {
    name: "D: closing with passed checks ends the run without the keyword",
    verdict: { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
    script: LINEAR,
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 3,
  },
  {
    name: "E: composite or, by the part that holds first",
    verdict: {
      type: "meta:composite",
      config: {
        operator: "or",
        conditions: [
          { type: "count:iteration", config: { maxIterations: 5 } },
          { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
        ],
      },
    },
    steps: GATELESS,
    script: [free("initial.a", "not yet"), free("continuation.a", "TASK_COMPLETE")],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done"],
    asks: 2,
  },
  {
    name: "E: composite or, by the other part",
    verdict: {
      type: "meta:composite",
      config: {
        operator: "or",
        conditions: [
          { type: "count:iteration", config: { maxIterations: 3 } },
          { type: "detect:keyword", config: { verdictKeyword: "TASK_COMPLETE" } },
        ],
      },
    },
    steps: GATELESS,
    script: [free("initial.a", "one"), free("continuation.a", "two"), free("continuation.a", "three")],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done", "continuation.a:done"],
    asks: 3,
  },
  {
    name: "F: abort from a work step that does not name it",
    script: [initial("abort", { output: { next_action: { action: "abort", reason: "no such issue" } } })],
    ends: "AGENT_ABORTED",
    exitCode: 1,
    path: ["initial.a:abort"],
    asks: 1,
    reason: /no such issue/,
  },
  {
    name: "G: abort from a closure ends in failure, and no check is run",
    registry: guarded(),
    files: RETRY,
    script: [initial(), going("handoff"), closing("abort")],
    ends: "AGENT_ABORTED",
    exitCode: 1,
    path: ["initial.a:next", "continuation.a:handoff", "closure.a:abort"],
    asks: 3,
    checks: [],
  },
  {
    name: "H: repeat leads where its transition says",
    steps: {
      ...STEPS,
      "continuation.a": {
        ...CONTINUATION,
        transitions: to({ next: "continuation.a", repeat: "initial.a", handoff: "closure.a" }),
      },
    },
    script: [initial(), going("repeat"), ...LINEAR],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:repeat", ...LINEAR_PATH],
    asks: 5,
  },
  {
    name: "I: no output on iteration 1 is asked again within the visit, then the entry step is done again",
    script: [
      free("initial.a", "hm"),
      free("initial.a", "hm", { saw: ["Your last answer cannot be used"] }),
      ...LINEAR,
    ],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:null", ...LINEAR_PATH],
    asks: 5,
  },
  {
    name: "J: no output on iteration 2 ends the run",
    script: [initial(), free("continuation.a", "hm"), free("continuation.a", "hm")],
    ends: "FAILED_STEP_ROUTING",
    exitCode: 1,
    path: ["initial.a:next", "continuation.a:null"],
    asks: 3,
    reason: /^\[StepFlow\] No intent produced for iteration 2 on step "continuation\.a"/,
  },
  {
    name: "K: a closure that a command performs succeeds without any reply of a model",
    steps: {
      "closure.a": {
        ...FREE,
        kind: "closure",
        more: { ...FREE.more, runner: { command: "echo", args: ["{}"] } },
      },
    },
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    script: [],
    ends: "completed",
    exitCode: 0,
    path: ["closure.a:done"],
    asks: 0,
  },
  {
    name: "K: one that keeps failing fails the run at the limit",
    steps: {
      "closure.a": { ...FREE, kind: "closure", more: { ...FREE.more, runner: { command: "false" } } },
    },
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    script: [],
    ends: "AGENT_MAX_ITERATIONS",
    exitCode: 4,
    path: many(3, "closure.a:null"),
    asks: 0,
  },
  {
    name: "L: a closure that repeats is asked again",
    script: [initial(), going("handoff"), closing("repeat"), closing()],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:handoff", "closure.a:repeat", "closure.a:closing"],
    asks: 4,
  },
  {
    name: "M: a check that always fails ends the run at the third failure, and each time the model is told",
    registry: guarded(),
    files: RETRY,
    script: [...LINEAR, ...inVain, ...inVain],
    ends: "AGENT_VALIDATION_ABORT",
    exitCode: 6,
    path: [...LINEAR_PATH, ...inVainPath, ...inVainPath],
    asks: 7,
    checks: [false, false, false],
  },
  {
    name: "N: a check that fails twice and passes then",
    registry: guarded(),
    files: RETRY,
    script: [...LINEAR, ...inVain, prove, going("handoff"), closing()],
    ends: "completed",
    exitCode: 0,
    path: [...LINEAR_PATH, ...inVainPath, ...inVainPath],
    asks: 8,
    checks: [false, false, true],
  },
  {
    name: "O: without extractParams and without a failure prompt the failure is told plainly",
    registry: guarded(),
    script: [
      ...LINEAR,
      { ...prove, saw: ['The check "proof" did not pass (unproven).', "missing"] },
      going("handoff"),
      closing(),
    ],
    ends: "completed",
    exitCode: 0,
    path: [...LINEAR_PATH, ...inVainPath],
    asks: 6,
    checks: [false, true],
  },
  {
    name: "P: validationSteps are those of the closure, whatever the verdict type",
    verdict: { type: "count:iteration", config: { maxIterations: 9 } },
    registry: guarded("closure.a"),
    files: RETRY,
    script: [...LINEAR, prove, going("handoff"), closing()],
    ends: "completed",
    exitCode: 0,
    path: [...LINEAR_PATH, ...inVainPath],
    asks: 6,
    checks: [false, true],
  },
  ...["#/definitions/closing", "#/$defs/closing", "closing"].map((pointer): Scenario => ({
    name: `Q: a schema named ${pointer}, flattened, is what the answer is held against`,
    steps: { ...STEPS, "closure.a": { ...CLOSURE, more: schemaAt(pointer) } },
    files: schemaFile(pointer.startsWith("#/$defs") ? "$defs" : "definitions"),
    script: [
      initial(),
      going("handoff"),
      closing("closing", { output: { next_action: { action: "closing" } }, saw: ['"required":["proof"'] }),
      closing("closing", {
        output: { proof: "p", next_action: { action: "closing" } },
        saw: ["required property 'proof'"],
      }),
    ],
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 4,
  })),
  {
    name: "Q: a schema pointer that leads nowhere is found before anything runs",
    steps: { ...STEPS, "closure.a": { ...CLOSURE, more: schemaAt("#/definitions/nothing") } },
    files: schemaFile("definitions"),
    script: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    path: [],
    asks: 0,
  },
  {
    name: "R: rate limits are waited out without an iteration; successes between them count anew",
    verdict: { type: "detect:graph", config: { maxIterations: 5 } },
    script: [
      limited(7),
      initial(),
      limited(),
      going(),
      limited(),
      limited(9),
      going(),
      limited(),
      going("handoff"),
      closing(),
    ],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:next", "continuation.a:next", ...LINEAR_PATH.slice(1)],
    asks: 10,
    waits: [7, 5000, 5000, 9, 5000],
  },
  {
    name: "R: the fifth in a row stops the run, which can be resumed",
    script: [initial(), ...many(5, limited())],
    resumed: LINEAR.slice(1),
    ends: "AGENT_RATE_LIMIT",
    exitCode: 3,
    path: LINEAR_PATH,
    asks: 8,
    waits: [5000, 10_000, 20_000, 40_000],
  },
  {
    name: "S: an error that was recovered from does not fail the run",
    script: [
      { error: { kind: "network" } },
      ...LINEAR.slice(0, 2),
      { error: { kind: "overloaded" } },
      closing(),
    ],
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 5,
    waits: [5000, 5000],
  },
  {
    name: "S: an error that waiting does not help against stops the run, which can be resumed",
    script: [initial(), { error: { kind: "other", message: "the service is odd" } }],
    resumed: LINEAR.slice(1),
    ends: "AGENT_QUERY_ERROR",
    exitCode: 1,
    path: LINEAR_PATH,
    asks: 4,
    reason: /the service is odd/,
  },
  {
    name: "T: count:check completes at its number of visits, below the limit",
    verdict: { type: "count:check", config: { maxChecks: 15 } },
    steps: GATELESS,
    script: [free("initial.a", "1"), ...many(14, free("continuation.a", "more"))],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", ...many(14, "continuation.a:done")],
    asks: 15,
  },
  {
    name: "T: in a flow with a closure, only its visits count",
    verdict: { type: "count:check", config: { maxChecks: 2 } },
    script: [initial(), going(), going("handoff"), closing("repeat"), closing("repeat")],
    ends: "completed",
    exitCode: 0,
    path: [
      "initial.a:next",
      "continuation.a:next",
      "continuation.a:handoff",
      "closure.a:repeat",
      "closure.a:repeat",
    ],
    asks: 5,
  },
  {
    name: "U: count:check above the written limit fails there",
    verdict: { type: "count:check", config: { maxChecks: 15, maxIterations: 4 } },
    script: [initial(), ...many(3, going())],
    ends: "AGENT_MAX_ITERATIONS",
    exitCode: 4,
    path: ["initial.a:next", ...many(3, "continuation.a:next")],
    asks: 4,
  },
  {
    name: "V: allowedTools * allows every tool of the kind",
    runner: { boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" } },
    script: [
      { step: "initial.a", calls: [{ name: "Write", input: { file_path: "a.txt", content: "hi" } }] },
      { step: "initial.a", calls: [{ name: "Bash", input: { command: "cat a.txt" } }], unseen: ["denied"] },
      initial("next", { saw: ["hi"] }),
      ...LINEAR.slice(1),
    ],
    ends: "completed",
    exitCode: 0,
    path: LINEAR_PATH,
    asks: 5,
  },
  {
    name: "W: an alias in a closure means what it means everywhere",
    script: [...LINEAR.slice(0, 2), closing("wait"), closing("done")],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:next", "continuation.a:handoff", "closure.a:repeat", "closure.a:closing"],
    asks: 4,
  },
  {
    name: "X: detect:graph begins where entryStepMapping says and ends at the terminal",
    registry: { entryStep: undefined, entryStepMapping: { "detect:graph": "continuation.a" } },
    script: [going("next"), going("handoff"), closing()],
    ends: "completed",
    exitCode: 0,
    path: ["continuation.a:next", ...LINEAR_PATH.slice(1)],
    asks: 3,
  },
  {
    name: "X: detect:graph without a gate cannot end, and is refused",
    steps: GATELESS,
    script: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    path: [],
    asks: 0,
  },
  {
    name: "Y: a fenced block of the signal's type, with its fields, ends the run",
    verdict: {
      type: "detect:structured",
      config: { signalType: "review-done", requiredFields: { verdict: "approved" } },
    },
    steps: GATELESS,
    script: [
      free("initial.a", 'Looking.\n```json\n{"verdict":"approved"}\n```'),
      free("continuation.a", '```review-done\n{"verdict":"rejected"}\n```'),
      free("continuation.a", 'So:\n```review-done\n{"verdict":"approved","by":"me"}\n```\nBye.'),
    ],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done", "continuation.a:done"],
    asks: 3,
  },
  {
    name: "Z: a gate-less run says its initial prompt once and its continuation from then on",
    verdict: { type: "count:iteration", config: { maxIterations: 3 } },
    steps: GATELESS,
    script: [
      free("initial.a", "one", { saw: ["Do initial.a."], unseen: ["Do continuation.a."] }),
      free("continuation.a", "two", { saw: ["Do continuation.a."] }),
      free("continuation.a", "three", { saw: ["re:Do continuation[^]*two[^]*Do continuation"] }),
    ],
    ends: "completed",
    exitCode: 0,
    path: ["initial.a:done", "continuation.a:done", "continuation.a:done"],
    asks: 3,
  },
];

for (const scenario of scenarios) {
  const { name, ends, exitCode, path, asks, waits = [], checks, reason, resumed, todo } = scenario;
  test(name, { todo: todo ?? false }, async () => {
    const slept: number[] = [];
    const model = counted(scenario.script);
    const world = {
      cwd: projectWith(filesOf(scenario)),
      journal: createMemoryJournal(),
      clock: fakeClock(slept),
      env: { ...process.env, LOCKSTEP_TRUST: "all" },
    };
    const result = await run({ agent: "a", ...world, backend: model.backend });
    const told = JSON.stringify([result.reason, result.path, result.problems.map(({ message }) => message)]);
    assert.deepEqual([result.code ?? result.outcome, result.exitCode], [ends, exitCode], told);
    if (reason !== undefined) assert.match(result.reason, reason);
    assert.deepEqual(slept, waits);
    assert.deepEqual(model.backend.leftovers?.(), []);
    if (resumed === undefined) {
      assert.deepEqual(pathOf(result), path);
      assert.equal(model.asked(), asks, told);
      if (checks !== undefined)
        assert.deepEqual(
          result.checks.map(({ ok }) => ok),
          checks,
        );
      return;
    }
    assert.equal(result.resumable, true);
    const rest = counted(resumed);
    const whole = await resume({ run: "@last", ...world, backend: rest.backend });
    assert.deepEqual([whole.outcome, whole.exitCode, whole.success], ["completed", 0, true], whole.reason);
    assert.deepEqual(pathOf(whole), path);
    assert.equal(model.asked() + rest.asked(), asks);
  });
}

test("there is a scenario for every letter", () => {
  const letters = new Set(scenarios.map(({ name }) => name[0]));
  assert.equal([...letters].join(""), "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
});

function filesOf({ steps = STEPS, verdict, registry, runner, files }: Scenario) {
  const more: More = {
    runner: {
      ...(verdict !== undefined && { verdict: { config: {}, ...verdict } }),
      ...runner,
    },
    ...(registry !== undefined && { registry }),
  };
  return { ...agentFiles("a", steps, more), ...files };
}

function counted(script: readonly ScriptReply[]): {
  readonly backend: Backend;
  readonly asked: () => number;
} {
  let asked = 0;
  const scripted = createScripted(script);
  const backend: Backend = {
    ...scripted,
    turn: async (request) => {
      asked += 1;
      return await scripted.turn!(request);
    },
  };
  return { backend, asked: () => asked };
}

function pathOf({ path }: Result): readonly string[] {
  return path.map(({ step, label }) => `${step}:${label}`);
}

function schemaAt(pointer: string): object {
  return { outputSchemaRef: { file: "own.schema.json", schema: pointer } };
}

/** A schema that is put together from a base by `allOf` and `$ref`. */
function schemaFile(place: string): { readonly [path: string]: string } {
  const action = { type: "string", enum: ["closing", "repeat"] };
  const base = { type: "object", required: ["proof"], properties: { proof: { type: "string" } } };
  const whole = {
    allOf: [{ $ref: `#/${place}/base` }],
    required: ["next_action"],
    properties: {
      stepId: { type: "string" },
      next_action: { type: "object", required: ["action"], properties: { action } },
    },
  };
  return { ".agent/a/schemas/own.schema.json": JSON.stringify({ [place]: { base, closing: whole } }) };
}
