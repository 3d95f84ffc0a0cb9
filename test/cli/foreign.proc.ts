/** A record of runs that this user did not make: it can be looked at, and nothing of it is obeyed before a yes. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { needs } from "../needs.ts";
import {
  createWorld,
  MAIN,
  onlyDocument,
  replies,
  script,
  start,
  typedAt,
  writeAgent,
  type World,
} from "./world.ts";

const COMMIT = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "start"];
const LINE = "echo obeyed > PWNED";
const REPLIES = [
  replies.initial(),
  { step: "continuation.note", calls: [{ name: "Bash", input: { command: LINE } }] },
  replies.continuation(),
  replies.closure(),
];
const TERMINAL = needs(
  spawnSync("script", ["--version"]).status === 0,
  "util-linux `script` is not installed: the question about a foreign journal was not tested on a terminal",
);
const MORE = ["--max-turns", "20", "--json"];

/** An agent whose steps may use Bash. */
function writeBash(world: World, folder = "."): void {
  writeAgent(world, "notes", {
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { [key: string]: unknown } };
      boundaries.permissionMode = "acceptEdits";
      boundaries.allowedTools = ["*"];
    },
  });
  if (folder !== ".")
    cpSync(join(world.root, ".agent"), join(world.root, folder, ".agent"), { recursive: true });
}

/** `made/` holds a run that stopped before the recorded reply that calls Bash. */
async function createStopped(): Promise<World> {
  const world = createWorld();
  writeBash(world, "made");
  rmSync(join(world.root, ".agent"), { recursive: true });
  world.write("script.json", script(...REPLIES));
  const args = ["run", "notes", "--topic", "t", "--cwd", "made", "--script", join(world.root, "script.json")];
  const ran = await world.lockstep([...args, "--max-turns", "1", "--json"]);
  assert.equal(ran.code, 4, ran.stderr);
  return world;
}

/** As a clone would bring it: the record says that the run works in the clone. */
async function createClone(): Promise<World> {
  const world = await createStopped();
  cpSync(join(world.root, "made"), join(world.root, "clone"), { recursive: true });
  rewrite(world, "clone", (body) => body.replaceAll(join(world.root, "made"), join(world.root, "clone")));
  return world;
}

function rewrite(world: World, folder: string, change: (body: string) => string): void {
  using db = new DatabaseSync(join(world.root, folder, ".lockstep/runs.db"));
  const rows = db.prepare("SELECT rowid AS id, body FROM event").all() as { id: number; body: string }[];
  for (const { id, body } of rows)
    db.prepare("UPDATE event SET body = ?, sum = NULL WHERE rowid = ?").run(change(body), id);
}

/** Everything in a folder, by path: what it is, and what it holds. */
function contents(folder: string): { readonly [path: string]: string } {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  // What SQLite keeps beside a database while it is read says nothing.
  const told = names.filter((name) => !/-(?:wal|shm)$/.test(name));
  return Object.fromEntries(
    told.map((name) => {
      const found = lstatSync(join(folder, name));
      return [
        name,
        found.isFile() ? readFileSync(join(folder, name), "latin1") : String(found.isDirectory()),
      ];
    }),
  );
}

const pwned = (world: World) =>
  ["made", "clone", "other", "moved", "."].some((folder) => existsSync(join(world.root, folder, "PWNED")));

const OBEYING: readonly (readonly string[])[] = [
  ["resume", "@last", ...MORE],
  ["resume", "@last", "--from", "initial.note", "--json"],
  ["resume", "@last", "--take-over", ...MORE],
  ["resume", "@last", "--script", "../script.json", ...MORE],
  ["continue", "@last", ...MORE],
  ["fork", "@last", "--at", "initial.note", "--json"],
  ["pause", "@last", "--json"],
  ["stop", "@last", "--json"],
  ["run", "notes", "--topic", "t", "--script", "../script.json", "--json"],
  ["runs", "--prune", "--keep", "0", "--yes", "--json"],
  ["worktree", "prune", "--json"],
  ["import", "../bundle.json", "--as", "more", "--json"],
];

const LOOKING: readonly (readonly string[])[] = [
  ["runs"],
  ["runs", "--prune", "--keep", "0", "--dry-run"],
  ["show", "@last"],
  ["show", "@last", "--follow"],
  ["show", "@last", "--events"],
  ["why", "@last"],
  ["logs", "@last"],
  ["replay", "@last"],
  ["export", "@last"],
  ["effects", "@last"],
  ["diff", "@last", "@last"],
  ["worktree", "list"],
  ["worktree", "prune", "--dry-run"],
  ["graph", "notes"],
];

