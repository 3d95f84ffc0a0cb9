/** One process of a fleet: its journal, its queue, its sign of life and its worker, opened and closed together. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { RunnerError } from "../engine/ports.ts";
import { SPEECH } from "../flow/event.ts";
import { shownInLine } from "../flow/text/harmless.ts";
import { readPostgresAddress } from "../journal/postgres/address.ts";
import { openPostgres } from "../journal/postgres/connection.ts";
import { openPostgresJournal } from "../journal/postgres/postgres.ts";
import { clearPlaces } from "../run/clear-places.ts";
import { loadPg } from "../run/records/postgres-journal.ts";
import { surveyModels } from "../run/world/model-survey.ts";
import { readConfig, type FleetConfig } from "../run/world/config.ts";
import { workFolder } from "../run/work-folder.ts";
import { selfTest } from "../run/world/sandbox.ts";
import { loadBoss, openBossDispatch } from "./boss.ts";
import { openServerClock } from "./clock.ts";
import { QUEUE_NAME } from "./dispatch.ts";
import { createJobDriver, type JobDriverOptions } from "./drive.ts";
import { createMeter } from "./meter.ts";
import { createPresence } from "./presence.ts";
import { requireRoom } from "./room.ts";
import { work, type WorkerEvent } from "./worker.ts";

export type HostOptions = {
  readonly address: string;
  readonly env: NodeJS.ProcessEnv;
  readonly version: string;
  /** In the place of what the user's settings say. */
  readonly given: Pick<FleetConfig, "concurrency" | "queues" | "work"> & { readonly name?: string };
  readonly how: Omit<JobDriverOptions["how"], "clock">;
  readonly draining: AbortSignal;
  readonly drainMs: number;
  /** Others see it from now on, so that it has to be drained. Before that a signal may end the process at once. */
  readonly onEnter: () => void;
  readonly onReady: (about: {
    readonly name: string;
    readonly slots: number;
    readonly queues: readonly string[];
  }) => void;
  readonly observe: (event: WorkerEvent) => void;
};

const PATIENCE_MS = 120_000;
const CLEAR_MS = 3_600_000;
const HELLO_MS = 3000;
const CLOCK_MS = 60_000;

/** Drives runs until it has drained. */
export async function hostWorker(options: HostOptions): Promise<void> {
  const { env, given, observe } = options;
  const { fleet } = readConfig(env);
  const address = readPostgresAddress(options.address);
  const pg = await loadPg(env);
  const boss = await loadBoss(env);
  const leaseMs = (fleet.leaseSeconds ?? 30) * 1000;
  const slots = given.concurrency ?? fleet.concurrency ?? 10;
  const queues = given.queues ?? fleet.queues ?? ["runs"];
  const strange = queues.find((queue) => !QUEUE_NAME.test(queue));
  if (strange !== undefined)
    throw new RunnerError(
      "CONFIG_INVALID",
      `fleet.queues needs names of letters, digits, _ and -, not "${shownInLine(strange, 80)}".`,
    );
  const folder = workFolder(given.work ?? fleet.work, env);
  const id = randomUUID();
  const name = given.name ?? `${hostname()}-${process.pid}`;
  const here = { host: hostname(), pid: process.pid };
  // A statement that gets no answer must fail well before the lease is over.
  const queryTimeoutMs = Math.min(5000, leaseMs / 4);
  const journal = await openPostgresJournal({
    address,
    pg,
    patienceMs: PATIENCE_MS,
    queryTimeoutMs: 10_000,
    leaseMs,
    ownerId: id,
    ...here,
  });
  const postgres = openPostgres({ address, pg, patienceMs: HELLO_MS, queryTimeoutMs });
  // Limits wait for a server that is away, as the journal does.
  const limits = openPostgres({ address, pg, patienceMs: PATIENCE_MS, queryTimeoutMs: 10_000 });
  try {
    const dispatch = await openBossDispatch({ postgres, boss, leaseMs });
    const sandbox = await sandboxHere(folder, env);
    const models = surveyModels(env).rows.flatMap((row) => (row.why === null ? [row.name] : []));
    const offers = { slots, queues, speech: SPEECH, models, backends: [], sandbox };
    const presence = createPresence(postgres, {
      id,
      name,
      version: options.version,
      leaseMs,
      offers,
      ...here,
    });
    const { clock, set } = await openServerClock(postgres);
    options.onEnter();
    await presence.enter();
    // From here on the loops of the worker wait, and must know that they do.
    postgres.waitFor(0);
    options.onReady({ name, slots, queues });
    const clear = (isBeginning: boolean) =>
      clearPlaces(folder, journal, { now: Date.now(), isBeginning }).catch((error: unknown) =>
        observe({ kind: "trouble", error, isLasting: false }),
      );
    await clear(true);
    const clearing = setInterval(() => void clear(false), CLEAR_MS);
    // A server that is away is asked again a minute later.
    const setting = setInterval(() => void set().catch(() => undefined), CLOCK_MS);
    try {
      await work({
        postgres,
        dispatch,
        presence,
        wanted: { queues, speech: SPEECH },
        slots,
        shares: sharesOf(fleet.groups),
        leaseMs,
        stretchMs: (fleet.stretchHours ?? 6) * 3_600_000,
        requireRoom: () => requireRoom(folder),
        drive: createJobDriver({
          journal,
          meter: createMeter(limits),
          work: folder,
          fleet,
          env,
          how: { ...options.how, clock },
        }),
        draining: options.draining,
        drainMs: options.drainMs,
        now: clock.now,
        observe,
      });
    } finally {
      clearInterval(clearing);
      clearInterval(setting);
      await dispatch.close().catch(() => undefined);
      await presence.leave().catch(() => undefined);
    }
  } finally {
    await journal.close();
    await postgres.close();
    await limits.close();
  }
}

/** Of a group that is not named, and of one without a limit. */
const USUAL_SHARE = 1000;

function sharesOf({ default: usual = USUAL_SHARE, ...of }: { readonly [group: string]: number } = {}) {
  return { default: usual, of };
}

/** null: commands cannot be confined here. */
async function sandboxHere(folder: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const place = { root: folder, agentsDir: join(folder, ".agent"), stateDir: join(folder, ".lockstep") };
  return (await selfTest(place, env)) === null ? "bwrap" : null;
}
