/** A merge that is killed while it updates the user's checkout: that gets there or stays as it was, and no edit is lost. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, describe, test } from "node:test";
import { openJournal, resume, run, type Result, type RunOptions } from "../../src/run/index.ts";
import { repairWorktrees } from "../../src/run/records/worktrees.ts";
import { bundled } from "../bundle.ts";
import type { Plan } from "./outward-run.ts";
import { replies, repository, type Repository } from "./repository.ts";

const temp = mkdtempSync(join(tmpdir(), "lockstep-end-"));
const program = await bundled("run/outward-run", temp);
after(() => rmSync(temp, { recursive: true }));

/** Git asks this filter for m.txt in the middle of a checkout: it kills whom the file `armed` names, once. */
const FILTER = `#!/bin/sh
above() { sed 's/.*) . \\([0-9]*\\) .*/\\1/' "/proc/$1/stat"; }
if mode=$(cat "$0.armed" 2>/dev/null) && rm "$0.armed"; then
  git=$PPID; starter=$(above $git); us=$(above $starter)
  case $mode in
    git) kill -9 $git ;;
    us) kill -9 $us ;;
    all) kill -9 $us $starter $git ;;
    held) kill -9 $us; for i in $(seq 600); do test -e "$0.go" && break; sleep 0.1; done ;;
  esac
fi
exec cat
`;

type World = Repository & {
  /** The next checkout of m.txt kills: git, our process, all of them, or our process while git is held until `go`. */
  readonly killed: (mode: "git" | "us" | "all" | "held") => Promise<string>;
  readonly go: () => void;
  readonly again: (more?: Partial<RunOptions>) => Promise<Result>;
  readonly other: (line: string) => Promise<Result>;
  readonly lock: string;
};

function world(): World {
  const repo = repository();
  const filter = join(repo.temp, "filter");
  writeFileSync(filter, FILTER);
  chmodSync(filter, 0o755);
  const settings = join(repo.env.HOME!, ".gitconfig");
  repo.shell(`printf '[filter "held"]\n\tsmudge = ${filter}\n' >> ${settings}`);
  for (const name of ["b", "d", "m", "x", "z/y"]) repo.write(`${name}.txt`, `old ${name}\n`);
  repo.write(".gitattributes", "m.txt filter=held\n");
  repo.git(repo.home, "add", "-A");
  repo.git(repo.home, "commit", "-qm", "files");
  const env = { ...(repo.env as { [name: string]: string }), LOCKSTEP_TRUST: "all" };
  const options = { sandbox: "off", args: {} } as const;
  const inJournal = async (use: (around: Pick<RunOptions, "journal" | "env">) => Promise<Result>) => {
    const journal = await openJournal(join(repo.home, ".lockstep"), { now: Date.now });
    try {
      return await use({ journal, env });
    } finally {
      await journal.close();
    }
  };
  let first = "";
  return {
    ...repo,
    lock: join(repo.home, ".git/index.lock"),
    go: () => writeFileSync(`${filter}.go`, ""),
    killed: async (mode) => {
      const work =
        "for f in b m x; do echo new $f > $f.txt; done; rm d.txt; mkdir k; echo new > k/k.txt; head -c 9000 /dev/zero | tr '\\0' x > k/big.txt; rm -r z; echo file > z; " +
        `git add -A; git commit -qm work; printf ${mode} > ${filter}.armed`;
      const plan: Plan = {
        home: repo.home,
        env,
        nth: 0,
        when: "after",
        options: { ...options, script: replies([work], env) },
      };
      const child = spawn(process.execPath, [program, JSON.stringify(plan)], {
        stdio: ["ignore", "ignore", "inherit"],
      });
      const how = await new Promise<string>((resolve) => {
        child.on("close", (code, signal) => resolve(signal ?? `exit ${code}`));
      });
      await inJournal(async ({ journal }) => {
        first = (await journal!.list())[0]!.id;
        return {} as Result;
      });
      return how;
    },
    again: async (more = {}) =>
      await inJournal(
        async (around) => await resume({ run: first, cwd: repo.home, ...around, ...options, ...more }),
      ),
    other: async (line) => {
      const script = replies([line], env);
      const about = { agent: "worker", cwd: repo.home, ...options, script };
      return await inJournal(async (around) => await run({ ...about, ...around }));
    },
  };
}

const status = ({ git, home }: World) => git(home, "status", "--porcelain");

function assertMerged(it: World, result: Result, merges = "1"): void {
  assert.deepEqual([result.outcome, result.exitCode], ["completed", 0], result.reason);
  assert.equal(status(it), "");
  assert.deepEqual(
    ["a", "b", "d", "m", "x", "k/k"].map((name) => it.read(`${name}.txt`)),
    ["one\n", "new b\n", null, "new m\n", "new x\n", "new\n"],
  );
  assert.equal(it.read("z"), "file\n");
  assert.equal(it.git(it.home, "rev-list", "--count", "--merges", "main"), merges);
  assert.equal(it.git(it.home, "symbolic-ref", "--short", "HEAD"), "main");
  assert.equal(it.git(it.home, "branch", "--list", "worker/*"), "");
  const left = it.shell("ls -A .git .git/info .worktrees | grep -E 'lock$|lockstep|removed|worker' || true");
  assert.equal(left.replace("lockstep-merge.lock", "").trim(), "");
}

