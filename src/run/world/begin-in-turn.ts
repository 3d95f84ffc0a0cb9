/** How many runs begin in one turn of the event loop, however many are started at once. */

/**
 * The others wait for a later turn and hold nothing until then. Thousands of runs that open side by side would hold, all
 * at the same time, what each of them needs only while it opens.
 */
const MOST_IN_A_TURN = 128;

let begun = 0;
const waiting: (() => void)[] = [];

/** null: the run may begin at once. */
export function turnToBegin(): Promise<void> | null {
  if (begun === MOST_IN_A_TURN) return new Promise((begin) => void waiting.push(begin));
  if (begun === 0) setImmediate(beginMore);
  begun += 1;
  return null;
}

function beginMore(): void {
  const next = waiting.splice(0, MOST_IN_A_TURN);
  begun = next.length;
  if (begun > 0) setImmediate(beginMore);
  for (const begin of next) begin();
}
