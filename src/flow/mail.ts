/** Letters to a run from people and processes elsewhere: answers to its questions, and what is wished of it. */

/** `continue` takes a pause back; a process that drives a run heeds the other two at once. */
export type ControlWish = "pause" | "stop" | "continue";

/** Where letters lie until the process that drives the run has taken them in: beside its record. */
export type Mail = {
  /** How often it is worth looking. */
  readonly lagMs: number;
  /** For people: where the answer to a question lies. */
  readonly where: (run: string, question: string) => string;
  /**
   * false: there was an answer before, which stays. Otherwise a run of a fleet asks for a worker, in the same transaction,
   * unless it is not to be woken.
   */
  readonly post: (
    run: string,
    question: string,
    text: string,
    how?: { readonly wakes?: boolean },
  ) => Promise<boolean>;
  readonly find: (run: string, question: string) => Promise<FoundLetter | null>;
  readonly discard: (run: string, question: string) => Promise<void>;
  /** Stands in the place of an earlier wish. `continue` wakes a run of a fleet as an answer does. */
  readonly leaveWish: (run: string, wish: ControlWish) => Promise<void>;
  /** A request that was not handled yet. */
  readonly wishFor: (run: string) => Promise<ControlWish | null>;
  /** Takes the wish away, unless another one has come meanwhile. */
  readonly forgetWish: (run: string, wish: ControlWish) => Promise<void>;
  /** Calls `heed` soon after a wish was left, and maybe again. Gives what ends that. */
  readonly hearWishes: (run: string, heed: (wish: ControlWish) => void) => () => void;
  /** Absent: no fleet drives runs of this place. */
  readonly fleet?: FleetRuns;
};

export type FleetRuns = {
  /** null: the run is not one of a fleet. `held`: why no worker takes it until a person says so. */
  readonly queueOf: (run: string) => Promise<{ readonly queue: string; readonly held: string | null } | null>;
  /** Asks for a worker. */
  readonly wake: (run: string) => Promise<void>;
};

/** Anybody may have written it, so the reader judges `text`. `at`: epoch milliseconds. */
export type FoundLetter = { readonly text: string; readonly at: number } | { readonly why: string };

export function isControlWish(text: unknown): text is ControlWish {
  return text === "pause" || text === "stop" || text === "continue";
}