describe("a merge that is killed while it updates the user's checkout", () => {
  test("our process: git goes on, and the checkout is whole before anybody resumes", async () => {
    const it = world();
    assert.equal(await it.killed("us"), "SIGKILL");
    for (let left = 1200; left > 0 && existsSync(it.lock); left -= 1) await sleep(50);
    assert.equal(status(it), "");
    assert.equal(it.read("x.txt"), "new x\n");
    assertMerged(it, await it.again());
  });

  test("our process, and resume comes while git is still at it: it waits, and says so", async () => {
    const it = world();
    assert.equal(await it.killed("held"), "SIGKILL");
    const heard: string[] = [];
    const notify = (text: string) => {
      heard.push(text);
      it.go();
    };
    assertMerged(it, await it.again({ notify }));
    assert.match(heard.join("\n"), /Waiting for git \(process \d+\) of run \w+, which is still at work in/);
  });

  test("git alone: the checkout is as it was, and resume merges", async () => {
    const it = world();
    assert.equal(await it.killed("git"), "exit 1");
    assert.deepEqual([status(it), existsSync(it.lock), it.read("b.txt")], ["", false, "old b\n"]);
    assertMerged(it, await it.again());
  });

  /** What a person does to the half updated checkout before the run is resumed. */
  const MEANWHILE: readonly (readonly [name: string, act: (it: World) => unknown])[] = [
    ["nothing", () => undefined],
    ["the lock is removed", (it) => rmSync(it.lock)],
    [
      "the lock is removed, and what git shows is set aside",
      (it) => {
        rmSync(it.lock);
        it.shell("git stash --include-untracked --quiet");
      },
    ],
    ["a file is empty, as a power failure leaves it", (it) => it.write("k/k.txt", "")],
    ["a file is cut off after a page", (it) => it.write("k/big.txt", "x".repeat(4096))],
    [
      "`worktree repair`, which is enough for the checkout",
      async (it) => {
        const signal = new AbortController().signal;
        const around = { env: it.env, signal, root: it.home, isOurs: true };
        const repaired = await repairWorktrees(null, around, { now: Date.now() });
        assert.deepEqual(
          repaired.map(({ path, done }) => [path, done]),
          [[it.home, "repaired"]],
        );
        assert.deepEqual([status(it), existsSync(it.lock), it.read("b.txt")], ["", false, "old b\n"]);
      },
    ],
  ];
  for (const [name, act] of MEANWHILE)
    test(`everything, and meanwhile: ${name}`, async () => {
      const it = world();
      assert.equal(await it.killed("all"), "SIGKILL");
      assert.notEqual(status(it), "", "it was not killed in the middle");
      assert.ok(existsSync(it.lock));
      await act(it);
      assertMerged(it, await it.again());
    });

  test("everything, and meanwhile files are edited: the edits stay, and are named", async () => {
    const it = world();
    await it.killed("all");
    // Of files that were updated before, that were to be, that the merge adds, and that it does not change.
    const edits = { "b.txt": "new b, edited\n", "x.txt": "mine\n", "a.txt": "also mine\n" };
    for (const [path, text] of Object.entries(edits)) it.write(path, text);
    // Shorter than what the merge writes, and bytes that are not text.
    it.write("k/k.txt", "n");
    const bytes = Buffer.alloc(4096, 0xff);
    writeFileSync(join(it.home, "k/big.txt"), bytes);
    it.write("k/mine.txt", "not committed\n");
    const failed = await it.again();
    assert.equal(failed.code, "FINALIZE_FAILED");
    assert.match(failed.reason, /where a\.txt, b\.txt, x\.txt are not committed; .*git -C \S+ stash/);
    assert.deepEqual(
      Object.keys(edits).map((path) => it.read(path)),
      Object.values(edits),
    );
    assert.deepEqual(
      [it.read("k/mine.txt"), it.read("k/k.txt"), it.read("m.txt")],
      ["not committed\n", "n", "old m\n"],
    );
    assert.deepEqual(readFileSync(join(it.home, "k/big.txt")), bytes);
    for (const name of ["k", "big"]) rmSync(join(it.home, `k/${name}.txt`));
    it.shell("git stash --quiet");
    const done = await it.again();
    assert.equal(done.outcome, "completed", done.reason);
    assert.equal(status(it), "?? k/mine.txt");
    assert.equal(it.git(it.home, "show", "stash@{0}:b.txt"), "new b, edited");
  });

  test("everything, and meanwhile another run ends: both are merged", async () => {
    const it = world();
    await it.killed("all");
    const other = await it.other("echo other > other.txt");
    assert.equal(other.outcome, "completed", other.reason);
    assert.deepEqual([it.read("other.txt"), it.read("b.txt")], ["other\n", "old b\n"]);
    assert.equal(status(it), "");
    assertMerged(it, await it.again(), "2");
  });
});
