/** The journal of a state directory: one SQLite file for all runs, safe against kill -9, power loss and full disks. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { Journal, RunHandle, RunRow } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow, Flows } from "../../flow/flow.ts";
import { entryFault, isRunId, isTime } from "../../flow/recorded.ts";
import { createArtifacts, SQL } from "./artifacts.ts";
import { entrySum, flowSum, runSum } from "./checksum.ts";
import { openDatabase } from "./database.ts";
import {
  closed,
  journalErrorCode,
  entryDamaged,
  entryMissing,
  flowDamaged,
  type Holder,
  outOfOrder,
  pageDamaged,
  readOnly,
  runDamaged,
  runExists,
  runHeld,
  runUnknown,
  SQLITE,
  unavailable,
  writerStale,
} from "../errors.ts";
import { createGroupCommit } from "./group-commit.ts";
import { createOwners } from "./owners.ts";
import { apart, hostOf } from "./whereabouts.ts";
import { createRemoval, IS_KEPT, isRemoved, type Removal } from "./removal.ts";

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
  const sql = prepareAll(db, isOld);
  const owners = createOwners(directory, ownerId);
  const artifacts = createArtifacts(directory, ownerId);
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
  const look = <T>(work: () => T): T => {
    if (!db.isOpen) throw closed(file);
    try {
      return work();
    } catch (cause) {
      throw unavailable(file, cause);
    }
  };
  /** A digest stands for one flow for ever, and what is derived from a flow is kept by its identity. */
  const flows = new Map<string, Flow>();
  /** To be called inside a write transaction, after whatever may refuse it. */
  const keep = (more: Flows) => {
    for (const [digest, flow] of Object.entries(more)) {
      const json = JSON.stringify(flow);
      sql.addFlow.run(digest, json, flowSum(digest, json));
    }
  };
  const unknownOf = (more: Flows): Flows =>
    Object.fromEntries(Object.entries(more).filter(([digest]) => sql.hasFlow.get(digest) === undefined));
  const findRun = (id: string): RunRecord | undefined =>
    isRemoved(id) ? undefined : ((sql.findRun.get(id) as RunRecord | undefined) ?? findDamaged(id));
  /** By the name that stands for it. */
  const findDamaged = (id: string): RunRecord | undefined => {
    const key = keyOf(id);
    const run = key === null ? undefined : (sql.findKey.get(key) as RunRecord | undefined);
    return run === undefined || isRunId(run.name) || isRemoved(run.name) ? undefined : run;
  };

  const toRow = (entry: Entry): string => artifacts.keep(JSON.stringify(entry));
  const toEntry = (key: number, row: unknown, sum: unknown, run: string, seq: number): Entry => {
    if (typeof row !== "string" || (sum !== null && sum !== entrySum(key, seq, row)))
      throw entryDamaged(file, run, seq, "does not fit its checksum");
    // All entries are objects: what begins otherwise is kept elsewhere, or damaged.
    const body = row.startsWith("{") ? row : artifacts.restore(row, run, seq);
    let entry: unknown;
    try {
      entry = JSON.parse(body);
    } catch (cause) {
      throw entryDamaged(file, run, seq, "is not JSON", cause);
    }
    const fault = entryFault(entry);
    if (fault !== null) throw entryDamaged(file, run, seq, fault);
    return entry as Entry;
  };

  /** A page that SQLite cannot read ends the run there, and does not hide the entries before it. */
  const rowsOf = (id: string, afterSeq: number, limit: number): readonly EventRecord[] => {
    try {
      return sql.read.all(id, afterSeq, limit) as unknown as readonly EventRecord[];
    } catch (cause) {
      if (journalErrorCode(cause) !== SQLITE.CORRUPT) throw cause;
      let read = 0;
      try {
        for (const _ of sql.read.iterate(id, afterSeq, limit)) read += 1;
      } catch {
        throw pageDamaged(file, id, afterSeq + read + 1, cause);
      }
      throw cause;
    }
  };

  /** A page that SQLite cannot read damages the runs whose newest entries are on it, and does not hide the others. */
  const listed = (
    which: keyof typeof sql.lists,
    ...values: readonly SQLInputValue[]
  ): readonly ListRecord[] => {
    try {
      return sql.lists[which].whole.all(...values) as unknown as readonly ListRecord[];
    } catch (cause) {
      if (journalErrorCode(cause) !== SQLITE.CORRUPT) throw cause;
      return (sql.lists[which].bare.all(...values) as unknown as readonly ListRecord[]).map((row) => {
        try {
          const [whole] = sql.lists.listKey.whole.all(null, NEWEST, null, row[0]);
          return whole as unknown as ListRecord;
        } catch {
          return row;
        }
      });
    }
  };

  const parsedFlow = (digest: string, { json, sum }: FlowRecord): Flow => {
    let cause: unknown;
    try {
      if (typeof json === "string" && (sum === null || sum === flowSum(digest, json)))
        return JSON.parse(json) as Flow;
    } catch (error) {
      cause = error;
    }
    const runs = (sql.runsOfFlow.all(digest) as unknown as readonly { readonly id: string }[]).map(
      ({ id }) => id,
    );
    throw flowDamaged(file, digest, runs.filter(isRunId).slice(0, NAMED_RUNS), runs.length, cause);
  };

  /** A run that is damaged must not hide the others. */
  const lastOf = (
    key: number,
    body: string | null,
    sum: unknown,
    run: string,
    seq: number,
  ): Pick<RunRow, "last" | "damaged"> => {
    try {
      return { last: body === null ? null : toEntry(key, body, sum, run, seq) };
    } catch (cause) {
      return { last: null, damaged: unavailable(file, cause).message };
    }
  };

  /** For all rows of one look: each owner is asked for once. */
  const rowMaker = () => {
    const alive = new Map<string, boolean>();
    const isAlive = (owner: string) => {
      const known = alive.get(owner) ?? owners.isAlive(owner);
      alive.set(owner, known);
      return known;
    };
    return (record: ListRecord): RunRow => {
      const [key, name, agent, digest, createdAt, owner, sum, recorded, events, body, bodySum] = record;
      const owned = owner !== null && isAlive(owner);
      const id = isRunId(name) ? name : `${DAMAGED}${key}`;
      if (!isWhole({ key, name, agent, digest, created_at: createdAt, sum })) {
        const { message } = runDamaged(file, id);
        const { last } = lastOf(key, body, bodySum, id, events);
        const at = isTime(createdAt) ? createdAt : (last?.at ?? 0);
        return { id, agent: "-", digest, createdAt: at, events, last, owned, damaged: message };
      }
      const { last, damaged } =
        typeof recorded === "number" && recorded > events
          ? { last: null, damaged: entryMissing(file, id, events + 1).message }
          : lastOf(key, body, bodySum, id, events);
      const row = { id, agent, digest, createdAt, events, last, owned };
      return damaged === undefined ? row : Object.assign(row, { damaged });
    };
  };

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
    async create({ id, agent, at, digest, flow }, entries = [], adopted = {}) {
      return write(() => {
        requireOrder(id, entries, 1);
        if (findRun(id) !== undefined) throw runExists(id);
        const unknown = unknownOf({ ...adopted, [digest]: flow });
        owners.enter();
        const rows = entries.map(toRow);
        keep(unknown);
        const key = Number(sql.addRun.run(id, agent, digest, at, ownerId, pid, now()).lastInsertRowid);
        sql.sealRun.run(runSum(key, id, agent, digest, at), key);
        for (const [index, row] of rows.entries())
          sql.append.run(key, 1, ownerId, index + 1, row, id, entrySum(key, index + 1, row));
        return handleOf(id, key, 1);
      });
    },

    async claim(id, { takeOver = false } = {}) {
      return write(() => {
        const run = findRun(id);
        if (run === undefined) throw runUnknown(id);
        if (!isWhole(run)) throw runDamaged(file, id);
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

    async read(id, afterSeq = 0, limit = ALL) {
      return look(() => {
        if (isRemoved(id)) throw runUnknown(id);
        // Before the rows: while they are read another process may append more.
        const due = (sql.due.get(id) as { readonly events: number } | undefined)?.events ?? 0;
        const rows = rowsOf(id, afterSeq, limit);
        if (rows.length === 0) {
          const run = findRun(id);
          if (run === undefined) throw runUnknown(id);
          if (run.name !== id) throw runDamaged(file, id);
        }
        const entries: Entry[] = [];
        for (const row of rows) {
          const next = afterSeq + entries.length + 1;
          if (row[1] !== next) throw entryMissing(file, id, next);
          entries.push(toEntry(row[0], row[2], row[3], id, next));
        }
        const end = afterSeq + rows.length;
        if (rows.length !== limit && end < due) throw entryMissing(file, id, end + 1);
        return entries;
      });
    },

    async flow(digest) {
      const known = flows.get(digest);
      if (known !== undefined) return known;
      return look(() => {
        const row = sql.findFlow.get(digest) as FlowRecord | undefined;
        if (row === undefined) return null;
        const flow = parsedFlow(digest, row);
        flows.set(digest, flow);
        return flow;
      });
    },

    async list({ prefix, agent = null, before, owned, limit = ALL } = {}) {
      return look(() => {
        const newest = before === undefined ? NEWEST : findRun(before)?.key;
        if (newest === undefined) throw runUnknown(before!);
        // Whether an owner is alive is not a matter of SQL.
        const most = owned === undefined ? limit : ALL;
        const taken = owned === undefined ? null : 1;
        const rows =
          prefix === undefined
            ? listed("list", agent, newest, taken, most)
            : listed("listPrefix", agent, newest, taken, most, prefix, `${prefix}${LAST_CHARACTER}`);
        const damagedOne = prefix === undefined ? undefined : findDamaged(prefix);
        const odd = damagedOne === undefined ? [] : listed("listKey", agent, newest, taken, damagedOne.key);
        const all = [...odd, ...rows].map(rowMaker());
        if (owned === undefined) return all;
        const driven = all.filter((row) => row.owned);
        return limit === ALL ? driven : driven.slice(0, limit);
      });
    },

    async rows(ids) {
      return look(() => {
        const toRow = rowMaker();
        return ids.flatMap((id) => {
          const key = findRun(id)?.key;
          return key === undefined ? [] : listed("listKey", null, NEWEST, null, key).map(toRow);
        });
      });
    },

    async count() {
      return look(() => (sql.count.get() as { readonly runs: number }).runs);
    },

    async since(cursor, limit = ALL) {
      return look(() => {
        const newest = () => {
          const row = sql.newest.get() as unknown as readonly [number, string, number] | undefined;
          return row === undefined ? "" : cursorOf(...row);
        };
        if (cursor === undefined) return { cursor: newest(), entries: [], lost: false };
        const at = placeOf(cursor);
        if (at === null || (at.row > 0 && sql.isThere.get(at.row, at.seq, at.run) === undefined))
          return { cursor: newest(), entries: [], lost: true };
        const rows = sql.since.all(at.row, limit) as unknown as readonly NewsRecord[];
        const last = rows.at(-1);
        const entries = rows
          .filter(([, run]) => isRunId(run))
          .map(([, run, seq, body, key, sum]) => ({
            run,
            seq,
            entry: lastOf(key, body, sum, run, seq).last,
          }));
        const next = last === undefined ? cursor : cursorOf(last[0], last[1], last[2]);
        return { cursor: next, entries, lost: false };
      });
    },

    async size(id) {
      return look(() => {
        if (findRun(id) === undefined) throw runUnknown(id);
        return (sql.size.get(id) as { readonly bytes: number }).bytes;
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
 * costs as much as some of them. Not by SQLite inside the commit, but after those who wait for the commit were told:
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

type RunRecord = {
  readonly epoch: number;
  readonly owner: string | null;
  readonly owner_pid: number;
  readonly owned_since: number;
  /** How many entries it had when it was last released; null: it never was. */
  readonly events: number | null;
} & RunFacts;

/** What stays the same in a row of `run`, as it is recorded. */
type RunFacts = {
  readonly key: number;
  /** Its id. */
  readonly name: string;
  readonly agent: string;
  readonly digest: string;
  readonly created_at: number;
  readonly sum: unknown;
};

/** Whether Lockstep can have written it. */
function isWhole({ key, name, agent, digest, created_at: createdAt, sum }: RunFacts): boolean {
  const isPlain = isRunId(name) && typeof agent === "string" && !/\p{Cc}/u.test(agent) && isTime(createdAt);
  return isPlain && (sum === null || sum === runSum(key, name, agent, digest, createdAt));
}

type FlowRecord = { readonly json: unknown; readonly sum: unknown };
type EventRecord = readonly [key: number, seq: number, body: unknown, sum: unknown];

/** At most so many of the runs that a damaged flow belongs to. */
const NAMED_RUNS = 8;

type ListRecord = readonly [
  key: number,
  id: string,
  agent: string,
  digest: string,
  createdAt: number,
  owner: string | null,
  sum: unknown,
  recorded: unknown,
  events: number,
  body: string | null,
  bodySum: unknown,
];

type NewsRecord = readonly [row: number, run: string, seq: number, body: string, key: number, sum: unknown];

/**
 * Where somebody has read to: the place of an entry, and which entry that was. SQLite gives a place again once the entry
 * that had the highest one is removed, so the place alone does not tell.
 */
function cursorOf(row: number, run: string, seq: number): string {
  return `${row} ${seq} ${run}`;
}

function placeOf(
  cursor: string,
): { readonly row: number; readonly seq: number; readonly run: string } | null {
  if (cursor === "") return { row: 0, seq: 0, run: "" };
  const [, row, seq, run = ""] = /^([1-9]\d{0,15}) (\d{1,15}) (.*)$/s.exec(cursor) ?? [];
  return row === undefined ? null : { row: Number(row), seq: Number(seq), run };
}

/** Stands with its key for a run whose id Lockstep cannot have made, so that it can be listed and removed. */
const DAMAGED = "damaged-";

function keyOf(id: string): number | null {
  const key = id.startsWith(DAMAGED) ? id.slice(DAMAGED.length) : "";
  return /^[1-9]\d{0,14}$/.test(key) ? Number(key) : null;
}

/** For SQLite: without a limit. */
const ALL = -1;
/** Above every key. */
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Ids are ASCII, so that every id with a prefix lies before the prefix with this one behind it. */
const LAST_CHARACTER = "\u{10ffff}";

/**
 * A new key is one more than the highest there is: keys tell in which order runs were made. `seq` counts without gaps,
 * so that the newest one is the number of events as well.
 */
const LAST = `LEFT JOIN event AS last
    ON last.run = run.key AND last.seq = (SELECT max(seq) FROM event WHERE run = run.key)`;

/** `whole`: with the newest entry of each run; `bare`: without, for files in which that cannot be read. */
function prepareList(db: DatabaseSync, isOld: boolean, more: string) {
  const ofRun = `run.key, run.id, run.agent, run.digest, run.created_at, run.owner,
    ${isOld ? "NULL, NULL" : "run.sum, run.events"}`;
  const which = `WHERE (?1 IS NULL OR run.agent = ?1) AND (?3 IS NULL OR run.owner IS NOT NULL) AND ${IS_KEPT} ${more}`;
  const ofLast = `coalesce(last.seq, 0), last.body, ${isOld ? "NULL" : "last.sum"}`;
  const whole = db.prepare(`SELECT ${ofRun}, ${ofLast} FROM run ${LAST} ${which}`);
  const bare = db.prepare(`SELECT ${ofRun}, 0, x'', NULL FROM run ${which}`);
  // Rows as arrays: node:sqlite takes half as long again to make objects of them.
  whole.setReturnArrays(true);
  bare.setReturnArrays(true);
  return { whole, bare };
}

/** The number of entries never falls: it is the proof that some are missing. */
const RELEASE = `UPDATE run SET owner = NULL,
  events = max(coalesce(events, 0), coalesce((SELECT max(seq) FROM event WHERE event.run = run.key), 0))`;

/** `isOld`: there are no checksums, and nothing is written. */
function prepareAll(db: DatabaseSync, isOld: boolean) {
  const sum = isOld ? "NULL AS sum" : "sum";
  const RUN = `SELECT key, id AS name, agent, digest, created_at, epoch, owner, owner_pid, owned_since, ${sum}, ${isOld ? "NULL AS events" : "events"} FROM run`;
  // Statements that write are never run where there are no checksums, and could not be prepared there.
  const prepare = (text: string) => db.prepare(isOld ? "SELECT 1" : text);
  const sql = {
    hasFlow: db.prepare("SELECT 1 FROM flow WHERE digest = ?"),
    findFlow: db.prepare(`SELECT json, ${sum} FROM flow WHERE digest = ?`),
    addFlow: prepare("INSERT INTO flow (digest, json, sum) VALUES (?, ?, ?)"),
    runsOfFlow: db.prepare("SELECT id FROM run WHERE digest = ? ORDER BY key DESC"),
    findRun: db.prepare(`${RUN} WHERE id = ?`),
    findKey: db.prepare(`${RUN} WHERE key = ?`),
    last: db.prepare("SELECT coalesce(max(seq), 0) AS last FROM event WHERE run = ?"),
    sealRun: prepare("UPDATE run SET sum = ? WHERE key = ?"),
    addRun: db.prepare(
      `INSERT INTO run (id, agent, digest, created_at, epoch, owner, owner_pid, owned_since)
       VALUES (?, ?, ?, ?, 1, ?, ?, ?)`,
    ),
    claim: db.prepare(
      "UPDATE run SET epoch = ?2, owner = ?3, owner_pid = ?4, owned_since = ?5 WHERE key = ?1",
    ),
    release: prepare(`${RELEASE} WHERE key = ? AND epoch = ? AND owner = ? AND id = ?`),
    releaseAll: prepare(`${RELEASE} WHERE owner = ?`),
    // The fence. `run` comes out as NULL, and the row is ignored, unless the run is still ours and `seq` is its next
    // one; the id, because the key of a run that was removed is given to another. (INSERT ... SELECT ... WHERE says the same and takes twice as long: it goes through a temporary table.)
    append: prepare(
      `INSERT OR IGNORE INTO event (run, seq, body, sum)
       VALUES ((SELECT key FROM run
                WHERE key = ?1 AND epoch = ?2 AND owner = ?3 AND id = ?6
                  AND ?4 = 1 + coalesce((SELECT max(seq) FROM event WHERE run = ?1), 0)), ?4, ?5, ?7)`,
    ),
    due: db.prepare(
      `SELECT max(${isOld ? 0 : "coalesce(events, 0)"}, coalesce((SELECT max(seq) FROM event WHERE run = run.key), 0)) AS events
       FROM run WHERE id = ?`,
    ),
    read: db.prepare(
      `SELECT run, seq, body, ${sum} FROM event
       WHERE run = (SELECT key FROM run WHERE id = ?) AND seq > ? ORDER BY seq LIMIT ?`,
    ),
    lists: {
      list: prepareList(db, isOld, "AND run.key < ?2 ORDER BY run.key DESC LIMIT ?4"),
      listPrefix: prepareList(
        db,
        isOld,
        // The + keeps SQLite from going through all keys in order: few ids have the prefix.
        "AND +run.key < ?2 AND run.id >= ?5 AND run.id < ?6 ORDER BY run.key DESC LIMIT ?4",
      ),
      listKey: prepareList(db, isOld, "AND run.key < ?2 AND run.key = ?4"),
    },
    count: db.prepare(`SELECT count(*) AS runs FROM run WHERE ${IS_KEPT}`),
    since: db.prepare(
      `SELECT event.rowid, run.id, event.seq, event.body, event.run, ${isOld ? "NULL" : "event.sum"} FROM event CROSS JOIN run ON run.key = event.run
       WHERE event.rowid > ? AND ${IS_KEPT} ORDER BY event.rowid LIMIT ?`,
    ),
    newest: db.prepare(
      `SELECT event.rowid, run.id, event.seq FROM event CROSS JOIN run ON run.key = event.run
       WHERE ${IS_KEPT} ORDER BY event.rowid DESC LIMIT 1`,
    ),
    isThere: db.prepare(
      "SELECT 1 FROM event JOIN run ON run.key = event.run WHERE event.rowid = ? AND event.seq = ? AND run.id = ?",
    ),
    size: db.prepare(
      `SELECT coalesce(sum(${SQL.bytes}), 0) AS bytes FROM event
       WHERE run = (SELECT key FROM run WHERE id = ?)`,
    ),
    version: db.prepare("PRAGMA data_version"),
  };
  sql.read.setReturnArrays(true);
  sql.since.setReturnArrays(true);
  sql.newest.setReturnArrays(true);
  return sql;
}
