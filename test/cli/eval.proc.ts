/** `lockstep eval` as a user types it: hidden files, a spying agent, a kill in the middle, exit codes and documents. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { agentFiles, PROVEN, stepTo } from "../run/project.ts";
import { createWorld, type World } from "./world.ts";

const ENV = { LOCKSTEP_TRUST: "all" };

const STEPS = {
  "initial.a": stepTo("work", { next: "closure.a" }),
  "closure.a": stepTo("closure", { closing: null }),
};

/** The check that both the flow and the hidden part use: once the hidden file is there, it says what the proof must be. */
const REGISTRY = {
  ...PROVEN,
  validators: {
    proof: {
      ...PROVEN.validators.proof,
      command: 'test -f proof && { ! test -f wanted || test "$(cat proof)" = "$(cat wanted)"; }',
    },
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
    "tasks:\n  - { name: proves it, project: shop, hidden: { files: secret, checks: [proof] } }\n",
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

test("scripts take turns; hidden files are not seen by the run, and judge it afterwards", async () => {
  using world = createWorld();
  projectOf(world);
  const evals = join(world.root, ".agent/a/evals");
  // A spy looks in its folder and by the full path, and keeps what it finds as its proof.
  world.write("spy.json", script(`cat wanted ${evals}/secret/wanted > proof 2>/dev/null; cat seed >> proof`));
  world.write("good.json", script("printf right > proof"));
  const args = ["eval", "a", "--runs", "2", "--script", "good.json", "--script", "spy.json", "--json"];
  const { code, stdout, stderr } = await world.lockstep(args, { env: ENV });
  assert.equal(code, 0, stderr);
  const report = JSON.parse(stdout) as Report;
  const told = report.runs.map(({ state, reason }) => [state, reason?.slice(0, 27) ?? null]);
  assert.deepEqual(told, [
    ["passed", null],
    ["failed", 'The hidden check "proof" fa'],
  ]);
  assert.deepEqual([report.models[0]!.falseGreen.count, report.models[0]!.falseGreen.of], [1, 2]);
  const [, spy] = report.runs;
  const shown = await world.lockstep(["logs", spy!.run, "--transcript"], { env: ENV });
  assert.ok(!shown.stdout.includes("right"), "the spy saw the hidden file");
  assert.equal((await world.lockstep(["why", report.runs[0]!.run], { env: ENV })).code, 0);
  assert.deepEqual(readdirSync(join(evals, "shop")), ["seed"]);

  world.write(
    ".agent/a/evals/tasks.yaml",
    "min: { pass1: 0.9 }\ntasks:\n  - { name: a, expect: { turns: 99 } }\n",
  );
  const missed = await world.lockstep(["eval", "a", "--runs", "8", "--script", "good.json"], { env: ENV });
  assert.equal(missed.code, 7, missed.stdout + missed.stderr);
  assert.match(missed.stdout, /pass1 at least 0\.90 .* missed/);
});

test("killed in the middle and resumed: no finished run is run again, and no copy is left", async () => {
  using world = createWorld();
  projectOf(world);
  world.write("slow.json", script("sleep 1; printf right > proof"));
  const child = world.begin(["eval", "a", "--runs", "3", "--script", "slow.json"], ENV);
  const folder = join(world.root, ".lockstep/evals");
  type Recorded = {
    readonly eval: string;
    readonly runs: readonly {
      readonly state: string;
      readonly run: string | null;
      readonly folder: string | null;
    }[];
  };
  const recorded = (): Recorded | null => {
    const [name] = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : [];
    return name === undefined ? null : (JSON.parse(readFileSync(join(folder, name), "utf8")) as Recorded);
  };
  const isMidway = () => recorded()?.runs[0]?.state === "passed" && recorded()?.runs[1]?.state === "running";
  for (let tries = 0; tries < 600 && !isMidway(); tries++) await sleep(100);
  child.kill("SIGKILL");
  await new Promise((resolve) =>
    (child.exitCode ?? child.signalCode) === null ? child.once("exit", resolve) : resolve(null),
  );
  const before = recorded()!;
  assert.equal(before.runs[0]!.state, "passed");
  const resumed = await world.lockstep(["eval", "a", "--resume", before.eval, "--json"], { env: ENV });
  assert.equal(resumed.code, 0, resumed.stderr);
  const report = JSON.parse(resumed.stdout) as Report;
  assert.deepEqual(
    report.runs.map(({ state }) => state),
    ["passed", "passed", "passed"],
  );
  assert.equal(report.runs[0]!.run, before.runs[0]!.run);
  for (const { folder: copy } of [...before.runs, ...recorded()!.runs])
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
  ];
  for (const [args, code, words] of rows) {
    const ran = await world.lockstep(args);
    assert.equal(ran.code, code, `${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
    assert.match(ran.stdout + ran.stderr, words);
    if (args.includes("--json")) JSON.parse(ran.stdout);
  }
  world.write(".agent/a/evals/tasks.yaml", "tasks:\n  - { name: a, hidden: { checks: [prof] } }\n");
  const wrong = await world.lockstep(["eval", "a", "--script", "good.json"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stdout, /tasks\.yaml:2/);
});
