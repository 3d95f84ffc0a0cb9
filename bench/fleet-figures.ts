/** What a journal on PostgreSQL asks of its server, counted and not timed where that is possible; and what going on with a long run takes. */
import type { Backend, Journal } from "../src/run/index.ts";
import { runLoaded } from "../src/run/index.ts";
import {
  ANSWER,
  cycle,
  loaded,
  median,
  row,
  spread,
  stepGaps,
  untilAsked,
  USAGE,
  type Row,
} from "./measure.ts";

export type Sql = (text: string, values?: readonly unknown[]) => Promise<readonly SqlRow[]>;
type SqlRow = { readonly [column: string]: unknown };

export type FiguresBench = {
  readonly folder: string;
  readonly journal: Journal;
  readonly schema: string;
  readonly sql: Sql;
  /** Drives so many runs of so many steps at once. */
  readonly together: () => Promise<{ readonly steps: number }>;
};

export async function measureFigures(bench: FiguresBench): Promise<readonly Row[]> {
  return [...(await transactions(bench)), await logged(bench), await resumed(bench)];
}

/** Transactions that wrote something: each of them is a commit that waits for the disk. */
async function transactions({ folder, journal, sql, together }: FiguresBench): Promise<readonly Row[]> {
  const during = async <T>(work: () => Promise<T>) => {
    const number = async () =>
      Number((await sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next"))[0]!.next);
    const before = await number();
    const result = await work();
    return { result, count: (await number()) - before };
  };
  const many = await during(together);
  const share = many.count / many.result.steps;
  const counted = `${many.count} of ${many.result.steps} steps`;
  // The beginning and the end of a run, which are not steps, are in both.
  const short = await during(() => stepGaps(100, folder, journal));
  const long = await during(() => stepGaps(400, folder, journal));
  const lone = (long.count - short.count) / 300;
  return [
    row("transactions of a step, 1,000 runs at once", share, "", 0.05, counted),
    row("transactions of a step, one run", lone, "", 1, `${long.count} of 400 steps, ${short.count} of 100`),
  ];
}

/** The same entries, inserted into a table without an owner. */
async function logged({ folder, journal, schema, sql }: FiguresBench): Promise<Row> {
  const steps = 300;
  const place = async () => (await sql("SELECT pg_current_wal_insert_lsn()::text AS at"))[0]!.at;
  const written = async (work: () => Promise<unknown>): Promise<number> => {
    const from = await place();
    await work();
    const [bytes] = await sql("SELECT pg_current_wal_insert_lsn() - $1::pg_lsn AS bytes", [from]);
    return Number(bytes!.bytes);
  };
  const table = `${schema}.plain`;
  await sql(`CREATE TABLE ${table} (run bigint, seq int, body text, PRIMARY KEY (run, seq))`);
  const ratios: number[] = [];
  const entries: number[] = [];
  for (let round = -1; round < 5; round += 1) {
    const ours = await written(() => stepGaps(steps, folder, journal));
    const bodies = await sql(
      `SELECT run, seq, body FROM ${schema}.event WHERE run = (SELECT max(key) FROM ${schema}.run) ORDER BY seq`,
    );
    const plain = await written(async () => {
      for (const { run, seq, body } of bodies)
        await sql(`INSERT INTO ${table} VALUES ($1, $2, $3)`, [run, seq, body]);
    });
    // At first whole pages are written, after a checkpoint too; the median leaves them out.
    if (round < 0) continue;
    ratios.push(ours / plain);
    entries.push(ours / bodies.length);
  }
  const detail = `${Math.round(median(entries))} bytes of log for an entry, ${spread(ratios)}`;
  return row("log of the server for an entry / for a raw insert of it", median(ratios), "x", 1.25, detail);
}

async function resumed({ folder, journal, schema, sql }: FiguresBench): Promise<Row> {
  const entries = 10_000;
  const stop = new AbortController();
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: () => Promise.resolve({ kind: "reply", text: "", calls: [], output: ANSWER, usage: USAGE }),
  };
  const { run } = await runLoaded(loaded(cycle(entries + 100), folder), {
    cwd: folder,
    journal,
    backend,
    signal: stop.signal,
    observe: ({ seq }) => seq >= entries && stop.abort(),
  });
  const [ratios, ours, raw]: [number[], number[], number[]] = [[], [], []];
  const text = `SELECT body FROM ${schema}.event WHERE run = (SELECT key FROM ${schema}.run WHERE id = $1) ORDER BY seq`;
  for (let round = -2; round < 5; round += 1) {
    const from = performance.now();
    const rows = await sql(text, [run]);
    for (const { body } of rows) JSON.parse(body as string);
    const plain = performance.now() - from;
    if (rows.length < entries) throw new Error(`only ${rows.length} rows`);
    const asked = await untilAsked(journal, run!, folder);
    if (round < 0) continue;
    ratios.push(asked / plain);
    ours.push(asked);
    raw.push(plain);
  }
  const detail = `p50 ${median(ours).toFixed(1)} ms to the next question against ${median(raw).toFixed(1)} ms of select and parse, ${spread(ratios)}`;
  return row("resume of 10,000 entries on PostgreSQL / reading them", median(ratios), "x", 1.5, detail);
}
