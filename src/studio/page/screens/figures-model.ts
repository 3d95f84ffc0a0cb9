/** The figures of many runs in the form the screen shows them: bars, shares and tables. */
import type { RunLine } from "../../wire.ts";
import type { FiguresDocument } from "../../wire-agents.ts";

type RunState = RunLine["state"];

/** The periods that can be chosen, by their name in the address. */
export const PERIODS = {
  "": "All time",
  "1d": "Last 24 hours",
  "7d": "Last 7 days",
  "30d": "Last 30 days",
} as const;

const DAY = 24 * 60 * 60 * 1000;

/** Epoch milliseconds from which on runs are counted; null: all. A period that is not known is a whole number of days. */
export function sinceOf(period: string, now: number): number | null {
  const days = /^([1-9]\d{0,3})d$/.exec(period)?.[1];
  return days === undefined ? null : now - Number(days) * DAY;
}

export function figuresPath(agent: string, period: string, flow: string, now: number): string {
  const since = sinceOf(period, now);
  const given = Object.entries({ agent, flow, since: since === null ? "" : String(since) }).filter(
    ([, value]) => value !== "",
  );
  return given.length === 0 ? "figures" : `figures?${new URLSearchParams(given)}`;
}

export type DayColumn = {
  readonly day: string;
  readonly total: number;
  readonly parts: readonly { readonly state: RunState; readonly runs: readonly number[] }[];
};

/** In the order in which a column is stacked, from below. */
const STACKED: readonly RunState[] = [
  "completed",
  "failed",
  "damaged",
  "poisoned",
  "interrupted",
  "waiting",
  "paused",
  "queued",
  "running",
];
const MOST_DAYS = 60;

/** A column a day, days without a run too, so that gaps are seen; the newest ones where there are many. */
export function dayColumns(days: FiguresDocument["days"]): readonly DayColumn[] {
  const [first, last] = [days[0]?.day, days.at(-1)?.day];
  if (first === undefined || last === undefined) return [];
  const byDay = Map.groupBy(days, ({ day }) => day);
  const columns: DayColumn[] = [];
  for (let at = Date.parse(last); at >= Date.parse(first) && columns.length < MOST_DAYS; at -= DAY) {
    const day = new Date(at).toISOString().slice(0, 10);
    const found = byDay.get(day) ?? [];
    const parts = STACKED.flatMap((state) => {
      const runs = found.filter((one) => one.state === state).flatMap((one) => one.in);
      return runs.length === 0 ? [] : [{ state, runs }];
    });
    columns.push({ day, total: parts.reduce((sum, { runs }) => sum + runs.length, 0), parts });
  }
  return columns.toReversed();
}

/** The states of all runs, the most frequent first. */
export function stateTotals(
  days: FiguresDocument["days"],
): readonly { readonly state: string; readonly runs: readonly number[] }[] {
  return [...Map.groupBy(days, ({ state }) => state)]
    .map(([state, all]) => ({ state, runs: all.flatMap((one) => one.in) }))
    .toSorted((a, b) => b.runs.length - a.runs.length);
}

/** The share of each in the largest, from 0 to 1. */
export function sharesOf(values: readonly number[]): readonly number[] {
  const most = Math.max(0, ...values);
  return values.map((value) => (most === 0 ? 0 : value / most));
}

/** What a column of a bar chart is measured by: money where all of it is known, tokens where there are any, else time. */
export function stepMeasure(steps: FiguresDocument["steps"]): "costUsd" | "tokens" | "ms" {
  if (
    steps.some(({ costUsd }) => costUsd !== null) &&
    steps.every(({ unpricedIn }) => unpricedIn.length === 0)
  )
    return "costUsd";
  return steps.some(({ inputTokens, outputTokens }) => inputTokens + outputTokens > 0) ? "tokens" : "ms";
}

export function measured(step: FiguresDocument["steps"][number], by: ReturnType<typeof stepMeasure>): number {
  if (by === "costUsd") return step.costUsd ?? 0;
  return by === "tokens" ? step.inputTokens + step.outputTokens : step.ms;
}

/** Rows as CSV: fields with a comma, a quote or a line break are quoted, and nothing begins as a formula does. */
export function csvText(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map((row) => row.map(csvField).join(",")).join("\r\n");
}

function csvField(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  // A spreadsheet runs a text that begins like this.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** All that the screen shows, a row each, for a spreadsheet. */
export function figuresCsv(document: FiguresDocument): string {
  const { steps, patterns, gates, checks, retries } = document;
  return csvText([
    ["what", "agent", "name", "model", "count", "of", "runs", "tokens", "costUsd", "ms"],
    ...steps.map((one) => [
      "step",
      one.agent,
      one.step,
      "",
      one.visits,
      null,
      one.in.length,
      one.inputTokens + one.outputTokens,
      one.costUsd,
      one.ms,
    ]),
    ...patterns.map((one) => [
      "failure",
      "",
      `${one.check} ${one.pattern}`,
      "",
      one.recovered,
      one.hits,
      one.in.length,
      null,
      null,
      null,
    ]),
    ...gates.map((one) => [
      "done",
      one.agent,
      one.step,
      one.model,
      one.stood,
      one.said,
      one.in.length,
      null,
      null,
      null,
    ]),
    ...checks.map((one) => [
      "check",
      "",
      one.check,
      "",
      one.failed,
      one.passed + one.failed,
      one.in.length,
      null,
      null,
      null,
    ]),
    ...retries.map((one) => [
      "repairs",
      one.agent,
      one.step,
      one.model,
      one.repairs,
      one.answers,
      one.in.length,
      null,
      null,
      null,
    ]),
  ]);
}
