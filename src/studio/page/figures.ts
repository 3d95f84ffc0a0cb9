/** Money, tokens and shares in the form the page shows them. */

/** `$0.0042`, `$1.20`; null: the price is not known. */
export function dollars(costUsd: number | null): string {
  if (costUsd === null) return "–";
  if (costUsd === 0) return "$0";
  if (costUsd < 0.0001) return "< $0.0001";
  return costUsd < 0.1 ? `$${costUsd.toFixed(4)}` : `$${costUsd.toFixed(2)}`;
}

/** `950`, `12.4k`, `3.1M`. */
export function shortCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${(count / 1000).toFixed(count < 9950 ? 1 : 0)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** A share between 0 and 1 as a whole percentage that is 0 or 100 only where it is exactly so. */
export function percentOf(part: number, whole: number): number {
  if (whole <= 0) return 0;
  const share = Math.min(1, Math.max(0, part / whole));
  return share === 0 || share === 1 ? share * 100 : Math.min(99, Math.max(1, Math.round(share * 100)));
}

/** A length for a style. */
export function px(length: number): string {
  return `${Math.round(length * 100) / 100}px`;
}
