/** Rows about hooks: what a hook of a stage does, and what becomes of the run. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathOf, recorded, unanswered, type Ran, type Row } from "../stage-project.ts";
import { calls, check, done, GROUP, of, prose, TRIES, write } from "./row.ts";

/** The default export of a module. */
export const hooks = (text: string) => `export default { ${text} };\n`;
export const isThere = (ran: Ran, file: string) => existsSync(join(ran.folder, file));

const SETUP: readonly Row[] = [
  {
    name: "setup writes what the prompt reads, and what later stages keep",
    stages: {
      a: { next: "b", body: "on {{ctx.branch}} for {{ctx.task}}" },
      b: { body: "still {{ctx.branch}}" },
    },
    args: { task: "t" },
    hooks: hooks(`a: { setup: (ctx) => { ctx.branch = "b-" + ctx.task; } }`),
    model: [done({}, { saw: ["on b-t for t"] }), done({}, { saw: ["still b-t"] })],
    path: "a:ok b:ok",
  },
  {
    name: "setup may take its time, and is told of the run around it",
    stages: { a: { body: "{{ctx.host_}}" } },
    hooks: `import { setTimeout as sleep } from "node:timers/promises";
      export default { a: { setup: async (ctx, host) => { await sleep(5); ctx.host_ = host; } } };`,
    model: [done()],
    also: ({ asked, folder, result }) =>
      assert.deepEqual(JSON.parse(asked[0]!.system), {
        cwd: folder,
        workflowRunId: result.run,
        stageExecutionId: `${result.run}/a/1`,
        stage: "a",
      }),
  },
  ...(["upstream", "attempts", "workflowRunId", "stageExecutionId", "host"] as const).map((name): Row => ({
    name: `setup may not write ctx.${name}`,
    stages: { a: {} },
    hooks: hooks(`a: { setup: (ctx) => { ctx.${name} = ["mine"]; } }`),
    model: [],
    ends: "ContextMutationForbidden",
    exitCode: 1,
    asks: 0,
    reason: new RegExp(`ctx\\.${name}`),
  })),
  {
    name: "setup may not change what is in ctx.upstream either",
    stages: { a: { next: "b" }, b: {} },
    hooks: hooks(`b: { setup: (ctx) => { ctx.upstream[0].parsed.n = 2; } }`),
    model: [done({ n: 1 })],
    ends: "ContextMutationForbidden",
    exitCode: 1,
    asks: 1,
  },
  {
    name: "setup runs once in a visit, however many tries that has",
    stages: { a: { ...TRIES(3), turnCap: 1, body: "{{ctx.times}}" } },
    hooks: `let times = 0; export default { a: { setup: (ctx) => { ctx.times = ++times; } } };`,
    model: [prose, prose, done()],
    also: ({ asked }) => assert.deepEqual(new Set(asked.map(({ system }) => system)), new Set(["1"])),
  },
  {
    name: "setup of a sibling writes for that sibling alone",
    stages: {
      s: GROUP,
      a: { body: "{{ctx.mine}}" },
      b: { body: "{{ctx.mine}}" },
      meet: { body: "{{ctx.mine}}" },
    },
    args: { mine: "ours" },
    hooks: hooks(
      `a: { setup: (ctx) => { ctx.mine = "a's"; } }, b: { setup: (ctx) => { ctx.mine = "b's"; } }`,
    ),
    model: [
      of("s"),
      of("a", done({}, { saw: ["a's"] })),
      of("b", done({}, { saw: ["b's"] })),
      of("meet", done({}, { saw: ["ours"] })),
    ],
  },
];

// Outside of setup the context can be read and not written.
const READ_ONLY: readonly Row[] = (
  [
    ["checkGate", "ctx.x = 1", "a"],
    ["checkGate", "delete ctx.task", "a"],
    ["checkGate", "Object.defineProperty(ctx, 'x', { value: 1 })", "a"],
    ["checkGate", "ctx.deep.list.push(1)", "a"],
    ["assert", "ctx.x = 1", "a"],
    ["exit", "ctx.x = 1", "a"],
    ["next", "ctx.upstream.length = 0", "a"],
  ] as const
).map(([hook, code, stage]) => ({
  name: `${hook} may not write: ${code}`,
  stages: { a: {} },
  args: { task: "t", deep: { list: [] } },
  hooks: hooks(`${stage}: { ${hook}: (ctx) => { ${code}; return "ok"; } }`),
  model: hook === "checkGate" ? [] : [done()],
  ends: "ContextMutationForbidden",
  exitCode: 1,
}));

