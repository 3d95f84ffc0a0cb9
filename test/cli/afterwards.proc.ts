/** replay, fork, diff, whatif, export, import, prune and following, through the real command. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { canMount, mounted } from "../mounted.ts";
import { needs } from "../needs.ts";
import {
  createWorld,
  lastLine,
  MAIN,
  onlyDocument,
  replies,
  script,
  start,
  writeAgent,
  writeCheckedAgent,
  type World,
} from "./world.ts";
import { until } from "../until.ts";

const ALL = [replies.initial(), replies.continuation(), replies.closure()];

/** A project with one finished run of the agent `notes`. */
async function recorded(world: World): Promise<string> {
  writeAgent(world, "notes");
  world.write("replies.json", script(...ALL));
  const ran = await world.lockstep([
    "run",
    "notes",
    "--topic",
    "tides",
    "--script",
    "replies.json",
    "--json",
  ]);
  assert.equal(ran.code, 0, ran.stderr);
  return onlyDocument(ran).run as string;
}

const idsIn = async (world: World): Promise<readonly string[]> => {
  const { runs } = onlyDocument(await world.lockstep(["runs", "--json"])) as { runs: { run: string }[] };
  return runs.map(({ run }) => run);
};

test("replay finds nothing in a true record, and the first difference in one that was changed", async () => {
  using world = createWorld();
  const id = await recorded(world);
  const same = await world.lockstep(["replay", "@last"]);
  assert.deepEqual([same.code, same.stdout], [0, `✓ same  ${id} · notes · 5 events\n`]);
  assert.match(same.stderr, /5 events replayed/);
  const { ok, events, eventsPerSecond } = onlyDocument(await world.lockstep(["replay", "--all", "--json"]));
  assert.deepEqual([ok, events, Number(eventsPerSecond) > 0], [true, 5, true]);

  {
    using db = new DatabaseSync(join(world.root, ".lockstep/runs.db"));
    db.exec(
      `UPDATE event SET sum = NULL, body = replace(body, '"to":"closure.note"', '"to":"initial.note"') WHERE seq = 3`,
    );
  }
  const differs = await world.lockstep(["replay", id]);
  assert.equal(differs.code, 1);
  assert.match(differs.stdout, /✗ differs {2}\w+ · notes · entry 3 \(step\.answered\), decision\n/);
  assert.match(differs.stdout, /recorded +\{.*"to":"initial\.note"/);
  assert.match(differs.stdout, /derived +\{.*"to":"closure\.note"/);
  const told = await world.lockstep(["replay", id, "--json"]);
  assert.equal(told.code, 1);
  const { runs } = onlyDocument(told) as { runs: { difference: { seq: number } }[] };
  assert.equal(runs[0]?.difference.seq, 3);
  assert.equal((await world.lockstep(["replay"])).code, 2);
  assert.equal((await world.lockstep(["replay", "nobody"])).code, 2);
});

test("fork goes on from a visit with what was edited, and diff tells where the two part", async () => {
  using world = createWorld();
  const id = await recorded(world);
  world.write("answer.json", JSON.stringify({ ...replies.closure("repeat", "again").output, note: "other" }));
  world.write("handoff.json", JSON.stringify({ "continuation.note": { text: "edited" } }));
  world.write("prompt.md", "Close it well.");
  world.write("more.json", script({ ...replies.closure(), saw: ["Close it well."] }));
  const edits = [
    "output=answer.json",
    "handoff=handoff.json",
    "prompt=closure.note:prompt.md",
    "model=closure.note:haiku",
  ].flatMap((edit) => ["--edit", edit]);
  const forked = await world.lockstep([
    "fork",
    id,
    "--at",
    "closure.note@1",
    ...edits,
    "--script",
    "more.json",
  ]);
  assert.equal(forked.code, 0, forked.stderr);
  assert.match(lastLine(forked.stdout), /^\{"outcome":"success"[,}]/);
  assert.match(forked.stderr, new RegExp(`forked +from run ${id} after entry 3, with another output of`));

  const diff = await world.lockstep(["diff", id, "@last"]);
  assert.equal(diff.code, 0, diff.stderr);
  assert.match(diff.stdout, /^a {2}\w+ {2}notes {2}completed/);
  assert.match(diff.stdout, /first flow ~ closure\.note: prompt/);
  assert.match(diff.stdout, /answer closure\.note@1 \/note\n {2}a {2}n\n {2}b {2}other\n/);
  assert.match(
    diff.stdout,
    /path closure\.note@1\n {2}a {2}closing → end\n {2}b {2}repeat → closure\.note\n/,
  );
  const document = onlyDocument(await world.lockstep(["diff", id, "@last", "--json"]));
  assert.deepEqual([document.v, document.same], [1, false]);
  const none = await world.lockstep(["diff", id, id]);
  assert.match(none.stdout, /✓ no difference/);

  assert.equal((await world.lockstep(["replay", "--all"])).code, 0);
  const refused: readonly [words: readonly string[], why: RegExp][] = [
    [[id], /needs --at/],
    [[id, "--at", "closure.nte"], /Did you mean "closure\.note"/],
    [[id, "--at", "closure.note", "--edit", "outcome=answer.json"], /--edit knows output=FILE/],
    [[id, "--at", "closure.note", "--edit", "output=missing.json"], /missing\.json cannot be read/],
    [
      [id, "--at", "closure.note", "--edit", "model=haiku"],
      /--edit model=haiku does not name a step: write it as STEP:VALUE/,
    ],
    [[id, "--at", "closure.note", "--edit", "handoff=prompt.md"], /must contain a JSON object/],
    [
      [id, "--at", "closure.note", "--adopt", "--edit", "model=closure.note:x"],
      /edit the prompt or the model there/,
    ],
    [["nobody", "--at", "closure.note"], /no run "nobody"/],
  ];
  for (const [words, why] of refused) {
    const ran = await world.lockstep(["fork", ...words]);
    assert.deepEqual([ran.code, lastLine(ran.stdout)], [2, '{"outcome":"failed"}'], words.join(" "));
    assert.match(ran.stderr, why);
  }
  assert.equal((await idsIn(world)).length, 2);
});

test("a fork that is refused leaves no run behind, and takes the flags that resume takes", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "true");
  world.write("replies.json", `\uFEFF${script(...ALL)}`);
  const trusted = { env: { LOCKSTEP_TRUST: "all" } };
  const ran = await world.lockstep(["run", "notes", "--topic", "t", "--script", "replies.json"], trusted);
  assert.equal(ran.code, 0, ran.stderr);
  const before = await idsIn(world);
  const at = ["fork", "@last", "--at", "closure.note", "--script", "replies.json"];
  for (const [words, code] of [
    [[], "NOT_TRUSTED"],
    [["--adopt"], "NOT_TRUSTED"],
    [["--edit", "model=closure.note:haiku"], "NOT_TRUSTED"],
  ] as const) {
    const refused = onlyDocument(await world.lockstep([...at, ...words, "--json"]));
    assert.deepEqual([refused.code, refused.exitCode, refused.run], [code, 3, null], String(refused.reason));
    assert.deepEqual(await idsIn(world), before);
  }
  const limits = ["--max-turns", "5", "--max-tokens", "99", "--max-time", "5m", "--max", "soft=0.9"];
  const flags = [...limits, "--sandbox", "off", "--network", "none", "--log", "logs", "--wait"];
  const forked = await world.lockstep([...at, ...flags, "--expire", "1h", "--json"], trusted);
  assert.notEqual(onlyDocument(forked).code, "USAGE", forked.stderr);
  assert.equal((await idsIn(world)).length, 2);
  assert.equal(existsSync(join(world.root, "logs")), true);
});

