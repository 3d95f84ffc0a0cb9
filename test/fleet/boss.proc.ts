/** The queue of jobs on PostgreSQL. */
import { after, before } from "node:test";
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
