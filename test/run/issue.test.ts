/** What a run does to its issue: labels as it begins, labels and closing as it ends, and nothing that nobody asked for. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  createMemoryJournal,
  load,
  resume,
  run,
  show,
  type Result,
  type RunOptions,
  type ScriptReply,
} from "../../src/run/index.ts";
import { createClock } from "../github/client.ts";
import { openStandIn, type StandIn } from "../github/stand-in.ts";
import type { StoredIssue } from "../../src/testing/github/world.ts";
import { agentFiles, projectWith } from "./project.ts";

const LABELS = { inProgress: "doing", blocked: "stuck", completion: { add: ["done"], remove: ["todo"] } };
const FREE = { type: "object", additionalProperties: true };

type Settings = {
  readonly github?: object;
  readonly verdict?: object;
  readonly parameters?: object;
};

function project({ github, verdict, parameters }: Settings): string {
  const steps = {
    "initial.work": {
      kind: "work",
      intents: ["next", "handoff"],
      transitions: { next: { target: "initial.work" }, handoff: { target: "closure.work" } },
    },
    "closure.work": {
      kind: "closure",
      intents: ["closing", "repeat"],
      transitions: { closing: { target: null }, repeat: { target: "initial.work" } },
      properties: { closure_action: {}, closure: FREE, issue: FREE },
    },
  } as const;
  const runner = {
    flow: { systemPromptPath: "prompts/system.md" },
    verdict: verdict ?? { type: "detect:graph", config: { maxIterations: 4 } },
    boundaries: { allowedTools: ["*"], permissionMode: "acceptEdits" },
    ...(github && { integrations: { github } }),
  };
  const agent = { parameters: parameters ?? { issue: { type: "number", cli: "--issue" } } };
  return projectWith(agentFiles("worker", steps, { runner, agent }));
}

const say = (step: string, action: string, more: object = {}): ScriptReply => ({
  step,
  output: { stepId: step, next_action: { action }, ...more },
});
const WORK = say("initial.work", "handoff");
const straight = (more: object = {}) => [WORK, say("closure.work", "closing", more)];

type World = {
  readonly stand: StandIn;
  readonly issue: StoredIssue;
  readonly start: (script?: readonly ScriptReply[], more?: Partial<RunOptions>) => Promise<Result>;
  readonly resume: (result: Result, more?: Partial<RunOptions>) => Promise<Result>;
  /** What was changed on the stand-in, in order. */
  readonly writes: readonly string[];
};

async function withWorld(settings: Settings, use: (world: World) => Promise<void>): Promise<void> {
  const stand = await openStandIn();
  const issue = stand.world.addIssue({ labels: ["todo", "bug"] });
  const writes: string[] = [];
  stand.onRequest = ({ method, path, body }) => {
    if (method !== "GET")
      writes.push(`${method} ${path.split("/").slice(4).join("/")} ${JSON.stringify(body)}`);
  };
  const cwd = project(settings);
  const around = { cwd, journal: createMemoryJournal(), env: stand.env, clock: createClock().clock };
  const start: World["start"] = async (script = straight(), more = {}) =>
    await run({ agent: "worker", args: { issue: issue.number }, ...around, script, ...more });
  const again: World["resume"] = async (result, more = {}) =>
    await resume({ run: result.run!, ...around, ...more });
  try {
    await use({ stand, issue, start, resume: again, writes });
  } finally {
    await stand.close();
  }
}

const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);

