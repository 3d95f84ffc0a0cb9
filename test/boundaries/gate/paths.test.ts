import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createGround } from "../../../src/boundaries/gate/paths.ts";
import { createToolbox } from "../../../src/boundaries/tools/toolbox.ts";
import { stepWith } from "../step.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "lockstep-paths-")));
after(() => rmSync(base, { recursive: true, force: true }));

const SECRET = "canary of the outside";
const root = join(base, "root");
for (const folder of [
  "root/a/b",
  "root/.git/hooks",
  "root/.lockstep",
  "root/.agent/x",
  "root/secrets",
  "root/state",
]) {
  mkdirSync(join(base, folder), { recursive: true });
}
for (const folder of ["outside", "root-evil"]) {
  mkdirSync(join(base, folder));
  writeFileSync(join(base, folder, "secret.txt"), SECRET);
}
writeFileSync(join(root, "plain.txt"), "plain");
writeFileSync(join(root, ".git/config"), "[core]");
const links = {
  "link-out": "../outside",
  "link-file": "../outside/secret.txt",
  "link-abs": join(base, "outside"),
  "link-etc": "/etc",
  "link-up": "..",
  "link-chain": "link-out",
  "link-back": "../root-evil",
  "a/link": "../../outside",
  dangling: "../outside/new.txt",
  "dangling-in": "nowhere",
  loop: "loop",
  "link-root": ".",
  "link-git": ".git",
  "link-in": "a/b",
};
for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
symlinkSync(root, join(base, "alias"));

const toolbox = createToolbox({
  cwd: root,
  protect: ["secrets", "locked.txt", join(root, "absolute-lock")],
  env: () => ({}),
  autoResponse: "",
  exec: () => Promise.reject(new Error("no commands here")),
});

async function use(name: string, input: { file_path: string; [field: string]: string }) {
  const calls = [{ id: "1", name, input }];
  const [result] = await toolbox.call(
    stepWith({ mode: "bypassPermissions" }),
    calls,
    new AbortController().signal,
  );
  assert.ok(result);
  return result;
}

const outside = [
  "..",
  "../",
  "./..",
  "../.",
  "../outside/secret.txt",
  "../outside/new.txt",
  "../root-evil/secret.txt",
  "../new.txt",
  "../../../../../../../../etc/passwd",
  "a/../../outside/secret.txt",
  "a/b/../../../outside/secret.txt",
  "a/./.././../outside/secret.txt",
  "missing/../../outside/secret.txt",
  "plain.txt/../../outside/secret.txt",
  "..foo/../../outside/secret.txt",
  "/",
  "//",
  "/etc/passwd",
  "//etc/passwd",
  "/etc/../etc/passwd",
  "/etc/new-file",
  "/proc/self/environ",
  "/proc/self/cwd",
  "/proc/self/root/etc/passwd",
  "/dev/null",
  "/dev/stdin",
  "/tmp/x",
  join(base, "outside/secret.txt"),
  join(base, "root-evil/secret.txt"),
  `${root}/../outside/secret.txt`,
  `${root}-evil/secret.txt`,
  `${root}/a/../../outside/secret.txt`,
  base,
  "link-out",
  "link-out/secret.txt",
  "link-out/new.txt",
  "link-out/new/folder/x.txt",
  "link-out/../outside/secret.txt",
  "link-file",
  "link-abs/secret.txt",
  "link-abs/new.txt",
  "link-etc/passwd",
  "link-etc/hosts",
  "link-up",
  "link-up/outside/secret.txt",
  "link-up/new.txt",
  "link-chain/secret.txt",
  "link-chain/new.txt",
  "link-back/secret.txt",
  "a/link/secret.txt",
  "a/link/new.txt",
  "a/b/../link/secret.txt",
  "link-root/link-root/link-out/secret.txt",
  "link-root/../outside/secret.txt",
  "dangling",
  "dangling/x",
  "dangling-in",
  "loop",
  "loop/x",
  "\0",
  "plain.txt\0",
  "plain.txt\0.png",
  "../outside/secret.txt\0.txt",
  "a\nb",
  "a\rb",
  "\u001b[31mred",
  "a\u007fb",
  "a\u0085b",
  "~",
  "~/.ssh/id_rsa",
  "~/../outside/secret.txt",
  "plain.txt/x",
  "a".repeat(300),
  "a/".repeat(5_000) + "x",
  "../".repeat(5_000) + "etc/passwd",
];

const shielded = [
  ".git",
  ".git/config",
  ".git/hooks/pre-commit",
  ".git/info/attributes",
  "./.git/config",
  "a/../.git/config",
  `${root}/.git/config`,
  join(base, "alias/.git/config"),
  ".GIT/config",
  ".Git/config",
  ".git./config",
  ".git /config",
  ".git . ./config",
  ".git::$INDEX_ALLOCATION/config",
  ".git:x",
  ".git\\config",
  "GIT~1/config",
  ".g\u200cit/config",
  ".git\u200b/config",
  "\ufeff.git/config",
  "\uff0egit/config",
  "sub/.git",
  "sub/.git/config",
  "a/b/.git/hooks/post-checkout",
  "link-git/config",
  "link-git/hooks/new",
  "link-root/.git/config",
  "link-in/.git",
  ".lockstep",
  ".lockstep/runs.db",
  ".LOCKSTEP/runs.db",
  "sub/.lockstep/x",
  ".agent",
  ".agent/x/agent.json",
  ".agent/new",
  ".Agent/x/agent.json",
  "./.agent/x/steps_registry.json",
  "link-root/.agent/x/agent.json",
  "secrets",
  "secrets/key.pem",
  "secrets/new/key.pem",
  "a/../secrets/key.pem",
  "link-root/secrets/key.pem",
  "locked.txt",
  "absolute-lock",
  "absolute-lock/x",
];

