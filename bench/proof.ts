/** What tests of flows cost: a scenario in memory, reading and running many files, a hostile run, and generated suites. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Flow } from "../src/flow/flow.ts";
import { agentTests, type AgentTests } from "../src/testing/agent-tests.ts";
import { prepareFlow } from "../src/testing/flow-tests.ts";
import { sketchCheck, sketchFlow, sketchPrompt, type StepSketch } from "../src/testing/flows.ts";
import { setFlagsFromString } from "node:v8";
import { generate } from "../src/testing/generate.ts";
import { initFiles } from "../src/cli/commands/init-files.ts";
import { median, micro, row, spread, type Row } from "./measure.ts";

const FILES = 1000;
const TESTS = 10_000;
const FUZZED = 3000;

export async function measureProof(folder: string): Promise<readonly Row[]> {
  // As `test`, `fuzz` and `mutate` have it; the command `bench` bounds the memory for young objects.
  setFlagsFromString("--semi-space-growth-factor=2");
  const files = initFiles("hello");
  for (const [path, content] of Object.entries(files)) write(folder, path, content);
  const agent = await agentTests("hello", { cwd: folder, isCi: true });
  return [
    await scenarios(agent),
    await descriptors(agent),
    await manyFiles(folder, files["tests/first.yaml"] ?? ""),
    await fuzzed(agent),
    await generated(100, 5),
    await generated(1000, 30),
    row(
      "peak memory of that",
      process.resourceUsage().maxRSS / 1024,
      "MB",
      1024,
      "resident set of the process",
    ),
  ];
}

function write(folder: string, path: string, content: string): void {
  const file = join(folder, ".agent", "hello", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

async function scenarios(agent: AgentTests): Promise<Row> {
  const times: number[] = [];
  let entries = 0;
  for (let round = 0; round < 9; round++) {
    entries = await runAll(agent, 200);
    times.push((await busy(() => runAll(agent, 1000))) / 1000);
  }
  const detail = `${Math.round(1000 / median(times)).toLocaleString("en")} a second, ${entries} entries each, ${spread(times)} ms`;
  return row("a test in memory, processor time", median(times) * 1000, "us", 200, detail);
}

/** Entries of the last run. */
async function runAll({ tests, run }: AgentTests, times: number): Promise<number> {
  let entries = 0;
  for (let count = 0; count < times; count++) {
    const { status, unmet, ran } = await run(tests[count % tests.length]!);
    if (status !== "passed") throw new Error(`A test failed: ${JSON.stringify(unmet)}`);
    entries = ran!.entries.length;
  }
  return entries;
}

async function descriptors(agent: AgentTests): Promise<Row> {
  await runAll(agent, 100);
  const before = openDescriptors();
  await runAll(agent, TESTS);
  const after = openDescriptors();
  return row("descriptors opened by 10,000 tests in memory", after - before, "", 0, `${after} are open`);
}

/** 0 where the system does not tell. */
function openDescriptors(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return 0;
  }
}

async function manyFiles(folder: string, text: string): Promise<Row> {
  for (let count = 1; count < FILES; count++) write(folder, `tests/copy-${count}.yaml`, text);
  const times: number[] = [];
  let read = 0;
  for (let round = 0; round < 5; round++)
    times.push(
      await busy(async () => {
        const agent = await agentTests("hello", { cwd: folder, isCi: true });
        read = agent.tests.length;
        await runAll(agent, read);
      }),
    );
  const detail = `${read} tests; the first time ${Math.round(times[0]!)} ms, ${spread(times)} ms`;
  return row("1,000 test files read and run, processor time", median(times), "ms", 2000, detail);
}

async function fuzzed({ fuzz }: AgentTests): Promise<Row> {
  const times: number[] = [];
  let runs = 0;
  for (let round = 0; round < 3; round++)
    times.push(
      await busy(async () => {
        const found = await fuzz({ runs: FUZZED, seed: round + 1 });
        if (found.broken.length > 0) throw new Error(`A property is broken: ${found.broken[0]!.what}`);
        runs = found.runs;
      }),
    );
  const each = median(times) / runs;
  const detail = `${Math.round(1000 / each).toLocaleString("en")} a second with all properties; ${micro(times[0]! / runs)} in the first ${runs.toLocaleString("en")}`;
  return row("a hostile run, processor time", each * 1000, "us", 667, detail);
}

async function generated(steps: number, limit: number): Promise<Row> {
  const flow = await prepareFlow(chain(steps));
  let detail = "";
  const took = await busy(async () => {
    const { tests, astray, states } = await generate(flow, new Map());
    if (astray.length > 0) throw new Error(`A test went astray: ${astray[0]!.why}`);
    detail = `${tests.length.toLocaleString("en")} tests, ${states.toLocaleString("en")} states`;
  });
  const name = `tests generated for ${steps.toLocaleString("en")} steps, processor time`;
  return row(name, took / 1000, "s", limit, detail);
}

/** Steps one after the other, each of which can be repeated; every tenth leads back, and three are guarded. */
function chain(steps: number): Flow {
  const names = ["tests", "lint", "clean"];
  const guarded = [Math.floor(steps / 3), Math.floor((2 * steps) / 3), steps - 1];
  const sketches = Array.from({ length: steps }, (_, at): [string, StepSketch] => {
    const check = names[guarded.indexOf(at)];
    const edges = {
      next: at === steps - 1 ? null : `s${at + 1}`,
      repeat: `s${at}`,
      ...(at % 10 === 9 && { back: `s${at - 5}` }),
    };
    if (check === undefined) return [`s${at}`, { edges }];
    const checks = [{ check, edition: sketchPrompt("Fix it.") }];
    const guard = {
      on: "next",
      checks,
      onFailure: "retry",
      maxFailures: 3,
      back: { kind: "caller" },
    } as const;
    return [`s${at}`, { edges, guard }];
  });
  const checks = Object.fromEntries(names.map((name) => [name, sketchCheck(name, `run ${name}`)]));
  return sketchFlow(Object.fromEntries(sketches), { checks, limits: { visits: 100_000 } });
}

/** Milliseconds of processor time: other programs on the machine do not count. */
async function busy(work: () => Promise<unknown>): Promise<number> {
  const from = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(from);
  return (user + system) / 1000;
}
