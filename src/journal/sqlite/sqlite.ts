/** The journal of a state directory: one SQLite file for all runs, safe against kill -9, power loss and full disks. */
import type { DatabaseSync } from "node:sqlite";
import type { Journal, RunHandle } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flows } from "../../flow/flow.ts";
import { createArtifacts } from "./artifacts.ts";
import { entrySum, flowSum, runSum } from "./checksum.ts";
import { openDatabase } from "./database.ts";
import {
  closed,
  entryMissing,
  type Holder,
  outOfOrder,
  readOnly,
  runDamaged,
  runExists,
  runHeld,
  runUnknown,
  unavailable,
  writerStale,
} from "../errors.ts";
import { createGroupCommit } from "./group-commit.ts";
import { createOwners } from "./owners.ts";
import { createReading, isWholeRun } from "./reading.ts";
import { createRemoval, type Removal } from "./removal.ts";
import { prepareStatements, type BeforeRun, type RunRecord } from "./statements.ts";
import { apart, hostOf } from "./whereabouts.ts";

export type SqliteJournalOptions = {
  /** Holds `runs.db`, the lock files, and the entries that are too large for a row. Must be on a local disk: network file systems do not lock reliably. */
  readonly directory: string;
  readonly now: () => number;
  /** Names the lock file; new for every journal that is opened. */
  readonly ownerId: string;
  /** Shown to a process that finds a run taken. */
  readonly pid: number;
  /** The journal is only read; whatever would write to it is rejected with this error. It must exist. */
  readonly refuseWrites?: () => Error;
};

/**
 * Makes directory and database where there are none. Nothing is locked before the first `create` or `claim`, so that
 * looking never stands in the way of driving.
 *
 *     const journal = await openSqliteJournal({ directory, now: Date.now, ownerId: randomUUID(), pid: process.pid });
 */
