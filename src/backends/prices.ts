/** What models cost, as far as it is known. An unknown price gives no cost, never a cost of nothing. */
import prices from "./prices.json" with { type: "json" };

/** US dollars for a million tokens. */
export type Price = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** The figures hold for requests of up to so many input tokens; longer ones cost more than is known here. */
  readonly upTo?: number;
  /** The most tokens of one response. */
  readonly maxOutput?: number;
};

/** Tokens of one response. `input` counts everything that was sent, cached or not. */
export type Tokens = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};

export const PRICES_OF: string = prices.date;

/** By `provider/model`; a dated name such as `gpt-5-2025-08-07` costs what its family does. */
export function priceOf(provider: string, model: string): Price | null {
  const table: { readonly [ref: string]: Price } = prices.models;
  const family = provider === "openai-chat" ? "openai" : provider;
  const exact = `${family}/${model}`;
  const undated = exact.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "");
  for (const ref of [exact, undated]) if (Object.hasOwn(table, ref)) return table[ref]!;
  return null;
}

/** null when a figure that is needed is not known. */
export function costOf(price: Price | null, { input, output, cacheRead, cacheWrite }: Tokens): number | null {
  if (price === null || input > (price.upTo ?? Infinity)) return null;
  const parts = [
    [input - cacheRead - cacheWrite, price.input],
    [cacheRead, price.cacheRead],
    [cacheWrite, price.cacheWrite],
    [output, price.output],
  ] as const;
  let cost = 0;
  for (const [tokens, each] of parts) {
    if (tokens <= 0) continue;
    if (each === undefined) return null;
    cost += (tokens * each) / 1_000_000;
  }
  return cost;
}
