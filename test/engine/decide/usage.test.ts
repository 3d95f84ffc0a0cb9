/** What answers took, added up: what is not known of some of them is not known of the sum. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addUsage } from "../../../src/engine/decide/state.ts";
import type { Usage } from "../../../src/flow/event.ts";

const used = (turns: number, costUsd: number | null, more: Partial<Usage> = {}): Usage => ({
  turns,
  inputTokens: 10 * turns,
  outputTokens: turns,
  costUsd,
  ...more,
});

const ROWS: readonly (readonly [name: string, a: Usage, b: Usage, sum: Usage])[] = [
  ["both are known", used(1, 1), used(2, 2), used(3, 3)],
  ["nothing was asked before", used(0, null), used(2, 2), used(2, 2)],
  ["nothing was asked now", used(1, 1), used(0, null), used(1, 1)],
  ["nothing was ever asked", used(0, null), used(0, null), used(0, null)],
  ["neither has a price", used(1, null), used(1, null), used(2, null)],
  ["only the first has a price", used(1, 1), used(1, null), used(2, 1, { partly: true })],
  ["only the second has a price", used(1, null), used(1, 2), used(2, 2, { partly: true })],
  ["one of them was partly known", used(2, 1, { partly: true }), used(1, 2), used(3, 3, { partly: true })],
];

for (const [name, a, b, sum] of ROWS) test(`usage: ${name}`, () => assert.deepEqual(addUsage(a, b), sum));
