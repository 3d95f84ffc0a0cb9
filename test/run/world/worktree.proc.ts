/** Runs in worktrees of their own: where they work, what they see, what becomes of their branch, and what survives. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Result, RunOptions } from "../../../src/run/index.ts";
import { listWorktrees, pruneWorktrees } from "../../../src/run/records/worktrees.ts";
import { breaking } from "../breaking.ts";
import { replies, repository, WORKER, type Repository } from "../repository.ts";
import { until } from "../../until.ts";

const COMMIT = "echo new > b.txt; git add b.txt; git commit -qm work";
const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const around = (world: Repository) => ({
  env: world.env,
  signal: new AbortController().signal,
  root: world.home,
  isOurs: true,
});

const ENDINGS: readonly {
  readonly name: string;
  readonly options: Partial<RunOptions>;
  readonly agent?: string;
  readonly effects: readonly string[];
  readonly details?: RegExp;
  readonly kept: boolean;
  /** The branches that the remote has afterwards. */
  readonly remote: readonly string[];
}[] = [
  {
    name: "as it is",
    options: {},
    effects: ["merge:applied", "remove:applied"],
    kept: false,
    remote: ["main"],
  },
  {
    name: "no merge",
    options: { finalize: { autoMerge: false } },
    effects: [],
    kept: true,
    remote: ["main"],
  },
  {
    name: "no merge, but nothing was committed",
    options: { finalize: { autoMerge: false, push: true } },
    agent: "true",
    effects: ["remove:applied"],
    kept: false,
    remote: ["main"],
  },
  {
    name: "no merge, and a push: of the branch",
    options: { branch: "mine", finalize: { autoMerge: false, push: true } },
    effects: ["push:applied"],
    details: /pushed mine to origin/,
    kept: true,
    remote: ["main", "mine"],
  },
  {
    name: "merge and push: of the base",
    options: { finalize: { push: true } },
    effects: ["merge:applied", "push:applied", "remove:applied"],
    details: /pushed main to origin/,
    kept: false,
    remote: ["main"],
  },
  {
    name: "a pull request is instead of a merge, and for somebody to open",
    options: { branch: "mine's", finalize: { autoMerge: true, createPr: true, prTarget: "next" } },
    effects: ["push:applied", "pull-request:held"],
    details: /cd \S+project && gh pr create --base next --head 'mine'\\''s' --fill/,
    kept: true,
    remote: ["main", "mine's"],
  },
  {
    name: "a dry run changes nothing",
    options: { dryRun: true, finalize: { push: true } },
    agent: `${COMMIT}; echo left > c.txt`,
    effects: ["commit:held", "merge:held", "push:held", "remove:held"],
    details:
      /--dry-run.*commit what is left in \S+: c\.txt[^]*merge worker\S+ into main[^]*push main to origin/,
    kept: true,
    remote: ["main"],
  },
];

describe("what becomes of the branch", () => {
  for (const { name, options, agent = COMMIT, effects, details, kept, remote } of ENDINGS) {
    test(name, async () => {
      const world = repository();
      const result = await world.run([agent], options);
      assert.deepEqual(effectsOf(result), effects, result.reason);
      assert.deepEqual([result.outcome, result.exitCode, result.worktree?.kept], ["completed", 0, kept]);
      assert.equal(existsSync(result.worktree!.path), kept);
      if (details !== undefined) assert.match(result.effects.map(({ detail }) => detail).join("\n"), details);
      const heads = world.git(world.remote, "for-each-ref", "--format=%(refname:short)", "refs/heads");
      assert.deepEqual(heads.split("\n"), remote);
      const isMerged = effects.includes("merge:applied");
      assert.equal(world.read("b.txt"), isMerged ? "new\n" : null);
      if (kept) assert.equal(readFileSync(join(result.worktree!.path, "b.txt"), "utf8"), "new\n");
      assert.equal(world.git(world.home, "status", "--porcelain"), "");
      // It is over: there is nothing to resume.
      assert.match((await world.resume(result)).warnings.join(), /had already ended/);
    });
  }
});

