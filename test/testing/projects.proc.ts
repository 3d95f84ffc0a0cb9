/** Tests on copies of a project, GitHub in tests, snapshots, and what a test in memory cannot do: through the command. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { judgeCommand } from "../../src/effects/checks/check-command.ts";
import { runProcess } from "../../src/effects/process/process.ts";
import type { StepGuard } from "../../src/flow/flow.ts";
import { NOTHING_AROUND } from "../../src/flow/flow-test.ts";
import { OF_A_COPY } from "../../src/load/text/test-parts.ts";
import { prepareFlow } from "../../src/testing/flow-tests.ts";
import { sketchCheck, sketchFlow, sketchPrompt } from "../../src/testing/flows.ts";
import { runInMemory } from "../../src/testing/ground.ts";
import { builtCommand } from "../built.ts";
import { OUTPUTS } from "../effects/recorded.ts";
import { until } from "../until.ts";

const MAIN = await builtCommand();
const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

type Scene = Disposable & {
  readonly folder: string;
  readonly temp: string;
  readonly env: NodeJS.ProcessEnv;
  /** `env`: besides what every call has. */
  readonly lockstep: (
    words: readonly string[],
    env?: NodeJS.ProcessEnv,
    flags?: readonly string[],
  ) => { readonly status: number | null; readonly stdout: string; readonly stderr: string };
};

function copyOf(example: string): Scene {
  const home = mkdtempSync(join(tmpdir(), "lockstep-projects-"));
  const folder = join(home, "work");
  const temp = join(home, "tmp");
  mkdirSync(temp);
  cpSync(join(EXAMPLES, example), folder, { recursive: true });
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: temp, LOCKSTEP_TRUST: "all" };
  return {
    folder,
    temp,
    env,
    lockstep: (words, more = {}, flags = []) =>
      spawnSync(process.execPath, [...flags, MAIN, ...words], {
        cwd: folder,
        encoding: "utf8",
        env: { ...env, ...more },
      }),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  };
}

/** Every file with its text, but for what Lockstep keeps for itself. */
function contents(folder: string): { readonly [path: string]: string } {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !entry.parentPath.includes(".lockstep"),
  );
  return Object.fromEntries(
    files.map(({ parentPath, name }) => [
      join(parentPath, name),
      readFileSync(join(parentPath, name), "utf8"),
    ]),
  );
}

function writeTests(folder: string, agent: string, file: string, text: string): void {
  mkdirSync(join(folder, ".agent", agent, "tests"), { recursive: true });
  writeFileSync(join(folder, ".agent", agent, "tests", file), text);
}

test("a copy is tested with real tools and checks, its fixture stays as it was, and nothing is left", () => {
  using scene = copyOf("09-tested-agent");
  const before = contents(scene.folder);
  const { status, stdout, stderr } = scene.lockstep(["test", "notes", "--coverage"], { CI: "1" });
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /✓ notes › the note is written with its title/);
  assert.deepEqual(contents(scene.folder), before);
  assert.deepEqual(
    readdirSync(scene.temp).filter((name) => name.startsWith("lockstep-test-")),
    [],
  );
});

test("without trust nothing is run, and --memory leaves such tests out and says how many", () => {
  using scene = copyOf("09-tested-agent");
  const refused = scene.lockstep(["test", "notes"], { LOCKSTEP_TRUST: "" });
  assert.equal(refused.status, 3, refused.stdout);
  assert.match(refused.stderr, /grep[^]*--trust [0-9a-f]{64}/);
  assert.doesNotMatch(refused.stdout, /✓/);
  const [, digest = ""] = /--trust ([0-9a-f]{64})/.exec(refused.stderr) ?? [];
  assert.equal(scene.lockstep(["test", "notes", "--trust", digest], { LOCKSTEP_TRUST: "" }).status, 0);
  const memory = scene.lockstep(["test", "notes", "--memory"], { LOCKSTEP_TRUST: "" });
  assert.equal(memory.status, 0, memory.stdout + memory.stderr);
  assert.match(memory.stdout, /--memory left out 1 test/);
});

