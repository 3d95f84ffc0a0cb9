/**
 * Taking turns at what several runs must not do to the same thing at the same time: in this process, and between processes.
 *
 * Between processes the lock is the kernel's: it is gone the moment its process is, however that died, and stays while
 * the process lives, whatever a clock says. The file is an empty SQLite database with an open exclusive transaction, because that is the one
 * file lock Node has. It lies in `info`, where no command in a sandbox can put another file in its place.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { errorText } from "../../flow/text/harmless.ts";

// In this process.

const lasts = new Map<string, Promise<unknown>>();

/** Does the work when all that was begun before under the same name has ended, however that went. */
export async function inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
  const before = lasts.get(name);
  const mine = before === undefined ? work() : before.then(work, work);
  lasts.set(name, mine);
  try {
    return await mine;
  } finally {
    if (lasts.get(name) === mine) lasts.delete(name);
  }
}

// Between processes.

export type Turn = { readonly release: () => void } | { readonly why: string };

/** Waits for those who came before. `common`: the folder that all worktrees of the repository share. */
export async function takeTurn(common: string, longestMs = LONGEST_MS): Promise<Turn> {
  const file = join(common, "info", "lockstep-merge.lock");
  for (let waited = 0; waited <= longestMs; waited += POLL_MS) {
    const turn = lockNow(file);
    if (turn !== null) return turn;
    await sleep(POLL_MS);
  }
  return { why: `another run has been at it for minutes, and holds ${file}; end its process if it hangs` };
}

const POLL_MS = 10;
const LONGEST_MS = 120_000;
const SQLITE_BUSY = 5;

/** null: somebody else has it. */
export function lockNow(file: string): Turn | null {
  let db: DatabaseSync | undefined;
  try {
    mkdirSync(join(file, ".."), { recursive: true });
    db = new DatabaseSync(file, { timeout: 0 });
    // In memory: a rollback journal beside the file would outlive a killed process.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    const held = db;
    return { release: () => held.close() };
  } catch (error) {
    db?.close();
    if (error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY) return null;
    return { why: `${file} cannot be locked: ${errorText(error)}` };
  }
}
