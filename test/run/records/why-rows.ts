/** Runs, and the chain that `why` has to show for a decision of each. */
import type { Flow } from "../../../src/flow/flow.ts";
import type { Backend, ScriptReply } from "../../../src/run/index.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";
import { tree001 } from "../../load/documents.ts";
import { agentFiles, type StepFile } from "../project.ts";

type Files = { readonly [path: string]: string };
export type Row = {
  readonly name: string;
  readonly files?: Files;
  /** Instead of files: forks are not written in any registry. */
  readonly flow?: Flow;
  readonly agent?: string;
  readonly args?: { readonly [name: string]: string };
  readonly script?: readonly ScriptReply[];
  readonly backend?: Backend;
  readonly target?: string;
  readonly chain: readonly string[];
};

export const say = (action: string, more: object = {}): ScriptReply => ({
  output: { next_action: { action }, ...more },
});
const NEXT: StepFile = {
  kind: "work",
  intents: ["next"],
  transitions: { next: { target: "continuation.a" } },
};
const WORK: StepFile = {
  kind: "work",
  intents: ["next", "handoff"],
  transitions: { next: { target: "continuation.a" }, handoff: { target: "closure.a" } },
};
const CLOSE: StepFile = {
  kind: "closure",
  intents: ["closing", "repeat"],
  transitions: { closing: { target: null }, repeat: { target: "closure.a" } },
};
export const STEPS = { "initial.a": NEXT, "continuation.a": WORK, "closure.a": CLOSE };

/** `stepId` may be left out here: what it does is a row of its own. */
export const files = (
  steps: { readonly [id: string]: StepFile } = STEPS,
  more: Parameters<typeof agentFiles>[2] = {},
): Files => {
  const made = agentFiles("a", steps, more);
  const path = ".agent/a/schemas/steps.schema.json";
  return {
    ...made,
    [path]: made[path]!.replaceAll('"required":["stepId","next_action"]', '"required":["next_action"]'),
  };
};

export const checked = (action = "retry", maxAttempts = 2) => ({
  ...files(STEPS, {
    registry: {
      validators: {
        proof: {
          type: "command",
          command: "echo ' M a.txt'; test -f proof",
          successWhen: "exitCode:0",
          failurePattern: "unproven",
          extractParams: { changed: "parseChangedFiles" },
        },
        never: { type: "command", command: "true", successWhen: "exitCode:0", failurePattern: "unproven" },
      },
      failurePatterns: { unproven: { description: "No proof", edition: "failed", params: ["changed"] } },
      validationSteps: {
        "closure.a": {
          stepId: "closure.a",
          name: "Proof",
          c2: "retry",
          c3: "a",
          validationConditions: [{ validator: "proof" }, { validator: "never" }],
          onFailure: { action, maxAttempts },
        },
      },
    },
  }),
  ".agent/a/prompts/steps/retry/a/f_failed.md": "Not proved: {{changed}}",
});

