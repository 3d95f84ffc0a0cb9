/** The budget of `lockstep eval`, held against what the model behind HTTP charged: 8 runs at once, prices that change, a kill. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { modelServer, type Seen } from "../backends/model-server.ts";
import { agentFiles, stepTo } from "../run/project.ts";
import { until } from "../until.ts";
import { createWorld, onlyDocument, type World } from "./world.ts";

const ENV = { LOCKSTEP_TRUST: "all" };
const BUDGET = 27.5;
/** What a killed eval goes on with: all that was set aside for runs under way counts as spent. */
const MORE = 40;
/** What the two calls of a run cost, in dollars. */
const CALLS = { "initial.a": 0.1, "closure.a": 0.9 };
const TOKENS_A_DOLLAR = 1000;

/** From `from` runs on, a call costs `after` times as much instead of `before` times. */
async function pricedModel(from: number, before: number, after: number) {
  const bill: number[] = [];
  const server = await modelServer("openai-compatible", ({ body }: Seen) => {
    const isLast = JSON.stringify(body).includes("Do closure.a.");
    const [step, action] = isLast ? (["closure.a", "closing"] as const) : (["initial.a", "next"] as const);
    const cost = CALLS[step] * (bill.length < 2 * from ? before : after);
    bill.push(cost);
    const usage = { input: Math.round(cost * TOKENS_A_DOLLAR), output: 0 };
    return { output: { stepId: step, next_action: { action } }, usage, pauseMs: 60 };
  });
  return { server, bill };
}

function projectOf(world: World, url: string): void {
  const steps = {
    "initial.a": stepTo("work", { next: "closure.a" }),
    "closure.a": stepTo("closure", { closing: null }),
  };
  for (const [path, text] of Object.entries(agentFiles("a", steps))) world.write(path, text);
  world.write(".agent/a/evals/tasks.yaml", "tasks: [{ name: does it }]\n");
  const here = { provider: "openai-compatible", model: "m", baseUrl: `${url}/v1` };
  const prices = { "openai-compatible/m": { input: 1e6 / TOKENS_A_DOLLAR, output: 0 } };
  world.writeHome(".config/lockstep/config.json", JSON.stringify({ models: { here }, prices }));
}

type Told = {
  readonly eval: string;
  readonly runs: readonly { readonly state: string; readonly run: string | null; readonly costUsd: number }[];
};

function recorded(world: World): Told | null {
  try {
    const folder = join(world.root, ".lockstep/evals");
    const name = readdirSync(folder).find((file) => file.endsWith(".json"));
    return name === undefined ? null : (JSON.parse(readFileSync(join(folder, name), "utf8")) as Told);
  } catch {
    return null;
  }
}

const isOver = ({ state }: { readonly state: string }) => state === "passed" || state === "cut";
const LINE = ["eval", "a", "--models", "here", "--runs", "60", "--jobs", "8", "--budget", `${BUDGET}usd`];

/** Begins the eval, and kills it when some runs have ended and others are under way. */
async function killed(world: World): Promise<Told> {
  const child = world.begin([...LINE, "--json"], ENV);
  const closed = once(child, "close");
  const isMidway = () => {
    const runs = recorded(world)?.runs ?? [];
    return runs.filter(isOver).length >= 6 && runs.some(({ state }) => state === "running");
  };
  await until(isMidway, "some runs have ended and others are under way");
  child.kill("SIGKILL");
  await closed;
  // What it sent before that has arrived by then.
  await sleep(300);
  return recorded(world)!;
}

const ROWS: readonly (readonly [from: number, before: number, after: number, kill: boolean])[] = [
  [10, 1, 3, false],
  [14, 1, 3, false],
  [9, 3, 1, false],
  [6, 1, 3, true],
];
for (const [from, before, after, isKilled] of ROWS)
  test(`8 runs at once, after ${from} runs ${after}x and not ${before}x the price${isKilled ? ", killed and resumed" : ""}`, async () => {
    using world = createWorld();
    const { server, bill } = await pricedModel(from, before, after);
    await using _ = server;
    projectOf(world, server.url);
    const early = isKilled ? await killed(world) : null;
    const asked = bill.length;
    const line =
      early === null ? LINE : ["eval", "a", "--resume", early.eval, "--jobs", "8", "--budget", `${MORE}usd`];
    const ran = await world.lockstep([...line, "--json"], { env: ENV });
    assert.equal(ran.code, 0, ran.stderr);
    const { runs } = onlyDocument(ran) as unknown as Told;
    const charged = bill.reduce((sum, cost) => sum + cost, 0);
    // docs/limits.md: a call that is larger than every one before it exceeds a limit by the difference.
    const admitted = CALLS["closure.a"] * Math.abs(after - before);
    const budget = isKilled ? MORE : BUDGET;
    assert.ok(charged <= budget + admitted, `$${charged.toFixed(2)} of $${budget}`);
    assert.ok(
      runs.some(({ state }) => state === "open") && runs.every((run) => isOver(run) || run.state === "open"),
    );
    if (early === null) {
      assert.ok(charged > BUDGET / 2, `only $${charged.toFixed(2)} of $${BUDGET}`);
      return;
    }
    const done = early.runs.filter(isOver);
    assert.deepEqual(
      runs
        .filter(({ run }) => done.some((one) => one.run === run))
        .map(({ state, run, costUsd }) => [state, run, costUsd]),
      done.map(({ state, run, costUsd }) => [state, run, costUsd]),
    );
    const later = runs.filter(isOver).length - done.length;
    assert.ok(
      later > 0 && bill.length - asked <= 2 * later,
      `${bill.length - asked} calls for ${later} runs`,
    );
  });
