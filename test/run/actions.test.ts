/** Blocks in answers are carried out: when, by what, and not at all where they ask for too much. */
import assert from "node:assert/strict";
import { existsSync, linkSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  createMemoryJournal,
  load,
  logs,
  run,
  show,
  type Result,
  type ScriptReply,
} from "../../src/run/index.ts";
import { BLOCK_CAPS } from "../../src/flow/action-blocks.ts";
import { extractBeside } from "../../src/engine/decide/answer.ts";
import { tree001 } from "../load/documents.ts";
import { machineFiles } from "./stage-project.ts";
import { projectWith } from "./project.ts";
import {
  NOTE,
  bodies,
  actingAgent,
  closing,
  effectsOf,
  fenced,
  handoff,
  HANDLERS,
  reply,
  withActing,
  type Settings,
  type World,
} from "./acting.ts";
import { besidesUnconfined } from "../needs.ts";

const LABELS = { blocked: "stuck", size: "big", completion: { add: ["ready"], remove: ["todo"] } };

const notesIn = ({ warnings, problems }: Pick<Result, "warnings" | "problems">) =>
  besidesUnconfined(warnings).filter((warning) => !problems.some(({ message }) => message === warning));

// The answer in a message with blocks.
const ANSWER = { stepId: "initial.work", next_action: { action: "handoff" } };
const MESSAGES: readonly (readonly [name: string, text: string, effects: number, asks: number])[] = [
  ["the answer last", [fenced(NOTE), fenced(ANSWER)].join("\n\n"), 1, 2],
  ["the answer first", [fenced(ANSWER), fenced(NOTE)].join("\n\n"), 1, 2],
  ["the answer between", [fenced(NOTE), fenced(ANSWER), fenced(NOTE)].join("\n\n"), 2, 2],
  ["the answer without a fence", `${JSON.stringify(ANSWER)}\n\n${fenced(NOTE)}\n`, 1, 2],
  [
    "a block by its type",
    `${fenced(ANSWER)}\n\n\`\`\`note\n${JSON.stringify({ filename: "notes.md", content: "x" })}\n\`\`\``,
    1,
    2,
  ],
  ["blocks without an answer are asked again", fenced(NOTE), 0, 3],
];
for (const [name, text, effects, asks] of MESSAGES) {
  test(`a message with blocks: ${name}`, async () => {
    await withActing({}, async ({ start }) => {
      const first: ScriptReply = { step: "initial.work", text };
      const script = asks === 2 ? [first, closing()] : [first, handoff(), closing()];
      const result = await start(script);
      assert.deepEqual(
        [result.outcome, result.warnings.filter((one) => /left/.test(one))],
        ["completed", []],
      );
      assert.equal(effectsOf(result).length, effects);
    });
  });
}

test("an answer with a type of the list is one where nothing else could be", async () => {
  const actions = { enabled: true, types: ["note"], outputFormat: "json", handlers: {} };
  const typed = { ...ANSWER, type: "note" };
  assert.deepEqual(await extractBeside(`Done.\n${fenced(typed)}`, actions), typed);
  assert.deepEqual(await extractBeside(`Done.\n${fenced(typed)}\n${fenced(ANSWER)}`, actions), ANSWER);
});

