/** What is read of a journal on PostgreSQL: entries, flows, lists of runs, and what is new. */
import type { Journal, RunRow } from "../../engine/ports.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { entryFault } from "../../flow/recorded.ts";
import { entryDamaged, entryMissing, runUnknown, unavailable } from "../errors.ts";
import { withSharedNames } from "../shared-names.ts";
import type { Postgres, Rows, Statement } from "./connection.ts";
import { createRounds, type RoundOutcome } from "./rounds.ts";
import { ALIVE } from "./writes.ts";

export type PostgresReading = Pick<
  Journal,
  "read" | "flow" | "list" | "rows" | "count" | "since" | "size" | "version"
>;

export function createPostgresReading(postgres: Postgres): PostgresReading {
  const { name, schema } = postgres;
  const sql = statementsOf(schema);
  /** A digest stands for one flow for ever, and what is derived from a flow is kept by its identity. */
  const flows = new Map<string, Promise<Flow | null>>();

  const toEntry = (run: string, seq: number, body: string): Entry => {
    let entry: unknown;
    try {
      entry = JSON.parse(body);
    } catch (cause) {
      throw entryDamaged(name, run, seq, "is not JSON", cause);
    }
    const fault = entryFault(entry);
    if (fault !== null) throw entryDamaged(name, run, seq, fault);
    return withSharedNames(entry as Entry);
  };

  const toRow = (row: Rows[number]): RunRow => {
    const id = row.id as string;
    const about = {
      id,
      agent: row.agent as string,
      digest: row.digest as string,
      createdAt: row.created_at as number,
      events: (row.seq as number | null) ?? 0,
      owned: row.owned as boolean,
      ...(typeof row.held_because === "string" && { held: row.held_because }),
    };
    try {
      return { ...about, last: row.body === null ? null : toEntry(id, about.events, row.body as string) };
    } catch (cause) {
      // A run that is damaged must not hide the others.
      return { ...about, last: null, damaged: unavailable(name, cause).message };
    }
  };

  const keyOf = async (run: string): Promise<unknown> => {
    const [row] = await postgres.send(sql.key, [run]);
    if (row === undefined) throw runUnknown(run);
    return row.key;
  };

  const heads = createRounds<Head>(async (asked): Promise<readonly RoundOutcome[]> => {
    const found = await postgres.send(sql.heads, [
      asked.map(({ id }) => id),
      asked.map(({ afterSeq }) => afterSeq),
      asked.map(({ count }) => count),
    ]);
    const rows = Map.groupBy(found, ({ place }) => Number(place) - 1);
    return asked.map(({ id }, place) => {
      const own = rows.get(place);
      return own === undefined ? { error: runUnknown(id) } : { value: own };
    });
  }, READING);

  const standing = createRounds<{ readonly ids: readonly string[] }>(async (asked) => {
    const ids = [...new Set(asked.flatMap((one) => one.ids))];
    const found = new Map((await postgres.send(sql.rows, [ids])).map((row) => [row.id, row]));
    return asked.map((one) => ({ value: one.ids.flatMap((id) => found.get(id) ?? []) }));
  }, READING);

  /** Of a run that has entries before them. */
  const further = async (run: string, afterSeq: number, limit: number): Promise<Rows> => {
    const rows = await postgres.send(sql.read, [run, afterSeq, most(limit)]);
    // Nothing more, unless it was removed in between.
    if (rows.length === 0) await keyOf(run);
    return rows;
  };

  /** Rows of entries, in their order. */
  const entriesOf = async (run: string, afterSeq: number, limit: number): Promise<Rows> => {
    if (!canBeId(run)) throw runUnknown(run);
    if (afterSeq > 0 && limit >= LONG_READ && limit < Infinity) return await further(run, afterSeq, limit);
    const count = Math.min(limit, MOST_TOGETHER);
    const head = (await heads.offer({ id: run, afterSeq, count })) as Rows;
    const first = head
      .filter(({ seq }) => seq !== null)
      .toSorted((one, other) => Number(one.seq) - Number(other.seq));
    if (first.length < MOST_TOGETHER || limit <= MOST_TOGETHER) return first;
    return [...first, ...(await further(run, Number(first.at(-1)!.seq), limit - MOST_TOGETHER))];
  };

  return {
    async read(run, afterSeq = 0, limit = Infinity) {
      return (await entriesOf(run, afterSeq, limit)).map(({ seq, body }, place) => {
        const due = afterSeq + place + 1;
        if (seq !== due) throw entryMissing(name, run, due);
        return toEntry(run, due, body as string);
      });
    },

    async flow(digest) {
      const known = flows.get(digest);
      if (known !== undefined && postgres.isOpen()) return await known;
      const asked = postgres
        .send(sql.flow, [digest])
        .then(([row]) => (row === undefined ? null : (JSON.parse(row.json as string) as Flow)));
      flows.set(digest, asked);
      const forget = () => flows.get(digest) === asked && flows.delete(digest);
      try {
        const flow = await asked;
        if (flow === null) forget();
        return flow;
      } catch (error) {
        forget();
        throw error;
      }
    },

    async list({ prefix = "", agent = null, before, owned, limit = Infinity } = {}) {
      const newest = before === undefined ? null : await keyOf(before);
      const rows = await postgres.send(sql.list, [
        prefix,
        `${prefix}\u{10ffff}`,
        agent,
        newest,
        owned ?? false,
        most(limit),
      ]);
      return rows.map(toRow);
    },

    async rows(runs) {
      const ids = runs.filter(canBeId);
      return ids.length === 0 ? [] : ((await standing.offer({ ids })) as Rows).map(toRow);
    },

    async count() {
      const [row] = await postgres.send(sql.count);
      return Number(row!.count);
    },

    /**
     * Transactions do not end in the order of their numbers: only what is below every one that is still under way is
     * given, since anything above may yet be joined by an entry that sorts before it.
     */
    async since(cursor, limit = Infinity) {
      const [bounds] = await postgres.send(sql.bounds);
      const now = bounds!.oldest as string;
      if (cursor === undefined) return { cursor: `${now}.0.0`, entries: [], lost: false };
      const [tx = "0", run = "0", seq = "0"] = cursor.split(".");
      // A server that was restored from a copy begins at an earlier number.
      if (BigInt(tx) > BigInt(bounds!.next as string))
        return { cursor: `${now}.0.0`, entries: [], lost: true };
      const rows = await postgres.send(sql.since, [tx || "0", run, seq, now, most(limit)]);
      const last = rows.at(-1);
      const entries = rows.map((row) => ({
        run: row.id as string,
        seq: row.seq as number,
        entry: toEntry(row.id as string, row.seq as number, row.body as string),
      }));
      return {
        cursor: last === undefined ? cursor : `${String(last.tx)}.${String(last.run)}.${String(last.seq)}`,
        entries,
        lost: false,
      };
    },

    async size(run) {
      const [row] = await postgres.send(sql.size, [await keyOf(run)]);
      return Number(row!.bytes);
    },

    /** Whatever is committed changes the snapshot; so does what others write in the same server. */
    async version() {
      const [row] = await postgres.send(sql.version);
      return row!.version as number;
    },
  };
}

