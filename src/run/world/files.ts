/**
 * Reading files: only regular ones, never waiting, and no more than fits. Those of a project below its folder and nowhere
 * else; links are followed only while they stay inside.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import type { Stats } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { FileRead, FileTree } from "../../flow/files.ts";

export { makeFolder } from "../../journal/make-folder.ts";

export function createFiles(root: string): FileTree {
  const top = resolve(root);
  const below = top === "/" ? top : `${top}/`;
  const folders = new Map<string, string>([[top, realpathSync.native(top)]]);

  /** The true place of a folder below the root. What was asked once is remembered. */
  function realFolder(folder: string): string {
    const known = folders.get(folder);
    if (known !== undefined) return known;
    const real = realPlace(folder);
    folders.set(folder, real);
    return real;
  }

  /** Only a link has to be followed; anything else lies where its folder does. */
  function realPlace(path: string): string {
    const folder = dirname(path);
    const parent = realFolder(folder);
    if (lstatSync(path).isSymbolicLink()) return realpathSync.native(path);
    return parent === folder ? path : join(parent, basename(path));
  }

  /** Where a path really leads. Throws when there is nothing. */
  function placeOf(
    path: string,
  ): { readonly real: string } | { readonly kind: "refused"; readonly why: string } {
    if (path.includes("\0")) return { kind: "refused", why: "the path holds a NUL character" };
    if (isAbsolute(path)) return { kind: "refused", why: "the path is absolute" };
    const full = resolve(top, path);
    if (!isInsideProject(top, full)) return { kind: "refused", why: "the path leaves the project" };
    const real = full === top ? realFolder(top) : realPlace(full);
    return isInsideProject(realFolder(top), real)
      ? { real }
      : { kind: "refused", why: "a link leads out of the project" };
  }

  /** Nothing in a plain path could lead elsewhere but a link. null: there is one, or there may be. */
  function openPlainly(path: string): number | null {
    if (!constants.O_NOFOLLOW || !PLAIN.test(path) || realFolder(top) !== top) return null;
    const written = `${below}${path}`;
    const folder = written.slice(0, written.lastIndexOf("/")) || "/";
    if (realFolder(folder) !== folder) return null;
    try {
      return openSync(written, TO_READ | constants.O_NOFOLLOW);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") throw error;
      return null;
    }
  }

  function read(path: string): FileRead {
    try {
      const file = openPlainly(path);
      if (file !== null) return { kind: "text", text: readOpened(file, MOST_PROJECT_BYTES) };
      const place = placeOf(path);
      return "real" in place ? { kind: "text", text: readTextFile(place.real, MOST_PROJECT_BYTES) } : place;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR"
        ? { kind: "missing" }
        : { kind: "unreadable", why: message };
    }
  }

  function list(folder: string): readonly string[] | null {
    try {
      const place = placeOf(folder);
      return "real" in place ? readdirSync(place.real).toSorted() : null;
    } catch {
      return null;
    }
  }

  return { read, list };
}

/** What one file of an agent may hold: it is read by many rules, and all of them have to be done within seconds. */
export const MOST_PROJECT_BYTES = 8 * 1024 * 1024;
/** What a setting or a script may hold. */
export const MOST_BYTES = 32 * 1024 * 1024;
/** A whole run in one file. */
export const MOST_BUNDLE_BYTES = 256 * 1024 * 1024;

/**
 * The text of a file. Throws with a plain reason when it cannot be had: a pipe or a device would keep us waiting, and a
 * file without end would fill the memory.
 */
export function readTextFile(path: string, most = MOST_BYTES): string {
  return readOpened(openToRead(path), most);
}

function readOpened(file: number, most: number): string {
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error(`it is ${kindOf(stats)}, not a regular file`);
    if (stats.size > most) throw new Error(`it has ${stats.size} bytes; the limit is ${most}`);
    return readUpTo(file, stats.size, most);
  } finally {
    closeSync(file);
  }
}

/** The text of a file that need not be there; empty where it cannot be read. */
export function textIfAny(path: string, most: number): string {
  try {
    // Most of these do not exist, and an exception for each would cost more than all the rest.
    return statIfAny(path)?.isFile() === true ? readTextFile(path, most) : "";
  } catch {
    return "";
  }
}

function openToRead(path: string): number {
  try {
    return openSync(path, TO_READ);
  } catch (cause) {
    const { code = "", message } = cause as NodeJS.ErrnoException;
    throw Object.assign(new Error(UNREADABLE[code] ?? message, { cause }), { code });
  }
}

const TO_READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const UNREADABLE: { readonly [code: string]: string } = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EACCES: "you may not read it",
  EPERM: "you may not read it",
};

/** The text of a file that a person wrote: some editors begin it with a byte order mark. */
export function readWritten(path: string, most = MOST_BYTES): string {
  const text = readTextFile(path, most);
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Some files say that they are empty and are not, and a file can grow meanwhile. */
function readUpTo(file: number, size: number, most: number): string {
  let bytes = Buffer.allocUnsafe(size + 1);
  let length = 0;
  for (;;) {
    const read = readSync(file, bytes, length, bytes.length - length, null);
    length += read;
    // One byte more was asked for than the file has, and did not come.
    const isWhole = length === size && size > 0;
    if (read === 0 || isWhole) return bytes.toString("utf8", 0, length);
    if (length > most) throw new Error(`it has more than ${most} bytes`);
    if (length < bytes.length) continue;
    const larger = Buffer.allocUnsafe(bytes.length * 2 + 64 * 1024);
    bytes.copy(larger, 0, 0, length);
    bytes = larger;
  }
}

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return "a folder";
  if (stats.isFIFO()) return "a pipe";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

/** Names of ordinary letters with single slashes between them. */
const PLAIN = /^(?:\.?[\w@-][\w@.-]*\/)*\.?[\w@-][\w@.-]*$/;

/** Where it really is, also if its last parts do not exist yet. */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path === dirname(path) ? path : join(realPath(dirname(path)), basename(path));
  }
}

/** What a path leads to. Nothing, where that cannot be told: a link may lead to itself, or to what is not ours to see. */
export function statIfAny(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

export function isFolder(path: string): boolean {
  return statIfAny(path)?.isDirectory() ?? false;
}

/** Links are not followed. */
export function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // a file is in the place of a folder, or it is not ours to see
  }
}

/** By path segments: `root-evil` is not inside `root`, and `..foo` is a good name. */
export function isInsideProject(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
