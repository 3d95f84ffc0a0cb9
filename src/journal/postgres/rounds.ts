/** Writes that are offered while others are under way, taken together: each round holds one write of a run at most. */

export type Rounds<Write> = {
  /** Resolves or rejects as `perform` settles this write. Writes of one run are performed in the order of their offers. */
  readonly offer: (write: Write) => Promise<unknown>;
  /** Resolves when nothing waits and nothing is under way. */
  readonly settled: () => Promise<void>;
};

export type WriteOutcome = { readonly value: unknown } | { readonly error: unknown };

/** `perform` gives one outcome for each write, in their order; what it throws rejects all of them. */
export function createRounds<Write extends { readonly run: string }>(
  perform: (writes: readonly Write[]) => Promise<readonly WriteOutcome[]>,
): Rounds<Write> {
  type Offer = {
    readonly write: Write;
    readonly resolve: (value: unknown) => void;
    readonly reject: (error: unknown) => void;
  };
  let waiting: Offer[] = [];
  let working: Promise<void> | null = null;

  const takeRound = (): readonly Offer[] => {
    const runs = new Set<string>();
    const round: Offer[] = [];
    const left: Offer[] = [];
    for (const offer of waiting) {
      (runs.has(offer.write.run) ? left : round).push(offer);
      runs.add(offer.write.run);
    }
    waiting = left;
    return round;
  };

  const work = async (): Promise<void> => {
    // What is offered within one turn of the event loop goes together.
    await new Promise((resolve) => setImmediate(resolve));
    while (waiting.length > 0) {
      const round = takeRound();
      try {
        const outcomes = await perform(round.map(({ write }) => write));
        for (const [place, { resolve, reject }] of round.entries()) {
          const outcome = outcomes[place]!;
          if ("error" in outcome) reject(outcome.error);
          else resolve(outcome.value);
        }
      } catch (error) {
        for (const { reject } of round) reject(error);
      }
    }
    // Here and not in a later microtask: what is offered from now on needs a new round.
    working = null;
  };

  return {
    offer: (write) =>
      new Promise((resolve, reject) => {
        waiting.push({ write, resolve, reject });
        working ??= work();
      }),
    async settled() {
      for (let last = working; last !== null; last = working) await last;
    },
  };
}