// CheckGate × resolutionPolicy.
const gated = (policy: string, says: string, more: Partial<Row>): Row => ({
  name: `checkGate says ${says}, resolutionPolicy ${policy}`,
  stages: {
    a: { resolutionPolicy: policy, ...TRIES(2), next: "b" },
    b: { body: "{{ctx.upstream[0].verdict}}" },
  },
  hooks: hooks(`a: { checkGate: () => ({ outcome: "${says}", reason: "the moon is full" }) }`),
  model: [],
  asks: 0,
  ...more,
});
const UNRESOLVED = { ends: "StageGateUnresolved", reason: /the moon is full/ } as const;
const GATES: readonly Row[] = [
  gated("fail", "proceed", {
    model: [of("a"), of("b", done({}, { saw: ["ok"] }))],
    asks: 2,
    path: "a:ok b:ok",
  }),
  gated("fail", "skip", { model: [of("b", done({}, { saw: ["skip"] }))], asks: 1, path: "a:skip b:ok" }),
  gated("retry-later", "defer", { ...UNRESOLVED, exitCode: 5, waits: [] }),
  gated("retry-later", "retry", { ...UNRESOLVED, exitCode: 5 }),
  gated("retry-later", "block", { ...UNRESOLVED, exitCode: 5 }),
  gated("fail", "defer", { ...UNRESOLVED, exitCode: 1 }),
  gated("fail", "block", { ...UNRESOLVED, exitCode: 1 }),
  ...(["defer", "block"] as const).flatMap((says) => [
    gated("skip", says, { model: [of("b", done({}, { saw: ["skip"] }))], asks: 1, path: "a:skip b:ok" }),
    gated("ask", says, {
      name: `checkGate says ${says}, resolutionPolicy ask: proceed`,
      options: { ask: () => Promise.resolve("proceed") },
      model: [of("a"), of("b")],
      asks: 2,
      path: "a:ok b:ok",
    }),
    gated("ask", says, {
      name: `checkGate says ${says}, resolutionPolicy ask: skip`,
      options: { ask: () => Promise.resolve("skip") },
      model: [of("b")],
      asks: 1,
      path: "a:skip b:ok",
    }),
    gated("ask", says, {
      name: `checkGate says ${says}, resolutionPolicy ask: nobody is there`,
      ends: "StageGateUnresolved",
      exitCode: 1,
    }),
  ]),
  {
    name: "checkGate is asked again while tries remain, with the pauses of backoff",
    stages: { a: { resolutionPolicy: "retry-later", ...TRIES(3, "exponential") } },
    hooks: `let looks = 0; export default { a: { checkGate: () => (++looks < 3 ? "defer" : "proceed") } };`,
    model: [done()],
    path: "a:ok",
    waits: [1000, 2000],
  },
  {
    name: "checkGate blocks, somebody acts, and the run goes on",
    stages: { a: { resolutionPolicy: "retry-later" } },
    hooks: `import { existsSync } from "node:fs";
      export default { a: { checkGate: () => (existsSync("ready") ? "proceed" : "block") } };`,
    model: [],
    ends: "StageGateUnresolved",
    exitCode: 5,
    also: async (ran) => {
      writeFileSync(join(ran.folder, "ready"), "");
      const whole = await ran.again([done()]);
      assert.deepEqual(
        [whole.result.outcome, pathOf(whole.result)],
        ["completed", "a:ok"],
        whole.result.reason,
      );
    },
  },
  {
    name: "checkGate has nothing to say: the declared gate holds",
    stages: { a: { gate: "shut" } },
    machine: { checks: { shut: check("exit 1") } },
    hooks: hooks(`a: { checkGate: () => {} }`),
    model: [],
    ends: "StageGateUnresolved",
    exitCode: 1,
  },
  {
    name: "checkGate says proceed: it stands in the place of the declared gate",
    stages: { a: { gate: "shut" } },
    machine: { checks: { shut: check("exit 1") } },
    hooks: hooks(`a: { checkGate: async () => "proceed" }`),
    model: [done()],
    path: "a:ok",
  },
  {
    name: "checkGate says something else",
    stages: { a: {} },
    hooks: hooks(`a: { checkGate: () => "perhaps" }`),
    model: [],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: /checkGate hook of stage "a" gave something else/,
  },
];

