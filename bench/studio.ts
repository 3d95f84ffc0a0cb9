/** What the studio costs: starting it, opening long runs and long lists, hearing of what others write, and being idle. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import type { RunHandle } from "../src/engine/ports.ts";
import type { Entry } from "../src/flow/event.ts";
import { show } from "../src/run/index.ts";
import type { FramesDocument, StreamMessage } from "../src/studio/wire.ts";
import { create, fill, nameOf, open, record, timed } from "./journal.ts";
import { median, row, spread, type Row } from "./measure.ts";

const LONG = 10_000;
const MANY = 10_000;
const LIVING = 1000;
const FIGURED = 1000;
const STREAMS = 20;

export async function measureStudio(folder: string, cli: readonly string[]): Promise<readonly Row[]> {
  const start = (name: string) => startStudio(folder, join(folder, name), cli);
  return [
    ...(await measureStart(folder, cli, start)),
    ...(await measureLong(folder, start)),
    await measureList(folder, start),
    ...(await measureFigures(folder, start)),
    await measureHearing(folder, start),
    ...(await measureLiving(folder, start)),
  ];
}

type Started = {
  readonly child: ChildProcess;
  readonly readyMs: number;
  readonly ask: (path: string) => Promise<Asked>;
  readonly stream: (
    hear: (message: StreamMessage, at: number) => void,
    query?: string,
  ) => Promise<() => void>;
  readonly stop: () => Promise<void>;
};

/** `bytes`: as they came over the wire. */
type Asked = { readonly bytes: number; readonly text: string };

type Start = (name: string) => Promise<Started>;

async function startStudio(
  folder: string,
  state: string,
  [node = "", ...main]: readonly string[],
): Promise<Started> {
  const from = performance.now();
  const args = [...main, "studio", "--port", "0", "--json", "--quiet", "--state", state];
  const child = spawn(node, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  const [said] = (await once(child.stdout, "data")) as [Buffer];
  const readyMs = performance.now() - from;
  const { url, port } = JSON.parse(said.toString()) as { readonly url: string; readonly port: number };
  const authorization = `Bearer ${new URL(url).hash.slice("#token=".length)}`;
  const options = (path: string) => ({ host: "127.0.0.1", port, path, headers: { authorization } });
  return {
    child,
    readyMs,
    ask: async (path) => {
      const { promise, resolve, reject } = Promise.withResolvers<Asked>();
      const headers = { authorization, "accept-encoding": "gzip" };
      get({ ...options(path), headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("end", () => {
          const body = Buffer.concat(parts);
          const isPacked = response.headers["content-encoding"] === "gzip";
          const text = (isPacked ? gunzipSync(body) : body).toString();
          if (response.statusCode === 200) resolve({ bytes: body.length, text });
          else reject(new Error(`${path}: ${response.statusCode} ${text}`));
        });
      }).on("error", reject);
      return await promise;
    },
    stream: async (hear, query = "") => {
      const { promise, resolve, reject } = Promise.withResolvers<() => void>();
      const request = get(options(`/api/stream?${query}`), (response) => {
        let rest = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          const at = Date.now();
          const events = (rest + part).split("\n\n");
          rest = events.pop()!;
          for (const event of events) {
            const [, data] = /^data: (.*)$/m.exec(event) ?? [];
            if (data === undefined) continue;
            const message = JSON.parse(data) as StreamMessage;
            if (message.type === "questions") resolve(() => request.destroy());
            hear(message, at);
          }
        });
        response.on("error", () => undefined);
      });
      request.on("error", reject);
      return await promise;
    },
    stop: async () => {
      child.kill("SIGINT");
      await ended;
    },
  };
}

async function measureStart(
  folder: string,
  [node = ""]: readonly string[],
  start: Start,
): Promise<readonly Row[]> {
  const ratios: number[] = [];
  const cold: number[] = [];
  const empty = () => spawnSync(node, ["-e", "0"]);
  let memory = 0;
  let bare = 0;
  let idle = 0;
  let size = 0;
  let all = 0;
  for (let round = 0; round < 7; round++) {
    const studio = await start("empty");
    const from = performance.now();
    empty();
    ratios.push(studio.readyMs / (performance.now() - from));
    cold.push(studio.readyMs);
    if (round === 6) {
      const waiting = spawn(node, ["-e", "setTimeout(() => {}, 60000)"]);
      await delay(1500);
      memory = residentOf(studio.child);
      bare = residentOf(waiting);
      waiting.kill();
      const leave = await studio.stream(() => undefined);
      // What is loaded for the first page is not what it costs to leave it open.
      await delay(1500);
      const before = ticksOf(studio.child);
      await delay(10_000);
      idle = (ticksOf(studio.child) - before) / 1000;
      leave();
      for (const file of ["/", "/page.js", "/page.css", "/icon.svg"]) size += (await studio.ask(file)).bytes;
      all = size + (await studio.ask("/more.js")).bytes;
    }
    await studio.stop();
  }
  return [
    row("studio ready / an empty Node process", median(ratios), "x", 4, spread(ratios)),
    row("studio ready", median(cold), "ms", null, ""),
    row("idle studio / an empty Node process: memory", memory / bare, "x", 1.6, `${memory} KB`),
    row("idle studio with one page open: processor", idle * 100, "%", 0.5, "of a core"),
    row(
      "a first visit of the page, compressed",
      size / 1024,
      "KB",
      60,
      `all screens ${(all / 1024).toFixed(1)} KB`,
    ),
  ];
}

