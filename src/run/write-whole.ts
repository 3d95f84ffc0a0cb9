/** Writing a file so that under its name there is only ever a whole one: an earlier file stays until the new one is on disk. */
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";

/** Throws what the system said. A pipe or a device, such as /dev/stdout, is written to as it is. */
export function writeWhole(path: string, text: string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return writeFileSync(path, text);
  // A link stays a link.
  const file = there === undefined ? path : realpathSync(path);
  if (there !== undefined) accessSync(file, constants.W_OK);
  const draft = `${file}.${process.pid}.new`;
  const handle = openDraft(draft, there?.mode ?? 0o666);
  // Nothing can be made in that folder: writing to the file itself succeeds, or says why not.
  if (handle === null) return writeFileSync(file, text);
  try {
    try {
      writeFileSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function openDraft(draft: string, mode: number): number | null {
  try {
    return openSync(draft, "wx", mode);
  } catch {
    return null;
  }
}
