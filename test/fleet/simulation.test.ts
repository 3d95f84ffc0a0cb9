/** The rules of a fleet over many workers that fail, by a clock that is moved by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate } from "../../bench/fleet-simulation.ts";

const SEEDS = Number(process.env.FLEET_SEEDS ?? 3);

for (let seed = 1; seed <= SEEDS; seed += 1)
  test(`40 workers, 2,000 runs, seed ${seed}`, async () => {
    const options = { workers: 40, slots: 5, runs: 2000, groups: 4, deaths: 6, stops: 6, outages: 2, seed };
    const { ended, poisoned, doubles, robbed, slowestTakeover, takeovers } = await simulate(options);
    assert.equal(ended + poisoned, 2000, "every run comes to its end");
    assert.equal(doubles, 0, "no two act for the same run");
    assert.equal(robbed, 0, "nothing is taken from a worker that lives");
    assert.equal(poisoned, 0);
    assert.ok(takeovers > 0);
    // A death in an outage is noticed a lease after it, and the second outage (80 s at most) may follow at once.
    assert.ok(slowestTakeover < 9, `${slowestTakeover} leases`);
  });
