/** Writing a file so that under its name there is only ever a whole one: an earlier file stays until the new one is on disk. */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { RunnerError } from "../../engine/ports.ts";
import { shellWord } from "../../flow/text/harmless.ts";
import { makeFolder } from "../../journal/make-folder.ts";

/** NOT_WRITABLE, with why in words for a person. `what`: what cannot be done. */
export function notWritable(what: string, path: string, cause: unknown): RunnerError {
  return new RunnerError("NOT_WRITABLE", `${what}: ${whyNot(path, cause)}`, { cause });
}

function whyNot(path: string, cause: unknown): string {
  const { code = "", message = String(cause) } =
    cause instanceof Error ? (cause as NodeJS.ErrnoException) : {};
  const folder = dirname(path);
  switch (code) {
    case "ENOENT":
      return `the folder ${folder} does not exist. Create it with: mkdir -p ${shellWord(folder)}`;
    case "ENOTDIR":
      return `${folder} is not a folder`;
    case "EISDIR":
      return `${path} is a folder`;
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return `you may not write in ${folder}`;
    case "ENOSPC":
      return "the disk is full";
    default:
      return message;
  }
}

/** A file that is being written. `done` puts it under its name; without that, `drop` leaves nothing of it. */
export type Whole = {
  readonly write: (text: string) => void;
  readonly done: () => void;
  readonly drop: () => void;
};

/** All of it throws what the system said. */
export function writeWhole(path: string, text: string): void {
  const file = openWhole(path);
  try {
    file.write(text);
    file.done();
  } catch (error) {
    file.drop();
    throw error;
  }
}

/** A file that a command adds to a project. A repository may hold links that lead out of it, so none is followed. */
export function writeInProject(root: string, file: string, text: string): void {
  requireNoLinks(root, file);
  makeFolder(dirname(join(root, file)));
  writeWhole(join(root, file), text);
}

export function requireNoLinks(root: string, file: string): void {
  const parts = file.split("/");
  for (const place of parts.keys()) {
    const part = parts.slice(0, place + 1).join("/");
    if (lstatSync(join(root, part), { throwIfNoEntry: false })?.isSymbolicLink())
      throw new RunnerError(
        "NOT_WRITABLE",
        `${file} cannot be written: ${part} is a link, and links are not followed. Replace it with a file or folder.`,
      );
  }
}

/** A small file of Lockstep itself, for the user alone: on disk and whole when it returns. */
export function writeOwn(file: string, text: string): void {
  makeFolder(dirname(file), { mode: 0o700 });
  const draft = `${file}.${randomBytes(6).toString("hex")}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: "wx", flush: true });
    renameSync(draft, file);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A pipe or a device, such as /dev/stdout, is written to as it is. */
export function openWhole(path: string): Whole {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return openPlain(path);
  // A link stays a link.
  const file = there === undefined ? path : realpathSync(path);
  if (there !== undefined) accessSync(file, constants.W_OK);
  const draft = `${file}.${process.pid}.new`;
  const handle = openDraft(draft, there?.mode ?? 0o666);
  // Nothing can be made in that folder: writing to the file itself succeeds, or says why not.
  if (handle === null) return openPlain(file);
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(handle);
    isOpen = false;
  };
  return {
    write: (text) => writeFileSync(handle, text),
    done() {
      fsyncSync(handle);
      close();
      renameSync(draft, file);
    },
    drop() {
      close();
      rmSync(draft, { force: true });
    },
  };
}

function openPlain(path: string): Whole {
  const handle = openSync(path, "w");
  const close = () => closeSync(handle);
  return { write: (text) => writeFileSync(handle, text), done: close, drop: close };
}

function openDraft(draft: string, mode: number): number | null {
  try {
    return openSync(draft, "wx", mode);
  } catch {
    return null;
  }
}
