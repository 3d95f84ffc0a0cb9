/** The clock of the machine. */
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../engine/ports.ts";

export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => performance.now(),
  // A timer that is set for longer than it can count fires at once; in parts it can be set for any time.
  sleep: async (ms, signal) => {
    for (let left = ms; left > 0 && !signal.aborted; left -= LONGEST_TIMER_MS) {
      await delay(Math.min(left, LONGEST_TIMER_MS), undefined, { signal }).catch(() => undefined);
    }
  },
};

const LONGEST_TIMER_MS = 2 ** 31 - 1;
