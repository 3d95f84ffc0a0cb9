/** Whether commands are confined, by who said what and what the machine can do; each case is a run by the public door. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import {
  createMemoryJournal,
  resume,
  run,
  runBatch,
  show,
  type Backend,
  type DriveOptions,
} from "../../../src/run/index.ts";
import { load } from "../../../src/run/load.ts";
import { decideSandbox } from "../../../src/run/world/sandbox-decision.ts";
import { settle } from "../../../src/run/world/sandbox.ts";
import { hasBwrap, NO_BWRAP } from "../../boundaries/confined.ts";
import { needs } from "../../needs.ts";
import { agentFiles, projectWith, writeFiles } from "../project.ts";

const bwrap = needs(hasBwrap, NO_BWRAP);
const OURS = readlinkSync("/proc/self/ns/mnt");

const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

function folderIn(where: string): string {
  const folder = realpathSync(mkdtempSync(join(where, ".lockstep-test-")));
  made.push(folder);
  return folder;
}

const home = folderIn(homedir());
/** A PATH on which everything is but bubblewrap. */
const bare = folderIn(tmpdir());
for (const name of ["sh", "cat", "readlink"]) symlinkSync(`/usr/bin/${name}`, join(bare, name));

type Wish = "on" | "off" | "auto";
type Case = {
  readonly wish: Wish;
  /** What the agent file says of `sandbox.enabled`; null: it has no `sandbox`. */
  readonly says: boolean | null;
  readonly starts: boolean;
  readonly confinable: boolean;
};

/** Where it runs, and what is said about it: at once (loud) or only in the result. */
type Expected = "confined" | "confined, said" | "open" | "open, said" | "open, loud" | "idle" | "exit 3";

/** What happens where bubblewrap works, and where there is none. */
const TABLE: readonly (readonly [
  wish: Wish,
  says: boolean | null,
  flow: "starts" | "idle",
  backend: "ours" | "foreign",
  works: Expected,
  missing: Expected,
])[] = [
  ["off", true, "starts", "ours", "open, said", "open, said"],
  ["off", true, "starts", "foreign", "open, said", "open, said"],
  ["off", true, "idle", "ours", "open", "open"],
  ["off", true, "idle", "foreign", "open, said", "open, said"],
  ["off", false, "starts", "ours", "open", "open"],
  ["off", false, "starts", "foreign", "open", "open"],
  ["off", false, "idle", "ours", "open", "open"],
  ["off", false, "idle", "foreign", "open", "open"],
  ["off", null, "starts", "ours", "open", "open"],
  ["off", null, "starts", "foreign", "open", "open"],
  ["off", null, "idle", "ours", "open", "open"],
  ["off", null, "idle", "foreign", "open", "open"],
  ["on", true, "starts", "ours", "confined", "exit 3"],
  ["on", true, "starts", "foreign", "exit 3", "exit 3"],
  ["on", true, "idle", "ours", "idle", "idle"],
  ["on", true, "idle", "foreign", "exit 3", "exit 3"],
  ["on", false, "starts", "ours", "confined", "exit 3"],
  ["on", false, "starts", "foreign", "exit 3", "exit 3"],
  ["on", false, "idle", "ours", "idle", "idle"],
  ["on", false, "idle", "foreign", "exit 3", "exit 3"],
  ["on", null, "starts", "ours", "confined", "exit 3"],
  ["on", null, "starts", "foreign", "exit 3", "exit 3"],
  ["on", null, "idle", "ours", "idle", "idle"],
  ["on", null, "idle", "foreign", "exit 3", "exit 3"],
  ["auto", true, "starts", "ours", "confined", "exit 3"],
  ["auto", true, "starts", "foreign", "exit 3", "exit 3"],
  ["auto", true, "idle", "ours", "idle", "idle"],
  ["auto", true, "idle", "foreign", "exit 3", "exit 3"],
  ["auto", false, "starts", "ours", "confined, said", "open, loud"],
  ["auto", false, "starts", "foreign", "open, loud", "open, loud"],
  ["auto", false, "idle", "ours", "idle", "idle"],
  ["auto", false, "idle", "foreign", "open, loud", "open, loud"],
  ["auto", null, "starts", "ours", "confined", "open, loud"],
  ["auto", null, "starts", "foreign", "open, loud", "open, loud"],
  ["auto", null, "idle", "ours", "idle", "idle"],
  ["auto", null, "idle", "foreign", "open, loud", "open, loud"],
];

