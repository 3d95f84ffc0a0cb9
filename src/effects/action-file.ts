/** The act of a block that writes a file: written whole, or added at its end exactly once. */
import { constants } from "node:fs";
import { mkdir, open, readFile, realpath, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { applied, failed, type Act, type Done } from "./ledger.ts";

export type FileAct = {
  readonly key: string;
  /** Free of links, inside of the working directory and not protected. */
  readonly path: string;
  readonly shown: string;
  readonly content: string;
  readonly mode: "append" | "write";
  /** What was said of an attempt that nobody heard the end of. */
  readonly past: string | null;
};

export async function fileAct(it: FileAct): Promise<Act> {
  const { key, path, shown, past } = it;
  const bytes = Buffer.from(it.content.endsWith("\n") ? it.content : `${it.content}\n`);
  const about = { kind: "action:file", key, target: shown };
  if (it.mode === "write") {
    return {
      ...about,
      detail: `write ${bytes.length} bytes to ${shown}`,
      find: async () => ((await holds(path, bytes)) ? `wrote ${shown}` : null),
      perform: () => attempt(shown, () => replace(path, bytes, key, shown)),
    };
  }
  const before = past === null ? null : sizeIn(past);
  const earlier = past === null ? NOTHING : await since(path, before, bytes);
  // What is there in part is taken back first, so that the size from before that still counts.
  const from = earlier.kind === "part" && before !== null ? before : await sizeOf(path);
  const done = `appended ${bytes.length} bytes to ${shown}`;
  return {
    ...about,
    detail: `append ${bytes.length} bytes to ${shown}${SIZE}${from}`,
    find: async () => {
      const now = await since(path, past === null ? from : before, bytes);
      return now.kind === "whole" ? done : null;
    },
    perform: () => attempt(shown, () => append(path, bytes, { earlier, from, shown, done })),
  };
}

/** The size before comes last: no name of a file can be taken for it. */
const SIZE = ", whose size is ";

function sizeIn(detail: string): number | null {
  const at = detail.lastIndexOf(SIZE);
  const digits = at === -1 ? "" : detail.slice(at + SIZE.length);
  return /^\d+$/.test(digits) ? Number(digits) : null;
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.size ?? 0;
}

async function attempt(shown: string, work: () => Promise<Done>): Promise<Done> {
  try {
    return await work();
  } catch (error) {
    return failed(`${shown} was not written: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function holds(path: string, bytes: Buffer): Promise<boolean> {
  if ((await sizeOf(path)) !== bytes.length) return false;
  const there = await readFile(path).catch(() => null);
  return there !== null && there.equals(bytes);
}

/** All or nothing. What a killed process left behind has the name that the same act has again when it is repeated. */
async function replace(path: string, bytes: Buffer, key: string, shown: string): Promise<Done> {
  const existing = await stat(path).catch(() => null);
  if (existing !== null && !existing.isFile()) return failed(`${shown} was not written: it is no file`);
  const folder = await folderOf(path);
  const temporary = join(folder, `.lockstep-${Buffer.from(key).toString("hex").slice(-32)}.tmp`);
  await rm(temporary, { force: true });
  try {
    const handle = await open(temporary, "wx", 0o666);
    try {
      if (existing !== null) await handle.chmod(existing.mode & 0o777);
      await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return applied(`wrote ${shown}`);
}

async function folderOf(path: string): Promise<string> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  if ((await realpath(folder)) !== folder) throw new Error("its folder became a link");
  return folder;
}

type Appending = {
  readonly earlier: Since;
  readonly from: number;
  readonly shown: string;
  readonly done: string;
};

async function append(path: string, bytes: Buffer, { earlier, from, shown, done }: Appending): Promise<Done> {
  if (earlier.kind === "unknown")
    return failed(
      `nothing was appended to ${shown} a second time: ${earlier.why}; look whether it was the first time`,
    );
  await folderOf(path);
  const { O_WRONLY, O_APPEND, O_CREAT } = constants;
  // Should a link or a pipe have taken its place, it is not followed and not waited for.
  const careful = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
  const handle = await open(path, O_WRONLY | O_APPEND | O_CREAT | careful, 0o666);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return failed(`${shown} was not written: it is no file`);
    // Under its other name it may be outside.
    if (stats.nlink > 1) return failed(`${shown} was not written: it has more than one name`);
    if (earlier.kind === "part") await handle.truncate(from);
    await handle.appendFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return applied(done);
}

type Since =
  | { readonly kind: "none" | "part" | "whole" }
  /** It cannot be told any more. */
  | { readonly kind: "unknown"; readonly why: string };

const NOTHING: Since = { kind: "none" };

/** How much of the text has come to the file since it had the size from before. */
async function since(path: string, before: number | null, bytes: Buffer): Promise<Since> {
  if (before === null) return { kind: "unknown", why: "how long it was before is not recorded" };
  const size = await sizeOf(path);
  if (size < before) return { kind: "unknown", why: "it is shorter than it was before" };
  if (size === before) return NOTHING;
  if (size - before > MOST_SINCE) return { kind: "unknown", why: "much was added to it meanwhile" };
  const handle = await open(path, "r").catch((error: Error) => error);
  if (handle instanceof Error) return { kind: "unknown", why: handle.message };
  try {
    const added = await read(handle, before, size - before);
    if (added.includes(bytes)) return { kind: "whole" };
    return { kind: bytes.subarray(0, added.length).equals(added) ? "part" : "none" };
  } finally {
    await handle.close();
  }
}

const MOST_SINCE = 16 * 1024 * 1024;

async function read(handle: FileHandle, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let done = 0;
  for (let got = -1; got !== 0 && done < length; done += got) {
    ({ bytesRead: got } = await handle.read(buffer, done, length - done, from + done));
  }
  return buffer.subarray(0, done);
}
