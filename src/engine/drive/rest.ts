/** How the stretch of a run before this one ended, as far as the next one may rely on it. */
import type { Event } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import type { State } from "../decide/state.ts";

type Resumed = Extract<Event, { type: "run.resumed" }>;

/**
 * `fresh` where nothing can have been under way: the run was never driven, it yielded, or it only waited. `standing` is
 * the state after the entries; it is asked for only where a step of the flow may not be repeated.
 */
export function restBefore(
  { last, isUndriven: isNew }: { readonly last: Event | undefined; readonly isUndriven: boolean },
  flow: Flow,
  standing: () => Pick<State, "lanes">,
  now: number,
): Pick<Resumed, "fresh" | "waits"> {
  const waits = last?.type === "run.yielded" ? (last.waits ?? []) : [];
  const left = waits.flatMap(({ step, visit, until }) =>
    until > now ? [{ step, visit, ms: until - now }] : [],
  );
  const isFresh = last?.type === "run.yielded" || isNew || isOnlyWaiting(flow, standing);
  return { ...(isFresh && { fresh: true }), ...(left.length > 0 && { waits: left }) };
}

/**
 * It was recorded for others to drive, or is a fork, and nobody has driven it yet. `resumedAt`: the newest entry that
 * resumed it, counted from 1; 0: none.
 */
export function isUndriven(started: Event | undefined, resumedAt: number): boolean {
  if (started?.type !== "run.started") return false;
  const { queued, forkedFrom } = started;
  if (queued !== true && forkedFrom === undefined) return false;
  return resumedAt <= (forkedFrom?.seq ?? 1);
}

function isOnlyWaiting({ steps }: Flow, standing: () => Pick<State, "lanes">): boolean {
  if (Object.values(steps).every(({ ifInterrupted }) => ifInterrupted === undefined)) return false;
  const { lanes } = standing();
  return lanes.length > 0 && lanes.every(({ command }) => command.type === "wait");
}