test("a failed run keeps its worktree, and says where it is", async () => {
  const world = repository();
  const script = replies([COMMIT], world.env).slice(0, 1);
  const result = await world.run([], { script });
  assert.deepEqual(
    [result.code, result.effects.length, result.worktree?.kept],
    ["SCRIPT_EXHAUSTED", 0, true],
  );
  assert.equal(world.git(world.home, "rev-list", "--count", "main"), "1");
  const again = await world.resume(result, {
    script: replies([], world.env),
    cwd: join(world.home, ".agent"),
  });
  assert.deepEqual([again.outcome, ...effectsOf(again)], ["completed", "merge:applied", "remove:applied"]);
  assert.equal(world.read("b.txt"), "new\n");
});

test("a worktree that was removed by hand is made again from its branch", async () => {
  const world = repository();
  const result = await world.run([], { script: replies([COMMIT], world.env).slice(0, 1) });
  rmSync(result.worktree!.path, { recursive: true });
  const again = await world.resume(result, { script: replies(["test -f b.txt; echo c > c.txt"], world.env) });
  assert.deepEqual(effectsOf(again), ["commit:applied", "merge:applied", "remove:applied"], again.reason);
  assert.match(again.warnings.join(), /was gone and is made again/);
  assert.deepEqual([world.read("b.txt"), world.read("c.txt")], ["new\n", "c\n"]);
});

const BEYOND: readonly (readonly [
  name: string,
  undo: (world: Repository, result: Result) => void,
  says: RegExp,
])[] = [
  [
    "the branch is gone too",
    (world, { worktree }) => {
      world.git(world.home, "worktree", "remove", "-f", worktree!.path);
      world.git(world.home, "branch", "-D", worktree!.branch);
    },
    /nothing to go on with.*git -C \S+ branch worker/,
  ],
  [
    "the branch is checked out elsewhere",
    (world, { worktree }) => {
      world.git(world.home, "worktree", "remove", "-f", worktree!.path);
      world.git(world.home, "switch", "-q", worktree!.branch);
    },
    /is checked out at \S+project.*switch that/,
  ],
  [
    "something else is in its place",
    (world, { worktree }) => {
      world.git(world.home, "worktree", "remove", "-f", worktree!.path);
      world.shell(`mkdir ${worktree!.path}`);
    },
    /is not the worktree of the run any more/,
  ],
];

for (const [name, undo, says] of BEYOND) {
  test(`a run is not resumed when ${name}`, async () => {
    const world = repository();
    const result = await world.run([], { script: replies([COMMIT], world.env).slice(0, 1) });
    undo(world, result);
    const again = await world.resume(result, { script: replies([], world.env) });
    assert.deepEqual([again.code, again.exitCode], ["WORKTREE_UNAVAILABLE", 3]);
    assert.match(again.reason, says);
  });
}

test("a run works in the folder it was started in, with the agent's files as they are there", async () => {
  const world = repository({
    execution: { worktree: { enabled: true, root: "../trees", copy: [".env", "data", "missing", "out"] } },
  });
  world.write("app/x.txt", "x");
  world.write(".gitignore", ".env\n");
  world.git(world.home, "add", "-A");
  world.git(world.home, "commit", "-qm", "app");
  world.write(".env", "SECRET=1\n");
  world.write("data/deep/in.csv", "1,2\n");
  world.write("data/changed.csv", "1\n");
  world.write(".agent/worker/prompts/steps/initial/work/f_default.md", "Do it differently.\n");
  symlinkSync(world.temp, join(world.home, "out"));
  const [first, ...others] = replies(
    [
      'test "$(cat x.txt ../.env)" = "xSECRET=1"; cat ../data/deep/in.csv; echo 2 > ../data/changed.csv; echo y > y.txt; git add y.txt; git commit -qm y',
    ],
    world.env,
  );
  const agent = { name: "Write", input: { file_path: ".agent/worker/agent.json", content: "{}" } };
  const script = [
    { ...first!, saw: ["Do it differently."] },
    { step: "initial.work", calls: [agent] },
    ...others,
  ];
  // It changes what lies beside its folder, which a confined command cannot.
  const result = await world.run([], { script, cwd: join(world.home, "app"), sandbox: "off" });
  assert.deepEqual(effectsOf(result), ["merge:applied", "remove:held"], result.reason);
  // Inputs are nobody's work; but one that was changed is not thrown away.
  assert.match(result.effects[1]!.detail, /is kept: not committed: data\/changed\.csv$/);
  assert.equal(world.read("app/y.txt"), "y\n");
  assert.match(result.worktree!.path, /trees\/worker-\w+$/);
  const warnings = result.warnings.join("\n");
  assert.match(warnings, /missing of \S+ was not copied: it does not exist/);
  assert.match(warnings, /out of \S+ was not copied: it leads out of the repository/);
  assert.match(warnings, /Write was denied.*\.agent/);
});

