/** A run as frames, one for each entry: small enough to send all of a long run, and enough to draw it at any entry. */
import { laneIn, type AtVisit, type Deed } from "../flow/deed.ts";
import type { Event } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Label, StepId } from "../flow/flow.ts";
import type { Outcome } from "../flow/verdict.ts";
import { openQuestions } from "../engine/decide/people.ts";
import type { State } from "../engine/decide/state.ts";
import type { Moment } from "../story/story.ts";
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

/**
 * Gives the frame of each moment; they come in order, from the first one on. Done for every entry of a long run.
 * `named` gives what is shown of a name: a step, a label, a check or a code.
 */
export function createFrames(named: (name: string) => string = same): (moment: Moment) => Frame {
  let begun: number | null = null;
  let moved = 0;
  let shown: readonly FrameLane[] = [];
  let asked = 0;
  return (moment) => {
    const { entry, after } = moment;
    const { seq, at, event } = entry;
    moved += entry.moved ?? 0;
    begun ??= at;
    const ms = Math.max(0, at - begun - moved);
    const isSame = hasSameLanes(shown, after, named);
    if (!isSame) shown = lanesOf(after, named);
    let more = moreOf(moment, named);
    const asks = isSame ? asked : openQuestions(after).length;
    if (asks !== asked) more = { ...more, asks };
    asked = asks;
    const step = "step" in event ? named(event.step) : null;
    const visit = "step" in event ? event.visit : 0;
    const lanes = isSame ? 0 : shown;
    return more === null
      ? [seq, ms, event.type, step, visit, lanes]
      : [seq, ms, event.type, step, visit, lanes, more];
  };
}

function same(name: string): string {
  return name;
}

type Named = (name: string) => string;

function lanesOf({ lanes, halted }: State, named: Named): readonly FrameLane[] {
  const seen: FrameLane[] = [];
  for (const { step, visit, command } of lanes) seen.push([named(step), visit, command.type]);
  for (const { step, visit, command } of halted) seen.push([named(step), visit, command.type, 1]);
  return seen;
}

function hasSameLanes(shown: readonly FrameLane[], { lanes, halted }: State, named: Named): boolean {
  if (shown.length !== lanes.length + halted.length) return false;
  return shown.every(([step, visit, doing, isHalted], place) => {
    const lane = place < lanes.length ? lanes[place]! : halted[place - lanes.length]!;
    const isKept = place >= lanes.length;
    return (
      named(lane.step) === step &&
      lane.visit === visit &&
      lane.command.type === doing &&
      (isHalted === 1) === isKept
    );
  });
}

type GrowingMore = { -readonly [key in keyof FrameMore]: FrameMore[key] };

/** null: nothing of it. */
function moreOf(moment: Moment, named: Named): FrameMore | null {
  let more: GrowingMore | null = null;
  const ways = waysIn(moment);
  if (ways.length > 0) more = { ways: ways.map((way) => namedWay(way, named)) };
  const began: (readonly [step: StepId, visit: number])[] = [];
  const failed: string[] = [];
  for (const deed of moment.deeds) {
    if (deed.kind === "began" && laneIn(moment.after, deed) !== undefined)
      began.push([named(deed.step), deed.visit]);
    if (deed.kind === "checked" && deed.failed !== null) failed.push(named(deed.failed.name));
  }
  if (began.length > 0) (more ??= {}).began = began;
  if (failed.length > 0) (more ??= {}).failed = failed;
  const { event } = moment.entry;
  const used = usageIn(event);
  if (used !== undefined)
    (more ??= {}).used = [used.turns, used.inputTokens, used.outputTokens, used.costUsd];
  if (event.type === "run.ended") {
    const { outcome, code } = event.verdict;
    (more ??= {}).ended = [outcome, code === null ? null : named(code)];
  }
  return more;
}

function namedWay([from, to, label, ...how]: TakenWay, named: Named): TakenWay {
  const shown = (name: string | null) => (name === null ? null : named(name));
  return [shown(from), shown(to), shown(label), ...how];
}

/**
 * A visit that forks leads to its siblings, and each of them to where they meet: the decision itself names the latter
 * only. A question about a step has edges of its own, although its visit is not counted.
 */
export function waysIn(moment: Moment): readonly TakenWay[] {
  const { deeds } = moment;
  const ways: TakenWay[] = [];
  let isFollowed = false;
  for (const deed of deeds)
    if (deed.kind === "followed") {
      isFollowed = true;
      ways.push(...followedWays(deed, moment));
    }
  for (const deed of deeds) {
    if (deed.kind !== "settled") continue;
    const { step, to, label, overturned } = deed.led;
    const isOwn = overturned === true || (!isFollowed && label !== null);
    if (isOwn && (to !== null || isOver(moment)))
      ways.push(overturned === true ? [step, to, label, "back"] : [step, to, label]);
  }
  for (const deed of deeds) {
    if (deed.kind !== "began" || isLedTo(ways, deed.step)) continue;
    const lane = laneIn(moment.after, deed);
    if (lane !== undefined) ways.push([lane.origin, deed.step, null]);
  }
  return ways;
}

type Followed = Extract<Deed, { readonly kind: "followed" }>;

function followedWays(deed: Followed, moment: Moment): readonly TakenWay[] {
  const { step, label, move } = deed;
  let join: StepId | null | undefined;
  let to: StepId | null | undefined;
  let isBegun = false;
  for (const one of moment.deeds) {
    if (one.kind === "forked" && isSameVisit(one, deed)) return one.steps.map((next) => [step, next, label]);
    if (one.kind === "joined" && isSameVisit(one, deed) && join === undefined) ({ join } = one);
    if (
      one.kind === "settled" &&
      to === undefined &&
      (one.led.check !== undefined || isSameVisit(one.led, deed))
    )
      ({ to } = one.led);
    if (one.kind === "began" && move?.kind === "goto" && one.step === move.step) isBegun = true;
  }
  if (join !== undefined) return [[step, join, label]];
  // It may still wait for a look outside.
  if (to === undefined) return move?.kind === "goto" && isBegun ? [[step, move.step, label]] : [];
  return to === null && !isOver(moment) ? [] : [[step, to, label]];
}

function isLedTo(ways: readonly TakenWay[], step: StepId): boolean {
  for (const [, to] of ways) if (to === step) return true;
  return false;
}

function isOver({ deeds }: Moment): boolean {
  return deeds.some(({ kind }) => kind === "ended");
}

function isSameVisit(one: AtVisit, other: AtVisit): boolean {
  return one.step === other.step && one.visit === other.visit;
}
