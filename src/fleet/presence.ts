/** The row of a worker: what it is, what it can do, its sign of life, and whether it is to drain. */
import { isObject } from "../flow/json.ts";
import { ALIVE } from "../journal/postgres/writes.ts";
import type { Postgres } from "../journal/postgres/connection.ts";

export type WorkerAbout = {
  readonly id: string;
  /** For people: unique among the living, by habit only. */
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly leaseMs: number;
  readonly offers: Omit<WorkerOffers, "trouble">;
};

/** What a worker can do, for those who submit and those who look. */
export type WorkerOffers = {
  readonly slots: number;
  readonly queues: readonly string[];
  readonly speech: number;
  readonly models: readonly string[];
  readonly backends: readonly string[];
  /** null: commands are not confined. */
  readonly sandbox: string | null;
  /** What has gone wrong with the worker, its server or its disk again and again; null: it is well. */
  readonly trouble: string | null;
};

/** What the row of a worker says, which anybody who may write to the server can have written; null: it cannot be read. */
export function readOffers(text: unknown): WorkerOffers | null {
  let read: unknown;
  try {
    read = JSON.parse(String(text));
  } catch {
    return null;
  }
  if (!isObject(read)) return null;
  const { slots, queues, speech, models, backends, sandbox, trouble } = read;
  if (!Number.isSafeInteger(slots) || !Number.isSafeInteger(speech) || !isNames(queues)) return null;
  return {
    slots: slots as number,
    queues,
    speech: speech as number,
    models: isNames(models) ? models : [],
    backends: isNames(backends) ? backends : [],
    sandbox: typeof sandbox === "string" ? sandbox : null,
    trouble: typeof trouble === "string" ? trouble : null,
  };
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

export type Presence = {
  readonly enter: () => Promise<void>;
  /** `drainMs`: within this time it is to give back what it drives; null: it is not asked to. */
  readonly beat: (
    trouble: string | null,
  ) => Promise<{ readonly workers: number; readonly drainMs: number | null }>;
  readonly leave: () => Promise<void>;
};

export function createPresence(postgres: Postgres, about: WorkerAbout): Presence {
  const { schema } = postgres;
  const { id, name, host, pid, version, leaseMs } = about;
  let offers: WorkerOffers = { ...about.offers, trouble: null };
  const enter = async (): Promise<void> => {
    const text = `INSERT INTO ${schema}.owner (id, host, pid, since, beat, lease, version, worker, offers)
      VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp(), make_interval(secs => $4), $5, $6, $7)
      ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp(), version = $5, worker = $6, offers = $7`;
    await postgres.send({ name: "worker-enter", text }, [
      id,
      host,
      pid,
      leaseMs / 1000,
      version,
      name,
      JSON.stringify(offers),
    ]);
  };
  return {
    enter,
    async beat(trouble) {
      offers = { ...offers, trouble };
      const text = `UPDATE ${schema}.owner SET beat = clock_timestamp(), offers = $2 WHERE id = $1
        RETURNING extract(epoch FROM draining - clock_timestamp())::float8 * 1000 AS drain,
          (SELECT count(*)::int FROM ${schema}.owner o WHERE o.worker IS NOT NULL AND ${ALIVE}) AS workers`;
      const [row] = await postgres.send({ name: "worker-beat", text }, [id, JSON.stringify(offers)]);
      if (row === undefined) await enter();
      const drain = (row?.drain as number | null | undefined) ?? null;
      return {
        workers: Math.max(1, (row?.workers as number | undefined) ?? 1),
        drainMs: drain === null ? null : Math.max(0, drain),
      };
    },
    async leave() {
      const gone = `WITH f AS (UPDATE ${schema}.run SET owner = NULL WHERE owner = $1)
        DELETE FROM ${schema}.owner WHERE id = $1 OR (worker IS NOT NULL AND beat < clock_timestamp() - interval '1 day'
          AND NOT EXISTS (SELECT 1 FROM ${schema}.run r WHERE r.owner = owner.id))`;
      await postgres.send({ name: "worker-leave", text: gone }, [id]);
    },
  };
}