const ENDINGS: readonly {
  readonly name: string;
  readonly github?: object;
  readonly verdict?: object;
  readonly script?: readonly ScriptReply[];
  readonly outcome?: string;
  readonly labels: readonly string[];
  readonly state: "open" | "closed";
}[] = [
  { name: "nothing is configured", labels: ["todo", "bug"], state: "open" },
  { name: "only enabled", github: { enabled: true }, labels: ["todo", "bug"], state: "open" },
  {
    name: "only a label that prompts speak of",
    github: { labels: { requirements: "docs" } },
    labels: ["todo", "bug"],
    state: "open",
  },
  {
    name: "switched off",
    github: { enabled: false, labels: LABELS, defaultClosureAction: "label-and-close" },
    labels: ["todo", "bug"],
    state: "open",
  },
  {
    name: "label-only",
    github: { labels: LABELS, defaultClosureAction: "label-only" },
    labels: ["bug", "done"],
    state: "open",
  },
  {
    name: "label-and-close",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    labels: ["bug", "done"],
    state: "closed",
  },
  { name: "close", github: { defaultClosureAction: "close" }, labels: ["todo", "bug"], state: "closed" },
  {
    name: "labels alone: the default is to close, and what is in progress is no more",
    github: { labels: { inProgress: "doing" } },
    labels: ["todo", "bug"],
    state: "closed",
  },
  {
    name: "the answer's closure_action",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    script: straight({ closure_action: "label-only" }),
    labels: ["bug", "done"],
    state: "open",
  },
  {
    name: "the answer's closure.action",
    github: { labels: LABELS, defaultClosureAction: "label-only" },
    script: straight({ closure: { action: "close" } }),
    labels: ["todo", "bug"],
    state: "closed",
  },
  {
    name: "an answered action that there is not",
    github: { labels: LABELS, defaultClosureAction: "label-only" },
    script: straight({ closure_action: "delete", closure: { action: 7 } }),
    labels: ["bug", "done"],
    state: "open",
  },
  {
    name: "answered labels beside the configured ones, which have the last word",
    github: { labels: LABELS, answerLabels: ["Checked", "bug"], defaultClosureAction: "label-only" },
    script: straight({ issue: { labels: { add: ["checked", "TODO", "Doing"], remove: ["bug", "done"] } } }),
    labels: ["done", "checked"],
    state: "open",
  },
  {
    name: "answered labels do not count where the issue is only closed",
    github: { labels: LABELS, defaultClosureAction: "close" },
    script: straight({ issue: { labels: { add: ["checked"], remove: ["bug"] } } }),
    labels: ["todo", "bug"],
    state: "closed",
  },
  {
    name: "sent back by the closure, then closed: once",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    script: [WORK, say("closure.work", "repeat"), ...straight()],
    labels: ["bug", "done"],
    state: "closed",
  },
  {
    name: "ended by its verdict: as it is configured, whatever the last answer says",
    github: { labels: LABELS, defaultClosureAction: "label-only" },
    verdict: { type: "count:iteration", config: { maxIterations: 1 } },
    script: [say("initial.work", "next")],
    labels: ["bug", "done"],
    state: "open",
  },
  {
    name: "ended by its verdict at a closure that wanted to go on",
    github: { labels: LABELS, defaultClosureAction: "label-only" },
    verdict: { type: "count:iteration", config: { maxIterations: 2 } },
    script: [WORK, say("closure.work", "repeat", { closure_action: "label-and-close" })],
    labels: ["bug", "done"],
    state: "open",
  },
  {
    name: "ended by a word",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    verdict: { type: "detect:keyword", config: { verdictKeyword: "READY", maxIterations: 3 } },
    script: [{ ...say("initial.work", "next"), text: "READY" }],
    labels: ["bug", "done"],
    state: "closed",
  },
  {
    name: "abort",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    script: [WORK, say("closure.work", "abort", { closure_action: "close" })],
    outcome: "AGENT_ABORTED",
    labels: ["todo", "bug", "stuck"],
    state: "open",
  },
  {
    name: "failed",
    github: { labels: { blocked: "stuck" }, defaultClosureAction: "close" },
    script: [1, 2, 3, 4].map(() => say("initial.work", "next")),
    outcome: "AGENT_MAX_ITERATIONS",
    labels: ["todo", "bug", "stuck"],
    state: "open",
  },
  {
    name: "failed, and nothing says that it is blocked",
    github: { labels: { inProgress: "doing" } },
    script: [WORK, say("closure.work", "abort")],
    outcome: "AGENT_ABORTED",
    labels: ["todo", "bug"],
    state: "open",
  },
  {
    name: "stopped for now",
    github: { labels: LABELS, defaultClosureAction: "label-and-close" },
    script: [WORK],
    outcome: "SCRIPT_EXHAUSTED",
    labels: ["todo", "bug", "doing"],
    state: "open",
  },
];

describe("what becomes of the issue", () => {
  for (const { name, script, outcome = "completed", labels, state, ...settings } of ENDINGS) {
    test(name, async () => {
      await withWorld(settings, async ({ start, issue, writes }) => {
        const result = await start(script);
        assert.equal(result.code ?? result.outcome, outcome, result.reason);
        assert.deepEqual(issue.labels.toSorted(), labels.toSorted());
        assert.equal(issue.state, state);
        assert.equal(new Set(writes).size, writes.length, writes.join("\n"));
        assert.ok(result.effects.every((effect) => effect.state === "applied"));
      });
    });
  }
});

