/** The record of all runs of one state directory, as the engine and those who read it need it. */
import type { Entry } from "../flow/event.ts";
import type { Flow, Flows } from "../flow/flow.ts";
import type { Mail } from "../flow/mail.ts";

/** Bytes beside the journal that every process of a fleet can read, by their SHA-256: files of runs, conversations of coding agents. */
export type Blobs = {
  /** Stored when it resolves; gives the digest. It stays as long as a run that it was put for. */
  readonly put: (run: string, bytes: Uint8Array) => Promise<string>;
  /** null: there is none, or it is damaged. */
  readonly get: (digest: string) => Promise<Uint8Array | null>;
};

/** All runs of one state directory. */
export type Journal = {
  /**
   * Makes the run with its first entries, all or nothing, and claims it. Fails with RUN_EXISTS if the id is taken. The
   * flow is stored once per digest, and so are the `adopted` ones that the entries name. The claim is held until
   * `release`, or until this process dies.
   */
  readonly create: (run: NewRun, entries?: readonly Entry[], adopted?: Flows) => Promise<RunHandle>;
  /**
   * Claims an existing run for writing: RUN_UNKNOWN if there is none, RUN_OWNED_ELSEWHERE if it is being driven, unless
   * it is taken over: the process that drove it can no longer write.
   */
  readonly claim: (run: string, how?: { readonly takeOver?: boolean }) => Promise<RunHandle>;
  /**
   * RUN_UNKNOWN if there is none. `limit`: at most so many entries. Code that reads a whole run reads it in slices:
   * a run can be longer than memory is large.
   */
  readonly read: (run: string, afterSeq?: number, limit?: number) => Promise<readonly Entry[]>;
  readonly flow: (digest: string) => Promise<Flow | null>;
  /** The one made last comes first, whatever the clock said. RUN_UNKNOWN if `before` names none. */
  readonly list: (which?: WhichRuns) => Promise<readonly RunRow[]>;
  /** The rows of these runs, in this order; those that do not exist are left out. */
  readonly rows: (runs: readonly string[]) => Promise<readonly RunRow[]>;
  readonly count: () => Promise<number>;
  /**
   * What all runs have written after a cursor, oldest first, at most `limit` entries. The cursor `""` stands before
   * everything; without a cursor nothing is read, and the answer has the newest one.
   */
  readonly since: (cursor?: string, limit?: number) => Promise<News>;
  /** Bytes of all entries of a run, as JSON. RUN_UNKNOWN if there is none. */
  readonly size: (run: string) => Promise<number>;
  /** Cheap to ask: it is another number once anybody has written since. */
  readonly version: () => Promise<number>;
  /**
   * Removes a run: RUN_UNKNOWN if there is none, RUN_OWNED_ELSEWHERE if a living process drives it. Many may be removed
   * at once: the journal takes as many together as it can without keeping other processes from writing.
   */
  readonly remove: (run: string) => Promise<void>;
  /**
   * Gives back the room of what was removed, also by processes that were killed meanwhile: entries, files and flows that
   * no run needs. `close` does it after a removal.
   */
  readonly tidy: () => Promise<void>;
  /** Bytes that belong to its runs; absent: files stay on this computer. */
  readonly blobs?: Blobs;
  /** Letters to its runs, where it keeps them itself; absent: they are files of the state folder. */
  readonly mail?: Mail;
  /** Commits what is waiting and releases everything; after that every other verb is refused. */
  readonly close: () => Promise<void>;
};

export type NewRun = {
  readonly id: string;
  readonly agent: string;
  readonly at: number;
  readonly digest: string;
  readonly flow: Flow;
};

export type RunHandle = {
  readonly run: string;
  /** Grows with each claim; a writer whose epoch is not the newest cannot append. */
  readonly epoch: number;
  /** The owner before did not let go of the run: its process died, or the run was taken over. */
  readonly abandoned?: true;
  /**
   * Durable when it resolves. Appends offered in one event-loop turn, of all runs, share one transaction.
   * `seq` goes on where the journal ends, else ENTRY_OUT_OF_ORDER. Rejects with RUN_OWNED_ELSEWHERE once another
   * writer has claimed the run, or this one released it. What is rejected was not written. `adopted` as for `create`.
   * A journal that needs no time gives `STORED`, which the loop does not wait for.
   */
  readonly append: (entries: readonly Entry[], adopted?: Flows) => Promise<void>;
  readonly release: () => Promise<void>;
};

export const STORED: Promise<void> = Promise.resolve();

/** Every part narrows the list. */
export type WhichRuns = {
  /** How their ids begin. */
  readonly prefix?: string;
  readonly agent?: string;
  /** Only those made before this run: the next page. */
  readonly before?: string;
  /** Only those that a living process drives. */
  readonly owned?: true;
  readonly limit?: number;
};

/** What is new in a journal. */
export type News = {
  /** Where to go on. It means something to the journal that gave it, and to nothing else. */
  readonly cursor: string;
  readonly entries: readonly NewEntry[];
  /** What the old cursor stood for was removed: read the list again, and go on from the cursor given here. */
  readonly lost: boolean;
};

/** `entry` is null where it is damaged: reading the run reports why. */
export type NewEntry = { readonly run: string; readonly seq: number; readonly entry: Entry | null };

export type RunRow = {
  readonly id: string;
  readonly agent: string;
  readonly digest: string;
  readonly createdAt: number;
  readonly events: number;
  /** The newest entry: enough to tell how the run stands. null also if it is damaged. */
  readonly last: Entry | null;
  /** Why the newest entry cannot be read, or the row itself; then `id` may be a name that stands for the run. */
  readonly damaged?: string;
  /** Whether a living process is driving it. */
  readonly owned: boolean;
  /** Why workers leave it alone until a person says otherwise. */
  readonly held?: string;
};
