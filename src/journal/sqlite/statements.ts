/** The statements of the journal over its tables, and the rows that they give. */
import type { DatabaseSync } from "node:sqlite";
import { SQL } from "./artifacts.ts";
import { IS_KEPT } from "./removal.ts";

export type RunRecord = {
  readonly epoch: number;
  readonly owner: string | null;
  readonly owner_pid: number;
  readonly owned_since: number;
  /** How many entries it had when it was last released; null: it never was. */
  readonly events: number | null;
} & RunFacts;

/** What stays the same in a row of `run`, as it is recorded. */
export type RunFacts = {
  readonly key: number;
  /** Its id. */
  readonly name: string;
  readonly agent: string;
  readonly digest: string;
  readonly created_at: number;
  readonly sum: unknown;
};

/** Whether the id is taken, the key of the new run, and whether its flow is recorded: 1 or 0. */
export type BeforeRun = readonly [isTaken: number, key: number, isKept: number];

export type FlowRecord = { readonly json: unknown; readonly sum: unknown };
/** `events`: how many entries there have to be. */
export type DueRecord = { readonly key: number; readonly events: number };
export type EventRecord = readonly [seq: number, body: unknown, sum: unknown];

export type ListRecord = readonly [
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

export type NewsRecord = readonly [
  row: number,
  run: string,
  seq: number,
  body: string,
  key: number,
  sum: unknown,
];

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
export function prepareStatements(db: DatabaseSync, isOld: boolean) {
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
    // The key is part of the checksum, so it has to be known before the row is written.
    beforeRun: db.prepare(
      `SELECT EXISTS (SELECT 1 FROM run WHERE id = ?1), coalesce((SELECT max(key) FROM run), 0) + 1,
              EXISTS (SELECT 1 FROM flow WHERE digest = ?2)`,
    ),
    addRun: prepare(
      `INSERT INTO run (key, id, agent, digest, created_at, epoch, owner, owner_pid, owned_since, sum)
       VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)`,
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
      `SELECT key, max(${isOld ? 0 : "coalesce(events, 0)"}, coalesce((SELECT max(seq) FROM event WHERE run = run.key), 0)) AS events
       FROM run WHERE id = ?`,
    ),
    // The id as well, because the key of a run that was removed between two slices is given to another.
    read: db.prepare(
      `SELECT seq, body, ${sum} FROM event
       WHERE run = ?1 AND EXISTS (SELECT 1 FROM run WHERE key = ?1 AND id = ?2) AND seq > ?3 ORDER BY seq LIMIT ?4`,
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
  sql.beforeRun.setReturnArrays(true);
  sql.read.setReturnArrays(true);
  sql.since.setReturnArrays(true);
  sql.newest.setReturnArrays(true);
  return sql;
}

export type Statements = ReturnType<typeof prepareStatements>;
