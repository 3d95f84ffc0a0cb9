/** Makes a list of numbers as short and as low as it can be while it still fails. */
export type Shrunk = { readonly list: readonly number[]; readonly tries: number };

export async function shrink(
  list: readonly number[],
  fails: (list: readonly number[]) => Promise<boolean>,
  most = 2000,
): Promise<Shrunk> {
  let best = withoutTail(list);
  let tries = 0;
  const attempt = async (candidate: readonly number[]): Promise<boolean> => {
    if (tries >= most || !isSmaller(candidate, best)) return false;
    tries += 1;
    if (!(await fails(candidate))) return false;
    best = withoutTail(candidate);
    return true;
  };
  // Further tries fail at once when there have been enough.
  for (let changed = true; changed;) {
    changed = false;
    // Whole stretches first: most of a run has nothing to do with its fault.
    for (let size = Math.ceil(best.length / 2); size >= 1; size = smaller(size, best.length))
      for (let at = 0; at < best.length;)
        if (await attempt(best.toSpliced(at, size))) changed = true;
        else at += best.length <= SHORT ? 1 : size;
    for (let at = 0; at < best.length; at++) {
      const value = best[at]!;
      for (const lower of [0, Math.floor(value / 2), value - 1])
        if (lower >= 0 && lower < best[at]! && (await attempt(best.with(at, lower)))) {
          changed = true;
          break;
        }
    }
  }
  return { list: best, tries };
}

/** A list that is as short as this is tried without every stretch that it has: an answer takes any number of numbers. */
const SHORT = 24;

function smaller(size: number, length: number): number {
  return size === 1 ? 0 : length <= SHORT ? size - 1 : Math.ceil(size / 2);
}

/** What is not in the list is 0. */
function withoutTail(list: readonly number[]): readonly number[] {
  const last = list.findLastIndex((value) => value !== 0);
  return list.slice(0, last + 1);
}

function isSmaller(a: readonly number[], b: readonly number[]): boolean {
  if (a.length !== b.length) return a.length < b.length;
  for (const [at, value] of a.entries()) if (value !== b[at]) return value < b[at]!;
  return false;
}
