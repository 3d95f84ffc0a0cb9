/** The journal on PostgreSQL, against real servers: the suite of every journal, and what only a server can do to it. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { readPostgresAddress } from "../../../src/journal/postgres/address.ts";
import { openPostgres } from "../../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../../src/journal/postgres/postgres.ts";
import { makeTables } from "../../../src/journal/postgres/tables.ts";
import { journalSuite } from "../../../src/testing/journal-suite.ts";
import { needs } from "../../needs.ts";
import { pgPackage, serversHere, startServer, type PostgresServer } from "./server.ts";

const pg = pgPackage();
const servers = serversHere();
const missing =
  pg === null ? "pg@8 (journal on PostgreSQL)" : "PostgreSQL 15 or newer (journal on PostgreSQL)";
const { skip } = needs(pg !== null && servers.size > 0, missing);

if (skip === false) {
  for (const [version, programs] of servers) {
    const server = await startServer(programs);
    after(() => server.remove());
    suiteOn(`PostgreSQL ${version}`, server);
  }
} else test("the journal on PostgreSQL", { skip }, () => undefined);

function suiteOn(name: string, server: PostgresServer): void {
  let schemas = 0;
  journalSuite(name, async () => {
    const address = readPostgresAddress(`${server.url}?schema=s${(schemas += 1)}`);
    const postgres = openPostgres({ address, pg: pg!, patienceMs: 60_000 });
    await makeTables(postgres);
    return {
      open: () =>
        openPostgresJournal({
          address,
          pg: pg!,
          patienceMs: 60_000,
          ownerId: randomUUID(),
          host: "here",
          pid: process.pid,
          leaseMs: 30_000,
        }),
      async remove() {
        await postgres.send({ name: "drop", text: `DROP SCHEMA ${address.schema} CASCADE` });
        await postgres.close();
      },
    };
  });
  void assert;
}
