/** The journal of a project whose runs are recorded on PostgreSQL. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Journal } from "../../engine/ports.ts";
import { manual } from "../../flow/manual.ts";
import { readPostgresAddress } from "../../journal/postgres/address.ts";
import type { PostgresPackage } from "../../journal/postgres/connection.ts";

/** How long a run waits for a server that is away: an answer that was paid for is not given up lightly. */
const PATIENCE_MS = 120_000;
/** Others may claim the runs of a process that has not shown a sign of life for so long. */
const LEASE_MS = 30_000;

export async function openJournalAt(
  address: string,
  env: NodeJS.ProcessEnv,
  patienceMs = PATIENCE_MS,
): Promise<Journal> {
  const { openPostgresJournal } = await import("../../journal/postgres/postgres.ts");
  return await openPostgresJournal({
    address: readPostgresAddress(address),
    pg: await loadPg(env),
    patienceMs,
    leaseMs: LEASE_MS,
    ownerId: randomUUID(),
    host: hostname(),
    pid: process.pid,
  });
}

export async function loadPg(env: NodeJS.ProcessEnv): Promise<PostgresPackage> {
  const peer = { name: "pg", version: "8", whose: "A journal on PostgreSQL" };
  const found = (await loadServerPeer(peer, env)) as { readonly default?: PostgresPackage } & PostgresPackage;
  return found.default ?? found;
}

/** An optional package for runs on PostgreSQL. JOURNAL_UNAVAILABLE with the line that installs it where it is missing. */
export async function loadServerPeer(
  peer: { readonly name: string; readonly version: string; readonly whose: string },
  env: NodeJS.ProcessEnv,
): Promise<unknown> {
  const { loadPeer } = await import("../../backends/peer.ts");
  return await loadPeer({ ...peer, page: manual("fleet"), code: "JOURNAL_UNAVAILABLE" }, env);
}