const CLOSING = { github: { labels: LABELS, defaultClosureAction: "label-and-close" } };

test("the label is there before the model is asked", async () => {
  await withWorld(CLOSING, async ({ start, issue, stand }) => {
    let asked: readonly string[] = [];
    const observe: RunOptions["observe"] = ({ event }) => {
      if (event.type === "step.answered" && asked.length === 0) asked = [...issue.labels];
    };
    const result = await start(undefined, { observe });
    assert.deepEqual(asked, ["todo", "bug", "doing"]);
    const [first] = result.effects;
    assert.deepEqual(
      [first?.kind, first?.target, first?.state, first?.detail],
      ["label", "issue #1", "applied", 'added the label "doing" to issue #1'],
    );
    assert.ok(first!.at >= Date.UTC(2026, 0, 1));
    assert.ok(stand.log.length > 0);
  });
});

test("what was applied is not done again, also if somebody undid it meanwhile", async () => {
  await withWorld(CLOSING, async ({ start, resume: again, issue, writes }) => {
    const halted = await start([WORK]);
    issue.labels = ["todo", "bug"];
    const result = await again(halted, { script: straight().slice(1) });
    assert.equal(result.outcome, "completed", result.reason);
    assert.equal(writes.filter((write) => write.includes("doing")).length, 1, "it is not put back");
    assert.deepEqual(issue.labels, ["bug", "done"]);
  });
});

