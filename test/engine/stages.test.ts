/** The life of a stage, in the pure heart: a machine, a script, what its code says, and what comes of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptReply } from "../../src/backends/scripted/script.ts";
import type { Hooks, Toolbox } from "../../src/engine/ports.ts";
import type { HookResult } from "../../src/flow/event.ts";
import type { Flow, Move } from "../../src/flow/flow.ts";
import type { Json, JsonObject } from "../../src/flow/json.ts";
import { sketchCheck, sketchMachine, type StageSketch } from "../../src/testing/flows.ts";
import { play, type Played, type Scenario } from "./played.ts";

const done = (payload: JsonObject = {}, step?: string): ScriptReply => ({
  output: payload,
  ...(step !== undefined && { step }),
});
const calls = (...names: readonly string[]): ScriptReply => ({
  calls: names.map((name) => ({ name, input: {} })),
});
const prose: ScriptReply = { text: "Let me think." };
const NEEDS_A = { type: "object", required: ["a"], properties: { a: { type: "number" } } } as const;
const fork = (join: string | null, policy?: "independent"): Move => ({
  kind: "fork",
  steps: ["a", "b"],
  join,
  ...(policy !== undefined && { policy }),
});

type Said = (path: string, args: readonly Json[]) => Json | undefined | HookResult;

/** Code of a project that answers from a function; what it does not answer it does not have. */
function hooksOf(said: Said): Hooks {
  return {
    call: (path, args, _signal, how) => {
      const value = said(path.join("."), args);
      if (value === undefined) return Promise.resolve({ kind: "absent" });
      if (isResult(value)) return Promise.resolve(value);
      return Promise.resolve({ kind: "gave", value: how?.mutable ? { value: null, changed: value } : value });
    },
    close: () => Promise.resolve(),
  };
}

function isResult(value: unknown): value is HookResult {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "threw";
}

/** A box with one tool, which says that it ran. */
const toolbox: Toolbox = {
  offer: () => [{ name: "Read", description: "", input: {} }],
  judge: () => null,
  call: () => Promise.reject(new Error("a stage calls as a stage")),
  callGranted: (_step, batch) =>
    Promise.resolve({
      kind: "results",
      results: batch.map(({ id, name }) => ({ id, name, ok: true, content: `${name} done` })),
    }),
};

const HOOKS = { hooks: { file: "hooks.mjs", digest: "0" } } as const;

type Row = {
  readonly name: string;
  readonly stages: { readonly [id: string]: StageSketch };
  readonly more?: Partial<Flow>;
  readonly model: readonly ScriptReply[];
  readonly hooks?: Said;
  readonly scenario?: Partial<Scenario>;
  readonly outcome?: string;
  readonly code?: string | null;
  /** `stage:label` in order. */
  readonly path?: string;
  readonly reason?: RegExp;
  readonly waits?: readonly number[];
  readonly asked?: number;
  readonly also?: (played: Played) => void;
};

const pathOf = (played: Played) =>
  played.entries.flatMap(({ led }) => (led === undefined ? [] : [`${led.step}:${led.label}`])).join(" ");
const result = ({ state }: Played, stage: string) => state.handoff[stage] ?? {};

const checks = { ready: sketchCheck("ready", "true"), tests: sketchCheck("tests", "npm test") };
const failing = [{ ok: false, summary: "2 failed" }];

