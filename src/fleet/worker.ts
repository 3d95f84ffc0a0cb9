/** A worker of a fleet: takes jobs for its free slots, shows signs of life, drives each run for a stretch, and settles it. */
import { isAway } from "../journal/postgres/postgres-errors.ts";
import type { Postgres } from "../journal/postgres/connection.ts";
import { createRounds } from "../journal/postgres/rounds.ts";
import { queuesOf, type Dispatch, type GroupShares, type Job } from "./dispatch.ts";
import { contactAt, isCalm, keepEvery, keptBy, missedBy, mustStop } from "./lease.ts";
import { nextStretch, type Ended } from "./life.ts";
import type { Presence } from "./presence.ts";
import { createTroubles, type WorkerPart } from "./trouble.ts";
import {
  beginning,
  progressed,
  promote,
  settling,
  type SettledJob,
  type Taken,
  type WantedRuns,
} from "./rows.ts";

export type WorkerOptions = {
  /** It waits for no server: this loop has to know when one is away. */
  readonly postgres: Postgres;
  readonly dispatch: Dispatch;
  readonly presence: Presence;
  readonly wanted: WantedRuns;
  readonly slots: number;
  readonly shares: GroupShares;
  readonly leaseMs: number;
  /** A run that goes on for longer yields, so that others get a turn. */
  readonly stretchMs: number;
  /** Throws where this machine cannot take another run now, and says why. */
  readonly requireRoom: () => void;
  /** Drives one stretch; does not reject. */
  readonly drive: (stretch: StretchOfJob) => Promise<Ended>;
  /** Aborted: takes nothing more, and what is driven yields. */
  readonly draining: AbortSignal;
  /** How long what yields may take, from then on. */
  readonly drainMs: number;
  /** The clock of `until` in what `drive` gives. */
  readonly now: () => number;
  readonly observe: (event: WorkerEvent) => void;
};

/** One stretch of a run in this worker. */
export type StretchOfJob = {
  readonly job: Job;
  readonly group: string;
  /** The worker before did not come to an end with it. */
  readonly takeOver: boolean;
  /** Finish what is under way, and give the run back. */
  readonly yieldSignal: AbortSignal;
  /** Give up what is under way at once: the run may be another's by now. */
  readonly stopSignal: AbortSignal;
  /** A visit was settled. */
  readonly progressed: () => void;
};

export type WorkerEvent =
  | { readonly kind: "began"; readonly run: string; readonly attempt: number }
  | { readonly kind: "over"; readonly run: string; readonly end: Ended; readonly isSettled: boolean }
  | { readonly kind: "stopped"; readonly run: string; readonly why: "lease" | "lost" | "drain" }
  /** `isLasting`: from now on it counts as lasting, which is said once. */
  | { readonly kind: "trouble"; readonly error: unknown; readonly isLasting: boolean }
  /** What was lasting trouble is over. */
  | { readonly kind: "recovered" }
  | { readonly kind: "draining"; readonly withinMs: number };

type Driven = Taken & {
  readonly yields: AbortController;
  readonly stops: AbortController;
  isProven: boolean;
};

type Beginning = { readonly jobs: readonly Job[]; readonly begin: () => Promise<readonly Taken[]> };

const POLL_MS = 1000;
/** All workers of a fleet together ask so often at most. */
const POLLS_PER_S = 100;
/** The first ones are driven while the next ones are taken. */
const MOST_TAKEN = 250;
const TEND_MS = 2000;
const WATCH_MS = 250;
/** A settled stretch is recorded: that its job is done may wait for a server that is away. */
const SETTLE_MS = 120_000;
/** Stretches that end at the same time are settled by one transaction. */
const SETTLING = { most: 500, abreast: 1 };

