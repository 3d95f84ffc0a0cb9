/** Journals that are harmed in many ways: what can be read of them is rescued, the rest is named, and the original stays. */
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import type { Journal } from "../../../src/engine/ports.ts";
import type { Entry } from "../../../src/flow/event.ts";
import type { Flow } from "../../../src/flow/flow.ts";
import { LARGEST_ROW } from "../../../src/journal/sqlite/artifacts.ts";
import { checkJournal } from "../../../src/journal/sqlite/check.ts";
import { openPages } from "../../../src/journal/sqlite/pages.ts";
import { salvage } from "../../../src/journal/sqlite/salvage.ts";
import { openSqliteJournal } from "../../../src/journal/sqlite/sqlite.ts";

const PAGE = 4096;
const RUNS = 12;

/** `folded`: as a process leaves it that ended; `logged`: as one leaves it that was killed; `old`: before there were checksums. */
const JOURNALS = ["folded", "logged", "old"] as const;
type Kind = (typeof JOURNALS)[number];

type Harm = {
  readonly what: string;
  readonly harm: (directory: string, kind: Kind) => void;
  /** How many runs are rescued whole at least, and in part or whole. */
  readonly whole: number | { readonly [kind in Kind]: number };
  readonly some: number | { readonly [kind in Kind]: number };
};

const HARMS: readonly Harm[] = [
  { what: "nothing", harm: () => undefined, whole: RUNS, some: RUNS },
  { what: "the head is zeroed", harm: (at) => fill(at, 0, 100, 0), whole: RUNS, some: RUNS },
  { what: "the first page is noise", harm: (at) => fill(at, 0, PAGE, 0xa5), whole: RUNS, some: RUNS },
  {
    what: "the page of all runs is zeroed",
    harm: (at) => fillPage(at, "run", 0),
    whole: RUNS,
    some: RUNS,
  },
  {
    what: "the index is zeroed",
    harm: (at) => fillPage(at, "sqlite_autoindex_event_1", 0),
    whole: RUNS,
    some: RUNS,
  },
  {
    what: "the root of the entries is zeroed",
    harm: (at) => fillPage(at, "event", 0),
    whole: RUNS,
    some: RUNS,
  },
  {
    what: "the end is cut off",
    harm: (at) => truncateSync(file(at), Math.floor((size(at) * 2) / 3)),
    whole: { folded: 4, logged: RUNS, old: 4 },
    some: { folded: 6, logged: RUNS, old: 6 },
  },
  {
    what: "a page in the middle is zeroed",
    harm: (at) => fill(at, Math.floor(size(at) / PAGE / 2) * PAGE, PAGE, 0),
    whole: { folded: RUNS - 2, logged: RUNS, old: RUNS - 2 },
    some: RUNS - 1,
  },
  {
    what: "a byte of every fourth page is flipped",
    harm: (at) => {
      const bytes = readFileSync(file(at));
      for (let page = 4; page * PAGE < bytes.length; page += 4) bytes[page * PAGE + 2000]! ^= 0x10;
      writeFileSync(file(at), bytes);
    },
    whole: { folded: 3, logged: RUNS, old: 3 },
    some: RUNS - 1,
  },
  {
    what: "a byte of the log is flipped",
    harm: (at, kind) => {
      if (kind !== "logged") return;
      const log = readFileSync(`${file(at)}-wal`);
      log[Math.floor(log.length / 2)]! ^= 1;
      writeFileSync(`${file(at)}-wal`, log);
    },
    whole: { folded: RUNS, logged: RUNS - 2, old: RUNS },
    some: RUNS - 1,
  },
  {
    what: "the log names another page for its last one",
    harm: (at, kind) => {
      if (kind !== "logged") return;
      const log = readFileSync(`${file(at)}-wal`);
      const pages = Math.floor(size(at) / PAGE);
      log.writeUInt32BE(Math.max(pages, 20), log.length - PAGE - 24);
      writeFileSync(`${file(at)}-wal`, log);
    },
    whole: RUNS,
    some: RUNS,
  },
  {
    what: "an artifact is gone",
    harm: (at) => rmSync(join(at, "artifacts"), { recursive: true }),
    whole: RUNS - 1,
    some: RUNS,
  },
  {
    what: "a flow is flipped",
    harm: (at) => flip(at, "flow zero"),
    whole: { folded: RUNS - 4, logged: RUNS, old: RUNS },
    some: RUNS,
  },
];

