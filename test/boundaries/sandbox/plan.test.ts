/** What the sandbox is going to do for a folder, as data: which paths are mounted how, what is watched, what is started. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createBwrap } from "../../../src/boundaries/sandbox/bwrap.ts";
import {
  gitPlaces,
  nestedIn,
  nestedPlaces,
  unfinishedIn,
} from "../../../src/boundaries/sandbox/sandbox-git.ts";
import { mountsOf, newlyNested, quarantine, watchedPaths } from "../../../src/boundaries/sandbox/mounts.ts";
import type { SandboxPolicy } from "../../../src/boundaries/sandbox/sandbox.ts";
import { projectWith } from "../../run/project.ts";

/** Paths → text; `{ link }` is a link, and a path that ends in `/` an empty folder. */
type Layout = { readonly [path: string]: string | { readonly link: string } };

function laidOut(layout: Layout): string {
  const root = realpathSync.native(projectWith({}));
  for (const [path, what] of Object.entries(layout)) {
    const at = join(root, path);
    mkdirSync(path.endsWith("/") ? at : dirname(at), { recursive: true });
    if (path.endsWith("/")) continue;
    if (typeof what === "string") writeFileSync(at, what.replaceAll("ROOT", root));
    else symlinkSync(what.link.replaceAll("ROOT", root), at);
  }
  return root;
}

const REPOSITORY: Layout = { ".git/config": "", ".git/hooks/": "", ".git/info/": "", ".git/HEAD": "" };
const MODULE = (path: string): Layout => ({
  [`.git/modules/${path}/config`]: "",
  [`.git/modules/${path}/hooks/`]: "",
  [`.git/modules/${path}/HEAD`]: "ref: refs/heads/main\n",
  [`.git/modules/${path}/objects/`]: "",
  [`.git/modules/${path}/refs/`]: "",
});
/** `path as`, and what is watched: `path`, or `path -> where`. */
const missing = (folder: string, ...names: readonly string[]) =>
  names.map((name) => `${folder}/${name}${name === "worktrees" ? " +" : ""}`);

