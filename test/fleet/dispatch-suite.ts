/** What every queue of jobs must do: one suite for the one in memory and the one of pg-boss. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import type { Dispatch, GroupShares, Job, JobOffer, TransactionSend } from "../../src/fleet/dispatch.ts";

export type OpenDispatch = {
  readonly dispatch: Dispatch;
  /** In a transaction, which `undo` rolls back. */
  readonly within: <T>(work: (send: TransactionSend) => Promise<T>) => Promise<T>;
  /** Lets a lease go by for the jobs that are taken now. */
  readonly passLease: () => Promise<void>;
};

const FREE: GroupShares = { default: 1000, of: {} };

export function describeDispatch(
  name: string,
  open: () => Promise<OpenDispatch>,
  how: { readonly skip?: string | false } = {},
): void {
  describe(`jobs of ${name}`, how, () => {
    const offerOf = (queue: string, more: Partial<JobOffer> = {}): JobOffer => {
      return { id: randomUUID(), run: randomUUID(), queue, group: "g", priority: 0, ...more };
    };
    /** Each test has a queue of its own. */
    const prepared = async () => {
      const { dispatch, within, passLease } = await open();
      const queue = `q-${randomUUID().slice(0, 8)}.v1`;
      const offer = async (...offers: readonly Partial<JobOffer>[]) => {
        const all = offers.map((more) => offerOf(queue, more));
        await within((send) => dispatch.offer(all, send));
        return all;
      };
      const take = async (most: number, shares = FREE): Promise<readonly Job[]> => {
        const all: Job[] = [];
        for (;;) {
          const more = await dispatch.take([queue], most - all.length, shares);
          all.push(...more);
          if (more.length === 0 || all.length === most) return all;
        }
      };
      const settle = async (...jobs: readonly Job[]) =>
        (await within((send) => dispatch.settle(jobs, send))).map(({ run, attempt }) => [run, attempt]);
      return { dispatch, queue, offer, take, settle, passLease };
    };

    test("each is given once, in the order of priorities and then of offers", async () => {
      const { offer, take } = await prepared();
      for (const [run, priority] of [
        ["a", 0],
        ["b", -10],
        ["c", 5],
        ["d", 0],
      ] as const)
        await offer({ run, priority });
      const taken = [];
      for (let tries = 0; tries < 5; tries += 1) taken.push(...(await take(1)));
      assert.deepEqual(
        taken.map(({ run, attempt }) => [run, attempt]),
        [
          ["c", 0],
          ["a", 0],
          ["d", 0],
          ["b", 0],
        ],
      );
    });

    test("two that take at once never get the same one", async () => {
      const { offer, take } = await prepared();
      await offer(...Array.from({ length: 40 }, () => ({})));
      const taken = (await Promise.all(Array.from({ length: 4 }, () => take(15)))).flat();
      assert.equal(taken.length, 40);
      assert.equal(new Set(taken.map(({ id }) => id)).size, 40);
    });

    test("nobody takes from a queue that it does not name", async () => {
      const { dispatch, offer, take } = await prepared();
      await offer({});
      assert.deepEqual(await dispatch.take([`other-${randomUUID().slice(0, 8)}.v1`], 5, FREE), []);
      assert.equal((await take(5)).length, 1);
    });

    test("a group gets no more than its share, and others pass it", async () => {
      const { offer, take, settle } = await prepared();
      await offer(...Array.from({ length: 10 }, () => ({ group: "flood" })));
      await offer({ group: "small" }, { group: "small" }, { group: "tiny" }, { group: "tiny" });
      const shares = { default: 2, of: { flood: 3, tiny: 1 } };
      const taken = await take(20, shares);
      const count = (jobs: readonly Job[]) => jobs.length;
      assert.equal(count(taken), 6);
      assert.deepEqual(await take(20, shares), []);
      assert.equal((await settle(...taken)).length, 6);
      assert.equal(count(await take(20, shares)), 3 + 1);
    });

    test("a job without a sign of life goes to another, and its first worker can neither keep nor settle it", async () => {
      const { dispatch, queue, offer, take, settle, passLease } = await prepared();
      await offer({ run: "dead" }, { run: "alive" });
      const taken = await take(2);
      await dispatch.tend([queue]);
      assert.deepEqual(await take(2), [], "nobody is dead yet");
      await passLease();
      const [alive] = await dispatch.keep(taken.filter(({ run }) => run === "alive"));
      await dispatch.tend([queue]);
      const again = await take(2);
      assert.deepEqual(
        again.map(({ run, attempt }) => [run, attempt]),
        [["dead", 1]],
      );
      assert.deepEqual(await dispatch.keep(taken), [alive]);
      assert.deepEqual(new Set(await dispatch.keep([...taken, ...again])), new Set([alive, ...again]));
      const dead = taken.find(({ run }) => run === "dead")!;
      assert.deepEqual(await settle(dead), []);
      assert.deepEqual(await settle(dead, again[0]!), [["dead", 1]], "of two attempts only the last one");
      assert.deepEqual(await settle(again[0]!, alive!), [["alive", 0]], "each once, the others all the same");
      await passLease();
      await dispatch.tend([queue]);
      assert.deepEqual(await take(5), [], "what is settled does not come back");
    });

    test("tending one queue leaves the others alone", async () => {
      const { dispatch, offer, take, passLease } = await prepared();
      const { queue: other } = await prepared();
      await offer({});
      await take(1);
      await passLease();
      await dispatch.tend([other]);
      assert.deepEqual(await take(1), []);
    });
  });
}
