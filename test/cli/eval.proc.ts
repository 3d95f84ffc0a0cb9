/** `lockstep eval` as a user types it: hidden files, a spying agent, a kill in the middle, exit codes and documents. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { hasBwrap, NO_BWRAP } from "../boundaries/confined.ts";
import { needs } from "../needs.ts";
import { agentFiles, PROVEN, stepTo } from "../run/project.ts";
import { createWorld, MAIN, start, type World } from "./world.ts";

const ENV = { LOCKSTEP_TRUST: "all" };

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null }),
};

/** The flow wants a proof. The hidden check, which no step uses, says what the proof must be. */
const REGISTRY = {
  ...PROVEN,
  validators: {
    proof: { ...PROVEN.validators.proof, command: "test -f proof" },
    "right-proof": { ...PROVEN.validators.proof, command: 'test "$(cat proof)" = "$(cat wanted)"' },
  },
};

function script(command: string): string {
  const said = (step: string, action: string) => ({
    step,
    output: { stepId: step, next_action: { action } },
  });
  const call = { step: "initial.a", calls: [{ name: "Bash", input: { command } }] };
  return JSON.stringify({ replies: [call, said("initial.a", "next"), said("closure.a", "closing")] });
}

function projectOf(world: World): void {
  const runner = { boundaries: { allowedTools: ["Bash"] } };
  for (const [path, text] of Object.entries(agentFiles("a", STEPS, { registry: REGISTRY, runner })))
    world.write(path, text);
  world.write(".agent/a/evals/shop/seed", "a seed");
  world.write(".agent/a/evals/secret/wanted", "right");
  world.write(
    ".agent/a/evals/tasks.yaml",
    "tasks:\n  - { name: proves it, project: shop, hidden: { files: secret, checks: [right-proof] } }\n",
  );
}

type Report = {
  readonly ok: boolean;
  readonly eval: string;
  readonly models: readonly {
    readonly passed: number;
    readonly failed: number;
    readonly falseGreen: { readonly count: number; readonly of: number };
  }[];
  readonly runs: readonly { readonly run: string; readonly state: string; readonly reason: string | null }[];
};

const bwrap = needs(hasBwrap, NO_BWRAP);

