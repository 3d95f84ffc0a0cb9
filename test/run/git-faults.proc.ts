/** Everything that can go wrong between a completed run and its base: nothing is lost, and the way on is told. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Result, RunOptions } from "../../src/run/index.ts";
import { repository, type Repository } from "./repository.ts";

const COMMIT = "echo two > a.txt; echo new > b.txt; git add -A; git commit -qm work";
const LEAVE = "echo two > a.txt; echo new > b.txt";

type Row = {
  readonly name: string;
  /** Before the run. */
  readonly before?: (world: Repository) => void;
  /** What the agent does. */
  readonly agent?: readonly string[];
  readonly options?: Partial<RunOptions>;
  readonly repository?: Parameters<typeof repository>[0];
  /** `kind:state`, in order; a run that could not start has none. */
  readonly effects: readonly string[];
  readonly code?: string;
  /** What the reason must say, the next command among it. */
  readonly says?: RegExp;
  /** What a person does before resuming; the run must be completed then. */
  /** The effects after that, where they are not all applied. */
  readonly after?: readonly string[];
  readonly mend?: (world: Repository, result: Result) => void;
  /** After that, or at the end where nothing had to be mended. */
  readonly then?: (world: Repository, result: Result) => void;
};

const DONE = ["merge:applied", "remove:applied"];
const merged = (world: Repository) => {
  assert.equal(world.git(world.home, "show", "main:b.txt"), "new");
  assert.equal(world.git(world.home, "branch", "--list", "worker/*"), "");
  assert.equal(world.git(world.home, "worktree", "list").split("\n").length, 1);
};
const mergedHere = (world: Repository) => {
  merged(world);
  assert.equal(world.read("b.txt"), "new\n");
  assert.equal(world.git(world.home, "status", "--porcelain"), "");
};

const CASES: Row = {
  name: "names that differ only in the case of their letters",
  agent: [`${COMMIT}; echo big > A.TXT; git add A.TXT; git commit -qm case`],
  effects: DONE,
  then: (world) => {
    mergedHere(world);
    assert.deepEqual([world.read("a.txt"), world.read("A.TXT")], ["two\n", "big\n"]);
  },
};

