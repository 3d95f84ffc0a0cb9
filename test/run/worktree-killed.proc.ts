/** Worktrees of runs that were killed while these were made or removed: never taken for whole, never left behind. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { Event, Result, RunOptions } from "../../src/run/index.ts";
import {
  listWorktrees,
  pruneWorktrees,
  repairWorktrees,
  troubleWithWorktrees,
} from "../../src/run/records/worktrees.ts";
import { worktreesOf } from "../../src/run/records/prune.ts";
import { breaking, breakingAtOnce } from "./breaking.ts";
import { replies, repository, type Repository } from "./repository.ts";

const COMMIT = "echo two > a.txt; echo new > b.txt; git add -A; git commit -qm work";
const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const around = (world: Repository) => ({
  env: world.env,
  signal: new AbortController().signal,
  root: world.home,
  isOurs: true,
});

/** Nothing of any run is left, and the user's checkout is as git has it. */
function assertTidy(world: Repository): void {
  const { home, git } = world;
  assert.equal(git(home, "status", "--porcelain"), "");
  assert.equal(git(home, "symbolic-ref", "--short", "HEAD"), "main");
  assert.equal(git(home, "branch", "--list").trim(), "* main");
  assert.equal(git(home, "worktree", "list").split("\n").length, 1);
  const left = world.shell(
    "ls -A .git .git/info .git/worktrees .worktrees 2>/dev/null | grep -E 'worker|removed|making' || true",
  );
  assert.equal(left, "");
  assert.equal(world.shell("find .git -name '*.lock' ! -name lockstep-merge.lock"), "");
}

// Removing.

type Tree = NonNullable<Result["worktree"]>;

const recordsOf = (world: Repository, { path }: Tree) => join(world.home, ".git/worktrees", basename(path));
const moveAway = ({ path }: Tree) =>
  renameSync(path, join(dirname(path), `.lockstep-removed-${basename(path)}`));

const HALF_REMOVED: readonly {
  readonly name: string;
  readonly kill: (world: Repository, tree: Tree) => void;
  /** What is said of a worktree that stays. */
  readonly kept?: RegExp;
}[] = [
  { name: "nothing was removed", kill: () => undefined },
  { name: "the folder is moved away", kill: (_world, tree) => moveAway(tree) },
  {
    name: "the folder and its records are moved away",
    kill: (world, tree) => {
      moveAway(tree);
      const away = `lockstep-removed-${basename(tree.path)}`;
      renameSync(recordsOf(world, tree), join(world.home, ".git", away));
    },
  },
  {
    name: "only the branch is left",
    kill: (world, { path }) => world.git(world.home, "worktree", "remove", "--force", path),
  },
  {
    name: "the branch is gone, and git left its locks",
    kill: (world, { path, branch }) => {
      world.git(world.home, "worktree", "remove", "--force", path);
      world.git(world.home, "branch", "-qD", branch);
      mkdirSync(join(world.home, ".git/refs/heads", dirname(branch)), { recursive: true });
      for (const name of [`refs/heads/${branch}.lock`, "packed-refs.lock"])
        writeFileSync(join(world.home, ".git", name), "");
    },
  },
  {
    name: "the branch is there, and git left its locks",
    kill: (world, { branch }) => {
      for (const name of [`refs/heads/${branch}.lock`, "packed-refs.lock"])
        writeFileSync(join(world.home, ".git", name), "");
    },
  },
  {
    name: "files are missing, as earlier versions left it",
    kill: (_world, { path }) => rmSync(join(path, "a.txt")),
  },
  {
    name: "files and its .git are missing, as earlier versions left it",
    kill: (_world, { path }) => ["a.txt", ".git"].forEach((name) => rmSync(join(path, name))),
  },
  {
    name: "its .git is missing, and somebody put a file there",
    kill: (_world, { path }) => {
      rmSync(join(path, ".git"));
      writeFileSync(join(path, "mine.txt"), "mine\n");
    },
    kept: /is half removed, and the branch worker\/\w+ does not have: mine\.txt/,
  },
  {
    name: "files are missing, and somebody changed another",
    kill: (_world, { path }) => {
      rmSync(join(path, "a.txt"));
      writeFileSync(join(path, "b.txt"), "mine\n");
    },
    kept: /is kept: not committed: b\.txt/,
  },
  {
    name: "a person has locked it",
    kill: (world, { path }) => world.git(world.home, "worktree", "lock", "--reason", "look at it", path),
    kept: /it is locked \(look at it\); unlock it with: git -C \S+ worktree unlock \S+/,
  },
];

