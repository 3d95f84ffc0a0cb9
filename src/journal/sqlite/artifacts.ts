/**
 * Entries that are too large for a row: each is a file beside the database, `artifacts/<2 digits>/<sha256>`, named by
 * what it holds. The row keeps that name instead. A file is on disk before the row that names it can be committed.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { artifactDamaged, journalErrorCode, unavailable } from "../errors.ts";
import { fileInside, insideState } from "./inside.ts";

/** In characters of JSON. What is longer is kept in a file. */
export const LARGEST_ROW = 256 * 1024;

/** What a row holds in the place of its entry; no JSON begins like this. The bytes are those of the entry. */
const REFERENCE = /^sha256:([0-9a-f]{64}):(\d+)$/;

/** The names that we give to folders and files, also to a file that is half written. Nothing else is ever removed. */
const FOLDER = /^[0-9a-f]{2}$/;
const FILE = /^[0-9a-f]{64}(?:\.[\w-]+)?$/;

/** SQL over `body`: whether it is a reference, the digest in it, and the bytes of the entry either way. */
export const SQL = {
  isReference: "body >= 'sha256:' AND body < 'sha256;'",
  digest: "substr(body, 8, 64)",
  bytes: "iif(body >= 'sha256:' AND body < 'sha256;', CAST(substr(body, 73) AS INTEGER), octet_length(body))",
} as const;

export type Artifacts = {
  /**
   * Gives what the row is to hold. Only to be called inside a write transaction on the journal, before anything is
   * written in it: the transaction keeps other processes from removing a file that no row names yet. Throws
   * JOURNAL_UNAVAILABLE.
   */
  readonly keep: (body: string) => string;
  /** The entry's JSON, from what its row holds. Throws JOURNAL_UNAVAILABLE where the file is gone or was changed. */
  readonly restore: (row: string, run: string, seq: number) => string;
  /** What the row of an entry names; null: the entry is in the row. */
  readonly named: (row: string) => string | null;
  /** The names of all files: digests, and the names of files that are half written, which are never in a row. */
  readonly names: () => readonly string[];
  /** Removes files by name. Only to be called inside a write transaction on the journal. */
  readonly remove: (names: readonly string[]) => void;
};

/** `ownId` keeps the half-written files of two processes apart. Nothing is made before it is needed. */
export function createArtifacts(directory: string, ownId: string): Artifacts {
  const root = join(directory, "artifacts");
  const folderOf = (digest: string) => join(root, digest.slice(0, 2));
  const plain = (digest: string) => fileInside(directory, "artifacts", digest.slice(0, 2), digest);

  return {
    keep(body) {
      if (body.length <= LARGEST_ROW) return body;
      const bytes = Buffer.from(body);
      const digest = createHash("sha256").update(bytes).digest("hex");
      const folder = folderOf(digest);
      try {
        plain(digest);
        const made = mkdirSync(folder, { recursive: true, mode: 0o700 });
        writeWhole(join(folder, digest), `.${ownId}`, bytes);
        syncFolder(folder);
        if (made !== undefined) for (const above of [root, directory]) syncFolder(above);
      } catch (cause) {
        throw unavailable(join(folder, digest), cause);
      }
      return `sha256:${digest}:${bytes.length}`;
    },

    restore(row, run, seq) {
      const [, digest, size] = REFERENCE.exec(row) ?? [];
      if (digest === undefined) return row;
      const file = plain(digest);
      let bytes: Buffer;
      try {
        if (lstatSync(file).size !== Number(size)) throw artifactDamaged(file, run, seq, "was changed");
        bytes = readFileSync(file);
      } catch (cause) {
        if (journalErrorCode(cause) === "ENOENT") throw artifactDamaged(file, run, seq, "is gone");
        throw unavailable(file, cause);
      }
      if (createHash("sha256").update(bytes).digest("hex") !== digest)
        throw artifactDamaged(file, run, seq, "was changed");
      return bytes.toString();
    },

    named: (row) => REFERENCE.exec(row)?.[1] ?? null,

    names() {
      const folders = namesIn(insideState(directory, "artifacts")).filter((name) => FOLDER.test(name));
      return folders.flatMap((folder) =>
        namesIn(insideState(directory, "artifacts", folder)).filter(
          (name) => FILE.test(name) && name.startsWith(folder),
        ),
      );
    },

    remove(names) {
      for (const name of names) rmSync(join(folderOf(name), name), { force: true });
    },
  };
}

/** Under its name there is only ever a whole file, even if another process writes the same one at this moment. */
function writeWhole(file: string, suffix: string, bytes: Buffer): void {
  const half = file + suffix;
  try {
    rmSync(half, { force: true });
    const fd = openSync(half, "wx", 0o600);
    try {
      writeFileSync(fd, bytes);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(half, file);
  } catch (cause) {
    rmSync(half, { force: true });
    throw cause;
  }
}

/** A new name is durable once its folder is. Windows has no such thing. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    if (journalErrorCode(cause) === "ENOENT") return [];
    throw cause;
  }
}