test("resume --from and --invalidate go on as a new run; the old one stays", async () => {
  using world = createWorld();
  const id = await recorded(world);
  const from = onlyDocument(await world.lockstep(["resume", id, "--from", "closure.note", "--json"]));
  assert.deepEqual([from.outcome, from.forkedFrom], ["completed", { run: id, seq: 3 }]);
  const invalid = onlyDocument(
    await world.lockstep(["resume", id, "--invalidate", "initial.note", "--json"]),
  );
  assert.deepEqual([invalid.outcome, invalid.forkedFrom], ["completed", { run: id, seq: 1 }]);
  const both = await world.lockstep(["resume", id, "--from", "a", "--invalidate", "b"]);
  assert.equal(both.code, 2);
  const ids = await idsIn(world);
  assert.deepEqual([ids.length, ids.at(-1)], [3, id]);
});

test("whatif tells which runs an edit would lead another way", async () => {
  using world = createWorld();
  const id = await recorded(world);
  const same = await world.lockstep(["whatif", "--agent", "notes", "--check"]);
  assert.deepEqual([same.code, same.stdout], [0, "1 run: 1 the same, 0 another way, 0 cannot be followed\n"]);
  writeAgent(world, "notes", {
    agent: (agent) => {
      const runner = agent.runner as { verdict: { config: { maxIterations: number } } };
      runner.verdict.config.maxIterations = 2;
    },
  });
  const other = await world.lockstep(["whatif", "--agent", "notes"]);
  assert.equal(other.code, 0, other.stderr);
  assert.match(other.stdout, new RegExp(`^${id} {2}takes another way\n`));
  assert.match(
    other.stdout,
    /was +closure\.note@1 → closing → end\n +ends +completed → failed AGENT_MAX_ITERATIONS/,
  );
  assert.equal((await world.lockstep(["whatif", "--agent", "notes", id, "--check"])).code, 1);
  const document = onlyDocument(await world.lockstep(["whatif", "--agent", "notes", "--json"]));
  assert.deepEqual([document.v, document.changed], [1, 1]);
  assert.equal((await world.lockstep(["whatif"])).code, 2);
  assert.equal((await world.lockstep(["whatif", "--agent", "nobody"])).code, 2);
});