async function measureLong(folder: string, start: Start): Promise<readonly Row[]> {
  const journal = await open(folder, "long-run");
  const { flow, entries } = await record(folder, LONG - 2);
  for (const place of [0, 1, 2]) await (await create(journal, nameOf(place), { flow, entries })).release();
  const ratios: number[] = [];
  const folded: number[] = [];
  const first: number[] = [];
  const blocked: number[] = [];
  let bytes = 0;
  for (let round = 0; round < 5; round++) {
    const alone = await warm(start);
    const reading = await timed(() => journal.read(nameOf(0)));
    const folding = await timed(() => show(journal, nameOf(0)));
    const from = performance.now();
    let firstMs = 0;
    await openRun(alone, nameOf(0), () => (firstMs ||= performance.now() - from));
    const opening = performance.now() - from;
    await alone.stop();
    const studio = await warm(start);
    blocked.push(await longestWait(studio, async () => (bytes = await openRun(studio, nameOf(0)))));
    ratios.push(opening / reading);
    folded.push(opening / folding);
    first.push(firstMs / reading);
    await studio.stop();
  }
  await journal.close();
  return [
    row("opening a run of 10,000 entries / reading it", median(ratios), "x", 1.6, spread(ratios)),
    row("opening it / folding it as show does", median(folded), "x", null, spread(folded)),
    row("its first entries / reading it", median(first), "x", null, spread(first)),
    row("longest wait of another request meanwhile", median(blocked), "ms", 50, spread(blocked)),
    row("an entry over the wire, compressed", bytes / LONG, "bytes", 20, ""),
  ];
}

/** A studio that has opened runs before, as the process that it is compared with has read some. */
async function warm(start: Start): Promise<Started> {
  const studio = await start("long-run");
  for (const place of [1, 2]) await openRun(studio, nameOf(place));
  return studio;
}

/** What the screen of a run asks for: its head and, at the same time, its entries. Gives the bytes of the latter. */
async function openRun(studio: Started, run: string, hear?: () => unknown): Promise<number> {
  const head = studio.ask(`/api/runs/${run}?path=1`);
  let bytes = 0;
  for (let after = 0; ;) {
    const { bytes: some, text } = await studio.ask(`/api/runs/${run}/frames?after=${after}`);
    hear?.();
    const { frames, isAll } = JSON.parse(text) as FramesDocument;
    bytes += some;
    after += frames.length;
    if (isAll) break;
  }
  await head;
  return bytes;
}

async function measureList(folder: string, start: Start): Promise<Row> {
  const journal = await open(folder, "many-runs");
  await fill(journal, await record(folder, 8), MANY);
  const studio = await start("many-runs");
  await studio.ask("/api/runs");
  const ratios: number[] = [];
  for (let round = 0; round < 9; round++) {
    const listing = await timed(() => journal.list());
    ratios.push((await timed(() => studio.ask("/api/runs"))) / listing);
  }
  await studio.stop();
  await journal.close();
  return row("the newest of 10,000 runs / listing all", median(ratios), "x", 1.5, spread(ratios));
}

/** What the screen of figures asks for: at first, and once more when all is worked out. */
async function measureFigures(folder: string, start: Start): Promise<readonly Row[]> {
  const journal = await open(folder, "figured");
  const recorded = await record(folder, 40);
  await fill(journal, recorded, FIGURED);
  await delay(10);
  const since = Date.now();
  for (let place = FIGURED; place < 1.5 * FIGURED; place++)
    await (await create(journal, nameOf(place), recorded)).release();
  // A studio that has worked out others before, as the process that it is compared with has read some.
  const warmed = async () => {
    const studio = await start("figured");
    await studio.ask(`/api/figures?since=${since}`);
    return studio;
  };
  const ratios: number[] = [];
  const again: number[] = [];
  const blocked: number[] = [];
  let bytes = 0;
  for (let round = 0; round < 5; round++) {
    const reading = await timed(async () => {
      for (let place = 0; place < FIGURED; place++) await journal.read(nameOf(place));
    });
    const studio = await warmed();
    ratios.push((await timed(() => studio.ask("/api/figures"))) / reading);
    again.push(await timed(async () => ({ bytes } = await studio.ask("/api/figures"))));
    await studio.stop();
    const other = await warmed();
    blocked.push(await longestWait(other, () => other.ask("/api/figures")));
    await other.stop();
  }
  await journal.close();
  return [
    row("figures of 1,000 runs / reading them", median(ratios), "x", 3, spread(ratios)),
    row("figures asked for again", median(again), "ms", null, `${(bytes / 1024).toFixed(1)} KB`),
    row("longest wait of another request while figures are made", median(blocked), "ms", 50, spread(blocked)),
  ];
}

