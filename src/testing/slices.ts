/** Long work in slices: a busy process hears no signals, so between two slices it lets others have their turn. */
import { setImmediate as nextTurn } from "node:timers/promises";

/** Milliseconds of work after which a signal is listened for. */
const SLICE_MS = 20;

/** What the work ends with; null: it was aborted before. `onValue`: what the work gives on its way. */
export async function inSlices<V, T>(
  work: Generator<V, T>,
  signal?: AbortSignal,
  onValue?: (value: V) => void,
): Promise<T | null> {
  for (let until = -Infinity; ;) {
    if (performance.now() >= until) {
      await nextTurn();
      if (signal?.aborted === true) return null;
      until = performance.now() + SLICE_MS;
    }
    const next = work.next();
    if (next.done === true) return next.value;
    onValue?.(next.value);
  }
}
