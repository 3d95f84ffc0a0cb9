/** Jobs in memory, with the rules of the port: for tests, and for simulations of many workers. */
import type { Dispatch, GroupShares, Job, JobOffer } from "./dispatch.ts";

type Held = JobOffer & { attempt: number; state: "ready" | "taken"; sign: number; place: number };

/** `now`: milliseconds. The jobs of all workers that use the same one are the same. */
export function createMemoryDispatch(leaseMs: number, now: () => number): Dispatch {
  const jobs = new Map<string, Held>();
  const ready = new Map<string, Held[]>();
  const taken = new Map<string, number>();
  let places = 0;

  const count = (queue: string, group: string, by: number) => {
    const key = `${queue}\n${group}`;
    const sum = (taken.get(key) ?? 0) + by;
    taken.set(key, sum);
    return sum;
  };
  const shareOf = ({ of, default: usual }: GroupShares, group: string) => of[group] ?? usual;
  const queued = (queue: string) => ready.get(queue) ?? [];
  const enter = (job: Held) => {
    const list = queued(job.queue);
    // Almost always at the end.
    let at = list.length;
    while (at > 0 && isBefore(job, list[at - 1]!)) at -= 1;
    list.splice(at, 0, job);
    ready.set(job.queue, list);
  };
  const isOurs = ({ id, attempt }: Job) => {
    const held = jobs.get(id);
    return held !== undefined && held.state === "taken" && held.attempt === attempt;
  };

  return {
    offer(offers) {
      for (const offer of offers) {
        const job: Held = { ...offer, attempt: 0, state: "ready", sign: now(), place: (places += 1) };
        jobs.set(offer.id, job);
        enter(job);
      }
      return Promise.resolve();
    },
    take(queues, most, shares) {
      const given: Job[] = [];
      for (const queue of queues) {
        const list = queued(queue);
        const left = new Map<string, number>();
        for (let at = 0; at < list.length && given.length < most;) {
          const job = list[at]!;
          const free = left.get(job.group) ?? shareOf(shares, job.group) - count(queue, job.group, 0);
          left.set(job.group, free);
          if (free <= 0) {
            at += 1;
            continue;
          }
          list.splice(at, 1);
          left.set(job.group, free - 1);
          count(queue, job.group, 1);
          job.state = "taken";
          job.sign = now();
          given.push({ id: job.id, run: job.run, queue, attempt: job.attempt });
        }
      }
      return Promise.resolve(given);
    },
    keep(ours) {
      const kept = ours.filter(isOurs);
      for (const { id } of kept) jobs.get(id)!.sign = now();
      return Promise.resolve(kept);
    },
    settle(done) {
      const settled = done.filter((job) => {
        if (!isOurs(job)) return false;
        const { queue, group } = jobs.get(job.id)!;
        count(queue, group, -1);
        return jobs.delete(job.id);
      });
      return Promise.resolve(settled);
    },
    tend(queues) {
      for (const job of jobs.values()) {
        if (job.state !== "taken" || !queues.includes(job.queue) || job.sign + leaseMs >= now()) continue;
        count(job.queue, job.group, -1);
        job.state = "ready";
        job.attempt += 1;
        enter(job);
      }
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  };
}

function isBefore(one: Held, other: Held): boolean {
  return one.priority === other.priority ? one.place < other.place : one.priority > other.priority;
}
