/** What runs on PostgreSQL cost against plain inserts into the same server. Needs a server: LOCKSTEP_PG=postgres://… */
import { setTimeout as delay } from "node:timers/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { makeFleetTables } from "../src/fleet/open.ts";
import { measureDispatch } from "./fleet-dispatch.ts";
import { measureFigures, type Sql } from "./fleet-figures.ts";
import { measureTree } from "./fleet-tree.ts";
import { openJournal, runLoaded, type Backend, type Journal } from "../src/run/index.ts";
import {
  ANSWER,
  cycle,
  gaps,
  loaded,
  median,
  micro,
  row,
  spread,
  stepGaps,
  USAGE,
  type Row,
} from "./measure.ts";

const STEPS = 10;
const RUNS = 1000;
const MODEL_MS = 50;

/** Nothing is measured where no server is named. */
export async function measureFleet(folder: string): Promise<readonly Row[]> {
  const server = process.env.LOCKSTEP_PG;
  if (server === undefined) return [];
  const schema = `bench_${process.pid}`;
  const address = `${server}?schema=${schema}`;
  await makeFleetTables(address, process.env);
  const raw = await openRaw(server, schema);
  const journal = await openJournal(address, { now: Date.now });
  try {
    return [
      await lone(folder, journal, raw),
      await together(folder, journal, raw),
      await waiting(folder, journal),
      ...(await measureFigures({
        folder,
        journal,
        schema,
        sql: raw.sql,
        together: () => manyAtOnce(folder, journal),
      })),
      ...(await measureDispatch({ folder, address, journal, plain: raw.spreadInserts })),
      await measureTree(folder),
    ];
  } finally {
    await journal.close();
    await raw.close();
  }
}

async function lone(folder: string, journal: Journal, raw: Raw): Promise<Row> {
  const steps = 300;
  const [ratios, ours, plain]: [number[], number[], number[]] = [[], [], []];
  await stepGaps(steps, folder, journal);
  for (let round = 0; round < 5; round++) {
    const insert = median(await raw.inserts(steps));
    const step = median(await stepGaps(steps, folder, journal));
    ratios.push(step / insert);
    ours.push(step);
    plain.push(insert);
  }
  const detail = `p50 ${micro(median(ours))} against ${micro(median(plain))} of an insert, ${spread(ratios)}`;
  return row("durable step on PostgreSQL / raw insert", median(ratios), "x", 1.6, detail);
}

async function together(folder: string, journal: Journal, raw: Raw): Promise<Row> {
  const ratios: number[] = [];
  for (let round = 0; round < 3; round++) {
    const plain = await raw.spreadInserts(RUNS * STEPS);
    const took = await allAtOnce(folder, journal, 0);
    ratios.push(took / plain);
  }
  const detail = `${RUNS} runs x ${STEPS} steps against as many inserts over 10 connections, ${spread(ratios)}`;
  return row("10,000 steps on PostgreSQL / raw inserts", median(ratios), "x", 0.5, detail);
}

async function waiting(folder: string, journal: Journal): Promise<Row> {
  const took = await allAtOnce(folder, journal, MODEL_MS);
  const ideal = STEPS * MODEL_MS;
  const detail = `${Math.round(took)} ms of ${ideal} ms`;
  return row("1,000 runs on PostgreSQL x 10 steps x 50 ms / ideal", took / ideal, "x", 2.2, detail);
}

async function manyAtOnce(folder: string, journal: Journal): Promise<{ readonly steps: number }> {
  await allAtOnce(folder, journal, 0);
  return { steps: RUNS * STEPS };
}

async function allAtOnce(folder: string, journal: Journal, modelMs: number): Promise<number> {
  const backend: Backend = {
    spec: { id: "bench", options: null },
    turn: async () => {
      if (modelMs > 0) await delay(modelMs);
      return { kind: "reply", text: "", calls: [], output: ANSWER, usage: USAGE };
    },
  };
  const agent = loaded(cycle(STEPS), folder);
  const from = performance.now();
  const results = await Promise.all(
    Array.from({ length: RUNS }, () => runLoaded(agent, { cwd: folder, journal, backend })),
  );
  const took = performance.now() - from;
  const failed = results.find(({ success }) => !success);
  if (failed !== undefined) throw new Error(`A run went wrong: ${failed.reason}`);
  return took;
}

type Raw = {
  readonly sql: Sql;
  /** The gaps between inserts, one after the other. */
  readonly inserts: (count: number) => Promise<readonly number[]>;
  /** How long so many take over ten connections. */
  readonly spreadInserts: (count: number) => Promise<number>;
  readonly close: () => Promise<void>;
};

type Pool = {
  readonly query: (query: object) => Promise<{ readonly rows: Awaited<ReturnType<Sql>> }>;
  readonly end: () => Promise<void>;
};

async function openRaw(server: string, schema: string): Promise<Raw> {
  const from = createRequire(join(process.env.LOCKSTEP_PACKAGES ?? import.meta.dirname, "package.json"));
  const { Pool } = from("pg") as { readonly Pool: new (options: object) => Pool };
  const pool = new Pool({ connectionString: server, max: 10 });
  const text = `INSERT INTO ${schema}.raw (run, seq, body) VALUES ($1, $2, $3)`;
  const reply = { kind: "said", text: "", calls: [], output: ANSWER, usage: USAGE };
  const event = { type: "step.answered", step: "initial.issue", visit: 1, turn: 1, reply };
  const body = JSON.stringify({ seq: 1, at: Date.now(), event });
  const table = `${schema}.raw (run bigint, seq int, body text, PRIMARY KEY (run, seq))`;
  await pool.query({ text: `CREATE TABLE ${table}` });
  let run = 0;
  const insert = (seq: number) => pool.query({ name: "raw", text, values: [run, seq, body] });
  return {
    sql: async (asked, values = []) => (await pool.query({ text: asked, values })).rows,
    async inserts(count) {
      run += 1;
      const stamps: number[] = [];
      for (let seq = 0; seq <= count; seq++) {
        stamps.push(performance.now());
        await insert(seq);
      }
      return gaps(stamps);
    },
    async spreadInserts(count) {
      run += 1;
      const begun = performance.now();
      await Promise.all(Array.from({ length: count }, (_, seq) => insert(seq)));
      return performance.now() - begun;
    },
    async close() {
      await pool.query({ text: `DROP SCHEMA ${schema} CASCADE` });
      await pool.query({ text: `DROP SCHEMA IF EXISTS ${schema}_boss CASCADE` });
      await pool.end();
    },
  };
}
