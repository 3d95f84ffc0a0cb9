/** What a run did, as people and programs read it afterwards: a fold of its journal beside the state. */
import type { Entry, Led } from "../flow/event.ts";

export type Report = {
  readonly path: Led[];
  readonly checks: { name: string; ok: boolean; pattern: string; attempt: number; summary: string }[];
  readonly denials: string[];
  startedAt: number;
  endedAt: number;
};

export function createReport(): Report {
  return { path: [], checks: [], denials: [], startedAt: 0, endedAt: 0 };
}

/** Adds one entry; entries come in order. */
export function addEntry(report: Report, { at, event, led }: Entry): void {
  if (report.startedAt === 0) report.startedAt = at;
  report.endedAt = at;
  if (led !== undefined) report.path.push(led);
  if (event.type === "step.checked") {
    for (const { name, ok, pattern, summary } of event.results) {
      const attempt = report.checks.filter((other) => other.name === name).length + 1;
      report.checks.push({ name, ok, pattern, attempt, summary });
    }
  }
  if (event.type === "step.called") {
    for (const { name, denied } of event.results) {
      if (denied !== undefined)
        report.denials.push(`${event.step}@${event.visit}: ${name} was denied: ${denied}`);
    }
  }
}
