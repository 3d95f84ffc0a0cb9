/** What a run did, as people and programs read it afterwards: a fold of its journal beside the state. */
import type { Entry, Led, Origin } from "../flow/event.ts";

export type Report = {
  readonly path: Led[];
  readonly checks: { name: string; ok: boolean; pattern: string; attempt: number; summary: string }[];
  readonly denials: string[];
  /** Visits that had not stopped when the run was given up. */
  readonly left: string[];
  forkedFrom: Origin | null;
  startedAt: number;
  endedAt: number;
};

export function createReport(): Report {
  return { path: [], checks: [], denials: [], left: [], forkedFrom: null, startedAt: 0, endedAt: 0 };
}

/** Adds one entry; entries come in order. */
export function addEntry(report: Report, { at, event, led }: Entry): void {
  if (report.startedAt === 0) report.startedAt = at;
  report.endedAt = at;
  if (led !== undefined) insert(report.path, led);
  if (event.type === "step.checked") {
    for (const { name, ok, pattern, summary } of event.results) {
      const attempt = report.checks.filter((other) => other.name === name).length + 1;
      report.checks.push({ name, ok, pattern, attempt, summary });
    }
  }
  if (event.type === "run.started") report.forkedFrom = event.forkedFrom ?? null;
  if (event.type === "run.left") report.left.push(...event.still);
  if (event.type === "step.called") {
    for (const { name, denied } of event.results) {
      if (denied !== undefined)
        report.denials.push(`${event.step}@${event.visit}: ${name} was denied: ${denied}`);
    }
  }
}

/** In order; siblings that ran at the same time stand in the order in which the flow names them, not as they came in. */
function insert(path: Led[], led: Led): void {
  const { place } = led;
  const before = place === undefined ? -1 : path.findLastIndex((other) => (other.place ?? -1) <= place);
  path.splice(place === undefined ? path.length : before + 1, 0, led);
}