const PLACES: readonly (readonly [
  name: string,
  layout: Layout,
  from: string,
  above: boolean,
  mounts: readonly string[],
  watched: readonly string[],
])[] = [
  ["no repository", {}, "", true, [], []],
  [
    "a repository",
    REPOSITORY,
    "",
    true,
    [".git rw", ".git/config ro", ".git/hooks ro", ".git/info ro"],
    missing(".git", "config.worktree", "commondir", "worktrees", "modules"),
  ],
  [
    "all that git obeys is there",
    {
      ...REPOSITORY,
      ".git/config.worktree": "",
      ".git/commondir": "",
      ".git/worktrees/": "",
      ".git/modules/": "",
    },
    "",
    true,
    ["", "/config", "/config.worktree", "/hooks", "/info", "/commondir", "/worktrees", "/modules"].map(
      (path) => `.git${path} ${path === "" ? "rw" : "ro"}`,
    ),
    [],
  ],
  [
    "hooks that are a link",
    { ".git/config": "", ".git/hooks": { link: "../shared-hooks" }, ".git/info/": "" },
    "",
    true,
    [".git rw", ".git/config ro", ".git/info ro"],
    [
      ...missing(".git", "config.worktree"),
      ".git/hooks -> ../shared-hooks",
      ...missing(".git", "commondir", "worktrees", "modules"),
    ],
  ],
  [
    "a repository further up: one of its own would take its place",
    { ...REPOSITORY, "a/b/": "" },
    "a/b",
    true,
    [".git rw", ".git/config ro", ".git/hooks ro", ".git/info ro"],
    [...missing(".git", "config.worktree", "commondir", "worktrees", "modules"), "a/b/.git"],
  ],
  ["a repository further up that does not count", { ...REPOSITORY, "a/b/": "" }, "a/b", false, [], []],
  [
    "modules: each is a mount, those that are repositories are fixed, and no other can be made",
    { ".git/config": "", ...MODULE("one"), ...MODULE("group/two"), ...MODULE("one/modules/inner") },
    "",
    true,
    [
      ".git rw",
      ".git/config ro",
      ".git/modules ro",
      ".git/modules/group ro",
      ".git/modules/one/modules ro",
      ...["group/two", "one", "one/modules/inner"].flatMap((path) => [
        `.git/modules/${path} rw`,
        `.git/modules/${path}/config ro`,
        `.git/modules/${path}/hooks ro`,
      ]),
    ],
    [
      ...missing(".git", "config.worktree", "hooks", "info", "commondir", "worktrees"),
      ...["group/two", "one", "one/modules/inner"].flatMap((path) =>
        missing(
          `.git/modules/${path}`,
          "config.worktree",
          "info",
          "commondir",
          "worktrees",
          ...(path === "one" ? [] : ["modules"]),
        ),
      ),
      ...["group/two", "one", "one/modules/inner"].map((path) => `.git/modules/${path} whole`),
    ],
  ],
  ...(["HEAD", "objects/", "refs/"] as const).map(
    (part) =>
      [
        `a module without ${part} is kept as a whole`,
        {
          ...REPOSITORY,
          ...Object.fromEntries(Object.entries(MODULE("m")).filter(([path]) => !path.endsWith(`/${part}`))),
        },
        "",
        true,
        [
          ".git rw",
          ".git/config ro",
          ".git/hooks ro",
          ".git/info ro",
          ".git/modules ro",
          ".git/modules/m ro",
        ],
        missing(".git", "config.worktree", "commondir", "worktrees"),
      ] as const,
  ),
  [
    "modules that are a link",
    { ...REPOSITORY, ".git/modules": { link: "../mine" } },
    "",
    true,
    [".git rw", ".git/config ro", ".git/hooks ro", ".git/info ro"],
    [...missing(".git", "config.worktree", "commondir", "worktrees"), ".git/modules -> ../mine"],
  ],
  [
    "modules that are a file",
    { ...REPOSITORY, ".git/modules": "" },
    "",
    true,
    [".git rw", ".git/config ro", ".git/hooks ro", ".git/info ro", ".git/modules ro"],
    missing(".git", "config.worktree", "commondir", "worktrees"),
  ],
  [
    "modules that are nested too deep are kept as a whole",
    { ".git/config": "", [`.git/modules/${"d/".repeat(9)}`]: "" },
    "",
    true,
    [".git rw", ".git/config ro", ".git/modules ro"],
    missing(".git", "config.worktree", "hooks", "info", "commondir", "worktrees"),
  ],
  [
    "too many modules are kept as a whole",
    {
      ".git/config": "",
      ...Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`.git/modules/m${at}/`, ""])),
    },
    "",
    true,
    [".git rw", ".git/config ro", ".git/modules ro"],
    missing(".git", "config.worktree", "hooks", "info", "commondir", "worktrees"),
  ],
  ["a pointer to nowhere", { ".git": "gitdir: elsewhere\n" }, "", true, [".git ro"], []],
  ["a file that is not a pointer", { ".git": "hello\n" }, "", true, [".git ro"], []],
  [
    "a worktree that its repository knows",
    {
      "main/.git/config": "",
      "main/.git/worktrees/w/gitdir": "ROOT/w/.git\n",
      "main/.git/worktrees/w/commondir": "../..\n",
      "w/.git": "gitdir: ROOT/main/.git/worktrees/w\n",
    },
    "w",
    true,
    [
      "w/.git ro",
      "main/.git rw",
      "main/.git/config ro",
      "main/.git/worktrees ro",
      "main/.git/worktrees/w rw",
      "main/.git/worktrees/w/commondir ro",
      "main/.git/worktrees/w/gitdir ro",
    ],
    [
      ...missing("main/.git", "config.worktree", "hooks", "info", "commondir", "modules"),
      ...missing("main/.git/worktrees/w", "config.worktree", "modules"),
    ],
  ],
  ...(
    [
      [
        "that points back to another folder",
        { "main/.git/worktrees/w/gitdir": "ROOT/other/.git\n", "other/.git": "" },
      ],
      ["whose repository is none", { "main/.git/config": undefined }],
      [
        "that is no record of a worktree",
        { "main/.git/worktrees/w/commondir": "..\n", "main/.git/worktrees/config": "" },
      ],
    ] as const
  ).map(([name, change]) => {
    const layout = Object.entries({
      "main/.git/config": "",
      "main/.git/worktrees/w/gitdir": "ROOT/w/.git\n",
      "main/.git/worktrees/w/commondir": "../..\n",
      "w/.git": "gitdir: ROOT/main/.git/worktrees/w\n",
      ...(change as { readonly [path: string]: string | undefined }),
    }).filter((each): each is [string, string] => each[1] !== undefined);
    return [
      `a pointer to a folder ${name}`,
      Object.fromEntries(layout),
      "w",
      true,
      ["w/.git ro"],
      [],
    ] as const;
  }),
  [
    "a link into the project",
    { ".git": { link: "store" }, "store/config": "", "store/hooks/": "" },
    "",
    true,
    ["store rw", "store/config ro", "store/hooks ro"],
    [".git -> store", ...missing("store", "config.worktree", "info", "commondir", "worktrees", "modules")],
  ],
  [
    "a link out of the project",
    { "p/.git": { link: "../store" }, "store/config": "" },
    "p",
    true,
    [],
    ["p/.git -> ../store"],
  ],
  ["a link to a file", { ".git": { link: "store" }, store: "" }, "", true, [], [".git -> store"]],
  ["a link to nowhere", { ".git": { link: "gone" } }, "", true, [], [".git -> gone"]],
];

