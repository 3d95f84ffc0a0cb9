/**
 * What the journal costs, as ratios to what the disk and SQLite cost by themselves, in the same process and minute.
 *
 *     node bench/journal.ts [DIRECTORY]     measures the disk that holds DIRECTORY; the system's temp folder by default
 */
import { randomUUID } from "node:crypto";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Journal, NewRun } from "../src/engine/ports.ts";
import type { Entry } from "../src/flow/event.ts";
import type { Flow } from "../src/flow/flow.ts";
import { createMemoryJournal } from "../src/journal/memory.ts";
import { openSqliteJournal } from "../src/journal/sqlite/sqlite.ts";

const DONE = Promise.resolve();
const directory = mkdtempSync(join(resolve(process.argv[2] ?? tmpdir()), "lockstep-bench-"));
try {
  console.log(`Node ${process.version}, ${directory}`);
  for (const bytes of [300, 2_000]) await durable(bytes);
  await reading();
  await fleet(1_000);
  await fleet(10_000);
  await inMemory();
} finally {
  rmSync(directory, { recursive: true });
}

/** Against pushing the same entry to an array and awaiting a settled promise. */
async function inMemory(): Promise<void> {
  const count = 100_000;
  const batches = Array.from({ length: count }, (_, index) => [entryOf(index + 1, 300)]);
  const [raw, ours]: [number[], number[]] = [[], []];
  for (let round = 0; round < 7; round += 1) {
    const plain: Entry[] = [];
    const handle = await createMemoryJournal().create(newRun("r1"));
    const push = async () => {
      for (const batch of batches) {
        for (const entry of batch) plain.push(entry);
        await DONE;
      }
    };
    const append = async () => {
      for (const batch of batches) await handle.append(batch);
    };
    raw.push((await took(push)) / count);
    ours.push((await took(append)) / count);
  }
  console.log(`memory append: push and await ${us(p50(raw))}, journal ${us(p50(ours))}`);
}

/** One run, step after step, against the same bytes appended to a file and synced; and the same for each window. */
async function durable(bytes: number): Promise<void> {
  const journal = await openJournal(`durable-${bytes}`);
  const handle = await journal.create(newRun("r1"));
  const fd = openSync(join(directory, `raw-${bytes}`), "a");
  const [raw, ours]: [number[], number[]] = [[], []];
  for (let seq = 1; seq <= 3_000; seq += 1) {
    const entry = entryOf(seq, bytes);
    const line = `${JSON.stringify(entry)}\n`;
    raw.push(
      await took(() => {
        writeSync(fd, line);
        fdatasyncSync(fd);
      }),
    );
    ours.push(await took(() => handle.append([entry])));
  }
  closeSync(fd);
  await journal.close();
  console.log(`durable append of ${bytes} bytes:`);
  for (const [name, from, to] of [
    ["all", 0, 3_000],
    ["first 100", 0, 100],
    ["first 500", 0, 500],
    ["last 500", 2_500, 3_000],
  ] as const) {
    const [r, o] = [raw.slice(from, to), ours.slice(from, to)];
    const p99 = `p99 ${us(quantile(r, 0.99))} / ${us(quantile(o, 0.99))}`;
    console.log(
      `  ${name}: raw ${us(p50(r))}, journal ${us(p50(o))}, ratio ${ratio(p50(o), p50(r))}; ${p99}`,
    );
  }
}

async function reading(): Promise<void> {
  const count = 10_000;
  const journal = await openJournal("reading");
  const handle = await journal.create(newRun("r1"));
  await handle.append(Array.from({ length: count }, (_, index) => entryOf(index + 1, 300)));
  using db = new DatabaseSync(join(directory, "reading", "runs.db"));
  const select = db.prepare("SELECT body FROM event ORDER BY run, seq");
  const [raw, ours, opened]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < 15; round += 1) {
    raw.push(await took(() => void select.all().map(({ body }) => JSON.parse(String(body)) as Entry)));
    ours.push(await took(() => journal.read("r1")));
    const openedAt = await took(async () => {
      const fresh = await openJournal("reading");
      await fresh.read("r1");
      await fresh.close();
    });
    opened.push(openedAt);
  }
  await journal.close();
  console.log(`read of ${count} entries: select and JSON.parse ${ms(p50(raw))}, journal ${ms(p50(ours))},`);
  console.log(`  ratio ${ratio(p50(ours), p50(raw))}; open, read and close ${ms(p50(opened))}`);
}

/** Many runs at once, ten steps each, against a model that takes 50 ms: the ideal is half a second. */
async function fleet(runs: number): Promise<void> {
  const journal = await openJournal(`fleet-${runs}`);
  const ids = Array.from({ length: runs }, () => randomUUID());
  const created = await took(async () => {
    await Promise.all(ids.map(async (id) => (await journal.create(newRun(id))).release()));
  });
  const handles = await Promise.all(ids.map((id) => journal.claim(id)));
  const driven = await took(() =>
    Promise.all(
      handles.map(async (handle) => {
        for (let seq = 1; seq <= 10; seq += 1) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          await handle.append([entryOf(seq, 300)]);
        }
      }),
    ),
  );
  const listed = await took(() => journal.list());
  await journal.close();
  const rss = Math.round(process.memoryUsage().rss / 1e6);
  console.log(
    `${runs} runs of 10 steps of 50 ms: ${ms(driven)}, ${ratio(driven, 500)} of the ideal, RSS ${rss} MB;`,
  );
  console.log(`  create and release ${ms(created)}, list ${ms(listed)}`);
}

function openJournal(name: string): Promise<Journal> {
  return openSqliteJournal({
    directory: join(directory, name),
    now: Date.now,
    ownerId: randomUUID(),
    pid: process.pid,
  });
}

function newRun(id: string): NewRun {
  return { id, agent: "bench", at: Date.now(), digest: "d1", flow: { ir: 1 } as unknown as Flow };
}

/** An entry of a step that was answered, about `bytes` long as JSON. */
function entryOf(seq: number, bytes: number): Entry {
  const usage = { turns: 1, inputTokens: 100, outputTokens: 20, costUsd: null };
  const output = { next_action: { action: "next" }, note: "x".repeat(Math.max(0, bytes - 280)) };
  const reply = { kind: "said", text: "", calls: [], output, usage } as const;
  const event = { type: "step.answered", step: "initial.issue", visit: seq, turn: 1, reply } as const;
  return { seq, at: 1_763_180_000_000 + seq, event };
}

/** Milliseconds. */
async function took(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function quantile(values: readonly number[], q: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * q)] ?? Number.NaN;
}

function p50(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function us(value: number): string {
  return `${(value * 1_000).toFixed(value < 0.01 ? 2 : 0)} us`;
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}

function ratio(value: number, anchor: number): string {
  return `${(value / anchor).toFixed(2)}x`;
}
