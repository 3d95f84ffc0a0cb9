/** A file without a name that takes the output of a program: a pipe of ours would end the program when we end. */
import { randomUUID } from "node:crypto";
import { closeSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type Sink = {
  readonly fd: number;
  /** Gives all that was written, in parts, and closes the file. */
  readonly drain: (write: (part: Buffer) => void) => void;
};

/** null: no file can be made, and a pipe has to do. */
export function openSink(): Sink | null {
  const file = join(tmpdir(), `lockstep-${randomUUID()}`);
  try {
    const fd = openSync(file, "wx+", 0o600);
    rmSync(file);
    return { fd, drain: (write) => drain(fd, write) };
  } catch {
    return null;
  }
}

function drain(fd: number, write: (part: Buffer) => void): void {
  for (let at = 0; ;) {
    const part = Buffer.alloc(PART_BYTES);
    const read = readSync(fd, part, 0, PART_BYTES, at);
    if (read === 0) break;
    write(part.subarray(0, read));
    at += read;
  }
  closeSync(fd);
}

const PART_BYTES = 64 * 1024;
