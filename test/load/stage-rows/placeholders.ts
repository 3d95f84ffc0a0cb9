/** Rows about the placeholders in the body of a stage. */
import type { StageChanges } from "../stage-world.ts";
import { CHECK, body, build, forked, inputs, plan, type Row } from "./row.ts";

const declared = { machine: { entry: "plan", inputs } };
const after = (text: string, fields: object = {}): StageChanges => ({ build: { body: text, ...fields } });

export const PLACEHOLDERS: readonly Row[] = [
  ["ctx.<field> without declared inputs", body("{{ctx.task}} {{ ctx.a.b[2].c-d }} ${ctx.x}"), []],
  ["ctx.<field> that is declared", body("{{ctx.task}} {{ctx.branch}} ${ctx.label.text}", declared), []],
  [
    "ctx.<field> that is not declared",
    body("{{ctx.tusk}}", declared),
    [plan("/body#tusk", "StageCtxUnresolved")],
  ],
  [
    "ctx.<field> that is not declared, in the other form",
    body("${ctx.tusk}", declared),
    [plan("/body#tusk", "StageCtxUnresolved")],
  ],
  [
    "ctx.<field> that hooks may write",
    body("{{ctx.tusk}}", { ...declared, "hooks.mjs": "export default {}" }),
    [],
  ],
  [
    "ctx.<field> that may be given beside the inputs",
    body("{{ctx.tusk}}", { machine: { entry: "plan", inputs: { ...inputs, additionalProperties: true } } }),
    [],
  ],
  [
    "ctx.<field> that need not be given",
    body("{{ctx.note}}", declared),
    [plan("/body#note", "StageCtxUnresolved", "warning")],
  ],
  [
    "ctx.<field>.<member> that need not be given",
    body("{{ctx.issue.body}}", declared),
    [plan("/body#issue.body", "StageCtxUnresolved", "warning")],
  ],
  [
    "ctx.<field>.<member> of a text",
    body("{{ctx.task.length}}", declared),
    [plan("/body#task.length", "StageCtxUnresolved")],
  ],
  [
    "ctx.workflowRunId and ctx.stageExecutionId",
    body("{{ctx.workflowRunId}} {{ctx.stageExecutionId}}", declared),
    [],
  ],
  [
    "a member of ctx.workflowRunId",
    body("{{ctx.workflowRunId.x}}"),
    [plan("/body#workflowRunId.x", "StageCtxUnresolved")],
  ],
  ["stage.id and stage.name", body("{{stage.id}} {{ stage.name }}", declared), []],
  ["stage.<other>", body("{{stage.turnCap}}"), [plan("/body#stage.turnCap", "StageCtxUnresolved")]],
  ["ctx.attempts", body("{{ctx.attempts[0].turns}}"), [plan("/body#attempts[0].turns", "StageCtxForbidden")]],
  ["ctx.host", body("${ctx.host.run}"), [plan("/body#host.run", "StageCtxForbidden")]],
  ["env.<name>", body("{{env.FOO}}"), [plan("/body#{{env.FOO}}", "STAGE-PLACEHOLDER", "warning")]],
  [
    "env.<name> in the other form",
    body("${env.FOO}"),
    [plan("/body#${env.FOO}", "STAGE-PLACEHOLDER", "warning")],
  ],
  [
    "another root",
    body("{{task}} {{ctx}}"),
    [
      plan("/body#{{task}}", "STAGE-PLACEHOLDER", "warning"),
      plan("/body#{{ctx}}", "STAGE-PLACEHOLDER", "warning"),
    ],
  ],
  ["a variable of a shell", body("echo ${HOME} $x {x}"), []],
  [
    "an input without ctx",
    body("${task} {{ctx.task}}", declared),
    [plan("/body#${task}", "STAGE-PLACEHOLDER", "warning")],
  ],
  ["an escape", body("\\{{ctx.attempts}} \\${ctx.host} \\{{env.X}}"), []],
  [
    "the same one twice is told once",
    body("{{stage.x}} {{stage.x}}"),
    [plan("/body#stage.x", "StageCtxUnresolved")],
  ],
  [
    "ctx.upstream on the first stage",
    body("{{ctx.upstream[0].parsed}}"),
    [plan("/body#upstream[0].parsed", "StageCtxUnresolved")],
  ],
  ["ctx.upstream as a whole", body("{{ctx.upstream}}"), []],
  [
    "ctx.upstream after a stage",
    after("{{ctx.upstream[0].parsed.summary}} {{ctx.upstream[0].verdict}} {{ctx.upstream[0]}}"),
    [],
  ],
  [
    "ctx.upstream beyond the stages before",
    after("{{ctx.upstream[1].parsed}}"),
    [build("/body#upstream[1].parsed", "StageCtxUnresolved")],
  ],
  [
    "a member of the list ctx.upstream",
    after("{{ctx.upstream.parsed}}"),
    [build("/body#upstream.parsed", "StageCtxUnresolved")],
  ],
  [
    "a member of the list ctx.upstream that ends with a number",
    after("{{ctx.upstream.x1}}"),
    [build("/body#upstream.x1", "StageCtxUnresolved")],
  ],
  [
    "a field that no result has",
    after("{{ctx.upstream[0].transcript}}"),
    [build("/body#upstream[0].transcript", "StageCtxUnresolved")],
  ],
  [
    "a payload field that need not be there",
    after("{{ctx.upstream[0].parsed.note}}"),
    [build("/body#upstream[0].parsed.note", "StageCtxUnresolved", "warning")],
  ],
  [
    "an element that need not be there",
    after("{{ctx.upstream[0].parsed.steps[0]}}"),
    [build("/body#upstream[0].parsed.steps[0]", "StageCtxUnresolved", "warning")],
  ],
  [
    "a payload field that is not named",
    after("{{ctx.upstream[0].parsed.summry}}"),
    [build("/body#upstream[0].parsed.summry", "StageCtxUnresolved", "warning")],
  ],
  [
    "a payload field that is excluded",
    { review: { body: "{{ctx.upstream[0].parsed.red}}" } },
    ["error StageCtxUnresolved stages/review.md /body#upstream[0].parsed.red"],
  ],
  [
    "an output that is declared",
    {
      plan: { output: { s: "parsed.summary" } },
      ...after("{{ctx.upstream[0].output.s}} {{ctx.upstream[0].output}}"),
    },
    [],
  ],
  [
    "an output that nobody leaves",
    after("{{ctx.upstream[0].output.s}}"),
    [build("/body#upstream[0].output.s", "StageCtxUnresolved")],
  ],
  [
    "an output that hooks may leave",
    { ...after("{{ctx.upstream[0].output.s}}"), "hooks.mjs": "export default {}" },
    [],
  ],
  [
    "ctx.upstream of a join, in the order of the siblings",
    {
      ...forked,
      review: { body: "{{ctx.upstream[0].parsed.summary}} {{ctx.upstream[1].parsed.green}}", next: "end" },
    },
    [],
  ],
  [
    "ctx.upstream of a join, beyond its siblings",
    { ...forked, review: { body: "{{ctx.upstream[2].parsed}}" } },
    ["error StageCtxUnresolved stages/review.md /body#upstream[2].parsed"],
  ],
  [
    "ctx.upstream on a sibling",
    { ...forked, a: { body: "{{ctx.upstream[0].parsed.summary}}" } },
    ["error StageCtxUnresolved stages/a.md /body#upstream[0].parsed.summary"],
  ],
  [
    "a payload that one of two stages before does not have",
    {
      plan: { next: { switch: "parsed.summary", cases: { easy: "review", default: "build" } } },
      review: { body: "{{ctx.upstream[0].parsed.summary}}" },
    },
    ["warning StageCtxUnresolved stages/review.md /body#upstream[0].parsed.summary"],
  ],
  [
    "the payload of a stage that may have failed",
    { build: { onFail: "mend" }, mend: { id: "mend", body: "{{ctx.upstream[0].parsed.green}}" } },
    ["warning StageCtxUnresolved stages/mend.md /body#upstream[0].parsed.green"],
  ],
  [
    "the verdict of a stage that may have failed",
    {
      build: { onFail: "mend" },
      mend: { id: "mend", body: "{{ctx.upstream[0].verdict}} {{ctx.upstream[0].reason}}" },
    },
    [],
  ],
  [
    "the payload of a stage that its gate may skip",
    {
      machine: { entry: "plan", checks: { ready: CHECK } },
      plan: { gate: "ready", resolutionPolicy: "skip" },
    },
    ["warning StageCtxUnresolved stages/build.md /body#upstream[0].parsed.summary"],
  ],
  [
    "the payload of a sibling in an independent group",
    {
      ...forked,
      plan: { next: { parallel: ["a", "b"], join: "review", policy: "independent" } },
      review: { body: "{{ctx.upstream[0].parsed.summary}}" },
    },
    ["warning StageCtxUnresolved stages/review.md /body#upstream[0].parsed.summary"],
  ],
];
