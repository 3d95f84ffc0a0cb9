/** What is written to a journal on PostgreSQL: one statement for all runs of a process that write at the same time. */
import type { NewRun } from "../../engine/ports.ts";
import { SPEECH } from "../../flow/event.ts";
import type { Flows } from "../../flow/flow.ts";
import { outOfOrder, runExists, runHeld, runNewer, runUnknown, writerStale, type Holder } from "../errors.ts";
import type { Postgres, Rows, Statement } from "./connection.ts";
import type { RoundOutcome } from "./rounds.ts";

export type EntryLine = { readonly seq: number; readonly body: string };

/** Written with the epoch of its claim, by its owner; otherwise it is refused. */
type Fenced = { readonly run: string; readonly key: string; readonly epoch: number };

export type Write =
  | {
      readonly kind: "create";
      readonly run: string;
      readonly about: NewRun;
      readonly lines: readonly EntryLine[];
      readonly flows: Flows;
      /** Of a fork: those that the entries name, which another run has made. */
      readonly blobs: readonly string[];
    }
  | { readonly kind: "claim"; readonly run: string; readonly takeOver: boolean }
  | (Fenced & { readonly kind: "append"; readonly lines: readonly EntryLine[]; readonly flows: Flows })
  | (Fenced & { readonly kind: "release" });

export type Claimed = {
  readonly key: string;
  readonly epoch: number;
  readonly last: number;
  readonly isAbandoned: boolean;
};

type Of<Kind extends Write["kind"]> = Write & { readonly kind: Kind };

