/** Tables of an earlier version that are brought up to date while programs of that version write to them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { TABLES_VERSION } from "../../src/journal/postgres/tables.ts";
import { createWorld, onlyDocument, writeAgent, type World } from "../cli/world.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { env, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("tables of an earlier version");
const WRITERS = 4;

/** As version 1 made them. */
const TABLES = `CREATE SCHEMA old;
  CREATE TABLE old.meta (version int NOT NULL);
  CREATE TABLE old.flow (digest text PRIMARY KEY, json text NOT NULL);
  CREATE TABLE old.owner (
    id text PRIMARY KEY, host text NOT NULL, pid int NOT NULL, since timestamptz NOT NULL,
    beat timestamptz NOT NULL, lease interval NOT NULL
  );
  CREATE TABLE old.run (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE, agent text NOT NULL, digest text NOT NULL, created_at double precision NOT NULL,
    epoch int NOT NULL, owner text
  ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
  CREATE INDEX run_owner ON old.run (owner) WHERE owner IS NOT NULL;
  CREATE INDEX run_agent ON old.run (agent, key);
  CREATE TABLE old.run_flow (run bigint NOT NULL, digest text NOT NULL REFERENCES old.flow, PRIMARY KEY (run, digest));
  CREATE INDEX run_flow_digest ON old.run_flow (digest);
  CREATE TABLE old.event (
    run bigint NOT NULL, seq int NOT NULL, tx bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    body text NOT NULL, PRIMARY KEY (run, seq)
  );
  CREATE INDEX event_tx ON old.event USING brin (tx) WITH (pages_per_range = 16);
  INSERT INTO old.meta VALUES (1);`;

/** As version 1 wrote to them. */
const ENTER = `INSERT INTO old.owner (id, host, pid, since, beat, lease)
  VALUES ($1, 'h', 1, clock_timestamp(), clock_timestamp(), make_interval(secs => 30))
  ON CONFLICT (id) DO UPDATE SET beat = clock_timestamp()`;
const CREATE = `WITH f AS (INSERT INTO old.flow VALUES ('d', '{}') ON CONFLICT DO NOTHING),
    r AS (INSERT INTO old.run (id, agent, digest, created_at, epoch, owner) VALUES ($2, 'a', 'd', 0, 1, $1)
      ON CONFLICT (id) DO NOTHING RETURNING key, id),
    k AS (INSERT INTO old.run_flow SELECT r.key, 'd' FROM r),
    e AS (INSERT INTO old.event (run, seq, body) SELECT r.key, 1, $3 FROM r)
  SELECT key, id FROM r`;
const CLAIM = `WITH w AS (SELECT r.key, r.owner AS was FROM old.run r WHERE r.id = $2 ORDER BY r.key FOR UPDATE OF r)
  UPDATE old.run r SET epoch = r.epoch + 1, owner = $1 FROM w
  WHERE r.key = w.key AND (w.was IS NULL OR NOT EXISTS (
    SELECT 1 FROM old.owner o WHERE o.id = w.was AND o.beat + o.lease > clock_timestamp()))
  RETURNING r.key, r.epoch`;
const APPEND = `WITH fence AS (SELECT key FROM old.run WHERE key = $1 AND epoch = $2 AND owner = $3 FOR SHARE)
  INSERT INTO old.event (run, seq, body) SELECT key, $4, $5 FROM fence ON CONFLICT DO NOTHING RETURNING run`;
const RELEASE = `WITH w AS (SELECT r.key FROM old.run r WHERE r.key = $2 AND r.epoch = $3 AND r.owner = $1 FOR UPDATE OF r)
  UPDATE old.run r SET owner = NULL FROM w WHERE r.key = w.key`;

