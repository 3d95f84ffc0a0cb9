/** Repositories inside of the project that a command made for git to find outside, and files of git that are not files. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { needs } from "../needs.ts";
import { createMachine, hasBwrap, NO_BWRAP, type Machine } from "./confined.ts";

const bwrap = needs(hasBwrap, NO_BWRAP);

/** A repository in `$1` whose settings start a program, made with the options `$2`. */
const TRAP = `trap_in() { mkdir -p "$1" && (cd "$1" && git init -q $2 . && echo 1 > f && git add f && git commit -qm 1 &&
  git config core.fsmonitor "touch $PWNED; false"); }; `;

type Case = {
  readonly name: string;
  /** On the machine, before the command. */
  readonly before?: string;
  readonly command: string;
  /** Outcome: what was planted is moved away, or the command ends with a typed failure. */
  readonly ends: "moved" | "failed";
};

const CASES: readonly Case[] = [
  { name: "plain", command: "trap_in sub; git add sub", ends: "moved" },
  { name: "split index", command: "trap_in sub; git add sub; git update-index --split-index", ends: "moved" },
  {
    name: "split index, a file replaced by a repository",
    before: "echo 1 > sub; git add sub; git update-index --split-index",
    command:
      "rm sub; trap_in sub; git update-index --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git ls-files -s sub | grep 160000",
    ends: "moved",
  },
  {
    name: "names of objects by SHA-256",
    before: "rm -rf .git; git init -q --object-format=sha256 .; git add .; git commit -qm x",
    command: "trap_in sub --object-format=sha256; git add sub",
    ends: "moved",
  },
  {
    name: "version 4, with paths that share their beginning",
    command: "echo 1 > sua; trap_in sub; git add sua sub; git update-index --index-version 4",
    ends: "moved",
  },
  {
    name: "a path that is not UTF-8",
    command: 'd=$(printf "s\\377"); trap_in "$d"; git add "$d"',
    ends: "moved",
  },
  {
    name: "inside of a repository that was there",
    before: "git init -q m; cd m; echo 1 > g; git add g; git commit -qm 1; cd ..; git add m",
    command: "trap_in m/inner; cd m; git add inner",
    ends: "moved",
  },
  {
    name: "in the place of a submodule that was not fetched",
    before: "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub",
    command: "trap_in sub",
    ends: "moved",
  },
  { name: "the index is a pipe", command: "rm .git/index; mkfifo .git/index", ends: "failed" },
  { name: "the index is a device", command: "ln -sf /dev/zero .git/index", ends: "failed" },
  { name: "the index is a folder", command: "rm .git/index; mkdir .git/index", ends: "failed" },
  {
    name: "the index is cut short",
    command: "trap_in sub; git add sub; truncate -s 60 .git/index",
    ends: "failed",
  },
  {
    name: "the index is of an unknown version",
    command: "printf '\\0\\0\\0\\11' | dd of=.git/index bs=1 seek=4 conv=notrunc 2>/dev/null",
    ends: "failed",
  },
  { name: "the index has no end", command: "truncate -s 2G .git/index", ends: "failed" },
  {
    name: "the shared part is missing",
    command: "trap_in sub; git add sub; git update-index --split-index; rm .git/sharedindex.*",
    ends: "failed",
  },
];

function onHost({ project, home }: Machine, script: string) {
  const env = { PATH: process.env.PATH, HOME: home };
  return spawnSync("sh", ["-ec", script], { cwd: project, env, encoding: "utf8", timeout: 30_000 });
}