const ASSERT: readonly Row[] = [
  {
    name: "assert asks for another try, whose first words are its reason",
    stages: { a: TRIES(2) },
    hooks: hooks(
      `a: { assert: async (ctx, { parsed }) => parsed.n === 2 ? "ok" : { verdict: "retry", reason: "n must be 2" } }`,
    ),
    model: [done({ n: 1 }), done({ n: 2 }, { saw: ["n must be 2"] })],
    path: "a:ok",
    also: async (ran) => {
      assert.equal(ran.result.handoff.a!.attemptCount, 2);
      assert.deepEqual(unanswered(ran.asked), []);
      const outcomes = await recorded(ran, "StageAssertOutcome");
      assert.deepEqual(
        outcomes.map(({ attempt, verdict, reason }) => [attempt, verdict, reason]),
        [
          [1, "retry", "n must be 2"],
          [2, "ok", ""],
        ],
      );
    },
  },
  {
    name: "assert is never content",
    stages: { a: TRIES(2) },
    hooks: hooks(`a: { assert: () => "retry" }`),
    model: [done(), done()],
    ends: "AGENT_VALIDATION_ABORT",
    exitCode: 6,
    path: "a:fail",
    reason: /retryExhausted/,
  },
  {
    name: "assert says fail: no other try, and next is not asked",
    stages: { a: { ...TRIES(3), next: "b" }, b: {} },
    hooks: hooks(`a: { assert: () => ({ verdict: "fail", reason: "no good" }), next: () => "b" }`),
    model: [done()],
    ends: "AGENT_VALIDATION_ABORT",
    exitCode: 6,
    path: "a:fail",
    reason: /no good/,
  },
  {
    name: "assert says skip: on to the next stage, without the payload",
    stages: { a: { next: "b" }, b: { body: "{{ctx.upstream[0].verdict}}" } },
    hooks: hooks(`a: { assert: () => "skip" }`),
    model: [done({ n: 1 }), done({}, { saw: ["skip"] })],
    path: "a:skip b:ok",
    also: ({ result }) => assert.equal(result.handoff.a!.parsed, undefined),
  },
  {
    name: "assert sees the payload, every attempt with its parse error, and the whole conversation",
    stages: {
      a: {
        allowedTools: ["Read"],
        completionSchema: { type: "object", required: ["n"], properties: { n: { type: "number" } } },
      },
    },
    files: { "note.txt": "the note" },
    hooks: `import { writeFileSync } from "node:fs";
      export default { a: { assert: (ctx, act) => { writeFileSync("act.json", JSON.stringify(act)); return "ok"; } } };`,
    model: [
      prose,
      calls({ name: "Read", input: { file_path: "note.txt" } }),
      done({ n: "x" }),
      done({ n: 1 }),
    ],
    path: "a:ok",
    also: ({ folder }) => {
      const act = JSON.parse(readFileSync(join(folder, "act.json"), "utf8")) as {
        readonly parsed: unknown;
        readonly capHit: boolean;
        readonly attempts: readonly {
          readonly index: number;
          readonly turns: number;
          readonly parseError: string;
        }[];
        readonly transcript: readonly { readonly role: string }[];
      };
      assert.deepEqual([act.parsed, act.capHit, act.attempts.length], [{ n: 1 }, false, 1]);
      assert.deepEqual([act.attempts[0]!.index, act.attempts[0]!.turns], [1, 4]);
      assert.match(act.attempts[0]!.parseError, /\/n must be number/);
      assert.deepEqual(
        act.transcript.map(({ role }) => role),
        ["user", "assistant", "user", "assistant", "tool", "assistant", "tool", "assistant"],
      );
      assert.match(JSON.stringify(act.transcript), /the note/);
    },
  },
  {
    name: "assert has the last word after a cap, and a warning says so",
    stages: { a: { turnCap: 1, next: "b" }, b: { body: "{{ctx.upstream[0].capHit}}" } },
    hooks: hooks(`a: { assert: (ctx, act) => (act.capHit && !("parsed" in act) ? "ok" : "fail") }`),
    model: [prose, done({}, { saw: ["true"] })],
    path: "a:ok b:ok",
    also: ({ result }) =>
      assert.ok(result.warnings.includes("a@1: accepted although the turn cap was reached")),
  },
  {
    name: "assert is content, then come the declared checks",
    stages: { a: { assert: ["no"] } },
    machine: { checks: { no: check("exit 1") } },
    hooks: hooks(`a: { assert: () => "ok" }`),
    model: [done()],
    ends: "AGENT_VALIDATION_ABORT",
    exitCode: 6,
  },
  {
    name: "assert has nothing to say: what is declared holds, and a cap is no success",
    stages: { a: { turnCap: 1 } },
    hooks: hooks(`a: { assert: () => undefined }`),
    model: [prose],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
  },
];