describe("a run that was killed while its worktree was removed", () => {
  for (const root of [".worktrees", "../trees"])
    for (const { name, kill, kept } of HALF_REMOVED)
      test(`in ${root}: ${name}`, async () => {
        const world = repository({ execution: { worktree: { enabled: true, root } } });
        // The merge is intended and applied, the removal intended.
        const broken = await world.run([COMMIT], { journal: breaking(world.journal, 3, true) });
        assert.deepEqual([broken.code, ...effectsOf(broken)], ["JOURNAL_UNAVAILABLE", "merge:applied"]);
        const tree = broken.worktree!;
        kill(world, tree);
        const result = await world.resume(broken);
        assert.equal(result.outcome, "completed", result.reason);
        assert.deepEqual(effectsOf(result), [
          "merge:applied",
          kept === undefined ? "remove:applied" : "remove:held",
        ]);
        // The start, the work, and one merge: nothing that was missing was committed as removed.
        assert.equal(world.git(world.home, "rev-list", "--count", "--all"), "3");
        assert.equal(existsSync(tree.path), kept !== undefined);
        if (kept === undefined) assertTidy(world);
        else assert.match(result.effects[1]!.detail, kept);
        assert.equal(world.git(world.home, "symbolic-ref", "--short", "HEAD"), "main");
        assert.equal(world.git(world.home, "status", "--porcelain"), "");
      });
});

test("git is never started in a folder without its .git file: that would be the user's own checkout", async () => {
  const world = repository();
  const halted = await world.run([], { script: replies([COMMIT], world.env).slice(0, 1) });
  rmSync(join(halted.worktree!.path, ".git"));
  const refused = await world.resume(halted, { script: replies([], world.env) });
  assert.deepEqual([refused.code, refused.exitCode], ["WORKTREE_UNAVAILABLE", 3]);
  const hint = /put that back with: (git -C \S+ worktree repair)\. /.exec(refused.reason)?.[1];
  const [pruned] = await pruneWorktrees(world.journal, around(world));
  assert.deepEqual([pruned?.done, /no \.git file.*worktree repair/.test(pruned?.why ?? "")], ["kept", true]);
  world.shell(hint!);
  const result = await world.resume(halted, { script: replies([], world.env) });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(world.read("b.txt"), "new\n");
  assertTidy(world);
});

// Making.

const HALF_MADE: readonly {
  readonly name: string;
  readonly kill: (world: Repository, run: string, tree: Tree, commit: string) => void;
  /** Whether `list` shows that the folder is there. */
  readonly exists: boolean;
}[] = [
  { name: "nothing was made", kill: () => undefined, exists: false },
  {
    name: "only the branch was made",
    kill: (world, _run, { branch }, commit) => world.git(world.home, "branch", branch, commit),
    exists: false,
  },
  {
    name: "all files but one were written",
    kill: (world, run, tree, commit) => {
      add(world, run, tree, commit);
      rmSync(join(tree.path, "a.txt"));
    },
    exists: true,
  },
  {
    name: "inputs were not copied",
    kill: (world, run, tree, commit) => add(world, run, tree, commit),
    exists: true,
  },
  {
    name: "the records do not say where it is",
    kill: (world, run, tree, commit) => {
      add(world, run, tree, commit);
      for (const name of ["gitdir", "HEAD"]) rmSync(join(recordsOf(world, tree), name));
      writeFileSync(join(recordsOf(world, tree), "commondir"), "");
      rmSync(tree.path, { recursive: true });
    },
    exists: false,
  },
];

/** As a process does before it makes a worktree. */
function begin(world: Repository, run: string): void {
  mkdirSync(join(world.home, ".git/info"), { recursive: true });
  writeFileSync(join(world.home, ".git/info", `lockstep-making-${run}`), "");
}

function add(world: Repository, run: string, { path, branch }: Tree, commit: string): void {
  const reason = `lockstep is making it for run ${run}`;
  world.git(world.home, "worktree", "add", "-q", "--lock", "--reason", reason, "-b", branch, path, commit);
}

