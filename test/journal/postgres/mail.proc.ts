/** Letters to runs on PostgreSQL, against a real server: the suite of every mail, and what a transaction adds. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, describe, test } from "node:test";
import type { Journal } from "../../../src/engine/ports.ts";
import { readPostgresAddress } from "../../../src/journal/postgres/address.ts";
import { openPostgres } from "../../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../../src/journal/postgres/postgres.ts";
import { makeTables } from "../../../src/journal/postgres/tables.ts";
import { newRun, refuses, waited } from "../../../src/testing/journal-samples.ts";
import { mailSuite } from "../../../src/testing/mail-suite.ts";
import { needs } from "../../needs.ts";
import { hasBouncer, startBouncer } from "./bouncer.ts";
import { startProxy } from "./proxy.ts";
import { pgPackage, serversHere, startServer, type PostgresServer } from "./server.ts";

const pg = pgPackage();
const [programs] = serversHere().values();
const missing = pg === null ? "pg@8 (mail on PostgreSQL)" : "PostgreSQL 15 or newer (mail on PostgreSQL)";
const { skip } = needs(pg !== null && programs !== undefined, missing);
const bouncing = needs(hasBouncer(), "pgbouncer (mail on PostgreSQL through a pooler)");

let schemas = 0;
let statements = 0;

if (skip === false) {
  const server = await startServer(programs!);
  after(() => server.remove());
  const suiteOn = (name: string, at: Parameters<typeof placeOn>[0], options = "") =>
    mailSuite(name, async () => {
      const { open, remove } = await placeOn(at, options);
      const [driver, other] = [await open(), await open()];
      return {
        driver: driver.mail!,
        other: other.mail!,
        drives: async (run) => void (await driver.create(newRun(run), [waited(1)])),
        remove,
      };
    });
  suiteOn("PostgreSQL", server);
  if (bouncing.skip === false) {
    const bouncer = await startBouncer(server.port);
    after(() => bouncer.remove());
    suiteOn("PostgreSQL through PgBouncer", bouncer, "&pooler=transaction");
  }
  transactionsOn(server);
} else test("mail on PostgreSQL", { skip }, () => assert.fail("it was not skipped"));

/** `options`: what is added to the address. */
async function placeOn({ url }: Pick<PostgresServer, "url">, options = "") {
  const text = `${url}?schema=mail${(schemas += 1)}${options}`;
  const here = Number(new URL(url).port);
  const postgres = openPostgres({ address: readPostgresAddress(text), pg: pg!, patienceMs: 60_000 });
  await makeTables(postgres);
  const opened: Journal[] = [];
  return {
    postgres,
    open: async (port = here) => {
      const address = readPostgresAddress(text.replace(`:${here}/`, `:${port}/`));
      const who = { ownerId: randomUUID(), host: "here", pid: process.pid, leaseMs: 30_000 };
      const journal = await openPostgresJournal({ address, pg: pg!, patienceMs: 60_000, ...who });
      opened.push(journal);
      return journal;
    },
    remove: async () => {
      for (const journal of opened) await journal.close();
      await postgres.close();
    },
  };
}

function transactionsOn(server: PostgresServer): void {
  describe("a letter and what is done with it", () => {
    const world = async (body: (place: Awaited<ReturnType<typeof placeOn>>) => Promise<void>) => {
      const place = await placeOn(server);
      try {
        await body(place);
      } finally {
        await place.remove();
      }
    };

    test("the letter and the wake of a run are one transaction, and only runs of a fleet are woken", () =>
      world(async ({ open, postgres: { schema, send } }) => {
        const journal = await open();
        const mail = journal.mail!;
        for (const run of ["ours", "fleet"]) await journal.create(newRun(run), [waited(1)]);
        const does = async (text: string) => await send({ name: `case-${(statements += 1)}`, text });
        await does(`UPDATE ${schema}.run SET queue = 'runs', grp = 'g' WHERE id = 'fleet'`);
        await does(`ALTER TABLE ${schema}.run ADD CONSTRAINT asleep CHECK (wakes = 0)`);
        await assert.rejects(mail.post("fleet", "q", "first"), /asleep/);
        await assert.rejects(mail.leaveWish("fleet", "continue"), /asleep/);
        assert.deepEqual([await mail.find("fleet", "q"), await mail.wishFor("fleet")], [null, null]);
        await mail.leaveWish("fleet", "pause");
        assert.equal(await mail.post("fleet", "quiet", "x", { wakes: false }), true);
        assert.equal(await mail.post("ours", "q", "x"), true, "nobody else drives it");
        await does(`ALTER TABLE ${schema}.run DROP CONSTRAINT asleep`);
        const wakes = async () => {
          const [row] = await does(
            `SELECT wakes, due <= clock_timestamp() AS due FROM ${schema}.run WHERE id = 'fleet'`,
          );
          return [row?.wakes, row?.due];
        };
        assert.deepEqual(await wakes(), [0, null]);
        assert.equal(await mail.post("fleet", "q", "first"), true);
        assert.deepEqual(await wakes(), [1, true]);
        assert.equal(await mail.post("fleet", "q", "second"), false);
        assert.deepEqual(await wakes(), [1, true], "what is not stored wakes nobody");
        await mail.leaveWish("fleet", "continue");
        await mail.fleet!.wake("fleet");
        assert.deepEqual(await wakes(), [3, true]);
        const { queueOf } = mail.fleet!;
        assert.deepEqual(
          [await queueOf("ours"), await queueOf("fleet")],
          [null, { queue: "runs", held: null }],
        );
        await does(
          `UPDATE ${schema}.run SET held = 'poisoned', held_because = 'it fails' WHERE id = 'fleet'`,
        );
        assert.equal((await queueOf("fleet"))?.held, "it fails");
        await refuses("RUN_UNKNOWN", queueOf("absent"));
      }));

    test("a commit whose answer is lost counts as given, once", () =>
      world(async ({ open }) => {
        const proxy = await startProxy(server.port);
        try {
          const journal = await open(proxy.port);
          await journal.create(newRun("r1"), [waited(1)]);
          const lost = proxy.loseNextAnswer("COMMIT");
          assert.equal(await journal.mail!.post("r1", "q", "mine"), true);
          await lost;
          assert.equal(await journal.mail!.post("r1", "q", "mine"), false);
          await journal.close();
        } finally {
          await proxy.close();
        }
      }));

    test("letters go away with their run, and there are none for a run that is not recorded", () =>
      world(async ({ open, postgres: { schema, send } }) => {
        const journal = await open();
        const mail = journal.mail!;
        await refuses("RUN_UNKNOWN", mail.post("absent", "q", "x"));
        await refuses("RUN_UNKNOWN", mail.leaveWish("absent", "pause"));
        const handle = await journal.create(newRun("r1"), [waited(1)]);
        await mail.post("r1", "q", "x");
        await mail.leaveWish("r1", "pause");
        await handle.release();
        await journal.remove("r1");
        const left = await send({ name: "left", text: `SELECT count(*)::int AS count FROM ${schema}.mail` });
        assert.equal(left[0]?.count, 0);
      }));
  });
}
