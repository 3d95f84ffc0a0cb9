/** What many durable runs at once cost in time and memory: of a flow built here, and of an agent on disk with its log files. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { JsonObject } from "../src/flow/json.ts";
import { load, openJournal, parseScript, runLoaded, type Backend, type Loaded } from "../src/run/index.ts";
import { initFiles } from "../src/cli/commands/init-files.ts";
import { ANSWER, cycle, loaded, row, USAGE, type Row } from "./measure.ts";

const STEPS = 10;
const MODEL_MS = 50;

export async function measureConcurrency(folder: string): Promise<readonly Row[]> {
  const { ratio, memory } = await atOnce(loaded(cycle(STEPS), folder), folder, 1000, same);
  return [
    row("1,000 durable runs x 10 steps x 50 ms / ideal", ratio.value, "x", 1.3, ratio.detail),
    row("peak memory of that", memory.value, "MB", 150, memory.detail),
  ];
}

export async function measureMany(folder: string): Promise<readonly Row[]> {
  const { ratio, memory } = await atOnce(loaded(cycle(STEPS), folder), folder, 10_000, same);
  return [
    row("10,000 durable runs x 10 steps x 50 ms / ideal", ratio.value, "x", 3, ratio.detail),
    row("peak memory of 10,000 runs", memory.value, "MB", 700, memory.detail),
  ];
}

/** The agent that `lockstep init` writes, as it is loaded from disk, with a log file for each run. */
export async function measureAgents(folder: string): Promise<readonly Row[]> {
  const files = initFiles("hello", undefined);
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, ".agent", "hello", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, path === "agent.json" ? withLogs(content) : content);
  }
  const replies = await parseScript(files["script.yaml"] ?? "", "script.yaml");
  const outputs = new Map(replies.map(({ step, output }) => [step ?? "", output as JsonObject]));
  const agent = await load("hello", { cwd: folder });
  const runs = 1000;
  const answer: Answering = (step, visit) => {
    const output = outputs.get(step)!;
    // The draft is gone over until the run has as many steps as the others.
    const isAgain = step === "continuation.note" && visit < STEPS - 2;
    return isAgain ? { ...output, next_action: { action: "next", reason: "Not yet." } } : output;
  };
  const { ratio, memory } = await atOnce(agent, folder, runs, answer, { topic: "tides" });
  const logs = readdirSync(join(folder, "logs")).filter((name) => name.endsWith(".jsonl")).length;
  if (logs !== runs + 1) throw new Error(`${logs} log files of ${runs + 1} runs`);
  return [
    row("1,000 runs of an agent on disk, with log files / ideal", ratio.value, "x", 3, ratio.detail),
    row("peak memory of 1,000 with log files", memory.value, "MB", 250, memory.detail),
  ];
}

function withLogs(agent: string): string {
  const { runner, ...rest } = JSON.parse(agent) as { readonly runner: JsonObject };
  return JSON.stringify({ ...rest, runner: { ...runner, logging: { directory: "logs", format: "jsonl" } } });
}

type Answering = (step: string, visit: number) => JsonObject;
const same: Answering = () => ANSWER;

type Measured = { readonly value: number; readonly detail: string };

/** To be called once in a process: memory is the most that the process ever had. */
async function atOnce(
  agent: Loaded,
  folder: string,
  runs: number,
  answer: Answering,
  args: JsonObject = {},
): Promise<{ readonly ratio: Measured; readonly memory: Measured }> {
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: async ({ asker: { step, visit } }) => {
      await delay(MODEL_MS);
      return { kind: "reply", text: "", calls: [], output: answer(step, visit), usage: USAGE };
    },
  };
  const journal = await openJournal(join(folder, "state"), { now: Date.now });
  const one = () => runLoaded(agent, { cwd: folder, journal, backend, args });
  try {
    await one();
    const used = process.cpuUsage();
    const begun = performance.now();
    const results = await Promise.all(Array.from({ length: runs }, one));
    const took = performance.now() - begun;
    const { user, system } = process.cpuUsage(used);
    const failed = results.find(({ success, iterations }) => !success || iterations !== STEPS);
    if (failed !== undefined) throw new Error(`A run went wrong: ${failed.reason}`);
    const ideal = STEPS * MODEL_MS;
    const busy = `${Math.round((user + system) / 1000)} ms of processor time`;
    return {
      ratio: { value: took / ideal, detail: `${Math.round(took)} ms of ${ideal} ms, ${busy}` },
      memory: {
        value: process.resourceUsage().maxRSS / 1024,
        detail: `resident set of the process, ${runs.toLocaleString("en")} runs`,
      },
    };
  } finally {
    await journal.close();
  }
}
