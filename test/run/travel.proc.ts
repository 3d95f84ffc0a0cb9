/** The files of a run that travels: settled where it is submitted, made where it is driven, stored after every change. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, relative } from "node:path";
import { describe, test } from "node:test";
import { RunnerError, type Blobs } from "../../src/engine/ports.ts";
import type { Entry, Event, Source, Tree } from "../../src/flow/event.ts";
import { load } from "../../src/run/load.ts";
import { openTravelPlace, type TravelPlace } from "../../src/run/source-place.ts";
import { findSource, travellingPlace, type FoundSource, type SourceKind } from "../../src/run/source.ts";
import { newestTree } from "../../src/run/tree.ts";
import type { WorktreeOptions } from "../../src/run/world/worktree.ts";
import { repository, WORKER, type Repository } from "./repository.ts";

function memoryBlobs(): Blobs & { readonly all: Map<string, Uint8Array> } {
  const all = new Map<string, Uint8Array>();
  return {
    all,
    put: async (_run, bytes) => {
      const digest = createHash("sha256").update(bytes).digest("hex");
      all.set(digest, Uint8Array.from(bytes));
      return digest;
    },
    get: async (digest) => all.get(digest) ?? null,
  };
}

const signal = new AbortController().signal;
const RUN = "abcdef0123";
const find = (world: Repository, kind: SourceKind, options: WorktreeOptions = {}, cwd = world.home) =>
  findSource(kind, cwd, options, { env: world.env, signal });

async function flowOf(world: Repository) {
  const { flow } = await load(WORKER, { cwd: world.home });
  return flow!;
}

type Placing = {
  readonly found: FoundSource;
  readonly blobs: Blobs;
  readonly work: string;
  readonly newest?: Tree | null;
  readonly options?: WorktreeOptions;
  readonly repositories?: readonly string[];
  readonly change?: (started: Event & { type: "run.started" }) => Event & { type: "run.started" };
};

/** Opens the place of the run in a folder of a worker, as its record says. */
async function place(world: Repository, placing: Placing): Promise<TravelPlace> {
  const { found, blobs, work, newest = null, options = {}, change = (started) => started } = placing;
  const flow = await flowOf(world);
  if (found.bundle !== null) await blobs.put(RUN, found.bundle);
  const { cwd, worktree } = travellingPlace(flow, options, found, RUN);
  const started: Event & { type: "run.started" } = {
    type: "run.started",
    run: RUN,
    agent: WORKER,
    flow: "",
    args: {},
    input: "",
    cwd,
    ...(worktree !== undefined && { worktree }),
    source: found.source,
    backend: { id: "scripted", options: null },
  };
  return await openTravelPlace({
    work: join(world.temp, work),
    started: change(started),
    newest,
    flow,
    blobs,
    repositories: placing.repositories ?? ["file://**"],
    env: world.env,
    signal,
  });
}

/** Every file with its content and whether it can be executed, without what git keeps. */
function filesIn(folder: string): { readonly [path: string]: string } {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/(?:^|\/)\.git(?:\/|$)/.test(relative(folder, path)))
    .toSorted();
  return Object.fromEntries(
    all.map((path) => {
      const mode = (lstatSync(path).mode & 0o100) === 0 ? "-" : "x";
      return [relative(folder, path), `${mode} ${readFileSync(path, "latin1")}`];
    }),
  );
}

async function refusal(work: Promise<unknown>): Promise<RunnerError> {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof RunnerError, String(error));
    return error;
  }
  return assert.fail("it was not refused");
}

