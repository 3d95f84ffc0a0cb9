/** Document 004 by the public door: real files in a folder, `run` and `resume`, one row for each row of its tables. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { OFFERED } from "../../src/boundaries/tools/toolbox.ts";
import type { Backend, ScriptReply } from "../../src/run/index.ts";
import {
  pathOf,
  prove,
  recorded,
  told,
  unanswered,
  type Ran,
  type Row,
  type Start,
} from "./stage-project.ts";

// What the model says.

const done = (payload: object = {}, more: Partial<ScriptReply> = {}): ScriptReply => ({
  output: payload as NonNullable<ScriptReply["output"]>,
  ...more,
});
const of = (step: string, reply: ScriptReply = done()): ScriptReply => ({ ...reply, step });
const prose: ScriptReply = { text: "Let me think." };
const write = (file: string, content = "x") => ({ name: "Write", input: { file_path: file, content } });
const read = (file: string) => ({ name: "Read", input: { file_path: file } });
const calls = (...list: NonNullable<ScriptReply["calls"]>): ScriptReply => ({ calls: list });
const submit = (input = {}) => ({ name: "submit", input });

// What stages are made of.

const TEXT = { type: "string" };
const WANTS = (...names: readonly string[]) => ({
  completionSchema: {
    type: "object",
    required: names,
    properties: Object.fromEntries(names.map((name) => [name, TEXT])),
    additionalProperties: false,
  },
});
const TRIES = (maxAttempts: number, backoff = "none") => ({ retryPolicy: { maxAttempts, backoff } });
const check = (command: string) => ({ type: "command", command, successWhen: "exitCode:0" });
const GROUP = { next: { parallel: ["a", "b"], join: "meet" } };
const asks = (ran: Ran, stage: string) => ran.asked.filter(({ asker }) => asker.step === stage);
const first = (ran: Ran, stage: string) => asks(ran, stage)[0]!;

const FIELDS: readonly Row[] = [
  {
    name: "field id: what next names, and what the path and the results go by",
    stages: { "one-2": { next: "three" }, three: {} },
    model: [of("one-2"), of("three")],
    path: "one-2:ok three:ok",
    also: ({ result }) => assert.deepEqual(Object.keys(result.handoff), ["one-2", "three"]),
  },
  {
    name: "field name: a label, whatever it says",
    stages: { a: { name: "Ünï & <co>", body: "I am {{stage.name}}." } },
    model: [done({}, { saw: ["I am Ünï & <co>."] })],
  },
  {
    name: "field allowedTools: what is listed is offered and may be called",
    stages: { a: { allowedTools: ["Read", "Write"] } },
    model: [calls(write("out.txt", "hi")), calls(read("out.txt")), done({}, { saw: ["hi"] })],
    also: ({ asked, folder }) => {
      assert.deepEqual(asked[0]!.tools.map(({ name }) => name).toSorted(), ["Read", "Write"]);
      assert.equal(readFileSync(join(folder, "out.txt"), "utf8"), "hi");
    },
  },
  {
    name: "field completionTool: the one call that ends Act",
    stages: { a: { completionTool: "submit_plan" } },
    model: [calls({ name: "submit_plan", input: { n: 1 } })],
    also: ({ result, asked }) => {
      assert.deepEqual(result.handoff.a!.parsed, { n: 1 });
      assert.deepEqual(asked[0]!.output?.channel, { kind: "tool", name: "submit_plan" });
    },
  },
  {
    name: "field completionSchema: a gate for the shape, not for the truth",
    stages: { a: WANTS("summary") },
    model: [done({ summary: "" })],
    path: "a:ok",
    also: ({ asked }) => assert.deepEqual(asked[0]!.output!.schema!.required, ["summary"]),
  },
  {
    name: "field retryPolicy: maxAttempts counts the first try too",
    stages: { a: { ...TRIES(3), turnCap: 1 } },
    model: [prose, prose, prose],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    asks: 3,
    also: ({ result }) => assert.equal(result.handoff.a!.attemptCount, 3),
  },
  {
    name: "field turnCap: responses of one try",
    stages: { a: { turnCap: 3 } },
    model: [prose, prose, prose],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    asks: 3,
  },
  ...[
    "id",
    "name",
    "allowedTools",
    "completionTool",
    "completionSchema",
    "retryPolicy",
    "turnCap",
    "resolutionPolicy",
  ].map((field): Row => ({
    name: `field ${field} is missing: the machine does not begin`,
    stages: { a: { [field]: undefined } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) =>
      assert.ok(
        result.problems.some(({ code, pointer }) => code === "StageFieldMissing" && pointer === `/${field}`),
      ),
  })),
  {
    name: "field description: not for the model",
    stages: { a: { description: "SECRET SAUCE" } },
    model: [done({}, { unseen: ["SECRET SAUCE"] })],
  },
  {
    name: "field tags: not interpreted",
    stages: { a: { tags: ["fast", "end", "a"] } },
    model: [done()],
    path: "a:ok",
  },
  {
    name: "field of one's own: kept out of everything",
    stages: { a: { owner: "me", "x-cost": { usd: 3 }, priority: [1] } },
    model: [done()],
    path: "a:ok",
    also: ({ result }) => assert.deepEqual(result.warnings, []),
  },
];

const INPUTS = {
  type: "object",
  required: ["parsed"],
  properties: { parsed: WANTS("sum").completionSchema },
};
const NUMBERS: readonly Row[] = [
  {
    name: "field inputsSchema: the result of the stage before fits",
    stages: { a: { next: "b" }, b: { inputsSchema: INPUTS } },
    model: [done({ sum: "ok" }), done()],
    path: "a:ok b:ok",
  },
  {
    name: "field inputsSchema: it does not fit, so the model is not asked, and the audit says StageInitFailed",
    stages: { a: { next: "b" }, b: { inputsSchema: INPUTS } },
    model: [done({ sum: 7 })],
    ends: "StageInputsInvalid",
    exitCode: 1,
    asks: 1,
    reason: /ctx\.upstream\[0\] of stage "b", from "a"/,
    also: async (ran) => {
      const [failed] = await recorded(ran, "StageInitFailed");
      assert.deepEqual([failed?.stageId, failed?.code], ["b", "StageInputsInvalid"]);
    },
  },
  {
    name: "field inputsSchema: on a join each sibling is looked at by itself",
    stages: { s: GROUP, a: {}, b: {}, meet: { inputsSchema: INPUTS } },
    model: [of("s"), of("a", done({ sum: "ok" })), of("b", done({ other: "no" }))],
    ends: "StageInputsInvalid",
    exitCode: 1,
    reason: /ctx\.upstream\[1\] of stage "meet", from "b"/,
  },
  {
    name: "field inputsSchema: an entry stage has nothing that could misfit",
    stages: { a: { inputsSchema: INPUTS } },
    model: [done()],
    path: "a:ok",
  },
];

const shows = (name: string, body: string, saw: string, more: Partial<Start> = {}): Row => ({
  name: `placeholder ${name}`,
  stages: { a: { body } },
  args: { task: "mend it" },
  ...more,
  model: [done({}, { saw: [saw] })],
});
const after = (name: string, body: string, saw: string | ((run: string) => string)): Row => ({
  name: `placeholder ${name}`,
  stages: { a: { output: { digest: "parsed.long[1]" }, next: "b" }, b: { body } },
  model: [of("a", done({ long: ["x", "in short"] })), of("b")],
  also: (ran) => {
    const expected = typeof saw === "string" ? saw : saw(ran.result.run!);
    assert.equal(first(ran, "b").system, expected);
  },
});
const refused = (name: string, body: string, code: string, more: Partial<Row> = {}): Row => ({
  name: `placeholder ${name}`,
  stages: { a: { body } },
  model: [],
  ends: code,
  exitCode: 1,
  asks: 0,
  ...more,
});

const PLACEHOLDERS: readonly Row[] = [
  shows("{{ctx.<field>}}", "Task: {{ctx.task}}.", "Task: mend it."),
  shows("{{ ctx.<field> }} with blanks", "Task: {{ \tctx.task  }}.", "Task: mend it."),
  shows("${ctx.<field>}", "Task: ${ctx.task}.", "Task: mend it."),
  shows("both forms, with paths and indexes", "${ctx.o.list[1].n} {{ctx.o.list[1].n}}", "7 7", {
    args: { o: { list: [0, { n: 7 }] } },
  }),
  shows(
    "a number, a truth value, a list and an object",
    "{{ctx.n}} {{ctx.t}} {{ctx.l}} {{ctx.o}}",
    '1.5 true [1,"a"] {"k":null}',
    {
      args: { n: 1.5, t: true, l: [1, "a"], o: { k: null } },
    },
  ),
  shows("null is nothing", "[{{ctx.none}}]", "[]", { args: { none: null } }),
  shows("a value is not read again", "{{ctx.a}}", "${ctx.b} {{ctx.b}}", {
    args: { a: "${ctx.b} {{ctx.b}}", b: "no" },
  }),
  shows("\\{{ and \\${ are braces", "\\{{ctx.task}} \\${ctx.task}", "{{ctx.task}} ${ctx.task}"),
  shows("{{env.FOO}} is text", "{{env.PATH}} ${HOME}", "{{env.PATH}} ${HOME}"),
  shows(
    "the body as it stands",
    "# Title\n\n  - one\n\ttwo  \n\n{{#if x}}y{{/if}}",
    "# Title\n\n  - one\n\ttwo  \n\n{{#if x}}y{{/if}}",
  ),
  shows("{{stage.id}} and {{stage.name}}", "{{stage.id}}, ${stage.name}", "a, Stage a"),
  after(
    "{{ctx.upstream[i].*}}: payload, digest and the rest",
    "{{ctx.upstream[0].parsed.long[0]}} ${ctx.upstream[0].output.digest} {{ctx.upstream[0].verdict}} {{ctx.upstream[0].capHit}} {{ctx.upstream[0].attemptCount}} {{ctx.upstream[0].stageId}} {{ctx.upstream[0].stageExecutionId}}",
    (run) => `x in short ok false 1 a ${run}/a/1`,
  ),
  after("{{ctx.upstream[0]}} whole: typed fields, and no transcript", "{{ctx.upstream[0]}}", (run) =>
    JSON.stringify({
      stageId: "a",
      stageExecutionId: `${run}/a/1`,
      verdict: "ok",
      parsed: { long: ["x", "in short"] },
      capHit: false,
      attemptCount: 1,
      output: { digest: "in short" },
    }),
  ),
  after(
    "{{ctx.workflowRunId}} and {{ctx.stageExecutionId}}",
    "{{ctx.workflowRunId}} {{ctx.stageExecutionId}}",
    (run) => `${run} ${run}/b/1`,
  ),
  {
    name: "placeholder {{ctx.upstream}} is empty on the entry stage and on siblings",
    stages: {
      s: { ...GROUP, body: "{{ctx.upstream}}" },
      a: { body: "{{ctx.upstream}}" },
      b: { body: "{{ctx.upstream}}" },
      meet: {},
    },
    model: [of("s"), of("a"), of("b"), of("meet")],
    also: (ran) =>
      assert.deepEqual(
        ["s", "a", "b"].map((stage) => first(ran, stage).system),
        ["[]", "[]", "[]"],
      ),
  },
  refused("without a value", "Task: {{ctx.task}}.", "StageCtxUnresolved", {
    reason: /"a" reads \{\{ctx\.task\}\}.*--input task=/,
    also: async (ran) => {
      const [failed] = await recorded(ran, "StageInitFailed");
      assert.deepEqual([failed?.stageId, failed?.code], ["a", "StageCtxUnresolved"]);
    },
  }),
  refused("without a value, the other form", "Task: ${ctx.o.x}.", "StageCtxUnresolved", { args: { o: {} } }),
  refused("that only a prototype has", "{{ctx.o.constructor}} {{ctx.__proto__}}", "StageCtxUnresolved", {
    args: { o: {} },
  }),
  refused(
    "for an optional field that was not sent",
    "{{ctx.upstream[0].parsed.note}}",
    "StageCtxUnresolved",
    {
      stages: {
        a: {
          completionSchema: { type: "object", properties: { note: TEXT } },
          next: "b",
        },
        b: { body: "{{ctx.upstream[0].parsed.note}}" },
      },
      model: [done()],
      asks: 1,
    },
  ),
  ...(["ctx.attempts", "ctx.attempts[0].parseError", "ctx.host", "ctx.host.cwd"] as const).map((path) =>
    refused(`{{${path}}} is not for prompts`, `{{${path}}}`, "FLOW_INVALID", {
      exitCode: 2,
      also: ({ result }) => assert.equal(result.problems[0]?.code, "StageCtxForbidden"),
    }),
  ),
  {
    name: "placeholder values are put in once: a retry goes on in the same conversation, which is not rendered again",
    stages: { a: { ...TRIES(2), turnCap: 1, body: "{{ctx.stageExecutionId}}" } },
    model: [prose, done()],
    also: ({ asked, result }) => {
      assert.deepEqual(new Set(asked.map(({ system }) => system)), new Set([`${result.run}/a/1`]));
      assert.equal(asked[1]!.messages.length, asked[0]!.messages.length + 3);
    },
  },
  {
    name: "placeholder values of the environment never reach the prompt, the tools or the messages",
    stages: {
      a: { allowedTools: ["Read"], body: "{{env.LOCKSTEP_TRUST}} ${LOCKSTEP_TRUST} {{settings.x}}" },
    },
    model: [done()],
    also: ({ asked }) => assert.doesNotMatch(JSON.stringify(asked), /"all"|: all/),
  },
];

const CHANNEL: readonly Row[] = [
  {
    name: "channel registration: made for the stage, in no list of tools",
    stages: { a: { allowedTools: ["Read"] } },
    model: [done()],
    also: ({ asked }) => assert.ok(asked[0]!.tools.every(({ name }) => name !== "submit")),
  },
  ...["Read", "Bash", "TodoWrite", "mcp__server__tool"].map((completionTool): Row => ({
    name: `channel reserved name: ${completionTool}`,
    stages: { a: { completionTool } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "CompletionToolReserved"),
  })),
  {
    name: "channel visibility: there although allowedTools is []",
    stages: { a: { allowedTools: [] } },
    model: [done()],
    also: ({ asked }) => {
      assert.deepEqual(asked[0]!.tools, []);
      assert.deepEqual(asked[0]!.output?.channel, { kind: "tool", name: "submit" });
    },
  },
  {
    name: "channel approval: neither the list nor the permission mode stands in its way, nor is anybody asked",
    stages: { a: { allowedTools: ["Read"] } },
    agent: { runner: { boundaries: { allowedTools: ["Read"], permissionMode: "plan" } } },
    options: { ask: () => Promise.reject(new Error("nobody is to be asked")) },
    model: [done()],
    path: "a:ok",
  },
  {
    name: "channel scope: another stage cannot call it",
    stages: { a: { completionTool: "submit_a", next: "b" }, b: { completionTool: "submit_b" } },
    model: [
      of("a"),
      of("b", calls({ name: "submit_a", input: {} })),
      of("b", done({}, { saw: ["ToolNotRegistered"] })),
    ],
    path: "a:ok b:ok",
    also: (ran) => assert.equal(asks(ran, "b").length, 2),
  },
  {
    name: "channel scope: two stages may have one of the same name, each with its own schema",
    stages: { a: { ...WANTS("x"), next: "b" }, b: WANTS("y") },
    model: [done({ x: "1" }), done({ x: "1" }), done({ y: "2" }, { saw: ["'y'"] })],
    path: "a:ok b:ok",
  },
  {
    name: "channel persistence: nothing of it is in the conversation of the next stage",
    stages: { a: { completionTool: "submit_a", next: "b" }, b: {} },
    model: [
      of("a", done({ secret: "S3" }, { text: "THOUGHT" })),
      of("b", done({}, { unseen: ["S3", "THOUGHT"] })),
    ],
    also: (ran) =>
      assert.deepEqual(
        first(ran, "b").messages.map(({ role }) => role),
        ["user"],
      ),
  },
  {
    name: "channel audit: no tool invocation, but an outcome and an exit",
    stages: { a: { allowedTools: ["Read"], ...WANTS("n") } },
    files: { "a.txt": "x" },
    model: [calls(read("a.txt")), done({}), done({ n: "1" })],
    also: async (ran) => {
      const records = await ran.audit();
      const tools = records
        .filter(({ name }) => name.startsWith("ToolInvocation"))
        .map(({ about }) => about.toolName);
      assert.deepEqual(new Set(tools), new Set(["Read"]));
      assert.ok(records.every(({ about }) => about.toolName !== "submit"));
      const [outcome] = await recorded(ran, "StageAssertOutcome");
      const [exited] = await recorded(ran, "StageExited");
      assert.deepEqual([outcome?.verdict, outcome?.parsed], ["ok", true]);
      assert.deepEqual([exited?.verdict, exited?.stageExecutionId], ["ok", `${ran.result.run}/a/1`]);
    },
  },
];

const STRICT = {
  completionSchema: {
    type: "object",
    required: ["a", "b"],
    properties: { a: { type: "number" }, b: { type: "array", items: TEXT }, c: { enum: ["x", "y"] } },
    additionalProperties: false,
  },
};
const BRANCHES: readonly Row[] = [
  {
    name: "branch success: a payload that fits ends Act",
    stages: { a: STRICT },
    model: [done({ a: 1, b: ["x"] })],
    path: "a:ok",
    asks: 1,
    also: ({ result }) =>
      assert.deepEqual(result.handoff.a, {
        stageId: "a",
        stageExecutionId: `${result.run}/a/1`,
        verdict: "ok",
        parsed: { a: 1, b: ["x"] },
        capHit: false,
        attemptCount: 1,
      }),
  },
  {
    name: "branch parse failure: every error with its path, as the result of the call, and Act goes on",
    stages: { a: STRICT },
    model: [done({ a: "1", b: ["x", 2], c: "z" }), done({}), done({ a: 1, b: [] })],
    path: "a:ok",
    asks: 3,
    also: async (ran) => {
      const [both, missing] = told(ran.asked);
      for (const words of [/\/a must be number/, /\/b\/1 must be string/, /\/c .*"x","y"/])
        assert.match(both!, words);
      for (const words of [/'a'/, /'b'/]) assert.match(missing!, words);
      assert.deepEqual(unanswered(ran.asked.slice(1)), []);
      const errors = await recorded(ran, "StageParseError");
      assert.equal(errors.length, 2);
      assert.match(JSON.stringify(errors[0]), /\/b\/1 must be string/);
    },
  },
  {
    name: "branch plain text: steered, once for each",
    stages: { a: {} },
    model: [prose, prose, done({}, { saw: ["Call `submit` when the stage is finished."] })],
    asks: 3,
    also: async (ran) => {
      const steers = ran.asked.at(-1)!.messages.filter((message) => message.role === "user");
      assert.equal(steers.length, 3);
      assert.equal((await recorded(ran, "StageSteered")).length, 2);
    },
  },
  {
    name: "branch other tool: dispatched, and its result is in the conversation",
    stages: { a: { allowedTools: ["Read"] } },
    files: { "note.txt": "the note says hello" },
    model: [calls(read("note.txt")), done({}, { saw: ["the note says hello"] })],
    path: "a:ok",
  },
  {
    name: "branch other tool: what the tool refuses is a result too",
    stages: { a: { allowedTools: ["Read"] } },
    model: [calls(read("../../etc/passwd")), done({}, { unseen: ["root:"] })],
    path: "a:ok",
    also: (ran) => assert.deepEqual(unanswered(ran.asked), []),
  },
  {
    name: "branch other tool: a name that no tool has",
    stages: { a: { allowedTools: ["Read"] } },
    model: [
      calls({ name: "Reed", input: {} }),
      done({}, { saw: ["ToolNotRegistered", "This step has: Read."] }),
    ],
    path: "a:ok",
  },
  {
    name: "branch cap: Act ends without a payload",
    stages: { a: { turnCap: 2, allowedTools: ["Read"] } },
    model: [prose, calls(read("x"))],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    path: "a:cap",
    asks: 2,
    also: async (ran) => {
      const { capHit, parsed, verdict } = ran.result.handoff.a!;
      assert.deepEqual([capHit, parsed, verdict], [true, undefined, "fail"]);
      assert.equal((await recorded(ran, "StageCapHit")).length, 1);
    },
  },
];

const BATCHES: readonly Row[] = [
  {
    name: "batch of one, the completion: parsed",
    stages: { a: {} },
    model: [{ ...calls(submit({ n: 1 })), text: "Here it is." }],
    path: "a:ok",
    asks: 1,
  },
  ...(
    [
      ["completion first", [submit(), write("one.txt"), write("two.txt")]],
      ["completion last", [write("one.txt"), write("two.txt"), submit()]],
      [
        "completion beside a tool that the stage does not have",
        [submit(), { name: "Bash", input: { command: "touch one.txt" } }],
      ],
    ] as const
  ).map(([how, batch]): Row => ({
    name: `batch of the completion and others, ${how}: refused whole, and nothing is on disk`,
    stages: { a: { allowedTools: ["Write"] } },
    options: { ask: () => Promise.reject(new Error("nobody is to be asked")) },
    model: [calls(...batch), done({}, { saw: ["submit must be the only tool call"] })],
    path: "a:ok",
    asks: 2,
    also: async (ran) => {
      assert.ok(!existsSync(join(ran.folder, "one.txt")) && !existsSync(join(ran.folder, "two.txt")));
      assert.deepEqual(unanswered(ran.asked.slice(1)), []);
      assert.equal(told(ran.asked).length, batch.length);
      const names = (await ran.audit()).map(({ name }) => name);
      assert.ok(names.includes("StageBatchRejected"));
      assert.ok(names.every((name) => !name.startsWith("ToolInvocation") && name !== "Approval"));
    },
  })),
  {
    name: "batch of two completions: refused, also when both fit",
    stages: { a: {} },
    model: [calls(submit(), submit()), done({ n: 2 }, { saw: ["submit must be the only tool call"] })],
    path: "a:ok",
    also: (ran) => {
      assert.deepEqual(ran.result.handoff.a!.parsed, { n: 2 });
      assert.deepEqual(unanswered(ran.asked.slice(1)), []);
    },
  },
  {
    name: "batch without a completion: each is dispatched, in order",
    stages: { a: { allowedTools: ["Write", "Read"] } },
    model: [calls(write("one.txt", "1"), read("one.txt"), write("two.txt", "2")), done()],
    path: "a:ok",
    also: (ran) => {
      assert.ok(existsSync(join(ran.folder, "two.txt")));
      assert.match(told(ran.asked)[1]!, /1/);
      assert.deepEqual(unanswered(ran.asked), []);
    },
  },
  {
    name: "batch that was refused counts as a turn",
    stages: { a: { turnCap: 2, allowedTools: ["Write"] } },
    model: [calls(submit(), submit()), calls(write("one.txt"), submit())],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    asks: 2,
  },
];

const CAPS: readonly Row[] = [
  {
    name: "cap: a response of any kind is one turn",
    stages: { a: { turnCap: 4, allowedTools: ["Read"], ...WANTS("n") } },
    model: [prose, done({}), calls(read("x")), calls(submit(), submit())],
    ends: "AGENT_TURN_LIMIT",
    exitCode: 4,
    asks: 4,
  },
  {
    name: "cap: the completion in the last turn still counts",
    stages: { a: { turnCap: 2 } },
    model: [prose, done()],
    path: "a:ok",
  },
  {
    name: "cap: tools of the last turn run, and their results wait for the next try",
    stages: { a: { turnCap: 1, ...TRIES(2), allowedTools: ["Write"] } },
    model: [calls(write("one.txt")), done({}, { saw: ["1 responses of a try are used up", "one.txt"] })],
    path: "a:ok",
    also: async (ran) => {
      assert.ok(existsSync(join(ran.folder, "one.txt")));
      assert.deepEqual(unanswered(ran.asked), []);
      assert.equal(ran.result.handoff.a!.capHit, false);
      const outcomes = await recorded(ran, "StageAssertOutcome");
      assert.deepEqual(
        outcomes.map(({ attempt, verdict, capHit }) => [attempt, verdict, capHit]),
        [
          [1, "retry", true],
          [2, "ok", false],
        ],
      );
      assert.equal((await recorded(ran, "StageCapHit")).length, 1);
    },
  },
  {
    name: "cap: a bad payload in the last turn is answered with the next try",
    stages: { a: { turnCap: 1, ...TRIES(2), ...WANTS("n") } },
    model: [done({}), done({ n: "1" }, { saw: ["does not fit its schema", "Complete the stage now."] })],
    path: "a:ok",
    also: (ran) => assert.deepEqual(unanswered(ran.asked), []),
  },
  {
    name: "cap: no tries left, but onFail says where to go",
    stages: {
      a: { turnCap: 1, onFail: "b" },
      b: { body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[0].capHit}}" },
    },
    model: [of("a", prose), of("b", done({}, { saw: ["fail true"] }))],
    path: "a:cap b:ok",
  },
];

const RELATIONS: readonly Row[] = [
  {
    name: "relation tools: allowedTools narrows what the agent has",
    stages: { a: { allowedTools: ["Read"] } },
    agent: { runner: { boundaries: { allowedTools: ["Read", "Write"] } } },
    model: [calls(write("one.txt")), done({}, { saw: ["ApprovalDenied"] })],
    path: "a:ok",
    also: ({ asked, folder }) => {
      assert.deepEqual(
        asked[0]!.tools.map(({ name }) => name),
        ["Read"],
      );
      assert.ok(!existsSync(join(folder, "one.txt")));
    },
  },
  {
    name: "relation tools: it cannot widen it",
    stages: { a: { allowedTools: ["Read", "Write"] } },
    agent: { runner: { boundaries: { allowedTools: ["Read"] } } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageToolUnknown"),
  },
  {
    name: "relation tools: commands that the agent limits are limited in the stage",
    stages: { a: { allowedTools: ["Bash"] } },
    agent: { runner: { boundaries: { allowedTools: ["Bash(echo *)"] } } },
    model: [
      calls({ name: "Bash", input: { command: "touch one.txt" } }),
      done({}, { saw: ["is not covered by"] }),
    ],
    path: "a:ok",
    also: ({ folder }) => assert.ok(!existsSync(join(folder, "one.txt"))),
  },
  {
    name: "relation tools: a tool of a server that is not declared is caught before anything is asked",
    stages: { a: { next: "b" }, b: { allowedTools: ["mcp__server__tool"] } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageToolUnknown"),
  },
  {
    name: "relation tools: a tool that only coding agents have is caught before anything is asked",
    stages: { a: { next: "b" }, b: { allowedTools: ["WebFetch"] } },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => {
      assert.equal(result.problems[0]?.code, "StageToolUnknown");
      const listed = /these: (.*?);/.exec(result.problems[0]?.fix ?? "")?.[1];
      assert.deepEqual(listed?.split(", "), OFFERED);
    },
  },
  {
    name: "relation providers: a stage has the model of its agent, whatever it says",
    stages: { a: { model: "other", provider: "other" } },
    agent: { runner: { flow: { defaultModel: "the-model" } } },
    model: [done()],
    also: ({ asked }) => assert.equal(asked[0]!.model, "the-model"),
  },
];

const MEET = { body: "1 {{ctx.upstream[0].parsed.n}} 2 {{ctx.upstream[1].parsed.n}}" };
/** The first stage answers only when the others have: so it is always the last. */
const slow = (stage: string, script: readonly ScriptReply[]): Backend => {
  const replies = new Map<string, ScriptReply[]>();
  for (const reply of script) replies.set(reply.step!, [...(replies.get(reply.step!) ?? []), reply]);
  return {
    spec: { id: "slow", options: null },
    turn: async ({ asker, output }) => {
      if (asker.step === stage) for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
      const reply = replies.get(asker.step)!.shift()!;
      const tool = output!.channel.kind === "tool" ? output!.channel.name : "";
      const completion = { id: asker.key, name: tool, input: (reply.output ?? {}) as { readonly n: string } };
      const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
      return {
        kind: "reply",
        text: reply.text ?? "",
        calls: reply.output === undefined ? [] : [completion],
        usage,
      };
    },
  };
};