const ROWS: readonly Row[] = [
  { name: "nothing goes wrong", effects: DONE, then: mergedHere },
  {
    name: "the work is not committed",
    agent: [LEAVE],
    effects: ["commit:applied", ...DONE],
    then: (world) => {
      mergedHere(world);
      assert.match(world.git(world.home, "log", "--format=%s"), /^Work of worker, run \w+$/m);
    },
  },
  {
    name: "the work is more files than a command takes",
    agent: ["for n in $(seq 201); do echo $n > $n.txt; done"],
    effects: ["commit:applied", ...DONE],
    then: (world) => {
      assert.equal(world.git(world.home, "ls-tree", "--name-only", "main").split(".txt\n").length, 202);
      assert.equal(world.git(world.home, "status", "--porcelain"), "");
    },
  },
  {
    name: "the work is taken out of the index and left as it is committed",
    agent: ["git rm -q --cached a.txt"],
    effects: ["commit:held", "merge:applied", "remove:held"],
    then: (world, { effects }) => {
      assert.match(effects[0]!.detail, /^not committed: a\.txt.*, git takes nothing of it$/);
      assert.equal(world.git(world.home, "rev-list", "--count", "--all"), "1");
    },
  },
  ...["git rm -q a.txt; echo new > b.txt", "echo two > a.txt; git add a.txt; echo three > a.txt"].map(
    (what): Row => ({
      name: `work that is in the index in part: ${what}`,
      agent: [what],
      effects: ["commit:applied", ...DONE],
      then: (world) => {
        assert.equal(world.read("a.txt"), what.includes("three") ? "three\n" : null);
        assert.equal(world.git(world.home, "status", "--porcelain"), "");
      },
    }),
  ),
  {
    name: "the branches are packed",
    agent: [`${COMMIT}; git pack-refs --all`],
    options: { sandbox: "off" },
    effects: DONE,
    then: mergedHere,
  },
  {
    name: "conflict",
    agent: [COMMIT, "cd $HOME_TREE; echo other > a.txt; git commit -qam other"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /in conflict over a\.txt; resolve that with: git -C \S+ merge main[^]*lockstep resume/,
    mend: (world, { worktree }) =>
      world.shell("git merge main || { echo both > a.txt; git commit -qam together; }", worktree?.path),
    then: (world) => {
      mergedHere(world);
      assert.equal(world.read("a.txt"), "both\n");
    },
  },
  {
    name: "conflict, and the folder of the worktree is gone",
    agent: [COMMIT, "cd $HOME_TREE; echo other > a.txt; git commit -qam other; rm -r .worktrees/worker-*"],
    options: { sandbox: "off" },
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /resolve that with: git -C \S+ worktree add -f \S+ \S+ && git -C \S+ merge main/,
    mend: (world, { worktree, reason }) => {
      const command = /resolve that with: (git .*? merge main)/.exec(reason)![1]!;
      world.shell(`${command} || { cd ${worktree!.path}; echo both > a.txt; git commit -qam together; }`);
    },
    then: mergedHere,
  },
  {
    name: "the base moved meanwhile",
    agent: [COMMIT, "cd $HOME_TREE; echo c > c.txt; git add c.txt; git commit -qm other"],
    effects: DONE,
    then: (world) => {
      mergedHere(world);
      assert.equal(world.read("c.txt"), "c\n");
    },
  },
  {
    name: "the main tree is dirty",
    agent: [COMMIT, "echo mine > $HOME_TREE/a.txt"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /main is checked out at \S+project, where a\.txt is not committed; .*git -C \S+ stash/,
    mend: (world) => world.git(world.home, "stash"),
    then: mergedHere,
  },
  {
    name: "an untracked file of the main tree is in the way",
    agent: [COMMIT, "echo mine > $HOME_TREE/b.txt"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /git refuses to bring \S+ up to date: .*untracked/,
    mend: (world) => world.shell('test "$(cat b.txt)" = mine; rm b.txt'),
    then: mergedHere,
  },
  {
    name: "the main tree is on another branch, and dirty",
    agent: [COMMIT, "cd $HOME_TREE; git switch -qc other; echo mine > a.txt"],
    effects: DONE,
    then: (world) => {
      merged(world);
      assert.equal(world.git(world.home, "symbolic-ref", "--short", "HEAD"), "other");
      assert.deepEqual([world.read("a.txt"), world.read("b.txt")], ["mine\n", null]);
    },
  },
  {
    name: "HEAD is detached at the start",
    before: (world) => world.git(world.home, "switch", "-q", "--detach"),
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /HEAD is detached.*--base-branch/,
  },
  {
    name: "HEAD is detached at the start, and the base is named",
    before: (world) => world.git(world.home, "switch", "-q", "--detach"),
    options: { baseBranch: "main" },
    effects: DONE,
    then: merged,
  },
  {
    name: "HEAD is detached meanwhile",
    agent: [COMMIT, "git -C $HOME_TREE switch -q --detach"],
    effects: DONE,
    then: merged,
  },
  {
    name: "the base is gone",
    agent: [COMMIT, "cd $HOME_TREE; git switch -qc other; git branch -qD main"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /the branch "main" is gone.*make it again with: git -C \S+ branch main [0-9a-f]{40}/,
    mend: (world, { reason }) => world.shell(/with: (git -C .*)$/m.exec(reason)![1]!),
    then: merged,
  },
  {
    name: "the remote is protected",
    options: { finalize: { push: true } },
    before: (world) =>
      world.shell(
        "printf '#!/bin/sh\\necho no entry; exit 1\\n' > hooks/pre-receive; chmod +x hooks/pre-receive",
        world.remote,
      ),
    code: "FINALIZE_FAILED",
    effects: ["merge:applied", "push:failed"],
    says: /main was not pushed to origin: \[remote rejected\] \(pre-receive hook declined\).*no entry.*git -C \S+ push origin main/,
    mend: (world) => world.shell("rm hooks/pre-receive", world.remote),
    then: (world) => {
      mergedHere(world);
      assert.equal(world.git(world.remote, "show", "main:b.txt"), "new");
    },
  },
  {
    name: "the remote has more than we have",
    agent: [
      COMMIT,
      "git clone -q $REMOTE other; cd other; git config user.name o; git config user.email o@example.invalid; echo c > c.txt; git add c.txt; git commit -qm other; git push -q; cd ..; rm -rf other",
    ],
    options: { finalize: { push: true } },
    code: "FINALIZE_FAILED",
    effects: ["merge:applied", "push:failed"],
    says: /\[rejected\] \(fetch first\).*git -C \S+ pull --no-rebase origin main/,
    mend: (world) => world.shell("git pull -q --no-rebase --no-edit origin main"),
    then: (world) => {
      mergedHere(world);
      assert.equal(world.git(world.remote, "show", "main:b.txt"), "new");
      assert.equal(world.git(world.remote, "show", "main:c.txt"), "c");
    },
  },
  {
    name: "the remote is gone",
    agent: [COMMIT, "mv $REMOTE $REMOTE.away"],
    options: { finalize: { push: true } },
    code: "FINALIZE_FAILED",
    effects: ["merge:applied", "push:failed"],
    says: /main was not pushed to origin: .*does not appear to be a git repository/,
    mend: (world) => world.shell("mv $REMOTE.away $REMOTE"),
    then: (world) => assert.equal(world.git(world.remote, "show", "main:b.txt"), "new"),
  },
  {
    name: "there is no such remote",
    options: { finalize: { push: true, remote: "nowhere" } },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /no remote "nowhere".*remote add nowhere/,
  },
  {
    name: "hooks, monitors and programs of the repository are not run",
    agent: [LEAVE],
    options: { finalize: { push: true } },
    before: (world) => {
      for (const hook of "pre-commit commit-msg pre-merge-commit post-merge post-checkout pre-push reference-transaction".split(
        " ",
      ))
        world.shell(
          `printf '#!/bin/sh\\ntouch "$HOME_TREE/../ran"; exit 1\\n' > .git/hooks/${hook}; chmod +x .git/hooks/${hook}`,
        );
      const program = "touch $HOME_TREE/../ran; false";
      for (const key of [
        "core.fsmonitor",
        "core.editor",
        "diff.external",
        "gpg.program",
        "remote.origin.receivepack",
        "core.pager",
      ])
        world.git(world.home, "config", key, program);
      world.git(world.home, "config", "commit.gpgSign", "true");
      world.git(world.home, "config", "alias.commit", `!${program}`);
    },
    effects: ["commit:applied", "merge:applied", "push:applied", "remove:applied"],
    then: (world) => {
      assert.equal(existsSync(join(world.temp, "ran")), false);
      assert.equal(world.git(world.home, "show", "main:b.txt"), "new");
    },
  },
  {
    name: "a remote that is a command",
    options: { finalize: { push: true } },
    before: (world) =>
      world.git(world.home, "remote", "set-url", "origin", `ext::sh -c "touch ${world.temp}/ran"`),
    code: "FINALIZE_FAILED",
    effects: ["merge:applied", "push:failed"],
    says: /transport 'ext' not allowed/,
    mend: (world) => {
      assert.equal(existsSync(join(world.temp, "ran")), false);
      world.git(world.home, "remote", "set-url", "origin", world.remote);
    },
    // What is pushed to is settled when the run begins.
    after: ["merge:applied", "push:held", "remove:applied"],
  },
  {
    name: "the index of the main tree is locked",
    agent: [COMMIT, "touch $HOME_TREE/.git/index.lock"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /index\.lock/,
    mend: (world) => world.shell("rm .git/index.lock"),
    then: mergedHere,
  },
  {
    name: "the index of the worktree is locked",
    agent: [LEAVE, "touch $(git rev-parse --git-dir)/index.lock"],
    code: "FINALIZE_FAILED",
    effects: ["commit:failed"],
    says: /was not committed: .*index\.lock/,
    mend: (world, { worktree }) => world.shell("rm $(git rev-parse --git-dir)/index.lock", worktree?.path),
    then: mergedHere,
  },
  {
    name: "a merge in the worktree is unfinished",
    agent: [
      `${COMMIT}; git -C $HOME_TREE switch -qc other; cd $HOME_TREE; echo other > a.txt; git commit -qam other; git switch -q main; cd -; git merge other || true`,
    ],
    code: "FINALIZE_FAILED",
    effects: ["commit:failed"],
    says: /conflicts are not resolved in \S+: a\.txt/,
    mend: (_, { worktree }) =>
      repositoryShell(
        worktree?.path,
        "echo both > a.txt; git add a.txt; git -c user.name=o -c user.email=o@x commit -qm together",
      ),
    then: mergedHere,
  },
  {
    name: "a merge in the main tree is unfinished",
    agent: [
      `${COMMIT}; cd $HOME_TREE; git switch -qc other; echo other > c.txt; git add c.txt; git commit -qm other; git switch -q main; echo main > c.txt; git add c.txt; git commit -qm main; git merge -q other || true`,
    ],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /main is checked out at \S+project, where a merge is not finished \(c\.txt\); finish it, or give it up with: git -C \S+ merge --abort/,
    mend: (world, { reason }) => world.shell(/give it up with: (git -C \S+ merge --abort)/.exec(reason)![1]!),
    then: mergedHere,
  },
  {
    name: "a merge in the main tree is resolved and not committed",
    agent: [
      `${COMMIT}; cd $HOME_TREE; git switch -qc other; echo other > c.txt; git add c.txt; git commit -qm other; git switch -q main; git merge -q --no-ff --no-commit -s ours other`,
    ],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /main is checked out at \S+project, where a merge is not finished; finish it, or give it up with: git -C \S+ merge --abort/,
    mend: (world) => world.git(world.home, "commit", "-qm", "finished"),
    then: mergedHere,
  },
  {
    name: "a cherry-pick in the main tree is unfinished",
    agent: [
      `${COMMIT}; cd $HOME_TREE; git switch -qc other; echo other > c.txt; git add c.txt; git commit -qm other; git switch -q main; echo main > c.txt; git add c.txt; git commit -qm main; git cherry-pick other || true`,
    ],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /a cherry-pick is not finished \(c\.txt\); finish it, or give it up with: git -C \S+ cherry-pick --abort/,
    mend: (world, { reason }) =>
      world.shell(/give it up with: (git -C \S+ cherry-pick --abort)/.exec(reason)![1]!),
    then: mergedHere,
  },
  {
    name: "the agent left its branch",
    agent: [`git switch -q --detach; ${COMMIT}`],
    code: "FINALIZE_FAILED",
    effects: ["commit:failed"],
    says: /is on no branch, with work that "worker\/\w+" does not have; bring it there with: git -C \S+ switch/,
    mend: (world, { reason }) => world.shell(/with: (git -C .*)$/m.exec(reason)![1]!),
    then: mergedHere,
  },
  {
    name: "the agent switched to a branch of its own",
    agent: [`git switch -qc own; ${LEAVE}`],
    code: "FINALIZE_FAILED",
    effects: ["commit:failed"],
    says: /is on the branch "own"/,
    mend: (_, { worktree }) => repositoryShell(worktree?.path, "git switch -q -"),
    then: mergedHere,
  },
  {
    name: "the agent removed its own worktree",
    agent: [COMMIT, 'rm -rf "$PWD"'],
    // A confined command can empty its folder, and not remove it.
    options: { sandbox: "off" },
    effects: DONE,
    then: mergedHere,
  },
  {
    name: "a file here is a folder there",
    agent: [COMMIT, "cd $HOME_TREE; mkdir b.txt; echo c > b.txt/c; git add b.txt; git commit -qm other"],
    code: "FINALIZE_FAILED",
    effects: ["merge:failed"],
    says: /in conflict over b\.txt.*git -C \S+ merge main/,
    mend: (world) => world.shell("git rm -qr b.txt; git commit -qm away"),
    then: mergedHere,
  },
  ...(process.platform === "linux" ? [CASES] : []),
  {
    name: "a huge file is left",
    agent: [COMMIT, "head -c 50000000 /dev/zero > huge.bin"],
    effects: ["commit:applied", ...DONE],
    then: (world) => {
      mergedHere(world);
      assert.equal(world.git(world.home, "cat-file", "-s", "main:huge.bin"), "50000000");
    },
  },
  {
    name: "a hook of the remote fails while the branch is pushed",
    options: { branch: "mine", finalize: { autoMerge: false, push: true } },
    before: (world) =>
      world.shell("printf '#!/bin/sh\\nexit 1\\n' > hooks/update; chmod +x hooks/update", world.remote),
    code: "FINALIZE_FAILED",
    effects: ["push:failed"],
    says: /mine was not pushed to origin: .*hook declined.*git -C \S+ push origin mine/,
    mend: (world) => world.shell("rm hooks/update", world.remote),
    then: (world) => assert.equal(world.git(world.remote, "show", "mine:b.txt"), "new"),
  },
  {
    name: "there is a repository in the worktree",
    agent: [COMMIT, "git init -q nested; touch nested/x"],
    effects: ["merge:applied", "remove:held"],
    then: (world, { worktree }) => {
      assert.equal(world.git(world.home, "show", "main:b.txt"), "new");
      assert.ok(existsSync(join(worktree!.path, "nested/x")));
    },
  },
  {
    name: "nothing was committed",
    agent: ["true"],
    options: { finalize: { push: true } },
    effects: DONE,
    then: (world) => assert.equal(world.git(world.home, "rev-list", "--count", "main"), "1"),
  },
  {
    name: "the branch exists",
    before: (world) => world.git(world.home, "branch", "mine"),
    options: { branch: "mine" },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /"mine" already exists.*--base-branch mine/,
  },
  ...["main~1", "main^{tree}", "main..main", "nowhere"].map((baseBranch): Row => ({
    name: `the base is no branch: ${baseBranch}`,
    before: (world) => world.shell("git commit -q --allow-empty -m second"),
    options: { baseBranch },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /There is no branch "\S+" with a commit in \S+\. To continue: name a branch that exists/,
  })),
  {
    name: "the name cannot be one of a branch",
    options: { branch: "-x..y" },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /cannot be the name of a branch/,
  },
  {
    name: "the folder of the branch is taken",
    before: (world) => world.write(".worktrees/mine/file", "x"),
    options: { branch: "mine" },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /worktrees\/mine already exists/,
  },
  {
    name: "a branch is called like the agent",
    before: (world) => world.git(world.home, "branch", "worker"),
    effects: DONE,
    then: (world) => assert.equal(world.read("b.txt"), "new\n"),
  },
  {
    name: "no repository",
    repository: { isRepository: false },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /is in no working tree of git.*git init.*--no-worktree/,
  },
  {
    name: "no commit",
    repository: { isRepository: false },
    before: (world) => world.git(world.home, "init", "-q"),
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /no branch "main" with a commit.*first commit/,
  },
  {
    name: "nobody's name",
    before: (world) => {
      world.git(world.home, "config", "user.useConfigOnly", "true");
      world.shell("rm ~/.gitconfig");
    },
    code: "WORKTREE_UNAVAILABLE",
    effects: [],
    says: /no user name or email for commits.*git config --global user\.name/,
  },
  ...[".agent", "--sparse-index .agent", "--no-cone '/*' '!/out'"].map((what): Row => ({
    name: `a sparse checkout (${what}), and files outside of it`,
    before: (world) => {
      world.write("out/kept.txt", "kept\n");
      world.shell(`git add out; git commit -qm out; git sparse-checkout set ${what}; test ! -e out`);
    },
    agent: [`${COMMIT}; mkdir -p out; echo new > out/new.txt; echo changed > out/kept.txt`],
    effects: ["commit:applied", ...DONE],
    then: (world) => {
      assert.equal(world.git(world.home, "show", "main:out/new.txt"), "new");
      assert.equal(world.git(world.home, "show", "main:out/kept.txt"), "changed");
      mergedHere(world);
    },
  })),
  {
    name: "a submodule",
    before: (world) => {
      world.shell("git submodule --quiet add $REMOTE lib; git commit -qam lib");
    },
    effects: DONE,
    then: mergedHere,
  },
  {
    name: "a submodule that the agent filled and changed",
    before: (world) => world.shell("git submodule --quiet add $REMOTE lib; git commit -qam lib"),
    agent: [COMMIT, "git submodule --quiet update --init lib; echo x > lib/a.txt"],
    // It writes to .git/config, which a confined command cannot.
    options: { sandbox: "off" },
    code: "FINALIZE_FAILED",
    effects: ["commit:failed"],
    says: /work in the submodule lib is not committed \(a\.txt\); commit it with: git -C /,
    mend: (world, { worktree }) =>
      world.shell("test x = $(cat a.txt); git checkout a.txt", join(worktree!.path, "lib")),
    then: mergedHere,
  },
  ...["false", "true"].map((isSplit): Row => ({
    name: `files in a folder that is a repository to git, with core.splitIndex=${isSplit}`,
    before: (world) => {
      world.git(world.home, "config", "core.splitIndex", isSplit);
      world.shell("git clone -q $REMOTE lib; git add lib 2>/dev/null; git commit -qm lib");
    },
    agent: [`${COMMIT}; echo x > lib/x.txt`],
    effects: ["merge:applied", "remove:held"],
    then: (_world, { effects }) => assert.match(effects[1]!.detail, /repositories are inside of it: lib$/),
  })),
  {
    name: "spaces, quotes and other alphabets",
    repository: { name: "my prójekt's 日本" },
    options: { branch: "müh/sam'keit" },
    agent: [
      `${LEAVE}; echo x > "with space.txt"; echo x > 日本.txt; echo x > "-f"; echo x > "$(printf 'a\\nb')"; echo x > ':(top)x'`,
    ],
    effects: ["commit:applied", ...DONE],
    then: (world) => {
      mergedHere(world);
      for (const name of ["with space.txt", "日本.txt", "-f", "a\nb", ":(top)x"])
        assert.equal(world.read(name), "x\n");
    },
  },
];

function repositoryShell(cwd: string | undefined, line: string): void {
  repository().shell(line, cwd);
}

/** Everything that any branch or working tree of the repository has. */
function commitsOf(world: Repository): ReadonlySet<string> {
  if (!existsSync(join(world.home, ".git"))) return new Set();
  return new Set(world.git(world.home, "rev-list", "--all").split("\n"));
}

/** The main tree as a person sees it. */
function mainTree(world: Repository): unknown {
  const { git, home } = world;
  return {
    head: git(home, "rev-parse", "HEAD"),
    on: git(home, "rev-parse", "--abbrev-ref", "HEAD"),
    status: git(home, "--no-optional-locks", "status", "--porcelain", "--untracked-files=all"),
    files: world.shell("cat a.txt; cat b.txt 2>/dev/null || true"),
  };
}

test("who commits is asked again when a file that the user's settings include has changed", async () => {
  const world = repository();
  world.git(world.home, "config", "user.useConfigOnly", "true");
  world.shell("mv ~/.gitconfig ~/who; printf '[include]\\n\\tpath = who\\n' > ~/.gitconfig");
  const codes: (string | null)[] = [];
  for (const line of ["true", "true", "printf '[core]\\n' > ~/who"]) {
    world.shell(line);
    codes.push((await world.run(["true"])).code);
  }
  assert.deepEqual(codes, [null, null, "WORKTREE_UNAVAILABLE"]);
});

describe("git faults", () => {
  for (const row of ROWS) {
    test(row.name, async () => {
      const world = repository(row.repository);
      row.before?.(world);
      // What somebody else does meanwhile is done by a command here, in a place that no confined command reaches.
      const isElsewhere = row.agent?.some((line) => /\$(?:HOME_TREE|REMOTE)/.test(line)) === true;
      let before: unknown = null;
      let commits: ReadonlySet<string> = new Set();
      const result = await world.run(row.agent ?? [COMMIT], {
        ...row.options,
        ...(isElsewhere && { sandbox: "off" as const }),
        observe: ({ event }) => {
          if (event.type !== "effect.intended" || before !== null) return;
          before = mainTree(world);
          commits = commitsOf(world);
        },
      });
      const told = `${result.code}: ${result.reason}\n${result.effects.map(({ detail }) => detail).join("\n")}`;
      assert.deepEqual(
        result.effects.map(({ kind, state }) => `${kind}:${state}`),
        row.effects,
        told,
      );
      assert.equal(result.code, row.code ?? null, told);
      if (row.says !== undefined) assert.match(result.reason, row.says);
      const lost = () => [...commits].filter((commit) => !commitsOf(world).has(commit));
      assert.deepEqual(lost(), [], "no commit is lost");
      if (row.effects.includes("merge:failed") || row.effects.includes("commit:failed"))
        assert.deepEqual(mainTree(world), before, "the main tree is as it was");

      if (row.code === undefined) {
        assert.deepEqual([result.success, result.exitCode], [true, 0]);
        row.then?.(world, result);
        return;
      }
      if (row.mend === undefined) {
        assert.deepEqual([result.exitCode, result.run], [3, null]);
        if (existsSync(join(world.home, ".git")))
          assert.equal(world.git(world.home, "worktree", "list").split("\n").length, 1);
        return;
      }
      assert.deepEqual([result.exitCode, result.resumable, result.worktree?.kept], [1, true, true]);
      row.mend(world, result);
      const again = await world.resume(result);
      assert.deepEqual([again.outcome, again.code], ["completed", null], again.reason);
      assert.deepEqual(lost(), [], "no commit is lost");
      const states = again.effects.map(({ kind, state }) => `${kind}:${state}`);
      if (row.after === undefined) assert.ok(again.effects.every(({ state }) => state === "applied"));
      else assert.deepEqual(states, row.after);
      row.then?.(world, again);
    });
  }
});
