/**
 * A fleet in memory by a clock that is moved by hand: the queue, the leases and the life of runs are those of real workers,
 * and machines, processes and the server fail by a seed.
 */
import type { Dispatch, Job, TransactionSend } from "../src/fleet/dispatch.ts";
import {
  contactAt,
  isCalm,
  keepEvery,
  keptBy,
  missedBy,
  mustStop,
  type Contact,
} from "../src/fleet/lease.ts";
import { MOST_TRIES, nextStretch, type Ended } from "../src/fleet/life.ts";
import { createMemoryDispatch } from "../src/fleet/memory.ts";

export type SimulationOptions = {
  readonly workers: number;
  readonly slots: number;
  readonly runs: number;
  readonly groups: number;
  readonly seed: number;
  /** How many processes die or are stopped for a while, and how often the server is away for everybody. */
  readonly deaths: number;
  readonly stops: number;
  readonly outages: number;
};

export type Simulated = {
  readonly ended: number;
  readonly poisoned: number;
  readonly takeovers: number;
  /** Stretches that were cut off, and begun again elsewhere. */
  readonly repeated: number;
  /** Two that could act were driving the same run. */
  readonly doubles: number;
  /** Runs that were taken from a worker that lived, because the server had been away. */
  readonly robbed: number;
  /** The longest time from a death to the takeover of the last of its runs, in leases. */
  readonly slowestTakeover: number;
  /** As which of all takes the first run of the last group began. */
  readonly firstOfLastGroup: number;
  readonly seconds: number;
};

const LEASE_S = 30;
const STRETCH_S = 20;
/** A visit is settled after so long. */
const VISIT_S = 3;
const QUEUE = "runs.v1";

type SimulatedRun = {
  job: string | null;
  due: number | null;
  tries: number;
  isOver: boolean;
  isHeld: boolean;
  group: string;
};
type Driven = { readonly job: Job; readonly began: number; readonly end: number; isStopped: boolean };
type SimulatedWorker = {
  readonly id: number;
  contact: Contact;
  driven: Driven[];
  nextKeep: number;
  nextPoll: number;
  /** Until then it does nothing: it is stopped, or being started again. */
  frozenUntil: number;
  diedAt: number | null;
};

const never: TransactionSend = () => Promise.reject(new Error("memory sends nothing"));

