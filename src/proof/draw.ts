/**
 * Chance as a list of numbers: a run draws from it whenever it has a choice. The same list gives the same run, and any
 * list is a run, so that a list can be shortened and lowered until the run is as small as it gets.
 */
export type Draw = {
  /** A number from 0 to `of` - 1. 0 is the plainest choice. */
  readonly next: (of: number) => number;
  /** All numbers that were drawn. */
  readonly drawn: readonly number[];
};

/** `more` gives numbers when the list is used up; absent: 0 for ever. */
export function createDraw(list: readonly number[], more?: (of: number) => number): Draw {
  const drawn: number[] = [];
  return {
    drawn,
    next: (of) => {
      const at = drawn.length;
      const value = at < list.length ? list[at]! % of : (more?.(of) ?? 0);
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
