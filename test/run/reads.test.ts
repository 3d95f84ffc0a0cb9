/** What is read of a journal: never all runs to find one, and never all of a run at once. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import {
  compareRuns,
  createMemoryJournal,
  exportRun,
  findRun,
  listRuns,
  logs,
  replayRun,
  resume,
  runLoaded,
  show,
  whatIf,
  why,
  type Backend,
  type Journal,
} from "../../src/run/index.ts";
import { questionsOf } from "../../src/run/people/answer.ts";
import { prunable } from "../../src/run/records/prune.ts";
import { replayRow } from "../../src/run/records/replay.ts";
import { everyRow, particularsOf } from "../../src/run/records/runs.ts";
import { followRuns } from "../../src/run/watch/follow.ts";
import { listWorktrees } from "../../src/run/records/worktrees.ts";
import { sketchFlow } from "../../src/testing/flows.ts";

const RUNS = 350;
const LONG = 1_501;
/** More is never read at once. */
const SLICE = 200;
const PAGE = 100;

type Reads = {
  /** Rows of runs that were given out. */
  rows: number;
  entries: number;
  /** The most entries that one read gave out. */
  largest: number;
};

const ALL = Infinity;

describe("run: what is read of a journal", () => {
  const folder = mkdtempSync(join(tmpdir(), "lockstep-reads-"));
  const journal = createMemoryJournal();
  let flow: Flow;
  before(async () => {
    flow = await fill(journal, folder);
  });
  after(() => rmSync(folder, { recursive: true }));
  const loaded = () => ({ agent: flow.agent, project: projectOf(folder), flow, problems: [] });

  const CASES: readonly {
    readonly what: string;
    readonly look: (counted: Journal) => Promise<unknown>;
    readonly most: Omit<Reads, "largest">;
  }[] = [
    { what: "a run by its id", look: (j) => findRun(j, "run-7"), most: { rows: 1, entries: 0 } },
    { what: "a run by a prefix", look: (j) => findRun(j, "run-7x"), most: { rows: 1, entries: 0 } },
    {
      what: "a prefix that many runs have",
      look: (j) => assert.rejects(findRun(j, "run"), { code: "RUN_AMBIGUOUS" }),
      most: { rows: 9, entries: 0 },
    },
    { what: "@last", look: (j) => findRun(j, "@last"), most: { rows: 1, entries: 0 } },
    { what: "@failed", look: (j) => findRun(j, "@failed"), most: { rows: PAGE, entries: 0 } },
    { what: "a page of runs", look: (j) => listRuns(j, { limit: 20 }), most: { rows: 20, entries: 0 } },
    { what: "runs --watch", look: firstOfWatched, most: { rows: 20, entries: 0 } },
    {
      what: "runs --prune",
      look: (j) => prunable(j, { now: 1e15 }),
      most: { rows: RUNS + PAGE, entries: 0 },
    },
    { what: "cost and arguments", look: (j) => particularsOf(j, "long"), most: { rows: 0, entries: LONG } },
    { what: "show", look: (j) => show(j, "long"), most: { rows: 1, entries: LONG } },
    { what: "why", look: (j) => why(j, "long"), most: { rows: 1, entries: LONG } },
    { what: "why STEP@VISIT", look: (j) => why(j, "long", "initial.a@3"), most: { rows: 1, entries: LONG } },
    { what: "logs", look: (j) => Array.fromAsync(logs(j, "long")), most: { rows: 1, entries: LONG } },
    { what: "replay", look: (j) => replayRun(j, "long"), most: { rows: 1, entries: LONG } },
    { what: "export", look: (j) => exportRun(j, "long"), most: { rows: 1, entries: 2 * LONG } },
    {
      what: "diff",
      look: (j) => compareRuns(j, "long", "run-8"),
      most: { rows: 2, entries: LONG + 4 },
    },
    {
      what: "the questions of a run",
      look: (j) => assert.rejects(questionsOf(j, "long"), { code: "NO_QUESTION" }),
      most: { rows: 1, entries: LONG },
    },
    {
      what: "resume of an ended run",
      look: (j) => resume({ run: "long", journal: j, cwd: folder }),
      most: { rows: 2, entries: LONG },
    },
    {
      what: "replay --all",
      look: async (j) => {
        for await (const row of everyRow(j)) assert.ok((await replayRow(j, row)).events > 0);
      },
      most: { rows: RUNS + PAGE, entries: LONG + RUNS * 4 },
    },
    {
      what: "whatif of some runs",
      look: (j) => whatIf(j, loaded(), ["run-7", "run-8"]),
      most: { rows: 2, entries: 2 * 4 },
    },
    {
      what: "worktree list",
      look: (j) => listWorktrees(j, { ...SURROUNDINGS, root: folder, isOurs: false }),
      most: { rows: RUNS + PAGE, entries: RUNS + 1 },
    },
  ];
  for (const { what, look, most } of CASES)
    it(`reads no more than it needs: ${what}`, async () => {
      const { counted, reads } = countReads(journal);
      await look(counted);
      assert.ok(reads.rows <= most.rows, `${reads.rows} rows`);
      assert.ok(reads.entries <= most.entries, `${reads.entries} entries`);
      assert.ok(reads.largest <= SLICE, `${reads.largest} entries at once`);
    });

  it("reads a run that goes on once, and never all of it at once", async () => {
    const entries = (await journal.read("long")).slice(0, LONG - 9);
    const [{ digest } = assert.fail()] = await journal.rows(["long"]);
    const other = createMemoryJournal();
    const about = { id: "long", agent: flow.agent, digest, at: 0, flow };
    await (await other.create(about, entries)).release();
    const { counted, reads } = countReads(other);
    const { success } = await resume({ run: "long", journal: counted, cwd: folder, backend: BACKEND });
    assert.ok(success);
    assert.equal(reads.entries, entries.length);
    assert.ok(reads.largest <= 500, `${reads.largest} entries at once`);
  });

  it("gives the event loop a turn after each slice", async () => {
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await show(journal, "long");
    isOver = true;
    assert.ok(turns >= Math.floor(LONG / SLICE), `${turns} turns`);
  });

  it("goes through all runs once, also when others remove some of them meanwhile", async () => {
    const other = createMemoryJournal();
    await fill(other, folder);
    const seen: string[] = [];
    for await (const { id } of everyRow(other)) {
      seen.push(id);
      // The page ends with this one.
      if (seen.length % PAGE === 0) await other.remove(id);
    }
    assert.equal(seen.length, RUNS + 1);
    assert.equal(new Set(seen).size, RUNS + 1);
  });
});

