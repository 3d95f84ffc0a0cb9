/** "Did you mean": the nearest of the words that would have been right. */

/** ` Did you mean "x"?`, or nothing when no candidate is near. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const nearest = suggest(word, [...candidates]);
  return nearest === null ? "" : ` Did you mean "${nearest}"?`;
}

/** The one candidate that is a single slip away, or that differs in spelling habits only. null: none, or several. */
export function onlyNear(word: string, candidates: Iterable<string>): string | null {
  const wanted = normalise(word);
  let found: string | null = null;
  for (const candidate of candidates) {
    const other = normalise(candidate);
    if (candidate === word || other.length < 4 || !isOneSlip(wanted, other)) continue;
    if (found !== null && found !== candidate) return null;
    found = candidate;
  }
  return found;
}

function suggest(word: string, candidates: readonly string[]): string | null {
  const wanted = normalise(word);
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    if (candidate === word) continue;
    const distance = editDistance(wanted, normalise(candidate), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
    if (distance === 0) break;
  }
  return best ?? partOf(wanted, candidates);
}

/** `issue_number` and `issue`: one word is the other with something put before or after it. */
function partOf(wanted: string, candidates: readonly string[]): string | null {
  const isPart = (candidate: string) => {
    const other = normalise(candidate);
    const [short, long] = other.length < wanted.length ? [other, wanted] : [wanted, other];
    return short.length >= 4 && (long.startsWith(short) || long.endsWith(short));
  };
  return candidates.find(isPart) ?? null;
}

const HABITS = /[-_. ]/g;

/** Spelling habits do not make two words different. */
function normalise(word: string): string {
  const before = normalised.get(word);
  if (before !== undefined) return before;
  const after = word.toLowerCase().replaceAll(HABITS, "");
  if (normalised.size >= MOST_KEPT) normalised.clear();
  normalised.set(word, after);
  return after;
}

/** A file with many mistakes has each of them compared with the same words. */
const normalised = new Map<string, string>();
const MOST_KEPT = 10_000;

/** Whether the edit distance is 0 or 1, without measuring it. */
function isOneSlip(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from += 1;
  let end = 0;
  while (end < a.length - from && end < b.length - from && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [x, y] = [a.slice(from, a.length - end), b.slice(from, b.length - end)];
  const isSwap = x.length === 2 && y.length === 2 && x[0] === y[1] && x[1] === y[0];
  return (x.length <= 1 && y.length <= 1) || isSwap;
}

/** Insertions, deletions, substitutions and swaps of neighbours; `limit` when there are not fewer. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from += 1;
  let end = 0;
  while (end < a.length - from && end < b.length - from && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  return distanceOfRest(a.slice(from, a.length - end), b.slice(from, b.length - end), limit);
}

function distanceOfRest(a: string, b: string, limit: number): number {
  if (a === "" || b === "") return Math.min(a.length + b.length, limit);
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(previous[j]! + 1, current[j - 1]! + 1, previous[j - 1]! + same);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) cost = Math.min(cost, before[j - 2]! + 1);
      current.push(cost);
      if (cost < least) least = cost;
    }
    if (least >= limit) return limit;
    before = previous;
    previous = current;
  }
  return Math.min(previous[b.length]!, limit);
}
