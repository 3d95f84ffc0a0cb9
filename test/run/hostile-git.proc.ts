/** Git that we call ourselves obeys the person at the machine, and nothing that came with a clone or that a run wrote. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { run, type Backend, type Result, type RunOptions } from "../../src/run/index.ts";
import { listWorktrees, pruneWorktrees } from "../../src/run/records/worktrees.ts";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { repository, WORKER, type Repository } from "./repository.ts";

const COMMIT = "echo new > b.txt; git add b.txt; git commit -qm work";
const LEAVE = "echo left > left.txt";
const states = ({ effects }: Result) => effects.map(({ kind, state }) => `${kind}:${state}`);
const details = ({ effects }: Result) => effects.map(({ detail }) => detail).join("\n");
const around = (world: Repository) => ({
  env: world.env,
  signal: new AbortController().signal,
  root: world.home,
  isOurs: true,
});

/** A program that leaves a trace outside of everything a run works in, and then does as it is given. */
function trap(world: Repository, name = "trap", then = "cat"): string {
  const file = join(world.temp, name);
  writeFileSync(file, `#!/bin/sh\ntouch ${world.temp}/PWNED\n${then}\n`, { mode: 0o755 });
  return file;
}
const isSprung = (world: Repository) => existsSync(join(world.temp, "PWNED"));