test("an issue that somebody closed meanwhile is not closed again, and that is told", async () => {
  await withWorld(CLOSING, async ({ start, issue, writes }) => {
    issue.state = "closed";
    issue.stateReason = "not_planned";
    const result = await start();
    assert.match(result.effects.at(-1)!.detail, /issue #1 is closed already/);
    assert.deepEqual(
      [issue.stateReason, writes.filter((write) => write.startsWith("PATCH"))],
      ["not_planned", []],
    );
  });
});

test("nothing is done without an issue", async () => {
  const parameters = { issue: { type: "number", cli: "--issue" } };
  await withWorld({ ...CLOSING, parameters }, async ({ start, stand }) => {
    const result = await start(undefined, { args: {} });
    assert.deepEqual([result.outcome, result.effects, stand.log], ["completed", [], []]);
  });
});

test("a dry run asks GitHub nothing, and tells everything", async () => {
  await withWorld(CLOSING, async ({ start, stand }) => {
    const result = await start(undefined, { dryRun: true });
    assert.deepEqual([result.outcome, stand.log.length], ["completed", 0]);
    assert.deepEqual(effectsOf(result), [
      "label:held",
      "label:held",
      "label:held",
      "label:held",
      "close:held",
    ]);
    assert.deepEqual(
      result.effects.map(({ detail }) => detail),
      [
        'add the label "doing" to issue #1',
        'add the label "done" to issue #1',
        'remove the label "todo" from issue #1',
        'remove the label "doing" from issue #1',
        "close issue #1",
      ].map((what) => `not done (--dry-run): ${what}`),
    );
  });
  await withWorld(CLOSING, async ({ start, resume: again, stand }) => {
    const halted = await start([WORK], { dryRun: true });
    const result = await again(halted, { script: straight().slice(1) });
    assert.deepEqual([result.outcome, stand.log.length], ["completed", 0], "it stays a dry run");
  });
});

for (const [missing, says] of [
  ["GH_TOKEN", /There is no token.*set GH_TOKEN/],
  ["GH_REPO", /not known which GitHub repository/],
] as const)
  test(`without ${missing} the commands are told, before anything is asked, and the run is completed`, async () => {
    await withWorld(CLOSING, async ({ start, stand }) => {
      const { [missing]: _, ...env } = stand.env;
      const order: string[] = [];
      const observe: RunOptions["observe"] = ({ event }) => void order.push(event.type);
      const result = await start(undefined, { env: { ...env, PATH: "/nowhere" }, observe });
      assert.deepEqual([result.outcome, result.exitCode], ["completed", 0]);
      assert.ok(result.effects.every(({ state }) => state === "held"));
      assert.match(result.effects[0]!.detail, /nothing will be changed on GitHub, only reported/);
      assert.match(result.effects[0]!.detail, says);
      assert.ok(order.indexOf("effect.held") < order.indexOf("step.answered"));
      const commands = result.effects.map(({ detail }) => /&& (gh .*)$/.exec(detail)?.[1]);
      assert.deepEqual(commands, [
        undefined,
        "gh issue edit 1 --add-label doing",
        "gh issue edit 1 --add-label done",
        "gh issue edit 1 --remove-label todo",
        "gh issue edit 1 --remove-label doing",
        "gh issue close 1",
      ]);
    });
  });

describe("when GitHub fails", () => {
  test("as the run begins: no model is asked, and it can be resumed", async () => {
    await withWorld(CLOSING, async ({ start, resume: again, stand, issue }) => {
      stand.fault({ kind: "status", status: 403 }, { method: "POST" });
      const result = await start();
      assert.deepEqual(
        [
          result.outcome,
          result.code,
          result.exitCode,
          result.resumable,
          result.usage.turns,
          result.finalStepId,
        ],
        ["failed", "BEGIN_FAILED", 1, true, 0, "initial.work"],
      );
      assert.match(result.reason, /"doing" was not added to issue #1: .*permission[^]*lockstep resume/);
      stand.calm();
      const then = await again(result);
      assert.equal(then.outcome, "completed", then.reason);
      assert.deepEqual([issue.state, issue.labels], ["closed", ["bug", "done"]]);
    });
  });

  test("as it ends: it is complete, its end waits, and it can be resumed", async () => {
    await withWorld(CLOSING, async ({ start, resume: again, stand, issue, writes }) => {
      stand.fault({ kind: "status", status: 422 }, { method: "PATCH" });
      const result = await start();
      assert.deepEqual([result.code, result.exitCode, result.resumable], ["FINALIZE_FAILED", 1, true]);
      assert.match(result.reason, /is complete, but an effect after it failed[^]*issue #1 was not closed/);
      stand.calm();
      const before = writes.length;
      const then = await again(result);
      assert.equal(then.outcome, "completed", then.reason);
      assert.deepEqual([issue.state, writes.length], ["closed", before + 1]);
    });
  });

  test("after the run failed: its own failure stays, and the other is a warning", async () => {
    await withWorld(CLOSING, async ({ start, stand, issue }) => {
      stand.fault({ kind: "status", status: 410 }, { method: "POST", nth: 2 });
      const result = await start([WORK, say("closure.work", "abort")]);
      assert.deepEqual([result.code, result.resumable], ["AGENT_ABORTED", false]);
      assert.match(result.warnings.join("\n"), /"stuck" was not added to issue #1/);
      assert.deepEqual(issue.labels, ["todo", "bug", "doing"]);
    });
  });

  for (const [status, says] of [
    [401, /does not accept the token/],
    [403, /may not do this/],
    [404, /no issue 1 in/],
    [409, /could not do this/],
    [410, /not.* any more/],
    [422, /does not take this/],
    [429, /accepts no more requests until/],
    [500, /a problem of its own \(status 500\)/],
    [503, /a problem of its own \(status 503\)/],
  ] as const)
    test(`${status} to every write at the end: told, and done once it has passed`, async () => {
      await withWorld(CLOSING, async ({ start, resume: again, stand, issue, writes }) => {
        for (const method of ["POST", "DELETE", "PATCH"])
          stand.fault({ kind: "status", status }, { method, ...(method === "POST" && { nth: 2 }) });
        const result = await start();
        assert.deepEqual([result.code, result.exitCode, issue.state], ["FINALIZE_FAILED", 1, "open"]);
        assert.match(result.reason, says);
        stand.calm();
        const then = await again(result);
        assert.equal(then.outcome, "completed", then.reason);
        assert.deepEqual([issue.state, issue.labels], ["closed", ["bug", "done"]]);
        assert.equal(new Set(writes).size, writes.length, writes.join("\n"));
      });
    });

  test("there is no such issue", async () => {
    await withWorld(CLOSING, async ({ start }) => {
      const result = await start(undefined, { args: { issue: 404 } });
      assert.deepEqual([result.code, result.usage.turns], ["BEGIN_FAILED", 0]);
      assert.match(result.reason, /There is no issue 404 in octo\/demo/);
    });
  });
});

test("what a model says of labels is bounded, and what is left out is told", async () => {
  const answerLabels = [...Array.from({ length: 30 }, (_, i) => `l${i}`), "bug"];
  await withWorld({ ...CLOSING, github: { ...CLOSING.github, answerLabels } }, async ({ start, issue }) => {
    const add = [...Array.from({ length: 30 }, (_, i) => `l${i}`), "x".repeat(51), "a\nb", "", 7, null, "L1"];
    const result = await start(straight({ issue: { labels: { add, remove: "bug" } } }));
    assert.equal(result.outcome, "completed", result.reason);
    assert.equal(issue.labels.length, 11, "ten, and the configured one");
    assert.ok(!issue.labels.includes("bug"));
    const held = result.effects.find(({ state }) => state === "held");
    assert.match(held!.detail, /26 of the answered labels cannot be taken/);
  });
});

test("an agent without any of this has nothing to attend to", async () => {
  const { flow } = await load("worker", { cwd: project({ github: { enabled: true } }) });
  assert.equal(flow?.settings.github.asked, undefined);
});

test("a run that waits for its label is shown so", async () => {
  await withWorld(CLOSING, async ({ start, stand }) => {
    const journal = createMemoryJournal();
    stand.fault({ kind: "status", status: 404 });
    const result = await start(undefined, { journal });
    assert.equal((await show(journal, result.run!)).code, "BEGIN_FAILED");
  });
});

test("a stage machine has an issue too", async () => {
  const stand = await openStandIn();
  try {
    const issue = stand.world.addIssue({ labels: ["todo"] });
    const cwd = projectWith({
      ".agent/planner/stages/plan.md": `---
id: plan
name: Plan
allowedTools: [Read]
completionTool: submit_plan
retryPolicy: { maxAttempts: 1, backoff: none }
turnCap: 5
resolutionPolicy: fail
completionSchema: { type: object, required: [closure_action], properties: { closure_action: { type: string } } }
---
Plan.
`,
      ".agent/planner/agent.json": JSON.stringify({
        runner: { integrations: { github: { ...CLOSING.github, defaultClosureAction: "label-only" } } },
      }),
    });
    const script = [{ step: "plan", output: { closure_action: "close" } }];
    const { clock } = createClock();
    const journal = createMemoryJournal();
    const args = { issue: issue.number };
    const result = await run({ agent: "planner", cwd, journal, env: stand.env, clock, args, script });
    assert.equal(result.outcome, "completed", `${result.reason} ${JSON.stringify(result.problems)}`);
    assert.deepEqual([issue.state, issue.labels], ["open", ["done"]]);
  } finally {
    await stand.close();
  }
});

describe("labels of a closing answer are those that the agent file opens", () => {
  const OPENED = { size: "big", completion: { add: ["done"], remove: ["todo", "bug"] } };
  const cases: readonly (readonly [string, object, object, readonly string[], RegExp | null])[] = [
    [
      "one that nobody names",
      {},
      { add: ["deploy-to-production"] },
      ["done"],
      /"deploy-to-production" was not used/,
    ],
    ["one that labels names", {}, { add: ["BIG"] }, ["done", "BIG"], null],
    ["one that answerLabels names", { answerLabels: ["ready"] }, { add: ["ready"] }, ["done", "ready"], null],
    ["removing one that nobody names", {}, { remove: ["keep"] }, ["done"], /"keep" was not used/],
    [
      "both at once",
      { answerLabels: ["ready"] },
      { add: ["ready", "x"], remove: ["y"] },
      ["done", "ready"],
      /"x", "y" were not used/,
    ],
    ["with a sign without width", {}, { add: ["bi\u200bg"] }, ["done"], /cannot be taken/],
  ];
  for (const [name, more, labels, expected, why] of cases) {
    test(name, async () => {
      const github = { labels: OPENED, defaultClosureAction: "label-only", ...more };
      await withWorld({ github }, async ({ start, issue }) => {
        const result = await start(straight({ issue: { labels } }));
        assert.equal(result.outcome, "completed", result.reason);
        assert.deepEqual(issue.labels, expected);
        const held = result.effects.filter(({ state }) => state === "held").map(({ detail }) => detail);
        if (why === null) assert.deepEqual(held, []);
        else assert.match(held.join("\n"), why);
      });
    });
  }
});
