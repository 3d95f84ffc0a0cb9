/** What a person does on the first day: init, check, run, look, break off, go on. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld, ESCAPE, lastLine, onlyDocument, replies, script, writeAgent } from "./world.ts";

test("init writes an agent that passes check and runs as it says", async () => {
  using world = createWorld();
  const made = await world.lockstep(["init", "notes"]);
  assert.equal(made.code, 0, made.stderr);
  const commands = made.stdout
    .split("\n")
    .flatMap((line) => (line.startsWith("  lockstep ") ? [line.trim()] : []));
  assert.deepEqual(commands, [
    "lockstep check notes",
    "lockstep test notes",
    'lockstep run notes --topic "tides" --script .agent/notes/script.yaml',
  ]);
  assert.ok(existsSync(join(world.root, ".agent/notes/script.yaml")));

  const again = await world.lockstep(["init", "notes", "--json"]);
  assert.equal(again.code, 2);
  assert.match(String(onlyDocument(again).reason), /is there already/);

  const checked = await world.lockstep(["check", "notes", "--strict"]);
  assert.deepEqual([checked.code, checked.stdout], [0, "✓ notes: no problems (3 steps)\n"]);

  const tested = await world.lockstep(["test", "notes"]);
  assert.equal(tested.code, 0, tested.stdout);
  assert.match(tested.stdout, /2 tests, all passed/);

  const ran = await world.lockstep([
    "run",
    "notes",
    "--topic",
    "tides",
    "--script",
    ".agent/notes/script.yaml",
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  const note = "Two bulges, one turning earth, two tides a day.";
  assert.equal(ran.stdout, `{"outcome":"success","result":{"note":"${note}"}}\n`);
  assert.match(ran.stderr, new RegExp(`^  result    ${note}$`, "m"));
  assert.match(ran.stderr, /^ {2}initial\.note #1 → next → continuation\.note$/m);
  assert.match(ran.stderr, /✓ completed/);
  assert.ok(!ran.stderr.includes(ESCAPE));

  const listed = onlyDocument(await world.lockstep(["runs", "--json"]));
  const [run] = listed.runs as readonly {
    readonly run: string;
    readonly state: string;
    readonly events: number;
  }[];
  assert.equal(listed.v, 1);
  assert.deepEqual([run?.state, run?.events], ["completed", 5]);

  const shown = onlyDocument(await world.lockstep(["show", run!.run.slice(0, 6), "--json"]));
  assert.deepEqual([shown.run, shown.outcome, shown.iterations], [run!.run, "completed", 3]);

  const over = await world.lockstep(["resume", "@last"]);
  assert.equal(over.code, 0);
  assert.match(over.stderr, /^Run \w{10} had already ended \(completed\): nothing was resumed/);
  assert.equal(over.stderr.split("nothing was resumed").length, 2);
});

test("a run that stopped goes on where it stopped, and what was shown can be shown again", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("short.json", script(replies.initial()));
  world.write("more.json", script(replies.continuation(), replies.closure(), replies.closure()));
  const stopped = await world.lockstep(["run", "notes", "--topic", "t", "--script", "short.json"]);
  assert.equal(stopped.code, 1);
  assert.equal(lastLine(stopped.stdout), '{"outcome":"failed"}');
  const [, id = ""] = /next +lockstep resume (\w+) --script MORE/.exec(stopped.stderr) ?? [];
  assert.notEqual(id, "", stopped.stderr);

  const [table, failed] = await Promise.all([world.lockstep(["runs"]), world.lockstep(["show", "@failed"])]);
  assert.match(
    table.stdout,
    new RegExp(
      `^RUN +AGENT +STATE +STEP +STARTED +AGE +.*\n${id} +notes +failed SCRIPT_EXHAUSTED +continuation.note +[-\\d]+ [:\\d]+Z +\\d+s +- +\\d+ +\\d+ kB +topic=t\n$`,
    ),
  );
  assert.equal(failed.code, 0);
  assert.match(failed.stdout, /✗ failed SCRIPT_EXHAUSTED/);
  assert.equal(failed.stderr, "");

  const resumed = await world.lockstep(["resume", id, "--script", "more.json", "--events"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  const events = resumed.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: { type: string } });
  assert.deepEqual(
    events.map(({ event }) => event.type),
    ["run.resumed", "step.answered", "step.answered", "run.ended"],
  );
  assert.match(resumed.stderr, /warnings +script: reply 3/);

  const journal = await world.lockstep(["show", id, "--events"]);
  assert.equal(journal.stdout.trimEnd().split("\n").length, 8);
});

test("--events streams the journal and no other line; --quiet leaves stderr empty", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const ran = await world.lockstep([
    "run",
    "-q",
    "notes",
    "--topic=t",
    "--events",
    "--script=.agent/notes/script.yaml",
  ]);
  assert.deepEqual([ran.code, ran.stderr], [0, ""]);
  const seqs = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { seq: number }).seq);
  assert.deepEqual(seqs, [1, 2, 3, 4, 5]);
});

test("reading leaves no trace", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const reads = [
    ["runs"],
    ["list"],
    ["check"],
    ["doctor"],
    ["resume", "@last"],
    ["run", "notes", "--topic", "t"],
  ];
  const codes = await Promise.all(reads.map(async (args) => (await world.lockstep(args)).code));
  assert.deepEqual(codes, [0, 0, 0, 0, 2, 3]);
  assert.equal(existsSync(join(world.root, ".lockstep")), false);
});

test("agents are listed, examined, and found from a folder below", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write(".agent/broken/agent.json", "{");
  world.write("sub/folder/x", "");
  const [list, doctor, listJson] = await Promise.all([
    world.lockstep(["list"]),
    world.lockstep(["doctor", "--json"]),
    world.lockstep(["-C", "sub/folder", "list", "--json"]),
  ]);
  assert.match(list.stdout, /^broken +cannot run/m);
  assert.match(list.stdout, /^notes +ok +--topic +Writes a short note/m);
  const { ok, checks } = onlyDocument(doctor) as {
    readonly ok: boolean;
    readonly checks: readonly {
      readonly name: string;
      readonly status: string;
      readonly fix: string | null;
    }[];
  };
  assert.deepEqual([doctor.code, ok], [0, true]);
  const statuses = Object.fromEntries(checks.map((check) => [check.name, check.status]));
  assert.equal(statuses["agent notes"], "ok");
  assert.equal(statuses["agent broken"], "warn");
  assert.equal(statuses["state folder"], "ok");
  assert.match(statuses["ripgrep"] ?? "", /^(?:ok|warn)$/);
  assert.equal(statuses["backend scripted"], "ok");
  assert.deepEqual(
    (onlyDocument(listJson).agents as readonly { readonly agent: string }[]).map(({ agent }) => agent),
    ["broken", "notes"],
  );
});

test("stdin is the input of a flow that reads it, and nothing else reads it", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  writeAgent(world, "reader");
  world.write(
    ".agent/reader/prompts/steps/initial/note/f_default.md",
    "Topic {uv-topic}. Given: {input_text}\n",
  );
  world.write(
    "script.json",
    script({ ...replies.initial(), saw: ["Given: piped in"] }, replies.continuation(), replies.closure()),
  );
  const base = ["--topic", "t", "--script", "script.json", "-q"];
  const [piped, asText, asked, unread] = await Promise.all([
    world.lockstep(["run", "reader", ...base], { input: "piped in" }),
    world.lockstep(["run", "reader", ...base, "--input", "piped in"]),
    world.lockstep(["run", "reader", ...base, "--input", "-"], { input: "piped in" }),
    world.lockstep(["run", "notes", ...base], { input: "piped in" }),
  ]);
  assert.deepEqual([piped.code, asText.code, asked.code], [0, 0, 0], piped.stderr);
  assert.equal(unread.code, 1);
  assert.match(unread.stderr, /SCRIPT_MISMATCH/);
});