describe("a state folder that came with a clone", () => {
  test("is not obeyed by any command, and not changed; looking at it works", async () => {
    using world = await createClone();
    const bundle = await world.lockstep([
      "export",
      "@last",
      "--cwd",
      "made",
      "--out",
      join(world.root, "bundle.json"),
    ]);
    assert.equal(bundle.code, 0, bundle.stderr);
    const before = contents(join(world.root, "clone"));
    for (const args of OBEYING) {
      const ran = await world.lockstep(
        [...args, "--cwd", join(world.root, "clone")].map((word) => word.replace("../", `${world.root}/`)),
      );
      const told = onlyDocument(ran);
      assert.deepEqual([ran.code, told.code], [3, "STATE_FOREIGN"], `${args.join(" ")}: ${ran.stderr}`);
      assert.match(String(told.reason), /clone\/\.lockstep.*lockstep runs, show.*--trust-journal/s);
      assert.deepEqual(contents(join(world.root, "clone")), before, args.join(" "));
    }
    for (const args of LOOKING) {
      const ran = await world.lockstep([...args, "--cwd", "clone"]);
      assert.equal(ran.code, 0, `${args.join(" ")}: ${ran.stderr}`);
      assert.deepEqual(contents(join(world.root, "clone")), before, args.join(" "));
    }
    assert.ok(!pwned(world));
  });

  test("tells what would be run, and is used after a yes, which is remembered", async () => {
    for (const yes of [{ flag: ["--trust-journal"] }, { env: { LOCKSTEP_TRUST: "all" } }]) {
      using world = await createClone();
      const args = ["resume", "@last", "--cwd", "clone", ...MORE];
      const refused = onlyDocument(await world.lockstep(args));
      assert.match(
        String(refused.reason),
        /works in .*clone\n.*Bash with recorded replies: echo obeyed > PWNED/,
      );
      const ran = await world.lockstep(
        [...args, ...(yes.flag ?? [])],
        yes.env === undefined ? {} : { env: yes.env },
      );
      assert.equal(onlyDocument(ran).outcome, "completed", ran.stderr);
      assert.equal(readFileSync(join(world.root, "clone/PWNED"), "utf8"), "obeyed\n");
      const again = await world.lockstep([
        "fork",
        "@last",
        "--at",
        "closure.note",
        "--cwd",
        "clone",
        "--json",
      ]);
      assert.equal(again.code, 0, again.stderr);
    }
  });

  test("asks on a terminal, and no is the answer unless somebody says yes", TERMINAL, async () => {
    for (const [typed, isObeyed] of [
      ["y\n", true],
      ["\n", false],
      ["no\n", false],
    ] as const) {
      using world = await createClone();
      const stdout = await typedAt(world, ["resume", "@last", "--cwd", "clone", ...MORE], [typed]);
      assert.match(
        stdout,
        /is not yours: it is a copy of .*Bash with recorded replies: echo obeyed > PWNED.*\[y\/N\]/s,
      );
      assert.equal(pwned(world), isObeyed, stdout);
    }
  });
});

test("a question in a foreign record is shown, and no answer is left for it", async () => {
  using world = createWorld();
  writeAgent(world, "notes", {
    agent: (agent) => {
      const { boundaries } = agent.runner as { boundaries: { [key: string]: unknown } };
      boundaries.permissionMode = "default";
      boundaries.allowedTools = ["*"];
    },
  });
  world.write("script.json", script(...REPLIES));
  const begun = ["run", "notes", "--topic", "t", "--script", "script.json", "--on-permission", "halt"];
  const ran = await world.lockstep(begun);
  assert.equal(ran.code, 5, ran.stderr);
  cpSync(join(world.root, ".agent"), join(world.root, "clone/.agent"), { recursive: true });
  cpSync(join(world.root, ".lockstep"), join(world.root, "clone/.lockstep"), { recursive: true });
  const shown = await world.lockstep(["answer", "@last", "--cwd", "clone"]);
  assert.equal(shown.code, 0, shown.stderr);
  for (const more of [[], ["--no-resume"]]) {
    const answered = await world.lockstep(["answer", "@last", "allow", "--cwd", "clone", "--json", ...more]);
    assert.deepEqual([answered.code, onlyDocument(answered).code], [3, "STATE_FOREIGN"], answered.stderr);
  }
  assert.ok(!existsSync(join(world.root, "clone/.lockstep/answers")) && !pwned(world));
  const own = await world.lockstep(["answer", "@last", "allow", "--json"]);
  assert.equal(own.code, 0, own.stderr);
  assert.ok(pwned(world));

  const file = join(world.root, "bundle.json");
  const waiting = await world.lockstep(begun);
  assert.equal(waiting.code, 5, waiting.stderr);
  assert.equal((await world.lockstep(["export", "@last", "--out", file])).code, 0);
  assert.equal((await world.lockstep(["import", file, "--as", "theirs"])).code, 0);
  const imported = await world.lockstep(["answer", "theirs", "allow", "--json"]);
  assert.deepEqual([imported.code, onlyDocument(imported).code], [3, "STATE_FOREIGN"], imported.stderr);
  assert.ok(!existsSync(join(world.root, ".lockstep/answers/theirs")));
  const yes = await world.lockstep(["answer", "theirs", "allow", "--json", "--trust-journal"]);
  assert.equal(yes.code, 0, yes.stderr);
});

