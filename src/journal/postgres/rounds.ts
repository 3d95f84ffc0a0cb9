/** Statements that are offered while others are under way, sent together: one round for all that wait. */

export type Rounds<Offer> = {
  /** Resolves or rejects as `perform` settles this offer. Offers of one run are performed in their order. */
  readonly offer: (offer: Offer) => Promise<unknown>;
  /** Resolves when nothing waits and nothing is under way. */
  readonly settled: () => Promise<void>;
};

export type RoundOutcome = { readonly value: unknown } | { readonly error: unknown };

export type RoundsOptions = {
  /** How many offers a round holds. */
  readonly most: number;
  /** So many rounds are under way at once; another one is begun only if it is full, since fewer rounds are fewer commits. */
  readonly abreast: number;
};

/**
 * `perform` gives one outcome for each offer, in their order; what it throws rejects all of them. `runOf`: of the offers
 * of one run only one is under way at a time; those without a run are independent of each other.
 */
export function createRounds<Offer>(
  perform: (offers: readonly Offer[]) => Promise<readonly RoundOutcome[]>,
  { most, abreast }: RoundsOptions,
  runOf: (offer: Offer) => string | null = () => null,
): Rounds<Offer> {
  type Waiting = {
    readonly offer: Offer;
    readonly run: string | null;
    readonly resolve: (value: unknown) => void;
    readonly reject: (error: unknown) => void;
  };
  let waiting: Waiting[] = [];
  const busy = new Set<string>();
  let working = 0;
  /** Of those that work: they have not taken their first round yet. */
  let starting = 0;
  const resting: (() => void)[] = [];

  const takeRound = (): readonly Waiting[] => {
    const round: Waiting[] = [];
    const left: Waiting[] = [];
    for (const one of waiting) {
      const { run } = one;
      const isNext = round.length < most && (run === null || !busy.has(run));
      (isNext ? round : left).push(one);
      if (isNext && run !== null) busy.add(run);
    }
    waiting = left;
    return round;
  };

  const performRound = async (round: readonly Waiting[]): Promise<void> => {
    const free = () => {
      for (const { run } of round) if (run !== null) busy.delete(run);
    };
    try {
      const outcomes = await perform(round.map(({ offer }) => offer));
      free();
      for (const [place, { resolve, reject }] of round.entries()) {
        const outcome = outcomes[place]!;
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.value);
      }
    } catch (error) {
      free();
      for (const { reject } of round) reject(error);
    }
  };

  const work = async (): Promise<void> => {
    // What is offered within one turn of the event loop goes together.
    await new Promise((resolve) => setImmediate(resolve));
    starting -= 1;
    for (let round = takeRound(); round.length > 0; round = takeRound()) await performRound(round);
    // Here and not in a later microtask: what is offered from now on needs a new round.
    working -= 1;
    if (working === 0) for (const resolve of resting.splice(0)) resolve();
  };

  return {
    offer: (offer) =>
      new Promise((resolve, reject) => {
        waiting.push({ offer, run: runOf(offer), resolve, reject });
        const isFull = waiting.length >= most * (starting + 1);
        if (working > 0 && !(isFull && working < abreast)) return;
        working += 1;
        starting += 1;
        void work();
      }),
    async settled() {
      if (working > 0) await new Promise<void>((resolve) => resting.push(resolve));
    },
  };
}