export async function openSqliteJournal(options: SqliteJournalOptions): Promise<Journal> {
  const { directory, now, ownerId, pid, refuseWrites } = options;
  const { file, db, writable, isOld, requireSame } = openDatabase(
    directory,
    refuseWrites === undefined ? "write" : "foreign",
  );
  const sql = prepareStatements(db, isOld);
  const owners = createOwners(directory, ownerId);
  const artifacts = createArtifacts(directory, ownerId);
  const { findRun, look, ...reading } = createReading({ file, db, sql, artifacts, owners });
  let logged = 0;
  let commitsLogged = 0;
  let commitsOfOurs = 0;
  /** Something was removed, so that the file can shrink. */
  let hasRoom = false;
  const commits = createGroupCommit(
    db,
    requireSame,
    (cause) => unavailable(file, cause),
    () => {
      commitsOfOurs += 1;
      commitsLogged += 1;
      if (commitsLogged < LOG_COMMITS && logged < LOG_BYTES) return;
      commitsLogged = 0;
      logged = 0;
      setImmediate(foldLog, db);
    },
  );

  /** All or nothing of what `work` writes, and durable, when it resolves. */
  const write = <T>(work: () => T): Promise<T> => {
    const refusal = whyNotWritten();
    return refusal === null ? commits.offer(work) : Promise.reject(refusal);
  };
  const whyNotWritten = (): Error | null => {
    if (!db.isOpen) return closed(file);
    return writable ? null : (refuseWrites?.() ?? readOnly(file));
  };
  const requireWritable = () => {
    const refusal = whyNotWritten();
    if (refusal !== null) throw refusal;
  };

  /** To be called inside a write transaction, after whatever may refuse it. */
  const keep = (more: Flows) => {
    for (const [digest, flow] of Object.entries(more)) {
      const json = JSON.stringify(flow);
      sql.addFlow.run(digest, json, flowSum(digest, json));
    }
  };
  const unknownOf = (more: Flows): Flows =>
    Object.fromEntries(Object.entries(more).filter(([digest]) => sql.hasFlow.get(digest) === undefined));
  const toRow = (entry: Entry): string => artifacts.keep(JSON.stringify(entry));

  const holderOf = (run: RunRecord): Holder =>
    run.owner === ownerId
      ? "this process"
      : { pid: run.owner_pid, since: run.owned_since, ...elsewhere(run.owner ?? "") };
  const elsewhere = (owner: string): { readonly elsewhere?: string } => {
    const between = apart(owner, ownerId);
    if (between === null) return {};
    const host = JSON.stringify(hostOf(owner));
    return {
      elsewhere:
        between === "machine"
          ? `on another machine or in another container (host name ${host})`
          : "in another container on this machine",
    };
  };

  const handleOf = (id: string, key: number, epoch: number): RunHandle => {
    const refusal = (entry: Entry) => {
      const run = findRun(id);
      if (run === undefined) return runUnknown(id);
      if (run.epoch !== epoch) return writerStale(id, holderOf(run));
      return run.owner === null ? writerStale(id, null) : outOfOrder(id, entry.seq);
    };

    return {
      run: id,
      epoch,
      append(entries, adopted) {
        return write(() => {
          requireOrder(id, entries, entries[0]?.seq ?? 0);
          const rows = entries.map(toRow);
          for (let place = 0; place < entries.length; place++) {
            const entry = entries[place]!;
            const row = rows[place]!;
            // Refused, if at all, at the first entry, before anything is written: the others follow it without a gap.
            const sum = entrySum(key, entry.seq, row);
            const { changes } = sql.append.run(key, epoch, ownerId, entry.seq, row, id, sum);
            if (changes === 0) throw refusal(entry);
            logged += row.length + ENTRY_BYTES;
          }
          if (adopted !== undefined) keep(unknownOf(adopted));
        });
      },
      async release() {
        // Closing the journal has released everything already.
        if (db.isOpen) await write(() => void sql.release.run(key, epoch, ownerId, id));
      },
    };
  };

  let removal: Removal | null = null;
  /** Made when something is removed: most journals are only read and written. */
  const removing = () =>
    (removal ??= createRemoval({ db, write, find: removable, artifacts, foldLog: () => foldLog(db) }));
  const removable = (id: string): number | Error => {
    const run = findRun(id);
    if (run === undefined) return runUnknown(id);
    if (run.owner !== null && owners.isAlive(run.owner)) return runHeld(id, holderOf(run));
    return run.key;
  };
  const tidy = async () => {
    hasRoom = false;
    await removing().tidy();
  };

  return {
    ...reading,

    create({ id, agent, at, digest, flow }, entries = [], adopted = {}) {
      return write(() => {
        requireOrder(id, entries, 1);
        const [isTaken, key, isKept] = sql.beforeRun.get(id, digest) as unknown as BeforeRun;
        if (isTaken) throw runExists(id);
        const unknown = unknownOf(isKept ? adopted : { ...adopted, [digest]: flow });
        owners.enter();
        const rows = entries.map(toRow);
        keep(unknown);
        sql.addRun.run(key, id, agent, digest, at, ownerId, pid, now(), runSum(key, id, agent, digest, at));
        for (const [index, row] of rows.entries())
          sql.append.run(key, 1, ownerId, index + 1, row, id, entrySum(key, index + 1, row));
        return handleOf(id, key, 1);
      });
    },

    claim(id, { takeOver = false } = {}) {
      return write(() => {
        const run = findRun(id);
        if (run === undefined) throw runUnknown(id);
        if (!isWholeRun(run)) throw runDamaged(file, id);
        const { last } = sql.last.get(run.key) as { readonly last: number };
        if (run.events !== null && last < run.events) throw entryMissing(file, id, last + 1);
        if (run.owner !== null) {
          if (!owners.isAlive(run.owner)) owners.bury(run.owner);
          else if (!takeOver) throw runHeld(id, holderOf(run));
        }
        owners.enter();
        const epoch = run.epoch + 1;
        sql.claim.run(run.key, epoch, ownerId, pid, now());
        const handle = handleOf(id, run.key, epoch);
        return run.owner === null ? handle : { ...handle, abandoned: true };
      });
    },

    /** SQLite's number counts what others have committed; ours, what we have. */
    async version() {
      return look(
        () => (sql.version.get() as { readonly data_version: number }).data_version + commitsOfOurs,
      );
    },

    async remove(id) {
      requireWritable();
      await removing().remove(id);
      hasRoom = true;
    },

    async tidy() {
      requireWritable();
      await tidy();
    },

    async close() {
      if (!db.isOpen) return;
      commits.flush();
      if (hasRoom) await tidy();
      if (!db.isOpen) return;
      commits.flush();
      try {
        if (db.isTransaction) attempt(() => db.exec("ROLLBACK"));
        // Our lock goes first: that alone frees the runs. Having it written down as well is a courtesy to readers,
        // and a disk that refuses it takes nothing away.
        if (!owners.leave()) return;
        attempt(() => sql.releaseAll.run(ownerId));
        foldLog(db);
      } finally {
        db.close();
      }
    },
  };
}

/**
 * The write-ahead log is folded back into the file after so many commits, or when about so much was written. After few,
 * because writing over a log that has reached its size costs about half of writing a log that grows, and most runs are
 * over before a long log is full; but not by size alone, because a commit that many runs share is large, and folding
 * costs as much as some of them. Not by SQLite inside the commit, but after those who wait for the commit got their answer:
 * while models are thinking there is time.
 */
const LOG_COMMITS = 32;
const LOG_BYTES = 4 * 1024 * 1024;
/** What each entry adds to the log beside its body, roughly. */
const ENTRY_BYTES = 60;

/** A log that cannot be folded now only grows; if the disk is full, the next commit says so. */
function foldLog(db: DatabaseSync): void {
  if (db.isOpen && !db.isTransaction) attempt(() => db.exec("PRAGMA wal_checkpoint(PASSIVE)"));
}

/** For what may fail without consequence. */
function attempt(work: () => unknown): void {
  try {
    work();
  } catch {
    return;
  }
}

function requireOrder(id: string, entries: readonly Entry[], first: number): void {
  for (let place = 0; place < entries.length; place++)
    if (entries[place]!.seq !== first + place) throw outOfOrder(id, entries[place]!.seq);
}
