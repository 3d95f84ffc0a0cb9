/** Oddities of agents that are in use: each is loaded without an error and run to its end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryJournal, run, type ScriptReply } from "../../src/run/index.ts";
import { agentFiles, projectWith, type StepFile } from "./project.ts";

type Case = {
  readonly name: string;
  readonly steps: { readonly [id: string]: StepFile };
  readonly more?: Parameters<typeof agentFiles>[2];
  /** Paths below the agent's folder. */
  readonly files?: { readonly [path: string]: string };
  readonly args?: { readonly [name: string]: string | number };
  readonly script: readonly ScriptReply[];
  readonly path: readonly string[];
};

const say = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action }, ...more },
});
const work = (
  transitions: { readonly [intent: string]: string },
  more: Partial<StepFile> = {},
): StepFile => ({
  kind: "work",
  intents: Object.keys(transitions),
  transitions: Object.fromEntries(
    Object.entries(transitions).map(([intent, target]) => [intent, { target }]),
  ),
  ...more,
});
const closure = (more: Partial<StepFile> = {}): StepFile => ({
  kind: "closure",
  intents: ["closing"],
  transitions: { closing: { target: null } },
  ...more,
});
const once = { verdict: { type: "count:iteration", config: { maxIterations: 1 } } };
const issue = { issue: { type: "number", description: "The issue", required: true, cli: "--issue" } };

