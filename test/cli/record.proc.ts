/** A record that is harmed, as the user meets it: checked, rescued, put in place, and used again; and what a killed prune left. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { createWorld, replies, script, writeAgent, type World } from "./world.ts";

const ALL = script(replies.initial(), replies.continuation(), replies.closure());

test("a damaged record is checked, rescued and put in place", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("all.json", ALL);
  world.write("part.json", script(replies.initial()));
  await run(world, "all.json", "a");
  await run(world, "part.json", "b", 1);
  const file = join(world.root, ".lockstep", "runs.db");
  await run(world, "all.json", "c");
  const [done = "", open = "", lost = ""] = ids(file);
  const sound = await world.lockstep(["doctor", "--journal", "--json"]);
  assert.deepEqual([sound.code, (JSON.parse(sound.stdout) as { ok: boolean }).ok], [0, true], sound.stdout);

  const batch = "batch-0123456789";
  const item = (name: string, id: string) => ({ name, args: {}, run: id });
  const plan = { v: 1, batch, agent: "notes", concurrency: 1, left: 0, folder: "", ways: { args: {} } };
  const items = [item("#1", done), item("#2", "0".repeat(10)), item("#3", lost)];
  mkdirSync(join(world.root, ".lockstep/batches"));
  world.write(`.lockstep/batches/${batch}.json`, JSON.stringify({ ...plan, items }));

  // The pages of the schema and of the index, and an entry of the first run.
  using db = new DatabaseSync(file);
  db.exec("UPDATE event SET body = replace(body, '\"at\"', '\"aT\"') WHERE run = 1 AND seq = 3");
  db.exec("UPDATE event SET body = replace(body, '\"at\"', '\"aT\"') WHERE run = 3 AND seq = 1");
  db.close();
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, 0, 4096));
  const ill = await world.lockstep(["doctor", "--journal"]);
  assert.equal(ill.code, 3);
  assert.match(ill.stdout, /fail +database .*fix: restore it from a copy, or: lockstep salvage/);
  assert.match((await world.lockstep(["runs"])).stderr, /lockstep salvage/);
  assert.deepEqual(readFileSync(file), bytes);

  const salvaged = await world.lockstep(["salvage"]);
  assert.equal(salvaged.code, 1, salvaged.stderr);
  assert.match(salvaged.stdout, new RegExp(`${done} +notes +partial +2 of \\d+ entries +entry 3 is lost`));
  assert.match(salvaged.stdout, new RegExp(`${open} +notes +whole +\\d+ entries`));
  assert.deepEqual(readFileSync(file), bytes);
  const commands = salvaged.stderr.match(/^ {2}mv .*$/gm) ?? [];
  assert.equal(commands.length, 2, salvaged.stderr);
  const again = await world.lockstep(["salvage", "--json"]);
  assert.match(again.stdout + again.stderr, /exists and is not empty/);
  for (const command of commands) execFileSync("sh", ["-c", command], { cwd: world.root });
  assert.deepEqual(JSON.parse(readFileSync(join(world.root, `.lockstep/batches/${batch}.json`), "utf8")), {
    ...plan,
    items: items.slice(0, 2),
  });

  // It is the user's own, without --trust-journal.
  const listed = await world.lockstep(["runs"]);
  assert.match(listed.stdout, new RegExp(`${done} +notes +damaged`));
  world.write("rest.json", script(replies.continuation(), replies.closure()));
  const resumed = await world.lockstep(["resume", open, "--script", "rest.json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  const refused = await world.lockstep(["resume", done, "--script", "rest.json"]);
  assert.match(refused.stderr, new RegExp(`entry 3 of run ${done} is missing`));
  assert.equal((await world.lockstep(["runs", "--prune", done, "--yes"])).code, 0);
  assert.equal((await world.lockstep(["doctor", "--journal"])).code, 0);

  // Of a record that is whole it is only a copy; no folder is moved into another.
  const whole = await world.lockstep(["salvage", "--json"]);
  const copied = JSON.parse(whole.stdout) as { damaged: boolean; place: string[] };
  assert.deepEqual(
    [whole.code, copied.damaged, copied.place[0]],
    [0, false, "mv .lockstep .lockstep-damaged-2"],
    whole.stderr,
  );
  using harmed = new DatabaseSync(join(world.root, ".lockstep-salvaged", "runs.db"));
  harmed.exec("UPDATE run SET agent = 'other'");
  harmed.close();
  for (const line of [["show"], ["effects"], ["why"]]) {
    const ran = await world.lockstep([...line, open, "--state", ".lockstep-salvaged"]);
    assert.equal(ran.code, 3, ran.stderr);
    assert.match(ran.stdout + ran.stderr, /lockstep salvage --state \.lockstep-salvaged/, line[0]);
  }
  // Where the user stands elsewhere, paths are absolute.
  mkdirSync(join(world.root, "sub/.agent"), { recursive: true });
  cpSync(join(world.root, ".lockstep-salvaged"), join(world.root, "sub/.lockstep"), { recursive: true });
  const away = await world.lockstep(["salvage", "--json", "--cwd", "sub"]);
  const state = realpathSync(join(world.root, "sub/.lockstep"));
  assert.deepEqual((JSON.parse(away.stdout) as { place: string[] }).place, [
    `mv ${state} ${state}-damaged`,
    `mv ${state}-salvaged ${state}`,
  ]);
});

test("what a killed prune left is removed by the next one, also if it removes no run", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("all.json", ALL);
  await run(world, "all.json", "a");
  const state = join(world.root, ".lockstep");
  const [kept = ""] = ids(join(state, "runs.db"));
  const digest = "0".repeat(64);
  const left = [
    join(state, "runs", "0123456789", "claude", "x.jsonl"),
    join(state, "answers", "0123456789", "q.json"),
    join(state, "control", "0123456789.json"),
    join(state, "artifacts", "00", digest),
    join(state, "artifacts", "00", `${digest}.some-owner`),
  ];
  const stays = [
    join(state, "runs", kept, "claude", "x.jsonl"),
    join(state, "answers", "my-notes", "q.json"),
    join(state, "runs", "notes", "q.json"),
    join(state, "artifacts", "notes.txt"),
  ];
  for (const path of [...left, ...stays]) {
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "x");
  }
  const looked = await world.lockstep(["doctor", "--journal"]);
  assert.equal(looked.code, 0, looked.stdout);
  assert.match(looked.stdout, /warn +artifacts +2 files that no entry needs/);
  assert.match(
    looked.stdout,
    /warn +files of runs +those of 1 removed run are left +fix: lockstep runs --prune/,
  );
  const dry = await world.lockstep(["runs", "--prune", "--dry-run", "--json"]);
  assert.equal((JSON.parse(dry.stdout) as { leftovers: number }).leftovers, 1);
  assert.ok(left.every(existsSync));
  // The files of a run whose row is damaged would look the same.
  using db = new DatabaseSync(join(state, "runs.db"));
  db.exec("UPDATE run SET id = 'zz!' || substr(id, 4)");
  assert.equal((await world.lockstep(["runs", "--prune"])).code, 0);
  assert.ok([...left.slice(0, 3), ...stays].every(existsSync));
  db.prepare("UPDATE run SET id = ?").run(kept);
  db.close();
  const pruned = await world.lockstep(["runs", "--prune"]);
  assert.equal(pruned.code, 0, pruned.stderr);
  assert.match(pruned.stderr, /Nothing to remove.*files that 1 removed run had left/s);
  assert.deepEqual([...left, ...stays].filter(existsSync), stays);
});

const EARLIER = fileURLToPath(new URL("../journal/recorded/", import.meta.url));

for (const name of readdirSync(EARLIER))
  test(`a run that an earlier version recorded goes on, or is refused in words: ${name}`, async () => {
    using world = createWorld();
    const state = join(world.root, ".lockstep");
    mkdirSync(state);
    const file = join(state, "runs.db");
    writeFileSync(file, gunzipSync(readFileSync(join(EARLIER, name))));
    using db = new DatabaseSync(file);
    const { id } = db.prepare("SELECT id FROM run WHERE agent = 'fixer' ORDER BY key").get() as {
      id: string;
    };
    // Its check is pending.
    db.exec(`DELETE FROM event WHERE run = (SELECT key FROM run WHERE id = '${id}') AND seq > 8`);
    db.prepare("UPDATE event SET body = replace(body, '/project', ?)").run(world.root);
    db.close();
    const said = async (line: readonly string[], env: NodeJS.ProcessEnv = {}) => {
      const ran = await world.lockstep([...line], { env });
      assert.doesNotMatch(ran.stdout + ran.stderr, /INTERNAL|bug in Lockstep/, line.join(" "));
      return ran;
    };
    const untrusted = await said(["resume", id, "--trust-journal"]);
    assert.equal(untrusted.code, 3, untrusted.stderr);
    assert.match(untrusted.stderr, /needs your trust first.*node --test/s);
    if (name !== "checks-without-env.db.gz") return;
    for (const line of ["show", "why", "replay", "logs", "effects", "export"])
      assert.equal((await said([line, id])).code, 0, line);
    assert.equal((await said(["runs"])).code, 0);
    const resumed = await said(["resume", id, "--json"], { LOCKSTEP_TRUST: "all" });
    const { checks } = JSON.parse(resumed.stdout) as { checks: unknown };
    assert.notDeepEqual(checks, [], resumed.stdout);
  });

async function run(world: World, replying: string, topic: string, code = 0): Promise<void> {
  const ran = await world.lockstep(["run", "notes", "--topic", topic, "--script", replying]);
  assert.equal(ran.code, code, ran.stderr);
}

function ids(file: string): readonly string[] {
  using db = new DatabaseSync(file, { readOnly: true });
  return db
    .prepare("SELECT id FROM run ORDER BY key")
    .all()
    .map(({ id }) => String(id));
}
