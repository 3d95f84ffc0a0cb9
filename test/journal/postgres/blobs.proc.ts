/** Blobs on a real PostgreSQL server: stored once, checked when they are read, gone with the last run that needs them. */
import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { after, describe, test } from "node:test";
import { readPostgresAddress } from "../../../src/journal/postgres/address.ts";
import { clearBlobs, createPostgresBlobs, storeBlob } from "../../../src/journal/postgres/blobs.ts";
import { openPostgres } from "../../../src/journal/postgres/connection.ts";
import { openPostgresJournal } from "../../../src/journal/postgres/postgres.ts";
import { makeTables } from "../../../src/journal/postgres/tables.ts";
import { newRun, waited } from "../../../src/testing/journal-samples.ts";
import { needs } from "../../needs.ts";
import { pgPackage, serversHere, startServer } from "./server.ts";

const pg = pgPackage();
const [programs] = serversHere().values();
const { skip } = needs(pg !== null && programs !== undefined, "PostgreSQL 15 or newer (blobs of a fleet)");

describe("blobs on PostgreSQL", { skip }, async () => {
  if (skip !== false) return;
  const server = await startServer(programs!);
  const address = readPostgresAddress(`${server.url}?schema=tested`);
  const postgres = openPostgres({ address, pg: pg!, patienceMs: 60_000 });
  await makeTables(postgres);
  const journal = await openPostgresJournal({
    address,
    pg: pg!,
    patienceMs: 60_000,
    ownerId: randomUUID(),
    host: "here",
    pid: process.pid,
    leaseMs: 30_000,
  });
  after(async () => {
    await journal.close();
    await postgres.close();
    server.remove();
  });
  const blobs = createPostgresBlobs(postgres);
  const everything = Uint8Array.from({ length: 100_000 }, (_, place) => place % 256);
  const digestOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
  const make = async (id: string) => {
    const handle = await journal.create(newRun(id), [waited(1)]);
    await handle.release();
  };
  const count = async () =>
    (await postgres.send({ name: "n", text: "SELECT count(*)::int AS n FROM tested.blob" }))[0]?.n;

  test("are read as they were stored, by their digest", async () => {
    await make("a");
    const digest = await blobs.put("a", everything);
    assert.equal(digest, digestOf(everything));
    assert.deepEqual(Buffer.from((await blobs.get(digest))!), Buffer.from(everything));
    assert.equal(await blobs.put("a", everything), digest);
    assert.equal(await blobs.get("0".repeat(64)), null);
    await assert.rejects(blobs.put("unknown", everything), { code: "RUN_UNKNOWN" });
    await journal.remove("a");
  });

  test("that were changed by somebody are not given out", async () => {
    await make("b");
    const digest = await blobs.put("b", Buffer.from("mine"));
    await postgres.send({ name: "harm", text: "UPDATE tested.blob SET bytes = 'theirs' WHERE digest = $1" }, [
      digest,
    ]);
    assert.equal(await blobs.get(digest), null);
    await journal.remove("b");
  });

  test("stay while one run needs them, and for an hour after", async () => {
    await clearBlobs(postgres, { olderThanMs: 0 });
    await make("c");
    await make("d");
    const shared = Buffer.from("shared");
    await blobs.put("c", shared);
    await blobs.put("d", shared);
    await journal.remove("c");
    assert.deepEqual(await clearBlobs(postgres, { olderThanMs: 0 }), { blobs: 0, bytes: 0 });
    await journal.remove("d");
    await journal.tidy();
    assert.equal(await count(), 1);
    assert.deepEqual(await clearBlobs(postgres, { olderThanMs: 0 }), { blobs: 1, bytes: 6 });
  });

  test("that are about to be needed count as new", async () => {
    await storeBlob(postgres, Buffer.from("for later"));
    await postgres.send({ name: "age", text: "UPDATE tested.blob SET at = at - interval '2 hours'" });
    const digest = await storeBlob(postgres, Buffer.from("for later"));
    await journal.tidy();
    assert.ok(await blobs.get(digest));
    await postgres.send({ name: "age", text: "UPDATE tested.blob SET at = at - interval '2 hours'" });
    await journal.tidy();
    assert.equal(await blobs.get(digest), null);
  });
});
