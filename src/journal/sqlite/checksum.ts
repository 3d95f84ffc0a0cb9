/** The checksums of rows: a CRC-32 of what a row holds and of where it belongs, so that a changed byte is noticed when it is read. */
import { crc32 } from "node:zlib";

/**
 * Of a row of `event`. One call per entry: the place of the row is the start value, so that a row that turns up in
 * another run, or under another number, does not fit either.
 */
export function entrySum(run: number, seq: number, body: string): number {
  return crc32(body, (Math.imul(run, 0x9e3779b1) ^ seq) >>> 0) | 0;
}

/** Of a row of `flow`. */
export function flowSum(digest: string, json: string): number {
  return crc32(json, crc32(digest)) | 0;
}

/** Of what stays the same in a row of `run`. */
export function runSum(key: number, id: string, agent: string, digest: string, createdAt: number): number {
  return crc32(JSON.stringify([key, id, agent, digest, createdAt])) | 0;
}