for (const [name, layout, from, above, mounts, watched] of PLACES)
  test(`git in the sandbox: ${name}`, () => {
    const root = laidOut(layout);
    const places = gitPlaces(join(root, from), above);
    const shown = (path: string) => path.slice(root.length + 1);
    assert.deepEqual(
      places.mounts.map(({ path, as }) => `${shown(path)} ${as}`),
      mounts,
    );
    assert.deepEqual(
      places.watched.map(
        ({ path, link, isMade, isModule }) =>
          shown(path) +
          (isModule === true ? " whole" : "") +
          (link === null ? "" : ` -> ${link}`) +
          (isMade === true ? " +" : ""),
      ),
      watched,
    );
  });

/** An index of version 2 that records these paths as repositories. */
function recording(...paths: readonly string[]): Buffer {
  const entries = paths.map((path) => {
    const entry = Buffer.alloc((62 + path.length + 8) & ~7);
    entry.writeUInt32BE(0o160000, 24);
    entry.writeUInt16BE(path.length, 60);
    entry.write(path, 62);
    return entry;
  });
  const head = Buffer.from("DIRC\0\0\0\u0002\0\0\0\0", "latin1");
  head.writeUInt32BE(paths.length, 8);
  return Buffer.concat([head, ...entries, Buffer.alloc(20)]);
}

/** A repository whose index records others: in it, in those, at a link, and one that is not there. */
function nesting(): string {
  const root = laidOut({
    ".git/config": "",
    "sub/.git/config": "",
    // In its parent's own folder, which is fixed already.
    "sub/deep/.git": "gitdir: ../.git/modules/deep\n",
    "sub/.git/modules/deep/config": "",
    "sub/.git/modules/deep/HEAD": "0123456789012345678901234567890123456789\n",
    "sub/.git/modules/deep/objects/": "",
    "sub/.git/modules/deep/refs/": "",
    "own/.git": "gitdir: ../stores/own\n",
    "stores/own/config": "",
    "linked/.git": { link: "../stores/own" },
    behind: { link: "elsewhere" },
    "elsewhere/.git/config": "",
    "loose/.git/config": "",
    "sub/in/": "",
  });
  writeFileSync(join(root, ".git/index"), recording("sub", "own", "linked", "behind", "gone"));
  writeFileSync(join(root, "sub/.git/index"), recording("deep"));
  return root;
}