/** A run that is recorded, and was killed in the middle of making its worktree. */
async function unmade(
  kill: (typeof HALF_MADE)[number]["kill"],
  options: Partial<RunOptions> = {},
): Promise<{ readonly world: Repository; readonly killed: Result; readonly tree: Tree }> {
  const world = repository({ execution: { worktree: { enabled: true, copy: [".env"] } } });
  writeFileSync(join(world.home, ".git/info/exclude"), ".env\n");
  world.write(".env", "KEY=1\n");
  await world.run([COMMIT], { journal: breakingAtOnce(world.journal), ...options });
  const [{ id } = { id: "" }] = await world.journal.list();
  const event = (await world.journal.read(id))[0]?.event as Extract<Event, { type: "run.started" }>;
  const tree = { ...event.worktree!, kept: true } as unknown as Tree;
  begin(world, id);
  kill(world, id, tree, event.worktree!.commit);
  return { world, killed: { run: id } as Result, tree };
}

describe("a run that was killed while its worktree was made", () => {
  const script = (world: Repository) =>
    replies([`test -f .env -a -f a.txt; test -z "$(git status --porcelain)"; ${COMMIT}`], world.env);
  for (const { name, kill, exists } of HALF_MADE) {
    test(`${name}: it is listed, and resume makes all of it`, async () => {
      const { world, killed } = await unmade(kill);
      assert.deepEqual(
        (await listWorktrees(world.journal, around(world))).map((one) => [one.run, one.exists, one.made]),
        [[killed.run, exists, false]],
      );
      const result = await world.resume(killed, { script: script(world) });
      assert.deepEqual(effectsOf(result), ["merge:applied", "remove:applied"], result.reason);
      assert.doesNotMatch(result.warnings.join(), /is made again/);
      assert.equal(world.read("b.txt"), "new\n");
      assertTidy(world);
    });

    test(`${name}: prune removes it, after a repair, and the run can still be resumed`, async () => {
      const { world, killed, tree } = await unmade(kill);
      const records = recordsOf(world, tree);
      // Git may be writing records that are younger.
      if (existsSync(records)) utimesSync(records, 1, 1);
      await repairWorktrees(world.journal, around(world), { now: Date.now() });
      const pruned = await pruneWorktrees(world.journal, around(world));
      assert.deepEqual(
        pruned.filter(({ done }) => done === "kept"),
        [],
      );
      assertTidy(world);
      const result = await world.resume(killed, { script: script(world) });
      assert.equal(result.outcome, "completed", result.reason);
      assertTidy(world);
    });
  }

  test("by an interruption: the run can be resumed", async () => {
    const world = repository();
    const stop = new AbortController();
    const create: typeof world.journal.create = async (...args) => {
      const handle = await world.journal.create(...args);
      stop.abort();
      return handle;
    };
    const result = await world.run([COMMIT], { signal: stop.signal, journal: { ...world.journal, create } });
    assert.deepEqual([result.outcome, result.exitCode, result.resumable], ["interrupted", 130, true]);
    const again = await world.resume(result);
    assert.equal(again.outcome, "completed", again.reason);
    assertTidy(world);
  });

  test("while it was made again: what the branch has is all there", async () => {
    const world = repository();
    const halted = await world.run([], { script: replies([COMMIT], world.env).slice(0, 1) });
    const { path, branch } = halted.worktree!;
    world.git(world.home, "worktree", "remove", "--force", path);
    begin(world, halted.run!);
    const reason = `lockstep is making it for run ${halted.run}`;
    world.git(world.home, "worktree", "add", "-q", "--lock", "--reason", reason, path, branch);
    rmSync(join(path, "b.txt"));
    const script = replies(["test -f b.txt -a -f a.txt"], world.env);
    const result = await world.resume(halted, { script });
    assert.equal(result.outcome, "completed", result.reason);
    assert.match(result.warnings.join(), /is made again from its branch/);
    assert.equal(world.read("b.txt"), "new\n");
    assertTidy(world);
  });

  test("and another run has the place and the branch now: that one keeps them", async () => {
    const { world, killed, tree } = await unmade(() => undefined, { branch: "mine" });
    const other = await world.run([COMMIT], { branch: "mine", finalize: { autoMerge: false } });
    assert.equal(other.worktree?.path, tree.path);
    const refused = await world.resume(killed, { script: replies([], world.env) });
    assert.equal(refused.code, "WORKTREE_UNAVAILABLE");
    assert.match(refused.reason, new RegExp(`is the worktree of run ${other.run}`));
    const pruned = await pruneWorktrees(world.journal, around(world));
    assert.deepEqual(
      pruned.map(({ row, done }) => `${row.run} ${done}`).toSorted(),
      [`${killed.run} kept`, `${other.run} folder removed`].toSorted(),
    );
  });
});