export const rows: readonly Row[] = [
  {
    name: "plain next, with variables and their suppliers",
    files: {
      ...files(
        {
          ...STEPS,
          "initial.a": {
            ...NEXT,
            gate: { handoffFields: ["plan"] },
            properties: { plan: { type: "string" } },
          },
          "continuation.a": {
            ...WORK,
            more: { uvVariables: ["issue", "iteration", "initial_a_plan"] },
          },
        },
        {
          agent: {
            parameters: { issue: { type: "number", description: "i", cli: "--issue", required: true } },
          },
        },
      ),
      ".agent/a/prompts/steps/continuation/a/f_default.md":
        "Issue {uv-issue}, iteration {uv-iteration}: {uv-initial_a_plan}",
    },
    args: { issue: "12" },
    script: [say("next", { plan: "dig" }), say("handoff"), say("closing")],
    target: "continuation.a",
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "issue = 12 (parameter --issue)",
      "iteration = 2 (runtime)",
      "initial_a_plan = dig (handoff initial.a.plan)",
      "text Issue 12, iteration 2: dig",
      "read handoff by word",
      "edge handoff → closure.a",
      "decided handoff → closure.a",
    ],
  },
  {
    name: "an alias, and a stepId that is corrected",
    files: files(),
    script: [say("continue", { stepId: "elsewhere" }), say("handoff"), say("closing")],
    target: "initial.a@1",
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      'corrected stepId "elsewhere" → "initial.a"',
      'read next by alias ("continue")',
      "edge next → continuation.a",
      "decided next → continuation.a",
      'note stepId "elsewhere" corrected to "initial.a"',
    ],
  },
  {
    name: "fallbackIntent",
    files: files({
      ...STEPS,
      "continuation.a": { ...WORK, gate: { failFast: false, fallbackIntent: "handoff" } },
    }),
    script: [say("next"), say("ponder"), say("closing")],
    target: "continuation.a",
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      'read handoff by fallback ("ponder")',
      "edge handoff → closure.a",
      "decided handoff → closure.a",
      'note [StepFlow][SpecViolation] "ponder" is not an allowed intent; fallbackIntent "handoff" taken',
    ],
  },
  {
    name: "an answer that is sent back",
    files: files(),
    script: [say("next"), { text: "I am done." }, say("handoff"), say("closing")],
    target: "continuation.a",
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      "unusable the answer holds no JSON object",
      "turn 2 after 4",
      "repair the answer holds no JSON object",
      "text Your last answer cannot be used:",
      "read handoff by word",
      "edge handoff → closure.a",
      "decided handoff → closure.a",
    ],
  },
  {
    name: "an answer that is sent back and still no good",
    files: files(),
    script: [say("next"), say("ponder"), say("ponder")],
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      'unusable /next_action/action must be equal to one of the allowed values: ["next","handoff"]',
      "turn 2 after 4",
      'repair /next_action/action must be equal to one of the allowed values: ["next","handoff"]',
      "text Your last answer cannot be used:",
      'unusable /next_action/action must be equal to one of the allowed values: ["next","handoff"]',
      "decided null → end",
      'note /next_action/action must be equal to one of the allowed values: ["next","handoff"]',
      "ended failed FAILED_STEP_ROUTING",
    ],
  },
  {
    name: "closing that its checks overturn",
    files: checked(),
    script: [say("next"), say("handoff"), say("closing"), say("handoff"), say("closing")],
    target: "closure.a@1",
    chain: [
      "closure.a@1 from continuation.a, iteration 3, settled",
      "turn 1 after 4",
      "prompt .agent/a/prompts/steps/closure/a/f_default.md",
      "text Do closure.a.",
      "read closing by word",
      'check proof failed (unproven), attempt 1, changed = ["a.txt"]',
      "check never not run",
      "overturned 1 of 2",
      "decided closing → continuation.a",
    ],
  },
  {
    name: "what is told after a failed check",
    files: checked(),
    script: [say("next"), say("handoff"), say("closing"), say("handoff"), say("closing")],
    target: "continuation.a@2",
    chain: [
      "continuation.a@2 from closure.a, iteration 4, settled",
      "turn 1 after 6",
      "failed-check proof of closure.a",
      "prompt .agent/a/prompts/steps/retry/a/f_failed.md",
      "text Not proved: a.txt",
      "read handoff by word",
      "edge handoff → closure.a",
      "decided handoff → closure.a",
    ],
  },
  {
    name: "the failure that is one too many ends the run",
    files: checked(),
    script: [say("next"), say("handoff"), say("closing"), say("handoff"), say("closing")],
    chain: [
      "closure.a@2 from continuation.a, iteration 5, settled",
      "turn 1 after 8",
      "prompt .agent/a/prompts/steps/closure/a/f_default.md",
      "text Do closure.a.",
      "read closing by word",
      'check proof failed (unproven), attempt 2, changed = ["a.txt"]',
      "check never not run",
      "overturned 2 of 2",
      "decided closing → end",
      "ended failed AGENT_VALIDATION_ABORT",
    ],
  },
  {
    name: "a failed check that is passed over",
    files: checked("skip"),
    script: [say("next"), say("handoff"), say("closing")],
    chain: [
      "closure.a@1 from continuation.a, iteration 3, settled",
      "turn 1 after 4",
      "prompt .agent/a/prompts/steps/closure/a/f_default.md",
      "text Do closure.a.",
      "read closing by word",
      'check proof failed (unproven), attempt 1, changed = ["a.txt"]',
      "check never not run",
      "edge closing → end completed",
      "decided closing → end",
      "note check \"proof\" failed and was skipped: `echo ' M a.txt'; test -f proof` ended with exit code 1; expected exit code 0.",
      "ended completed null",
    ],
  },
  ...["high", "odd"].map((risk): Row => ({
    name: `a switch: ${risk}`,
    files: files({
      "initial.a": {
        ...NEXT,
        gate: { handoffFields: ["report.risk"] },
        properties: { report: { type: "object", properties: { risk: { type: "string" } } } },
        transitions: {
          next: { condition: "risk", targets: { high: "closure.a", default: "continuation.a" } },
        },
      },
      "continuation.a": WORK,
      "closure.a": CLOSE,
    }),
    script: [say("next", { report: { risk } })],
    target: "initial.a",
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "read next by word",
      `handoff risk = "${risk}"`,
      `switch risk is "${risk}"${risk === "odd" ? ", otherwise" : ""}`,
      `edge next → ${risk === "odd" ? "continuation.a" : "closure.a"}`,
      `decided next → ${risk === "odd" ? "continuation.a" : "closure.a"}`,
    ],
  })),
  ...["closure.a", "nowhere"].map((target): Row => ({
    name: `a jump to ${target}`,
    files: files({
      "initial.a": {
        kind: "work",
        intents: ["next", "jump"],
        gate: { targetField: "next_action.details.target", targetMode: "dynamic" },
        transitions: NEXT.transitions,
      },
      "continuation.a": WORK,
      "closure.a": CLOSE,
    }),
    script: [{ output: { next_action: { action: "jump", details: { target } } } }],
    target: "initial.a",
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "read jump by word",
      `jump next_action.details.target names "${target}"${target === "nowhere" ? ", otherwise" : ""}`,
      ...(target === "nowhere"
        ? ["no onward transition", "decided jump → end", "ended failed FAILED_STEP_ROUTING"]
        : ["edge jump → closure.a", "decided jump → closure.a"]),
    ],
  })),
  {
    name: "abort",
    files: files(),
    script: [{ output: { next_action: { action: "abort", reason: "no use" } } }],
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "read abort by word: no use",
      "edge abort → end AGENT_ABORTED",
      "decided abort → end",
      "ended failed AGENT_ABORTED",
    ],
  },
  {
    name: "the limit of iterations",
    files: files(STEPS, { runner: { verdict: { type: "detect:graph", config: { maxIterations: 2 } } } }),
    script: [say("next"), say("next")],
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      "read next by word",
      "edge next → continuation.a",
      "decided next → continuation.a",
      "ended failed AGENT_MAX_ITERATIONS",
    ],
  },
  {
    name: "a stop rule that counts",
    files: files(STEPS, { runner: { verdict: { type: "count:iteration", config: { maxIterations: 2 } } } }),
    script: [say("next"), say("next")],
    chain: [
      "continuation.a@1 from initial.a, iteration 2, settled",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      "read next by word",
      "stop visits over (2)",
      "decided next → end",
      "ended completed null",
    ],
  },
  ...(["next", "handoff"] as const).map((action): Row => ({
    name: `a stop rule that counts checks: ${action}`,
    files: files(STEPS, { runner: { verdict: { type: "count:check", config: { maxChecks: 1 } } } }),
    script: [say("next"), say(action), say("repeat")],
    target: action === "next" ? "continuation.a@1" : "closure.a",
    chain:
      action === "next"
        ? [
            "continuation.a@1 from initial.a, iteration 2, settled",
            "turn 1 after 2",
            "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
            "text Do continuation.a.",
            "read next by word",
            "stop checks going (0)",
            "edge next → continuation.a",
            "decided next → continuation.a",
          ]
        : [
            "closure.a@1 from continuation.a, iteration 3, settled",
            "turn 1 after 4",
            "prompt .agent/a/prompts/steps/closure/a/f_default.md",
            "text Do closure.a.",
            "read repeat by word",
            "stop checks over (1)",
            "decided repeat → end",
            "ended completed null",
          ],
  })),
  {
    name: "a rate limit that is waited out",
    files: files(),
    script: [{ error: { kind: "rate-limit", retryAfterMs: 1234 } }, say("next")],
    target: "initial.a",
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "fault rate-limit",
      "waited 1234",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "read next by word",
      "edge next → continuation.a",
      "decided next → continuation.a",
    ],
  },
  {
    name: "a step that a command performs",
    files: files(
      {
        "initial.a": { ...NEXT, transitions: { next: { target: "closure.a" } } },
        "closure.a": {
          ...CLOSE,
          gate: { handoffFields: ["sum"] },
          more: { runner: { command: "echo", args: ['{"sum": ${context.n}}'] }, outputSchemaRef: undefined },
        },
      },
      { agent: { parameters: { n: { type: "number", description: "n", cli: "--n", required: true } } } },
    ),
    args: { n: "3" },
    script: [say("next")],
    chain: [
      "closure.a@1 from initial.a, iteration 2, settled",
      'command echo {"sum": 3}',
      "read done by const",
      "handoff sum = 3",
      "edge done → end completed",
      "decided done → end",
      "ended completed null",
    ],
  },
  ...["s_a8f3", "s_a8f3#check@1"].map((target): Row => ({
    name: `a check prompt, asked for as ${target}`,
    files: tree001(),
    agent: "code-improver",
    args: { topic: "tides" },
    script: [{ text: "looked" }, { output: { result: "ng", message: "thin" } }],
    target: target === "s_a8f3" ? "s_a8f3@1" : target,
    chain: [
      "s_a8f3@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/code-improver/prompts/steps/phase/analyze/f_default.md",
      "topic = tides (argument)",
      'other has no value: nothing supplies "other": declare it as a parameter, or as an input taken from a step\'s handoff',
      "text Analyze: tides, tides, tides; keep {other} and { this }.",
      "read done by const",
      "edge done → s_a8f3#check",
      "turn 1 after 2",
      "prompt .agent/code-improver/prompts/checks/step/analyze/f_default.md",
      'text Is the analysis complete? Answer { "result": "ok", "message": "…" }.',
      'read fail by alias ("ng"): thin',
      "times 0 of 2",
      "edge fail → s_a8f3",
      "decided retry → s_a8f3",
    ],
  })),
  {
    name: "the step that opens a fork",
    flow: forked(),
    script: forkScript(),
    target: "begin",
    chain: [
      "begin@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt inline.md",
      "text Do begin.",
      "read next by word",
      "edge next → left, right ⇒ join",
      "decided next → join",
    ],
  },
  {
    name: "the first sibling of a fork that is done",
    flow: forked(),
    script: forkScript(),
    target: "left",
    chain: [
      "left@1 from begin, iteration 2, settled",
      "turn 1 after 0",
      "prompt inline.md",
      "text Do left.",
      "read done by word",
      "fork 1 of 2",
      "edge done → end completed",
      "decided done → join",
    ],
  },
  {
    name: "a sibling that fails after the other is done",
    flow: forked(),
    script: [say("next"), { ...say("abort"), step: "right" }, { ...say("done"), step: "left" }],
    target: "right",
    chain: [
      "right@1 from begin, iteration 3, settled",
      "turn 1 after 0",
      "prompt inline.md",
      "text Do right.",
      "read abort by word",
      "fork 1 of 2",
      "edge abort → end AGENT_ABORTED",
      "decided abort → end",
      "ended failed ParallelSiblingFailure",
    ],
  },
  {
    name: "tool calls, one of them denied",
    files: files(STEPS, {
      runner: { boundaries: { allowedTools: ["Write"], permissionMode: "acceptEdits" } },
    }),
    script: [
      {
        calls: [
          { name: "Write", input: { file_path: "a.txt", content: "hi" } },
          { name: "Bash", input: { command: "ls" } },
        ],
      },
      say("next"),
    ],
    target: "initial.a",
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      "text Do initial.a.",
      "calls Write, Bash",
      "Write done",
      "Bash denied",
      "turn 2 after 2",
      "results Write, Bash",
      "read next by word",
      "edge next → continuation.a",
      "decided next → continuation.a",
    ],
  },
  {
    name: "a variable without a value: it is said who ought to have given it",
    files: {
      ...files(
        { ...STEPS, "initial.a": { ...NEXT, more: { uvVariables: ["topic"] } } },
        { agent: { parameters: { topic: { type: "string", description: "t", cli: "--topic" } } } },
      ),
      ".agent/a/prompts/steps/initial/a/f_default.md": "About {uv-topic}.",
    },
    script: [say("next")],
    chain: [
      "initial.a@1 from null, iteration 1, settled",
      "turn 1 after 0",
      "prompt .agent/a/prompts/steps/initial/a/f_default.md",
      'topic has no value: parameter "topic" has no value: give it with --topic, or declare a default',
      "unaskable PR-RESOLVE-003",
      "decided null → end",
      "ended failed PR-RESOLVE-003",
    ],
  },
  {
    name: "a run that stopped where its script ended",
    files: files(),
    script: [say("next")],
    chain: [
      "continuation.a@1 from initial.a, iteration 2, stopped",
      "turn 1 after 2",
      "prompt .agent/a/prompts/steps/continuation/a/f_default.md",
      "text Do continuation.a.",
      "fault script",
      "pending ask",
      "ended failed SCRIPT_EXHAUSTED",
    ],
  },
];

export function forked(): Flow {
  const fork = { kind: "fork", steps: ["left", "right"], join: "join" } as const;
  return sketchFlow({
    begin: { edges: { next: fork } },
    left: { edges: { done: null }, transcript: "fresh" },
    right: { edges: { done: null }, transcript: "fresh" },
    join: { edges: { done: null } },
  });
}

function forkScript(): readonly ScriptReply[] {
  return [say("next"), { ...say("done"), step: "left" }, { ...say("done"), step: "right" }, say("done")];
}