describe("a repository that a command planted is not found by git outside", { skip: bwrap.skip }, () => {
  for (const { name, before, command, ends } of CASES)
    test(name, async () => {
      using machine = createMachine();
      const pwned = join(machine.outside, "pwned");
      if (before !== undefined) {
        const { status, stderr } = onHost(machine, before);
        assert.equal(status, 0, stderr);
      }
      const { sh, close } = await machine.open();
      const result = sh(`${TRAP}${command}`, { PWNED: pwned });
      if (ends === "failed") await assert.rejects(result, { code: "SANDBOX_UNAVAILABLE", message: /\.git/ });
      else {
        const { exitCode, stderr } = await result;
        assert.equal(exitCode, 0, stderr);
        assert.match(
          stderr,
          /\.git is not for commands to make: it was moved away, to \S*\/lockstep-refused-\.git\/refused\]/,
        );
        onHost(machine, "git status --short; git diff");
        assert.equal(
          onHost(machine, "git add -A; git ls-files | grep -a lockstep-refused || true").stdout,
          "",
        );
        assert.equal(existsSync(pwned), false);
      }
      await close();
    });

  test("ordinary submodules keep working, and their settings stay", async () => {
    using machine = createMachine();
    const made = onHost(
      machine,
      `git init -q ../outside/lib; cd ../outside/lib; echo 1 > f; git add f; git commit -qm 1; cd "$OLDPWD"
       git -c protocol.file.allow=always submodule --quiet add ../outside/lib lib; git init -q plain; cd plain; echo 1 > g; git add g
       git commit -qm 1; cd ..; git add plain; git commit -qm subs; git update-index --split-index`,
    );
    assert.equal(made.status, 0, made.stderr);
    const { sh, close } = await machine.open();
    for (const folder of ["lib", "plain"]) {
      const work = await sh(
        `cd ${folder}; echo 2 > new; git add new; git commit -qm 2; cd ..; git add ${folder}; git commit -qm up`,
      );
      assert.equal(work.exitCode, 0, work.stderr);
      assert.doesNotMatch(work.stderr, /moved away/);
      const trap = await sh(`git -C ${folder} config core.fsmonitor evil`);
      assert.notEqual(trap.exitCode, 0);
    }
    await close();
    assert.equal(onHost(machine, "git status --short").stdout, "");
  });

  test("a file of git's place that lies in the project cannot be rewritten", async () => {
    using machine = createMachine();
    const made = onHost(
      machine,
      "git init -q --separate-git-dir store m; cd m; echo 1 > g; git add g; git commit -qm 1; cd ..; git add m",
    );
    assert.equal(made.status, 0, made.stderr);
    const { sh, close } = await machine.open();
    const { exitCode } = await sh("echo x >> store/config");
    await close();
    assert.notEqual(exitCode, 0);
    assert.doesNotMatch(readFileSync(join(machine.project, "store/config"), "utf8"), /^x$/m);
  });
});

describe("files of git that are not files keep nobody waiting", { skip: bwrap.skip }, () => {
  for (const [name, ends] of [
    [".git", "works"],
    [".git/commondir", "failed"],
    [".git/index", "failed"],
  ] as const)
    test(name, async () => {
      using machine = createMachine();
      rmSync(join(machine.project, name), { recursive: true, force: true });
      execFileSync("mkfifo", [join(machine.project, name)]);
      const { sh, close } = await machine.open();
      const result = sh("echo fine");
      if (ends === "failed")
        await assert.rejects(result, { code: "SANDBOX_UNAVAILABLE", message: /regular file/ });
      else assert.equal((await result).stdout, "fine\n");
      await close();
    });
});

describe("modules of git", { skip: bwrap.skip }, () => {
  const shapes: readonly (readonly [string, (modules: string) => void])[] = [
    [
      "thousands",
      (modules) => {
        for (let n = 0; n < 3000; n += 1) {
          mkdirSync(join(modules, String(n)));
          writeFileSync(join(modules, String(n), "HEAD"), "");
        }
      },
    ],
    [
      "very deep",
      (modules) => {
        execFileSync(
          "python3",
          ["-c", 'import os\nfor i in range(60):\n os.mkdir("d"*200); os.chdir("d"*200)'],
          { cwd: modules },
        );
      },
    ],
    [
      "not readable",
      (modules) => {
        mkdirSync(join(modules, "a"));
        chmodSync(join(modules, "a"), 0);
      },
    ],
  ];
  for (const [name, make] of shapes)
    test(name, async () => {
      using machine = createMachine();
      const modules = join(machine.project, ".git/modules");
      mkdirSync(modules);
      make(modules);
      const { sh, close } = await machine.open();
      const { exitCode, stdout, stderr } = await sh(
        "echo fine; echo x > own; git add own; git commit -qm own",
      );
      assert.equal(exitCode, 0, stderr);
      assert.equal(stdout, "fine\n");
      if (name !== "not readable") assert.notEqual((await sh("mkdir .git/modules/new")).exitCode, 0);
      await close();
      if (name === "not readable") chmodSync(join(modules, "a"), 0o700);
    });
});

