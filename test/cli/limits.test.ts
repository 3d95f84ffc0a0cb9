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

const refused: readonly [text: string, says: RegExp][] = [
  ["turns", /^--max cannot be "turns": write turns, /],
  ["turns=", /^--max turns needs a whole number of at least 1, not ""\.$/],
  ["turns=0", /^--max turns needs a whole number of at least 1, not "0"\.$/],
  ["a.tokens=1.5", /^--max tokens needs a whole number of at least 1, not "1\.5"\.$/],
  ["costUsd=abc", /^--max costUsd needs an amount in US dollars, such as 0\.50, not "abc"\.$/],
  ["visits=3", /^--max cannot be "visits=3"/],
  ["a.b=3", /^--max cannot be/],
  ["soft=0", /^--max soft needs a fraction above 0 and at most 1, such as 0\.8, not "0"\.$/],
  ["soft=1.5", /^--max soft needs a fraction/],
  ["wallMs=90", /^--max wallMs needs a unit, such as 90s, 90m or 90h, not "90"\.$/],
  [
    "wallMs=soon",
    /^--max wallMs needs a time with a unit \(ms, s, m, h, d, w\), such as 90s or 5m, not "soon"\.$/,
  ],
  ["wallMs=0", /^--max wallMs needs a time with a unit/],
  ["=3", /^--max cannot be/],
];
for (const [text, message] of refused) {
  test(`--max ${text} is refused, with what it needs`, () => {
    assert.throws(() => parseLimit(text), { name: UsageError.name, message });
  });
}
