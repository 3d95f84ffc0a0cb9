/**
 * Which state folders this user made: each has a random id in it, and a record under that id in the user's own config
 * folder that says where it is. A folder for which the two do not agree came from somewhere else.
 */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { isObject, own, type Json } from "../../flow/json.ts";
import { fileInside, requirePlainState } from "../../journal/sqlite/inside.ts";
import { configFolder } from "../world/project.ts";
import { writeOwn } from "../world/write-whole.ts";
import { statIfAny } from "../world/files.ts";

/** A state folder as the user's config folder knows it. */
export type KnownState = {
  readonly id: string;
  /** The real path. */
  readonly path: string;
  /** `made`: by a run. `accepted`: it came from elsewhere, and the user said yes. */
  readonly how: "made" | "accepted";
  readonly since: string;
};

type StateRecord = KnownState & {
  /** Identifies the file `runs.db`, so that it differs from one that was put in its place; null until it is made. */
  readonly database: FileMark | null;
};

/** When the file was made; where the file system does not record that, its inode. */
type FileMark = { readonly born: string } | { readonly inode: string };

export type StateStanding =
  /** There is none yet: the first run that is recorded creates it. */
  | { readonly kind: "absent" }
  /** `isBound`: another file in the place of its `runs.db` would be noticed. */
  | { readonly kind: "ours"; readonly isBound: boolean }
  /** `isRefused`: a yes does not change it. */
  | { readonly kind: "foreign"; readonly why: string; readonly isRefused: boolean };

/** What there is in a state folder, whatever version made it; SQLite also reads the files beside its database. */
const CONTENTS = /^(?:runs\.db.*|artifacts|answers|batches|control|owners|runs)$/i;
const ID_FILE = "id";
const ID = /^[0-9a-f]{32}$/;

/** Made or accepted by this process: holds also where no home folder is known. By real path, with the id. */
const ofThisProcess = new Map<string, string>();

/** A stat and two small reads for a folder of ours. Throws STATE_UNSAFE where links are in it. */
export function stateStanding(stateDir: string, env: NodeJS.ProcessEnv): StateStanding {
  const folder = requireNamable(stateDir);
  requirePlainState(stateDir);
  if (folder?.isDirectory() !== true) return { kind: "absent" };
  const id = idIn(stateDir);
  if (id === null && !readdirSync(stateDir).some((name) => CONTENTS.test(name))) return { kind: "absent" };
  const uid = process.geteuid?.();
  if (uid !== undefined && uid !== 0 && folder.uid !== uid)
    return foreign(`it belongs to another user of this machine (uid ${folder.uid})`, true);
  const path = realpathSync.native(stateDir);
  if (id === null)
    return foreign("it was not made by you on this machine, or by an earlier version of Lockstep");
  if (ofThisProcess.get(path) === id) return { kind: "ours", isBound: true };
  const record = readRecord(env, id);
  if (record === null)
    return foreign(
      whyNotRecorded(env) ??
        `you did not make it on this machine, or HOME or XDG_CONFIG_HOME was another one then: ${statesFolder(env)} has no record of it`,
    );
  if (record.path !== path) return foreign(`it is a copy of ${record.path}, or was moved from there`);
  if (record.database !== null && isReplaced(join(path, "runs.db"), record.database))
    return foreign("its runs.db is not the file that Lockstep made there: something has replaced it");
  return { kind: "ours", isBound: record.database !== null };
}

/** Why Lockstep cannot know which state folders the user made; null: it can. */
function whyNotRecorded(env: NodeJS.ProcessEnv): string | null {
  const folder = statesFolder(env);
  const consequence = "so Lockstep cannot know which state folders are yours";
  if (folder === null) return `no home folder is known (HOME is not set), ${consequence}`;
  let place = folder;
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return `${place} cannot be written (${code}), ${consequence}`;
  }
}

function foreign(why: string, isRefused = false): StateStanding {
  return { kind: "foreign", why, isRefused };
}

/**
 * Records a state folder that exists as the user's own. `made` by many processes at once, one of them wins; `accepted`
 * gives it a new id, so that it is not taken for the one it was copied from. `place`: where it will be, if it is to be
 * moved first. Gives what the user has to know: that it holds for this process only; else null.
 */
export function rememberState(
  stateDir: string,
  env: NodeJS.ProcessEnv,
  how: KnownState["how"],
  now: number,
  place: string = stateDir,
): string | null {
  const path = realpathSync.native(place);
  const id = randomBytes(16).toString("hex");
  const file = fileInside(stateDir, ID_FILE);
  const draft = `${file}.${id}`;
  // The record comes first: another process that finds the id must find the record too.
  const isRecorded = writeRecord(env, { id, path, how, since: new Date(now).toISOString(), database: null });
  try {
    writeFileSync(draft, `${id}\n`, { mode: 0o600, flag: "wx" });
    if (how === "made") linkSync(draft, file);
    else renameSync(draft, file);
    if (place === stateDir) ofThisProcess.set(path, id);
  } catch (error) {
    if (isRecorded) forgetState(env, id);
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST"))
      throw stateUnusable(stateDir, error);
    const winner = idIn(stateDir);
    if (!isRecorded && winner !== null) ofThisProcess.set(path, winner);
  } finally {
    rmSync(draft, { force: true });
  }
  if (isRecorded) return null;
  const why = whyNotRecorded(env) ?? "your settings folder cannot be written";
  return (
    `The next command will not know that ${stateDir} is yours: ${why}. ` +
    "Fix that, or pass --trust-journal to commands that resume its runs."
  );
}