/** Resolves when it has drained. */
export async function work(options: WorkerOptions): Promise<void> {
  const { postgres, dispatch, presence, wanted, leaseMs, observe } = options;
  const queues = queuesOf(wanted.queues, wanted.speech);
  /** Not by job: what was lost may come back as another attempt before it is given up here. */
  const driven = new Set<Driven>();
  /** Taken, but the server went away before they were begun. */
  let pending: Beginning | null = null;
  let contact = contactAt(performance.now());
  let workers = 1;
  let drainBy: number | null = null;
  const over = new AbortController();
  const naps = new Set<() => void>();

  /** Until `ms` are over or something ends; how long does not matter to what is right. */
  const nap = (ms: number, isWoken: boolean) =>
    new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer);
        naps.delete(end);
        over.signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      if (isWoken) naps.add(end);
      over.signal.addEventListener("abort", end);
      if (over.signal.aborted) end();
    });
  const wakePoll = () => {
    for (const end of naps) end();
  };
  const stopOne = (one: Driven, why: "lease" | "lost" | "drain") => {
    if (one.stops.signal.aborted) return;
    observe({ kind: "stopped", run: one.job.run, why });
    one.stops.abort();
  };
  const drain = (withinMs: number) => {
    const by = performance.now() + withinMs;
    if (drainBy === null) observe({ kind: "draining", withinMs });
    drainBy = Math.min(drainBy ?? by, by);
    for (const { yields } of driven) yields.abort();
  };
  const isDraining = () => drainBy !== null;
  const troubles = createTroubles();
  const failed = (part: WorkerPart, error: unknown) =>
    observe({ kind: "trouble", error, isLasting: troubles.failed(part, error) });
  const worked = (part: WorkerPart) => {
    if (troubles.worked(part)) observe({ kind: "recovered" });
  };

  const settles = createRounds<SettledJob>(
    async (stretches) => {
      const ours = await untilSaid(settling(postgres, dispatch, stretches));
      return stretches.map(({ job }) => ({ value: ours?.has(job) === true }));
    },
    SETTLING,
    ({ job }) => job.run,
  );

  const driveOne = async (taken: Taken): Promise<void> => {
    const { job } = taken;
    const one: Driven = {
      ...taken,
      yields: new AbortController(),
      stops: new AbortController(),
      isProven: taken.tries === 0,
    };
    driven.add(one);
    if (drainBy !== null) one.yields.abort();
    observe({ kind: "began", run: job.run, attempt: job.attempt });
    const limit = setTimeout(() => one.yields.abort(), options.stretchMs);
    const end = await options.drive({
      job,
      group: taken.group,
      takeOver: job.attempt > 0,
      yieldSignal: one.yields.signal,
      stopSignal: one.stops.signal,
      progressed: () => {
        if (one.isProven) return;
        one.isProven = true;
        // If it fails, the end of the stretch says it.
        progressed(postgres, job).catch(() => undefined);
      },
    });
    clearTimeout(limit);
    const tries = one.isProven ? 0 : taken.tries;
    const next = nextStretch(end, tries, options.now(), leaseMs);
    const isSettled = (await settles.offer({ job, next })) as boolean;
    driven.delete(one);
    // Stopped before it could find out by itself that the run is another's.
    const isLost = end.kind === "yielded" && !isSettled;
    observe({ kind: "over", run: job.run, end: isLost ? { kind: "lost" } : end, isSettled });
    wakePoll();
  };

  /** null: it could not be said. The lease frees the jobs, and who takes them finds what was recorded. */
  const untilSaid = async <T>(say: () => Promise<T>): Promise<T | null> => {
    const began = performance.now();
    for (;;) {
      try {
        const said = await say();
        worked("settle");
        return said;
      } catch (error) {
        failed("settle", error);
        if (performance.now() - began > SETTLE_MS) return null;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    }
  };

  const beginAll = async ({ begin }: Beginning): Promise<void> => {
    const taken = await begin();
    pending = null;
    for (const one of taken) void driveOne(one);
  };

  const poll = async (): Promise<void> => {
    if (pending !== null) await beginAll(pending);
    if (isDraining() || driven.size >= options.slots) return;
    options.requireRoom();
    // The first ones are driven while jobs are made for the others. All have one before more are taken: groups share slots.
    if ((await promote(postgres, dispatch, wanted, MOST_TAKEN)) === MOST_TAKEN) {
      if (!isDraining()) await takeSome();
      while ((await promote(postgres, dispatch, wanted)) > 0) if (isDraining()) return;
    }
    while (driven.size < options.slots && !isDraining()) if ((await takeSome()) === 0) return;
  };

  const takeSome = async (): Promise<number> => {
    const most = Math.min(MOST_TAKEN, options.slots - driven.size);
    const jobs = await dispatch.take(queues, most, options.shares);
    if (jobs.length === 0) return 0;
    pending = { jobs, begin: beginning(postgres, dispatch, jobs, wanted.speech) };
    await beginAll(pending);
    return jobs.length;
  };

  const polling = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await poll().then(
        () => worked("poll"),
        (error: unknown) => failed("poll", error),
      );
      const usual = Math.max(POLL_MS, (workers * 1000) / POLLS_PER_S);
      // With the poll itself it stays below a second, so that an answer is followed by its stretch within one.
      await nap(usual * (0.5 + Math.random() * 0.4), true);
    }
  };

  const keeping = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const sent = performance.now();
      try {
        const ours = [...driven];
        const kept = new Set(await dispatch.keep([...ours.map(({ job }) => job), ...(pending?.jobs ?? [])]));
        for (const one of ours) if (!kept.has(one.job)) stopOne(one, "lost");
        const shown = await presence.beat(troubles.lasting());
        workers = shown.workers;
        if (shown.drainMs !== null) drain(shown.drainMs);
        contact = keptBy(contact, sent, performance.now(), leaseMs);
        worked("keep");
      } catch (error) {
        contact = missedBy(contact, isRefusal(error), performance.now(), leaseMs);
        failed("keep", error);
      }
      const isKept = contact.kept === sent;
      await nap(isKept ? keepEvery(leaseMs) : POLL_MS, false);
    }
  };

  const tending = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await nap(TEND_MS, false);
      if (drainBy !== null || !isCalm(contact, performance.now(), leaseMs)) continue;
      await dispatch.tend(queues).then(
        () => worked("tend"),
        (error: unknown) => failed("tend", error),
      );
    }
  };

  const watching = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await nap(WATCH_MS, false);
      const now = performance.now();
      if (mustStop(contact, now, leaseMs)) for (const one of driven) stopOne(one, "lease");
      if (drainBy !== null && now >= drainBy) for (const one of driven) stopOne(one, "drain");
    }
  };

  const onDrain = () => drain(options.drainMs);
  options.draining.addEventListener("abort", onDrain);
  if (options.draining.aborted) onDrain();
  const loops = [polling(), keeping(), tending(), watching()];
  try {
    for (;;) {
      await nap(WATCH_MS, true);
      if (drainBy !== null && driven.size === 0 && pending === null) break;
      if (drainBy !== null && performance.now() > drainBy + SETTLE_MS) break;
    }
  } finally {
    options.draining.removeEventListener("abort", onDrain);
    over.abort();
    await Promise.all(loops);
  }
}

/** Something answered that there is no server now, so that nobody has one. Silence can mean this machine alone. */
function isRefusal(error: unknown): boolean {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return isAway(cause) && /^(?:ECONNREFUSED|ECONNRESET|57P0[123]|53300)$/.test(code);
}
