/** Action blocks from the command line: run, told, shown, explained, checked. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openStandIn } from "../github/stand-in.ts";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "./world.ts";

const TYPES = ["note", "plan", "later", "issue-action", "shout"];
const HANDLERS = {
  note: "builtin:file",
  plan: "builtin:log",
  later: "builtin:github-issue",
  shout: "./handlers/shout.mjs",
};
const RUN = ["run", "notes", "--topic", "tides", "--issue", "1", "--script", "script.json"];

function block(value: object): string {
  return `\`\`\`json\n${JSON.stringify(value)}\n\`\`\``;
}

function createActing(actions: object = {}): World {
  const world = createWorld();
  writeAgent(world, "notes", {
    agent: (agent) => {
      const runner = agent.runner as { [key: string]: unknown };
      (agent.parameters as { [key: string]: unknown }).issue = {
        type: "number",
        description: "the issue",
        cli: "--issue",
      };
      (runner.boundaries as { [key: string]: unknown }).permissionMode = "acceptEdits";
      runner.integrations = { github: { enabled: true } };
      runner.actions = { enabled: true, types: TYPES, outputFormat: "json", handlers: HANDLERS, ...actions };
    },
  });
  world.write(".agent/notes/handlers/shout.mjs", "export default ({ content }) => content.toUpperCase();\n");
  const words = [
    block({ type: "note", content: "a note", filename: "notes.md" }),
    block({ type: "plan", content: "go on" }),
    block({ type: "shout", content: "hello" }),
    block({ type: "later", title: "Later" }),
    block({ type: "issue-action", action: "close", issue: 2, body: "not mine" }),
  ];
  const first = { ...replies.initial(), text: words.join("\n\n") };
  const last = {
    ...replies.closure(),
    text: block({ type: "issue-action", action: "progress", body: "Done." }),
  };
  world.write("script.json", script(first, replies.continuation(), last));
  return world;
}

test("a run carries out what answers ask for, and tells it everywhere", async () => {
  const stand = await openStandIn();
  try {
    const issue = stand.world.addIssue();
    const other = stand.world.addIssue();
    using world = createActing();
    const env = { ...stand.env, LOCKSTEP_TRUST: "all" };

    const dry = await world.lockstep([...RUN, "--dry-run"], { env });
    assert.equal(dry.code, 0, dry.stderr);
    assert.match(dry.stderr, /not done \(--dry-run\): append 7 bytes to notes\.md/);
    assert.ok(!existsSync(join(world.root, "notes.md")));
    assert.equal(stand.log.length, 0);

    const ran = await world.lockstep(RUN, { env });
    assert.equal(ran.code, 0, ran.stderr);
    assert.match(ran.stderr, /action:file ✓ appended 7 bytes to notes\.md/);
    assert.match(ran.stderr, /acts on issue #2, and the run is about issue #1/);
    assert.equal(readFileSync(join(world.root, "notes.md"), "utf8"), "a note\n");
    assert.deepEqual([other.state, other.comments.length], ["open", 0]);
    assert.deepEqual([issue.comments.length, stand.world.issues.get(3)?.title], [1, "Later"]);

    const shown = onlyDocument(await world.lockstep(["show", "@last", "--json"]));
    const effects = shown.effects as readonly {
      readonly kind: string;
      readonly state: string;
      readonly detail: string;
    }[];
    assert.deepEqual(
      effects.map(({ kind, state }) => `${kind} ${state}`),
      [
        "action:file applied",
        "action:log applied",
        "action:module applied",
        "action:github-issue applied",
        "action:refused held",
        "action:issue-action applied",
      ],
    );
    assert.match(effects[2]!.detail, /HELLO$/);
    const logs = await world.lockstep(["logs", "@last"]);
    assert.match(logs.stdout, /\[Effect\] applied: plan: go on/);
    const why = await world.lockstep(["why", "@last", "initial.note"]);
    assert.equal(why.code, 0, why.stderr);
    const replayed = await world.lockstep(["replay", "@last"]);
    assert.equal(replayed.code, 0, replayed.stderr);
  } finally {
    await stand.close();
  }
});

test("without trust nothing of it runs", async () => {
  using world = createActing();
  const ran = await world.lockstep(RUN);
  assert.equal(ran.code, 3, ran.stderr);
  assert.match(ran.stderr, /node \.agent\/notes\/handlers\/shout\.mjs/);
});

test("explain tells what carries out each type, and check what is wrong with it", async () => {
  using world = createActing();
  const explained = await world.lockstep(["explain", "notes"]);
  assert.match(explained.stdout, /runner\.actions\.handlers\.note +"?builtin:file/);
  assert.match(explained.stdout, /runner\.actions\.handlers\.issue-action +"?builtin:issue-action/);
  using wrong = createActing({ handlers: { ...HANDLERS, note: "builtin:fiel" } });
  const checked = await wrong.lockstep(["check", "notes"]);
  assert.equal(checked.code, 2);
  assert.match(checked.stdout, /ACTION-HANDLER[^]*Did you mean "builtin:file"\?/);
});
