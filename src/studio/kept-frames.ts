/** The frames of a run as they are kept: as the bytes that are sent, made once, which take a tenth of the memory. */
import { jsonLine } from "../flow/text/harmless.ts";
import type { Frame } from "../tell/frames.ts";

/** One for each entry, from the first one on. */
export type KeptFrames = {
  /** `frame`: as JSON. */
  readonly add: (frame: string) => void;
  readonly count: () => number;
  /** From the place `from` up to `to`, as the members of an array in JSON, in parts. */
  readonly bytes: (from: number, to: number) => readonly Buffer[];
  readonly slice: (from: number, to?: number) => readonly Frame[];
};

/** Frames that are kept together. */
export const TOGETHER = 50;

export function createKeptFrames(): KeptFrames {
  /** Every frame but the first has a comma before it. */
  const full: Buffer[] = [];
  /** Those after the full ones. */
  let newest = "";
  let count = 0;

  const parts = (first: number, last: number): readonly Buffer[] => {
    const found = full.slice(first, last);
    if (last > full.length) found.push(Buffer.from(newest));
    if (first > 0) found[0] = found[0]!.subarray(1);
    return found;
  };

  const slice = (from: number, to = count): readonly Frame[] => {
    if (from >= count) return [];
    const first = Math.floor(from / TOGETHER);
    const text = parts(first, Math.ceil(to / TOGETHER)).join("");
    const frames = JSON.parse(`[${text}]`) as readonly Frame[];
    return frames.slice(from - first * TOGETHER, to - first * TOGETHER);
  };

  return {
    add(frame) {
      newest += count === 0 ? frame : `,${frame}`;
      count += 1;
      if (count % TOGETHER !== 0) return;
      full.push(Buffer.from(newest));
      newest = "";
    },
    count: () => count,
    bytes(from, to) {
      const isWhole = from % TOGETHER === 0 && (to % TOGETHER === 0 || to >= count);
      if (isWhole && from < count) return parts(from / TOGETHER, Math.ceil(to / TOGETHER));
      return [Buffer.from(jsonLine(slice(from, to)).slice(1, -1))];
    },
    slice,
  };
}