/** Of another request, asked again and again while the work is done. */
async function longestWait(studio: Started, work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  const over = new AbortController();
  const pinging = (async () => {
    while (!over.signal.aborted) {
      longest = Math.max(longest, await timed(() => studio.ask("/api/runs?limit=0")));
      await delay(1);
    }
  })();
  await work();
  over.abort();
  await pinging;
  return longest;
}

/** Every entry has the time of its making: from there to each of 20 pages. */
async function measureHearing(folder: string, start: Start): Promise<Row> {
  const journal = await open(folder, "heard");
  const { flow, entries } = await record(folder, 1000);
  const handle = await create(journal, nameOf(0), { flow, entries: entries.slice(0, 1) });
  const studio = await start("heard");
  const heard: number[] = [];
  const made = new Map<number, number>();
  const hear = (message: StreamMessage, at: number) => {
    if (message.type !== "frames") return;
    for (const [seq] of message.frames) {
      const since = made.get(seq);
      if (since !== undefined) heard.push(at - since);
    }
  };
  const leaves: (() => void)[] = [];
  for (let page = 0; page < STREAMS; page++) leaves.push(await studio.stream(hear, `run=${nameOf(0)}`));
  for (const entry of entries.slice(1, 201)) {
    made.set(entry.seq, Date.now());
    await handle.append([{ ...entry, at: Date.now() }]);
    await delay(5);
  }
  await delay(500);
  for (const leave of leaves) leave();
  await handle.release();
  await studio.stop();
  await journal.close();
  const sorted = heard.toSorted((a, b) => a - b);
  const p99 = sorted[Math.floor(sorted.length * 0.99)] ?? Infinity;
  return row("an entry until 20 pages have it, p99", p99, "ms", 100, `median ${median(heard)} ms`);
}

async function measureLiving(folder: string, start: Start): Promise<readonly Row[]> {
  const journal = await open(folder, "living");
  const { flow, entries } = await record(folder, 200);
  const handles: RunHandle[] = [];
  for (let place = 0; place < LIVING; place++)
    handles.push(await create(journal, nameOf(place), { flow, entries: entries.slice(0, 1) }));
  const studio = await start("living");
  const first = await studio.ask("/api/runs");
  let lists = 0;
  const leave = await studio.stream((message) => {
    if (message.type === "runs") lists += 1;
  });
  const before = ticksOf(studio.child);
  const from = performance.now();
  let written = 0;
  for (let round = 0; performance.now() - from < 5000; round++) {
    const some = handles.slice((round * 50) % LIVING, ((round * 50) % LIVING) + 50);
    const turn = Math.floor((round * 50) / LIVING) + 1;
    await Promise.all(some.map((handle) => handle.append(next(entries, turn))));
    written += some.length;
    await delay(20);
  }
  const seconds = (performance.now() - from) / 1000;
  const busy = (ticksOf(studio.child) - before) / 100 / seconds;
  leave();
  await studio.stop();
  for (const handle of handles) await handle.release();
  await journal.close();
  const rate = `${Math.round(written / seconds)} entries a second`;
  return [
    row("1,000 living runs: the first rows, compressed", first.bytes / 1024, "KB", 20, ""),
    row("1,000 living runs: messages about rows", lists / seconds, "a second", 4, rate),
    row("1,000 living runs: processor", busy * 100, "%", 25, `of a core, ${rate}`),
  ];
}

function next(entries: readonly Entry[], turn: number): readonly Entry[] {
  return entries.slice(turn, turn + 1);
}

/** Kilobytes, as Linux counts them; 0 elsewhere. */
function residentOf({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readProc(pid, "status"))?.[1] ?? 0);
}

/** Hundredths of a second of processor time. */
function ticksOf({ pid }: ChildProcess): number {
  const fields = readProc(pid, "stat").split(") ").at(-1)!.split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

function readProc(pid: number | undefined, name: string): string {
  return readFileSync(`/proc/${pid}/${name}`, "utf8");
}