/** Answers every request with a wish for a password. */
let server: Server;
let port = 0;
before(async () => {
  server = createServer((_, response) => {
    response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
});
after(() => void server.close());

type Planted = {
  readonly name: string;
  /** Puts it into the clone. */
  readonly plant: (world: Repository) => void;
  readonly agent?: readonly string[];
  readonly options?: Partial<RunOptions>;
  readonly cwd?: string;
  /** Shows that it is a trap: a line of shell that springs it. null: plain git does what we do only in passing. */
  readonly springs: string | null;
  readonly warns?: RegExp;
  readonly code?: string | null;
};

const config =
  (...settings: readonly (readonly [string, (world: Repository) => string])[]) =>
  (world: Repository) => {
    for (const [key, value] of settings) world.git(world.home, "config", key, value(world));
  };
const committed = (world: Repository, path: string, text: string) => {
  world.write(path, text);
  world.git(world.home, "add", "-A");
  world.git(world.home, "commit", "-qm", path);
};

const PLANTED: readonly Planted[] = [
  {
    name: "a smudge and a clean filter",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      config(["filter.x.smudge", (one) => trap(one)], ["filter.x.clean", (one) => trap(one)])(world);
    },
    agent: [LEAVE],
    springs: "rm a.txt; git checkout a.txt",
    warns: /filter\.x\.smudge, filter\.x\.clean.*git config --global/,
  },
  {
    name: "a filter that stays running",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      config(["filter.x.process", (one) => trap(one, "trap", "exit 1")])(world);
    },
    agent: [LEAVE],
    springs: "rm a.txt; git checkout a.txt || true",
    warns: /filter\.x\.process/,
  },
  {
    name: "a filter in a file that the settings include",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      committed(world, "more.config", `[filter "x"]\n\tsmudge = ${trap(world)}\n`);
      config(["includeIf.gitdir:/.path", () => "../more.config"])(world);
    },
    springs: "rm a.txt; git checkout a.txt",
    warns: /filter\.x\.smudge/,
  },
  {
    name: "a filter that is put into an included file while the run goes on",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      committed(world, "more.config", "");
      config(["include.path", () => "../more.config"])(world);
      trap(world);
    },
    agent: [
      `printf '[filter "x"]\\n\\tclean = %s/trap\\n\\tsmudge = %s/trap\\n' "$HOME_TREE/.." "$HOME_TREE/.." > $HOME_TREE/more.config`,
      LEAVE,
    ],
    springs: "rm a.txt; git checkout a.txt",
    code: "FINALIZE_FAILED",
  },
  {
    name: "a filter that the settings include for worktrees only",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      committed(world, "more.config", '[includeIf "gitdir:**/worktrees/**"]\n\tpath = last.config\n');
      committed(world, "last.config", `[filter "x"]\n\tsmudge = ${trap(world)}\n\tclean = ${trap(world)}\n`);
      config(["includeIf.gitdir:**/worktrees/**.path", () => "../more.config"])(world);
    },
    agent: [LEAVE],
    springs: "git worktree add -q ../other",
    warns: /filter\.x\.smudge/,
  },
  {
    name: "a filter that the settings include for the branch of a run",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      committed(world, "more.config", `[filter "x"]\n\tsmudge = ${trap(world)}\n\tclean = ${trap(world)}\n`);
      config(["includeIf.onbranch:worker/**.path", () => "../more.config"])(world);
    },
    agent: [LEAVE],
    springs: "git checkout -q -b worker/x; rm a.txt; git checkout a.txt",
    warns: /filter\.x\.smudge/,
  },
  {
    name: "a filter in the settings of one worktree",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      config(["extensions.worktreeConfig", () => "true"])(world);
      world.git(world.home, "config", "--worktree", "filter.x.smudge", trap(world));
      world.git(world.home, "config", "--worktree", "filter.x.clean", trap(world));
    },
    agent: [LEAVE],
    springs: "rm a.txt; git checkout a.txt",
    warns: /filter\.x/,
  },
  {
    name: "settings behind a .git file",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt filter=x\n");
      config(["filter.x.smudge", (one) => trap(one)])(world);
      world.shell("mv .git ../kept && printf 'gitdir: ../kept\\n' > .git");
    },
    springs: "rm a.txt; git checkout a.txt",
    warns: /filter\.x\.smudge/,
  },
  {
    name: "a driver for merges",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt merge=x\n");
      config(["merge.x.driver", (one) => trap(one, "trap", "exit 0")])(world);
    },
    agent: [
      "echo two > a.txt; git commit -qam two",
      "git -C $HOME_TREE commit -q --allow-empty -m e; echo three > $HOME_TREE/a.txt; git -C $HOME_TREE commit -qam three",
    ],
    springs: null,
    warns: /merge\.x\.driver/,
    code: "FINALIZE_FAILED",
  },
  {
    name: "programs for differences",
    plant: (world) => {
      committed(world, ".gitattributes", "*.txt diff=x\n");
      config(["diff.x.textconv", (one) => trap(one)], ["diff.x.command", (one) => trap(one)])(world);
      config(["diff.external", (one) => trap(one)])(world);
    },
    agent: [COMMIT, LEAVE],
    springs: "echo two >> a.txt; git diff; git checkout -q a.txt",
  },
  {
    name: "hooks, a monitor and an editor",
    plant: (world) => {
      mkdirSync(join(world.home, "../hooks"));
      for (const hook of ["post-checkout", "pre-commit", "post-merge", "pre-push", "reference-transaction"])
        trap(world, `hooks/${hook}`, "exit 0");
      config(
        ["core.hooksPath", (one) => join(one.temp, "hooks")],
        ["core.fsmonitor", (one) => trap(one)],
        ["core.editor", (one) => trap(one)],
      )(world);
    },
    agent: ["true", LEAVE],
    options: { finalize: { push: true } },
    springs: "git commit -q --allow-empty -m x",
  },
  {
    name: "another program for SSH",
    plant: (world) => {
      config(
        ["core.sshCommand", (one) => trap(one, "trap", "exit 1")],
        ["remote.origin.url", () => "ssh://nobody@127.0.0.1:1/x.git"],
      )(world);
    },
    agent: [COMMIT],
    options: { finalize: { push: true } },
    springs: "git ls-remote || true",
    warns: /core\.sshcommand/,
    code: "FINALIZE_FAILED",
  },
  {
    name: "helpers that are asked for passwords",
    plant: (world) => {
      config(
        ["credential.helper", (one) => trap(one)],
        ["remote.origin.url", () => `http://127.0.0.1:${port}/x.git`],
      )(world);
      world.git(world.home, "config", `credential.http://127.0.0.1:${port}.helper`, trap(world));
    },
    agent: [COMMIT],
    options: { finalize: { push: true } },
    // The server is in this process, and could not answer. That a helper is asked is shown below.
    springs: null,
    warns: /credential\.helper.*credential\.http:\/\/127\.0\.0\.1:\d+\.helper/,
    code: "FINALIZE_FAILED",
  },
  {
    name: "programs at the other end",
    plant: (world) => {
      config(
        ["remote.origin.receivepack", (one) => trap(one, "trap", "exit 1")],
        ["remote.origin.uploadpack", (one) => trap(one, "trap", "exit 1")],
      )(world);
    },
    agent: [COMMIT],
    options: { finalize: { push: true } },
    springs: "git ls-remote origin || true",
    warns: /remote\.origin\.receivepack/,
  },
  {
    name: "objects that are fetched by a program of the repository when they are missing",
    plant: (world) => {
      config(
        ["extensions.partialClone", () => "origin"],
        ["remote.origin.promisor", () => "true"],
        ["remote.origin.uploadpack", (one) => trap(one, "trap", "exit 1")],
      )(world);
      world.shell("rm .git/objects/$(git rev-parse HEAD:a.txt | sed 's|^..|&/|')");
    },
    springs: "git cat-file -p HEAD:a.txt || true",
    code: "WORKTREE_UNAVAILABLE",
  },
  {
    name: "a remote inside of the project, with hooks",
    plant: (world) => {
      world.shell("git init -q --bare ../project/evil.git; git push -q ./evil.git main");
      writeFileSync(
        join(world.home, "evil.git/hooks/post-receive"),
        `#!/bin/sh\ntouch ${world.temp}/PWNED\n`,
        {
          mode: 0o755,
        },
      );
      world.write(".git/info/exclude", "evil.git\n");
      config(["remote.origin.url", () => "./evil.git"])(world);
    },
    agent: [COMMIT],
    options: { finalize: { push: true } },
    springs: "git commit -q --allow-empty -m x; git push -q origin main",
  },
  {
    name: "a folder of the project that looks like a repository",
    plant: (world) => {
      world.shell(
        "mkdir tools; git init -q --bare ../bare.git; cp -r ../bare.git/. tools/; git push -q ./tools main",
      );
      const settings = `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n[filter "x"]\n\tsmudge = ${trap(world)}\n\tclean = ${trap(world)}\n`;
      writeFileSync(join(world.home, "tools/config"), settings);
      writeFileSync(join(world.home, "tools/HEAD"), "ref: refs/heads/main\n");
      world.write("tools/info/attributes", "* filter=x\n");
      world.shell("cp -r .agent tools/.agent");
    },
    cwd: "tools",
    springs: "cd tools && git checkout -q -f main -- a.txt",
    code: "WORKTREE_UNAVAILABLE",
  },
];

