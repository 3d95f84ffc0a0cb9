/** The journal on PostgreSQL, against real servers: the suite of every journal, and what only a server can do to it. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, describe, test } from "node:test";
import type { Journal } from "../../../src/engine/ports.ts";
import { readPostgresAddress } from "../../../src/journal/postgres/address.ts";
import { openPostgres } from "../../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../../src/journal/postgres/postgres.ts";
import { makeTables } from "../../../src/journal/postgres/tables.ts";
import { newRun, refuses, seqs, spoken, waited } from "../../../src/testing/journal-samples.ts";
import { journalSuite } from "../../../src/testing/journal-suite.ts";
import { needs } from "../../needs.ts";
import { hasBouncer, startBouncer } from "./bouncer.ts";
import { startProxy, type Proxy } from "./proxy.ts";
import { pgPackage, serversHere, startServer, type PostgresServer } from "./server.ts";

const made = new Set<string>();
const pg = pgPackage();
const servers = serversHere();
const missing =
  pg === null ? "pg@8 (journal on PostgreSQL)" : "PostgreSQL 15 or newer (journal on PostgreSQL)";
const { skip } = needs(pg !== null && servers.size > 0, missing);
const bouncing = needs(hasBouncer(), "pgbouncer (journal on PostgreSQL through a pooler)");

if (skip === false) {
  for (const [version, programs] of servers) {
    const server = await startServer(programs);
    after(() => server.remove());
    journalSuite(`PostgreSQL ${version}`, () => placeOn(server.url));
  }
  const [programs] = servers.values();
  const server = await startServer(programs!);
  after(() => server.remove());
  if (bouncing.skip === false) {
    const bouncer = await startBouncer(server.port);
    after(() => bouncer.remove());
    journalSuite("PostgreSQL through PgBouncer", () => placeOn(bouncer.url, "&pooler=transaction"));
  }
  harmOn(server);
} else test("the journal on PostgreSQL", { skip }, () => assert.fail("it was not skipped"));

/** Tables are made once for each server, and emptied after each case. */
async function placeOn(url: string, more = "") {
  const text = `${url}?schema=tested${more}`;
  const address = readPostgresAddress(text);
  const postgres = openPostgres({ address, pg: pg!, patienceMs: 60_000 });
  if (!made.has(url)) await makeTables(postgres);
  made.add(url);
  return {
    text,
    postgres,
    open: (at = text) => openAt(at),
    async remove() {
      const tables = ["run", "event", "flow", "run_flow", "owner"].map((name) => `tested.${name}`);
      await postgres.send({ name: "empty", text: `TRUNCATE ${tables.join(", ")}` });
      await postgres.close();
    },
  };
}

async function openAt(text: string, patienceMs = 60_000): Promise<Journal> {
  const address = readPostgresAddress(text);
  const who = { ownerId: randomUUID(), host: "here", pid: process.pid, leaseMs: 30_000 };
  return await openPostgresJournal({ address, pg: pg!, patienceMs, ...who });
}