test("a run that is started in a worktree has its own beside it, and is merged there", async () => {
  const world = repository();
  const linked = join(world.temp, "linked");
  world.git(world.home, "worktree", "add", "-q", "-b", "feature", linked);
  const result = await world.run([COMMIT], { cwd: linked });
  assert.deepEqual(effectsOf(result), ["merge:applied", "remove:applied"], result.reason);
  assert.ok(result.worktree!.path.startsWith(join(world.home, ".worktrees")));
  assert.ok(existsSync(join(linked, "b.txt")));
  assert.equal(world.read("b.txt"), null);
});

test("a run that is started in a submodule is merged there", async () => {
  const world = repository();
  world.shell("git submodule --quiet add $REMOTE lib; git commit -qam lib");
  const result = await world.run([COMMIT], { cwd: join(world.home, "lib") });
  assert.deepEqual(effectsOf(result), ["merge:applied", "remove:applied"], result.reason);
  assert.ok(result.worktree!.path.startsWith(join(world.home, "lib", ".worktrees")));
  assert.equal(world.read("lib/b.txt"), "new\n");
  assert.equal(world.read("b.txt"), null);
});

test("runs at the same time are all merged, one after the other", async () => {
  const world = repository();
  const names = ["p", "q", "r", "s"];
  const results = await Promise.all(
    names.map((name) => world.run([`echo ${name} > ${name}.txt; git add -A; git commit -qm ${name}`])),
  );
  for (const result of results)
    if (result.code === "FINALIZE_FAILED") assert.equal((await world.resume(result)).code, null);
  assert.deepEqual(
    names.map((name) => world.read(`${name}.txt`)),
    names.map((name) => `${name}\n`),
  );
  assert.equal(world.git(world.home, "rev-list", "--count", "--merges", "main"), "4");
  assert.equal(world.git(world.home, "status", "--porcelain"), "");
});

describe("a run that stops anywhere in its end goes on there, and does nothing twice", () => {
  // commit, merge, push and remove, each intended and applied, and the end.
  for (let at = 1; at <= 9; at += 1)
    for (const written of [false, true]) {
      test(`${written ? "after" : "before"} record ${at}`, async () => {
        const world = repository();
        const options = { finalize: { push: true }, journal: breaking(world.journal, at, written) };
        const result = await world.run([`${COMMIT}; echo left > c.txt`], options);
        assert.deepEqual([result.code, result.resumable], ["JOURNAL_UNAVAILABLE", true]);
        const again = await world.resume(result);
        assert.equal(again.outcome, "completed", again.reason);
        assert.deepEqual(effectsOf(again), [
          "commit:applied",
          "merge:applied",
          "push:applied",
          "remove:applied",
        ]);
        // The start, the agent's commit, what it had left, and one merge.
        assert.equal(world.git(world.remote, "rev-list", "--count", "main"), "4");
        assert.equal(
          world.git(world.home, "rev-parse", "main"),
          world.git(world.remote, "rev-parse", "main"),
        );
        assert.deepEqual([world.read("b.txt"), world.read("c.txt")], ["new\n", "left\n"]);
        assert.deepEqual(await listWorktrees(world.journal, around(world)), []);
      });
    }
});