/** null: there is nothing. JOURNAL_UNAVAILABLE where nothing could be: a name is too long, or a link leads to itself. */
function requireNamable(stateDir: string): Stats | null {
  try {
    return lstatSync(stateDir, { throwIfNoEntry: false }) ?? null;
  } catch (error) {
    throw stateUnusable(stateDir, error);
  }
}

/** A full disk, or a folder that cannot be written. */
export function stateUnusable(stateDir: string, cause: unknown): RunnerError {
  const why = cause instanceof Error ? cause.message : String(cause);
  if (statIfAny(stateDir)?.isDirectory() === false)
    return new RunnerError(
      "JOURNAL_UNAVAILABLE",
      `The state folder ${stateDir} is a file. Move it away, or choose another folder with --state DIR.`,
      { cause },
    );
  return new RunnerError(
    "JOURNAL_UNAVAILABLE",
    `The state folder ${stateDir} cannot be used: ${why}. Make it writable, or choose another with --state.`,
    { cause },
  );
}

/** Before `runs.db` is made, and (`isMade`) after: from then on another file in its place is noticed. */
export function bindDatabase(stateDir: string, env: NodeJS.ProcessEnv, isMade: boolean): void {
  const id = idIn(stateDir);
  const record = id === null ? null : readRecord(env, id);
  if (record === null || (record.database !== null) === isMade) return;
  writeRecord(env, { ...record, database: isMade ? markOf(join(stateDir, "runs.db")) : null });
}

/** Whether `runs.db` was once made whole, and not only begun, as on a full disk. */
export function wasMade(stateDir: string, env: NodeJS.ProcessEnv): boolean {
  const id = idIn(stateDir);
  return id !== null && (readRecord(env, id)?.database ?? null) !== null;
}

function markOf(file: string): FileMark {
  // Moves the time of the last change on, so that a file system that gives it out as the time of birth is known.
  chmodSync(file, 0o600);
  const { birthtimeNs, ctimeNs, ino } = lstatSync(file, { bigint: true });
  return birthtimeNs > 0n && birthtimeNs !== ctimeNs ? { born: String(birthtimeNs) } : { inode: String(ino) };
}

function isReplaced(file: string, mark: FileMark): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  if (found === undefined) return false;
  return "born" in mark ? String(found.birthtimeNs) !== mark.born : String(found.ino) !== mark.inode;
}

/** All state folders that are recorded as the user's own, by path. */
export function knownStates(env: NodeJS.ProcessEnv): readonly KnownState[] {
  const records = idsOf(env).flatMap((id) => readRecord(env, id) ?? []);
  return records
    .map(({ id, path, how, since }) => ({ id, path, how, since }))
    .toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

/** By id or by path. Gives how many records are gone; the folders themselves stay, and are foreign from then on. */
export function forgetState(env: NodeJS.ProcessEnv, idOrPath: string): number {
  const folder = statesFolder(env);
  if (folder === null) return 0;
  const gone = ID.test(idOrPath)
    ? idsOf(env).filter((id) => id === idOrPath)
    : knownStates(env).flatMap(({ id, path }) => (path === idOrPath ? [id] : []));
  for (const id of gone) rmSync(join(folder, `${id}.json`), { force: true });
  for (const [path, id] of ofThisProcess) if (gone.includes(id)) ofThisProcess.delete(path);
  return gone.length;
}

function statesFolder(env: NodeJS.ProcessEnv): string | null {
  const folder = configFolder(env);
  return folder === null ? null : join(folder, "states");
}

function idsOf(env: NodeJS.ProcessEnv): readonly string[] {
  const folder = statesFolder(env);
  try {
    const names = folder === null ? [] : readdirSync(folder);
    return names.map((name) => name.replace(/\.json$/, "")).filter((name) => ID.test(name));
  } catch {
    return [];
  }
}

function idIn(stateDir: string): string | null {
  try {
    const text = readFileSync(fileInside(stateDir, ID_FILE), "utf8").trim();
    return ID.test(text) ? text : null;
  } catch (error) {
    if (error instanceof RunnerError) throw error;
    return null;
  }
}

function readRecord(env: NodeJS.ProcessEnv, id: string): StateRecord | null {
  const folder = statesFolder(env);
  if (folder === null) return null;
  try {
    const value = JSON.parse(readFileSync(join(folder, `${id}.json`), "utf8")) as Json;
    if (!isObject(value) || own(value, "id") !== id || typeof own(value, "path") !== "string") return null;
    return {
      database: null,
      how: "made",
      since: "",
      ...(value as unknown as Partial<StateRecord>),
    } as StateRecord;
  } catch {
    return null;
  }
}

/** Returns whether it exists: a home folder that is not writable does not stop a run. */
function writeRecord(env: NodeJS.ProcessEnv, record: StateRecord): boolean {
  const folder = statesFolder(env);
  if (folder === null) return false;
  try {
    tidy(env, folder);
    writeOwn(join(folder, `${record.id}.json`), `${JSON.stringify(record)}\n`);
    return true;
  } catch {
    return false;
  }
}

/** Projects come and go: records of folders that are gone do not pile up for ever. */
const MOST_RECORDS = 500;

function tidy(env: NodeJS.ProcessEnv, folder: string): void {
  const ids = idsOf(env);
  if (ids.length <= MOST_RECORDS) return;
  for (const id of ids) {
    const path = readRecord(env, id)?.path;
    if (path !== undefined && lstatSync(path, { throwIfNoEntry: false }) === undefined)
      rmSync(join(folder, `${id}.json`), { force: true });
  }
}
