/** Writing a small file into a folder where commands may write too: whole or not at all, and never through a link. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** What is there under the name is replaced, a link as well as a file. */
export function putFile(file: string, text: string, mode = 0o666): void {
  const draft = `${file}.new`;
  rmSync(draft, { recursive: true, force: true });
  const open = openSync(draft, "wx", mode);
  try {
    writeFileSync(open, text);
    fsyncSync(open);
  } finally {
    closeSync(open);
  }
  renameSync(draft, file);
}