describe("what is submitted", () => {
  const CASES: readonly {
    readonly name: string;
    readonly kind?: SourceKind;
    readonly before: (world: Repository) => void;
    readonly options?: WorktreeOptions;
    readonly says: readonly RegExp[];
  }[] = [
    {
      name: "a file that is not committed",
      before: (world) => world.write("new.txt", "x"),
      says: [/new\.txt is not committed/, /--bundle/],
    },
    {
      name: "a commit that was not pushed",
      before: (world) => world.shell("git commit -q --allow-empty -m more"),
      says: [/does not have the commit/, /git -C \S+ push origin main/, /--bundle/],
    },
    {
      name: "no remote",
      before: (world) => world.git(world.home, "remote", "remove", "origin"),
      says: [/has no remote/, /--bundle/],
    },
    {
      name: "a password in the address",
      before: (world) =>
        world.git(
          world.home,
          "remote",
          "set-url",
          "origin",
          ["https://me", "hunter2@example.invalid/a"].join(":"),
        ),
      says: [/holds a password/],
    },
    {
      name: "no branch",
      before: (world) => world.shell("git checkout -q --detach"),
      says: [/detached/, /--base-branch/],
    },
    {
      name: "more than a bundle may hold",
      kind: "bundle",
      before: (world) => world.shell("git remote remove origin; head -c 17000000 /dev/urandom > big"),
      says: [/17 MB as a bundle/, /without --bundle/],
    },
  ];
  for (const { name, kind = "git", before, options, says } of CASES)
    test(`is refused: ${name}`, async () => {
      const world = repository({ execution: {} });
      before(world);
      const { code, message } = await refusal(find(world, kind, options));
      assert.equal(code, "FLEET_NO_SOURCE");
      for (const one of says) assert.match(message, one);
      assert.doesNotMatch(message, /hunter2/);
    });

  const WRITTEN: readonly [written: string, instead: string, recorded: string][] = [
    ["https://github.com/acme/a.git", "https://github.com/", "https://github.com/acme/a.git"],
    ["git@github.com:acme/a", "git@github.com:", "git@github.com:acme/a"],
    ["gh:acme/a", "gh:", "https://mirror.invalid/acme/a"],
    ["https://other.invalid/a", "gh:", "https://other.invalid/a"],
  ];
  for (const [written, instead, recorded] of WRITTEN)
    test(`the remote ${written} with insteadOf ${instead} is recorded as ${recorded}`, async () => {
      const world = repository({ execution: {} });
      world.git(world.home, "config", "url.https://mirror.invalid/.insteadOf", instead);
      world.git(world.home, "remote", "set-url", "origin", written);
      for (const kind of ["git", "bundle"] as const) {
        const { source } = await find(world, kind);
        assert.deepEqual("remote" in source && source.remote, { name: "origin", url: recorded });
      }
    });

  test("a folder without a repository needs --no-files", async () => {
    const world = repository({ isRepository: false, execution: {} });
    assert.match((await refusal(find(world, "git"))).message, /--no-files/);
    assert.deepEqual((await find(world, "none")).source, { kind: "none" });
  });

  const RESULTS: readonly [finalize: WorktreeOptions["finalize"], code: string | null][] = [
    [{}, "FLEET_NO_HOME"],
    [{ push: true }, null],
    [{ createPr: true }, null],
    [{ autoMerge: false }, null],
  ];
  for (const [finalize, code] of RESULTS)
    test(`a result ${JSON.stringify(finalize)} is ${code === null ? "taken" : "refused"}`, async () => {
      const world = repository();
      const found = await find(world, "git");
      const flow = await flowOf(world);
      const plan = () => travellingPlace(flow, { finalize: finalize! }, found, RUN);
      if (code === null) assert.deepEqual([plan().cwd, plan().worktree?.path], [".", "tree"]);
      else assert.throws(plan, { code });
    });
});

