/**
 * Chance as a list of numbers: a run draws from it whenever it has a choice. The same list gives the same run, and any
 * list is a run, so that a list can be shortened and lowered until the run is as small as it gets.
 */
export type Draw = {
  /** A number from 0 to `of` - 1. 0 is the plainest choice. `about`: what is chosen, for a source that seeks variety. */
  readonly next: (of: number, about?: string) => number;
  /** All numbers that were drawn. */
  readonly drawn: readonly number[];
};

/** `more` gives numbers when the list is used up; absent: 0 for ever. */
export function createDraw(list: readonly number[], more?: Draw["next"]): Draw {
  const drawn: number[] = [];
  return {
    drawn,
    next: (of, about) => {
      const at = drawn.length;
      const value = at < list.length ? list[at]! % of : (more?.(of, about) ?? 0);
      drawn.push(value);
      return value;
    },
  };
}

/** Numbers by a seed: the same on every machine. */
export function seeded(seed: number): (of: number) => number {
  let state = (seed ^ 0x9e_37_79_b9) >>> 0;
  return (of) => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % of;
  };
}

/** Half of the numbers that are about something are those that were drawn least for it so far. */
export function varied(more: (of: number) => number, drawn: Map<string, number[]>): Draw["next"] {
  return (of, about) => {
    const any = more(of);
    if (about === undefined || of < 2) return any;
    const key = `${about} ${of}`;
    const counts = drawn.get(key) ?? Array.from({ length: of }, () => 0);
    drawn.set(key, counts);
    const next = more(4) === 0 ? any : leastFrom(counts, any);
    counts[next]! += 1;
    return next;
  };
}

function leastFrom(counts: readonly number[], start: number): number {
  let best = start;
  for (let step = 1; step < counts.length; step++) {
    const at = (start + step) % counts.length;
    if (counts[at]! < counts[best]!) best = at;
  }
  return best;
}
