/** The files of a run as commits: taken in one working tree with few processes, and brought back in another. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { Git } from "../../src/effects/git/git.ts";
import { heldIn } from "../../src/effects/git/snapshot.ts";
import type { Blobs } from "../../src/engine/ports.ts";
import type { Tree } from "../../src/flow/event.ts";
import { createTree, restoreTree, type TreeOptions } from "../../src/run/tree.ts";
import { gitFor } from "../../src/run/world/worktree.ts";

const folder = mkdtempSync(join(tmpdir(), "lockstep-tree-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const never = new AbortController().signal;

const AS = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
const run = (top: string, ...args: readonly string[]) =>
  execFileSync("git", [...AS, ...args], { cwd: top, encoding: "utf8", stdio: "pipe" }).trim();

let past = 1e9;
/** So long ago that git need not look at the content again, each time in another second. */
const write = (top: string, file: string, text: string) => {
  past += 1;
  writeFileSync(join(top, file), text);
  utimesSync(join(top, file), past, past);
};

/** Two working trees of one repository, on two machines. */
async function machines(format: "sha1" | "sha256") {
  const at = mkdtempSync(join(folder, "m-"));
  const origin = join(at, "origin");
  mkdirSync(origin);
  run(origin, "init", "--quiet", "--initial-branch=main", `--object-format=${format}`);
  write(origin, "a.txt", "first\n");
  run(origin, "add", "--all");
  run(origin, "commit", "--quiet", "-m", "first");
  write(origin, "a.txt", "a line of a file that is long\n".repeat(200));
  write(origin, "b.txt", "b\n");
  run(origin, "add", "--all");
  run(origin, "commit", "--quiet", "-m", "second");
  const base = run(origin, "rev-parse", "HEAD");
  const stored = new Map<string, Uint8Array>();
  const blobs: Blobs = {
    put: (_, bytes) => {
      const name = String(stored.size);
      stored.set(name, bytes);
      return Promise.resolve(name);
    },
    get: (name) => Promise.resolve(stored.get(name) ?? null),
  };
  const calls: string[] = [];
  const machine = (name: string): TreeOptions => {
    const own = join(at, name);
    mkdirSync(own);
    const top = join(own, "tree");
    run(own, "clone", "--quiet", origin, top);
    for (const file of ["a.txt", "b.txt"]) write(top, file, readFileSync(join(top, file), "utf8"));
    const raw = gitFor({ env: process.env, signal: never }, [top], { run: "r" });
    const git: Git = (cwd, args, how) => {
      calls.push(args.find((arg) => /^[a-z]+(?:-[a-z]+)*$/.test(arg)) ?? "");
      return raw(cwd, args, how);
    };
    const place = { top, index: join(own, "tree.index"), carry: [], folder: own };
    return { git, run: "r", place, blobs, base, newest: null };
  };
  const [here, there] = [machine("here"), machine("there")];
  const tree = createTree(here, await heldIn(here.git, here.place));
  return { here, there, tree, calls, stored };
}

function standing(top: string) {
  const asked = (...args: readonly string[]) => {
    try {
      return run(top, ...args);
    } catch {
      return null;
    }
  };
  const files = readdirSync(top).filter((name) => name !== ".git");
  return {
    files: Object.fromEntries(files.map((name) => [name, readFileSync(join(top, name), "utf8")])),
    head: asked("rev-parse", "--verify", "--quiet", "HEAD"),
    branch: asked("symbolic-ref", "--quiet", "HEAD"),
    status: asked("status", "--porcelain"),
  };
}

const SITUATIONS: { readonly [what: string]: (top: string) => void } = {
  "that changed files": () => undefined,
  "that is on no branch": (top) => void run(top, "checkout", "--quiet", "--detach"),
  "that committed": (top) => {
    run(top, "add", "--all");
    run(top, "commit", "--quiet", "-m", "work");
  },
  "that is on another branch": (top) => void run(top, "switch", "--quiet", "-c", "other/name"),
  "whose branches are packed": (top) => void run(top, "pack-refs", "--all"),
  "that went back to an older commit": (top) => void run(top, "reset", "--quiet", "--hard", "HEAD~1"),
  "that began a branch without a commit": (top) => void run(top, "checkout", "--quiet", "--orphan", "empty"),
  "that cleared what nothing names": (top) => void run(top, "gc", "--quiet", "--prune=now"),
};

describe("the files of a run", () => {
  for (const format of ["sha1", "sha256"] as const)
    for (const [what, happens] of Object.entries(SITUATIONS).slice(0, format === "sha1" ? Infinity : 3))
      test(`${what} are the same elsewhere (${format})`, async () => {
        const { here, there, tree } = await machines(format);
        const { top } = here.place;
        write(top, "new.txt", "one\n");
        const first = await tree.snapshot();
        happens(top);
        const same = await tree.snapshot();
        write(top, "new.txt", "two\n");
        rmSync(join(top, "b.txt"), { force: true });
        const newest = await tree.snapshot();
        assert.ok(first !== null && newest !== null);
        for (const one of [first, same, newest].filter((tree): tree is Tree => tree !== null))
          await restoreTree(there, one);
        const [expected, found] = [standing(top), standing(there.place.top)];
        assert.equal(found.files["new.txt"], "two\n");
        assert.deepEqual({ ...found, status: null }, { ...expected, status: null });
        const after = await heldIn(there.git, there.place);
        assert.deepEqual(
          [after.tree, after.head, after.on],
          await heldIn(here.git, { ...here.place, index: join(here.place.folder, "fresh.index") }).then(
            ({ tree, head, on }) => [tree, head, on],
          ),
        );
      });

  test("are taken with four processes, and with one where nothing changed", async () => {
    const { here, tree, calls, stored } = await machines("sha1");
    const during = async (): Promise<readonly string[]> => {
      calls.length = 0;
      await tree.snapshot();
      return [...calls];
    };
    const long = readFileSync(join(here.place.top, "a.txt"), "utf8");
    write(here.place.top, "a.txt", `${long}and one more\n`);
    assert.deepEqual(await during(), ["add", "write-tree", "commit-tree", "pack-objects"]);
    assert.deepEqual(await during(), ["add"]);
    const [bundle] = stored.values();
    assert.ok(bundle!.length < 1000, `a small change of a long file takes ${bundle!.length} bytes`);
    run(here.place.top, "commit", "--quiet", "--allow-empty", "-m", "work");
    assert.deepEqual(await during(), ["rev-parse", "add", "write-tree", "commit-tree", "pack-objects"]);
    assert.deepEqual(await during(), ["add"]);
  });

  test("leave no name in the repository", async () => {
    const { here, tree } = await machines("sha1");
    write(here.place.top, "new.txt", "one\n");
    await tree.snapshot();
    assert.equal(run(here.place.top, "for-each-ref", "refs/lockstep"), "");
  });
});
