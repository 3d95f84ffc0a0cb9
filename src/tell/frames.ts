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

/**
 * A visit that forks leads to its siblings, and each of them to where they meet: the decision itself names the latter
 * only. A question about a step has edges of its own, although its visit is not counted.
 */
export function waysIn(moment: Moment): readonly TakenWay[] {
  const isOver = deedsOf(moment, "ended").length > 0;
  const settled = deedsOf(moment, "settled").map(({ led }) => led);
  const forked = deedsOf(moment, "forked");
  const joined = deedsOf(moment, "joined");
  const followed = deedsOf(moment, "followed").flatMap((deed): readonly TakenWay[] => {
    const { step, label, move } = deed;
    const fork = forked.find((one) => isSameVisit(one, deed));
    if (fork !== undefined) return fork.steps.map((to) => [step, to, label]);
    const join = joined.find((one) => isSameVisit(one, deed));
    if (join !== undefined) return [[step, join.join, label]];
    const led = settled.find((one) => isSameVisit(one, deed) || one.check !== undefined);
    if (led !== undefined) return led.to === null && !isOver ? [] : [[step, led.to, label]];
    return move?.kind === "goto" ? [[step, move.step, label]] : [];
  });
  const decided = settled
    .filter((led) => led.overturned === true || (followed.length === 0 && led.label !== null))
    .filter((led) => led.to !== null || isOver)
    .map(({ step, to, label, overturned }): TakenWay =>
      overturned === true ? [step, to, label, "back"] : [step, to, label],
    );
  const taken = [...followed, ...decided];
  const reached = new Set(taken.map(([, to]) => to));
  const others = begunIn(moment)
    .filter(({ step }) => !reached.has(step))
    .map((deed): TakenWay => [laneIn(moment.after, deed)?.origin ?? null, deed.step, null]);
  return [...taken, ...others];
}

function isSameVisit(one: AtVisit, other: AtVisit): boolean {
  return one.step === other.step && one.visit === other.visit;
}
