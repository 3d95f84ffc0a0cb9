/** Figures that a backend reports: plain ones are used as they are, and nothing else is counted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Usage } from "../../src/flow/event.ts";
import { plainUsage } from "../../src/flow/figure.ts";

const PLAIN: readonly Usage[] = [
  { turns: 1, inputTokens: 0, outputTokens: 0, costUsd: null },
  { turns: 0, inputTokens: 12, outputTokens: 3, costUsd: 0 },
  { turns: 7, inputTokens: 1, outputTokens: 2, costUsd: 0.5, partly: true, unknown: ["tokens"] },
];

for (const usage of PLAIN) {
  test(`a plain usage is not copied: ${JSON.stringify(usage)}`, () => {
    assert.equal(plainUsage(usage), usage);
  });
}

const ODD: readonly { readonly told: Partial<Record<keyof Usage, unknown>>; readonly counted: Usage }[] = [
  { told: { turns: -1 }, counted: { turns: 1, inputTokens: 5, outputTokens: 6, costUsd: 0.1 } },
  {
    told: { inputTokens: Number.NaN },
    counted: { turns: 2, inputTokens: 0, outputTokens: 6, costUsd: 0.1, unknown: ["tokens"] },
  },
  {
    told: { outputTokens: "6" },
    counted: { turns: 2, inputTokens: 5, outputTokens: 0, costUsd: 0.1, unknown: ["tokens"] },
  },
  {
    told: { costUsd: -0.1 },
    counted: { turns: 2, inputTokens: 5, outputTokens: 6, costUsd: null, unknown: ["costUsd"] },
  },
  {
    told: { costUsd: undefined, unknown: ["tokens"] },
    counted: { turns: 2, inputTokens: 5, outputTokens: 6, costUsd: null, unknown: ["tokens", "costUsd"] },
  },
];

for (const { told, counted } of ODD) {
  const name = Object.entries(told).map(([key, value]) => `${key} ${String(value)}`);
  test(`what is not a figure counts as not reported: ${name.join(", ")}`, () => {
    const usage = { turns: 2, inputTokens: 5, outputTokens: 6, costUsd: 0.1, ...told } as Usage;
    assert.deepEqual(plainUsage(usage), counted);
  });
}