/** Ways in which a record can be another than the one that was made here. */
const FOREIGN: readonly {
  readonly name: string;
  readonly make: (world: World) => readonly string[];
  readonly why: RegExp;
}[] = [
  {
    name: "a copy of an own one, id and all",
    make: (world) => {
      cpSync(join(world.root, "made"), join(world.root, "other"), { recursive: true });
      rewrite(world, "other", (body) => body.replaceAll(join(world.root, "made"), join(world.root, "other")));
      return ["--cwd", "other"];
    },
    why: /a copy of .*made\/\.lockstep, or was moved from there/,
  },
  {
    name: "a moved project",
    make: (world) => {
      renameSync(join(world.root, "made"), join(world.root, "moved"));
      return ["--cwd", "moved"];
    },
    why: /a copy of .*made\/\.lockstep, or was moved from there/,
  },
  {
    name: "one that is reached by --state",
    make: (world) => {
      cpSync(join(world.root, "made/.lockstep"), join(world.root, "state"), { recursive: true });
      return ["--cwd", "made", "--state", join(world.root, "state")];
    },
    why: /a copy of/,
  },
  {
    name: "one without an id, as earlier versions made it",
    make: (world) => {
      rmSync(join(world.root, "made/.lockstep/id"));
      return ["--cwd", "made"];
    },
    why: /not made by you on this machine, or by an earlier version/,
  },
  {
    name: "one with an id that nobody knows",
    make: (world) => {
      writeFileSync(join(world.root, "made/.lockstep/id"), `${"0".repeat(32)}\n`);
      return ["--cwd", "made"];
    },
    why: /you did not make it on this machine/,
  },
  {
    name: "one whose id is a path",
    make: (world) => {
      const [name] = readdirSync(join(world.env.HOME!, ".config/lockstep/states"));
      writeFileSync(join(world.root, "made/.lockstep/id"), `../states/${name?.replace(".json", "")}\n`);
      return ["--cwd", "made"];
    },
    why: /not made by you/,
  },
  {
    name: "one whose runs.db was replaced, as a checkout does",
    make: (world) => {
      const file = join(world.root, "made/.lockstep/runs.db");
      const bytes = readFileSync(file);
      // Kept beside it meanwhile, so that its inode cannot be used again.
      renameSync(file, join(world.root, "before.db"));
      writeFileSync(file, bytes);
      return ["--cwd", "made"];
    },
    why: /runs\.db is not the file that Lockstep made there/,
  },
  {
    name: "one whose record is gone",
    make: (world) => {
      rmSync(join(world.env.HOME!, ".config"), { recursive: true });
      return ["--cwd", "made"];
    },
    why: /you did not make it on this machine, or HOME or XDG_CONFIG_HOME was another one then: \S+states has no record/,
  },
];

for (const { name, make, why } of FOREIGN)
  test(`${name} is foreign`, async () => {
    using world = await createStopped();
    const where = make(world);
    for (const verb of ["resume", "continue"]) {
      const ran = await world.lockstep([verb, "@last", ...where, ...MORE]);
      const told = onlyDocument(ran);
      assert.deepEqual([ran.code, told.code], [3, "STATE_FOREIGN"], ran.stderr);
      assert.match(String(told.reason), why);
    }
    assert.equal((await world.lockstep(["show", "@last", ...where])).code, 0);
    assert.ok(!pwned(world));
    const accepted = await world.lockstep(["pause", "@last", ...where, "--trust-journal"]);
    assert.equal(accepted.code, 0, accepted.stderr);
    assert.equal((await world.lockstep(["pause", "@last", ...where])).code, 0);
  });