describe("where it is driven", () => {
  const KINDS: readonly [kind: SourceKind, isDirty: boolean][] = [
    ["git", false],
    ["bundle", false],
    ["bundle", true],
  ];
  for (const [kind, isDirty] of KINDS)
    test(`a ${kind}${isDirty ? " with what is not committed" : ""} gives the same files`, async () => {
      const world = repository({ execution: {} });
      world.write("sub/tool.sh", "#!/bin/sh\n");
      chmodSync(join(world.home, "sub/tool.sh"), 0o755);
      world.write(".gitignore", "ignored\n");
      world.shell("git add -A; git commit -qm more; git push -q origin main");
      if (isDirty) {
        world.shell("rm a.txt; echo changed >> sub/tool.sh; echo new > sub/new; echo '' > 'odd name'");
      }
      const submitted = filesIn(world.home);
      world.write("ignored", "x");
      const status = world.git(world.home, "status", "--porcelain", "--untracked-files=all");
      const blobs = memoryBlobs();
      const found = await find(world, kind, {}, join(world.home, "sub"));
      const placed = await place(world, { found, blobs, work: "one" });
      const top = join(world.temp, "one/runs", RUN, "home");
      assert.deepEqual(filesIn(top), submitted);
      assert.equal(placed.cwd, join(top, "sub"));
      assert.equal(placed.root, top);
      assert.equal(world.git(top, "rev-parse", "HEAD"), world.git(world.home, "rev-parse", "HEAD"));
      assert.equal(world.git(top, "status", "--porcelain", "--untracked-files=all"), status);
      assert.equal(await placed.snapshot(), null);
      // Nothing of it is left in the repository of the user.
      assert.equal(world.git(world.home, "for-each-ref", "refs/lockstep"), "");
    });

  test("a bundle of a large repository holds what the remote does not have", async () => {
    const world = repository({ execution: {} });
    world.shell(
      "head -c 17000000 /dev/urandom > big; git add -A; git commit -qm big; git push -q origin main",
    );
    world.write("a.txt", "changed");
    const found = await find(world, "bundle");
    assert.ok(found.bundle!.length < 10_000);
    const placed = await place(world, { found, blobs: memoryBlobs(), work: "one" });
    assert.deepEqual(filesIn(placed.cwd), filesIn(world.home));
  });

  test("without files it is an empty folder", async () => {
    const world = repository({ execution: {} });
    const blobs = memoryBlobs();
    const found = await find(world, "none");
    const placed = await place(world, { found, blobs, work: "one" });
    assert.deepEqual(filesIn(placed.cwd), {});
    writeFileSync(join(placed.cwd, "made"), "here");
    const newest = await placed.snapshot();
    const other = await place(world, { found, blobs, work: "two", newest });
    assert.deepEqual(filesIn(other.cwd), { made: "- here" });
  });

  const FORBIDDEN: readonly [
    name: string,
    change: (source: Source) => Source,
    repositories: readonly string[] | undefined,
    code: string,
  ][] = [
    ["no pattern matches", (source) => source, ["https://**"], "REPOSITORY_FORBIDDEN"],
    [
      "an option in the place of an address",
      (source) => ({ ...source, remote: { name: "origin", url: "--upload-pack=touch" } }) as Source,
      undefined,
      "REPOSITORY_FORBIDDEN",
    ],
    [
      "an option in the place of a commit",
      (source) => ({ ...source, commit: "--upload-pack=x" }) as Source,
      undefined,
      "WORKTREE_UNAVAILABLE",
    ],
    [
      "a commit that the remote does not have",
      (source) => ({ ...source, commit: "a".repeat(40) }) as Source,
      undefined,
      "WORKTREE_UNAVAILABLE",
    ],
    [
      "a remote with the name of a setting",
      (source) => ({ ...source, remote: { name: "x.y\nz", url: "https://example.invalid/a" } }) as Source,
      undefined,
      "WORKTREE_UNAVAILABLE",
    ],
    [
      "a branch that leads elsewhere",
      (source) => ({ ...source, branch: "../../x" }) as Source,
      undefined,
      "WORKTREE_UNAVAILABLE",
    ],
  ];
  for (const [name, change, repositories, code] of FORBIDDEN)
    test(`is refused: ${name}`, async () => {
      const world = repository({ execution: {} });
      const found = await find(world, "git");
      const changed = { ...found, source: change(found.source) };
      const placing = { found: changed, blobs: memoryBlobs(), work: "one" };
      const refused = await refusal(place(world, { ...placing, ...(repositories && { repositories }) }));
      assert.equal(refused.code, code);
    });

  for (const [name, more] of Object.entries({
    "an id that is a path": { run: "../../x" },
    "a folder outside of its files": { cwd: "../x" },
    "an absolute folder": { cwd: "/etc" },
  }))
    test(`is refused: ${name}`, async () => {
      const world = repository({ execution: {} });
      const found = await find(world, "git");
      const change = (started: Event & { type: "run.started" }) => ({ ...started, ...more });
      const refused = await refusal(place(world, { found, blobs: memoryBlobs(), work: "one", change }));
      assert.equal(refused.code, "WORKTREE_UNAVAILABLE");
      assert.equal(existsSync(join(world.temp, "x")), false);
    });
});

