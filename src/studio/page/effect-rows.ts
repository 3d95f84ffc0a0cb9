/** The order in which effects are listed: what was intended and is not known to be done comes first. */
import type { EffectsDocument } from "../wire.ts";

export type EffectLine = EffectsDocument["effects"][number];

export function effectRows(effects: readonly EffectLine[]): {
  readonly rows: readonly EffectLine[];
  readonly unheard: number;
} {
  const rows = effects.toSorted(
    (a, b) => Number(b.state === "intended") - Number(a.state === "intended") || b.at - a.at,
  );
  return { rows, unheard: effects.filter(({ state }) => state === "intended").length };
}
