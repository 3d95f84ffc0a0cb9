/**
 * The rows in the pages of an SQLite file, read without SQLite: every page of rows is read by itself, so that damage to
 * one page, to the schema or to an index does not hide the others. The format is that of https://sqlite.org/fileformat.html.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";

export type Value = null | number | string | Uint8Array;
export type PageRow = { readonly rowid: number; readonly values: readonly Value[] };

export type PageFile = {
  readonly pages: number;
  /** Every row of every table. Pages that cannot be read as rows are left out. */
  readonly rows: () => Generator<PageRow>;
  readonly close: () => void;
};

/** `file` is only read; what its write-ahead log has committed counts. null: it has no pages. */
export function openPages(file: string): PageFile | null {
  const database = openSync(file, "r");
  const log = openLog(`${file}-wal`);
  const close = () => {
    closeSync(database);
    if (log !== null) closeSync(log.handle);
  };
  const bytes = fstatSync(database).size;
  const head = Buffer.alloc(HEAD_BYTES);
  readSync(database, head, 0, HEAD_BYTES, 0);
  const best = pageSizes(head, log?.size)
    .map((size) => createReader(database, bytes, size, log))
    .map((reader) => ({ reader, leaves: leavesIn(reader) }))
    .toSorted((one, other) => other.leaves - one.leaves)[0];
  if (best === undefined || best.reader.pages === 0) {
    close();
    return null;
  }
  const { reader } = best;
  return { pages: reader.pages, rows: () => rowsIn(reader), close };
}

const HEAD_BYTES = 100;
/** The one that Lockstep's files have, unless their head says another. */
const USUAL_SIZE = 4096;
/** As for values in the journal: a length beyond it is damage. */
const MOST_PAYLOAD = 64 * 1024 * 1024;

type Reader = {
  readonly size: number;
  readonly pages: number;
  /** By number, from 1 on; null: it is not in the file. */
  readonly page: (number: number) => Buffer | null;
};

function pageSizes(head: Buffer, ofLog: number | undefined): readonly number[] {
  const written = head.readUInt16BE(16);
  const sizes = [written === 1 ? 65_536 : written, ofLog ?? USUAL_SIZE, USUAL_SIZE];
  return [...new Set(sizes)].filter(isPageSize);
}

function isPageSize(size: number): boolean {
  return size >= 512 && size <= 65_536 && Number.isInteger(Math.log2(size));
}

function createReader(database: number, bytes: number, size: number, log: Log | null): Reader {
  const logged = log?.size === size ? log.frames : new Map<number, number>();
  // No number that a damaged log names makes it larger than the two files can be.
  const most = Math.ceil(bytes / size) + logged.size;
  let pages = Math.ceil(bytes / size);
  for (const number of logged.keys()) if (number <= most) pages = Math.max(pages, number);
  return {
    size,
    pages,
    page(number) {
      if (number < 1) return null;
      const at = logged.get(number);
      const page = Buffer.alloc(size);
      const from = at === undefined ? database : log!.handle;
      const read = readSync(from, page, 0, size, at ?? (number - 1) * size);
      return read === 0 ? null : page;
    },
  };
}

function leavesIn(reader: Reader): number {
  let leaves = 0;
  for (let number = 1; number <= reader.pages; number++) {
    const page = reader.page(number);
    if (page !== null && page[number === 1 ? HEAD_BYTES : 0] === LEAF) leaves += 1;
  }
  return leaves;
}

// The first byte of a page: a page of rows, or one of keys, of which there is nothing to read.
const LEAF = 0x0d;
const OTHERS: ReadonlySet<number> = new Set([0x00, 0x02, 0x05, 0x0a]);

function* rowsIn(reader: Reader): Generator<PageRow> {
  const free = freePages(reader);
  const budget = { left: FOLLOWED * reader.pages };
  for (let number = 1; number <= reader.pages; number++) {
    const page = free.has(number) ? null : reader.page(number);
    const start = number === 1 ? HEAD_BYTES : 0;
    if (page === null || OTHERS.has(page[start]!)) continue;
    const cells = page.readUInt16BE(start + 3);
    const places = new Set<number>();
    for (let cell = 0; cell < cells; cell++) {
      const pointer = start + 8 + 2 * cell;
      if (pointer + 2 > page.length) break;
      places.add(page.readUInt16BE(pointer));
    }
    for (const place of places) {
      const row = rowAt(reader, page, place, budget);
      if (row !== null) yield row;
    }
  }
}

/** Pages of chains that are still followed: in a sound file each is in one chain. */
type Budget = { left: number };
const FOLLOWED = 16;

/** Pages that are not used any more still hold what was removed. */
function freePages(reader: Reader): ReadonlySet<number> {
  const free = new Set<number>();
  let trunk = reader.page(1)?.readUInt32BE(32) ?? 0;
  while (trunk > 0 && trunk <= reader.pages && !free.has(trunk)) {
    free.add(trunk);
    const page = reader.page(trunk);
    if (page === null) break;
    const count = Math.min(page.readUInt32BE(4), reader.size / 4 - 2);
    for (let place = 0; place < count; place++) free.add(page.readUInt32BE(8 + 4 * place));
    trunk = page.readUInt32BE(0);
  }
  return free;
}