describe("journal: salvage", () => {
  for (const kind of JOURNALS)
    for (const { what, harm, whole, some } of HARMS)
      it(`rescues what is left when ${what} (${kind})`, () =>
        world(async (directory, out) => {
          const truth = await record(directory, kind);
          harm(directory, kind);
          const before = contents(directory);
          const { runs } = salvage(directory, out);
          assert.deepEqual(contents(directory), before, "the original was changed");
          const count = (...states: string[]) => runs.filter(({ state }) => states.includes(state)).length;
          const told = JSON.stringify(runs);
          assert.ok(count("whole") >= least(whole, kind), told);
          assert.ok(count("whole", "partial") >= least(some, kind), told);
          await compare(out, truth, runs, kind !== "old");
          assert.deepEqual(damageIn(out), count("partial"), told);
        }));

  it("leaves removed runs out, also when they still lie on free pages", () =>
    world(async (directory, out) => {
      const truth = await record(directory, "folded");
      const db = new DatabaseSync(file(directory));
      db.exec("DELETE FROM event WHERE run IN (3, 4); DELETE FROM run WHERE key IN (3, 4)");
      db.close();
      const { runs, strays } = salvage(directory, out);
      assert.deepEqual([runs.length, strays], [RUNS - 2, 0]);
      await compare(out, truth, runs);
    }));

  it("counts the entries of a run without its first one to that run, and others as strays", () =>
    world(async (directory, out) => {
      await record(directory, "folded");
      const db = new DatabaseSync(file(directory));
      db.exec(`PRAGMA foreign_keys = OFF; DELETE FROM event WHERE run IN (3, 4) AND seq = 1;
        DELETE FROM run WHERE key = 4; VACUUM`);
      db.close();
      const { runs, strays } = salvage(directory, out);
      const { state, readable, entries } = runs.find(({ run }) => run === "run3")!;
      assert.deepEqual([state, readable, entries, strays], ["lost", 0, 12, 11]);
    }));

  it("refuses a folder that is not empty, and one in which there is nothing", () =>
    world(async (directory, out) => {
      await record(directory, "folded");
      assert.throws(() => salvage(directory, directory), { code: "NOT_WRITABLE", message: /not empty/ });
      assert.throws(() => salvage(directory, file(directory)), {
        code: "NOT_WRITABLE",
        message: /is not a folder: .*--out DIR/,
      });
      writeFileSync(file(directory), "");
      rmSync(`${file(directory)}-wal`, { force: true });
      assert.throws(() => salvage(directory, out), { code: "JOURNAL_UNAVAILABLE", message: /it is empty/ });
      assert.equal(existsSync(out), false);
    }));

  it("takes nothing but a file for the log", () =>
    world(async (directory, out) => {
      await record(directory, "folded");
      mkdirSync(`${file(directory)}-wal`);
      assert.equal(salvage(directory, out).runs.length, RUNS);
    }));

  /** A row of the second page that goes on in the third, and from there in `next`, named by 200 cells. */
  const CHAINS: readonly (readonly [what: string, more: number, next: number, rows: number])[] = [
    ["goes on in one page", 1, 0, 1],
    ["goes on in two pages", 2, 4, 1],
    ["goes on in the same page again", 2, 3, 0],
  ];
  for (const [what, more, next, rows] of CHAINS)
    it(`reads a row that ${what} at most once`, () =>
      world((directory) => {
        const bytes = Buffer.alloc(4 * PAGE);
        const length = 1908 + more * (PAGE - 4);
        bytes.writeUInt16BE(PAGE, 16);
        bytes[PAGE] = 0x0d;
        bytes.writeUInt16BE(200, PAGE + 3);
        for (let cell = 0; cell < 200; cell++) bytes.writeUInt16BE(1000, PAGE + 8 + 2 * cell);
        // Length in three bytes, the row id, and values of which there are none.
        const head = [0x80 | (length >> 14), 0x80 | ((length >> 7) & 0x7f), length & 0x7f, 1, 1];
        bytes.set(head, PAGE + 1000);
        bytes.writeUInt32BE(3, PAGE + 1004 + 1908);
        bytes.writeUInt32BE(next, 2 * PAGE);
        writeFileSync(directory, bytes);
        const pages = openPages(directory)!;
        assert.equal([...pages.rows()].length, rows);
        pages.close();
        return Promise.resolve();
      }));

  it("does not read a journal that a process is writing", () =>
    world(async (directory, out) => {
      await record(directory, "folded");
      const journal = await open(directory);
      await journal.claim("run1");
      assert.throws(() => salvage(directory, out), { code: "RUN_OWNED_ELSEWHERE" });
      await journal.close();
      assert.equal(salvage(directory, out).runs.length, RUNS);
    }));
});

/** Partial runs are damaged runs of the new journal, and nothing else is. */
function damageIn(out: string): number {
  const { faults } = checkJournal(out)!;
  const names = faults.map(({ detail }) => /runs?:? (run\d+(?:, run\d+)*)/.exec(detail)?.[1] ?? detail);
  return new Set(names.flatMap((name) => name.split(", "))).size;
}

type Truth = ReadonlyMap<string, readonly Entry[]>;