for (const name of [
  "runs.db-wal",
  "runs.db-journal",
  "answers/r/q.json",
  "control/r.json",
  "artifacts/ab/x",
  "owners/x.lock",
])
  test(`a clone that brings only .lockstep/${name} is foreign to a new run too`, async () => {
    using world = createWorld();
    writeBash(world);
    world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
    world.write(`.lockstep/${name}`, "planted");
    const begun = ["run", "notes", "--topic", "t", "--script", "script.json", "--json"];
    const ran = await world.lockstep(begun);
    assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "STATE_FOREIGN"], ran.stderr);
    assert.ok(!existsSync(join(world.root, ".lockstep/runs.db")));
    const elsewhere = await world.lockstep([...begun, "--state", "mine"]);
    assert.equal(elsewhere.code, 0, "another folder can be chosen");
  });

test("without a home folder what another process made is foreign, and LOCKSTEP_TRUST=all helps", async () => {
  using world = await createStopped();
  const env = { HOME: undefined };
  const ran = await world.lockstep(["resume", "@last", "--cwd", "made", ...MORE], { env });
  assert.equal(onlyDocument(ran).code, "STATE_FOREIGN");
  assert.match(String(onlyDocument(ran).reason), /HOME is not set.*LOCKSTEP_TRUST=all/s);
  assert.match(
    String(onlyDocument(ran).reason),
    /pass --trust DIGEST as well: lockstep trust show notes prints/,
  );
  const all = { ...env, LOCKSTEP_TRUST: "all" };
  const trusted = await world.lockstep(["resume", "@last", "--cwd", "made", ...MORE], { env: all });
  assert.equal(trusted.code, 0, trusted.stderr);
  const begun = ["run", "notes", "--topic", "t", "--script", join(world.root, "script.json"), "--json"];
  cpSync(join(world.root, "made/.agent"), join(world.root, "other/.agent"), { recursive: true });
  assert.equal(
    (await world.lockstep([...begun, "--cwd", "other"], { env })).code,
    0,
    "a new one can be made",
  );
});

describe("an imported run", () => {
  test("needs a yes that shows its recorded replies, once", async () => {
    using world = await createStopped();
    const file = join(world.root, "bundle.json");
    assert.equal((await world.lockstep(["export", "@last", "--cwd", "made", "--out", file])).code, 0);
    cpSync(join(world.root, "made/.agent"), join(world.root, "other/.agent"), { recursive: true });
    assert.equal((await world.lockstep(["import", file, "--cwd", "other"])).code, 0);
    for (const args of [
      ["resume", "@last", ...MORE],
      ["resume", "@last", "--from", "initial.note", "--json"],
      ["continue", "@last", ...MORE],
      ["fork", "@last", "--at", "initial.note", "--json"],
    ]) {
      const ran = await world.lockstep([...args, "--cwd", "other"]);
      const told = onlyDocument(ran);
      assert.deepEqual([ran.code, told.code], [3, "STATE_FOREIGN"], ran.stderr);
      assert.match(
        String(told.reason),
        /was imported from a file.*Bash with recorded replies: echo obeyed > PWNED/s,
      );
    }
    assert.ok(!pwned(world));
    const one = onlyDocument(await world.lockstep(["runs", "--cwd", "other", "--json"]));
    assert.equal(one.total, 1, "no fork is left behind");
    const resume = ["resume", "@last", "--cwd", "other", "--json", "--max-turns"];
    const yes = await world.lockstep([...resume, "2", "--trust-journal"]);
    assert.equal(yes.code, 4, yes.stderr);
    const rest = await world.lockstep([...resume, "20"]);
    assert.equal(rest.code, 0, rest.stderr);
  });

  test("cannot say of itself that somebody has said yes, nor where it works", async () => {
    using world = await createStopped();
    const file = join(world.root, "bundle.json");
    assert.equal((await world.lockstep(["export", "@last", "--cwd", "made", "--out", file])).code, 0);
    type Loose = { entries: { seq: number; at: number; event: { [key: string]: unknown } }[] };
    const bundle = JSON.parse(readFileSync(file, "utf8")) as Loose;
    bundle.entries[0]!.event.imported = { entries: 0 };
    bundle.entries[0]!.event.worktree = {
      path: world.root,
      home: world.root,
      branch: "main",
      base: "main",
      commit: "0",
      finalize: {},
    };
    const seq = bundle.entries.length + 1;
    bundle.entries.push({ seq, at: 1, event: { type: "run.resumed", epoch: 2, accepted: true } });
    writeFileSync(file, JSON.stringify(bundle));
    const imported = await world.lockstep(["import", file, "--cwd", "made", "--as", "again"]);
    assert.equal(imported.code, 0, imported.stderr);
    const ran = await world.lockstep(["resume", "again", "--cwd", "made", ...MORE]);
    assert.equal(onlyDocument(ran).code, "STATE_FOREIGN", ran.stderr);
    const shown = await world.lockstep(["show", "again", "--cwd", "made", "--events"]);
    const { event } = JSON.parse(shown.stdout.split("\n")[0]!) as { event: { [key: string]: unknown } };
    assert.deepEqual([event.cwd, event.worktree], [realpathSync(join(world.root, "made")), undefined]);
  });
});

