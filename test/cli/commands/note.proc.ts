/** `lockstep note`: what a person wrote on a run is shown with it, and the run stays what it was. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, replies, script, writeAgent, type World } from "../world.ts";

const shown = async (world: World) =>
  JSON.parse((await world.lockstep(["show", "@last", "--json"])).stdout) as {
    readonly run: string;
    readonly outcome: string;
    readonly durationMs: number;
    readonly path: readonly object[];
  };

test("a note is printed by show, why and logs, hidden by --redact, and changes nothing else", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("part.json", script(replies.initial()));
  world.write("rest.json", script(replies.continuation(), replies.closure()));
  assert.equal((await world.lockstep(["run", "notes", "--topic", "a", "--script", "part.json"])).code, 1);
  const before = await shown(world);

  // The second part would clear the screen of a reader.
  const noted = await world.lockstep(["note", "@last", "Ask Ada\u001b[2J about it", "--json"]);
  assert.equal(noted.code, 0, noted.stderr);
  assert.equal((JSON.parse(noted.stdout) as { readonly run: string }).run, before.run);
  assert.deepEqual(await shown(world), before);

  const resumed = await world.lockstep(["resume", "@last", "--script", "rest.json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  const plain = await world.lockstep(["note", "@last", "Released as 1.4.0"]);
  assert.match(plain.stdout, new RegExp(`^Noted on run ${before.run}; see: lockstep show ${before.run}\n$`));

  for (const args of [["show"], ["logs"], ["why", "--all"]]) {
    const { code, stdout } = await world.lockstep([args[0]!, "@last", ...args.slice(1)]);
    assert.equal(code, 0);
    assert.match(stdout, /Ask Ada\\x1b\[2J about it[^]*Released as 1\.4\.0/, args[0]);
    assert.ok(!stdout.includes("\u001b[2J"));
  }
  assert.equal((await world.lockstep(["replay", "@last"])).code, 0);
  const { stdout: exported } = await world.lockstep(["export", "@last", "--redact"]);
  assert.match(exported, /"run\.noted",\s+"text": "[Xx]{8} xx 0\.0\.0"/);
});

test("a note that cannot be written is refused, with the reason", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("all.json", script(replies.initial(), replies.continuation(), replies.closure()));
  assert.match((await world.lockstep(["note", "@last", "x"])).stderr, /There is no run "@last"/);
  assert.equal((await world.lockstep(["run", "notes", "--topic", "a", "--script", "all.json"])).code, 0);
  const cases: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
    [["note", "@last"], 2, /note needs RUN TEXT/],
    [["note", "@last", " "], 2, /1 to 10000 characters/],
    [["note", "@last", "x".repeat(10_001)], 2, /1 to 10000 characters, not 10001/],
    [["note", "nowhere", "x"], 2, /nowhere/],
  ];
  for (const [args, code, says] of cases) {
    const ran = await world.lockstep(args);
    assert.equal(ran.code, code, ran.stderr);
    assert.match(ran.stderr, says);
  }
});
