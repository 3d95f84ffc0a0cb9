/** Several issues at once, from the command line: each run in its worktree, one table, one document. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { parseIssues } from "../../../src/cli/commands/batch.ts";
import { openStandIn } from "../../github/stand-in.ts";
import type { Batch } from "../../../src/run/index.ts";
import { createWorld, lastLine, onlyDocument, replies, script, writeAgent, type World } from "../world.ts";

/** Each worktree has a branch of its own, so each run writes a file of its own. */
const OWN_FILE = 'date > "note-$(git branch --show-current | tr / -).md"';
const REPLIES = [
  { step: "initial.note", calls: [{ name: "Bash", input: { command: OWN_FILE } }] },
  replies.initial(),
  replies.continuation(),
  replies.closure(),
];
const RUN = ["run", "notes", "--topic", "tides", "--script", "script.json"];
const TRUSTING = { env: { LOCKSTEP_TRUST: "all" } };

function createRepository(): World {
  const world = createWorld();
  world.writeHome(".gitconfig", "[user]\n\tname = t\n\temail = t@example.invalid\n");
  world.write(".gitignore", "home/\n.lockstep/\n.worktrees/\n");
  world.write("script.json", script(...REPLIES));
  writeAgent(world, "notes", {
    agent: (agent) => {
      const parameters = agent.parameters as { [name: string]: unknown };
      parameters.issue = {
        type: "number",
        cli: "--issue",
        description: "The issue.",
        validation: { max: 90 },
      };
      const { boundaries } = agent.runner as { boundaries: { [key: string]: unknown } };
      boundaries.permissionMode = "bypassPermissions";
      boundaries.allowedTools = ["*"];
    },
  });
  git(world, "init", "-q", "-b", "main");
  git(world, "add", "-A");
  git(world, "commit", "-qm", "start");
  return world;
}

