/** How the stretch of a run before this one ended, as far as the next one may rely on it. */
import type { Entry, Event } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import type { State } from "../decide/state.ts";

type Resumed = Extract<Event, { type: "run.resumed" }>;

/**
 * `fresh` where nothing can have been under way: the run was never driven, it yielded, or it only waited. `standing` is
 * the state after the entries; it is asked for only where a step of the flow may not be repeated.
 */
export function restBefore(
  entries: readonly Entry[],
  flow: Flow,
  standing: () => Pick<State, "lanes">,
  now: number,
): Pick<Resumed, "fresh" | "waits"> {
  const last = entries.at(-1)?.event;
  const waits = last?.type === "run.yielded" ? (last.waits ?? []) : [];
  const left = waits.flatMap(({ step, visit, until }) =>
    until > now ? [{ step, visit, ms: until - now }] : [],
  );
  const isFresh = last?.type === "run.yielded" || isUndriven(entries) || isOnlyWaiting(flow, standing);
  return { ...(isFresh && { fresh: true }), ...(left.length > 0 && { waits: left }) };
}

/** It was recorded for others to drive, or is a fork, and nobody has driven it yet. */
export function isUndriven(entries: readonly Entry[]): boolean {
  const started = entries[0]?.event;
  if (started?.type !== "run.started") return false;
  const { queued, forkedFrom } = started;
  if (queued !== true && forkedFrom === undefined) return false;
  return !entries.slice(forkedFrom?.seq ?? 1).some(({ event }) => event.type === "run.resumed");
}

function isOnlyWaiting({ steps }: Flow, standing: () => Pick<State, "lanes">): boolean {
  if (Object.values(steps).every(({ ifInterrupted }) => ifInterrupted === undefined)) return false;
  const { lanes } = standing();
  return lanes.length > 0 && lanes.every(({ command }) => command.type === "wait");
}