describe("commands are confined, or the run says why not", bwrap, () => {
  for (const [wish, says, flow, backend, works, missing] of TABLE) {
    const one = { wish, says, starts: flow === "starts", confinable: backend === "ours" };
    const name = `--sandbox ${wish}, enabled: ${says ?? "not said"}, ${flow}, ${backend}`;
    test(`${name}: ${works}`, async () => await expectOf(one, works, process.env.PATH!));
    test(`${name}, no bubblewrap: ${missing}`, async () => await expectOf(one, missing, bare));
  }
});

async function expectOf(one: Case, expected: Expected, PATH: string): Promise<void> {
  const { result, heard, entries, cwd } = await go(one, PATH);
  if (expected === "exit 3") {
    assert.deepEqual([result.exitCode, result.code, result.run], [3, "SANDBOX_UNAVAILABLE", null]);
    assert.deepEqual([heard, result.sandbox], [[], null]);
    return;
  }
  assert.equal(result.success, true, result.reason);
  const [where, how = "silent"] = expected.split(", ");
  const about = result.warnings.filter((text) => /commands are (not )?sandboxed/i.test(text));
  assert.equal(about.length, how === "silent" ? 0 : 1, result.warnings.join("\n"));
  assert.deepEqual(heard, how === "loud" ? about : []);
  if (how === "loud")
    assert.match(about[0]!, /^Commands are not sandboxed: .*They run with your permissions\.$/);
  const held = result.sandbox;
  assert.equal(held?.confined, where === "confined");
  assert.equal(held.engine, where === "confined" ? "bwrap" : null);
  if (where === "idle") assert.match(held.why, /starts no process/);
  assert.deepEqual(entries[0]?.event.type === "run.started" && entries[0].event.sandbox, held);
  // A foreign agent is not given commands of ours here.
  if (!one.starts || !one.confinable) return;
  const ns = readFileSync(join(cwd, "ns"), "utf8").trim();
  assert.equal(ns === OURS, where !== "confined", ns);
}