function harmOn(server: PostgresServer): void {
  type World = {
    readonly place: Awaited<ReturnType<typeof placeOn>>;
    readonly open: (port?: number) => Promise<Journal>;
    /** Before the server; it goes away after the journals. */
    readonly proxy: () => Promise<Proxy>;
  };
  const world = async (body: (world: World) => Promise<void>) => {
    const place = await placeOn(server.url);
    const opened: Journal[] = [];
    const proxies: Proxy[] = [];
    try {
      await body({
        place,
        proxy: async () => {
          const proxy = await startProxy(server.port);
          proxies.push(proxy);
          return proxy;
        },
        open: async (port = server.port) => {
          const journal = await place.open(place.text.replace(`:${server.port}/`, `:${port}/`));
          opened.push(journal);
          return journal;
        },
      });
    } finally {
      for (const journal of opened) await journal.close();
      for (const proxy of proxies) await proxy.close();
      await place.remove();
    }
  };

  describe("a server that is away, slow or gone", () => {
    test("an append waits while the server is away, and is written once", () =>
      world(async ({ open }) => {
        const journal = await open();
        const handle = await journal.create(newRun("r1"), [waited(1)]);
        server.stop();
        const appended = handle.append([spoken(2, "paid for", {})]);
        server.start();
        await appended;
        await handle.append([waited(3)]);
        assert.deepEqual(seqs(await journal.read("r1")), [1, 2, 3]);
      }));

    test("a write whose answer is lost counts once", () =>
      world(async ({ open, proxy: proxied }) => {
        const proxy = await proxied();
        const journal = await open(proxy.port);
        const handle = await journal.create(newRun("r1"), [waited(1)]);
        const lost = proxy.loseNextAnswer();
        const appended = handle.append([spoken(2, "once", {})]);
        await lost;
        await appended;
        const both = proxy.loseNextAnswer();
        const created = journal.create(newRun("r2"), [waited(1), waited(2)]);
        await both;
        await (await created).append([waited(3)]);
        await handle.append([waited(3)]);
        assert.deepEqual(await journal.read("r1"), [waited(1), spoken(2, "once", {}), waited(3)]);
        assert.deepEqual(seqs(await journal.read("r2")), [1, 2, 3]);
        await refuses("RUN_EXISTS", journal.create(newRun("r2"), [waited(1), waited(2)]), /r2/);
      }));

    test("an append that is under way when the run is taken over is refused, and the new owner knows what is there", () =>
      world(async ({ open, proxy: proxied }) => {
        const proxy = await proxied();
        const [slow, other] = [await open(proxy.port), await open()];
        const stale = await slow.create(newRun("r1"), [waited(1)]);
        proxy.hold();
        const late = stale.append([spoken(2, "late", {})]);
        const fresh = await other.claim("r1", { takeOver: true });
        assert.equal(fresh.abandoned, true);
        await fresh.append([spoken(2, "of the new owner", {})]);
        proxy.pass();
        await refuses("RUN_OWNED_ELSEWHERE", late, /r1/);
        await refuses("RUN_OWNED_ELSEWHERE", stale.append([waited(3)]), /r1/);
        assert.deepEqual(await other.read("r1"), [waited(1), spoken(2, "of the new owner", {})]);
      }));

    test("a run of a process without a sign of life can be claimed, one of a living process cannot", () =>
      world(async ({ place, open }) => {
        const [first, second] = [await open(), await open()];
        const handle = await first.create(newRun("r1"), [waited(1)]);
        await refuses("RUN_OWNED_ELSEWHERE", second.claim("r1"), /r1.*by process \d+/);
        await refuses("RUN_OWNED_ELSEWHERE", second.remove("r1"), /r1/);
        const { schema } = place.postgres;
        await place.postgres.send({
          name: "age",
          text: `UPDATE ${schema}.owner SET beat = beat - interval '1 hour'`,
        });
        assert.deepEqual(
          (await second.list()).map(({ owned }) => owned),
          [false],
        );
        const taken = await second.claim("r1");
        assert.deepEqual([taken.epoch, taken.abandoned], [2, true]);
        await refuses("RUN_OWNED_ELSEWHERE", handle.append([waited(2)]), /r1/);
      }));

    test("a server that stays away is named, with what to do", async () => {
      const gone = `postgres://postgres@127.0.0.1:1/postgres`;
      await refuses("JOURNAL_UNAVAILABLE", openAt(gone, 0), /127\.0\.0\.1:1\/postgres cannot be reached/);
      const nowhere = server.url.replace(/postgres$/, "nowhere");
      await refuses("JOURNAL_UNAVAILABLE", openAt(nowhere, 0), /nowhere does not exist/);
    });

    test("tables that are missing, or of another version, are named with the command that makes them", () =>
      world(async ({ place }) => {
        const empty = `${server.url}?schema=nothing_here`;
        await refuses("JOURNAL_UNAVAILABLE", openAt(empty), /no tables.*lockstep fleet init/);
        await Promise.all([makeTables(place.postgres), makeTables(place.postgres)]);
        const set = (version: number) =>
          place.postgres.send(
            { name: "set", text: `UPDATE ${place.postgres.schema}.meta SET version = $1` },
            [version],
          );
        await set(99);
        await refuses("JOURNAL_UNAVAILABLE", openAt(place.text), /newer version \(99/);
        await refuses("JOURNAL_UNAVAILABLE", makeTables(place.postgres), /newer version/);
        await set(0);
        await refuses("JOURNAL_UNAVAILABLE", openAt(place.text), /older version.*lockstep fleet init/);
        await makeTables(place.postgres);
        await (await openAt(place.text)).close();
      }));

    test("an entry that was changed in the table is named, and hides no other run", () =>
      world(async ({ place, open }) => {
        const journal = await open();
        await (await journal.create(newRun("r1"), [waited(1), waited(2), waited(3)])).release();
        await (await journal.create(newRun("r2"), [waited(1)])).release();
        const { schema } = place.postgres;
        const run = `(SELECT key FROM ${schema}.run WHERE id = 'r1')`;
        await place.postgres.send({
          name: "harm",
          text: `UPDATE ${schema}.event SET body = '{}' WHERE seq = 3 AND run = ${run}`,
        });
        await refuses("JOURNAL_UNAVAILABLE", journal.read("r1"), /entry 3 of run r1/);
        assert.deepEqual(seqs(await journal.read("r1", 0, 2)), [1, 2]);
        const rows = await journal.list();
        assert.deepEqual(
          rows.map(({ id, damaged }) => [id, damaged !== undefined]),
          [
            ["r2", false],
            ["r1", true],
          ],
        );
        await place.postgres.send({
          name: "gap",
          text: `DELETE FROM ${schema}.event WHERE seq = 2 AND run = ${run}`,
        });
        await refuses("JOURNAL_UNAVAILABLE", journal.read("r1"), /entry 2 of run r1 is missing/);
      }));
  });
}
