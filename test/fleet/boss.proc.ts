/** The queue of jobs on PostgreSQL. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import type { Dispatch } from "../../src/fleet/dispatch.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { describeDispatch } from "./dispatch-suite.ts";
import { ageJobs, bossAt, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("jobs on PostgreSQL");
let server: PostgresServer | undefined;
let postgres: Postgres;
let dispatch: Dispatch;

before(async () => {
  if (skip !== false) return;
  server = await startServer(programs!);
  postgres = postgresAt(server.url);
  await makeFleet(postgres);
  await makeFleet(postgres);
  dispatch = await bossAt(postgres);
});
after(async () => {
  await dispatch?.close();
  await postgres?.close();
  server?.remove();
});

describeDispatch(
  "pg-boss",
  () =>
    Promise.resolve({
      dispatch,
      within: (work) => postgres.together(work),
      passLease: () => ageJobs(postgres),
    }),
  { skip },
);

test("a job without the id of a run is dropped, and the others are taken", { skip }, async () => {
  const queue = `strange-${randomUUID().slice(0, 8)}.v1`;
  const datas = ["NULL", "'{}'", "'[]'", "'{\"run\": 7}'", "'\"text\"'"];
  const offers = ["good", ...datas, "better"].map((run) => {
    return { id: randomUUID(), run, queue, group: "g", priority: 0 };
  });
  await postgres.together((send) => dispatch.offer(offers, send));
  const job = `${postgres.schema}_boss.job`;
  for (const { id, run } of offers)
    if (datas.includes(run))
      await postgres.send({ name: "", text: `UPDATE ${job} SET data = ${run} WHERE id = '${id}'` });
  const taken = await dispatch.take([queue], 10, { default: 1000, of: {} });
  assert.deepEqual(taken.map(({ run }) => run).toSorted(), ["better", "good"]);
  const left = await postgres.send({ name: "", text: `SELECT id::text FROM ${job} WHERE name = '${queue}'` });
  assert.deepEqual(left.map(({ id }) => String(id)).toSorted(), taken.map(({ id }) => id).toSorted());
});
