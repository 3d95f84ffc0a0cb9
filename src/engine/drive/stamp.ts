/**
 * The times of entries. They are those of the clock that people read, and such a clock is set: by hand, over the network,
 * after a computer has slept. An entry notes how far, so that what a run took is never told by two settings of it.
 */
import type { Entry } from "../../flow/event.ts";
import type { Clock } from "../ports.ts";

/** A clock that is off by less was not set: it may be put right bit by bit. */
const NOTICEABLE_MS = 1000;

/**
 * For the times of the entries of one stretch, in their order: how far the clock was set since the entry before; 0: it
 * was not. `from` is the time of an entry that was made just now; null: there is none.
 */
export function createStamp({ steady }: Clock, from: number | null): (at: number) => number {
  if (steady === undefined) return () => 0;
  let ahead = from === null ? null : from - steady();
  return (at) => {
    // Asked for each entry: a system clock that was set back by the length of a step looks as if no time had passed.
    const now = at - steady();
    const moved = now - (ahead ??= now);
    if (Math.abs(moved) < NOTICEABLE_MS) return 0;
    ahead = now;
    return Math.round(moved);
  };
}

/** How many milliseconds have passed since this was called, whatever the clock is set to meanwhile. */
export function createElapsed({ steady, now }: Clock): () => number {
  const read = steady ?? now;
  const from = read();
  return () => Math.round(read() - from);
}

/** How long a run was driven: between two stretches nobody did, and setting a clock takes no time. `from`: the entry before. */
export function drivenMs(entries: readonly Entry[], from: Entry | null = null): number {
  let before = from;
  let sum = 0;
  for (const entry of entries) {
    const { at, moved = 0, event } = entry;
    if (before !== null && event.type !== "run.resumed") sum += Math.max(0, at - before.at - moved);
    before = entry;
  }
  return sum;
}
