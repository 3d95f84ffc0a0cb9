/** Jobs in PostgreSQL, handed out by pg-boss: the only file that knows that package. */
import { RunnerError } from "../engine/ports.ts";
import { isObject } from "../flow/json.ts";
import { errorText } from "../flow/text/harmless.ts";
import type { Postgres } from "../journal/postgres/connection.ts";
import { loadServerPeer } from "../run/records/postgres-journal.ts";
import type { Dispatch, Job, TransactionSend } from "./dispatch.ts";

/** What we use of pg-boss. */
type Boss = {
  readonly on: (event: "error" | "warning", listener: (said: unknown) => void) => void;
  readonly start: () => Promise<unknown>;
  readonly stop: (how: object) => Promise<void>;
  readonly createQueue: (name: string, options: object) => Promise<void>;
  readonly insert: (name: string, jobs: readonly object[], options: object) => Promise<unknown>;
  readonly fetch: (name: string, options: object) => Promise<readonly Fetched[]>;
  readonly touch: (name: string, jobs: readonly Attempt[], options: object) => Promise<Touched>;
  readonly deleteJob: (name: string, jobs: readonly Attempt[], options: object) => Promise<Touched>;
  readonly supervise: (name: string) => Promise<void>;
};
type BossPackage = { readonly PgBoss: new (options: object) => Boss };
/** `settled`: the ids of those that were still in that attempt. */
type Touched = { readonly settled?: readonly string[] };
type Attempt = { readonly id: string; readonly retryCount: number };
type Fetched = Attempt & {
  readonly name: string;
  /** Of a job that others wrote: anything. */ readonly data: unknown;
};

export async function loadBoss(env: NodeJS.ProcessEnv): Promise<BossPackage> {
  const peer = { name: "pg-boss", version: "12.35.0", whose: "A fleet" };
  return (await loadServerPeer(peer, env)) as BossPackage;
}

/** Beside the tables of the journal; `fleet init` makes them. */
export function bossSchema(schema: string): string {
  return `${schema}_boss`;
}

/** Makes the tables of pg-boss, or brings them up to date. */
export async function makeBossTables(postgres: Postgres, bossPackage: BossPackage): Promise<void> {
  const boss = createBoss(postgres, bossPackage, { migrate: true });
  try {
    await boss.start();
  } finally {
    await boss.stop({ graceful: false, close: false });
  }
}

export type BossOptions = {
  readonly postgres: Postgres;
  readonly boss: BossPackage;
  /** Jobs of a worker without a sign of life for so long can be given to others; 10 s at least. */
  readonly leaseMs: number;
};

/** JOURNAL_UNAVAILABLE where `fleet init` has not made the tables of this version. */
export async function openBossDispatch(options: BossOptions): Promise<Dispatch> {
  const { postgres, leaseMs } = options;
  const boss = createBoss(postgres, options.boss, { migrate: false });
  await boss.start().catch((cause: unknown) => {
    if (cause instanceof RunnerError) throw cause;
    const words = "does not have the tables of the queue. Make them with: lockstep fleet init";
    throw new RunnerError("JOURNAL_UNAVAILABLE", `${postgres.name} ${words}. (${errorText(cause)})`, {
      cause,
    });
  });
  const made = new Set<string>();
  const ensure = async (queue: string): Promise<void> => {
    if (made.has(queue)) return;
    await boss.createQueue(queue, QUEUE);
    made.add(queue);
  };
  const attemptOf = ({ id, attempt }: Job): Attempt => ({ id, retryCount: attempt });

  /** Those of the jobs that `act` found to be ours. Of one that came back to the same worker only the last attempt can be. */
  const ofOurs = async (
    jobs: readonly Job[],
    act: (queue: string, attempts: readonly Attempt[]) => Promise<Touched>,
  ): Promise<readonly Job[]> => {
    const newest = new Map(jobs.toSorted((a, b) => a.attempt - b.attempt).map((job) => [job.id, job]));
    const ours = new Set<Job>();
    for (const [queue, own] of Map.groupBy(newest.values(), (job) => job.queue))
      for (const id of (await act(queue, own.map(attemptOf))).settled ?? []) ours.add(newest.get(id)!);
    return jobs.filter((job) => ours.has(job));
  };

  return {
    async offer(offers, within) {
      for (const [queue, own] of Map.groupBy(offers, (offer) => offer.queue)) {
        await ensure(queue);
        const jobs = own.map(({ id, run, group, priority }) => ({
          id,
          data: { run },
          priority,
          group: { id: group, tier: group },
          heartbeatSeconds: Math.max(LEAST_LEASE_S, Math.round(leaseMs / 1000)),
        }));
        await boss.insert(queue, jobs, { db: databaseOf(within) });
      }
    },
    async take(queues, most, shares) {
      const taken: Job[] = [];
      const takeFrom = async (queue: string): Promise<void> => {
        await ensure(queue);
        const jobs = await boss.fetch(queue, {
          batchSize: most - taken.length,
          groupConcurrency: { default: shares.default, tiers: shares.of },
        });
        const strange: Attempt[] = [];
        for (const { id, data, retryCount } of jobs) {
          const run = isObject(data) ? data.run : undefined;
          if (typeof run === "string") taken.push({ id, run, queue, attempt: retryCount });
          else strange.push({ id, retryCount });
        }
        if (strange.length > 0) await boss.deleteJob(queue, strange, {});
      };
      for (const queue of queues) {
        if (taken.length >= most) break;
        try {
          await takeFrom(queue);
        } catch (error) {
          // What was taken before is driven; the next call says what is wrong.
          if (taken.length === 0) throw error;
          break;
        }
      }
      return taken;
    },
    keep: (jobs) => ofOurs(jobs, (queue, attempts) => boss.touch(queue, attempts, {})),
    settle: (jobs, within) =>
      ofOurs(jobs, (queue, attempts) => boss.deleteJob(queue, attempts, { db: databaseOf(within) })),
    async tend(queues) {
      for (const queue of queues) {
        await ensure(queue);
        await boss.supervise(queue);
      }
    },
    close: () => boss.stop({ graceful: false, close: false }),
  };
}

/** pg-boss takes a shorter one for a mistake. */
const LEAST_LEASE_S = 10;
const FOR_EVER_S = 10 * 365 * 86_400;

/**
 * Of its policies only this one gives every job that is offered, once. It never gives up a job: how often a run may be
 * begun is decided by its row.
 */
const QUEUE = {
  policy: "standard",
  retryLimit: 1_000_000,
  retryDelay: 0,
  retentionSeconds: FOR_EVER_S,
  expireInSeconds: 86_399,
};

function createBoss(
  postgres: Postgres,
  { PgBoss }: BossPackage,
  { migrate }: { readonly migrate: boolean },
): Boss {
  const boss = new PgBoss({
    db: databaseOf(postgres.send),
    schema: bossSchema(postgres.schema),
    migrate,
    createSchema: migrate,
    // By itself it would take every job away when the server comes back (see lease.ts).
    supervise: false,
    schedule: false,
    monitorIntervalSeconds: 1,
    maintenanceIntervalSeconds: 60,
    reindex: false,
    monitorVacuum: false,
  });
  // What fails is asked again; a listener that is missing would end the process.
  boss.on("error", () => undefined);
  boss.on("warning", () => undefined);
  return boss;
}

function databaseOf(send: TransactionSend) {
  return {
    executeSql: async (text: string, values: readonly unknown[] = []) => ({
      rows: await send({ name: "", text }, values),
    }),
  };
}
