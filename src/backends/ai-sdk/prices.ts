/** What models cost, as far as it is known. An unknown price gives no cost, never a cost of nothing. */
import prices from "./prices.json" with { type: "json" };

/** US dollars for a million tokens. */
export type Figures = {
  readonly input: number;
  readonly output: number;
  /** Absent: the same as other input. */
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
};

export type Price = Figures & {
  /** What a request costs, all of it, that has more input tokens than `above`. In ascending order. */
  readonly tiers?: readonly (Figures & { readonly above: number })[];
  /** The figures hold for requests of up to so many input tokens; the cost of longer ones is unknown. */
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

/** The data sets that the figures are from. */
export const PRICE_SOURCES: readonly { readonly package: string; readonly version: string }[] =
  prices.sources;

/** Models of the providers that `prices.json` has no figures for. */
export const UNPRICED: readonly string[] = prices.unpriced;

/** By `provider/model`; a dated name such as `gpt-5-2025-08-07` costs what its family does. */
export function priceOf(provider: string, model: string): Price | null {
  const table: { readonly [ref: string]: Price } = prices.models;
  const family = provider === "openai-chat" ? "openai" : provider;
  const exact = `${family}/${model}`;
  const undated = exact.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "");
  for (const ref of [exact, undated]) if (Object.hasOwn(table, ref)) return table[ref]!;
  return null;
}

/** null: unknown, because there is no price, or none for a request of this length. */
export function costOf(price: Price | null, { input, output, cacheRead, cacheWrite }: Tokens): number | null {
  if (price === null || input > (price.upTo ?? Infinity)) return null;
  const each: Figures = price.tiers?.findLast(({ above }) => input > above) ?? price;
  const plain = Math.max(0, input - cacheRead - cacheWrite);
  const cost =
    plain * each.input +
    cacheRead * (each.cacheRead ?? each.input) +
    cacheWrite * (each.cacheWrite ?? each.input) +
    output * each.output;
  return cost / 1_000_000;
}

/** Such as a model on the user's own machine: its answers cost nothing, also where their tokens are not counted. */
export function isFree({ input, output, cacheRead = 0, cacheWrite = 0, tiers = [] }: Price): boolean {
  return input + output + cacheRead + cacheWrite === 0 && tiers.length === 0;
}
