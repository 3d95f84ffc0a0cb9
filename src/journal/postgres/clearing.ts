/** Removal of old runs on PostgreSQL, in batches, so that writers do not wait for long. */
import { clearBlobs } from "./blobs.ts";
import type { Postgres } from "./connection.ts";
import { ALIVE } from "./writes.ts";

export type Cleared = { readonly runs: number; readonly blobs: number; readonly bytes: number };

/** The newest entry is older; no process drives it, and no worker is to. `at` stands second in every entry. */
function oldRuns(schema: string): string {
  return `SELECT r.key FROM ${schema}.run r WHERE r.due IS NULL AND r.job IS NULL
    AND NOT EXISTS (SELECT 1 FROM ${schema}.owner o WHERE o.id = r.owner AND ${ALIVE})
    AND r.created_at < $1 AND coalesce((SELECT substring(e.body FROM '^\\{"seq":\\d+,"at":([0-9.]+)')::float8
      FROM ${schema}.event e WHERE e.run = r.key ORDER BY e.seq DESC LIMIT 1), r.created_at) < $1`;
}

export async function countOld(postgres: Postgres, before: number): Promise<number> {
  const text = `SELECT count(*)::int AS runs FROM (${oldRuns(postgres.schema)}) AS old`;
  const [row] = await postgres.send({ name: "count-old", text }, [before]);
  return row?.runs as number;
}

/** `before`: epoch milliseconds. `onGone` hears how many runs are gone so far. */
export async function clearOld(
  postgres: Postgres,
  before: number,
  onGone: (runs: number) => void = () => undefined,
): Promise<Cleared> {
  const { schema } = postgres;
  let runs = 0;
  for (;;) {
    const gone = await postgres.together(async (send) => {
      const old = await send(
        {
          name: "old-runs",
          text: `${oldRuns(schema)} ORDER BY r.key LIMIT ${AT_ONCE} FOR UPDATE OF r SKIP LOCKED`,
        },
        [before],
      );
      const keys = old.map(({ key }) => key);
      if (keys.length === 0) return 0;
      for (const table of ["event", "run_flow", "run_blob", "mail"])
        await send(
          { name: `clear-${table}`, text: `DELETE FROM ${schema}.${table} WHERE run = ANY($1::bigint[])` },
          [keys],
        );
      await send({ name: "clear-run", text: `DELETE FROM ${schema}.run WHERE key = ANY($1::bigint[])` }, [
        keys,
      ]);
      return keys.length;
    });
    if (gone === 0) break;
    runs += gone;
    onGone(runs);
  }
  await postgres.send({
    name: "clear-flows",
    text: `DELETE FROM ${schema}.flow f WHERE NOT EXISTS (SELECT 1 FROM ${schema}.run_flow k WHERE k.digest = f.digest)`,
  });
  // Letters to runs that are gone, written in the moment of their removal.
  await postgres.send({
    name: "clear-letters",
    text: `DELETE FROM ${schema}.mail m WHERE NOT EXISTS (SELECT 1 FROM ${schema}.run r WHERE r.key = m.run)`,
  });
  let [blobs, bytes] = [0, 0];
  for (;;) {
    const cleared = await clearBlobs(postgres);
    blobs += cleared.blobs;
    bytes += cleared.bytes;
    if (cleared.blobs === 0) return { runs, blobs, bytes };
  }
}

const AT_ONCE = 1000;
