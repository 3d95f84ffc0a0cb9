/** Recording runs for a fleet: the row, the first entries and the flow of each, and the mark that it wants a worker. */
import type { NewRun } from "../engine/ports.ts";
import type { Entry } from "../flow/event.ts";
import type { Flows } from "../flow/flow.ts";
import type { Postgres } from "../journal/postgres/connection.ts";

/** A run that was prepared and is not recorded yet. */
export type RunOffer = {
  readonly run: NewRun;
  readonly entries: readonly Entry[];
  /** Flows that its entries adopt, beside the one of the run. */
  readonly flows?: Flows;
  /** Without the speech: `runs`. */
  readonly queue: string;
  readonly group: string;
  /** From -1000 to 1000; higher ones first. */
  readonly priority: number;
  /** By the clock of the server; absent: at once. */
  readonly notBefore?: number;
  /** The same key is the same run: what was recorded for it before is given back. */
  readonly key?: string;
  /** Digests of blobs that it needs, which are there already. */
  readonly blobs?: readonly string[];
};

/** `isNew`: false where the key was known, and then `run` is the one of that time. */
export type OfferedRun = { readonly run: string; readonly isNew: boolean };

/** All of them, or none. `speech`: of the program that prepared them. In the order of the offers. */
export async function offerRuns(
  postgres: Postgres,
  offers: readonly RunOffer[],
  speech: number,
): Promise<readonly OfferedRun[]> {
  const { schema } = postgres;
  return await postgres.together(async (send) => {
    const flows: Flows = Object.assign(
      {},
      ...offers.map(({ run, flows: more }) => ({ ...more, [run.digest]: run.flow })),
    );
    const made = await send({ name: "offer-runs", text: offerText(schema) }, [
      Object.keys(flows),
      Object.values(flows).map((flow) => JSON.stringify(flow)),
      offers.map(({ run }) => run.id),
      offers.map(({ run }) => run.agent),
      offers.map(({ run }) => run.digest),
      offers.map(({ run }) => run.at),
      offers.map(({ queue }) => queue),
      offers.map(({ group }) => group),
      offers.map(({ priority }) => priority),
      offers.map(({ notBefore }) => notBefore ?? null),
      offers.map(({ key }) => key ?? null),
      speech,
      ...pairs(offers, ({ run, flows: more }) => [run.digest, ...Object.keys(more ?? {})]),
      ...pairs(offers, ({ blobs = [] }) => blobs),
      offers.flatMap(({ run, entries }) => entries.map(() => run.id)),
      offers.flatMap(({ entries }) => entries.map(({ seq }) => seq)),
      offers.flatMap(({ entries }) => entries.map((entry) => JSON.stringify(entry))),
    ]);
    const isMade = new Set(made.map(({ id }) => id));
    const keys = offers.flatMap(({ key }) => key ?? []);
    const known = await send(
      { name: "offered-before", text: `SELECT id, submit_key FROM ${schema}.run WHERE submit_key = ANY($1)` },
      [keys],
    );
    const byKey = new Map(known.map(({ id, submit_key }) => [submit_key, id]));
    return offers.map(({ run: { id }, key }) => {
      if (isMade.has(id)) return { run: id, isNew: true };
      // Without a key it was recorded by an earlier try, whose answer was lost.
      const before = key === undefined ? undefined : byKey.get(key);
      return before === undefined || before === id
        ? { run: id, isNew: true }
        : { run: before as string, isNew: false };
    });
  });
}

function pairs(
  offers: readonly RunOffer[],
  digests: (offer: RunOffer) => readonly string[],
): readonly [runs: readonly string[], digests: readonly string[]] {
  const all = offers.flatMap((offer) => digests(offer).map((digest) => [offer.run.id, digest] as const));
  return [all.map(([id]) => id), all.map(([, digest]) => digest)];
}

function offerText(schema: string): string {
  return `WITH f AS (INSERT INTO ${schema}.flow SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING),
    r AS (
      INSERT INTO ${schema}.run (id, agent, digest, created_at, epoch, queue, grp, priority, due, submit_key, speaks)
      SELECT id, agent, digest, at, 0, queue, grp, priority,
        coalesce(to_timestamp(due / 1000), clock_timestamp()), submit_key, $12::int
      FROM unnest($3::text[], $4::text[], $5::text[], $6::float8[], $7::text[], $8::text[], $9::int[], $10::float8[], $11::text[])
        WITH ORDINALITY AS n(id, agent, digest, at, queue, grp, priority, due, submit_key, place)
      ORDER BY place
      ON CONFLICT DO NOTHING RETURNING key, id),
    k AS (INSERT INTO ${schema}.run_flow
      SELECT DISTINCT r.key, n.digest FROM unnest($13::text[], $14::text[]) AS n(id, digest) JOIN r USING (id)),
    b AS (INSERT INTO ${schema}.run_blob
      SELECT DISTINCT r.key, n.digest FROM unnest($15::text[], $16::text[]) AS n(id, digest) JOIN r USING (id)),
    e AS (INSERT INTO ${schema}.event (run, seq, body)
      SELECT r.key, n.seq, n.body FROM unnest($17::text[], $18::int[], $19::text[]) AS n(id, seq, body) JOIN r USING (id))
  SELECT key, id FROM r`;
}
