/** What a run did, as people and programs read it afterwards: a fold of its journal beside the state. */
import type { AtVisit } from "../flow/deed.ts";
import {
  decisionIn,
  judgedIn,
  type CallResult,
  type Confinement,
  type EffectEvent,
  type Entry,
  type JudgedCall,
  type Led,
  type ForkOrigin,
  type Worktree,
} from "../flow/event.ts";
import { effectOf, type EffectOf } from "../flow/due.ts";
import type { StepId } from "../flow/flow.ts";
import { denialText } from "../flow/question.ts";

export type Report = {
  readonly path: Led[];
  readonly checks: { name: string; ok: boolean; pattern: string; attempt: number; summary: string }[];
  /** How often each check was run. */
  readonly attempts: Map<string, number>;
  readonly denials: string[];
  /** Visits that had not stopped when the run was given up. */
  readonly left: string[];
  /** In the order in which they were first meant to be done. */
  readonly effects: Map<string, Effect>;
  /** null: the run works in the folder it was started in. */
  worktree: Worktree | null;
  /** What would be done to the world is told, and not done. */
  dryRun: boolean;
  forkedFrom: ForkOrigin | null;
  /** How the commands of its newest stretch were held; null: not recorded. */
  sandbox: Confinement | null;
  /** The newest text that each step was answered with. */
  readonly said: Map<StepId, string>;
  /** How long it was driven: not between two stretches, and not by setting a clock. */
  drivenMs: number;
  /** The time of the newest entry; null: there is none. */
  lastAt: number | null;
};

/** What was done to the world, or was meant to be. `intended`: nobody has heard how that went. */
export type Effect = {
  readonly of: EffectOf;
  readonly kind: string;
  /** What it is done to; empty: the kind says it all. */
  readonly target: string;
  readonly state: "intended" | "held" | "applied" | "failed";
  readonly detail: string;
  /** When it came to this; epoch milliseconds. */
  readonly at: number;
  /** Of what gets a number in a list: the newest number there before. */
  readonly newest?: number;
};

export function createReport(): Report {
  return {
    path: [],
    checks: [],
    denials: [],
    left: [],
    attempts: new Map(),
    effects: new Map(),
    worktree: null,
    dryRun: false,
    forkedFrom: null,
    sandbox: null,
    said: new Map(),
    drivenMs: 0,
    lastAt: null,
  };
}

/** Adds one entry; entries come in order. */
export function addEntry(report: Report, entry: Entry): void {
  const { at, moved = 0, event } = entry;
  const led = decisionIn(entry);
  if (report.lastAt !== null && event.type !== "run.resumed")
    report.drivenMs += Math.max(0, at - report.lastAt - moved);
  report.lastAt = at;
  if (led !== undefined) insert(report.path, led);
  // By far most entries are answers, and have nothing more to tell here.
  if (event.type === "step.answered") {
    if (event.reply.kind === "said") report.said.set(event.step, event.reply.text);
    return addDenials(report, event, judgedIn(event.reply));
  }
  if (event.type === "step.checked") {
    for (const { name, ok, pattern, summary } of event.results) {
      const attempt = (report.attempts.get(name) ?? 0) + 1;
      report.attempts.set(name, attempt);
      report.checks.push({ name, ok, pattern, attempt, summary });
    }
  }
  if ("key" in event) addEffect(report.effects, event, at);
  if (event.type === "run.started") {
    report.worktree = event.worktree ?? null;
    report.dryRun = event.dryRun ?? event.worktree?.dryRun ?? false;
    report.forkedFrom = event.forkedFrom ?? null;
  }
  if (event.type === "run.started" || event.type === "run.resumed")
    report.sandbox = event.sandbox ?? report.sandbox;
  if (event.type === "run.left") report.left.push(...event.still);
  if (event.type === "step.called") addDenials(report, event, event.results);
}

function addDenials(
  { denials }: Report,
  { step, visit }: AtVisit,
  judged: readonly (JudgedCall & Pick<CallResult, "grant">)[],
): void {
  for (const one of judged) {
    const denial = denialText(step, one);
    if (denial !== null) denials.push(`${step}@${visit}: ${denial}`);
  }
}

/** The kind of an act that is not even tried. */
export const REFUSED = "action:refused";

function addEffect(effects: Map<string, Effect>, event: EffectEvent, at: number): void {
  const { key, detail } = event;
  const state = event.type.slice("effect.".length) as Effect["state"];
  const { of, kind, target, newest } =
    "kind" in event
      ? { target: "", newest: undefined, ...event, of: effectOf(event) }
      : { newest: undefined, ...(effects.get(key) ?? { of: effectOf(event), kind: key, target: "" }) };
  effects.set(key, { of, kind, target, state, detail, at, ...(newest !== undefined && { newest }) });
}

/** In order; siblings that ran at the same time stand in the order in which the flow names them, not as they came in. */
function insert(path: Led[], led: Led): void {
  const { place } = led;
  if (place === undefined || place < 0) path.push(led);
  else path.splice(path.findLastIndex((other) => (other.place ?? -1) <= place) + 1, 0, led);
}
