/** A run as frames, one for each entry: small enough to send all of a long run, and enough to draw it at any entry. */
import { laneIn, type AtVisit, type Deed } from "../flow/deed.ts";
import type { Event } from "../flow/event.ts";
import type { StepCommand } from "../flow/command.ts";
import type { Label, StepId } from "../flow/flow.ts";
import type { Outcome } from "../flow/verdict.ts";
import { jsonLine } from "../flow/text/harmless.ts";
import type { Lane } from "../engine/decide/state.ts";
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
 * Gives the frame of each moment as JSON; they come in order, from the first one on. It is done for every entry of a long
 * run, and therefore the text is made at once, from few pieces. `quoted` gives what is shown of a name (a step, a label, a
 * check or a code), as JSON.
 */
export function createFrames(quoted: Quoted = jsonLine): (moment: Moment) => string {
  const names = createNames(quoted);
  let begun: number | null = null;
  let moved = 0;
  let lanes: readonly Lane[] = [];
  let halted: readonly Lane[] = [];
  let asked = 0;
  return (moment) => {
    const { entry, after } = moment;
    const { seq, at, event } = entry;
    moved += entry.moved ?? 0;
    begun ??= at;
    const ms = numeral(Math.max(0, at - begun - moved));
    const visit = "step" in event ? numeral(event.visit) : 0;
    const of = kindIn(names, event.type, "step" in event ? event.step : null);
    const isSame = areSame(lanes, after.lanes) && areSame(halted, after.halted);
    ({ lanes, halted } = after);
    const under = isSame ? "0" : lanesText(names, lanes, halted);
    const asks = countAsked(lanes) + countAsked(halted);
    const more = moreText(names, moment, asks === asked ? null : asks);
    asked = asks;
    return `[${seq},${ms}${of}${visit},${under}${more}]`;
  };
}

type Quoted = (name: string) => string;

/** A run has few names, steps, kinds of entries and ways, and each of them many times: their texts are made once. */
type Names = {
  readonly quoted: Quoted;
  readonly known: Map<string | null, string>;
  readonly steps: Map<StepId, string>;
  /** By type and step. */
  readonly kinds: Map<string, Map<StepId | null, string>>;
  /** By where they begin, where they end, and their label. */
  readonly ways: Map<StepId | null, Map<StepId | null, Map<Label | null, string>>>;
};

function createNames(quoted: Quoted): Names {
  return {
    quoted,
    known: new Map([[null, "null"]]),
    steps: new Map(),
    kinds: new Map(),
    ways: new Map(),
  };
}

function nameIn({ known, quoted }: Names, name: string | null): string {
  let found = known.get(name);
  if (found === undefined) known.set(name, (found = quoted(name!)));
  return found;
}

/** A visit up to its number. */
function visitIn(names: Names, step: StepId): string {
  let found = names.steps.get(step);
  if (found === undefined) names.steps.set(step, (found = `[${nameIn(names, step)},`));
  return found;
}

/** What stands in a frame between its time and the number of its visit. */
function kindIn(names: Names, type: Event["type"], step: StepId | null): string {
  let steps = names.kinds.get(type);
  if (steps === undefined) names.kinds.set(type, (steps = new Map()));
  let found = steps.get(step);
  if (found === undefined) steps.set(step, (found = `,"${type}",${nameIn(names, step)},`));
  return found;
}

function wayIn(names: Names, [from, to, label, how]: TakenWay): string {
  if (how !== undefined)
    return `[${nameIn(names, from)},${nameIn(names, to)},${nameIn(names, label)},"back"]`;
  const { ways } = names;
  let known = ways.get(from);
  if (known === undefined) ways.set(from, (known = new Map()));
  let labels = known.get(to);
  if (labels === undefined) known.set(to, (labels = new Map()));
  let found = labels.get(label);
  if (found === undefined) {
    found = `[${nameIn(names, from)},${nameIn(names, to)},${nameIn(names, label)}]`;
    labels.set(label, found);
  }
  return found;
}

/** A journal that came with a clone may hold anything where a number should be. */
function numeral(value: number): number | string {
  return Number.isFinite(value) ? value : jsonLine(value ?? null);
}

/** Whether the same is done for the same visits. */
function areSame(before: readonly Lane[], after: readonly Lane[]): boolean {
  if (before === after) return true;
  if (before.length !== after.length) return false;
  for (let place = 0; place < after.length; place += 1) {
    const one = before[place]!;
    const other = after[place]!;
    const isSame = one.visit === other.visit && one.step === other.step;
    if (!isSame || one.command.type !== other.command.type) return false;
  }
  return true;
}

function countAsked(lanes: readonly Lane[]): number {
  let asked = 0;
  for (const { command } of lanes) if (command.type === "question" && command.asked) asked += 1;
  return asked;
}

function lanesText(names: Names, lanes: readonly Lane[], halted: readonly Lane[]): string {
  let text = "[";
  for (const { step, visit, command } of lanes)
    text += `${text === "[" ? "" : ","}${visitIn(names, step)}${visit},"${command.type}"]`;
  for (const { step, visit, command } of halted)
    text += `${text === "[" ? "" : ","}${visitIn(names, step)}${visit},"${command.type}",1]`;
  return `${text}]`;
}

/** A `FrameMore` with a comma before it; nothing where it has no members. `asks`: null where that did not change. */
function moreText(names: Names, moment: Moment, asks: number | null): string {
  const { entry, deeds, after } = moment;
  let more = "";
  let ways = "";
  for (const way of waysIn(moment)) ways += ways === "" ? wayIn(names, way) : `,${wayIn(names, way)}`;
  if (ways !== "") more = `,{"ways":[${ways}]`;
  let began = "";
  let failed = "";
  for (const deed of deeds) {
    if (deed.kind === "began" && laneIn(after, deed) !== undefined)
      began += `${began === "" ? "" : ","}${visitIn(names, deed.step)}${deed.visit}]`;
    if (deed.kind === "checked" && deed.failed !== null)
      failed += `${failed === "" ? "" : ","}${nameIn(names, deed.failed.name)}`;
  }
  if (began !== "") more += `${comma(more)}"began":[${began}]`;
  if (failed !== "") more += `${comma(more)}"failed":[${failed}]`;
  const used = usageIn(entry.event);
  if (used !== undefined) {
    const { turns, inputTokens, outputTokens, costUsd } = used;
    more += `${comma(more)}"used":[${turns},${inputTokens},${outputTokens},${costUsd}]`;
  }
  if (entry.event.type === "run.ended") {
    const { outcome, code } = entry.event.verdict;
    more += `${comma(more)}"ended":[${jsonLine(outcome)},${nameIn(names, code)}]`;
  }
  if (asks !== null) more += `${comma(more)}"asks":${asks}`;
  return more === "" ? "" : `${more}}`;
}

function comma(more: string): string {
  return more === "" ? ",{" : ",";
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
