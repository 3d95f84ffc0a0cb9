/** The git index as bytes: which of its entries are repositories, in every version, and what is refused. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gitlinksIn } from "../../../src/boundaries/sandbox/git-index.ts";
import { projectWith } from "../../run/project.ts";

const FILE = 0o100644;
const LINK = 0o120000;
const REPOSITORY = 0o160000;

type Entry = {
  readonly path: string;
  readonly mode?: number;
  readonly isExtended?: boolean;
  readonly said?: number;
};
type Written = {
  readonly entries: readonly Entry[];
  readonly version?: number;
  readonly object?: number;
  readonly signature?: string;
  readonly extensions?: (starts: readonly number[], end: number) => readonly Buffer[];
  readonly more?: Buffer;
};

/** As `gitformat-index` describes it. */
function indexOf({
  entries,
  version = 2,
  object = 20,
  signature = "DIRC",
  extensions = () => [],
  more = Buffer.alloc(0),
}: Written): Buffer {
  const head = Buffer.concat([Buffer.from(signature), u32(version), u32(entries.length)]);
  const starts: number[] = [];
  let bytes = head;
  let before = "";
  for (const { path, mode = FILE, isExtended = false, said = Math.min(path.length, 0xfff) } of entries) {
    starts.push(bytes.length);
    const stats = Buffer.alloc(40);
    stats.writeUInt32BE(mode, 24);
    const flags = Buffer.alloc(2);
    flags.writeUInt16BE(said | (isExtended ? 0x4000 : 0));
    const entry = Buffer.concat([
      stats,
      Buffer.alloc(object, 1),
      flags,
      Buffer.alloc(isExtended ? 2 : 0),
      version === 4 ? prefixed(before, path) : Buffer.from(path),
    ]);
    before = path;
    const end = version === 4 ? entry.length + 1 : (entry.length + 8) & ~7;
    bytes = Buffer.concat([bytes, entry, Buffer.alloc(end - entry.length)]);
  }
  return Buffer.concat([bytes, ...extensions(starts, bytes.length), more, Buffer.alloc(object)]);
}

/** Version 4: how much of the path before is cut off, then the rest. */
function prefixed(before: string, path: string): Buffer {
  let same = 0;
  while (same < before.length && before[same] === path[same]) same += 1;
  return Buffer.concat([varint(before.length - same), Buffer.from(path.slice(same))]);
}

function varint(value: number): Buffer {
  const bytes = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift(0x80 | (--left & 0x7f));
  return Buffer.from(bytes);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function extension(name: string, ...data: readonly Buffer[]): Buffer {
  const all = Buffer.concat(data);
  return Buffer.concat([Buffer.from(name), u32(all.length), all]);
}

/** A bitmap whose words are all written out. */
function bitmap(...bits: readonly number[]): Buffer {
  const word = bits.reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n);
  const words = Buffer.alloc(16);
  words.writeBigUInt64BE(1n << 33n, 0);
  words.writeBigUInt64BE(word, 8);
  return Buffer.concat([u32(64), u32(2), words, u32(0)]);
}

/** The first `count` bits, as a run of ones and then a word. */
function run(words: number): Buffer {
  const marker = Buffer.alloc(8);
  marker.writeBigUInt64BE((BigInt(words) << 1n) | 1n);
  return Buffer.concat([u32(64 * words), u32(1), marker, u32(0)]);
}

function linksIn(index: Buffer, config = "", shared: { readonly [name: string]: Buffer } = {}): string[] {
  const folder = projectWith({ config });
  writeFileSync(join(folder, "index"), index);
  for (const [name, bytes] of Object.entries(shared)) writeFileSync(join(folder, name), bytes);
  return gitlinksIn(folder, folder).map(String);
}

const TREE: readonly Entry[] = [
  { path: "a.txt" },
  { path: "dir/link", mode: LINK },
  { path: "dir/nested", mode: REPOSITORY },
  { path: "dir/nested-too", mode: REPOSITORY },
  { path: `long/${"p".repeat(300)}/x`, mode: FILE },
  { path: "z", mode: REPOSITORY },
];
const NESTED = ["dir/nested", "dir/nested-too", "z"];

