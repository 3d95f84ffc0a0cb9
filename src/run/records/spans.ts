/**
 * A run as spans: the run, its visits, and in them responses of the model, tool calls, checks and hooks. A fold of the
 * journal. Attributes follow the GenAI conventions where there are any; what was said is in them only if asked for.
 */
import type { Attributes, Span } from "../../effects/otlp.ts";
import type { Lane, State } from "../../engine/decide/state.ts";
import type { Entry } from "../../flow/event.ts";
import type { Flow } from "../../flow/flow.ts";
import { own } from "../../flow/json.ts";
import { clipped, partsOf, tokensOf } from "./span-parts.ts";
import { laneIn } from "./why-trace.ts";

export type Spans = {
  readonly recall: (entry: Entry, before: State, after: State) => void;
  readonly hear: (entry: Entry, before: State, after: State) => readonly Span[];
  /** Those that are still open. */
  readonly close: () => readonly Span[];
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
  const timed = (entry: Entry): Entry => {
    const { type } = entry.event;
    const isNew = newest === null || type === "run.started" || type === "run.resumed";
    moved = isNew ? 0 : moved + (entry.moved ?? 0);
    const at = isNew ? entry.at : Math.max(newest!.at, entry.at - moved);
    return at === entry.at ? entry : { ...entry, at };
  };

  /** Stretches of a run are spans of their own in one trace: what is done between them is nobody's time. */
  const keep = ({ seq, at, event }: Entry, after: State) => {
    if (event.type === "run.started") backend = event.backend.id;
    if (event.type === "run.resumed") {
      backend = event.backend?.id ?? backend;
      open.clear();
    }
    if (event.type === "run.started" || event.type === "run.resumed") root = { key: `run ${seq}`, start: at };
    for (const lane of after.lanes) {
      const name = nameOf(lane);
      const key = `visit ${name} ${seq}`;
      if (!open.has(name)) open.set(name, { key, begun: at, since: at });
    }
    newest = { at, state: after };
  };

  const visitSpan = (
    name: string,
    step: string,
    visit: number,
    end: number,
    more: Attributes,
    failed: boolean,
  ): Span[] => {
    const begun = open.get(name);
    open.delete(name);
    if (begun === undefined) return [];
    const attributes = { "lockstep.step.id": step, "lockstep.visit": visit, ...more };
    const times = { start: begun.begun, end };
    return [
      {
        key: begun.key,
        parent: root?.key ?? null,
        name: `step ${step}`,
        kind: "internal",
        ...times,
        attributes,
        failed,
      },
    ];
  };

  /** What happened within a visit. */
  const inner = (entry: Entry, before: State): readonly Span[] => {
    const { event, at, seq } = entry;
    const step = "visit" in event ? own(flow.steps, event.step) : undefined;
    const lane = "visit" in event ? laneIn(before, event) : undefined;
    if (step === undefined || lane === undefined) return [];
    const visit = open.get(nameOf(lane));
    const start = visit?.since ?? at;
    if (visit !== undefined) visit.since = at;
    return partsOf({ flow, backend, run, isTelling, step, lane, before, event }).map((part, place) => {
      const { name, kind, attributes, failed } = part;
      return {
        key: `${seq} ${place}`,
        parent: visit?.key ?? null,
        name,
        kind,
        start,
        end: at,
        attributes,
        failed,
      };
    });
  };

  /** Visits that the entry ended, and the run, if it did that. */
  const outer = ({ at, led, event }: Entry, before: State, after: State): readonly Span[] => {
    const left = before.lanes.filter((lane) => laneIn(after, lane) === undefined);
    const visits = left.flatMap((lane) => {
      const isIt = led?.step === lane.step && led.visit === lane.visit;
      const more: Attributes = isIt
        ? {
            ...(led.label !== null && { "lockstep.label": led.label }),
            ...(led.to !== null && { "lockstep.to": led.to }),
            ...(led.overturned && { "lockstep.overturned": true }),
          }
        : {};
      return visitSpan(nameOf(lane), lane.step, lane.visit, at, more, isIt && led.label === null);
    });
    return event.type === "run.ended" ? [...visits, ...runSpan(at, after)] : visits;
  };

  const runSpan = (end: number, state: State): readonly Span[] => {
    if (root === null) return [];
    const { verdict, iterations, usage } = state;
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
    const failed = verdict?.outcome === "failed";
    return [
      {
        key,
        parent: null,
        name: `invoke_agent ${flow.agent}`,
        kind: "internal",
        start,
        end,
        attributes,
        failed,
      },
    ];
  };

  return {
    recall: (entry, _before, after) => keep(timed(entry), after),
    hear: (recorded, before, after) => {
      const entry = timed(recorded);
      const done = [...inner(entry, before), ...outer(entry, before, after)];
      keep(entry, after);
      return done;
    },
    close: () => {
      if (newest === null) return [];
      const { at, state } = newest;
      const visits = state.lanes.flatMap((lane) =>
        visitSpan(nameOf(lane), lane.step, lane.visit, at, {}, false),
      );
      return [...visits, ...runSpan(at, state)];
    },
  };
}

function nameOf({ step, visit }: Lane): string {
  return `${step}@${visit}`;
}