/** Performs a round of writes, each of another run. */
export function createWriter(postgres: Postgres, us: OwnerName) {
  const owner = us.ownerId;
  const { schema } = postgres;
  const sql = statementsOf(schema);

  const create = async (writes: readonly Of<"create">[]): Promise<readonly RoundOutcome[]> => {
    const flows = { ...Object.assign({}, ...writes.map(({ flows }) => flows)) } as Flows;
    const needs = writes.flatMap(({ run, flows: own }) => Object.keys(own).map((digest) => [run, digest]));
    const lines = writes.flatMap(({ run, lines: own }) => own.map((line) => ({ run, ...line })));
    const blobs = writes.flatMap(({ run, blobs: own }) => own.map((digest) => [run, digest]));
    const made = await postgres.send(sql.create, [
      owner,
      Object.keys(flows),
      Object.values(flows).map((flow) => JSON.stringify(flow)),
      writes.map(({ run }) => run),
      writes.map(({ about }) => about.agent),
      writes.map(({ about }) => about.digest),
      writes.map(({ about }) => about.at),
      needs.map(([run]) => run),
      needs.map(([, digest]) => digest),
      lines.map(({ run }) => run),
      numbers(lines.map(({ seq }) => seq)),
      bodiesOf(lines),
      blobs.map(([run]) => run),
      blobs.map(([, digest]) => digest),
    ]);
    const madeNow = new Map(made.map((row) => [row.id, row]));
    return await Promise.all(
      writes.map(async ({ run, lines: own }): Promise<RoundOutcome> => {
        const row = madeNow.get(run) ?? (await madeBefore(run, own));
        if (row === null) return { error: runExists(run) };
        const claimed: Claimed = {
          key: String(row.key),
          epoch: 1,
          last: own.length,
          isAbandoned: false,
        };
        return { value: claimed };
      }),
    );
  };

  /** The answer to an earlier try was lost, but not what it wrote. */
  const madeBefore = async (run: string, lines: readonly EntryLine[]): Promise<Rows[number] | null> => {
    const [row] = await postgres.send(sql.standing, [run]);
    if (row === undefined || row.owner !== owner || row.epoch !== 1 || row.last !== lines.length) return null;
    return given.get(run)?.key === String(row.key) ? null : row;
  };
  /** What this process was given of each run. If it owns another epoch, the answer that gave it was lost. */
  const given = new Map<string, Pick<Claimed, "key" | "epoch">>();

  const claim = async (writes: readonly Of<"claim">[]): Promise<readonly RoundOutcome[]> => {
    const taken = await postgres.send(sql.claim, [
      owner,
      writes.map(({ run }) => run),
      writes.map(({ takeOver }) => takeOver),
      numbers(writes.map(({ run }) => given.get(run)?.epoch ?? 0)),
    ]);
    // In a second statement: the first may have waited for an append, and does not see it.
    const keys = taken.map(({ key }) => key);
    const lasts = new Map(
      (keys.length === 0 ? [] : await postgres.send(sql.lasts, [numbers(keys)])).map(({ key, last }) => [
        key,
        last,
      ]),
    );
    const rows = new Map(taken.map((row) => [row.id, row]));
    return await Promise.all(
      writes.map(async ({ run }): Promise<RoundOutcome> => {
        const row = rows.get(run);
        if (row === undefined) return { error: await whyNotClaimed(run) };
        const last = (lasts.get(row.key) as number | undefined) ?? 0;
        const claimed: Claimed = {
          key: String(row.key),
          epoch: row.epoch as number,
          last,
          isAbandoned: row.was !== null,
        };
        return { value: claimed };
      }),
    );
  };

  const whyNotClaimed = async (run: string): Promise<Error> => {
    const [row] = await postgres.send(sql.standing, [run]);
    if (row === undefined) return runUnknown(run);
    return Number(row.speaks) > SPEECH ? runNewer(run) : runHeld(run, holderIn(row, us));
  };

  const append = async (writes: readonly Of<"append">[]): Promise<readonly RoundOutcome[]> => {
    const adopted = writes.filter(({ flows }) => Object.keys(flows).length > 0);
    for (const { key, flows } of adopted) await keep(key, flows);
    const lines = writes.flatMap(({ key, lines: own }) => own.map((line) => ({ key, ...line })));
    const [only] = lines;
    const rows =
      lines.length === 1 && only !== undefined
        ? await postgres.send(sql.appendOne, [only.key, writes[0]!.epoch, owner, only.seq, only.body])
        : await postgres.send(sql.append, [
            owner,
            numbers(writes.map(({ key }) => key)),
            numbers(writes.map(({ epoch }) => epoch)),
            numbers(lines.map(({ key }) => key)),
            numbers(lines.map(({ seq }) => seq)),
            bodiesOf(lines),
          ]);
    if (rows[0]?.written === lines.length) return writes.map(() => ({ value: undefined }));
    return await Promise.all(
      writes.map(async (write): Promise<RoundOutcome> => {
        const refusal = await whyNotAppended(write);
        return refusal === null ? { value: undefined } : { error: refusal };
      }),
    );
  };

  const keep = async (key: string, flows: Flows): Promise<void> => {
    const digests = Object.keys(flows);
    const texts = Object.values(flows).map((flow) => JSON.stringify(flow));
    await postgres.send(sql.keep, [key, digests, texts]);
  };

  /** null: an earlier try wrote it, and only its answer was lost. */
  const whyNotAppended = async ({ run, key, epoch, lines }: Of<"append">): Promise<Error | null> => {
    const [row] = await postgres.send(sql.standing, [run]);
    if (row === undefined || String(row.key) !== key) return runUnknown(run);
    if (row.owner === null) return writerStale(run, null);
    if (row.epoch !== epoch || row.owner !== owner) return writerStale(run, holderIn(row, us));
    const there = await postgres.send(sql.bodies, [key, lines[0]!.seq, lines.at(-1)!.seq]);
    const isOurs =
      there.length === lines.length && there.every(({ body }, place) => body === lines[place]!.body);
    return isOurs ? null : outOfOrder(run, lines[0]!.seq);
  };

  const release = async (writes: readonly Of<"release">[]): Promise<readonly RoundOutcome[]> => {
    await postgres.send(sql.release, [
      owner,
      numbers(writes.map(({ key }) => key)),
      numbers(writes.map(({ epoch }) => epoch)),
    ]);
    for (const { run, epoch } of writes) if (given.get(run)?.epoch === epoch) given.delete(run);
    return writes.map(() => ({ value: undefined }));
  };

  return async (writes: readonly Write[]): Promise<readonly RoundOutcome[]> => {
    const outcomes: RoundOutcome[] = [];
    const performAll = async <Kind extends Write["kind"]>(
      kind: Kind,
      perform: (of: readonly Of<Kind>[]) => Promise<readonly RoundOutcome[]>,
    ) => {
      const places = [...writes.keys()].filter((place) => writes[place]!.kind === kind);
      if (places.length === 0) return;
      const settled = await perform(places.map((place) => writes[place] as Of<Kind>)).catch(
        (error: unknown) => places.map(() => ({ error })),
      );
      for (const [at, place] of places.entries()) outcomes[place] = settled[at]!;
    };
    await performAll("append", append);
    await performAll("release", release);
    await performAll("create", create);
    await performAll("claim", claim);
    for (const [place, outcome] of outcomes.entries())
      if ("value" in outcome && outcome.value !== undefined)
        given.set(writes[place]!.run, outcome.value as Claimed);
    return outcomes;
  };
}