test("a run of tests that is killed leaves the project as it was, and the next one removes its copy", async () => {
  using scene = copyOf("09-tested-agent");
  const slow = readFileSync(join(scene.folder, ".agent/notes/steps_registry.json"), "utf8");
  writeFileSync(
    join(scene.folder, ".agent/notes/steps_registry.json"),
    slow.replace("grep '^# ' note.md", "sleep 30"),
  );
  const before = contents(scene.folder);
  const child = spawn(process.execPath, [MAIN, "test", "notes", "-t", "is written"], {
    cwd: scene.folder,
    env: scene.env,
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const copies = () => readdirSync(scene.temp).filter((name) => name.startsWith("lockstep-test-"));
  const isWritten = () => copies().some((name) => existsSync(join(scene.temp, name, "project/note.md")));
  await until(isWritten, "the copy is worked in");
  child.kill("SIGKILL");
  await ended;
  assert.deepEqual(contents(scene.folder), before);
  assert.equal(copies().length, 1);
  writeFileSync(join(scene.folder, ".agent/notes/steps_registry.json"), slow);
  assert.equal(scene.lockstep(["test", "notes", "-t", "is written"]).status, 0);
  assert.deepEqual(copies(), []);
});

test("Ctrl-C while a project is copied ends with 130 at once, and leaves no copy; so does a second one", async () => {
  for (const times of [1, 2]) {
    using scene = copyOf("09-tested-agent");
    const registry = join(scene.folder, ".agent/notes/steps_registry.json");
    writeFileSync(registry, readFileSync(registry, "utf8").replace("grep '^# ' note.md", "sleep 30"));
    const box = join(scene.folder, ".agent/notes/tests/fixtures/project/many");
    mkdirSync(box, { recursive: true });
    for (let at = 0; at < 4000; at += 1) writeFileSync(join(box, `${at}.txt`), "x");
    const child = spawn(process.execPath, [MAIN, "test", "notes", "-t", "is written", "--json"], {
      cwd: scene.folder,
      env: scene.env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const copies = () => readdirSync(scene.temp).filter((name) => name.startsWith("lockstep-test-"));
    const copied = () =>
      copies().flatMap((name) => {
        const folder = join(scene.temp, name, "project/many");
        return existsSync(folder) ? readdirSync(folder) : [];
      }).length;
    await until(() => copied() > 0, "the project is being copied");
    for (let sent = 0; sent < times; sent += 1) child.kill("SIGINT");
    assert.equal(await ended, 130, stdout);
    const { kind, ok } = JSON.parse(stdout) as { readonly kind: string; readonly ok: boolean };
    assert.deepEqual([kind, ok], ["lockstep-tests", false]);
    assert.deepEqual(copies(), []);
  }
});

test("a project that cannot be copied is named as such, and not as a fault of the script", () => {
  using scene = copyOf("09-tested-agent");
  symlinkSync("/etc", join(scene.folder, ".agent/notes/tests/fixtures/project/outside"));
  const { status, stdout } = scene.lockstep(["test", "notes", "-t", "is written"]);
  assert.equal(status, 7, stdout);
  assert.match(
    stdout,
    /\n {2}project +expected {2}a copy of the project .*\n +got +.*outside is a link that leads out/,
  );
  assert.doesNotMatch(stdout, /script|because|look/);
});

const SCRIPTED = [
  ["01-fix-a-test", "fixer", { issue: 7 }],
  ["03-checks-and-retries", "writer", { topic: "tides" }],
  ["06-stage-machine", "ship", { task: "make the tests pass" }],
  ["08-github-issue", "iterator", { issue: 12 }],
] as const;

for (const [example, agent, params] of SCRIPTED)
  test(`${example}: the verdict on a copy is that of run --script on the same folder`, () => {
    using scene = copyOf(example);
    const words = Object.entries(params).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const place = join(scene.temp, "there", "project");
    cpSync(join(scene.folder, "project"), place, { recursive: true });
    cpSync(join(scene.folder, ".agent"), join(place, ".agent"), { recursive: true });
    rmSync(join(place, ".agent", agent, "tests"), { recursive: true, force: true });
    for (const args of [
      ["init", "-q", "-b", "main"],
      ["config", "user.name", "t"],
      ["config", "user.email", "t@example.invalid"],
      ["add", "-A"],
      ["commit", "-qm", "start"],
    ])
      assert.equal(spawnSync("git", args, { cwd: place }).status, 0, args.join(" "));
    const script = join(scene.folder, "script.yaml");
    const ran = scene.lockstep(["run", agent, ...words, "--script", script, "--json", "--cwd", place]);
    const result = JSON.parse(ran.stdout) as {
      readonly outcome: string;
      readonly exitCode: number;
      readonly finalStepId: string;
      readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
      readonly effects: readonly { readonly kind: string; readonly state: string }[];
    };
    const expect = {
      outcome: result.outcome,
      exit: result.exitCode,
      final: result.finalStepId,
      // Siblings of a fork are checked in any order.
      ...(agent !== "ship" && {
        checks: result.checks.map(({ name, ok }) => `${name} ${ok ? "passed" : "failed"}`),
      }),
      effects: result.effects.map(({ kind, state }) => `${kind} ${state}`),
    };
    const same = { name: "as in a run", project: "../../../project", git: true, params, expect };
    writeTests(
      scene.folder,
      agent,
      "same.json",
      JSON.stringify({ tests: [{ ...same, script: "../../../script.yaml" }] }),
    );
    const { status, stdout, stderr } = scene.lockstep(["test", agent, "-t", "as in a run"]);
    assert.equal(status, 0, stdout + stderr);
  });

test("files, git and changed files of a copy are looked at", () => {
  using scene = copyOf("01-fix-a-test");
  writeTests(
    scene.folder,
    "fixer",
    "project.yaml",
    `tests:
  - name: the suite is green at the end
    project: ../../../project
    git: { branch: trunk, commits: 2 }
    params: { issue: 7 }
    script: ../../../script.yaml
    expect:
      outcome: completed
      exit: 0
      checks: [tests-pass failed, tests-pass passed, git-clean passed]
      changed: [cart.js]
      git: { clean: true, branch: trunk, commits: 4, last: Take a discount as a share of the sum }
      files: { cart.js: { has: item.quantity, lacks: "sum - percent" }, package.json: { json: { type: module } }, gone.js: absent }
`,
  );
  const tested = scene.lockstep(["test", "fixer", "-t", "green at the end"]);
  assert.equal(tested.status, 0, tested.stdout + tested.stderr);
});

test("GitHub is a stand-in: labels and a lost answer are expected from YAML", () => {
  using scene = copyOf("08-github-issue");
  writeTests(
    scene.folder,
    "iterator",
    "project.yaml",
    `params: { issue: 12 }
project: ../../../project
git: true
tests:
  - name: the issue is labelled
    script: ../../../script.yaml
    github: { issue: { number: 12, title: Spelling, labels: [bug], comments: [please] } }
    expect:
      outcome: completed
      changed: [hello.md]
      effects: [..., label applied, ...]
      github: { issues: { "12": { state: open, labels: [bug, done, docs], comments: [please] } } }
  - name: an answer is lost
    script: ../../../script.yaml
    github: { issue: 12, faults: [{ on: POST /labels, lost: answer }] }
    expect:
      outcome: completed
      github:
        issues: { "12": { labels: [done, docs] } }
        requests: [POST /issues/12/labels lost, ...]
  - name: nothing is there to work on
    script: ../../../script.yaml
    expect: { outcome: completed, effects: [..., label held, ...] }
`,
  );
  const { status, stdout, stderr } = scene.lockstep([
    "test",
    "iterator",
    "--jobs",
    "3",
    "-t",
    "issue|answer|nothing",
  ]);
  assert.equal(status, 0, stdout + stderr);
});

/** Of each expectation about a copy: what does not hold, where below its key, and what came. Each row is a run. */
const NOT_MET: readonly {
  readonly [key: string]: readonly [written: string, at: string, got: RegExp];
}[] = [
  {
    changed: ["[goodbye.md]", "", /hello\.md/],
    files: ["{ hello.md: { has: Goodbye } }", "hello.md.has", /Welcome to/],
    git: ["{ clean: false }", "clean", /true/],
    github: ['{ issues: { "12": { state: closed } } }', "issues.12.state", /open/],
  },
  {
    files: ["{ hello.md: { lacks: Welcome to } }", "hello.md.lacks", /Welcome to/],
    git: ["{ last: re:^Misspell }", "last", /^"Merge|Spell/],
    github: ["{ requests: [] }", "requests", /POST \/issues\/12\/labels/],
  },
  { files: ["{ hello.md: { json: {} } }", "hello.md.json", /Welcome to/] },
];

test("what a copy does not show is reported with its key, its line, what was expected and what came", () => {
  assert.deepEqual(Object.keys(NOT_MET[0]!).toSorted(), [...OF_A_COPY].toSorted());
  using scene = copyOf("08-github-issue");
  const rows = NOT_MET.map(
    (row, at) =>
      `  - name: row ${at}\n    script: ../../../script.yaml\n    expect:\n${Object.entries(row)
        .map(([key, [written]]) => `      ${key}: ${written}\n`)
        .join("")}`,
  );
  const head = "params: { issue: 12 }\nproject: ../../../project\ngit: true\ngithub: { issue: 12 }\ntests:\n";
  writeTests(scene.folder, "iterator", "project.yaml", head + rows.join(""));
  const { status, stdout, stderr } = scene.lockstep(["test", "iterator", "-t", "^row", "--json"]);
  assert.equal(status, 7, stderr);
  const { tests } = JSON.parse(stdout) as {
    readonly tests: readonly {
      readonly line: number;
      readonly unmet: readonly { [key: string]: unknown }[];
      readonly look: string;
    }[];
  };
  for (const [place, row] of NOT_MET.entries()) {
    const { line, unmet, look } = tests[place]!;
    const found = unmet.map((one) => [one.key, one.at, one.line]);
    assert.deepEqual(
      found,
      Object.entries(row).map(([key, [, at]], nth) => [key, at, line + 3 + nth]),
    );
    for (const { key, expected, got } of unmet) {
      assert.notEqual(expected, undefined);
      assert.match(JSON.stringify(got), row[key as string]![2]);
    }
    assert.match(look, /^lockstep why /);
  }
});

test("no key of the environment reaches a test, in memory or on a copy", () => {
  using scene = copyOf("09-tested-agent");
  const agent = join(scene.folder, ".agent/notes/agent.json");
  writeFileSync(agent, readFileSync(agent, "utf8").replace('"Read", "Write"', '"Read", "Write", "Bash"'));
  writeTests(
    scene.folder,
    "notes",
    "keys.yaml",
    `params: { release: "1" }
tests:
  - name: keys on a copy
    project: fixtures/project
    script:
      - { step: initial.note, calls: [{ name: Bash, input: { command: "env; echo home $HOME" } }] }
      - { step: initial.note, saw: ["re:home \\\\S*/home"], unseen: [hidden-value], label: abort }
    expect: { said: { unseen: [hidden-value] }, calls: [Bash ok], outcome: failed }
  - name: keys in memory
    script: [initial.note abort]
    expect: { said: { unseen: [hidden-value] }, outcome: failed }
`,
  );
  const { status, stdout, stderr } = scene.lockstep(["test", "notes", "-t", "^keys", "--json"], {
    ANTHROPIC_API_KEY: "hidden-value",
    MY_SETTING: "hidden-value",
  });
  assert.equal(status, 0, stdout + stderr);
  assert.doesNotMatch(stdout, /hidden-value/);
});

test("a test in memory starts no process, opens no socket and writes no file", () => {
  using scene = copyOf("09-tested-agent");
  const agent = join(scene.folder, ".agent/notes/agent.json");
  writeFileSync(agent, readFileSync(agent, "utf8").replace('"Read", "Write"', '"Read", "Write", "Bash"'));
  const calls = [
    `{ name: Bash, input: { command: "touch ${join(scene.folder, "made")}" } }`,
    `{ name: Write, input: { file_path: "${join(scene.folder, "made")}", content: x } }`,
  ];
  writeTests(
    scene.folder,
    "notes",
    "hostile.yaml",
    `params: { release: "1" }
tests:
  - name: hostile
    script:
      - { step: initial.note, calls: [${calls.join(", ")}] }
      - initial.note handoff
      - closure.note closing
    tools: { Bash: "file:settings.yaml" }
    expect: { outcome: completed }
`,
  );
  const before = contents(scene.folder);
  const sockets = `import net from "node:net";
    net.Socket.prototype.connect = () => { throw new Error("a socket"); };
    net.Server.prototype.listen = () => { throw new Error("a server"); };`;
  const guards = [
    "--permission",
    "--allow-fs-read=*",
    "--no-warnings",
    `--import=data:text/javascript,${encodeURIComponent(sockets)}`,
  ];
  const { status, stdout, stderr } = scene.lockstep(
    ["test", "notes", "-t", "^hostile", "--json"],
    {},
    guards,
  );
  assert.equal(status, 0, stdout + stderr);
  assert.deepEqual(contents(scene.folder), before);
});

test("one changed word fails exactly the tests that say it, with a diff, and --update settles it for good", () => {
  using scene = copyOf("09-tested-agent");
  const retry = join(scene.folder, ".agent/notes/prompts/steps/retry/note/f_failed_no-title.md");
  const tests = join(scene.folder, ".agent/notes/tests/closing.yaml");
  writeFileSync(
    tests,
    readFileSync(tests, "utf8").replace(
      "    expect:\n      path: [...,",
      "    expect:\n      snapshot: prompts\n      path: [...,",
    ),
  );
  const missing = scene.lockstep(["test", "notes", "--memory"], { CI: "true" });
  assert.equal(missing.status, 7, missing.stdout);
  assert.match(missing.stdout, /snapshot +expected +a snapshot in \.agent\/notes\/tests\/snapshots/);
  assert.equal(scene.lockstep(["test", "notes", "--memory"]).status, 0);
  writeFileSync(retry, readFileSync(retry, "utf8").replace("first line", "very first line"));
  const stale = join(scene.folder, ".agent/notes/tests/snapshots/closing.gone.md");
  writeFileSync(stale, "# gone\n");
  const changed = scene.lockstep(["test", "notes", "--memory"]);
  assert.equal(changed.status, 7, changed.stdout);
  assert.deepEqual(changed.stdout.match(/✗ .*? › .*?(?= {2})/g), [
    "✗ notes › is sent back while the title is missing",
  ]);
  assert.match(
    changed.stdout,
    /^! 1 snapshot belongs to no test \(\S+closing\.gone\.md\)\. Remove with: lockstep test notes --update$/m,
  );
  assert.ok(existsSync(stale), "only --update removes it");
  assert.match(changed.stdout, /- .*its first line[^]*\+ .*its very first line/);
  const updated = scene.lockstep(["test", "notes", "--memory", "--update"]);
  assert.equal(updated.status, 0, updated.stdout);
  assert.equal(existsSync(stale), false);
  const settled = contents(scene.folder);
  const again = scene.lockstep(["test", "notes", "--memory", "--update"]);
  assert.equal(again.status, 0);
  assert.doesNotMatch(again.stdout, /Written|Removed|belongs/);
  assert.deepEqual(contents(scene.folder), settled);
});

test("a snapshot is not written through a link of the project", () => {
  using scene = copyOf("09-tested-agent");
  const folder = join(scene.folder, ".agent/notes/tests/snapshots");
  rmSync(folder, { recursive: true });
  spawnSync("ln", ["-s", scene.temp, folder]);
  const { status, stderr } = scene.lockstep(["test", "notes", "--memory", "--update"]);
  assert.notEqual(status, 0);
  assert.match(stderr, /snapshots are not written there/);
  assert.deepEqual(readdirSync(scene.temp), []);
});

const GUARD: StepGuard = {
  on: "closing",
  checks: [{ check: "green", edition: sketchPrompt("failed: {{summary}}") }],
  onFailure: "retry",
  maxFailures: 5,
  back: { kind: "caller" },
};

test("{ exit, stdout } gives the result of the command that printed it, for everything that tools print", async () => {
  const extractors = [
    "parseTestOutput",
    "parseLintErrors",
    "parseTypeErrors",
    "parseChangedFiles",
    "parseFormatOutput",
  ];
  for (const name of readdirSync(OUTPUTS).filter((file) => file.endsWith(".txt")))
    for (const exit of [0, 1]) {
      const path = fileURLToPath(new URL(name, OUTPUTS));
      const check = {
        ...sketchCheck("green", `cat '${path}'; exit ${exit}`),
        extract: Object.fromEntries(extractors.map((one) => [one, one])),
      };
      const signal = new AbortController().signal;
      const place = { cwd: "/", env: { PATH: process.env.PATH }, exec: runProcess, git: null };
      const real = await judgeCommand(check, place, signal);
      const flow = await prepareFlow(
        sketchFlow(
          {
            close: {
              kind: "close",
              edges: { closing: null },
              guard: GUARD,
            },
          },
          { checks: { green: check } },
        ),
      );
      const output = { kind: "output", exit, stdout: readFileSync(path, "utf8"), stderr: "" } as const;
      const { entries } = await runInMemory(flow, {
        name,
        file: "a.yaml",
        line: 1,
        params: {},
        input: "",
        script: [{ line: 1, step: "close", label: "closing" }],
        around: { ...NOTHING_AROUND, checks: { green: [output] } },
        ground: { kind: "memory" },
        expect: { lines: {}, values: {} },
        only: false,
        generated: false,
        covers: [],
      });
      const given = entries.flatMap(({ event }) => (event.type === "step.checked" ? event.results : []));
      assert.deepEqual(given.slice(0, 1), [real], `${name}, exit ${exit}`);
    }
});
