/** The newest commit of real repositories, also of those that would have git run something. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { commitFaults } from "../../../src/effects/checks/check-commit.ts";
import { runProcess } from "../../../src/effects/process/process.ts";
import { programsFor } from "../../../src/run/world/programs.ts";
import { createShell } from "../../../src/effects/process/shell.ts";

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

describe("the form of a message", () => {
  const cases: readonly [message: string, faults: readonly RegExp[]][] = [
    ["fix: count the quantity", []],
    ["feat(cart): add a discount", []],
    ["feat(cart)!: take prices in cents", []],
    ["refactor!: drop the old names", []],
    ["build-ci(a/b, c): x", []],
    ["fix: x\n\nA body.\nOf two lines.", []],
    [`fix: ${"x".repeat(95)}`, []],
    ["", [/form/]],
    ["Count the quantity", [/form/]],
    ["fix:count", [/form/]],
    ["fix : count", [/form/]],
    ["fix: ", [/form/]],
    ["fix(): count", [/form/]],
    ["Fix: count", [/form/]],
    ["fix(a)(b): count", [/form/]],
    ["fix !: count", [/form/]],
    [": count", [/form/]],
    [" fix: count", [/form/]],
    [`fix: ${"x".repeat(96)}`, [/101 characters/]],
    ["fix: x\nA body at once.", [/second line/]],
    [`${"long ".repeat(30)}\nbody`, [/form/, /characters/, /second line/]],
  ];
  for (const [message, faults] of cases) {
    test(JSON.stringify(message.slice(0, 40)), () => {
      const found = commitFaults(message);
      assert.equal(found.length, faults.length, found.join("; "));
      for (const [place, fault] of faults.entries()) assert.match(found[place]!, fault);
    });
  }
});

function git(cwd: string, ...args: readonly string[]): void {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"];
  const { status, stderr } = spawnSync("git", [...identity, ...args], { cwd, encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

function repository(...messages: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-commit-"));
  made.push(folder);
  git(folder, "init", "-q", "-b", "main");
  for (const message of messages) git(folder, "commit", "-q", "--allow-empty", "-m", message);
  return folder;
}

function judge(cwd: string, env: NodeJS.ProcessEnv = process.env) {
  const shell = createShell({ cwd, env, exec: runProcess, git: programsFor(env, [cwd]).git });
  return shell.check(
    { kind: "commit-message", name: "said", pattern: "badly-said", description: "", timeoutMs: 60_000 },
    new AbortController().signal,
  );
}

test("the newest commit passes", async () => {
  const result = await judge(repository("nonsense", "fix(cart): count the quantity\n\nWhy."));
  assert.deepEqual(result, {
    name: "said",
    ok: true,
    pattern: "badly-said",
    summary: 'The newest commit is "fix(cart): count the quantity".',
    params: {},
  });
});

test("a bad message is told with what is wrong and how it should be", async () => {
  const result = await judge(repository("fix: good", "Fixed ünicode"));
  assert.deepEqual([result.ok, result.unrecoverable], [false, undefined]);
  const { commit, ...params } = result.params;
  assert.match(commit as string, /^[0-9a-f]{40}$/);
  assert.deepEqual(params, {
    commitMessage: "Fixed ünicode",
    problems: ['the first line does not have the form "type(scope)!: subject"'],
    expectedForm: "type(scope)!: subject",
    summary: result.summary,
  });
  assert.match(result.summary, /The newest commit is "Fixed ünicode": the first line does not have the form/);
});

test("a merge is passed over", async () => {
  const folder = repository("fix: start");
  git(folder, "checkout", "-q", "-b", "side");
  git(folder, "commit", "-q", "--allow-empty", "-m", "feat: side");
  git(folder, "checkout", "-q", "main");
  git(folder, "merge", "-q", "--no-ff", "side");
  assert.equal((await judge(folder)).ok, true);
});

test("a repository without commits can be helped", async () => {
  const result = await judge(repository());
  assert.deepEqual([result.ok, result.unrecoverable], [false, undefined]);
  assert.equal(result.summary, "There is no commit yet.");
});

test("what is no repository cannot", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-commit-"));
  made.push(folder);
  const result = await judge(folder, { ...process.env, GIT_DIR: repository("fix: x") });
  assert.deepEqual([result.ok, result.unrecoverable], [false, true]);
  assert.match(result.summary, /not a git repository/);
});

test("nor can a machine without git", async () => {
  const result = await judge(repository("fix: x"), { PATH: "/nonexistent" });
  assert.deepEqual([result.ok, result.unrecoverable], [false, true]);
});

test("an interrupted one settles", async () => {
  const { git } = programsFor(process.env, []);
  const shell = createShell({ cwd: repository("fix: x"), env: process.env, exec: runProcess, git });
  const check = { kind: "commit-message", name: "n", pattern: "p", description: "", timeoutMs: 1 } as const;
  const result = await shell.check(check, AbortSignal.abort());
  assert.deepEqual([result.ok, result.unrecoverable], [false, undefined]);
});

test("a repository that would have git run something runs nothing", async () => {
  const folder = repository("fix: x");
  const trap = join(folder, "trap.sh");
  writeFileSync(trap, "#!/bin/sh\ntouch pwned\ncat\n");
  chmodSync(trap, 0o755);
  const settings: readonly [string, string][] = [
    ["core.pager", trap],
    ["pager.rev-list", trap],
    ["core.fsmonitor", trap],
    ["core.hooksPath", folder],
    ["core.sshCommand", trap],
    ["core.editor", trap],
    ["log.showSignature", "true"],
    ["gpg.program", trap],
    ["diff.external", trap],
    ["alias.rev-list", `!${trap}`],
    ["protocol.ext.allow", "always"],
    ["remote.origin.url", `ext::${trap}`],
    ["remote.origin.promisor", "true"],
    ["extensions.partialClone", "origin"],
    ["core.repositoryformatversion", "1"],
  ];
  for (const [key, value] of settings) git(folder, "config", key, value);
  assert.equal((await judge(folder)).ok, true);
  // A commit that is not there would be fetched from the remote.
  writeFileSync(join(folder, ".git/refs/heads/main"), `${"1".repeat(40)}\n`);
  assert.equal((await judge(folder)).ok, false);
  assert.equal(existsSync(join(folder, "pwned")), false);
});