// What each handler does.
const DOINGS: readonly {
  readonly name: string;
  readonly settings?: Settings;
  /** The blocks stand in the answer of the closure. */
  readonly closes?: true;
  readonly blocks: readonly object[];
  readonly effects: readonly string[];
  readonly then?: (world: World, result: Result) => void;
}[] = [
  {
    name: "a file is begun and added to",
    blocks: [NOTE, { ...NOTE, content: "two\n", mode: "append" }],
    effects: ["action:file:applied", "action:file:applied"],
    then: ({ read }) => assert.equal(read("notes.md"), "one\ntwo\n"),
  },
  {
    name: "a file is written whole, in folders that are made",
    blocks: [
      { type: "note", content: "old", filename: "a/b/c.md" },
      { type: "note", content: "new", filename: "a/b/c.md", mode: "write" },
    ],
    effects: ["action:file:applied", "action:file:applied"],
    then: ({ read }) => assert.equal(read("a/b/c.md"), "new\n"),
  },
  {
    name: "a file without a name",
    blocks: [{ type: "note", content: "x" }],
    effects: ["action:file:applied"],
    then: ({ read }) => assert.equal(read("output.md"), "x\n"),
  },
  {
    name: "a line of the log",
    blocks: [
      { type: "plan", steps: ["a"] },
      { type: "plan", content: "first\nthen" },
    ],
    effects: ["action:log:applied", "action:log:applied"],
    then: (_, { effects }) =>
      assert.deepEqual(
        effects.map(({ detail }) => detail),
        ['plan: {"steps":["a"]}', "plan: first then"],
      ),
  },
  {
    name: "a signal of completion ends nothing",
    blocks: [{ type: "done", content: "all done" }],
    effects: ["action:completion-signal:applied"],
    then: (_, { path }) =>
      assert.deepEqual(
        path.map(({ step }) => step),
        ["initial.work", "closure.work"],
      ),
  },
  {
    name: "a comment",
    blocks: [{ type: "comment", content: "Hello", issueNumber: 1 }],
    effects: ["action:github-comment:applied"],
    then: ({ issue }) => assert.deepEqual(bodies(issue), ["Hello (signed)"]),
  },
  {
    name: "an issue with all there is",
    settings: { github: { labels: { size: "big" } } },
    blocks: [
      {
        type: "issue",
        title: "Later",
        content: "Do it.",
        labels: ["big"],
        assignee: "octo-me",
        rationale: "No time",
        dueDate: "2026-12-01",
        priority: "low",
      },
    ],
    effects: ["action:github-issue:applied"],
    then: ({ stand }) => {
      const { title, body, labels } = stand.world.issues.get(3)!;
      assert.deepEqual([title, labels], ["Later", ["big"]]);
      assert.match(
        body!,
        /^Do it\.\n\n\*\*Rationale:\*\* No time\n\n\*\*Due:\*\* 2026-12-01\n\n\*\*Priority:\*\* low\n\n<!-- /,
      );
    },
  },
  {
    name: "an issue with the beginning of its content for a title",
    blocks: [{ type: "issue", content: "word ".repeat(20) }],
    effects: ["action:github-issue:applied"],
    then: ({ stand }) => assert.equal(stand.world.issues.get(3)!.title, "word ".repeat(10).trimEnd()),
  },
  {
    name: "progress",
    blocks: [{ type: "issue-action", action: "progress", issue: 1, body: "Half" }],
    effects: ["action:issue-action:applied"],
    then: ({ issue }) => assert.deepEqual([bodies(issue), issue.state], [["Half (signed)"], "open"]),
  },
  {
    name: "a question about the run's own issue, which it need not name",
    blocks: [{ type: "issue-action", action: "question", content: "Which?" }],
    effects: ["action:issue-action:applied"],
    then: ({ issue }) => assert.deepEqual(bodies(issue), ["Which? (signed)"]),
  },
  {
    name: "blocked, with the label of the agent file and one more",
    settings: { github: { labels: { blocked: "stuck", size: "big" }, defaultClosureAction: "label-only" } },
    blocks: [{ type: "issue-action", action: "blocked", issue: "#1", body: "No key", label: "BIG" }],
    effects: ["action:issue-action:applied", "action:issue-action:applied", "action:issue-action:applied"],
    then: ({ issue }) => assert.deepEqual(issue.labels, ["todo", "BIG", "stuck"]),
  },
  {
    name: "close, in the answer that completes the run",
    closes: true,
    blocks: [{ type: "issue-action", action: "close", issue: 1, body: "Done" }],
    effects: ["action:issue-action:applied", "action:issue-action:applied"],
    then: ({ issue }) => assert.deepEqual([bodies(issue), issue.state], [["Done (signed)"], "closed"]),
  },
];