test("a run leaves as one file, and arrives elsewhere as a run that can be shown, replayed and forked", async () => {
  using world = createWorld();
  using elsewhere = createWorld();
  const id = await recorded(world);
  const exported = await world.lockstep(["export", id, "-o", "run.json"]);
  assert.deepEqual([exported.code, exported.stdout], [0, ""], exported.stderr);
  assert.match(exported.stderr, /Wrote run\.json: 5 entries/);
  const printed = await world.lockstep(["export", id]);
  assert.deepEqual(
    JSON.parse(printed.stdout),
    JSON.parse(readFileSync(join(world.root, "run.json"), "utf8")),
  );
  assert.equal((await world.lockstep(["export", id, "--json"])).code, 2);

  const text = readFileSync(join(world.root, "run.json"), "utf8");
  elsewhere.write("run.json", `\uFEFF${text}`);
  assert.equal((await elsewhere.lockstep(["replay", "run.json"])).code, 0);
  assert.ok(!existsSync(join(elsewhere.root, ".lockstep")), "replaying a file leaves no trace");
  const imported = await elsewhere.lockstep(["import", "run.json"]);
  assert.deepEqual([imported.code, imported.stdout], [0, `${id}\n`], imported.stderr);
  const taken = await elsewhere.lockstep(["import", "run.json", "--json"]);
  assert.deepEqual([taken.code, onlyDocument(taken).code], [2, "RUN_EXISTS"]);
  assert.equal((await elsewhere.lockstep(["import", "run.json", "--as", "theirs"])).code, 0);
  for (const ref of [id, "theirs"]) {
    assert.equal((await elsewhere.lockstep(["replay", ref])).code, 0);
    assert.match((await elsewhere.lockstep(["show", ref])).stdout, /completed {2}notes/);
  }
  const fork = ["fork", "theirs", "--at", "closure.note", "--json"];
  const refused = onlyDocument(await elsewhere.lockstep(fork));
  assert.deepEqual([refused.code, refused.exitCode], ["STATE_FOREIGN", 3]);
  const forked = onlyDocument(await elsewhere.lockstep([...fork, "--trust-journal"]));
  assert.equal(forked.outcome, "completed", "its script came along");

  const redacted = await world.lockstep(["export", id, "--redact", "-o", "redacted.json", "--json"]);
  assert.deepEqual(onlyDocument(redacted).kept, []);
  const secret = readFileSync(join(world.root, "redacted.json"), "utf8");
  assert.ok(text.includes("tides") && !secret.includes("tides"));
  assert.equal((await world.lockstep(["replay", "redacted.json"])).code, 0);
  assert.equal((await world.lockstep(["import", "replies.json"])).code, 2);
  assert.equal((await world.lockstep(["import", "missing.json"])).code, 2);
});