describe("what a clone brings along", () => {
  for (const row of PLANTED) {
    test(row.name, async () => {
      const world = repository();
      row.plant(world);
      const { agent = [COMMIT], options = {}, cwd = "." } = row;
      // What somebody else does meanwhile is done by a command here, in a place that no confined command reaches.
      const isElsewhere = agent.some((line) => line.includes("$HOME_TREE"));
      const result = await world.run(agent, {
        ...options,
        ...(isElsewhere && { sandbox: "off" as const }),
        cwd: join(world.home, cwd),
      });
      assert.equal(isSprung(world), false, `${row.name}: it was obeyed`);
      assert.equal(result.code, row.code ?? null, `${result.reason} ${details(result)}`);
      if (row.warns !== undefined) assert.match(result.warnings.join("\n"), row.warns);
      await listWorktrees(world.journal, around(world));
      await pruneWorktrees(world.journal, around(world), { dryRun: true });
      assert.equal(isSprung(world), false, `${row.name}: it was obeyed by a listing`);
      if (row.springs === null) return;
      world.shell(row.springs);
      assert.equal(isSprung(world), true, `${row.name}: it is no trap, so nothing was shown`);
    });
  }

  test("files are not merged into another folder that its settings name", async () => {
    const world = repository();
    world.git(world.home, "config", "core.worktree", world.temp);
    writeFileSync(join(world.temp, "b.txt"), "mine\n");
    const result = await world.run([COMMIT.replaceAll("git ", "git --work-tree=. ")]);
    assert.equal(readFileSync(join(world.temp, "b.txt"), "utf8"), "mine\n");
    assert.equal(world.read("b.txt"), "new\n", details(result));
  });

  test("a filter that the repository cannot do without is not left out in silence", async () => {
    const world = repository();
    committed(world, ".gitattributes", "secret.txt filter=crypt\n");
    config(["filter.crypt.clean", () => "cat"], ["filter.crypt.required", () => "true"])(world);
    const result = await world.run(["echo plain > secret.txt"]);
    assert.deepEqual(states(result), ["commit:failed"]);
    assert.match(details(result), /clean filter 'crypt' failed/);
    assert.match(result.warnings.join("\n"), /filter\.crypt\.clean/);
  });
});