const SURROUNDINGS = { env: {}, signal: new AbortController().signal } as Parameters<typeof listWorktrees>[1];

async function firstOfWatched(journal: Journal): Promise<void> {
  const clock = { now: () => 0, sleep: () => Promise.resolve() };
  for await (const _ of followRuns(journal, clock, new AbortController().signal, 20)) return;
}

function countReads(journal: Journal): { readonly counted: Journal; readonly reads: Reads } {
  const reads: Reads = { rows: 0, entries: 0, largest: 0 };
  const rows = <T extends readonly unknown[]>(given: T): T => {
    reads.rows += given.length;
    return given;
  };
  const counted: Journal = {
    ...journal,
    list: async (which) => rows(await journal.list(which)),
    rows: async (ids) => rows(await journal.rows(ids)),
    read: async (run, afterSeq, limit = ALL) => {
      const entries = await journal.read(run, afterSeq, limit);
      reads.entries += entries.length;
      reads.largest = Math.max(reads.largest, entries.length);
      return entries;
    },
  };
  return { counted, reads };
}

/** A long run, and many short ones after it, of which the newest failed. */
async function fill(journal: Journal, folder: string): Promise<Flow> {
  const flow = sketchFlow(
    {
      "initial.a": { edges: { next: "continuation.a" } },
      "continuation.a": { edges: { next: "initial.a" } },
    },
    { stop: { kind: "visits", count: LONG - 2 }, limits: { visits: LONG } },
  );
  const loaded = { agent: flow.agent, project: projectOf(folder), flow, problems: [] };
  const memory = createMemoryJournal();
  const { run } = await runLoaded(loaded, { cwd: folder, journal: memory, backend: BACKEND });
  const long = await memory.read(run!);
  assert.equal(long.length, LONG);
  const { digest } = (await memory.list())[0]!;
  const about = { agent: flow.agent, digest, at: 0, flow };
  const named = (id: string, entries: readonly Entry[]) =>
    entries.map(({ event, ...entry }) => ({
      ...entry,
      event: event.type === "run.started" ? { ...event, run: id } : event,
    }));
  await (await journal.create({ ...about, id: "long" }, named("long", long))).release();
  for (let index = 0; index < RUNS; index++) {
    const id = index === 7 ? "run-7xyz" : index === RUNS - 1 ? "run-7" : `run-${index}`;
    const entries = named(id, long.slice(0, 3));
    if (index === RUNS - 2) entries.push(failed(4));
    await (await journal.create({ ...about, id }, entries)).release();
  }
  return flow;
}

function failed(seq: number): Entry {
  const verdict = { outcome: "failed", code: "AGENT_ABORT", reason: "", step: null } as const;
  return { seq, at: 1e12, event: { type: "run.ended", verdict } };
}

const BACKEND: Backend = {
  spec: { id: "counting", options: null },
  turn: () =>
    Promise.resolve({
      kind: "reply",
      text: "",
      calls: [],
      output: { next_action: { action: "next" } },
      usage: { turns: 1, inputTokens: 1, outputTokens: 1, costUsd: null },
    }),
};

function projectOf(folder: string) {
  return { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, ".lockstep") };
}
