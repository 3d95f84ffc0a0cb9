/** What can be read of a damaged journal, written into a new state folder. The damaged one is only read. */
import { existsSync, readdirSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { RunnerError } from "../../engine/ports.ts";
import { isObject, own, parseJson } from "../../flow/json.ts";
import { entryFault, isRunId, isTime } from "../../flow/recorded.ts";
import { createArtifacts } from "./artifacts.ts";
import { entrySum, flowSum, runSum } from "./checksum.ts";
import { openDatabase } from "./database.ts";
import { unavailable } from "../errors.ts";
import { fileInside, requirePlainState } from "./inside.ts";
import { createOwners } from "./owners.ts";
import { openPages, type PageRow, type Value } from "./pages.ts";
import { makeFolder } from "../make-folder.ts";

export type Salvaged = {
  readonly runs: readonly SalvagedRun[];
  /** Entries that belong to no run that can be named. */
  readonly strays: number;
};

export type SalvagedRun = {
  readonly run: string;
  readonly agent: string;
  /** `partial`: it can be read up to the first entry that is lost, and not resumed. `lost`: nothing of it can be read. */
  readonly state: "whole" | "partial" | "lost";
  /** How many entries can be read, in order, and how many there were at least. */
  readonly readable: number;
  readonly entries: number;
  /** Its last entry is not its end: entries that followed may be lost without a trace. */
  readonly isOpen: boolean;
  /** null: it is whole. */
  readonly why: string | null;
};

/** `out` must not exist, or be empty. Throws JOURNAL_UNAVAILABLE where nothing can be read, and RUN_OWNED_ELSEWHERE while a run is being driven. */
export function salvage(directory: string, out: string): Salvaged {
  requirePlainState(directory);
  const file = fileInside(directory, "runs.db");
  requireNobody(directory);
  requireEmpty(out);
  const pages = existsSync(file) ? openPages(file) : null;
  if (pages === null)
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `${file} holds nothing that could be rescued: ${existsSync(file) ? "it is empty" : "there is no such file"}.`,
    );
  try {
    makeFolder(out, { mode: 0o700 });
    const { db } = openDatabase(out);
    try {
      db.exec("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
      const runs = collect(pages.rows(), db, directory, out);
      const salvaged = settle(runs, db);
      db.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
      return salvaged;
    } finally {
      db.close();
    }
  } catch (cause) {
    throw unavailable(out, cause);
  } finally {
    pages.close();
  }
}

function requireNobody(directory: string): void {
  const held = createOwners(directory, "salvage")
    .all()
    .some(({ isHeld }) => isHeld);
  if (!held) return;
  throw new RunnerError(
    "RUN_OWNED_ELSEWHERE",
    `A process is driving a run of ${directory}. Stop it, so that the file does not change while it is read, and try again.`,
  );
}

function requireEmpty(out: string): void {
  const found = statSync(out, { throwIfNoEntry: false });
  if (found === undefined || (found.isDirectory() && readdirSync(out).length === 0)) return;
  throw new RunnerError(
    "NOT_WRITABLE",
    `${out} exists and ${found.isDirectory() ? "is not empty" : "is not a folder"}: what is rescued is written into a new folder. Choose another with --out DIR.`,
  );
}

type FoundRun = {
  readonly key: number;
  readonly id: string;
  readonly agent: string;
  readonly digest: string;
  readonly createdAt: number;
  readonly epoch: number;
  /** How many entries it had when it was last released. */
  readonly events: number;
};

/** Writes entries and flows as they are met: a journal can be larger than memory. Gives the rows of runs. */
function collect(
  rows: Iterable<PageRow>,
  db: DatabaseSync,
  directory: string,
  out: string,
): ReadonlyMap<number, FoundRun> {
  const from = createArtifacts(directory, "salvage");
  const to = createArtifacts(out, "salvage");
  const addFlow = db.prepare("INSERT OR IGNORE INTO flow (digest, json, sum) VALUES (?, ?, ?)");
  const addEvent = db.prepare("INSERT OR IGNORE INTO event (run, seq, body, sum) VALUES (?, ?, ?, ?)");
  const runs = new Map<number, FoundRun>();
  for (const row of rows) {
    const run = runIn(row);
    if (run !== null && run.epoch >= (runs.get(run.key)?.epoch ?? 0)) runs.set(run.key, run);
    const flow = flowIn(row);
    if (flow !== null) addFlow.run(...flow);
    const event = eventIn(row);
    if (event === null) continue;
    const [key, seq, body, sum] = event;
    if (isReadable(body, from, to)) addEvent.run(key, seq, body, sum);
  }
  return runs;
}

/** By their shape: rows of `run` begin with the key, which SQLite keeps elsewhere. Version 1 had no `sum` and `events`. */
function runIn({ rowid: key, values }: PageRow): FoundRun | null {
  const [none, id, agent, digest, createdAt, epoch, , , , sum = null, events = null] = values;
  if ((values.length !== 9 && values.length !== 11) || none !== null || !isRunId(id)) return null;
  if (typeof agent !== "string" || typeof digest !== "string" || !isTime(createdAt)) return null;
  if (!isCount(epoch) || (sum !== null && sum !== runSum(key, id, agent, digest, createdAt))) return null;
  return { key, id, agent, digest, createdAt, epoch, events: isCount(events) ? events : 0 };
}

function flowIn({ values }: PageRow): readonly [string, string, number | null] | null {
  const [digest, json, sum = null] = values;
  if ((values.length !== 2 && values.length !== 3) || typeof digest !== "string") return null;
  if (typeof json !== "string" || !isNumberOrNull(sum)) return null;
  const fits = sum === null ? isObject(parseJson(json)) : sum === flowSum(digest, json);
  return fits ? [digest, json, sum] : null;
}

function eventIn({ values }: PageRow): readonly [number, number, string, number | null] | null {
  const [key, seq, body, sum = null] = values;
  if ((values.length !== 3 && values.length !== 4) || !isCount(key) || !isCount(seq)) return null;
  if (typeof body !== "string" || !isNumberOrNull(sum)) return null;
  return sum === null || sum === entrySum(key, seq, body) ? [key, seq, body, sum] : null;
}

type Artifacts = ReturnType<typeof createArtifacts>;

/** Whether it is an entry. One that is kept in a file is copied with it. */
function isReadable(row: string, from: Artifacts, to: Artifacts): boolean {
  try {
    const body = from.restore(row, "", 0);
    if (entryFault(parseJson(body) ?? null) !== null) return false;
    return from.named(row) === null || to.keep(body) === row;
  } catch (error) {
    if (error instanceof RunnerError) return false;
    throw error;
  }
}

/** Brings runs and entries together. What is left in the database is readable, up to the first gap in each run. */
function settle(found: ReadonlyMap<number, FoundRun>, db: DatabaseSync): Salvaged {
  const sql = prepareAll(db);
  const runs = new Map(found);
  for (const { run: key } of sql.homeless(found.keys())) {
    const run = runFrom(key, sql.first(key));
    if (run !== null && ![...runs.values()].some(({ id }) => id === run.id)) runs.set(key, run);
  }
  const salvaged = [...runs.values()]
    .toSorted((one, other) => one.key - other.key)
    .map((run) => settleRun(run, sql));
  return { runs: salvaged, strays: sql.removeStrays() };
}

function settleRun(run: FoundRun, sql: ReturnType<typeof prepareAll>): SalvagedRun {
  const { key, id, agent } = run;
  const { readable, highest } = sql.extent(key);
  const entries = Math.max(run.events, highest);
  const hasFlow = sql.hasFlow(run.digest);
  const about = { run: id, agent, readable, entries };
  if (readable === 0) {
    sql.removeEntries(key);
    return {
      ...about,
      state: "lost",
      isOpen: false,
      why: entries === 0 ? "it has no entries" : "its first entry is lost",
    };
  }
  const isOpen = !sql.isEnded(key, readable);
  sql.addRun(run, entries);
  if (readable === entries && hasFlow) return { ...about, state: "whole", isOpen, why: null };
  const why = readable === entries ? "its flow is lost" : `entry ${readable + 1} is lost`;
  return { ...about, state: "partial", isOpen, why };
}

/** A run whose row is lost, as its first entry names it. */
function runFrom(key: number, first: string | null): FoundRun | null {
  const entry = first === null ? null : (parseJson(first) ?? null);
  const event = isObject(entry) ? own(entry, "event") : undefined;
  if (!isObject(entry) || !isObject(event) || own(event, "type") !== "run.started") return null;
  const [id, agent, digest] = [own(event, "run"), own(event, "agent"), own(event, "flow")];
  const createdAt = own(entry, "at");
  if (!isRunId(id) || typeof agent !== "string" || /\p{Cc}/u.test(agent)) return null;
  if (typeof digest !== "string" || !isTime(createdAt)) return null;
  return { key, id, agent, digest, createdAt, epoch: 1, events: 0 };
}

function prepareAll(db: DatabaseSync) {
  const keys = db.prepare("SELECT DISTINCT run FROM event ORDER BY run");
  const first = db.prepare("SELECT body FROM event WHERE run = ? AND seq = 1");
  const seqs = db.prepare("SELECT seq FROM event WHERE run = ? ORDER BY seq");
  const last = db.prepare("SELECT body FROM event WHERE run = ? AND seq = ?");
  const flow = db.prepare("SELECT 1 FROM flow WHERE digest = ?");
  const addRun = db.prepare(
    `INSERT INTO run (key, id, agent, digest, created_at, epoch, owner, owner_pid, owned_since, sum, events)
     VALUES (?, ?, ?, ?, ?, ?, NULL, 0, 0, ?, ?)`,
  );
  const removeEntries = db.prepare("DELETE FROM event WHERE run = ?");
  const removeStrays = db.prepare("DELETE FROM event WHERE run NOT IN (SELECT key FROM run)");
  return {
    /** Keys that entries name and no row of a run. */
    homeless: (known: Iterable<number>) => {
      const all = new Set(known);
      return (keys.all() as unknown as readonly { readonly run: number }[]).filter(
        ({ run }) => !all.has(run),
      );
    },
    first: (key: number) => (first.get(key) as { readonly body: string } | undefined)?.body ?? null,
    extent(key: number) {
      let [readable, highest] = [0, 0];
      for (const { seq } of seqs.iterate(key) as Iterable<{ readonly seq: number }>) {
        if (seq === readable + 1) readable = seq;
        highest = seq;
      }
      return { readable, highest };
    },
    isEnded(key: number, seq: number) {
      const { body } = last.get(key, seq) as { readonly body: string };
      const entry = parseJson(body) ?? null;
      const event = isObject(entry) ? own(entry, "event") : undefined;
      return isObject(event) && own(event, "type") === "run.ended";
    },
    hasFlow: (digest: string) => flow.get(digest) !== undefined,
    addRun({ key, id, agent, digest, createdAt, epoch }: FoundRun, events: number) {
      const sum = runSum(key, id, agent, digest, createdAt);
      addRun.run(key, id, agent, digest, createdAt, epoch, sum, events);
    },
    removeEntries: (key: number) => void removeEntries.run(key),
    removeStrays: () => Number(removeStrays.run().changes),
  };
}

function isCount(value: Value | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isNumberOrNull(value: Value): value is number | null {
  return value === null || typeof value === "number";
}