/** `ownerId`: under which name this process holds runs. */
type OwnerName = { readonly ownerId: string; readonly host: string };

/** The process that holds a run, from a row of `standing`. */
export function holderIn(row: Rows[number], { ownerId, host }: OwnerName): Holder {
  if (row.owner === ownerId) return "this process";
  const process = { pid: (row.pid as number | null) ?? 0, since: (row.since as number | null) ?? 0 };
  if (row.host === host) return process;
  return { ...process, elsewhere: `on the host ${JSON.stringify(row.host ?? "unknown")}` };
}

/** An owner lives as long as its beat is younger than its lease, by the clock of the server. */
export const ALIVE = "o.beat + o.lease > clock_timestamp()";

/**
 * Written so that the index of owners is not used for it. Most runs have none, so the server takes those of an owner for
 * few: it would look through all runs of the process, once for each entry.
 */
function ownedBy(table: string, parameter: number): string {
  return `coalesce(${table}owner, '') = $${parameter}`;
}

/** An array of the server from values that are digits: they need no quotes, which the package `pg` gives to each of them. */
function numbers(values: readonly unknown[]): string {
  return `{${values.join(",")}}`;
}

/** The bodies as one text: JSON has no line break in it, so that none of them has to be escaped. */
function bodiesOf(lines: readonly EntryLine[]): string {
  return lines.map(({ body }) => body).join("\n");
}

function bodiesIn(parameter: number): string {
  return `string_to_array($${parameter}::text, E'\\n')`;
}

