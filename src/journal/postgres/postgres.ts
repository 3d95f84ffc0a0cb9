/** The journal on PostgreSQL: the record of runs that many machines drive. */
import type { Journal, RunHandle } from "../../engine/ports.ts";
import { adoptions } from "../../flow/adopted.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flows } from "../../flow/flow.ts";
import { closed, outOfOrder, runHeld, runUnknown } from "../errors.ts";
import { createBeat } from "./beat.ts";
import { blobsIn, clearBlobs, createPostgresBlobs } from "./blobs.ts";
import { openPostgres, type PostgresOptions } from "./connection.ts";
import { createPostgresMail } from "./mail.ts";
import { createPostgresReading } from "./reading.ts";
import { createRounds } from "./rounds.ts";
import { requireTables } from "./tables.ts";
import { ALIVE, createWriter, holderIn, type Claimed, type EntryLine, type Write } from "./writes.ts";

export type PostgresJournalOptions = PostgresOptions & {
  /** Under which name this process holds runs; new for every journal that is opened. */
  readonly ownerId: string;
  /** Shown to a process that finds a run taken. */
  readonly host: string;
  readonly pid: number;
  /** Runs of a process that has not shown a sign of life for so long may be claimed by others. */
  readonly leaseMs: number;
};

/**
 * Refused where `lockstep fleet init` has not made the tables. Nothing is written before the first `create` or `claim`.
 *
 *     const journal = await openPostgresJournal({ address, pg, ownerId: randomUUID(), host, pid, leaseMs: 30_000, patienceMs: 120_000 });
 */
export async function openPostgresJournal(options: PostgresJournalOptions): Promise<Journal> {
  // Nothing is under way yet, so a server that is away is named soon.
  const postgres = openPostgres({ ...options, patienceMs: Math.min(options.patienceMs, MOST_HELLO_MS) });
  try {
    await requireTables(postgres);
    postgres.waitFor(options.patienceMs);
  } catch (error) {
    await postgres.close();
    throw error;
  }
  const { schema, name } = postgres;
  const beat = createBeat(postgres, options);
  const mail = createPostgresMail(postgres, options.ownerId);
  const rounds = createRounds<Write>(createWriter(postgres, options), WRITING, ({ run }) => run);
  /** Set when it is being closed: what was offered before is still committed. */
  let isClosing = false;
  let hasRoom = false;

  const write = (offer: Write): Promise<unknown> =>
    isClosing ? Promise.reject(closed(name)) : rounds.offer(offer);

  const handleOf = (run: string, { key, epoch, last, isAbandoned }: Claimed): RunHandle => {
    let next = last + 1;
    /** After a failure it is not known what was written, so nothing may follow. */
    let failed: unknown = null;
    let isReleased = false;
    return {
      run,
      epoch,
      ...(isAbandoned && { abandoned: true as const }),
      async append(entries, adopted = {}) {
        if (isClosing) throw closed(name);
        if (failed !== null) throw failed;
        for (const [place, { seq }] of entries.entries())
          if (seq !== next + place) throw outOfOrder(run, seq);
        if (entries.length === 0) return;
        next += entries.length;
        try {
          const lines = entries.map(lineOf);
          await write({ kind: "append", run, key, epoch, lines, flows: adoptedBy(entries, adopted) });
        } catch (error) {
          failed ??= error;
          throw error;
        }
      },
      async release() {
        if (isClosing || isReleased) return;
        isReleased = true;
        await write({ kind: "release", run, key, epoch });
      },
    };
  };

  const tidy = async (): Promise<void> => {
    hasRoom = false;
    const text = `DELETE FROM ${schema}.flow f WHERE NOT EXISTS (
      SELECT 1 FROM ${schema}.run_flow k WHERE k.digest = f.digest)`;
    await postgres.send({ name: "tidy", text });
    await clearBlobs(postgres);
  };

  return {
    ...createPostgresReading(postgres),
    mail,
    blobs: createPostgresBlobs(postgres),

    async create(about, entries = [], adopted = {}) {
      const { id: run, digest, flow } = about;
      for (const [place, { seq }] of entries.entries()) if (seq !== place + 1) throw outOfOrder(run, seq);
      if (isClosing) throw closed(name);
      await beat.begin();
      const flows = { ...adoptedBy(entries, adopted), [digest]: flow };
      const lines = entries.map(lineOf);
      const blobs = blobsIn(entries);
      return handleOf(run, (await write({ kind: "create", run, about, lines, flows, blobs })) as Claimed);
    },

    async claim(run, { takeOver = false } = {}) {
      if (isClosing) throw closed(name);
      await beat.begin();
      return handleOf(run, (await write({ kind: "claim", run, takeOver })) as Claimed);
    },

    async remove(run) {
      if (isClosing) throw closed(name);
      const removed = await postgres.together(async (send) => {
        const [row] = await send(
          {
            name: "remove",
            text: `DELETE FROM ${schema}.run r WHERE r.id = $1 AND NOT EXISTS (
              SELECT 1 FROM ${schema}.owner o WHERE o.id = r.owner AND ${ALIVE}) RETURNING r.key`,
          },
          [run],
        );
        if (row === undefined) return false;
        // After the run is locked: what was appended in that moment goes along.
        await send({ name: "remove-events", text: `DELETE FROM ${schema}.event WHERE run = $1` }, [row.key]);
        await send({ name: "remove-blobs", text: `DELETE FROM ${schema}.run_blob WHERE run = $1` }, [
          row.key,
        ]);
        await send({ name: "remove-mail", text: `DELETE FROM ${schema}.mail WHERE run = $1` }, [row.key]);
        await send({ name: "remove-flows", text: `DELETE FROM ${schema}.run_flow WHERE run = $1` }, [
          row.key,
        ]);
        return true;
      });
      if (!removed) {
        const [row] = await postgres.send(
          {
            name: "held-by",
            text: `SELECT r.owner, o.host, o.pid, extract(epoch FROM o.since)::float8 * 1000 AS since
              FROM ${schema}.run r LEFT JOIN ${schema}.owner o ON o.id = r.owner WHERE r.id = $1`,
          },
          [run],
        );
        throw row === undefined ? runUnknown(run) : runHeld(run, holderIn(row, options));
      }
      hasRoom = true;
    },

    async tidy() {
      if (isClosing) throw closed(name);
      await tidy();
    },

    async close() {
      if (isClosing) return;
      isClosing = true;
      mail.close();
      await rounds.settled();
      // What was written is safe; the lease frees the runs if this process cannot.
      postgres.waitFor(MOST_GOODBYE_MS);
      try {
        if (hasRoom) await tidy();
        await beat.end();
      } catch {
        return;
      } finally {
        await postgres.close();
      }
    },
  };
}

/** While the server commits one round, this process makes the next one ready. */
const WRITING = { most: 250, abreast: 2 };
const MOST_HELLO_MS = 3000;
const MOST_GOODBYE_MS = 3000;

/** Only what the entries name: a flow that no run needs is cleared away. */
function adoptedBy(entries: readonly Entry[], flows: Flows): Flows {
  return Object.fromEntries(
    adoptions(entries).flatMap((digest) => {
      const flow = flows[digest];
      return flow === undefined ? [] : [[digest, flow]];
    }),
  );
}

function lineOf(entry: Entry): EntryLine {
  return { seq: entry.seq, body: JSON.stringify(entry) };
}
