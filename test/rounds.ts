/** How much of a long table runs: all of it in CI, less elsewhere, so that `npm test` stays below ten minutes. */

export const IS_WHOLE = Boolean(process.env.CI);

/** Of a test over generated inputs all rounds in CI, and a quarter elsewhere: the seed is the same, so they are the first. */
export function roundsOf(all: number): number {
  return IS_WHOLE ? all : Math.ceil(all / 4);
}

/** Every n-th row where not all of them run. */
export function someOf<T>(all: readonly T[], every: number): readonly T[] {
  return IS_WHOLE ? all : all.filter((_, at) => at % every === 0);
}