function statementsOf(schema: string) {
  const statement = (name: string, text: string): Statement => ({ name, text });
  return {
    create: statement(
      "create",
      `WITH f AS (INSERT INTO ${schema}.flow SELECT * FROM unnest($2::text[], $3::text[]) ON CONFLICT DO NOTHING),
        r AS (
          INSERT INTO ${schema}.run (id, agent, digest, created_at, epoch, owner, speaks)
          SELECT id, agent, digest, at, 1, $1, ${SPEECH}
          FROM unnest($4::text[], $5::text[], $6::text[], $7::float8[]) WITH ORDINALITY AS n(id, agent, digest, at, place)
          ORDER BY place
          ON CONFLICT (id) DO NOTHING RETURNING key, id),
        k AS (INSERT INTO ${schema}.run_flow
          SELECT r.key, n.digest FROM unnest($8::text[], $9::text[]) AS n(id, digest) JOIN r USING (id)),
        e AS (INSERT INTO ${schema}.event (run, seq, body)
          SELECT r.key, n.seq, n.body FROM unnest($10::text[], $11::int[], ${bodiesIn(12)}) AS n(id, seq, body) JOIN r USING (id)),
        b AS (INSERT INTO ${schema}.run_blob
          SELECT r.key, n.digest FROM unnest($13::text[], $14::text[]) AS n(id, digest)
          JOIN r USING (id) JOIN ${schema}.blob USING (digest))
      SELECT key, id FROM r`,
    ),
    claim: statement(
      "claim",
      `WITH w AS (
          SELECT r.key, r.owner AS was, n.takes OR (r.owner = $1 AND r.epoch <> n.given) AS takes FROM ${schema}.run r
          JOIN unnest($2::text[], $3::bool[], $4::int[]) AS n(id, takes, given) ON r.id = n.id ORDER BY r.key FOR UPDATE OF r)
      UPDATE ${schema}.run r SET epoch = r.epoch + 1, owner = $1, speaks = ${SPEECH} FROM w
      WHERE r.key = w.key AND r.speaks <= ${SPEECH} AND (w.was IS NULL OR w.takes OR NOT EXISTS (
        SELECT 1 FROM ${schema}.owner o WHERE o.id = w.was AND ${ALIVE}))
      RETURNING r.key, r.id, r.epoch, w.was`,
    ),
    lasts: statement(
      "lasts",
      `SELECT k.key, e.seq AS last FROM unnest($1::bigint[]) AS k(key),
        LATERAL (SELECT seq FROM ${schema}.event WHERE run = k.key ORDER BY seq DESC LIMIT 1) e`,
    ),
    standing: statement(
      "standing",
      `SELECT r.key, r.epoch, r.owner, r.speaks, o.host, o.pid, extract(epoch FROM o.since)::float8 * 1000 AS since,
        coalesce(o.id IS NOT NULL AND ${ALIVE}, false) AS alive,
        (SELECT coalesce(max(seq), 0) FROM ${schema}.event WHERE run = r.key) AS last
      FROM ${schema}.run r LEFT JOIN ${schema}.owner o ON o.id = r.owner WHERE r.id = $1`,
    ),
    appendOne: statement(
      "append-one",
      `WITH fence AS (SELECT key FROM ${schema}.run WHERE key = $1 AND epoch = $2 AND ${ownedBy("", 3)} FOR SHARE)
      INSERT INTO ${schema}.event (run, seq, body) SELECT key, $4, $5 FROM fence
      ON CONFLICT DO NOTHING RETURNING 1 AS written`,
    ),
    append: statement(
      "append",
      `WITH fence AS (
          SELECT r.key FROM ${schema}.run r JOIN unnest($2::bigint[], $3::int[]) AS n(key, epoch)
          ON r.key = n.key AND r.epoch = n.epoch AND ${ownedBy("r.", 1)} ORDER BY r.key FOR SHARE OF r),
        made AS (
          INSERT INTO ${schema}.event (run, seq, body)
          SELECT n.run, n.seq, n.body FROM unnest($4::bigint[], $5::int[], ${bodiesIn(6)}) AS n(run, seq, body)
          WHERE n.run IN (SELECT key FROM fence)
          ON CONFLICT DO NOTHING RETURNING 1)
      SELECT count(*)::int AS written FROM made`,
    ),
    bodies: statement(
      "bodies",
      `SELECT body FROM ${schema}.event WHERE run = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`,
    ),
    keep: statement(
      "keep",
      `WITH f AS (INSERT INTO ${schema}.flow SELECT * FROM unnest($2::text[], $3::text[]) ON CONFLICT DO NOTHING)
      INSERT INTO ${schema}.run_flow SELECT $1, digest FROM unnest($2::text[]) AS n(digest) ON CONFLICT DO NOTHING`,
    ),
    release: statement(
      "release",
      `WITH w AS (
          SELECT r.key FROM ${schema}.run r JOIN unnest($2::bigint[], $3::int[]) AS n(key, epoch)
          ON r.key = n.key AND r.epoch = n.epoch AND ${ownedBy("r.", 1)} ORDER BY r.key FOR UPDATE OF r)
      UPDATE ${schema}.run r SET owner = NULL FROM w WHERE r.key = w.key`,
    ),
  };
}
