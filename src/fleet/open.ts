/** A fleet by the address of its server: for those who prepare it, submit to it and look at it. */
import { RunnerError } from "../engine/ports.ts";
import { readPostgresAddress } from "../journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../journal/postgres/connection.ts";
import { makeTables, requireTables } from "../journal/postgres/tables.ts";
import { loadPg } from "../run/records/postgres-journal.ts";

/** A person waits: a server that is away is named soon. */
const HELLO_MS = 3000;

/** `use` is not called where the tables and this program do not fit each other. */
export async function withFleet<T>(
  address: string,
  env: NodeJS.ProcessEnv,
  use: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  return await withServer(address, env, async (postgres) => {
    await requireTables(postgres);
    return await use(postgres);
  });
}

/** `withoutQueue`: why the tables of the queue could not be made; runs can be recorded without them. */
export type FleetMade = { readonly name: string; readonly withoutQueue: string | null };

/** Makes the tables of runs and of the queue, or brings them up to date. */
export async function makeFleetTables(address: string, env: NodeJS.ProcessEnv): Promise<FleetMade> {
  return await withServer(address, env, async (postgres) => {
    await makeTables(postgres);
    const { loadBoss, makeBossTables } = await import("./boss.ts");
    const boss = await loadBoss(env).catch((error: unknown) => error as Error);
    if (boss instanceof RunnerError) return { name: postgres.name, withoutQueue: boss.message };
    if (boss instanceof Error) throw boss;
    await makeBossTables(postgres, boss);
    return { name: postgres.name, withoutQueue: null };
  });
}

async function withServer<T>(
  address: string,
  env: NodeJS.ProcessEnv,
  use: (postgres: Postgres) => Promise<T>,
): Promise<T> {
  const place = readPostgresAddress(address);
  const postgres = openPostgres({ address: place, pg: await loadPg(env), patienceMs: HELLO_MS });
  try {
    return await use(postgres);
  } finally {
    await postgres.close();
  }
}
