/** The ways that a search has found, and how each goes on to an end. What happens on them is decided again when it is needed. */
import type { Prepared } from "../engine/schema/prepared.ts";
import type { Deed } from "../flow/deed.ts";
import type { StepId } from "../flow/flow.ts";
import type { Moment } from "../story/story.ts";
import { choicesFor, type Happening } from "./choices.ts";
import { hitsIn } from "./cover.ts";
import { stateKey, taken, type Course, type Walked } from "./stepping.ts";

export type FoundWays = {
  /** Elements that were shown, each with how much has to happen until then. */
  readonly found: ReadonlyMap<string, number>;
  /** The way that shows the element first, and on to an end, a completed one where there is one that is not far. */
  readonly wayTo: (id: string) => Walked;
  /** Which of these the way to the element shows; they are taken out of the set. */
  readonly shownOnWayTo: (id: string, way: Walked, open: Set<string>) => readonly string[];
  /** Prompts that cannot be made on a way that the flow allows: for each reason the first such way. */
  readonly unaskable: readonly { readonly step: StepId; readonly why: string; readonly way: Walked }[];
};

/** How a state was found: `leg` led to it from the one before. */
export type Trail = {
  readonly from: number;
  readonly leg: Course;
  /** How much has to happen until the run is here. */
  readonly length: number;
};

/** All states that were found, by their numbers. */
export type Trails = {
  readonly trails: readonly Trail[];
  /** By their keys. */
  readonly known: ReadonlyMap<string, number>;
  /** How many choices lead from there to a completed end; absent: none do. */
  readonly distances: readonly (number | undefined)[];
  /** The choice that leads there by the shortest way. */
  readonly onward: readonly (Happening | undefined)[];
};

/** To a state, and on. */
export type FoundWay = { readonly at: number; readonly leg: Course };

/** Where the prompt of a step cannot be made. */
export type UnaskableAt = { readonly at: number; readonly step: StepId };

export const NOWHERE: Course = [];

export function foundWays(
  flow: Prepared,
  first: Moment,
  all: Trails,
  ways: ReadonlyMap<string, FoundWay>,
  unaskable: ReadonlyMap<string, UnaskableAt>,
): FoundWays {
  const { trails } = all;
  const finish = finisher(flow, all);
  const retraced = retracer(flow, trails, first);
  const shownUpTo = shownOnce(trails, retraced.to);
  const lengthOf = ({ at, leg }: FoundWay) => trails[at]!.length + leg.length;
  return {
    found: new Map(Array.from(ways, ([id, way]) => [id, lengthOf(way)])),
    wayTo: (id) => finish(retraced.whole(ways.get(id)!)),
    shownOnWayTo: (id, { moments }, open) => {
      const { at } = ways.get(id)!;
      const onWay = shownUpTo(at, open);
      const beyond = hitsIn(moments.slice(trails[at]!.length + 1)).keys();
      return [...onWay, ...beyond.filter((other) => open.delete(other))];
    },
    unaskable: Array.from(unaskable, ([why, { at, step }]) => ({
      step,
      why,
      way: retraced.whole({ at, leg: NOWHERE }),
    })),
  };
}

/** A way goes on to a completed end where there is one, by the shortest way that was found. */
function finisher(flow: Prepared, { known, distances, onward }: Trails): (way: Walked) => Walked {
  return ({ course, moments }) => {
    const whole = [...course];
    const all = [...moments];
    const here = known.get(stateKey(flow, all.at(-1)!.after));
    const isFar = here !== undefined && (distances[here] ?? 0) > FAR;
    for (let left = MOST_FINISHING; left > 0; left--) {
      const state = all.at(-1)!.after;
      const at = known.get(stateKey(flow, state));
      if (state.pending.length === 0 || at === undefined) break;
      const choice = onward[at] ?? choicesFor(flow, state)[0];
      const moment = choice === undefined ? null : taken(flow, state, choice);
      if (moment === null || choice === undefined) break;
      const until = isFar ? newlyBegun(all, moment) : undefined;
      whole.push(choice);
      all.push(moment);
      if (until !== undefined) return { course: whole, moments: all, until };
    }
    return { course: whole, moments: all };
  };
}

const MOST_FINISHING = 400;

/** An end that is further off says nothing about the element: the test is over when the run goes on to a new step. */
const FAR = 60;

/** A step that begins in this moment, and in none before. */
function newlyBegun(before: readonly Moment[], { deeds }: Moment): StepId | undefined {
  for (const deed of deeds) {
    if (deed.kind !== "began") continue;
    const isSame = (other: Deed) => other.kind === "began" && other.step === deed.step;
    if (!before.some((moment) => moment.deeds.some(isSame))) return deed.step;
  }
  return undefined;
}

/** The moments of ways. Ways share their beginnings: what leads to a state is decided once. */
function retracer(flow: Prepared, trails: readonly Trail[], first: Moment) {
  const known = new Map<number, readonly Moment[]>([[0, [first]]]);
  /** From the state before it, whose own are known. */
  const to = (at: number): readonly Moment[] => {
    const moments = known.get(at) ?? after(known.get(trails[at]!.from)!, trails[at]!.leg);
    known.set(at, moments);
    return moments;
  };
  const after = (before: readonly Moment[], leg: Course): readonly Moment[] => {
    const moments: Moment[] = [];
    for (const choice of leg) moments.push(taken(flow, (moments.at(-1) ?? before.at(-1)!).after, choice)!);
    return moments;
  };
  const whole = ({ at, leg }: FoundWay): Walked => {
    const passed: number[] = [];
    for (let here = at; here !== -1; here = trails[here]!.from) passed.push(here);
    const course: Happening[] = [];
    const moments: Moment[] = [];
    for (const here of passed.toReversed()) {
      course.push(...trails[here]!.leg);
      moments.push(...to(here));
    }
    moments.push(...after(moments, leg));
    course.push(...leg);
    return { course, moments };
  };
  return { to, whole };
}

/** Ways share their beginnings: a state up to which everything was taken out is not looked at again. */
function shownOnce(
  trails: readonly Trail[],
  momentsTo: (at: number) => readonly Moment[],
): (at: number, open: Set<string>) => readonly string[] {
  const done = new Set<number>([-1]);
  return (at, open) => {
    const fresh: number[] = [];
    for (let here = at; !done.has(here); here = trails[here]!.from) {
      done.add(here);
      fresh.push(here);
    }
    const moments = fresh.toReversed().flatMap(momentsTo);
    return [...hitsIn(moments).keys()].filter((id) => open.delete(id));
  };
}
