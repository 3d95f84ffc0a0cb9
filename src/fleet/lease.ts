/** When a worker may take from others, and when it must give up its own: what it knows of the server, by a steady clock. */

/** Moments in milliseconds of a clock that nobody sets. */
export type Contact = {
  /** The last sign of life that the server took was sent then. */
  readonly kept: number;
  /** The server, or the machine that it runs on, said something: perhaps only that it is not there. */
  readonly heard: number;
  /** Since then no sign of life came late. */
  readonly calmSince: number;
};

/** How often a worker shows a sign of life. */
export function keepEvery(leaseMs: number): number {
  return leaseMs / 3;
}

export function contactAt(now: number): Contact {
  return { kept: now, heard: now, calmSince: now };
}

/** The server took a sign of life that was sent at `sent`. */
export function keptBy({ kept, calmSince }: Contact, sent: number, now: number, leaseMs: number): Contact {
  const isLate = now - kept > 2 * keepEvery(leaseMs);
  return { kept: sent, heard: sent, calmSince: isLate ? now : calmSince };
}

/**
 * A sign of life could not be given. `isRefused`: something answered, so the way to the server is open. That says nothing
 * to a worker that was silent for long before, as one that was stopped: others may have had its runs until then.
 */
export function missedBy(
  { kept, heard }: Contact,
  isRefused: boolean,
  now: number,
  leaseMs: number,
): Contact {
  const isHeard = isRefused && now - heard < STOP_AT * leaseMs;
  return { kept, heard: isHeard ? now : heard, calmSince: now };
}

/**
 * May this worker say that another one is dead? When the server was away, every worker looks dead at first. A worker that
 * had no trouble for a whole lease knows that the others could have shown a sign of life during it.
 */
export function isCalm({ kept, calmSince }: Contact, now: number, leaseMs: number): boolean {
  return now - kept <= 2 * keepEvery(leaseMs) && now - calmSince >= leaseMs;
}

/**
 * Must this worker stop what it drives? Another one may have it after a lease. A server that refuses serves nobody, and
 * gives all workers the same time when it is back; but that can hold for this machine alone, so not for ever.
 */
export function mustStop({ kept, heard }: Contact, now: number, leaseMs: number): boolean {
  const isCutOff = now - heard >= STOP_AT * leaseMs;
  return (
    now - kept >= STOP_AT * leaseMs && (isCutOff || now - kept >= Math.max(MOST_REFUSED_MS, 4 * leaseMs))
  );
}

/** A part of the lease: what is under way has to end before the rest of it is over. */
const STOP_AT = 0.8;
/** As long as a run waits for a journal that is away. */
const MOST_REFUSED_MS = 120_000;
