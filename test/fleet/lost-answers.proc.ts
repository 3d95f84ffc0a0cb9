/** The connection breaks after the server has committed and before it says so: each act counts once, and gives what it would have given. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import { createBuckets } from "../../src/fleet/buckets.ts";
import type { Dispatch, Job } from "../../src/fleet/dispatch.ts";
import { readLimit, removeLimit, setLimit } from "../../src/fleet/limits.ts";
import { offerRuns } from "../../src/fleet/offer.ts";
import { beginning, promote, releaseRuns, settling } from "../../src/fleet/rows.ts";
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { clearOld } from "../../src/journal/postgres/clearing.ts";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../src/journal/postgres/postgres.ts";
import { startProxy, type Proxy } from "../journal/postgres/proxy.ts";
import { pgPackage, startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { ageJobs, bossAt, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("acts whose answer is lost");
const FREE = { default: 1000, of: {} };
const LIMIT = "a/b.tokens";

/** What an act has: connections that can be cut, and a run of a queue that nobody else asks. */
type Scene = {
  readonly postgres: Postgres;
  readonly dispatch: Dispatch;
  readonly url: string;
  readonly run: string;
  readonly wanted: { readonly queues: readonly string[]; readonly speech: number };
  /** A job of the run, in its second attempt. */
  readonly job: () => Promise<Job>;
  readonly sql: (text: string) => Promise<unknown>;
};

/** Prepares something, and gives what is done while an answer is lost. */
type Act = (scene: Scene) => Promise<() => Promise<unknown>>;

const ENDED = { afterMs: null, tries: 0, held: null, rest: "ended" } as const;

/** For a caller that waits for no server, and asks again. */
async function repeated<T>(postgres: Postgres, act: () => Promise<T>): Promise<T> {
  postgres.waitFor(0);
  for (let tries = 1; ; tries += 1)
    try {
      return await act();
    } catch (error) {
      if (tries === 10) throw error;
    }
}

const withJournal = async <T>(
  { url, postgres }: Scene,
  use: (journal: Awaited<ReturnType<typeof openPostgresJournal>>) => Promise<T>,
): Promise<T> => {
  const address = readPostgresAddress(`${url}?schema=${postgres.schema}`);
  const about = { ownerId: randomUUID(), host: "test", pid: 1, leaseMs: 10_000, patienceMs: 20_000 };
  const journal = await openPostgresJournal({ address, pg: pgPackage()!, ...about });
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
};

const ACTS: readonly [what: string, act: Act, row: string][] = [
  ["a run is offered", async (scene) => () => offered(scene.postgres, "q-new"), "count(*)::int AS runs"],
  [
    "a job is made",
    async ({ postgres, dispatch, wanted }) =>
      () =>
        promote(postgres, dispatch, wanted),
    "job IS NULL AS free, due",
  ],
  [
    "a second attempt begins",
    async ({ postgres, dispatch, job }) => {
      const taken = await job();
      return async () => (await beginning(postgres, dispatch, [taken], 1)()).map(({ tries }) => tries);
    },
    "tries, held",
  ],
  [
    "a second attempt begins, and the caller repeats it",
    async ({ postgres, dispatch, job }) => {
      const begin = beginning(postgres, dispatch, [await job()], 1);
      return async () => (await repeated(postgres, begin)).map(({ tries }) => tries);
    },
    "tries, held",
  ],
  [
    "the last attempt begins",
    async ({ postgres, dispatch, job, sql }) => {
      const taken = await job();
      await sql("tries = 2");
      return async () => (await beginning(postgres, dispatch, [taken], 1)()).length;
    },
    "tries, held, job",
  ],
  [
    "a stretch is settled",
    async ({ postgres, dispatch, job }) => {
      const settle = settling(postgres, dispatch, [{ job: await job(), next: ENDED }]);
      return async () => (await repeated(postgres, settle)).size;
    },
    "tries, job, rest",
  ],
  [
    "a run that is held is released",
    async ({ postgres, run, sql }) => {
      await sql("held = 'poisoned', due = NULL");
      return async () => (await releaseRuns(postgres, [run])).length;
    },
    "held, due IS NULL AS rests",
  ],
  [
    "a limit is removed",
    async ({ postgres }) => {
      await setLimit(postgres, readLimit(LIMIT, "100/day", { burst: 100 }));
      return () => removeLimit(postgres, { name: LIMIT, group: null });
    },
    "tries",
  ],
  [
    "tokens are taken",
    async ({ postgres }) => {
      await setLimit(postgres, readLimit("costUsd", "100/day"));
      return () => createBuckets(postgres).take("costUsd", 40, 0);
    },
    "(SELECT tokens FROM fleet.bucket WHERE name = 'costUsd') AS left",
  ],
  [
    "tokens are settled",
    async ({ postgres }) => {
      await setLimit(postgres, readLimit("costUsd", "100/day"));
      return () => createBuckets(postgres).settle("costUsd", 30);
    },
    "(SELECT tokens FROM fleet.bucket WHERE name = 'costUsd') AS left",
  ],
  [
    "a run is woken",
    async (scene) => () => withJournal(scene, async ({ mail }) => await mail!.fleet!.wake(scene.run)),
    "wakes",
  ],
  [
    "a letter is posted",
    async (scene) => () => withJournal(scene, async ({ mail }) => await mail!.post(scene.run, "q", "yes")),
    "wakes, (SELECT count(*)::int FROM fleet.mail m WHERE m.run = r.key) AS letters",
  ],
  [
    "a run is removed",
    async (scene) => () => withJournal(scene, async ({ remove }) => await remove(scene.run)),
    "count(*)::int AS runs",
  ],
  [
    "old runs are pruned",
    async ({ postgres, sql }) => {
      await clearOld(postgres, 1);
      await sql("due = NULL");
      return async () => (await clearOld(postgres, 1)).runs;
    },
    "count(*)::int AS runs",
  ],
];