function git(world: World, ...args: readonly string[]): string {
  const { root: cwd, env } = world;
  const { status, stdout, stderr } = spawnSync("git", args, { cwd, env, encoding: "utf8" });
  assert.equal(status, 0, `git ${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}

const batchOf = (ran: Parameters<typeof onlyDocument>[0]) => onlyDocument(ran) as unknown as Batch;
const notesIn = (world: World) => readdirSync(world.root).filter((name) => name.startsWith("note-"));

test("a conflict is reported with its files and the command that resolves it, in the table and in the summary", async () => {
  using world = createRepository();
  // Both have begun before either is merged.
  const command =
    "git branch --show-current > same.md; n=0; while [ $(git branch | wc -l) -lt 3 ] && [ $n -lt 600 ]; do n=$((n+1)); sleep 0.1; done";
  const call = { step: "initial.note", calls: [{ name: "Bash", input: { command } }] };
  world.write("script.json", script(call, ...REPLIES.slice(1)));
  git(world, "commit", "-qam", "script");
  const ran = await world.lockstep(
    [...RUN, "--issues", "3,4", "--worktree", "--summary", "summary.md"],
    TRUSTING,
  );
  assert.equal(ran.code, 1, ran.stderr);
  const [, issue = ""] =
    /✗ +(#\d) .*FINALIZE_FAILED not merged: main and \S+ are in conflict over same\.md\n/.exec(ran.stderr) ??
    [];
  assert.notEqual(issue, "", ran.stderr);
  const below = ran.stderr.slice(ran.stderr.indexOf("1 of 2 complete"));
  assert.match(
    below,
    new RegExp(`\\n  ${issue}: not merged: .*; resolve that with: git -C \\S+ merge main\\n`),
  );
  assert.match(below, /continue with:\n +lockstep resume/);
  assert.match(readFileSync(join(world.root, "summary.md"), "utf8"), /in conflict over same/);
});

test("each issue has a run in a worktree, and all of their work is merged", async () => {
  using world = createRepository();
  const ran = await world.lockstep(
    [...RUN, "--issues", "3,5-7", "--worktree", "--concurrency", "3", "--json"],
    TRUSTING,
  );
  assert.equal(ran.code, 0, ran.stderr);
  const batch = batchOf(ran);
  assert.deepEqual(
    batch.items.map(({ name, result }) => [name, result?.outcome, result?.worktree?.kept]),
    ["#3", "#5", "#6", "#7"].map((name) => [name, "completed", false]),
  );
  assert.equal(new Set(batch.items.map(({ result }) => result?.run)).size, 4);
  assert.equal(batch.usage.turns, 16);
  assert.equal(notesIn(world).length, 4);
  assert.equal(git(world, "status", "--porcelain"), "");
  assert.equal(git(world, "log", "--merges", "--oneline").split("\n").length, 4);
});

test("one that fails does not stop the others, and the table says why", async () => {
  using world = createRepository();
  const ran = await world.lockstep([...RUN, "--issues", "4,99,5", "--worktree"], TRUSTING);
  assert.equal(ran.code, 2, ran.stderr);
  assert.equal(lastLine(ran.stdout), '{"outcome":"failed"}');
  assert.match(ran.stderr, /notes: 2 of 3 complete/);
  assert.match(ran.stderr, /✗ {2}#99 .*PARAMETERS_INVALID .*issue/);
  assert.equal(notesIn(world).length, 2);
});

test("where all that is left waits for somebody, the batch waits", async () => {
  using world = createRepository();
  const file = ".agent/notes/agent.json";
  const text = readFileSync(join(world.root, file), "utf8");
  world.write(file, text.replace('"bypassPermissions"', '"default"'));
  const ran = await world.lockstep([...RUN, "--issues", "1,2", "--on-permission", "halt"], TRUSTING);
  assert.deepEqual([ran.code, lastLine(ran.stdout)], [5, '{"outcome":"waiting"}'], ran.stderr);
});

test("stopped in the middle: what runs is interrupted and can be resumed, the rest is not begun", async () => {
  using world = createRepository();
  world.write(
    "slow.json",
    script(replies.initial(), { error: { kind: "rate-limit", retryAfterMs: 60_000 } }),
  );
  let isStopped = false;
  const ran = await world.lockstep(
    ["run", "notes", "--topic", "t", "--script", "slow.json", "--issues", "1-4", "--events"],
    {
      ...TRUSTING,
      watch: (output, child) => {
        if (isStopped || !output.includes("rate-limit")) return;
        isStopped = true;
        child.kill("SIGINT");
      },
    },
  );
  assert.equal(ran.code, 130, ran.stderr);
  assert.match(ran.stderr, /not begun: #2, #3, #4/);
  assert.match(ran.stderr, /continue with:\n +lockstep resume \w{10}/);
  const [first] = ran.stdout
    .split("\n")
    .map((line) => JSON.parse(line || "null") as { item?: string } | null);
  assert.equal(first?.item, "#1");
});

/** The second run to come here stays until the file `go` is there. */
const SECOND_STAYS =
  "echo x >> began; if [ $(wc -l < began) = 2 ] && [ ! -e go ]; then touch stays; sleep 600; fi";
const STAYING = [{ step: "initial.note", calls: [{ name: "Bash", input: { command: SECOND_STAYS } }] }];

type Row = { readonly run: string; readonly state: string; readonly batch?: string };
const runsOf = async (world: World) =>
  (onlyDocument(await world.lockstep(["runs", "--json"])) as unknown as { readonly runs: readonly Row[] })
    .runs;

test("a batch that was killed goes on as a batch: what ended is kept, the rest goes on or begins", async () => {
  using world = createRepository();
  world.write("stays.json", script(...STAYING, ...REPLIES.slice(1)));
  const flags = ["--issues", "1,99,2-4", "--sandbox", "off"];
  let timer: NodeJS.Timeout | undefined;
  const { code, stderr } = await world.lockstep(
    ["run", "notes", "--topic", "t", "--script", "stays.json", ...flags],
    {
      ...TRUSTING,
      watch: (_, child) => {
        timer ??= setInterval(() => {
          if (existsSync(join(world.root, "stays"))) child.kill("SIGKILL");
        }, 20);
      },
    },
  );
  clearInterval(timer);
  assert.equal(code, null, stderr);
  const [, command = ""] = /continue with: lockstep (resume batch-\w{10} --sandbox off)$/m.exec(stderr) ?? [];
  const begun = await runsOf(world);
  assert.deepEqual(
    begun.map(({ state, batch }) => [state, batch]),
    ["interrupted", "completed"].map((state) => [state, command.split(" ")[1]]),
  );
  assert.match((await world.lockstep(["runs"])).stdout, /SIZE +BATCH +ARGUMENTS\n.* batch-\w{10} /);

  // Neither the script nor the line of the batch is needed any more.
  rmSync(join(world.root, "stays.json"));
  world.write("go", "");
  const ran = await world.lockstep([...command.split(" "), "--json"], TRUSTING);
  const batch = batchOf(ran);
  assert.deepEqual(
    batch.items.map(({ name, result }) => [name, result?.outcome, result?.code]),
    [
      ["#1", "completed", null],
      ["#99", "failed", "PARAMETERS_INVALID"],
      ["#2", "completed", null],
      ["#3", "completed", null],
      ["#4", "completed", null],
    ],
    ran.stderr,
  );
  assert.deepEqual([ran.code, batch.exitCode, batch.batch, batch.agent], [2, 2, null, "notes"]);
  assert.equal(batch.usage.turns, 16, "what was asked before counts as well");
  assert.deepEqual(
    [batch.items[2], batch.items[0]].map((item) => item?.result?.run),
    begun.map(({ run }) => run),
    "the same runs",
  );
  assert.equal((await runsOf(world)).length, 4);
  assert.doesNotMatch(ran.stdout + ran.stderr, /had already ended/, "the summary is that of one batch");
  assert.equal(readFileSync(join(world.root, "began"), "utf8"), "x\n".repeat(5), "one command was repeated");
  assert.match(ran.stderr, /They were ended: .*sleep/);
  assert.match(ran.stderr, /^#2 goes on$[^]*^#3 begins$/m);

  const again = await world.lockstep([...command.split(" "), "--json"], TRUSTING);
  assert.deepEqual([again.code, onlyDocument(again).code], [2, "RUN_UNKNOWN"]);
});

test("a batch that was stopped prints one command for all of it, in every manner", async () => {
  using world = createRepository();
  world.write(
    "slow.json",
    script(replies.initial(), { error: { kind: "rate-limit", retryAfterMs: 60_000 } }),
  );
  const line = ["run", "notes", "--topic", "t", "--script", "slow.json", "--issues", "1-3"];
  const stopped = async (signals: readonly NodeJS.Signals[], ...flags: readonly string[]) => {
    const left = [...signals];
    return await world.lockstep([...line, ...flags], {
      ...TRUSTING,
      watch: (output, child) => {
        const isNext = left.length === signals.length ? /#1 begins|run\.started/ : /stopping/;
        if (left.length > 0 && isNext.test(output)) child.kill(left.shift());
      },
    });
  };
  const plain = await stopped(["SIGTERM"], "--sandbox", "off");
  assert.deepEqual([plain.code, lastLine(plain.stdout)], [143, '{"outcome":"failed"}'], plain.stderr);
  assert.match(
    plain.stderr,
    /continue with:\n +lockstep resume \w{10} --sandbox off\n +lockstep resume batch-\w{10} --sandbox off$/m,
  );
  const quiet = await stopped(["SIGHUP"], "--quiet", "--events");
  assert.equal(quiet.code, 129);
  assert.match(quiet.stderr, /^next: lockstep resume batch-\w{10}$/m);
  for (const signals of [["SIGTERM"], ["SIGTERM", "SIGTERM"]] as const) {
    const ran = await stopped(signals, "--json");
    const batch = batchOf(ran);
    assert.deepEqual([ran.code, batch.exitCode, batch.success], [143, 143, false], ran.stderr);
    assert.match(batch.batch ?? "", /^batch-\w{10}$/);
    assert.deepEqual(
      batch.items.map(({ name }) => name),
      ["#1", "#2", "#3"],
    );
    const [first] = batch.items;
    if (signals.length === 1) assert.deepEqual(first?.result?.exitCode, 143);
  }
});

test("runs that need more of a script say so, and a damaged one keeps the batch", async () => {
  using world = createRepository();
  world.write("part.json", script(replies.initial()));
  const line = ["run", "notes", "--topic", "t", "--script", "part.json", "--issues", "1"];
  const ran = await world.lockstep(line, TRUSTING);
  const [, batch = ""] =
    /continue with:\n +lockstep resume \w{10} --script MORE\n +lockstep resume (batch-\w{10}) --script MORE$/m.exec(
      ran.stderr,
    ) ?? [];
  assert.notEqual(batch, "", ran.stderr);
  using db = new DatabaseSync(join(world.root, ".lockstep/runs.db"));
  db.exec("UPDATE event SET body = replace(body, '\"at\"', '\"aT\"') WHERE seq = 2");
  db.close();
  const refused = await world.lockstep(["resume", batch, "--script", "script.json", "--json"], TRUSTING);
  assert.deepEqual([refused.code, batchOf(refused).batch], [3, batch], refused.stderr);
});

const WRONG: readonly (readonly [readonly string[], RegExp])[] = [
  [["--issues", "x"], /--issues: "x" is not valid/],
  [["--issues", "9-3"], /--issues: "9-3" is not valid; write numbers like/],
  [["--issues", "0"], /--issues: "0" is not valid; write numbers like/],
  [["--issues", "1,"], /--issues: "" is not valid; write numbers like/],
  [["--issues", "1-5000"], /--issues: "1-5000" is not valid; write numbers like/],
  [["--issues", "1", "--issue", "2"], /--issues and --issue cannot be given together/],
  [["--issues", "1", "--label", "ready"], /--issues and --label cannot be given together/],
  [["--issues", "1", "--limit", "3"], /--limit only works with --label/],
  [["--issue", "1", "--limit", "3"], /--limit only works with --label/],
  [["--issue", "1", "--concurrency", "3"], /--concurrency only works with --issues or --label/],
  [["--issues", "1", "--concurrency", "0"], /--concurrency needs a whole number from 1 to 999, not "0"/],
  [["--issues", "1", "--worktree", "--branch", "b"], /each run gets its own branch/],
];

test("what makes no sense is refused before anything runs", async () => {
  using world = createRepository();
  writeAgent(world, "plain");
  for (const [flags, words] of WRONG) {
    const ran = await world.lockstep([...RUN, ...flags], TRUSTING);
    assert.equal(ran.code, 2, flags.join(" "));
    assert.match(ran.stderr, words);
  }
  const ran = await world.lockstep(["run", "plain", "--topic", "t", "--issues", "1"]);
  assert.match(ran.stderr, /agent "plain" has no parameter "issue"/);
  assert.deepEqual(JSON.parse((await world.lockstep(["runs", "--json"])).stdout).runs ?? [], []);
});

test("a model that cannot be asked is told of once", async () => {
  using world = createRepository();
  const ran = await world.lockstep(["run", "notes", "--topic", "t", "--issues", "1-9"], TRUSTING);
  assert.equal(ran.code, 3, ran.stderr);
  assert.equal(ran.stderr.match(/needs a key/g)?.length, 1, ran.stderr);
});

test("the open issues that have a label, oldest first", async (t) => {
  using world = createRepository();
  const github = await openStandIn();
  t.after(async () => await github.close());
  const openIssue = (label: string) => github.world.addIssue({ title: "t", labels: [label] });
  const numbers = ["ready", "later", "ready", "ready"].map(openIssue).map(({ number }) => number);
  const env = { ...TRUSTING.env, ...github.env };
  const flags = ["--worktree", "--label", "ready", "--json"];
  const batch = batchOf(await world.lockstep([...RUN, ...flags, "--limit", "2"], { env }));
  assert.deepEqual(
    batch.items.map(({ name, result }) => [name, result?.success]),
    [0, 2].map((place) => [`#${numbers[place]}`, true]),
  );
  const { left } = batch as unknown as { left: number };
  assert.equal(left, 1);
  const most = await world.lockstep([...RUN, "--worktree", "--label", "ready", "--limit", "1"], { env });
  assert.match(most.stderr, /2 more open issues have the label; include them with --limit 3\./);
  const none = await world.lockstep([...RUN, "--worktree", "--label", "nobody's"], { env });
  assert.equal(none.code, 0, none.stderr);
  assert.match(none.stderr, /No open issue has the label "nobody's"/);
  const refused = await world.lockstep([...RUN, ...flags], { env: { ...env, GH_TOKEN: "wrong" } });
  assert.equal(refused.code, 3);
  assert.equal(onlyDocument(refused).code, "GITHUB_UNAVAILABLE");
});

test("lists of issues", () => {
  assert.deepEqual(parseIssues("12, #15,20-22,15"), [12, 15, 20, 21, 22]);
});
