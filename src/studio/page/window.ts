/** Which rows of a long list are drawn: those that can be seen, and a few around them. */

export type RowWindow = {
  readonly first: number;
  readonly end: number;
  readonly above: number;
  readonly below: number;
};

const AROUND = 10;

/** @param top how far the list is scrolled above its first row; `height`: how much of it can be seen */
export function windowOf(count: number, rowHeight: number, top: number, height: number): RowWindow {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight) - AROUND));
  const end = Math.max(first, Math.min(count, Math.ceil((top + height) / rowHeight) + AROUND));
  return { first, end, above: first * rowHeight, below: (count - end) * rowHeight };
}

/** The first places of the pages that hold the items from `first` to `end` and were not asked for yet. */
export function missingPages(
  first: number,
  end: number,
  size: number,
  asked: ReadonlySet<number>,
): readonly number[] {
  const pages: number[] = [];
  for (let from = Math.floor(first / size) * size; from < end; from += size)
    if (!asked.has(from)) pages.push(from);
  return pages;
}
