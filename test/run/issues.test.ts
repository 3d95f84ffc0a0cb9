/** Which issues a batch works on: those with a label, from the oldest on, however many there are. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { labelledIssues } from "../../src/run/issues.ts";
import { openStandIn } from "../github/stand-in.ts";

type Row = readonly [issues: number, most: number, numbers: readonly number[], left: number];
const ROWS: readonly Row[] = [
  [0, 3, [], 0],
  [2, 3, [1, 3], 0],
  [4, 3, [1, 3, 5], 1],
  [1100, 3, [1, 3, 5], 997],
];
for (const [issues, most, numbers, left] of ROWS) {
  test(`${most} of ${issues} issues`, async () => {
    const stand = await openStandIn();
    try {
      for (let index = 0; index < issues; index += 1) {
        stand.world.addIssue({ labels: ["ready"] });
        stand.world.addIssue(index % 2 === 0 ? {} : { labels: ["ready"], state: "closed" });
      }
      const { signal } = new AbortController();
      const found = await labelledIssues("Ready", most, { cwd: "/", env: stand.env, signal });
      assert.deepEqual(found, { numbers, left });
    } finally {
      await stand.close();
    }
  });
}
