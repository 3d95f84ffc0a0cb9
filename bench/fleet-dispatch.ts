/** What handing out runs costs: the same steps with workers as without, the queue at any length, and a simulated fleet. */
import { setTimeout as delay } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { loadBoss, openBossDispatch } from "../src/fleet/boss.ts";
import type { Dispatch } from "../src/fleet/dispatch.ts";
import { offerRuns, type RunOffer } from "../src/fleet/offer.ts";
import { createPresence } from "../src/fleet/presence.ts";
import { promote } from "../src/fleet/rows.ts";
import { work, type WorkerOptions } from "../src/fleet/worker.ts";
import { readPostgresAddress } from "../src/journal/postgres/address.ts";
import { openPostgres, type Postgres } from "../src/journal/postgres/connection.ts";
import { wakeWithin } from "../src/journal/postgres/wake.ts";
import type { Backend, Journal } from "../src/run/index.ts";
import { loadPg } from "../src/run/records/postgres-journal.ts";
import { driveStretch } from "../src/run/stretch.ts";
import { prepareLoaded } from "../src/run/submit.ts";
import { simulate } from "./fleet-simulation.ts";
import { ANSWER, cycle, loaded, median, row, spread, USAGE, type Row } from "./measure.ts";

const LEASE_MS = 10_000;
const TRUSTING = { ...process.env, LOCKSTEP_TRUST: "all" };
const FREE = { default: 1_000_000, of: {} };

export type DispatchBench = {
  readonly folder: string;
  readonly address: string;
  readonly journal: Journal;
  /** How long as many inserts take over ten connections. */
  readonly plain: (inserts: number) => Promise<number>;
};

export async function measureDispatch(bench: DispatchBench): Promise<readonly Row[]> {
  const postgres = openPostgres({
    address: readPostgresAddress(bench.address),
    pg: await loadPg(process.env),
    patienceMs: 20_000,
  });
  const dispatch = await openBossDispatch({ postgres, boss: await loadBoss(process.env), leaseMs: LEASE_MS });
  try {
    return [
      await driven(bench, postgres, dispatch),
      await takenOver(bench, postgres, dispatch),
      await woken(bench, postgres, dispatch),
      await fetching(postgres, dispatch),
      await simulated(),
    ];
  } finally {
    await dispatch.close();
    await postgres.close();
  }
}

const RUNS = 1000;
const STEPS = 10;

async function driven(
  { folder, journal, plain }: DispatchBench,
  postgres: Postgres,
  dispatch: Dispatch,
): Promise<Row> {
  const ratios: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const queue = `bench-${round}`;
    const offers = await prepared(folder, queue, RUNS);
    const raw = await plain(RUNS * STEPS);
    await offerRuns(postgres, offers, 1);
    const from = performance.now();
    await driveAll(queue, { folder, journal, postgres, dispatch, runs: RUNS });
    ratios.push((performance.now() - from) / raw);
  }
  const detail = `${RUNS} runs x ${STEPS} steps with one worker against as many inserts over 10 connections, ${spread(ratios)}`;
  return row("10,000 steps handed out by a queue / raw inserts", median(ratios), "x", 0.7, detail);
}

const backend: Backend = {
  spec: { id: "bench", options: null },
  turn: async () => {
    await delay(0);
    return { kind: "reply", text: "", calls: [], output: ANSWER, usage: USAGE };
  },
};

async function prepared(folder: string, queue: string, runs: number): Promise<readonly RunOffer[]> {
  const agent = loaded(cycle(STEPS), folder);
  const offers: RunOffer[] = [];
  for (let at = 0; at < runs; at += 1) {
    const { run, entries } = await prepareLoaded(agent, { cwd: folder, backend, env: TRUSTING });
    offers.push({ run, entries, queue, group: "g", priority: 0 });
  }
  return offers;
}

/** From the last sign of life of a worker that died to the beginning of another one, which has been calm for a lease then. */
async function takenOver(
  { folder, journal }: DispatchBench,
  postgres: Postgres,
  dispatch: Dispatch,
): Promise<Row> {
  const queue = "taken-over";
  await offerRuns(postgres, await prepared(folder, queue, 1), 1);
  await promote(postgres, dispatch, { queues: [queue], speech: 1 });
  const taken = await dispatch.take([`${queue}.v1`], 1, FREE);
  if (taken.length !== 1) throw new Error("The job was not handed out.");
  const died = performance.now();
  let began = 0;
  const onBegan = () => (began ||= performance.now());
  await driveAll(queue, { folder, journal, postgres, dispatch, runs: 1, onBegan });
  const leases = (began - died) / LEASE_MS;
  const detail = `${((began - died) / 1000).toFixed(1)} s of a lease of ${LEASE_MS / 1000} s`;
  return row("taking over from a worker that died / lease", leases, "x", 1.3, detail);
}

