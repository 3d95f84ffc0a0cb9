/** Figures that others report: a count or a cost is a finite number of 0 or more, and anything else is unknown. */
import type { Figure, Usage } from "./event.ts";

/** null: not known. */
export function figure(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/** What a backend reported, with only such figures: what is not one counts as not reported, never as a negative amount. */
export function plainUsage(usage: Usage): Usage {
  const plain = countedUsage(usage);
  if (plain === usage) return usage;
  const unknown = new Set<Figure>(usage.unknown);
  if (figure(usage.inputTokens) === null || figure(usage.outputTokens) === null) unknown.add("tokens");
  if (usage.costUsd !== null && figure(usage.costUsd) === null) unknown.add("costUsd");
  return { ...plain, ...(unknown.size > 0 && { unknown: [...unknown] }) };
}

/** What is on record, as it is added up: earlier versions recorded what servers reported, also amounts below 0. */
export function countedUsage(usage: Usage): Usage {
  const { turns, inputTokens, outputTokens, costUsd } = usage;
  const input = figure(inputTokens);
  const output = figure(outputTokens);
  const cost = figure(costUsd);
  const isPriced = costUsd === null || cost !== null;
  // Almost every usage is plain, and this is asked for every answer.
  if (input !== null && output !== null && isPriced && figure(turns) !== null) return usage;
  return {
    ...usage,
    turns: figure(turns) ?? 1,
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    costUsd: cost,
  };
}
