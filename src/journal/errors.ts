/** Every message this room can refuse with: what was met, where, and what to do about it. */
import { RunnerError } from "../engine/ports.ts";
import { errorText } from "../flow/text/harmless.ts";
import { isTime } from "../flow/recorded.ts";

/** Who holds a run, as far as a person needs to know: enough to find the process. */
export type Holder =
  | "this process"
  | {
      readonly pid: number;
      readonly since: number;
      /** In which other place the number means that process; absent: it does here. */
      readonly elsewhere?: string;
    };

export function runUnknown(run: string): RunnerError {
  return new RunnerError("RUN_UNKNOWN", `There is no run ${run} here. List the runs to see their ids.`);
}

function notUsable(message: string, cause?: unknown): RunnerError {
  return new RunnerError("JOURNAL_UNAVAILABLE", message, { cause });
}

/** What to do about a damaged file. */
const RESCUE = "Restore the file from a copy, or rescue what can be read with: lockstep salvage";

/** `run`: the name that stands for it. */
export function runDamaged(path: string, run: string): RunnerError {
  return notUsable(
    `${path}: the row of run ${run} is not valid or does not fit its checksum, so the file was changed from outside or the disk is faulty. Restore the file from a copy, rescue what can be read with "lockstep salvage", or remove the run with: lockstep runs --prune ${run}`,
  );
}

/** The record of a run was changed from outside, or lacks a part: trying again does not help, unlike with a server that is away. */
export class RecordDamaged extends RunnerError {
  constructor(message: string, cause?: unknown) {
    super("JOURNAL_UNAVAILABLE", message, { cause });
  }
}

/** A run that can be read up to the entry before `seq`. */
export class EntryDamaged extends RecordDamaged {
  readonly seq: number;
  constructor(message: string, seq: number, cause?: unknown) {
    super(message, cause);
    this.seq = seq;
  }
}

export function runExists(run: string): RunnerError {
  return new RunnerError(
    "RUN_EXISTS",
    `There is a run ${run} already. Resume it, or begin one with another id.`,
  );
}

/** What a newer program wrote may mean something that this one does not know. */
export function runNewer(run: string): RunnerError {
  return new RunnerError(
    "JOURNAL_UNAVAILABLE",
    `Run ${run} was written by a newer version of Lockstep, so this one does not go on with it. Update Lockstep, and try again.`,
  );
}

export function runHeld(run: string, holder: Holder): RunnerError {
  return new RunnerError(
    "RUN_OWNED_ELSEWHERE",
    `Run ${run} is being driven by ${nameOf(holder)}. Wait until that is done, or stop it, and try again: what was committed is kept. If it hangs: lockstep resume ${run} --take-over`,
  );
}

/** `holder` is null when the writer itself released the run and no one has claimed it since. */
export function writerStale(run: string, holder: Holder | null): RunnerError {
  return new RunnerError(
    "RUN_OWNED_ELSEWHERE",
    holder === null
      ? `Run ${run} was released by this writer, so nothing was written. Claim the run again to go on with it.`
      : `Run ${run} was claimed by ${nameOf(holder)} meanwhile, so nothing was written. Leave the run to that one.`,
  );
}

export function outOfOrder(run: string, seq: number): RunnerError {
  return new RunnerError(
    "ENTRY_OUT_OF_ORDER",
    `Entry ${seq} does not follow the last one of run ${run}, so nothing was written. Read the run again before appending to it.`,
  );
}

export function closed(path: string): RunnerError {
  return notUsable(`${path} was closed by this process. Open the journal again.`);
}

export function readOnly(path: string): RunnerError {
  return notUsable(`${path} ${READ_ONLY}`);
}

/** `what`: what is wrong with it. */
export function entryDamaged(
  path: string,
  run: string,
  seq: number,
  what: string,
  cause?: unknown,
): EntryDamaged {
  return new EntryDamaged(
    `${path}: entry ${seq} of run ${run} ${what}, so the file was changed from outside or the disk is faulty. ${wayOut(run, seq)}`,
    seq,
    cause,
  );
}

export function entryMissing(path: string, run: string, seq: number): EntryDamaged {
  return new EntryDamaged(
    `${path}: entry ${seq} of run ${run} is missing: the run was salvaged without it, the file was changed from outside, or the disk is faulty. ${wayOut(run, seq)}`,
    seq,
  );
}

/** Salvage finds entries on other pages that SQLite cannot reach. */
export function pageDamaged(path: string, run: string, seq: number, cause: unknown): EntryDamaged {
  return new EntryDamaged(
    `${path}: entry ${seq} of run ${run} is on a damaged page, so the file was changed from outside or the disk is faulty. ${RESCUE}`,
    seq,
    cause,
  );
}

/** What to do about one entry. Salvage gives no more of its run than what can be read already. */
function wayOut(run: string, seq: number): string {
  const kept = seq > 1 ? `, keep what comes before with "lockstep export ${run}"` : "";
  return `Restore the file from a copy${kept}, or remove the run with: lockstep runs --prune ${run}`;
}

/** `what` is what became of the file. */
export function artifactDamaged(file: string, run: string, seq: number, what: string): EntryDamaged {
  return new EntryDamaged(
    `${file} ${what}: it holds entry ${seq} of run ${run}, which cannot be read without it. ${wayOut(run, seq)}`,
    seq,
  );
}

