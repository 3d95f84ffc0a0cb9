/** why through the real command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld, ESCAPE, onlyDocument, replies, script, writeCheckedAgent } from "../world.ts";

test("why tells of the last decision, of a step, of a visit, of all, in words and as one document", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "false", 2);
  const again = [replies.continuation(), replies.closure()];
  world.write("replies.json", script(replies.initial(), ...again, ...again));
  const env = { LOCKSTEP_TRUST: "all" };
  const ran = await world.lockstep(["run", "notes", "--topic", "tides", "--script", "replies.json"], { env });
  assert.equal(ran.code, 6, ran.stderr);
  assert.match(ran.stderr, /next +lockstep why \w+/);

  const last = await world.lockstep(["why", "@last"]);
  assert.equal(last.code, 0, last.stderr);
  assert.ok(!last.stdout.includes(ESCAPE));
  assert.match(last.stdout, /^notes · run \w+ · closure\.note #2 · .* · closure · iteration 5\n/);
  assert.match(last.stdout, /decided +closing ✗ proof \(unproven\) → end\n/);
  assert.match(last.stdout, /proof +✗ unproven +attempt 2\n/);
  assert.match(last.stdout, /overturned +failure 2 of 2; the run ends\n/);
  assert.match(last.stdout, /outcome +failed AGENT_VALIDATION_ABORT\n/);

  const step = await world.lockstep(["why", "@last", "continuation.note"]);
  assert.match(step.stdout, /continuation\.note #2/);
  assert.match(step.stdout, /because +check proof of closure\.note failed\n/);
  assert.match(step.stdout, /prompt +\.agent\/notes\/prompts\/steps\/retry\/note\/f_failed\.md\n/);

  const visit = onlyDocument(await world.lockstep(["why", "@last", "continuation.note@1", "--json"]));
  assert.deepEqual([visit.v, visit.step, visit.visit, visit.state], [1, "continuation.note", 1, "settled"]);

  const all = onlyDocument(await world.lockstep(["why", "@last", "--all", "--json"]));
  assert.equal((all.visits as readonly unknown[]).length, 5);
  const told = await world.lockstep(["why", "@last", "--all", "--full"]);
  assert.equal(told.stdout.match(/ · iteration \d/g)?.length, 5);
});

test("why refuses what is not there, with what is", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "true");
  const none = await world.lockstep(["why", "@last"]);
  assert.equal(none.code, 2);
  world.write("replies.json", script(replies.initial("abort")));
  const env = { LOCKSTEP_TRUST: "all" };
  await world.lockstep(["run", "notes", "--topic", "tides", "--script", "replies.json"], { env });

  const refused: readonly [words: readonly string[], reason: RegExp][] = [
    [["initial.nte"], /Did you mean "initial\.note"\? Visited were initial\.note\./],
    [["initial.note@2"], /was visited once; there is no visit 2/],
    [["closure.note"], /never came to step "closure\.note"/],
    [["initial.note", "--all"], /--all shows every visit/],
  ];
  for (const [words, reason] of refused) {
    const ran = await world.lockstep(["why", "@last", ...words]);
    assert.deepEqual([ran.code, ran.stdout], [2, ""], words.join(" "));
    assert.match(ran.stderr, reason);
  }
  const document = onlyDocument(await world.lockstep(["why", "@last", "nowhere", "--json"]));
  assert.deepEqual([document.success, document.code, document.exitCode], [false, "STEP_UNKNOWN", 2]);
});
