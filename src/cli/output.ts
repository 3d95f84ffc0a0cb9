/**
 * The stdout and the stderr of this process. Node's streams for them take 3 ms to load, which is a tenth of a short
 * command: a file or a pipe is written to without them, for as long as waiting for its reader keeps nothing waiting.
 */
import { fstatSync, statSync, writeSync } from "node:fs";
import type { Stream } from "./screen.ts";

export type Output = Required<Stream> & {
  /** Calls `then` once everything written has gone out. */
  readonly afterAll: (then: () => void) => void;
};

/** `mayWait`: whether a write may keep the process waiting. `onLost`: something could not be written. */
export function createOutput(
  descriptor: 1 | 2,
  mayWait: () => boolean,
  onLost: (error: NodeJS.ErrnoException) => void,
): Output {
  let opened: NodeJS.WriteStream | null = null;
  const stream = () => {
    if (opened === null) {
      opened = descriptor === 1 ? process.stdout : process.stderr;
      opened.on("error", onLost);
    }
    return opened;
  };
  // Only a device can be a terminal.
  const isDevice = isDeviceAt(descriptor);
  return {
    write: (text) => {
      if (opened !== null || isDevice || !mayWait()) return stream().write(text);
      const rest = writeNow(descriptor, Buffer.from(text), onLost);
      return rest === null || stream().write(rest);
    },
    get isTTY() {
      return isDevice && stream().isTTY;
    },
    get columns() {
      return isDevice ? stream().columns : 0;
    },
    afterAll: (then) => {
      // An empty write fails on a full device too, and then nothing was lost: only what is still on its way is waited for.
      if (opened !== null && opened.writableLength > 0) opened.write("", then);
      else setImmediate(then);
    },
  };
}

/** What only a stream can write, because the descriptor does not wait for its reader; null: nothing is left. */
function writeNow(
  descriptor: number,
  bytes: Buffer,
  onLost: (error: NodeJS.ErrnoException) => void,
): Buffer | null {
  let rest = bytes;
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(descriptor, rest));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return rest;
    onLost(error as NodeJS.ErrnoException);
  }
  return null;
}

function isDeviceAt(descriptor: number): boolean {
  try {
    const stats = fstatSync(descriptor);
    if (stats.isFile() || stats.isFIFO() || stats.isSocket()) return false;
    return stats.rdev !== statSync("/dev/null").rdev;
  } catch {
    return true; // Node's stream knows what to do
  }
}
