/** Rows about the completion tool: how a stage's turns end, in batches and at the cap. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { recorded, toolResults, unanswered, type Row } from "../stage-project.ts";
import { TEXT, TRIES, WANTS, asks, calls, done, first, of, prose, read, write } from "./row.ts";

const submit = (input = {}) => ({ name: "submit", input });

export const CHANNEL: readonly Row[] = [
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
export const BRANCHES: readonly Row[] = [
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
      const [both, missing] = toolResults(ran.asked);
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

export const BATCHES: readonly Row[] = [
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
      assert.equal(toolResults(ran.asked).length, batch.length);
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
      assert.match(toolResults(ran.asked)[1]!, /1/);
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

export const CAPS: readonly Row[] = [
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