test("scripts take turns; hidden files are not seen by the run, and judge it afterwards", bwrap, async () => {
  using world = createWorld();
  // Not below /tmp, which is another one inside of a sandbox.
  const root = realpathSync(mkdtempSync(join(homedir(), ".lockstep-eval-")));
  using _ = { [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
  projectOf(world);
  cpSync(world.root, root, { recursive: true });
  const evals = join(root, ".agent/a/evals");
  const write = (name: string, text: string) => writeFileSync(join(root, name), text);
  const lockstep = (args: readonly string[]) =>
    start(process.execPath, [MAIN, ...args], root, { env: { ...world.env, ...ENV } });
  const identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  for (const args of ["init -q", "add .agent", "commit -qm all"]) {
    const ran = spawnSync("git", [...identity, ...args.split(" ")], { cwd: root, encoding: "utf8" });
    assert.equal(ran.status, 0, ran.stderr);
  }
  // A spy looks in its folder, by the full path, in the history, and in the folders of other runs.
  const looks = [
    `find . ${evals} ${join(tmpdir(), "lockstep-eval-*")} -name wanted -exec cat {} ';'`,
    "cat .agent/a/evals/secret/wanted",
    `git -c safe.directory='*' -C ${root} show HEAD:.agent/a/evals/secret/wanted`,
  ];
  const spies = looks.map((look, at) => {
    write(`spy${at}.json`, script(`{ ${look}; } > proof 2>&1; cat proof`));
    return ["--script", `spy${at}.json`];
  });
  write("good.json", script("printf right > proof"));
  const args = [
    "eval",
    "a",
    "--runs",
    "4",
    "--jobs",
    "2",
    "--script",
    "good.json",
    ...spies.flat(),
    "--json",
  ];
  const { code, stdout, stderr } = await lockstep(args);
  assert.equal(code, 0, stderr);
  const report = JSON.parse(stdout) as Report;
  const told = report.runs.map(({ state, reason }) => [state, reason?.slice(0, 27) ?? null]);
  const failed = ["failed", 'The hidden check "right-pro'];
  assert.deepEqual(told, [["passed", null], failed, failed, failed]);
  assert.deepEqual([report.models[0]!.falseGreen.count, report.models[0]!.falseGreen.of], [3, 4]);
  for (const { run } of report.runs.slice(1)) {
    const shown = await lockstep(["logs", run, "--transcript"]);
    assert.equal(shown.code, 0);
    assert.ok(!shown.stdout.includes("right"), `the spy saw the hidden file: ${shown.stdout}`);
  }
  assert.equal((await lockstep(["why", report.runs[0]!.run])).code, 0);
  assert.deepEqual(readdirSync(join(evals, "shop")), ["seed"]);
});

test("a least rate that is surely missed gives exit code 7", async () => {
  using world = createWorld();
  projectOf(world);
  world.write("good.json", script("printf right > proof"));
  world.write(
    ".agent/a/evals/tasks.yaml",
    "min: { pass1: 0.9 }\ntasks:\n  - { name: a, expect: { turns: 99 } }\n",
  );
  const missed = await world.lockstep(["eval", "a", "--runs", "8", "--script", "good.json"], { env: ENV });
  assert.equal(missed.code, 7, missed.stdout + missed.stderr);
  assert.match(missed.stdout, /pass1 at least 0\.90 .* missed/);
});

type Recorded = {
  readonly eval: string;
  readonly runs: readonly {
    readonly state: string;
    readonly run: string | null;
    readonly folder: string | null;
  }[];
};

function recorded(world: World): Recorded | null {
  const folder = join(world.root, ".lockstep/evals");
  const [name] = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : [];
  return name === undefined ? null : (JSON.parse(readFileSync(join(folder, name), "utf8")) as Recorded);
}

/** Begins an eval of three runs, and sends the signal when the first has passed and the second is under way. */
async function stopped(world: World, signal: "SIGKILL" | "SIGINT") {
  projectOf(world);
  world.write("slow.json", script("sleep 1; printf right > proof"));
  const child = world.begin(["eval", "a", "--runs", "3", "--script", "slow.json", "--json"], ENV);
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (stdout += text));
  const isMidway = () =>
    recorded(world)?.runs[0]?.state === "passed" && recorded(world)?.runs[1]?.state === "running";
  for (let tries = 0; tries < 600 && !isMidway(); tries++) await sleep(100);
  const closed = once(child, "close");
  child.kill(signal);
  await closed;
  return { code: child.exitCode, stdout, before: recorded(world)! };
}

for (const signal of ["SIGKILL", "SIGINT"] as const)
  test(`${signal} in the middle, and resumed: no finished run is run again, and no copy is left`, async () => {
    using world = createWorld();
    const { code, stdout, before } = await stopped(world, signal);
    assert.equal(before.runs[0]!.state, "passed");
    if (signal === "SIGINT") {
      assert.equal(code, 130);
      const left = JSON.parse(stdout) as Report;
      assert.deepEqual(
        left.runs.map(({ state }) => state),
        ["passed", "open", "open"],
      );
      assert.equal(left.models[0]!.passed, 1);
    }
    const resumed = await world.lockstep(["eval", "a", "--resume", before.eval, "--json"], { env: ENV });
    assert.equal(resumed.code, 0, resumed.stderr);
    const report = JSON.parse(resumed.stdout) as Report;
    assert.deepEqual(
      report.runs.map(({ state }) => state),
      ["passed", "passed", "passed"],
    );
    assert.equal(report.runs[0]!.run, before.runs[0]!.run);
    for (const { folder: copy } of [...before.runs, ...recorded(world)!.runs])
      assert.ok(copy === null || !existsSync(copy), `${copy} is left`);
  });

test("what refuses an eval: usage, files and trust, each with its exit code and a document", async () => {
  using world = createWorld();
  projectOf(world);
  world.write("good.json", script("printf right > proof"));
  const rows: readonly [args: readonly string[], code: number, words: RegExp][] = [
    [["eval", "a"], 2, /--models/],
    [["eval", "a", "--models", "m"], 2, /--budget/],
    [["eval", "a", "--models", "m", "--budget", "lots"], 2, /US dollars/],
    [["eval", "a", "--script", "good.json", "--models", "m"], 2, /--models/],
    [["eval", "a", "--resume", "eval-nothing", "--json"], 2, /no eval/],
    [["eval", "a", "--script", "good.json", "--json"], 3, /rust/],
    [["eval", "a", "--runs", "0", "--script", "good.json", "--json"], 2, /from 1 to/],
    [["eval", "a", "--models", "m", "--budget", "-5usd", "--json"], 2, /US dollars/],
    [["eval", "a", "--models", "m", "--budget", "0usd", "--json"], 2, /no run could begin/],
    [["eval", "a", "--models", "m,m", "--budget", "5usd", "--json"], 2, /twice/],
    [["eval", "a", "--script", "good.json", "--task", "(", "--json"], 2, /--task "\(" is not a valid/],
    [["eval", "a", "--script", "good.json", "--task", "nothing", "--json"], 2, /No task matches/],
    [["eval", "a", "--resume", "eval-nothing", "--task", "a", "--json"], 2, /leave them out/],
    [["eval", "b", "--script", "good.json", "--json"], 2, /no agent \\?"b/],
    [["honesty", "b", "--json"], 2, /no agent \\?"b/],
    [["export", "nothing", "--test", "--out", "x.yaml", "--json"], 2, /no run \\?"nothing/],
  ];
  for (const [args, code, words] of rows) {
    const ran = await world.lockstep(args);
    assert.equal(ran.code, code, `${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
    assert.match(ran.stdout + ran.stderr, words);
    if (args.includes("--json")) JSON.parse(ran.stdout);
  }
  world.write(".agent/a/evals/tasks.yaml", "tasks:\n  - { name: a, hidden: { checks: [prof] } }\n");
  for (const args of [["eval", "a", "--script", "good.json"], ["check"]]) {
    const wrong = await world.lockstep(args);
    assert.equal(wrong.code, 2, args[0]);
    assert.match(wrong.stdout, /tasks\.yaml:2[\s\S]*Did you mean "proof"/, args[0]);
  }
  world.write(".agent/a/evals/tasks.yaml", "tasks: [{ name: a }]\n");
  world.write(".agent/a/tests/settings.yaml", "within: { visit: 8 }\n");
  for (const args of [["eval", "a", "--script", "good.json"], ["check"]]) {
    const wrong = await world.lockstep(args);
    assert.equal(wrong.code, 2, args[0]);
    assert.match(wrong.stdout, /settings\.yaml:1/, args[0]);
  }
});

const GIT: readonly [command: string, expect: string, state: string][] = [
  [
    "touch proof && git add . && git commit -qm proven",
    "{ clean: true, commits: 3, last: proven }",
    "passed",
  ],
  ["touch proof", "{ clean: true }", "failed"],
  ["touch proof", "{ clean: false, commits: 2, branch: trunk }", "passed"],
];
test("what a run commits is looked at, and hidden checks are part of what is trusted", async () => {
  using world = createWorld();
  projectOf(world);
  for (const [at, [command]] of GIT.entries()) world.write(`${at}.json`, script(command));
  const task = (expect: string) =>
    `tasks:\n  - { name: a, project: shop, git: { commits: 2, branch: trunk }, expect: { git: ${expect} } }\n`;
  for (const [at, [command, expect, state]] of GIT.entries()) {
    world.write(".agent/a/evals/tasks.yaml", task(expect));
    const args = ["eval", "a", "--runs", "1", "--script", `${at}.json`, "--json"];
    const { stdout, stderr } = await world.lockstep(args, { env: ENV });
    const [run] = (JSON.parse(stdout) as Report).runs;
    assert.equal(run!.state, state, `${command} ${expect} ${run!.reason} ${stderr}`);
  }
  projectOf(world);
  const asked = await world.lockstep(["eval", "a", "--script", "0.json"]);
  assert.equal(asked.code, 3);
  assert.match(asked.stderr, /cat wanted/);
  const [, digest] = /--trust ([0-9a-f]{64})/.exec(asked.stderr)!;
  const args = ["eval", "a", "--runs", "1", "--script", "0.json", "--trust", digest!, "--json"];
  const trusted = await world.lockstep(args);
  assert.equal((JSON.parse(trusted.stdout) as Report).runs[0]!.state, "failed", trusted.stderr);
});
