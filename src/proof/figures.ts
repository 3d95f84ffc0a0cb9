/** Rates with their uncertainty: Wilson intervals for counts, seeded draws for what is worked out from several tasks. */
import { seeded } from "./draw.ts";

export type Interval = { readonly low: number; readonly high: number };

/** Of `count` among `of`; null: there is nothing to count. 95 %. */
export function wilson(count: number, of: number): Interval | null {
  if (of === 0) return null;
  const rate = count / of;
  const z = 1.959_963_984_540_054;
  const middle = rate + (z * z) / (2 * of);
  const spread = z * Math.sqrt((rate * (1 - rate)) / of + (z * z) / (4 * of * of));
  const scale = 1 + (z * z) / of;
  return { low: Math.max(0, (middle - spread) / scale), high: Math.min(1, (middle + spread) / scale) };
}

/** How a task went: so many runs passed of so many. */
export type Tried = { readonly passed: number; readonly runs: number };

export type PassK = { readonly k: number; readonly mean: number; readonly interval: Interval };

/** pass^k: that all of k runs pass. The mean over the tasks of C(c, k) / C(n, k); null: a task has fewer runs than k. */
export function passPower(tasks: readonly Tried[], k: number, seed = 1): PassK | null {
  if (tasks.length === 0 || tasks.some(({ runs }) => runs < k)) return null;
  const mean = average(tasks.map(({ passed, runs }) => choose(passed, k) / choose(runs, k)));
  return { k, mean, interval: intervalOf(drawMeans(tasks, k, seed)) };
}

function choose(n: number, k: number): number {
  if (k > n) return 0;
  let product = 1;
  for (let at = 0; at < k; at++) product *= (n - at) / (k - at);
  return product;
}

const DRAWS = 10_000;

/** One Beta(c + 1/2, n - c + 1/2) for each task and draw: the mean over the tasks of p to the power of k. */
export function drawMeans(tasks: readonly Tried[], k: number, seed: number): Float64Array {
  const random = uniform(seed);
  return Float64Array.from({ length: DRAWS }, () =>
    average(tasks.map(({ passed, runs }) => beta(passed + 0.5, runs - passed + 0.5, random) ** k)),
  );
}

export function intervalOf(draws: Float64Array): Interval {
  const sorted = draws.toSorted();
  return {
    low: sorted[Math.floor(0.025 * sorted.length)]!,
    high: sorted[Math.ceil(0.975 * sorted.length) - 1]!,
  };
}

export type RateDifference = { readonly mean: number; readonly interval: Interval; readonly better: number };

/** `b` against `a`, on the same draws: the difference, and the probability that `b` is better. */
export function compareRates(a: readonly Tried[], b: readonly Tried[], seed = 1): RateDifference {
  const [left, right] = [drawMeans(a, 1, seed), drawMeans(b, 1, seed + 1)];
  const differences = right.map((value, at) => value - left[at]!);
  const better = differences.filter((value) => value > 0).length / differences.length;
  return { mean: average([...differences]), interval: intervalOf(differences), better };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function uniform(seed: number): () => number {
  const draw = seeded(seed);
  return () => (draw(0x1_00_00_00_00) + 0.5) / 0x1_00_00_00_00;
}

function beta(a: number, b: number, random: () => number): number {
  const [x, y] = [gamma(a, random), gamma(b, random)];
  return x / (x + y);
}

/** Marsaglia and Tsang's method. */
function gamma(shape: number, random: () => number): number {
  if (shape < 1) return gamma(shape + 1, random) * random() ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
}