/** Without checksums a changed text, or a lost end, cannot be noticed; such a run is said to be open. */
async function compare(
  out: string,
  truth: Truth,
  runs: ReturnType<typeof salvage>["runs"],
  isSealed = true,
): Promise<void> {
  const journal = await open(out);
  try {
    for (const { run, state, readable, isOpen } of runs) {
      const recorded = truth.get(run)!;
      const entries = state === "lost" ? [] : await journal.read(run, 0, readable);
      assert.equal(entries.length, readable, run);
      if (isSealed) assert.deepEqual(entries, recorded.slice(0, readable), run);
      if (state === "whole") assert.ok(readable === recorded.length || (!isSealed && isOpen), run);
    }
  } finally {
    await journal.close();
  }
}

/** Each kind is recorded once. */
const recorded = new Map<Kind, Promise<{ readonly place: string; readonly truth: Truth }>>();
const home = mkdtempSync(join(tmpdir(), "lockstep-recorded-"));
after(() => rmSync(home, { recursive: true }));

async function record(directory: string, kind: Kind): Promise<Truth> {
  const place = join(home, kind);
  const known = recorded.get(kind) ?? recordNew(place, kind).then((truth) => ({ place, truth }));
  recorded.set(kind, known);
  const { truth } = await known;
  cpSync(place, directory, { recursive: true });
  return truth;
}

async function recordNew(directory: string, kind: Kind): Promise<Truth> {
  const truth = new Map<string, readonly Entry[]>();
  const journal = await open(directory);
  for (let run = 1; run <= RUNS; run++) {
    const name = ["zero", "one", "two"][run % 3]!;
    const flow = { ir: 1, text: `flow ${name} `.repeat(50) } as unknown as Flow;
    const about = { id: `run${run}`, agent: "agent", at: 1_000 + run, digest: `d${name}`, flow };
    const entries = Array.from({ length: 12 }, (_, index) => entry(run, index + 1, `d${name}`));
    truth.set(about.id, entries);
    await (await journal.create(about, entries)).release();
  }
  const copy = `${directory}-copy`;
  if (kind === "logged") cpSync(directory, copy, { recursive: true });
  await journal.close();
  if (kind === "logged") {
    rmSync(directory, { recursive: true });
    cpSync(copy, directory, { recursive: true });
    rmSync(join(directory, "owners"), { recursive: true });
  }
  if (kind === "old") {
    const db = new DatabaseSync(file(directory));
    db.exec(`ALTER TABLE event DROP COLUMN sum; ALTER TABLE flow DROP COLUMN sum;
      ALTER TABLE run DROP COLUMN sum; ALTER TABLE run DROP COLUMN events; PRAGMA user_version = 1`);
    db.close();
  }
  return truth;
}

function entry(run: number, seq: number, digest: string): Entry {
  const started = { type: "run.started", run: `run${run}`, agent: "agent", flow: digest };
  const note = run === 5 && seq === 5 ? "x".repeat(LARGEST_ROW) : `${run} ${seq} `.repeat(seq * 16);
  const event = seq === 1 ? started : { type: "step.waited", step: "s", visit: seq, ms: 5, note };
  return { seq, at: 1_000 + seq, event } as unknown as Entry;
}

function open(directory: string): Promise<Journal> {
  return openSqliteJournal({ directory, now: () => 1_000, ownerId: "writer", pid: 1 });
}

function file(directory: string): string {
  return join(directory, "runs.db");
}

function size(directory: string): number {
  return readFileSync(file(directory)).length;
}

function fill(directory: string, from: number, length: number, value: number): void {
  const bytes = readFileSync(file(directory));
  writeFileSync(file(directory), bytes.fill(value, from, from + length));
}

/** The root page of a table or an index; in a log it is left as it is. */
function fillPage(directory: string, name: string, value: number): void {
  const copy = `${directory}-look`;
  cpSync(directory, copy, { recursive: true });
  const db = new DatabaseSync(file(copy));
  const { rootpage } = db.prepare("SELECT rootpage FROM sqlite_schema WHERE name = ?").get(name) as {
    readonly rootpage: number;
  };
  db.close();
  if (rootpage * PAGE <= size(directory)) fill(directory, (rootpage - 1) * PAGE, PAGE, value);
}

function flip(directory: string, text: string): void {
  const bytes = readFileSync(file(directory));
  const place = bytes.indexOf(text);
  if (place < 0) return;
  bytes[place]! ^= 1;
  writeFileSync(file(directory), bytes);
}

function contents(directory: string): unknown {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => [one.name, readFileSync(join(one.parentPath, one.name)).toString("base64")]);
}

function least(value: Harm["whole"], kind: Kind): number {
  return typeof value === "number" ? value : value[kind];
}

async function world(body: (directory: string, out: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "lockstep-salvage-"));
  try {
    await body(join(root, "state"), join(root, "out"));
  } finally {
    await rm(root, { recursive: true });
  }
}
