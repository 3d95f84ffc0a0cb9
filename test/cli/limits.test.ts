import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "../../src/cli/args.ts";
import { parseLimit } from "../../src/cli/limits.ts";
import type { Granted } from "../../src/flow/flow.ts";

const read: readonly [text: string, granted: Granted][] = [
  ["turns=50", { turns: 50 }],
  ["soft=0.9", { soft: 0.9 }],
  ["costUsd=$1.5", { costUsd: 1.5 }],
  ["wallMs=90s", { wallMs: 90_000 }],
  ["initial.issue.tokens=9000", { steps: { "initial.issue": { tokens: 9000 } } }],
  ["initial.issue.perAttempt.turns=3", { steps: { "initial.issue": { perAttempt: { turns: 3 } } } }],
  ["turns.turns=3", { steps: { turns: { turns: 3 } } }],
];
for (const [text, granted] of read) {
  test(`--max ${text}`, () => assert.deepEqual(parseLimit(text), granted));
}

for (const text of [
  "turns",
  "turns=",
  "turns=0",
  "visits=3",
  "a.b=3",
  "soft=0",
  "soft=1.5",
  "wallMs=90",
  "=3",
]) {
  test(`--max ${text} is not understood`, () => {
    assert.throws(() => parseLimit(text), UsageError);
  });
}
