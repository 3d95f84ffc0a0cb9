/** The chain behind a decision, asked for by the public door: run with a script, then why. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { whyText } from "../../../src/cli/text/why-text.ts";
import { createPaint } from "../../../src/cli/text/text.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import {
  createMemoryJournal,
  createScripted,
  readRun,
  resume,
  run,
  runLoaded,
  RunnerError,
  why,
  type Backend,
  type Entry,
  type Event,
  type Journal,
  type Result,
  type ScriptReply,
  type TurnResult,
  type Why,
} from "../../../src/run/index.ts";
import { findProject } from "../../../src/run/world/project.ts";
import { whyAll } from "../../../src/tell/why.ts";
import { sketchFlow } from "../../../src/testing/flows.ts";
import { fakeClock } from "../../../src/testing/scenario.ts";
import { tree001 } from "../../load/documents.ts";
import { agentFiles, projectWith, type StepFile } from "../project.ts";

type Files = { readonly [path: string]: string };
type Row = {
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

const say = (action: string, more: object = {}): ScriptReply => ({
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
const STEPS = { "initial.a": NEXT, "continuation.a": WORK, "closure.a": CLOSE };
/** `stepId` may be left out here: what it does is a row of its own. */
const files = (
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

const checked = (action = "retry", maxAttempts = 2) => ({
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

const rows: readonly Row[] = [
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

for (const row of rows) {
  test(`why: ${row.name}`, async () => {
    const { journal } = await played(row);
    const found = await why(journal, "@last", row.target);
    assert.deepEqual(chainOf(found), row.chain);
    // Whatever is told, it is told in words and as JSON that is read back the same.
    assert.deepEqual(JSON.parse(JSON.stringify(found)), found);
    const text = whyText(found, createPaint(false), false);
    assert.ok(text.includes(`${found.step} #${found.visit}`), text);
    assert.doesNotMatch(text, /undefined|\[object/);
  });
}

test("why without a step is the last decision of a run that is still under way, or of one that was stopped", async () => {
  const stopper = new AbortController();
  const journal = createMemoryJournal();
  const cwd = projectWith(files());
  const during: ReturnType<typeof why>[] = [];
  const result = await run({
    agent: "a",
    cwd,
    journal,
    signal: stopper.signal,
    observe: ({ led }) => {
      if (led === undefined) return;
      during.push(why(journal, "@last", "continuation.a"));
      stopper.abort();
    },
    script: [say("next"), say("handoff"), say("closing")],
  });
  assert.equal(result.outcome, "interrupted");
  const [running] = await Promise.all(during);
  assert.deepEqual([running?.state, running?.pending?.command.type], ["open", "ask"]);
  assert.match(whyText(running!, createPaint(false), false), /under way\n +next +turn 1 is asked\n/);
  assert.equal((await why(journal, "@last")).step, "initial.a");
  const open = await why(journal, "@last", "continuation.a");
  assert.deepEqual([open.state, open.decision, open.ended], ["stopped", null, null]);
  assert.equal(open.pending?.command.type, "ask");
  assert.match(
    whyText(open, createPaint(false), false),
    /when the run is resumed\n +next +turn 1 is asked\n/,
  );

  await resume({ run: "@last", cwd, journal });
  const after = chainOf(await why(journal, "@last", "continuation.a"));
  assert.deepEqual(after.slice(0, 3), [
    "continuation.a@1 from initial.a, iteration 2, settled",
    "resumed",
    "turn 1 after 2, attempt 2",
  ]);
  assert.equal((await why(journal, "@last")).step, "closure.a");
});

test("a visit beside the one that ended the run was never decided", async () => {
  const scripted = createScripted([say("next"), { ...say("abort"), step: "right" }]);
  const stopped: TurnResult = { kind: "fault", fault: { kind: "other", message: "stopped" } };
  const backend: Backend = {
    ...scripted,
    turn: async (request) =>
      request.asker.step === "left"
        ? await new Promise((resolve) => {
            request.signal.addEventListener("abort", () => resolve(stopped));
          })
        : await scripted.turn!(request),
  };
  const { journal } = await played({ name: "", flow: forked(), backend, chain: [] });
  const left = await why(journal, "@last", "left");
  assert.deepEqual([left.state, left.decision, left.ended, left.pending], ["left", null, null, null]);
  assert.equal((await why(journal, "@last")).step, "right");
});

test("a step or a visit that is not there is refused with those that are", async () => {
  const { journal } = await played({
    name: "",
    files: files(),
    script: [say("next"), say("next"), say("abort")],
    chain: [],
  });
  const refused: readonly [target: string, reason: RegExp][] = [
    [
      "continuation.b",
      /no step "continuation\.b"\. Did you mean "continuation\.a"\? Visited were initial\.a, continuation\.a \(2 times\)\./,
    ],
    ["closure.a", /never came to step "closure\.a"\. Visited were/],
    ["continuation.a@3", /visited 2 times; there is no visit 3\. The last is continuation\.a@2\./],
    ["initial.a@0", /visited once; there is no visit 0/],
    ["constructor", /no step "constructor"/],
  ];
  for (const [target, reason] of refused) {
    await assert.rejects(why(journal, "@last", target), (error) => {
      assert.ok(error instanceof RunnerError && error.code === "STEP_UNKNOWN", String(error));
      assert.match(error.message, reason);
      return true;
    });
  }
});

test("a run of which only the end was left to be recorded ended where it was decided", async () => {
  const script = [say("next"), say("handoff"), say("closing")];
  const { journal } = await played({ name: "", files: files(), script, chain: [] });
  const { flow, entries } = await readRun(journal, "@last");
  const [ending] = entries.slice(-1);
  const resumed: Entry = { ...ending!, event: { type: "run.resumed", epoch: 2 } };
  const found = whyAll(flow, [...entries.slice(0, -1), resumed, { ...ending!, seq: ending!.seq + 1 }]).at(-1);
  assert.deepEqual([found?.step, found?.ended?.outcome], ["closure.a", "completed"]);
});

test("what happens around a stage is told in a line each", async () => {
  const { journal } = await played({ name: "", files: files(), script: [say("abort")], chain: [] });
  const found = await why(journal, "@last");
  const at = { step: "initial.a", visit: 1 };
  const lines: readonly [event: Event, line: RegExp][] = [
    [
      { type: "step.hooked", ...at, hook: "setup", result: { kind: "gave", value: { n: 1 } } },
      /setup +gave \{"n":1\}/,
    ],
    [
      { type: "step.hooked", ...at, hook: "assert", result: { kind: "threw", code: "X", message: "no" } },
      /assert +failed: no/,
    ],
    [{ type: "step.hooked", ...at, hook: "next", result: { kind: "absent" } }, /decided .*\n\n--full/],
    [{ type: "step.told", ...at, answer: null }, /said +nothing: no one was available/],
    [{ type: "step.suspended", ...at, code: "NEEDS_HELP", why: "ask Ann" }, /NEEDS_HELP +ask Ann/],
    [
      { type: "step.looked", ...at, sights: [{ met: false, what: "a.txt is absent" }] },
      /not met +a\.txt is absent/,
    ],
  ];
  for (const [event, line] of lines) {
    const told = { ...found, moments: [{ seq: 2, at: 0, event }] };
    assert.match(whyText(told, createPaint(false), false), line);
  }
});

test("what is decided again is what was decided: every visit of a run, in the order of its path", async () => {
  const { journal, result } = await played(rows.find(({ name }) => name.includes("one too many"))!);
  const { flow, entries } = await readRun(journal, "@last");
  const all = whyAll(flow, entries);
  assert.deepEqual(
    all.map(({ decision }) => decision),
    result.path,
  );
});

test("texts are cut in words, unless all is asked for, and never in the document", async () => {
  const long = "x".repeat(5000);
  const { journal } = await played({
    name: "",
    files: { ...files(), ".agent/a/prompts/steps/initial/a/f_default.md": `${long}\n`.repeat(30) },
    script: [say("next")],
    chain: [],
  });
  const found = await why(journal, "@last", "initial.a");
  const paint = createPaint(false);
  assert.ok(whyText(found, paint, false).length < 4000);
  assert.match(whyText(found, paint, false), /… \d+ more lines/);
  assert.ok(whyText(found, paint, true).length > 30 * 5000);
  assert.ok(JSON.stringify(found).length > 30 * 5000);
});

test("the contract of a step says which checks guard it, and what follows when they fail", async () => {
  for (const [action, most] of [
    ["retry", 2],
    ["abort", 3],
  ] as const) {
    const script = [say("next"), say("handoff"), say("closing")];
    const { journal } = await played({ name: "", files: checked(action, most), script, chain: [] });
    const [guarded] = (await why(journal, "@last", "closure.a")).contracts;
    const { on, checks, onFailure, maxFailures } = guarded!.guard!;
    assert.deepEqual([on, checks, onFailure, maxFailures], ["closing", ["proof", "never"], action, most]);
    const [plain] = (await why(journal, "@last", "continuation.a")).contracts;
    assert.equal(plain!.guard, null);
  }
});

test("the schema is always in the document, and in words when it is asked for or inspection is on", async () => {
  const paint = createPaint(false);
  for (const inspection of [false, true]) {
    const flow = { systemPromptPath: "prompts/system.md", schemas: { inspection } };
    const { journal } = await played({
      name: "",
      files: files(STEPS, { runner: { flow } }),
      script: [say("next")],
      chain: [],
    });
    const found = await why(journal, "@last", "initial.a");
    const [contract] = found.contracts;
    assert.ok(contract?.answer.kind === "object" && contract.answer.schema.kind === "schema");
    assert.deepEqual(contract.answer.schema.schema.required, ["next_action"]);
    assert.equal(/"additionalProperties": false/.test(whyText(found, paint, false)), inspection);
    assert.match(whyText(found, paint, true), /"additionalProperties": false/);
  }
});

// Helpers.

async function played(row: Row): Promise<{ readonly journal: Journal; readonly result: Result }> {
  const journal = createMemoryJournal();
  const options = {
    journal,
    clock: fakeClock(),
    args: row.args ?? {},
    env: { ...process.env, LOCKSTEP_TRUST: "all" },
    ...(row.script !== undefined && { script: row.script }),
    ...(row.backend !== undefined && { backend: row.backend }),
  };
  const cwd = projectWith(row.files ?? {});
  if (row.flow === undefined) {
    const result = await run({ agent: row.agent ?? "a", cwd, ...options });
    assert.deepEqual(
      result.problems.filter(({ severity }) => severity === "error"),
      [],
    );
    return { journal, result };
  }
  const loaded = { agent: row.flow.agent, flow: row.flow, problems: [], project: findProject(cwd) };
  return { journal, result: await runLoaded(loaded, { cwd, ...options }) };
}

function forked(): Flow {
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

/** A chain in short: a line for each of its links. */
function chainOf({
  step,
  visit,
  from,
  iteration,
  state,
  moments,
  decision,
  pending,
  ended,
}: Why): readonly string[] {
  return [
    `${step}@${visit} from ${from}, iteration ${iteration}, ${state}`,
    ...moments.flatMap(momentOf),
    ...(decision === null ? [] : [`decided ${decision.label} → ${decision.to ?? "end"}`]),
    ...(decision?.notes ?? []).map((note) => `note ${note.split("\n")[0]}`),
    ...(pending === null ? [] : [`pending ${pending.command.type}`]),
    ...(ended === null ? [] : [`ended ${ended.outcome} ${ended.code}`]),
  ];
}

type Moment = Why["moments"][number];

function momentOf({ event, asked, read, checked, followed }: Moment): readonly string[] {
  const lines: string[] = [];
  if (event.type === "run.resumed") lines.push("resumed");
  if (event.type === "step.waited") lines.push(`waited ${event.ms}`);
  if (event.type === "step.called")
    lines.push(
      ...event.results.map(({ name, denied }) => `${name} ${denied === undefined ? "done" : "denied"}`),
    );
  if (asked?.by === "command") lines.push(`command ${asked.argv?.join(" ")}`);
  if (asked?.by === "model" && event.type === "step.answered") {
    const again = asked.attempt === 1 ? "" : `, attempt ${asked.attempt}`;
    lines.push(`turn ${event.turn} after ${asked.heard}${again}`, ...asked.told.flatMap(toldOf));
  }
  if (event.type === "step.answered" && event.reply.kind === "fault")
    lines.push(`fault ${event.reply.fault.kind}`);
  if (event.type === "step.answered" && event.reply.kind === "said" && event.reply.calls.length > 0)
    lines.push(`calls ${event.reply.calls.map(({ name }) => name).join(", ")}`);
  if (read !== undefined) lines.push(...readOf(read));
  if (checked !== undefined) lines.push(...checkedOf(checked));
  if (followed !== undefined) lines.push(...followedOf(followed));
  return lines;
}

function toldOf({
  say: said,
  prompt,
  variables,
  words,
}: NonNullable<Why["pending"]>["told"][number]): readonly string[] {
  return [
    ...(said.kind === "repair" ? [`repair ${said.errors.join("; ")}`] : []),
    ...(said.kind === "failed-check" ? [`failed-check ${said.result.name} of ${said.guard}`] : []),
    ...(said.kind === "results" ? [`results ${said.results.map(({ name }) => name).join(", ")}`] : []),
    ...(prompt === null ? [] : [`prompt ${prompt.file}`]),
    ...variables.map(({ name, value, supplier, missing }) => {
      if (value === null) return `${name} has no value: ${missing}`;
      const { kind } = supplier!;
      const detail =
        "flag" in supplier!
          ? ` ${supplier.flag}`
          : "step" in supplier!
            ? ` ${supplier.step}.${supplier.key}`
            : "";
      return `${name} = ${value} (${kind}${detail})`;
    }),
    ...(words === null
      ? []
      : [words.kind === "text" ? `text ${words.text.split("\n")[0]}` : `unaskable ${words.code}`]),
  ];
}

function readOf(read: NonNullable<Moment["read"]>): readonly string[] {
  const { corrected, label, by, word, reason, errors, handoff } = read;
  const said = by === "alias" || by === "fallback" ? ` (${JSON.stringify(word)})` : "";
  return [
    ...(corrected === null
      ? []
      : [`corrected ${corrected.field} "${corrected.said}" → "${corrected.value}"`]),
    ...errors.map((error) => `unusable ${error}`),
    ...(label === null ? [] : [`read ${label} by ${by}${said}${reason === "" ? "" : `: ${reason}`}`]),
    ...Object.entries(handoff).map(([key, value]) => `handoff ${key} = ${JSON.stringify(value)}`),
  ];
}

function checkedOf({
  results,
  notRun,
  overturned,
  failures,
  maxFailures,
}: NonNullable<Moment["checked"]>): readonly string[] {
  return [
    ...results.map(({ name, ok, pattern, attempt, params }) =>
      ok
        ? `check ${name} passed, attempt ${attempt}`
        : `check ${name} failed (${pattern}), attempt ${attempt}, changed = ${JSON.stringify(params.changed)}`,
    ),
    ...notRun.map((name) => `check ${name} not run`),
    ...(overturned ? [`overturned ${failures} of ${maxFailures}`] : []),
  ];
}

function followedOf({
  label,
  choices,
  move,
  why: none,
  fork,
  stop,
  isTaken,
}: NonNullable<Moment["followed"]>): readonly string[] {
  return [
    ...choices.map((choice) => {
      if (choice.kind === "times") return `times ${choice.taken} of ${choice.max}`;
      const otherwise = choice.otherwise ? ", otherwise" : "";
      return choice.kind === "switch"
        ? `switch ${choice.on.join(".")} is ${JSON.stringify(choice.value)}${otherwise}`
        : `jump ${choice.field.join(".")} names ${JSON.stringify(choice.found)}${otherwise}`;
    }),
    ...(stop === null ? [] : [`stop ${stop.rule.kind} ${stop.standing.kind} (${stop.done})`]),
    ...(fork === null ? [] : [`fork ${fork.done.length} of ${fork.steps.length}`]),
    ...(none === null ? [] : ["no onward transition"]),
    ...(isTaken && move !== null ? [`edge ${label} → ${targetOf(move)}`] : []),
  ];
}

function targetOf(move: NonNullable<NonNullable<Moment["followed"]>["move"]>): string {
  if (move.kind === "goto") return move.step;
  if (move.kind === "fork") return `${move.steps.join(", ")} ⇒ ${move.join}`;
  return `end ${move.outcome === "failed" ? move.code : move.outcome}`;
}
