/**
 * A disk that loses what was not synced: after a crash the last write is there, or not, or torn at any byte. On it a log
 * of entries in checksummed frames; what several runs append in one turn of the event loop shares a frame.
 */
import { crc32 } from "node:zlib";
import type { Entry } from "../../src/flow/event.ts";

export type Log = {
  /** Resolves when it is synced. */
  readonly append: (run: string, entries: readonly Entry[]) => Promise<void>;
};

/** A moment at which the power may fail, and what the disk holds then. */
export type Moment = {
  readonly what: "before the write" | "in the middle of the write" | "before anybody heard of the write";
  readonly image: string;
};

export function openLog(
  image: string,
  random: () => number,
  crashing: (moment: Moment) => void,
  synced: (run: string, entries: readonly Entry[]) => void,
): Log {
  let disk = image;
  let offers: { run: string; entries: readonly Entry[]; tell: () => void }[] = [];

  const sync = () => {
    const group = offers;
    offers = [];
    const frame = toFrame(group.map(({ run, entries }) => ({ run, entries })));
    crashing({ what: "before the write", image: disk });
    const torn = disk + frame.slice(0, 1 + Math.floor(random() * (frame.length - 1)));
    crashing({ what: "in the middle of the write", image: torn });
    disk += frame;
    crashing({ what: "before anybody heard of the write", image: disk });
    for (const { run, entries, tell } of group) {
      synced(run, entries);
      tell();
    }
  };

  return {
    append: (run, entries) =>
      new Promise((tell) => {
        if (offers.length === 0) setImmediate(sync);
        offers.push({ run, entries, tell });
      }),
  };
}

type Written = { readonly run: string; readonly entries: readonly Entry[] };

export function toFrame(group: readonly Written[]): string {
  const text = JSON.stringify(group);
  return `${crc32(text)} ${text.length} ${text}\n`;
}

/** What can be read after a crash: all frames up to the first that is not whole; that one is cut off. */
export function recover(image: string): { readonly runs: Map<string, Entry[]>; readonly whole: string } {
  const runs = new Map<string, Entry[]>();
  const header = /(\d+) (\d+) /y;
  let at = 0;
  while (at < image.length) {
    header.lastIndex = at;
    const found = header.exec(image);
    if (found === null) break;
    const [begun, length] = [header.lastIndex, Number(found[2])];
    const text = image.slice(begun, begun + length);
    if (image[begun + length] !== "\n" || crc32(text) !== Number(found[1])) break;
    for (const { run, entries } of JSON.parse(text) as readonly Written[]) {
      const known = runs.get(run);
      if (known === undefined) runs.set(run, [...entries]);
      else known.push(...entries);
    }
    at = begun + length + 1;
  }
  return { runs, whole: image.slice(0, at) };
}
