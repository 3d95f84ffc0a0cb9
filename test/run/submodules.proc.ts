/** Submodules in the worktree of a run: they are there, what is committed in them is not lost, and nothing is published by halves. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { describe, test } from "node:test";
import type { Result } from "../../src/run/index.ts";
import { listWorktrees, pruneWorktrees } from "../../src/run/records/worktrees.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { breaking } from "./breaking.ts";
import { replies, repository, type Repository } from "./repository.ts";

const effectsOf = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const details = ({ effects }: Result) => effects.map(({ detail }) => detail).join("\n");
const around = (world: Repository) => ({
  env: world.env,
  signal: new AbortController().signal,
  root: world.home,
  isOurs: true,
});
const NAMED = "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@e;";

/** `lib` with a bare origin; `inner`: with a submodule of its own as well. */
function withSubmodules(inner = false): Repository & { readonly lib: string } {
  const world = repository();
  const origin = (name: string) =>
    `git init -q --bare ../${name}.git; git init -q ../${name}; cd ../${name}; git remote add origin ../${name}.git
     echo ${name} > f.txt; git add -A; git commit -qm start; git push -q origin main; cd "$HOME_TREE"`;
  const nested = `${origin("inner")}; cd ../lib; git submodule --quiet add ../inner.git inner
     git commit -qam inner; git push -q origin main; cd "$HOME_TREE"`;
  world.shell(
    `${origin("lib")}; ${inner ? nested : ""}
     git submodule --quiet add ../lib.git lib; ${inner ? "git submodule --quiet update --init --recursive" : ""}
     git commit -qam lib; git push -q origin main`,
  );
  return { ...world, lib: join(world.home, "lib") };
}

const worktreeOf = ({ worktree }: Result) => worktree!.path;
const branchesOf = (world: Repository, folder: string) =>
  world.git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads/worker");

for (const sandbox of ["on", "off"] as const) {
  describe(`submodules, sandbox ${sandbox}`, sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {}, () => {
    test("are there, also inner ones, and leave no trace where nothing was done in them", async () => {
      const world = withSubmodules(true);
      const isKept =
        'd="$(git rev-parse --git-dir)"; if git -C lib config core.fsmonitor evil || mv "$d/modules" "$d/moved" || mv "$d/modules/lib" "$d/modules/moved"; then exit 1; fi; ';
      const look =
        "test lib = $(cat lib/f.txt); test inner = $(cat lib/inner/f.txt); git -C lib status >&2; echo new > b.txt";
      const result = await world.run([sandbox === "on" ? isKept + look : look], { sandbox });
      assert.deepEqual(
        effectsOf(result),
        ["commit:applied", "merge:applied", "remove:applied"],
        result.reason,
      );
      assert.doesNotMatch(result.warnings.join(), /submodule/);
      assert.equal(existsSync(worktreeOf(result)), false);
      assert.equal(world.git(world.home, "status", "--porcelain"), "");
      for (const folder of [world.lib, join(world.lib, "inner")]) assert.equal(branchesOf(world, folder), "");
    });

    test("a commit in one is in the user's own copy, and the merge waits for a person", async () => {
      const world = withSubmodules();
      const work = `${NAMED} cd lib; echo two > f.txt; git commit -qam two; cd ..; echo new > b.txt`;
      const result = await world.run([work], { sandbox, finalize: { push: true } });
      assert.deepEqual(
        effectsOf(result),
        ["commit:applied", "submodule:applied", "merge:held"],
        details(result) + result.reason,
      );
      assert.equal(world.git(world.home, "status", "--porcelain"), "");
      assert.equal(world.git(world.home, "rev-list", "--count", "main"), "2");
      assert.equal(world.git(world.remote, "rev-parse", "main"), world.git(world.home, "rev-parse", "main"));
      // The commands that are told do what is meant.
      const detail = result.effects.find(({ kind }) => kind === "merge")!.detail;
      assert.match(detail, /moves submodules, whose commits others may not have \(lib to [0-9a-f]{10}\)/);
      const look = /Look at it with: (.*?); then by hand: /.exec(detail)![1]!;
      assert.match(world.shell(look), /\+two/);
      world.shell(/then by hand: (.*)$/.exec(detail)![1]!);
      assert.equal(world.git(world.home, "status", "--porcelain"), "");
      assert.equal(world.read("lib/f.txt"), "two\n");
      const pruned = await pruneWorktrees(world.journal, around(world));
      assert.deepEqual(
        pruned.map(({ done }) => done),
        ["removed"],
        JSON.stringify(pruned),
      );
      assert.equal(existsSync(worktreeOf(result)), false);
    });
  });
}

