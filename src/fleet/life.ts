/** What becomes of a run when a stretch of it is over: whether it wants another one, when, and when it is held. */

/** How a stretch ended, as far as the next one depends on it. `until`: by the clock that `now` is of. */
export type Ended =
  | { readonly kind: "ended" | "waiting" | "yielded" | "lost" | "budget" }
  | { readonly kind: "parked"; readonly until: number }
  | {
      readonly kind: "unavailable";
      readonly code: string;
      readonly reason: string;
      /** The record of the run itself cannot be read, and will not be later. */
      readonly isDamaged?: boolean;
    };

/** `tries`: how often it was begun in a row without getting anywhere. */
export type NextStretch = {
  /** From now; null: not before somebody wakes it. A span, because the clocks of machines differ. */
  readonly afterMs: number | null;
  readonly tries: number;
  /** Why nobody drives it any more, until a person says so. */
  readonly held: string | null;
  /** What it does where it wants no stretch. */
  readonly rest: "ended" | "waiting" | null;
};

/** So often a run is begun without getting anywhere. */
export const MOST_TRIES = 3;
/** Something else owns the run, or what it needs cannot be had now: it is looked at again after this time. */
const LATER_MS = 60_000;

export function nextStretch(end: Ended, tries: number, now: number, leaseMs: number): NextStretch {
  switch (end.kind) {
    case "ended":
    case "waiting":
      return { afterMs: null, tries: 0, held: null, rest: end.kind };
    case "yielded":
      return { afterMs: 0, tries: 0, held: null, rest: null };
    case "parked":
      return { afterMs: Math.max(0, end.until - now), tries: 0, held: null, rest: null };
    case "budget":
      return { afterMs: LATER_MS, tries: 0, held: null, rest: null };
    case "lost":
      return { afterMs: leaseMs, tries, held: null, rest: null };
    case "unavailable": {
      // The server is away, or refuses: not the run's fault.
      if (end.code === "JOURNAL_UNAVAILABLE" && end.isDamaged !== true)
        return { afterMs: FIRST_PAUSE_MS, tries, held: null, rest: null };
      const failed = tries + 1;
      if (failed >= MOST_TRIES)
        return { afterMs: null, tries: failed, held: `${end.code}: ${end.reason}`, rest: null };
      return { afterMs: FIRST_PAUSE_MS * 4 ** (failed - 1), tries: failed, held: null, rest: null };
    }
  }
}

const FIRST_PAUSE_MS = 10_000;

/** Why a run is held that was taken over again and again. */
export const POISONED = `${MOST_TRIES} workers in a row died or lost the server while they drove it, and no visit was settled between.`;
