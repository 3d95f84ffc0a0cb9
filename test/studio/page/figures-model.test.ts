/** The figures of many runs as the screen shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  csvText,
  dayColumns,
  figuresPath,
  measured,
  sharesOf,
  sinceOf,
  stateTotals,
  stepMeasure,
} from "../../../src/studio/page/screens/figures-model.ts";
import type { FiguresDocument } from "../../../src/studio/wire-agents.ts";

const DAY = 86_400_000;

for (const [period, expected] of [
  ["", null],
  ["1d", 99 * DAY],
  ["30d", 70 * DAY],
  ["0d", null],
  ["soon", null],
] as const)
  test(`runs since ${JSON.stringify(period)}`, () => assert.equal(sinceOf(period, 100 * DAY), expected));

for (const [agent, period, flow, expected] of [
  ["", "", "", "figures"],
  ["a b", "", "", "figures?agent=a+b"],
  ["", "1d", "sha", "figures?flow=sha&since=0"],
] as const)
  test(`the figures of ${JSON.stringify([agent, period, flow])}`, () =>
    assert.equal(figuresPath(agent, period, flow, DAY), expected));

const days = [
  { day: "2026-01-01", state: "completed", in: [0, 1] },
  { day: "2026-01-01", state: "failed", in: [2] },
  { day: "2026-01-03", state: "failed", in: [3] },
];

test("a column a day, and one for a day without a run", () => {
  assert.deepEqual(
    dayColumns(days).map(({ day, total, parts }) => [
      day,
      total,
      parts.map(({ state, runs }) => `${state} ${runs.join()}`),
    ]),
    [
      ["2026-01-01", 3, ["completed 0,1", "failed 2"]],
      ["2026-01-02", 0, []],
      ["2026-01-03", 1, ["failed 3"]],
    ],
  );
  assert.deepEqual(dayColumns([]), []);
});

test("of many days the newest are shown", () => {
  const columns = dayColumns([days[0]!, { day: "2026-12-31", state: "failed", in: [1] }]);
  assert.deepEqual([columns.length, columns[0]?.day, columns.at(-1)?.day], [60, "2026-11-02", "2026-12-31"]);
});

test("states by how often they are", () => {
  const more = [...days, { day: "2026-01-04", state: "failed", in: [4] }];
  assert.deepEqual(stateTotals(more), [
    { state: "failed", runs: [2, 3, 4] },
    { state: "completed", runs: [0, 1] },
  ]);
});

for (const [values, expected] of [
  [[], []],
  [
    [0, 0],
    [0, 0],
  ],
  [
    [1, 4, 2],
    [0.25, 1, 0.5],
  ],
] as const)
  test(`shares of ${JSON.stringify(values)}`, () => assert.deepEqual(sharesOf(values), expected));

const step = (more: object) =>
  ({
    inputTokens: 0,
    outputTokens: 0,
    ms: 5,
    costUsd: null,
    unpricedIn: [],
    ...more,
  }) as unknown as FiguresDocument["steps"][number];

for (const [name, steps, by, value] of [
  ["all is priced", [step({ costUsd: 2, inputTokens: 1 })], "costUsd", 2],
  ["one is not", [step({ costUsd: 2, inputTokens: 3, outputTokens: 4, unpricedIn: [0] })], "tokens", 7],
  ["only tokens are known", [step({ inputTokens: 3 })], "tokens", 3],
  ["only time is known", [step({})], "ms", 5],
] as const)
  test(`steps are measured by what is known: ${name}`, () => {
    assert.equal(stepMeasure(steps), by);
    assert.equal(measured(steps[0], by), value);
  });

test("CSV quotes what has to be quoted, and no field is a formula", () => {
  const rows = [
    ["a", 1, null],
    ['say "x", y', "=1+1", "-2"],
    ["two\nlines", -2, "@x"],
  ];
  assert.equal(csvText(rows), 'a,1,\r\n"say ""x"", y",\'=1+1,\'-2\r\n"two\nlines",-2,\'@x');
});