test("repositories that an index records are kept as they are, and in them the same", () => {
  const root = nesting();
  const shown = (path: string) => path.slice(root.length + 1);
  const dots = (from: string, known?: ReadonlySet<string>) =>
    nestedIn(join(root, from), known).map(({ dot }) => shown(String(dot)));
  assert.deepEqual(dots(""), ["sub/.git", "sub/deep/.git", "own/.git", "linked/.git", "behind/.git"]);
  // From a folder below, only what is in it.
  assert.deepEqual(dots("sub"), ["sub/deep/.git"]);
  assert.deepEqual(dots("own"), []);
  // What is not known yet is not looked into.
  assert.deepEqual(dots("", new Set()), ["sub/.git", "own/.git", "linked/.git", "behind/.git"]);
  const { mounts, watched } = nestedPlaces(root);
  assert.deepEqual(
    mounts.map(({ path, as }) => `${shown(path)} ${as}`),
    [
      "sub/.git rw",
      "sub/.git/config ro",
      "sub/.git/modules ro",
      "sub/.git/modules/deep rw",
      "sub/.git/modules/deep/config ro",
      "sub/deep/.git ro",
      "own/.git ro",
      "stores/own rw",
      "stores/own/config ro",
      "stores/own rw",
      "stores/own/config ro",
    ],
  );
  assert.deepEqual(
    watched.filter(({ link }) => link !== null).map(({ path, link }) => `${shown(path)} -> ${link}`),
    ["linked/.git -> ../stores/own"],
  );
  const policy = policyOf(root);
  const before = new Set([`${root}/sub/.git`, `${root}/sub/deep/.git`]);
  assert.deepEqual(
    newlyNested(policy, before).map(({ path }) => shown(String(path))),
    ["own/.git", "linked/.git", "behind/.git"],
  );
});

test("what git left unfinished is found where git keeps it", () => {
  const root = laidOut({
    ".git": "gitdir: store\n",
    "store/rebase-merge/": "",
    "store/sequencer": "",
    "store/other/": "",
  });
  assert.deepEqual(unfinishedIn(root), [join(root, "store/rebase-merge"), join(root, "store/sequencer")]);
  assert.deepEqual(unfinishedIn(laidOut({ ".git": "gitdir: gone\n" })), []);
  assert.deepEqual(unfinishedIn(laidOut({})), []);
});

// A whole policy.

function policyOf(cwd: string, more: Partial<SandboxPolicy> = {}): SandboxPolicy {
  return { cwd, writable: [], shielded: [], home: "/nonexistent", hidden: [], hosts: null, ...more };
}

test("a policy as mounts: parents before children, the last part of a path counts", () => {
  const root = laidOut({
    "p/agents/one/agent.json": "{}",
    "p/secret/key": "k",
    "p/file": "f",
    "more/kept/": "",
    "outside/": "",
    "home/.config/": "",
    "home/.ssh/id": "k",
    linked: { link: "more" },
  });
  const at = (path: string) => join(root, path);
  const policy = policyOf(at("p"), {
    writable: [at("more"), at("linked"), at("gone"), at("p")],
    shielded: [at("p/agents/one"), at("more/kept"), at("outside"), at("gone")],
    hidden: [at("p/secret"), at("p/file"), at("home/.ssh"), at("outside")],
    home: at("home"),
  });
  const found = mountsOf(policy)
    .filter(({ path }) => path.startsWith(root))
    .map(({ path, as }) => `${path.slice(root.length + 1)} ${as}`);
  assert.deepEqual(found, [
    "home ro",
    "more rw",
    "outside ro",
    "p rw",
    "home/.ssh hidden folder",
    "more/kept ro",
    "p/agents rw",
    "p/file hidden file",
    "p/secret hidden folder",
    "p/agents/one ro",
  ]);
  const scratch = mountsOf(policy).filter(({ as }) => as === "scratch");
  assert.ok(scratch.some(({ path }) => path === "/tmp"));
});

