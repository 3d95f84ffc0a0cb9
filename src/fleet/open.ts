/** The server of a fleet, opened for a command that a person waits for. */
import { readPostgresAddress } from "../journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../journal/postgres/connection.ts";
import { requireTables } from "../journal/postgres/tables.ts";
import { loadPg } from "../run/records/postgres-journal.ts";

/** A server that is away is named soon. */
const PATIENCE_MS = 3000;

/** JOURNAL_UNAVAILABLE where `lockstep fleet init` has not made the tables of this program. */
export async function onFleetServer<T>(
  address: string,
  env: NodeJS.ProcessEnv,
  work: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const about = { address: readPostgresAddress(address), pg: await loadPg(env), patienceMs: PATIENCE_MS };
  const postgres = openPostgres(about);
  try {
    await requireTables(postgres);
    return await work(postgres);
  } finally {
    await postgres.close();
  }
}