test("an interruption while pushing is none of the push's failures", async () => {
  const world = repository();
  world.shell(
    "printf '#!/bin/sh\\ntouch started; sleep 30\\n' > hooks/pre-receive; chmod +x hooks/pre-receive",
    world.remote,
  );
  const stop = new AbortController();
  const result = await world.run([COMMIT], {
    finalize: { push: true },
    signal: stop.signal,
    observe: ({ event }) => {
      if (event.type !== "effect.intended" || event.kind !== "push") return;
      const isPushing = () => existsSync(join(world.remote, "started"));
      void until(isPushing, "the remote has the push").then(() => stop.abort());
    },
  });
  assert.deepEqual([result.outcome, result.exitCode], ["interrupted", 130]);
  assert.deepEqual(effectsOf(result), ["merge:applied", "push:intended"]);
  rmSync(join(world.remote, "hooks/pre-receive"));
  const again = await world.resume(result);
  assert.deepEqual(effectsOf(again), ["merge:applied", "push:applied", "remove:applied"]);
});

test("worktrees are listed, and pruned when nothing is lost with them", async () => {
  const world = repository();
  const commit = (name: string) => `echo ${name} > ${name}; git add -A; git commit -qm ${name}`;
  const half = replies([commit("halted")], world.env).slice(0, 1);
  const noMerge = { finalize: { autoMerge: false } };
  const merged = await world.run([commit("merged")], noMerge);
  const unmerged = await world.run([commit("unmerged")], noMerge);
  const dirty = await world.run([commit("dirty")], noMerge);
  const halted = await world.run([], { script: half });
  world.git(world.home, "merge", "-q", merged.worktree!.branch);
  world.shell("echo more > more.txt", dirty.worktree!.path);
  const stopped = new AbortController();
  const interrupted = await world.run([commit("interrupted")], {
    signal: stopped.signal,
    observe: ({ event }) => event.type === "step.called" && stopped.abort(),
  });
  await world.run([commit("gone")]);

  const expected = [
    [interrupted, "interrupted", false, 0, "kept"],
    [halted, "failed", false, 0, "folder removed"],
    [dirty, "completed", false, 1, "kept"],
    [unmerged, "completed", false, 0, "folder removed"],
    [merged, "completed", true, 0, "removed"],
  ] as const;
  const rows = await listWorktrees(world.journal, around(world));
  const byRun = (list: readonly { readonly run: string }[]) => list.map(({ run }) => run).toSorted();
  assert.deepEqual(byRun(rows), expected.map(([{ run }]) => run!).toSorted());
  for (const dryRun of [true, false]) {
    const pruned = await pruneWorktrees(world.journal, around(world), { dryRun });
    for (const [{ run, worktree }, state, isMerged, uncommitted, done] of expected) {
      const one = pruned.find(({ row }) => row.run === run)!;
      assert.deepEqual(
        [one.row.state, one.row.merged, one.row.uncommitted?.length, one.done],
        [state, isMerged, uncommitted, done],
        one.why,
      );
      assert.equal(existsSync(worktree!.path), dryRun || done === "kept");
    }
  }
  // What was kept, and branches with commits of their own.
  const left = await listWorktrees(world.journal, around(world));
  assert.deepEqual(byRun(left), [interrupted, halted, dirty, unmerged].map(({ run }) => run!).toSorted());
  const again = await world.resume(halted, { script: replies(["test -f halted"], world.env) });
  assert.equal(again.outcome, "completed", again.reason);
});

test("without a worktree nothing of this happens", async () => {
  const world = repository();
  const result = await world.run([COMMIT], { worktree: false });
  assert.deepEqual([result.outcome, result.effects, result.worktree], ["completed", [], null]);
  assert.equal(world.read("b.txt"), "new\n");
  assert.ok(!existsSync(join(world.home, ".worktrees")));
});

test("a worktree is made for an agent that does not ask for one", async () => {
  const world = repository({ execution: {} });
  const result = await world.run([COMMIT], { agent: WORKER, worktree: true });
  assert.deepEqual(effectsOf(result), ["merge:applied", "remove:applied"], result.reason);
});
