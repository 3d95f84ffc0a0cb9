/** The list of runs as a person sees it: living ones first, filtered, sorted. */
import type { RunLine } from "../wire.ts";

export const SORTS = ["newest", "agent", "visits", "tokens", "cost", "time"] as const;
export type RunSort = (typeof SORTS)[number];

export type RunFilter = { readonly state: string; readonly agent: string; readonly q: string };

export function isLiving({ state }: Pick<RunLine, "state">): boolean {
  return ["running", "queued", "waiting", "paused", "interrupted", "poisoned"].includes(state);
}

/** Living runs on top, then the newest; a sort by a column mixes them. */
export function listedRuns(
  runs: Iterable<RunLine>,
  filter: RunFilter,
  sort: RunSort = "newest",
  isUp = false,
): readonly RunLine[] {
  const words = filter.q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const fitting = [...runs].filter((row) => {
    if (filter.state !== "" && row.state !== filter.state) return false;
    if (filter.agent !== "" && row.agent !== filter.agent) return false;
    const text = textOf(row);
    return words.every((word) => text.includes(word));
  });
  const direction = isUp ? 1 : -1;
  const newest = (a: RunLine, b: RunLine) =>
    a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : a.run < b.run ? 1 : -1;
  if (sort === "newest")
    return fitting.toSorted((a, b) =>
      isUp ? -newest(a, b) : Number(b.state === "running") - Number(a.state === "running") || newest(a, b),
    );
  if (sort === "agent")
    return fitting.toSorted(
      (a, b) => -direction * (a.agent < b.agent ? -1 : a.agent > b.agent ? 1 : 0) || newest(a, b),
    );
  return fitting.toSorted((a, b) => direction * (valueOf(a, sort) - valueOf(b, sort)) || newest(a, b));
}

function valueOf({ facts }: RunLine, sort: Exclude<RunSort, "newest" | "agent">): number {
  if (facts === null) return -1;
  const { visits, tokens, costUsd, drivenMs } = facts;
  return { visits, tokens, cost: costUsd ?? -1, time: drivenMs }[sort];
}

function textOf({ run, agent, code, step, facts }: RunLine): string {
  return [run, agent, code ?? "", step ?? "", facts?.about ?? "", facts?.branch ?? "", facts?.batch ?? ""]
    .join("\n")
    .toLowerCase();
}

export type StateCount = { readonly state: RunLine["state"]; readonly count: number };

/** In the order in which a person wants to know. */
export const RUN_STATES = [
  "running",
  "queued",
  "waiting",
  "paused",
  "interrupted",
  "poisoned",
  "failed",
  "damaged",
  "completed",
] as const;

export function countStates(runs: Iterable<RunLine>): readonly StateCount[] {
  const counts = new Map<string, number>();
  for (const { state } of runs) counts.set(state, (counts.get(state) ?? 0) + 1);
  return RUN_STATES.map((state) => ({ state, count: counts.get(state) ?? 0 }));
}

/** The rows in the order in which they were seen; `news` are those that came since, for a button above them. */
export function heldRows(
  rows: readonly RunLine[],
  held: readonly string[] | null,
): { readonly rows: readonly RunLine[]; readonly news: number } {
  if (held === null) return { rows, news: 0 };
  const byRun = new Map(rows.map((row) => [row.run, row]));
  const kept = held.flatMap((run) => byRun.get(run) ?? []);
  return { rows: kept, news: rows.length - kept.length };
}

const MOST_PICKED = 2;

/** The newest two that were picked; picking one again drops it. */
export function pickedRuns(picked: readonly string[], run: string): readonly string[] {
  return picked.includes(run) ? picked.filter((one) => one !== run) : [...picked, run].slice(-MOST_PICKED);
}