export async function simulate(options: SimulationOptions): Promise<Simulated> {
  const random = seeded(options.seed);
  let now = 0;
  const dispatch: Dispatch = createMemoryDispatch(LEASE_S * 1000, () => now * 1000);
  const runs = new Map<string, SimulatedRun>();
  for (let at = 0; at < options.runs; at += 1) {
    const group = at < options.runs - options.groups ? "flood" : `g${at % options.groups}`;
    runs.set(`r${at}`, { job: null, due: 0, tries: 0, isOver: false, isHeld: false, group });
  }
  const wanting = new Set(runs.keys());
  const shares = { default: Infinity, of: { flood: Math.ceil(options.workers * options.slots * 0.9) } };
  const workers = Array.from({ length: options.workers }, (_, id): SimulatedWorker => {
    return {
      id,
      contact: contactAt(0),
      driven: [],
      nextKeep: random() * 10,
      nextPoll: random() * 5,
      frozenUntil: 0,
      diedAt: null,
    };
  });
  const length = (options.runs / (options.workers * options.slots)) * STRETCH_S;
  const moments = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * length) + LEASE_S);
  const [deaths, stops, outages] = [
    moments(options.deaths),
    moments(options.stops),
    moments(options.outages),
  ];
  const awayUntil = new Map(outages.map((from) => [from, from + 20 + Math.floor(random() * 60)]));
  const tally = {
    ended: 0,
    poisoned: 0,
    takeovers: 0,
    repeated: 0,
    doubles: 0,
    robbed: 0,
    slowestTakeover: 0,
    firstOfLastGroup: 0,
  };
  const heldBy = new Map<string, SimulatedWorker>();
  const deadAt = new Map<string, number>();
  let [takes, away, tended] = [0, 0, 0];

  const settle = async (worker: SimulatedWorker, one: Driven, end: Ended) => {
    if ((await dispatch.settle([one.job], never)).length === 0) return void (tally.repeated += 1);
    const run = runs.get(one.job.run)!;
    const next = nextStretch(end, run.tries, now * 1000, LEASE_S * 1000);
    Object.assign(run, {
      job: null,
      tries: next.tries,
      due: next.afterMs === null ? null : now + next.afterMs / 1000,
    });
    if (heldBy.get(one.job.run) === worker) heldBy.delete(one.job.run);
    if (end.kind === "ended") {
      run.isOver = true;
      tally.ended += 1;
    } else wanting.add(one.job.run);
  };

  const begin = (worker: SimulatedWorker, job: Job) => {
    takes += 1;
    const run = runs.get(job.run)!;
    const before = heldBy.get(job.run);
    // One that goes on in this very second looks at its lease before it does anything.
    const isActing = before !== undefined && before.diedAt === null && before.frozenUntil < now;
    const still = before?.driven.find((one) => one.job.run === job.run && !one.isStopped);
    if (still !== undefined && isActing && before !== worker) tally.doubles += 1;
    if (job.attempt > 0) {
      tally.takeovers += 1;
      run.tries += 1;
      const died = deadAt.get(job.run);
      // What was given away while a worker was stopped may be taken after it goes on.
      const wasStopped = before !== undefined && before.frozenUntil + 2 * LEASE_S > now;
      if (died === undefined && isActing && !wasStopped) tally.robbed += 1;
      if (died !== undefined) tally.slowestTakeover = Math.max(tally.slowestTakeover, (now - died) / LEASE_S);
      deadAt.delete(job.run);
      if (run.tries >= MOST_TRIES) {
        tally.poisoned += 1;
        run.isHeld = true;
        return;
      }
    }
    if (run.group === `g${options.groups - 1}` && tally.firstOfLastGroup === 0)
      tally.firstOfLastGroup = takes;
    heldBy.set(job.run, worker);
    worker.driven.push({ job, began: now, end: now + STRETCH_S * (0.5 + random()), isStopped: false });
  };

  const promote = async () => {
    const offers = [];
    for (const id of wanting) {
      const run = runs.get(id)!;
      if (run.due === null || run.due > now || run.job !== null || run.isHeld) continue;
      run.job = `${id}@${now}`;
      run.due = null;
      wanting.delete(id);
      offers.push({
        id: run.job,
        run: id,
        queue: QUEUE,
        group: run.group,
        priority: run.group === "flood" ? 0 : -1,
      });
    }
    if (offers.length > 0) await dispatch.offer(offers, never);
  };

  const live = async (worker: SimulatedWorker) => {
    const isAway = now < away;
    if (now >= worker.nextKeep) {
      worker.nextKeep = now + (isAway ? 1 : keepEvery(LEASE_S));
      if (isAway) worker.contact = missedBy(worker.contact, true, now * 1000, LEASE_S * 1000);
      else {
        const kept = new Set(await dispatch.keep(worker.driven.map(({ job }) => job)));
        for (const one of worker.driven) if (!kept.has(one.job)) one.isStopped = true;
        worker.contact = keptBy(worker.contact, now * 1000, now * 1000, LEASE_S * 1000);
      }
    }
    for (const one of worker.driven) if (now - one.began >= VISIT_S) runs.get(one.job.run)!.tries = 0;
    if (mustStop(worker.contact, now * 1000, LEASE_S * 1000))
      for (const one of worker.driven) one.isStopped = true;
    if (isAway) return;
    if (now - tended >= 2 && isCalm(worker.contact, now * 1000, LEASE_S * 1000)) {
      tended = now;
      await dispatch.tend([QUEUE]);
    }
    const over = worker.driven.filter(({ end, isStopped }) => isStopped || end <= now);
    worker.driven = worker.driven.filter((one) => !over.includes(one));
    for (const one of over)
      await settle(worker, one, one.isStopped ? { kind: "yielded" } : { kind: "ended" });
    if (over.length === 0 && now < worker.nextPoll) return;
    worker.nextPoll = now + Math.max(1, options.workers / 100) * (0.5 + random() / 2);
    await promote();
    while (worker.driven.length < options.slots) {
      const jobs = await dispatch.take([QUEUE], options.slots - worker.driven.length, shares);
      if (jobs.length === 0) break;
      for (const job of jobs) begin(worker, job);
    }
  };

  const limit = length * 20 + 3600;
  for (; now < limit && tally.ended + tally.poisoned < options.runs; now += 1) {
    for (const at of deaths.filter((moment) => moment === now)) {
      const worker = workers[Math.floor(random() * workers.length)]!;
      for (const { job } of worker.driven) deadAt.set(job.run, at);
      Object.assign(worker, { diedAt: now, frozenUntil: now + 60 });
    }
    for (const _ of stops.filter((moment) => moment === now)) {
      const worker = workers[Math.floor(random() * workers.length)]!;
      worker.frozenUntil = Math.max(worker.frozenUntil, now + 10 + Math.floor(random() * 90));
    }
    away = Math.max(away, awayUntil.get(now) ?? 0);
    for (const worker of workers) {
      if (worker.frozenUntil > now) continue;
      if (worker.diedAt !== null)
        Object.assign(worker, { diedAt: null, driven: [], contact: contactAt(now * 1000) });
      await live(worker);
    }
  }
  return { ...tally, seconds: now };
}

/** Numbers from 0 to 1, the same for the same seed. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