describe("a recorded place", () => {
  for (const [name, place] of [
    ["another project of the same user", "other"],
    ["the folder above", ""],
    ["a way through ..", "made/../other"],
    ["a relative path", null],
  ] as const)
    test(`is refused when it is ${name}, also in an own journal`, async () => {
      using world = await createStopped();
      mkdirSync(join(world.root, "other/.agent"), { recursive: true });
      const target = place === null ? "." : `${world.root}/${place}`.replace(/\/$/, "");
      rewrite(world, "made", (body) =>
        body.replaceAll(`"cwd":"${join(world.root, "made")}"`, `"cwd":"${target}"`),
      );
      for (const args of [
        ["resume", "@last", ...MORE],
        ["fork", "@last", "--at", "initial.note", "--json"],
        ["continue", "@last", ...MORE],
      ]) {
        const ran = await world.lockstep([...args, "--cwd", "made"]);
        const told = onlyDocument(ran);
        assert.deepEqual([ran.code, told.code], [3, "PLACE_FOREIGN"], ran.stderr);
        assert.match(String(told.reason), /recorded working directory/);
      }
      assert.ok(!pwned(world));
    });

  test("control: an own run goes on from a folder below, and by another way to the project", async () => {
    using world = await createStopped();
    mkdirSync(join(world.root, "made/sub"));
    symlinkSync(join(world.root, "made"), join(world.root, "link"));
    const first = await world.lockstep([
      "resume",
      "@last",
      "--cwd",
      "made/sub",
      "--max-turns",
      "2",
      "--json",
    ]);
    assert.equal(first.code, 4, first.stderr);
    const rest = await world.lockstep(["resume", "@last", "--cwd", "link", ...MORE]);
    assert.equal(rest.code, 0, rest.stderr);
    assert.ok(existsSync(join(world.root, "made/PWNED")));
  });
});