const EXIT: readonly Row[] = [
  {
    name: "exit leaves a digest for the successor",
    stages: {
      a: { next: "b", output: { digest: "parsed.long" } },
      b: { body: "{{ctx.upstream[0].output.digest}} {{ctx.upstream[0].output.by}}" },
    },
    hooks: hooks(
      `a: { exit: (ctx, result) => ({ digest: result.parsed.long.slice(0, 2), by: result.stageId }) }`,
    ),
    model: [done({ long: "abcdef" }), done({}, { saw: ["ab a"], unseen: ["abcdef"] })],
    path: "a:ok b:ok",
  },
  {
    name: "exit leaves nothing: what is declared as output holds",
    stages: {
      a: { next: "b", output: { digest: "parsed.long" } },
      b: { body: "{{ctx.upstream[0].output.digest}}" },
    },
    hooks: hooks(`a: { exit: () => {} }`),
    model: [done({ long: "abcdef" }), done({}, { saw: ["abcdef"] })],
  },
  {
    name: "exit runs for a stage that failed too, and onFail reads what it left",
    stages: { a: { turnCap: 1, onFail: "b" }, b: { body: "{{ctx.upstream[0].output}}" } },
    hooks: hooks(`a: { exit: (ctx, result) => result.verdict + " " + result.capHit }`),
    model: [prose, done({}, { saw: ["fail true"] })],
    path: "a:cap b:ok",
  },
];