test("resume tells what changed in the files since, and adopts it when asked to", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("first.json", script(replies.initial()));
  const run = ["run", "notes", "--topic", "tides", "--script"];
  await world.lockstep([...run, "first.json"]);
  world.write(".agent/notes/prompts/steps/closure/note/f_default.md", "Close it well.");
  world.write("second.json", script(replies.continuation()));
  const told = await world.lockstep(["resume", "@last", "--script", "second.json"]);
  assert.match(
    told.stderr,
    /agent's files have changed since the run started; the run continues with its recorded flow; --adopt/,
  );
  assert.match(
    told.stderr,
    /~ closure\.note: prompt: \.agent\/notes\/prompts\/steps\/closure\/note\/f_default\.md, \d+ lines in/,
  );

  world.write("third.json", script({ ...replies.closure(), saw: ["Close it well."] }));
  const adopted = await world.lockstep(["resume", "@last", "--adopt", "--script", "third.json"]);
  assert.equal(adopted.code, 0, adopted.stderr);
  assert.equal((await world.lockstep(["replay", "@last"])).code, 0);
  assert.match((await world.lockstep(["why", "@last"])).stdout, /from here on the flow \w{12} holds/);

  await world.lockstep([...run, "first.json"]);
  writeAgent(world, "notes", {
    registry: (registry) => {
      const steps = registry.steps as { [id: string]: { transitions: { [intent: string]: unknown } } };
      steps["initial.other"] = steps["initial.note"]!;
      Object.assign(steps["initial.other"], { stepId: "initial.other" });
      delete steps["initial.note"];
      registry.entryStep = "initial.other";
    },
  });
  const refused = await world.lockstep(["resume", "@last", "--adopt", "--script", "second.json", "--json"]);
  assert.equal(refused.code, 2, refused.stderr);
});

test("prune removes what is old, asks before, and tells what it would do", async () => {
  using world = createWorld();
  const id = await recorded(world);
  const forked = onlyDocument(await world.lockstep(["fork", id, "--at", "closure.note", "--json"])).run;
  const listed = await world.lockstep(["runs"]);
  assert.match(
    listed.stdout,
    /^RUN +AGENT +STATE +STEP +STARTED +AGE +COST +EVENTS +SIZE +ARGUMENTS\n\w+ +notes +completed +closure\.note +\d{4}-\d\d-\d\d \d\d:\d\dZ +\d+s +- +\d+ +\d+ kB +topic=tides\n/,
  );
  const { runs } = onlyDocument(await world.lockstep(["runs", "--json"])) as { runs: object[] };
  assert.deepEqual(
    runs.map((row) => ("args" in row && "costUsd" in row ? [row.args, row.costUsd] : [])),
    [
      [{ topic: "tides" }, null],
      [{ topic: "tides" }, null],
    ],
  );
  for (const flag of ["--limit", "--max"]) {
    const one = await world.lockstep(["runs", flag, "1"]);
    assert.equal(one.stdout.trim().split("\n").length, 2, flag);
    const hint = /to list all: lockstep (runs --limit 2)$/m.exec(one.stderr)?.[1];
    assert.equal((await world.lockstep(hint!.split(" "))).stdout.trim().split("\n").length, 3, flag);
  }

  const nothing = await world.lockstep(["runs", "--prune", "--yes"]);
  assert.deepEqual([nothing.code, nothing.stderr], [0, "Nothing to remove.\n"]);
  const dry = onlyDocument(await world.lockstep(["runs", "--prune", "--keep", "1", "--dry-run", "--json"]));
  assert.deepEqual(
    (dry.runs as { run: string }[]).map(({ run }) => run),
    [id],
  );
  const unasked = await world.lockstep(["runs", "--prune", "--keep", "1"]);
  assert.equal(unasked.code, 2);
  assert.match(unasked.stderr, /pass --yes, or preview with --dry-run/);
  assert.equal((await idsIn(world)).length, 2);
  const pruned = await world.lockstep(["runs", "--prune", "--keep", "1", "--older-than", "0s", "--yes"]);
  assert.equal(pruned.code, 0, pruned.stderr);
  assert.match(pruned.stderr, /Removed 1 run, \d+ kB\./);
  assert.deepEqual(await idsIn(world), [forked]);
  assert.equal((await world.lockstep(["replay", "@last"])).code, 0, "a fork needs nothing of its original");
  for (const [words, says] of [
    [["--keep", "1"], /--keep goes with --prune/],
    [["--prune", "--keep", "-1"], /--keep needs a whole number of at least 0, not "-1"/],
    [["--prune", "--limit", "2"], /--limit cannot be used with --prune/],
    [["--prune", "--watch"], /--watch cannot be used with --prune/],
    [["tides"], /: lockstep show tides\nSee: lockstep runs --help$/m],
    [["--prune", "--older-than", "30"], /--older-than/],
    [["--limit", "x"], /--limit needs a whole number of at least 1, not "x"/],
    [["--limit", "0"], /--limit needs a whole number of at least 1, not "0"/],
    [["--max", "x"], /--max needs a whole number of at least 1, not "x"/],
    [["--limit", "1", "--max", "1"], /--limit and --max are the same/],
  ] as const) {
    const refused = await world.lockstep(["runs", ...words]);
    assert.equal(refused.code, 2, words.join(" "));
    assert.match(refused.stderr, says);
  }
});

