/**
 * Removing runs, and giving back the room they took, in transactions that are each over soon: other processes write in
 * between. A run too long for one transaction is renamed in the first one, so that it is gone at once and for everybody;
 * its entries follow, and if this process dies, the next `tidy` goes on with them.
 */
import type { DatabaseSync } from "node:sqlite";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import { SQL, type Artifacts } from "./artifacts.ts";

/** What one transaction removes at most. */
export const MOST_ROWS = 2_000;
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_FILES = 100;
const MOST_FLOWS = 100;
/** What one transaction gives back to the disk at most. */
const MOST_PAGES = 500;
/** After so many of them the log is folded back into the file. */
const FOLDED_SLICES = 8;
/** How many rows are looked through before the event loop has its turn. */
const LOOKED_ROWS = 20_000;
/** A log that somebody reads cannot be cut off: waiting for that would keep others from writing. */
const TRUNCATE_MS = 20;

/** The name of a run that is being removed. Not a valid id, so that versions which do not know it list it as damaged. */
const REMOVED = "-removed-";
/** SQL over `run`: whether it is there for anybody but this page. */
export const IS_KEPT = `run.id NOT GLOB '${REMOVED}*'`;

export function isRemoved(name: string): boolean {
  return name.startsWith(REMOVED);
}

export type Removal = {
  readonly remove: (id: string) => Promise<void>;
  /** Leaves to the next one what cannot be done now. */
  readonly tidy: () => Promise<void>;
};

export type Removing = {
  readonly db: DatabaseSync;
  readonly write: <T>(work: () => T) => Promise<T>;
  /** The key of the run, or why it cannot be removed. Called inside a write transaction. */
  readonly find: (id: string) => number | Error;
  readonly artifacts: Artifacts;
  /** Folds the log back into the file. */
  readonly foldLog: () => void;
};