const rows: readonly Row[] = [
  {
    name: "one clean completion ends Act and the machine",
    stages: { plan: { schema: NEEDS_A } },
    model: [done({ a: 1 })],
    path: "plan:ok",
    also: (played) =>
      assert.deepEqual(result(played, "plan"), {
        stageId: "plan",
        stageExecutionId: "run/plan/1",
        verdict: "ok",
        parsed: { a: 1 },
        capHit: false,
        attemptCount: 1,
      }),
  },
  {
    name: "a payload that does not fit comes back as the result of its call, and Act goes on",
    stages: { plan: { schema: NEEDS_A } },
    model: [done({ a: "x" }), { saw: ["does not fit its schema", "/a"], output: { a: 2 } }],
    path: "plan:ok",
    asked: 2,
  },
  {
    name: "plain text is steered",
    stages: { plan: {} },
    model: [prose, { saw: ["Call `done` when the stage is finished."], output: {} }],
    path: "plan:ok",
  },
  {
    name: "the completion tool beside another call: nothing runs, every call is answered, the turn counts",
    stages: { plan: { tools: ["Read"] } },
    model: [calls("Read", "done"), { saw: ["must be the only tool call"], output: {} }],
    path: "plan:ok",
    also: ({ entries }) => assert.ok(entries.every(({ event }) => event.type !== "step.called")),
  },
  {
    name: "two completions in one response are refused",
    stages: { plan: {} },
    model: [calls("done", "done"), { saw: ["must be the only tool call"], output: {} }],
    path: "plan:ok",
  },
  {
    name: "another tool is called and Act goes on",
    stages: { plan: { tools: ["Read"] } },
    model: [calls("Read"), { saw: ["Read done"], output: {} }],
    path: "plan:ok",
  },
  {
    name: "prose beside a lone completion does no harm",
    stages: { plan: {} },
    model: [{ text: "Here it is.", output: {} }],
    path: "plan:ok",
  },
  {
    name: "the cap of each try, then the stage has failed: exit by the cap",
    stages: { plan: { turns: 2, attempts: 2 } },
    model: [prose, prose, { ...prose, saw: ["2 responses of a try are used up"] }, prose],
    outcome: "failed",
    code: "AGENT_TURN_LIMIT",
    path: "plan:cap",
    asked: 4,
    reason: /retryExhausted/,
  },
  {
    name: "after the cap, a retry in the same conversation may complete",
    stages: { plan: { turns: 1, attempts: 2 } },
    model: [prose, { saw: ["Let me think.", "Complete the stage now."], output: {} }],
    path: "plan:ok",
    also: (played) => assert.equal(result(played, "plan").attemptCount, 2),
  },
  {
    name: "calls of the last allowed turn finish, and their results come with the retry",
    stages: { plan: { turns: 1, attempts: 2, tools: ["Read"] } },
    model: [calls("Read"), { saw: ["Read done", "Complete the stage now."], output: {} }],
    path: "plan:ok",
  },
  {
    name: "onFail is where a failed stage leads",
    stages: {
      plan: { turns: 1, attempts: 1, onFail: "mend" },
      mend: { prompt: "{{ctx.upstream[0].reason}}" },
    },
    model: [prose, { saw: ["retryExhausted"], output: {} }],
    path: "plan:cap mend:ok",
  },
  {
    name: "a failing assert says why in the same conversation, and then passes",
    stages: { build: { assert: ["tests"] } },
    more: { checks },
    model: [done(), { saw: ["Received", '"tests" did not pass', "2 failed"], output: {} }],
    scenario: { checks: [failing] },
    path: "build:ok",
    also: (played) => assert.equal(result(played, "build").attemptCount, 2),
  },
  {
    name: "an assert that never passes",
    stages: { build: { assert: ["tests"] } },
    more: { checks },
    model: [done(), done()],
    scenario: { checks: [failing, failing] },
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "build:fail",
    reason: /retryExhausted after 2 of 2: check "tests" failed: 2 failed/,
  },
  {
    name: "an assert that cannot be mended is not tried again",
    stages: { build: { assert: ["tests"] } },
    more: { checks },
    model: [done()],
    scenario: { checks: [[{ ok: false, summary: "missing", unrecoverable: true }]] },
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "build:fail",
  },
  {
    name: "exponential backoff between tries",
    stages: { build: { assert: ["tests"], attempts: 4, rules: { backoff: "exponential" } } },
    more: { checks },
    model: [done(), done(), done(), done()],
    scenario: { checks: [failing, failing, failing] },
    path: "build:ok",
    waits: [1000, 2000, 4000],
  },
  {
    name: "linear backoff between tries",
    stages: { build: { assert: ["tests"], attempts: 3, rules: { backoff: "linear" } } },
    more: { checks },
    model: [done(), done(), done()],
    scenario: { checks: [failing, failing] },
    path: "build:ok",
    waits: [1000, 2000],
  },
  {
    name: "a gate that opens on the second look",
    stages: { build: { rules: { gate: "ready", unresolved: "retry-later", backoff: "linear" } } },
    more: { checks },
    model: [done()],
    scenario: { checks: [failing] },
    path: "build:ok",
    waits: [1000],
  },
  {
    name: "a gate that stays shut, retry-later: the run waits",
    stages: { build: { rules: { gate: "ready", unresolved: "retry-later" } } },
    more: { checks },
    model: [],
    scenario: { checks: [failing, failing] },
    outcome: "waiting",
    code: "StageGateUnresolved",
    path: "",
    asked: 0,
    reason: /2 failed.*Resume/s,
  },
  {
    name: "a gate that stays shut, fail",
    stages: { build: { rules: { gate: "ready", unresolved: "fail" } } },
    more: { checks },
    model: [],
    scenario: { checks: [failing] },
    outcome: "failed",
    code: "StageGateUnresolved",
    path: "build:null",
  },
  {
    name: "a gate that stays shut, skip: on to the next stage, which sees it",
    stages: {
      build: { rules: { gate: "ready", unresolved: "skip" }, next: "end" },
      end: { prompt: "{{ctx.upstream[0].verdict}}" },
    },
    more: { checks },
    model: [{ saw: ["skip"], output: {} }],
    scenario: { checks: [failing] },
    path: "build:skip end:ok",
    also: (played) =>
      assert.deepEqual(
        [result(played, "build").attemptCount, result(played, "build").parsed],
        [0, undefined],
      ),
  },
  ...(["proceed", "skip", "fail", null] as const).map((answer): Row => ({
    name: `a gate that stays shut, ask: ${answer}`,
    stages: { build: { rules: { gate: "ready", unresolved: "ask" } } },
    more: { checks },
    model: answer === "proceed" ? [done()] : [],
    scenario: {
      checks: [failing],
      ports: {
        person: {
          ask: () => Promise.resolve(answer === null ? null : { answer, by: "terminal" }),
          isReachable: answer !== null,
          absent: "deny",
        },
      },
    },
    outcome: answer === "proceed" || answer === "skip" ? "completed" : "failed",
    code: answer === "proceed" || answer === "skip" ? null : "StageGateUnresolved",
    path: answer === "proceed" ? "build:ok" : answer === "skip" ? "build:skip" : "build:null",
  })),
  {
    name: "a branch on the payload, and a repair edge back",
    stages: {
      build: { next: "review" },
      review: {
        next: {
          kind: "switch",
          on: ["parsed", "approved"],
          cases: { true: { kind: "end", outcome: "completed" } },
          otherwise: { kind: "goto", step: "build" },
        },
      },
    },
    model: [done(), done({ approved: false }), done(), done({ approved: true })],
    path: "build:ok review:ok build:ok review:ok",
  },
  {
    name: "what a predecessor answered and left behind can be read; its conversation cannot",
    stages: {
      plan: { next: "build", rules: { output: [{ key: "digest", path: ["parsed", "summary"] }] } },
      build: {
        prompt:
          "{{ctx.upstream[0].parsed.summary}} / {{ ctx.upstream[0].output.digest }} / ${ctx.workflowRunId} / {{stage.id}}",
      },
    },
    model: [
      { text: "SECRET THOUGHT", output: { summary: "short" } },
      { saw: ["short / short / run / build"], unseen: ["SECRET THOUGHT"], output: {} },
    ],
    path: "plan:ok build:ok",
  },
  {
    name: "a value that is not there is an error before any model call",
    stages: { plan: { prompt: "{{ctx.task}}" } },
    model: [],
    outcome: "failed",
    code: "StageCtxUnresolved",
    asked: 0,
  },
  {
    name: "arguments are the context",
    stages: { plan: { prompt: "{{ctx.task}}" } },
    model: [{ saw: ["mend it"], output: {} }],
    scenario: { args: { task: "mend it" } },
    path: "plan:ok",
  },
  {
    name: "results that do not fit inputsSchema stop the stage before its model call",
    stages: {
      plan: { next: "build" },
      build: {
        rules: {
          inputs: { kind: "schema", name: "in", schema: { type: "object", properties: { parsed: NEEDS_A } } },
        },
      },
    },
    model: [done({ a: "no" })],
    outcome: "failed",
    code: "StageInputsInvalid",
    asked: 1,
    reason: /upstream\[0\].*"plan"/,
  },
  {
    name: "siblings see the context but not each other, the join sees both in declared order",
    stages: {
      split: { next: fork("meet") },
      a: { prompt: "A {{ctx.task}}" },
      b: { prompt: "B {{ctx.task}}" },
      meet: { prompt: "{{ctx.upstream[0].parsed.n}} then {{ctx.upstream[1].parsed.n}}" },
    },
    model: [
      done({}, "split"),
      { ...prose, step: "a" },
      done({ n: "from b" }, "b"),
      done({ n: "from a" }, "a"),
      { step: "meet", saw: ["from a then from b"], output: {} },
    ],
    scenario: { args: { task: "t" } },
  },
  {
    name: "what a stage shares is in the context of all that come after it, siblings included",
    stages: {
      split: { next: fork("meet"), rules: { share: [{ key: "units", path: ["parsed", "units"] }] } },
      a: { prompt: "{{ctx.units[0]}}" },
      b: { prompt: "{{ctx.units[1]}}" },
      meet: { prompt: "{{ctx.units}}" },
    },
    model: [
      done({ units: ["first", "second"] }, "split"),
      { step: "a", saw: ["first"], output: {} },
      { step: "b", saw: ["second"], output: {} },
      { step: "meet", saw: ['["first","second"]'], output: {} },
    ],
  },
  {
    name: "siblings without a join: the run ends with the last",
    stages: { split: { next: fork(null) }, a: {}, b: {} },
    model: [done({}, "split"), done({}, "a"), done({}, "b")],
    outcome: "completed",
  },
  {
    name: "a failing sibling takes the group with it, and the join is never asked",
    stages: { split: { next: fork("meet") }, a: { turns: 1, attempts: 1 }, b: {}, meet: {} },
    model: [done({}, "split"), { ...prose, step: "a" }, { ...prose, step: "b" }],
    outcome: "failed",
    code: "ParallelSiblingFailure",
    reason: /"a" failed beside b/,
    also: ({ asked }) => assert.ok(asked.every((one) => !one.startsWith("meet"))),
  },
  {
    name: "a sibling that was skipped fails the group too",
    stages: {
      split: { next: fork("meet") },
      a: { rules: { gate: "ready", unresolved: "skip" } },
      b: {},
      meet: {},
    },
    more: { checks },
    model: [done({}, "split"), done({}, "b")],
    scenario: { checks: [failing] },
    outcome: "failed",
    code: "ParallelSiblingFailure",
  },
  {
    name: "independent siblings: the join sees how each of them ended",
    stages: {
      split: { next: fork("meet", "independent") },
      a: { turns: 1, attempts: 1 },
      b: {},
      meet: { prompt: "{{ctx.upstream[0].verdict}} {{ctx.upstream[1].verdict}}" },
    },
    model: [
      done({}, "split"),
      { ...prose, step: "a" },
      done({}, "b"),
      { step: "meet", saw: ["fail ok"], output: {} },
    ],
    outcome: "completed",
  },
  {
    name: "a failed sibling goes its own way to an end, alone, and the group has failed all the same",
    stages: {
      split: { next: fork("meet") },
      a: { turns: 1, attempts: 1, onFail: "recover" },
      b: {},
      meet: {},
      recover: { prompt: "{{ctx.upstream[0].stageId}}" },
    },
    model: [
      done({}, "split"),
      { ...prose, step: "a" },
      { ...prose, step: "b" },
      { step: "recover", saw: ["a"], output: {} },
    ],
    outcome: "failed",
    code: "ParallelSiblingFailure",
    also: ({ asked }) => assert.ok(asked.includes("recover@1/1")),
  },
  {
    name: "setup writes the context that the prompt reads, and successors keep it",
    stages: { plan: { prompt: "{{ctx.branch}}", next: "build" }, build: { prompt: "still {{ctx.branch}}" } },
    more: HOOKS,
    hooks: (path, [ctx]) => (path === "plan.setup" ? { ...(ctx as JsonObject), branch: "b1" } : undefined),
    model: [
      { saw: ["b1"], output: {} },
      { saw: ["still b1"], output: {} },
    ],
    path: "plan:ok build:ok",
  },
  {
    name: "setup may not write what belongs to the run",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path, [ctx]) => (path === "plan.setup" ? { ...(ctx as JsonObject), upstream: [1] } : undefined),
    model: [],
    outcome: "failed",
    code: "ContextMutationForbidden",
  },
  {
    name: "a hook that throws ends the run as a failure of the lifecycle",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path) =>
      path === "plan.checkGate" ? { kind: "threw", code: "Error", message: "boom" } : undefined,
    model: [],
    outcome: "failed",
    code: "LifecycleFailure",
    reason: /checkGate hook of stage "plan" failed: boom/,
  },
  ...(
    [
      ["proceed", "completed", "plan:ok"],
      ["skip", "completed", "plan:skip"],
      ["block", "waiting", ""],
      ["whatever", "failed", "plan:null"],
    ] as const
  ).map(([said, outcome, path]): Row => ({
    name: `checkGate says ${said}`,
    stages: { plan: { rules: { unresolved: "retry-later" } } },
    more: HOOKS,
    hooks: (hook) => (hook === "plan.checkGate" ? said : undefined),
    model: said === "proceed" ? [done()] : [],
    outcome,
    path,
    code: outcome === "completed" ? null : said === "block" ? "StageGateUnresolved" : "LifecycleFailure",
  })),
  {
    name: "assert in code: a reason for another try, then ok",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path, [, act]) =>
      path === "plan.assert"
        ? (act as JsonObject).parsed !== undefined && ((act as JsonObject).parsed as JsonObject).n === 2
          ? "ok"
          : { verdict: "retry", reason: "n must be 2" }
        : undefined,
    model: [done({ n: 1 }), { saw: ["n must be 2"], output: { n: 2 } }],
    path: "plan:ok",
  },
  {
    name: "assert in code has the last word after a cap",
    stages: { plan: { turns: 1 } },
    more: HOOKS,
    hooks: (path, [, act]) =>
      path === "plan.assert" && (act as JsonObject).capHit === true ? "ok" : undefined,
    model: [prose],
    path: "plan:ok",
    also: (played) => {
      assert.deepEqual([result(played, "plan").capHit, result(played, "plan").parsed], [true, undefined]);
      assert.match(JSON.stringify(played.entries), /accepted although the turn cap/);
    },
  },
  {
    name: "assert in code says fail",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path) => (path === "plan.assert" ? { verdict: "fail", reason: "no good" } : undefined),
    model: [done()],
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "plan:fail",
    reason: /no good/,
  },
  {
    name: "assert in code says fail, said as its outcome",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path) => (path === "plan.assert" ? { outcome: "fail", reason: "no good" } : undefined),
    model: [done()],
    outcome: "failed",
    code: "AGENT_VALIDATION_ABORT",
    path: "plan:fail",
    reason: /no good/,
  },
  {
    name: "exit writes what the successor reads",
    stages: { plan: { next: "build" }, build: { prompt: "{{ctx.upstream[0].output.digest}}" } },
    more: HOOKS,
    hooks: (path) => (path === "plan.exit" ? { digest: "in short" } : undefined),
    model: [done(), { saw: ["in short"], output: {} }],
    path: "plan:ok build:ok",
  },
  {
    name: "next in code: several stages one after the other",
    stages: { plan: {}, a: {}, b: { prompt: "{{ctx.upstream[0].stageId}}" } },
    more: HOOKS,
    hooks: (path) => (path === "plan.next" ? { execution: "sequential", nextStages: ["a", "b"] } : undefined),
    model: [done({}, "plan"), done({}, "a"), { step: "b", saw: ["a"], output: {} }],
    path: "plan:ok a:ok b:ok",
  },
  {
    name: "next in code: what a stage asks for comes before what is still queued",
    stages: { plan: {}, a: {}, b: {}, c: {}, d: {} },
    more: HOOKS,
    hooks: (path) => {
      if (path === "plan.next") return { execution: "sequential", nextStages: ["a", "b"] };
      return path === "a.next" ? { execution: "sequential", nextStages: ["c", "d"] } : undefined;
    },
    model: ["plan", "a", "c", "d", "b"].map((step) => done({}, step)),
    path: "plan:ok a:ok c:ok d:ok b:ok",
  },
  {
    name: "next in code: of several unknown stages the first is named",
    stages: { plan: {} },
    more: HOOKS,
    hooks: (path) =>
      path === "plan.next" ? { execution: "sequential", nextStages: ["nowhere", "elsewhere"] } : undefined,
    model: [done()],
    outcome: "failed",
    code: "StageTargetUnknown",
    reason: /names "nowhere"/,
  },
  ...(
    [
      ["setup", 0],
      ["checkGate", 0],
      ["assert", 1],
    ] as const
  ).map(([hook, tries]): Row => ({
    name: `an independent sibling whose ${hook} throws was asked ${tries} times`,
    stages: {
      split: { next: fork("meet", "independent") },
      a: {},
      b: {},
      meet: { prompt: "{{ctx.upstream[0].attemptCount}} {{ctx.upstream[1].attemptCount}}" },
    },
    more: HOOKS,
    hooks: (path) =>
      path === `a.${hook}` ? { kind: "threw", code: "HOOK_THREW", message: "no" } : undefined,
    model: [
      done({}, "split"),
      ...(tries === 0 ? [] : [done({}, "a")]),
      done({}, "b"),
      { step: "meet", saw: [`${tries} 1`], output: {} },
    ],
    outcome: "completed",
  })),
  ...(
    [
      ["independent", "completed", null],
      ["together", "failed", "ParallelSiblingFailure"],
    ] as const
  ).map(([policy, outcome, code]): Row => ({
    name: `next in code: siblings ${policy}, of which one fails`,
    stages: {
      plan: {},
      a: { turns: 1, attempts: 1 },
      b: {},
      meet: { prompt: "{{ctx.upstream[0].verdict}} {{ctx.upstream[1].verdict}}" },
    },
    more: HOOKS,
    hooks: (path) =>
      path === "plan.next"
        ? { execution: "parallel", nextStages: ["a", "b", "meet"], join: "meet", policy }
        : undefined,
    model: [
      done({}, "plan"),
      { ...prose, step: "a" },
      done({}, "b"),
      { step: "meet", saw: ["fail ok"], output: {} },
    ],
    outcome,
    code,
  })),
  {
    name: "next in code: side by side with a join",
    stages: { plan: {}, a: {}, b: {}, meet: {} },
    more: HOOKS,
    hooks: (path) =>
      path === "plan.next"
        ? { execution: "parallel", nextStages: ["a", "b", "meet"], join: "meet" }
        : undefined,
    model: [done({}, "plan"), done({}, "a"), done({}, "b"), done({}, "meet")],
    outcome: "completed",
  },
  ...(
    [
      ["StageTargetUnknown", { execution: "sequential", nextStages: ["nowhere"] }],
      ["StageJoinDangling", { execution: "parallel", nextStages: ["a", "b"], join: "meet" }],
      ["InvalidParallelPlan", { execution: "parallel", nextStages: ["a", "meet"], join: "meet" }],
      ["StageTargetUnknown", { execution: "sequential", nextStages: ["a"], join: "nowhere" }],
      ["LifecycleFailure", 7],
      ["LifecycleFailure", ["a"]],
      ["LifecycleFailure", { execution: "sequential", nextStages: "a" }],
      ["LifecycleFailure", { execution: "sequential", nextStages: ["a", 7] }],
    ] as const
  ).map(([code, value]): Row => ({
    name: `next in code that cannot be followed: ${code}, ${JSON.stringify(value)}`,
    stages: { plan: {}, a: {}, b: {}, meet: {} },
    more: HOOKS,
    hooks: (path) => (path === "plan.next" ? value : undefined),
    model: [done()],
    outcome: "failed",
    code,
  })),
  ...(
    [
      [["Read"], [], null],
      [["Read(src/*)", "*"], [], null],
      [["Nope"], [], "StageToolUnknown"],
      [["Read", "Nope(x)"], [], "StageToolUnknown"],
      [["Read"], ["done"], "CompletionToolReserved"],
    ] as const
  ).map(([tools, besides, code]): Row => ({
    name: `a stage with ${tools.join(", ")} where there is Read${besides.map((tool) => `, ${tool}`).join("")}`,
    stages: { plan: { tools } },
    model: [done()],
    scenario: {
      ports: {
        toolbox: {
          ...toolbox,
          offer: () => ["Read", ...besides].map((name) => ({ name, description: "", input: {} })),
        },
      },
    },
    outcome: code === null ? "completed" : "failed",
    code,
  })),
  {
    name: "joinRule declared: the join need not be listed",
    stages: { plan: {}, a: {}, b: {}, meet: {} },
    more: { hooks: { ...HOOKS.hooks, joinRule: "declared" } },
    hooks: (path) =>
      path === "plan.next" ? { execution: "parallel", nextStages: ["a", "b"], join: "meet" } : undefined,
    model: [done({}, "plan"), done({}, "a"), done({}, "b"), done({}, "meet")],
    outcome: "completed",
  },
  {
    name: "a stage beside others may not lead on",
    stages: { split: { next: fork("meet") }, a: {}, b: {}, meet: {} },
    more: HOOKS,
    hooks: (path) => (path === "a.next" ? "meet" : undefined),
    model: [done({}, "split"), done({}, "a"), done({}, "b")],
    outcome: "failed",
    code: "ParallelSiblingFailure",
    reason: /StageDefinitionInvalid/,
  },
  {
    name: "a rate limit within a stage is waited out and takes no turn",
    stages: { plan: { turns: 1, attempts: 1 } },
    model: [{ error: { kind: "rate-limit", retryAfterMs: 10 } }, done()],
    path: "plan:ok",
    waits: [10],
  },
  {
    name: "machines that go round in circles are bounded",
    stages: { a: { next: "b" }, b: { next: "a" } },
    more: { limits: { visits: 5 } },
    model: [done(), done(), done(), done(), done()],
    outcome: "failed",
    code: "AGENT_MAX_ITERATIONS",
  },
];