function projectOf({ says, starts }: Pick<Case, "says" | "starts">, sandbox: object = {}): string {
  const tools = starts ? ["Bash", "Read"] : ["Read", "Grep", "Write"];
  const asked = says === null ? {} : { sandbox: { enabled: says, ...sandbox } };
  const boundaries = { allowedTools: tools, permissionMode: "acceptEdits", ...asked };
  return projectWith(
    agentFiles(
      "t",
      { "closure.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } } },
      { runner: { boundaries } },
    ),
  );
}

const REPLY = {
  kind: "reply",
  text: "",
  usage: { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null },
} as const;
const CLOSING = { ...REPLY, calls: [], output: { stepId: "closure.t", next_action: { action: "closing" } } };

/** Has the command run first, if there is one. */
function backendOf(confinable: boolean, command: string | null): Backend {
  if (!confinable) {
    const spec = { id: "foreign", options: null };
    return { spec, unconfinable: true, run: () => Promise.resolve(CLOSING) };
  }
  let asked = 0;
  return {
    spec: { id: "test", options: null },
    turn: () => {
      asked += 1;
      const call = { id: "1", name: "Bash", input: { command: command ?? "" } };
      return Promise.resolve(asked === 1 && command !== null ? { ...REPLY, calls: [call] } : CLOSING);
    },
  };
}

async function go({ wish, says, starts, confinable }: Case, PATH: string) {
  const cwd = projectOf({ says, starts });
  const heard: string[] = [];
  const journal = createMemoryJournal();
  const backend = backendOf(confinable, starts ? "readlink /proc/self/ns/mnt > ns" : null);
  const env = { PATH, HOME: home, LOCKSTEP_TRUST: "all" };
  const notify = (text: string) => heard.push(text);
  const result = await run({ agent: "t", cwd, journal, env, sandbox: wish, backend, notify });
  const entries = result.run === null ? [] : await journal.read(result.run);
  return { cwd, result, heard, entries };
}

/** A run that was stopped after its first command. */
async function begun(options: Partial<DriveOptions> = {}) {
  const cwd = projectOf({ says: null, starts: true });
  const journal = createMemoryJournal();
  const env = { PATH: process.env.PATH, HOME: home, LOCKSTEP_TRUST: "all" };
  const script = [{ calls: [{ name: "Bash", input: { command: "readlink /proc/self/ns/mnt > ns" } }] }];
  const first = await run({ agent: "t", cwd, journal, env, script, ...options });
  assert.equal(first.code, "SCRIPT_EXHAUSTED");
  return { cwd, journal, env, run: first.run! };
}

const MORE = [
  { calls: [{ name: "Bash", input: { command: "readlink /proc/self/ns/mnt > again" } }] },
  { output: { stepId: "closure.t", next_action: { action: "closing" } } },
];

describe("a run that goes on", bwrap, () => {
  test("is confined like one that begins, and says what held", async () => {
    const { cwd, journal, env, run: id } = await begun({ sandbox: "off" });
    assert.equal(readFileSync(join(cwd, "ns"), "utf8").trim(), OURS);
    const result = await resume({ run: id, cwd, journal, env, script: MORE });
    assert.equal(result.success, true, result.reason);
    assert.notEqual(readFileSync(join(cwd, "again"), "utf8").trim(), OURS);
    const why = "on by default";
    assert.deepEqual(result.sandbox, { confined: true, engine: "bwrap", network: "none", why });
    assert.deepEqual((await show(journal, id)).sandbox, result.sandbox);
  });

  test("what began confined stays so: where no engine works any more, exit 3 unless the user says off", async () => {
    const { cwd, journal, env, run: id } = await begun();
    const around = { run: id, cwd, journal, env: { ...env, PATH: bare }, script: MORE };
    for (const wish of ["on", "auto"] as const) {
      const refused = await resume({ ...around, sandbox: wish });
      assert.deepEqual([refused.code, refused.exitCode], ["SANDBOX_UNAVAILABLE", 3]);
    }
    const result = await resume({ ...around, sandbox: "off" });
    assert.equal(result.success, true, result.reason);
    assert.equal(result.sandbox?.confined, false);
  });

  test("what began without one goes on without one, and says so", async () => {
    const { cwd, journal, env, run: id } = await begun({ sandbox: "off" });
    const heard: string[] = [];
    const around = { run: id, cwd, journal, env: { ...env, PATH: bare }, script: MORE };
    const result = await resume({ ...around, notify: (text) => heard.push(text) });
    assert.equal(result.success, true, result.reason);
    assert.match(
      heard.join("\n"),
      /^Commands are not sandboxed: bubblewrap is not installed.*permissions\.$/,
    );
    assert.equal(result.sandbox?.confined, false);
  });
});

/** More mounts than bubblewrap takes, for what the project holds. */
test("a project cannot make the sandbox fail and so be rid of it", needs(hasBwrap, NO_BWRAP), async () => {
  const cwd = projectOf({ says: null, starts: true });
  const folders = Array.from({ length: 4000 }, (_, n) => join(cwd, "many", String(n)));
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  const places = {
    cwd,
    root: cwd,
    agentsDir: join(cwd, ".agent"),
    stateDir: join(cwd, ".lockstep"),
    configDir: join(home, ".config/lockstep"),
    home,
    own: () => ({ there: folders.map((path) => ({ path })), missing: [], links: [] }),
  };
  const sandbox = {
    enabled: true,
    network: { mode: "none", trustedDomains: [] },
    filesystem: { allowedPaths: [] },
    excludedCommands: [],
    allowUnsandboxedCommands: false,
  } as const;
  const asked = { sandbox, wish: "auto", network: "none", starts: true, unconfinable: null } as const;
  await assert.rejects(settle(decideSandbox(asked), places, process.env), { code: "SANDBOX_UNAVAILABLE" });
  // Without them it works, and where it works nowhere the run says so and goes on.
  const { own: _, ...plain } = places;
  await using works = await settle(decideSandbox(asked), plain, process.env);
  await using nowhere = await settle(decideSandbox(asked), places, { ...process.env, PATH: bare });
  assert.deepEqual([works.held.confined, nowhere.held.confined], [true, false]);
});

test(
  "a folder of a repository works below a scratch folder too, and sees what lies beside it",
  needs(hasBwrap, NO_BWRAP),
  async () => {
    const top = realpathSync(projectWith({ "beside/file.txt": "beside\n" }));
    const cwd = join(top, "packages/app");
    const boundaries = { allowedTools: ["Bash"], permissionMode: "acceptEdits" };
    const steps = {
      "closure.t": { kind: "closure", intents: ["closing"], transitions: { closing: { target: null } } },
    } as const;
    writeFiles(cwd, agentFiles("t", steps, { runner: { boundaries } }));
    spawnSync("git", ["init", "-q"], { cwd: top });
    const command =
      "{ git rev-parse --show-prefix; cat ../../beside/file.txt; touch ../../beside/new; } > seen 2>/dev/null";
    const env = { PATH: process.env.PATH, HOME: home, LOCKSTEP_TRUST: "all" };
    const result = await run({
      agent: "t",
      cwd,
      journal: createMemoryJournal(),
      env,
      backend: backendOf(true, command),
    });
    assert.equal(result.success, true, result.reason);
    assert.equal(readFileSync(join(cwd, "seen"), "utf8"), "packages/app/\nbeside\n");
    assert.equal(existsSync(join(top, "beside/new")), false);
  },
);

test("a home that is no folder confines as well", needs(hasBwrap, NO_BWRAP), async () => {
  const cwd = projectOf({ says: null, starts: true });
  const env = { PATH: process.env.PATH, HOME: "/dev/null", LOCKSTEP_TRUST: "all" };
  const backend = backendOf(true, "readlink /proc/self/ns/mnt > ns");
  const result = await run({ agent: "t", cwd, journal: createMemoryJournal(), env, backend });
  assert.deepEqual([result.success, result.sandbox?.confined], [true, true], result.reason);
});

test("a batch says it once", async () => {
  const cwd = projectOf({ says: null, starts: true });
  const heard: string[] = [];
  const env = { PATH: bare, HOME: home, LOCKSTEP_TRUST: "all" };
  const items = ["a", "b", "c"].map((name) => ({ name, args: {} }));
  const batch = await runBatch(await load("t", { cwd }), {
    cwd,
    env,
    items,
    journal: createMemoryJournal(),
    backend: { ...backendOf(true, null) },
    notify: (text) => heard.push(text),
  });
  assert.equal(batch.success, true);
  assert.equal(heard.length, 1, heard.join("\n"));
  for (const { result } of batch.items)
    assert.match(result!.warnings.join("\n"), /^Commands are not sandboxed/m);
});

describe("the network in the sandbox", bwrap, () => {
  const ran = async (options: Partial<DriveOptions>, sandbox?: object) => {
    const cwd = projectOf({ says: sandbox === undefined ? null : true, starts: true }, sandbox);
    const env = { PATH: process.env.PATH, HOME: home, LOCKSTEP_TRUST: "all" };
    const command =
      "ls /sys/class/net > nets; node -e 'fetch(\"http://lockstep.invalid\").catch((e) => { console.error(e.cause.code); process.exit(1) })'";
    const journal = createMemoryJournal();
    const backend = backendOf(true, command);
    const result = await run({ agent: "t", cwd, journal, env, backend, ...options });
    const entries = result.run === null ? [] : await journal.read(result.run);
    return { cwd, result, text: JSON.stringify(entries) };
  };
  const NONE = { network: { mode: "none" } };
  const HINT = /There is no network in the sandbox\. The user can open it: --network usual/;

  test("is closed where there is no proxy, and a command that misses it is told how to open it", async () => {
    const { result, text } = await ran({});
    assert.equal(result.sandbox?.network, "none");
    assert.match(text, HINT);
  });

  const CASES: readonly (readonly [
    name: string,
    options: Partial<DriveOptions>,
    sandbox: object | undefined,
    network: string | null,
  ])[] = [
    ["the user closes it", { network: "none" }, undefined, "none"],
    ["the user opens it", { network: "all" }, undefined, "all"],
    ["the user opens what the agent file closes", { network: "all" }, NONE, "all"],
    ["the agent file closes it", {}, NONE, "none"],
    ["the agent file says nothing of it", {}, {}, "none"],
    ["hosts that the user wants need the proxy", { network: ["a.example"] }, undefined, null],
    ["the usual hosts that the user wants need it too", { network: "usual" }, undefined, null],
    [
      "hosts of the agent file need it",
      {},
      { network: { mode: "custom", trustedDomains: ["a.example"] } },
      null,
    ],
  ];
  for (const [name, options, sandbox, network] of CASES) {
    test(name, async () => {
      const { result, text } = await ran(options, sandbox);
      if (network === null) {
        assert.deepEqual([result.code, result.exitCode], ["SANDBOX_UNAVAILABLE", 3]);
        assert.match(result.reason, /sandbox-runtime is not installed.*--network none/);
        return;
      }
      assert.equal(result.sandbox?.network, network, result.reason);
      assert.equal(HINT.test(text), network === "none");
    });
  }
});

describe("what commands find inside", bwrap, () => {
  /** A home below a folder that is empty inside, with a setting and a secret. */
  const scratchHome = folderIn(tmpdir());
  mkdirSync(join(scratchHome, ".ssh"));
  writeFileSync(join(scratchHome, ".ssh/id"), "key");
  writeFileSync(join(scratchHome, ".toolrc"), "setting");

  const FINDS: readonly (readonly [name: string, command: string, finds: string])[] = [
    ["the settings of tools in the home folder", "cat ~/.toolrc", "setting"],
    ["no keys there", "cat ~/.ssh/id 2>/dev/null || echo none", "none"],
    ["nothing to write there", "( : > ~/new ) 2>/dev/null || echo read-only", "read-only"],
    [
      "a cache for npm that can be written",
      'mkdir -p "$npm_config_cache" && echo "$npm_config_cache"',
      "/tmp/.cache/npm",
    ],
    ["no second try where there is no network", 'echo "$npm_config_fetch_retries"', "0"],
    ["temporary files", "f=$(mktemp) && echo x > $f && cat $f", "x"],
  ];
  for (const [name, command, finds] of FINDS) {
    test(name, async () => {
      const cwd = projectOf({ says: null, starts: true });
      const backend = backendOf(true, `{ ${command}; } > found`);
      const env = { PATH: process.env.PATH, HOME: scratchHome, LOCKSTEP_TRUST: "all" };
      const result = await run({ agent: "t", cwd, journal: createMemoryJournal(), env, backend });
      assert.equal(result.sandbox?.confined, true, result.reason);
      assert.equal(readFileSync(join(cwd, "found"), "utf8").trim(), finds);
    });
  }
});

test("a flow that starts nothing leaves bubblewrap alone, and Grep works", bwrap, async () => {
  const cwd = projectOf({ says: null, starts: false });
  const path = folderIn(tmpdir());
  writeFileSync(join(path, "bwrap"), `#!/bin/sh\ntouch ${path}/asked\n`, { mode: 0o755 });
  const call = { id: "1", name: "Grep", input: { pattern: "steps_registry" } };
  let asked = 0;
  const backend: Backend = {
    spec: { id: "test", options: null },
    turn: () => Promise.resolve((asked += 1) === 1 ? { ...REPLY, calls: [call] } : CLOSING),
  };
  const env = { PATH: `${path}:${process.env.PATH}`, HOME: home, LOCKSTEP_TRUST: "all" };
  const result = await run({ agent: "t", cwd, journal: createMemoryJournal(), env, backend });
  assert.equal(result.success, true, result.reason);
  assert.equal(existsSync(join(path, "asked")), false);
  const starting = projectOf({ says: null, starts: true });
  await run({
    agent: "t",
    cwd: starting,
    journal: createMemoryJournal(),
    env,
    backend: backendOf(true, null),
  });
  assert.equal(existsSync(join(path, "asked")), true, "it would have been noticed");
});
