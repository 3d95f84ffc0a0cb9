/** Blobs on PostgreSQL: bytes by their SHA-256, kept as long as a run that needs them. */
import { createHash } from "node:crypto";
import { RunnerError, type Blobs } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Postgres } from "./connection.ts";

export function createPostgresBlobs(postgres: Postgres): Blobs {
  const { schema } = postgres;
  return {
    put: async (run, bytes) => {
      const digest = await storeBlob(postgres, bytes);
      const tied = await postgres.send(
        {
          name: "tie-blob",
          text: `WITH r AS (SELECT key FROM ${schema}.run WHERE id = $1),
            i AS (INSERT INTO ${schema}.run_blob SELECT key, $2 FROM r ON CONFLICT DO NOTHING)
            SELECT key FROM r`,
        },
        [run, digest],
      );
      if (tied.length === 0) throw new RunnerError("RUN_UNKNOWN", `There is no run "${run}".`);
      return digest;
    },
    get: async (digest) => {
      const [row] = await postgres.send(
        { name: "blob", text: `SELECT bytes FROM ${schema}.blob WHERE digest = $1` },
        [digest],
      );
      const bytes = row?.bytes;
      return bytes instanceof Uint8Array && digestOf(bytes) === digest ? bytes : null;
    },
  };
}

/** The blobs that entries name. */
export function blobsIn(entries: readonly Entry[]): readonly string[] {
  const named = entries.flatMap(({ event, tree }) => [
    ...(event.type === "run.started" && event.source?.kind === "bundle" ? [event.source.blob] : []),
    ...(tree === undefined ? [] : [tree.blob]),
  ]);
  return [...new Set(named)];
}

/**
 * Stores bytes that no run is tied to yet, as for a run that is about to be recorded; gives their digest. Bytes that are
 * there are not sent again, and count as new: what nothing needs is cleared away after an hour only.
 */
export async function storeBlob(postgres: Postgres, bytes: Uint8Array): Promise<string> {
  const { schema } = postgres;
  const digest = digestOf(bytes);
  const known = await postgres.send(
    {
      name: "blob-known",
      text: `UPDATE ${schema}.blob SET at = clock_timestamp() WHERE digest = $1 RETURNING digest`,
    },
    [digest],
  );
  if (known.length > 0) return digest;
  await postgres.send(
    {
      name: "blob-store",
      text: `INSERT INTO ${schema}.blob (digest, bytes) VALUES ($1, $2)
        ON CONFLICT (digest) DO UPDATE SET at = clock_timestamp()`,
    },
    [digest, bytes],
  );
  return digest;
}

/** Removes what no run needs; gives how many blobs and bytes. */
export async function clearBlobs(
  postgres: Postgres,
  { olderThanMs = LEAST_AGE_MS, most = 1000 } = {},
): Promise<{ readonly blobs: number; readonly bytes: number }> {
  const { schema } = postgres;
  const [row] = await postgres.send(
    {
      name: "clear-blobs",
      text: `WITH old AS (
          SELECT digest FROM ${schema}.blob b WHERE at < clock_timestamp() - make_interval(secs => $1::float8 / 1000)
            AND NOT EXISTS (SELECT 1 FROM ${schema}.run_blob k WHERE k.digest = b.digest) LIMIT $2 FOR UPDATE SKIP LOCKED),
        gone AS (DELETE FROM ${schema}.blob b USING old WHERE b.digest = old.digest RETURNING octet_length(b.bytes) AS size)
        SELECT count(*)::int AS blobs, coalesce(sum(size), 0)::float8 AS bytes FROM gone`,
    },
    [olderThanMs, most],
  );
  return { blobs: row?.blobs as number, bytes: row?.bytes as number };
}

/** A run that needs a blob may be recorded after it. */
const LEAST_AGE_MS = 60 * 60_000;

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