const UNMAKEABLE: readonly (readonly [name: string, before: (world: Repository) => void])[] = [
  [
    "a file is in the place of its folder",
    (world) => {
      writeFileSync(join(world.home, ".git/info/exclude"), ".worktrees\n");
      writeFileSync(join(world.home, ".worktrees"), "a file\n");
    },
  ],
  [
    "git cannot write its files",
    (world) => {
      world.shell(
        "git config --global filter.no.clean cat; git config --global filter.no.smudge false; git config --global filter.no.required true",
      );
      world.write(".gitattributes", "a.txt filter=no\n");
      world.shell("git add .gitattributes; git commit -qm attributes");
    },
  ],
];

for (const [name, before] of UNMAKEABLE)
  test(`a worktree that cannot be made, because ${name}, leaves neither a branch nor a run`, async () => {
    const world = repository();
    before(world);
    const result = await world.run([COMMIT]);
    assert.deepEqual([result.code, result.run], ["WORKTREE_UNAVAILABLE", null]);
    assert.deepEqual(await world.journal.list(), []);
    assertTidy(world);
  });

test("a folder that is moved away is left alone by a repair, and the run goes on when it is back", async () => {
  const world = repository();
  const halted = await world.run([], { script: replies(["echo mine > mine.txt"], world.env).slice(0, 1) });
  const { path } = halted.worktree!;
  const away = `${path}.away`;
  renameSync(path, away);
  const repaired = await repairWorktrees(world.journal, around(world), { now: Date.now() });
  assert.deepEqual(repaired, []);
  assert.deepEqual(await worktreesOf(world.journal, [{ run: halted.run! }]), []);
  renameSync(away, path);
  assert.deepEqual(await worktreesOf(world.journal, [{ run: halted.run! }]), [
    { run: halted.run, path, home: world.home },
  ]);
  const result = await world.resume(halted, {
    script: replies(["git add mine.txt; git commit -qm mine"], world.env),
  });
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(world.read("mine.txt"), "mine\n");
  assertTidy(world);
});

test("records that git cannot read stop every run with a worktree, until they are repaired", async () => {
  const world = repository();
  const kept = await world.run([COMMIT], { finalize: { autoMerge: false } });
  const [whole, half] = [recordsOf(world, kept.worktree!), join(world.home, ".git/worktrees/half")];
  writeFileSync(join(whole, "commondir"), "");
  mkdirSync(half);
  writeFileSync(join(half, "locked"), "initializing");
  writeFileSync(join(half, "commondir"), "");
  assert.equal(troubleWithWorktrees(world.home).length, 2);
  const stopped = await world.run([COMMIT]);
  assert.equal(stopped.code, "WORKTREE_UNAVAILABLE");
  assert.match(stopped.reason, /lockstep worktree repair/);
  const repair = async (dryRun: boolean) =>
    (await repairWorktrees(world.journal, around(world), { dryRun, now: Date.now() }))
      .map(({ path, done }) => `${path} ${done}`)
      .toSorted();
  assert.deepEqual(await repair(true), [`${half} kept`, `${whole} kept`]);
  for (const records of [whole, half]) utimesSync(records, 1, 1);
  for (const dryRun of [true, false])
    assert.deepEqual(await repair(dryRun), [`${half} removed`, `${whole} repaired`]);
  assert.deepEqual([await repair(false), troubleWithWorktrees(world.home)], [[], []]);
  const result = await world.run(["echo c > c.txt"]);
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(world.git(kept.worktree!.path, "status", "--porcelain"), "");
});

test("a note of a merge in another repository is dropped, and that is reported", async () => {
  const [world, other] = [repository(), repository()];
  const note = { run: "0123456789", place: other.home, from: "a".repeat(40), to: "b".repeat(40), token: "t" };
  writeFileSync(join(world.home, ".git/info/lockstep-merge.json"), JSON.stringify(note));
  const repaired = await repairWorktrees(world.journal, around(world), { now: Date.now() });
  assert.deepEqual(
    repaired.map(({ path, done }) => [path, done]),
    [[other.home, "removed"]],
  );
  assert.deepEqual(troubleWithWorktrees(world.home), []);
});

test("an index that is a link is not copied: the merge is left to a person", async () => {
  const world = repository();
  const index = join(world.home, ".git/index");
  renameSync(index, `${index}-real`);
  symlinkSync("index-real", index);
  const result = await world.run([COMMIT], { sandbox: "off" });
  assert.equal(result.code, "FINALIZE_FAILED", result.reason);
  assert.match(result.reason, /\.git\/index is not a regular file/);
});
