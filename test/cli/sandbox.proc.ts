/** The sandbox as a user meets it: flags, settings, what is told when there is none, and the commands that look at it. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import {
  createWorld,
  onlyDocument,
  replies,
  script,
  writeCheckedAgent,
  type Ran,
  type World,
} from "./world.ts";

const ATTEMPT = '( : > "$HOME/reached" ) 2>/dev/null';
const made: string[] = [];
after(() => made.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

type Setting = {
  readonly sandbox?: object;
  /** The user's own settings. */
  readonly config?: object | string;
  readonly check?: string;
};

/** A project whose model and whose check both try to write to the home folder, which lies beside the project. */
function project({ sandbox, config, check = `! ${ATTEMPT}` }: Setting): World & { readonly home: string } {
  const world = createWorld();
  const home = mkdtempSync(join(homedir(), ".lockstep-home-"));
  made.push(world.root, home);
  writeCheckedAgent(world, "busy", check, 1);
  const file = join(world.root, ".agent/busy/agent.json");
  const agent = JSON.parse(readFileSync(file, "utf8")) as { runner: { boundaries: object } };
  agent.runner.boundaries = {
    allowedTools: ["*"],
    permissionMode: "acceptEdits",
    ...(sandbox && { sandbox }),
  };
  writeFileSync(file, JSON.stringify(agent));
  const calls = [{ name: "Bash", input: { command: `${ATTEMPT} && echo free || echo confined` } }];
  world.write(
    "script.json",
    script({ step: "initial.note", calls }, replies.initial(), replies.continuation(), replies.closure()),
  );
  if (config !== undefined) {
    mkdirSync(join(home, ".config/lockstep"), { recursive: true });
    writeFileSync(
      join(home, ".config/lockstep/config.json"),
      typeof config === "string" ? config : JSON.stringify(config),
    );
  }
  return { ...world, home };
}

const RUN = ["run", "busy", "--topic", "x", "--script", "script.json"];
const NONE = { network: { mode: "none" } };
/** A PATH on which everything is but bubblewrap. */
function withoutBwrap(): string {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-path-"));
  made.push(folder);
  for (const name of ["sh", "git", "env"]) symlinkSync(`/usr/bin/${name}`, join(folder, name));
  return folder;
}

function go(
  world: World & { readonly home: string },
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<Ran> {
  return world.lockstep(args, { env: { HOME: world.home, LOCKSTEP_TRUST: "all", ...env } });
}

describe("a run is confined", needs(hasBwrap, NO_BWRAP), () => {
  const cases: readonly [name: string, setting: Setting, flags: readonly string[]][] = [
    ["when nobody says anything", {}, []],
    ["when only the project does not want it", { sandbox: { enabled: false } }, []],
    ["when the agent asks for it", { sandbox: NONE }, []],
    ["when the user says so on the line", {}, ["--sandbox", "on"]],
    ["when the user's settings say so", { config: { sandbox: "on" } }, []],
    [
      "when the user's settings say so and the project does not want it",
      { sandbox: { enabled: false }, config: { sandbox: "on" } },
      [],
    ],
    [
      "when the line says auto and the agent asks",
      { sandbox: NONE, config: { sandbox: "off" } },
      ["--sandbox", "auto"],
    ],
  ];
  for (const [name, setting, flags] of cases) {
    test(name, async () => {
      const world = project(setting);
      const ran = await go(world, [...RUN, "--events", ...flags]);
      assert.equal(ran.code, 0, ran.stderr);
      assert.match(ran.stdout, /"content":"confined"/);
      assert.ok(!existsSync(join(world.home, "reached")));
    });
  }

  test("its steps that are commands too, and git says that nothing changed", async () => {
    const world = project({
      sandbox: NONE,
      check: "git init -q . && git add -A >/dev/null 2>&1; ! ( : > .agent/planted ) 2>/dev/null",
    });
    const file = join(world.root, ".agent/busy/steps_registry.json");
    const registry = JSON.parse(readFileSync(file, "utf8")) as { steps: { [id: string]: object } };
    const command = `${ATTEMPT} && r=free || r=confined; echo '{"stepId":"closure.note","note":"'$r'","next_action":{"action":"closing"}}'`;
    registry.steps["closure.note"] = {
      ...registry.steps["closure.note"],
      runner: { command: "sh", args: ["-c", command] },
    };
    writeFileSync(file, JSON.stringify(registry));
    const ran = await go(world, [...RUN, "--json"]);
    const { success, handoff, reason } = onlyDocument(ran) as {
      success: boolean;
      handoff: { [step: string]: object };
      reason: string;
    };
    assert.ok(success, reason);
    assert.deepEqual(handoff["closure.note"], { note: "confined" });
  });

  test("and so is what goes on with it", async () => {
    const world = project({ sandbox: NONE });
    world.write(
      "script.json",
      script({ step: "initial.note", text: "", calls: [{ name: "TodoWrite", input: { todos: [] } }] }),
    );
    assert.equal((await go(world, RUN)).code, 1);
    const calls = [{ name: "Bash", input: { command: `${ATTEMPT} && echo free || echo confined` } }];
    world.write("more.json", script({ calls }, replies.initial(), replies.continuation(), replies.closure()));
    const ran = await go(world, ["resume", "@last", "--script", "more.json", "--events"]);
    assert.match(ran.stdout, /"content":"confined"/);
    assert.equal(
      (await go(world, ["resume", "@last", "--json"], { PATH: withoutBwrap() })).code,
      0,
      "it is over",
    );
  });
});

/** Said once, before the first command. */
const LOUD =
  /^Commands are not sandboxed: bubblewrap is not installed; .*apt install bubblewrap\)\. They run with your permissions\.$/m;

