/** What a journal costs that holds many runs, or a long one: finding, replaying, removing, and the memory to show it. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import type { Entry } from "../src/flow/event.ts";
import type { Flow } from "../src/flow/flow.ts";
import {
  createMemoryJournal,
  openJournal,
  runLoaded,
  show,
  type Backend,
  type Journal,
} from "../src/run/index.ts";
import { replayRow } from "../src/run/records/replay.ts";
import { everyRow } from "../src/run/records/runs.ts";
import { cycle, loaded, median, row, spread, USAGE, type Row } from "./measure.ts";

const MANY = 10_000;
const LONG_EVENTS = 150_000;
const REMOVED = 3_000;

export async function measureJournal(folder: string, cli: readonly string[]): Promise<readonly Row[]> {
  return [
    await measureShow(folder),
    await measureReplayAll(folder),
    ...(await measurePrune(folder, cli)),
    await measureLong(folder, cli),
  ];
}

async function measureShow(folder: string): Promise<Row> {
  const short = await record(folder, 8);
  const [few, many] = [await open(folder, "few"), await open(folder, "many")];
  try {
    await fill(few, short, 10);
    await fill(many, short, MANY);
    const ratios: number[] = [];
    for (let round = -5; round < 41; round++) {
      const among = [await timed(() => show(few, nameOf(5))), await timed(() => show(many, nameOf(5_000)))];
      if (round >= 0) ratios.push(among[1]! / among[0]!);
    }
    return row("show among 10,000 runs / among 10", median(ratios), "x", 1.2, spread(ratios));
  } finally {
    await few.close();
    await many.close();
  }
}

async function measureReplayAll(folder: string): Promise<Row> {
  const short = await record(folder, 20);
  const [few, many] = [await open(folder, "replayed-200"), await open(folder, "replayed-2000")];
  try {
    await fill(few, short, 200);
    await fill(many, short, 2_000);
    const perRun = async (journal: Journal, runs: number) => (await timed(() => replayAll(journal))) / runs;
    const ratios: number[] = [];
    for (let round = -1; round < 5; round++) {
      const ratio = (await perRun(many, 2_000)) / (await perRun(few, 200));
      if (round >= 0) ratios.push(ratio);
    }
    return row("replay --all, per run: of 2,000 / of 200", median(ratios), "x", 1.5, spread(ratios));
  } finally {
    await few.close();
    await many.close();
  }
}

async function replayAll(journal: Journal): Promise<void> {
  for await (const one of everyRow(journal)) {
    const { difference } = await replayRow(journal, one);
    if (difference !== null) throw new Error(`Run ${one.id}: ${JSON.stringify(difference)}`);
  }
}

/** Another process removes runs; this one looks all the time whether it could write. */
async function measurePrune(
  folder: string,
  [node = "", ...main]: readonly string[],
): Promise<readonly Row[]> {
  const state = join(folder, "pruned");
  const journal = await open(folder, "pruned");
  await fill(journal, await record(folder, 48), REMOVED);
  await journal.close();
  const args = ["runs", "--prune", "--older-than", "0s", "--yes", "--quiet", "--state", state];
  using db = new DatabaseSync(join(state, "runs.db"), { timeout: 0 });
  const from = performance.now();
  const child = spawn(node, [...main, ...args], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = once(child, "exit");
  let longest = 0;
  let free = performance.now();
  while (child.exitCode === null) {
    if (canWrite(db)) free = performance.now();
    longest = Math.max(longest, performance.now() - free);
    await delay(1);
  }
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(`Removing runs ended with ${code}.`);
  const seconds = (performance.now() - from) / 1000;
  const per = `${((seconds * 1000) / REMOVED).toFixed(2)} ms a run, with the start of the command`;
  return [
    row("removing 3,000 runs: longest time that nobody else can write", longest, "ms", 100, ""),
    row("removing 3,000 runs", seconds, "s", null, per),
  ];
}

function canWrite(db: DatabaseSync): boolean {
  try {
    db.exec("BEGIN IMMEDIATE; ROLLBACK");
    return true;
  } catch {
    return false;
  }
}

async function measureLong(folder: string, [node = "", ...main]: readonly string[]): Promise<Row> {
  const journal = await open(folder, "long");
  const { flow, entries } = await record(folder, LONG_EVENTS - 2);
  const handle = await create(journal, nameOf(0), { flow, entries: entries.slice(0, 1) });
  for (let from = 1; from < entries.length; from += 5_000)
    await handle.append(entries.slice(from, from + 5_000));
  await handle.release();
  await journal.close();
  const peak = join(folder, "peak");
  const note = `import{writeFileSync}from"node:fs";process.on("exit",()=>writeFileSync(${JSON.stringify(peak)},String(process.resourceUsage().maxRSS)))`;
  const preload = `data:text/javascript,${encodeURIComponent(note)}`;
  const args = ["show", nameOf(0), "--json", "--state", join(folder, "long")];
  const { status, stderr } = spawnSync(node, ["--import", preload, ...main, ...args], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`show ended with ${status}: ${stderr}`);
  const megabytes = Number(readFileSync(peak, "utf8")) / 1024;
  return row("show of a run of 150,000 events: memory", megabytes, "MB", 250, "");
}

// Journals that are quick to make: one run is driven, and written again under other names.

export type Recorded = { readonly flow: Flow; readonly entries: readonly Entry[] };

export async function record(folder: string, visits: number): Promise<Recorded> {
  const journal = createMemoryJournal();
  const flow = cycle(visits);
  const { run } = await runLoaded(loaded(flow, folder), { cwd: folder, journal, backend: BACKEND });
  return { flow, entries: await journal.read(run!) };
}

const BACKEND: Backend = {
  spec: { id: "bench", options: null },
  turn: () => {
    const output = { next_action: { action: "next" } };
    return Promise.resolve({ kind: "reply", text: SAID, calls: [], output, usage: USAGE });
  },
};
const SAID = "The work goes on. ".repeat(10);

export async function open(folder: string, name: string): Promise<Journal> {
  return await openJournal(join(folder, name), { now: Date.now });
}

export function nameOf(index: number): string {
  return `run${index.toString(36).padStart(7, "0")}`;
}

export async function fill(journal: Journal, recorded: Recorded, runs: number): Promise<void> {
  for (let from = 0; from < runs; from += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, runs - from) }, (_, place) => nameOf(from + place));
    const handles = await Promise.all(some.map((id) => create(journal, id, recorded)));
    await Promise.all(handles.map((handle) => handle.release()));
  }
}

const AT_ONCE = 250;

export async function create(journal: Journal, id: string, { flow, entries: [first, ...rest] }: Recorded) {
  const { event } = first!;
  if (event.type !== "run.started") throw new Error("A run begins with run.started.");
  const about = { id, agent: "sketch", at: Date.now(), digest: event.flow, flow };
  return await journal.create(about, [{ ...first!, event: { ...event, run: id } }, ...rest]);
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
