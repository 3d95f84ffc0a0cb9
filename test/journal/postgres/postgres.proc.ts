/** The journal on PostgreSQL, against real servers: the suite of every journal, and what only a server can do to it. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, describe, test } from "node:test";
import type { Journal, RunHandle } from "../../../src/engine/ports.ts";
import { readPostgresAddress } from "../../../src/journal/postgres/address.ts";
import { openPostgres } from "../../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../../src/journal/postgres/postgres.ts";
import { makeTables } from "../../../src/journal/postgres/tables.ts";
import { newRun, refuses, seqs, spoken, waited } from "../../../src/testing/journal-samples.ts";
import { journalSuite } from "../../../src/testing/journal-suite.ts";
import { needs } from "../../needs.ts";
import { until } from "../../until.ts";
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

async function openAt(text: string, patienceMs = 60_000, by = pg!): Promise<Journal> {
  const address = readPostgresAddress(text);
  const who = { ownerId: randomUUID(), host: "here", pid: process.pid, leaseMs: 30_000 };
  return await openPostgresJournal({ address, pg: by, patienceMs, ...who });
}

/** The package, which counts the statements that are sent. */
function counting() {
  const sent: string[] = [];
  class Pool extends pg!.Pool {
    constructor(options: object) {
      super(options);
      const { query } = this;
      Object.assign(this, {
        query: (asked: { readonly name?: string }) => {
          sent.push(asked.name?.split("-").slice(2).join("-") ?? "");
          return query.call(this, asked);
        },
      });
    }
  }
  return { sent, by: { Pool } };
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

  describe("many runs of one process", () => {
    test("what they ask and write at the same time is sent in few statements, and each gets its own", () =>
      world(async ({ place }) => {
        const { sent, by } = counting();
        const journal = await openAt(place.text, 60_000, by);
        const ids = Array.from({ length: 300 }, (_, place) => `r${place}`);
        const during = async <T>(work: () => Promise<T>) => {
          const before = sent.length;
          const result = await work();
          return { result, names: sent.slice(before) };
        };
        const all = <T>(work: (id: string, place: number) => Promise<T>) =>
          during(() => Promise.all(ids.map(work)));
        const made = await all((id, place) =>
          journal.create(newRun(id), [waited(1), spoken(2, `of ${place}`, {})]),
        );
        assert.ok(made.names.length < 10, made.names.join());
        const written = await all((_, place) => made.result[place]!.append([spoken(3, `more ${place}`, {})]));
        assert.ok(written.names.length < 5, written.names.join());
        await all((_, place) => made.result[place]!.release());
        const claimed = await all((id) => journal.claim(id));
        assert.ok(claimed.names.length < 8, claimed.names.join());
        assert.deepEqual(new Set(claimed.result.map(({ epoch }) => epoch)), new Set([2]));
        const read = await all((id, place) => journal.read(id, place % 3));
        assert.ok(read.names.length < 8, read.names.join());
        for (const [place, entries] of read.result.entries())
          assert.deepEqual(
            entries,
            [waited(1), spoken(2, `of ${place}`, {}), spoken(3, `more ${place}`, {})].slice(place % 3),
          );
        const rows = await all((id, place) => journal.rows([id, "nobody", ids[299 - place]!]));
        assert.ok(rows.names.length < 8, rows.names.join());
        for (const [place, found] of rows.result.entries())
          assert.deepEqual(
            found.map(({ id, events, last, owned }) => [id, events, last, owned]),
            [place, 299 - place].map((at) => [ids[at], 3, spoken(3, `more ${at}`, {}), true]),
          );
        await journal.mail!.leaveWish("r7", "pause");
        const wishes = await all((id) => journal.mail!.wishFor(id));
        assert.deepEqual(wishes.names, ["mail-wish"]);
        assert.deepEqual(
          wishes.result.flatMap((wish, place) => (wish === null ? [] : [[place, wish]])),
          [[7, "pause"]],
        );
        await journal.mail!.forgetWish("r7", "pause");
        const flows = await all(() => journal.flow(newRun("r1").digest));
        assert.deepEqual(flows.names, ["flow"]);
        await journal.close();
      }));

    test("an entry is not looked for among all runs of the process", async () => {
      const text = `${server.url}?schema=counted`;
      const postgres = openPostgres({ address: readPostgresAddress(text), pg: pg!, patienceMs: 60_000 });
      await makeTables(postgres);
      const journal = await openAt(text);
      const ids = Array.from({ length: 400 }, (_, place) => `r${place}`);
      const made = await Promise.all(ids.map((id) => journal.create(newRun(id), [waited(1)])));
      await Promise.all(made.map((handle) => handle.release()));
      // Now no run has an owner, and the server knows it.
      await postgres.send({ name: "", text: "ANALYZE counted.run, counted.event" });
      const handles = await Promise.all(ids.map((id) => journal.claim(id)));
      for (let seq = 2; seq <= 8; seq += 1)
        await Promise.all(handles.map((handle) => handle.append([waited(seq)])));
      for (const seq of [9, 10, 11]) await handles[0]!.append([waited(seq)]);
      const figures = `SELECT
        (SELECT n_tup_ins::int FROM pg_stat_user_tables WHERE schemaname = 'counted' AND relname = 'event') AS entries,
        (SELECT idx_tup_read::int FROM pg_stat_user_indexes WHERE schemaname = 'counted' AND indexrelname = 'run_owner') AS read`;
      const asked = async () => (await postgres.send({ name: "", text: figures }))[0]!;
      // Those of a connection are there when it is closed, which lets go of every run by its owner.
      await journal.close();
      await until(async () => (await asked()).entries === 400 * 8 + 3, "the figures are there");
      const read = Number((await asked()).read);
      assert.ok(read < 400 * 4, `${read} rows were read by the owner`);
      await postgres.close();
    });

    test("a run that is missing, damaged or has an impossible name fails alone", () =>
      world(async ({ open, place }) => {
        const journal = await open();
        for (const id of ["fine", "hurt", "gap"]) {
          const handle = await journal.create(newRun(id), [waited(1), waited(2), waited(3)]);
          await handle.release();
        }
        const harm = `UPDATE tested.event SET body = '{' WHERE seq = 2 AND run = (SELECT key FROM tested.run WHERE id = 'hurt');
          DELETE FROM tested.event WHERE seq = 2 AND run = (SELECT key FROM tested.run WHERE id = 'gap')`;
        await place.postgres.send({ name: "", text: harm });
        const asked = ["fine", "nobody", "a\0b", "hurt", "gap", "fine"].map((id) => journal.read(id));
        const found = await Promise.allSettled(asked);
        assert.deepEqual(
          found.map((one) => (one.status === "fulfilled" ? seqs(one.value) : one.reason.code)),
          [[1, 2, 3], "RUN_UNKNOWN", "RUN_UNKNOWN", "JOURNAL_UNAVAILABLE", "JOURNAL_UNAVAILABLE", [1, 2, 3]],
        );
        const rows = await Promise.all([journal.rows(["a\0b"]), journal.rows(["a\0b", "fine"])]);
        assert.deepEqual(
          rows.map((some) => some.map(({ id }) => id)),
          [[], ["fine"]],
        );
      }));

    test("a long run is read as a whole, from anywhere and as far as asked", () =>
      world(async ({ open }) => {
        const journal = await open();
        const handle = await journal.create(newRun("long"), []);
        await handle.append(Array.from({ length: 100 }, (_, place) => waited(place + 1)));
        for (const [after, limit, first, last] of [
          [0, Infinity, 1, 100],
          [0, 31, 1, 31],
          [0, 32, 1, 32],
          [0, 33, 1, 33],
          [67, Infinity, 68, 100],
          [68, Infinity, 69, 100],
          [69, Infinity, 70, 100],
          [50, 40, 51, 90],
          [50, 90, 51, 100],
        ] as const) {
          const found = seqs(await journal.read("long", after, limit));
          assert.deepEqual([found[0], found.at(-1), found.length], [first, last, last - first + 1]);
        }
        assert.deepEqual(await journal.read("long", 100), []);
        assert.deepEqual(await journal.read("long", 0, 0), []);
      }));
  });

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

    const LOST: readonly [
      what: string,
      statement: string,
      act: (journal: Journal, handles: readonly RunHandle[]) => Promise<unknown>,
      written: readonly number[],
    ][] = [
      ["an entry", "append-one", (_, [first]) => first!.append([waited(2)]), [2, 1, 1]],
      ["entries of one run", "append", (_, [first]) => first!.append([waited(2), waited(3)]), [3, 1, 1]],
      [
        "entries of all runs",
        "append",
        (_, handles) => Promise.all(handles.map((handle) => handle.append([spoken(2, "once\u2028", {})]))),
        [2, 2, 2],
      ],
      [
        "the end of a claim",
        "release",
        async (journal, [, , last]) => {
          await last!.release();
          await (await journal.claim("r3")).append([waited(2), waited(3), waited(4)]);
        },
        [1, 1, 4],
      ],
      [
        "a claim",
        "claim",
        async (journal, [, second]) => {
          await second!.release();
          await (await journal.claim("r2")).append([waited(2)]);
        },
        [1, 2, 1],
      ],
    ];
    for (const [what, statement, act, written] of LOST)
      test(`${what}: where the answer to it is lost, it counts once`, () =>
        world(async ({ open, proxy: proxied }) => {
          const proxy = await proxied();
          const journal = await open(proxy.port);
          const runs = ["r1", "r2", "r3"];
          const handles = await Promise.all(runs.map((run) => journal.create(newRun(run), [waited(1)])));
          const lost = proxy.loseNextAnswer(`lockstep-tested-${statement}\0`);
          await Promise.all([act(journal, handles), lost]);
          const counts = await Promise.all(runs.map(async (run) => (await journal.read(run)).length));
          assert.deepEqual(counts, written);
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
