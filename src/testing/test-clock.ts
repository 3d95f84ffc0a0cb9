/** The clocks of tests: waits pass at once and are noted; time limits still hold. */
import type { Clock } from "../engine/ports.ts";

/** Time passes only by waiting. */
export function memoryClock(start: number, waits: number[]): Clock {
  let now = start;
  return skipping(
    () => now++,
    (ms) => void (now += ms),
    waits,
  );
}

/** Commands take their time; waits do not. */
export function projectClock(start: number, waits: number[]): Clock {
  const began = performance.now();
  let skipped = 0;
  const now = () => Math.round(start + skipped + performance.now() - began);
  const { sleep, alarm } = skipping(now, (ms) => void (skipped += ms), waits);
  return {
    now,
    sleep,
    alarm: async (ms, signal) => {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, Math.min(ms, LONGEST_TIMER_MS));
      await Promise.race([over, alarm!(ms, signal)]);
      clearTimeout(timer);
    },
  };
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

function skipping(now: () => number, skip: (ms: number) => void, waits: number[]): Clock {
  const due = new Set<{ readonly at: number; readonly ring: () => void }>();
  return {
    now,
    sleep: async (ms, signal) => {
      // What is under way goes first.
      await new Promise(setImmediate);
      if (signal.aborted) return;
      waits.push(ms);
      skip(ms);
      const time = now();
      for (const one of due) if (one.at <= time) one.ring();
    },
    alarm: async (ms, signal) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const ring = () => resolve();
      const one = { at: now() + ms, ring };
      if (ms <= 0 || signal.aborted) return;
      due.add(one);
      signal.addEventListener("abort", ring, { once: true });
      await promise;
      signal.removeEventListener("abort", ring);
      due.delete(one);
    },
  };
}
