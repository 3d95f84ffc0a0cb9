/** What a run may spend, as a file says it. */
import type { Spending } from "../flow/flow.ts";
import { number } from "./shape.ts";

export const SPENDING_FIELDS = {
  turns: number("Responses of the model in a run.", { min: 1, integer: true }),
  tokens: number("Tokens of a run, in and out.", { min: 1, integer: true }),
  costUsd: number("Dollars a run may cost, as far as prices are known.", { min: 0 }),
  wallMs: number("Milliseconds in which a run is driven.", { min: 1, integer: true }),
};

/** Only what is written. */
export function spendingOf(limits: { readonly [key in keyof Spending]?: number | undefined }): Spending {
  const { turns, tokens, costUsd, wallMs } = limits;
  return {
    ...(turns !== undefined && { turns }),
    ...(tokens !== undefined && { tokens }),
    ...(costUsd !== undefined && { costUsd }),
    ...(wallMs !== undefined && { wallMs }),
  };
}