const SIBLINGS: readonly Row[] = [
  {
    name: "siblings: the join runs when all have succeeded, and sees them in declared order",
    stages: { s: GROUP, a: {}, b: {}, meet: MEET },
    model: [
      of("s"),
      of("a", done({ n: "A" })),
      of("b", done({ n: "B" })),
      of("meet", done({}, { saw: ["1 A 2 B"] })),
    ],
    path: "s:ok a:ok b:ok meet:ok",
  },
  {
    name: "siblings: the order at the join is the declared one when the first is the last to finish",
    stages: { s: GROUP, a: {}, b: {}, meet: MEET },
    model: slow("a", [of("s"), of("a", done({ n: "A" })), of("b", done({ n: "B" })), of("meet")]),
    path: "s:ok a:ok b:ok meet:ok",
    also: (ran) => {
      const settled = ran.entries.flatMap(({ led }) => (led === undefined ? [] : [led.step]));
      assert.deepEqual(settled, ["s", "b", "a", "meet"]);
      assert.equal(first(ran, "meet").system, "1 A 2 B");
    },
  },
  {
    name: "siblings: one fails, the group has failed, the join is neither rendered nor asked",
    stages: { s: GROUP, a: { turnCap: 1 }, b: {}, meet: MEET },
    model: [of("s"), of("a", prose), of("b", prose)],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"a" failed beside b \(stopped\): AGENT_TURN_LIMIT/,
    also: async (ran) => {
      assert.equal(ran.result.finalStepId, "a");
      assert.equal(asks(ran, "meet").length, 0);
      const records = await ran.audit();
      assert.ok(records.every(({ about }) => about.stageId !== "meet"));
      const [failure] = await recorded(ran, "ParallelSiblingFailure");
      assert.deepEqual(failure, {
        failedSiblingId: "a",
        failedSibling: "a",
        compoundTurnId: `${ran.result.run}:s:compound:1`,
        joinReady: false,
        siblings: { a: "failed", b: "stopped" },
        cause: failure?.cause,
      });
    },
  },
  {
    name: "siblings: what a finished sibling left is not undone by the failure of another",
    stages: { s: GROUP, a: { allowedTools: ["Write"] }, b: { turnCap: 1 }, meet: MEET },
    model: slow("b", [of("s"), of("a", done({ n: "A" })), of("b", prose)]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"b" failed beside a \(done\)/,
    also: ({ result }) => assert.deepEqual(result.handoff.a!.parsed, { n: "A" }),
  },
  {
    name: "siblings: one that cannot begin fails the group",
    stages: { s: GROUP, a: { body: "{{ctx.nothing}}" }, b: {}, meet: {} },
    model: slow("b", [of("s"), of("b", done())]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /StageCtxUnresolved/,
  },
  {
    name: "siblings: a join that is not listed is refused before anything runs",
    stages: {
      s: { next: { execution: "parallel", nextStages: ["a", "b"], join: "meet" } },
      a: {},
      b: {},
      meet: {},
    },
    model: [],
    ends: "FLOW_INVALID",
    exitCode: 2,
    asks: 0,
    also: ({ result }) => assert.equal(result.problems[0]?.code, "StageJoinDangling"),
  },
  {
    name: "siblings: policy independent lets the others end, and the join sees how each did",
    stages: {
      s: { next: { ...GROUP.next, policy: "independent" } },
      a: { turnCap: 1 },
      b: {},
      meet: { body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[1].verdict}}" },
    },
    model: [of("s"), of("a", prose), of("b"), of("meet", done({}, { saw: ["fail ok"] }))],
    path: "s:ok a:cap b:ok meet:ok",
  },
  {
    name: "siblings: independent too when one of them cannot begin",
    stages: {
      s: { next: { ...GROUP.next, policy: "independent" } },
      a: { body: "{{ctx.nothing}}" },
      b: {},
      meet: { body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[0].reason}} {{ctx.upstream[1].verdict}}" },
    },
    model: [of("s"), of("b"), of("meet", done({}, { saw: ["fail StageCtxUnresolved", " ok"] }))],
    path: "s:ok a:fail b:ok meet:ok",
  },
  {
    name: "siblings: independent without a join, and one fails: the run has failed in the end",
    stages: { s: { next: { parallel: ["a", "b"], policy: "independent" } }, a: { turnCap: 1 }, b: {} },
    model: [of("s"), of("a", prose), of("b")],
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    path: "s:ok a:cap b:ok",
    also: ({ result }) => assert.equal(result.finalStepId, "a"),
  },
  {
    name: "siblings: a recover stage is the sibling's own way to an end, and the group has failed all the same",
    stages: {
      s: GROUP,
      a: { turnCap: 1, onFail: "recover" },
      b: {},
      meet: {},
      recover: { body: "{{ctx.upstream[0].stageId}} {{ctx.upstream[0].reason}}" },
    },
    model: slow("b", [of("s"), of("a", prose), of("b"), of("recover")]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    also: (ran) => {
      assert.equal(ran.result.finalStepId, "a");
      assert.match(first(ran, "recover").system, /^a retryExhausted/);
      assert.equal(asks(ran, "meet").length, 0);
    },
  },
  {
    name: "siblings: a recover stage that fails too does not hide which sibling it was",
    stages: { s: GROUP, a: { turnCap: 1, onFail: "recover" }, b: {}, meet: {}, recover: { turnCap: 1 } },
    model: slow("b", [of("s"), of("a", prose), of("b"), of("recover", prose)]),
    ends: "ParallelSiblingFailure",
    exitCode: 1,
    reason: /"a" failed beside b.*"recover"/s,
    also: ({ result }) => assert.equal(result.finalStepId, "a"),
  },
  {
    name: "siblings: without a join the run ends with the last of them",
    stages: { s: { next: { parallel: ["a", "b"] } }, a: {}, b: {} },
    model: [of("s"), of("a"), of("b")],
    path: "s:ok a:ok b:ok",
  },
  {
    name: "siblings: what a stage shares before the fork reaches all of them, and what siblings share reaches nobody",
    stages: {
      s: { ...GROUP, share: { units: "parsed.units" } },
      a: { body: "{{ctx.units[0]}}", share: { mine: "parsed.mine" } },
      b: { body: "{{ctx.units[1]}}" },
      meet: { body: "{{ctx.units}}" },
    },
    model: [
      of("s", done({ units: ["north", "south"] })),
      of("a", done({ mine: "x" }, { saw: ["north"], unseen: ["south"] })),
      of("b", done({}, { saw: ["south"], unseen: ["north"] })),
      of("meet", done({}, { saw: ['["north","south"]'] })),
    ],
    path: "s:ok a:ok b:ok meet:ok",
  },
];

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
const GATES: readonly Row[] = [
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
const backoff = (kind: string, tries: number, waits: readonly number[]): Row => ({
  name: `retry, backoff ${kind}`,
  stages: { a: { ...TRIES(tries, kind), turnCap: 1 } },
  model: Array.from({ length: tries }, () => prose),
  ends: "AGENT_TURN_LIMIT",
  exitCode: 4,
  asks: tries,
  waits,
});
const RETRIES: readonly Row[] = [
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

const NEXT: readonly Row[] = [
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

const ENDS: readonly Row[] = [
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

const TABLES: { readonly [title: string]: readonly Row[] } = {
  "fields of a stage file": [...FIELDS, ...NUMBERS],
  "template placeholders": PLACEHOLDERS,
  "completion channel": CHANNEL,
  "how Act ends": BRANCHES,
  "batches with the completion tool": BATCHES,
  "the cap": CAPS,
  "other surfaces": RELATIONS,
  "parallel siblings": SIBLINGS,
  "gates and policies": GATES,
  retries: RETRIES,
  "forms of next": NEXT,
  "exit codes": ENDS,
};

/** What every table and list of the document names, by the beginning of a row's name. */
const NAMED: readonly string[] = [
  "field id",
  "field name",
  "field allowedTools",
  "field completionTool",
  "field completionSchema",
  "field retryPolicy",
  "field turnCap",
  "gate, resolutionPolicy",
  "field description",
  "field inputsSchema",
  "field tags",
  "field of one's own",
  "placeholder {{ctx.<field>}}",
  "placeholder {{ctx.upstream[i].*}}",
  "placeholder {{ctx.workflowRunId}}",
  "placeholder {{stage.id}}",
  "placeholder {{ctx.attempts}}",
  "placeholder {{ctx.host}}",
  "placeholder {{env.FOO}}",
  "placeholder ${ctx.<field>}",
  "channel registration",
  "channel reserved name",
  "channel visibility",
  "channel approval",
  "channel scope",
  "channel persistence",
  "channel audit",
  "branch success",
  "branch parse failure",
  "branch plain text",
  "branch other tool",
  "branch cap",
  "batch of one, the completion",
  "batch of the completion and others",
  "batch of two completions",
  "batch without a completion",
  "relation tools",
  "relation providers",
  "siblings: the join runs when all",
  "siblings: one fails",
  "siblings: a recover stage",
  "siblings: a join that is not listed",
  "exit 3: a model that cannot call tools",
];

test("every row of the document's tables has a row here", () => {
  const names = Object.values(TABLES).flatMap((rows) => rows.map(({ name }) => name));
  assert.deepEqual(
    NAMED.filter((named) => !names.some((name) => name.startsWith(named))),
    [],
  );
  assert.equal(new Set(names).size, names.length, "no two rows have the same name");
});

for (const [title, rows] of Object.entries(TABLES)) {
  for (const row of rows) {
    test(`${title}: ${row.name}`, async () => await prove(row));
  }
}
