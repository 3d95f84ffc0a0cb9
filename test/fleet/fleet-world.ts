/** A fleet as its users have it: a server, a project, and workers that are processes. */
import { readPostgresAddress } from "../../src/journal/postgres/address.ts";
import { offerRuns, type RunOffer } from "../../src/fleet/offer.ts";
import type { Postgres } from "../../src/journal/postgres/connection.ts";
import { prepareRun } from "../../src/run/submit.ts";
import { createWorld, onlyDocument, type Begun, type World } from "../cli/world.ts";
import { until } from "../until.ts";
import { env as packages, postgresAt } from "./fleet-server.ts";

export type FleetWorld = World & {
  readonly postgres: Postgres;
  readonly around: NodeJS.ProcessEnv;
  /** Runs of this agent without files, by a process that does not drive them. */
  readonly submit: (agent: string, count: number, more?: Partial<RunOffer>) => Promise<readonly string[]>;
  readonly startWorker: (...args: readonly string[]) => FleetWorker;
  /** The same at another address of the server. */
  readonly startWorkerAt: (state: string, ...args: readonly string[]) => FleetWorker;
  readonly document: (args: readonly string[]) => Promise<{ readonly [key: string]: unknown }>;
  readonly outcomes: () => Promise<{ readonly [outcome: string]: number }>;
};

export type FleetWorker = {
  readonly process: Begun;
  readonly lines: () => readonly WorkerLine[];
  readonly ready: () => Promise<void>;
  readonly gone: () => Promise<number | null>;
  readonly stderr: () => string;
};
export type WorkerLine = { readonly kind: string; readonly run?: string; readonly [key: string]: unknown };

/** What a worker gets from its environment, and nobody records. */
export const KEY = { FLEET_TEST_KEY: "key-that-nobody-records-4711" };

/** `url`: with a schema of its own. The lease is the shortest that there is. */
export async function createFleetWorld(url: string, config: object = {}): Promise<FleetWorld> {
  const world = createWorld();
  const around = { ...packages, LOCKSTEP_STATE: url };
  world.writeHome(
    ".config/lockstep/config.json",
    JSON.stringify({
      ...config,
      fleet: { leaseSeconds: 10, work: `${world.env.HOME}/work`, ...(config as { fleet?: object }).fleet },
    }),
  );
  const made = await world.lockstep(["fleet", "init"], { env: around });
  if (made.code !== 0) throw new Error(made.stderr);
  const { schema } = readPostgresAddress(url);
  const postgres = postgresAt(url);
  let topics = 0;
  const document = async (args: readonly string[]) =>
    onlyDocument(await world.lockstep([...args, "--json"], { env: around }));
  const startWorkerAt = (state: string, ...args: readonly string[]): FleetWorker => {
    const process = world.begin(["fleet", "worker", "--events", ...args], {
      ...world.env,
      ...around,
      ...KEY,
      LOCKSTEP_STATE: state,
    });
    let [out, err] = ["", ""];
    process.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    process.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
    const lines = () =>
      out
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as WorkerLine);
    return {
      process,
      lines,
      stderr: () => err,
      ready: () =>
        until(() => {
          if (process.exitCode !== null) throw new Error(`the worker ended: ${err}`);
          return lines().some(({ kind }) => kind === "ready");
        }, "the worker is ready"),
      async gone() {
        await until(() => process.exitCode !== null || process.signalCode !== null, "the worker has ended");
        return process.exitCode;
      },
    };
  };
  return {
    ...world,
    postgres,
    around,
    document,
    async submit(agent, count, more = {}) {
      const offers: RunOffer[] = [];
      for (let at = 0; at < count; at += 1) {
        const { run, entries } = await prepareRun({
          agent,
          cwd: world.root,
          env: { ...world.env, ...around, LOCKSTEP_TRUST: "all" },
          args: { topic: `topic-${(topics += 1)}` },
          use: "ai-sdk",
          found: { source: { kind: "none" }, within: ".", base: "main", bundle: null },
        });
        offers.push({ run, entries, queue: "runs", group: "g", priority: 0, ...more });
      }
      return (await offerRuns(postgres, offers, 1)).map(({ run }) => run);
    },
    startWorker: (...args) => startWorkerAt(url, ...args),
    startWorkerAt,
    async outcomes() {
      const text = `SELECT coalesce(e.body::json -> 'event' -> 'verdict' ->> 'outcome', 'open') AS outcome, count(*)::int AS runs
        FROM ${schema}.run r, LATERAL (SELECT body FROM ${schema}.event WHERE run = r.key ORDER BY seq DESC LIMIT 1) e GROUP BY 1`;
      const rows = await postgres.send({ name: "", text });
      return Object.fromEntries(rows.map(({ outcome, runs }) => [outcome as string, runs as number]));
    },
    [Symbol.dispose]: () => {
      void postgres.close();
      world[Symbol.dispose]();
    },
  };
}
