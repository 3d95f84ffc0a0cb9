/** Every probe can fail: in a place where the protection is missing, or with the line of code taken out that gives it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { hasBwrap, NO_BWRAP } from "../../boundaries/confined.ts";
import { needs } from "../../needs.ts";
import {
  MAIN,
  createWorld,
  onlyDocument,
  replies,
  script,
  start,
  writeCheckedAgent,
  type World,
} from "../world.ts";

type Probe = { readonly limit: string; readonly state: "enforced" | "advisory"; readonly why: string };
type Place = World & { readonly home: string };

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A repository with an agent that may run commands, and a home folder that holds a key. */
function place(boundaries: object = {}, github?: object): Place {
  const world = createWorld();
  const home = mkdtempSync(join(realpathSync(homedir()), ".lockstep-home-"));
  made.push(world.root, home, ...[world.env.HOME ?? []].flat());
  writeCheckedAgent(world, "busy", "true", 1);
  const file = join(world.root, ".agent/busy/agent.json");
  const agent = JSON.parse(readFileSync(file, "utf8")) as {
    runner: { boundaries: object; integrations: { github?: object } };
  };
  agent.runner.boundaries = { allowedTools: ["*"], permissionMode: "acceptEdits", ...boundaries };
  if (github !== undefined) agent.runner.integrations = { ...agent.runner.integrations, github };
  writeFileSync(file, JSON.stringify(agent));
  for (const [path, text] of [
    [".ssh/id_ed25519", "key"],
    [".config/lockstep/config.json", "{}"],
  ] as const) {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  execFileSync("git", ["init", "-q", "."], { cwd: world.root });
  return { ...world, home };
}

/** The same with one run in its journal. */
async function placeWithRun(boundaries: object = {}): Promise<Place> {
  const world = place(boundaries);
  await run(world, { LOCKSTEP_TRUST: "all" });
  return world;
}

async function run(world: Place, env: NodeJS.ProcessEnv, args: readonly string[] = []): Promise<void> {
  world.write("script.json", script(replies.initial(), replies.continuation(), replies.closure()));
  const line = ["run", "busy", "--topic", "x", "--script", "script.json", ...args];
  const ran = await world.lockstep(line, { env: { HOME: world.home, ...env } });
  assert.equal(ran.code, 0, ran.stderr);
}

async function probesOf(
  world: Place,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<ReadonlyMap<string, Probe>> {
  const before = leftIn(world);
  const ran = await world.lockstep(["probe", "busy", "--json", ...args], {
    env: { HOME: world.home, ...env },
  });
  assert.deepEqual(leftIn(world), before, "something is left behind");
  const { probes } = onlyDocument(ran) as { probes: readonly Probe[] };
  for (const probe of probes) assert.deepEqual(Object.keys(probe), ["limit", "state", "why"]);
  return new Map(probes.map((probe) => [probe.limit, probe]));
}

/** Everything in the project and the home folder, by name. */
function leftIn({ root, home }: Place): readonly string[] {
  return [root, home, join(root, ".agent"), join(root, ".git"), join(root, ".lockstep")]
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .toSorted();
}

function statesOf(probes: ReadonlyMap<string, Probe>, limits: readonly string[]) {
  return Object.fromEntries(limits.map((limit) => [limit, probes.get(limit)?.state ?? "no such probe"]));
}

function all(limits: readonly string[], state: Probe["state"]) {
  return Object.fromEntries(limits.map((limit) => [limit, state]));
}

const IN_SANDBOX = [
  "commands write only in their folders",
  "the system is not changed",
  "agents are not changed",
  "Lockstep's own package is not changed",
  "packages that Lockstep may load are not changed",
  "node_modules/.bin is not changed",
  "git hooks are not planted",
  "git's settings are not changed",
  "keys, sessions and shell files are not seen",
  "the record of runs is not seen or changed",
  "what is trusted is not seen or changed",
  "other processes are not seen",
  "other processes are not signalled",
  "no privileges are gained",
  "nothing is mounted",
  "named pipes of the home folder are not reached",
  "sockets of services are not reached",
  "datagram sockets are not reached",
  "services of this machine are not reached",
  "hooks, modules and tool servers are confined like commands",
  "hosts on the network",
];

const hasSocat = spawnSync("socat", ["-V"]).status === 0;
const NO_SOCAT = "socat is not installed (apt install socat)";

describe("the sandbox", needs(hasBwrap && hasSocat, hasBwrap ? NO_SOCAT : NO_BWRAP), () => {
  test("holds, where it is whole", async () => {
    const world = await placeWithRun();
    // The folder is one that npx would put on the PATH.
    const bin = join(world.root, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    const probes = await probesOf(world, [], { PATH: `${bin}:${process.env.PATH}` });
    assert.deepEqual(statesOf(probes, IN_SANDBOX), all(IN_SANDBOX, "enforced"));
    assert.match(probes.get("node_modules/.bin is not changed")!.why, new RegExp(bin));
    assert.match(probes.get("keys, sessions and shell files are not seen")!.why, /\.ssh/);
    assert.match(
      probes.get("hooks, modules and tool servers are confined like commands")!.why,
      /mnt:\[\d+\]/,
    );
  });

  test("is not promised where it is switched off or cannot be opened", async () => {
    const world = place();
    for (const [args, env, why] of [
      [["--sandbox", "off"], {}, /not confined: disabled by --sandbox off/],
      [["--sandbox", "on"], { PATH: withoutBwrap() }, /bubblewrap is not installed/],
      [[], { PATH: withoutBwrap() }, /bubblewrap is not installed/],
    ] as const) {
      const probes = await probesOf(world, args, env);
      assert.deepEqual(statesOf(probes, IN_SANDBOX), all(IN_SANDBOX, "advisory"));
      for (const limit of IN_SANDBOX) assert.match(probes.get(limit)!.why, why);
    }
  });

  test("is found out where the network is shared", async () => {
    const probes = await probesOf(place(), ["--network", "all"]);
    const open = ["services of this machine are not reached", "hosts on the network"];
    assert.deepEqual(statesOf(probes, open), all(open, "advisory"));
    assert.match(probes.get(open[0]!)!.why, /got through/);
  });

  test("is found out where bubblewrap confines less than it should", async () => {
    const world = await placeWithRun();
    const bin = join(world.root, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    const probes = await probesOf(world, [], { PATH: `${weakBwrap()}:${bin}:${process.env.PATH}` });
    // What only root could do is left out: the test may be anybody's.
    const forRoot = /system|privileges|mounted|own package|may load/;
    const open = IN_SANDBOX.filter((limit) => !forRoot.test(limit));
    assert.deepEqual(statesOf(probes, open), all(open, "advisory"));
    for (const limit of open) assert.doesNotMatch(probes.get(limit)!.why, /not tried/);
  });

  test("keeps a Lockstep that is installed in the project, or is found out", async () => {
    const world = place();
    const modules = join(world.root, "node_modules");
    cpSync(join(MAIN, "../../.."), join(modules, "lockstep"), { recursive: true });
    mkdirSync(join(modules, "ajv"));
    writeFileSync(join(modules, "ajv/package.json"), "{}");
    mkdirSync(join(modules, ".bin"));
    const limits = [
      "Lockstep's own package is not changed",
      "packages that Lockstep may load are not changed",
      "node_modules/.bin is not changed",
    ];
    const installed = async (PATH = process.env.PATH) => {
      const main = join(modules, "lockstep/dist/bin/main.js");
      const env = { ...world.env, HOME: world.home, PATH };
      const ran = await start(process.execPath, [main, "probe", "busy", "--json"], world.root, { env });
      const { probes } = onlyDocument(ran) as { probes: readonly Probe[] };
      return new Map(probes.map((probe) => [probe.limit, probe]));
    };
    const files = () => readdirSync(modules, { recursive: true, encoding: "utf8" }).toSorted();
    const before = files();
    const whole = await installed();
    assert.deepEqual(statesOf(whole, limits), all(limits, "enforced"));
    const tools = whole.get("what Lockstep loads, for Write and Edit")!;
    assert.equal(tools.state, "enforced");
    assert.match(tools.why, /\d+ places of it in the working directory/);
    const weak = await installed(`${weakBwrap()}:${process.env.PATH}`);
    assert.deepEqual(statesOf(weak, limits), all(limits, "advisory"));
    assert.deepEqual(files(), before);
  });

  test("is not promised of what cannot be tried here", async () => {
    const world = place();
    rmSync(join(world.root, ".git"), { recursive: true });
    const probes = await probesOf(world);
    for (const limit of ["the record of runs is not seen or changed", "git hooks are not planted"])
      assert.match(probes.get(limit)!.why, /^not tried: there is n/);
  });
});

/** A PATH on which everything is but bubblewrap. */
function withoutBwrap(): string {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-path-"));
  made.push(folder);
  for (const name of ["sh", "git", "env"]) symlinkSync(`/usr/bin/${name}`, join(folder, name));
  return folder;
}

/** The real one, called without what keeps network and processes apart, hides places, and makes them read-only. */
function weakBwrap(): string {
  const folder = mkdtempSync(join(realpathSync(homedir()), ".lockstep-bwrap-"));
  made.push(folder);
  const real = execFileSync("sh", ["-c", "command -v bwrap"], { encoding: "utf8" }).trim();
  const source = `#!${process.execPath}
const { spawnSync } = require("node:child_process");
const args = process.argv.slice(2);
const end = args.indexOf("--");
const [options, command] = [args.slice(0, end), args.slice(end)];
const kept = [];
for (let at = 0; at < options.length; at++) {
  const [name, one, two] = options.slice(at, at + 3);
  if (["--unshare-net", "--unshare-pid", "--disable-userns"].includes(name)) continue;
  if (name === "--remount-ro") { at += 1; continue; }
  if (name === "--tmpfs" && !["/tmp", "/var/tmp", "/dev/shm", "/run"].includes(one)) { at += 1; continue; }
  if (name === "--proc") { kept.push("--ro-bind", "/proc", "/proc"); at += 1; continue; }
  if (name === "--ro-bind" && one === "/dev/null") { at += 2; continue; }
  if (name === "--ro-bind" && one !== "/") { kept.push("--bind", one, two); at += 2; continue; }
  kept.push(name);
}
const home = process.env.HOME;
// A module that shares the namespace of its parent is not in one of its own.
const isModule = command.includes("--input-type=module");
const [program, list] = isModule
  ? [command[1], command.slice(2)]
  : ["${real}", [...kept, "--bind", home, home, ...command]];
const { status } = spawnSync(program, list, { stdio: ["ignore", "inherit", "inherit", isModule ? 3 : "ignore"] });
process.exit(status ?? 1);
`;
  writeFileSync(join(folder, "bwrap"), source, { mode: 0o755 });
  return folder;
}

describe("an agent", () => {
  const cases: readonly [string, readonly string[], Probe["state"], RegExp][] = [
    ["that may run any command", ["*"], "advisory", /step initial\.note may run any command/],
    [
      "with an entry that is as good as any",
      ["Bash(git log:*)"],
      "advisory",
      /Bash\(git log:\*\) \(--output/,
    ],
    ["with whole commands", ["Read", "Bash(npm test)"], "enforced", /no entry is as good as any/],
    ["without commands", ["Read"], "enforced", /no step may run commands/],
  ];
  for (const [name, allowedTools, state, why] of cases)
    test(`${name}: what its list of commands is worth`, async () => {
      const probes = await probesOf(place({ allowedTools }));
      const { state: told, why: words } = probes.get("the lists of commands of this agent")!;
      assert.equal(told, state);
      assert.match(words, why);
    });

  test("is told as trusted, as asked about, or as let through by the environment", async () => {
    const world = place();
    const limit = "nothing of this project is done before you trust it";
    const ask = (await probesOf(world)).get(limit)!;
    assert.equal(ask.state, "enforced");
    assert.match(ask.why, /would ask about \d+ things? first: lockstep trust show busy/);
    assert.equal((await probesOf(world, [], { LOCKSTEP_TRUST: "all" })).get(limit)!.state, "advisory");
    const shown = await world.lockstep(["trust", "show", "busy"], { env: { HOME: world.home } });
    const [digest = ""] = /\b[0-9a-f]{64}\b/.exec(shown.stdout + shown.stderr) ?? [];
    await run(world, {}, ["--trust", digest]);
    assert.match((await probesOf(world)).get(limit)!.why, /you trusted \d+ things? of it on 20/);
  });

  test("in a project with another user's journal is found out", async () => {
    const world = await placeWithRun();
    const limit = "the journal of this project is yours";
    assert.equal((await probesOf(world)).get(limit)!.state, "enforced");
    rmSync(join(world.home, ".config/lockstep/states"), { recursive: true });
    const { state, why } = (await probesOf(world)).get(limit)!;
    assert.equal(state, "advisory");
    assert.match(why, /can only be looked at until you say yes: you did not make it/);
  });

  test("whose answers may use labels is told with them", async () => {
    const github = { enabled: true, labels: { requirements: "docs" }, answerLabels: ["ready"] };
    const { state, why } = (await probesOf(place({}, github))).get("labels that an answer may use")!;
    assert.equal(state, "enforced");
    assert.match(why, /docs.*ready/);
  });

  test("over ACP gets no promise about its tools", async () => {
    const world = place();
    const config = { defaultBackend: "acp", acp: { command: "some-agent" } };
    writeFileSync(join(world.home, ".config/lockstep/config.json"), JSON.stringify(config));
    const limits = [...IN_TOOLS.keys()].filter((limit) => !/swapped|shown whole/.test(limit));
    assert.deepEqual(statesOf(await probesOf(world), limits), all(limits, "advisory"));
  });
});

test("a program that everybody can replace is found out", async () => {
  const world = place();
  const folder = mkdtempSync(join(tmpdir(), "lockstep-open-"));
  made.push(folder);
  writeFileSync(join(folder, "gh"), "#!/bin/sh\n", { mode: 0o755 });
  execFileSync("chmod", ["777", folder]);
  const limit = "programs that Lockstep starts are not the project's";
  const plain = (await probesOf(world)).get(limit)!;
  assert.equal(plain.state, "enforced", plain.why);
  assert.match(plain.why, /\/git\b/);
  const { state, why } = (await probesOf(world, [], { PATH: `${folder}:${process.env.PATH}` })).get(limit)!;
  assert.equal(state, "advisory");
  assert.ok(why.includes(`everybody on this machine can write ${folder}`), why);
});

/** What is taken out of the code: in `file`, each text by the other. */
type Defect = { readonly file: string; readonly texts: readonly (readonly [from: string, to: string])[] };

/** By what the probe is called that must notice. */
const IN_TOOLS: ReadonlyMap<string, Defect> = new Map(
  Object.entries({
    "tools outside of the step's list": {
      file: "boundaries/gate/gate.ts",
      texts: [["if (!allow.some((pattern) => lists(pattern, name)))", "if (allow === null)"]],
    },
    "tools that change something, in plan mode": {
      file: "boundaries/gate/gate.ts",
      texts: [['return deny(step, name, "mode", "plan allows read-only tools only");', "return null;"]],
    },
    "files outside of the folder, for Read, Write and Edit": {
      file: "boundaries/gate/paths.ts",
      texts: [
        [
          "if (!isInside(root, real)) return refuse(path, `it is",
          "if (path === '') return refuse(path, `it is",
        ],
      ],
    },
    "a folder that is swapped for a link after the judgement": {
      file: "boundaries/tools/pinned.ts",
      texts: [["constants.O_DIRECTORY | constants.O_NOFOLLOW", "constants.O_DIRECTORY"]],
    },
    "agents and git's own files, for Write and Edit": {
      file: "boundaries/gate/paths.ts",
      texts: [
        ["if (control !== undefined)", "if (path === '')"],
        ["return shield === undefined ? place", "return path !== '' ? place"],
      ],
    },
    "what Lockstep loads, for Write and Edit": {
      file: "boundaries/gate/paths.ts",
      texts: [["if (own !== undefined)", "if (path === '')"]],
    },
    "the records of runs and your settings, for all tools": {
      file: "boundaries/gate/paths.ts",
      texts: [["if (ways.some((parts) => parts.includes(RECORDS)))", "if (path === '')"]],
    },
    "words that built-ins of bash evaluate, in a list of commands": {
      file: "boundaries/gate/builtins.ts",
      texts: [["if (program === undefined) return null;", "if (program !== null) return null;"]],
    },
    "a call is shown whole before a person allows it": {
      file: "flow/text/call-shown.ts",
      texts: [
        ["const shown = cut(whole);", "const shown = whole.slice(0, 12);"],
        ["isCut: shown !== whole", "isCut: false"],
      ],
    },
  }),
);

const IN_PROCESS: ReadonlyMap<string, Defect> = new Map(
  Object.entries({
    "a planted program is not started": {
      file: "boundaries/sandbox/program.ts",
      texts: [["return /\\/node_modules", "return path === '' && /\\/node_modules"]],
    },
    "git does not obey a repository inside of the project": {
      file: "effects/git/git-queries.ts",
      texts: [['"--ignore-submodules=dirty"', '"--ignore-submodules=none"']],
    },
    "git does not obey files that only look like a repository": {
      file: "effects/git/git.ts",
      texts: [
        ['"safe.bareRepository=explicit"', '"safe.bareRepository=all"'],
        // Obeyed once it is taken for a repository.
        ['"core.fsmonitor=false",', ""],
      ],
    },
    "git does not start what the repository's settings name": {
      file: "effects/git/git-settings.ts",
      texts: [["/^filter\\..+\\.(?:clean|smudge|process)$/s", "/^nothing$/"]],
    },
    "a merge that changes agents, records or hooks is held": {
      file: "flow/machine/control.ts",
      texts: [["CONTROL.has(part) ||", ""]],
    },
    "inherited descriptors lead nowhere in a command": {
      file: "effects/process/descriptors.ts",
      texts: [["inherited ??= findInherited();", "inherited ??= [];"]],
    },
    "a hostile pattern ends in counted steps": {
      file: "flow/text/pattern.ts",
      texts: [["left -= steps;", ""]],
    },
    "a pipe in the place of a file is not waited for": {
      file: "run/world/files.ts",
      texts: [["if (!stats.isFile()) throw", "if (stats === null) throw"]],
    },
    "a secret is taken out of streamed text": {
      file: "boundaries/redact/redact.ts",
      texts: [["const to = certainEnd(seen, spans, needles);", "const to = seen.length;"]],
    },
    "nothing of this project is done before you trust it": {
      file: "run/trust/trust.ts",
      texts: [["if (lines.length === 0) return;", "if (lines.length >= 0) return;"]],
    },
    "a journal that you did not make is not obeyed": {
      file: "run/trust/state-folders.ts",
      texts: [
        [
          "if (record === null)\n    return foreign(",
          'if (record === null) return { kind: "ours", isBound: true };\n  if (id === "") return foreign(',
        ],
      ],
    },
    "links in a state folder are not followed": {
      file: "journal/sqlite/inside.ts",
      texts: [["if (link !== undefined) throw linked", "if (stateDir === '') throw linked"]],
    },
    "labels that an answer may use": {
      file: "effects/actions/closing.ts",
      texts: [
        [
          "return openedLabels(github).some(",
          "return openedLabels(github).length >= 0 || openedLabels(github).some(",
        ],
      ],
    },
    "flags for safety, limits, locations and output belong to you": {
      file: "cli/args.ts",
      texts: [['findIn(name, reserved, "built-in") ??', ""]],
    },
  }),
);

const SRC = join(import.meta.dirname, "../../../src");

/** The command from its sources, with the defects in them, and with a descriptor that it inherited. */
async function withDefects(world: Place, defects: readonly Defect[]): Promise<ReadonlyMap<string, Probe>> {
  const texts = defects.map(({ file, texts: pairs }) => [join(SRC, file), pairs]);
  for (const { file } of defects) assert.ok(existsSync(join(SRC, file)), file);
  const hook = `import { registerHooks } from "node:module";
const defects = ${JSON.stringify(texts)};
registerHooks({ load(url, context, next) {
  const loaded = next(url, context);
  const all = defects.filter(([file]) => url === "file://" + file).flatMap(([, pairs]) => pairs);
  if (all.length === 0) return loaded;
  let source = String(loaded.source);
  for (const [from, to] of all) {
    if (!source.includes(from)) { console.error("no such text in " + url + ": " + from); process.exit(99); }
    source = source.replace(from, () => to);
  }
  return { ...loaded, source };
} });`;
  const file = join(world.home, "hook.mjs");
  writeFileSync(file, hook);
  const line = 'exec 23<"$1"; shift; exec "$@"';
  const args = [process.execPath, "--import", file, join(SRC, "cli/main.ts"), "probe", "busy", "--json"];
  const ran = await start("bash", ["-c", line, "bash", world.home, ...args], world.root, {
    env: { ...world.env, HOME: world.home },
  });
  assert.notEqual(ran.code, 99, ran.stderr);
  const { probes } = onlyDocument(ran) as { probes: readonly Probe[] };
  return new Map(probes.map((probe) => [probe.limit, probe]));
}

describe("Lockstep's own process", () => {
  const all$ = new Map([...IN_TOOLS, ...IN_PROCESS]);
  const limits = [...all$.keys()];
  const github = { enabled: true, labels: { requirements: "docs" } };

  test("holds, with all of its lines", async () => {
    const probes = await withDefects(place({}, github), []);
    assert.deepEqual(statesOf(probes, limits), all(limits, "enforced"));
    assert.match(probes.get("inherited descriptors lead nowhere in a command")!.why, /lead to \/dev\/null/);
    for (const [limit, { why }] of probes)
      if (limit.startsWith("git does not")) assert.match(why, /a plain `git/);
  });

  test("is found out without them, and what the attempts made is gone again", async () => {
    const world = place({}, github);
    const before = [...leftIn(world), join(world.home, "hook.mjs")].toSorted();
    const probes = await withDefects(world, [...all$.values()]);
    const told = Object.fromEntries(
      limits.map((limit) => [
        limit,
        probes.get(limit)!.why.startsWith("not tried") ? "not tried" : probes.get(limit)!.state,
      ]),
    );
    assert.deepEqual(told, all(limits, "advisory"));
    assert.deepEqual(leftIn(world), before);
    assert.ok(!readdirSync(join(SRC, "run")).some((name) => name.startsWith("lockstep-probe")));
  });
});
