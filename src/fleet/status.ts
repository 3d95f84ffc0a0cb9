/** How a fleet stands: its workers, and the runs that wait for them. */
import type { Postgres } from "../journal/postgres/connection.ts";
import { ALIVE } from "../journal/postgres/writes.ts";
import { readOffers, type WorkerOffers } from "./presence.ts";

export type WorkerRow = {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** null: what its row says cannot be read. */
  readonly offers: WorkerOffers | null;
  /** How many runs it drives. */
  readonly runs: number;
  readonly upMs: number;
  /** Since its last sign of life; below 0: the clock of the server was set back. */
  readonly beatMs: number;
  readonly alive: boolean;
  /** It takes nothing more, and gives back what it drives within this time; null: it does not drain. */
  readonly drainMs: number | null;
};

export async function workersOf(postgres: Postgres): Promise<readonly WorkerRow[]> {
  const { schema } = postgres;
  const ms = (span: string) => `extract(epoch FROM ${span})::float8 * 1000`;
  const text = `SELECT o.id, o.worker, o.host, o.pid, o.version, o.offers, ${ALIVE} AS alive,
      ${ms("clock_timestamp() - o.since")} AS up, ${ms("clock_timestamp() - o.beat")} AS beat,
      ${ms("o.draining - clock_timestamp()")} AS drain,
      (SELECT count(*)::int FROM ${schema}.run r WHERE r.owner = o.id) AS runs
    FROM ${schema}.owner o WHERE o.worker IS NOT NULL ORDER BY o.since`;
  return (await postgres.send({ name: "workers", text })).map((row) => ({
    id: row.id as string,
    name: row.worker as string,
    host: row.host as string,
    pid: row.pid as number,
    version: (row.version as string | null) ?? "",
    offers: readOffers(row.offers),
    runs: row.runs as number,
    upMs: row.up as number,
    beatMs: row.beat as number,
    alive: row.alive as boolean,
    drainMs: row.drain as number | null,
  }));
}

/** The runs of one group in one queue. */
export type BacklogRow = {
  readonly queue: string;
  readonly group: string;
  /** They could be driven now. */
  readonly ready: number;
  /** They wait for a moment. */
  readonly later: number;
  readonly running: number;
  /** They wait for a person. */
  readonly waiting: number;
  readonly poisoned: number;
  /** How long the first of those that are ready has been waiting. */
  readonly oldestMs: number;
};

/** Only groups of which something is left to do. */
export async function backlogOf(postgres: Postgres): Promise<readonly BacklogRow[]> {
  const { schema } = postgres;
  const text = `WITH r AS (
      SELECT queue, grp, due, job, owner, held, rest, created_at FROM ${schema}.run WHERE queue IS NOT NULL AND due IS NOT NULL
      UNION ALL SELECT queue, grp, due, job, owner, held, rest, created_at FROM ${schema}.run WHERE queue IS NOT NULL AND due IS NULL AND job IS NOT NULL
      UNION ALL SELECT queue, grp, due, job, owner, held, rest, created_at FROM ${schema}.run
        WHERE queue IS NOT NULL AND due IS NULL AND job IS NULL AND (rest = 'waiting' OR held IS NOT NULL)),
    c AS (SELECT queue, grp, CASE
        WHEN held IS NOT NULL THEN 'poisoned'
        WHEN job IS NOT NULL AND owner IS NOT NULL THEN 'running'
        WHEN job IS NOT NULL OR due <= clock_timestamp() THEN 'ready'
        WHEN due IS NOT NULL THEN 'later'
        ELSE 'waiting' END AS state, coalesce(extract(epoch FROM due)::float8 * 1000, created_at) AS since FROM r)
    SELECT queue, grp, count(*) FILTER (WHERE state = 'ready')::int AS ready,
      count(*) FILTER (WHERE state = 'later')::int AS later, count(*) FILTER (WHERE state = 'running')::int AS running,
      count(*) FILTER (WHERE state = 'waiting')::int AS waiting, count(*) FILTER (WHERE state = 'poisoned')::int AS poisoned,
      coalesce(extract(epoch FROM clock_timestamp())::float8 * 1000 - min(since) FILTER (WHERE state = 'ready'), 0)::float8 AS oldest
    FROM c GROUP BY queue, grp ORDER BY queue, grp`;
  return (await postgres.send({ name: "backlog", text })).map((row) => ({
    queue: row.queue as string,
    group: (row.grp as string | null) ?? "",
    ready: row.ready as number,
    later: row.later as number,
    running: row.running as number,
    waiting: row.waiting as number,
    poisoned: row.poisoned as number,
    oldestMs: Math.max(0, row.oldest as number),
  }));
}

/** What a person should look into; nothing: the fleet is well. */
export function faultsOf(workers: readonly WorkerRow[], backlog: readonly BacklogRow[]): readonly string[] {
  const taking = workers.filter(({ alive, drainMs }) => alive && drainMs === null);
  const takes = (queue: string) => taking.some(({ offers }) => offers?.queues.includes(queue));
  const poisoned = backlog.reduce((sum, row) => sum + row.poisoned, 0);
  const idle = [
    ...new Set(backlog.filter(({ queue, ready }) => ready > 0 && !takes(queue)).map(({ queue }) => queue)),
  ];
  return [
    ...idle.map((queue) => `No living worker takes runs from the queue ${queue}, and runs wait in it.`),
    ...(poisoned === 0
      ? []
      : [
          `${poisoned} ${poisoned === 1 ? "run is" : "runs are"} poisoned: see lockstep runs, then lockstep fleet retry RUN.`,
        ]),
    ...workers
      .filter(({ alive, offers }) => alive && offers === null)
      .map(({ name }) => `The row of the worker ${name} cannot be read: what it offers is not known.`),
    ...workers.flatMap(({ name, alive, offers }) =>
      alive && offers?.trouble ? [`${name} has trouble: ${offers.trouble}`] : [],
    ),
    ...workers
      .filter(({ beatMs }) => beatMs < -1000)
      .map(
        ({ name }) =>
          `The last sign of life of ${name} lies in the future: the clock of the server was set back.`,
      ),
    ...workers
      .filter(({ alive, runs }) => !alive && runs > 0)
      .map(
        ({ name, runs }) =>
          `${name} shows no sign of life and has ${runs === 1 ? "a run" : `${runs} runs`}: others take over.`,
      ),
  ];
}

/** Asks these workers to drain; names or ids, or the beginning of an id. Gives the names of those it found. */
export async function drainWorkers(
  postgres: Postgres,
  which: readonly string[] | "all",
  withinMs: number,
): Promise<readonly string[]> {
  const { schema } = postgres;
  const text = `UPDATE ${schema}.owner o SET draining = clock_timestamp() + make_interval(secs => $3::float8 / 1000)
    WHERE o.worker IS NOT NULL AND ${ALIVE} AND ($1 OR EXISTS (
      SELECT 1 FROM unnest($2::text[]) AS n(name) WHERE o.worker = n.name OR starts_with(o.id, n.name)))
    RETURNING o.worker, o.id`;
  const isAll = which === "all";
  const rows = await postgres.send({ name: "drain", text }, [isAll, isAll ? [] : which, withinMs]);
  return rows.map(({ worker }) => worker as string);
}
