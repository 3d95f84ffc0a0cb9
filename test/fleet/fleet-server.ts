/** A PostgreSQL server with the tables of a fleet, for tests that need one. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { loadBoss, makeBossTables, openBossDispatch } from "../../src/fleet/boss.ts";
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../../src/journal/postgres/connection.ts";
import { makeTables } from "../../src/journal/postgres/tables.ts";
import { pgPackage, serversHere } from "../journal/postgres/server.ts";
import { needs } from "../needs.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";

function hasBoss(): boolean {
  try {
    createRequire(join(packages, "package.json")).resolve("pg-boss");
    return packages !== "";
  } catch {
    return false;
  }
}

const [newest] = [...serversHere().entries()].toSorted(([a], [b]) => Number(b) - Number(a));
/** The folder of the server's programs. */
export const programs = newest?.[1];

const missing = [
  ...(pgPackage() === null ? ["pg@8"] : []),
  ...(hasBoss() ? [] : ["pg-boss@12.35.0"]),
  ...(programs === undefined ? ["PostgreSQL 15 or newer"] : []),
];

/** Called once in a file. */
export function needsFleet(what: string): { readonly skip: string | false } {
  return needs(missing.length === 0, `${missing.join(", ")} (${what})`);
}

export const env = { LOCKSTEP_PACKAGES: packages };

export function postgresAt(url: string, patienceMs = 20_000): Postgres {
  return openPostgres({ address: readPostgresAddress(url), pg: pgPackage()!, patienceMs });
}

export async function makeFleet(postgres: Postgres): Promise<void> {
  await makeTables(postgres);
  await makeBossTables(postgres, await loadBoss(env));
}

export async function bossAt(postgres: Postgres, leaseMs = 10_000) {
  return await openBossDispatch({ postgres, boss: await loadBoss(env), leaseMs });
}

/** As if every job that is taken now had not been kept for an hour. */
export async function ageJobs(postgres: Postgres): Promise<void> {
  const boss = `${postgres.schema}_boss`;
  await postgres.send({
    name: "",
    text: `UPDATE ${boss}.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE state = 'active';
      UPDATE ${boss}.queue SET monitor_claim_on = NULL, monitor_on = NULL`,
  });
}