const CASES: readonly Case[] = [
  {
    name: "an id without a dot, whose entry is a closure with a conditional schema",
    steps: {
      consider: closure({
        more: { c2: "consider", c3: "x", outputSchemaRef: { file: "own.schema.json", schema: "consider" } },
      }),
    },
    more: { runner: once },
    files: {
      "prompts/steps/consider/x/f_default.md": "Consider.",
      "schemas/own.schema.json": JSON.stringify({
        consider: {
          type: "object",
          required: ["next_action"],
          properties: {
            stepId: { type: "string" },
            verdict: { enum: ["yes", "no"] },
            why: { type: "string" },
            next_action: {
              type: "object",
              required: ["action"],
              properties: { action: { enum: ["closing"] }, reason: { type: "string" } },
            },
          },
          allOf: [{ if: { properties: { verdict: { const: "no" } } }, then: { required: ["why"] } }],
        },
      }),
    },
    script: [say("consider", "closing", { verdict: "yes" })],
    path: ["consider:closing"],
  },
  {
    name: "ids of three parts, an edition as a phase, and a closure whose c2 is initial",
    steps: {
      "initial.project.preparation": work(
        { next: "continuation.project.preparation", handoff: "initial.project.closure" },
        { more: { c2: "initial", c3: "project", edition: "preparation" } },
      ),
      "continuation.project.preparation": work(
        { handoff: "initial.project.closure" },
        { more: { c2: "continuation", c3: "project", edition: "preparation" } },
      ),
      "initial.project.closure": closure({ more: { c2: "initial", c3: "project", edition: "closure" } }),
    },
    files: {
      "prompts/steps/initial/project/f_preparation.md": "Prepare.",
      "prompts/steps/continuation/project/f_preparation.md": "Go on preparing.",
      "prompts/steps/initial/project/f_closure.md": "Close.",
    },
    script: [
      say("initial.project.preparation", "next"),
      say("continuation.project.preparation", "handoff"),
      { ...say("initial.project.closure", "closing"), saw: ["Close."] },
    ],
    path: [
      "initial.project.preparation:next",
      "continuation.project.preparation:handoff",
      "initial.project.closure:closing",
    ],
  },
  {
    name: "variables written with uv-, null for lists, and keys that are not known",
    steps: {
      "initial.issue": work(
        { handoff: "closure.issue" },
        {
          more: { uvVariables: ["uv-issue"], adaptation: null, future: true },
          gate: { handoffFields: null },
        },
      ),
      "closure.issue": closure({ more: { uvVariables: null, inputs: null } }),
    },
    more: { agent: { parameters: issue }, registry: { validationSteps: null, failurePatterns: null } },
    files: { "prompts/steps/initial/issue/f_default.md": "Work on {uv-issue}." },
    args: { issue: 12 },
    script: [{ ...say("initial.issue", "handoff"), saw: ["Work on 12."] }, say("closure.issue", "closing")],
    path: ["initial.issue:handoff", "closure.issue:closing"],
  },
  {
    name: "a registry without gates and schemas, ended by counting",
    steps: {
      triage: closure({
        more: {
          c2: "triage",
          c3: "x",
          structuredGate: undefined,
          outputSchemaRef: undefined,
          transitions: undefined,
        },
      }),
    },
    more: { runner: once },
    files: { "prompts/steps/triage/x/f_default.md": "Triage." },
    script: [{ step: "triage", text: "All labelled." }],
    path: ["triage:done"],
  },
  {
    name: "the scaffold: no gates, two steps in turn, a step that is no step",
    steps: {
      "initial.manual": work({}, { more: { structuredGate: undefined, outputSchemaRef: undefined } }),
      "continuation.manual": work({}, { more: { structuredGate: undefined, outputSchemaRef: undefined } }),
      system: work({}, { more: { stepKind: undefined, c3: "x", structuredGate: undefined } }),
    },
    more: { runner: { verdict: { type: "count:iteration", config: { maxIterations: 3 } } } },
    script: [
      { step: "initial.manual", text: "one" },
      { step: "continuation.manual", text: "two" },
      { step: "continuation.manual", text: "three" },
    ],
    path: ["initial.manual:done", "continuation.manual:done", "continuation.manual:done"],
  },
  {
    name: "a closure that is a command, without tools and prompts",
    steps: {
      merge: closure({
        more: {
          c2: "merge",
          c3: "x",
          structuredGate: undefined,
          outputSchemaRef: undefined,
          runner: { command: "sh", args: ["-c", 'echo "{\\"merged\\": $0}"', "${context.issue}"] },
        },
      }),
    },
    more: {
      agent: { parameters: issue },
      runner: { ...once, boundaries: { allowedTools: [], permissionMode: "plan" } },
    },
    args: { issue: 7 },
    script: [],
    path: ["merge:done"],
  },
  {
    name: "schemas as top-level keys, with allOf and a $ref into a second file",
    steps: {
      "initial.review": work(
        { handoff: "closure.review" },
        {
          more: { outputSchemaRef: { file: "review.schema.json", schema: "initial.review" } },
          gate: { handoffFields: ["finding.title"] },
        },
      ),
      "closure.review": closure({
        more: { outputSchemaRef: { file: "review.schema.json", schema: "#/$defs/closing" } },
      }),
    },
    files: {
      "schemas/review.schema.json": JSON.stringify({
        "initial.review": {
          allOf: [{ $ref: "common.schema.json#/$defs/stepResponse" }],
          type: "object",
          required: ["finding"],
          properties: {
            finding: { $ref: "common.schema.json#/$defs/finding" },
            next_action: {
              type: "object",
              required: ["action"],
              properties: { action: { enum: ["handoff"] } },
            },
          },
        },
        $defs: {
          closing: {
            type: "object",
            properties: {
              stepId: { const: "closure.review" },
              next_action: { type: "object", properties: { action: { enum: ["closing"] } } },
            },
          },
        },
      }),
      "schemas/common.schema.json": JSON.stringify({
        $defs: {
          stepResponse: {
            type: "object",
            required: ["stepId", "next_action"],
            properties: { stepId: { type: "string" }, next_action: { type: "object" } },
          },
          finding: { type: "object", required: ["title"], properties: { title: { type: "string" } } },
        },
      }),
    },
    script: [
      { step: "initial.review", output: { stepId: "initial.review", next_action: { action: "handoff" } } },
      { ...say("initial.review", "handoff", { finding: { title: "x" } }), saw: ["'finding'"] },
      say("closure.review", "closing"),
    ],
    path: ["initial.review:handoff", "closure.review:closing"],
  },
  {
    name: "Japanese names, prompts and answers",
    steps: {
      "initial.issue": work(
        { handoff: "closure.issue" },
        {
          more: { name: "課題の初期プロンプト", description: "課題を読む" },
          gate: { handoffFields: ["理解"] },
          properties: { 理解: { type: "string" } },
        },
      ),
      "closure.issue": closure({ more: { name: "完了" } }),
    },
    more: { agent: { displayName: "反復エージェント", description: "課題に取り組む自律エージェント" } },
    files: { "prompts/steps/initial/issue/f_default.md": "課題を読んで理解してください。" },
    script: [
      { ...say("initial.issue", "handoff", { 理解: "不具合" }), saw: ["課題を読んで理解してください。"] },
      say("closure.issue", "closing"),
    ],
    path: ["initial.issue:handoff", "closure.issue:closing"],
  },
];

for (const { name, steps, more, files, args, script, path } of CASES) {
  test(name, async () => {
    const folder = ".agent/odd";
    const own = Object.entries(files ?? {}).map(([file, text]) => [`${folder}/${file}`, text]);
    const cwd = projectWith({ ...agentFiles("odd", steps, more), ...Object.fromEntries(own) });
    const result = await run({
      agent: "odd",
      cwd,
      args: args ?? {},
      journal: createMemoryJournal(),
      env: { ...process.env, LOCKSTEP_TRUST: "all" },
      script,
    });
    const problems = result.problems.map(({ code, pointer, message }) => `${code} ${pointer}: ${message}`);
    assert.equal(result.outcome, "completed", [result.reason, ...problems].join("\n"));
    assert.deepEqual(
      result.path.map(({ step, label }) => `${step}:${label}`),
      path,
    );
  });
}