for (const version of [2, 3, 4])
  for (const object of [20, 32])
    test(`version ${version}, object names of ${object} bytes`, () => {
      const config = object === 32 ? '[extensions]\n\tobjectFormat = "SHA256"\n' : "";
      const marked = TREE.map((entry, at) => ({ ...entry, isExtended: version > 2 && at % 2 === 0 }));
      assert.deepEqual(linksIn(indexOf({ entries: marked, version, object }), config), NESTED);
    });

test("there may be no index, or an empty one", () => {
  const folder = projectWith({ config: "" });
  assert.deepEqual(gitlinksIn(folder, folder), []);
  assert.deepEqual(linksIn(indexOf({ entries: [] })), []);
});

test("the format of objects is read from the settings that are common", () => {
  const own = projectWith({ config: "" });
  const common = projectWith({ config: "[extensions]\n objectformat=sha256\n" });
  writeFileSync(join(own, "index"), indexOf({ entries: TREE, object: 32 }));
  assert.deepEqual(gitlinksIn(own, common).map(String), NESTED);
  assert.throws(() => gitlinksIn(own, own), /is not understood/);
});

test("an index is read again when it has changed", () => {
  const folder = projectWith({ config: "" });
  const file = join(folder, "index");
  writeFileSync(file, indexOf({ entries: TREE }));
  assert.deepEqual(gitlinksIn(folder, folder).map(String), NESTED);
  assert.deepEqual(gitlinksIn(folder, folder).map(String), NESTED);
  writeFileSync(file, indexOf({ entries: TREE.slice(0, 3) }));
  assert.deepEqual(gitlinksIn(folder, folder).map(String), ["dir/nested"]);
});

test("a path of 4095 characters and more says only that it is that long", () => {
  const long = (length: number) => [{ path: "p".repeat(length), mode: REPOSITORY }];
  for (const length of [4094, 4095, 5000])
    assert.equal(linksIn(indexOf({ entries: long(length) }))[0]!.length, length);
  assert.throws(
    () => linksIn(indexOf({ entries: [{ path: "short", said: 0xfff }] })),
    /a path has another length than it says/,
  );
});

test("version 4 cuts more than 127 characters off the path before", () => {
  const paths = [`${"d".repeat(400)}/a`, "e", "f".repeat(20_000), "g"];
  const entries = paths.map((path) => ({ path, mode: REPOSITORY }));
  assert.deepEqual(linksIn(indexOf({ entries, version: 4 })), paths);
});

const ends = (_: readonly number[], end: number) => [extension("EOIE", u32(end), Buffer.alloc(20))];
const blocks = (starts: readonly number[]) => [
  extension("IEOT", u32(1), u32(starts[0]!), u32(2), u32(starts[2]!), u32(starts.length - 2)),
];

test("extensions that git may skip are skipped, and tables are compared with the entries", () => {
  const cache = () => [extension("TREE", Buffer.from("x")), extension("sdir")];
  for (const extensions of [cache, ends, blocks])
    assert.deepEqual(linksIn(indexOf({ entries: TREE, extensions })), NESTED);
});

