/**
 * A run as spans: the run, its visits, and in them responses of the model, tool calls, checks and hooks. Attributes follow
 * the GenAI conventions where there are any; what was said is in them only if asked for.
 */
import { laneIn, visitKey } from "../flow/deed.ts";
import type { Lane, State } from "../engine/decide/state.ts";
import type { Entry } from "../flow/event.ts";
import type { Flow } from "../flow/flow.ts";
import { own } from "../flow/json.ts";
import type { Attributes, TraceSpan } from "../flow/span.ts";
import type { Moment } from "../story/story.ts";
import { clipped, spanParts, tokensOf } from "./span-parts.ts";

export type Spans = {
  readonly recall: (moment: Moment) => void;
  readonly hear: (moment: Moment) => readonly TraceSpan[];
  /** Those that are still open. */
  readonly close: () => readonly TraceSpan[];
};

/** A visit in progress: when it was begun, and when what it is at was begun. */
type Open = { readonly key: string; readonly begun: number; since: number };

export function createSpans(flow: Flow, run: string, isTelling: boolean): Spans {
  const open = new Map<string, Open>();
  let root: { readonly key: string; readonly start: number } | null = null;
  let backend = "";
  let newest: { readonly at: number; readonly state: State } | null = null;
  let moved = 0;

  /** On the clock as it was set when the stretch began, and never before the entry before it. */
  const timeOf = ({ at, moved: by = 0, event: { type } }: Entry): number => {
    const isNew = newest === null || type === "run.started" || type === "run.resumed";
    moved = isNew ? 0 : moved + by;
    return isNew ? at : Math.max(newest!.at, at - moved);
  };

  /** Stretches of a run are spans of their own in one trace: the time between them belongs to none. */
  const keep = ({ entry: { seq, event }, after }: Moment, at: number) => {
    if (event.type === "run.started") backend = event.backend.id;
    if (event.type === "run.resumed") {
      backend = event.backend?.id ?? backend;
      open.clear();
    }
    if (event.type === "run.started" || event.type === "run.resumed") root = { key: `run ${seq}`, start: at };
    for (const lane of after.lanes) {
      const name = visitKey(lane);
      if (!open.has(name)) open.set(name, { key: `visit ${name} ${seq}`, begun: at, since: at });
    }
    newest = { at, state: after };
  };

  const visitSpan = (lane: Lane, end: number, more: Attributes, failed: boolean): readonly TraceSpan[] => {
    const { step, visit } = lane;
    const begun = open.get(visitKey(lane));
    open.delete(visitKey(lane));
    if (begun === undefined) return [];
    const attributes = { "lockstep.step.id": step, "lockstep.visit": visit, ...more };
    const { key, begun: start } = begun;
    const parent = root?.key ?? null;
    return [{ key, parent, name: `step ${step}`, kind: "internal", start, end, attributes, failed }];
  };

  /** What happened within a visit. */
  const inner = (moment: Moment, end: number): readonly TraceSpan[] => {
    const { event, seq } = moment.entry;
    const step = "visit" in event ? own(moment.flow.steps, event.step) : undefined;
    const lane = "visit" in event ? laneIn(moment.before, event) : undefined;
    if (step === undefined || lane === undefined) return [];
    const visit = open.get(visitKey(lane));
    const start = visit?.since ?? end;
    if (visit !== undefined) visit.since = end;
    const parent = visit?.key ?? null;
    return spanParts(moment, { backend, isTelling, step, lane }).map(
      ({ name, kind, attributes, failed }, place) => {
        return { key: `${seq} ${place}`, parent, name, kind, start, end, attributes, failed };
      },
    );
  };

  /** Visits that the entry ended, and the run, if it did that. */
  const outer = ({ entry: { led, event }, before, after }: Moment, at: number): readonly TraceSpan[] => {
    const left = before.lanes.filter((lane) => laneIn(after, lane) === undefined);
    const visits = left.flatMap((lane) => {
      if (led?.step !== lane.step || led.visit !== lane.visit) return visitSpan(lane, at, {}, false);
      const { label, to, overturned } = led;
      const more: Attributes = {
        ...(label !== null && { "lockstep.label": label }),
        ...(to !== null && { "lockstep.to": to }),
        ...(overturned && { "lockstep.overturned": true }),
      };
      return visitSpan(lane, at, more, label === null);
    });
    return event.type === "run.ended" ? [...visits, ...runSpan(at, after)] : visits;
  };

  const runSpan = (end: number, { verdict, iterations, usage }: State): readonly TraceSpan[] => {
    if (root === null) return [];
    const attributes: Attributes = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": flow.agent,
      "gen_ai.conversation.id": run,
      ...tokensOf(usage),
      "lockstep.run.id": run,
      "lockstep.dialect": flow.dialect,
      "lockstep.iterations": iterations,
      "lockstep.outcome": verdict?.outcome ?? "interrupted",
      ...(verdict !== null && verdict.code !== null && { "error.type": verdict.code }),
      ...(isTelling && verdict !== null && { "lockstep.reason": clipped(verdict.reason) }),
    };
    const { key, start } = root;
    root = null;
    const name = `invoke_agent ${flow.agent}`;
    const failed = verdict?.outcome === "failed";
    return [{ key, parent: null, name, kind: "internal", start, end, attributes, failed }];
  };

  return {
    recall: (moment) => keep(moment, timeOf(moment.entry)),
    hear: (moment) => {
      const at = timeOf(moment.entry);
      const done = [...inner(moment, at), ...outer(moment, at)];
      keep(moment, at);
      return done;
    },
    close: () => {
      if (newest === null) return [];
      const { at, state } = newest;
      return [...state.lanes.flatMap((lane) => visitSpan(lane, at, {}, false)), ...runSpan(at, state)];
    },
  };
}