describe("what the handlers do", () => {
  for (const { name, settings = {}, closes = false, blocks, effects, then } of DOINGS) {
    test(name, async () => {
      await withActing(settings, async (world) => {
        const script = closes ? [handoff(), closing(...blocks)] : [handoff(...blocks), closing()];
        const result = await world.start(script);
        assert.equal(result.outcome, "completed", result.reason);
        assert.deepEqual(effectsOf(result), effects, JSON.stringify(result.effects));
        then?.(world, result);
        assert.deepEqual(effectsOf(await show(world.journal, result.run!)), effects);
      });
    });
  }
});

test("close follows defaultClosureAction: label-only leaves the issue open", async () => {
  await withActing({ github: { labels: LABELS, defaultClosureAction: "label-only" } }, async (world) => {
    const block = { type: "issue-action", action: "close", issue: 1, body: "Done" };
    const heard: string[] = [];
    const result = await world.start([handoff(), closing(block)], {
      observe: ({ event }) => void (event.type === "effect.applied" && heard.push(event.detail)),
    });
    assert.equal(result.outcome, "completed");
    assert.deepEqual([world.issue.state, world.issue.labels], ["open", ["ready"]]);
    assert.ok(heard.some((detail) => detail.startsWith("commented")));
  });
});

// When.
describe("which answers are acted on", () => {
  const write = (content: string) => ({ ...NOTE, content });
  const cases: readonly (readonly [string, Settings, readonly ScriptReply[], string | null])[] = [
    [
      "each visit, in order",
      {},
      [reply("initial.work", "repeat", write("a")), handoff(write("b")), closing(write("c"))],
      "a\nb\nc\n",
    ],
    ["not an abort", {}, [handoff(write("a")), reply("closure.work", "abort", write("b"))], "a\n"],
    [
      "not what is said beside a tool call",
      {},
      [
        { text: fenced(write("early")), calls: [{ name: "Glob", input: { pattern: "*" } }] },
        handoff(write("a")),
        closing(),
      ],
      "a\n",
    ],
    [
      "not an answer that is sent back",
      {},
      [
        { text: fenced(write("bad")), output: { next_action: { action: "handoff" }, stepId: 7 } },
        handoff(write("good")),
        closing(),
      ],
      "good\n",
    ],
    [
      "not what tools found",
      {},
      [{ calls: [{ name: "Read", input: { file_path: "trap.md" } }] }, handoff(), closing()],
      null,
    ],
    [
      "not a closure that its checks overturn, and the one that they pass",
      { proof: "proof.txt" },
      [
        handoff(),
        closing(write("early")),
        { calls: [{ name: "Write", input: { file_path: "proof.txt", content: "x" } }] },
        handoff(),
        closing(write("late")),
      ],
      "late\n",
    ],
    ["not when actions are off", { actions: { enabled: false } }, [handoff(write("a")), closing()], null],
    [
      "only declared types",
      { actions: { types: ["plan"], handlers: {} } },
      [handoff(write("a")), closing()],
      null,
    ],
  ];
  for (const [name, settings, script, expected] of cases) {
    test(name, async () => {
      await withActing(
        { ...settings, files: { "trap.md": fenced(write("trap")) } },
        async ({ start, read }) => {
          const result = await start(script);
          assert.notEqual(result.code, "SCRIPT_MISMATCH", result.reason);
          assert.equal(read("notes.md"), expected, JSON.stringify(result));
        },
      );
    });
  }

  test("an act comes before the next question to the model", async () => {
    await withActing({}, async ({ start }) => {
      const order: string[] = [];
      await start([handoff(NOTE), closing(NOTE)], { observe: ({ event }) => void order.push(event.type) });
      const act = ["effect.intended", "effect.applied"];
      assert.deepEqual(order, ["run.started", "step.answered", ...act, "step.answered", ...act, "run.ended"]);
    });
  });

  test("the last answer of a run that reaches its ceiling is acted on", async () => {
    await withActing({}, async ({ start, read }) => {
      const result = await start(
        Array.from({ length: 8 }, (_, place) =>
          reply("initial.work", "repeat", { ...NOTE, content: `${place}` }),
        ),
      );
      assert.equal(result.code, "AGENT_MAX_ITERATIONS");
      assert.equal(read("notes.md"), "0\n1\n2\n3\n4\n5\n6\n7\n");
    });
  });
});