/** From an answer to the stretch that reads it, by a worker that has nothing else to do. */
async function woken({ folder }: DispatchBench, postgres: Postgres, dispatch: Dispatch): Promise<Row> {
  const queue = "woken";
  const [offer] = await prepared(folder, queue, 1);
  await offerRuns(postgres, [offer!], 1);
  const draining = new AbortController();
  const times: number[] = [];
  let answered = performance.now();
  let begun = Promise.withResolvers<void>();
  const worked = workOn(queue, {
    postgres,
    dispatch,
    draining: draining.signal,
    drive: () => {
      times.push(performance.now() - answered);
      begun.resolve();
      return Promise.resolve({ kind: "waiting" });
    },
  });
  for (let answers = 0; answers <= 20; answers += 1) {
    await begun.promise;
    // Somewhere between two looks.
    await delay(200 + Math.random() * 1000);
    begun = Promise.withResolvers();
    await postgres.together((send) => wakeWithin(send, postgres.schema, offer!.run.id));
    answered = performance.now();
  }
  await begun.promise;
  draining.abort();
  await worked;
  // The first one was not answered: the worker had just begun.
  const [most, usual] = [Math.max(...times.slice(1)), median(times.slice(1))];
  const detail = `the longest of ${times.length - 1}; p50 ${Math.round(usual)} ms`;
  return row("from an answer to the stretch of a worker", Math.round(most), "ms", 1000, detail);
}

type Driving = Pick<DispatchBench, "folder" | "journal"> & {
  readonly postgres: Postgres;
  readonly dispatch: Dispatch;
  readonly runs: number;
  readonly onBegan?: () => void;
};

async function driveAll(
  queue: string,
  { folder, journal, postgres, dispatch, runs, onBegan }: Driving,
): Promise<void> {
  const draining = new AbortController();
  let left = runs;
  await workOn(queue, {
    postgres,
    dispatch,
    draining: draining.signal,
    drive: ({ job, takeOver, yieldSignal, stopSignal }) =>
      driveStretch({
        journal,
        run: job.run,
        place: { root: folder, cwd: folder },
        stateDir: folder,
        takeOver,
        yieldSignal,
        stopSignal,
        parkMs: 30_000,
        backend,
        env: TRUSTING,
        trust: {},
      }),
    observe: (event) => {
      if (event.kind === "began") onBegan?.();
      if (event.kind !== "over") return;
      if (event.end.kind !== "ended") throw new Error(`A run went wrong: ${JSON.stringify(event.end)}`);
      if ((left -= 1) === 0) draining.abort();
    },
  });
}

type Working = Pick<WorkerOptions, "postgres" | "dispatch" | "draining" | "drive"> &
  Partial<Pick<WorkerOptions, "observe">>;

/** One worker, until it has drained. */
async function workOn(queue: string, working: Working): Promise<void> {
  const offers = { slots: RUNS, queues: [queue], speech: 1, models: [], backends: [], sandbox: null };
  const presence = createPresence(working.postgres, {
    id: randomUUID(),
    name: "bench",
    host: "bench",
    pid: process.pid,
    version: "0",
    leaseMs: LEASE_MS,
    offers,
  });
  await presence.enter();
  await work({
    presence,
    wanted: { queues: [queue], speech: 1 },
    slots: RUNS,
    shares: FREE,
    leaseMs: LEASE_MS,
    stretchMs: 3_600_000,
    drainMs: 60_000,
    requireRoom: () => undefined,
    now: Date.now,
    observe: () => undefined,
    ...working,
  });
  await presence.leave();
}

/** How long it takes to get one job, at a short and at a long queue. */
async function fetching(postgres: Postgres, dispatch: Dispatch): Promise<Row> {
  const { schema } = postgres;
  const timed = async (length: number): Promise<number> => {
    const queue = `long-${length}`;
    const text = `INSERT INTO ${schema}.run (id, agent, digest, created_at, epoch, queue, grp, due)
      SELECT $1 || n, 'a', 'd', 0, 0, $1, 'g', clock_timestamp() FROM generate_series(1, $2::int) AS n`;
    await postgres.send({ name: "bench-runs", text }, [queue, length]);
    while ((await promote(postgres, dispatch, { queues: [queue], speech: 1 })) > 0);
    await postgres.send({ name: "", text: "ANALYZE" });
    const times: number[] = [];
    for (let at = 0; at < 200; at += 1) {
      const from = performance.now();
      const [job] = await dispatch.take([`${queue}.v1`], 1, FREE);
      times.push(performance.now() - from);
      if (job === undefined) throw new Error("The queue was empty.");
    }
    return median(times);
  };
  const [short, long] = [await timed(1000), await timed(100_000)];
  const detail = `${long.toFixed(2)} ms at 100,000 against ${short.toFixed(2)} ms at 1,000`;
  return row("taking a job of 100,000 / of 1,000", long / short, "x", 1.5, detail);
}

async function simulated(): Promise<Row> {
  const options = {
    workers: 1000,
    slots: 20,
    runs: 100_000,
    groups: 10,
    deaths: 20,
    stops: 20,
    outages: 2,
    seed: 1,
  };
  const { ended, poisoned, doubles, robbed, takeovers, repeated, seconds } = await simulate(options);
  const wrong = options.runs - ended + poisoned + doubles + robbed;
  const detail = `${takeovers} takeovers, ${repeated} stretches repeated, ${seconds} s of a simulated clock`;
  return row("wrong among 100,000 runs of 1,000 simulated workers", wrong, "", 0, detail);
}
