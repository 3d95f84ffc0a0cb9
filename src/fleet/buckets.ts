/** Takes from the buckets that all workers of a fleet share, in the order of asking, with one statement for all that wait. */
import type { Postgres } from "../journal/postgres/connection.ts";
import { haveText, isBudget } from "./limits.ts";

export type Buckets = {
  /** The names of all limits; at most a second old. */
  readonly names: () => Promise<ReadonlySet<string>>;
  /**
   * Sets `amount` aside as soon as it is there. Gives 0 then; else in how many milliseconds it may be, because that is
   * beyond `patienceMs`, or the signal was aborted. A limit that was removed holds nothing back.
   */
  readonly take: (name: string, amount: number, patienceMs: number, signal?: AbortSignal) => Promise<number>;
  /** What was used beyond what was set aside; below 0: it was less. */
  readonly settle: (name: string, more: number) => Promise<void>;
  /** Nobody takes anything for so long. */
  readonly hold: (names: readonly string[], ms: number) => Promise<void>;
};

type Waiter = {
  readonly amount: number;
  readonly until: number;
  readonly resolve: (waitMs: number) => void;
  readonly reject: (error: unknown) => void;
};

/** A worker takes what falls due in this time at once, so that the others get their share; and it asks as often. */
const STEP_MS = 100;
const LONGEST_NAP_MS = 500;
const NAMES_MS = 1000;
const MOST_AT_ONCE = 500;
/** Also a call that nothing is known of needs a bucket that is not empty. */
const LEAST = 1e-9;

export function createBuckets(postgres: Postgres): Buckets {
  const sql = statementsOf(postgres.schema);
  const lines = new Map<string, Waiter[]>();
  let known: { readonly at: number; readonly names: Promise<ReadonlySet<string>> } | null = null;

  const askFor = async (name: string, waiting: readonly Waiter[]) => {
    const needs = waiting.map(({ amount }) => amount);
    const [row] = await postgres.together((send) => send(sql.take, [name, needs, isBudget(name)]));
    if (row === undefined) return { granted: waiting.length, waitMs: 0 };
    const granted = Number(row.granted);
    const next = needs[granted];
    if (next === undefined) return { granted, waitMs: 0 };
    const [left, rate, burst, holdMs] = ["left", "rate", "burst", "hold_ms"].map((key) => row[key] as number);
    const missing = Math.min(next, burst!) - left!;
    const refillMs = isBudget(name) ? (row.renews_ms as number) : Math.max(0, missing / rate!);
    // It was there, but not all at once.
    return { granted, waitMs: Math.max(holdMs!, missing <= 0 ? 0 : refillMs) };
  };

  /** Serves those who wait for one bucket, until nobody does. */
  const serve = async (name: string, line: Waiter[]): Promise<void> => {
    while (line.length > 0) {
      const asked = line.slice(0, MOST_AT_ONCE);
      const { granted, waitMs } = await askFor(name, asked);
      for (const waiter of asked.slice(0, granted)) leave(line, waiter).resolve(0);
      if (waitMs <= 0) continue;
      const last = performance.now() + waitMs;
      for (const waiter of line.filter(({ until }) => until < last)) leave(line, waiter).resolve(waitMs);
      if (line.length > 0) await nap(Math.min(Math.max(waitMs, STEP_MS), LONGEST_NAP_MS));
    }
  };

  return {
    names() {
      const now = performance.now();
      if (known === null || now - known.at > NAMES_MS) {
        const names = postgres
          .send(sql.names)
          .then((rows): ReadonlySet<string> => new Set(rows.map(({ name }) => name as string)));
        known = { at: now, names };
        names.catch(() => (known = null));
      }
      return known.names;
    },
    take: (name, amount, patienceMs, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) return resolve(1);
        const until = performance.now() + patienceMs;
        const waiter: Waiter = { amount: Math.max(amount, LEAST), until, resolve, reject };
        const line = lines.get(name) ?? [];
        line.push(waiter);
        signal?.addEventListener(
          "abort",
          () => {
            if (line.includes(waiter)) leave(line, waiter).resolve(1);
          },
          { once: true },
        );
        if (lines.has(name)) return;
        lines.set(name, line);
        void serve(name, line)
          .catch((error: unknown) => {
            for (const one of line.splice(0)) one.reject(error);
          })
          .finally(() => lines.delete(name));
      }),
    async settle(name, more) {
      if (more !== 0) await postgres.together((send) => send(sql.settle, [name, more]));
    },
    async hold(names, ms) {
      if (names.length > 0 && ms > 0) await postgres.send(sql.hold, [names, ms]);
    },
  };
}

function leave(line: Waiter[], waiter: Waiter): Waiter {
  const place = line.indexOf(waiter);
  if (place >= 0) line.splice(place, 1);
  return waiter;
}

async function nap(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

function statementsOf(schema: string) {
  return {
    names: { name: "bucket-names", text: `SELECT name FROM ${schema}.bucket` },
    /** The first ones of $2 that are there together. One that is larger than the burst gets it when the bucket is full. */
    take: {
      name: "bucket-take",
      text: `WITH b AS (
          SELECT b.name, b.amount / b.per_ms AS rate, b.per_ms, b.burst, b.not_before, clock_timestamp() AS now, ${haveText("b")} AS have
          FROM ${schema}.bucket b WHERE b.name = $1 FOR UPDATE),
        w AS (
          SELECT n, place, sum(n) OVER (ORDER BY place) AS total FROM unnest($2::float8[]) WITH ORDINALITY AS x(n, place)),
        g AS (
          SELECT b.*, CASE WHEN b.not_before > b.now THEN 0 ELSE (
            SELECT count(*) FROM w WHERE (w.total <= b.have AND ($3 OR w.place = 1 OR w.total <= b.rate * ${STEP_MS}))
              OR (w.place = 1 AND w.n > b.burst AND b.have >= b.burst)) END AS granted
          FROM b),
        t AS (SELECT g.*, g.have - coalesce((SELECT w.total FROM w WHERE w.place = g.granted), 0) AS left_over FROM g)
        UPDATE ${schema}.bucket b SET tokens = t.left_over, at = greatest(b.at, t.now)
        FROM t WHERE b.name = t.name
        RETURNING t.granted, t.left_over AS left, t.rate, t.burst,
          greatest(0, coalesce(extract(epoch FROM t.not_before - t.now)::float8 * 1000, 0)) AS hold_ms,
          t.per_ms - (extract(epoch FROM t.now) * 1000)::numeric % t.per_ms::numeric AS renews_ms`,
    },
    settle: {
      name: "bucket-settle",
      text: `UPDATE ${schema}.bucket SET tokens = tokens - $2 WHERE name = $1`,
    },
    hold: {
      name: "bucket-hold",
      text: `UPDATE ${schema}.bucket SET not_before = greatest(not_before, clock_timestamp() + make_interval(secs => $2::float8 / 1000))
        WHERE name = ANY($1)`,
    },
  };
}
