/** One transaction for everything that is offered within one turn of the event loop. */
import type { DatabaseSync } from "node:sqlite";
import { journalErrorCode } from "../errors.ts";

export type GroupCommit = {
  /**
   * Performs `work` inside the next shared transaction, in the order of the offers, and resolves with its result once
   * that transaction is on disk. `work` decides before it writes: what it throws itself refuses this one offer and
   * leaves the others alone, while a failing statement fails the whole transaction and everyone in it.
   */
  readonly offer: <T>(work: () => T) => Promise<T>;
  /** Commits what is waiting without waiting for the turn to end. Never throws: the offers carry the failure. */
  readonly flush: () => void;
};

/**
 * `requireFile` throws if what is committed would go to a file that cannot be found again; `explain` turns what SQLite said
 * into what the offers are rejected with; `afterwards` is called when a transaction is on disk and its offers are settled.
 */
export function createGroupCommit(
  db: DatabaseSync,
  requireFile: () => void,
  explain: (cause: unknown) => Error,
  afterwards: () => void,
): GroupCommit {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  let waiting: Offer[] = [];

  const flush = () => {
    if (waiting.length === 0) return;
    const offers = waiting;
    waiting = [];
    try {
      begin.run();
      for (const offer of offers) perform(offer);
      requireFile();
      commit.run();
      for (const offer of offers) tell(offer);
      afterwards();
    } catch (cause) {
      if (db.isTransaction) db.exec("ROLLBACK");
      const error = explain(cause);
      for (const offer of offers) offer.reject(error);
    }
  };

  return {
    offer(work) {
      if (waiting.length === 0) setImmediate(flush);
      return new Promise((resolve, reject) => {
        waiting.push({
          work,
          resolve: resolve as Offer["resolve"],
          reject,
          result: undefined,
          refusal: null,
        });
      });
    },
    flush,
  };
}

/** One object for each, filled in as it goes: this is done for every entry of every run. */
type Offer = {
  readonly work: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  result: unknown;
  /** What the work threw itself; null: it did not. */
  refusal: { readonly error: unknown } | null;
};

function perform(offer: Offer): void {
  try {
    offer.result = offer.work();
  } catch (error) {
    if (typeof journalErrorCode(error) === "number") throw error;
    offer.refusal = { error };
  }
}

/** To be called when it is on disk. */
function tell({ resolve, reject, result, refusal }: Offer): void {
  if (refusal === null) resolve(result);
  else reject(refusal.error);
}
