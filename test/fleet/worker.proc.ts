/** Workers of a fleet on a real server, with stretches that do nothing but what a test says. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import type { Entry } from "../../src/flow/event.ts";
import type { Flow } from "../../src/flow/flow.ts";
import type { Dispatch, GroupShares } from "../../src/fleet/dispatch.ts";
import type { Ended } from "../../src/fleet/life.ts";
import { offerRuns, type RunOffer } from "../../src/fleet/offer.ts";
import { createPresence } from "../../src/fleet/presence.ts";
import { promote, releaseRuns } from "../../src/fleet/rows.ts";
import { workersOf } from "../../src/fleet/status.ts";
import { work, type StretchOfJob, type WorkerEvent } from "../../src/fleet/worker.ts";
import type { Postgres, Rows } from "../../src/journal/postgres/connection.ts";
import { wakeWithin } from "../../src/journal/postgres/wake.ts";
import { startServer, type PostgresServer } from "../journal/postgres/server.ts";
import { until } from "../until.ts";
import { ageJobs, bossAt, makeFleet, needsFleet, postgresAt, programs } from "./fleet-server.ts";

const { skip } = needsFleet("workers of a fleet");

describe("workers", { skip }, () => {
  let server: PostgresServer;
  let postgres: Postgres;
  let dispatch: Dispatch;
  before(async () => {
    server = await startServer(programs!);
    postgres = postgresAt(server.url);
    await makeFleet(postgres);
    dispatch = await bossAt(postgres);
  });
  after(async () => {
    await dispatch.close();
    await postgres.close();
    server.remove();
  });

  const offerOf = (queue: string, more: Partial<RunOffer> = {}): RunOffer => {
    const run = { id: randomUUID(), agent: "a", at: 0, digest: "d", flow: {} as Flow };
    return { run, entries: [{ seq: 1, at: 0 } as Entry], queue, group: "g", priority: 0, ...more };
  };
  const offer = async (queue: string, ...more: readonly Partial<RunOffer>[]): Promise<readonly string[]> => {
    const made = await offerRuns(
      postgres,
      more.map((one) => offerOf(queue, one)),
      1,
    );
    return made.map(({ run }) => run);
  };
  const rowsOf = async (runs: readonly string[]): Promise<Rows> =>
    await postgres.send(
      {
        name: "",
        text: `SELECT id, job, due, tries, held, held_because, owner FROM ${postgres.schema}.run WHERE id = ANY($1)`,
      },
      [runs],
    );
  /** As if the worker that drives it the nth time had died. One that lives may keep its job in between: then once more. */
  const giveAway = (queue: string, run: string, nth: number) =>
    until(async () => {
      await ageJobs(postgres);
      await dispatch.tend([`${queue}.v1`]);
      const { schema } = postgres;
      const text = `SELECT j.state, j.retry_count FROM ${schema}_boss.job j JOIN ${schema}.run r ON j.id::text = r.job WHERE r.id = $1`;
      const [job] = await postgres.send({ name: "", text }, [run]);
      return job?.state !== "active" || Number(job.retry_count) >= nth;
    }, `${run} is given away`);
  const wake = (run: string) => postgres.together((send) => wakeWithin(send, postgres.schema, run));

  type Phantom = {
    readonly events: WorkerEvent[];
    readonly drain: () => Promise<void>;
    readonly name: string;
  };
  /** A worker within this process. */
  const startWorker = (
    queue: string,
    drive: (stretch: StretchOfJob) => Promise<Ended>,
    more: {
      readonly slots?: number;
      readonly shares?: GroupShares;
      readonly speech?: number;
      readonly drainMs?: number;
      readonly dispatch?: Dispatch;
    } = {},
  ): Phantom => {
    const events: WorkerEvent[] = [];
    const draining = new AbortController();
    const id = randomUUID();
    const offers = { slots: 1, queues: [queue], speech: 1, models: [], backends: [], sandbox: null };
    const about = { id, name: id, host: "h", pid: 1, version: "0", leaseMs: 10_000, offers };
    const { slots = 4, shares = { default: 1000, of: {} }, speech = 1, drainMs = 20_000 } = more;
    const presence = createPresence(postgres, about);
    const done = presence.enter().then(() =>
      work({
        postgres,
        dispatch: more.dispatch ?? dispatch,
        presence,
        wanted: { queues: [queue], speech },
        slots,
        shares,
        leaseMs: 10_000,
        stretchMs: 3_600_000,
        requireRoom: () => undefined,
        drive,
        draining: draining.signal,
        drainMs,
        now: Date.now,
        observe: (event) => void events.push(event),
      }),
    );
    const drain = async () => {
      draining.abort();
      await done;
      await presence.leave();
    };
    return { events, drain, name: id };
  };
  const newQueue = () => `q-${randomUUID().slice(0, 8)}`;
  const ENDED: Ended = { kind: "ended" };

  test("every run that is offered is driven once, by one of two workers", async () => {
    const queue = newQueue();
    const driven: string[] = [];
    const drive = ({ job }: StretchOfJob) => {
      driven.push(job.run);
      return Promise.resolve(ENDED);
    };
    const workers = [startWorker(queue, drive), startWorker(queue, drive)];
    const runs = await offer(queue, ...Array.from({ length: 30 }, () => ({})));
    await until(() => driven.length >= 30, "all are driven");
    for (const { drain } of workers) await drain();
    assert.deepEqual(driven.toSorted(), [...runs].toSorted());
    for (const row of await rowsOf(runs)) assert.deepEqual([row.job, row.due, row.held], [null, null, null]);
  });

  test("stretches that end together are settled together, each in its own way", async () => {
    const queue = newQueue();
    const runs = await offer(queue, ...Array.from({ length: 40 }, () => ({})));
    const woken = runs[6]!;
    const ends: readonly Ended[] = [
      ENDED,
      { kind: "waiting" },
      { kind: "yielded" },
      { kind: "parked", until: Date.now() + 3_600_000 },
      { kind: "unavailable", code: "X", reason: "once" },
      { kind: "unavailable", code: "X", reason: "again\0and again" },
    ];
    await postgres.send(
      { name: "", text: `UPDATE ${postgres.schema}.run SET tries = 2 WHERE id = ANY($1)` },
      [runs.filter((_, place) => place % ends.length === 5)],
    );
    const all = Promise.withResolvers<void>();
    const groups: number[] = [];
    let begun = 0;
    const worker = startWorker(
      queue,
      async ({ job }) => {
        if ((begun += 1) === runs.length) {
          await wake(woken);
          all.resolve();
        }
        await all.promise;
        return ends[runs.indexOf(job.run) % ends.length]!;
      },
      {
        slots: 100,
        dispatch: {
          ...dispatch,
          settle: (jobs, within) => {
            groups.push(jobs.length);
            return dispatch.settle(jobs, within);
          },
        },
      },
    );
    await all.promise;
    await worker.drain();
    assert.ok(groups.length <= 3, `settled in groups of ${groups.join()}`);
    const rows = new Map((await rowsOf(runs)).map((row) => [row.id, row]));
    for (const [place, run] of runs.entries()) {
      const { job, due, tries, held, held_because } = rows.get(run)!;
      const kind = place % ends.length;
      const wants = due === null ? "none" : (due as Date).getTime() > Date.now() + 60_000 ? "later" : "soon";
      const wanted = run === woken ? "soon" : ["none", "none", "soon", "later", "soon", "none"][kind];
      assert.deepEqual(
        { job, wants, tries, held, held_because },
        {
          job: null,
          wants: wanted,
          tries: [0, 0, 0, 0, 1, 3][kind],
          held: kind === 5 ? "poisoned" : null,
          held_because: kind === 5 ? "X: againand again" : null,
        },
        `${place}`,
      );
    }
  });

  test("a row that no queue takes is held alone, and says why", async () => {
    const queue = newQueue();
    const driven: string[] = [];
    const bad = await offer(queue, { group: "" }, { queue: "bad name" }, { group: "g".repeat(3000) }, {});
    await postgres.send(
      { name: "", text: `UPDATE ${postgres.schema}.run SET grp = NULL WHERE id = $1` },
      bad.slice(-1),
    );
    const good = await offer(queue, {}, {});
    const worker = startWorker(queue, ({ job }) => {
      driven.push(job.run);
      return Promise.resolve(ENDED);
    });
    await until(() => driven.length === 2, "the others are driven");
    await worker.drain();
    assert.deepEqual(driven.toSorted(), [...good].toSorted());
    assert.deepEqual(
      worker.events.filter(({ kind }) => kind === "trouble"),
      [],
    );
    for (const row of await rowsOf(bad)) {
      assert.deepEqual([row.held, row.job, row.due], ["poisoned", null, null]);
      assert.match(String(row.held_because), /^No worker can take it: its (?:group|queue) is not a name/);
    }
  });

  test("the run of a job is the one whose row has it, whatever the job says", async () => {
    const queue = newQueue();
    const [own = "", other = ""] = await offer(queue, {}, {});
    await postgres.send({ name: "", text: `UPDATE ${postgres.schema}.run SET due = NULL WHERE id = $1` }, [
      other,
    ]);
    await promote(postgres, dispatch, { queues: [queue], speech: 1 });
    await postgres.send(
      {
        name: "",
        text: `UPDATE ${postgres.schema}_boss.job SET data = jsonb_build_object('run', $1::text) WHERE data ->> 'run' = $2`,
      },
      [other, own],
    );
    const driven: string[] = [];
    const worker = startWorker(queue, ({ job }) => {
      driven.push(job.run);
      return Promise.resolve(ENDED);
    });
    await until(() => driven.length > 0, "one is driven");
    await worker.drain();
    assert.deepEqual(driven, [own]);
  });

  test("trouble of a worker that lasts is seen by others, until it is over", async () => {
    const queue = newQueue();
    const troubleOf = async (name: string) =>
      (await workersOf(postgres)).find((worker) => worker.name === name)?.offers?.trouble;
    const taking = { ...dispatch };
    let isBroken = true;
    const broken: Dispatch = {
      ...taking,
      take: (...asked) => (isBroken ? Promise.reject(new Error("no tables")) : taking.take(...asked)),
    };
    const worker = startWorker(queue, () => Promise.resolve(ENDED), { dispatch: broken });
    await until(async () => (await troubleOf(worker.name)) === "no tables", "its row says so");
    isBroken = false;
    await until(async () => (await troubleOf(worker.name)) === null, "it is over");
    await worker.drain();
    const said = worker.events.flatMap((event) =>
      event.kind === "recovered" || (event.kind === "trouble" && event.isLasting) ? [event.kind] : [],
    );
    assert.deepEqual(said, ["trouble", "recovered"]);
  });

  test("a worker with nothing to do takes a run that is woken at its next look", async () => {
    const queue = newQueue();
    let [looks, stretches] = [0, 0];
    const looking: Dispatch = {
      ...dispatch,
      take: async (...asked) => {
        looks += 1;
        return await dispatch.take(...asked);
      },
    };
    const drive = (): Promise<Ended> => {
      stretches += 1;
      return Promise.resolve({ kind: "waiting" });
    };
    const worker = startWorker(queue, drive, { slots: 1, dispatch: looking });
    const [run = ""] = await offer(queue, {});
    for (let wakes = 1; wakes <= 4; wakes += 1) {
      await until(async () => (await rowsOf([run]))[0]?.job === null && stretches === wakes, "it waits");
      const idle = looks;
      await until(() => looks >= idle + 2, "the worker has looked in vain");
      await wake(run);
      const before = looks;
      await until(() => stretches === wakes + 1, "it goes on");
      // One may have begun before the run was woken.
      assert.ok(looks <= before + 2, `${looks - before} looks`);
    }
    await worker.drain();
  });

  test("three workers that die at a run hold it, a wake does not revive it, and retry goes on", async () => {
    const queue = newQueue();
    const [poison = ""] = await offer(queue, {});
    const others = await offer(queue, ...Array.from({ length: 30 }, () => ({})));
    const driven: string[] = [];
    const attempts: number[] = [];
    let isHealed = false;
    const drive = async ({ job, stopSignal }: StretchOfJob): Promise<Ended> => {
      if (job.run === poison && !isHealed) {
        attempts.push(job.attempt);
        // As one that is gone: nothing is settled until its job was given away.
        await new Promise<void>((resolve) => stopSignal.addEventListener("abort", () => resolve()));
        return { kind: "lost" };
      }
      driven.push(job.run);
      return ENDED;
    };
    const worker = startWorker(queue, drive, { slots: 2 });
    for (let tries = 1; tries <= 3; tries += 1) {
      await until(() => attempts.length === tries, `it is driven ${tries} times`);
      await giveAway(queue, poison, tries);
    }
    await until(async () => (await rowsOf([poison]))[0]?.held === "poisoned", "it is held");
    await wake(poison);
    await until(() => driven.length === 30, "the others are driven");
    assert.deepEqual(attempts, [0, 1, 2]);
    const [row] = await rowsOf([poison]);
    assert.deepEqual([row?.job, row?.due], [null, null], "the wake had no effect");
    assert.match(String(row?.held_because), /3 workers/);
    assert.deepEqual(driven.toSorted(), [...others].toSorted());
    isHealed = true;
    assert.deepEqual(await releaseRuns(postgres, [poison, others[0]!]), [poison]);
    await until(() => driven.includes(poison), "it goes on");
    await worker.drain();
    assert.deepEqual(
      (await rowsOf([poison])).map(({ held, tries }) => [held, tries]),
      [[null, 0]],
    );
  });

  test("a visit that was settled counts, and the tries begin anew", async () => {
    const queue = newQueue();
    const [run = ""] = await offer(queue, {});
    const attempts: number[] = [];
    const drive = async ({ job, stopSignal, progressed }: StretchOfJob): Promise<Ended> => {
      attempts.push(job.attempt);
      if (attempts.length === 6) return ENDED;
      if (attempts.length % 2 === 0) progressed();
      await new Promise<void>((resolve) => stopSignal.addEventListener("abort", () => resolve()));
      return { kind: "lost" };
    };
    const worker = startWorker(queue, drive);
    for (let tries = 1; tries <= 5; tries += 1) {
      await until(() => attempts.length === tries, `it is driven ${tries} times`);
      if (tries % 2 === 0) await until(async () => (await rowsOf([run]))[0]?.tries === 0, "progress counts");
      await giveAway(queue, run, tries);
    }
    await until(async () => (await rowsOf([run]))[0]?.job === null, "it is settled");
    await worker.drain();
    assert.deepEqual(attempts, [0, 1, 2, 3, 4, 5]);
    assert.equal((await rowsOf([run]))[0]?.held, null);
  });

  test("10,000 runs of one group cannot keep 50 of another waiting, and lower priorities come last", async () => {
    const queue = newQueue();
    const order: string[] = [];
    const flood = new Set(await offer(queue, ...Array.from({ length: 10_000 }, () => ({ group: "A" }))));
    const low = new Set(
      await offer(queue, ...Array.from({ length: 5 }, () => ({ group: "B", priority: -10 }))),
    );
    await offer(queue, ...Array.from({ length: 50 }, () => ({ group: "B" })));
    const drive = async ({ job }: StretchOfJob): Promise<Ended> => {
      order.push(flood.has(job.run) ? "A" : low.has(job.run) ? "low" : "B");
      await new Promise((resolve) => setTimeout(resolve, 5));
      return ENDED;
    };
    const worker = startWorker(queue, drive, { slots: 8, shares: { default: 4, of: { A: 2 } } });
    const small = () => order.filter((one) => one !== "A");
    await until(() => small().length === 55, "all of the small group are driven");
    await worker.drain();
    const first = order.indexOf("B") + 1;
    assert.ok(first <= 10_055 / 100, `the first of B came as number ${first}`);
    assert.ok(order.includes("A"), "the large group has its share");
    // Those that are looked at together, one for each free slot, are taken in any order.
    assert.ok(small().indexOf("low") >= 50 - 8, small().join(" "));
  });

  test("a worker that drains lets its runs yield and others have them; after its time they are stopped", async () => {
    const queue = newQueue();
    const seen: string[] = [];
    const stubborn = startWorker(
      queue,
      async ({ stopSignal, yieldSignal }) => {
        await new Promise<void>((resolve) => stopSignal.addEventListener("abort", () => resolve()));
        seen.push(yieldSignal.aborted ? "stopped" : "early");
        return { kind: "yielded" };
      },
      { slots: 1, drainMs: 50 },
    );
    const polite = startWorker(
      queue,
      async ({ yieldSignal, stopSignal }) => {
        await new Promise<void>((resolve) => yieldSignal.addEventListener("abort", () => resolve()));
        seen.push(stopSignal.aborted ? "late" : "yielded");
        return { kind: "yielded" };
      },
      { slots: 1 },
    );
    const runs = await offer(queue, {}, {});
    const began = ({ events }: Phantom) => events.some(({ kind }) => kind === "began");
    await until(() => began(stubborn) && began(polite), "both drive");
    await Promise.all([stubborn.drain(), polite.drain()]);
    assert.deepEqual(seen.toSorted(), ["stopped", "yielded"]);
    const driven: string[] = [];
    const last = startWorker(queue, ({ job }) => {
      driven.push(job.run);
      assert.equal(job.attempt, 0, "nothing was taken over");
      return Promise.resolve(ENDED);
    });
    await until(() => driven.length === 2, "another one has them");
    await last.drain();
    assert.deepEqual(driven.toSorted(), [...runs].toSorted());
  });

  test("a worker does not take what a newer program wrote, also where an older job of it is left", async () => {
    const queue = newQueue();
    const [run = ""] = await offer(queue, {});
    const by: number[] = [];
    let isDead = true;
    const driver =
      (speech: number) =>
      async ({ stopSignal }: StretchOfJob): Promise<Ended> => {
        by.push(speech);
        if (!isDead) return ENDED;
        await new Promise<void>((resolve) => stopSignal.addEventListener("abort", () => resolve()));
        return { kind: "lost" };
      };
    const newer = startWorker(queue, driver(2), { speech: 2 });
    await until(() => by.length === 1, "the newer one drives it");
    const stopped = newer.drain();
    await giveAway(queue, run, 1);
    const older = startWorker(queue, driver(1), { speech: 1 });
    await until(async () => (await rowsOf([run]))[0]?.job === null, "the older one gave it back");
    await stopped;
    isDead = false;
    const next = startWorker(queue, driver(2), { speech: 2 });
    await until(() => by.length === 2, "a newer one drives it");
    await next.drain();
    await older.drain();
    assert.deepEqual(by, [2, 2]);
  });
});