describe("worktrees that a journal names", () => {
  const git = (world: World, folder: string, ...args: readonly string[]) => {
    const place = { cwd: join(world.root, folder), env: world.env, encoding: "utf8" } as const;
    const done = spawnSync("git", args, place);
    assert.equal(done.status, 0, done.stderr);
  };
  const createRepository = async (worktree: (world: World) => object): Promise<World> => {
    const world = await createStopped();
    world.writeHome(".gitconfig", "[user]\n\tname = t\n\temail = t@example.invalid\n");
    cpSync(join(world.root, "made/.agent"), join(world.root, "other/.agent"), { recursive: true });
    for (const folder of ["made", "other"]) {
      git(world, folder, "init", "-q", "-b", "main");
      git(world, folder, "add", "-A", ".agent");
      git(world, folder, "commit", "-qm", "start");
    }
    git(world, "made", "worktree", "add", "-q", "-b", "mine", join(world.root, "mine"));
    const plain = { branch: "main", base: "main", commit: "0".repeat(40), finalize: {} };
    rewrite(world, "made", (body) => {
      const entry = JSON.parse(body) as { event: { [key: string]: unknown } };
      if (entry.event.type === "run.started") entry.event.worktree = { ...plain, ...worktree(world) };
      return JSON.stringify(entry);
    });
    using db = new DatabaseSync(join(world.root, "made/.lockstep/runs.db"));
    db.exec(`UPDATE flow SET sum = NULL, json = json_set(json, '$.settings.worktree.copy', json('["."]'))`);
    return world;
  };

  for (const [name, place] of [
    ["the project itself, relative", () => ({ path: ".", home: "." })],
    ["the project itself", (world: World) => ({ path: `${world.root}/made`, home: `${world.root}/made` })],
    ["another repository", (world: World) => ({ path: `${world.root}/other`, home: `${world.root}/other` })],
    [
      "a folder that is no worktree",
      (world: World) => ({ path: `${world.root}/made/.worktrees/x`, home: `${world.root}/made` }),
    ],
    [
      "a worktree of the user's own",
      (world: World) => ({ path: `${world.root}/mine`, home: `${world.root}/made`, branch: "notes/x" }),
    ],
    [
      "a worktree of another repository",
      (world: World) => ({ path: `${world.root}/mine`, home: `${world.root}/other`, branch: "mine" }),
    ],
  ] as const)
    test(`are not pruned where they are ${name}`, async () => {
      using world = await createRepository(place);
      const folders = ["made", "other", "mine", "made/.worktrees/x"];
      for (const folder of folders) world.write(`${folder}/my-unsaved-work.txt`, "mine");
      const prune = [MAIN, "worktree", "prune", "--json"];
      const ran = await start(process.execPath, prune, join(world.root, "made"), { env: world.env });
      assert.equal(ran.code, 0, ran.stderr);
      const { worktrees } = onlyDocument(ran) as { worktrees: { done: string }[] };
      assert.ok(
        worktrees.every(({ done }) => done === "kept"),
        ran.stdout,
      );
      for (const folder of folders)
        assert.ok(existsSync(join(world.root, folder, "my-unsaved-work.txt")), folder);
      assert.equal((await world.lockstep(["worktree", "list", "--cwd", "made"])).code, 0);
      const resumed = await world.lockstep(["resume", "@last", ...MORE, "--cwd", "made"]);
      assert.notEqual(resumed.code, 0);
      assert.ok(!pwned(world));
    });

  test("are listed from a foreign journal without starting git", async () => {
    using world = await createRepository((made) => ({
      path: `${made.root}/made`,
      home: `${made.root}/made`,
    }));
    rmSync(join(world.root, "made/.lockstep/id"));
    const tools = mkdtempSync(join(tmpdir(), "lockstep-git-"));
    try {
      writeFileSync(join(tools, "git"), `#!/bin/sh\necho called >> '${tools}/calls'\nexit 1\n`, {
        mode: 0o755,
      });
      const env = { PATH: `${tools}:${process.env.PATH}` };
      for (const args of [["list"], ["prune", "--dry-run"], ["prune"]])
        await world.lockstep(["worktree", ...args, "--cwd", "made"], { env });
      const listed = onlyDocument(
        await world.lockstep(["worktree", "list", "--json", "--cwd", "made"], { env }),
      );
      const [row] = listed.worktrees as { merged: unknown; uncommitted: unknown; exists: unknown }[];
      assert.deepEqual([row?.exists, row?.merged, row?.uncommitted], [true, null, null]);
      assert.ok(!existsSync(join(tools, "calls")));
    } finally {
      rmSync(tools, { recursive: true });
    }
  });
});

for (const root of [
  "/etc/lockstep-worktrees",
  "/usr/lib/x",
  ".git/hooks",
  ".lockstep/x",
  "a/../.agent",
  "/proc/self",
])
  test(`worktree.root ${root} is refused before anything is made there`, async () => {
    using world = createWorld();
    writeAgent(world, "notes", {
      agent: (agent) => {
        const runner = agent.runner as { execution?: object };
        runner.execution = { worktree: { enabled: true, root } };
      },
    });
    for (const args of [["init", "-q", "-b", "main"], ["add", "-A", ".agent"], COMMIT])
      assert.equal(spawnSync("git", args, { cwd: world.root, env: world.env }).status, 0);
    const begun = ["run", "notes", "--topic", "t", "--script", ".agent/notes/script.yaml", "--json"];
    const ran = await world.lockstep(begun, { env: { LOCKSTEP_TRUST: "all" } });
    assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "WORKTREE_UNAVAILABLE"], ran.stderr);
    assert.match(String(onlyDocument(ran).reason), /Worktrees are not made in/);
  });

