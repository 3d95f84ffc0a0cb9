/** Rows about the fields of a stage file and the placeholders in its body. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { recorded, type Row, type Start } from "../stage-project.ts";
import { GROUP, TEXT, TRIES, WANTS, calls, done, first, of, prose, read, write } from "./row.ts";

export const FIELDS: readonly Row[] = [
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
export const NUMBERS: readonly Row[] = [
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

export const PLACEHOLDERS: readonly Row[] = [
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