const REFUSED: readonly (readonly [name: string, index: Buffer, why: RegExp, config?: string])[] = [
  ["another signature", indexOf({ entries: TREE, signature: "DIRX" }), /it has another signature/],
  ["version 1", indexOf({ entries: TREE, version: 1 }), /its version is 1/],
  ["version 5", indexOf({ entries: TREE, version: 5 }), /its version is 5/],
  [
    "a path that is too short",
    indexOf({ entries: [{ path: "ab", said: 3 }] }),
    /another length than it says/,
  ],
  [
    "an end in a path",
    Buffer.concat([indexOf({ entries: TREE.slice(0, 1) }).subarray(0, 74), Buffer.from("aaaa")]),
    /it ends in a path/,
  ],
  [
    "an extension that must be understood",
    indexOf({ entries: TREE, extensions: () => [extension("abcd")] }),
    /it needs the extension "abcd"/,
  ],
  [
    "entries that end elsewhere",
    indexOf({ entries: TREE, extensions: (_, end) => [extension("EOIE", u32(end + 8))] }),
    /its entries end elsewhere than it says/,
  ],
  [
    "a block that begins elsewhere",
    indexOf({
      entries: TREE,
      extensions: (starts) => [extension("IEOT", u32(1), u32(starts[1]!), u32(TREE.length))],
    }),
    /a block of entries begins elsewhere/,
  ],
  [
    "blocks with fewer entries",
    indexOf({ entries: TREE, extensions: (starts) => [extension("IEOT", u32(1), u32(starts[0]!), u32(5))] }),
    /its blocks hold another number of entries/,
  ],
  [
    "an extension that is longer than the file",
    indexOf({ entries: TREE, more: Buffer.concat([Buffer.from("TREE"), u32(1000)]) }),
    /it ends elsewhere than it says/,
  ],
  [
    "two that share",
    indexOf({
      entries: [],
      extensions: () => [extension("link", Buffer.alloc(20)), extension("link", Buffer.alloc(20))],
    }),
    /it is split twice/,
  ],
  [
    "what is shared is not said",
    indexOf({ entries: [], extensions: () => [extension("link", Buffer.alloc(10))] }),
    /it does not say what it shares/,
  ],
  [
    "a shared part that is missing",
    indexOf({ entries: [], extensions: () => [extension("link", Buffer.alloc(20, 7))] }),
    /sharedindex\.0707\w+ is missing/,
  ],
  [
    "an unknown format of objects",
    indexOf({ entries: TREE }),
    /extensions\.objectFormat/,
    "[extensions]\n objectFormat = blake3\n",
  ],
  [
    "two formats of objects",
    indexOf({ entries: TREE }),
    /extensions\.objectFormat/,
    "[extensions]\n objectFormat = sha1\n objectFormat = sha256\n",
  ],
];

for (const [name, index, why, config] of REFUSED)
  test(`refused: ${name}`, () => assert.throws(() => linksIn(index, config), why));

// A split index: what it shares, what takes its place, and what is its own.

const SHARED = Buffer.alloc(20, 7);
const sharedFile = (index: Buffer) => ({ [`sharedindex.${SHARED.toString("hex")}`]: index });
const split = (entries: readonly Entry[], ...data: readonly Buffer[]) =>
  indexOf({ entries, extensions: () => [extension("link", SHARED, ...data)] });

test("a split index has the repositories of both parts", () => {
  const shared = sharedFile(indexOf({ entries: TREE }));
  assert.deepEqual(linksIn(split([]), "", shared), NESTED);
  const own = [{ path: "own", mode: REPOSITORY }];
  assert.deepEqual(linksIn(split(own, bitmap(), bitmap()), "", shared), [...NESTED, "own"]);
  // The first entry takes the place of the one at bit 1, and has its path.
  const instead = [{ path: "", mode: REPOSITORY }, ...own];
  assert.deepEqual(linksIn(split(instead, bitmap(0), bitmap(1)), "", shared), [...NESTED, "dir/link", "own"]);
  assert.deepEqual(
    linksIn(indexOf({ entries: own, extensions: () => [extension("link", Buffer.alloc(20))] })),
    ["own"],
  );
});

test("a bitmap may say that whole words are set", () => {
  const many = Array.from({ length: 70 }, (_, at) => ({ path: `f${at}` }));
  const shared = sharedFile(indexOf({ entries: many }));
  const instead = Array.from({ length: 64 }, (_, at) => ({ path: "", mode: at === 63 ? REPOSITORY : FILE }));
  assert.deepEqual(linksIn(split(instead, bitmap(), run(1)), "", shared), ["f63"]);
});

test("refused: a split index whose parts do not fit", () => {
  const shared = sharedFile(indexOf({ entries: TREE }));
  const rows: readonly (readonly [Buffer, { readonly [name: string]: Buffer }, RegExp])[] = [
    [split([{ path: "named" }], bitmap(), bitmap(1)), shared, /the split index is not understood/],
    [split([{ path: "" }], bitmap(), bitmap(9)), shared, /the split index is not understood/],
    [split([{ path: "" }], bitmap(), bitmap()), shared, /the split index is not understood/],
    [split([], bitmap(), run(1_000_000)), shared, /a bitmap is too long/],
    [split([]), sharedFile(split([])), /it is split again/],
  ];
  for (const [index, parts, why] of rows) assert.throws(() => linksIn(index, "", parts), why);
});