test("what is not committed in one is said, with the command, and the run goes on when it is", async () => {
  const world = withSubmodules(true);
  const result = await world.run(["echo two > lib/inner/f.txt; echo new > b.txt"]);
  assert.deepEqual([result.code, ...effectsOf(result)], ["FINALIZE_FAILED", "commit:failed"]);
  const [listed] = await listWorktrees(world.journal, around(world));
  assert.deepEqual(listed?.uncommitted, ["b.txt", "lib/inner/f.txt"]);
  const told = details(result);
  assert.match(told, /work in the submodule lib\/inner is not committed \(f\.txt\); commit it with: /);
  world.shell(/commit it with: (.*)$/m.exec(told)![1]!.replace("MESSAGE", "two"));
  const again = await world.resume(result);
  assert.match(details(again), /work in the submodule lib is not committed \(inner\)/);
  world.shell(/commit it with: (.*)$/m.exec(details(again))![1]!.replace("MESSAGE", "inner"));
  const last = await world.resume(result);
  assert.deepEqual(
    effectsOf(last),
    ["commit:applied", "submodule:applied", "submodule:applied", "merge:held"],
    details(last),
  );
  assert.equal(world.git(world.home, "status", "--porcelain"), "");
});

test("commits that a killed process brought without a branch get one", async () => {
  const world = withSubmodules();
  const work = `${NAMED} cd lib; echo two > f.txt; git commit -qam two; cd ..; git add lib; git commit -qm lib`;
  const broken = await world.run([work], { sandbox: "off", journal: breaking(world.journal, 1, true) });
  const inner = join(worktreeOf(broken), "lib");
  const commit = world.git(inner, "rev-parse", "HEAD");
  // As it is between the objects and the branch, with the folder that the commits came in.
  world.git(world.lib, "fetch", "-q", "--no-write-fetch-head", inner, "HEAD");
  const folder = join(
    world.home,
    ".git/modules/lib",
    `lockstep-${broken.worktree!.branch.replace("/", "-")}`,
  );
  mkdirSync(folder);
  const result = await world.resume(broken);
  assert.deepEqual(effectsOf(result), ["submodule:applied", "merge:held"], result.reason);
  assert.equal(world.git(world.lib, "rev-parse", branchesOf(world, world.lib)), commit);
  assert.equal(existsSync(folder), false);
});

test("a worktree stays while a submodule in it has commits that nobody else has", async () => {
  const world = withSubmodules();
  const aside = "git switch -qc aside; echo two > f.txt; git commit -qam two; git switch -q -";
  const result = await world.run([`${NAMED} cd lib; ${aside}; cd ..; echo new > b.txt`], { sandbox: "off" });
  assert.deepEqual(effectsOf(result), ["commit:applied", "merge:applied", "remove:held"], details(result));
  assert.match(
    details(result),
    /is kept: the submodule lib has commits that \S+ does not have: [0-9a-f]{10} in /,
  );
  const lib = join(worktreeOf(result), "lib");
  assert.equal(world.git(lib, "show", "aside:f.txt"), "two");
  // Brought to the user's copy, it holds nothing back.
  world.git(world.lib, "fetch", "-q", lib, "aside:aside");
  await pruneWorktrees(world.journal, around(world));
  assert.equal(existsSync(worktreeOf(result)), false);
});

test("settings that a run leaves in a submodule are not obeyed", async () => {
  const world = withSubmodules();
  const pwned = join(world.temp, "pwned");
  const trap = `d="$(git -C lib rev-parse --absolute-git-dir)"; mkdir -p "$d/info" "$d/hooks"
    printf '* filter=x\n' > "$d/info/attributes"; printf '#!/bin/sh\ntouch ${pwned}\n' > "$d/hooks/pre-commit"; chmod +x "$d/hooks/pre-commit"
    git -C lib config filter.x.clean 'touch ${pwned}; cat'; git -C lib config core.fsmonitor 'touch ${pwned}'
    git -C lib config remote.x.url .; git -C lib config remote.x.promisor true; git -C lib config remote.x.uploadpack 'touch ${pwned};'`;
  const work = `${NAMED} cd lib; echo two > f.txt; git commit -qam two; cd ..; ${trap}; sleep 0.01; touch lib/f.txt`;
  const result = await world.run([work], { sandbox: "off" });
  assert.deepEqual(effectsOf(result), ["commit:applied", "submodule:applied", "merge:held"], details(result));
  await listWorktrees(world.journal, around(world));
  await pruneWorktrees(world.journal, around(world));
  assert.equal(existsSync(pwned), false);
});