describe("what is the person's own", () => {
  /** Settings of the user. */
  const mine = (world: Repository, key: string, value: string) =>
    world.git(world.home, "config", "--global", key, value);

  test("a filter like that of git-lfs is run, also where the clone names another by the same name", async () => {
    for (const isOverruled of [false, true]) {
      const world = repository();
      committed(world, ".gitattributes", "*.big filter=lfs\n");
      mine(world, "filter.lfs.clean", "sed s/big/pointer/");
      mine(world, "filter.lfs.smudge", "sed s/pointer/big/");
      mine(world, "filter.lfs.required", "true");
      if (isOverruled)
        config(["filter.lfs.clean", (one) => trap(one)], ["filter.lfs.smudge", (one) => trap(one)])(world);
      const result = await world.run(["echo 'a big file' > x.big"]);
      assert.deepEqual(
        states(result),
        ["commit:applied", "merge:applied", "remove:applied"],
        details(result),
      );
      assert.equal(world.git(world.home, "cat-file", "-p", "main:x.big"), "a pointer file");
      assert.equal(world.read("x.big"), "a big file\n");
      assert.equal(isSprung(world), false);
    }
  });

  test("a helper for passwords and a program for SSH are asked", async () => {
    for (const [address, key] of [
      [`http://127.0.0.1:${port}/x.git`, "credential.helper"],
      [`http://127.0.0.1:${port}/x.git`, `credential.http://127.0.0.1:${port}.helper`],
      ["ssh://nobody@127.0.0.1:1/x.git", "core.sshCommand"],
    ] as const) {
      for (const isOverruled of [false, true]) {
        const world = repository();
        const asked = join(world.temp, "asked");
        writeFileSync(join(world.temp, "mine"), `#!/bin/sh\ntouch ${asked}\nexit 1\n`, { mode: 0o755 });
        mine(world, key, join(world.temp, "mine"));
        if (isOverruled) world.git(world.home, "config", key, trap(world));
        world.git(world.home, "remote", "set-url", "origin", address);
        const result = await world.run([COMMIT], { finalize: { push: true } });
        assert.deepEqual(states(result), ["merge:applied", "push:failed"]);
        assert.equal(existsSync(asked), true, `${key} ${isOverruled}: ${details(result)}`);
        assert.equal(isSprung(world), false);
      }
    }
  });
});

/** A repository inside of the project, recorded as part of it, with a filter of its own. Its files are changed. */
const NESTED = [
  "mkdir sub; cd sub; git init -q; git config user.name n; git config user.email n@example.invalid",
  `git config filter.x.clean "$HOME_TREE/../trap"; echo '* filter=x' > .gitattributes; echo one > f`,
  "git -c filter.x.clean=cat add -A; git -c filter.x.clean=cat commit -qm sub; cd ..",
  "git -c filter.x.clean=cat add sub 2>/dev/null",
].join("; ");

describe("a repository inside of the worktree", () => {
  const ROWS: readonly (readonly [name: string, lines: readonly string[], effects: readonly string[]])[] = [
    [
      "committed and changed",
      [`${NESTED}; git commit -qm nested; sleep 0.01; echo two > sub/f; touch sub/f`],
      ["merge:held"],
    ],
    ["staged only", [`${NESTED}; sleep 0.01; echo two > sub/f`], ["commit:applied", "merge:held"]],
    [
      "with a newer commit of its own, and other work left",
      [
        `${NESTED}; git commit -qm nested; cd sub; git -c filter.x.clean=cat commit -q --allow-empty -m more; sleep 0.01; echo two > f; cd ..; ${LEAVE}`,
      ],
      ["commit:applied", "merge:held"],
    ],
    [
      "named in .gitmodules as one to be looked at",
      [
        `${NESTED}; printf '[submodule "sub"]\\n\\tpath = sub\\n\\turl = ./sub\\n\\tignore = none\\n' > .gitmodules; git add .gitmodules; git commit -qm nested; sleep 0.01; echo two > sub/f`,
      ],
      ["merge:held"],
    ],
  ];
  for (const sandbox of ["off", "on"] as const) {
    for (const [name, lines, effects] of ROWS) {
      test(`${name}, sandbox ${sandbox}`, sandbox === "on" ? needs(hasBwrap, NO_BWRAP) : {}, async () => {
        const world = repository();
        trap(world);
        // The home of this test is not seen in the sandbox, so that the person has no name there.
        const known = "GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=n@e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=n@e";
        const named = lines.map((line) => `export ${known}; ${line}`);
        const result = await world.run(named, { sandbox });
        assert.equal(isSprung(world), false, "the filter was run outside");
        assert.deepEqual(states(result), effects, details(result));
        await listWorktrees(world.journal, around(world));
        await pruneWorktrees(world.journal, around(world));
        assert.equal(isSprung(world), false, "the filter was run by a listing");
        // Confined, it cannot even be left for the person's own git; else this shows that it is a trap.
        world.shell("git status >/dev/null", result.worktree!.path);
        assert.equal(isSprung(world), sandbox === "off", "git status by hand");
      });
    }
  }
});

