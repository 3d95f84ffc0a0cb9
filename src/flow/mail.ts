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
   * false: there was an answer before, which stays. `also` is done in the same transaction, where the place has one, and
   * only with an answer that is stored.
   */
  readonly post: (run: string, question: string, text: string, also?: Also) => Promise<boolean>;
  readonly find: (run: string, question: string) => Promise<FoundLetter | null>;
  readonly discard: (run: string, question: string) => Promise<void>;
  /** Stands in the place of an earlier wish. */
  readonly leaveWish: (run: string, wish: ControlWish, also?: Also) => Promise<void>;
  /** A request that was not handled yet. */
  readonly wishFor: (run: string) => Promise<ControlWish | null>;
  /** Takes the wish away, unless another one has come meanwhile. */
  readonly forgetWish: (run: string, wish: ControlWish) => Promise<void>;
  /** Calls `heed` soon after a wish was left, and maybe again. Gives what ends that. */
  readonly hearWishes: (run: string, heed: (wish: ControlWish) => void) => () => void;
};

/** Anybody may have written it, so the reader judges `text`. `at`: epoch milliseconds. */
export type FoundLetter = { readonly text: string; readonly at: number } | { readonly why: string };

/** More statements for a transaction on a server. */
export type Also = (send: SendWithin, schema: string) => Promise<unknown>;
export type SendWithin = (
  statement: { readonly name: string; readonly text: string },
  values?: readonly unknown[],
) => Promise<readonly { readonly [column: string]: unknown }[]>;

export function isControlWish(text: unknown): text is ControlWish {
  return text === "pause" || text === "stop" || text === "continue";
}