// What must not be done.
describe("blocks that ask for too much", () => {
  const MALICIOUS: readonly (readonly [string, object | string, RegExp, Settings?])[] = [
    ["a path that climbs out", { ...NOTE, filename: "../out.md" }, /outside the working directory/],
    [
      "a path that climbs out by a detour",
      { ...NOTE, filename: "a/../../out.md" },
      /outside the working directory/,
    ],
    ["an absolute path", { ...NOTE, filename: "/tmp/lockstep-out.md" }, /outside the working directory/],
    ["the home folder", { ...NOTE, filename: "~/.profile" }, /~ is not expanded/],
    ["a link that leads out", { ...NOTE, filename: "way-out/x.md" }, /outside the working directory/],
    ["a link into nothing", { ...NOTE, filename: "dangling" }, /link to something that does not exist/],
    ["a control character", { ...NOTE, filename: "a\u0000b" }, /control character/],
    ["git's own files", { ...NOTE, filename: ".git/hooks/pre-commit" }, /not for tools to change/],
    ["our own files", { ...NOTE, filename: ".lockstep/runs.db" }, /not for tools to change/],
    ["the agent itself", { ...NOTE, filename: ".agent/worker/agent.json" }, /not for tools to change/],
    ["a folder", { ...NOTE, filename: "src" }, /EISDIR|no file/],
    ["a file with another name elsewhere", { ...NOTE, filename: "twin.md" }, /more than one name/],
    ["a path that is no text", { ...NOTE, filename: ["a"] }, /"filename".*must be a text/],
    ["a mode that there is not", { ...NOTE, mode: "delete" }, /"mode".*must be one of append, write/],
    ["a file in a step that only reads", NOTE, /permissionMode plan/, { mode: "plan" }],
    ["a file without content", { type: "note", filename: "x" }, /has no content/],
    [
      "another issue",
      { type: "issue-action", action: "close", issue: 2, body: "x" },
      /acts on issue #2, and the run is about issue #1/,
    ],
    ["a comment on another issue", { type: "comment", issueNumber: 2, content: "x" }, /acts on issue #2/],
    ["a comment on no issue", { type: "comment", content: "x" }, /"issueNumber" is missing/],
    [
      "an issue that is no number",
      { type: "comment", issueNumber: "1; rm", content: "x" },
      /whole number above 0/,
    ],
    ["an issue below 1", { type: "comment", issueNumber: -1, content: "x" }, /whole number above 0/],
    [
      "an action that there is not",
      { type: "issue-action", action: "delete", issue: 1 },
      /"action".*must be one of progress, close, question, blocked/,
    ],
    ["no action", { type: "issue-action", issue: 1 }, /"action" is missing/],
    ["an action that does nothing", { type: "issue-action", action: "progress" }, /does nothing/],
    [
      "a label of its own",
      { type: "issue-action", action: "progress", body: "x", label: "deploy" },
      /label "deploy" is not among/,
    ],
    [
      "a label of its own on a new issue",
      { type: "issue", title: "x", labels: ["deploy"] },
      /label "deploy" is not among/,
    ],
    ["a title that is too long", { type: "issue", title: "x".repeat(257) }, /at most 256/],
    ["an empty issue", { type: "issue" }, /neither title nor content/],
    [
      "GitHub although it is switched off",
      { type: "comment", issueNumber: 1, content: "x" },
      /github.enabled is false/,
      { github: { enabled: false } },
    ],
    ["a huge block", { ...NOTE, content: "x".repeat(BLOCK_CAPS.bytes) }, /is longer than/],
    ["a type that is not declared", { type: "shell", content: "rm -rf /" }, /not among runner.actions.types/],
    [
      "a member that reaches a prototype",
      '```json\n{"type":"note","content":"x","__proto__":{"filename":"p.md"}}\n```',
      /a member "__proto__"/,
    ],
    ["an unclosed fence", '```json\n{"type":"note","content":"x"}', /not closed/],
  ];
  for (const [name, block, says, settings = {}] of MALICIOUS) {
    test(name, async () => {
      await withActing(settings, async ({ start, cwd, read, writes, journal }) => {
        const outside = projectWith({ "kept.md": "kept" });
        symlinkSync(outside, join(cwd, "way-out"));
        symlinkSync(join(outside, "none"), join(cwd, "dangling"));
        linkSync(join(outside, "kept.md"), join(cwd, "twin.md"));
        mkdirSync(join(cwd, "src"));
        const words = typeof block === "string" ? block : fenced(block);
        const result = await start([{ ...handoff(), text: words }, closing()]);
        assert.equal(result.outcome, "completed", result.reason);
        assert.equal(result.effects.length, 1, JSON.stringify(result.effects));
        assert.match(result.effects[0]!.state, /held|failed/);
        assert.match(result.warnings.join("\n"), says);
        assert.match(
          (await show(journal, result.run!)).warnings.join("\n"),
          says,
          "it is shown afterwards too",
        );
        assert.deepEqual([writes, read("notes.md"), read("twin.md")], [[], null, "kept"]);
        assert.equal(read("way-out/x.md"), null);
      });
    });
  }

  test("a run without an issue of its own has none that it may act on", async () => {
    await withActing({}, async ({ start, writes }) => {
      const blocks = [
        { type: "issue-action", action: "close", issue: 1 },
        { type: "issue-action", action: "progress", body: "x" },
      ];
      const result = await start([handoff(...blocks), closing()], { args: {} });
      assert.deepEqual([writes, effectsOf(result)], [[], ["action:refused:held", "action:refused:held"]]);
      assert.match(result.warnings.join("\n"), /the run has no issue of its own/);
    });
  });

  test("another issue, where the agent file allows it: that has to be trusted", async () => {
    await withActing({ actions: { otherIssues: true } }, async ({ start, other, stand }) => {
      const block = { type: "comment", issueNumber: other.number, content: "Hello" };
      const untrusted = await start([handoff(block), closing()], {
        env: { ...stand.env, LOCKSTEP_TRUST: "" },
      });
      assert.match(untrusted.reason, /blocks of the type "comment" comment on any issue/);
      const result = await start([handoff(block), closing()]);
      assert.equal(result.outcome, "completed", result.reason);
      assert.deepEqual(bodies(other), ["Hello (signed)"]);
    });
  });

  test("secrets do not go out", async () => {
    const secret = `ghp_${"z".repeat(36)}`;
    await withActing({}, async ({ start, issue }) => {
      await start([handoff({ type: "comment", issueNumber: 1, content: `key ${secret}` }), closing()]);
      assert.equal(issue.comments.length, 1);
      assert.ok(!issue.comments[0]!.body.includes(secret));
    });
  });
});

// Faults.
describe("when it cannot be done", () => {
  const COMMENT = { type: "comment", issueNumber: 1, content: "Hello" };

  test("what GitHub refuses is told, and the run goes on to its end", async () => {
    await withActing({}, async ({ start, stand, journal }) => {
      stand.fault({ kind: "status", status: 403 }, { method: "POST" });
      const result = await start([handoff(COMMENT, NOTE), closing()]);
      assert.deepEqual([result.outcome, result.exitCode, result.code], ["completed", 0, null]);
      assert.deepEqual(effectsOf(result), ["action:github-comment:failed", "action:file:applied"]);
      assert.match(result.warnings.join("\n"), /could not comment on issue #1: Hello: .*permission/);
      assert.equal(stand.log.filter(({ method }) => method === "POST").length, 1, "it is not tried again");
      const lines = [];
      for await (const line of logs(journal, result.run!)) lines.push(`${line.level} ${line.message}`);
      assert.ok(
        lines.some((line) => line.startsWith("error [Effect] failed: could not comment")),
        lines.join("\n"),
      );
    });
  });

  test("a trouble that passes is tried again before the next command", async () => {
    await withActing({}, async ({ start, stand, issue }) => {
      stand.fault({ kind: "drop" }, { method: "POST", nth: 1, times: 1 });
      const result = await start([handoff(COMMENT), closing()]);
      assert.deepEqual(effectsOf(result), ["action:github-comment:applied"], JSON.stringify(result));
      assert.deepEqual([bodies(issue), notesIn(result)], [["Hello (signed)"], []]);
    });
  });

  test("an answer that is lost after the act is not taken for a failure", async () => {
    await withActing({}, async ({ start, stand, issue }) => {
      stand.fault({ kind: "drop", after: true }, { method: "POST", nth: 1 });
      const result = await start([handoff(COMMENT), closing()]);
      assert.deepEqual(effectsOf(result), ["action:github-comment:applied"], JSON.stringify(result));
      assert.equal(issue.comments.length, 1);
    });
  });

  test("a trouble that stays is not tried for ever", async () => {
    await withActing({}, async ({ start, stand }) => {
      stand.fault({ kind: "status", status: 502 }, { method: "POST" });
      const more = Array.from({ length: 5 }, () => reply("initial.work", "repeat"));
      const tried: string[] = [];
      const result = await start([reply("initial.work", "repeat", COMMENT), ...more, handoff(), closing()], {
        observe: ({ event }) => void (event.type === "effect.failed" && tried.push(event.detail)),
      });
      assert.equal(result.outcome, "completed", result.reason);
      assert.deepEqual([tried.length, effectsOf(result)], [3, ["action:github-comment:failed"]]);
    });
  });

  test("what failed on GitHub is tried once more when the run is resumed", async () => {
    await withActing({}, async ({ start, resume: again, stand, issue }) => {
      stand.fault({ kind: "status", status: 403 }, { method: "POST" });
      const halted = await start([handoff(COMMENT)]);
      assert.deepEqual(
        [halted.code, effectsOf(halted)],
        ["SCRIPT_EXHAUSTED", ["action:github-comment:failed"]],
      );
      stand.calm();
      const result = await again(halted, { script: [closing()] });
      assert.deepEqual(effectsOf(result), ["action:github-comment:applied"]);
      assert.deepEqual([bodies(issue), notesIn(result)], [["Hello (signed)"], []]);
    });
  });

  test("what comes later in the same block waits for what failed", async () => {
    await withActing({}, async ({ start, stand, issue }) => {
      stand.fault({ kind: "status", status: 403 }, { method: "POST" });
      await start([handoff(), closing({ type: "issue-action", action: "close", body: "Done" })]);
      assert.equal(issue.state, "open");
    });
  });

  test("without a token it is told", async () => {
    await withActing({}, async ({ start, stand }) => {
      const { GH_TOKEN: _, ...env } = stand.env;
      const result = await start([handoff(COMMENT), closing()], { env: { ...env, PATH: "/nowhere" } });
      assert.equal(result.outcome, "completed");
      assert.match(result.warnings.join("\n"), /There is no token/);
    });
  });
});

test("a dry run tells what would be done, also when it is resumed", async () => {
  await withActing({}, async ({ start, resume: again, read, stand }) => {
    const blocks = [NOTE, { type: "comment", issueNumber: 1, content: "x" }, { type: "plan", content: "p" }];
    const halted = await start([handoff(...blocks)], { dryRun: true });
    const result = await again(halted, { script: [closing(NOTE)] });
    assert.deepEqual(effectsOf(result), [
      "action:file:held",
      "action:github-comment:held",
      "action:log:applied",
      "action:file:held",
    ]);
    assert.match(result.effects[0]!.detail, /not done \(--dry-run\): append 4 bytes to notes\.md/);
    assert.deepEqual([read("notes.md"), stand.log.length, notesIn(result)], [null, 0, []]);
  });
});

test("what an agent says of its handlers is part of the flow", async () => {
  const { flow } = await load("worker", { cwd: projectWith(actingAgent()) });
  assert.deepEqual(flow?.settings.actions.handlers, HANDLERS);
  assert.equal(flow?.settings.actions.modules, undefined);
});

// Other forms of flows, and runs that share a past.
const acts = (types: readonly string[], handlers: object) => ({
  runner: { actions: { enabled: true, types, handlers } },
});

const write = (content: string) => `\`\`\`note\n${JSON.stringify({ content, filename: "notes.md" })}\n\`\`\``;
const notesOf = (folder: string) => {
  const path = join(folder, "notes.md");
  return existsSync(path) ? readFileSync(path, "utf8") : null;
};

test("stages act when they are content, siblings before they meet", async () => {
  const stages = {
    s: { next: { parallel: ["a", "b"], join: "meet", policy: "independent" } },
    a: {},
    b: { turnCap: 1 },
    meet: { allowedTools: ["Read"] },
  };
  const agent = acts(["note"], { note: "builtin:file" });
  const folder = projectWith(machineFiles({ stages, agent }));
  const journal = createMemoryJournal();
  const script = [
    { step: "s", text: write("s"), output: {} },
    { step: "a", text: write("a"), output: {} },
    { step: "b", text: write("b") },
    { step: "meet", calls: [{ name: "Read", input: { file_path: "notes.md" } }] },
    { step: "meet", text: write("meet"), output: {}, saw: ["a"] },
  ];
  const result = await run({ agent: "m", cwd: folder, journal, script });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(notesOf(folder), "s\na\nmeet\n", "b gave no result");
});

test("a step with a check prompt acts when the check has passed, and the check itself does not", async () => {
  const folder = projectWith(
    tree001({}, { "/runner/actions": acts(["note"], { note: "builtin:file" }).runner.actions }),
  );
  const step = "s_a8f3";
  const check = (result: string) => ({
    step: `${step}#check`,
    text: write("check"),
    output: { result, message: "m" },
  });
  const script = [{ step, text: write("early") }, check("ng"), { step, text: write("late") }, check("ok")];
  const result = await run({
    agent: "code-improver",
    cwd: folder,
    args: { topic: "t" },
    journal: createMemoryJournal(),
    script,
  });
  assert.equal(result.code, "SCRIPT_EXHAUSTED", result.reason);
  assert.equal(notesOf(folder), "late\n");
});

test("a run is over by a block only where its verdict says so", async () => {
  const verdict = { type: "detect:structured", config: { signalType: "done", requiredFields: ["summary"] } };
  const steps = async (settings: Settings, block: object) => {
    let path: readonly string[] = [];
    await withActing(settings, async ({ start }) => {
      const result = await start([reply("initial.work", "next", block), handoff(), closing()]);
      path = result.path.map(({ step }) => step);
      assert.equal(result.outcome, "completed", result.reason);
    });
    return path;
  };
  const all = ["initial.work", "initial.work", "closure.work"];
  assert.deepEqual(await steps({}, { type: "done", summary: "s" }), all);
  assert.deepEqual(await steps({ verdict }, { type: "done" }), all, "it lacks a field");
  assert.deepEqual(await steps({ verdict }, { type: "plan", summary: "s" }), all, "it is of another type");
  assert.deepEqual(await steps({ verdict }, { type: "done", summary: "s" }), ["initial.work"]);
});

test("a flow that is adopted on the way does not act on what was said before", async () => {
  await withActing({ actions: { enabled: false } }, async ({ start, resume: again, read, write }) => {
    const halted = await start([handoff(NOTE)]);
    for (const [path, text] of Object.entries(actingAgent())) write(path, text);
    const result = await again(halted, {
      script: [closing({ ...NOTE, content: "two" })],
      adopt: true,
    } as object);
    assert.equal(result.outcome, "completed", result.reason);
    assert.equal(read("notes.md"), "two\n");
  });
});