const led = (name: string, value: string, more: Partial<Row>): Row => ({
  name: `next gives ${name}`,
  stages: { p: { next: "end" }, a: {}, b: { body: "{{ctx.upstream}}" }, meet: {} },
  hooks: hooks(`p: { next: (ctx, result) => (${value}) }`),
  model: [],
  ...more,
});
const NEXT: readonly Row[] = [
  led("a stage", `"a"`, { model: [of("p"), of("a")], path: "p:ok a:ok" }),
  led("a stage by the result", `result.parsed.n > 1 ? "b" : "a"`, {
    model: [of("p", done({ n: 2 })), of("b")],
    path: "p:ok b:ok",
  }),
  led('"end"', `"end"`, { model: [of("p")], path: "p:ok" }),
  led("no stages", `{ execution: "sequential", nextStages: [] }`, { model: [of("p")], path: "p:ok" }),
  led("several, one after the other", `{ execution: "sequential", nextStages: ["a", "b"] }`, {
    model: [of("p"), of("a"), of("b", done({}, { saw: ['"stageId":"a"'] }))],
    path: "p:ok a:ok b:ok",
  }),
  led(
    "several side by side with a join",
    `{ execution: "parallel", nextStages: ["a", "b", "meet"], join: "meet" }`,
    {
      model: [of("p"), of("a"), of("b"), of("meet")],
      path: "p:ok a:ok b:ok meet:ok",
    },
  ),
  led("a join that is not listed", `{ execution: "parallel", nextStages: ["a", "b"], join: "meet" }`, {
    model: [of("p")],
    ends: "StageJoinDangling",
    exitCode: 1,
    reason: /List "meet" in nextStages, or set joinRule: declared/,
  }),
  led(
    "a join that is not listed, and joinRule declared",
    `{ execution: "parallel", nextStages: ["a", "b"], join: "meet" }`,
    {
      machine: { joinRule: "declared" },
      model: [of("p"), of("a"), of("b"), of("meet")],
      path: "p:ok a:ok b:ok meet:ok",
    },
  ),
  led("one stage side by side", `{ execution: "parallel", nextStages: ["a"] }`, {
    model: [of("p")],
    ends: "InvalidParallelPlan",
    exitCode: 1,
  }),
  led("a stage that there is not", `"nowhere"`, {
    model: [of("p")],
    ends: "StageTargetUnknown",
    exitCode: 1,
  }),
  led("a number", `7`, { model: [of("p")], ends: "LifecycleFailure", exitCode: 1 }),
  led("nothing: what is declared holds", `undefined`, {
    stages: { p: { next: "a" }, a: {} },
    model: [of("p"), of("a")],
    path: "p:ok a:ok",
  }),
  {
    name: "next gives a group without a join in a list: the list goes on after the group",
    stages: {
      p: {},
      s: {},
      a: {},
      b: {},
      z: { body: "{{ctx.upstream[0].stageId}} {{ctx.upstream[1].stageId}}" },
    },
    hooks: hooks(`p: { next: () => ({ execution: "sequential", nextStages: ["s", "z"] }) },
      s: { next: () => ({ execution: "parallel", nextStages: ["a", "b"] }) }`),
    model: [of("p"), of("s"), of("a"), of("b"), of("z", done({}, { saw: ["a b"] }))],
    path: "p:ok s:ok a:ok b:ok z:ok",
  },
  {
    name: "next of a stage that leads to itself still sees what led to it, and not its own result",
    stages: { a: {} },
    hooks: hooks(`a: { next: ({ upstream }, { parsed }) => {
      if (parsed.n === 1) return "a";
      if (upstream[0].parsed.n !== 1) throw new Error("upstream is " + JSON.stringify(upstream));
      return "end";
    } }`),
    model: [done({ n: 1 }), done({ n: 2 })],
    path: "a:ok a:ok",
  },
  {
    name: "next of a sibling may not lead on",
    stages: { s: GROUP, a: {}, b: {}, meet: {} },
    hooks: hooks(`a: { next: () => "meet" }`),
    model: [of("s"), of("a"), of("b")],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /StageDefinitionInvalid/,
  },
];

