/**
 * Who is alive. Each journal that drives runs holds one lock file, `owners/<id>.lock`, for as long as it is open. The
 * lock is the kernel's, so that it is gone the moment its process is, however it died, and stays while the process is
 * merely stopped. A process id could not tell: a killed process may linger as a zombie, and ids are used again.
 *
 * The file is an empty SQLite database with an open exclusive transaction, because that is the one file lock Node has.
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { unavailable } from "../errors.ts";
import { fileInside, insideState } from "./inside.ts";

/** All of it throws JOURNAL_UNAVAILABLE if it must. */
export type Owners = {
  /**
   * Takes our own lock, once; clears away the files of owners that died. Only to be called inside a write transaction
   * on the journal: it keeps a file that is made but not yet locked from being taken for a dead owner's.
   */
  readonly enter: () => void;
  /** Gives our lock up. Says whether there was one. */
  readonly leave: () => boolean;
  /** True unless the owner's lock is free or its file gone: whatever cannot be proved dead counts as alive. */
  readonly isAlive: (owner: string) => boolean;
  /** The lock files of all owners: whether each is held. */
  readonly all: () => readonly { readonly file: string; readonly isHeld: boolean }[];
  /** Clears away what a dead owner left. */
  readonly bury: (owner: string) => void;
};

export function createOwners(directory: string, ownId: string): Owners {
  const folder = join(directory, "owners");
  /** An owner is named by the database, which may come from elsewhere: `inside` lets no name lead out of the folder. */
  const fileOf = (owner: string) => fileInside(directory, "owners", `${owner}${SUFFIX}`);
  let lock: DatabaseSync | null = null;

  return {
    enter() {
      if (lock !== null) return;
      lock = explained(fileOf(ownId), (file) => {
        mkdirSync(insideState(directory, "owners"), { recursive: true, mode: 0o700 });
        for (const name of readdirSync(folder).filter((name) => OWN_NAME.test(name))) {
          if (!isLocked(join(folder, name))) remove(join(folder, name));
        }
        return takeLock(file);
      });
    },

    leave() {
      if (lock === null) return false;
      lock.close();
      lock = null;
      explained(fileOf(ownId), remove);
      return true;
    },

    isAlive: (owner) => OWN_NAME.test(owner + SUFFIX) && explained(fileOf(owner), isLocked),
    all: () =>
      explained(insideState(directory, "owners"), (path) =>
        existsSync(path)
          ? readdirSync(path)
              .filter((name) => OWN_NAME.test(name))
              .map((name) => join(path, name))
              .map((file) => ({ file, isHeld: isLocked(file) }))
          : [],
      ),
    bury: (owner) => {
      if (OWN_NAME.test(owner + SUFFIX)) explained(fileOf(owner), remove);
    },
  };
}

const SUFFIX = ".lock";
/** The form of the names that we give. */
const OWN_NAME = /^[\w-]{1,100}\.lock$/;

function takeLock(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  try {
    // In memory: a rollback journal beside the file would outlive a killed process.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return db;
  } catch (cause) {
    db.close();
    throw cause;
  }
}

function isLocked(file: string): boolean {
  let probe: DatabaseSync | undefined;
  // Opening a pipe would wait for ever.
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return false;
  try {
    probe = new DatabaseSync(file, { readOnly: true });
    probe.exec("SELECT 1 FROM sqlite_schema");
    return false;
  } catch {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } finally {
    probe?.close();
  }
}

/** Its owner may be removing it at the same moment. */
function remove(file: string): void {
  rmSync(file, { force: true });
}

function explained<T>(file: string, work: (file: string) => T): T {
  try {
    return work(file);
  } catch (cause) {
    throw unavailable(file, cause);
  }
}
