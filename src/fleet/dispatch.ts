/** Who drives which run next: the port of a queue of jobs. A job is one stretch of a run, driven by one worker. */
import type { Postgres } from "../journal/postgres/connection.ts";

/** Statements of a transaction that the caller commits: what is done within it holds only if all of it does. */
export type TransactionSend = Postgres["send"];

export type JobOffer = {
  readonly id: string;
  readonly run: string;
  /** With the speech that a worker must know to drive the run: `queueOf`. */
  readonly queue: string;
  /** Jobs of one group together get no more than its share of the slots. */
  readonly group: string;
  /** Higher ones first; jobs of the same priority in the order of their offers. */
  readonly priority: number;
};

/** A job in the hands of this worker. */
export type Job = {
  readonly id: string;
  readonly run: string;
  readonly queue: string;
  /** 0: it is taken for the first time. Otherwise those who took it before have shown no sign of life. */
  readonly attempt: number;
};

/** How many jobs of a group may be under way at once, over all workers. */
export type GroupShares = { readonly default: number; readonly of: { readonly [group: string]: number } };

export type Dispatch = {
  readonly offer: (offers: readonly JobOffer[], within: TransactionSend) => Promise<void>;
  /** At most `most` jobs of these queues, the first ones in any order. Called again until nothing comes: one call may give less than there is. */
  readonly take: (queues: readonly string[], most: number, shares: GroupShares) => Promise<readonly Job[]>;
  /** A sign of life for each of these jobs. Gives those that are still ours. */
  readonly keep: (jobs: readonly Job[]) => Promise<readonly Job[]>;
  /** These jobs are done. Gives those that were still ours: nothing is changed where another worker was given one. */
  readonly settle: (jobs: readonly Job[], within: TransactionSend) => Promise<readonly Job[]>;
  /** Gives the jobs of workers without a sign of life to others. Only for a worker that is calm (`lease.ts`). */
  readonly tend: (queues: readonly string[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

/** The names that a queue may have. The queue of jobs refuses others, and then everything that is offered with them. */
export const QUEUE_NAME = /^[A-Za-z0-9_-]{1,60}$/;
/** A group has a name of 1 to so many characters. */
export const LONGEST_GROUP = 500;

/** Runs written by a newer program go to queues that an older worker does not ask. */
export function queueOf(name: string, speech: number): string {
  return `${name}.v${speech}`;
}

/** What a worker that knows `speech` takes from. */
export function queuesOf(names: readonly string[], speech: number): readonly string[] {
  return names.flatMap((name) => Array.from({ length: speech }, (_, place) => queueOf(name, speech - place)));
}