/** The repository of a submodule `lib` in `$1`, with a hook and a setting that start a program. */
const MODULE = `module_in() { mkdir -p "$1/hooks" "$1/objects" "$1/refs"; echo "ref: refs/heads/main" > "$1/HEAD"
  printf "[core]\\n\\trepositoryformatversion = 0\\n\\tworktree = $2\\n\\tfsmonitor = touch $PWNED; :\\n[remote \\"origin\\"]\\n\\turl = $UPSTREAM\\n" > "$1/config"
  printf "#!/bin/sh\\ntouch $PWNED\\n" > "$1/hooks/post-checkout"; chmod +x "$1/hooks/post-checkout"; }; `;

/** Before the command, in the project; what the command does; where it ends. */
const MODULES: readonly (readonly [name: string, before: string, command: string, moved: RegExp | null])[] = [
  [
    "of a submodule that was not fetched",
    "",
    "module_in .git/modules/lib ../../../lib",
    /\.git\/modules is not for commands to make: it was moved away, to \S*\/lockstep-refused-modules\/refused\]/,
  ],
  [
    "behind a link",
    "",
    "module_in store/lib ../../lib; ln -s ../store .git/modules",
    /\.git\/modules is not for commands to make: it was moved away/,
  ],
  ["beside others", "mkdir -p .git/modules/group", "module_in .git/modules/lib ../../../lib", null],
  ["in a folder left empty", "mkdir -p .git/modules/lib", "module_in .git/modules/lib ../../../lib", null],
];

describe(
  "the repository of a submodule that a command planted is not used outside",
  { skip: bwrap.skip },
  () => {
    for (const [name, before, command, moved] of MODULES)
      test(name, async () => {
        using machine = createMachine();
        const upstream = join(machine.outside, "lib");
        const pwned = join(machine.outside, "pwned");
        const made = onHost(
          machine,
          `git init -q ${upstream}; cd ${upstream}; echo 1 > f; git add f; git commit -qm 1; cd "$OLDPWD"
         git -c protocol.file.allow=always submodule --quiet add ${upstream} lib; git commit -qm lib
         git submodule --quiet deinit -f lib; rm -rf .git/modules; ${before}`,
        );
        assert.equal(made.status, 0, made.stderr);
        const { sh, close } = await machine.open();
        const { stderr } = await sh(`${MODULE}${command}`, { PWNED: pwned, UPSTREAM: upstream });
        assert.match(stderr, moved ?? /Read-only file system/);
        await close();
        // What a warning of Lockstep says to do.
        onHost(
          machine,
          "rmdir .git/modules/* || true; git -c protocol.file.allow=always submodule update --init -- lib",
        );
        assert.equal(existsSync(pwned), false);
        assert.equal(readFileSync(join(machine.project, "lib/f"), "utf8"), "1\n");
      });
  },
);

describe("a submodule whose repository a command broke ends the run", { skip: bwrap.skip }, () => {
  for (const command of [
    "mv .git/modules/lib/HEAD own",
    "echo x > .git/modules/lib/HEAD",
    "ln -sf ../../HEAD .git/modules/lib/HEAD",
    "mv .git/modules/lib/objects own",
    "mv .git/modules/lib/refs own",
  ])
    test(command, async () => {
      using machine = createMachine();
      const made = onHost(machine, "mkdir .git/modules; git clone -q --bare . .git/modules/lib");
      assert.equal(made.status, 0, made.stderr);
      const { sh, close } = await machine.open();
      const code = "SANDBOX_UNAVAILABLE";
      await assert.rejects(sh(command), { code, message: /modules\/lib is not a repository any more/ });
      // Git would use what is put into it now.
      const later = await sh("mkdir .git/modules/lib/inner || echo x > .git/modules/lib/config");
      assert.match(later.stderr, /Read-only file system/);
      assert.equal(existsSync(join(machine.project, ".git/modules/lib/inner")), false);
      await close();
    });
});

test("a rebase that a command left unfinished is reported once", { skip: bwrap.skip }, async () => {
  using machine = createMachine();
  assert.equal(onHost(machine, "git commit -q --allow-empty -m second").status, 0);
  const { sh, close } = await machine.open();
  const left = await sh('GIT_SEQUENCE_EDITOR="sed -i 1ibreak" git rebase -i HEAD~1');
  assert.match(
    left.stderr,
    /an unfinished rebase is left in .*\.git\/rebase-merge: look at it before you continue it/,
  );
  const later = await sh("true");
  assert.doesNotMatch(later.stderr, /unfinished/);
  await close();
  assert.ok(readdirSync(join(machine.project, ".git")).includes("rebase-merge"));
});
