/** Letters to runs that four processes drive: one drives at a time, and none is lost, also in the moment of release. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { offerRuns } from "../../src/fleet/offer.ts";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";
import type { LetterWorkerOptions, LettersWanted } from "./letter-worker.ts";

const { skip } = needsFleet("letters to the runs of a fleet");
/** CI tries more often. */
const WAKES = Number(process.env.FLEET_WAKES ?? 1000);
const PROCESSES = 4;

describe("letters to the runs of four processes", { skip }, () => {
  let server: PostgresServer;
  let postgres: Postgres;
  before(async () => {
    server = await startServer(programs!);
    postgres = postgresAt(server.url);
    await makeFleet(postgres);
    const columns = "run text PRIMARY KEY, driven bool, doubles int, stretches int, seen int";
    await sql(`CREATE TABLE ${postgres.schema}.probe (${columns}) WITH (fillfactor = 50)`);
  });
  after(async () => {
    await postgres.close();
    server.remove();
  });

  const sql = async (text: string) => await postgres.send({ name: "", text });
  const offer = async (queue: string, count: number): Promise<readonly string[]> => {
    const offers = Array.from({ length: count }, () => ({
      run: { id: randomUUID(), agent: "a", at: 0, digest: "d", flow: {} as Flow },
      entries: [{ seq: 1, at: 0 } as Entry],
      queue,
      group: "g",
      priority: 0,
    }));
    await sql(
      `INSERT INTO ${postgres.schema}.probe VALUES ${offers.map(({ run }) => `('${run.id}', false, 0, 0, -1)`).join()}`,
    );
    return (await offerRuns(postgres, offers, 1)).map(({ run }) => run);
  };
  const startAll = (options: Omit<LetterWorkerOptions, "url">) =>
    Array.from({ length: PROCESSES }, () =>
      fork(
        new URL("letter-worker.ts", import.meta.url),
        [JSON.stringify({ url: server.url, ...options } satisfies LetterWorkerOptions)],
        { execArgv: [] },
      ),
    );
  const endAll = async (workers: ReturnType<typeof startAll>) => {
    for (const worker of workers) {
      const ended = once(worker, "exit");
      worker.kill("SIGTERM");
      assert.deepEqual(await ended, [0, null]);
    }
  };
  /** Every run has seen all its letters, and nothing wants it any more. */
  const isQuiet = async (queue: string, letters: number) => {
    const [row] = await sql(`SELECT count(*)::int AS open FROM ${postgres.schema}.run r
      JOIN ${postgres.schema}.probe p ON p.run = r.id
      WHERE r.queue = '${queue}' AND (p.seen < ${letters} OR p.driven OR r.job IS NOT NULL OR r.due IS NOT NULL)`);
    return row!.open === 0;
  };
  const tally = async (runs: readonly string[]) =>
    await postgres.send(
      {
        name: "tally",
        text: `SELECT run, doubles, stretches, seen FROM ${postgres.schema}.probe WHERE run = ANY($1)`,
      },
      [runs],
    );

  test("a hundred of one run by four processes give one driver at a time, and the last stretch sees all", async () => {
    const workers = startAll({ queue: "one", slots: 4, letters: 0 });
    const [run = ""] = await offer("one", 1);
    await until(() => isQuiet("one", 0), "it is driven");
    for (const worker of workers) worker.send({ run, letters: 100 / PROCESSES } satisfies LettersWanted);
    await until(() => isQuiet("one", 100), "every letter was seen");
    await endAll(workers);
    const [row] = await tally([run]);
    assert.deepEqual([row?.doubles, row?.seen], [0, 100]);
    assert.ok(Number(row?.stretches) <= 101, "no stretch without a letter");
  });

  test(`${WAKES} in the moment of release: each is followed by a stretch`, async () => {
    const [count, letters] = [WAKES / 20, 20];
    const runs = await offer("many", count);
    const workers = startAll({ queue: "many", slots: 50, letters });
    await until(() => isQuiet("many", letters), "every letter was seen");
    await endAll(workers);
    for (const { run, doubles, seen, stretches } of await tally(runs)) {
      assert.deepEqual([doubles, seen], [0, letters], String(run));
      assert.ok(Number(stretches) <= letters + 1, "no stretch without a letter");
    }
  });
});