test("what is around a folder that may be written shields the whole of it", () => {
  const root = laidOut({ "kept/p/": "" });
  const mounts = mountsOf(policyOf(join(root, "kept/p"), { shielded: [join(root, "kept")] }));
  assert.equal(mounts.find(({ path }) => path === join(root, "kept/p"))?.as, "ro");
});

test("what is watched: of git in each folder, and what the policy names", () => {
  const root = laidOut({ "p/.git/config": "", "q/.git/hooks/": "" });
  const own = { path: join(root, "p/x"), link: null };
  const watched = watchedPaths(policyOf(join(root, "p"), { writable: [join(root, "q")], watched: [own] }));
  assert.deepEqual(
    watched.map(({ path }) => path.slice(root.length + 1)),
    [
      ...missing("p/.git", "config.worktree", "hooks", "info", "commondir"),
      "p/.git/worktrees",
      "p/.git/modules",
      ...missing("q/.git", "config", "config.worktree", "info", "commondir"),
      "q/.git/worktrees",
      "q/.git/modules",
      "p/x",
    ],
  );
});

test("what a command planted is put aside, and what it took away is put back", () => {
  const root = laidOut({
    planted: "run me",
    "made/one/": "",
    "made/one/out": { link: "/etc" },
    "made/two": { link: "/etc" },
    "made/plain": "",
    other: { link: "there" },
    turned: "a file",
    same: { link: "target" },
    door: { link: "elsewhere" },
    "elsewhere/inside": "x",
  });
  const at = (path: string) => join(root, path);
  const found = quarantine([
    { path: at("planted"), link: null },
    { path: at("absent"), link: null },
    { path: at("made"), link: null, isMade: true },
    { path: at("other"), link: "here" },
    { path: at("turned"), link: "where" },
    { path: at("same"), link: "target" },
    { path: at("lost"), link: "back" },
    { path: at("door/inside"), link: null },
  ]).map(({ path, to }) => [path.slice(root.length + 1), to === null ? null : to.slice(root.length + 1)]);
  assert.deepEqual(found, [
    ["planted", "lockstep-refused-planted/refused"],
    ["made/two", "made/lockstep-refused-two/refused"],
    ["made/one/out", "made/one/lockstep-refused-out/refused"],
    ["other", "lockstep-refused-other/refused"],
    ["turned", "lockstep-refused-turned/refused"],
    ["lost", null],
    ["door", "lockstep-refused-door/refused"],
  ]);
  assert.equal(readFileSync(at("lockstep-refused-planted/refused"), "utf8"), "run me");
  assert.equal(readFileSync(at("lockstep-refused-planted/.gitignore"), "utf8"), "*\n");
  assert.deepEqual(
    ["other", "turned", "same", "lost"].map((path) => readlinkSync(at(path))),
    ["here", "where", "target", "back"],
  );
  assert.ok(!existsSync(at("planted")) && existsSync(at("made/plain")) && existsSync(at("elsewhere/inside")));
  // A second one of the same name does not take the place of the first.
  writeFileSync(at("planted"), "again");
  assert.equal(
    quarantine([{ path: at("planted"), link: null }])[0]!.to,
    at("lockstep-refused-planted-2/refused"),
  );
});

// What is started.

const unused = () => Promise.reject(new Error("nothing is started"));
const bwrapWith = (
  bridge?: { readonly socket: string; readonly token: string | undefined },
  socat: string | null = "/usr/bin/so'cat",
) =>
  createBwrap({
    exec: unused,
    env: {},
    programs: { bwrap: "/usr/bin/bwrap", socat },
    ...(bridge !== undefined && { bridge: { ...bridge, close: () => Promise.resolve() } }),
  });

