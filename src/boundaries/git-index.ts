/** Which folders a git index records as repositories of their own: git looks into them, and obeys their settings. */
import { readFileSync, statSync } from "node:fs";

/** Paths from the top of the working tree. Empty where the file is missing or is not understood. */
export function gitlinksIn(file: string): readonly string[] {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    const stamp = [ino, size, mtimeNs, ctimeNs].join(":");
    const known = read.get(file);
    if (known?.stamp === stamp) return known.links;
    const links = parseGitlinks(readFileSync(file));
    read.set(file, { stamp, links });
    return links;
  } catch {
    return []; // there is none, or it ends before it should
  }
}

/** A large index is not read again for each command. */
const read = new Map<string, { readonly stamp: string; readonly links: readonly string[] }>();

const GITLINK = 0o160000;
/** Times, ids, mode, owner and size; then the name of the object; then flags. */
const STATS = 40;
const OBJECT = 20;
const EXTENDED = 0x4000;

/** As `gitformat-index` describes versions 2, 3 and 4. */
function parseGitlinks(index: Buffer): readonly string[] {
  if (index.toString("latin1", 0, 4) !== "DIRC") return [];
  const [version, count] = [index.readUInt32BE(4), index.readUInt32BE(8)];
  const links: string[] = [];
  let at = 12;
  let path = Buffer.alloc(0);
  for (let entry = 0; entry < count; entry += 1) {
    const start = at;
    const mode = index.readUInt32BE(start + 24);
    const flags = index.readUInt16BE(start + STATS + OBJECT);
    at = start + STATS + OBJECT + 2 + (version >= 3 && (flags & EXTENDED) !== 0 ? 2 : 0);
    let kept = 0;
    if (version === 4) {
      const cut = readVariable(index, at);
      at = cut.end;
      kept = path.length - cut.value;
    }
    const end = index.indexOf(0, at);
    if (end === -1) return [];
    path = Buffer.concat([path.subarray(0, version === 4 ? kept : 0), index.subarray(at, end)]);
    at = version === 4 ? end + 1 : start + ((end - start + 8) & ~7);
    if (mode === GITLINK) links.push(path.toString("utf8"));
  }
  return links;
}

/** As offsets are written in pack files. */
function readVariable(index: Buffer, from: number): { readonly value: number; readonly end: number } {
  let at = from;
  let byte = index.readUInt8(at++);
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = index.readUInt8(at++);
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return { value, end: at };
}