/** null: what is there is not a row. */
function rowAt(reader: Reader, page: Buffer, start: number, budget: Budget): PageRow | null {
  try {
    const at = { place: start };
    const length = varint(page, at);
    const rowid = varint(page, at);
    if (length > Math.min(MOST_PAYLOAD, reader.pages * reader.size)) return null;
    const payload = payloadAt(reader, page, at.place, length, budget);
    return payload === null ? null : { rowid, values: valuesOf(payload) };
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** What does not fit on the page goes on in a chain of others. No page is twice in one. */
function payloadAt(
  reader: Reader,
  page: Buffer,
  start: number,
  length: number,
  budget: Budget,
): Buffer | null {
  const { size } = reader;
  const least = Math.floor(((size - 12) * 32) / 255) - 23;
  const there = least + ((length - least) % (size - 4));
  const local = length <= size - 35 ? length : there <= size - 35 ? there : least;
  if (start + local > size) return null;
  const parts = [page.subarray(start, start + local)];
  let left = length - local;
  let next = left === 0 ? 0 : page.readUInt32BE(start + local);
  const seen = new Set<number>();
  while (left > 0) {
    const isOpen = next !== 0 && !seen.has(next) && budget.left > 0;
    const more = isOpen ? reader.page(next) : null;
    if (more === null) return null;
    seen.add(next);
    budget.left -= 1;
    parts.push(more.subarray(4, 4 + Math.min(left, size - 4)));
    left -= size - 4;
    next = more.readUInt32BE(0);
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

function valuesOf(payload: Buffer): readonly Value[] {
  const at = { place: 0 };
  const end = varint(payload, at);
  const types: number[] = [];
  while (at.place < end) types.push(varint(payload, at));
  at.place = end;
  return types.map((type) => {
    const length = type >= 12 ? Math.floor((type - 12) / 2) : (LENGTHS[type] ?? NaN);
    const from = at.place;
    at.place += length;
    if (!(at.place <= payload.length)) throw new RangeError("beyond the row");
    if (type >= 12)
      return type % 2 === 1 ? payload.toString("utf8", from, at.place) : payload.subarray(from, at.place);
    if (type === 0) return null;
    if (type >= 8) return type - 8;
    if (type === 7) return payload.readDoubleBE(from);
    return length === 8 ? Number(payload.readBigInt64BE(from)) : payload.readIntBE(from, length);
  });
}

/** Bytes of the values that are not text. */
const LENGTHS = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];

/** SQLite's numbers of 1 to 9 bytes. Those beyond what JavaScript counts exactly are damage anyhow. */
function varint(bytes: Buffer, at: { place: number }): number {
  let value = 0;
  for (let count = 1; count <= 9; count++) {
    const byte = bytes.readUInt8(at.place);
    at.place += 1;
    if (count === 9) return value * 256 + byte;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return value;
  }
  return value;
}

/** The write-ahead log: for each page where its newest committed copy begins. */
type Log = {
  readonly handle: number;
  readonly size: number;
  readonly frames: ReadonlyMap<number, number>;
};

/** null: there is none, or it cannot be read. */
function openLog(file: string): Log | null {
  let handle: number;
  try {
    // A pipe in its place would be waited for.
    if (!lstatSync(file).isFile()) return null;
    handle = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch {
    return null;
  }
  const head = Buffer.alloc(32);
  const isWhole = readSync(handle, head, 0, 32, 0) === 32;
  const size = head.readUInt32BE(8);
  if (!isWhole || head.readUInt32BE(0) >>> 1 !== LOG_MAGIC >>> 1 || !isPageSize(size)) {
    closeSync(handle);
    return null;
  }
  return { handle, size, frames: framesOf(handle, head, size) };
}

const LOG_MAGIC = 0x377f0682;
const FRAME_BYTES = 24;

/**
 * Each frame is held against the checksum of the one before it, as that is written there: one that is damaged is left
 * out and does not hide those after it. Frames of an earlier log have another salt.
 */
function framesOf(handle: number, head: Buffer, size: number): ReadonlyMap<number, number> {
  const isBig = (head.readUInt32BE(0) & 1) === 1;
  const frames = new Map<number, number>();
  let uncommitted: [page: number, at: number][] = [];
  let sums: Sums = [head.readUInt32BE(24), head.readUInt32BE(28)];
  const frame = Buffer.alloc(FRAME_BYTES + size);
  for (let at = 32; readSync(handle, frame, 0, frame.length, at) === frame.length; at += frame.length) {
    if (!frame.subarray(8, 16).equals(head.subarray(16, 24))) break;
    const found = checked(checked(sums, frame.subarray(0, 8), isBig), frame.subarray(FRAME_BYTES), isBig);
    sums = [frame.readUInt32BE(16), frame.readUInt32BE(20)];
    if (found[0] !== sums[0] || found[1] !== sums[1]) continue;
    uncommitted.push([frame.readUInt32BE(0), at + FRAME_BYTES]);
    if (frame.readUInt32BE(4) === 0) continue;
    for (const [page, place] of uncommitted) frames.set(page, place);
    uncommitted = [];
  }
  return frames;
}

type Sums = readonly [number, number];

function checked([first, second]: Sums, bytes: Buffer, isBig: boolean): Sums {
  let [one, two] = [first, second];
  for (let at = 0; at + 8 <= bytes.length; at += 8) {
    one = (one + two + (isBig ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at))) >>> 0;
    two = (two + one + (isBig ? bytes.readUInt32BE(at + 4) : bytes.readUInt32LE(at + 4))) >>> 0;
  }
  return [one, two];
}