/** `runs`: ids of some of the runs that were recorded with it, `count` of them in all. */
export function flowDamaged(
  path: string,
  digest: string,
  runs: readonly string[],
  count: number,
  cause?: unknown,
): RunnerError {
  const named =
    runs.length === count ? runs.join(", ") : `${runs.join(", ")} and ${count - runs.length} more`;
  return notUsable(
    `${path}: the flow ${digest.slice(0, 12)} was changed from outside or the disk is faulty, so the runs that were recorded with it cannot be read: ${named}. Their entries still can, with: lockstep show RUN --events. ${RESCUE}`,
    cause,
  );
}

/** `what` is what happened to it. */
export function fileGone(path: string, what: string): RunnerError {
  return notUsable(
    `${path} ${what} while the run was using it. Nothing more is recorded, so the run stops here. If the file still exists elsewhere, put it back and resume the run; what was committed before is in it.`,
  );
}

export function versionUnknown(path: string, version: number, known: number): RunnerError {
  return notUsable(
    `${path} was written by a newer Lockstep (schema ${version}; this one knows ${known}). Update Lockstep to read it.`,
  );
}

export function notAJournal(path: string): RunnerError {
  return notUsable(
    `${path} is a database of something else. Move it away, or choose another state directory.`,
  );
}

export function emptyFile(path: string): RunnerError {
  return notUsable(
    `${path} is empty (0 bytes): something has truncated it. Restore it from a copy, or remove it to begin anew.`,
  );
}

/** `what` is what is in it that we never made, or that is missing. */
export function schemaForeign(path: string, what: string): RunnerError {
  return notUsable(
    `${path} has another schema than a journal of Lockstep: ${what}. It was changed from outside and is not used. Move it away, or choose another state directory.`,
  );
}

export function tooLarge(path: string, bytes: number, most: number): RunnerError {
  return notUsable(
    `${path} has ${bytes} bytes, and a journal that you did not make here is looked at only up to ${most}. If you know it, accept it with --trust-journal.`,
  );
}

/** Whatever the disk, the operating system or SQLite said, in words with a way out. */
export function unavailable(path: string, cause: unknown): RunnerError {
  if (cause instanceof RunnerError) return cause;
  const said = errorText(cause);
  const trouble = TROUBLES.find(({ codes }) => codes.includes(journalErrorCode(cause)));
  const words = trouble?.words ?? "could not be used. Look at what was said about it:";
  const all = words.includes(SAID) ? words.replace(SAID, () => `(${said})`) : `${words} (${said})`;
  return notUsable(`${path} ${all}`, cause);
}

/** SQLite's primary result code, the name of a system error, or "" for anything else. */
export function journalErrorCode(error: unknown): number | string {
  if (!(error instanceof Error)) return "";
  if ("errcode" in error && typeof error.errcode === "number") return error.errcode & 0xff;
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** The SQLite result codes this room distinguishes; see https://sqlite.org/rescode.html. */
export const SQLITE = {
  PERM: 3,
  BUSY: 5,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  NOTADB: 26,
} as const;

/** Stands where the words of SQLite come before a command, which is to be pasted without them. */
const SAID = "(SAID)";

const READ_ONLY =
  "cannot be written: it is read-only here. Make file and folder writable, or choose another state directory.";

const TROUBLES: readonly { readonly codes: readonly (number | string)[]; readonly words: string }[] = [
  {
    codes: [SQLITE.FULL, "ENOSPC", "EDQUOT"],
    words: "could not grow: the disk is full. Make room and resume; what was committed before is kept.",
  },
  {
    codes: [SQLITE.IOERR, "EIO", "EFBIG"],
    words:
      "could not be read or written: the disk or a quota refused. Look at the disk and resume; what was committed before is kept.",
  },
  {
    codes: [SQLITE.NOTADB],
    words:
      "is not a database (SAID). Rescue what can be read with: lockstep salvage. Or move it away, and a new journal is begun.",
  },
  {
    codes: [SQLITE.CORRUPT],
    words:
      "is damaged (SAID). Restore the file from a copy, or rescue what can be read with: lockstep salvage",
  },
  {
    codes: [SQLITE.BUSY],
    words: "was held by another process for too long. Let that process finish or stop it, and try again.",
  },
  { codes: [SQLITE.READONLY, SQLITE.PERM, "EROFS"], words: READ_ONLY },
  {
    codes: [SQLITE.CANTOPEN, "EACCES", "EPERM"],
    words: "cannot be opened. Check the permissions of file and folder, or choose another state directory.",
  },
  {
    codes: ["EEXIST", "ENOTDIR"],
    words:
      "cannot be made: a file is where a folder should be. Move it away, or choose another state directory.",
  },
];

function nameOf(holder: Holder): string {
  if (holder === "this process") return holder;
  const since = isTime(holder.since) ? ` (since ${new Date(holder.since).toISOString()})` : "";
  const { pid, elsewhere } = holder;
  return elsewhere === undefined
    ? `process ${pid}${since}`
    : `a process ${elsewhere}${since}; its number there is ${pid}, which is another process here`;
}
