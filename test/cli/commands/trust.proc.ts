/** `lockstep trust`: what an agent needs trust for, what is trusted, and taking it back. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld, onlyDocument, replies, script, writeAgent, writeCheckedAgent } from "../world.ts";

const RUN = ["run", "notes", "--topic", "t", "--script", "all.json", "--json"];
const all = script(replies.initial(), replies.continuation(), replies.closure());

test("show, trust, list, change and revoke", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "touch ran");
  world.write("all.json", all);
  const shown = await world.lockstep(["trust", "show", "notes"]);
  assert.equal(shown.code, 3, shown.stderr);
  const digest = /^digest ([0-9a-f]{64})$/m.exec(shown.stdout)![1]!;
  assert.match(shown.stdout, /notes in .*: not trusted\n {2}\$ touch ran\n/);
  assert.match(shown.stdout, new RegExp(`To trust it: lockstep trust add notes --trust ${digest}$`, "m"));
  assert.equal((await world.lockstep(RUN)).code, 3);
  assert.equal(existsSync(join(world.root, "ran")), false);

  // Of many at once, each is recorded.
  const ran = await Promise.all([1, 2, 3].map(async () => await world.lockstep([...RUN, "--trust", digest])));
  for (const one of ran) assert.equal(one.code, 0, one.stderr);
  assert.match(ran[0]!.stderr + ran[1]!.stderr + ran[2]!.stderr, /lockstep trust revoke notes/);
  assert.equal((await world.lockstep(RUN)).code, 0);
  const state = onlyDocument(await world.lockstep(["trust", "show", "notes", "--json"]));
  assert.deepEqual([state.state, state.trusted, state.digest], ["trusted", true, digest]);

  const list = onlyDocument(await world.lockstep(["trust", "list", "--json"]));
  const entries = list.trusted as readonly { [key: string]: unknown }[];
  assert.deepEqual(
    entries.map(({ agent, digest: of, commands, counts }) => [agent, of, commands, counts]),
    [["notes", digest, ["$ touch ran"], true]],
  );
  assert.match((await world.lockstep(["trust", "list"])).stdout, new RegExp(`notes .*1 line +${digest}`));

  writeCheckedAgent(world, "notes", "touch other");
  const changed = await world.lockstep(["trust", "show", "notes"]);
  assert.match(changed.stdout, /- \$ touch ran\n\+ \$ touch other\n/);
  assert.equal(changed.code, 3);
  writeCheckedAgent(world, "notes", "touch ran");

  for (const word of ["notes", digest.slice(0, 12), world.root]) {
    assert.equal((await world.lockstep([...RUN, "--trust", digest])).code, 0);
    const revoked = await world.lockstep(["trust", "revoke", word]);
    assert.equal(revoked.code, 0, revoked.stderr);
    assert.match(revoked.stdout, /^Revoked: notes in /);
    assert.equal((await world.lockstep(RUN)).code, 3, word);
  }
  assert.equal((await world.lockstep(["trust", "revoke", "notes"])).code, 2);
});

test("add takes the digest that show prints, records it, and runs nothing", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "touch ran");
  world.write("all.json", all);
  const refused = onlyDocument(await world.lockstep(["trust", "add", "notes", "--json"]));
  assert.deepEqual([refused.code, refused.exitCode], ["NOT_TRUSTED", 3]);
  const digest = /--trust ([0-9a-f]{64})/.exec(String(refused.reason))![1]!;
  const wrong = await world.lockstep(["trust", "add", "notes", "--trust", "a".repeat(64)]);
  assert.deepEqual([wrong.code, /is not the digest of these files/.test(wrong.stderr)], [3, true]);
  assert.equal((await world.lockstep(RUN)).code, 3);

  const added = await world.lockstep(["trust", "add", "notes", "--trust", digest]);
  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /^notes in .*: trusted since .*\n {2}\$ touch ran\n/);
  assert.match(added.stderr, /To undo this: lockstep trust revoke notes/);
  assert.equal(existsSync(join(world.root, "ran")), false);
  const again = onlyDocument(await world.lockstep(["trust", "add", "notes", "--json"]));
  assert.deepEqual([again.state, again.trusted, again.digest], ["trusted", true, digest]);
  assert.equal((await world.lockstep(RUN)).code, 0);

  world.writeHome("file", "");
  const env = { XDG_CONFIG_HOME: join(world.env.HOME!, "file") };
  const unrecorded = await world.lockstep(["trust", "add", "notes", "--trust", digest], { env });
  assert.equal(unrecorded.code, 3, unrecorded.stdout);
});

test("revoke --all also removes what cannot be read", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "true");
  world.writeHome(`.config/lockstep/trust/${"a".repeat(64)}.json`, "{");
  const list = await world.lockstep(["trust", "list"]);
  assert.equal(list.code, 3);
  assert.match(list.stderr, /a{64}\.json: .*Remove that file/);
  assert.equal((await world.lockstep(["trust", "revoke", "--all"])).code, 0);
  assert.equal((await world.lockstep(["trust", "list"])).code, 0);
});

test("what is not understood is a usage error, and an agent that could do nothing needs no trust", async () => {
  using world = createWorld();
  writeAgent(world, "notes", {
    agent: (agent) => {
      (agent.runner as { boundaries: object }).boundaries = {
        allowedTools: ["Read"],
        permissionMode: "plan",
      };
    },
  });
  const digest = "a".repeat(64);
  for (const words of [
    ["shwo"],
    ["show"],
    ["add"],
    ["revoke"],
    ["revoke", "x", "--all"],
    ["list", "--all"],
    ["show", "notes", "--trust", digest],
  ])
    assert.equal((await world.lockstep(["trust", ...words])).code, 2, words.join(" "));
  for (const verb of ["show", "add"]) {
    const free = await world.lockstep(["trust", verb, "notes"]);
    assert.deepEqual([free.code, /needs no trust/.test(free.stdout)], [0, true], free.stdout);
  }
});

test("a clone that needs trust and brings a record says both at once, with the flags that answer both", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "true");
  world.write("all.json", all);
  world.write(".lockstep/runs.db", "planted");
  const refused = onlyDocument(await world.lockstep(RUN));
  assert.deepEqual([refused.code, refused.exitCode], ["NOT_TRUSTED", 3]);
  const reason = String(refused.reason);
  assert.match(reason, /state folder .*\.lockstep needs your trust too: it was not made by you/);
  const flags = /pass (--trust [0-9a-f]{64} --trust-journal),/.exec(reason)![1]!.split(" ");
  rmSync(join(world.root, ".lockstep/runs.db"));
  world.write(".lockstep/answers/x", "planted");
  const ran = await world.lockstep([...RUN, ...flags]);
  assert.equal(ran.code, 0, ran.stderr);
  // Nothing of it is said where there is nothing to say.
  writeCheckedAgent(world, "notes", "true # changed");
  assert.doesNotMatch(String(onlyDocument(await world.lockstep(RUN)).reason), /trust-journal/);
});

test("where settings cannot be written, the first run warns, and nothing untrue is said afterwards", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("all.json", all);
  world.writeHome("file", "");
  const env = { XDG_CONFIG_HOME: join(world.env.HOME!, "file") };
  const first = await world.lockstep(RUN, { env });
  assert.equal(first.code, 0, first.stderr);
  assert.match(
    first.stderr,
    /The next command will not know that .*\.lockstep is yours: .*file cannot be written/,
  );
  const next = onlyDocument(await world.lockstep(RUN, { env }));
  assert.equal(next.code, "STATE_FOREIGN");
  assert.match(String(next.reason), /file cannot be written \(E\w+\), so Lockstep cannot know/);
  const looked = onlyDocument(await world.lockstep(["doctor", "--json"], { env }));
  const checks = looked.checks as readonly { name: string; status: string; detail: string }[];
  const found = checks.find(({ name }) => name === "state folder")!;
  assert.deepEqual([found.status, /is read-only: .*cannot be written/.test(found.detail)], ["warn", true]);
  const fine = onlyDocument(await world.lockstep(RUN));
  assert.equal(fine.code, "STATE_FOREIGN", "it is not known to anybody");
  assert.match(String(fine.reason), /you did not make it on this machine/);
});

test("a HOME that is not a full path makes no folder in the project", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "true");
  world.write("all.json", all);
  const before = readdirSync(world.root).toSorted();
  const env = { HOME: "relative", LOCKSTEP_TRUST: "all" };
  for (const words of [RUN, ["doctor"], ["probe", "notes"], ["trust", "list"], ["models"]])
    await world.lockstep(words, { env });
  assert.deepEqual(readdirSync(world.root).toSorted(), [".lockstep", ...before].toSorted());
});
