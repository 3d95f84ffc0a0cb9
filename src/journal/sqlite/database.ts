/** The database file of a state directory: made, opened, and recognised as ours. */
import { accessSync, closeSync, constants, existsSync, lstatSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import {
  journalErrorCode,
  fileGone,
  emptyFile,
  notAJournal,
  schemaForeign,
  SQLITE,
  tooLarge,
  unavailable,
  versionUnknown,
} from "../errors.ts";
import { ownFileInside, requirePlainState } from "./inside.ts";
import { makeFolder } from "../make-folder.ts";

/** How long a write waits for the writes of other processes. The event loop stands still meanwhile. */
const PATIENCE_MS = 5_000;

/** Marks the file as a journal of ours: "LOCK" in ASCII. */
const APPLICATION = 0x4c4f434b;

/** Of the tables below. A file with a higher one is refused; version 1 had no checksums. */
const VERSION = 2;

/**
 * Times are epoch milliseconds and may have fractions. `owner_pid` and `owned_since` belong to the newest claim, and
 * stay when `owner` is cleared. `sum`: see checksum.ts; null in rows that version 1 wrote. `events`: how many entries
 * there were when the run was released, so that a lost one at the end is noticed.
 *
 * `event` keeps whole entries in `body`, so that reading is selecting and parsing. Its rows lie in the order they were
 * written, beside an index: laid out by run instead (WITHOUT ROWID), thousands of runs that grow at once would touch
 * a page each (measured with 10,000 runs: 2.4 times slower).
 */
const SCHEMA = `
  CREATE TABLE flow (
    digest TEXT NOT NULL PRIMARY KEY,
    json TEXT NOT NULL,
    sum INTEGER
  ) STRICT;

  CREATE TABLE run (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    digest TEXT NOT NULL REFERENCES flow (digest),
    created_at REAL NOT NULL,
    epoch INTEGER NOT NULL,
    owner TEXT,
    owner_pid INTEGER NOT NULL,
    owned_since REAL NOT NULL,
    sum INTEGER,
    events INTEGER
  ) STRICT;

  CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER,
    PRIMARY KEY (run, seq)
  ) STRICT;

  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};
`;

/** The columns that version 2 added. SQLite adds a column without touching the rows, so that this takes no time. */
const TO_VERSION_2 = `
  ALTER TABLE flow ADD COLUMN sum INTEGER;
  ALTER TABLE run ADD COLUMN sum INTEGER;
  ALTER TABLE run ADD COLUMN events INTEGER;
  ALTER TABLE event ADD COLUMN sum INTEGER;
  PRAGMA user_version = 2;
`;

/** Of a database that somebody else may have written: more is not looked at. */
const MOST_BYTES = 1024 * 1024 * 1024;

/** A value of ours is a row of `event` (see LARGEST_ROW) or a flow; SQLite itself would take a gigabyte. */
const MOST_VALUE_BYTES = 64 * 1024 * 1024;

export type Database = {
  readonly file: string;
  readonly db: DatabaseSync;
  readonly writable: boolean;
  /** Without checksums: a file of version 1 that cannot be written. */
  readonly isOld: boolean;
  /** Throws JOURNAL_UNAVAILABLE once another file, or none, is found under the name of the one that is open. */
  readonly requireSame: () => void;
};

/**
 * Opens the database, and makes it first where there is none. Where nothing may be written it can still be read.
 * `foreign`: somebody else may have written it, so it is only looked at. `look`: it is ours, and nothing may change.
 * Throws JOURNAL_UNAVAILABLE or STATE_UNSAFE.
 */
export function openDatabase(directory: string, how: "write" | "look" | "foreign" = "write"): Database {
  const readOnly = how !== "write";
  const file = join(directory, "runs.db");
  let db: DatabaseSync | undefined;
  try {
    requirePlainFiles(directory);
    if (how === "foreign") requireSize(file);
    if (how === "write") makeFile(directory, file);
    const writable = !readOnly && isWritable(directory) && isWritable(file);
    db = writable ? new DatabaseSync(file, DEFENSIVE) : openForReading(directory, file, readOnly);
    // Before anything of the schema is read: no function of it may have an effect.
    db.exec("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
    if (writable && look(db).tables === 0) makeTables(db);
    // In one transaction: another process may be renewing the tables.
    db.exec("BEGIN");
    const { application, version } = look(db);
    if (application !== APPLICATION) throw statSync(file).size === 0 ? emptyFile(file) : notAJournal(file);
    if (version > VERSION) throw versionUnknown(file, version, VERSION);
    requireSchema(db, file, version);
    db.exec("COMMIT");
    const isOld = version < VERSION && !(writable && renew(db));
    // When the log is folded back into the file is decided by the journal: see LOG_BYTES there.
    db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    return { file, db, writable, isOld, requireSame: sameFile(file) };
  } catch (cause) {
    db?.close();
    throw unavailable(file, cause);
  }
}

/** SQLite goes on with a file that was removed or moved away, and every commit after that is lost without a word. */
function sameFile(file: string): () => void {
  const opened = statSync(file, { bigint: true });
  return () => {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    if (found === undefined) throw fileGone(file, "was removed or moved");
    if (found.ino !== opened.ino || found.dev !== opened.dev)
      throw fileGone(file, "was replaced by another file");
  };
}

const DEFENSIVE = {
  timeout: PATIENCE_MS,
  defensive: true,
  limits: { length: MOST_VALUE_BYTES, attach: 0, triggerDepth: 1 },
} as const;

/** SQLite opens the files beside the database by their names. */
function requirePlainFiles(directory: string): void {
  requirePlainState(directory);
  for (const suffix of ["", "-wal", "-shm", "-journal"]) ownFileInside(directory, `runs.db${suffix}`);
}

function requireSize(file: string): void {
  const { size } = lstatSync(file);
  if (size > MOST_BYTES) throw tooLarge(file, size, MOST_BYTES);
}

/** Exactly our tables: a trigger or a view of somebody else would take part in what we write and read. */
function requireSchema(db: DatabaseSync, file: string, version: number): void {
  const rows = db.prepare("SELECT type, name, sql FROM sqlite_schema").all() as unknown as readonly {
    readonly type: string;
    readonly name: string;
    readonly sql: string | null;
  }[];
  const tables = version === 1 ? TABLES_1 : TABLES;
  const written = rows.filter(({ sql, name }) => sql !== null || !AUTOMATIC.has(name));
  const stranger = written.find(({ type, sql }) => type !== "table" || !tables.has(folded(sql ?? "")));
  if (stranger !== undefined) throw schemaForeign(file, `${stranger.type} "${stranger.name}"`);
  if (written.length !== tables.size) throw schemaForeign(file, "not all of its tables");
}

/** The indexes that SQLite makes for our keys. */
const AUTOMATIC: ReadonlySet<string> = new Set(
  ["flow", "run", "event"].map((table) => `sqlite_autoindex_${table}_1`),
);
const TABLES: ReadonlySet<string> = new Set(
  SCHEMA.split(";").flatMap((statement) => (/CREATE TABLE/.test(statement) ? [folded(statement)] : [])),
);
const TABLES_1: ReadonlySet<string> = new Set(
  [...TABLES].map((table) => table.replaceAll(/,(?:sum|events) INTEGER/g, "")),
);

/** The same text for a table that was made with a column and for one that got it later. */
function folded(sql: string): string {
  return sql
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ?([(),]) ?/g, "$1")
    .trim();
}

function makeFile(directory: string, file: string): void {
  if (existsSync(file)) return;
  makeFolder(directory, { mode: 0o700 });
  try {
    // Only ever a new file: closing a second descriptor of an open database would drop this process's locks on it.
    closeSync(openSync(file, "wx", 0o600));
  } catch (cause) {
    if (journalErrorCode(cause) !== "EEXIST") throw cause;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Where its log cannot be opened, SQLite reads a database only as one that does not change. That is true as long
 * as there is nothing in a log: no process is writing, and nothing is left that was never folded back.
 */
function openForReading(directory: string, file: string, leaveNoTrace: boolean): DatabaseSync {
  const url = pathToFileURL(file);
  const isStill = leaveNoTrace || !isWritable(directory);
  const logged = statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (isStill && logged === 0) url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { ...DEFENSIVE, readOnly: true });
}

type Looks = { readonly application: number; readonly version: number; readonly tables: number };

function look(db: DatabaseSync): Looks {
  return db
    .prepare(
      `SELECT (SELECT application_id FROM pragma_application_id) AS application,
              (SELECT user_version FROM pragma_user_version) AS version,
              (SELECT count(*) FROM sqlite_schema) AS tables`,
    )
    .get() as Looks;
}

/** Other processes may be doing the same at this moment: a later one finds it done. */
function makeTables(db: DatabaseSync): void {
  db.exec("PRAGMA auto_vacuum = INCREMENTAL");
  turnToWal(db, 10);
  db.exec("BEGIN IMMEDIATE");
  if (look(db).tables === 0) db.exec(SCHEMA);
  db.exec("COMMIT");
}

/** All or nothing. Another process may have done it meanwhile. */
function renew(db: DatabaseSync): true {
  db.exec("BEGIN IMMEDIATE");
  try {
    if (look(db).version === 1) db.exec(TO_VERSION_2);
    db.exec("COMMIT");
    return true;
  } catch (cause) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw cause;
  }
}

/** Unlike for every other lock, SQLite does not wait for the one that this takes. */
function turnToWal(db: DatabaseSync, tries: number): void {
  try {
    db.exec("PRAGMA journal_mode = WAL");
  } catch (cause) {
    if (journalErrorCode(cause) !== SQLITE.BUSY || tries === 1) throw cause;
    db.exec("BEGIN IMMEDIATE; COMMIT");
    turnToWal(db, tries - 1);
  }
}
