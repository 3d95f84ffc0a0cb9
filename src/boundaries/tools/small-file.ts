/** Reads a file that somebody else may have put there: a regular one, of bounded size, never waiting and never behind a link. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

/** null: there is none. Throws with the reason where it is anything but a regular file of at most `most` bytes. */
export function readRegular(path: string | Buffer, most = 64 * 1024): Buffer | null {
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
  let file: number;
  try {
    file = openSync(path, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new Error(`${String(path)} cannot be read (${code})`, { cause: error });
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error(`${String(path)} is not a regular file`);
    if (stats.size > most) throw new Error(`${String(path)} has more than ${most} bytes`);
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    while (length < bytes.length) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(file);
  }
}
