/** Which folders a git index records as repositories of their own: git looks into them, and obeys their settings. */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { errorText } from "../../flow/text/harmless.ts";
import { readRegular } from "../tools/small-file.ts";

/**
 * Paths from the top of the working tree, as bytes. `gitDir` holds the index, `common` the settings. Empty where there is
 * no index; throws with the reason where there is one that is not understood, because git may understand it.
 */
export function gitlinksIn(gitDir: string, common: string): readonly Buffer[] {
  const file = join(gitDir, "index");
  const found = lstatSync(file, { throwIfNoEntry: false, bigint: true });
  if (found === undefined) return [];
  const object = objectBytes(join(common, "config"));
  const stamp = [found.ino, found.size, found.mtimeNs, found.ctimeNs, object].join(":");
  const known = read.get(file);
  if (known?.stamp === stamp) return known.links;
  const index = indexAt(file, object);
  if (index === null) return [];
  const links =
    index.base === null ? linksOf(index.entries) : joined(index, sharedWith(gitDir, index.base, object));
  // The shared part can change by itself.
  if (index.base === null) read.set(file, { stamp, links });
  return links;
}

/** A large index is not read again for each command. */
const read = new Map<string, { readonly stamp: string; readonly links: readonly Buffer[] }>();

type Entry = { readonly path: Buffer; readonly isLink: boolean };
type Index = {
  readonly entries: readonly Entry[];
  /** Of a split index: the file with the other entries, and which of those the first ones here take the place of. */
  readonly base: Base | null;
};
type Base = { readonly name: string; readonly replaced: readonly number[] };

const MOST_BYTES = 512 * 1024 * 1024;
const MOST_CONFIG_BYTES = 4 * 1024 * 1024;

function indexAt(file: string, object: number): Index | null {
  const bytes = readRegular(file, MOST_BYTES);
  if (bytes === null) return null;
  try {
    return parseIndex(bytes, object);
  } catch (error) {
    throw new Error(`${file} is not understood (${errorText(error)})`, { cause: error });
  }
}

function sharedWith(gitDir: string, { name }: Base, object: number): readonly Entry[] {
  if (/^0+$/.test(name)) return [];
  const file = join(gitDir, `sharedindex.${name}`);
  const shared = indexAt(file, object);
  if (shared === null) throw new Error(`${file} is missing`);
  if (shared.base !== null) throw new Error(`${file} is not understood (it is split again)`);
  return shared.entries;
}

/** What was deleted from the shared part counts too: that is never too few. */
function joined({ entries, base }: Index, shared: readonly Entry[]): readonly Buffer[] {
  const replaced = base?.replaced ?? [];
  const named = entries.map((entry, at): Entry => {
    if (at >= replaced.length) return entry;
    const instead = shared[replaced[at]!];
    if (instead === undefined || entry.path.length > 0) throw new Error("the split index is not understood");
    return { path: instead.path, isLink: entry.isLink };
  });
  if (named.some(({ path }) => path.length === 0)) throw new Error("the split index is not understood");
  return linksOf([...shared, ...named]);
}

function linksOf(entries: readonly Entry[]): readonly Buffer[] {
  return entries.flatMap(({ path, isLink }) => (isLink ? [path] : []));
}

/** How long the name of an object is: git reads it from this file alone, without what it includes. */
function objectBytes(config: string): number {
  const text = readRegular(config, MOST_CONFIG_BYTES)?.toString("latin1") ?? "";
  const named = text.match(/objectformat/gi)?.length ?? 0;
  const formats = [...text.matchAll(/\bobjectformat\s*=\s*"?(sha1|sha256)"?\s*$/gim)].map(([, name]) => name);
  if (formats.length !== named || new Set(formats).size > 1)
    throw new Error(`${config} is not understood (extensions.objectFormat)`);
  return formats[0]?.toLowerCase() === "sha256" ? 32 : 20;
}

const GITLINK = 0o160000;
const KIND = 0o170000;
/** Times, ids, mode, owner and size; then the name of the object; then flags. */
const STATS = 40;
const EXTENDED = 0x4000;
const LENGTH = 0x0fff;