/** The first entries of a run after one; the runs of a process ask for them together. */
type Head = { readonly id: string; readonly afterSeq: number; readonly count: number };

const READING = { most: 100, abreast: 2 };
/** Of each run: a long one is read for itself, so that no answer is larger than memory. */
const MOST_TOGETHER = 32;
/** A read of so many more entries is for a long run: it takes one statement of its own. */
const LONG_READ = 500;

/** What no text of the server can hold is not the id of a run, and would have the question of others refused. */
function canBeId(run: string): boolean {
  return !run.includes("\0");
}

/** LIMIT NULL gives everything. */
function most(limit: number): number | null {
  return Number.isFinite(limit) ? limit : null;
}

function statementsOf(schema: string) {
  const statement = (name: string, text: string): Statement => ({ name, text });
  const row = `r.key, r.id, r.agent, r.digest, r.created_at, r.held_because, e.seq, e.body,
    EXISTS (SELECT 1 FROM ${schema}.owner o WHERE o.id = r.owner AND ${ALIVE}) AS owned`;
  const newest = `LEFT JOIN LATERAL (
    SELECT seq, body FROM ${schema}.event WHERE run = r.key ORDER BY seq DESC LIMIT 1) e ON true`;
  return {
    key: statement("key", `SELECT key FROM ${schema}.run WHERE id = $1`),
    read: statement(
      "read",
      `SELECT seq, body FROM ${schema}.event
        WHERE run = (SELECT key FROM ${schema}.run WHERE id = $1) AND seq > $2 ORDER BY seq LIMIT $3`,
    ),
    heads: statement(
      "heads",
      `SELECT n.place, e.seq, e.body
        FROM unnest($1::text[], $2::int[], $3::int[]) WITH ORDINALITY AS n(id, after, count, place)
        JOIN ${schema}.run r ON r.id = n.id
        LEFT JOIN LATERAL (SELECT seq, body FROM ${schema}.event
          WHERE run = r.key AND seq > n.after ORDER BY seq LIMIT n.count) e ON true`,
    ),
    flow: statement("flow", `SELECT json FROM ${schema}.flow WHERE digest = $1`),
    list: statement(
      "list",
      `SELECT ${row} FROM (
        SELECT * FROM ${schema}.run r
        WHERE ($1 = '' OR (r.id >= $1 AND r.id < $2)) AND ($3::text IS NULL OR r.agent = $3)
          AND ($4::bigint IS NULL OR r.key < $4)
          AND (NOT $5::bool OR EXISTS (SELECT 1 FROM ${schema}.owner o WHERE o.id = r.owner AND ${ALIVE}))
        ORDER BY r.key DESC LIMIT $6) r ${newest} ORDER BY r.key DESC`,
    ),
    rows: statement(
      "rows",
      `SELECT ${row} FROM unnest($1::text[]) AS n(id) JOIN ${schema}.run r ON r.id = n.id ${newest}`,
    ),
    count: statement("count", `SELECT count(*) FROM ${schema}.run`),
    bounds: statement(
      "bounds",
      "SELECT pg_snapshot_xmin(s)::text AS oldest, pg_snapshot_xmax(s)::text AS next FROM pg_current_snapshot() s",
    ),
    since: statement(
      "since",
      `SELECT e.tx, e.run, r.id, e.seq, e.body FROM ${schema}.event e JOIN ${schema}.run r ON r.key = e.run
        WHERE e.tx >= $1::bigint AND (e.tx, e.run, e.seq) > ($1::bigint, $2::bigint, $3::int) AND e.tx < $4::bigint
        ORDER BY e.tx, e.run, e.seq LIMIT $5`,
    ),
    size: statement(
      "size",
      `SELECT coalesce(sum(octet_length(body)), 0) AS bytes FROM ${schema}.event WHERE run = $1`,
    ),
    version: statement("snapshot", "SELECT hashtext(pg_current_snapshot()::text) AS version"),
  };
}
