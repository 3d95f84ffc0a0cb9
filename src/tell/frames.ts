/** A run as frames, one for each entry: small enough to send all of a long run, and enough to draw it at any entry. */
import { laneIn, type AtVisit } from "../flow/deed.ts";
import type { Event } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Label, StepId } from "../flow/flow.ts";
import type { Outcome } from "../flow/verdict.ts";
import { openQuestions } from "../engine/decide/people.ts";
import type { State } from "../engine/decide/state.ts";
import { begunIn, deedsOf, type Moment } from "../story/story.ts";
import { usageIn } from "../story/tally.ts";

/** `ms`: since the first entry. `visit`: 0 where the entry belongs to no visit. `lanes`: 0 where nothing changed there. */
export type Frame = readonly [
  seq: number,
  ms: number,
  type: Event["type"],
  step: StepId | null,
  visit: number,
  lanes: readonly FrameLane[] | 0,
  more?: FrameMore,
];

/** A visit under way, and what is done for it. `halted`: it waits until the run goes on. */
export type FrameLane = readonly [step: StepId, visit: number, doing: StepCommand["type"], halted?: 1];

export type FrameMore = {
  /** Edges that were taken. */
  readonly ways?: readonly TakenWay[];
  /** Visits that began. */
  readonly began?: readonly (readonly [step: StepId, visit: number])[];
  readonly used?: readonly [turns: number, inputTokens: number, outputTokens: number, costUsd: number | null];
  /** Checks that failed. */
  readonly failed?: readonly string[];
  /** How many questions are open from here on, where that changed. */
  readonly asks?: number;
  readonly ended?: readonly [outcome: Outcome, code: string | null];
};

/** `from` is null where a run begins, `to` where it ends. `back`: checks failed, and the label had no effect. */
export type TakenWay = readonly [from: StepId | null, to: StepId | null, label: Label | null, how?: "back"];

/** Gives the frame of each moment; they come in order, from the first one on. */
export function createFrames(): (moment: Moment) => Frame {
  let begun: number | null = null;
  let moved = 0;
  let shown = "[]";
  let asked = 0;
  return (moment) => {
    const { entry, after } = moment;
    const { seq, at, event } = entry;
    moved += entry.moved ?? 0;
    begun ??= at;
    const lanes = lanesOf(after);
    const text = JSON.stringify(lanes);
    const isSame = text === shown;
    shown = text;
    const asks = openQuestions(after).length;
    const more: FrameMore = { ...moreOf(moment), ...(asks !== asked && { asks }) };
    asked = asks;
    const [step, visit] = "step" in event ? [event.step, event.visit] : [null, 0];
    const base = [seq, Math.max(0, at - begun - moved), event.type, step, visit, isSame ? 0 : lanes] as const;
    return Object.keys(more).length === 0 ? base : [...base, more];
  };
}

function lanesOf({ lanes, halted }: State): readonly FrameLane[] {
  return [
    ...lanes.map(({ step, visit, command }) => [step, visit, command.type] as const),
    ...halted.map(({ step, visit, command }) => [step, visit, command.type, 1] as const),
  ];
}

function moreOf(moment: Moment): FrameMore {
  const ways = waysIn(moment);
  const began = begunIn(moment).map(({ step, visit }) => [step, visit] as const);
  const used = usageIn(moment.entry.event);
  const failed = deedsOf(moment, "checked").flatMap((deed) =>
    deed.failed === null ? [] : [deed.failed.name],
  );
  const { event } = moment.entry;
  return {
    ...(ways.length > 0 && { ways }),
    ...(began.length > 0 && { began }),
    ...(used !== undefined && { used: [used.turns, used.inputTokens, used.outputTokens, used.costUsd] }),
    ...(failed.length > 0 && { failed }),
    ...(event.type === "run.ended" && { ended: [event.verdict.outcome, event.verdict.code] }),
  };
}

/** A visit that forks leads to its siblings, and each of them to where they meet: the decision itself names the latter only. */
export function waysIn(moment: Moment): readonly TakenWay[] {
  const isOver = deedsOf(moment, "ended").length > 0;
  const joined = deedsOf(moment, "joined");
  const settled = deedsOf(moment, "settled").map(({ led }) => led);
  const decided = settled.flatMap((led): readonly TakenWay[] => {
    const { step, label } = led;
    if (led.overturned === true && (led.to !== null || isOver)) return [[step, led.to, label, "back"]];
    if (led.fork !== undefined) return led.fork.map((to) => [step, to, label]);
    const meet = joined.find((deed) => isSameVisit(deed, led));
    if (meet !== undefined) return [[step, meet.join, label]];
    return led.to === null && !isOver ? [] : [[step, led.to, label]];
  });
  const reached = new Set(decided.map(([, to]) => to));
  const others = begunIn(moment)
    .filter(({ step }) => !reached.has(step))
    .map((deed): TakenWay => [laneIn(moment.after, deed)?.origin ?? null, deed.step, null]);
  return [...decided, ...others];
}

function isSameVisit(one: AtVisit, other: AtVisit): boolean {
  return one.step === other.step && one.visit === other.visit;
}