/** As `gitformat-index` describes versions 2, 3 and 4. Whatever is not as git writes it is refused. */
function parseIndex(index: Buffer, object: number): Index {
  if (index.toString("latin1", 0, 4) !== "DIRC") throw new Error("it has another signature");
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  if (version < 2 || version > 4) throw new Error(`its version is ${version}`);
  const entries: Entry[] = [];
  const starts: number[] = [];
  let at = 12;
  let path: Buffer = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry += 1) {
    const start = at;
    starts.push(start);
    const mode = index.readUInt32BE(start + 24);
    const flags = index.readUInt16BE(start + STATS + object);
    at = start + STATS + object + 2 + (version >= 3 && (flags & EXTENDED) !== 0 ? 2 : 0);
    let kept = 0;
    if (version === 4) {
      const cut = readVariable(index, at);
      at = cut.end;
      kept = path.length - cut.value;
      if (kept < 0) throw new Error("a path is shorter than nothing");
    }
    const end = index.indexOf(0, at);
    if (end === -1) throw new Error("it ends in a path");
    path = Buffer.concat([path.subarray(0, kept), index.subarray(at, end)]);
    const length = flags & LENGTH;
    if (length === LENGTH ? path.length < LENGTH : path.length !== length)
      throw new Error("a path has another length than it says");
    at = version === 4 ? end + 1 : start + ((end - start + 8) & ~7);
    entries.push({ path, isLink: (mode & KIND) === GITLINK });
  }
  return { entries, base: extensions(index, object, at, starts) };
}

/** The part after the entries. Two of its tables say where entries begin: git would believe them. */
function extensions(index: Buffer, object: number, from: number, starts: readonly number[]): Base | null {
  let base: Base | null = null;
  let at = from;
  const end = index.length - object;
  while (at < end) {
    const name = index.toString("latin1", at, at + 4);
    const size = index.readUInt32BE(at + 4);
    const data = index.subarray(at + 8, at + 8 + size);
    at += 8 + size;
    if (at > end) break;
    if (name === "link") {
      if (base !== null) throw new Error("it is split twice");
      base = linkOf(data, object);
    } else if (name === "EOIE") {
      if (data.readUInt32BE(0) !== from) throw new Error("its entries end elsewhere than it says");
    } else if (name === "IEOT") checkBlocks(data, starts);
    else if (!/^[A-Z]/.test(name) && name !== "sdir")
      throw new Error(`it needs the extension ${JSON.stringify(name)}`);
  }
  if (at !== end) throw new Error("it ends elsewhere than it says");
  return base;
}

function checkBlocks(data: Buffer, starts: readonly number[]): void {
  let entry = 0;
  for (let at = 4; at < data.length; at += 8) {
    if (data.readUInt32BE(at) !== starts[entry]) throw new Error("a block of entries begins elsewhere");
    entry += data.readUInt32BE(at + 4);
  }
  if (entry !== starts.length) throw new Error("its blocks hold another number of entries");
}

/** Without bitmaps, nothing is deleted or replaced. */
function linkOf(data: Buffer, object: number): Base {
  const name = data.toString("hex", 0, object);
  if (data.length < object) throw new Error("it does not say what it shares");
  if (data.length === object) return { name, replaced: [] };
  const deleted = bitsIn(data, object);
  return { name, replaced: bitsIn(data, deleted.end).bits };
}

const MOST_BITS = 16 * 1024 * 1024;

/** An EWAH bitmap: each marker word counts words that are all the same, and the words after it that are written out. */
function bitsIn(data: Buffer, from: number): { readonly bits: readonly number[]; readonly end: number } {
  const words = data.readUInt32BE(from + 4);
  const start = from + 8;
  const bits: number[] = [];
  let bit = 0;
  for (let word = 0; word < words;) {
    const marker = data.readBigUInt64BE(start + 8 * word++);
    const same = 64 * Number((marker >> 1n) & 0xffff_ffffn);
    const literal = Number(marker >> 33n);
    if (bit + same + 64 * literal > MOST_BITS) throw new Error("a bitmap is too long");
    if ((marker & 1n) === 1n) for (let n = 0; n < same; n += 1) bits.push(bit + n);
    bit += same;
    for (let n = 0; n < literal; n += 1, bit += 64) {
      const value = data.readBigUInt64BE(start + 8 * word++);
      for (let at = 0; at < 64; at += 1) if (((value >> BigInt(at)) & 1n) === 1n) bits.push(bit + at);
    }
  }
  return { bits, end: start + 8 * words + 4 };
}

/** As offsets are written in pack files. */
function readVariable(index: Buffer, from: number): { readonly value: number; readonly end: number } {
  let at = from;
  let byte = index.readUInt8(at++);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    if (at - from > 4) throw new Error("a number is too long");
    byte = index.readUInt8(at++);
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return { value, end: at };
}
