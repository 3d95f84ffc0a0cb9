/** The project's journal, opened where its run state lives: for writing by its owner, for reading by anyone. */
import { randomUUID } from "node:crypto";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RunnerError, type Clock, type Journal } from "../../engine/ports.ts";
import { fileInside } from "../../journal/sqlite/inside.ts";
import { openSqliteJournal } from "../../journal/sqlite/sqlite.ts";
import { ownerNamed } from "../../journal/sqlite/whereabouts.ts";
import { isServerAddress } from "../world/project.ts";
import {
  bindDatabase,
  rememberState,
  stateStanding,
  stateUnusable,
  wasMade,
} from "../trust/state-folders.ts";
import type { ForeignRun, TrustJournal } from "../trust/foreign-state.ts";
import { makeFolder } from "../../journal/make-folder.ts";
import { statIfAny } from "../world/files.ts";

/**
 * `place`: a state folder, or the address of a server. Makes the state folder where there is none, and records it as the user's own. STATE_FOREIGN where it came from
 * elsewhere and is not accepted.
 */
export async function openJournal(
  place: string,
  clock: Pick<Clock, "now">,
  access: TrustJournal = {},
  about?: () => Promise<ForeignRun | null>,
  before?: () => Promise<void>,
): Promise<Journal> {
  const env = access.env ?? process.env;
  if (isServerAddress(place)) return await (await import("./postgres-journal.ts")).openJournalAt(place, env);
  const stateDir = place;
  const standing = stateStanding(stateDir, env);
  const { kind } = standing;
  if (kind === "foreign") {
    const { requireOwnState } = await import("../trust/foreign-state.ts");
    await requireOwnState(stateDir, access, clock.now(), about, before);
  }
  makeStateFolder(stateDir);
  const unknown = kind === "absent" ? rememberState(stateDir, env, "made", clock.now()) : null;
  if (unknown !== null) access.notify?.(unknown);
  if (kind === "ours" && standing.isBound) requireContent(stateDir, env);
  const isNew = kind !== "ours" || !standing.isBound || !existsSync(join(stateDir, "runs.db"));
  if (isNew) bindDatabase(stateDir, env, false);
  const journal = await openSqliteJournal(optionsFor(stateDir, clock));
  if (isNew) bindDatabase(stateDir, env, true);
  return journal;
}

/**
 * Opens the journal only if there is one: listing runs must not leave traces. A foreign one can only be looked at.
 * `patienceMs`: how long a server that is away is waited for, where a person waits.
 */
export async function openExistingJournal(
  place: string,
  clock: Pick<Clock, "now">,
  { env = process.env, patienceMs }: Pick<TrustJournal, "env"> & { readonly patienceMs?: number } = {},
): Promise<Journal | null> {
  if (isServerAddress(place))
    return await (await import("./postgres-journal.ts")).openJournalAt(place, env, patienceMs);
  const stateDir = place;
  if (statIfAny(stateDir)?.isDirectory() === false)
    throw new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `The state folder ${stateDir} is not a folder. Choose another one with --state DIR.`,
    );
  const standing = stateStanding(stateDir, env);
  if (!existsSync(join(stateDir, "runs.db"))) return null;
  if (standing.kind !== "foreign") return await openToRead(stateDir, clock, { env });
  const { stateForeign } = await import("../trust/foreign-state.ts");
  const refuseWrites = () => stateForeign({ stateDir, why: standing.why, run: null }, standing.isRefused);
  return await openSqliteJournal({ ...optionsFor(stateDir, clock), refuseWrites });
}

/** What cannot be written, as on a full disk, may still be read. */
async function openToRead(
  stateDir: string,
  clock: Pick<Clock, "now">,
  access: TrustJournal,
): Promise<Journal> {
  try {
    return await openJournal(stateDir, clock, access);
  } catch (error) {
    if (!(error instanceof RunnerError) || error.code !== "JOURNAL_UNAVAILABLE") throw error;
    const refuseWrites = () => error;
    return await openSqliteJournal({ ...optionsFor(stateDir, clock), refuseWrites }).catch(() => {
      throw error;
    });
  }
}

/**
 * An existing journal that is to be obeyed or changed: where it is foreign, `ref` names the run that is asked about, and
 * `before` looks at it after a yes and throws where the command cannot go on, so that the yes has no effect.
 */
export async function openOwnJournal(
  place: string,
  clock: Pick<Clock, "now">,
  access: TrustJournal,
  ref: string | null,
  before?: (journal: Journal) => Promise<void>,
): Promise<Journal | null> {
  if (isServerAddress(place)) return await openJournal(place, clock, access);
  const stateDir = place;
  if (stateStanding(stateDir, access.env ?? process.env).kind !== "foreign")
    return await openExistingJournal(stateDir, clock, access);
  const looked = async <T>(look: (journal: Journal) => Promise<T>): Promise<T | null> => {
    const journal = await openExistingJournal(stateDir, clock, access);
    if (journal === null) return null;
    try {
      return await look(journal);
    } catch (error) {
      if (error instanceof RunnerError) throw error;
      // It is not a valid run: there is nothing to say about it.
      return null;
    } finally {
      await journal.close();
    }
  };
  const about = async () =>
    ref === null
      ? null
      : await looked(async (journal) => {
          const { readRun } = await import("./runs.ts");
          const { foreseenOf } = await import("../trust/foreign-state.ts");
          return foreseenOf(await readRun(journal, ref));
        });
  const check = before === undefined ? undefined : async () => void (await looked(before));
  return await openJournal(stateDir, clock, access, about, check);
}

/** RUN_UNKNOWN where nothing was ever recorded. */
export function requireRecord(journal: Journal | null, ref: string, stateDir: string): Journal {
  if (journal !== null) return journal;
  throw new RunnerError("RUN_UNKNOWN", `There is no run "${ref}": none is recorded in ${stateDir}.`);
}

/** SQLite takes an empty file for a new database: the runs that were in it would be gone without a word. */
function requireContent(stateDir: string, env: NodeJS.ProcessEnv): void {
  const file = join(stateDir, "runs.db");
  const isEmpty = statSync(file, { throwIfNoEntry: false })?.size === 0;
  if (!isEmpty || (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  if (!wasMade(stateDir, env)) return;
  throw new RunnerError(
    "JOURNAL_UNAVAILABLE",
    `${file} is empty (0 bytes), and runs were recorded in it: something has truncated it. Restore it from a backup, or ` +
      "remove it to start again.",
  );
}

function optionsFor(stateDir: string, { now }: Pick<Clock, "now">) {
  return { directory: stateDir, now, ownerId: ownerNamed(randomUUID()), pid: process.pid };
}

/** The folder for letters and logs of runs that a server records: where it is made, it is recorded as the user's own. */
export function ownFolder(stateDir: string, env: NodeJS.ProcessEnv): void {
  if (stateStanding(stateDir, env).kind !== "absent") return;
  makeStateFolder(stateDir);
  rememberState(stateDir, env, "made", Date.now());
}

/** Kept out of git. */
export function makeStateFolder(stateDir: string): void {
  try {
    makeFolder(stateDir, { mode: 0o700 });
    const ignore = fileInside(stateDir, ".gitignore");
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n", { flag: "wx" });
  } catch (cause) {
    if (cause instanceof RunnerError) throw cause;
    if (
      cause instanceof Error &&
      "code" in cause &&
      cause.code === "EEXIST" &&
      existsSync(join(stateDir, ".gitignore"))
    )
      return;
    throw stateUnusable(stateDir, cause);
  }
}
