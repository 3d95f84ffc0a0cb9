/** The rows of runs as workers see them: which want a job, which one is theirs, and what becomes of it afterwards. */
import { randomUUID } from "node:crypto";
import type { Postgres, Rows } from "../journal/postgres/connection.ts";
import { LONGEST_GROUP, QUEUE_NAME, queueOf, type Dispatch, type Job } from "./dispatch.ts";
import { MOST_TRIES, POISONED, type NextStretch } from "./life.ts";

/** What a worker asks for. */
export type WantedRuns = {
  /** Without the speech. */
  readonly queues: readonly string[];
  readonly speech: number;
};

/** A run that this worker may drive now. */
export type Taken = { readonly job: Job; readonly tries: number; readonly group: string };

const MOST_AT_ONCE = 1000;

/**
 * Makes a job for runs that want one, and holds those whose row no queue can take: one of them must not keep the
 * others waiting. How many it dealt with; called again until there are none.
 */
export async function promote(
  postgres: Postgres,
  dispatch: Dispatch,
  wanted: WantedRuns,
  most = MOST_AT_ONCE,
): Promise<number> {
  const { schema } = postgres;
  return await postgres.together(async (send) => {
    const text = `SELECT key, id, queue, grp, priority, speaks FROM ${schema}.run
      WHERE due <= clock_timestamp() AND job IS NULL AND held IS NULL AND speaks <= $2
        AND (queue = ANY($1) OR queue !~ '${QUEUE_NAME.source}')
      ORDER BY priority DESC, due LIMIT $3 FOR UPDATE SKIP LOCKED`;
    const rows = await send({ name: "promote", text }, [wanted.queues, wanted.speech, most]);
    if (rows.length === 0) return 0;
    const faults = rows.map(rowFault);
    const bad = rows.flatMap((row, place) =>
      faults[place] === null ? [] : [{ run: row.id, why: faults[place] }],
    );
    const hold = `UPDATE ${schema}.run r SET held = 'poisoned', held_because = n.why, due = NULL
      FROM unnest($1::text[], $2::text[]) AS n(id, why) WHERE r.id = n.id`;
    if (bad.length > 0)
      await send({ name: "promote-hold", text: hold }, [
        bad.map(({ run }) => run),
        bad.map(({ why }) => why),
      ]);
    const good = rows.filter((_, place) => faults[place] === null);
    if (good.length === 0) return rows.length;
    const offers = good.map((row) => ({
      id: randomUUID(),
      run: row.id as string,
      queue: queueOf(row.queue as string, row.speaks as number),
      group: row.grp as string,
      priority: row.priority as number,
    }));
    const mark = `UPDATE ${schema}.run r SET job = n.job, due = NULL
      FROM unnest($1::bigint[], $2::text[]) AS n(key, job) WHERE r.key = n.key`;
    await send({ name: "promoted", text: mark }, [good.map(({ key }) => key), offers.map(({ id }) => id)]);
    await dispatch.offer(offers, send);
    return rows.length;
  });
}

/** Why no job can be made of a row that anybody may have written; null: one can. */
export function rowFault({ queue, grp, speaks }: Rows[number]): string | null {
  const what =
    typeof queue !== "string" || !QUEUE_NAME.test(queue)
      ? "its queue is not a name of letters, digits, _ and -"
      : typeof grp !== "string" || grp === "" || grp.length > LONGEST_GROUP
        ? `its group is not a name of 1 to ${LONGEST_GROUP} characters`
        : !(Number(speaks) >= 1)
          ? "the version that wrote it is below 1"
          : null;
  return what === null ? null : `No worker can take it: ${what}. Submit it again with lockstep fleet submit.`;
}

/**
 * The jobs that are still those of their runs: only these may be driven. Which run that is, its row says, and not the job,
 * which somebody else may have written. The others are taken off the queue, also that of a run which nobody could drive
 * so far. What wakes a run from here on gives it another stretch. What this gives is called until it resolves: each
 * attempt counts once.
 */