test(
  "what was taken from a command is not committed, although a later command shows it to git",
  needs(hasBwrap, NO_BWRAP),
  async () => {
    const world = repository();
    const result = await world.run(
      [
        "mkdir .lockstep; echo x > .lockstep/id",
        "test -e lockstep-refused-.lockstep/refused/id; rm lockstep-refused-.lockstep/.gitignore; echo new > b.txt",
      ],
      { sandbox: "on" },
    );
    assert.deepEqual(states(result), ["commit:applied", "merge:applied", "remove:held"], details(result));
    assert.match(details(result), /is kept: .*lockstep-refused-\.lockstep/);
    const { branch } = result.worktree!;
    const files = world.git(world.home, "ls-tree", "-r", "--name-only", branch);
    assert.match(files, /^b\.txt$/m);
    assert.doesNotMatch(files, /lockstep-refused/);
  },
);

test(
  "a git index that is not understood ends the run, which goes on when it is put right",
  needs(hasBwrap, NO_BWRAP),
  async () => {
    for (const worktree of [true, false]) {
      const world = repository();
      // The command that was under way is done again when the run goes on.
      const spoil =
        'if test -e b.txt; then exit 0; fi; echo new > b.txt; truncate -s 60 "$(git rev-parse --git-dir)/index"';
      const result = await world.run([spoil], { sandbox: "on", worktree });
      assert.deepEqual(
        [result.code, result.exitCode, result.outcome, result.resumable],
        ["SANDBOX_UNAVAILABLE", 3, "failed", true],
        result.reason,
      );
      assert.match(result.reason, /index is not understood/);
      const tree = result.worktree?.path ?? world.home;
      world.shell('rm "$(git rev-parse --git-dir)/index"; git reset -q', tree);
      const again = await world.resume(result, { sandbox: "on" });
      assert.equal(again.outcome, "completed", again.reason);
    }
  },
);

test("nor does a run go on whose coding agent had the command done", needs(hasBwrap, NO_BWRAP), async () => {
  const world = repository();
  const usage = { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null };
  let asked = 0;
  const backend: Backend = {
    spec: { id: "agent", options: null },
    run: async ({ call, signal }) => {
      asked += 1;
      const { ok } = await call({ name: "Bash", input: { command: "truncate -s 60 .git/index" } }, signal);
      const output = { stepId: "initial.work", next_action: { action: "handoff" } };
      return { kind: "reply", text: String(ok), calls: [], output, usage };
    },
  };
  const here = { env: { ...world.env, LOCKSTEP_TRUST: "all" }, journal: world.journal };
  const result = await run({
    agent: WORKER,
    cwd: world.home,
    worktree: false,
    sandbox: "on",
    backend,
    ...here,
  });
  assert.deepEqual([result.code, result.exitCode, asked], ["SANDBOX_UNAVAILABLE", 3, 1], result.reason);
});

test(
  "nor is one left for the person's own git where the run works in place",
  needs(hasBwrap, NO_BWRAP),
  async () => {
    for (const sandbox of ["on", "off"] as const) {
      const world = repository();
      trap(world);
      const result = await world.run([NESTED, "sleep 0.01; echo two > sub/f"], { worktree: false, sandbox });
      assert.equal(result.outcome, "completed", result.reason);
      world.shell("git status >/dev/null");
      assert.equal(isSprung(world), sandbox === "off");
    }
  },
);

test("a repository inside that was there before keeps its settings", needs(hasBwrap, NO_BWRAP), async () => {
  for (const sandbox of ["on", "off"] as const) {
    const world = repository();
    trap(world);
    world.shell(`${NESTED.replaceAll("$HOME_TREE/../trap", "cat")}; git commit -qm nested`);
    const plant =
      'git -C sub config filter.x.clean "$HOME_TREE/../trap" || true; sleep 0.01; echo two > sub/f';
    const commit = "cd sub; git -c user.name=n -c user.email=n@e commit -qm more --allow-empty";
    const result = await world.run([commit, plant], { worktree: false, sandbox });
    assert.equal(result.outcome, "completed", result.reason);
    assert.equal(world.git(join(world.home, "sub"), "log", "-1", "--format=%s"), "more");
    world.shell("git status >/dev/null");
    assert.equal(isSprung(world), sandbox === "off");
  }
});
