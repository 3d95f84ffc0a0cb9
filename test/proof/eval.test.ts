/** What an eval concludes: rates, intervals, false green, money, and least rates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  amountFor,
  comparisonsOf,
  figuresOf,
  heldTo,
  heldToBaseline,
  type EvalRun,
} from "../../src/proof/eval.ts";
import { seeded } from "../../src/proof/draw.ts";

const BLANK: EvalRun = {
  task: "t",
  model: "m",
  at: 0,
  state: "open",
  run: null,
  reason: null,
  green: false,
  hidden: null,
  costUsd: 0,
  setAside: null,
  errors: [],
};

type Counts = { readonly [state in EvalRun["state"]]?: number };

/** So many runs in each state. */
function runsOf(counts: Counts, more: Partial<EvalRun> = {}): readonly EvalRun[] {
  return (Object.entries(counts) as readonly [EvalRun["state"], number][]).flatMap(([state, number]) =>
    Array.from({ length: number }, (_, at) => ({ ...BLANK, ...more, state, at })),
  );
}

const rounded = (value: number) => Math.round(value * 100) / 100;

test("18 of 20: the rates and intervals that the manual gives", () => {
  const [model] = figuresOf(runsOf({ passed: 18, failed: 2 }));
  const told = model!.pass.map(({ k, mean, interval: { low, high } }) => [
    k,
    rounded(mean),
    rounded(low),
    rounded(high),
  ]);
  assert.deepEqual(told[0], [1, 0.9, 0.72, 0.98]);
  assert.deepEqual(told[2], [4, 0.63, 0.26, 0.92]);
  assert.deepEqual(
    told.map(([k]) => k),
    [1, 2, 4, 8],
  );
});

test("over 1,000 evals of 20 runs with a rate of 0.7, the interval holds the truth in 93 to 97 %", () => {
  const draw = seeded(7);
  // The draws of an interval are costly, and there are only 21 results.
  const known = new Map<number, boolean>();
  let held = 0;
  for (let at = 0; at < 1000; at++) {
    const passed = Array.from({ length: 20 }, () => draw(10)).filter((value) => value < 7).length;
    if (!known.has(passed)) {
      const [one] = figuresOf(runsOf({ passed, failed: 20 - passed }));
      const { low, high } = one!.pass[0]!.interval;
      known.set(passed, low <= 0.7 && 0.7 <= high);
    }
    if (known.get(passed) === true) held += 1;
  }
  assert.ok(held >= 930 && held <= 970, `${held} of 1,000`);
});

const ERRORS: readonly [counts: Counts, inconclusive: boolean][] = [
  [{ passed: 6, failed: 2 }, false],
  [{ passed: 6, failed: 2, error: 2 }, false],
  [{ passed: 6, failed: 2, error: 3 }, true],
  [{ passed: 6, failed: 2, cut: 20, open: 5 }, false],
];
for (const [counts, inconclusive] of ERRORS)
  test(`errors and cut runs change no rate: ${JSON.stringify(counts)}`, () => {
    const [plain] = figuresOf(runsOf({ passed: 6, failed: 2 }));
    const [model] = figuresOf(runsOf(counts));
    assert.deepEqual(model!.pass, plain!.pass);
    assert.equal(model!.inconclusive, inconclusive);
  });

test("false green is counted over the complete runs that had hidden checks", () => {
  const runs = [
    ...runsOf({ passed: 3 }, { green: true, hidden: true }),
    ...runsOf({ failed: 1 }, { green: true, hidden: false }),
    ...runsOf({ failed: 4 }, { green: false, hidden: false }),
    ...runsOf({ passed: 5 }, { green: true, hidden: null }),
  ];
  const { count, of } = figuresOf(runs)[0]!.falseGreen;
  assert.deepEqual([count, of], [1, 4]);
  assert.equal(figuresOf(runsOf({ passed: 2 }))[0]!.falseGreen.interval, null);
});

test("the cost of failures and errors is part of the price of a success; an unknown price is not zero", () => {
  const runs = [...runsOf({ passed: 2, failed: 1, error: 1 }, { costUsd: 0.5 }), ...runsOf({ open: 3 })];
  assert.deepEqual(figuresOf(runs)[0]!.cost, { all: 2, perRun: 0.5, perSuccess: 1 });
  assert.equal(figuresOf([...runs, ...runsOf({ passed: 1 }, { costUsd: null })])[0]!.cost, null);
  assert.equal(figuresOf(runsOf({ failed: 2 }, { costUsd: 1 }))[0]!.cost!.perSuccess, null);
});

test("models are compared with the first, and close ones cannot be told apart", () => {
  const of = (model: string, counts: Counts) => runsOf(counts, { model });
  const runs = [...of("a", { passed: 2, failed: 18 }), ...of("b", { passed: 19, failed: 1 })];
  const [apart] = comparisonsOf(figuresOf(runs));
  assert.deepEqual([apart!.model, apart!.against, apart!.moreRuns], ["b", "a", 0]);
  assert.ok(apart!.better > 0.99 && apart!.interval.low > 0);
  const close = [...of("a", { passed: 10, failed: 10 }), ...of("b", { passed: 12, failed: 8 })];
  const [open] = comparisonsOf(figuresOf(close));
  assert.ok(open!.moreRuns !== null && open!.moreRuns > 20, String(open!.moreRuns));
  assert.deepEqual(comparisonsOf(figuresOf([...of("a", { passed: 1 }), ...of("b", { open: 4 })])), []);
});

const LEAST: readonly [counts: Counts, least: number, state: string][] = [
  [{ passed: 20 }, 0.8, "met"],
  [{ passed: 15, failed: 5 }, 0.8, "open"],
  [{ passed: 2, failed: 18 }, 0.8, "missed"],
  [{ error: 3 }, 0.8, "open"],
];
for (const [counts, least, state] of LEAST)
  test(`a least rate of ${least} for ${JSON.stringify(counts)} is ${state}`, () => {
    const models = figuresOf(runsOf(counts));
    assert.deepEqual(
      heldTo(models, { pass1: least }).map((one) => one.state),
      [state],
    );
    const before = { models: [{ model: "m", pass: [{ k: 1, mean: least, interval: { low: 0, high: 1 } }] }] };
    assert.deepEqual(
      heldToBaseline(models, before).map((one) => one.state),
      [state],
    );
  });

const AMOUNTS: readonly [costs: readonly number[], amount: number][] = [
  [[], 1],
  [[0.1, 0.1, 0.1, 0.1], 1],
  [[0.1, 0.1, 0.1, 0.1, 0.4], 0.6],
  [[0, 0, 0, 0, 0], 1],
  [[...Array<number>(20).fill(0.2), 9], 0.3],
];
for (const [costs, amount] of AMOUNTS)
  test(`of a budget of $5, after ${costs.length} runs, $${amount} are set aside`, () => {
    assert.equal(rounded(amountFor(costs, 5)), amount);
  });
