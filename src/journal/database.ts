/** The database file of a state directory: made, opened, and recognised as ours. */
import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { codeOf, notAJournal, SQLITE, unavailable, versionUnknown } from "./errors.ts";

/** How long a write waits for the writes of other processes. The event loop stands still meanwhile. */
const PATIENCE_MS = 5_000;

/** Marks the file as a journal of ours: "LOCK" in ASCII. */
const APPLICATION = 0x4c4f434b;

/** Of the tables below. A file with a higher one is refused. */
const VERSION = 1;

/**
 * Times are epoch milliseconds and may have fractions. `owner_pid` and `owned_since` tell of the newest claim, and
 * stay when `owner` is cleared.
 *
 * `event` keeps whole entries in `body`, so that reading is selecting and parsing. Its rows lie in the order they were
 * written, beside an index: laid out by run instead (WITHOUT ROWID), thousands of runs that grow at once would touch
 * a page each (measured with 10,000 runs: 2.4 times slower).
 */
const SCHEMA = `
  CREATE TABLE flow (
    digest TEXT NOT NULL PRIMARY KEY,
    json TEXT NOT NULL
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
    owned_since REAL NOT NULL
  ) STRICT;

  CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq)
  ) STRICT;

  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};
`;

export type Database = { readonly file: string; readonly db: DatabaseSync; readonly writable: boolean };

/**
 * Opens the database, and makes it first where there is none. Where nothing may be written it can still be read.
 * Throws JOURNAL_UNAVAILABLE.
 */
export function openDatabase(directory: string): Database {
  const file = join(directory, "runs.db");
  let db: DatabaseSync | undefined;
  try {
    makeFile(directory, file);
    const writable = isWritable(directory) && isWritable(file);
    db = writable ? new DatabaseSync(file, { timeout: PATIENCE_MS }) : openForReading(directory, file);
    if (look(db).tables === 0) makeTables(db);
    const { application, version } = look(db);
    if (application !== APPLICATION) throw notAJournal(file);
    if (version > VERSION) throw versionUnknown(file, version, VERSION);
    // When the log is folded back into the file is decided by the journal: see LOG_BYTES there.
    db.exec("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    return { file, db, writable };
  } catch (cause) {
    db?.close();
    throw unavailable(file, cause);
  }
}

function makeFile(directory: string, file: string): void {
  if (existsSync(file)) return;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  try {
    // Only ever a new file: closing a second descriptor of an open database would drop this process's locks on it.
    closeSync(openSync(file, "wx", 0o600));
  } catch (cause) {
    if (codeOf(cause) !== "EEXIST") throw cause;
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
 * Where its log cannot be opened, SQLite reads a database only if told that it does not change. That is true as long
 * as there is no log: nobody is writing, and nothing is left that was never folded back.
 */
function openForReading(directory: string, file: string): DatabaseSync {
  const url = pathToFileURL(file);
  if (!isWritable(directory) && !existsSync(`${file}-wal`)) url.searchParams.set("immutable", "1");
  return new DatabaseSync(url, { readOnly: true, timeout: PATIENCE_MS });
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

/** Other processes may be doing the same at this moment: whoever comes later finds it done. */
function makeTables(db: DatabaseSync): void {
  db.exec("PRAGMA auto_vacuum = INCREMENTAL");
  turnToWal(db, 10);
  db.exec("BEGIN IMMEDIATE");
  if (look(db).tables === 0) db.exec(SCHEMA);
  db.exec("COMMIT");
}

/** Unlike for every other lock, SQLite does not wait for the one that this takes. */
function turnToWal(db: DatabaseSync, tries: number): void {
  try {
    db.exec("PRAGMA journal_mode = WAL");
  } catch (cause) {
    if (codeOf(cause) !== SQLITE.BUSY || tries === 1) throw cause;
    db.exec("BEGIN IMMEDIATE; COMMIT");
    turnToWal(db, tries - 1);
  }
}