test("bubblewrap is started with what the policy says", () => {
  const root = laidOut({ "p/hidden/": "", "p/sub/": "", alias: { link: "p/sub" } });
  const cwd = join(root, "p");
  const policy = policyOf(cwd, { hidden: [join(cwd, "hidden")] });
  const has = (args: readonly string[], ...part: readonly string[]) =>
    args.join("\n").includes(part.join("\n"));
  const alone = bwrapWith().wrap("echo x", policy);
  assert.equal(alone[0], "/usr/bin/bwrap");
  for (const part of [
    ["--die-with-parent"],
    ["--unshare-net"],
    ["--disable-userns", "--cap-drop", "ALL", "--new-session"],
    ["--bind", cwd, cwd],
    ["--tmpfs", join(cwd, "hidden")],
    ["--remount-ro", join(cwd, "hidden")],
    ["--perms", "1777", "--size", String(1024 ** 3), "--tmpfs", "/tmp"],
    ["--chdir", cwd, "--"],
  ])
    assert.ok(has(alone, ...part), part.join(" "));
  assert.deepEqual(alone.slice(-4), ["sh", "/bin/sh", "-c", "echo x"]);
  assert.ok(!has(alone, "--info-fd") && alone.indexOf("--remount-ro") > alone.lastIndexOf("--tmpfs"));
  assert.match(alone[alone.indexOf("--") + 3]!, /npm_config_fetch_retries/);

  const open = bwrapWith().wrap(
    ["ls", "-l"],
    { ...policy, hosts: "all" },
    join(root, "alias"),
    { A: "1" },
    5,
    true,
  );
  assert.ok(
    has(open, "--info-fd", "5") && has(open, "--setenv", "A", "1") && has(open, "--chdir", join(cwd, "sub")),
  );
  assert.ok(!has(open, "--die-with-parent") && !has(open, "--unshare-net"));
  assert.deepEqual(open.slice(-3), ["sh", "ls", "-l"]);
  assert.doesNotMatch(open[open.indexOf("--") + 3]!, /npm_config_fetch_retries/);
  assert.ok(has(bwrapWith().wrap("x", policy, join(root, "gone")), "--chdir", join(root, "gone")));

  const bridged = bwrapWith({ socket: "/s", token: "t" });
  const line = bridged.wrap("x", { ...policy, hosts: ["h"] });
  assert.ok(has(line, "--bind", "/s", "/tmp/.lockstep-proxy.sock"));
  assert.match(line[line.indexOf("--") + 3]!, /'\/usr\/bin\/so'\\''cat' TCP-LISTEN/);
  assert.equal(bridged.env.HTTPS_PROXY, "http://srt:t@127.0.0.1:3128");
  assert.equal(bridged.env.https_proxy, "http://srt:t@127.0.0.1:3128");
  assert.equal(bwrapWith({ socket: "/s", token: undefined }).env.HTTP_PROXY, "http://127.0.0.1:3128");
  assert.deepEqual([bridged.id, bwrapWith().id, bwrapWith().env], ["bwrap+srt", "bwrap", {}]);
});

test("bubblewrap that was never started says one line and nothing else", () => {
  const { notStarted, wrap } = bwrapWith();
  const root = laidOut({ "p/": "" });
  const wrapped = wrap("x", policyOf(join(root, "p")));
  const ended = (stderr: string, exitCode = 1, stdout = "") =>
    ({ exitCode, stdout, stderr }) as Parameters<typeof notStarted>[1];
  const said = `bwrap: Can't find source path ${join(root, "p")}: No such file or directory\n`;
  assert.deepEqual(notStarted(wrapped, ended(said)), { why: said.trim(), isOutdated: false });
  const gone = wrapped.map((part) => part.replace(join(root, "p"), join(root, "gone")));
  const missed = said.replace(join(root, "p"), join(root, "gone"));
  assert.deepEqual(notStarted(gone, ended(missed)), { why: missed.trim(), isOutdated: true });
  // Only what comes before the command is a mount.
  assert.equal(notStarted(["bwrap", "--", join(root, "gone")], ended(missed))?.isOutdated, false);
  for (const other of [ended(said, 2), ended(said, 1, "out"), ended(`${said}more\n`), ended(`x ${said}`)])
    assert.equal(notStarted(wrapped, other), null);
});
