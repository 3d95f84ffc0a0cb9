/** What a batch costs: fifty runs, eight at a time, each in a worktree whose work is merged, with a model that takes 50 ms. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Flow } from "../src/flow/flow.ts";
import { NOT_INSTALLED } from "../src/flow/machine/programs.ts";
import { runBatch, type Backend, type BatchOptions, type Loaded } from "../src/run/index.ts";
import { programsFor } from "../src/run/world/programs.ts";
import { cycle, loaded, row, USAGE, type Row } from "./measure.ts";

const RUNS = 50;
const AT_ONCE = 8;
const STEPS = 10;
const MODEL_MS = 50;

export async function measureBatch(folder: string): Promise<readonly Row[]> {
  makeRepository(folder);
  const agent = loaded({ ...writing(cycle(STEPS)), openArguments: true }, folder);
  const items = Array.from({ length: RUNS }, (_, place) => ({ name: `#${place}`, args: { issue: place } }));
  const shared = { cwd: folder, items, concurrency: AT_ONCE };
  // One response more than steps: the one that writes.
  const ideal = Math.ceil(RUNS / AT_ONCE) * (STEPS + 1) * MODEL_MS;
  const timed = async (worktree: boolean) =>
    await timeOf(agent, { ...shared, backend: createModel(), worktree });
  const inTrees = await timed(true);
  const plain = await timed(false);
  const told = (ms: number) => `${Math.round(ms)} ms against ${ideal} ms`;
  return [
    row("50 runs, 8 at a time, in one folder / ideal", plain / ideal, "x", 1.5, told(plain)),
    row(
      "50 runs, 8 at a time, each in a worktree and merged / ideal",
      inTrees / ideal,
      "x",
      1.5,
      told(inTrees),
    ),
  ];
}

async function timeOf(agent: Loaded, options: BatchOptions): Promise<number> {
  const from = performance.now();
  const { items } = await runBatch(agent, options);
  const failed = items.find(({ result }) => result?.success !== true);
  if (failed !== undefined) throw new Error(`${failed.name}: ${failed.result?.reason ?? "it was not begun"}`);
  return performance.now() - from;
}

function writing(flow: Flow): Flow {
  const tools = { allow: ["Write"], mode: "acceptEdits" } as const;
  const steps = Object.entries(flow.steps).map(([id, step]) => [id, { ...step, tools, turns: 2 }] as const);
  return { ...flow, steps: Object.fromEntries(steps) };
}

const ANSWER = { next_action: { action: "next" } };

/** The first thing that each run does is to write a file of its own. */
function createModel(): Backend {
  const begun = new Set<string>();
  return {
    spec: { id: "bench", options: null },
    turn: async ({ asker }) => {
      await sleep(MODEL_MS);
      const [run = ""] = asker.key.split("/");
      const calls = begun.has(run)
        ? []
        : [{ id: run, name: "Write", input: { file_path: `${run}.txt`, content: run } }];
      begun.add(run);
      return { kind: "reply", text: "", calls, ...(calls.length === 0 && { output: ANSWER }), usage: USAGE };
    },
  };
}

function makeRepository(folder: string): void {
  writeFileSync(join(folder, ".gitignore"), "state/\n.worktrees/\n");
  const { git: program } = programsFor(process.env, [folder]);
  const git = (...args: readonly string[]) =>
    execFileSync(program ?? NOT_INSTALLED, args, { cwd: folder, stdio: "pipe" });
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "bench");
  git("config", "user.email", "bench@example.invalid");
  git("add", "--all");
  git("commit", "--quiet", "--message=start");
}
