/** What limits come to: as written, of the files and the user together, and with more granted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Granted, Limits } from "../../src/flow/flow.ts";
import type { Json } from "../../src/flow/json.ts";
import { effectiveLimits, grantedBeside, limitsOf, stepLimitsOf } from "../../src/flow/spending.ts";

const WRITTEN: readonly (readonly [soft: Json | undefined, kept: Limits["soft"]])[] = [
  [undefined, undefined],
  [0.5, 0.5],
  [1, 1],
  [1.01, undefined],
  [0, undefined],
  ["0.5", undefined],
  [null, undefined],
  [{ turns: 3 }, { turns: 3 }],
  [
    { turns: 5, wallMs: 7 },
    { turns: 5, wallMs: 7 },
  ],
  [{ costUsd: 0.5 }, { costUsd: 0.5 }],
  [{ turns: 6 }, undefined],
  [{ turns: 0 }, undefined],
  [{ turns: "3" }, undefined],
  [{ visits: 3 }, undefined],
];
for (const [soft, kept] of WRITTEN)
  test(`a soft limit that is written as ${JSON.stringify(soft)}`, () => {
    const limits = { turns: 5, ...(kept !== undefined && { soft: kept }) };
    assert.deepEqual(limitsOf({ turns: 5, tokens: undefined, soft }), limits);
    assert.deepEqual(stepLimitsOf({ wallMs: 9, perAttempt: { turns: 5, soft } }), {
      limits: { wallMs: 9, perAttempt: limits },
    });
  });

test("a step without limits has none, and one without limits of an attempt has none of these", () => {
  assert.deepEqual(stepLimitsOf(undefined), {});
  assert.deepEqual(stepLimitsOf({ costUsd: 0 }), { limits: { costUsd: 0 } });
});

const TOGETHER: readonly (readonly [ofFlow: Limits, ofUser: Limits, least: Limits])[] = [
  [{}, {}, {}],
  [{ turns: 5 }, {}, { turns: 5 }],
  [{}, { turns: 5 }, { turns: 5 }],
  [
    { turns: 5, tokens: 1 },
    { turns: 4, tokens: 2 },
    { turns: 4, tokens: 1 },
  ],
  [{ costUsd: 0 }, { costUsd: 3, wallMs: 9 }, { costUsd: 0, wallMs: 9 }],
  [{ turns: 5, soft: 0.5 }, { soft: 0.7 }, { turns: 5, soft: 0.5 }],
  [{ turns: 5 }, { soft: 0.7 }, { turns: 5, soft: 0.7 }],
];
for (const [ofFlow, ofUser, least] of TOGETHER)
  test(`the lesser of ${JSON.stringify(ofFlow)} and ${JSON.stringify(ofUser)}`, () =>
    assert.deepEqual(effectiveLimits(ofFlow, ofUser), least));

const GRANTED: readonly (readonly [before: Granted, more: Granted, all: Granted])[] = [
  [{}, {}, {}],
  [{ turns: 5 }, { tokens: 1 }, { turns: 5, tokens: 1 }],
  [{ turns: 5 }, { turns: 9 }, { turns: 9 }],
  [{ turns: 5 }, { turns: 3, unmetered: true }, { turns: 3, unmetered: true }],
  [{ steps: { a: { turns: 1 } } }, {}, { steps: { a: { turns: 1 } } }],
  [
    { steps: { a: { turns: 1 } } },
    { steps: { b: { turns: 2 } } },
    { steps: { a: { turns: 1 }, b: { turns: 2 } } },
  ],
  [
    { steps: { a: { turns: 1, tokens: 2 } } },
    { steps: { a: { turns: 3, wallMs: 4 } } },
    { steps: { a: { turns: 3, tokens: 2, wallMs: 4 } } },
  ],
  [
    { steps: { a: { perAttempt: { turns: 1, tokens: 2 } } } },
    { steps: { a: { turns: 7, perAttempt: { turns: 3 } } } },
    { steps: { a: { turns: 7, perAttempt: { turns: 3, tokens: 2 } } } },
  ],
  [
    { steps: { a: { perAttempt: { turns: 1 } } } },
    { steps: { a: { turns: 7 } } },
    { steps: { a: { turns: 7, perAttempt: { turns: 1 } } } },
  ],
];
for (const [before, more, all] of GRANTED)
  test(`${JSON.stringify(before)} with ${JSON.stringify(more)} granted`, () =>
    assert.deepEqual(grantedBeside(before, more), all));