const TUPLE = `import { appendFileSync } from "node:fs";
const keep = (what) => appendFileSync("asked.jsonl", JSON.stringify(what) + "\\n");
`;
const asked = ({ folder }: Ran) =>
  readFileSync(join(folder, "asked.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly [key: string]: unknown });
const granted = (says: string, more: Partial<Row>): Row => ({
  name: `grantStageTool says ${says}`,
  stages: { a: { allowedTools: ["Read"] } },
  hooks: `${TUPLE} export default { grantStageTool: (tuple, host) => { keep([tuple, host]); return ${says}; } };`,
  model: [calls(write("out.txt")), done()],
  path: "a:ok",
  ...more,
});
const byHook = (decision: string) => ({
  also: (ran: Ran) => {
    assert.equal(isThere(ran, "out.txt"), decision === "approve");
    const grants = ran.entries.flatMap(({ event }) =>
      event.type === "step.called" ? event.results.map(({ grant }) => [grant?.by, grant?.decision]) : [],
    );
    assert.deepEqual(grants, [["hook", decision]]);
  },
});
const REFUSED = done({}, { saw: ["ApprovalDenied"] });
const GRANTS: readonly Row[] = [
  granted(`"approve"`, byHook("approve")),
  granted(`Promise.resolve({ decision: "approve" })`, byHook("approve")),
  granted(`"deny"`, {
    model: [calls(write("out.txt")), REFUSED],
    options: { onPermission: "allow", ask: () => Promise.resolve("allow") },
    ...byHook("deny"),
  }),
  granted(`"defer"`, {
    name: 'grantStageTool says "defer": a person is asked',
    options: { ask: () => Promise.resolve("allow"), onPermission: "deny" },
    also: (ran) => assert.ok(isThere(ran, "out.txt")),
  }),
  granted(`"defer"`, {
    name: 'grantStageTool says "defer", and nobody is there: denied',
    model: [calls(write("out.txt")), REFUSED],
    also: (ran) => assert.ok(!isThere(ran, "out.txt")),
  }),
  granted(`undefined`, {
    name: "grantStageTool has nothing to say, and the setting says allow",
    options: { onPermission: "allow" },
    also: (ran) => assert.ok(isThere(ran, "out.txt")),
  }),
  granted(`(() => { throw new Error("boom"); })()`, {
    model: [calls(write("out.txt")), done({}, { saw: ["grantStageTool failed: boom"] })],
    options: { onPermission: "allow" },
    ...byHook("deny"),
  }),
  granted(`"approve"`, {
    name: "grantStageTool is asked about every call, with its stage, try, call, tool and digest",
    stages: { a: { allowedTools: ["Read"], ...TRIES(2), turnCap: 1 } },
    model: [
      calls(write("out.txt"), { name: "Read", input: { file_path: "out.txt" } }),
      calls(write("out.txt")),
    ],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    path: "a:cap",
    also: (ran) => {
      const tuples = asked(ran).map(
        (line) => (line as unknown as readonly [{ readonly [key: string]: unknown }])[0],
      );
      assert.equal(tuples.length, 2);
      const { run: id } = ran.result;
      assert.deepEqual(
        tuples,
        [1, 2].map((attempt) => ({
          stageExecutionId: `${id}/a/1`,
          attempt,
          proposalId: `${id}/a@1/${attempt}#1`,
          tool: "Write",
          argsDigest: tuples[0]!.argsDigest,
        })),
      );
      assert.match(String(tuples[0]!.argsDigest), /^[0-9a-f]{64}$/);
    },
  }),
];

const GUARD: readonly Row[] = [
  {
    name: "guard refuses by the arguments, whoever allowed the tool",
    stages: { a: { allowedTools: ["Write"] } },
    hooks: hooks(
      `guard: ({ tool, input }) => input.file_path.startsWith("secret") ? { deny: tool + " not there" } : undefined`,
    ),
    model: [calls(write("secret.txt"), write("open.txt")), done({}, { saw: ["Write not there"] })],
    path: "a:ok",
    also: async (ran) => {
      assert.deepEqual([isThere(ran, "secret.txt"), isThere(ran, "open.txt")], [false, true]);
      const approvals = await recorded(ran, "Approval");
      assert.deepEqual(
        approvals.map(({ decision }) => decision),
        ["deny", "approve"],
      );
    },
  },
  {
    name: "guard refuses also what was granted",
    stages: { a: {} },
    hooks: hooks(`grantStageTool: () => "approve", guard: () => "deny"`),
    model: [calls(write("out.txt")), done({}, { saw: ["refused by the guard"] })],
    path: "a:ok",
    also: (ran) => assert.ok(!isThere(ran, "out.txt")),
  },
  {
    name: "guard that fails refuses",
    stages: { a: { allowedTools: ["Write"] } },
    hooks: hooks(`guard: () => { throw new Error("boom"); }`),
    model: [calls(write("out.txt")), done({}, { saw: ["it failed: boom"] })],
    path: "a:ok",
    also: (ran) => assert.ok(!isThere(ran, "out.txt")),
  },
  {
    name: "guard is not asked about the completion, nor about a batch that is refused",
    stages: { a: { allowedTools: ["Write"] } },
    hooks: `${TUPLE} export default { guard: (call) => { keep(call); return "deny"; }, grantStageTool: (call) => { keep(call); } };`,
    model: [
      calls({ name: "submit", input: {} }, write("out.txt"), { name: "Bash", input: { command: "true" } }),
      done(),
    ],
    path: "a:ok",
    also: (ran) => assert.ok(!isThere(ran, "asked.jsonl")),
  },
];

const TROUBLE: readonly Row[] = [
  ...(["setup", "checkGate", "assert", "exit", "next"] as const).map((hook): Row => ({
    name: `${hook} throws`,
    stages: { a: {} },
    hooks: hooks(`a: { ${hook}: async () => { throw new TypeError("boom"); } }`),
    model: hook === "setup" || hook === "checkGate" ? [] : [done()],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: new RegExp(
      `The ${hook} hook of stage "a" failed: boom \\(\\.agent/\\w+/hooks\\.mjs:\\d+:\\d+\\)`,
    ),
  })),
  ...(["setup", "assert"] as const).map((hook): Row => ({
    name: `${hook} hangs`,
    stages: { a: {} },
    hooks: hooks(`a: { ${hook}: () => new Promise(() => setInterval(() => {}, 1000)) }`),
    options: { hookTimeoutMs: 5_000 },
    model: hook === "setup" ? [] : [done()],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: /gave nothing within 5000 ms/,
  })),
  {
    name: "a hook that spins without end",
    stages: { a: {} },
    hooks: hooks(`a: { checkGate: () => { for (;;); } }`),
    options: { hookTimeoutMs: 5_000 },
    model: [],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: /gave nothing within 5000 ms/,
  },
  {
    name: "a hook that ends its process",
    stages: { a: {} },
    hooks: hooks(`a: { exit: () => process.exit(3) }`),
    model: [done()],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: /exited with 3/,
  },
  {
    name: "a hook that ends its process, which takes a moment after its line is closed",
    stages: { a: {} },
    hooks: `import { closeSync } from "node:fs";
const leave = () => {
  closeSync(3);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  process.exit(3);
};
${hooks(`a: { exit: leave }`)}`,
    model: [done()],
    ends: "LifecycleFailure",
    exitCode: 1,
    reason: /exited with 3/,
  },
  {
    name: "a module that cannot be parsed is found before the run starts",
    stages: { a: {} },
    hooks: `export default {\n  a: `,
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) =>
      assert.deepEqual(
        result.problems.map(({ code, file, line }) => `${code} ${file}:${line}`),
        ["MODULE-SYNTAX .agent/m/hooks.mjs:2"],
      ),
  },
  {
    name: "a module that cannot be loaded",
    stages: { a: {} },
    hooks: `throw new Error("not today");`,
    model: [],
    ends: "LifecycleFailure",
    exitCode: 1,
    asks: 0,
    reason:
      /setup hook of stage "a" failed: \.agent\/m\/hooks\.mjs: not today \(\.agent\/m\/hooks\.mjs:1:7\)/,
  },
  {
    name: "a module without a default export, or of other stages: what is declared holds",
    stages: { a: {} },
    hooks: `export const a = { setup: () => { throw new Error("never") } };`,
    model: [done()],
    path: "a:ok",
  },
  {
    name: "a sibling whose hook throws takes its group with it",
    stages: { s: GROUP, a: {}, b: {}, meet: {} },
    hooks: `import { setTimeout as sleep } from "node:timers/promises";
      export default { a: { assert: async () => { await sleep(200); throw new Error("boom"); } } };`,
    model: [of("s"), of("a"), of("b")],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"a" failed beside b.*LifecycleFailure/s,
  },
  {
    name: "an independent sibling whose hook throws has failed, and the join sees it",
    stages: {
      s: { next: { ...GROUP.next, policy: "independent" } },
      a: {},
      b: {},
      meet: { body: "{{ctx.upstream[0].reason}} | {{ctx.upstream[1].verdict}}" },
    },
    hooks: hooks(`a: { assert: () => { throw new Error("boom"); } }`),
    model: [
      of("s"),
      of("a"),
      of("b"),
      of("meet", done({}, { saw: ["LifecycleFailure", "boom (", ") | ok"] })),
    ],
    path: "s:ok a:fail b:ok meet:ok",
  },
];

export const HOOK_TABLES = { SETUP, READ_ONLY, GATES, ASSERT, EXIT, NEXT, GRANTS, GUARD, TROUBLE };