describe("links below a state folder", () => {
  const plant = (world: World, name: string, target: string) => {
    rmSync(join(world.root, "made/.lockstep", name), { recursive: true, force: true });
    symlinkSync(join(world.root, target), join(world.root, "made/.lockstep", name));
  };
  for (const name of [".gitignore", "runs.db-wal", "artifacts", "answers", "control", "owners", "runs", "id"])
    test(`${name} is not followed`, async () => {
      using world = await createStopped();
      world.write("precious/ab/file", "mine");
      plant(world, name, /^[a-z]+$/.test(name) && name !== "id" ? "precious" : "planted");
      for (const args of [
        ["run", "notes", "--topic", "t", "--script", join(world.root, "script.json"), "--json"],
        ["resume", "@last", ...MORE],
        ["runs", "--prune", "--keep", "0", "--yes", "--json"],
        ["runs", "--json"],
      ]) {
        const ran = await world.lockstep([...args, "--cwd", "made"]);
        assert.deepEqual(
          [ran.code, onlyDocument(ran).code],
          [3, "STATE_UNSAFE"],
          `${args[0]}: ${ran.stderr}`,
        );
      }
      assert.ok(!existsSync(join(world.root, "planted")));
      assert.deepEqual(contents(join(world.root, "precious")), { ab: "true", "ab/file": "mine" });
    });

  for (const isThere of [true, false])
    test(`a clone whose .lockstep is a link ${isThere ? "to a folder" : "to nothing"} makes nothing elsewhere`, async () => {
      using world = await createStopped();
      renameSync(join(world.root, "made/.lockstep"), join(world.root, "real"));
      if (isThere) world.write("target/mine", "mine");
      symlinkSync(join(world.root, "target"), join(world.root, "made/.lockstep"));
      const begun = ["run", "notes", "--topic", "t", "--script", join(world.root, "script.json"), "--json"];
      const ran = await world.lockstep([...begun, "--cwd", "made"]);
      assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "STATE_UNSAFE"], ran.stderr);
      assert.equal(existsSync(join(world.root, "target/runs.db")), false);
    });

  test("a database under a second name is not written", async () => {
    using world = await createStopped();
    linkSync(join(world.root, "made/.lockstep/runs.db"), join(world.root, "second.db"));
    const ran = await world.lockstep(["resume", "@last", "--cwd", "made", ...MORE]);
    assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "STATE_UNSAFE"]);
  });

  test("an owner in the database names no file elsewhere", async () => {
    using world = await createStopped();
    world.write("made/Cargo.lock", "mine");
    {
      using db = new DatabaseSync(join(world.root, "made/.lockstep/runs.db"));
      db.exec("UPDATE run SET owner = '../../Cargo'");
    }
    const ran = await world.lockstep(["resume", "@last", "--cwd", "made", ...MORE]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal(readFileSync(join(world.root, "made/Cargo.lock"), "utf8"), "mine");
  });
});

for (const [name, sql] of [
  ["a trigger", "CREATE TRIGGER t AFTER UPDATE ON run BEGIN UPDATE event SET body = 'x'; END"],
  ["a view", "CREATE VIEW v AS SELECT * FROM run"],
  ["another table", "CREATE TABLE more (a)"],
  ["an index", "CREATE INDEX i ON event (body)"],
  ["a generated column", "ALTER TABLE run ADD COLUMN g TEXT AS (id) VIRTUAL"],
] as const)
  test(`a database with ${name} is not opened, whoever made the folder`, async () => {
    using world = await createClone();
    for (const folder of ["made", "clone"]) {
      {
        using db = new DatabaseSync(join(world.root, folder, ".lockstep/runs.db"));
        db.exec(sql);
      }
      for (const args of [["runs"], ["show", "@last"], ["resume", "@last", "--trust-journal"]]) {
        const ran = await world.lockstep([...args, "--cwd", folder, "--json"]);
        assert.deepEqual([ran.code, onlyDocument(ran).code], [3, "JOURNAL_UNAVAILABLE"], ran.stderr);
        assert.match(String(onlyDocument(ran).reason), /another schema than a journal of Lockstep/);
      }
    }
  });

test("a foreign record of nonsense is not taken for a bug of ours", async () => {
  using world = await createClone();
  for (const change of [
    () => '{"seq":1,"at":0,"event":{"type":"run.started"}}',
    () => '{"seq":1,"at":0,"event":null}',
    () =>
      '{"seq":1,"at":0,"event":{"type":"step.answered","step":"__proto__","visit":1,"turn":1,"reply":{}}}',
    () => "[]",
  ]) {
    rewrite(world, "clone", change);
    for (const args of [["show"], ["why"], ["logs"], ["replay"], ["export"], ["effects"], ["resume"]]) {
      const ran = await world.lockstep([...args, "@last", "--cwd", "clone"]);
      assert.doesNotMatch(ran.stderr + ran.stdout, /bug in Lockstep/, args.join(" "));
    }
  }
});