async function offered(postgres: Postgres, queue: string) {
  const id = randomUUID();
  const run = { id, agent: "a", at: 0, digest: "d", flow: {} as Flow };
  const offer = { run, entries: [{ seq: 1, at: 0 } as Entry], queue, group: "g", priority: 0 };
  return (await offerRuns(postgres, [offer], 1)).map((made) => made.isNew && made.run === id);
}

describe("an act whose answer is lost", { skip }, () => {
  let server: PostgresServer;
  let direct: Postgres;
  let proxy: Proxy;
  before(async () => {
    server = await startServer(programs!);
    direct = postgresAt(`${server.url}?schema=fleet`);
    await makeFleet(direct);
    proxy = await startProxy(server.port);
  });
  after(async () => {
    await direct.close();
    await proxy.close();
    server.remove();
  });

  /** What the act gave, and how the run stands then. */
  const played = async (act: Act, row: string, isLost: boolean): Promise<unknown> => {
    const queue = `q-${randomUUID().slice(0, 8)}`;
    await direct.send({ name: "", text: "DELETE FROM fleet.bucket" });
    await offered(direct, queue);
    const at = `WHERE queue = '${queue}'`;
    const [made] = await direct.send({ name: "", text: `SELECT id FROM fleet.run ${at}` });
    const url = server.url.replace(`:${server.port}`, `:${proxy.port}`);
    const postgres = postgresAt(`${url}?schema=fleet`);
    const dispatch = await bossAt(postgres);
    const wanted = { queues: [queue], speech: 1 };
    const take = async () => (await dispatch.take([`${queue}.v1`], 1, FREE))[0]!;
    const done = await act({
      postgres,
      dispatch,
      url,
      wanted,
      run: made!.id as string,
      job: async () => {
        await promote(direct, dispatch, wanted);
        await take();
        await ageJobs(direct);
        await dispatch.tend([`${queue}.v1`]);
        return await take();
      },
      sql: async (text) => await direct.send({ name: "", text: `UPDATE fleet.run SET ${text} ${at}` }),
    });
    const lost = isLost ? proxy.loseNextAnswer("COMMIT") : null;
    const gave = await done();
    await lost;
    await dispatch.close();
    await postgres.close();
    return { gave, row: await direct.send({ name: "", text: `SELECT ${row} FROM fleet.run r ${at}` }) };
  };

  for (const [what, act, row] of ACTS)
    test(`${what} once`, async () => {
      assert.deepEqual(await played(act, row, true), await played(act, row, false));
    });
});