describe("a run is not confined", () => {
  const cases: readonly [name: string, setting: Setting, flags: readonly string[], warning: RegExp | null][] =
    [
      ["when there is no engine, and nobody asked for one", {}, [], LOUD],
      [
        "when there is no engine, and the project does not want one",
        { sandbox: { enabled: false } },
        [],
        LOUD,
      ],
      ["when only the user says so", {}, ["--sandbox", "off"], null],
      [
        "when the user says so on the line",
        { sandbox: NONE },
        ["--sandbox", "off"],
        /not sandboxed, although the agent asks/,
      ],
      [
        "when the user's settings say so",
        { sandbox: NONE, config: { sandbox: "off" } },
        [],
        /not sandboxed, although the agent asks/,
      ],
    ];
  for (const [name, setting, flags, warning] of cases) {
    test(name, async () => {
      const world = project({ check: "test -d .agent", ...setting });
      const ran = await go(world, [...RUN, "--json", ...flags], { PATH: withoutBwrap() });
      const { warnings } = onlyDocument(ran) as { warnings: readonly string[] };
      assert.equal(ran.code, 0, ran.stdout);
      assert.ok(existsSync(join(world.home, "reached")));
      if (warning === null) assert.deepEqual(warnings, []);
      else assert.match(warnings.join("\n"), warning);
      const loud = ran.stderr.split("\n").findIndex((line) => LOUD.test(line));
      const first = ran.stderr.split("\n").findIndex((line) => line.includes("initial.note"));
      assert.equal(loud !== -1, warning === LOUD, ran.stderr);
      assert.ok(loud < first, ran.stderr);
    });
  }
});

describe("before any model or command, the end is", () => {
  const cases: readonly [
    name: string,
    setting: Setting,
    flags: readonly string[],
    code: number,
    says: RegExp,
  ][] = [
    [
      "3 without an engine",
      { sandbox: NONE },
      [],
      3,
      /asked for by the agent file: bubblewrap is not installed; install it.*--sandbox off.*"SANDBOX_UNAVAILABLE"/,
    ],
    [
      "3 when only the user wants one",
      {},
      ["--sandbox", "on"],
      3,
      /asked for by --sandbox on.*"SANDBOX_UNAVAILABLE"/,
    ],
    ["3 when settings cannot be read", { config: "{" }, [], 3, /config\.json: .*"CONFIG_INVALID"/],
    ["3 when settings are not known", { config: { sandbx: "on" } }, [], 3, /unknown key .*sandbx/],
    [
      "3 when settings give keys away",
      { config: { env: ["GITHUB_TOKEN"] } },
      [],
      3,
      /never passed to commands/,
    ],
    ["2 for a word it does not know", {}, ["--sandbox", "maybe"], 2, /--sandbox needs auto, on or off/],
    ["2 for every host", {}, ["--network", "*"], 2, /--network: .*it matches every host.*none, usual, all/],
    ["2 for this machine", {}, ["--network", "a.example,localhost"], 2, /every service on this machine/],
    ["3 when settings open every host", { config: { network: ["*.com"] } }, [], 3, /network: .*below \.com/],
    [
      "2 for a folder that holds everything",
      { sandbox: { filesystem: { allowedPaths: [".."] } } },
      [],
      2,
      /SANDBOX-PATH.*the record of runs lies in it/,
    ],
  ];
  for (const [name, setting, flags, code, says] of cases) {
    test(name, async () => {
      const world = project(setting);
      const ran = await go(world, [...RUN, "--json", ...flags], { PATH: withoutBwrap() });
      assert.equal(ran.code, code, ran.stdout);
      assert.match(ran.stdout, says);
      assert.equal(onlyDocument(ran)["run"], null);
      assert.ok(!existsSync(join(world.root, ".lockstep")));
    });
  }

  test("3 for hosts without the part that filters them", needs(hasBwrap, NO_BWRAP), async () => {
    const world = project({
      sandbox: { network: { mode: "custom", trustedDomains: ["registry.npmjs.org"] } },
    });
    const ran = await go(world, [...RUN, "--json"]);
    assert.equal(ran.code, 3);
    assert.match(
      ran.stdout,
      /npm install @anthropic-ai\/sandbox-runtime@[\d.]+ --prefix \S+\)\. Or run without a network: --network none/,
    );
  });
});

