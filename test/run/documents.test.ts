/** The examples that documents 000 and 003 print, completed to flows of three steps, run by the public door. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  createMemoryJournal,
  loadAgentDefinition,
  run,
  StepFlowRunner,
  type ScriptReply,
} from "../../src/run/index.ts";
import { tree } from "../load/world.ts";
import { agentFiles, projectWith } from "./project.ts";

const say = (stepId: string, action: string, more: object = {}): ScriptReply => ({
  step: stepId,
  output: { stepId, next_action: { action }, ...more },
});
/** Nothing is committed and everything is ignored: `git status` prints nothing. */
const CLEAN_REPOSITORY = {
  ".git/HEAD": "ref: refs/heads/main\n",
  ".git/config": "[core]\n\trepositoryformatversion = 0\n",
  ".git/info/exclude": "*\n",
  ".git/objects/info/packs": "",
  ".git/refs/heads/main": "",
};
const analysis = { analysis: { understanding: "a bug", approach: "mend it" } };

test("document 000's issue flow with its gate, handoff and validator", async () => {
  const cwd = projectWith({ ...tree(), ...CLEAN_REPOSITORY });
  const result = await run({
    agent: "iterator",
    args: { issue: 12 },
    cwd,
    journal: createMemoryJournal(),
    env: { ...process.env, LOCKSTEP_TRUST: "all" },
    script: [
      say("initial.issue", "next", analysis),
      say("continuation.issue", "next"),
      say("continuation.issue", "handoff"),
      say("closure.issue", "closing"),
    ],
  });
  assert.deepEqual(
    [result.outcome, result.exitCode, result.finalStepId],
    ["completed", 0, "closure.issue"],
    result.reason,
  );
  assert.deepEqual(
    result.path.map(({ step, label }) => `${step}:${label}`),
    ["initial.issue:next", "continuation.issue:next", "continuation.issue:handoff", "closure.issue:closing"],
  );
  assert.deepEqual(
    result.checks.map(({ name, ok }) => [name, ok]),
    [["git-clean", true]],
  );
});

test("document 003's agent.json runs, and tells what it would do on GitHub", async () => {
  const text = readFileSync(new URL("../fixtures/documents/003-agent.json", import.meta.url), "utf8");
  const { runner, ...agent } = JSON.parse(text) as { readonly runner: object };
  const steps = {
    "initial.polling": {
      kind: "work",
      intents: ["next", "repeat"],
      transitions: { next: { target: "continuation.polling" }, repeat: { target: "initial.polling" } },
    },
    "continuation.polling": {
      kind: "work",
      intents: ["next", "repeat", "handoff"],
      transitions: {
        next: { target: "continuation.polling" },
        repeat: { target: "continuation.polling" },
        handoff: { target: "closure.polling" },
      },
    },
    "closure.polling": {
      kind: "closure",
      intents: ["closing", "repeat"],
      transitions: { closing: { target: null }, repeat: { target: "closure.polling" } },
    },
  } as const;
  const registry = { entryStep: undefined, entryStepMapping: { "poll:state": "initial.polling" } };
  const cwd = projectWith(agentFiles("iterator", steps, { agent, runner, registry }));
  const result = await run({
    agent: "iterator",
    args: { issue: "12" },
    cwd,
    // It asks for a worktree, and this is no repository.
    worktree: false,
    env: { LOCKSTEP_TRUST: "all" },
    journal: createMemoryJournal(),
    script: [
      say("initial.polling", "next"),
      say("continuation.polling", "handoff"),
      say("closure.polling", "closing"),
    ],
  });
  assert.equal(result.outcome, "completed", JSON.stringify(result.problems));
  assert.ok(result.problems.every((problem) => problem.severity === "warning"));
  // Nobody says which repository it is: what would be done there is told.
  assert.deepEqual(
    result.effects.map(({ kind, state, target }) => [kind, state, target]),
    ["github", "label", "label", "label"].map((kind) => [kind, "held", "issue #12"]),
  );
  assert.match(result.effects[3]!.detail, /By hand: cd \S+ && gh issue edit 12 --remove-label in-progress/);
});

test("document 000's conditional transition takes the branch that the handoff names", async () => {
  const cwd = projectWith(
    agentFiles("branching", {
      "initial.sort": {
        kind: "work",
        intents: ["next"],
        gate: { handoffFields: ["report.status"] },
        properties: { report: { type: "object", properties: { status: { type: "string" } } } },
        transitions: {
          next: {
            condition: "status",
            targets: {
              ready: "continuation.process",
              blocked: "continuation.wait",
              default: "continuation.fallback",
            },
          },
        },
      },
      ...Object.fromEntries(
        ["process", "wait", "fallback"].map((name) => [
          `continuation.${name}`,
          {
            kind: "work" as const,
            intents: ["handoff"],
            transitions: { handoff: { target: "closure.sort" } },
          },
        ]),
      ),
      "closure.sort": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    }),
  );
  for (const [status, step] of [
    ["ready", "process"],
    ["blocked", "wait"],
    ["odd", "fallback"],
    ["constructor", "fallback"],
  ] as const) {
    const result = await run({
      agent: "branching",
      cwd,
      journal: createMemoryJournal(),
      script: [
        say("initial.sort", "next", { report: { status } }),
        say(`continuation.${step}`, "handoff"),
        say("closure.sort", "closing"),
      ],
    });
    assert.equal(result.outcome, "completed", `${status}: ${result.reason}`);
  }
});