export function beginning(
  postgres: Postgres,
  dispatch: Dispatch,
  jobs: readonly Job[],
  speech: number,
): () => Promise<readonly Taken[]> {
  const { schema } = postgres;
  return postgres.transaction(async (send) => {
    const text = `WITH ${lockedText(schema, "unnest($1::text[], $2::int[]) AS n(job, attempt)", "held IS NULL AND speaks <= $3")}
      UPDATE ${schema}.run r SET due = NULL, rest = NULL, speaks = greatest(r.speaks, $3),
        tries = r.tries + (t.attempt > 0)::int,
        held = CASE WHEN t.attempt > 0 AND r.tries + 1 >= $4 THEN 'poisoned' END,
        held_because = CASE WHEN t.attempt > 0 AND r.tries + 1 >= $4 THEN $5 END,
        job = CASE WHEN t.attempt > 0 AND r.tries + 1 >= $4 THEN NULL ELSE r.job END
      FROM t WHERE r.key = t.key RETURNING r.id, r.job, r.tries, r.grp`;
    const rows = await send({ name: "begin", text }, [
      jobs.map(({ id }) => id),
      jobs.map(({ attempt }) => attempt),
      speech,
      MOST_TRIES,
      POISONED,
    ]);
    const own = new Map(rows.map((row) => [row.job, row]));
    const taken = jobs.flatMap((job): readonly Taken[] => {
      const row = own.get(job.id);
      if (row === undefined) return [];
      const { id: run, tries, grp } = row as { id: string; tries: number; grp: string };
      return [{ job: { ...job, run }, tries, group: grp }];
    });
    const others = jobs.filter(({ id }) => !own.has(id));
    if (others.length === 0) return taken;
    // A newer program has driven it since: its next job is for those who know what that one wrote.
    const newer = `UPDATE ${schema}.run SET job = NULL, due = clock_timestamp() WHERE job = ANY($1) AND speaks > $2`;
    await send({ name: "begin-newer", text: newer }, [others.map(({ id }) => id), speech]);
    await dispatch.settle(others, send);
    return taken;
  });
}

/** A stretch that is over, and what becomes of its run. */
export type SettledJob = { readonly job: Job; readonly next: NextStretch };

/**
 * These stretches are over. Gives the jobs that were not given to another worker, which decides what becomes of the run.
 * What this gives is called until it resolves.
 */
export function settling(
  postgres: Postgres,
  dispatch: Dispatch,
  stretches: readonly SettledJob[],
): () => Promise<ReadonlySet<Job>> {
  const { schema } = postgres;
  return postgres.transaction(async (send) => {
    const ours = new Set(
      await dispatch.settle(
        stretches.map(({ job }) => job),
        send,
      ),
    );
    const own = stretches.filter(({ job }) => ours.has(job));
    if (own.length === 0) return ours;
    // A wake since the beginning of the stretch has left its mark in `due`.
    const settled =
      "unnest($1::text[], $2::int[], $3::text[], $4::float8[], $5::text[]) AS n(job, failed, why, after_ms, rests)";
    const text = `WITH ${lockedText(schema, settled)}
      UPDATE ${schema}.run r SET job = NULL, tries = t.failed, held = CASE WHEN t.why IS NOT NULL THEN 'poisoned' END,
        held_because = t.why, rest = t.rests,
        due = CASE WHEN t.why IS NULL THEN least(r.due, clock_timestamp() + make_interval(secs => t.after_ms / 1000)) END
      FROM t WHERE r.key = t.key`;
    await send({ name: "settle", text }, [
      own.map(({ job }) => job.id),
      own.map(({ next }) => next.tries),
      // A text of the server holds no NUL, and would be refused with all the others.
      own.map(({ next }) => next.held?.replaceAll("\0", "") ?? null),
      own.map(({ next }) => next.afterMs),
      own.map(({ next }) => next.rest),
    ]);
    return ours;
  });
}

/**
 * The rows `t` of runs whose jobs are named in `n`, locked in the order of their keys. Each is found by the index of jobs:
 * of a join the server may think that few runs have one, and then compares every run with every job.
 */
function lockedText(schema: string, jobs: string, where = "true"): string {
  return `f AS MATERIALIZED (
        SELECT r.key, n.* FROM ${jobs}, LATERAL (SELECT key FROM ${schema}.run WHERE job = n.job LIMIT 1) r ORDER BY r.key),
      t AS (SELECT f.* FROM f, LATERAL (
        SELECT FROM ${schema}.run WHERE key = f.key AND job = f.job AND ${where} FOR UPDATE) r)`;
}

/** It got somewhere: what failed before does not count any more. */
export async function progressed(postgres: Postgres, { id }: Job): Promise<void> {
  const text = `UPDATE ${postgres.schema}.run SET tries = 0 WHERE job = $1`;
  await postgres.send({ name: "progressed", text }, [id]);
}

/** Runs that are held get another chance. Gives those that were. */
export async function releaseRuns(postgres: Postgres, runs: readonly string[]): Promise<readonly string[]> {
  const text = `UPDATE ${postgres.schema}.run SET held = NULL, held_because = NULL, tries = 0, due = clock_timestamp(), job = NULL
    WHERE id = ANY($1) AND held IS NOT NULL RETURNING id`;
  const rows = await postgres.together((send) => send({ name: "unhold", text }, [runs]));
  return rows.map(({ id }) => id as string);
}