test("runs are listed and shown on a full disk", needs(...canMount()), async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  world.write("replies.json", script(...ALL));
  const disk = join(world.root, "disk");
  mkdirSync(disk);
  const lockstep = `"${process.execPath}" "${MAIN}"`;
  const state = `--state "${disk}/state"`;
  const [program = "", ...before] = mounted(`mount -t tmpfs -o size=2m none "${disk}"`);
  const lines = [
    `${lockstep} run notes --topic t --script replies.json -q ${state} >&2`,
    `dd if=/dev/zero of="${disk}/fill" bs=1k >&2 2>/dev/null`,
    `${lockstep} runs ${state}`,
    `${lockstep} show @last --json ${state}`,
    `${lockstep} run notes --topic t --script replies.json -q ${state} >&2; echo "run: $?"`,
  ];
  const ran = await start(program, [...before, "sh", "-c", lines.join("\n")], world.root, { env: world.env });
  assert.match(ran.stdout, /^RUN [^]*notes +completed[^]*"outcome":"completed"[^]*run: 3\n$/, ran.stderr);
});

test("a journal that was emptied is reported, and not taken for a new one", async () => {
  using world = createWorld();
  await recorded(world);
  const file = join(world.root, ".lockstep/runs.db");
  writeFileSync(file, "");
  for (const words of [
    ["runs"],
    ["show", "@last"],
    ["run", "notes", "--topic", "t", "--script", "replies.json"],
  ]) {
    const refused = await world.lockstep(words);
    assert.deepEqual([refused.code, statSync(file).size], [3, 0], words.join(" "));
    assert.match(refused.stderr, /runs\.db is empty \(0 bytes\).* remove it to start again/s);
  }
  rmSync(file);
  assert.equal((await world.lockstep(["runs"])).code, 0);
  await recorded(world);
});

test("show --follow and runs --watch see a run of another process, to its end", async () => {
  using world = createWorld();
  // A check that waits until it is let through.
  writeCheckedAgent(world, "notes", "while test -d .agent && ! test -f go; do sleep 0.02; done");
  world.write("replies.json", script(...ALL));
  let isThere: () => void;
  const there = new Promise<void>((resolve) => (isThere = resolve));
  const running = world.lockstep(["run", "notes", "--topic", "tides", "--script", "replies.json"], {
    env: { LOCKSTEP_TRUST: "all" },
    watch: (output) => {
      if (output.includes("continuation.note #1")) isThere();
    },
  });
  await there;
  const followed = world.lockstep(["show", "@last", "-f"], {
    watch: (output) => {
      if (output.includes("continuation.note #1")) writeFileSync(join(world.root, "seen-by-show"), "");
    },
  });
  const events = world.lockstep(["show", "@last", "--events", "-f"]);
  const watched = world.lockstep(["runs", "--watch"], {
    watch: (output, child) => {
      if (output.includes("running")) writeFileSync(join(world.root, "seen-by-runs"), "");
      if (output.includes("completed")) child.kill("SIGINT");
    },
  });
  for (const name of ["seen-by-show", "seen-by-runs"])
    await until(() => existsSync(join(world.root, name)), name);
  world.write("go", "");
  assert.equal((await running).code, 0);
  const shown = await followed;
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /closure\.note #1 → closing → end\n✓ completed {2}notes/);
  const lines = (await events).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: { type: string } });
  assert.equal(lines.at(-1)?.event.type, "run.ended");
  const table = await watched;
  assert.equal(table.code, 0, table.stderr);
  assert.match(table.stdout, /notes {2}running {2}closure\.note {2}4\n[^]*notes {2}completed/);
  assert.equal((await world.lockstep(["runs", "--watch", "--json"])).code, 2);
});

test("following ends when whoever drove the run has died", async () => {
  using world = createWorld();
  writeCheckedAgent(world, "notes", "while test -d .agent && ! test -f go; do sleep 0.02; done");
  world.write("replies.json", script(...ALL));
  let driver: ChildProcess | undefined;
  const running = world.lockstep(["run", "notes", "--topic", "tides", "--script", "replies.json"], {
    env: { LOCKSTEP_TRUST: "all" },
    watch: (output, child) => {
      if (output.includes("continuation.note #1")) driver = child;
    },
  });
  try {
    await until(() => driver !== undefined, "the check has begun");
    const shown = await world.lockstep(["show", "@last", "-f"], {
      watch: (output) => {
        if (output.includes("continuation.note #1")) driver!.kill("SIGKILL");
      },
    });
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /■ interrupted {2}notes/);
  } finally {
    world.write("go", "");
  }
  assert.equal((await running).code, null);
});