describe("tables of an earlier version", { skip }, () => {
  let server: PostgresServer;
  let world: World;
  let postgres: Postgres;
  let around: NodeJS.ProcessEnv;
  const opened: Postgres[] = [];
  before(async () => {
    server = await startServer(programs!);
    world = createWorld();
    writeAgent(world, "notes");
    around = { ...env, LOCKSTEP_STATE: `${server.url}?schema=old` };
    postgres = open();
    await postgres.send({ name: "", text: TABLES });
  });
  after(async () => {
    for (const one of opened) await one.close();
    world?.[Symbol.dispose]();
    server?.remove();
  });

  const open = (): Postgres => {
    const one = postgresAt(`${server.url}?schema=old`);
    opened.push(one);
    return one;
  };
  const lockstep = async (...args: readonly string[]) => await world.lockstep(args, { env: around });

  test("are brought up to date while older programs write, and nothing is lost", async () => {
    const kept: string[] = [];
    const over = new AbortController();
    const write = async (owner: string): Promise<void> => {
      const own = open();
      const send = async (name: string, text: string, ...values: readonly unknown[]) =>
        await own.send({ name, text }, values);
      const body = (seq: number) => JSON.stringify({ seq, at: 0, event: { type: "step.waited" } });
      for (let count = 0; !over.signal.aborted; count += 1) {
        const id = `${owner}run${count}`;
        await send("enter", ENTER, owner);
        const [made] = await send("create", CREATE, owner, id, body(1));
        await send("release", RELEASE, owner, made!.key, 1);
        const [claimed] = await send("claim", CLAIM, owner, id);
        kept.push(`${id} 1`);
        for (let seq = 2; seq <= 6; seq += 1) {
          const rows = await send("append", APPEND, claimed!.key, claimed!.epoch, owner, seq, body(seq));
          assert.equal(rows.length, 1, `${id} ${seq}`);
          kept.push(`${id} ${seq}`);
        }
      }
    };
    const goesOn = async (what: string) => {
      const earlier = kept.length;
      await until(() => kept.length > earlier + 100, what);
    };
    const writing = Array.from({ length: WRITERS }, (_, place) => write(`w${place}`));
    const written = Promise.all(writing);
    // What fails there fails here, and at once.
    const orOver = async (wait: Promise<unknown>) => await Promise.race([wait, written]);
    await orOver(goesOn("older programs write"));

    // Somebody has read for long, and then writes: neither is kept waiting until the end of the other, nor the others.
    let tries = 0;
    let init: Promise<{ readonly code: number | null; readonly stderr: string }> | null = null;
    await open().together(async (send) => {
      tries += 1;
      await send({ name: "", text: "SELECT count(*) FROM old.run" });
      init ??= lockstep("fleet", "init");
      const waits = `SELECT 1 FROM pg_locks WHERE relation = 'old.run'::regclass AND NOT granted AND mode = 'AccessExclusiveLock'`;
      const isWaiting = async () => (await postgres.send({ name: "", text: waits })).length > 0;
      await orOver(until(isWaiting, "it waits for the reader"));
      await orOver(goesOn("older programs write while it waits"));
      await orOver(until(isWaiting, "it waits again"));
      await send({ name: "", text: "INSERT INTO old.event (run, seq, body) VALUES (0, 1, '')" });
    });
    assert.equal(tries, 1, "its transaction was not given up");
    const made = await init!;
    assert.equal(made.code, 0, made.stderr);
    await orOver(goesOn("older programs write to the new tables"));
    assert.equal((await lockstep("fleet", "init")).code, 0, "again, under load");
    over.abort();
    await written;

    const rows = await postgres.send({
      name: "",
      text: "SELECT r.id || ' ' || e.seq AS kept FROM old.event e JOIN old.run r ON r.key = e.run",
    });
    const there = new Set(rows.map((row) => row.kept as string));
    assert.deepEqual(
      kept.filter((one) => !there.has(one)),
      [],
    );
    const [meta] = await postgres.send({ name: "", text: "SELECT version FROM old.meta" });
    assert.equal(meta?.version, TABLES_VERSION);
    const status = onlyDocument(await lockstep("fleet", "status", "--json"));
    assert.equal(status.v, 1);
  });

  test("of a later version are left alone: every command ends with 3 and says so", async () => {
    await postgres.send({ name: "", text: "UPDATE old.meta SET version = $1" }, [TABLES_VERSION + 1]);
    for (const args of [
      ["runs"],
      ["show", "abcdefgh"],
      ["fleet", "init"],
      ["fleet", "status"],
      ["fleet", "worker"],
      ["fleet", "submit", "notes", "--topic", "tides", "--no-files"],
    ]) {
      const { code, stderr } = await lockstep(...args);
      assert.deepEqual([code, /newer version/.test(stderr)], [3, true], `${args.join(" ")}: ${stderr}`);
    }
    const [meta] = await postgres.send({ name: "", text: "SELECT version FROM old.meta" });
    assert.equal(meta?.version, TABLES_VERSION + 1);
  });
});