describe("a bundle", () => {
  const ALLOWED: readonly [push: boolean, repositories: readonly string[], code: string | null][] = [
    [false, ["https://**"], null],
    [true, ["https://**"], "REPOSITORY_FORBIDDEN"],
    [true, ["file://**"], null],
  ];
  for (const [push, repositories, code] of ALLOWED)
    test(`of a run that ${push ? "pushes" : "pushes nothing"}, on a worker that serves ${repositories.join()}`, async () => {
      const world = repository({ execution: { worktree: { enabled: true } } });
      const found = await find(world, "bundle");
      const options = { finalize: { push, autoMerge: false } };
      const placing = place(world, { found, blobs: memoryBlobs(), work: "one", options, repositories });
      if (code !== null) assert.equal((await refusal(placing)).code, code);
      else {
        const { cwd } = await placing;
        assert.equal(world.git(cwd, "remote"), push ? "origin" : "");
      }
    });

  for (const isDangling of [false, true])
    test(`whose folder is a link ${isDangling ? "to nothing" : "out of it"} is refused`, async () => {
      const world = repository({ execution: {} });
      const outside = join(world.temp, "outside");
      if (!isDangling) mkdirSync(outside);
      symlinkSync(outside, join(world.home, "link"));
      const found = await find(world, "bundle");
      const change = (started: Event & { type: "run.started" }) => ({ ...started, cwd: "link" });
      const refused = await refusal(place(world, { found, blobs: memoryBlobs(), work: "one", change }));
      assert.equal(refused.code, "WORKTREE_UNAVAILABLE");
      assert.equal(existsSync(outside), !isDangling);
    });
});