test("a variable that the user names is seen by commands, and no other", async () => {
  const world = project({
    config: { env: ["MY_TOOL_HOME"] },
    check: 'test "$MY_TOOL_HOME" = here && test -z "$OTHER_HOME"',
  });
  const ran = await go(world, RUN, { MY_TOOL_HOME: "here", OTHER_HOME: "there" });
  assert.equal(ran.code, 0, ran.stderr);
});

describe("looking at it", needs(hasBwrap, NO_BWRAP), () => {
  test("explain --boundary tells what a step may touch", async () => {
    const world = project({ sandbox: NONE });
    const { stdout, code } = await go(world, ["explain", "busy", "--boundary"]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /initial\.note +acceptEdits +Read, Write, Edit, Glob, Grep, Bash, TodoWrite, AskUserQuestion +any/,
    );
    assert.match(stdout, /sandbox +bwrap: asked for by the agent file/);
    assert.match(stdout, /network +none/);
    assert.ok(stdout.includes(world.root));
    const one = await go(world, ["explain", "busy", "closure.note", "--boundary", "--json"]);
    const { steps, sandbox, env } = onlyDocument(one) as {
      steps: object[];
      sandbox: { engine: string; readOnly: string[] };
      env: string[];
    };
    assert.equal(steps.length, 1);
    assert.equal(sandbox.engine, "bwrap");
    assert.ok(sandbox.readOnly.some((path) => path.endsWith(".agent")));
    assert.ok(env.includes("PATH") && !env.includes("LOCKSTEP_TRUST"));
    assert.equal((await go(world, ["explain", "busy", "nowhere", "--boundary"])).code, 2);
  });

  test("probe promises nothing of the gate for an agent that need not ask", async () => {
    const world = project({
      sandbox: NONE,
      config: { defaultBackend: "acp", acp: { command: "some-agent" } },
    });
    const { probes } = onlyDocument(await go(world, ["probe", "busy", "--json"])) as {
      probes: { limit: string; state: string; why: string }[];
    };
    const gate = probes.filter(({ limit }) => /^tools outside|^files outside/.test(limit));
    assert.deepEqual(
      gate.map(({ state }) => state),
      ["advisory", "advisory"],
    );
    assert.match(gate[0]!.why, /asks only when it wants to/);
  });

  test("probe says what is only advice, and why", async () => {
    const world = project({});
    const { stdout, code } = await go(world, ["probe", "busy", "initial.note", "--sandbox", "off"]);
    assert.equal(code, 0);
    assert.match(
      stdout,
      /advisory +commands write only in their folders +commands are not confined: disabled by --sandbox off/,
    );
    const missing = await go(project({ sandbox: NONE }), ["probe", "busy"], { PATH: withoutBwrap() });
    assert.equal(missing.code, 3);
    assert.match(missing.stdout, /advisory .*bubblewrap is not installed/);
  });

  test("explain says the same with and without --boundary, whatever holds", async () => {
    const world = project({});
    for (const [flags, env, confined] of [
      [[], {}, true],
      [["--sandbox", "off"], {}, false],
      [[], { PATH: withoutBwrap() }, false],
    ] as const) {
      const [plain, boundary] = await Promise.all(
        [[], ["--boundary"]].map(async (more) => {
          const told = onlyDocument(await go(world, ["explain", "busy", "--json", ...flags, ...more], env));
          return (told.sandbox as { confined: boolean }).confined;
        }),
      );
      assert.deepEqual([plain, boundary], [confined, confined], flags.join(" "));
      const text = (await go(world, ["explain", "busy", ...flags], env)).stdout;
      assert.match(text, confined ? /^ {2}commands +confined by bwrap/m : /^ {2}commands +not confined: /m);
    }
  });

  test("doctor tells whether there could be one", async () => {
    const world = project({});
    assert.match((await go(world, ["doctor"])).stdout, /ok +sandbox +bubblewrap confines/);
    assert.match(
      (await go(world, ["doctor"], { PATH: withoutBwrap() })).stdout,
      /warn +sandbox +bubblewrap is not installed/,
    );
  });
});
