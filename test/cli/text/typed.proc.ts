/** Started by npx, every command that is printed can be pasted; documents for programs name the plain command. */
import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { createWorld, MAIN, replies, script, start, writeAgent, writeCheckedAgent } from "../world.ts";

const NAMES = COMMANDS.map(({ name }) => name).join("|");
const NAKED = new RegExp(`(?<!npx )\\blockstep (?:${NAMES})\\b.*`);

test("every printed command begins as the user's own did", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  writeCheckedAgent(world, "checked", "true");
  writeAgent(world, "warned", {
    agent: (agent) => {
      const topic = { type: "string", description: "T", required: true, cli: "--topic" };
      agent.parameters = { topic, branch: { ...topic, required: false, cli: "--branch" } };
    },
  });
  world.write("one.json", script(replies.initial()));
  world.write("wrong.json", script(replies.closure()));
  world.write("empty/.agent/x.txt", "");
  const lines = [
    "",
    "help run",
    "run --help",
    "run notes --help",
    "-x",
    "runs --nonsense",
    "run notes",
    "run nobody",
    "run notes --topic t --model sonnet",
    "run notes --topic t --script one.json",
    "run notes --topic t --script wrong.json",
    "run checked --topic t --script one.json",
    "show @last",
    "run warned --topic t --script one.json",
    "show @last",
    "check warned",
    "check",
    "run notes --topic t --max-time 5",
    "show nobody",
    "runs --limit 1",
    "stop @last",
    "pause @last",
    "resume @last",
    "trust show checked",
    "probe checked",
    "answer @last",
    "explain checked",
    "doctor",
    "init more",
    "list -C empty",
    "check nobody",
  ];
  let seen = 0;
  for (const line of lines) {
    const words = line.split(" ").filter((word) => word !== "");
    const { stdout, stderr } = await world.lockstep(words, { env: { npm_lifecycle_event: "npx" } });
    assert.doesNotMatch(stdout + stderr, NAKED, line);
    seen += (stdout + stderr).split("npx lockstep").length - 1;
  }
  assert.ok(seen > lines.length, `only ${seen} commands were printed`);
  const document = await world.lockstep(["show", "nobody", "--json"], {
    env: { npm_lifecycle_event: "npx" },
  });
  assert.match(document.stdout, /`lockstep runs` lists/);

  // Without npx, but from the project's own folder of programs.
  mkdirSync(join(world.root, "node_modules/.bin"), { recursive: true });
  const local = join(world.root, "node_modules/.bin/lockstep");
  symlinkSync(MAIN, local);
  const shown = await start(process.execPath, [local, "show", "nobody"], world.root, { env: world.env });
  assert.match(shown.stderr, /`npx lockstep runs` lists/);
});
