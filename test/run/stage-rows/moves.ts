/** Rows about gates, retries, what follows a stage and how a run ends. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Backend } from "../../../src/run/index.ts";
import { pathOf, recorded, unanswered, type Row } from "../stage-project.ts";
import { check, GROUP, TRIES, asks, calls, done, of, prose, write } from "./row.ts";

// Gates: a check that fails is `defer`, one that cannot even run is `block`.
const SHUT = { checks: { ready: check("test -f ready || { echo not yet; exit 1; }") } };
const BROKEN = { checks: { ready: check("no-such-program-anywhere") } };
const gated = (policy: string, outcome: "defer" | "block", more: Partial<Row>): Row => ({
  name: `gate, resolutionPolicy ${policy} × ${outcome}`,
  stages: {
    a: { gate: "ready", resolutionPolicy: policy, ...TRIES(2), next: "b" },
    b: { body: "{{ctx.upstream[0].verdict}}" },
  },
  machine: outcome === "defer" ? SHUT : BROKEN,
  model: [],
  asks: 0,
  ...more,
});
export const GATES: readonly Row[] = [
  {
    name: "gate that is open: the stage begins",
    stages: { a: { gate: "ready" } },
    machine: SHUT,
    files: { ready: "" },
    model: [done()],
    path: "a:ok",
  },
  gated("retry-later", "defer", {
    name: "gate, resolutionPolicy retry-later × defer: looked at again while tries remain, then the run waits",
    stages: { a: { gate: "ready", resolutionPolicy: "retry-later", ...TRIES(3, "linear") } },
    ends: "StageGateUnresolved",
    exitCode: 5,
    waits: [1000, 2000],
    reason: /says defer: .*Resume the run/s,
    also: async (ran) => {
      assert.deepEqual([ran.result.outcome, ran.result.resumable], ["waiting", true]);
      const still = await ran.again([]);
      assert.deepEqual([still.result.outcome, still.waits], ["waiting", [1000, 2000]]);
      writeFileSync(join(ran.folder, "ready"), "");
      const whole = await ran.again([done()]);
      assert.deepEqual([whole.result.outcome, pathOf(whole.result)], ["completed", "a:ok"]);
      assert.equal(whole.result.handoff.a!.stageExecutionId, `${ran.result.run}/a/1`);
    },
  }),
  gated("retry-later", "block", {
    ends: "StageGateUnresolved",
    exitCode: 5,
    waits: [],
    reason: /says block/,
  }),
  gated("fail", "defer", { ends: "StageGateUnresolved", exitCode: 1, reason: /says defer/ }),
  gated("fail", "block", { ends: "StageGateUnresolved", exitCode: 1, reason: /says block/ }),
  gated("skip", "defer", { model: [of("b", done({}, { saw: ["skip"] }))], asks: 1, path: "a:skip b:ok" }),
  gated("skip", "block", { model: [of("b", done({}, { saw: ["skip"] }))], asks: 1, path: "a:skip b:ok" }),
  ...(["defer", "block"] as const).flatMap((outcome) => [
    gated("ask", outcome, {
      name: `gate, resolutionPolicy ask × ${outcome}: proceed`,
      options: { ask: (_question, choices) => Promise.resolve(choices[0]!) },
      model: [of("a"), of("b")],
      asks: 2,
      path: "a:ok b:ok",
    }),
    gated("ask", outcome, {
      name: `gate, resolutionPolicy ask × ${outcome}: skip`,
      options: { ask: () => Promise.resolve("skip") },
      model: [of("b")],
      asks: 1,
      path: "a:skip b:ok",
    }),
    gated("ask", outcome, {
      name: `gate, resolutionPolicy ask × ${outcome}: fail`,
      options: { ask: () => Promise.resolve("fail") },
      ends: "StageGateUnresolved",
      exitCode: 1,
      reason: /a person said so/,
    }),
    gated("ask", outcome, {
      name: `gate, resolutionPolicy ask × ${outcome}: nobody is there`,
      ends: "StageGateUnresolved",
      exitCode: 1,
      reason: /nobody to ask/,
    }),
  ]),
  gated("skip", "defer", {
    name: "gate that is skipped: neither Act nor Assert is in the audit",
    model: [of("b")],
    asks: 1,
    also: async (ran) => {
      const about = (await ran.audit()).filter(({ about: { stageId } }) => stageId === "a");
      const phases = about.flatMap(({ name, about: { phase } }) => (name === "StagePreFired" ? [phase] : []));
      assert.deepEqual(phases, ["Setup", "Init", "CheckGate", "Exit", "Next"]);
      const outcomes = await recorded(ran, "StageAssertOutcome");
      assert.deepEqual(
        outcomes.map(({ stageExecutionId }) => stageExecutionId),
        [`${ran.result.run}/b/1`],
      );
    },
  }),
];

const PROOF = { checks: { proof: check("test -f proof.txt || { echo missing; exit 1; }") } };
export const backoff = (kind: string, tries: number, waits: readonly number[]): Row => ({
  name: `retry, backoff ${kind}`,
  stages: { a: { ...TRIES(tries, kind), turnCap: 1 } },
  model: Array.from({ length: tries }, () => prose),
  ends: "AGENT_TURN_LIMIT",
  exitCode: 4,
  asks: tries,
  waits,
});
export const RETRIES: readonly Row[] = [
  backoff("none", 3, []),
  backoff("linear", 4, [1000, 2000, 3000]),
  backoff("exponential", 8, [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]),
  {
    name: "retry after a failed assert: told why in the same conversation",
    stages: { a: { ...TRIES(2), allowedTools: ["Write"], assert: ["proof"] } },
    machine: PROOF,
    model: [
      done({ n: 1 }),
      { ...calls(write("proof.txt")), saw: ['The check "proof" did not pass', "missing"] },
      done({ n: 2 }),
    ],
    path: "a:ok",
    also: (ran) => {
      assert.deepEqual(ran.result.handoff.a!.parsed, { n: 2 });
      assert.equal(ran.result.handoff.a!.attemptCount, 2);
      assert.deepEqual(unanswered(ran.asked), []);
      assert.deepEqual(
        ran.result.checks.map(({ ok }) => ok),
        [false, true],
      );
    },
  },
  {
    name: "retry: each try has the whole turnCap",
    stages: { a: { ...TRIES(2), turnCap: 2, assert: ["proof"] } },
    machine: PROOF,
    model: [done(), prose, prose],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    asks: 3,
  },
];

export const NEXT: readonly Row[] = [
  { name: "next absent", stages: { a: {} }, model: [done()], path: "a:ok" },
  { name: "next: end", stages: { a: { next: "end" } }, model: [done()], path: "a:ok" },
  {
    name: "next: a stage",
    stages: { a: { next: "b" }, b: {} },
    model: [of("a"), of("b")],
    path: "a:ok b:ok",
  },
  {
    name: "next: parallel with a join",
    stages: { s: GROUP, a: {}, b: {}, meet: {} },
    model: [of("s"), of("a"), of("b"), of("meet")],
    path: "s:ok a:ok b:ok meet:ok",
  },
  ...(
    [
      ["true", { go: true }, "b"],
      ["false", { go: false }, "c"],
      ["default", {}, "c"],
    ] as const
  ).map(([value, payload, target]): Row => ({
    name: `next: switch, ${value}`,
    stages: { a: { next: { switch: "parsed.go", cases: { true: "b", default: "c" } } }, b: {}, c: {} },
    model: [of("a", done(payload)), of(target)],
    path: `a:ok ${target}:ok`,
  })),
  {
    name: "next: switch to end",
    stages: { a: { next: { switch: "parsed.go", cases: { no: "end", default: "a" } } } },
    model: [done({ go: "yes" }), done({ go: "no" })],
    path: "a:ok a:ok",
    also: ({ result }) => assert.equal(result.handoff.a!.stageExecutionId, `${result.run}/a/2`),
  },
  {
    name: "next: a stage that leads to itself is its own predecessor",
    stages: {
      a: { next: "b" },
      b: {
        body: "{{ctx.upstream[0].parsed.n}}",
        completionSchema: { type: "object", required: ["n"], properties: { n: { type: "number" } } },
        next: { switch: "parsed.n", cases: { 3: "end", default: "b" } },
      },
    },
    model: [of("a", done({ n: 1 })), of("b", done({ n: 2 })), of("b", done({ n: 3 }))],
    path: "a:ok b:ok b:ok",
    also: (ran) =>
      assert.deepEqual(
        asks(ran, "b").map(({ system }) => system),
        ["1", "2"],
      ),
  },
  {
    name: "next: switch on the verdict",
    stages: {
      a: {
        gate: "ready",
        resolutionPolicy: "skip",
        next: { switch: "verdict", cases: { skip: "c", default: "b" } },
      },
      b: {},
      c: {},
    },
    machine: SHUT,
    model: [of("c")],
    path: "a:skip c:ok",
  },
  {
    name: "next: { execution: sequential, nextStages: [b] }",
    stages: { a: { next: { execution: "sequential", nextStages: ["b"] } }, b: {} },
    model: [of("a"), of("b")],
    path: "a:ok b:ok",
  },
  {
    name: "next: { execution: sequential, nextStages: [] } is the end",
    stages: { a: { next: { execution: "sequential", nextStages: [] } } },
    model: [done()],
    path: "a:ok",
  },
  {
    name: "next: { execution: parallel, nextStages, join } with the join listed",
    stages: {
      s: { next: { execution: "parallel", nextStages: ["a", "b", "meet"], join: "meet" } },
      a: {},
      b: {},
      meet: {},
    },
    model: [of("s"), of("a"), of("b"), of("meet")],
    path: "s:ok a:ok b:ok meet:ok",
  },
  {
    name: "next: { execution: parallel, nextStages, join } with joinRule declared",
    stages: {
      s: { next: { execution: "parallel", nextStages: ["a", "b"], join: "meet" } },
      a: {},
      b: {},
      meet: {},
    },
    machine: { joinRule: "declared" },
    model: [of("s"), of("a"), of("b"), of("meet")],
    path: "s:ok a:ok b:ok meet:ok",
  },
  {
    name: "next: in circles, until the visits are used up",
    stages: { a: { next: { switch: "parsed.go", cases: { out: "end", default: "b" } } }, b: { next: "a" } },
    machine: { limits: { visits: 5 } },
    model: [of("a"), of("b"), of("a"), of("b"), of("a")],
    ends: "AGENT_MAX_ITERATIONS",
    exitCode: 4,
    asks: 5,
  },
];

export const ENDS: readonly Row[] = [
  { name: "exit 0: done", stages: { a: {} }, model: [done()], exitCode: 0 },
  {
    name: "exit 1: Init fails",
    stages: { a: { body: "{{ctx.x}}" } },
    model: [],
    ends: "StageCtxUnresolved",
    exitCode: 1,
    asks: 0,
  },
  {
    name: "exit 2: the machine is not valid",
    stages: { a: { turnCap: 0 } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
  },
  {
    name: "exit 2: an input that belongs to the runtime",
    stages: { a: {} },
    args: { upstream: [] },
    model: [],
    ends: "PARAMETERS_INVALID",
    exitCode: 2,
    asks: 0,
  },
  {
    name: "exit 3: a model that cannot call tools is never asked",
    stages: { a: {} },
    model: {
      spec: { id: "weak", options: null },
      toolCalling: false,
      turn: () => Promise.reject(new Error("it was asked")),
    },
    ends: "MissingCapability",
    exitCode: 3,
    asks: 0,
    reason: /toolCalling.*"weak"/s,
    also: ({ result }) => assert.equal(result.run, null),
  },
  {
    name: "exit 4: the cap",
    stages: { a: { turnCap: 1 } },
    model: [prose],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
  },
  {
    name: "exit 5: suspended",
    stages: { a: { gate: "ready", resolutionPolicy: "retry-later" } },
    machine: SHUT,
    model: [],
    ends: "StageGateUnresolved",
    exitCode: 5,
    asks: 0,
  },
  {
    name: "exit 6: the assert never passed",
    stages: { a: { ...TRIES(2), assert: ["proof"] } },
    machine: PROOF,
    model: [done(), done()],
    ends: "AGENT_VALIDATION_ABORT",
    exitCode: 6,
    path: "a:fail",
    reason: /retryExhausted after 2 of 2: check "proof" failed/,
  },
  {
    name: "exit 130: stopped from outside in the middle of a group, and resumable",
    stages: { s: GROUP, a: {}, b: {}, meet: {} },
    ...stopped(),
    ends: "INTERRUPTED",
    exitCode: 130,
    also: async (ran) => {
      assert.equal(ran.result.resumable, true);
      const whole = await ran.again([of("a"), of("b"), of("meet")]);
      assert.deepEqual([whole.result.outcome, pathOf(whole.result)], ["completed", "s:ok a:ok b:ok meet:ok"]);
    },
  },
];

/** Stops the run while both siblings are being asked. */
function stopped(): Pick<Row, "model" | "options"> {
  const stop = new AbortController();
  const model: Backend = {
    spec: { id: "stopped", options: null },
    turn: async ({ asker, signal }) => {
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      if (asker.step === "s")
        return { kind: "reply", text: "", calls: [{ id: "1", name: "submit", input: {} }], usage };
      if (asker.step === "b") stop.abort();
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { kind: "fault", fault: { kind: "other", message: "stopped" } };
    },
  };
  return { model, options: { signal: stop.signal } };
}