describe("a snapshot", () => {
  const KINDS: readonly [what: string, execution: object, options: WorktreeOptions][] = [
    ["in its files", {}, {}],
    ["in a worktree", { worktree: { enabled: true } }, { finalize: { push: true } }],
  ];
  for (const [what, execution, options] of KINDS) {
    test(`of a run ${what} is restored elsewhere: files, commits and branch`, async () => {
      const world = repository({ execution });
      const blobs = memoryBlobs();
      const found = await find(world, "git");
      const one = await place(world, { found, blobs, work: "one", options });
      world.shell(
        "echo two > a.txt; git commit -qam two; echo three > b.txt; rm -r .agent/worker/prompts",
        one.cwd,
      );
      const before = filesIn(one.cwd);
      const tree = await one.snapshot();
      assert.ok(tree !== null);
      assert.equal(await one.snapshot(), null, "nothing changed since");
      const two = await place(world, { found, blobs, work: "two", options, newest: tree });
      assert.deepEqual(filesIn(two.cwd), before);
      const differs = `export GIT_INDEX_FILE=${world.temp}/index; git read-tree ${tree.commit}; git add -A; git diff --cached --stat ${tree.commit}`;
      assert.equal(world.shell(differs, two.cwd), "");
      for (const asked of ["log --format=%H", "symbolic-ref HEAD", "status --porcelain"])
        assert.equal(world.git(two.cwd, ...asked.split(" ")), world.git(one.cwd, ...asked.split(" ")), asked);
      // What it adds there is stored upon the same base, and is there where it began.
      world.shell("git add -A; git commit -qm more; echo four > c.txt", two.cwd);
      const next = await two.snapshot();
      const three = await place(world, { found, blobs, work: "one", options, newest: next });
      assert.deepEqual(filesIn(three.cwd), filesIn(two.cwd));
      assert.equal(world.git(three.cwd, "rev-parse", "HEAD"), world.git(two.cwd, "rev-parse", "HEAD"));
    });

    test(`of a run ${what} undoes what a call that was cut off has left`, async () => {
      const world = repository({ execution });
      const blobs = memoryBlobs();
      const found = await find(world, "git");
      const one = await place(world, { found, blobs, work: "one", options });
      for (const [newest, mark] of [
        [null, "the source"],
        [await stored(one, () => world.shell("echo two > a.txt; echo x > made", one.cwd)), "a snapshot"],
      ] as const) {
        const again = await place(world, {
          found,
          blobs,
          work: newest === null ? "two" : "one",
          options,
          newest,
        });
        const before = filesIn(again.cwd);
        world.shell(
          "echo half > a.txt; rm -rf made .agent; mkdir -p deep/er; echo x > deep/er/file; git add -A; git commit -qm half; git checkout -q -b other; echo y > untracked",
          again.cwd,
        );
        const after = await place(world, {
          found,
          blobs,
          work: newest === null ? "two" : "one",
          options,
          newest,
        });
        assert.deepEqual(filesIn(after.cwd), before, mark);
        assert.equal(
          world.git(after.cwd, "rev-parse", "HEAD"),
          found.source.kind === "git" ? found.source.commit : "",
        );
      }
    });
  }

  test("is not taken of what did not change, and the worker that has the files restores nothing", async () => {
    const world = repository({ execution: {} });
    const blobs = memoryBlobs();
    const found = await find(world, "git");
    const one = await place(world, { found, blobs, work: "one" });
    world.write("../ignored", "");
    world.shell("echo node_modules > .gitignore; mkdir node_modules; echo x > node_modules/a", one.cwd);
    const newest = await one.snapshot();
    const ino = lstatSync(join(one.cwd, ".gitignore")).ino;
    const again = await place(world, { found, blobs, work: "one", newest });
    assert.equal(lstatSync(join(again.cwd, ".gitignore")).ino, ino);
    assert.ok(existsSync(join(again.cwd, "node_modules/a")));
    again.remove();
    assert.equal(existsSync(join(world.temp, "one/runs", RUN)), false);
  });

  test("holds everything but a file that nobody can read", async () => {
    const world = repository({ execution: {} });
    const blobs = memoryBlobs();
    const found = await find(world, "git");
    const one = await place(world, { found, blobs, work: "one" });
    world.shell(
      "mkfifo pipe; ln -s /etc/passwd link; printf 'a\\0b' > bytes; echo x > \"$(printf 'odd\\nname')\"",
      one.cwd,
    );
    const newest = await one.snapshot();
    const two = await place(world, { found, blobs, work: "two", newest });
    assert.deepEqual(filesIn(two.cwd), filesIn(one.cwd));
    assert.ok(lstatSync(join(two.cwd, "link")).isSymbolicLink());
  });

  for (const [name, damage] of Object.entries({
    "the mirror": (work: string) => {
      for (const file of readdirSync(join(work, "mirrors"), { recursive: true, withFileTypes: true }))
        if (file.isFile() && /\.pack$|^[\da-f]{38}$/.test(file.name)) {
          chmodSync(join(file.parentPath, file.name), 0o600);
          writeFileSync(join(file.parentPath, file.name), "");
        }
    },
    "the repository of the run": (work: string) => rmSync(join(work, "runs", RUN, "home/.git/HEAD")),
    "the working tree": (work: string) => rmSync(join(work, "runs", RUN, "home"), { recursive: true }),
  }))
    test(`is restored where ${name} is damaged`, async () => {
      const world = repository({ execution: {} });
      const blobs = memoryBlobs();
      const found = await find(world, "git");
      const one = await place(world, { found, blobs, work: "one" });
      const newest = await stored(one, () => world.shell("echo two > a.txt", one.cwd));
      const before = filesIn(one.cwd);
      damage(join(world.temp, "one"));
      const again = await place(world, { found, blobs, work: "one", newest });
      assert.deepEqual(filesIn(again.cwd), before);
    });

  for (const [name, damage] of Object.entries({
    missing: (blobs: Map<string, Uint8Array>, { blob }: Tree) => {
      blobs.delete(blob);
    },
    "another one": (blobs: Map<string, Uint8Array>, { blob }: Tree) => {
      blobs.set(blob, new Uint8Array([1]));
    },
  }))
    test(`that is ${name} keeps the run from going on`, async () => {
      const world = repository({ execution: {} });
      const blobs = memoryBlobs();
      const found = await find(world, "git");
      const one = await place(world, { found, blobs, work: "one" });
      const newest = await stored(one, () => world.shell("echo two > a.txt", one.cwd));
      damage(blobs.all, newest);
      const refused = await refusal(place(world, { found, blobs, work: "two", newest }));
      assert.equal(refused.code, "WORKTREE_UNAVAILABLE");
    });

  test("is the newest that a journal names", () => {
    const at = (seq: number, tree?: Tree): Entry => ({
      seq,
      at: 0,
      event: { type: "run.paused" },
      ...(tree && { tree }),
    });
    const [a, b] = [
      { commit: "a", blob: "1" },
      { commit: "b", blob: "2" },
    ];
    assert.equal(newestTree([at(1)]), null);
    assert.equal(newestTree([at(1, a), at(2, b), at(3)]), b);
  });
});

async function stored(placed: TravelPlace, change: () => unknown): Promise<Tree> {
  change();
  const tree = await placed.snapshot();
  assert.ok(tree !== null);
  return tree;
}