const good = [
  "a.txt",
  "new/folder/deep/a.txt",
  "..foo",
  "..dir/..bar",
  "...",
  "foo..",
  "a..b",
  ".hidden",
  ".env",
  ".github/workflows/ci.yml",
  ".gitignore",
  ".gitattributes",
  ".git-blame-ignore-revs",
  ".gitx/config",
  "git/config",
  "x.git",
  ".lockstep.md",
  "lockstep/x",
  ".agents/x",
  "agent/x",
  "packages/a/.agent/x",
  "secrets.md",
  "secrets-too/x",
  "locked.txt.bak",
  "-rf",
  "--help",
  "a b  c.txt",
  "$HOME/x",
  "$(id)",
  "`id`",
  "$&",
  "a;b|c&d",
  "a'b\"c",
  "*?[slug]{a,b}.tsx",
  "a\\b",
  "..\\outside",
  "%2e%2e/outside",
  "file:name",
  "constructor",
  "__proto__",
  "~foo",
  "backup~",
  "ünïcödé/ß.txt",
  "日本語.md",
  "🙂.ts",
  "CON",
  "link-in/x",
  "link-root/y",
  "a/b/../c.txt",
  "./././z",
  `${root}/by-absolute-path`,
  join(base, "alias/by-alias"),
  "d/".repeat(50) + "x",
  "n".repeat(255),
];

describe(`${outside.length} paths that lead out`, () => {
  for (const path of outside) {
    test(JSON.stringify(path.slice(0, 60)), async () => {
      const before = snapshot();
      for (const result of [
        await use("Read", { file_path: path }),
        await use("Write", { file_path: path, content: "x" }),
        await use("Edit", { file_path: path, old_string: "canary", new_string: "x" }),
      ]) {
        assert.equal(result.ok, false);
        assert.ok(result.denied, "it is the boundary that says no");
        assert.doesNotMatch(result.content, /canary/);
      }
      for (const name of ["Glob", "Grep"]) {
        const calls = [{ id: "1", name, input: { pattern: name === "Glob" ? "**" : "canary", path } }];
        const [result] = await toolbox.call(stepWith({}), calls, new AbortController().signal);
        assert.equal(result?.ok, false);
        assert.doesNotMatch(result?.content ?? "", /secret\.txt:/);
      }
      assert.ok(toolbox.judge(stepWith({}), { name: "Read", input: { file_path: path } }, null));
      assert.deepEqual(snapshot(), before);
    });
  }
});

describe(`${shielded.length} paths that may not be written`, () => {
  for (const path of shielded) {
    test(JSON.stringify(path), async () => {
      const before = snapshot();
      const written = await use("Write", { file_path: path, content: "x" });
      assert.ok(written.denied);
      const edited = await use("Edit", { file_path: path, old_string: "[core]", new_string: "x" });
      assert.ok(edited.denied);
      assert.ok(toolbox.judge(stepWith({}), { name: "NotebookEdit", input: { notebook_path: path } }, null));
      assert.deepEqual(snapshot(), before);
    });
  }

  test("they may be read", async () => {
    assert.match((await use("Read", { file_path: ".git/config" })).content, /\[core\]/);
  });

  test("a control folder that is a link is guarded where it really is", () => {
    const other = join(base, "other");
    mkdirSync(join(other, "state"), { recursive: true });
    symlinkSync("state", join(other, ".lockstep"));
    const ground = createGround(other, []);
    assert.equal(ground.writing("state/runs.db").kind, "refused");
    assert.equal(ground.writing(".lockstep/runs.db").kind, "refused");
    assert.equal(ground.writing("stately").kind, "inside");
  });

  test("a working directory below a control folder is not guarded as a whole", () => {
    const worktree = join(base, "outer/.lockstep/worktrees/one");
    mkdirSync(worktree, { recursive: true });
    const ground = createGround(worktree, []);
    assert.equal(ground.writing("src/a.ts").kind, "inside");
    assert.equal(ground.writing(join(worktree, "src/a.ts")).kind, "inside");
    assert.equal(ground.writing(".git").kind, "refused");
  });
});

describe(`${good.length} good names`, () => {
  for (const [index, path] of good.entries()) {
    test(JSON.stringify(path.slice(0, 60)), async () => {
      const content = `good ${index}`;
      assert.equal((await use("Write", { file_path: path, content })).ok, true);
      assert.equal((await use("Read", { file_path: path })).content, `     1\t${content}`);
    });
  }
});

test("nothing outside was touched", () => {
  assert.deepEqual(readdirSync(join(base, "outside")), ["secret.txt"]);
  assert.equal(readFileSync(join(base, "outside/secret.txt"), "utf8"), SECRET);
  assert.equal(readFileSync(join(base, "root-evil/secret.txt"), "utf8"), SECRET);
  assert.equal(readFileSync(join(root, ".git/config"), "utf8"), "[core]");
});

test("a working directory that is gone refuses everything", () => {
  const ground = createGround(join(base, "gone"), []);
  assert.equal(ground.reading("x").kind, "refused");
  assert.equal(ground.writing("x").kind, "refused");
});

/** Every name in the world of this test; links are names and not ways. */
function snapshot(folder = base): readonly string[] {
  const entries = readdirSync(folder, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
  return entries.map((entry) => join(folder, entry.name)).concat(folders.flatMap((path) => snapshot(path)));
}