test("control: many processes that start at once, in one new project and in many, all own what they make", async () => {
  using world = createWorld();
  writeBash(world);
  world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const folders = Array.from({ length: 4 }, (_, place) => `p${place}`);
  for (const folder of folders)
    cpSync(join(world.root, ".agent"), join(world.root, folder, ".agent"), { recursive: true });
  const begun = ["run", "notes", "--topic", "t", "--script", join(world.root, "script.json"), "--json"];
  const ran = await Promise.all(
    [...folders, ...folders.map(() => "p0"), ...folders.map(() => "p1")].map(
      async (folder) => await world.lockstep([...begun, "--cwd", folder]),
    ),
  );
  for (const one of ran) assert.equal(one.code, 0, one.stderr);
  assert.equal(readdirSync(join(world.env.HOME!, ".config/lockstep/states")).length, folders.length);
  for (const folder of folders) {
    const forked = await world.lockstep(["fork", "@last", "--at", "closure.note", "--cwd", folder, "--json"]);
    assert.equal(forked.code, 0, forked.stderr);
  }
});

test("control: a journal that was moved away is begun anew", async () => {
  using world = await createStopped();
  renameSync(join(world.root, "made/.lockstep/runs.db"), join(world.root, "away.db"));
  const begun = ["run", "notes", "--topic", "t", "--script", join(world.root, "script.json"), "--json"];
  for (const _ of [1, 2]) {
    const ran = await world.lockstep([...begun, "--cwd", "made"]);
    assert.equal(ran.code, 0, ran.stderr);
  }
});

test("what is exported to a terminal holds no character that a terminal obeys, and is the same data", async () => {
  using world = createWorld();
  writeAgent(world, "notes");
  const evil = "a\u009b31m\u0085\u202e\u2066\u061cb";
  world.write(
    "script.json",
    script(replies.initial(), replies.continuation(), replies.closure("closing", evil)),
  );
  const ran = await world.lockstep(["run", "notes", "--topic", evil, "--script", "script.json", "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const { stdout } = await world.lockstep(["export", "@last"]);
  assert.doesNotMatch(stdout, /[\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  const { entries } = JSON.parse(stdout) as { entries: { event: { args?: { topic?: string } } }[] };
  assert.equal(entries[0]?.event.args?.topic, evil);
});

test("trust list shows whose state folders are known, and revoke makes one foreign again", async () => {
  using world = await createClone();
  const resumed = await world.lockstep(["resume", "@last", "--cwd", "clone", ...MORE, "--trust-journal"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  const states = async () => {
    const list = onlyDocument(await world.lockstep(["trust", "list", "--json"]));
    return (list.states as { path: string; how: string }[]).map(({ path, how }) => [path, how]);
  };
  const [clone, made] = ["clone", "made"].map((name) => realpathSync(join(world.root, name, ".lockstep")));
  const both = [
    [clone, "accepted"],
    [made, "made"],
  ];
  assert.deepEqual(await states(), both);
  const listed = await world.lockstep(["trust", "list"]);
  assert.match(listed.stdout, /^State folders of your own\n.*clone.*accepted by you\n.*made by your runs\n$/);

  const code = async (name: string) =>
    onlyDocument(await world.lockstep(["stop", "@last", "--cwd", name, "--json"])).code ?? null;
  for (const [word, left] of [
    // Not the project: its state folder.
    ["clone", both],
    [join("clone", ".lockstep"), [both[1]]],
    [join("made", ".lockstep"), []],
  ] as const) {
    const revoked = await world.lockstep(["trust", "revoke", word]);
    assert.equal(revoked.code, word === "clone" ? 2 : 0, revoked.stderr);
    assert.deepEqual(await states(), left);
  }
  for (const name of ["clone", "made"]) assert.equal(await code(name), "STATE_FOREIGN");
});

test("trust revoke --all forgets the state folders that were accepted, and keeps those of own runs", async () => {
  using world = await createClone();
  const resume = async (name: string, ...more: readonly string[]) =>
    onlyDocument(await world.lockstep(["resume", "@last", "--cwd", name, ...MORE, ...more])).code;
  assert.equal(await resume("clone", "--trust-journal"), null);
  assert.equal((await world.lockstep(["trust", "revoke", "--all"])).code, 0);
  assert.equal(await resume("clone"), "STATE_FOREIGN");
  assert.equal(await resume("made"), null);
});
