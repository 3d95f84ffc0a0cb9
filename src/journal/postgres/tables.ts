/** The tables of a journal on PostgreSQL. They are made and changed by one command, never by what reads or drives runs. */
import type { Postgres } from "./connection.ts";
import { tablesDiffer } from "./postgres-errors.ts";

export const TABLES_VERSION = 2;

/**
 * A body is text: jsonb refuses \u0000 and half surrogates. `tx` is the transaction that wrote an entry: what was written
 * since a moment can be found by it, and its index costs next to nothing because it only grows. Tables of an earlier
 * version get what they lack: what is added has a default, so that a program of that version could still write.
 */
const tables = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS ${schema};
  CREATE TABLE IF NOT EXISTS ${schema}.meta (version int NOT NULL);
  CREATE TABLE IF NOT EXISTS ${schema}.flow (digest text PRIMARY KEY, json text NOT NULL);
  CREATE TABLE IF NOT EXISTS ${schema}.owner (
    id text PRIMARY KEY, host text NOT NULL, pid int NOT NULL, since timestamptz NOT NULL,
    beat timestamptz NOT NULL, lease interval NOT NULL
  );
  CREATE TABLE IF NOT EXISTS ${schema}.run (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE, agent text NOT NULL, digest text NOT NULL, created_at double precision NOT NULL,
    epoch int NOT NULL, owner text
  ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
  CREATE INDEX IF NOT EXISTS run_owner ON ${schema}.run (owner) WHERE owner IS NOT NULL;
  CREATE INDEX IF NOT EXISTS run_agent ON ${schema}.run (agent, key);
  CREATE TABLE IF NOT EXISTS ${schema}.run_flow (
    run bigint NOT NULL, digest text NOT NULL REFERENCES ${schema}.flow, PRIMARY KEY (run, digest)
  );
  CREATE INDEX IF NOT EXISTS run_flow_digest ON ${schema}.run_flow (digest);
  CREATE TABLE IF NOT EXISTS ${schema}.event (
    run bigint NOT NULL, seq int NOT NULL, tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    body text NOT NULL, PRIMARY KEY (run, seq)
  );
  CREATE INDEX IF NOT EXISTS event_tx ON ${schema}.event USING brin (tx) WITH (pages_per_range = 16);
  ALTER TABLE ${schema}.owner
    ADD COLUMN IF NOT EXISTS version text, ADD COLUMN IF NOT EXISTS worker text, ADD COLUMN IF NOT EXISTS offers text,
    ADD COLUMN IF NOT EXISTS draining timestamptz;
  ALTER TABLE ${schema}.run
    ADD COLUMN IF NOT EXISTS speaks int NOT NULL DEFAULT 1, ADD COLUMN IF NOT EXISTS queue text,
    ADD COLUMN IF NOT EXISTS grp text, ADD COLUMN IF NOT EXISTS priority int NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS wakes int NOT NULL DEFAULT 0, ADD COLUMN IF NOT EXISTS tries int NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS held text, ADD COLUMN IF NOT EXISTS submit_key text,
    ADD COLUMN IF NOT EXISTS held_because text, ADD COLUMN IF NOT EXISTS job text, ADD COLUMN IF NOT EXISTS due timestamptz,
    ADD COLUMN IF NOT EXISTS rest text;
  CREATE INDEX IF NOT EXISTS run_due ON ${schema}.run (priority DESC, due)
    WHERE due IS NOT NULL AND job IS NULL AND held IS NULL;
  CREATE INDEX IF NOT EXISTS run_job ON ${schema}.run (job) WHERE job IS NOT NULL;
  CREATE INDEX IF NOT EXISTS run_waiting ON ${schema}.run (queue) WHERE rest = 'waiting';
  CREATE INDEX IF NOT EXISTS run_held ON ${schema}.run (held) WHERE held IS NOT NULL;
  CREATE UNIQUE INDEX IF NOT EXISTS run_submit_key ON ${schema}.run (submit_key) WHERE submit_key IS NOT NULL;
  CREATE TABLE IF NOT EXISTS ${schema}.mail (
    run bigint NOT NULL, question text NOT NULL, kind text NOT NULL, body text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (run, kind, question)
  );
  ALTER TABLE ${schema}.mail ADD COLUMN IF NOT EXISTS letter text;
  CREATE INDEX IF NOT EXISTS mail_wish ON ${schema}.mail (run) WHERE kind = 'wish';
  CREATE TABLE IF NOT EXISTS ${schema}.blob (digest text PRIMARY KEY, bytes bytea NOT NULL);
  ALTER TABLE ${schema}.blob ADD COLUMN IF NOT EXISTS at timestamptz NOT NULL DEFAULT clock_timestamp();
  CREATE TABLE IF NOT EXISTS ${schema}.run_blob (
    run bigint NOT NULL, digest text NOT NULL REFERENCES ${schema}.blob, PRIMARY KEY (run, digest)
  );
  CREATE INDEX IF NOT EXISTS run_blob_digest ON ${schema}.run_blob (digest);
  CREATE TABLE IF NOT EXISTS ${schema}.bucket (
    name text PRIMARY KEY, amount double precision NOT NULL, per_ms double precision NOT NULL, burst double precision NOT NULL,
    tokens double precision NOT NULL, at timestamptz NOT NULL, not_before timestamptz
  );
  CREATE OR REPLACE VIEW ${schema}.backlog AS SELECT
    (SELECT count(*) FROM ${schema}.run WHERE due <= clock_timestamp() AND job IS NULL AND held IS NULL)
    + (SELECT count(*) FROM ${schema}.run WHERE job IS NOT NULL AND owner IS NULL) AS ready,
    (SELECT count(*) FROM ${schema}.run WHERE job IS NOT NULL AND owner IS NOT NULL) AS driven;
`;

/** While tables are waited for, nobody else can use them: workers must not lose their leases over it. */
const LOCK_MS = 2000;
/** So long tables are asked for again and again, where a long statement of somebody holds them. */
const BUSY_MS = 60_000;

/** Makes what is missing; harmless when repeated, also by two at once, and while others write. */
export async function makeTables(postgres: Postgres): Promise<void> {
  const { schema } = postgres;
  const found = await versionOf(postgres);
  if (found !== null && found > TABLES_VERSION) throw tablesDiffer(postgres.name, found, TABLES_VERSION);
  postgres.waitFor(BUSY_MS);
  await postgres.together(async (send) => {
    // Two that make the same table at once would refuse each other.
    await send({ name: "init-lock", text: "SELECT pg_advisory_xact_lock(hashtext($1))" }, [
      `lockstep ${schema}`,
    ]);
    await send({ name: "", text: `SET LOCAL lock_timeout = ${LOCK_MS}` });
    for (const text of tables(schema)
      .split(";")
      .filter((part) => part.trim() !== ""))
      await send({ name: `init-${hashOf(text)}`, text });
    await send({ name: "init-clear", text: `DELETE FROM ${schema}.meta` });
    await send({ name: "init-version", text: `INSERT INTO ${schema}.meta VALUES ($1)` }, [TABLES_VERSION]);
  });
}

/** JOURNAL_UNAVAILABLE where this program and the tables do not fit each other. */
export async function requireTables(postgres: Postgres): Promise<void> {
  const found = await versionOf(postgres);
  if (found !== TABLES_VERSION) throw tablesDiffer(postgres.name, found, TABLES_VERSION);
}

async function versionOf(postgres: Postgres): Promise<number | null> {
  const table = `${postgres.schema}.meta`;
  const there = await postgres.send({ name: "has-meta", text: "SELECT to_regclass($1) AS meta" }, [table]);
  if (there[0]?.meta === null) return null;
  const rows = await postgres.send({ name: "version", text: `SELECT version FROM ${table}` });
  return (rows[0]?.version as number | undefined) ?? null;
}

function hashOf(text: string): string {
  let hash = 0;
  for (const character of text) hash = (hash * 31 + character.codePointAt(0)!) | 0;
  return (hash >>> 0).toString(36);
}