for (const row of rows) {
  test(row.name, async () => {
    const flow = sketchMachine(row.stages, row.more);
    const ports = { toolbox, ...(row.hooks !== undefined && { hooks: hooksOf(row.hooks) }) };
    const scenario: Scenario = { flow, model: row.model, ...row.scenario };
    const played = await play({ ...scenario, ports: { ...ports, ...row.scenario?.ports } });
    const { verdict } = played.state;
    assert.deepEqual(
      [verdict?.outcome, verdict?.code],
      [row.outcome ?? "completed", row.code ?? null],
      `${verdict?.reason}`,
    );
    if (row.path !== undefined) assert.equal(pathOf(played), row.path);
    if (row.reason !== undefined) assert.match(verdict?.reason ?? "", row.reason);
    if (row.waits !== undefined) assert.deepEqual(played.waits, row.waits);
    if (row.asked !== undefined) assert.equal(played.asked.length, row.asked);
    row.also?.(played);
  });
}

test("hooks are given where the run is, and which execution of which stage it is", async () => {
  const seen: Json[] = [];
  const flow = sketchMachine({ plan: {} }, HOOKS);
  const hooks = hooksOf((path, args) => {
    if (path === "plan.setup") seen.push(args.at(-1)!);
    return undefined;
  });
  await play({ flow, model: [done()], ports: { hooks, toolbox } });
  const host = seen[0] as { readonly [key: string]: Json };
  assert.deepEqual(
    [host.workflowRunId, host.stageExecutionId, host.stage, typeof host.cwd],
    ["run", "run/plan/1", "plan", "string"],
  );
});