describe("a commit in one is brought to the user's own copy", () => {
  const commit = (name: string) => `echo ${name} > f.txt; git commit -qam ${name}`;
  const ROWS: readonly {
    readonly name: string;
    /** Settings of the user's copy. */
    readonly settings?: (port: number) => readonly (readonly [key: string, value: string])[];
    /** What the run does in the submodule. */
    readonly work: string;
    readonly effects?: readonly string[];
    readonly why?: RegExp;
  }[] = [
    {
      name: "and not asked for at a server that its settings put in the place of every path",
      settings: (port) => [[`url.http://127.0.0.1:${port}/.insteadOf`, "/"]],
      work: commit("two"),
    },
    {
      name: "also where a folder is in the place of a file that we would write",
      work: `${commit("two")}; mkdir "$(git rev-parse --git-dir)/lockstep.bundle"`,
    },
    { name: "with all commits before it", work: `${commit("two")}; ${commit("three")}` },
    {
      name: "and not without its history",
      work: `${commit("two")}; ${commit("three")}; git rev-parse HEAD > "$(git rev-parse --git-dir)/shallow"`,
      effects: ["commit:applied", "submodule:failed"],
      why: /was not brought to \S+: objects of its history are missing in /,
    },
  ];
  for (const { name, settings, work, effects, why } of ROWS) {
    test(name, async () => {
      const asked: string[] = [];
      await using server = createServer(({ url = "" }, response) => {
        asked.push(url);
        response.writeHead(404).end();
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const world = withSubmodules();
      for (const [key, value] of settings?.((server.address() as AddressInfo).port) ?? [])
        world.git(world.lib, "config", key, value);
      const kept = readdirSync(join(world.home, ".git/modules/lib"));
      const result = await world.run([`${NAMED} cd lib; ${work}`], { sandbox: "off" });
      assert.deepEqual(
        effectsOf(result),
        effects ?? ["commit:applied", "submodule:applied", "merge:held"],
        `${result.reason} ${details(result)}`,
      );
      assert.deepEqual(asked, []);
      assert.deepEqual(readdirSync(join(world.home, ".git/modules/lib")), kept);
      const branch = branchesOf(world, world.lib);
      if (why !== undefined) {
        assert.match(details(result), why);
        assert.equal(branch, "");
        return;
      }
      const tip = world.git(join(worktreeOf(result), "lib"), "rev-parse", "HEAD");
      assert.equal(world.git(world.lib, "rev-parse", branch), tip);
      world.git(world.lib, "fsck", "--connectivity-only");
    });
  }
});

test("a branch that moves a submodule is not pushed before its commit is", async () => {
  const world = withSubmodules();
  const work = `${NAMED} cd lib; echo two > f.txt; git commit -qam two; cd ..; git commit -qam up`;
  const result = await world.run([work], {
    branch: "mine",
    finalize: { autoMerge: false, push: true },
    sandbox: "off",
  });
  assert.deepEqual(effectsOf(result), ["submodule:applied", "push:held"], result.reason);
  const commit = world.git(join(worktreeOf(result), "lib"), "rev-parse", "HEAD");
  const hand = /then by hand: (.*)$/.exec(details(result))![1]!;
  world.shell(hand);
  assert.equal(world.git(join(world.temp, "lib.git"), "rev-parse", "mine"), commit);
  assert.match(world.git(world.remote, "ls-tree", "mine", "lib"), new RegExp(commit));
});

test("a worktree that was removed by hand is made again with its submodules", async () => {
  const world = withSubmodules();
  const result = await world.run([], { script: replies(["true"], world.env).slice(0, 1), sandbox: "off" });
  rmSync(worktreeOf(result), { recursive: true });
  const script = replies(["test lib = $(cat lib/f.txt); echo c > c.txt"], world.env);
  const again = await world.resume(result, { script, sandbox: "off" });
  assert.deepEqual(effectsOf(again), ["commit:applied", "merge:applied", "remove:applied"], again.reason);
  assert.equal(world.read("c.txt"), "c\n");
});

test("one that cannot be filled stays empty, and the reason and the command are said", async () => {
  const world = withSubmodules();
  world.shell("git submodule --quiet deinit -f lib");
  const result = await world.run(['test -z "$(ls lib)"; echo new > b.txt'], { sandbox: "off" });
  assert.equal(result.outcome, "completed", result.reason);
  const told = result.warnings.find((text) => text.includes("submodule")) ?? "";
  assert.match(
    told,
    /the submodule lib is empty in the worktree: it is not initialised in \S+. To have it: git -C/,
  );
  world.shell(/To have it: (.*)$/.exec(told)![1]!);
  assert.equal(world.read("lib/f.txt"), "lib\n");

  // The user's copy is older than what the project records.
  world.shell(`cd ../lib; echo three > f.txt; git commit -qam three; git push -q origin HEAD`);
  const newer = world.git(join(world.temp, "lib"), "rev-parse", "HEAD");
  world.shell(`git update-index --cacheinfo 160000,${newer},lib; git commit -qm newer`);
  const older = await world.run(['test -z "$(ls lib)"'], { sandbox: "off" });
  assert.match(older.warnings.join(), new RegExp(`its commit ${newer.slice(0, 10)} is not in `));

  // A folder that leads elsewhere is not taken for the user's copy.
  world.shell("mv lib ../lib-elsewhere; ln -s ../lib-elsewhere lib");
  const behind = await world.run(['test -z "$(ls lib)"'], { finalize: { autoMerge: false }, sandbox: "off" });
  assert.match(behind.warnings.join(), /the submodule lib is empty in the worktree: it is not initialised/);
});

test("one with a line break in its path stays empty, and no other repository is read for it", async () => {
  const world = withSubmodules();
  const path = `x\n${world.temp}/lib.git/objects\ny`;
  const folder = join(world.home, path);
  mkdirSync(dirname(folder), { recursive: true });
  world.git(world.home, "clone", "-q", join(world.temp, "lib.git"), folder);
  const commit = world.git(folder, "rev-parse", "HEAD");
  const index = `160000 ${commit} 0\t${path}\0`;
  const { status } = spawnSync("git", ["update-index", "-z", "--index-info"], {
    cwd: world.home,
    env: world.env,
    input: index,
  });
  assert.equal(status, 0);
  world.git(world.home, "commit", "-qm", "line break");
  const look = "test lib = $(cat lib/f.txt); echo new > b.txt";
  const result = await world.run([look], { finalize: { autoMerge: false }, sandbox: "off" });
  assert.deepEqual(readdirSync(join(worktreeOf(result), path)), [], result.reason);
  const told = result.warnings.filter((text) => text.includes("submodule"));
  assert.deepEqual(told, [
    `the submodule ${JSON.stringify(path)} is empty in the worktree: its path has control characters. To have it, rename it`,
  ]);
  assert.equal(existsSync(join(worktreeOf(result), "lib/f.txt")), true);
});

test("nothing is fetched or run for a submodule, whatever the project says about it", async () => {
  const world = withSubmodules();
  const pwned = join(world.temp, "pwned");
  const evil = `!touch ${pwned}`;
  writeFileSync(
    join(world.home, ".gitmodules"),
    `[submodule "lib"]\n\tpath = lib\n\turl = ext::sh -c touch% ${pwned}\n\tupdate = ${evil}\n[submodule "x"]\n\tpath = ../x\n\turl = ./x\n`,
  );
  world.git(world.home, "commit", "-qam", "evil");
  for (const [key, value] of [
    ["submodule.lib.update", evil],
    ["core.hooksPath", world.temp],
    ["filter.x.smudge", `touch ${pwned}`],
    ["core.fsmonitor", `touch ${pwned}`],
  ] as const)
    for (const folder of [world.home, world.lib]) world.git(folder, "config", key, value);
  writeFileSync(join(world.temp, "post-checkout"), `#!/bin/sh\ntouch ${pwned}\n`, { mode: 0o755 });
  writeFileSync(join(world.home, ".git/modules/lib/info/attributes"), "* filter=x\n");
  rmSync(pwned, { force: true });
  const result = await world.run(["cat lib/f.txt >/dev/null; echo new > b.txt"]);
  assert.equal(result.outcome, "completed", result.reason);
  assert.equal(existsSync(pwned), false);
  assert.equal(existsSync(join(world.temp, "x")), false);
  // By hand it would have been.
  world.shell(
    "git -C lib checkout --quiet -- . || true; rm lib/f.txt; git -C lib checkout --quiet -- f.txt || true",
  );
  assert.equal(existsSync(pwned), true);
});