type Job = {
  readonly id: string;
  /** null: nothing is done yet. */
  key: number | null;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

export function createRemoval({ db, write, find, artifacts, foldLog }: Removing): Removal {
  const sql = prepareAll(db);
  const jobs: Job[] = [];
  let isDraining = false;

  /** Inside a write transaction. Says whether none is left. */
  const removeEntries = (key: number, most: { rows: number; bytes: number }): boolean => {
    let last = 0;
    for (const [seq, bytes] of sql.entries.all(key, most.rows) as unknown as readonly [number, number][]) {
      last = seq;
      most.rows -= 1;
      most.bytes -= bytes;
      if (most.bytes <= 0) break;
    }
    sql.removeEntries.run(key, last);
    return sql.entries.get(key, 1) === undefined;
  };

  /** Inside a write transaction: as many jobs as it may take, in order. Gives those that are done, with what refuses them. */
  const removeSome = (): readonly (Error | null)[] => {
    const most = { rows: MOST_ROWS, bytes: MOST_BYTES };
    const done: (Error | null)[] = [];
    for (const job of jobs) {
      const found = job.key ?? find(job.id);
      if (typeof found !== "number") {
        done.push(found);
        continue;
      }
      if (removeEntries(found, most)) {
        sql.removeRun.run(found);
        done.push(null);
      } else {
        if (job.key === null) sql.rename.run(found);
        job.key = found;
      }
      // A run without entries counts too.
      most.rows -= 1;
      if (most.rows <= 0 || most.bytes <= 0) break;
    }
    return done;
  };

  const drain = async () => {
    isDraining = true;
    while (jobs.length > 0) {
      const from = performance.now();
      try {
        const done = await write(removeSome);
        for (const [place, job] of jobs.splice(0, done.length).entries()) {
          const refusal = done[place]!;
          if (refusal === null) job.resolve();
          else job.reject(refusal);
        }
      } catch (error) {
        for (const job of jobs.splice(0)) job.reject(error);
      }
      if (jobs.length > 0) await leaveRoom(from);
    }
    isDraining = false;
  };

  const offer = (id: string, key: number | null): Promise<void> =>
    new Promise((resolve, reject) => {
      jobs.push({ id, key, resolve, reject });
      if (!isDraining) void drain();
    });

  /** The newest entry: what is written later has a higher place as long as this one is there. */
  const newest = (): readonly [place: number, run: number, seq: number, id: string] | null =>
    (sql.newest.get() as unknown as readonly [number, number, number, string] | undefined) ?? null;

  /**
   * Of `strays`, removes what no entry names, some at a time. `named` gives what entries within two places name. All of
   * it is looked through without keeping anybody from writing; only what was written since is looked at again when the
   * lock is held.
   */
  const removeUnnamed = async (
    strays: readonly string[],
    named: (after: number, until: number) => readonly string[],
    most: number,
    remove: (some: readonly string[]) => void,
  ) => {
    if (strays.length === 0) return;
    const mark = newest();
    const upTo = mark?.[0] ?? 0;
    const left = new Set(strays);
    for (let place = 0; place < upTo && left.size > 0; place += LOOKED_ROWS) {
      for (const name of named(place, Math.min(upTo, place + LOOKED_ROWS))) left.delete(name);
      await turn();
    }
    const unnamed = [...left];
    for (let place = 0; place < unnamed.length; place += most) {
      const from = performance.now();
      await write(() => {
        if (mark !== null && sql.isThere.get(...mark) === undefined) return;
        const late = new Set(named(upTo, Number.MAX_SAFE_INTEGER));
        remove(unnamed.slice(place, place + most).filter((name) => !late.has(name)));
      });
      await leaveRoom(from);
    }
  };

  const texts = (rows: unknown) => (rows as readonly (readonly [string])[]).flat();

  const removeFlows = async () =>
    await removeUnnamed(
      texts(sql.unusedFlows.all()),
      (after, until) => texts(sql.adopted.all(after, until)),
      MOST_FLOWS,
      (some) => void sql.removeFlows.run(JSON.stringify(some)),
    );

  const removeFiles = async () =>
    await removeUnnamed(
      artifacts.names(),
      (after, until) => texts(sql.references.all(after, until)),
      MOST_FILES,
      artifacts.remove,
    );

  /** The file becomes as small as what is in it. */
  const shrink = async () => {
    let before = Infinity;
    for (let slice = 1; ; slice++) {
      const { freelist_count: free } = sql.free.get() as { readonly freelist_count: number };
      // One that was made without room to shrink stays as it is.
      if (free === 0 || free >= before) break;
      before = free;
      const from = performance.now();
      db.exec(`PRAGMA incremental_vacuum(${MOST_PAGES})`);
      await leaveRoom(from);
      if (slice % FOLDED_SLICES === 0) foldLog();
    }
    const { timeout } = sql.patience.get() as { readonly timeout: number };
    db.exec(
      `PRAGMA busy_timeout = ${TRUNCATE_MS}; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = ${timeout}`,
    );
  };

  return {
    remove: (id) => offer(id, null),
    async tidy() {
      try {
        const left = sql.removed.all() as unknown as readonly (readonly [number, string])[];
        await Promise.all(left.map(([key, name]) => offer(name, key)));
        await removeFlows();
        await removeFiles();
        await shrink();
      } catch {
        return;
      }
    },
  };
}

/**
 * Others that wait for the lock look for it now and then: it must be free for a good part of the time, or they might
 * never find it so. What else this process does has its turn as well: a timer that is set by a timer may be called at once.
 */
async function leaveRoom(from: number): Promise<void> {
  await delay(Math.min(100, 1 + (performance.now() - from) / 2));
  await turn();
}

function prepareAll(db: DatabaseSync) {
  // An entry that is damaged must not keep the others from being read.
  const adoption =
    "instr(body, '\"run.adopted\"') AND iif(json_valid(body), body ->> '$.event.type', NULL) = 'run.adopted'";
  const sql = {
    entries: db.prepare("SELECT seq, octet_length(body) FROM event WHERE run = ? ORDER BY seq LIMIT ?"),
    removeEntries: db.prepare("DELETE FROM event WHERE run = ? AND seq <= ?"),
    removeRun: db.prepare("DELETE FROM run WHERE key = ?"),
    rename: db.prepare(`UPDATE run SET id = '${REMOVED}' || key, owner = NULL WHERE key = ?`),
    removed: db.prepare(`SELECT key, id FROM run WHERE id GLOB '${REMOVED}*'`),
    newest: db.prepare(
      `SELECT event.rowid, event.run, event.seq, run.id FROM event JOIN run ON run.key = event.run
       ORDER BY event.rowid DESC LIMIT 1`,
    ),
    isThere: db.prepare(
      `SELECT 1 FROM event JOIN run ON run.key = event.run
       WHERE event.rowid = ? AND event.run = ? AND event.seq = ? AND run.id = ?`,
    ),
    unusedFlows: db.prepare("SELECT digest FROM flow WHERE digest NOT IN (SELECT digest FROM run)"),
    adopted: db.prepare(
      `SELECT body ->> '$.event.flow' FROM event WHERE rowid > ? AND rowid <= ? AND ${adoption}`,
    ),
    removeFlows: db.prepare(
      `DELETE FROM flow
       WHERE digest IN (SELECT value FROM json_each(?)) AND digest NOT IN (SELECT digest FROM run)`,
    ),
    references: db.prepare(
      `SELECT ${SQL.digest} FROM event WHERE rowid > ? AND rowid <= ? AND ${SQL.isReference}`,
    ),
    free: db.prepare("PRAGMA freelist_count"),
    patience: db.prepare("PRAGMA busy_timeout"),
  };
  for (const statement of [
    sql.entries,
    sql.removed,
    sql.newest,
    sql.unusedFlows,
    sql.adopted,
    sql.references,
  ])
    statement.setReturnArrays(true);
  return sql;
}