test("document 000's branching project flow: repeat and handoff lead to other work steps", async () => {
  const work = (transitions: { readonly [intent: string]: string }) => ({
    kind: "work" as const,
    intents: Object.keys(transitions),
    transitions: Object.fromEntries(
      Object.entries(transitions).map(([intent, target]) => [intent, { target }]),
    ),
  });
  const cwd = projectWith(
    agentFiles("project", {
      "initial.preparation": work({ next: "continuation.preparation", handoff: "initial.review" }),
      "continuation.preparation": work({ next: "continuation.preparation", handoff: "initial.review" }),
      "initial.review": work({
        next: "continuation.review",
        repeat: "initial.again",
        handoff: "closure.project",
      }),
      "continuation.review": work({
        next: "continuation.review",
        repeat: "initial.again",
        handoff: "closure.project",
      }),
      "initial.again": work({ next: "continuation.again", handoff: "initial.review" }),
      "continuation.again": work({ handoff: "initial.review" }),
      "closure.project": {
        kind: "closure",
        intents: ["closing"],
        transitions: { closing: { target: null } },
      },
    }),
  );
  const route: readonly (readonly [string, string])[] = [
    ["initial.preparation", "next"],
    ["continuation.preparation", "handoff"],
    ["initial.review", "repeat"],
    ["initial.again", "next"],
    ["continuation.again", "handoff"],
    ["initial.review", "handoff"],
    ["closure.project", "closing"],
  ];
  const script = route.map(([step, action]) => say(step, action));
  const result = await run({ agent: "project", cwd, journal: createMemoryJournal(), script });
  assert.deepEqual(
    result.path.map(({ step, label }) => [step, label]),
    route,
    result.reason,
  );
});

test("count:iteration completes at its number; any other verdict type stops there in failure", async () => {
  const steps = {
    "initial.turn": {
      kind: "work",
      intents: ["next"],
      transitions: { next: { target: "continuation.turn" } },
    },
    "continuation.turn": {
      kind: "work",
      intents: ["next", "handoff"],
      transitions: { next: { target: "continuation.turn" }, handoff: { target: "closure.turn" } },
    },
    "closure.turn": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
  } as const;
  for (const [type, outcome, exitCode] of [
    ["count:iteration", "completed", 0],
    ["detect:graph", "failed", 4],
  ] as const) {
    const cwd = projectWith(
      agentFiles("turns", steps, { runner: { verdict: { type, config: { maxIterations: 3 } } } }),
    );
    const script = [
      say("initial.turn", "next"),
      say("continuation.turn", "next"),
      say("continuation.turn", "next"),
    ];
    const result = await run({ agent: "turns", cwd, journal: createMemoryJournal(), script });
    assert.deepEqual(
      [result.outcome, result.exitCode, result.iterations],
      [outcome, exitCode, 3],
      result.reason,
    );
  }
});

test("document 001's programmatic API: a definition, a runner, a result with its history", async () => {
  const cwd = projectWith({ ...tree(), ...CLEAN_REPOSITORY });
  const definition = await loadAgentDefinition("iterator", { cwd });
  const runner = new StepFlowRunner(definition);
  const result = await runner.run({
    args: { issue: 7 },
    cwd,
    journal: createMemoryJournal(),
    env: { ...process.env, LOCKSTEP_TRUST: "all" },
    script: [
      say("initial.issue", "next", analysis),
      say("continuation.issue", "handoff"),
      say("closure.issue", "closing"),
    ],
  });
  assert.equal(result.success, true, result.reason);
  assert.equal(result.finalStepId, "closure.issue");
  assert.match(result.completionReason, /closure\.issue/);
  assert.deepEqual(
    result.state.history.map(({ stepId, iteration, transition }) => `${iteration} ${stepId} ${transition}`),
    ["1 initial.issue next", "2 continuation.issue handoff", "3 closure.issue closing"],
  );
});

test("a definition that cannot run is refused with every problem", async () => {
  const cwd = projectWith(tree({ "registry /steps/initial.issue/transitions/next/target": "nowhere" }));
  await assert.rejects(loadAgentDefinition("iterator", { cwd }), /nowhere/);
});
