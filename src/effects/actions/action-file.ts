/** The act of a block that writes a file: written whole, or added at its end exactly once. */
import { constants } from "node:fs";
import { lstat, open, rename, rm, type FileHandle } from "node:fs/promises";
import type { Pins } from "../../flow/machine/ground.ts";
import { holdsRedacted, losesSecret, REDACTED } from "../../flow/text/redacted.ts";
import { CAREFUL, openToRead, reasonOf } from "../grounded.ts";
import { applied, failedEffect, type Act, type Done } from "./ledger.ts";

export type FileAct = {
  readonly key: string;
  /** Free of links, below the working directory and not protected. */
  readonly parts: readonly string[];
  /** Holds the working directory. */
  readonly pin: () => Pins;
  readonly shown: string;
  readonly content: string;
  readonly mode: "append" | "write";
  /** The detail of an attempt whose end is not recorded. */
  readonly past: string | null;
  /** What a model sees of a text; absent: all of it. */
  readonly tidy?: (text: string) => string;
};

export async function fileAct(it: FileAct): Promise<Act> {
  const { key, shown, past } = it;
  const bytes = Buffer.from(it.content.endsWith("\n") ? it.content : `${it.content}\n`);
  const about = { kind: "action:file", key, target: shown };
  if (it.mode === "write") {
    return {
      ...about,
      detail: `write ${bytes.length} bytes to ${shown}`,
      find: async () => ((await holds(it, bytes)) ? `wrote ${shown}` : null),
      perform: () => attempt(shown, () => replace(it, bytes)),
    };
  }
  const before = past === null ? null : sizeIn(past);
  const earlier = past === null ? NOTHING : await since(it, before, bytes);
  // What is there in part is taken back first, so that the size from before that still counts.
  const from = earlier.kind === "part" && before !== null ? before : await sizeOf(it);
  const done = `appended ${bytes.length} bytes to ${shown}`;
  return {
    ...about,
    detail: `append ${bytes.length} bytes to ${shown}${SIZE}${from}`,
    find: async () => {
      const now = await since(it, past === null ? from : before, bytes);
      return now.kind === "whole" ? done : null;
    },
    perform: () => attempt(shown, () => append(it, bytes, { earlier, from, shown, done })),
  };
}

/** The size before comes last: no name of a file can be taken for it. */
const SIZE = ", whose size is ";

function sizeIn(detail: string): number | null {
  const at = detail.lastIndexOf(SIZE);
  const digits = at === -1 ? "" : detail.slice(at + SIZE.length);
  return /^\d+$/.test(digits) ? Number(digits) : null;
}

type Target = Pick<FileAct, "parts" | "pin">;

async function sizeOf(target: Target): Promise<number> {
  return (await looked(target, (path) => lstat(path)))?.size ?? 0;
}

/** null: there is nothing to look at. */
async function looked<T>({ parts, pin }: Target, look: (path: string) => Promise<T>): Promise<T | null> {
  try {
    using pins = pin();
    return await look(pins.at(parts));
  } catch {
    return null;
  }
}

async function attempt(shown: string, work: () => Promise<Done>): Promise<Done> {
  try {
    return await work();
  } catch (error) {
    return failedEffect(`${shown} was not written: ${reasonOf(error)}`);
  }
}

async function holds(target: Target, bytes: Buffer): Promise<boolean> {
  if ((await sizeOf(target)) !== bytes.length) return false;
  const there = await looked(target, async (path) => {
    await using handle = await openToRead(path);
    return await read(handle, 0, bytes.length);
  });
  return there !== null && there.equals(bytes);
}

/** All or nothing. What a killed process left behind has the name that the same act has again when it is repeated. */
async function replace(it: FileAct, bytes: Buffer): Promise<Done> {
  const { parts, pin, key, shown } = it;
  if (await isSecretLost(it))
    return failedEffect(`${shown} was not written: it holds a secret, which ${REDACTED} would replace`);
  using pins = pin();
  const path = pins.at(parts, "make");
  const existing = await lstat(path).catch(() => null);
  if (existing !== null && !existing.isFile())
    return failedEffect(`${shown} was not written: it is not a file`);
  const temporary = pins.at([
    ...parts.slice(0, -1),
    `.lockstep-${Buffer.from(key).toString("hex").slice(-32)}.tmp`,
  ]);
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

async function isSecretLost(it: FileAct): Promise<boolean> {
  const { content, tidy } = it;
  if (tidy === undefined || !holdsRedacted(content)) return false;
  const length = Math.min(await sizeOf(it), MOST_SINCE);
  const before = await looked(it, async (path) => {
    await using handle = await openToRead(path);
    return (await read(handle, 0, length)).toString("utf8");
  });
  return before !== null && losesSecret(before, tidy(before), content);
}

type Appending = {
  readonly earlier: Since;
  readonly from: number;
  readonly shown: string;
  readonly done: string;
};

async function append(
  { parts, pin }: Target,
  bytes: Buffer,
  { earlier, from, shown, done }: Appending,
): Promise<Done> {
  if (earlier.kind === "unknown")
    return failedEffect(
      `nothing was appended to ${shown} a second time: ${earlier.why}; look whether it was the first time`,
    );
  using pins = pin();
  const { O_WRONLY, O_APPEND, O_CREAT } = constants;
  const handle = await open(pins.at(parts, "make"), O_WRONLY | O_APPEND | O_CREAT | CAREFUL, 0o666);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return failedEffect(`${shown} was not written: it is not a file`);
    // Under its other name it may be outside.
    if (stats.nlink > 1) return failedEffect(`${shown} was not written: it has more than one name`);
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
  /** It can no longer be found out. */
  | { readonly kind: "unknown"; readonly why: string };

const NOTHING: Since = { kind: "none" };

/** How much of the text has come to the file since it had the size from before. */
async function since(target: Target, before: number | null, bytes: Buffer): Promise<Since> {
  if (before === null) return { kind: "unknown", why: "how long it was before is not recorded" };
  const size = await sizeOf(target);
  if (size < before) return { kind: "unknown", why: "it is shorter than it was before" };
  if (size === before) return NOTHING;
  if (size - before > MOST_SINCE) return { kind: "unknown", why: "much was added to it meanwhile" };
  const added = await looked(target, async (path) => {
    await using handle = await openToRead(path);
    return await read(handle, before, size - before);
  });
  if (added === null) return { kind: "unknown", why: "it cannot be read" };
  if (added.includes(bytes)) return { kind: "whole" };
  return { kind: bytes.subarray(0, added.length).equals(added) ? "part" : "none" };
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
