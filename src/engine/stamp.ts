/**
 * The times of entries. They are those of the clock that people read, and such a clock is set: by hand, over the network,
 * after a machine has slept. An entry notes how far, so that what a run took is never told by two settings of it.
 */
import type { Entry } from "../flow/event.ts";
import type { Clock } from "./ports.ts";

/** A clock that is off by less was not set: it may be put right bit by bit. */
const NOTICEABLE_MS = 1000;

/**
 * For the times of the entries of one stretch, in their order: how far the clock was set since the entry before; 0: it
 * was not. `from` is the time of an entry that was made just now; null: there is none.
 */
export function createStamp({ steady }: Clock, from: number | null): (at: number) => number {
  if (steady === undefined) return () => 0;
  let newest = from ?? 0;
  let ahead = from === null ? null : from - steady();
  return (at) => {
    const passed = at - newest;
    newest = at;
    // Most entries follow each other closely, and then the other clock need not be asked.
    if (ahead !== null && passed >= 0 && passed < NOTICEABLE_MS) return 0;
    const now = at - steady();
    const moved = now - (ahead ?? now);
    if (Math.abs(moved) >= NOTICEABLE_MS) ahead = now;
    else ahead ??= now;
    return Math.abs(moved) >= NOTICEABLE_MS ? Math.round(moved) : 0;
  };
}

/** How long a run was driven: between two stretches nobody did, and setting a clock takes no time. */
export function drivenMs(entries: readonly Entry[]): number {
  return entries.reduce((sum, { at, moved = 0, event }, place) => {
    const before = entries[place - 1];
    if (before === undefined || event.type === "run.resumed") return sum;
    return sum + Math.max(0, at - before.at - moved);
  }, 0);
}
