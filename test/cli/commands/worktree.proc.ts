/** Worktrees from the command line: the flags of `run`, what is told of the end, and `lockstep worktree`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createWorld, onlyDocument, replies, script, writeAgent, type World } from "../world.ts";

type Told = {
  readonly code: string | null;
  readonly exitCode: number;
  readonly run: string;
  readonly worktree: { readonly path: string; readonly branch: string; readonly kept: boolean } | null;
  readonly effects: readonly { readonly kind: string; readonly state: string; readonly detail: string }[];
};

const REPLIES = [
  {
    step: "initial.note",
    calls: [{ name: "Write", input: { file_path: "note.md", content: "a note\n" } }],
  },
  replies.initial(),
  replies.continuation(),
  replies.closure(),
];
const RUN = ["run", "notes", "--topic", "tides", "--script", "script.json"];

function git(world: World, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync("git", args, {
    cwd: world.root,
    env: world.env,
    encoding: "utf8",
  });
  assert.equal(status, 0, `git ${args.join(" ")}: ${stderr}`);
  return stdout.trim();
}

function createRepository(change: Parameters<typeof writeAgent>[2] = {}): World {
  const world = createWorld();
  world.writeHome(".gitconfig", "[user]\n\tname = t\n\temail = t@example.invalid\n");
  world.write(".gitignore", "home/\n.lockstep/\n");
  world.write("script.json", script(...REPLIES));
  writeAgent(world, "notes", {
    ...change,
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { [key: string]: unknown } };
      boundaries.permissionMode = "acceptEdits";
      boundaries.allowedTools = ["*"];
      change.agent?.(agent);
    },
  });
  git(world, "init", "-q", "-b", "main");
  git(world, "add", "-A");
  git(world, "commit", "-qm", "start");
  return world;
}

const documentOf = (ran: Parameters<typeof onlyDocument>[0]) => onlyDocument(ran) as unknown as Told;

test("a run in a worktree is merged, and told of", async () => {
  using world = createRepository();
  const ran = await world.lockstep([...RUN, "--worktree", "--branch", "note/tides"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /in \S+\.worktrees\/note-tides, branch note\/tides/);
  assert.match(ran.stderr, /effects +commit ✓ committed note\.md\n +merge ✓ merged note\/tides into main/);
  assert.doesNotMatch(ran.stderr, /^ +worktree /m);
  assert.ok(existsSync(join(world.root, "note.md")));
  const shown = documentOf(await world.lockstep(["show", "@last", "--json"]));
  assert.deepEqual(
    shown.effects.map(({ kind, state }) => `${kind}:${state}`),
    ["commit:applied", "merge:applied", "remove:applied"],
  );
  const why = await world.lockstep(["why", "@last"]);
  assert.match(why.stdout, /merged note\/tides into main/);
});

test("what could not be merged fails the run, is found by @failed, and is resumed", async () => {
  using world = createRepository();
  world.write("note.md", "mine\n");
  const ran = await world.lockstep([...RUN, "--worktree"]);
  assert.equal(ran.code, 1);
  assert.match(ran.stderr, /failed FINALIZE_FAILED/);
  assert.match(ran.stderr, /merge ✗ not merged: git refuses/);
  assert.match(ran.stderr, /next +lockstep resume/);
  assert.match(ran.stderr, /worktree +\S+, branch notes\/\w+ from main/);
  assert.equal(ran.stdout, '{"outcome":"failed"}\n');
  assert.match((await world.lockstep(["runs"])).stdout, /failed FINALIZE_FAILED/);
  assert.equal(documentOf(await world.lockstep(["show", "@failed", "--json"])).code, "FINALIZE_FAILED");
  git(world, "stash", "-u", "-q");
  const again = documentOf(await world.lockstep(["resume", "@failed", "--json"]));
  assert.deepEqual([again.exitCode, again.worktree?.kept], [0, false]);
  assert.match((await world.lockstep(["runs"])).stdout, /completed/);
});

test("the flags say what becomes of the branch", async () => {
  using world = createRepository();
  const kept = documentOf(await world.lockstep([...RUN, "--worktree", "--no-merge", "--json"]));
  assert.deepEqual([kept.exitCode, kept.worktree?.kept], [0, true]);
  const named = await world.lockstep(["runs", "--prune", kept.run, "--dry-run"]);
  const folder = kept.worktree!.path;
  assert.match(named.stderr, new RegExp(`git -C ${folder} status\\n.*worktree remove ${folder}`));
  const dry = await world.lockstep([...RUN, "--worktree", "--dry-run"]);
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stderr, /merge held not done \(--dry-run\): merge notes\/\w+ into main/);
  const outside = mkdtempSync(join(tmpdir(), "lockstep-remote-"));
  after(() => rmSync(outside, { recursive: true, force: true }));
  const remote = join(outside, "remote.git");
  git(world, "init", "-q", "--bare", remote);
  git(world, "remote", "add", "fork", remote);
  const flags = [
    "--worktree",
    "--branch",
    "pr",
    "--create-pr",
    "--push-remote",
    "fork",
    "--pr-target",
    "next",
  ];
  const asked = documentOf(await world.lockstep([...RUN, ...flags, "--json"]));
  assert.deepEqual(
    asked.effects.map(({ kind, state }) => `${kind}:${state}`),
    ["commit:applied", "push:applied", "pull-request:held"],
  );
  assert.match(asked.effects[2]!.detail, /gh pr create --base next --head pr --fill/);
  assert.match(git(world, "ls-remote", "fork"), /refs\/heads\/pr/);
  assert.equal(git(world, "rev-list", "--count", "main"), "1");

  const listed = onlyDocument(await world.lockstep(["worktree", "list", "--json"])) as {
    worktrees?: readonly { branch: string; uncommitted: readonly string[]; merged: boolean }[];
  };
  assert.deepEqual(
    listed.worktrees!.map(({ uncommitted, merged }) => [uncommitted, merged]),
    [
      [[], false],
      [["note.md"], true],
      [[], false],
    ],
  );
  // Nothing of the dry run is committed, so that its branch, which has nothing of its own, is not called merged.
  const table = (await world.lockstep(["worktree", "list"])).stdout.split("\n").slice(1, -1);
  assert.deepEqual(
    table.map((line) => / (held, uncommitted|held|uncommitted|merged|not merged) {2}/.exec(line)?.[1]),
    ["held", "held, uncommitted", "not merged"],
    table.join("\n"),
  );
  const pruned = await world.lockstep(["worktree", "prune", "--dry-run"]);
  assert.match(pruned.stdout, /would be folder removed[^]*kept .*not committed: note\.md/);
  await world.lockstep(["worktree", "prune"]);
  assert.deepEqual(
    git(world, "worktree", "list", "--porcelain").match(/^worktree /gm)?.length,
    2,
    "only the one with something uncommitted in it is left",
  );
  const { stdout } = await world.lockstep(["worktree", "list"]);
  assert.match(stdout, /RUN +STATE +BRANCH[^]*folder gone/);
});

const MISTAKES: readonly (readonly [args: readonly string[], code: number, says: RegExp])[] = [
  [[...RUN, "--branch", "x"], 2, /--branch only works with a worktree.*--worktree/],
  [[...RUN, "--no-worktree", "--push"], 2, /--push only works with a worktree/],
  [[...RUN, "--no-merge"], 2, /--merge only works with a worktree/],
  [[...RUN, "--worktree", "--base-branch", "nowhere"], 3, /no branch "nowhere"/],
  [["worktree"], 2, /needs list\|prune\|repair/],
  [["worktree", "lsit"], 2, /takes list, prune or repair.*list/s],
  [["worktree", "list", "--dry-run"], 2, /--dry-run only works with prune and repair/],
];

test("mistakes are told before anything is made", async () => {
  using world = createRepository();
  for (const [args, code, says] of MISTAKES) {
    const ran = await world.lockstep(args);
    assert.equal(ran.code, code, `${args.join(" ")}: ${ran.stderr}`);
    assert.match(ran.stderr, says);
  }
  assert.equal(existsSync(join(world.root, ".worktrees")), false);
  assert.match(
    (await world.lockstep(["worktree", "list"])).stderr,
    /No run recorded in \S+\.lockstep has a worktree/,
  );
});

test("records of worktrees that git cannot read are reported, and repaired", async () => {
  using world = createRepository();
  const records = join(world.root, ".git/worktrees/half");
  mkdirSync(records, { recursive: true });
  const files = { gitdir: "/nowhere/half/.git\n", HEAD: "ref: refs/heads/main\n", commondir: "" };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(records, name), text);
  const others = join(world.root, ".git/precious");
  writeFileSync(others, "mine\n");
  symlinkSync(others, join(records, "commondir.new"));
  utimesSync(records, 1, 1);
  const stopped = await world.lockstep([...RUN, "--worktree"]);
  assert.equal(stopped.code, 3, stopped.stderr);
  assert.match(stopped.stderr, /lockstep worktree repair/);
  const doctor = await world.lockstep(["doctor"]);
  assert.match(doctor.stdout, /warn +worktrees .*half\/commondir is empty.*fix: lockstep worktree repair/);
  const dry = await world.lockstep(["worktree", "repair", "--dry-run"]);
  assert.match(dry.stdout, /would be repaired +\S+worktrees\/half/);
  const done = onlyDocument(await world.lockstep(["worktree", "repair", "--json"]));
  assert.deepEqual(
    (done.repaired as { path: string; done: string }[]).map((one) => [one.path, one.done]),
    [[records, "repaired"]],
  );
  assert.deepEqual(
    [others, join(records, "commondir")].map((file) => readFileSync(file, "utf8")),
    ["mine\n", "../..\n"],
  );
  assert.match((await world.lockstep(["worktree", "repair"])).stderr, /Nothing to repair/);
  assert.equal(documentOf(await world.lockstep([...RUN, "--worktree", "--json"])).exitCode, 0);
});

test("an agent's own --branch leaves ours as --ls-branch", async () => {
  using world = createRepository({
    agent: (agent) => {
      const parameters = agent.parameters as { [name: string]: unknown };
      parameters.branch = { type: "string", description: "Of a tree", required: false, cli: "--branch" };
    },
  });
  const flags = ["--branch", "oak", "--worktree", "--ls-branch", "mine", "--no-merge", "--json"];
  const result = documentOf(await world.lockstep([...RUN, ...flags]));
  assert.equal(result.worktree?.branch, "mine");
});
