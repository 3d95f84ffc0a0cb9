/** Whether the disk of a worker has room for the files of more runs. */
import { statfsSync } from "node:fs";
import { RunnerError } from "../engine/ports.ts";
import { shownInLine } from "../flow/text/harmless.ts";

/** With less than that git cannot put the files of a run into place, and what is under way needs the rest. */
const LEAST_BYTES = 50 * 2 ** 20;
const LEAST_FILES = 1000;

/** NOT_WRITABLE where there is none: a run that is taken all the same would only fail. */
export function requireRoom(folder: string): void {
  const { bavail, bsize, files, ffree } = statfsSync(folder);
  // Some file systems do not count files.
  const isFull = bavail * bsize < LEAST_BYTES || (files > 0 && ffree < LEAST_FILES);
  if (!isFull) return;
  const left = `${Math.floor((bavail * bsize) / 2 ** 20)} MB and ${ffree} files`;
  throw new RunnerError(
    "NOT_WRITABLE",
    `The disk of ${shownInLine(folder, 400)} is full (${left} are left), so this worker takes no run. Make room there, or start it with --work DIR on another disk.`,
  );
}
